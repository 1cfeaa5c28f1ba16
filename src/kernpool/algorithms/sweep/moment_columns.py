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
    """Append the powers of keys' offsets, and their products with values, to the value columns."""
    # Their order is that of `Layout`.
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
