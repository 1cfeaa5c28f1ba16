r"""Robust kernel regression: re-weighting by residuals, bandwidths by a bounded loss, and pseudovalues for inference.

A robust fit is a pool with the weights ``w_j B_j``, where B are bisquare or Huber weights of the residuals of the fit
before. With a compact kernel zero weights are `RESERVE` times the weight of the pass before, so that a window of
outliers alone has the fit of that pass, and no other window notices.

Bandwidths minimise a bounded loss of the leave-one-out residuals r of robust fits, Tukey's rho at 4.685 scales, with
one scale for all candidates. Squared errors and even Huber's loss prefer bandwidths that follow outliers: at 15 percent
of outliers on one side they led to errors of four to nine times those of the bounded loss.

Inference is that of a plain fit to pseudovalues (Huber 1981, section 7.6), with the same linear weights as without
outliers,

.. math:: \tilde y_j = \hat y_j + s\, \psi(e_j / s) \Big/ \overline{\psi'}

References
----------
P. J. Huber, "Robust Statistics", Wiley (1981).
W. S. Cleveland, "Robust locally weighted regression and smoothing scatterplots", JASA 74 (1979), 829-836.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.optimize import minimize_scalar
from sklearn.utils import check_random_state

from kernpool._arrays import Array, Flags
from kernpool.bandwidth import RULES, BandwidthSearch, SearchOptions, TrainingRows
from kernpool.bandwidth.search import Found, distinct_rows
from kernpool.bandwidth.search.held_out import rescale_to_all_rows
from kernpool.bandwidth.search.objective import cost_of_empty, narrowest, widest_minimum
from kernpool.bandwidth.search.setup import candidates
from kernpool.core import Categories, Reweighting, weighted_median
from kernpool.core.input_validation import column_spread
from kernpool.core.robust_weights import NORMAL, least_scale
from kernpool.estimators.fitted_model import smoother_of_rows
from kernpool.estimators.model import FittedModel
from kernpool.execution import warn_caller
from kernpool.pooling import Floor, Nearest
from kernpool.smoother import Smoother

TUKEY = 4.685  # standard deviations at which the bounded loss becomes constant
SEARCHES = ("regularised", "loo")
SEARCH_ROWS, FEWEST_ROWS = 2048, 11  # half of which keep a weight near one, and inference needs five
FACTORS = np.geomspace(1 / 8, 8, 25)  # of bandwidths of several columns, whose ratios are known
TOLERANCE = 1e-4  # of the logarithm of a factor
LEAST_WEIGHT = 1e-3  # of rows that a search of ratios counts


def _left_out(plain: Smoother, reweighting: Reweighting) -> tuple[Array, Flags]:
    """Return residuals of rows by robust fits without one unit of the row, and which rows are alone."""
    robust, _ = plain.row_weights(reweighting)
    training = plain.with_weight(plain.weight * robust).training_fit
    share = 1.0 - robust * training.leverage
    with np.errstate(divide="ignore", invalid="ignore"):
        residual = (training.value - training.fitted)[:, 0] / share
    alone = ~(share > 1e-9)
    return np.where(alone, (training.value - training.deleted)[:, 0], residual), alone


def choose_robustly(
    model: FittedModel,
    bandwidth: Any,
    rows: TrainingRows,
    categories: Categories,
    choose: Callable[[TrainingRows], Found],
    options: SearchOptions,
) -> Found:
    """Choose bandwidths of a robust fit, and compute the robustness weights of its rows.

    Parameters
    ----------
    model : estimator
        Its parameters, checked.
    bandwidth : str or array_like
        Its bandwidth, of numbers in the columns of the rows.
    rows : TrainingRows
        All rows, numeric columns in the units in which they are compared.
    categories : Categories
        Of their codes.
    choose : callable
        Choice of the bandwidths of some rows by squared errors.
    options : SearchOptions
        Options of that.

    Returns
    -------
    Found
        As from `choose_bandwidth`, with robustness weights.

    Raises
    ------
    TypeError, ValueError
        If the rows have several outputs or an exclusion, or another parameter does not go with robust fits.
    """
    reweighting = Reweighting.of(model.robust)
    searched = isinstance(bandwidth, str) and bandwidth not in RULES
    _refuse_options(model, rows, searched)

    found = _search(model, reweighting, rows, categories, choose, options) if searched else choose(rows)
    weight, has_no_scale = _smoother_at(model, rows, categories, found).row_weights(reweighting)
    if has_no_scale:
        warn_caller(
            "more than half of the rows are fitted exactly, so their residuals have no scale, and the others have no "
            f"weight; where these are no outliers use a larger bandwidth, or robust=False, not {model.robust!r}"
        )
    return replace(found, reweighting=replace(reweighting, weight=weight))


def _refuse_options(model: FittedModel, rows: TrainingRows, searched: bool) -> None:
    """Raise if a parameter or the rows do not go with a robust fit."""
    units = rows.weight.sum()
    for refused, reason in (
        (rows.value.shape[1] > 1,
         f"is for one output, got {rows.value.shape[1]} columns of y; fit one model for each"),
        (rows.exclusion is not None,
         f"finds bandwidths and weights by rows, not by {rows.exclusion and rows.exclusion.option}; leave these out of "
         "fit, and give them to confidence_interval, or use robust=False"),
        (isinstance(model.window, Nearest), f"is for fixed windows, got window={model.window}; use window='fixed'"),
        (isinstance(model.window, Floor), f"has no floor of effective rows, got window={model.window}; leave it out"),
        (searched and model.bandwidth not in SEARCHES,
         "finds bandwidths by a bounded loss of leave-one-out residuals, which takes the place of 'regularised' and "
         f"'loo', got bandwidth={model.bandwidth!r}; use one of these, a rule, or numbers"),
        (searched and not units >= FEWEST_ROWS,
         f"needs at least {FEWEST_ROWS} rows to find a bandwidth, got {units:g}; give more rows, or the bandwidth as a "
         "number"),
    ):  # fmt: skip
        if refused:
            raise ValueError(f"robust={model.robust!r} {reason}")


def _smoother_at(model: FittedModel, rows: TrainingRows, categories: Categories, found: Found) -> Smoother:
    """Return the smoother of rows without robustness weights, at the bandwidths that were found."""
    rows = replace(rows, X=rows.X.astype(np.float64), value=rows.value.astype(np.float64))
    return smoother_of_rows(model, found, rows, categories)


def _search(
    model: FittedModel,
    reweighting: Reweighting,
    rows: TrainingRows,
    categories: Categories,
    choose: Callable[[TrainingRows], Found],
    options: SearchOptions,
) -> Found:
    """Find bandwidths by the bounded loss; the ratios of several by a search on re-weighted rows.

    The second search counts rows by the robustness weights of a fit at the bandwidths of the first one.
    """
    counted = np.flatnonzero(rows.weight > 0)
    rows = rows.take(counted)
    drawn, most = rows, options.rows
    most = min(most, SEARCH_ROWS) if isinstance(most, int | np.integer) else SEARCH_ROWS
    if len(rows.X) > most:
        distinct, which = distinct_rows(rows)
        some = distinct.drawn(most, check_random_state(options.random_state))
        drawn = distinct.take(some)
    spread = column_spread(drawn.X, drawn.weight, drawn.geometry)
    one_factor = not categories.kernels and drawn.bandwidths == 1
    seconds = time.perf_counter()
    least = narrowest(drawn, options.kernel)
    if one_factor:
        found = Found(spread, np.zeros(0), 0.0 if model._degree else None)
        grid = candidates(drawn, spread, options, least)
    else:
        pilot = choose(drawn)
        weight, _ = _smoother_at(model, drawn, categories, pilot).row_weights(reweighting)
        found = choose(replace(drawn, weight=drawn.weight * np.where(weight > LEAST_WEIGHT, weight, 0.0)))
        # At most one, but for rounding.
        grid = FACTORS[(least / found.bandwidth).max() - 1e-9 <= FACTORS]
    factor, losses = best_factor(_smoother_at(model, drawn, categories, found), reweighting, grid)
    one, tried, before = found.bandwidth, np.array(sorted(losses)), found.bandwidth_search
    bandwidth = one * factor
    relevance = np.where(drawn.extent > 0, spread / bandwidth, 0.0) if before is None else before.relevance
    widths = np.column_stack([tried[:, None] * one, np.tile(found.smoothing, (len(tried), 1))])
    search = BandwidthSearch(
        "bounded", losses[factor], bandwidth, found.smoothing, relevance, spread,
        one_factor, losses[factor], 0, widths, np.array([losses[f] for f in tried]),
        len(losses), len(grid), len(drawn.X), time.perf_counter() - seconds, "the best of a grid, refined",
        ridge=found.ridge or 0.0,
    )  # fmt: skip
    found = Found(bandwidth, found.smoothing, found.ridge, search)
    if drawn is rows:
        return found
    found = rescale_to_all_rows(found, str(model.bandwidth), len(drawn.X), len(rows.X), options)
    return replace(found, search_rows=counted[np.isin(which, some)])


def best_factor(plain: Smoother, reweighting: Reweighting, grid: Array) -> tuple[float, dict[float, float]]:
    """Return the factor of the bandwidths that minimises the bounded loss, refined between points of a grid.

    Parameters
    ----------
    plain : Smoother
        Rows without robustness weights, with the bandwidths of factor one.
    reweighting : Reweighting
        How rows are weighted by their residuals.
    grid : ndarray
        Factors, in ascending order.

    Returns
    -------
    float
        Of equal losses that of the widest windows.
    dict
        The loss of every factor that was tried, in squared units of y: a mean of squares of small residuals.
    """
    weight = plain.weight

    def left_out(factor: float) -> tuple[Array, Flags]:
        recipe = replace(plain.recipe, bandwidth=factor * plain.recipe.bandwidth)
        return _left_out(replace(plain, recipe=recipe), reweighting)

    found = {float(factor): left_out(factor) for factor in grid}
    value = plain.value[:, 0]
    largest = float(np.abs(value - np.median(value)).max())
    # Where half of the rows are fitted exactly rounding errors would be the scale, and choose among such bandwidths.
    # The larger of both counts: which median of rounding errors is the least depends on the unit of x.
    median, least = min(
        (
            (weighted_median(np.abs(residual), weight), least_scale(residual, largest, weight))
            for residual, _ in found.values()
        ),
        key=max,
    )
    scale = TUKEY * NORMAL * max(median, least)
    if not scale > 0:
        return float(grid[-1]), dict.fromkeys(found, 0.0)

    def loss(residual: Array, alone: Flags) -> float:
        visible = np.where(np.abs(residual) > least, residual, 0.0)
        inside = np.maximum(1.0 - (visible / scale) ** 2, 0.0)
        mean = scale**2 / 3.0 * float(weight @ (1.0 - inside**3) / weight.sum())
        return mean * float(np.exp(cost_of_empty(alone, weight)))

    losses = {factor: loss(*one) for factor, one in found.items()}
    best = max(range(len(grid)), key=lambda i: (-losses[float(grid[i])], i))
    bounds = np.log([grid[max(best - 1, 0)], grid[min(best + 1, len(grid) - 1)]])

    def at(log: float) -> float:
        factor = float(np.exp(log))
        losses[factor] = loss(*left_out(factor))
        return losses[factor]

    if bounds[0] < bounds[1]:
        minimize_scalar(at, bounds=bounds, method="bounded", options={"xatol": TOLERANCE})
    factors = np.array(list(losses))
    return float(factors[widest_minimum(np.log(factors[:, None]), np.array(list(losses.values())))]), losses
