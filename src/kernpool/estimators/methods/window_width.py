"""Bandwidths and windows of a fit: the least number of effective rows, or the number of neighbors."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from kernpool.bandwidth import CRITERIA, RULES, TrainingRows
from kernpool.bandwidth.search import Found
from kernpool.bandwidth.search.neighbors import search_neighbors
from kernpool.core import Categories
from kernpool.estimators.bandwidth import choose_bandwidth, search_options
from kernpool.estimators.fitted_model import smoother_of_rows
from kernpool.estimators.methods.robust_regression import choose_robustly
from kernpool.estimators.model import FittedModel
from kernpool.pooling.widths import Floor, Nearest, count_neighbors
from kernpool.smoother import Smoother
from kernpool.smoother.windows import effective_rows

OWN_SEARCHES = ("regularised", "log_loss")  # whose numbers are of no published method
MEDIAN_ROWS = 1000  # whose effective rows say what is usual


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
    single = rows.X.shape[1] == 1 and (rows.code is None or not rows.code.shape[1])
    if isinstance(model.window, Nearest) and single and isinstance(bandwidth, str) and bandwidth not in RULES:
        bandwidth = "scott"  # the ratio of a single column needs no search
    if model.robust:
        found = choose_robustly(model, bandwidth, rows, categories)
    else:
        options = search_options(model)
        found = choose_bandwidth(bandwidth, rows, options, categories=categories, smoothing=model.smoothing)
    rows = rows.take(np.flatnonzero(rows.weight > 0))
    return (find_neighbors if isinstance(model.window, Nearest) else find_floor)(model, found, rows, categories)


def find_floor(model: FittedModel, found: Found, rows: TrainingRows, categories: Categories) -> Found:
    """Choose the least number of effective rows of windows; see `kernpool.smoother.windows`.

    Leave-one-out errors, if they are of all rows, become those in these windows.
    """
    window, floor = model.window, model._floor
    searched = isinstance(model.bandwidth, str) and model.bandwidth in OWN_SEARCHES
    varies = np.any(rows.X[:1] != rows.X) and len(rows.X) > 2
    if not varies or not (isinstance(window, Floor) or (window == "auto" and floor and searched)):
        return found
    smoother = smoother_of_rows(model, found, rows, categories)
    if isinstance(window, Floor):
        least = window.rows
    else:
        some = np.sort(np.random.default_rng(0).permutation(len(rows.X))[:MEDIAN_ROWS])
        usual = (
            np.median(effective_rows(smoother.left_out_problem(rows.exclusion).block(some), smoother.sums)) / rows.unit
        )
        least = min(floor, max(float(usual), 1.0))
    found = replace(found, min_effective_rows=float(least))
    smoother = replace(smoother, least_rows=found.min_effective_rows)
    if found.loo_error is None or found.bandwidth_note is not None:
        return found
    widened = smoother.training_points(rows.exclusion).widening is not None
    return _with_errors(found, smoother) if widened else found


def find_neighbors(model: FittedModel, found: Found, rows: TrainingRows, categories: Categories) -> Found:
    """Choose the number of neighbors in a window: the one given, or the one that a search finds.

    Leave-one-out errors become those in these windows, except for criteria that leave no row out.
    """
    if rows.exclusion is not None and rows.exclusion.gap:
        raise ValueError(
            f"gap must be 0 where windows follow the rows, got gap={rows.exclusion.gap} and "
            f"window={model.window}; use window='fixed'"
        )
    named = model.bandwidth if isinstance(model.bandwidth, str) else "loo"
    criterion = CRITERIA.get(named, CRITERIA["loo"])  # rules of thumb and log losses of classes search nothing here
    smoother = smoother_of_rows(model, found, rows, categories)
    in_sample = smoother.problem(smoother.training_points(rows.exclusion))
    asked = model.window.k if isinstance(model.window, Nearest) else None
    if asked is None:
        found = replace(found, search_rows=None)  # all rows have a say in the number
        problem = smoother.left_out_problem(rows.exclusion) if criterion.exclude_self else in_sample
        k = search_neighbors(problem, criterion, smoother.recipe, search_options(model).seconds)
    else:
        units = count_neighbors(asked, in_sample)
        k = round(units)
        if abs(k - units) > 1e-9 * units:  # sums of weights are rounded
            raise ValueError(
                f"window={model.window} of a total weight of {rows.weight.sum():g} is {units:g} rows, and "
                "windows reach to a whole number; give k as a number of rows, or sample_weight in whole rows"
            )
    # A share of priors by rows held out was found in windows of fixed width.
    found = replace(found, n_neighbors=k, prior_share=None)
    known = criterion.exclude_self and (asked is None or found.loo_error is not None)
    return _with_errors(found, replace(smoother, n_neighbors=k)) if known else found


def _with_errors(found: Found, smoother: Smoother) -> Found:
    """Add the leave-one-out error in windows of all rows, and the number of empty ones."""
    one = smoother.leave_one_out()
    return replace(found, loo_error=one.error, loo_empty_windows=int(np.count_nonzero(~one.occupied)))
