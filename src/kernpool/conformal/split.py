"""Split conformal and jackknife intervals, of constant width or of a width that follows the noise.

    m(q) +- S_(k),   m(q) +- s(q) (S_i / s_-i(x_i))_(k)

The scores S_i = |y_i - m(x_i)| are those of calibration rows, or leave-one-out scores of training rows. The scale s
is the kernel mean of the absolute training residuals at three times the bandwidth. With calibration rows both
intervals are split conformal [1]_, for any scale that depends on the training rows alone [2]_. With training rows
the first one is the jackknife, which covers in the limit where the fit hardly depends on any one row [3]_.

References
----------
.. [1] H. Papadopoulos, K. Proedrou, V. Vovk and A. Gammerman, "Inductive confidence machines for regression", ECML
   (2002), 345-356.
.. [2] J. Lei, M. G'Sell, A. Rinaldo, R. J. Tibshirani and L. Wasserman, "Distribution-free predictive inference for
   regression", JASA 113 (2018), 1094-1111, sections 2.2 and 5.2.
.. [3] L. Steinberger and H. Leeb, "Conditional predictive inference for stable algorithms", Annals of Statistics 51
   (2023), 290-311.
"""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from kernpool.conformal.calibration import Bounds, ConformalProblem, predict, predict_problem, thinned
from kernpool.conformal.covariate_shift import upper_scores
from kernpool.conformal.order_statistics import cluster_weight, upper_rank, upper_statistic
from kernpool.inference.variance.residuals import nothing_left
from kernpool.smoother.linear_smoother import Smoother

Array = NDArray[np.float64]

WIDER = 3.0  # bandwidths of the scale: a mean of absolute residuals is rougher than the mean of outputs
NO_SCALE = (
    "too many rows have no other row in their window, or have residuals where all rows around them have none, as "
    "copies of rows do; drop duplicates or give groups=, use a larger bandwidth, or a kernel of infinite support"
)
LEAST_SCALE = 1e-3  # of the median scale: flat parts without noise would let the ratio of one row decide everything


def score_quantile(setting: ConformalProblem, score: Array) -> Array:
    """Return the order statistic of each column of scores that bounds intervals of the level.

    Parameters
    ----------
    setting : ConformalProblem
        Level and calibration rows.
    score : ndarray of shape (n, c)
        Without NaN.

    Returns
    -------
    ndarray of shape (c,), or (m, c) under a shift
        Infinite if there are too few rows; each cluster counts as one row.
    """
    calibration = setting.calibration
    if calibration.shift is not None:
        assert calibration.place_shift is not None
        return upper_scores(score, calibration.weight, calibration.shift, calibration.place_shift, setting.level)
    if calibration.group is not None:
        weight, count = cluster_weight(calibration.group, calibration.weight), float(calibration.clusters)
        return upper_statistic(score.T, weight, float(setting.level * (int(count) + 1)))
    rank = upper_rank(setting.level, calibration.rows)
    return upper_statistic(score.T, calibration.unit_weight, rank)


def constant_width(setting: ConformalProblem) -> Bounds:
    """Compute intervals of constant width: jackknife for training rows, split conformal for other rows."""
    return around(setting.prediction, score_quantile(setting, setting.calibration.score))


def adaptive(setting: ConformalProblem) -> Bounds:
    """Compute intervals scaled by the local noise: jackknife for training rows, split conformal for other rows."""
    score, rounding = setting.calibration.score, nothing_left(setting.smoother.value[setting.smoother.weight > 0])
    there, at_rows = _scales(setting)
    scaled = np.divide(score, at_rows, out=np.full_like(score, np.inf), where=at_rows > rounding)
    scaled[scaled * LEAST_SCALE > 1.0] = np.inf  # over a scale of zero, but for neighbours far away
    scaled[score <= rounding] = 0.0
    quantile = score_quantile(setting, scaled)
    with np.errstate(invalid="ignore"):
        width = np.where(np.isinf(quantile), np.inf, there * quantile)
    return around(setting.prediction, width)


def around(center: Array, width: Array) -> Bounds:
    """Return intervals of given half widths around a prediction; infinite where there is none."""
    lower, upper = center - width, center + width
    unknown = np.isnan(center)
    if unknown.any():
        lower[unknown], upper[unknown] = -np.inf, np.inf
    return Bounds(lower, upper, center)


def _scales(setting: ConformalProblem) -> tuple[Array, Array]:
    """Return the mean absolute residual around each point and each calibration row, bounded from below."""
    smoother, calibration = setting.smoother, setting.calibration
    code = setting.training_code
    scale = residual_scale(smoother, smoother.value - setting.left_out)
    problem = scale.problem(scale.training, exclude_self=code is None)
    whole = predict_problem(scale, problem if code is None else problem.with_groups(code, code))
    there = predict(scale, setting.places)
    weight = smoother.weight
    floor = LEAST_SCALE * upper_statistic(whole[weight > 0].T, weight[weight > 0], 0.5 * weight.sum())
    at_rows = whole[calibration.which] if calibration.own else predict(scale, calibration.places)
    return np.maximum(there, floor), np.maximum(at_rows, floor)


def residual_scale(smoother: Smoother, residual: Array) -> Smoother:
    """Return the local mean of absolute residuals, as a smoother of the same rows.

    Parameters
    ----------
    smoother : Smoother
        The fit.
    residual : ndarray of shape (n, c)
        Residuals of its rows; NaN where no other row is in the window, and then the row is ignored.

    Returns
    -------
    Smoother
        Local constant, at three times the bandwidth; in an empty window, the mean of all rows.
    """
    known = np.asarray(~np.isnan(residual).any(axis=1))
    weight = np.where(known, smoother.weight, 0.0)
    wide = smoother.of_degree(0).widened(WIDER, levels=False)
    wide = replace(wide, recipe=replace(wide.recipe, empty="mean"))
    if not weight.any():  # nothing is known of the noise: one width everywhere
        return wide.with_values(np.ones_like(residual))
    return thinned(wide, weight).with_values(np.where(known[:, None], np.abs(residual), 0.0))
