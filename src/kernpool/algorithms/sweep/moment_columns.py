"""Moments of local fits as value columns of a problem in one column.

Sums of powers of offsets from one point of the line are sums of value columns: they are pooled once and then moved to
every query. The states of such sums also say which queries are imprecise: one that has to be computed pair by pair is
flagged by `loops.near_pairs.UNDONE` in the array of denominators.
"""

import numpy as np
from numpy.typing import NDArray

from kernpool.core.state import PoolState

Array = NDArray[np.float64]


def with_moments(value: Array, offset: Array, degree: int) -> Array:
    """Append the powers of keys' offsets, and their products with values, to the value columns.

    Their order is that of `Layout`.

    Parameters
    ----------
    value : ndarray of shape (c, n)
        The values.
    offset : ndarray of shape (n,)
        Offsets of keys from a point, in bandwidths.
    degree : {1, 2}
        Of the fit.

    Returns
    -------
    ndarray of shape (columns, n)
        Values, offsets, their squares, their products with values; then third and fourth powers, and products of
        squares with values.

    Examples
    --------
    >>> with_moments(np.array([[5.0]]), np.array([2.0]), 2)[:, 0]
    array([ 5.,  2.,  4., 10.,  8., 16., 20.])
    """
    square = offset * offset
    rows = [value, offset, square, offset * value]
    if degree == 2:
        rows += [square * offset, square * square, square * value]
    return np.vstack(rows)


def pop_flags(state: PoolState) -> NDArray[np.bool_]:
    """Return flags of queries to be recomputed, those with a negative sum of weights, and set their sums to zero."""
    undone: NDArray[np.bool_] = state.denominator < 0.0
    clear(state, undone)
    return undone


def clear(state: PoolState, rows: NDArray[np.bool_]) -> None:
    """Set the sums of weights and of weighted values of the flagged queries to zero, in place."""
    state.denominator[rows], state.numerator[rows] = 0.0, 0.0
