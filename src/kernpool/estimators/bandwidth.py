"""Choice of an estimator's bandwidth, and of its windows: given, by a rule, or by a search on all or sampled rows.

For rows that are not in memory the search runs on a sample, and the result is scaled by a rate to the number of all
rows. Chunks and partitions share this file, so that the same rows in the same order have the same bandwidth. Every
row has a pseudo-random number that depends only on `random_state` and on the index of the row, and the rows of
positive weight with the smallest numbers are the sample. A process that reads only some of the rows can compute
their numbers.

The number of neighbors of a window is a whole number, and there is no derivative by it. A grid of numbers, each at
least 1.15 times the one before, goes from the least that determines a fit to all other rows; then all whole numbers
between the neighbours of the best are tried, or, where these are many, ten of them, and those around the best of these,
until few are left. Each row is predicted from the others, in a window of the others: what a fit without the row would
do. Of more than 5000 rows as many are drawn, by a fixed seed, and predicted from all others.
"""

import math
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from operator import itemgetter
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from kernpool._arrays import Array
from kernpool.bandwidth import warn_of_copies
from kernpool.bandwidth.criteria import CRITERIA, LOG_LOSS, check_exclusion
from kernpool.bandwidth.rules_of_thumb import RULES, rule_of_thumb
from kernpool.bandwidth.search import Found, SearchOptions, TrainingRows, distinct_rows, search_bandwidth
from kernpool.bandwidth.search.held_out import adjust_to_all_rows, rescale_to_all_rows
from kernpool.bandwidth.search.objective import Objective
from kernpool.bandwidth.search.setup import affordable_rows
from kernpool.core import NO_CATEGORIES, Categories, Problem
from kernpool.data.array_validation import INFINITE, as_bandwidth
from kernpool.data.chunks.base import RowSample
from kernpool.data.suspect_columns import SuspectColumnWarning, suspect_numbers
from kernpool.estimators.fitted_model import smoother_of_rows
from kernpool.estimators.model import FittedModel
from kernpool.estimators.robust_regression import choose_robustly
from kernpool.execution.error_messages import abbreviate
from kernpool.execution.progress import current_progress
from kernpool.execution.warnings import warn_caller
from kernpool.kernels import get_kernel
from kernpool.pooling.widths import Floor, Nearest, count_neighbors, least_neighbors, nearest_widths, with_widths
from kernpool.smoother import Smoother


def search_options(model: FittedModel) -> SearchOptions:
    """Return the options of an estimator's bandwidth search; the criterion is set by `choose_bandwidth`."""
    search = {"rows": "auto"} | dict(model.search or {})
    return SearchOptions(
        kernel=get_kernel(model.kernel),
        degree=model._degree,
        standardise=model._standardise,
        ridge=getattr(model, "ridge", None) if model._objective is None else 0.0,  # only models of planes have one
        n_jobs=model.n_jobs,
        progress=current_progress(),
        objective=model._objective,
        **search,
    )


def choose_windows(model: FittedModel, rows: TrainingRows) -> Found:
    """Choose bandwidths, and then the windows that have them.

    Parameters
    ----------
    model : estimator
        Its parameters, checked, and its encoding.
    rows : TrainingRows
        Training rows, with pooled columns.
    """
    bandwidth, categories = model.encoding_.distinct(model.bandwidth), model._categories()
    options = search_options(model)
    nearest = isinstance(model.window, Nearest)
    single = rows.X.shape[1] == 1 and not rows.code.shape[1]
    if nearest and single and isinstance(bandwidth, str) and bandwidth not in RULES:
        bandwidth = "scott"  # the ratio of a single column needs no search
    choose = partial(choose_bandwidth, bandwidth, options=options, categories=categories, smoothing=model.smoothing)
    found = choose_robustly(model, bandwidth, rows, categories, choose, options) if model.robust else choose(rows)
    if model.window == "fixed" or (model.window == "auto" and not model._floor):
        return found
    rows = rows.take(np.flatnonzero(rows.weight > 0))
    return (find_neighbors if nearest else find_floor)(model, found, rows, categories)


