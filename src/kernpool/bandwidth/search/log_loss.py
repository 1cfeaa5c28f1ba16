r"""Bandwidths of class probabilities: the leave-one-out log loss, with a prior on how narrow windows are.

.. math:: -\frac1n \sum_i w_i \log\big((1 - s)\, \hat p_{-i}(x_i) + s\, \pi_{-i}\big) + \frac1n \sum_a r_a

with the share s of the priors at its minimum (see `kernpool.bandwidth.prior_share`) and the relevances
:math:`r_a = \text{spread}_a / h_a`; of a categorical column, how far its smoothing is from the upper end. The penalty
is an exponential prior on relevances, so that the bandwidths are those of largest posterior density with the
leave-one-out likelihood [1]_ in place of the likelihood. Without it, a search among many bandwidths finds some that
separate a few rows by chance.

.. [1] J. D. F. Habbema, J. Hermans and K. van den Broek, "A stepwise discriminant analysis program using density
   estimation", COMPSTAT 1974, 101-110.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kernpool.bandwidth.prior_share import prior_of_others, prior_share
from kernpool.bandwidth.search.all_pairs import AllPairsObjective
from kernpool.bandwidth.search.course import TimeLimit
from kernpool.bandwidth.search.evaluation import Evaluation, cost_of_empty
from kernpool.bandwidth.search.objective import Objective
from kernpool.bandwidth.search.way import choose_way_of_log_loss

Array = NDArray[np.float64]

WIDE_SMOOTHING, LEAST_ROOT = 0.9, 1e-3  # roots of shares of the boxes; slopes at zero may be infinite
STANDARD_ERRORS = 2.0
IRRELEVANT = 0.1


class Place(NamedTuple):
    """The criterion at one place, per row too."""

    x: Array
    value: float
    slope: Array
    row_loss: Array
    at: Evaluation


class LogLoss:
    """The criterion as a function of log bandwidths and of the roots of smoothings in shares of their boxes.

    Parameters
    ----------
    objective : Objective
        Of one-hot labels, each row left out.
    spread : ndarray of shape (d,)
        Spreads of the columns.
    limit : TimeLimit
        Looked at before every evaluation.
    """

    def __init__(self, objective: Objective, spread: Array, limit: TimeLimit) -> None:
        self.objective, self.rows, self.d, self._limit = objective, objective.rows, len(spread), limit
        self.way = choose_way_of_log_loss(objective)
        self._quick = AllPairsObjective(objective) if self.way.quick else None
        self.best: Place | None = None
        self.prior = prior_of_others(self.rows.value, self.rows.weight, self.rows.group)
        self.log_spread, self.is_mine = np.log(spread), self.rows.value > 0.5
        self.largest = objective.categories.largest
        low, high, _ = objective.box
        k = len(self.largest)
        self.low, self.high = np.r_[low[: self.d], np.full(k, LEAST_ROOT)], np.r_[high[: self.d], np.ones(k)]
        self.tried: list[tuple[Array, float]] = []

    def theta(self, x: Array) -> Array:
        """Return log bandwidths and smoothings."""
        return np.concatenate([x[: self.d], self.largest * x[self.d :] ** 2])

    def evaluate(self, x: Array, *, slope: bool = True) -> Place:
        """Return the criterion, and its slope unless it is not wanted."""
        self._limit.check()
        at = (self._quick or self.objective).evaluate(self.theta(x))
        weight, total, number = self.rows.weight, self.rows.total, self.rows.number
        off = at.residual[self.is_mine] / np.sqrt(weight / total)  # one minus the probability of the right class
        share, mixed, loss = prior_share(1.0 - off, self.prior, weight)
        relevance = np.exp(self.log_spread - x[: self.d])
        value = loss + float(relevance.sum() + np.sum(1.0 - x[self.d :] ** 2)) / number
        value += 0.5 * cost_of_empty(~at.fit.occupied, weight)  # half a logarithm of squares is a log likelihood
        self.tried.append((self.theta(x), value))
        slopes = np.zeros(len(x))
        if slope:
            cotangent = np.where(self.is_mine, ((share - 1.0) * weight / mixed / total)[:, None], 0.0)
            if self._quick is not None:
                slopes = self._quick.pullback(at, cotangent).sum(axis=0)
            else:
                slopes = self.objective.pullback(at.problem, at.state, cotangent).sum(axis=0)
            slopes[: self.d] -= relevance / number
            slopes[self.d :] = 2.0 * x[self.d :] * (slopes[self.d :] * self.largest - 1.0 / number)
        place = Place(x, value, slopes, -np.log(mixed), at)
        if self.best is None or value < self.best.value:
            self.best = place
        return place

    def descend(self, x: Array, steps: int, tolerance: float) -> Place:
        """Minimise from one start, by L-BFGS-B, and smooth away the columns that nothing is lost without."""
        from scipy.optimize import minimize

        best: list[Place] = []

        def value_and_slope(x: Array) -> tuple[float, Array]:
            found = self.evaluate(x.copy())
            if not best or found.value < best[0].value:
                best[:] = [found]
            return found.value, found.slope

        minimize(
            value_and_slope,
            np.clip(x, self.low, self.high),
            jac=True,
            method="L-BFGS-B",
            bounds=np.column_stack([self.low, self.high]),
            options={"maxiter": steps, "ftol": tolerance},
        )
        return self.flatten(best[0])

    def flatten(self, place: Place) -> Place:
        """Smooth away columns of little relevance, one after the other, where the criterion is not worse for it."""
        relevance = np.r_[np.exp(self.log_spread - place.x[: self.d]), 1.0 - place.x[self.d :] ** 2]
        for a in np.argsort(relevance):
            if 0.0 < relevance[a] < IRRELEVANT and place.x[a] < self.high[a]:
                tried = self.evaluate(np.where(np.arange(len(place.x)) == a, self.high, place.x), slope=False)
                place = tried if tried.value <= place.value else place
        return place

    def along(self, factors: Array) -> list[Place]:
        """Evaluate common factors on the spreads, with categories nearly smoothed away."""
        return [self.evaluate(self.at_factor(float(np.log(factor))), slope=False) for factor in factors]

    def at_factor(self, log_factor: float) -> Array:
        """Return the place of a common factor on the spreads."""
        x = np.r_[self.log_spread + log_factor, np.full(len(self.largest), WIDE_SMOOTHING)]
        return np.asarray(np.clip(x, self.low, self.high))

    def is_clearly_better(self, one: Place, other: Place) -> bool:
        """Whether one is better by more than two standard errors of the paired differences of the rows."""
        share = self.rows.weight / self.rows.total
        difference = other.row_loss - one.row_loss
        spread = float(share @ (difference - share @ difference) ** 2)
        error = np.sqrt(spread / max(self.rows.total - 1.0, 1.0))
        return bool(other.value - one.value > STANDARD_ERRORS * error)
