"""Many problems of one shape in arrays of one more dimension, read at once and not one by one."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


class Stack(NamedTuple):
    """Pairs of b problems with m queries, n keys, d columns and c value columns each.

    Parameters
    ----------
    query : ndarray of shape (b, m, d)
        Where to pool.
    key : ndarray of shape (b, d, n)
        What queries are compared with, column by column.
    value : ndarray of shape (b, c, n)
        What is pooled, less `center`.
    center : ndarray of shape (b, c)
        A median of the values of each problem.
    low, high : ndarray of shape (b, c)
        The ends of the values, less their center.
    key_weight : ndarray of shape (b, n) or (b, 0)
        Frequencies in units of `unit`; none are one each.
    unit : ndarray of shape (b,)
        Powers of two, so that the largest weight of each problem is between 1 and 2.
    own : ndarray of int, shape (b, m)
        Own keys, -1 for none.
    own_weight : ndarray of shape (b, m)
        What is left of them once one is taken away.
    """

    query: Array
    key: Array
    value: Array
    center: Array
    low: Array
    high: Array
    key_weight: Array
    unit: Array
    own: NDArray[np.int64]
    own_weight: Array

    @classmethod
    def of(
        cls,
        query: NDArray[Any],
        key: NDArray[Any],
        value: NDArray[Any],
        key_weight: NDArray[Any] | None = None,
        own: NDArray[np.int64] | None = None,
    ) -> Stack:
        """Read arrays that are known to be finite and of matching shapes; those of keys by rows, (b, n, columns)."""
        query, key, value = (np.asarray(array, dtype=np.float64) for array in (query, key, value))
        (b, m, _), taking_part = query.shape, value
        weight, unit = np.empty((b, 0)), np.ones(b)
        if key_weight is not None:
            unit = 2.0 ** np.floor(np.log2(key_weight.max(axis=1)))
            weight = key_weight / unit[:, None]
            taking_part = np.where(weight[:, :, None] > 0, value, np.nan)
        own = np.full((b, m), -1) if own is None else own
        own_weight = np.zeros((b, m))
        if key_weight is not None:
            left = np.take_along_axis(weight, np.maximum(own, 0), axis=1) - 1.0 / unit[:, None]
            own_weight = np.where(own >= 0, np.maximum(left, 0.0), 0.0)
        center = np.median(value, axis=1) if key_weight is None else np.nanmedian(taking_part, axis=1)
        low, high = np.fmin.reduce(taking_part, axis=1), np.fmax.reduce(taking_part, axis=1)
        centered = np.ascontiguousarray(np.swapaxes(value - center[:, None], 1, 2))
        columns = np.ascontiguousarray(np.swapaxes(key, 1, 2))
        return cls(
            np.ascontiguousarray(query), columns, centered, center, low - center, high - center,
            weight, unit, own, own_weight,
        )  # fmt: skip