def choose_bandwidth(
    bandwidth: Any,
    rows: TrainingRows,
    options: SearchOptions,
    *,
    categories: Categories = NO_CATEGORIES,
    smoothing: Any = None,
) -> Found:
    """Choose the bandwidth from given numbers, by a rule of thumb or by a search.

    Parameters
    ----------
    bandwidth, smoothing
        Parameters `bandwidth` and `smoothing` of the estimator, checked.
    rows : TrainingRows
        Training rows; a search leaves all rows of a group out together.
    options : SearchOptions
        Options of the search. A ridge of None is to be found with "regularised", and zero elsewhere. Where `rows` is
        "auto" and there are more than take seconds, the factor to all rows is found by rows held out.
    categories : Categories, optional
        Categories of the codes.

    Returns
    -------
    Found
        After a search with the errors of its criterion, if it leaves rows out; if it drew rows, with the bandwidths of
        all rows and a note, and with the rows that were looked at if there are others.

    Raises
    ------
    ValueError
        If a bandwidth or smoothing that was given does not go with the columns; or an exclusion with a criterion that
        leaves no rows out.
    """
    ridge = float(options.ridge or 0.0) if options.degree else None
    (kept,), named = np.nonzero(rows.weight > 0), isinstance(bandwidth, str)
    criterion = (CRITERIA | {LOG_LOSS.name: LOG_LOSS}).get(bandwidth) if named else None
    if rows.exclusion is not None:
        # Given numbers and rules, which look at X alone, hold no rows out. They need others to predict each row from
        # all the same, for methods of the fitted model that leave rows out.
        leaving = criterion if named and bandwidth not in RULES else CRITERIA["loo"]
        check_exclusion(rows.exclusion.take(kept), leaving, bandwidth)
    if not named:
        given = as_bandwidth(bandwidth, rows.bandwidths)
        given = np.where(given == INFINITE, np.inf, given)
        return Found(given, given_smoothing(smoothing, categories), ridge)
    rows = rows.take(kept)
    rows = replace(rows, X=rows.X.astype(np.float64), value=rows.value.astype(np.float64))
    by_rule = partial(rule_of_thumb, rows.X, rows.weight, kernel=options.kernel, geometry=rows.geometry)
    if criterion is None:
        return Found(by_rule(rule=bandwidth), given_smoothing(smoothing, categories), ridge)
    if len(rows.X) == 1 and rows.weight[0] <= 1:
        warn_caller(f"bandwidth={bandwidth!r} needs more than one row; using the rule of Scott instead")
        return Found(by_rule(), np.zeros(len(categories.kernels)), ridge, loo_error=np.nan, loo_empty_windows=0)
    if smoothing is not None:
        raise ValueError(
            f"smoothing is searched for with bandwidth={bandwidth!r} and must be None, "
            f"got {abbreviate(smoothing)}; leave it out, or give bandwidths as numbers too"
        )
    ridge_of_search = 0.0 if options.ridge is None and not criterion.regular else options.ridge
    options = replace(options, criterion=criterion, ridge=ridge_of_search)
    generator, automatic = check_random_state(options.random_state), isinstance(options.rows, str)
    searched = distinct = rows
    most: Any = affordable_rows(rows, options) if automatic else options.rows
    if most is not None and len(rows.X) > most:
        distinct, which = distinct_rows(rows)
        most = affordable_rows(distinct, options) if automatic else most
        if len(distinct.X) > most:
            drawn = distinct.drawn(most, generator)
            searched = distinct.take(drawn)
    search = search_bandwidth(searched, replace(options, random_state=generator), categories)
    found = Found(search.bandwidth, search.smoothing, search.ridge if options.degree else None, search)
    if criterion.exclude_self:
        found = replace(found, loo_error=search.error, loo_empty_windows=search.empty_windows)
    if searched is rows:
        return found
    if automatic and options.objective is None:
        return adjust_to_all_rows(found, distinct, options, categories, len(searched.X), generator)
    found = rescale_to_all_rows(found, bandwidth, len(searched.X), len(distinct.X), options)
    # All rows that equal one of these, so that the other rows can be used to validate the result.
    return replace(found, search_rows=kept[np.isin(which, drawn)])


def given_smoothing(smoothing: Any, categories: Categories) -> Array:
    """Validate smoothing parameters given for categorical columns, and return them as an array.

    Where there are categorical columns, they must be given if the bandwidth is not searched for.
    """
    largest = categories.largest
    given = np.zeros(0) if smoothing is None else np.array(smoothing, dtype=float, ndmin=1)
    if given.shape != largest.shape:
        expected = (
            f"one number per categorical column, such as {[0.1] * len(largest)}, where the bandwidth is given; if that "
            "is searched for, so is smoothing"
        )
        if not len(largest):
            expected = "None where no column is categorical; two levels are numbers to planes"
        raise ValueError(f"smoothing must be {expected}; got {abbreviate(smoothing)}")
    if not np.all((given >= 0.0) & (given <= largest)):
        raise ValueError(f"smoothing must lie in [0, {largest.tolist()}] column by column, got {abbreviate(smoothing)}")
    return given


