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
from numpy.typing import NDArray

from kernpool.conformal.calibration import Bounds, ConformalProblem
from kernpool.conformal.order_statistics import score_bound, upper_statistic
from kernpool.core import Problem
from kernpool.distribution import ArrayOutcomes, Quantiles
from kernpool.smoother import nothing_left
from kernpool.smoother.linear_smoother import EvaluationPoints, Smoother

Array = NDArray[np.float64]

WIDER = 3.0  # bandwidths of the scale: a mean of absolute residuals is rougher than the mean of outputs
NO_SCALE = (
    "too many rows have no other row in their window, or have residuals where all rows around them have none, as "
    "copies of rows do; drop duplicates or give groups=, use a larger bandwidth, or a kernel of infinite support"
)
LEAST_SCALE = 1e-3  # of the median scale: flat parts without noise would let the ratio of one row decide everything


def constant_width(setting: ConformalProblem) -> Bounds:
    """Compute prediction intervals of constant width, by split conformal prediction."""
    return around(setting.prediction, score_bound(setting, setting.calibration.score.T))


def adaptive(setting: ConformalProblem) -> Bounds:
    """Compute prediction intervals whose widths are proportional to the local noise."""
    score, rounding = setting.calibration.score, nothing_left(setting.smoother.value[setting.smoother.weight > 0])
    there, at_rows = _scales(setting)
    scaled = np.divide(score, at_rows, out=np.full_like(score, np.inf), where=at_rows > rounding)
    scaled[scaled * LEAST_SCALE > 1.0] = np.inf  # over a scale of zero, but for neighbours far away
    scaled[score <= rounding] = 0.0
    quantile = score_bound(setting, scaled.T)
    with np.errstate(invalid="ignore"):
        width = np.where(np.isinf(quantile), np.inf, there * quantile)
    return around(setting.prediction, width)


def around(center: Array, width: Array) -> Bounds:
    """Return prediction intervals of given half widths around predictions; infinite where a prediction is NaN."""
    lower, upper = center - width, center + width
    unknown = np.isnan(center)
    if unknown.any():
        lower[unknown], upper[unknown] = -np.inf, np.inf
    return lower, upper


def _scales(setting: ConformalProblem) -> tuple[Array, Array]:
    """Return local means of absolute residuals, at the evaluation points and at the calibration rows."""
    # at least a thousandth of their median over the training rows
    smoother, calibration = setting.smoother, setting.calibration
    scale = residual_scale(smoother.of_residuals(), smoother.value - setting.left_out)
    whole, _ = scale.fit_left_out(setting.exclusion).values()
    there = scale.predict(scale.problem(setting.places))
    weight = smoother.weight
    floor = LEAST_SCALE * upper_statistic(whole[weight > 0].T, weight[weight > 0], 0.5 * weight.sum())
    at_rows = whole[calibration.which] if calibration.own else scale.predict(scale.problem(calibration.places))
    return np.maximum(there, floor), np.maximum(at_rows, floor)


def residual_scale(smoother: Smoother, residual: Array) -> Smoother:
    """Return a smoother of the absolute residuals of the training rows: an estimate of the local noise."""
    # local constant at three times the bandwidth; the mean of all rows in an empty window
    known = np.asarray(~np.isnan(residual).any(axis=1))
    weight = np.where(known, smoother.weight, 0.0)
    wide = smoother.of_degree(0).widened(WIDER, levels=False)
    wide = replace(wide, recipe=replace(wide.recipe, empty="mean"))
    if not weight.any():  # nothing is known of the noise: one width everywhere
        return wide.with_values(np.ones_like(residual))
    return wide.with_weight(weight).with_values(np.where(known[:, None], np.abs(residual), 0.0))


def conformal_quantiles(setting: ConformalProblem) -> Bounds:
    """Compute prediction intervals by conformalised quantile regression (CQR)."""
    calibration = setting.calibration
    alpha = 1 - setting.level
    levels = np.array([float(alpha / 2), float(1 - alpha / 2)])
    weighed = _ConditionalQuantiles(setting)
    lower, upper = weighed.ends(setting.places, None, levels)
    low, high = weighed.ends(calibration.places, calibration.which, levels)
    score = np.maximum(low - calibration.value, calibration.value - high)
    quantile = score_bound(setting, np.where(np.isnan(score), np.inf, score).T)
    known = ~np.isnan(lower)
    lower, upper = np.where(known, lower - quantile, -np.inf), np.where(known, upper + quantile, np.inf)
    # Quantiles that are moved past each other give an empty set of values: a point covers as often.
    with np.errstate(invalid="ignore"):
        middle = 0.5 * (lower + upper)
    crossed = lower > upper
    return np.where(crossed, middle, lower), np.where(crossed, middle, upper)


class _ConditionalQuantiles:
    """Conditional quantiles of the outputs; for a local linear fit, the fit plus quantiles of residuals."""

    def __init__(self, setting: ConformalProblem) -> None:
        self.smoother, self.exclusion = setting.smoother, setting.exclusion
        self.value, self.known = self.smoother.value, np.ones(len(self.smoother.value), dtype=bool)
        if self.smoother.recipe.degree:
            with_nan = replace(self.smoother, recipe=replace(self.smoother.recipe, empty="nan"))
            bare = replace(setting, smoother=with_nan, known=None)
            left_out = bare.left_out if self.smoother.fills_empty else setting.left_out
            # Rows with no other row in their window have no residual, and get weight zero.
            self.known = np.asarray(~np.isnan(left_out).any(axis=1))
            self.value = np.where(self.known[:, None], self.value - left_out, 0.0)

    def ends(self, places: EvaluationPoints, which: NDArray[np.intp] | None, levels: Array) -> tuple[Array, Array]:
        """Return the lower and the upper conditional quantile of the outputs at each point."""
        # `which` are the indices of held-out training rows; for planes quantiles are those of residuals, plus the fit
        recipe = replace(self.smoother.recipe, warns_of_nearest=False)  # training rows are queries, too
        whole = self._problem(self.smoother.of_degree(0), places, which)
        fit = self.smoother.predict(self._problem(self.smoother, places, which)) if recipe.degree else None
        outcomes = ArrayOutcomes(recipe, self._counted(whole), self.value, fit, whole, self.smoother.value)
        quantiles = Quantiles(levels)
        found = outcomes.evaluate(quantiles) if self.smoother.fills_empty else outcomes.compute(quantiles)[0]
        return found[:, :, 0], found[:, :, 1]

    def _problem(self, smoother: Smoother, places: EvaluationPoints, which: NDArray[np.intp] | None) -> Problem:
        """Return the `Problem` whose queries are given points; at training rows, the row (or cluster) is held out."""
        if which is None:
            return smoother.problem(places)
        problem = smoother.left_out_problem(self.exclusion)
        return problem if len(which) == len(problem.query) else problem.block(which)

    def _counted(self, problem: Problem) -> Problem:
        """Return the `Problem` with weight zero for training rows that have no leave-one-out residual."""
        if self.known.all():
            return problem
        weight = np.ones(len(self.known)) if problem.key_weight is None else problem.key_weight
        return replace(problem, key_weight=np.where(self.known, weight, 0.0), prepared=None)
