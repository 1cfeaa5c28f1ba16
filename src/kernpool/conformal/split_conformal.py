"""Prediction intervals from scores of calibration rows: split conformal of several widths, and quantiles.

    m(q) +- S_(k),   m(q) +- s(q) (S_i / s_-i(x_i))_(k)

The scores S_i = |y_i - m(x_i)| are those of calibration rows, or leave-one-out scores of training rows. The scale s
is the kernel mean of the absolute training residuals at three times the bandwidth. With calibration rows both
intervals are split conformal [1]_, for any scale that depends on the training rows alone [2]_. The first one needs
them: one width from leave-one-out residuals has no guarantee, and covers too often where the noise is small.

Conformalised quantile regression [3]_ shifts conditional quantiles until they cover:

    [ Q_{alpha/2}(x) - C,  Q_{1-alpha/2}(x) + C ],
    C = ( max(Q_{alpha/2}(x_i) - y_i,  y_i - Q_{1-alpha/2}(x_i)) )_(k)

The quantiles Q are those of the training rows (`model.quantile`), the scores those of calibration rows, and the
rank k is that of split conformal. Scores are signed, so C < 0 narrows intervals of quantiles that cover too often.
The ends follow both spread and skewness, where ``"adaptive"`` follows the spread alone.

References
----------
.. [1] H. Papadopoulos, K. Proedrou, V. Vovk and A. Gammerman, "Inductive confidence machines for regression", ECML
   (2002), 345-356.
.. [2] J. Lei, M. G'Sell, A. Rinaldo, R. J. Tibshirani and L. Wasserman, "Distribution-free predictive inference for
   regression", JASA 113 (2018), 1094-1111, sections 2.2 and 5.2.
.. [3] Y. Romano, E. Patterson and E. J. Candes, "Conformalized quantile regression", NeurIPS 32 (2019), section 4.
"""

from dataclasses import replace

import numpy as np

from kernpool._arrays import Array
from kernpool.conformal.calibration import Bounds, ConformalProblem, upper_statistic
from kernpool.distribution import ArrayOutcomes, Quantiles
from kernpool.smoother import EvaluationPoints, Smoother

NO_SCALE = (
    "too many rows have no other row in their window, or have residuals where all rows around them have none, as "
    "copies of rows do; drop duplicates or give groups=, use a larger bandwidth, or a kernel of infinite support"
)
LEAST_SCALE = 1e-3  # of the median scale: flat parts without noise would let the ratio of one row decide everything


def constant_width(setting: ConformalProblem) -> Bounds:
    """Compute prediction intervals of constant width, by split conformal prediction."""
    return _around(setting.prediction, setting.bound(setting.score.T))


def adaptive(setting: ConformalProblem) -> Bounds:
    """Compute prediction intervals whose widths are proportional to the local noise."""
    smoother, calibration, score = setting.smoother, setting.calibration, setting.score
    scale = smoother.residual_scale if setting.scale is None else setting.scale
    whole, there = scale.left_out[0], scale.predict(scale.problem(setting.places))
    if calibration.which is None:
        at_rows = scale.predict(scale.problem(calibration.places))
    else:
        at_rows = whole[calibration.which]
    kept = smoother.weight > 0
    weight = smoother.weight[kept]
    floor = LEAST_SCALE * upper_statistic(whole[kept].T, weight, 0.5 * weight.sum())
    at_rows = np.maximum(at_rows, floor)
    scaled = np.divide(score, at_rows, out=np.full_like(score, np.inf), where=at_rows > smoother.rounding)
    scaled[scaled * LEAST_SCALE > 1.0] = np.inf  # over a scale of zero, but for neighbours far away
    scaled[score <= smoother.rounding] = 0.0
    quantile = setting.bound(scaled.T)
    with np.errstate(invalid="ignore"):
        width = np.where(np.isinf(quantile), np.inf, np.maximum(there, floor) * quantile)
    return _around(setting.prediction, width)


def _around(center: Array, width: Array) -> Bounds:
    """Return prediction intervals of given half widths around predictions; infinite where a prediction is NaN."""
    lower, upper = center - width, center + width
    unknown = np.isnan(center)
    lower[unknown], upper[unknown] = -np.inf, np.inf
    return center, lower, upper


def conformal_quantiles(setting: ConformalProblem) -> Bounds:
    """Compute prediction intervals by conformalised quantile regression (CQR)."""
    calibration = setting.calibration
    alpha = 1 - setting.level
    levels = np.array([float(alpha / 2), float(1 - alpha / 2)])
    lower, upper = _quantiles(setting.smoother, setting.places, levels)
    if calibration.which is None:
        low, high = _quantiles(setting.smoother, calibration.places, levels)
    else:
        low, high = (end[calibration.which] for end in _quantiles(setting.smoother, None, levels))
    score = np.maximum(low - calibration.value, calibration.value - high)
    quantile = setting.bound(np.where(np.isnan(score), np.inf, score).T)
    known = ~np.isnan(lower)
    lower, upper = np.where(known, lower - quantile, -np.inf), np.where(known, upper + quantile, np.inf)
    # Quantiles that are moved past each other give an empty set of values: a point covers as often.
    with np.errstate(invalid="ignore"):
        middle = 0.5 * (lower + upper)
    crossed = lower > upper
    return setting.prediction, np.where(crossed, middle, lower), np.where(crossed, middle, upper)


def _quantiles(smoother: Smoother, places: EvaluationPoints | None, levels: Array) -> tuple[Array, Array]:
    """Return two conditional quantiles of the outputs at given points, or at the training rows, each left out.

    Those of a local linear fit are the fit plus quantiles of residuals.
    """
    local = smoother.left_out_problem(smoother.exclusion) if places is None else smoother.problem(places)
    whole = replace(local, degree=0)  # the weights are those of local constants
    recipe = replace(smoother.recipe, warns_of_nearest=False)  # training rows are queries, too
    outcomes = ArrayOutcomes(recipe, whole, smoother.value)
    if recipe.degree:
        fit = smoother.left_out[0] if places is None else smoother.fit(local).fit.intercept
        outcomes = ArrayOutcomes.of_residuals(recipe, whole, smoother.value, smoother.left_out, fit)
    quantiles = Quantiles(levels)
    found = outcomes.evaluate(quantiles) if smoother.fills_empty else outcomes.compute(quantiles)[0]
    return found[:, :, 0], found[:, :, 1]