DEFAULT_SEARCH_ROWS = 10_000


def bandwidth_of_sample(
    sample: RowSample, labels: Any, bandwidth: str, options: SearchOptions, smoothing: Any = None
) -> Found:
    """Choose the bandwidth on a sample of rows, and rescale it to the number of all rows.

    Parameters
    ----------
    sample : RowSample
        Rows of positive weight.
    labels : sequence or None
        Names of the columns, which are looked at for row numbers.
    bandwidth, options, smoothing
        As in `choose_bandwidth`.
    """
    if labels is not None:
        for sentence in suspect_numbers(labels, sample.key, whole=len(sample.key) == sample.rows):
            warn_caller(sentence, SuspectColumnWarning)
    rows = TrainingRows.from_arrays(sample.key, sample.value, sample.weight)
    warn_of_copies(rows, takes_groups=False, bandwidth=bandwidth)
    found = choose_bandwidth(bandwidth, rows, options, smoothing=smoothing)
    found, few, many = replace(found, key_range=sample.key_range), len(sample.key), sample.rows
    if few == many:
        return replace(found, bandwidth_note=f"{bandwidth!r} on all {many} rows")
    return rescale_to_all_rows(found, bandwidth, few, many, options)


OWN_SEARCHES = ("regularised", "log_loss")  # whose numbers are of no published method
MEDIAN_ROWS = 1000  # whose effective rows say what is usual


def find_floor(model: FittedModel, found: Found, rows: TrainingRows, categories: Categories) -> Found:
    """Choose the least number of effective rows of windows; see `kernpool.smoother.windows`.

    Leave-one-out errors, if they are of all rows, become those in these windows.
    """
    window = model.window
    searched = isinstance(model.bandwidth, str) and model.bandwidth in OWN_SEARCHES
    varies = np.any(rows.X[:1] != rows.X) and len(rows.X) > 2
    if not varies or not (isinstance(window, Floor) or searched):
        return found
    smoother = smoother_of_rows(model, found, rows, categories)
    if isinstance(window, Floor):
        least = window.rows
    else:
        some = np.sort(np.random.default_rng(0).permutation(len(rows.X))[:MEDIAN_ROWS])
        problem = smoother.left_out_problem(rows.exclusion).block(some)
        usual = float(np.median(smoother.effective_rows(problem))) / rows.unit
        least = min(model._floor, max(usual, 1.0))
    found = replace(found, window=Floor(float(least)))
    smoother = replace(smoother, window=found.window)
    if found.loo_error is None or found.bandwidth_note is not None:
        return found
    is_uniform = smoother.left_out_points(rows.exclusion).is_uniform
    return found if is_uniform else _with_errors(found, smoother)


def find_neighbors(model: FittedModel, found: Found, rows: TrainingRows, categories: Categories) -> Found:
    """Choose the number of neighbors in a window: the one given, or the one that a search finds.

    Leave-one-out errors become those in these windows, except for criteria that leave no row out.
    """
    window = model.window
    assert isinstance(window, Nearest)
    named = model.bandwidth if isinstance(model.bandwidth, str) else "loo"
    criterion = CRITERIA.get(named, CRITERIA["loo"])  # rules of thumb and log losses of classes search nothing here
    smoother = smoother_of_rows(model, found, rows, categories)
    if window.k is None:
        some = np.sort(np.random.default_rng(0).permutation(len(rows.X))[:MOST_ROWS])
        options = replace(search_options(model), criterion=criterion, ridge=found.ridge or 0.0)
        judge = (model._objective or Objective)(rows, options, queries=some)
        tried: list[tuple[float, int, Array]] = []
        for ratio in judge.ratios(found.bandwidth) if found.bandwidth_search else [found.bandwidth]:
            smoother = smoother_of_rows(model, replace(found, bandwidth=ratio), rows, categories)
            left_out = criterion.exclude_self
            problem = smoother.left_out_problem(rows.exclusion) if left_out else smoother.problem(smoother.training)
            near = tried[0][1] if tried else None
            tried.append((*search_neighbors(problem.block(some), judge, near), ratio))
        _, k, ratio = min(tried, key=itemgetter(0))
        found = replace(found, bandwidth=ratio, search_rows=None)  # all rows have a say in the number
    else:
        units = count_neighbors(window, smoother.problem(smoother.training))
        k = round(units)
        if abs(k - units) > 1e-9 * units:  # sums of weights are rounded
            raise ValueError(
                f"window={window} of a total weight of {rows.weight.sum():g} is {units:g} rows, and "
                "windows reach to a whole number; give k as a number of rows, or sample_weight in whole rows"
            )
    # A share of priors by rows held out was found in windows of fixed width.
    found = replace(found, window=Nearest(k), prior_share=None)
    known = criterion.exclude_self and (window.k is None or found.loo_error is not None) and model._objective is None
    return _with_errors(found, replace(smoother, window=found.window)) if known else found


