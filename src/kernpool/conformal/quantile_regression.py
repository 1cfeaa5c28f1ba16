"""Conformalised quantile regression (CQR): conditional quantiles shifted until they cover.

    [ Q_{alpha/2}(x) - C,  Q_{1-alpha/2}(x) + C ],
    C = ( max(Q_{alpha/2}(x_i) - y_i,  y_i - Q_{1-alpha/2}(x_i)) )_(k)

The quantiles Q are those of the training rows (`model.quantile`), the scores those of calibration rows, and the
rank k is that of split conformal [1]_. Scores are signed, so C < 0 narrows intervals of quantiles that cover too
often. The ends follow both spread and skewness, where ``"adaptive"`` follows the spread alone.

References
----------
.. [1] Y. Romano, E. Patterson and E. J. Candes, "Conformalized quantile regression", NeurIPS 32 (2019), section 4.
"""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from kernpool.conformal.calibration import Bounds, ConformalProblem, predict, predict_problem
from kernpool.conformal.guarantees import approximately, at_least
from kernpool.conformal.split import score_quantile
from kernpool.core.problem import Problem
from kernpool.distribution import known_quantiles, with_limits
from kernpool.smoother.linear_smoother import EvaluationPoints, Smoother

Array = NDArray[np.float64]

UNKNOWN = ("nan", "raise")  # policies that leave empty windows without a value


def conformal_quantiles(setting: ConformalProblem) -> Bounds:
    """Compute conformalised quantile regression intervals."""
    smoother, calibration = setting.smoother, setting.calibration
    alpha = 1 - setting.level
    levels = np.array([float(alpha / 2), float(1 - alpha / 2)])
    weighed = _WeightedScores(setting)
    lower, upper = weighed.ends(setting.places, None, levels)
    low, high = weighed.ends(calibration.places, calibration.which, levels)
    score = np.maximum(low - calibration.value, calibration.value - high)
    quantile = score_quantile(setting, np.where(np.isnan(score), np.inf, score))
    known = ~np.isnan(lower)
    lower, upper = np.where(known, lower - quantile, -np.inf), np.where(known, upper + quantile, np.inf)
    # Quantiles that are moved past each other give an empty set of values: a point covers as often.
    with np.errstate(invalid="ignore"):
        middle = 0.5 * (lower + upper)
    crossed = lower > upper
    return Bounds(np.where(crossed, middle, lower), np.where(crossed, middle, upper), predict(smoother, setting.places))


def of_conformal_quantiles(setting: ConformalProblem) -> str:
    """Return the coverage statement of CQR: the level, if calibration rows are given."""
    if setting.calibration.own:
        return approximately(
            setting, "quantiles without each training row are not exchangeable with a new one; give X_calibration"
        )
    return at_least(setting)


def _with_nan(smoother: Smoother) -> Smoother:
    """Return the smoother with NaN for empty windows."""
    return replace(smoother, recipe=replace(smoother.recipe, empty="nan"))


class _WeightedScores:
    """Conditional quantiles of outputs, or of residuals added to a local linear fit.

    Parameters
    ----------
    setting : ConformalProblem
        The fit and the calibration rows.
    """

    def __init__(self, setting: ConformalProblem) -> None:
        self.smoother, self.code = setting.smoother, setting.training_code
        self.value, self.known = self.smoother.value, np.ones(len(self.smoother.value), dtype=bool)
        if self.smoother.recipe.degree:
            bare = replace(setting, smoother=_with_nan(self.smoother), known=None)
            left_out = setting.left_out if self.smoother.recipe.empty in UNKNOWN else bare.left_out
            # Rows with no other row in their window have no residual, and get weight zero.
            self.known = np.asarray(~np.isnan(left_out).any(axis=1))
            self.value = np.where(self.known[:, None], self.value - left_out, 0.0)

    def ends(self, places: EvaluationPoints, which: NDArray[np.intp] | None, levels: Array) -> tuple[Array, Array]:
        """Return the lower and upper conditional quantile, of outputs or of residuals plus the fit.

        Parameters
        ----------
        places : EvaluationPoints
            Evaluation points.
        which : ndarray of int, shape (m,), or None
            Indices if the points are training rows, each held out, or its cluster; None if they are other rows.
        levels : ndarray of shape (2,)
            Quantile orders.

        Returns
        -------
        low, high : ndarray of shape (m, c)
            In the units of the outputs; NaN where the window is empty and the policy of the model is not to fill it.
        """
        recipe = replace(self.smoother.recipe, warns_of_nearest=False)  # training rows are queries, too
        whole = self._problem(self.smoother.of_degree(0), places, which)
        found, occupied = known_quantiles(recipe, self._counted(whole), self.value, levels)
        if recipe.degree:
            found += predict_problem(self.smoother, self._problem(self.smoother, places, which))[:, :, None]
        if recipe.empty not in UNKNOWN:
            found = with_limits(recipe, whole, self.smoother.value, levels, found, occupied)
        return found[:, :, 0], found[:, :, 1]

    def _problem(self, smoother: Smoother, places: EvaluationPoints, which: NDArray[np.intp] | None) -> Problem:
        """Return the problem of evaluation points, or the leave-one-out problem of training rows."""
        if which is None:
            return smoother.problem(places)
        problem = smoother.problem(smoother.training, exclude_self=self.code is None)
        problem = problem if self.code is None else problem.with_groups(self.code, self.code)
        return problem if len(which) == len(problem.query) else problem.block(which)

    def _counted(self, problem: Problem) -> Problem:
        """Return the problem without the rows that have no residual."""
        if self.known.all():
            return problem
        weight = np.ones(len(self.known)) if problem.key_weight is None else problem.key_weight
        return replace(problem, key_weight=np.where(self.known, weight, 0.0), prepared=None)
