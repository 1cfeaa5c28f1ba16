r"""How well a conditional quantile is known: an interval of two other quantiles.

The share of a window that is below the true quantile has mean tau and variance :math:`\tau (1 - \tau) \lVert \alpha
\rVert^2`, where :math:`\lVert \alpha \rVert^2 = \sum_j \alpha_j^2 / w_j = 1/n` and n is the effective number of rows.
So the true quantile lies between the estimated ones at the levels

.. math:: r / n \quad\text{and}\quad s / n, \qquad P(B < r) \le \alpha / 2, \quad P(B \ge s) \le \alpha / 2, \quad
          B \sim \text{Bin}(\lfloor n \rfloor, \tau),

as it does between order statistics of a plain sample. No density is estimated. A normal approximation in place of the
binomial distribution would cover 80 percent where a single row counts, and 95 were asked for.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binom

Array = NDArray[np.float64]

ROWS = 6  # of the table that is printed
ROUNDING = 1e-9  # of a number of rows, which is a whole one where weights are equal


@dataclass(frozen=True, eq=False)  # arrays have no single truth
class QuantileInterval:
    """Conditional quantiles with intervals.

    Parameters
    ----------
    center : ndarray of shape (m,), (m, l), (m, c) or (m, c, l)
        The quantiles.
    lower, upper : ndarray of the same shape
        Minus infinity and infinity where so few rows bound the quantile on one side only, or not at all, as in an empty
        window; NaN where the center is.
    levels : ndarray of shape () or (l,)
        Of the quantiles.
    level : float
        Probability that an interval covers.
    effective_rows : ndarray of shape (m,)
        How many rows a window averages over; 0 where it is empty.

    Examples
    --------
    >>> from kernpool import NadarayaWatsonRegressor
    >>> X, y = [[0.0]] * 100, [float(i) for i in range(100)]
    >>> print(NadarayaWatsonRegressor(bandwidth=1.0).fit(X, y).quantile_interval([[0.0]], [0.01, 0.5]))
    places  1
    level   0.95, each place by itself
    <BLANKLINE>
      place  quantile  center  lower  upper  n_eff
      0      0.01      0       -inf   3      100
      0      0.5       49      39     60     100
    """

    center: Array
    lower: Array
    upper: Array
    levels: Array
    level: float
    effective_rows: Array

    def __str__(self) -> str:
        axes = ["place"] + ["output"] * (self.center.ndim - 1 - self.levels.ndim)
        lines, shown = [], 0
        for at in np.ndindex(self.center.shape):
            if shown == ROWS:
                break
            tau = self.levels[at[-1]] if self.levels.ndim else self.levels
            where = at[:-1] if self.levels.ndim else at
            ends = (self.center[at], self.lower[at], self.upper[at])
            lines.append(
                [*map(str, where), f"{tau:g}", *(f"{x + 0.0:.4g}" for x in ends), f"{self.effective_rows[at[0]]:.3g}"]
            )
            shown += 1
        cut = self.center.size > shown
        names = [*axes, "quantile", "center", "lower", "upper", "n_eff"]
        widths = [max(map(len, column)) for column in zip(names, *lines, strict=True)]
        table = [
            "".join(f"  {cell:{width}}" for cell, width in zip(row, widths, strict=True)).rstrip()
            for row in [names, *lines]
        ]
        head = [
            f"places  {len(self.center)}" + ", the first below" * cut,
            f"level   {self.level:g}, each place by itself",
        ]
        return "\n".join([*head, "", *table, *["  ..."] * cut])


def levels_around(level: Array, rows: Array, confidence: float) -> tuple[Array, Array]:
    r"""Return the levels of both ends of intervals, of shape (m, l); below 0 and above 1 where there is no end.

    Of n rows the r-th smallest is at most the quantile if at least r rows are, and the s-th above it if fewer than s
    are: binomial probabilities, of which each end misses with half of the error rate or less.

    Parameters
    ----------
    level : ndarray of shape (l,)
        Of the quantiles.
    rows : ndarray of shape (m,)
        Effective number of rows in each window; what is beyond a whole number does not count.
    confidence : float
        Probability that an interval covers.

    Examples
    --------
    >>> low, high = levels_around(np.array([0.5]), np.array([100.0, 5.0]), 0.95)
    >>> low.ravel(), high.ravel()  # the 40th and the 61st of 100 rows; none of five
    (array([ 0.4, -1. ]), array([0.61, 2.  ]))
    """
    n = np.floor(rows * (1.0 + ROUNDING))[:, None]
    at_least_one = np.maximum(n, 1.0)
    low = binom.ppf(0.5 - 0.5 * confidence, at_least_one, level)
    high = binom.ppf(0.5 + 0.5 * confidence, at_least_one, level) + 1.0
    no_low, no_high = (n < 1.0) | (low < 1.0), (n < 1.0) | (high > n)
    return np.where(no_low, -1.0, low / at_least_one), np.where(no_high, 2.0, high / at_least_one)


def without_ends(low: Array, high: Array, ends: tuple[Array, Array]) -> tuple[Array, Array]:
    """Put infinity where levels are beyond 0 or 1; ends of shape (m, c, l)."""
    no_low, no_high = (low <= 0.0)[:, None], (high > 1.0)[:, None]
    lower = np.where(no_low & ~np.isnan(ends[0]), -np.inf, ends[0])
    return lower, np.where(no_high & ~np.isnan(ends[1]), np.inf, ends[1])
