"""Bandwidth search for class probabilities: leave-one-out log loss with a penalty on narrow bandwidths.

The criterion, with n rows in all::

    -(1/n) sum_i w_i log((1 - s) p_i + s prior_i) + (1/n) sum_a r_a

p_i and prior_i are the leave-one-out probability and prior of the class of row i. The mixing weight s of the priors
is at its minimum (see `kernpool.bandwidth.prior_shrinkage`). The relevance r_a of a numeric column is spread_a /
h_a; that of a categorical column is how far its smoothing is from the upper end. The penalty is an exponential
prior on relevances, so that the bandwidths are those of largest posterior density, with the leave-one-out
likelihood [1]_ in place of the likelihood. Without it, a search among many bandwidths finds some that separate a
few rows by chance.

.. [1] J. D. F. Habbema, J. Hermans and K. van den Broek, "A stepwise discriminant analysis program using density
   estimation", COMPSTAT 1974, 101-110.
"""

from __future__ import annotations

import time
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from kernpool.bandwidth.criteria import CRITERIA, check_groups
from kernpool.bandwidth.prior_shrinkage import prior_of_others, prior_share
from kernpool.bandwidth.rules_of_thumb import bring_to_rows, canonical_ratio
from kernpool.bandwidth.search.common_scale import candidates
from kernpool.bandwidth.search.fast_objectives import AllPairsObjective
from kernpool.bandwidth.search.objective import Evaluation, Objective, cost_of_empty
from kernpool.bandwidth.search.progress import OutOfTimeError, TimeLimit, choose_way_of_log_loss
from kernpool.bandwidth.search.search import BandwidthSearch, Passes, warn_of_stop
from kernpool.bandwidth.search.setup import SearchConfig, SearchStart, begin
from kernpool.core.pair_factors import NO_CATEGORIES, Categories
from kernpool.execution.progress import Progress
from kernpool.execution.threads import one_thread
from kernpool.kernels import Kernel

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
    at: Evaluation


class LogLoss:
    """Penalised leave-one-out log loss as a function of log bandwidths and square roots of normalised smoothings.

    Parameters
    ----------
    objective : Objective
        Leave-one-out criterion of one-hot labels.
    spread : ndarray of shape (d,)
        Spreads of the columns.
    limit : TimeLimit
        Checked before every evaluation.
    """

    def __init__(self, objective: Objective, spread: Array, limit: TimeLimit) -> None:
        self.objective, self.rows, self.d, self._limit = objective, objective.rows, len(spread), limit
        self.way = choose_way_of_log_loss(objective)
        self._quick = AllPairsObjective(objective) if self.way.quick else None
        self.best: LogLossPoint | None = None
        self.prior = prior_of_others(self.rows.value, self.rows.weight, self.rows.group)
        self.log_spread, self.is_mine = np.log(spread), self.rows.value > 0.5
        self.largest = objective.categories.largest
        low, high, _ = objective.box
        k = len(self.largest)
        self.low, self.high = np.r_[low[: self.d], np.full(k, LEAST_ROOT)], np.r_[high[: self.d], np.ones(k)]
        self.tried: list[tuple[Array, float]] = []

    def theta(self, x: Array) -> Array:
        """Return log bandwidths and smoothings, given log bandwidths and square roots of normalised smoothings."""
        return np.concatenate([x[: self.d], self.largest * x[self.d :] ** 2])

    def evaluate(self, x: Array, *, slope: bool = True) -> LogLossPoint:
        """Evaluate the penalised log loss at search coordinates `x` and, if `slope`, its gradient."""
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
        place = LogLossPoint(x, value, slopes, -np.log(mixed), at)
        if self.best is None or value < self.best.value:
            self.best = place
        return place

    def descend(self, x: Array, steps: int, tolerance: float) -> LogLossPoint:
        """Minimise the log loss from one start by L-BFGS-B, then smooth away irrelevant columns by `flatten`."""
        from scipy.optimize import minimize

        best: list[LogLossPoint] = []

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

    def flatten(self, place: LogLossPoint) -> LogLossPoint:
        """Set bandwidths of nearly irrelevant columns to their upper bounds if the log loss does not rise.

        Columns are tried one at a time, the least relevant first; categorical columns by their smoothings.
        """
        relevance = np.r_[np.exp(self.log_spread - place.x[: self.d]), 1.0 - place.x[self.d :] ** 2]
        for a in np.argsort(relevance):
            if 0.0 < relevance[a] < IRRELEVANT and place.x[a] < self.high[a]:
                tried = self.evaluate(np.where(np.arange(len(place.x)) == a, self.high, place.x), slope=False)
                place = tried if tried.value <= place.value else place
        return place

    def along(self, factors: Array) -> list[LogLossPoint]:
        """Evaluate the log loss for each bandwidth factor, at bandwidths ``factor * spread`` and large smoothings."""
        return [self.evaluate(self.at_factor(float(np.log(factor))), slope=False) for factor in factors]

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


