"""The bandwidth of an estimator: given in some convention, from a rule or the plug-in, or searched for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from kernpool.bandwidth import CRITERIA, RULES, rule_of_thumb, search_bandwidth, search_log_loss
from kernpool.bandwidth.categories import NO_CATEGORIES, Categories
from kernpool.bandwidth.criteria import check_groups
from kernpool.bandwidth.plugin.plugin import plugin_bandwidth
from kernpool.bandwidth.rate import bring_to_rows
from kernpool.data.checks import INFINITE, as_bandwidth
from kernpool.data.frames import Encoding
from kernpool.estimators.searched_rows import drawn_rows
from kernpool.execution.messages import abbreviate
from kernpool.execution.progress import current_progress
from kernpool.execution.warnings import warn_caller
from kernpool.kernels import Kernel, convert_bandwidth, get_kernel

Array = NDArray[np.float64]


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
    """Find the bandwidth of some rows.

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
            "bandwidth_": _by_name(bandwidth, X, value, times, kernel),
            "smoothing_": given_smoothing(smoothing, categories),
        }
    if len(X) == 1 and times[0] <= 1:
        warn_caller(f"bandwidth={bandwidth!r} needs more than one row; using the rule of Scott instead")
        nothing = {"smoothing_": np.zeros(len(categories)), "loo_error_": np.nan, "loo_empty_windows_": 0}
        return as_given | nothing | {"bandwidth_": rule_of_thumb(X, times, kernel=kernel)}
    if smoothing is not None:
        raise ValueError(
            f"smoothing is searched for with bandwidth={bandwidth!r}; leave it None, or give bandwidths too"
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
    found |= of_all_rows(found, bandwidth, len(X), drawn.of, said_seed)
    return found | {"search_rows_": np.flatnonzero(kept)[drawn.number].astype(np.int64)}


def of_all_rows(found: dict[str, Any], name: str, few: int, many: int, random_state: Any) -> dict[str, Any]:
    """Return the bandwidths of all rows, given those of a sample, and say so.

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
    """Return what a search by a criterion finds."""
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
    """Return groups that bandwidths can be found with.

    A number, and a rule, which looks at X alone, leave nothing out; what is asked of the model later does.
    """
    check_groups(group, bandwidth if isinstance(bandwidth, str) and bandwidth not in RULES else "loo")
    return group


def given_bandwidth(bandwidth: Any, columns: int, kernel: Kernel, convention: str) -> Array:
    """Return one bandwidth per column, in the convention ``"support"``, from one that was given as numbers."""
    given = as_bandwidth(bandwidth, columns)
    return np.where(given == INFINITE, np.inf, convert_bandwidth(given, kernel, source=convention))


def given_smoothing(smoothing: Any, categories: Categories) -> Array:
    """Return the smoothings that were given, which must go with bandwidths that are not searched for."""
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
    """Return what a search found, with the names of columns, and relevances in the order of the table.

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


def _by_name(bandwidth: str, X: Array, value: Array, times: Array, kernel: Kernel) -> Array:
    """Return the bandwidth of a rule, or that of the plug-in."""
    if bandwidth in RULES:
        return rule_of_thumb(X, times, rule=bandwidth, kernel=kernel)
    if X.shape[1] != 1 or value.shape[1] != 1:
        raise ValueError(
            f"bandwidth='plugin' is for one column and one output, got {X.shape[1]} columns and "
            f"{value.shape[1]} outputs; use 'regularised', 'loo', 'aicc' or 'gcv'"
        )
    return np.array([plugin_bandwidth(X[:, 0], value.ravel(), times, kernel=kernel)])
