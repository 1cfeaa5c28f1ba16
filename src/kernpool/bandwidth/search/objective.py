"""A criterion as a function of bandwidths: residuals, and how they change with every bandwidth.

The derivatives come from the pullback of the fit. Those of the hat diagonal do too: a row's own value moves its fit by
``H_ii``, which is the fit of values that are zero everywhere but in that row. In units of ``H_ii`` its weighted mean
is ``1 / base`` and its cross moments vanish, because the row's own offset does; so a pullback of zero values with that
state in place of their sums is the derivative of ``log H_ii``.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from kernpool.bandwidth.categories import NO_CATEGORIES, Categories
from kernpool.bandwidth.criteria import Criterion
from kernpool.bandwidth.leverage import LARGEST, Counted, count_deleted
from kernpool.bandwidth.search.evaluation import Evaluation, Tried, best_of, cost_of_empty, log_factor, penalise
from kernpool.bandwidth.search.regularity import Regularity
from kernpool.bandwidth.search.rows import TrainingRows
from kernpool.core.groups import weight_left_out
from kernpool.core.local_fit import solve
from kernpool.core.problem import Problem
from kernpool.core.ridge import change_by_ridge, ridge_weight, with_ridge
from kernpool.core.state import PoolState
from kernpool.execution.progress import Progress
from kernpool.kernels import Kernel
from kernpool.pooling.choice import choose
from kernpool.pooling.plan import refuse_gradients

Array = NDArray[np.float64]


FLAT = 1e4  # ranges of a column: beyond, the weights of any two rows differ by less than 1e-8
STEEPEST = 1e30  # slope of a prediction, in ranges of the outputs
ROUNDING = 1e-12


class Objective:
    """A criterion of training rows as a function of log bandwidths and smoothings.

    Parameters
    ----------
    rows : TrainingRows
        In canonical form; several outputs should be in comparable units. With groups, which take a criterion that
        leaves rows out, all rows of a group are left out.
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
    regularity : Regularity, optional
        A penalty on bandwidths.
    ridge : float, default=0.0
        On the slopes of planes; may be changed between evaluations.
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
        regularity: Regularity | None = None,
        ridge: float = 0.0,
    ) -> None:
        self.rows, self.criterion, self.categories, self.columns = rows, criterion, categories, rows.X.shape[1]
        self.algorithm, self.n_jobs, self.progress = algorithm, n_jobs, progress
        self.regularity, self.ridge = regularity, ridge
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
            exclude_self=criterion.exclude_self and rows.group is None,
            degree=degree,
        )
        if rows.group is not None:
            problem = problem.with_groups(rows.group, rows.group)
        refuse_gradients(problem)
        self.problem = problem.without_center()
        self._share = np.sqrt(rows.weight / rows.total)[:, None]
        self._log_peak = self.problem.similarity.log_peak

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
        """Return the criterion at these log bandwidths and smoothings, and remember it in `tried`."""
        problem = self.at(theta)
        plan = choose(problem, self.algorithm, often=True)
        at = self.judge(theta, problem, plan.reduce(problem, n_jobs=self.n_jobs, progress=self.progress))
        self.tried.append(at.tried)
        return at

    def jacobian(self, at: Evaluation) -> Array:
        """Return the derivatives of the residuals, of shape (n c, p), by as many passes as there are outputs."""
        n, c = at.residual.shape
        moved = np.empty((n, c, len(at.theta)))
        for b in range(c):
            cotangent = np.zeros((n, c))
            cotangent[:, b] = 1.0
            moved[:, b] = self.pullback(at.problem, at.state, cotangent)
        return self.differentiate(at, moved, self._log_hat_moved(at) if at.hat.size else None)

    def by_log_ridge(self, at: Evaluation) -> Array:
        """Return the derivatives of the residuals by the logarithm of the ridge, of shape (n c,); of leave-one-out."""
        ridge = ridge_weight(at.ridge, self.columns, self._log_peak)
        moved = change_by_ridge(at.state, at.fit, ridge, at.fit.slope).sum(axis=2)
        return np.ravel(-np.exp(0.5 * log_factor(at.penalised, at.error)) * self._share * moved)

    def at(self, theta: Array) -> Problem:
        """Return the rows with these log bandwidths and smoothings: what is summed."""
        similarity = replace(self.problem.similarity, bandwidth=np.exp(theta[: self.columns]))
        factors = self.categories.factors(self.rows.code, self.rows.code, theta[self.columns :])
        return replace(self.problem, similarity=similarity).with_factors(factors)

    def judge(self, theta: Array, problem: Problem, state: PoolState) -> Evaluation:
        """Return the criterion of sums, whoever has summed them.

        Parameters
        ----------
        theta : ndarray of shape (p,)
            Where.
        problem : Problem
            What `at` returns there.
        state : PoolState
            Its sums.

        Returns
        -------
        Evaluation
            Not remembered in `tried`.
        """
        if self.ridge:
            state = with_ridge(state, problem.layout, ridge_weight(self.ridge, self.columns, self._log_peak))
        fit = solve(state, problem.layout)
        prediction = fit.intercept
        if not fit.occupied.all():
            prediction = np.where(fit.occupied[:, None], prediction, self._mean_of_others())
        residual = (problem.value - prediction) * self._share
        hat, empty = np.empty(0), ~fit.occupied
        if self.criterion.log_penalty is not None:
            own = np.ones(len(residual))
            if problem.factors is not None:
                for table, level in zip(problem.factors.tables, self.rows.code.T, strict=True):
                    own *= np.diagonal(table)[level]
            itself = np.exp(self._log_peak - state.shift) / state.denominator * own
            hat, empty = itself * fit.base, self._holds_one_row(itself)
        counted = Counted(residual, 1.0, 0.0)
        if hat.size and problem.degree:
            counted = count_deleted(residual, self.alone, hat, self.bound)
        cost = cost_of_empty(empty, self.rows.weight)
        penalised, error, residual, slope = penalise(self.criterion, counted.residual, self.rows.weight, hat, cost)
        if self.regularity is not None:
            penalised, residual = self.regularity.put_on(penalised, residual, theta, self.rows.number)
        return Evaluation(theta, penalised, error, residual, problem, state, fit, hat, slope, counted, self.ridge)

    def _holds_one_row(self, itself: Array) -> NDArray[np.bool_]:
        """Tell which windows of a compact kernel hold one row, given the pooling weight of one unit of it."""
        compact, weight = self.problem.similarity.kernel.is_compact, self.rows.weight
        return np.asarray(compact & (weight <= 1.0) & (itself * weight >= 1.0 - ROUNDING))

    def differentiate(self, at: Evaluation, moved: Array, log_hat_moved: Array | None) -> Array:
        """Return the derivatives of the residuals, of shape (n c, p), given those of the fits.

        Parameters
        ----------
        at : Evaluation
            Where.
        moved : ndarray of shape (n, c, p)
            Derivatives of the fits.
        log_hat_moved : ndarray of shape (n, p) or None
            Those of the logarithms of the diagonal of the hat matrix at equal factors of the levels of a row with
            themselves; None for a criterion without penalty.

        Returns
        -------
        ndarray of shape (n c, p)
            With the share of each row, and the penalty.
        """
        root = np.exp(0.5 * log_factor(at.penalised, at.error))
        factor = root * self._share * at.counted.by_fit
        if at.ridge:
            ridge = ridge_weight(at.ridge, self.columns, self._log_peak)
            own = np.divide(at.fit.tilt, at.fit.base[:, None])
            moved[:, :, : self.columns] += 2.0 * change_by_ridge(at.state, at.fit, ridge, at.fit.slope)
            if log_hat_moved is not None:
                log_hat_moved[:, : self.columns] += (
                    2.0 * change_by_ridge(at.state, at.fit, ridge, own[:, :, None])[:, 0]
                )
        result = -factor[:, :, None] * _bounded(moved)
        if log_hat_moved is not None:
            by_trace, by_hat = self._penalty_gradient(at, log_hat_moved)
            result += at.residual[:, :, None] * (0.5 * by_trace) + root * by_hat
        if self.regularity is not None:
            result += self.regularity.moved(at.residual, at.theta, self.rows.number)
        return np.asarray(result.reshape(-1, len(at.theta)))

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
        return self.problem.value

    @property
    def all_tried(self) -> list[Tried]:
        """What was tried, quickly and by the engine."""
        return [*self.tried_quickly, *self.tried]

    @property
    def best(self) -> Tried:
        """The smallest of all that was tried; of equal ones that with the largest bandwidths."""
        return best_of(self.tried)

    def gradient(self, at: Evaluation) -> Array:
        """Return the derivatives of the logarithm of the penalised mean of squares."""
        return np.asarray(2.0 * self.jacobian(at).T @ at.residual.ravel() / at.penalised)

    def _penalty_gradient(self, at: Evaluation, log_hat_moved: Array) -> tuple[Array, Array]:
        """Return the slopes of the log penalty, and what those of the hat diagonal add to each residual before it."""
        moved, factors = _bounded(log_hat_moved), at.problem.factors
        columns = () if factors is None else zip(factors.tables, factors.slopes, strict=True)
        for a, (table, slope) in enumerate(columns):
            moved[:, self.columns + a] += (np.diagonal(slope) / np.diagonal(table))[self.rows.code[:, a]]
        by_hat = np.asarray(at.counted.by_hat)[..., None] * (at.hat[:, None] * moved)[:, None]
        return np.asarray(at.penalty_slope * ((self.rows.weight * at.hat) @ moved)), by_hat

    def _log_hat_moved(self, at: Evaluation) -> Array:
        layout = replace(at.problem.layout, values=1)
        numerator = np.zeros((len(at.hat), layout.width))
        if layout.degree:
            whole = at.problem.layout
            numerator[:, layout.first] = at.state.numerator[:, whole.first]
            numerator[:, layout.second] = at.state.numerator[:, whole.second]
        numerator[:, layout.value] = (at.state.denominator / at.fit.base)[:, None]
        problem = replace(at.problem, value=np.zeros((len(at.hat), 1)), value_center=np.zeros(1))
        state = PoolState(at.state.shift, at.state.denominator, numerator)
        return self.pullback(problem, state, np.ones((len(at.hat), 1)))

    def pullback(self, problem: Problem, state: PoolState, cotangent: Array) -> Array:
        """Return the derivatives of the sum of predictions times cotangents, of shape (n, p): of each row its part."""
        wanted = ("log_bandwidth", "smoothing") if len(self.categories) else ("log_bandwidth",)
        plan = choose(problem, self.algorithm, often=True)
        found = plan.pullback(problem, state, cotangent, wanted, n_jobs=self.n_jobs, progress=self.progress)
        return np.hstack([part for part in (found.log_bandwidth, found.smoothing) if part is not None])

    def _mean_of_others(self) -> Array:
        rows, value = self.rows, self.problem.value
        itself, gone = weight_left_out(rows.weight, value, rows.group)
        others, total = rows.total - itself, rows.weight @ value - gone
        return np.divide(total, others[:, None], where=others[:, None] > 0, out=np.zeros_like(total))


def _bounded(slopes: Array) -> Array:
    """Cut slopes off: at a smoothing of zero they may be as good as infinite, and their squares have to be numbers.

    Of weights beyond the range of numbers they are differences of infinities, and nothing is known of them.
    """
    return np.clip(np.nan_to_num(slopes, nan=0.0), -STEEPEST, STEEPEST)