MOST_ROWS_FOR_STARTS = 2048
WIDE = np.e  # spreads: where the descent begins, in units of the Gaussian
LADDER = 24
STEPS, TOLERANCE = 150, 1e-7
STEPS_ON_MANY_ROWS, TOLERANCE_ON_ALL = 30, 1e-6


@np.errstate(under="ignore")  # weights of far rows are zero
def search_log_loss(
    X: Array,
    label: Array,
    weight: Array | None = None,
    *,
    code: NDArray[np.int64] | None = None,
    group: NDArray[np.int64] | None = None,
    categories: Categories = NO_CATEGORIES,
    common_factor: bool = False,
    kernel: Kernel,
    composition: str = "radial",
    algorithm: str = "auto",
    n_jobs: int | None = None,
    progress: Progress | None = None,
    random_state: Any = 0,
    max_search_seconds: float | None = None,
) -> BandwidthSearch:
    """Find the bandwidths for class probabilities that minimise the penalised leave-one-out log loss.

    Parameters
    ----------
    X : ndarray of shape (n, d)
        Inputs.
    label : ndarray of shape (n, k)
        One-hot labels.
    weight, code, group, categories, common_factor, kernel, composition, algorithm, n_jobs, progress, random_state
        As in `kernpool.bandwidth.search.search_bandwidth`.
    max_search_seconds : float, optional
        Stop after so many seconds, and take the best so far.

    Returns
    -------
    BandwidthSearch
        With `value`, the penalised log loss, and `error`, the leave-one-out Brier score without mixing of priors.

    Notes
    -----
    *One factor*, for one column, kernels without a slope or on request: 64 factors on the spreads are evaluated, and
    the best is refined to 1e-4 in log h.

    *One bandwidth per column*: a descent by L-BFGS-B from windows of 2.7 spreads, in which relevant columns emerge,
    and another one from the best common factor, which is taken only if it is better by two standard errors of the
    paired differences: with many columns, narrow windows are often better by chance.
    Some fifty passes and pullbacks, each O(n^2 (d + k)) for n rows in all pairs. With more than 2048 rows this is done
    on so many drawn ones; their bandwidths times the rate n^(-1/(4 + d)) are the start on all of them.

    Examples
    --------
    >>> from kernpool import get_kernel
    >>> X = np.random.default_rng(0).normal(size=(100, 2))
    >>> label = np.eye(2)[(X[:, 0] > 0).astype(int)]
    >>> found = search_log_loss(X, label, kernel=get_kernel("gaussian"))
    >>> bool(found.relevance[0] > 1.0), float(found.relevance[1])
    (True, 0.0)
    """
    from sklearn.utils import check_random_state

    started = time.perf_counter()
    check_groups(group, "log_loss")
    generator = check_random_state(random_state)
    begun = begin(X, label, weight, code, group, categories=categories, common_factor=common_factor, kernel=kernel)
    rows, spread, one = begun.rows, begun.spread, begun.one_factor
    categories = categories.take(begun.order.categorical)
    limit = TimeLimit(max_search_seconds)
    passes = limit.watch(None if progress is None else Passes(progress, len(rows.X)))
    setting = SearchConfig(CRITERIA["loo"], categories, 0, kernel, composition, algorithm, n_jobs, passes)
    few = rows if len(rows.X) <= MOST_ROWS_FOR_STARTS else rows.draw(MOST_ROWS_FOR_STARTS, generator)
    first = LogLoss(setting.objective(few), spread, limit)
    reason = "the best of a grid, refined" if one else "descents from wide windows and from the best common factor"
    starts, criterion = 2, first
    with one_thread():  # as for other criteria
        try:
            if one:
                grid = _grid(first, setting)
                starts, best = len(grid), _one_factor(first, grid)
            else:
                best = _per_column(first, setting)
        except OutOfTimeError:
            best, reason = _take_best(first, limit, setting)
        if few is not rows:
            criterion = LogLoss(setting.objective(rows), spread, limit)
            start = _expected_minimum(criterion, best, len(few.X))
            try:
                best = _with_more_rows(criterion, start, one)
            except OutOfTimeError:
                best, reason = _take_best(criterion, limit, setting, start)
    on_fewer = len(first.tried) * (few is not rows)
    return _outcome(criterion, best, begun, starts, on_fewer, reason, first.way.reason, started)


