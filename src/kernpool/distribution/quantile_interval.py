r"""How well a conditional quantile is known: an interval of two other quantiles.

The share of a window that is below the true quantile has mean tau and variance :math:`\tau (1 - \tau) \lVert \alpha
\rVert^2`, where :math:`\lVert \alpha \rVert^2 = \sum_j \alpha_j^2 / w_j` is one over the effective number of rows. So
the true quantile lies between the estimated ones at the levels

.. math:: \tau \pm z \sqrt{\tau (1 - \tau)}\, \lVert \alpha \rVert,

as it does between order statistics of a plain sample. No density is estimated.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

Array = NDArray[np.float64]

ROWS = 6  # of the table that is printed


@dataclass(frozen=True, eq=False)  # arrays have no single truth
class QuantileInterval:
    """Conditional quantiles with intervals.

    Parameters
    ----------
    center : ndarray of shape (m,), (m, l), (m, c) or (m, c, l)
        The quantiles.
    lower, upper : ndarray of the same shape
        Minus infinity and infinity where so few rows bound the quantile on one side only, or not at all; NaN where the
        window is empty and nothing else was asked for.
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
      place  quantile  center  lower  upper  rows
      0      0.01      0       -inf   2      100
      0      0.5       49      40     59     100
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
        names = [*axes, "quantile", "center", "lower", "upper", "rows"]
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


def levels_around(level: Array, norm: Array, confidence: float) -> tuple[Array, Array]:
    """Return the levels of both ends of intervals, of shape (m, l); below 0 and above 1 where there is no end.

    Parameters
    ----------
    level : ndarray of shape (l,)
        Of the quantiles.
    norm : ndarray of shape (m,)
        Root of the sum of squared shares, per unit row.
    confidence : float
        Probability that an interval covers.

    Examples
    --------
    >>> low, high = levels_around(np.array([0.5]), np.array([0.1]), 0.95)
    >>> low.round(3), high.round(3)
    (array([[0.402]]), array([[0.598]]))
    """
    half = float(ndtri(0.5 + 0.5 * confidence)) * np.sqrt(level * (1.0 - level)) * norm[:, None]
    return level - half, level + half


def without_ends(low: Array, high: Array, ends: tuple[Array, Array]) -> tuple[Array, Array]:
    """Put infinity where levels are beyond 0 or 1; ends of shape (m, c, l)."""
    bad: Any = (low <= 0.0)[:, None], (high >= 1.0)[:, None]
    lower = np.where(bad[0] & ~np.isnan(ends[0]), -np.inf, ends[0])
    return lower, np.where(bad[1] & ~np.isnan(ends[1]), np.inf, ends[1])
