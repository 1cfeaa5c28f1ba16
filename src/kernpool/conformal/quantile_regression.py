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

UNKNOWN = ("nan", "raise")  # policies of empty windows that put no value there


def conformal_quantiles(setting: ConformalProblem) -> Bounds:
    """Find intervals between two conditional quantiles."""
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
    # The set of values may be empty, of quantiles that are moved past each other: a point covers as often.
    with np.errstate(invalid="ignore"):
        middle = 0.5 * (lower + upper)
    crossed = lower > upper
    return Bounds(np.where(crossed, middle, lower), np.where(crossed, middle, upper), predict(smoother, setting.places))


def of_conformal_quantiles(setting: ConformalProblem) -> str:
    """Return what holds: the level with calibration rows."""
    if setting.calibration.own:
        return approximately(
            setting, "quantiles without each training row are not exchangeable with a new one; give X_calibration"
        )
    return at_least(setting)


def _with_nan(smoother: Smoother) -> Smoother:
    """Return the smoother for which nothing fills an empty window."""
    return replace(smoother, recipe=replace(smoother.recipe, empty="nan"))


class _WeightedScores:
    """What conditional quantiles are of: outputs, or of planes residuals, which are added to the fit.

    Parameters
    ----------
    setting : ConformalProblem
        With the fit, and which training rows calibrate.
    """

    def __init__(self, setting: ConformalProblem) -> None:
        self.smoother, self.code = setting.smoother, setting.training_code
        self.value, self.known = self.smoother.value, np.ones(len(self.smoother.value), dtype=bool)
        if self.smoother.recipe.degree:
            bare = replace(setting, smoother=_with_nan(self.smoother), known=None)
            left_out = setting.left_out if self.smoother.recipe.empty in UNKNOWN else bare.left_out
            # Rows with nothing else in their window have no residual, and do not count.
            self.known = np.asarray(~np.isnan(left_out).any(axis=1))
            self.value = np.where(self.known[:, None], self.value - left_out, 0.0)

    def ends(self, places: EvaluationPoints, which: NDArray[np.intp] | None, levels: Array) -> tuple[Array, Array]:
        """Return two conditional quantiles.

        Parameters
        ----------
        places : EvaluationPoints
            Where.
        which : ndarray of int, shape (m,), or None
            Which training rows these are, each to be left out, or its cluster; None if they are others.
        levels : ndarray of shape (2,)
            Their levels.

        Returns
        -------
        low, high : ndarray of shape (m, c)
            In the units of the outputs; NaN where the window is empty and the policy of the model says so.
        """
        recipe = replace(self.smoother.recipe, warns_of_nearest=False)  # training rows are asked, too
        whole = self._problem(self.smoother.of_degree(0), places, which)
        found, occupied = known_quantiles(recipe, self._counted(whole), self.value, levels)
        if recipe.degree:
            found += predict_problem(self.smoother, self._problem(self.smoother, places, which))[:, :, None]
        if recipe.empty not in UNKNOWN:
            found = with_limits(recipe, whole, self.smoother.value, levels, found, occupied)
        return found[:, :, 0], found[:, :, 1]

    def _problem(self, smoother: Smoother, places: EvaluationPoints, which: NDArray[np.intp] | None) -> Problem:
        """Return the problem of places, or of some training rows without themselves."""
        if which is None:
            return smoother.problem(places)
        problem = smoother.problem(smoother.training, exclude_self=self.code is None)
        problem = problem if self.code is None else problem.with_groups(self.code, self.code)
        return problem if len(which) == len(problem.query) else problem.block(which)

    def _counted(self, problem: Problem) -> Problem:
        """Return a problem in which rows without a residual do not count."""
        if self.known.all():
            return problem
        weight = np.ones(len(self.known)) if problem.key_weight is None else problem.key_weight
        return replace(problem, key_weight=np.where(self.known, weight, 0.0), prepared=None)
