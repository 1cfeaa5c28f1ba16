"""Dense reference of prediction intervals: every fit again from the rows, one by one, and sets by searches over y."""

from dataclasses import replace
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


def full(dense, q, level, code=None):
    """Ends of the set of y whose conformal p-value is above alpha, by bisection: every fit again with the new row."""
    rows, center = units(dense.w), dense.coefficients(q, code)[:, 0] @ dense.y
    alpha = 1 - Fraction(str(level))
    ends = np.empty((2, len(q), dense.y.shape[1]))
    for place in range(len(q)):
        shares = _shares_with(dense, q[place : place + 1], None if code is None else code[place : place + 1])
        for output in range(dense.y.shape[1]):
            y, middle = dense.y[:, output], center[place, output]
            others = shares[:, :-1] @ y

            def inside(new, y=y, others=others, middle=middle, slope=shares[:, -1]):
                as_strange = np.abs(y - others - slope * new) >= abs(new - middle)
                return Fraction(1 + int(np.count_nonzero(as_strange[rows])), len(rows) + 1) > alpha

            ends[0, place, output] = middle - _last(lambda t, m=middle, f=inside: f(m - t))
            ends[1, place, output] = middle + _last(lambda t, m=middle, f=inside: f(m + t))
    return ends


def _shares_with(dense, q, code):
    """Shares of all rows and a new one, the last, in the fit at each row without one unit of it."""
    larger = replace(
        dense,
        x=np.vstack([dense.x, q]),
        w=np.append(dense.w, 1.0),
        code=None if code is None else np.vstack([dense.code, code]),
    )
    n = len(dense.w)
    weight = np.repeat(larger.w[None], n, axis=0)
    weight[np.arange(n), np.arange(n)] -= dense.w > 0
    return larger.coefficients(dense.x, dense.code, frequency=weight)[:, 0]


def _last(inside):
    """The largest t from 0 on up to which a set holds."""
    assert inside(0.0)
    low, high = 0.0, 1e-3
    while inside(high):
        low, high = high, 2.0 * high
        if high > 1e12:
            return np.inf
    for _ in range(60):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if inside(middle) else (low, middle)
    return low
