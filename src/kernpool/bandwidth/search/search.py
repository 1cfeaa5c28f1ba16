"""Bandwidth search: choice of rows, starts and strategy, and the record of its result.

`search_bandwidth` is the entry. All starts run on up to 1024 rows (2048 for a common factor, or with a faster
objective); with more rows they run on a sample, and the best goes on to all rows. `BandwidthSearch` is the result.
"""

from dataclasses import dataclass, replace
from functools import partial
from time import perf_counter
from typing import Any

import numpy as np

from kernpool._arrays import Array, Flags, Index, Integers
from kernpool.bandwidth.criteria import LOG_LOSS, Criterion
from kernpool.bandwidth.search import log_loss
from kernpool.bandwidth.search.fast_objectives import AllPairsObjective, PairwiseObjective
from kernpool.bandwidth.search.objective import Objective, Penalty, SearchObjective, penalise_bandwidths
from kernpool.bandwidth.search.one_factor import search_one_factor
from kernpool.bandwidth.search.per_column import search_per_column
from kernpool.bandwidth.search.setup import SearchOptions, SearchStart, TrainingRows, begin
from kernpool.core import NO_CATEGORIES, Categories, Exclusion, Reweighting
from kernpool.data import Encoding
from kernpool.execution import PrintedResult, Progress, blas_threads, warn_caller
from kernpool.kernels import get_kernel
from kernpool.pooling.widths import Window

EXPECTED_PASSES = 120  # for the progress report only


def progress_of_passes(listener: Progress, rows: int) -> Progress:
    """Return what reports progress of each pass over so many rows as that of a search."""
    finished, expected = 0, EXPECTED_PASSES * rows

    def report(done: int, total: int) -> None:
        nonlocal finished
        listener(finished + done, max(expected, finished + total))
        finished += total if done == total else 0

    return report


