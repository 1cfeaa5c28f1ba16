"""Bandwidth search for class probabilities: leave-one-out log loss with a penalty on narrow bandwidths.

The criterion, with n rows in all::

    -(1/n) sum_i w_i log((1 - s) p_i + s prior_i) + (1/n) sum_a r_a

p_i and prior_i are the leave-one-out probability and prior of the class of row i. The mixing weight s of the priors
is at its minimum (see `kernpool.bandwidth.prior_shrinkage`). The relevance r_a of a numeric column is spread_a /
h_a; that of a categorical column is how far its smoothing is from the upper end. The penalty is an exponential
prior on relevances, so that the bandwidths are those of largest posterior density, with the leave-one-out
likelihood [1]_ in place of the likelihood. Without it, a search among many bandwidths finds some that separate a
few rows by chance.

*One factor*, for one column, kernels without a slope or on request: 64 factors on the spreads are evaluated, and
the best is refined to 1e-4 in log h.

*One bandwidth per column*: a descent by L-BFGS-B from windows of 2.7 spreads, in which relevant columns emerge,
and another one from the best common factor, which is taken only if it is better by two standard errors of the
paired differences: with many columns, narrow windows are often better by chance. Some fifty passes and pullbacks,
each O(n^2 (d + k)) for n rows in all pairs. With more than 2048 rows this is done on so many drawn ones; their
bandwidths times the rate n^(-1/(4 + d)) are the start on all of them.

.. [1] J. D. F. Habbema, J. Hermans and K. van den Broek, "A stepwise discriminant analysis program using density
   estimation", COMPSTAT 1974, 101-110.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kernpool.bandwidth.prior_shrinkage import prior_of_others, prior_share
from kernpool.bandwidth.rules_of_thumb import bring_to_rows, canonical_ratio
from kernpool.bandwidth.search.common_scale import candidates
from kernpool.bandwidth.search.fast_objectives import AllPairsObjective, choose_way
from kernpool.bandwidth.search.objective import Objective, Trial, best_of, cost_of_empty
from kernpool.bandwidth.search.state import SearchState

Array = NDArray[np.float64]

WIDE_SMOOTHING, LEAST_ROOT = 0.9, 1e-3  # roots of smoothings, as fractions; slopes at zero may be infinite
STANDARD_ERRORS = 2.0
IRRELEVANT = 0.1


class LogLossPoint(NamedTuple):
    """Penalised log loss at one set of bandwidths, with its gradient and the log loss of each row."""

    x: Array
    value: float
    slope: Array
    row_loss: Array
    trial: Trial


class LogLoss:
    """Penalised leave-one-out log loss as a function of log bandwidths and square roots of normalised smoothings.

    Parameters
    ----------
    objective : Objective
        Leave-one-out criterion of one-hot labels.
    spread : ndarray of shape (d,)
        Spreads of the columns.
    """

    ridge = 0.0

    def __init__(self, objective: Objective, spread: Array) -> None:
        self.rows, self.box, self.columns = objective.rows, objective.box, len(spread)
        self.chosen: Trial | None = None
        make, self.way = choose_way(objective)
        self._quickest = AllPairsObjective(objective) if make else objective
        self.prior = prior_of_others(self.rows.value, self.rows.weight, self.rows.exclusion)
        self.log_spread, self.is_mine = np.log(spread), self.rows.value > 0.5
        self.largest = objective.categories.largest
        (low, high, _), k = self.box, len(self.largest)
        self.low = np.r_[low[: self.columns], np.full(k, LEAST_ROOT)]
        self.high = np.r_[high[: self.columns], np.ones(k)]
        self.tried: list[Trial] = []
        self.tried_quickly: list[Trial] = []  # none: all evaluations count as they are

    @property
    def best(self) -> Trial:
        """Evaluated point that the search chose; before that, the one with the smallest criterion."""
        return self.chosen or best_of(self.tried)

    def theta(self, x: Array) -> Array:
        """Return log bandwidths and smoothings, given log bandwidths and square roots of normalised smoothings."""
        return np.concatenate([x[: self.columns], self.largest * x[self.columns :] ** 2])

    def evaluate(self, theta: Array) -> LogLossPoint:
        """Evaluate the penalised log loss at log bandwidths and smoothings, without its gradient."""
        square = np.divide(theta[self.columns :], self.largest, where=self.largest > 0, out=np.ones_like(self.largest))
        x = np.append(theta[: self.columns], np.sqrt(square))
        return self.at(np.clip(x, self.low, self.high), slope=False)

    def at(self, x: Array, *, slope: bool = True) -> LogLossPoint:
        """Evaluate the penalised log loss at search coordinates `x` and, if `slope`, its gradient."""
        at = self._quickest.evaluate(self.theta(x))
        weight, total, number = self.rows.weight, self.rows.total, self.rows.number
        off = at.residual[self.is_mine] / np.sqrt(weight / total)  # one minus the probability of the right class
        share, mixed, loss = prior_share(1.0 - off, self.prior, weight)
        relevance = np.exp(self.log_spread - x[: self.columns])
        value = loss + float(relevance.sum() + np.sum(1.0 - x[self.columns :] ** 2)) / number
        value += 0.5 * cost_of_empty(~at.fit.occupied, weight)  # half a logarithm of squares is a log likelihood
        self.tried.append(at.tried._replace(penalised=value))
        slopes = np.zeros(len(x))
        if slope:
            cotangent = np.where(self.is_mine, ((share - 1.0) * weight / mixed / total)[:, None], 0.0)
            slopes = self._quickest.pullback(at, cotangent).sum(axis=0)
            slopes[: self.columns] -= relevance / number
            slopes[self.columns :] = 2.0 * x[self.columns :] * (slopes[self.columns :] * self.largest - 1.0 / number)
        return LogLossPoint(x, value, slopes, -np.log(mixed), self.tried[-1])

    def descend(self, x: Array, steps: int, tolerance: float) -> LogLossPoint:
        """Minimise the log loss from one start by L-BFGS-B, then smooth away irrelevant columns by `flatten`."""
        from scipy.optimize import minimize

        best: list[LogLossPoint] = []

        def value_and_slope(x: Array) -> tuple[float, Array]:
            found = self.at(x.copy())
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

    def flatten(self, place: LogLossPoint) -> LogLossPoint:
        """Set bandwidths of nearly irrelevant columns to their upper bounds if the log loss does not rise.

        Columns are tried one at a time, the least relevant first; categorical columns by their smoothings.
        """
        relevance = np.r_[np.exp(self.log_spread - place.x[: self.columns]), 1.0 - place.x[self.columns :] ** 2]
        for a in np.argsort(relevance):
            if 0.0 < relevance[a] < IRRELEVANT and place.x[a] < self.high[a]:
                tried = self.at(np.where(np.arange(len(place.x)) == a, self.high, place.x), slope=False)
                place = tried if tried.value <= place.value else place
        return place

    def along(self, factors: Array) -> list[LogLossPoint]:
        """Evaluate the log loss for each bandwidth factor, at bandwidths ``factor * spread`` and large smoothings."""
        return [self.at(self.at_factor(float(np.log(factor))), slope=False) for factor in factors]

    def at_factor(self, log_factor: float) -> Array:
        """Return search coordinates of bandwidths ``exp(log_factor) * spread``, with large categorical smoothings."""
        x = np.r_[self.log_spread + log_factor, np.full(len(self.largest), WIDE_SMOOTHING)]
        return np.asarray(np.clip(x, self.low, self.high))

    def is_clearly_better(self, one: LogLossPoint, other: LogLossPoint) -> bool:
        """Return whether the log loss of `one` is below that of `other` by more than two paired standard errors."""
        share = self.rows.weight / self.rows.total
        difference = other.row_loss - one.row_loss
        spread = float(share @ (difference - share @ difference) ** 2)
        error = np.sqrt(spread / max(self.rows.total - 1.0, 1.0))
        return bool(other.value - one.value > STANDARD_ERRORS * error)


WIDE = np.e  # spreads: where the descent begins, in units of the Gaussian
LADDER = 24
STEPS, TOLERANCE = 150, 1e-7
STEPS_ON_MANY_ROWS, TOLERANCE_ON_ALL = 30, 1e-6


def search(criterion: LogLoss, first: LogLoss, state: SearchState) -> str:
    """Minimise the log loss over one common factor, or over one bandwidth per column.

    Parameters
    ----------
    criterion, first : LogLoss
        Of all rows, and of the rows that starts are tried on: the same, or a sample.
    state : SearchState
        The running search.

    Returns
    -------
    str
        Reason why the search ended; the point found is the `best` of the criterion.
    """
    grid = candidates(first.rows.X / first.rows.per_column(np.exp(first.log_spread)), state.options)
    state.way, one = first.way, state.start.one_factor
    if one:
        state.starts, best = len(grid), _one_factor(first, grid)
    else:
        state.starts, best = 2, _per_column(first, grid, float(np.log(WIDE * canonical_ratio(state.options.kernel))))
    if first is not criterion:
        x = _expected_minimum(criterion, best.x, len(first.rows.X))
        if one:
            middle = float(x[0] - criterion.log_spread[0])
            best = _refined(criterion, criterion.at(x, slope=False), middle - 0.5, middle + 0.5)
        else:
            best = criterion.descend(x, STEPS_ON_MANY_ROWS, TOLERANCE_ON_ALL)
    criterion.chosen = best.trial
    return "the best of a grid, refined" if one else "descents from wide windows and from the best common factor"


def _one_factor(criterion: LogLoss, grid: Array) -> LogLossPoint:
    places = criterion.along(grid)
    at = int(np.argmin([place.value for place in places[::-1]]))  # of equal ones the widest
    at = len(grid) - 1 - at
    ends = np.log(grid[[max(at - 1, 0), min(at + 1, len(grid) - 1)]])
    return _refined(criterion, places[at], float(ends[0]), float(ends[1]))


def _refined(criterion: LogLoss, best: LogLossPoint, low: float, high: float) -> LogLossPoint:
    from scipy.optimize import minimize_scalar

    def value(log_factor: float) -> float:
        return criterion.at(criterion.at_factor(float(log_factor)), slope=False).value

    if not low < high:  # no column varies
        return best
    found = minimize_scalar(value, bounds=(low, high), method="bounded", options={"xatol": 1e-4})
    refined = criterion.at(criterion.at_factor(float(found.x)), slope=False)
    return min(best, refined, key=lambda place: place.value)


def _per_column(criterion: LogLoss, grid: Array, wide: float) -> LogLossPoint:
    best = criterion.descend(criterion.at_factor(wide), STEPS, TOLERANCE)
    ladder = criterion.along(np.geomspace(3.0 * grid[0], grid[-1], LADDER) if len(grid) > 1 else grid)
    narrow = criterion.descend(min(ladder, key=lambda place: place.value).x, STEPS, TOLERANCE)
    return narrow if criterion.is_clearly_better(narrow, best) else best


def _expected_minimum(criterion: LogLoss, x: Array, few: int) -> Array:
    """Return the search coordinates expected to be best for all rows, given the best ones of a sample."""
    d = criterion.columns
    matters = np.append(x[:d] < criterion.high[:d] - np.log(100.0), np.ones(len(x) - d, dtype=bool))
    # x has roots of smoothings.
    bandwidth, square, _ = bring_to_rows(np.exp(x[:d]), x[d:] ** 2, matters, few, len(criterion.rows.X))
    return np.asarray(np.clip([*np.log(bandwidth), *np.sqrt(square)], criterion.low, criterion.high))