def _with_errors(found: Found, smoother: Smoother) -> Found:
    """Add the leave-one-out error in windows of all rows, and the number of empty ones."""
    one = smoother.leave_one_out()
    return replace(found, loo_error=one.error, loo_empty_windows=int(np.count_nonzero(~one.occupied)))


RATIO, MOST_STEPS = 1.15, 40  # of the grid
SCANNED, LAST = 64, 12  # numbers that are all tried, and that are left of more
FINER = 10  # numbers of each grid after the first, beside the best before
MOST_ROWS = 5000  # that are predicted


def minimise_over_whole_numbers(values: Callable[[list[int]], list[float]], least: int, most: int) -> tuple[float, int]:
    """Find the whole number from `least` to `most` with the smallest criterion, as the docstring of the module says.

    Parameters
    ----------
    values : callable
        Function of some numbers, which returns the criterion of each.
    least, most : int
        Range, `least` at most `most`.

    Returns
    -------
    tuple of float and int
        The smallest criterion, and the largest number that has it.

    Examples
    --------
    >>> minimise_over_whole_numbers(lambda numbers: [(k - 1234) ** 2 for k in numbers], 3, 10_000)
    (0, 1234)
    """
    tried: dict[int, float] = {}

    def best_of(numbers: Iterable[int]) -> int:
        """Try numbers and return the best, of equal ones the largest, among all that were tried."""
        new = [k for k in numbers if k not in tried]
        for k, value in zip(new, values(new) if new else [], strict=True):
            tried[k] = math.inf if math.isnan(value) else value
        return min(tried, key=lambda k: (tried[k], -k))

    ratio, grid = max(RATIO, (most / least) ** (1.0 / MOST_STEPS)), [least]
    if most - least <= SCANNED:
        grid = list(range(least, most + 1))
    while grid[-1] < most:
        grid.append(min(most, max(grid[-1] + 1, math.floor(grid[-1] * ratio))))
    scanned = SCANNED
    while True:
        best = best_of(grid)
        place = grid.index(best)
        low, high = grid[max(place - 1, 0)], grid[min(place + 1, len(grid) - 1)]
        if high - low <= scanned:
            break
        grid, scanned = sorted({best, *np.linspace(low, high, FINER, dtype=int).tolist()}), LAST
    best = best_of(range(low, high + 1))
    return tried[best], best


def search_neighbors(problem: Problem, judge: Objective, near: int | None = None) -> tuple[float, int]:
    """Find the number of neighbors by a criterion of the training rows.

    Parameters
    ----------
    problem : Problem
        Training rows as queries and as keys, each left out of its own fit if the criterion says so.
    judge : Objective
        The criterion of these queries; of those with a penalty on degrees of freedom the fits are in-sample.
    near : int, optional
        Where to look, from half of it to twice as many; by default everywhere.

    Returns
    -------
    tuple of float and int
        The criterion, and the number; takes some sixty passes over the pairs.
    """
    # The nearest row alone is a staircase.
    least = least_neighbors(problem.similarity.kernel, problem.key.shape[1], problem.degree) + (not problem.degree)
    most = max(least, math.floor(judge.rows.total + 1e-9) - int(judge.options.criterion.exclude_self))
    if near is not None:
        least, most = max(least, near // 2), min(most, 2 * near)
    problem = problem.without_center()  # the center is that of the judge, of the same values

    def errors(numbers: list[int]) -> list[float]:
        """Return the criterion in windows to each of these numbers."""
        widths = nearest_widths(problem, numbers, judge.options.n_jobs)
        return [judge.value_in(with_widths(problem, width)) for width in np.ascontiguousarray(widths.T)]

    return minimise_over_whole_numbers(errors, least, most)