@dataclass(frozen=True)
class BandwidthSearch(PrintedResult):
    """Result of a bandwidth search: the bandwidths, their criterion, and a record of the evaluations.

    Parameters
    ----------
    criterion : str
        Name of the criterion.
    value : float
        The criterion at `bandwidth`; several outputs are in units of their standard deviations.
    bandwidth : ndarray of shape (d,)
        The bandwidths found.
    smoothing : ndarray of shape (k,)
        The best lambda of each categorical column.
    relevance : ndarray of shape (d + k,)
        Of numeric columns, the spread over the bandwidth: zero where the best bandwidth is infinite, so that the column
        has no effect, or, in a local linear fit without a ridge, only a linear one. Of categorical columns, 1 minus
        smoothing over its upper bound: one if categories are kept apart, zero if they make no difference.
    spread : ndarray of shape (d,)
        Spreads of the columns.
    common_factor : bool
        Whether one factor on the spreads was searched for, instead of one bandwidth per column.
    error : float
        Mean squared residual, of rows that are left out with ``"loo"``, summed over outputs in their own units; of a
        local likelihood the mean deviance.
    empty_windows : int
        Rows with an empty window once they, and all that are left out with them, are held out.
    tried : ndarray of shape (e, d + k)
        The bandwidths and smoothings that were tried on all rows of the search.
    values : ndarray of shape (e,)
        The criterion there; of quick evaluations to twelve digits or so.
    evaluations : int
        Number of evaluations of the criterion, including those on samples.
    starts : int
        Number of starts, or of points of the grid.
    rows : int
        Number of distinct rows that the criterion was evaluated on.
    seconds : float
        Wall-clock time.
    reason : str
        Why the search ended.
    names : tuple of str, optional
        Names of the columns, numeric ones first.
    way : str, default=""
        How the criterion was evaluated for each bandwidth tried on the first rows, and why so.
    ridge : float, default=0.0
        On the slopes of local planes, in keys at the query.
    exclusion : Exclusion or None
        Which rows were held out together; None if they were held out one by one.
    expected_error : float, optional
        Expected error on new rows, in the units of `error`; None until the model's `expected_error` is called.
    of_deviance : bool, default=False
        Whether residuals are those of deviance.
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
    way: str = ""
    ridge: float = 0.0
    exclusion: Exclusion | None = None
    expected_error: float | None = None
    of_deviance: bool = False

    def _says_of_error(self) -> str:
        if self.of_deviance:
            words = "leave-one-out mean squared error" if self.exclusion is None else self.exclusion.error_in_words
            return words.replace("squared error", "deviance")
        if self.exclusion is not None:
            return self.exclusion.error_in_words
        if self.criterion == "bounded":
            return "leave-one-out error by a bounded loss, that of squares where residuals are small,"
        left_out = self.criterion in ("loo", "regularised", "log_loss")
        return "leave-one-out mean squared error" if left_out else "mean squared residual"

    def __str__(self) -> str:
        d, k = len(self.bandwidth), len(self.smoothing)
        names = self.names or [str(a) for a in (*range(d), *range(k))]
        wide = max(8, *map(len, names))
        lines = [
            f"{self.criterion} = {self.value:.6g} on {self.rows} rows; {self.evaluations} evaluations from "
            f"{self.starts} starts in {self.seconds:.2g} s; {self.reason}",
            self.way,
            f"{self._says_of_error()} {self.error:.6g}"
            + ("" if self.expected_error is None else f", to be expected of new rows {self.expected_error:.6g}"),
            f"ridge {self.ridge:.3g}" if self.ridge else "",
            f"{self.empty_windows} empty windows" if self.empty_windows else "",
        ]
        shown = np.where(self.relevance[:d] > 0, self.bandwidth, np.inf)
        for kind, name, numbers, part in (
            ("column", "bandwidth", shown, slice(d)),
            ("category", "smoothing", self.smoothing, slice(d, None)),
        ):
            if len(numbers):
                lines.append(f"{kind:>{wide}} {name:>12} {'relevance':>10}")
            for label, number, relevance in zip(names[part], numbers, self.relevance[part], strict=True):
                lines.append(f"{label:>{wide}} {number:>12.6g} {relevance:>10.4g}")
        return "\n".join(line for line in lines if line)


@dataclass(frozen=True)
class Found:
    """Result of a bandwidth search; what was not found is None.

    Fields are the attributes of a fitted estimator, without the underscore at the end.
    """

    bandwidth: Array
    smoothing: Array
    ridge: float | None = None
    bandwidth_search: BandwidthSearch | None = None
    relevance: Array | None = None  # in the order of the columns of the table, from `of_table`
    loo_error: float | None = None
    loo_empty_windows: int | None = None
    bandwidth_note: str | None = None
    search_rows: Integers | None = None
    prior_share: float | None = None
    reweighting: Reweighting | None = None
    window: Window = "fixed"
    key_range: Array | None = None

    @property
    def matters(self) -> Flags:
        """Which columns are not smoothed away, numeric ones first; all where nothing was searched for."""
        if self.bandwidth_search is None:
            return np.ones(len(self.bandwidth) + len(self.smoothing), dtype=np.bool_)
        return self.bandwidth_search.relevance > 0

    def scaled(self, factor: float) -> "Found":
        """Return what was found with the bandwidths of columns that matter times a factor.

        Smoothings shrink as fast as squared bandwidths (Hall, Li and Racine, "Nonparametric estimation of regression
        functions in the presence of irrelevant regressors", Review of Economics and Statistics 89 (2007), 784-789,
        theorem 2.1).
        """
        matters, d = self.matters, len(self.bandwidth)
        bandwidth = np.where(matters[:d], self.bandwidth * factor, self.bandwidth)
        smoothing = np.where(matters[d:], self.smoothing * factor**2, self.smoothing)
        return replace(self, bandwidth=bandwidth, smoothing=smoothing)

    def attributes(self) -> dict[str, Any]:
        """Return the attributes of a fitted estimator."""
        return {f"{name}_": found for name, found in vars(self).items() if found is not None}

    def of_table(self, encoding: Encoding) -> "Found":
        """Return what was found for pooled columns, numeric ones first, as that of the columns of the table."""
        names, search = encoding.names, self.bandwidth_search
        numeric = encoding.bandwidth_of
        found = replace(self, bandwidth=self.bandwidth[numeric])
        if search is None:
            return found
        every = np.append(numeric, np.arange(numeric.max() + 1, search.relevance.size))
        relevance = search.relevance[every]
        order = encoding.numeric + encoding.categorical
        search = replace(
            search,
            bandwidth=search.bandwidth[numeric],
            relevance=relevance,
            spread=search.spread[numeric],
            tried=search.tried[:, every],
            names=tuple(str(names[i]) for i in order) if names is not None and len(order) == relevance.size else None,
        )
        # Levels alone are searched with one column of zeros before them, which is no column of the table.
        of_table = np.zeros(len(encoding.kinds))
        of_table[list(order)] = relevance[relevance.size - len(order) :]
        return replace(found, bandwidth_search=search, relevance=of_table)


# Up to this many rows all starts run on all of them; beyond, on a sample of this size, and the best goes on. The
# first is for a common factor, for classes, and where the criterion has a faster objective than the engine's.
MOST_ROWS_FOR_GRID, MOST_ROWS_FOR_STARTS = 2048, 1024
# Queries of the first part of a search for planes, from all rows as keys, since fewer keys have other bandwidths. 2000
# rows of ten columns and 1000 of fifty take a third of the time, and R^2 of new rows is lower by .0003 in the mean of
# seven tables. 256 of few rows were too few: of 670 rows of concrete the minimum was higher by 1 to 5 %, R^2 by -.03.
MOST_QUERIES, QUERIES = 500, 12_500
QUERIES_OF_STEPS = 250  # of criteria that fit each row in steps
FLAT_FACTOR = 5.0  # ranges, near the end of the interval of a common factor


@np.errstate(under="ignore")  # weights of far rows are zero
def search_bandwidth(
    rows: TrainingRows, options: SearchOptions, categories: Categories = NO_CATEGORIES
) -> BandwidthSearch:
    """Find the bandwidths that minimise a criterion, such as leave-one-out error, AICc, GCV or log loss.

    Parameters
    ----------
    rows : TrainingRows
        Training rows, of one-hot labels for the log loss. Their exclusion says from which others a row is predicted,
        with criteria that leave rows out.
    options : SearchOptions
        Criterion, kernel and strategy.
    categories : Categories, optional
        Categories of the codes.

    Returns
    -------
    BandwidthSearch
        The bandwidths, and how they were found; infinite for columns that do not vary. With the log loss, `error` is
        the leave-one-out Brier score without mixing of priors.

    Raises
    ------
    ValueError
        If there are too few rows for the criterion.

    Notes
    -----
    *One factor*, always so for one column: the criterion has several local minima as a rule, and kinks or steps for
    compact kernels. It is evaluated on a grid of 64 factors (256 for compact kernels on up to 1000 rows), equally
    spaced in logarithm, from .6 of the median distance between neighbouring values (for the Gaussian; see
    `kernpool.bandwidth.search.objective.narrowest`) to ten times the diameter; 22 for means of at least 500 rows and
    kernels that are not compact. The best three local minima are refined by Brent's method to 1e-7 in log h. This takes
    30 to 120 passes. A minimum narrower than the spacing of the grid can be missed, except for the boxcar on up to 64
    rows, where the error is a step function and every step is tried. With more than 2048 rows the best factor of a
    sample of 2048 is refined on all rows, by cubics through the lowest points, until the predicted gain is below 1e-8
    of the criterion: about six passes. For smooth kernels the criterion is then within 1e-7 of its local minimum,
    relative, and log h within about 1e-3. For compact kernels, whose criterion has a minimum between any two kinks, it
    is within 2e-6.

    *One bandwidth per column*, for kernels that have a slope: damped Gauss-Newton steps on log h from a dozen starts
    (see `kernpool.bandwidth.search.per_column`), each a pass and a pullback. Then, from the best point, each bandwidth
    is scanned from end to end while the others stay fixed, and valleys along such lines are new starts: 150 to 700
    passes. With more than eight columns there are half a dozen starts, and the ten most promising columns by their
    slopes are scanned once: 70 to 200 passes, whatever the number of columns. This does not certify a global minimum,
    but the result is never above the best common factor of the ladder of starts.

    For planes of 1000 rows (500 in fifty columns) and more, held out one by one, all this is done for 500 (250) of
    them, predicted from all others. The ridges found are compared on all rows, and the best goes on.

    With more than 2048 rows (1024 for several columns) the starts are found on a sample of that size, and their
    bandwidths are rescaled to all rows by the rate :math:`n^{-1/(4 + d)}`, where d is the number of relevant columns
    [1]_; for several columns in steps of three times as many rows. The rest of the search is on all rows; for several
    columns it ends after a step that gained less than 2e-4 of the criterion, which is then within about 1e-4 of its
    local minimum; another sample of 1e5 rows would move it by 5e-3.

    *Class probabilities*: see `kernpool.bandwidth.search.log_loss`.

    References
    ----------
    .. [1] P. Hall, Q. Li and J. S. Racine, "Nonparametric estimation of regression functions in the presence of
       irrelevant regressors", Review of Economics and Statistics 89 (2007), 784-789.

    Examples
    --------
    >>> from kernpool import get_kernel
    >>> from kernpool.datasets import make_sine_power
    >>> x, y, _, _ = make_sine_power(random_state=0)
    >>> found = search_bandwidth(TrainingRows.from_arrays(x[:, None], y), SearchOptions(get_kernel("gaussian")))
    >>> found.bandwidth.round(3), found.reason
    (array([0.203]), 'the best of a grid, refined')
    """
    from sklearn.utils import check_random_state

    began, criterion = perf_counter(), options.criterion
    start = begin(rows, options, categories)
    rows, spread, one = start.rows, start.spread, start.one_factor
    ridge = 0.0 if not options.degree or (one and options.ridge is None) else options.ridge
    options = replace(options, ridge=ridge)
    if options.progress is not None:
        options = replace(options, progress=progress_of_passes(options.progress, len(rows.X)))
    generator = check_random_state(options.random_state)
    penalty: Penalty | None = None
    if criterion.regular and not one:  # one number hardly overfits
        largest = start.categories.largest
        penalty = partial(penalise_bandwidths, log_spread=np.log(spread), varies=rows.extent > 0, largest=largest)
    make = options.objective or fastest_objective
    objective_of = partial(make, options=options, categories=start.categories, penalty=penalty)
    # The criteria of the rows that starts are tried on and of all rows, which are the same for few rows.
    objectives: list[Any] = [objective_of(rows)]
    n, d = rows.X.shape
    quick = objectives[0].is_quick and n <= MOST_ROWS_FOR_GRID
    limit = MOST_ROWS_FOR_GRID if one or quick or criterion is LOG_LOSS else MOST_ROWS_FOR_STARTS
    if n > limit:
        objectives.insert(0, objective_of(rows.draw(limit, generator)))
    sample, queries = objectives[0].rows, min(MOST_QUERIES, QUERIES // d)
    by_some = options.ridge is None  # so several columns
    if options.objective is not None:
        by_some, queries = True, QUERIES_OF_STEPS
    if by_some and rows.exclusion is None and len(sample.X) >= 2 * queries:
        objectives.insert(0, objective_of(sample, queries=sample.drawn(queries, generator)))
    if criterion is LOG_LOSS:
        objectives = [log_loss.LogLoss(objective, spread) for objective in objectives]
    with blas_threads():  # products of few rows: with threads of their own 570 rows of 30 columns took twice as long
        if one:
            reason = search_one_factor(objectives, spread, options)
        elif criterion is LOG_LOSS:
            reason = log_loss.search(objectives[-1], objectives[0])
        else:
            reason = search_per_column(objectives, spread, generator, objective_of)
    if not np.isfinite(objectives[-1].best.penalised):
        raise ValueError(
            f"the criterion {criterion.name!r} is not defined for {rows.total:g} rows at any bandwidth; use another, "
            "a rule of thumb such as bandwidth='scott', more rows, or fewer columns"
        )
    return _outcome(objectives, start, criterion, reason, perf_counter() - began)


MOST_ROWS_WITHOUT_COMPILER = 400  # a hundred dense passes over so many take as long as loading Numba
# Pairs times columns, a product of two columns being one more for local lines: 250 rows of a number and a level take
# the engine about 4 ms with their slopes, and a search as long as loading compiled loops, one second.
FEWEST_NUMBERS = 200_000
MANY_COLUMNS = 8  # with fewer numeric columns the engine is as quick for local lines, and holds few moments
MOST_ROWS = 4096  # beyond, the engine gains from going through the rows in order of distance


def fastest_objective(
    rows: TrainingRows,
    options: SearchOptions,
    categories: Categories = NO_CATEGORIES,
    penalty: Penalty | None = None,
    queries: Index | None = None,
) -> Objective:
    """Return the criterion of some rows, to be evaluated by the engine or, for a few thousand rows, by a faster method.

    The choice depends on the rows and options alone, so that results are the same to the last digit whether or not the
    compiled loops are already loaded. Its reason is the `way` of the objective, in words.
    """
    (n, d), k = rows.X.shape, rows.code.shape[1]
    means = not k and not options.degree
    few = n <= MOST_ROWS_WITHOUT_COMPILER if means else n * n * (d + k + options.degree * d * d) < FEWEST_NUMBERS
    kind: type[Objective] = Objective
    if options.algorithm != "auto":
        way = f"algorithm={options.algorithm!r} was asked for"
    elif rows.exclusion is not None:
        way = "some rows are left out together"
    elif rows.geometry and not means:
        way = "columns that share a bandwidth have no faster method with categories or planes"
    elif n > MOST_ROWS:
        way = f"{n} rows are too many for a faster method"
    elif options.kernel is not get_kernel("gaussian"):
        way = f"faster methods are for the Gaussian, not {options.kernel.name}"
    elif means and options.criterion is LOG_LOSS:
        way = "there is no faster method for class probabilities without categories"
    elif not means and not k and d < MANY_COLUMNS:
        way = "there is no faster method for planes of few columns"
    elif few:
        way = f"{n} rows take less time than loading compiled loops"
    elif means:
        kind, way = PairwiseObjective, f"every pair of {n} rows once, by compiled loops"
    else:
        kind, way = AllPairsObjective, f"all pairs of {n} rows in blocks, by compiled loops"
    objective = kind(rows, options, categories, penalty, queries)
    objective.way = way if kind is not Objective else f"by the engine: {way}"
    return objective


def _outcome(
    objectives: list[SearchObjective],
    start: SearchStart,
    criterion: Criterion,
    reason: str,
    seconds: float,
) -> BandwidthSearch:
    """Build the `BandwidthSearch` of the best evaluation, in the caller's units and column order."""
    judged = objectives[-1]
    best, rows, spread, one, d = judged.best, start.rows, start.spread, start.one_factor, len(start.spread)
    theta = best.theta
    bandwidth, smoothing = np.exp(theta[:d]), theta[d:]
    matters = judged.relevant(theta)[:d]
    if one and criterion is not LOG_LOSS:
        matters = bandwidth < FLAT_FACTOR * rows.extent
    relevance = np.where(matters, spread / bandwidth, 0.0)
    if smoothing.size:
        relevance = np.append(relevance, start.categories.relevance(smoothing))
    with np.errstate(over="ignore", under="ignore"):
        error = float(np.sum(np.ldexp(best.error * start.scale**2, 2 * start.exponent)))
    if np.any(best.error > 0) and not 0 < error < np.inf:
        warn_caller(
            f"the mean squared residual of the outputs is {error} in float64: their squares are beyond its range; "
            "bandwidths are not affected, but rescale y for errors and intervals"
        )
    penalised = np.array([best.penalised, *(at.penalised for at in judged.tried)])
    with np.errstate(over="ignore", under="ignore", divide="ignore"):
        values = np.ldexp(penalised, start.power)
        if criterion.in_logs:
            values = np.log(penalised) + start.power * np.log(2.0)
    found = start.restore(np.concatenate([bandwidth, smoothing]), np.inf)
    return BandwidthSearch(
        criterion=criterion.name,
        value=float(values[0]),
        bandwidth=found[: start.columns],
        smoothing=found[start.columns :],
        relevance=start.restore(relevance, 0.0),
        spread=start.restore(spread, 1.0),
        common_factor=one,
        error=error,
        empty_windows=best.empty_windows,
        tried=start.restore(np.array([[*np.exp(at.theta[:d]), *at.theta[d:]] for at in judged.tried]), np.inf),
        values=values[1:],
        evaluations=sum(len(one.tried) for one in objectives),
        starts=objectives[0].starts,
        rows=len(judged.rows.X),
        seconds=seconds,
        reason=reason,
        way=objectives[0].way,
        ridge=best.ridge,
        exclusion=rows.exclusion,
        of_deviance=judged.of_deviance,
    )
