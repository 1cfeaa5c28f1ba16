"""Choice of an estimator's bandwidth: given numbers, a rule of thumb, or a search on all or sampled rows.

For rows that are not in memory the search runs on a sample, and the result is scaled by a rate to the number of all
rows. Chunks and clusters share this file, so that the same rows in the same order have the same bandwidth. Every
row has a pseudo-random number that depends only on `random_state` and on the index of the row, and the rows of
positive weight with the smallest numbers are the sample. A process that reads only some of the rows can compute
their numbers.
"""

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from kernpool.bandwidth import warn_of_copies
from kernpool.bandwidth.criteria import CRITERIA, LOG_LOSS, check_exclusion
from kernpool.bandwidth.rules_of_thumb import RULES, rule_of_thumb
from kernpool.bandwidth.search import Found, SearchOptions, TrainingRows, distinct_rows, search_bandwidth
from kernpool.bandwidth.search.held_out import adjust_to_all_rows, rescale_to_all_rows
from kernpool.bandwidth.search.setup import affordable_rows
from kernpool.core.pair_factors import NO_CATEGORIES, Categories
from kernpool.data.array_validation import INFINITE, as_bandwidth
from kernpool.data.chunks.sampling import RowSample
from kernpool.data.suspect_columns import SuspectColumnWarning, suspect_numbers
from kernpool.estimators.model import FittedModel
from kernpool.execution.error_messages import abbreviate
from kernpool.execution.progress import current_progress
from kernpool.execution.warnings import warn_caller
from kernpool.kernels import Kernel, get_kernel

Array = NDArray[np.float64]
Integers = NDArray[np.int64]


def search_options(model: FittedModel) -> SearchOptions:
    """Return the options of an estimator's bandwidth search; the criterion is set by `choose_bandwidth`."""
    search = {"rows": "auto"} | dict(model.search or {})
    return SearchOptions(
        kernel=get_kernel(model.kernel),
        degree=model._degree,
        standardise=model._standardise,
        ridge=getattr(model, "ridge", None),  # only models of planes have one
        n_jobs=model.n_jobs,
        progress=current_progress(),
        **search,
    )


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
        If a bandwidth or smoothing that was given does not go with the columns; or groups or a gap with a criterion
        that cannot leave them out.
    """
    ridge = float(options.ridge or 0.0) if options.degree else None
    (kept,), named = np.nonzero(rows.weight > 0), isinstance(bandwidth, str)
    criterion = (CRITERIA | {LOG_LOSS.name: LOG_LOSS}).get(bandwidth) if named else None
    if rows.exclusion is not None:
        # Given numbers and rules, which look at X alone, hold no rows out. They need two clusters all the same, for
        # methods of the fitted model that leave clusters out.
        leaving = criterion if named and bandwidth not in RULES else CRITERIA["loo"]
        check_exclusion(rows.exclusion.take(kept), leaving, bandwidth)
    if not named:
        return Found(given_bandwidth(bandwidth, rows.bandwidths), given_smoothing(smoothing, categories), ridge)
    rows = rows.take(kept)
    rows = replace(rows, X=rows.X.astype(np.float64), value=rows.value.astype(np.float64))
    if criterion is None:
        estimated = _by_rule(bandwidth, rows, options.kernel)
        return Found(estimated, given_smoothing(smoothing, categories), ridge)
    if len(rows.X) == 1 and rows.weight[0] <= 1:
        warn_caller(f"bandwidth={bandwidth!r} needs more than one row; using the rule of Scott instead")
        estimated = _by_rule("scott", rows, options.kernel)
        return Found(estimated, np.zeros(len(categories)), ridge, loo_error=np.nan, loo_empty_windows=0)
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
    limit = options.seconds
    if automatic and (limit is None or search.seconds < limit):  # a search that was stopped has no time left
        return adjust_to_all_rows(found, distinct, options, categories, len(searched.X), generator)
    found = rescale_to_all_rows(found, bandwidth, len(searched.X), len(distinct.X), options)
    # All rows that equal one of these, so that the other rows can be used to validate the result.
    return found if automatic else replace(found, search_rows=kept[np.isin(which, drawn)])


def given_bandwidth(bandwidth: Any, columns: int) -> Array:
    """Return the given bandwidths, one per column."""
    given = as_bandwidth(bandwidth, columns)
    return np.where(given == INFINITE, np.inf, given)


def given_smoothing(smoothing: Any, categories: Categories) -> Array:
    """Validate smoothing parameters given for categorical columns, and return them as an array.

    Where there are categorical columns, they must be given if the bandwidth is not searched for.
    """
    largest = categories.largest
    given = np.zeros(0) if smoothing is None else np.atleast_1d(np.asarray(smoothing, dtype=float))
    if given.shape != largest.shape:
        raise ValueError(
            f"smoothing must be one number per categorical column, {len(categories)} in all, such as "
            f"smoothing={[0.1] * len(categories)}, where bandwidth is given, for numeric columns alone, got "
            f"{abbreviate(smoothing)}; 'regularised', 'loo', 'aicc', 'gcv' and, for classes, 'log_loss' find both"
        )
    if not np.all((given >= 0.0) & (given <= largest)):
        raise ValueError(f"smoothing must lie in [0, {largest.tolist()}] column by column, got {abbreviate(smoothing)}")
    return given


def _by_rule(rule: str, rows: TrainingRows, kernel: Kernel) -> Array:
    """Compute bandwidths by a rule of thumb."""
    return rule_of_thumb(rows.X, rows.weight, rule=rule, kernel=kernel, tied=rows.tied)


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
