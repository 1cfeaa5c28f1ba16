"""Choice of an estimator's bandwidth: given numbers, a rule of thumb, the plug-in, or a search on all or sampled rows.

For rows that are not in memory the search runs on a sample, and the result is scaled by a rate to the number of all
rows. Chunks and clusters share this file, so that the same rows in the same order have the same bandwidth. Every
row has a pseudo-random number that depends only on `random_state` and on the index of the row, and the rows of
positive weight with the smallest numbers are the sample. A process that reads only some of the rows can compute
their numbers.

For rows in memory, `drawn_rows` draws the rows of a search, so that the other rows can be used to validate its
result.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from kernpool.bandwidth import (
    CRITERIA,
    RULES,
    TrainingRows,
    bring_to_rows,
    canonical_rows,
    check_groups,
    plugin_bandwidth,
    rule_of_thumb,
    search_bandwidth,
    search_log_loss,
)
from kernpool.bandwidth.repeated_rows import warn_of_copies
from kernpool.core.pair_factors import NO_CATEGORIES, Categories
from kernpool.data.array_validation import INFINITE, as_bandwidth
from kernpool.data.chunks.sampling import RowSample
from kernpool.data.encoding import Encoding
from kernpool.data.suspect_columns import SuspectColumnWarning, suspect_numbers
from kernpool.execution.error_messages import abbreviate
from kernpool.execution.progress import current_progress
from kernpool.execution.warnings import warn_caller
from kernpool.kernels import Kernel, convert_bandwidth, get_kernel

Array = NDArray[np.float64]
Integers = NDArray[np.int64]


class DrawnRows(NamedTuple):
    """Random sample of the distinct training rows, on which bandwidths are searched for.

    Parameters
    ----------
    rows : TrainingRows
        The rows, in canonical form.
    number : ndarray of int64
        The numbers of all rows that equal one of them, ascending.
    of : int
        How many different rows there are in all.
    """

    rows: TrainingRows
    number: Integers
    of: int


def drawn_rows(
    X: Array, value: Array, weight: Array, code: Integers, group: Integers | None, size: int, generator: Any
) -> DrawnRows | None:
    """Draw a sample of the distinct training rows for the bandwidth search; None if there are at most `size`.

    Parameters
    ----------
    X, value, weight, code, group
        As of `canonical_rows`.
    size : int
        How many.
    generator : numpy.random.RandomState
        Which the search goes on with.

    Returns
    -------
    DrawnRows or None
        None if there are no more different rows than that.
    """
    rows = canonical_rows(X, value, weight, code, group)
    if len(rows.X) <= size:
        return None
    drawn = rows.draw(size, generator)
    number = equal_rows(
        [*X.T, *code.T, *value.T, *([] if group is None else [group])],
        [*drawn.X.T, *drawn.code.T, *drawn.value.T, *([] if drawn.group is None else [drawn.group])],
    )
    return DrawnRows(drawn, number, len(rows.X))


def equal_rows(columns: list[NDArray[Any]], of: list[NDArray[Any]]) -> Integers:
    """Return the indices of the rows of one table that equal some row of another table in all columns.

    Examples
    --------
    >>> equal_rows([np.array([1.0, 2.0, 1.0]), np.array([5, 5, 6])], [np.array([1.0]), np.array([5])])
    array([0])
    """
    (found,) = np.nonzero(np.isin(columns[0], of[0]))
    for column, other in zip(columns[1:], of[1:], strict=True):  # few are left where a column is continuous
        found = found[np.isin(column[found], other)]
    both = np.column_stack(
        [np.concatenate([column[found], other]) + 0.0 for column, other in zip(columns, of, strict=True)]
    )
    _, place = np.unique(both, axis=0, return_inverse=True)
    place = place.ravel()
    return found[np.isin(place[: len(found)], place[len(found) :])].astype(np.int64)


def choose_bandwidth(
    X: NDArray[Any],
    value: NDArray[Any],
    weight: Array | None = None,
    *,
    kernel: str | Kernel,
    bandwidth: Any,
    bandwidth_convention: str,
    composition: str,
    common_factor: bool,
    max_search_rows: int | None,
    max_search_seconds: float | None,
    random_state: Any,
    algorithm: str,
    n_jobs: int | None,
    smoothing: Any = None,
    code: NDArray[np.int64] | None = None,
    categories: Categories = NO_CATEGORIES,
    group: NDArray[np.int64] | None = None,
    degree: int = 0,
    standardise: bool = True,
    ridge: float | None = None,
) -> dict[str, Any]:
    """Choose the bandwidth from given numbers, by a rule of thumb, by the plug-in or by a search.

    Parameters
    ----------
    X : ndarray of shape (n, d)
        Numeric columns.
    value : ndarray of shape (n,) or (n, c)
        Outputs.
    weight : ndarray of shape (n,), optional
        Frequencies.
    kernel, bandwidth, bandwidth_convention, composition, common_factor, random_state
        Parameters of the estimator, checked.
    max_search_rows, max_search_seconds, algorithm, n_jobs, smoothing
        Likewise.
    code, categories : ndarray of int, shape (n, k), and Categories, optional
        Level numbers of categorical columns, and their kernels.
    group : ndarray of int, shape (n,), optional
        Number of the group of each row; a search leaves all rows of a group out together.
    degree, standardise
        Of the local fit; and whether several outputs count in units of their standard deviations.
    ridge : float or None, default=None
        On the slopes of planes; None is to be found with "regularised", and zero elsewhere.

    Returns
    -------
    dict
        Attributes of the fit: `bandwidth_` and `smoothing_`; after a search `relevance_` and `bandwidth_search_`, and
        `search_rows_` and `bandwidth_note_` if it drew rows, whose bandwidths were made those of all rows; for
        ``"regularised"``, ``"loo"`` and ``"log_loss"`` also `loo_error_` and `loo_empty_windows_`.

    Raises
    ------
    ValueError
        If a bandwidth or smoothing that was given does not go with the columns, or the rows with the plug-in; or groups
        with a criterion that cannot leave them out.
    """
    kernel = get_kernel(kernel)
    # Only models of planes have it.
    as_given = {"ridge_": 0.0 if ridge is None else float(ridge)} if degree else {}
    times = np.ones(len(X)) if weight is None else weight
    kept = times > 0
    group = None if group is None else _checked_groups(group[kept], bandwidth)
    if not isinstance(bandwidth, str):
        given = given_bandwidth(bandwidth, X.shape[1], kernel, bandwidth_convention)
        return as_given | {"bandwidth_": given, "smoothing_": given_smoothing(smoothing, categories)}
    X, value, times = X[kept].astype(np.float64), value[kept].astype(np.float64), times[kept]
    value = value.reshape(len(value), -1)
    if bandwidth not in CRITERIA and bandwidth != "log_loss":
        return as_given | {
            "bandwidth_": _rule_or_plugin(bandwidth, X, value, times, kernel),
            "smoothing_": given_smoothing(smoothing, categories),
        }
    if len(X) == 1 and times[0] <= 1:
        warn_caller(f"bandwidth={bandwidth!r} needs more than one row; using the rule of Scott instead")
        nothing = {"smoothing_": np.zeros(len(categories)), "loo_error_": np.nan, "loo_empty_windows_": 0}
        return as_given | nothing | {"bandwidth_": rule_of_thumb(X, times, kernel=kernel)}
    if smoothing is not None:
        raise ValueError(
            f"smoothing is searched for with bandwidth={bandwidth!r} and must be None, "
            f"got {abbreviate(smoothing)}; leave it out, or give bandwidths as numbers too"
        )
    code = np.zeros((len(X), 0), dtype=np.int64) if code is None else code[kept]
    drawn, said_seed = None, random_state
    if max_search_rows is not None and len(X) > max_search_rows:
        random_state = check_random_state(random_state)
        drawn = drawn_rows(X, value, times, code, group, max_search_rows, random_state)
    if drawn is not None:
        rows = drawn.rows
        X, value, times, code, group = rows.X, rows.value, rows.weight, rows.code, rows.group
    options: dict[str, Any] = {
        "code": code,
        "categories": categories,
        "group": group,
        "common_factor": common_factor,
        "kernel": kernel,
        "composition": composition,
        "algorithm": algorithm,
        "n_jobs": n_jobs,
        "progress": current_progress(),
        "random_state": random_state,
        "max_search_seconds": max_search_seconds,
    }
    found = _search(X, value, times, bandwidth, degree, standardise, ridge, options)
    if drawn is None:
        return found
    found |= rescale_to_all_rows(found, bandwidth, len(X), drawn.of, said_seed)
    return found | {"search_rows_": np.flatnonzero(kept)[drawn.number].astype(np.int64)}


def rescale_to_all_rows(found: dict[str, Any], name: str, few: int, many: int, random_state: Any) -> dict[str, Any]:
    """Rescale bandwidths found on a sample of rows to the number of all rows, and describe this in a note.

    Parameters
    ----------
    found : dict
        Attributes of a fit, from the sample.
    name : str
        The criterion or the rule.
    few, many : int
        Rows of the sample, and in all.
    random_state : int, RandomState or None
        By which it was drawn.

    Returns
    -------
    dict
        `bandwidth_`, `smoothing_` and `bandwidth_note_`.
    """
    bandwidth, smoothing = found["bandwidth_"], found["smoothing_"]
    matters = found.get("relevance_", np.ones(len(bandwidth) + len(smoothing))) > 0
    bandwidth, smoothing, factor = bring_to_rows(bandwidth, smoothing, matters, few, many)
    d = int(np.count_nonzero(matters[: len(bandwidth)]))
    seed = f"random_state={random_state}" if isinstance(random_state, int | np.integer) else "drawn at random"
    note = (
        f"{name!r} on a sample of {few} of {many} rows ({seed}), then times {factor:.6g}: "
        f"with d = {d} the best bandwidth shrinks as rows^(-1/(4 + d))"
    )
    return {"bandwidth_": bandwidth, "smoothing_": smoothing, "bandwidth_note_": note}


def _search(
    X: Array,
    value: Array,
    times: Array,
    criterion: str,
    degree: int,
    standardise: bool,
    ridge: float | None,
    options: dict[str, Any],
) -> dict[str, Any]:
    """Search for the bandwidths that minimise a criterion, and return the fitted attributes."""
    if criterion == "log_loss":
        search = search_log_loss(X, value, times, **options)
    else:
        ridge = 0.0 if ridge is None and not CRITERIA[criterion].regular else ridge
        search = search_bandwidth(
            X, value, times, criterion=criterion, degree=degree, standardise=standardise, ridge=ridge, **options
        )
    found = {
        "bandwidth_": search.bandwidth,
        "smoothing_": search.smoothing,
        "relevance_": search.relevance,
        "bandwidth_search_": search,
    }
    if degree:
        found["ridge_"] = search.ridge
    if criterion == "log_loss" or CRITERIA[criterion].exclude_self:
        found |= {"loo_error_": search.error, "loo_empty_windows_": search.empty_windows}
    return found


def _checked_groups(group: NDArray[np.int64], bandwidth: Any) -> NDArray[np.int64]:
    """Return the group of each row; raise if all rows are in one group, or the criterion cannot hold out groups.

    Given numbers, and rules of thumb, which look at X alone, hold no rows out. They need two groups all the same, since
    leave-cluster-out methods of the fitted model do hold rows out.
    """
    check_groups(group, bandwidth if isinstance(bandwidth, str) and bandwidth not in RULES else "loo")
    return group


def given_bandwidth(bandwidth: Any, columns: int, kernel: Kernel, convention: str) -> Array:
    """Convert bandwidths from the units of `convention` to those of this package, ``"support"``; one per column."""
    given = as_bandwidth(bandwidth, columns)
    return np.where(given == INFINITE, np.inf, convert_bandwidth(given, kernel, source=convention))


def given_smoothing(smoothing: Any, categories: Categories) -> Array:
    """Validate smoothing parameters given for categorical columns, and return them as an array.

    Where there are categorical columns, they must be given if the bandwidth is not searched for.
    """
    largest = categories.largest
    if smoothing is None and len(categories):
        raise ValueError(
            f"smoothing must be one number per categorical column, {len(categories)} in all, when bandwidth is not "
            "'regularised', 'loo', 'aicc', 'gcv' or, for classes, 'log_loss', which find it"
        )
    given = np.zeros(0) if smoothing is None else np.atleast_1d(np.asarray(smoothing, dtype=float))
    if given.shape != largest.shape:
        raise ValueError(
            f"smoothing must be one number per categorical column, {len(categories)} in all, "
            f"got {abbreviate(smoothing)}"
        )
    if not np.all((given >= 0.0) & (given <= largest)):
        raise ValueError(f"smoothing must lie in [0, {largest.tolist()}] column by column, got {abbreviate(smoothing)}")
    return given


def in_order_of_columns(
    found: dict[str, Any], names: Sequence[Any] | None, encoding: Encoding | None
) -> dict[str, Any]:
    """Reorder the relevances of a bandwidth search to match the table's columns; add the column names to the search.

    `found` is from `choose_bandwidth`, which has numeric columns first. Without a search it is returned as it is.
    """
    if "relevance_" not in found:
        return found
    search, relevance = found["bandwidth_search_"], found["relevance_"]
    order = range(relevance.size) if encoding is None else (*encoding.numeric, *encoding.categorical)
    if names is not None and len(order) == relevance.size:
        search = replace(search, names=tuple(str(names[i]) for i in order))
    if encoding is not None:
        # Levels alone are searched with one column of zeros before them, which is no column of the table.
        relevance, by_search = np.zeros(len(encoding.kinds)), relevance[relevance.size - len(order) :]
        relevance[list(order)] = by_search
    return found | {"bandwidth_search_": search, "relevance_": relevance}


def _rule_or_plugin(bandwidth: str, X: Array, value: Array, times: Array, kernel: Kernel) -> Array:
    """Compute bandwidths by a rule of thumb, or by the plug-in method for one column and one output."""
    if bandwidth in RULES:
        return rule_of_thumb(X, times, rule=bandwidth, kernel=kernel)
    if X.shape[1] != 1 or value.shape[1] != 1:
        raise ValueError(
            f"bandwidth='plugin' is for one column and one output, got {X.shape[1]} columns and "
            f"{value.shape[1]} outputs; use 'regularised', 'loo', 'aicc' or 'gcv'"
        )
    return np.array([plugin_bandwidth(X[:, 0], value.ravel(), times, kernel=kernel)])


DEFAULT_SEARCH_ROWS = 10_000


class SearchDraw(NamedTuple):
    """Size and seed of the random sample of rows by which an out-of-core fit chose its bandwidth.

    The sample is the rows with the smallest random numbers.

    Parameters
    ----------
    size : int
        How many, or all rows if there are fewer.
    seed : int
        Of the numbers.
    """

    size: int
    seed: int


def seed_of(random_state: Any) -> int:
    """Draw from `random_state` the integer seed by which rows are sampled."""
    return int(check_random_state(random_state).randint(np.iinfo(np.int32).max))


def bandwidth_of_sample(
    sample: RowSample | None, flat: bool, labels: Any = None, *, bandwidth: str, random_state: Any, **options: Any
) -> dict[str, Any]:
    """Choose the bandwidth on a sample of rows, and rescale it to the number of all rows.

    Parameters
    ----------
    sample : RowSample or None
        From `draw`.
    flat : bool
        Whether the outputs are one column without an axis.
    labels : sequence, optional
        Names of the columns, which are looked at for row numbers.
    bandwidth, random_state, **options
        As in `choose_bandwidth`, which returns the same attributes but for `bandwidth_note_`.
    """
    if sample is None or not sample.rows:
        raise ValueError(
            "there are no rows of positive weight: the rows given as X are empty, or all of their weights are zero; "
            "give at least one row of positive weight"
        )
    value = sample.value[:, 0] if flat else sample.value
    weight = None if np.all(sample.weight == 1.0) else sample.weight
    if labels is not None:
        for sentence in suspect_numbers(labels, sample.key, whole=len(sample.key) == sample.rows):
            warn_caller(sentence, SuspectColumnWarning)
    no_code = np.zeros((len(value), 0), dtype=np.int64)
    warn_of_copies(sample.key, no_code, value, weight, takes_groups=False, bandwidth=bandwidth)
    found = choose_bandwidth(sample.key, value, weight, bandwidth=bandwidth, random_state=random_state, **options)
    found["key_range_"] = sample.key_range
    few, many = len(sample.key), sample.rows
    if few == many:
        return found | {"bandwidth_note_": f"{bandwidth!r} on all {many} rows"}
    return found | rescale_to_all_rows(found, bandwidth, few, many, random_state)
