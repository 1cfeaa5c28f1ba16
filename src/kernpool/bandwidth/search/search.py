"""The search for bandwidths: which rows, which starts, and what is told of it."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernpool.bandwidth.categories import NO_CATEGORIES, Categories
from kernpool.bandwidth.criteria import CRITERIA
from kernpool.bandwidth.rate import rate_factor
from kernpool.bandwidth.rules import column_spread
from kernpool.bandwidth.search import one_factor, per_column
from kernpool.bandwidth.search.gauss_newton import Descent, SumOfSquares, descend
from kernpool.bandwidth.search.objective import Objective, Tried
from kernpool.bandwidth.search.pairwise import PairwiseObjective
from kernpool.bandwidth.search.rows import TrainingRows, canonical_rows
from kernpool.execution.progress import Progress
from kernpool.kernels import Kernel

Array = NDArray[np.float64]

# Up to so many rows all starts are on all of them; beyond, on so many drawn ones, and the best goes on from there.
MOST_ROWS_FOR_GRID, MOST_ROWS_FOR_STARTS = 2048, 1024
MOST_ROWS_WITHOUT_COMPILER = 400  # a hundred dense passes over so many take as long as loading Numba
FLAT_FACTOR = 5.0  # ranges, near the end of the interval of a common factor
EXPECTED_PASSES = 120  # for the progress report only


@dataclass(frozen=True)
class BandwidthSearch:
    """Outcome of a search for bandwidths.

    Parameters
    ----------
    criterion : str
        What was minimised.
    value : float
        The criterion at `bandwidth`; several outputs count in units of their standard deviations.
    bandwidth : ndarray of shape (d,)
        The best found.
    smoothing : ndarray of shape (k,)
        The best lambda of each categorical column.
    relevance : ndarray of shape (d + k,)
        Of numeric columns, the spread over the bandwidth: zero where the best bandwidth is infinite, so that the column
        plays no role, or, in a local linear fit, none but a linear one. Of categorical columns, how far the smoothing
        is from the upper end of its box, of which it is a share: one for levels that are kept apart, zero for none.
    spread : ndarray of shape (d,)
        Spreads of the columns.
    common_factor : bool
        Whether one factor on the spreads was searched for, instead of one bandwidth per column.
    error : float
        Mean squared residual, from the other rows with ``"loo"``, summed over outputs in their own units.
    empty_windows : int
        Rows with an empty leave-one-out window.
    tried : ndarray of shape (e, d + k)
        The bandwidths and smoothings that were tried on all rows of the search.
    values : ndarray of shape (e,)
        The criterion there; of quick evaluations to twelve digits or so.
    evaluations : int
        How often the criterion was evaluated, on fewer rows included.
    starts : int
        Number of starts, or of points of the grid.
    rows : int
        Distinct rows that the result is of.
    seconds : float
        Wall-clock time.
    reason : str
        Why the search ended.
    names : tuple of str, optional
        Of the columns, numeric ones first.
    """

    criterion: str
    value: float
    bandwidth: Array
    smoothing: Array
    relevance: Array
    spread: Array
    common_factor: bool
    error: float
    empty_windows: int
    tried: Array
    values: Array
    evaluations: int
    starts: int
    rows: int
    seconds: float
    reason: str
    names: tuple[str, ...] | None = None

    def __str__(self) -> str:
        d, k = len(self.bandwidth), len(self.smoothing)
        names = self.names or [str(a) for a in (*range(d), *range(k))]
        wide = max(8, *map(len, names))
        lines = [
            f"{self.criterion} = {self.value:.6g} on {self.rows} rows; {self.evaluations} evaluations from "
            f"{self.starts} starts in {self.seconds:.2g} s; {self.reason}",
            f"{self.empty_windows} empty windows" if self.empty_windows else "",
            f"{'column':>{wide}} {'bandwidth':>12} {'relevance':>10}",
        ]
        shown = np.where(self.relevance[:d] > 0, self.bandwidth, np.inf)
        for name, bandwidth, relevance in zip(names[:d], shown, self.relevance[:d], strict=True):
            lines.append(f"{name:>{wide}} {bandwidth:>12.6g} {relevance:>10.4g}")
        if k:
            lines.append(f"{'category':>{wide}} {'smoothing':>12} {'relevance':>10}")
        for name, smoothing, relevance in zip(names[d:], self.smoothing, self.relevance[d:], strict=True):
            lines.append(f"{name:>{wide}} {smoothing:>12.6g} {relevance:>10.4g}")
        return "\n".join(line for line in lines if line)


def search_bandwidth(
    X: Array,
    value: Array,
    weight: Array | None = None,
    *,
    code: NDArray[np.int64] | None = None,
    categories: Categories = NO_CATEGORIES,
    criterion: str = "loo",
    degree: int = 0,
    common_factor: bool = False,
    standardise: bool = True,
    kernel: Kernel,
    composition: str = "radial",
    algorithm: str = "auto",
    n_jobs: int | None = None,
    progress: Progress | None = None,
    random_state: Any = 0,
    max_search_rows: int | None = None,
) -> BandwidthSearch:
    """Find the bandwidths that minimise a criterion.

    Parameters
    ----------
    X : ndarray of shape (n, d)
        Inputs.
    value : ndarray of shape (n, c)
        Outputs.
    weight : ndarray of shape (n,), optional
        Frequencies.
    code : ndarray of int, shape (n, k), optional
        Level numbers of categorical columns.
    categories : Categories, optional
        What they mean.
    criterion : {"loo", "aicc", "gcv"}, default="loo"
        See `kernpool.bandwidth.criteria`.
    degree : {0, 1}, default=0
        Local constant or local linear.
    common_factor : bool, default=False
        Search one factor on the spreads of the columns instead of one bandwidth per column.
    standardise : bool, default=True
        Count several outputs in units of their standard deviations.
    kernel, composition, algorithm, n_jobs
        As in `pool`.
    progress : callable, optional
        Called as ``progress(done, total)``, in queries over all passes expected.
    random_state : int, RandomState or None, default=0
        For the rows that starts are found on and the places that are drawn; the default gives the same result each
        time.
    max_search_rows : int, optional
        Search on so many rows, drawn at random; by default the result is of all of them.

    Returns
    -------
    BandwidthSearch
        The bandwidths, and how they were found.

    Raises
    ------
    ValueError
        If there are too few rows for the criterion.

    Notes
    -----
    *One factor*, always so for one column: the criterion has several local minima as a rule, and kinks or steps for
    compact kernels. It is evaluated on a grid of 64 factors (256 for compact kernels on up to 1000 rows), equally
    spaced in logarithm, from a tenth of a typical distance between nearest neighbours to ten times the diameter. The
    best three local minima are refined by Brent's method to 1e-7 in log h. About 120 passes. A minimum narrower than
    the spacing of the grid can be missed; for the boxcar on up to 64 rows, where the error is a step function, every
    step is tried and none can.

    *One bandwidth per column*, for kernels that have a slope: damped Gauss-Newton steps on log h from a dozen starts
    (see `kernpool.bandwidth.search.per_column`), each a pass and a pullback; then from the best place each bandwidth is
    tried from end to end while the others stay, and valleys along such lines are starts again. That is no certificate
    of a global minimum, but it never ends above the best common factor of the ladder that it starts from.

    With more than 2048 rows (1024 for several columns) the starts are found on so many drawn rows, and their
    bandwidths become those of all rows by the rate :math:`n^{-1/(4 + d)}`, where d counts the columns that matter [1]_;
    for several columns by way of three times as many drawn rows each time. The rest of the search is on all rows.

    References
    ----------
    .. [1] P. Hall, Q. Li and J. S. Racine, "Nonparametric estimation of regression functions in the presence of
       irrelevant regressors", Review of Economics and Statistics 89 (2007), 784-789.

    Examples
    --------
    >>> from kernpool import get_kernel
    >>> from kernpool.datasets import make_sine_power
    >>> x, y, _, _ = make_sine_power(random_state=0)
    >>> found = search_bandwidth(x[:, None], y[:, None], kernel=get_kernel("gaussian"))
    >>> found.bandwidth.round(3), found.reason
    (array([0.203]), 'the best of a grid, refined')
    """
    from sklearn.utils import check_random_state

    started = time.perf_counter()
    rows, generator = canonical_rows(X, value, weight, code), check_random_state(random_state)
    if max_search_rows is not None and len(rows.X) > max_search_rows:
        rows = draw(rows, max_search_rows, generator)
    scale = _scale(rows) if standardise and value.shape[1] > 1 else np.ones(value.shape[1])
    rows = TrainingRows(rows.X, rows.code, rows.value / scale, rows.weight)
    # A table of categorical columns alone has one of zeros, which is no reason to warn.
    spread = np.ones(1) if len(categories) and not rows.X.any() else column_spread(rows.X, rows.weight)
    make = partial(
        Objective,
        criterion=CRITERIA[criterion],
        categories=categories,
        degree=degree,
        kernel=kernel,
        composition=composition,
        algorithm=algorithm,
        n_jobs=n_jobs,
        progress=None if progress is None else _Passes(progress, len(rows.X)),
    )
    if len(rows.X) > MOST_ROWS_WITHOUT_COMPILER and algorithm == "auto":
        import numba  # noqa: F401  # what a single pass would not be worth, a hundred are
    factor_alone = common_factor or _is_flat(kernel)
    if len(categories) and factor_alone:
        raise ValueError(
            "categorical columns have smoothings of their own, which are found along a slope: use common_factor=False "
            "and a kernel that is not flat, such as 'gaussian' or 'epanechnikov'"
        )
    objective, one = make(rows), factor_alone or (X.shape[1] == 1 and not len(categories))
    limit = MOST_ROWS_FOR_GRID if one else MOST_ROWS_FOR_STARTS
    few = rows if len(rows.X) <= limit else draw(rows, limit, generator)
    first = objective if few is rows else make(few)
    if one:
        starts, reason, on_fewer = _one_factor(objective, first, spread, kernel, composition)
    else:
        starts, reason, on_fewer = _per_column(objective, first, make, spread, kernel, composition, generator)
    best = objective.best
    if not np.isfinite(best.penalised):
        raise ValueError(
            f"the criterion {criterion!r} is not defined for {rows.total:g} rows at any bandwidth; use 'loo', a rule, "
            "or more rows"
        )
    d, tried = len(spread), objective.all_tried
    bandwidth, smoothing = np.exp(best.theta[:d]), best.theta[d:]
    matters = (
        bandwidth < FLAT_FACTOR * np.ptp(rows.X, axis=0) if one else per_column.relevant(objective, best.theta)[:d]
    )
    relevance = np.concatenate([np.where(matters, spread / bandwidth, 0.0), categories.relevance(smoothing)])
    return BandwidthSearch(
        criterion=criterion,
        value=CRITERIA[criterion].value(best.penalised),
        bandwidth=bandwidth,
        smoothing=smoothing,
        relevance=relevance,
        spread=spread,
        common_factor=one,
        error=best.error if np.all(scale == 1.0) else _unscaled(objective, best, scale),
        empty_windows=best.empty_windows,
        tried=np.array([[*np.exp(one.theta[:d]), *one.theta[d:]] for one in tried]),
        values=np.array([CRITERIA[criterion].value(one.penalised) for one in tried]),
        evaluations=len(tried) + on_fewer,
        starts=starts,
        rows=len(rows.X),
        seconds=time.perf_counter() - started,
        reason=reason,
    )


def draw(rows: TrainingRows, size: int, generator: Any) -> TrainingRows:
    """Draw distinct rows, in their order."""
    return rows.take(np.sort(generator.permutation(len(rows.X))[:size]))


def _is_flat(kernel: Kernel) -> bool:
    """Whether a criterion has no slope to follow: that of a boxcar is a step function."""
    return kernel.log_slope is None or not np.any(kernel.log_slope(np.array([0.25, 0.5, 0.75])))


def _has_quick_way(objective: Objective) -> bool:
    # By size alone: whether something else has loaded the compiler must not show in the last digit.
    return len(objective.rows.X) > MOST_ROWS_WITHOUT_COMPILER and PairwiseObjective.can_do(objective)


def _scale(rows: TrainingRows) -> Array:
    center = rows.weight @ rows.value / rows.total
    scale = np.sqrt(rows.weight @ (rows.value - center) ** 2 / rows.total)
    return np.where(scale > 0, scale, 1.0)


def _unscaled(objective: Objective, best: Tried, scale: Array) -> float:
    at = objective.evaluate(best.theta)
    objective.tried.pop()
    return float(np.sum((at.residual * scale) ** 2) * (at.error / at.penalised if at.penalised else 1.0))


def _one_factor(
    objective: Objective, first: Objective, spread: Array, kernel: Kernel, composition: str
) -> tuple[int, str, int]:
    grid = one_factor.candidates(first.rows.X / spread, kernel, composition)
    if len(spread) == 1 and _has_quick_way(first):
        quick = PairwiseObjective(first)
        one_factor.minimise_quickly(quick, spread, grid)
        quick.hand_over(quick.best.theta)
    elif first is objective:
        one_factor.minimise(first, spread, grid)
    else:
        one_factor.scan(first, spread, grid)
    if first is objective:
        return len(grid), "the best of a grid, refined", 0
    rate = rate_factor(len(first.rows.X), len(objective.rows.X), len(spread))
    one_factor.minimise_near(objective, spread, np.exp(first.best.theta[0]) / spread[0] * rate)
    return (
        len(grid),
        f"the best of a grid on {len(first.rows.X)} rows, refined on all",
        len(first.all_tried),
    )


def _per_column(
    objective: Objective,
    first: Objective,
    make: Callable[[TrainingRows], Objective],
    spread: Array,
    kernel: Kernel,
    composition: str,
    generator: Any,
) -> tuple[int, str, int]:
    """Return the number of starts, why it ended, and the evaluations on fewer rows."""
    grid = one_factor.candidates(first.rows.X / spread, kernel, composition)
    quick = PairwiseObjective(first) if _has_quick_way(first) else None
    on_few: SumOfSquares = quick or first
    starts = list(per_column.starts(on_few, spread, grid, generator))
    if not starts:
        return 0, "undefined everywhere", 0
    along = per_column.lines(on_few, spread, grid)
    best = per_column.flatten(on_few, per_column.minimise(on_few, starts, along))
    if quick is not None:
        quick.hand_over(best.end.theta)
    if first is objective:
        return len(starts), best.reason, 0
    evaluations, before = len(first.all_tried), first
    for size in per_column.sizes_between(len(first.rows.X), len(objective.rows.X)):
        between = make(draw(objective.rows, size, generator))
        best = _with_more_rows(between, before, best, per_column.TOLERANCE_BETWEEN)
        evaluations, before = evaluations + len(between.tried), between
    best = per_column.flatten(objective, _with_more_rows(objective, before, best, per_column.TOLERANCE_ON_ALL))
    return len(starts), f"{best.reason}, from the best of {len(before.rows.X)} rows", evaluations


def _with_more_rows(objective: Objective, before: Objective, best: Descent, tolerance: float) -> Descent:
    """Descend from where the best place of fewer rows is expected with these."""
    (low, high, _), theta, d = objective.box, best.end.theta, before.columns
    matter = per_column.relevant(before, theta)
    columns = int(np.count_nonzero(matter[:d]))
    rate = np.log(rate_factor(len(before.rows.X), len(objective.rows.X), columns))
    # Smoothings shrink as fast as squared bandwidths (Hall, Li and Racine, 2007, theorem 2.1).
    moved = np.concatenate([theta[:d] + rate, theta[d:] * np.exp(2.0 * rate)])
    start = objective.evaluate(np.where(matter, np.clip(moved, low, high), high))
    steps = per_column.STEPS_ON_MANY_ROWS
    return descend(objective, start, max_steps=steps, tolerance=tolerance, curvature=best.curvature)


class _Passes:
    """Counts the passes of a search for a listener that wants to see one number grow to another."""

    def __init__(self, listener: Progress, rows: int) -> None:
        self.listener, self.rows, self.done = listener, rows, 0

    def __call__(self, done: int, total: int) -> None:
        expected = max(EXPECTED_PASSES * self.rows, self.done + total)
        self.listener(self.done + done, expected)
        if done == total:
            self.done += total
