"""Localized conformal prediction: intervals whose width is a kernel-weighted quantile of the scores.

    m(q) +- min{ s : sum_{i: S_i <= s} w_i K(q~, x_i) >= (1 - alpha) (sum_i w_i K(q~, x_i) + K(q~, q)) }

The scores S_i are absolute residuals of calibration rows, or leave-one-out residuals of training rows. The kernel
is that of the fit at three times its bandwidth. The weight of the new row is at infinity, since its score is
unknown.

With q~ = q this is ``"localized"``, the method of Guan [1]_ without her calibrated level. Each point has other
neighbours, so the new row and they are not exchangeable, and nothing is guaranteed. With a random point q~ drawn
from K(., q) it is ``"rlcp"`` [2]_: given q~, each row is the new one with a probability in proportion to its weight
there. So coverage is exact, and it holds near q~ as it does on average.

`Neighbours` has the calibration rows and their weights. `kernel_draws` draws q~. With d columns the radius of a
draw from a radial kernel has a density in proportion to r^(d-1) K(r), and its direction is uniform; for a product
kernel each column is drawn by itself, with d = 1. All draws are exact:

============================== ================================================================================
kernel                         radius
============================== ================================================================================
gaussian                       of a normal vector
``(1 - u**inner)**outer``      ``B**(1 / inner)``, B a beta variable of ``d / inner`` and ``outer + 1``
laplace                        a gamma variable of shape d
logistic                       a gamma variable, accepted with the probability ``(1 + exp(-r))**-2``
others of compact support      rejection sampling from a step function above the profile
============================== ================================================================================

A step function is available because a profile does not increase (Devroye, "Non-Uniform Random Variate Generation",
Springer (1986), section II.3): its draws are accepted with the ratio of the kernel to the step.

References
----------
.. [1] L. Guan, "Localized conformal prediction: a generalized inference framework for conformal prediction",
   Biometrika 110 (2023), 33-50.
.. [2] R. Hore and R. F. Barber, "Conformal prediction with local weights: randomization enables robust guarantees",
   JRSSB 87 (2025), 549-578, section 3.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import cast

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from kernpool.conformal.calibration import Bounds, ConformalProblem
from kernpool.conformal.split_conformal import around
from kernpool.core import FLOAT64, FLOAT64_EPSILON, Factors, KernelLogits, Keys, Problem
from kernpool.core.similarity import Composition
from kernpool.distribution import KernelWeights
from kernpool.kernels import Exponential, Flat, Gaussian, Kernel, NearlyExponential, Polynomial
from kernpool.smoother.linear_smoother import EvaluationPoints, Smoother

Array = NDArray[np.float64]
Codes = NDArray[np.int64]
Propose = Callable[[int], tuple[Array, Array]]

STEPS = 256  # of a smooth profile they keep 99 draws of 100


def kernel_draws(kernel: Kernel, composition: str, shape: tuple[int, int], random: Generator) -> Array:
    """Draw random offsets, in units of bandwidths, with density proportional to a kernel.

    Parameters
    ----------
    kernel : Kernel
        A built-in kernel, or any kernel of compact support.
    composition : {"radial", "product"}
        How columns combine.
    shape : tuple of int
        Number of draws, and number of columns.
    random : Generator
        Random number generator.

    Returns
    -------
    ndarray of this shape
        Zeros for the constant kernel, which has no density: it weighs all points alike.

    Raises
    ------
    ValueError
        If the kernel is user-defined with unbounded support: its tail is not known.

    Examples
    --------
    >>> import numpy as np
    >>> from kernpool import get_kernel
    >>> draws = kernel_draws(get_kernel("epanechnikov"), "radial", (20_000, 1), np.random.default_rng(0))
    >>> round(float(np.var(draws)), 2), bool(np.abs(draws).max() < 1)
    (0.2, True)
    """
    count, columns = shape
    if isinstance(kernel.form, Flat):
        return np.zeros(shape)
    if isinstance(kernel.form, Gaussian):
        return random.standard_normal(shape)
    if composition == "product" or columns == 1:
        radius = _radii(kernel, count * columns, 1, random).reshape(shape)
        return np.where(random.random(shape) < 0.5, -radius, radius)
    direction = random.standard_normal(shape)
    direction /= np.linalg.norm(direction, axis=1, keepdims=True)
    return _radii(kernel, count, columns, random)[:, None] * direction


def level_draws(table: Array, code: Codes, random: Generator) -> Codes:
    """Draw a category for each row, with probabilities given by the kernel around the row's own category.

    Parameters
    ----------
    table : ndarray of shape (levels, levels)
        Factors, as of `CategoricalKernel.table`; the row index is the category of a row.
    code : ndarray of int64, shape (m,)
        Category codes of the rows.
    random : Generator
        Random number generator.

    Returns
    -------
    ndarray of int64, shape (m,)
        Category codes.
    """
    uniform, drawn = random.random(len(code)), np.empty(len(code), dtype=np.int64)
    for level in np.unique(code):
        rows = code == level
        sums = np.cumsum(table[level])
        # To the right of equal sums, so that a category of probability zero is never drawn.
        drawn[rows] = np.searchsorted(sums / sums[-1], uniform[rows], side="right")
    return drawn


def _radii(kernel: Kernel, count: int, columns: int, random: Generator) -> Array:
    """Draw radii of random offsets, with density proportional to ``r**(columns - 1) K(r)`` for the kernel profile K."""
    match kernel.form:
        case Polynomial(inner, outer):
            return np.asarray(random.beta(columns / inner, outer + 1.0, count) ** (1.0 / inner))
        case Exponential():
            return random.gamma(columns, size=count)
        case NearlyExponential():

            def nearly(missing: int) -> tuple[Array, Array]:
                radius = random.gamma(columns, size=missing)
                return radius, np.exp(kernel.log_profile(radius) + radius)

            return _accept_draws(nearly, count, random)
    if not kernel.is_compact:
        raise ValueError(
            f"kernel {kernel.name!r} has unbounded support, and method='rlcp' cannot draw from its unknown tail; "
            "give make_kernel a support=, fit with a built-in kernel, or use method='split' or 'localized'"
        )
    return _accept_draws(_below_steps(kernel, columns, random), count, random)


def _below_steps(kernel: Kernel, columns: int, random: Generator) -> Propose:
    """Return a function that proposes radii for rejection sampling, with acceptance probabilities.

    Proposals are drawn from a step function above the profile of the kernel.
    """
    edge = np.linspace(0.0, kernel.support, STEPS + 1)
    height, inner = np.asarray(kernel.profile(edge[:-1])), edge[:-1] ** columns
    volume = edge[1:] ** columns - inner
    sums = np.cumsum(height * volume)

    def propose(missing: int) -> tuple[Array, Array]:
        step = np.searchsorted(sums / sums[-1], random.random(missing), side="right")
        radius = (inner[step] + random.random(missing) * volume[step]) ** (1.0 / columns)
        return radius, kernel.profile(radius) / height[step]

    return propose


def _accept_draws(propose: Propose, count: int, random: Generator) -> Array:
    """Draw `count` radii by rejection sampling: propose until enough proposals are accepted."""
    parts, missing = list[Array](), count
    while missing:
        radius, probability = propose(missing)
        parts.append(radius[random.random(missing) < probability])
        missing -= len(parts[-1])
    return np.concatenate(parts) if parts else np.empty(0)


WINDOW = 3.0  # bandwidths of the fit: a quantile needs more rows than a mean
SLACK = 2.0**-50  # a level within this of one, times the square root of the number of rows, is one


@dataclass(frozen=True, eq=False)
class Neighbours:
    """Calibration rows, and the kernel that weights them around evaluation points in localized intervals.

    Parameters
    ----------
    smoother : Smoother
        Smoother of degree 0 with the kernel and bandwidths of the weights; its rows are ignored.
    rows : EvaluationPoints
        Inputs of the calibration rows.
    weight : ndarray of shape (n,)
        Their frequencies.
    tables : tuple of k ndarrays of shape (levels, levels)
        Factors of pairs of categories; with a last category for all unseen ones if there are any.
    """

    smoother: Smoother
    rows: EvaluationPoints
    weight: Array
    tables: tuple[Array, ...]

    @classmethod
    def of(cls, smoother: Smoother, rows: EvaluationPoints, weight: Array, places: EvaluationPoints) -> Neighbours:
        """Build a `Neighbours` with the fit's kernel, three times its bandwidths, and its categorical smoothing.

        Parameters
        ----------
        smoother : Smoother
            The fit.
        rows : EvaluationPoints
            Inputs of the calibration rows.
        weight : ndarray of shape (n,)
            Their frequencies.
        places : EvaluationPoints
            All evaluation points, possibly with unseen categories.

        Returns
        -------
        Neighbours
            For `upper_quantiles`.
        """
        wide = smoother.of_degree(0).widened(WINDOW, levels=False)
        tables: tuple[Array, ...] = ()
        if len(wide.categories) and rows.code is not None and places.code is not None:
            tables = wide.categories.factors(rows.code[:0], rows.code[:0], wide.smoothing).tables
            if min(rows.code.min(), places.code.min(initial=0)) < 0:
                tables = tuple(_with_unseen(table) for table in tables)
        return cls(wide, rows, weight, tables)

    def around(self, places: EvaluationPoints) -> Problem:
        """Return the `Problem` whose queries are evaluation points and whose keys are calibration rows.

        The weight is the kernel, divided by the sum of the factors of a row's category where these sums differ between
        categories.
        """
        factors, weight = None, self.weight
        if self.tables:
            query, key = self._codes(places), self._codes(self.rows)
            factors = Factors(query, key, self.tables, self.tables)
            weight = weight * np.exp(-self._log_sums(key))
        keys = Keys.read(self.rows.query, np.zeros((len(weight), 1)), weight)
        problem = self.smoother.recipe.problem(places.query, keys, factors=factors)
        return replace(problem, tol=FLOAT64_EPSILON, dtype=FLOAT64)

    def draw(self, places: EvaluationPoints, random: Generator) -> EvaluationPoints:
        """Draw a random point around each evaluation point, with the kernel as the density of the offset."""
        similarity = self._similarity
        shape = (len(places.query), places.query.shape[1])
        offset = kernel_draws(similarity.kernel, similarity.composition, shape, random)
        code = places.code
        if self.tables:
            columns = zip(self.tables, self._codes(places).T, strict=True)
            code = np.stack([level_draws(table, column, random) for table, column in columns], axis=1)
        return EvaluationPoints(places.query + offset * similarity.bandwidth, code)

    def log_density(self, places: EvaluationPoints, drawn: EvaluationPoints) -> Array:
        """Return the log density of each drawn point around its evaluation point, up to a constant; shape (m,)."""
        similarity = self._similarity
        u = np.abs(places.query - drawn.query) / similarity.bandwidth
        if similarity.composition == "radial":
            total = similarity.kernel.log_profile(np.sqrt(np.sum(u * u, axis=1)))
        else:
            total = np.sum(similarity.kernel.log_profile(u), axis=1)
        if self.tables:
            here, there = self._codes(places), self._codes(drawn)
            with np.errstate(divide="ignore"):
                for table, a, b in zip(self.tables, here.T, there.T, strict=True):
                    total = total + np.log(table[a, b])
            total = total - self._log_sums(here)
        return np.asarray(total)

    def _codes(self, places: EvaluationPoints) -> Codes:
        """Return the category codes of points, with the code of an extra last category for all unseen ones."""
        assert places.code is not None
        unseen = np.array([len(table) - 1 for table in self.tables])
        return np.where(places.code < 0, unseen, places.code)

    def _log_sums(self, code: Codes) -> Array:
        sums = [np.log(table.sum(axis=1))[column] for table, column in zip(self.tables, code.T, strict=True)]
        return np.asarray(sum(sums))

    @property
    def _similarity(self) -> KernelLogits:
        recipe = self.smoother.recipe
        bandwidth = np.broadcast_to(recipe.bandwidth, (self.rows.query.shape[1],))
        return KernelLogits(recipe.kernel, bandwidth, cast(Composition, recipe.composition))


def upper_quantiles(problem: Problem, smoother: Smoother, score: Array, level: float, log_extra: Array) -> Array:
    r"""Return kernel-weighted quantiles of the scores around each point, with extra weight on an infinite score.

    .. math:: \hat Q(q) = \min\Big\{ s : \sum_{i:\, s_i \le s} w_i K(q, x_i) \ge \tau \Big( \sum_i w_i K(q, x_i) +
              v(q) \Big) \Big\}

    where v is that weight, of the new row at the point itself, whose score is unknown. Computed by the tree of
    `kernpool.distribution`, with scores as values.

    Parameters
    ----------
    problem : Problem
        Result of `Neighbours.around`.
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


def localized(setting: ConformalProblem, *, randomized: bool = False) -> Bounds:
    """Compute localized prediction intervals, from kernel-weighted quantiles of the scores around each point.

    Randomly localized ones (RLCP) weight the scores around a random point near each evaluation point.
    """
    calibration, places = setting.calibration, setting.places
    near = Neighbours.of(setting.smoother, calibration.places, calibration.weight, places)
    middle = near.draw(places, setting.random) if randomized else places
    extra = near.log_density(places, middle)
    width = upper_quantiles(near.around(middle), setting.smoother, calibration.score, float(setting.level), extra)
    return around(setting.prediction, width)
