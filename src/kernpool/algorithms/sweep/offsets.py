"""Moments about one place of a line as values: what is pooled once, and then moved to every query."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def with_moments(value: Array, offset: Array, degree: int) -> Array:
    """Return the values of keys, and what a state of moments sums beside them, in the order of `Layout`.

    Parameters
    ----------
    value : ndarray of shape (c, n)
        The values.
    offset : ndarray of shape (n,)
        Of keys from a place, in bandwidths.
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
