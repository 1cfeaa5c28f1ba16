"""Dense reference of prediction intervals: every fit again from the rows, one by one."""

from fractions import Fraction
from math import ceil

import numpy as np


def units(weight):
    """Which row each unit row is; weights are whole numbers."""
    return np.repeat(np.arange(len(weight)), weight.astype(int))


def ranks(level, n):
    """Ranks of both ends among n unit rows."""
    upper = ceil(Fraction(str(level)) * (n + 1))
    return n + 1 - upper, upper


def order_statistic(values, rank):
    """The value of this rank, from 1 on; infinite beyond either end."""
    if rank < 1:
        return -np.inf
    return np.inf if rank > len(values) else np.sort(values)[rank - 1]


def without_each(dense, q, code=None):
    """Fits at places without one unit of each row, of shape (m, n, c); NaN for rows of weight zero."""
    found = np.full((len(q), len(dense.w), dense.y.shape[1]), np.nan)
    for i in np.flatnonzero(dense.w > 0):
        weight = dense.w.copy()
        weight[i] -= 1.0
        found[:, i] = (
            dense.coefficients(q, code, frequency=np.broadcast_to(weight, (len(q), len(weight))))[:, 0] @ dense.y
        )
    return found


def residuals(dense):
    """Absolute leave-one-out residuals, of shape (n, c)."""
    return np.abs(dense.y - dense.deleted())


def jackknife_plus(dense, q, level, code=None):
    """Barber, Candes, Ramdas and Tibshirani 2021, equation (5)."""
    rows, fits, reach = units(dense.w), without_each(dense, q, code), residuals(dense)
    low, high = ranks(level, len(rows))
    ends = np.empty((2, len(q), dense.y.shape[1]))
    for place in range(len(q)):
        for output in range(dense.y.shape[1]):
            fit, r = fits[place, rows, output], reach[rows, output]
            ends[0, place, output] = order_statistic(fit - r, low)
            ends[1, place, output] = order_statistic(fit + r, high)
    return ends
