"""Bandwidth search for class probabilities: leave-one-out log loss with a penalty on narrow bandwidths.

The criterion, with n rows in all::

    -(1/n) sum_i w_i log((1 - s) p_i + s prior_i) + (1/n) sum_a r_a

p_i and prior_i are the leave-one-out probability and prior of the class of row i. The mixing weight s of the priors
is at its minimum (see `kernpool.bandwidth.criteria`). The relevance r_a of a numeric column is spread_a /
h_a; that of a categorical column is how far its smoothing is from the upper end. The penalty is an exponential
prior on relevances, so that the bandwidths are those of largest posterior density, with the leave-one-out
likelihood [1]_ in place of the likelihood. Without it, a search among many bandwidths finds some that separate a
few rows by chance.

*One factor*, for one column and kernels without a slope: as of squared errors
(`kernpool.bandwidth.search.one_factor`).

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

from kernpool._arrays import Array
from kernpool.bandwidth.criteria import prior_of_others, prior_share
from kernpool.bandwidth.rules_of_thumb import canonical_ratio
from kernpool.bandwidth.search.objective import Objective, SearchObjective, Trial, cost_of_empty
from kernpool.bandwidth.search.setup import TrainingRows, candidates

WIDE_SMOOTHING, LEAST_ROOT = 0.9, 1e-3  # roots of smoothings, as fractions; slopes at zero may be infinite
STANDARD_ERRORS = 2.0
IRRELEVANT = 0.1


class LogLossPoint(NamedTuple):
    """Penalised log loss at one set of bandwidths, with its gradient and the log loss of each row."""

    x: Array
    penalised: float
    slope: Array
    row_loss: Array
    trial: Trial


class LogLoss(SearchObjective):
    """Penalised leave-one-out log loss as a function of log bandwidths and square roots of normalised smoothings.

    Parameters
    ----------
    fits : Objective
        Squared errors of one-hot labels, whose fits are the probabilities.
    spread : ndarray of shape (d,)
        Spreads of the columns.
    """

    refined_minima, tolerance = 1, 1e-4
    is_quick = True  # on a sample the grid is refined

    def __init__(self, fits: Objective, spread: Array) -> None:
        rows, categories = fits.rows, fits.categories
        self.tried = []
        self.fits, self.rows, self.columns, self.box, self.way = fits, rows, fits.columns, fits.box, fits.way
        self.prior = prior_of_others(rows.value, rows.weight, rows.exclusion)
        self.log_spread, self.is_mine, self.largest = np.log(spread), rows.value > 0.5, categories.largest
        (low, high, _), k = self.box, len(self.largest)
        self.low = np.r_[low[: self.columns], np.full(k, LEAST_ROOT)]
        self.high = np.r_[high[: self.columns], np.ones(k)]

    def theta(self, x: Array) -> Array:
        """Return log bandwidths and smoothings, given log bandwidths and square roots of normalised smoothings."""
        return np.concatenate([x[: self.columns], self.largest * x[self.columns :] ** 2])

    def coordinates(self, theta: Array) -> Array:
        """Return log bandwidths and square roots of normalised smoothings, given log bandwidths and smoothings."""
        square = np.divide(theta[self.columns :], self.largest, where=self.largest > 0, out=np.ones_like(self.largest))
        return np.asarray(np.clip(np.append(theta[: self.columns], np.sqrt(square)), self.low, self.high))

    def evaluate(self, theta: Array) -> LogLossPoint:
        """Evaluate the penalised log loss at log bandwidths and smoothings, without its gradient."""
        return self.at(self.coordinates(theta), slope=False)

    def at(self, x: Array, *, slope: bool = True) -> LogLossPoint:
        """Evaluate the penalised log loss at search coordinates `x` and, if `slope`, its gradient."""
        at = self.fits.evaluate(self.theta(x))
        weight, total, number = self.rows.weight, self.rows.total, self.rows.number
        # One minus the probability of the class of each row.
        off = at.unpenalised[self.is_mine] / np.sqrt(weight / total)
        share, mixed, loss = prior_share(1.0 - off, self.prior, weight)
        relevance = np.exp(self.log_spread - x[: self.columns])
        value = loss + float(relevance.sum() + np.sum(1.0 - x[self.columns :] ** 2)) / number
        value += 0.5 * cost_of_empty(~at.fit.occupied, weight)  # half a logarithm of squares is a log likelihood
        self.tried.append(self.fits.tried[-1]._replace(penalised=value))
        slopes = np.zeros(len(x))
        if slope:
            cotangent = np.where(self.is_mine, ((share - 1.0) * weight / mixed / total)[:, None], 0.0)
            slopes = self.fits.pullback(at, cotangent).sum(axis=0)
            slopes[: self.columns] -= relevance / number
            slopes[self.columns :] = 2.0 * x[self.columns :] * (slopes[self.columns :] * self.largest - 1.0 / number)
        return LogLossPoint(x, value, slopes, -np.log(mixed), self.tried[-1])

    def at_factor(self, factor: float) -> Array:
        """Return search coordinates of bandwidths ``factor * spread``, with large categorical smoothings."""
        x = np.r_[self.log_spread + np.log(factor), np.full(len(self.largest), WIDE_SMOOTHING)]
        return np.asarray(np.clip(x, self.low, self.high))


def descend(criterion: LogLoss, x: Array, steps: int, tolerance: float) -> LogLossPoint:
    """Minimise the log loss from one start by L-BFGS-B, then smooth away irrelevant columns by `flatten`."""
    from scipy.optimize import minimize

    best: list[LogLossPoint] = []

    def value_and_slope(x: Array) -> tuple[float, Array]:
        point = criterion.at(x.copy())
        if not best or point.penalised < best[0].penalised:
            best[:] = [point]
        return point.penalised, point.slope

    minimize(
        value_and_slope,
        np.clip(x, criterion.low, criterion.high),
        jac=True,
        method="L-BFGS-B",
        bounds=np.column_stack([criterion.low, criterion.high]),
        options={"maxiter": steps, "ftol": tolerance},
    )
    return flatten(criterion, best[0])


def flatten(criterion: LogLoss, point: LogLossPoint) -> LogLossPoint:
    """Set bandwidths of nearly irrelevant columns to their upper bounds if the log loss does not rise.

    Columns are tried one at a time, the least relevant first; categorical columns by their smoothings.
    """
    d = criterion.columns
    relevance = np.r_[np.exp(criterion.log_spread - point.x[:d]), 1.0 - point.x[d:] ** 2]
    for a in np.argsort(relevance):
        if 0.0 < relevance[a] < IRRELEVANT and point.x[a] < criterion.high[a]:
            x = point.x.copy()
            x[a] = criterion.high[a]
            tried = criterion.at(x, slope=False)
            point = tried if tried.penalised <= point.penalised else point
    return point


def is_clearly_better(one: LogLossPoint, other: LogLossPoint, rows: TrainingRows) -> bool:
    """Return whether the log loss of `one` is below that of `other` by more than two paired standard errors."""
    share = rows.weight / rows.total
    difference = other.row_loss - one.row_loss
    spread = float(share @ (difference - share @ difference) ** 2)
    error = np.sqrt(spread / max(rows.total - 1.0, 1.0))
    return bool(other.penalised - one.penalised > STANDARD_ERRORS * error)


WIDE = np.e  # spreads: where the descent begins, in units of the Gaussian
LADDER = 24
STEPS, TOLERANCE = 150, 1e-7
STEPS_ON_MANY_ROWS, TOLERANCE_ON_ALL = 30, 1e-6


def search(criterion: LogLoss, first: LogLoss) -> str:
    """Minimise the log loss over one bandwidth per column: descend from wide windows and from the best common factor.

    Parameters
    ----------
    criterion, first : LogLoss
        Of all rows, and of the rows that starts are tried on: the same, or a sample.

    Returns
    -------
    str
        Reason why the search ended; the point found is the `best` of the criterion.
    """
    options = first.fits.options
    first.starts = 2
    best = descend(first, first.at_factor(WIDE * canonical_ratio(options.kernel)), STEPS, TOLERANCE)
    grid = candidates(first.rows, np.exp(first.log_spread), options, np.exp(first.low))
    factors = np.geomspace(0.5 * grid[0], grid[-1], LADDER) if len(grid) > 1 else grid
    ladder = (first.at(first.at_factor(factor), slope=False) for factor in factors)
    narrow = descend(first, min(ladder, key=lambda point: point.penalised).x, STEPS, TOLERANCE)
    if is_clearly_better(narrow, best, first.rows):
        best = narrow
    if first is not criterion:
        theta = criterion.expected_minimum(first, best.trial.theta, 0)
        best = descend(criterion, criterion.coordinates(theta), STEPS_ON_MANY_ROWS, TOLERANCE_ON_ALL)
    criterion.chosen = best.trial
    return "descents from wide windows and from the best common factor"