def _take_best(
    criterion: LogLoss, limit: TimeLimit, setting: SearchConfig, start: Array | None = None
) -> tuple[LogLossPoint, str]:
    """Warn that a search ran out of time, and return its best point and a sentence about how it ended.

    If no point was evaluated in time, the start is evaluated.
    """
    limit.lift()
    if criterion.best is None:
        start = criterion.at_factor(float(np.log(WIDE * canonical_ratio(setting.kernel)))) if start is None else start
        criterion.evaluate(start, slope=False)
    reason = f"stopped after max_search_seconds={limit.seconds:g}: the best so far"
    warn_of_stop(reason)
    return cast(LogLossPoint, criterion.best), reason


def _grid(criterion: LogLoss, setting: SearchConfig) -> Array:
    scaled = criterion.rows.X / np.exp(criterion.log_spread)
    return candidates(scaled, setting.kernel, setting.composition)


def _one_factor(criterion: LogLoss, grid: Array) -> LogLossPoint:
    places = criterion.along(grid)
    at = int(np.argmin([place.value for place in places[::-1]]))  # of equal ones the widest
    at = len(grid) - 1 - at
    ends = np.log(grid[[max(at - 1, 0), min(at + 1, len(grid) - 1)]])
    return _refined(criterion, places[at], float(ends[0]), float(ends[1]))


def _refined(criterion: LogLoss, best: LogLossPoint, low: float, high: float) -> LogLossPoint:
    from scipy.optimize import minimize_scalar

    if not low < high:  # no column varies
        return best
    found = minimize_scalar(
        lambda log_factor: criterion.evaluate(criterion.at_factor(float(log_factor)), slope=False).value,
        bounds=(low, high),
        method="bounded",
        options={"xatol": 1e-4},
    )
    refined = criterion.evaluate(criterion.at_factor(float(found.x)), slope=False)
    return min(best, refined, key=lambda place: place.value)


def _per_column(criterion: LogLoss, setting: SearchConfig) -> LogLossPoint:
    wide = float(np.log(WIDE * canonical_ratio(setting.kernel)))
    best = criterion.descend(criterion.at_factor(wide), STEPS, TOLERANCE)
    grid = _grid(criterion, setting)
    ladder = criterion.along(np.geomspace(3.0 * grid[0], grid[-1], LADDER) if len(grid) > 1 else grid)
    narrow = criterion.descend(min(ladder, key=lambda place: place.value).x, STEPS, TOLERANCE)
    return narrow if criterion.is_clearly_better(narrow, best) else best


def _expected_minimum(criterion: LogLoss, best: LogLossPoint, few: int) -> Array:
    """Return the search coordinates expected to be best for all rows, given the best ones of a sample."""
    d, x = criterion.d, best.x
    matters = x[:d] < criterion.high[:d] - np.log(100.0)
    matters = np.concatenate([matters, np.ones(len(x) - d, dtype=bool)])
    # x has roots of smoothings.
    bandwidth, square, _ = bring_to_rows(np.exp(x[:d]), x[d:] ** 2, matters, few, len(criterion.rows.X))
    return np.asarray(np.clip([*np.log(bandwidth), *np.sqrt(square)], criterion.low, criterion.high))


def _with_more_rows(criterion: LogLoss, x: Array, one: bool) -> LogLossPoint:
    if not one:
        return criterion.descend(x, STEPS_ON_MANY_ROWS, TOLERANCE_ON_ALL)
    middle = float(x[0] - criterion.log_spread[0])
    return _refined(criterion, criterion.evaluate(x, slope=False), middle - 0.5, middle + 0.5)


def _outcome(
    criterion: LogLoss,
    best: LogLossPoint,
    begun: SearchStart,
    starts: int,
    on_fewer: int,
    reason: str,
    way: str,
    started: float,
) -> BandwidthSearch:
    d, theta = criterion.d, criterion.theta(best.x)
    bandwidth, spread = np.exp(theta[:d]), np.exp(criterion.log_spread)
    matters = best.x[:d] < criterion.high[:d] - np.log(100.0)
    tried = np.array([[*np.exp(at[:d]), *at[d:]] for at, _ in criterion.tried])
    found = begun.restore(np.concatenate([bandwidth, theta[d:]]), np.inf)
    of_categories = criterion.objective.categories.relevance(theta[d:])
    return BandwidthSearch(
        criterion="log_loss",
        value=best.value,
        bandwidth=found[: begun.columns],
        smoothing=found[begun.columns :],
        relevance=begun.restore(np.concatenate([np.where(matters, spread / bandwidth, 0.0), of_categories]), 0.0),
        spread=begun.restore(spread, 1.0),
        common_factor=begun.one_factor,
        error=best.at.error,
        empty_windows=int(np.count_nonzero(~best.at.fit.occupied)),
        tried=begun.restore(tried, np.inf),
        values=np.array([value for _, value in criterion.tried]),
        evaluations=len(criterion.tried) + on_fewer,
        starts=starts,
        rows=len(criterion.rows.X),
        seconds=time.perf_counter() - started,
        reason=reason,
        way=way,
        groups=criterion.rows.groups,
    )
