"""Prediction intervals from scores of calibration rows: split conformal of several widths, quantiles, localized ones.

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

Localized intervals have a kernel-weighted quantile of the scores as their half width [4]_:

    m(q) +- min{ s : sum_{i: S_i <= s} w_i K(q, x_i) >= (1 - alpha) (sum_i w_i K(q, x_i) + K(q, q)) }

The kernel is that of the fit at three times its bandwidth. The weight of the new row is at infinity, since its score
is unknown. Each point has other neighbours, so the new row and they are not exchangeable, and nothing is guaranteed;
the calibrated level of [4]_ is not used.

References
----------
.. [1] H. Papadopoulos, K. Proedrou, V. Vovk and A. Gammerman, "Inductive confidence machines for regression", ECML
   (2002), 345-356.
.. [2] J. Lei, M. G'Sell, A. Rinaldo, R. J. Tibshirani and L. Wasserman, "Distribution-free predictive inference for
   regression", JASA 113 (2018), 1094-1111, sections 2.2 and 5.2.
.. [3] Y. Romano, E. Patterson and E. J. Candes, "Conformalized quantile regression", NeurIPS 32 (2019), section 4.
.. [4] L. Guan, "Localized conformal prediction: a generalized inference framework for conformal prediction",
   Biometrika 110 (2023), 33-50.
"""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from kernpool.conformal.calibration import Bounds, ConformalProblem
from kernpool.conformal.order_statistics import score_bound, upper_statistic
from kernpool.core import FLOAT64, FLOAT64_EPSILON, Factors, Keys, Problem
from kernpool.distribution import ArrayOutcomes, KernelWeights, Quantiles
from kernpool.inference.variance.residuals import nothing_left
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
    """Compute prediction intervals whose widths are proportional to the local noise.

    They are split conformal if other rows than the training rows calibrate.
    """
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
    return Bounds(lower, upper, center)


def _scales(setting: ConformalProblem) -> tuple[Array, Array]:
    """Return local means of absolute residuals, at the evaluation points and at the calibration rows.

    They are at least a thousandth of their median over the training rows.
    """
    smoother, calibration = setting.smoother, setting.calibration
    scale = residual_scale(smoother.of_residuals(), smoother.value - setting.left_out)
    whole = scale.predict(scale.left_out_problem(setting.training_code))
    there = scale.predict(scale.problem(setting.places))
    weight = smoother.weight
    floor = LEAST_SCALE * upper_statistic(whole[weight > 0].T, weight[weight > 0], 0.5 * weight.sum())
    at_rows = whole[calibration.which] if calibration.own else scale.predict(scale.problem(calibration.places))
    return np.maximum(there, floor), np.maximum(at_rows, floor)


def residual_scale(smoother: Smoother, residual: Array) -> Smoother:
    """Return a smoother of the absolute residuals of the training rows: an estimate of the local noise.

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
    return Bounds(np.where(crossed, middle, lower), np.where(crossed, middle, upper), setting.prediction)


class _ConditionalQuantiles:
    """Estimator of conditional quantiles of the outputs; for a local linear fit, the fit plus quantiles of residuals.

    Parameters
    ----------
    setting : ConformalProblem
        The fit and the calibration rows.
    """

    def __init__(self, setting: ConformalProblem) -> None:
        self.smoother, self.code = setting.smoother, setting.training_code
        self.value, self.known = self.smoother.value, np.ones(len(self.smoother.value), dtype=bool)
        if self.smoother.recipe.degree:
            with_nan = replace(self.smoother, recipe=replace(self.smoother.recipe, empty="nan"))
            bare = replace(setting, smoother=with_nan, known=None)
            left_out = bare.left_out if self.smoother.fills_empty else setting.left_out
            # Rows with no other row in their window have no residual, and get weight zero.
            self.known = np.asarray(~np.isnan(left_out).any(axis=1))
            self.value = np.where(self.known[:, None], self.value - left_out, 0.0)

    def ends(self, places: EvaluationPoints, which: NDArray[np.intp] | None, levels: Array) -> tuple[Array, Array]:
        """Return the lower and the upper conditional quantile of the outputs at each point.

        For a local linear fit they are quantiles of residuals, added to the fit.

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
        fit = self.smoother.predict(self._problem(self.smoother, places, which)) if recipe.degree else None
        outcomes = ArrayOutcomes(recipe, self._counted(whole), self.value, fit, whole, self.smoother.value)
        quantiles = Quantiles(levels)
        found = outcomes.evaluate(quantiles) if self.smoother.fills_empty else outcomes.compute(quantiles)[0]
        return found[:, :, 0], found[:, :, 1]

    def _problem(self, smoother: Smoother, places: EvaluationPoints, which: NDArray[np.intp] | None) -> Problem:
        """Return the `Problem` whose queries are given points; at training rows, the row (or cluster) is held out."""
        if which is None:
            return smoother.problem(places)
        problem = smoother.left_out_problem(self.code)
        return problem if len(which) == len(problem.query) else problem.block(which)

    def _counted(self, problem: Problem) -> Problem:
        """Return the `Problem` with weight zero for training rows that have no leave-one-out residual."""
        if self.known.all():
            return problem
        weight = np.ones(len(self.known)) if problem.key_weight is None else problem.key_weight
        return replace(problem, key_weight=np.where(self.known, weight, 0.0), prepared=None)


