r"""Accumulated local effects (ALE) of a column, with standard errors.

.. math:: \hat f(z_k) = \sum_{b \le k} \frac{1}{n_b} \sum_{i \in b} \big(m(z_b, x_{i,-j}) - m(z_{b-1}, x_{i,-j})\big)
          - \text{mean}

where b are bins of column j, between z_{b-1} and z_b, and i the rows in a bin: a row of weight 3 is three rows. A row
moves to the edges of its own bin alone. So, other than for a partial dependence, no combination of columns is asked for
that is far from all rows.

An effect of a kernel smoother is a sum over the training outputs, whose weights are accumulated differences of the
linear weights of predictions. So its variance is that of any linear smoother: the sum of squared weights times the
local noise; with groups the sum over clusters of squared sums of weights times leave-cluster-out residuals.

References
----------
.. [1] D. W. Apley and J. Zhu, "Visualizing the effects of predictor variables in black box supervised learning models",
   JRSS B 82 (2020), 1059-1086.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernpool.displays.inputs import TrainingInputs
from kernpool.execution.text_table import IntervalTable
from kernpool.execution.threads import cut

Array = NDArray[np.float64]
Indices = NDArray[np.intp]

BINS = 20
NUMBERS_AT_ONCE = 1 << 21


@dataclass(frozen=True, eq=False)
class EffectBand(IntervalTable):
    """Pointwise confidence intervals of effects: center, lower and upper ends, of shape (g,)."""

    center: Array
    lower: Array
    upper: Array


@dataclass(frozen=True, eq=False)
class Moves:
    """Rows that move over one bin of a column each.

    Parameters
    ----------
    edge : ndarray of shape (g,)
        Edges of the bins, or categories.
    row, bin : ndarray of int, shape (moves,)
        Which row moves from edge ``bin`` to edge ``bin + 1``.
    weight : ndarray of shape (moves,)
        Frequencies of these rows.
    share : ndarray of shape (g,)
        Weight of each edge in the mean of the effects over rows.
    """

    edge: Array
    row: Indices
    bin: Indices
    weight: Array
    share: Array

    @classmethod
    def of_numbers(cls, value: Array, weight: Array, bins: int) -> Moves:
        """Return the moves of a column of numbers, between its quantiles; the first bin has its lower edge.

        Quantiles are values of rows (inverse of the distribution function), by frequencies, which are positive.
        """
        order = np.argsort(value, kind="stable")
        rows = np.cumsum(weight[order])
        at = np.searchsorted(rows, np.linspace(0.0, 1.0, bins + 1) * rows[-1])
        edge = np.unique(value[order[np.minimum(at, len(order) - 1)]])
        if len(edge) == 1:
            return cls(edge, np.zeros(0, dtype=np.intp), np.zeros(0, dtype=np.intp), np.zeros(0), np.ones(1))
        place = np.clip(np.searchsorted(edge, value) - 1, 0, len(edge) - 2)
        count = np.bincount(place, weight, minlength=len(edge) - 1) / (2.0 * weight.sum())
        return cls(edge, np.arange(len(value)), place, weight, np.append(count, 0.0) + np.append(0.0, count))

    @classmethod
    def of_categories(cls, code: Array, weight: Array, shown: Array) -> Moves:
        """Return the moves of categories in the order shown: rows of two neighbours move from one to the other."""
        pairs = [np.flatnonzero(np.isin(code, shown[b : b + 2])) for b in range(len(shown) - 1)]
        place = np.repeat(np.arange(len(pairs)), [len(rows) for rows in pairs])
        count = np.array([weight[code == level].sum() for level in shown])
        row = np.concatenate([np.zeros(0, dtype=np.intp), *pairs]).astype(np.intp)
        return cls(shown, row, place, weight[row], count / (count.sum() or 1.0))

    def effects(self, ask: Callable[[Indices, Array], Array], columns: int) -> Array:
        """Accumulate mean changes of answers over the bins, less their mean over the rows.

        Parameters
        ----------
        ask : callable
            Returns new arrays of answers, of shape (moves, columns), of rows with these indices moved to these values.
        columns : int
            How many numbers each answer has.

        Returns
        -------
        ndarray of shape (g, columns)
            Linear in the answers.
        """
        total = np.zeros((len(self.edge) - 1, columns))
        moves = np.bincount(self.bin, self.weight, minlength=len(total))[:, None]
        for part in cut(len(self.row), max(1, NUMBERS_AT_ONCE // columns)):
            row, place = self.row[part], self.bin[part]
            change: Array = ask(row, self.edge[place + 1])
            change -= ask(row, self.edge[place])
            np.add.at(total, place, self.weight[part, None] * change)
        steps = np.divide(total, moves, where=moves > 0, out=np.zeros_like(total))
        found = np.concatenate([np.zeros((1, columns)), np.cumsum(steps, axis=0)])
        return np.asarray(found - self.share @ found)


def effects_along(
    predict: Callable[[Any], Any], inputs: TrainingInputs, rows: Array, column: int, moves: Moves
) -> tuple[Array, Callable[[Indices, Array], Any]]:
    """Return accumulated local effects along a column, of shape (g, c), and the tables of moved rows by index."""

    def moved(row: Indices, value: Array) -> Any:
        query = rows[row].copy()
        query[:, column] = value
        return inputs.table(query)

    def ask(row: Indices, value: Array) -> Array:
        return np.array(predict(moved(row, value)), dtype=np.float64).reshape(len(row), -1)

    columns = np.asarray(predict(inputs.table(rows[:1]))).size
    return moves.effects(ask, columns), moved


def effect_band(
    estimator: Any, effect: Array, moves: Moves, moved: Callable[[Indices, Array], Any], level: float
) -> EffectBand:
    """Return confidence intervals for the effects of a fitted kernel regressor of one output, in memory.

    They are pointwise, for the given bins and rows; the bias of the fit is not corrected.
    """
    residuals = estimator.residuals()
    n, weight = len(residuals.weight), residuals.weight

    def ask(row: Indices, value: Array) -> Array:
        weights: Array = estimator.get_prediction(moved(row, value)).weights()
        return weights

    linear = moves.effects(ask, n)
    if residuals.cluster is None:
        unit = np.divide(residuals.noise**2, weight, where=weight > 0, out=np.zeros(n))
        error = np.sqrt(linear**2 @ unit)
    else:
        parts = [np.bincount(residuals.cluster, row * residuals.residual) for row in linear]
        error = np.sqrt([np.sum(part**2) for part in parts])
    away = NormalDist().inv_cdf(0.5 + 0.5 * level) * error
    return EffectBand(effect[:, 0], effect[:, 0] - away, effect[:, 0] + away)
