"""Windows of a fit: the least number of effective rows, or the number of neighbors, given or searched for."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from kernpool.bandwidth import CRITERIA, TrainingRows
from kernpool.bandwidth.search.neighbors import search_neighbors
from kernpool.core import Categories
from kernpool.estimators.bandwidth import search_options
from kernpool.estimators.fitted_model import smoother_of_rows
from kernpool.estimators.model import FittedModel, follows_rows
from kernpool.pooling.widths import Floor, Nearest, count_neighbors
from kernpool.smoother.windows import effective_rows

OWN_SEARCHES = ("regularised", "log_loss")  # whose numbers are of no published method
MEDIAN_ROWS = 1000  # whose effective rows say what is usual


def find_floor(model: FittedModel, found: dict[str, Any], rows: TrainingRows, categories: Categories) -> dict[str, Any]:
    """Choose the least number of effective rows of windows; see `kernpool.smoother.windows`.

    Parameters
    ----------
    model : estimator
        Its parameters.
    found : dict
        From `choose_bandwidth`.
    rows : TrainingRows
        Training rows.
    categories : Categories
        Categories of their codes.

    Returns
    -------
    dict
        `min_effective_rows_`, None for no floor; and `loo_error_` and `loo_empty_windows_` in these windows, if `found`
        has them of all rows.
    """
    window, floor = model.window, model._floor
    searched = isinstance(model.bandwidth, str) and model.bandwidth in OWN_SEARCHES
    rows = rows.take(np.flatnonzero(rows.weight > 0))
    varies = np.any(rows.X[:1] != rows.X) and len(rows.X) > 2
    if follows_rows(model):
        return find_neighbors(model, found, rows, categories)
    if not varies or not (isinstance(window, Floor) or (window == "auto" and floor and searched)):
        return {"min_effective_rows_": None}
    smoother = smoother_of_rows(model, found, rows, categories)
    if isinstance(window, Floor):
        least = window.rows
    else:
        some = np.sort(np.random.default_rng(0).permutation(len(rows.X))[:MEDIAN_ROWS])
        usual = np.median(effective_rows(smoother.left_out_problem(rows.group).block(some), smoother.sums)) / rows.unit
        least = min(floor, max(float(usual), 1.0))
    windows = {"min_effective_rows_": float(least)}
    if "loo_error_" not in found or "bandwidth_note_" in found:
        return windows
    smoother = replace(smoother, least_rows=windows["min_effective_rows_"])
    if smoother.training_points(rows.group).widening is None:
        return windows
    one = smoother.leave_one_out(rows.group)
    return windows | {"loo_error_": one.error, "loo_empty_windows_": int(np.count_nonzero(~one.occupied))}


def find_neighbors(
    model: FittedModel, found: dict[str, Any], rows: TrainingRows, categories: Categories
) -> dict[str, Any]:
    """Choose the number of neighbors in a window: the one given, or the one that a search finds.

    Parameters are those of `find_floor`; rows have positive weight.

    Returns
    -------
    dict
        `n_neighbors_`; and `loo_error_` and `loo_empty_windows_` in these windows, except for criteria that leave no
        row out.
    """
    if rows.order is not None:
        raise ValueError(
            f"gap must be 0 where windows follow the rows, got gap={rows.order.gap} and "
            f"window={model.window}; use window='fixed'"
        )
    named = model.bandwidth if isinstance(model.bandwidth, str) else "loo"
    criterion = CRITERIA.get(named, CRITERIA["loo"])  # rules of thumb and log losses of classes search nothing here
    smoother = smoother_of_rows(model, found, rows, categories)
    in_sample = smoother.problem(smoother.training_points(rows.group))
    found.pop("prior_share_", None)  # that of rows held out was found in windows of fixed width
    asked = model.window.k if isinstance(model.window, Nearest) else None
    if asked is None:
        found.pop("search_rows_", None)  # all rows have a say in the number
        problem = smoother.left_out_problem(rows.group) if criterion.exclude_self else in_sample
        k = search_neighbors(problem, criterion, smoother.recipe, search_options(model).seconds)
    else:
        units = count_neighbors(asked, in_sample)
        k = round(units)
        if abs(k - units) > 1e-9 * units:  # sums of weights are rounded
            raise ValueError(
                f"window={model.window} of a total weight of {rows.weight.sum():g} is {units:g} rows, and "
                "windows reach to a whole number; give k as a number of rows, or sample_weight in whole rows"
            )
    windows = {"min_effective_rows_": None, "n_neighbors_": k}
    if not criterion.exclude_self or not (asked is None or "loo_error_" in found):
        return windows
    return windows | _left_out(model, found | windows, rows, categories)


def _left_out(model: FittedModel, found: dict[str, Any], rows: TrainingRows, categories: Categories) -> dict[str, Any]:
    """Return the leave-one-out error of windows of all rows, and the number of empty ones."""
    one = smoother_of_rows(model, found, rows, categories).leave_one_out(rows.group)
    return {"loo_error_": one.error, "loo_empty_windows_": int(np.count_nonzero(~one.occupied))}