WINDOW = 3.0  # bandwidths of the fit: a quantile needs more rows than a mean
SLACK = 2.0**-50  # a level within this of one, times the square root of the number of rows, is one


def upper_quantiles(problem: Problem, smoother: Smoother, score: Array, level: float, log_extra: Array) -> Array:
    r"""Return kernel-weighted quantiles of the scores around each point, with extra weight on an infinite score.

    .. math:: \hat Q(q) = \min\Big\{ s : \sum_{i:\, s_i \le s} w_i K(q, x_i) \ge \tau \Big( \sum_i w_i K(q, x_i) +
              v(q) \Big) \Big\}

    where v is that weight, of the new row at the point itself, whose score is unknown. Computed by the tree of
    `kernpool.distribution`, with scores as values.

    Parameters
    ----------
    problem : Problem
        Problem whose queries are evaluation points and whose keys are calibration rows.
    smoother : Smoother
        Algorithm and number of threads.
    score : ndarray of shape (n, c)
        Scores of the calibration rows; may be infinite.
    level : float
        Between 0 and 1.
    log_extra : ndarray of shape (m,)
        Logarithm of the weight at infinity, as a sum of weights.

    Returns
    -------
    ndarray of shape (m, c)
        Infinite where the weights of all rows do not reach the level.
    """
    sums = KernelWeights.of(problem, smoother.recipe)
    mass = np.where(sums.occupied, sums.state.log_denominator, -np.inf)
    with np.errstate(over="ignore"):
        share = level * (1.0 + np.exp(log_extra - mass))
    reached = sums.occupied & (share <= 1.0 + SLACK * max(4.0, np.sqrt(len(score))))
    found = np.full((len(share), score.shape[1]), np.inf)
    asked = np.where(reached, np.minimum(share, 1.0), 1.0)[:, None]
    for number, column in enumerate(score.T if reached.any() else ()):
        place = sums.places(np.argsort(column, kind="stable"), asked)[:, 0]
        found[:, number] = np.where(reached, column[place], np.inf)
    return found


def _with_unseen(table: Array) -> Array:
    """Add a row and a column for unseen categories to a table of categorical kernel values.

    An unseen category is as unlike the others as the first is from the last.
    """
    padded = np.pad(table, ((0, 1), (0, 1)), constant_values=table[0, -1])
    padded[-1, -1] = table[0, 0]
    return padded


TOO_FEW = (
    "there are too few rows around them for the level; use more rows, a larger bandwidth, a lower level, or "
    "method='adaptive'"
)


def localized(setting: ConformalProblem) -> Bounds:
    """Compute localized prediction intervals, from kernel-weighted quantiles of the scores around each point."""
    calibration, places = setting.calibration, setting.places
    wide = setting.smoother.of_degree(0).widened(WINDOW, levels=False)
    weight, factors, own = calibration.weight, None, np.zeros(len(places.query))
    if len(wide.categories):
        factors, sums, own = _category_weights(wide, calibration.places, places)
        weight = weight * np.exp(-sums)
    keys = Keys.read(calibration.places.query, np.zeros((len(weight), 1)), weight)
    problem = wide.of_fixed_width().recipe.problem(places.query, keys, factors=factors)
    problem = replace(problem, tol=FLOAT64_EPSILON, dtype=FLOAT64)
    extra = problem.similarity.log_peak + own
    width = upper_quantiles(problem, setting.smoother, calibration.score, float(setting.level), extra)
    return around(setting.prediction, width)


def _category_weights(
    smoother: Smoother, rows: EvaluationPoints, places: EvaluationPoints
) -> tuple[Factors, Array, Array]:
    """Return factors of the weights of calibration rows by category, and two logarithms.

    A row's weights are divided by the sum of the factors of its category, which differ where categories are ordered.

    Returns
    -------
    factors : Factors
        Of points and rows; with a last category for all unseen ones if there are any.
    log_sums : ndarray of shape (n,)
        Logarithm of that sum for each row.
    log_own : ndarray of shape (m,)
        Logarithm of the weight of a row of the point's own categories at the point.
    """
    assert rows.code is not None
    assert places.code is not None
    tables = smoother.categories.factors(rows.code[:0], rows.code[:0], smoother.smoothing).tables
    if min(rows.code.min(), places.code.min(initial=0)) < 0:
        tables = tuple(_with_unseen(table) for table in tables)
    last = np.array([len(table) - 1 for table in tables])
    key, query = (np.where(code < 0, last, code) for code in (rows.code, places.code))
    logs = [np.log(table.sum(axis=1)) for table in tables]
    key_sum, query_sum = (sum(log[a] for log, a in zip(logs, code.T, strict=True)) for code in (key, query))
    own = sum(np.log(np.diagonal(table))[a] for table, a in zip(tables, query.T, strict=True))
    return Factors(query, key, tables, tables), np.asarray(key_sum), np.asarray(own - query_sum)
