"""The search for bandwidths of class probabilities by log loss: from where it descends, and what is reported of it."""

from __future__ import annotations

import time
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from kernpool.bandwidth.categories import NO_CATEGORIES, Categories
from kernpool.bandwidth.criteria import CRITERIA, check_groups
from kernpool.bandwidth.rate import bring_to_rows
from kernpool.bandwidth.rules import canonical_ratio
from kernpool.bandwidth.search.beginning import Beginning, begin
from kernpool.bandwidth.search.course import OutOfTimeError, TimeLimit
from kernpool.bandwidth.search.log_loss import LogLoss, Place
from kernpool.bandwidth.search.one_factor import candidates
from kernpool.bandwidth.search.outcome import BandwidthSearch
from kernpool.bandwidth.search.search import Passes, warn_of_stop
from kernpool.bandwidth.search.setting import Setting
from kernpool.execution.blas import one_thread
from kernpool.execution.progress import Progress
from kernpool.kernels import Kernel

Array = NDArray[np.float64]

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
    """Find bandwidths of class probabilities by the penalised leave-one-out log loss.

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
        With `value`, the penalised log loss, and `error`, the leave-one-out Brier score there without the share.

    Notes
    -----
    *One factor*, for one column, kernels without a slope or where it is asked for: 64 factors on the spreads, of which
    the best is refined to 1e-4 in log h.

    *One bandwidth per column*: a descent by L-BFGS-B from windows of 2.7 spreads, in which columns become relevant
    that have to, and another one from the best common factor, which is taken only if it is better by two standard
    errors of the paired differences: narrow windows that are better by chance are the rule where columns are many.
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
    setting = Setting(CRITERIA["loo"], categories, 0, kernel, composition, algorithm, n_jobs, passes)
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
            best, reason = _stopped(first, limit, setting)
        if few is not rows:
            criterion = LogLoss(setting.objective(rows), spread, limit)
            start = _expected(criterion, best, len(few.X))
            try:
                best = _with_more_rows(criterion, start, one)
            except OutOfTimeError:
                best, reason = _stopped(criterion, limit, setting, start)
    on_fewer = len(first.tried) * (few is not rows)
    return _outcome(criterion, best, begun, starts, on_fewer, reason, first.way.reason, started)


def _stopped(criterion: LogLoss, limit: TimeLimit, setting: Setting, start: Array | None = None) -> tuple[Place, str]:
    """Take the best so far, and warn."""
    limit.lift()
    if criterion.best is None:
        start = criterion.at_factor(float(np.log(WIDE * canonical_ratio(setting.kernel)))) if start is None else start
        criterion.evaluate(start, slope=False)
    reason = f"stopped after max_search_seconds={limit.seconds:g}: the best so far"
    warn_of_stop(reason)
    return cast(Place, criterion.best), reason


def _grid(criterion: LogLoss, setting: Setting) -> Array:
    scaled = criterion.rows.X / np.exp(criterion.log_spread)
    return candidates(scaled, setting.kernel, setting.composition)


def _one_factor(criterion: LogLoss, grid: Array) -> Place:
    places = criterion.along(grid)
    at = int(np.argmin([place.value for place in places[::-1]]))  # of equal ones the widest
    at = len(grid) - 1 - at
    ends = np.log(grid[[max(at - 1, 0), min(at + 1, len(grid) - 1)]])
    return _refined(criterion, places[at], float(ends[0]), float(ends[1]))


def _refined(criterion: LogLoss, best: Place, low: float, high: float) -> Place:
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


def _per_column(criterion: LogLoss, setting: Setting) -> Place:
    wide = float(np.log(WIDE * canonical_ratio(setting.kernel)))
    best = criterion.descend(criterion.at_factor(wide), STEPS, TOLERANCE)
    grid = _grid(criterion, setting)
    ladder = criterion.along(np.geomspace(3.0 * grid[0], grid[-1], LADDER) if len(grid) > 1 else grid)
    narrow = criterion.descend(min(ladder, key=lambda place: place.value).x, STEPS, TOLERANCE)
    return narrow if criterion.is_clearly_better(narrow, best) else best


def _expected(criterion: LogLoss, best: Place, few: int) -> Array:
    """Return where the minimum is expected, given that of fewer rows."""
    d, x = criterion.d, best.x
    matters = x[:d] < criterion.high[:d] - np.log(100.0)
    matters = np.concatenate([matters, np.ones(len(x) - d, dtype=bool)])
    # x has roots of smoothings.
    bandwidth, square, _ = bring_to_rows(np.exp(x[:d]), x[d:] ** 2, matters, few, len(criterion.rows.X))
    return np.asarray(np.clip([*np.log(bandwidth), *np.sqrt(square)], criterion.low, criterion.high))


def _with_more_rows(criterion: LogLoss, x: Array, one: bool) -> Place:
    if not one:
        return criterion.descend(x, STEPS_ON_MANY_ROWS, TOLERANCE_ON_ALL)
    middle = float(x[0] - criterion.log_spread[0])
    return _refined(criterion, criterion.evaluate(x, slope=False), middle - 0.5, middle + 0.5)


def _outcome(
    criterion: LogLoss,
    best: Place,
    begun: Beginning,
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
