r"""Jackknife+ and jackknife-minmax: predictions at a place by fits that leave out each training row.

.. math:: \big[\, (\hat m_{-i}(q) - R_i)_{(k_{\mathrm{low}})},\; (\hat m_{-i}(q) + R_i)_{(k_{\mathrm{up}})} \,\big],
.. math:: \big[\, \min_i \hat m_{-i}(q) - R_{(k_{\mathrm{up}})},\;
          \max_i \hat m_{-i}(q) + R_{(k_{\mathrm{up}})} \,\big]

with leave-one-out residuals R [1]_. Nothing large is subtracted: the change of the fit is added to it, and where a row
has more than half of a local fit the others are summed again.

References
----------
.. [1] R. F. Barber, E. J. Candes, A. Ramdas and R. J. Tibshirani, "Predictive inference with the jackknife+", Annals of
   Statistics 49 (2021), 486-507, theorems 1 and 3.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from kernpool.conformal.designs import PAIRS_AT_ONCE, TOO_MANY, Designs, check_pairs, pair_logits
from kernpool.conformal.predicting import filled
from kernpool.conformal.ranks import upper_rank, upper_statistic
from kernpool.conformal.setting import Bounds, Setting
from kernpool.execution.threads import cut, resolve_n_jobs, run_blocks

Array = NDArray[np.float64]
Rows = NDArray[np.intp]
Ends = Callable[[int, Array], tuple[Array, Array]]

LARGE_LEVERAGE = 0.5  # 1 - g keeps its digits up to here


def jackknife_plus(setting: Setting) -> Bounds:
    """Find intervals of the jackknife+; of clusters, those of fits without each cluster."""
    if setting.calibration.group is not None:
        from kernpool.conformal.folds import cluster_plus  # which calibrates by folds that are clusters

        return cluster_plus(setting)
    calibration, level = setting.calibration, setting.level
    rank, weight, score = upper_rank(level, calibration.rows), calibration.unit_weight, calibration.score

    def ends(output: int, without: Array) -> tuple[Array, Array]:
        reach = score[:, output]
        lower = -upper_statistic(_plus(-without, reach), weight, rank)
        return lower, upper_statistic(_plus(without, reach), weight, rank)

    return _tiled(setting, "jackknife+", ends)


def minmax(setting: Setting) -> Bounds:
    """Find intervals of the jackknife-minmax."""
    calibration = setting.calibration
    rank = upper_rank(setting.level, calibration.rows)
    width = upper_statistic(calibration.score.T, calibration.unit_weight, rank)

    def ends(output: int, without: Array) -> tuple[Array, Array]:
        unknown = np.isnan(without)
        lower = np.where(unknown, -np.inf, without).min(axis=1) - width[output]
        return lower, np.where(unknown, np.inf, without).max(axis=1) + width[output]

    return _tiled(setting, "minmax", ends)


def _plus(without: Array, reach: Array) -> Array:
    """Return predictions plus residuals; infinite where one of them is unknown."""
    with np.errstate(invalid="ignore"):
        ends = without + reach
    unknown = np.isnan(without)
    if unknown.any():
        ends[unknown] = np.inf
    return ends


def _tiled(setting: Setting, method: str, ends: Ends) -> Bounds:
    """Find both ends from predictions without each calibration row, some places at a time.

    Parameters
    ----------
    setting : Setting
        Of training rows.
    method : str
        For messages.
    ends : callable
        Takes the number of an output and predictions of shape (places, rows), NaN where nothing else is in the window;
        returns the lower and the upper ends.
    """
    smoother, calibration = setting.smoother, setting.calibration
    places, c = len(setting.places.query), smoother.value.shape[1]
    check_pairs(method, places, len(calibration.weight), TOO_MANY)
    designs = Designs.of(smoother, smoother.problem(setting.places))
    lower, upper = np.full((places, c), -np.inf), np.full((places, c), np.inf)

    def work(rows: slice) -> Iterator[None]:
        found = (np.flatnonzero(np.isfinite(designs.log_mass[rows])) + rows.start).astype(np.intp)
        if found.size:
            for output, without in enumerate(_without_each(designs, setting, found)):
                lower[found, output], upper[found, output] = ends(output, without)
        yield

    blocks = cut(places, max(1, PAIRS_AT_ONCE // len(calibration.weight)))
    run_blocks(work, blocks, resolve_n_jobs(smoother.recipe.n_jobs), None)
    center, occupied = designs.fit.intercept.copy(), designs.fit.occupied
    return Bounds(lower, upper, filled(smoother, designs.problem, center, occupied))


def _without_each(designs: Designs, setting: Setting, places: Rows) -> Iterator[Array]:
    """Yield for each output the predictions at some places by fits without one unit of each calibration row.

    Of shape (places, rows); NaN where nothing else is in the window.
    """
    calibration, part = setting.calibration, designs.some(places)
    which = calibration.which
    assert which is not None
    logits, offsets = pair_logits(designs.problem, places, which)
    alpha = logits - part.log_mass[:, None]
    np.exp(alpha, out=alpha)
    if calibration.unit_weight is not None:
        alpha *= np.minimum(calibration.weight, 1.0)
    leverage, share = part.tilted(offsets)  # numbers for constants
    rest = 1.0 - (alpha * leverage if leverage.ndim else alpha)
    hard = rest < 1.0 - LARGE_LEVERAGE
    place = row = np.zeros(0, dtype=np.intp)
    if hard.any():
        place, row = np.nonzero(hard)
        rest[hard] = 1.0
    change = alpha * share if share.ndim else alpha
    change /= rest
    again = _sum_again(designs, places[place], which[row]) if place.size else None
    for output, value in enumerate(calibration.value.T):
        without = value - part.plane(offsets, output)
        without *= change
        np.subtract(part.fit.intercept[:, output, None], without, out=without)
        if again is not None:
            without[place, row] = again[:, output]
        yield without


def _sum_again(designs: Designs, places: Rows, rows: Rows) -> Array:
    """Return fits at places without one unit of a row each, of shape (k, c); NaN where nothing is left."""
    smoother = replace(designs.smoother, kept=None)
    problem = replace(designs.problem.block(places), self_index=rows.astype(np.int64))
    fit = smoother.settled(problem, smoother.sums(problem))
    return np.where(fit.occupied[:, None], fit.intercept, np.nan)
