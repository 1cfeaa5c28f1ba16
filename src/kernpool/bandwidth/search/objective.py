"""A criterion as a function of bandwidths: residuals, and how they change with every bandwidth.

The derivatives come from the pullback of the fit. Those of the hat diagonal do too: a row's own value moves its fit by
``H_ii``, which is the fit of values that are zero everywhere but in that row. In units of ``H_ii`` its weighted mean
is ``1 / base`` and its cross moments vanish, because the row's own offset does; so a pullback of zero values with that
state in place of their sums is the derivative of ``log H_ii``.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kernpool.bandwidth.categories import NO_CATEGORIES, Categories
from kernpool.bandwidth.criteria import Criterion
from kernpool.bandwidth.leverage import LARGEST, Counted, count_deleted
from kernpool.bandwidth.search.rows import TrainingRows
from kernpool.core.factors import Factors
from kernpool.core.local_fit import LocalFit, solve
from kernpool.core.problem import Problem
from kernpool.core.state import PoolState
from kernpool.execution.progress import Progress
from kernpool.kernels import Kernel, get_kernel
from kernpool.pooling.choice import choose

Array = NDArray[np.float64]


FLAT = 1e4  # ranges of a column: beyond, the weights of any two rows differ by less than 1e-8
STEEPEST = 1e30
LARGEST_LOG_PENALTY = 500.0


class Tried(NamedTuple):
    """What remains of an evaluation.

    Parameters
    ----------
    theta : ndarray of shape (p,)
        Logarithms of the bandwidths, and the smoothings of categorical columns.
    penalised : float
        Mean of squares times penalty.
    error : float
        Mean of squares.
    empty_windows : int
        Rows that have no other row in their window, and are predicted by the weighted mean of the others.
    """

    theta: Array
    penalised: float
    error: float
    empty_windows: int


def best_of(tried: list[Tried]) -> Tried:
    """Return the smallest of all that was tried; of equal ones that with the largest bandwidths."""
    return min(tried, key=lambda one: (one.penalised, -one.theta.sum()))


def penalise(criterion: Criterion, residual: Array, weight: Array, hat: Array) -> tuple[float, float, Array, float]:
    """Put the penalty of a criterion on residuals.

    Parameters
    ----------
    criterion : Criterion
        Whose penalty.
    residual : ndarray of shape (n, c)
        Residuals times the roots of the shares of their weights.
    weight, hat : ndarray of shape (n,)
        Frequencies of rows, and the diagonal of the hat matrix; not looked at without a penalty.

    Returns
    -------
    penalised, error : float
        Mean of squares with and without penalty.
    residual : ndarray of shape (n, c)
        Times the root of the penalty.
    slope : float
        Derivative of the logarithm of the penalty by the trace of the hat matrix.
    """
    error, log_penalty, slope = float(np.sum(residual**2)), 0.0, 0.0
    if criterion.log_penalty is not None:
        log_penalty, slope = criterion.log_penalty(float(weight @ hat), float(weight.sum()))
    # Beyond, the penalty is no number, and nothing but an interpolation has it.
    if log_penalty >= LARGEST_LOG_PENALTY:
        return np.inf, error, np.full_like(residual, np.inf), slope
    residual = residual * np.exp(0.5 * log_penalty)
    return float(np.sum(residual**2)), error, residual, slope


def log_factor(penalised: float, error: float) -> float:
    """Return the logarithm of a penalty that was put on."""
    return float(np.log(penalised / error)) if error > 0 else 0.0


@dataclass(frozen=True)
class Evaluation:
    """A criterion at one place, with all that its derivatives need.

    Parameters
    ----------
    theta : ndarray of shape (p,)
        Logarithms of the bandwidths, and the smoothings of categorical columns.
    penalised, error : float
        See `Tried`.
    residual : ndarray of shape (n, c)
        Residuals times the roots of their weights and of the penalty: their squares add up to `penalised`.
    problem, state, fit
        How the rows were fitted.
    hat : ndarray of shape (n,)
        Diagonal of the hat matrix; empty for criteria that do not look at it.
    penalty_slope : float
        Derivative of the logarithm of the penalty by the trace of the hat matrix.
    counted : Counted
        What counted as residuals, before the penalty.
    """

    theta: Array
    penalised: float
    error: float
    residual: Array
    problem: Problem
    state: PoolState
    fit: LocalFit
    hat: Array
    penalty_slope: float
    counted: Counted


class Objective:
    """A criterion of training rows as a function of log bandwidths and smoothings.

    Parameters
    ----------
    rows : TrainingRows
        In canonical form; several outputs should be in comparable units.
    criterion : Criterion
        What to minimise.
    categories : Categories, optional
        What the codes of the rows mean.
    degree : {0, 1}
        Local constant or local linear.
    kernel, composition, algorithm, n_jobs
        As in `pool`.
    progress : callable, optional
        Called as ``progress(done, total)`` in queries of the evaluation at hand.
    """

    def __init__(
        self,
        rows: TrainingRows,
        criterion: Criterion,
        *,
        categories: Categories = NO_CATEGORIES,
        degree: int = 0,
        kernel: Kernel,
        composition: str = "radial",
        algorithm: str = "auto",
        n_jobs: int | None = None,
        progress: Progress | None = None,
    ) -> None:
        self.rows, self.criterion, self.categories, self.columns = rows, criterion, categories, rows.X.shape[1]
        self.algorithm, self.n_jobs, self.progress = algorithm, n_jobs, progress
        self.tried: list[Tried] = []
        self.tried_quickly: list[Tried] = []  # and not by the engine, which has the last word
        problem = Problem.from_arrays(
            rows.X,
            rows.X,
            rows.value,
            kernel=kernel,
            bandwidth=np.where(np.ptp(rows.X, axis=0) > 0, np.ptp(rows.X, axis=0), 1.0),
            composition=composition,
            key_weight=None if np.all(rows.weight == 1.0) else rows.weight,
            exclude_self=criterion.exclude_self,
            degree=degree,
        )
        self._problem = problem.without_center()
        self._share = np.sqrt(rows.weight / rows.total)[:, None]
        at_zero = np.zeros((1, rows.X.shape[1]))
        self._log_peak = float(self._problem.similarity.logits(at_zero, at_zero)[0, 0])

    @cached_property
    def box(self) -> tuple[Array, Array, Array]:
        """Lowest and highest log bandwidth of each column, and smoothing of each categorical one; where it is flat.

        From a tenth of a small gap between neighbouring values, where a Gaussian window holds equal values alone, to
        1e4 ranges, where all values weigh the same. A constant column stays there. Criteria begin to be flat at three
        ranges. Smoothings have no flat part, so that theirs begins at infinity.
        """
        ends = []
        for column in self.rows.X.T:
            gaps = np.diff(np.unique(column))
            ends.append((0.1 * np.quantile(gaps, 0.1), FLAT * gaps.sum()) if gaps.size else (FLAT, FLAT))
        low, high = np.log(np.array(ends)).T
        largest = self.categories.largest
        return (
            np.concatenate([low, np.zeros(len(largest))]),
            np.concatenate([high, largest]),
            np.concatenate([high - np.log(FLAT) + 1.0, np.full(len(largest), np.inf)]),
        )

    def evaluate(self, theta: Array) -> Evaluation:
        """Return the criterion at these log bandwidths, and remember it in `tried`."""
        similarity = replace(self._problem.similarity, bandwidth=np.exp(theta[: self.columns]))
        smoothing = theta[self.columns :]
        tables, slopes = self.categories.tables(smoothing), self.categories.slopes(smoothing)
        factors = Factors(self.rows.code, self.rows.code, tables, slopes)
        problem = replace(self._problem, similarity=similarity).with_factors(factors)
        state = choose(problem, self.algorithm, often=True).reduce(problem, n_jobs=self.n_jobs, progress=self.progress)
        fit = solve(state, problem.layout)
        prediction = fit.intercept
        if not fit.occupied.all():
            prediction = np.where(fit.occupied[:, None], prediction, self._mean_of_others())
        residual = (problem.value - prediction) * self._share
        hat = np.empty(0)
        if self.criterion.log_penalty is not None:
            of_levels = [np.diagonal(table)[level] for table, level in zip(tables, self.rows.code.T, strict=True)]
            hat = np.exp(self._log_peak - state.shift) * fit.base / state.denominator * np.prod(of_levels, axis=0)
        counted = Counted(residual, 1.0, 0.0)
        if hat.size and problem.degree:
            counted = count_deleted(residual, self.alone, hat, self.bound)
        penalised, error, residual, slope = penalise(self.criterion, counted.residual, self.rows.weight, hat)
        self.tried.append(Tried(theta, penalised, error, int(np.count_nonzero(~fit.occupied))))
        return Evaluation(theta, penalised, error, residual, problem, state, fit, hat, slope, counted)

    @cached_property
    def alone(self) -> Array:
        """Residuals of the mean of the others, times the roots of the shares of the weights."""
        return np.asarray((self.value - self._mean_of_others()) * self._share)

    @cached_property
    def bound(self) -> Array:
        """Largest residuals that rows which fit themselves can count with, times the roots of the shares."""
        deviation = np.sqrt(np.sum(self.alone**2, axis=0))
        return np.asarray(LARGEST * np.where(deviation > 0, deviation, 1.0) * self._share)

    @property
    def value(self) -> Array:
        """Outputs of the rows, less a common center."""
        return self._problem.value

    @property
    def is_plain_gaussian(self) -> bool:
        """Whether this is a local constant fit with the Gaussian kernel, by whatever algorithm is the fastest."""
        similarity = self._problem.similarity
        gaussian = similarity.kernel is get_kernel("gaussian")
        return gaussian and not self._problem.degree and not len(self.categories) and self.algorithm == "auto"

    @property
    def all_tried(self) -> list[Tried]:
        """What was tried, quickly and by the engine."""
        return [*self.tried_quickly, *self.tried]

    @property
    def best(self) -> Tried:
        """The smallest of all that was tried; of equal ones that with the largest bandwidths."""
        return best_of(self.tried)

    def jacobian(self, at: Evaluation) -> Array:
        """Return the derivatives of the residuals, of shape (n c, p), by as many passes as there are outputs."""
        n, c = at.residual.shape
        root = np.exp(0.5 * log_factor(at.penalised, at.error))
        factor = np.broadcast_to(root * self._share * at.counted.by_fit, (n, c))
        result = np.empty((n, c, len(at.theta)))
        for b in range(c):
            cotangent = np.zeros((n, c))
            cotangent[:, b] = 1.0
            result[:, b] = -factor[:, b, None] * self._pullback(at.problem, at.state, cotangent)
        if self.criterion.log_penalty is not None:
            by_trace, by_hat = self._penalty_gradient(at)
            result += at.residual[:, :, None] * (0.5 * by_trace) + root * by_hat
        return result.reshape(n * c, -1)

    def gradient(self, at: Evaluation) -> Array:
        """Return the derivatives of the logarithm of the penalised mean of squares, by one pass or two."""
        root = np.exp(0.5 * log_factor(at.penalised, at.error))
        cotangent = 2.0 * (root * self._share * at.counted.by_fit) * at.residual
        moved: Array = -np.sum(self._pullback(at.problem, at.state, cotangent), axis=0) / at.penalised
        if self.criterion.log_penalty is None:
            return moved
        by_trace, by_hat = self._penalty_gradient(at)
        of_hat = np.sum(at.residual[:, :, None] * by_hat, axis=(0, 1))
        return np.asarray(moved + by_trace + 2.0 * root / at.penalised * of_hat)

    def _penalty_gradient(self, at: Evaluation) -> tuple[Array, Array]:
        """Return the slopes of the log penalty, and what those of the hat diagonal add to each residual before it."""
        layout = replace(at.problem.layout, values=1)
        numerator = np.zeros((len(at.hat), layout.width))
        if layout.degree:
            whole = at.problem.layout
            numerator[:, layout.first] = at.state.numerator[:, whole.first]
            numerator[:, layout.second] = at.state.numerator[:, whole.second]
        numerator[:, layout.value] = (at.state.denominator / at.fit.base)[:, None]
        problem = replace(at.problem, value=np.zeros((len(at.hat), 1)), value_center=np.zeros(1))
        state = PoolState(at.state.shift, at.state.denominator, numerator)
        log_hat = self._pullback(problem, state, np.ones((len(at.hat), 1)))
        factors = at.problem.factors
        columns = () if factors is None else zip(factors.tables, factors.slopes, strict=True)
        for a, (table, slope) in enumerate(columns):
            level = self.rows.code[:, a]
            log_hat[:, self.columns + a] += (np.diagonal(slope) / np.diagonal(table))[level]
        by_hat = np.asarray(at.counted.by_hat)[..., None] * (at.hat[:, None] * log_hat)[:, None]
        return np.asarray(at.penalty_slope * ((self.rows.weight * at.hat) @ log_hat)), by_hat

    def _pullback(self, problem: Problem, state: PoolState, cotangent: Array) -> Array:
        wanted = ("log_bandwidth", "smoothing") if len(self.categories) else ("log_bandwidth",)
        plan = choose(problem, self.algorithm, often=True)
        found = plan.pullback(problem, state, cotangent, wanted, n_jobs=self.n_jobs, progress=self.progress)
        parts = [part for part in (found.log_bandwidth, found.smoothing) if part is not None]
        # At a smoothing of zero slopes may be as good as infinite. Their squares have to be numbers.
        return np.clip(np.hstack(parts), -STEEPEST, STEEPEST)

    def _mean_of_others(self) -> Array:
        rows, value = self.rows, self._problem.value
        itself = np.minimum(rows.weight, 1.0)
        others = rows.total - itself
        total = rows.weight @ value - itself[:, None] * value
        return np.divide(total, others[:, None], where=others[:, None] > 0, out=np.zeros_like(total))
