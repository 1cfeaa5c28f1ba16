"""Significance tests of input columns, by residuals of the fit without them or by slopes of the fit with them.

Tests by residuals use the statistic of Zheng (1996), shared with `specification.py`: whether residuals of
neighbouring rows are correlated::

    T = sum_i u_i sum_{j != i} K_ij u_j / sqrt(2 sum_i u_i^2 sum_{j != i} K_ij^2 u_j^2)

If the model is right, the signs of neighbouring residuals are unrelated, and T is about standard normal. If not,
neighbours have residuals of the same sign, and T grows with the number of rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from kernpool._arrays import Array
from kernpool.core import Problem
from kernpool.inference.hypothesis_tests.base import TestResult, TestSample
from kernpool.inference.resampling.bootstrap import predicted, predicted_from_others
from kernpool.kernels import get_kernel, square
from kernpool.pooling import Recipe, sum_problem
from kernpool.smoother import EvaluationPoints, SharedSums, Smoother, squared_norm
from kernpool.smoother.bias_correction import plane_slopes

Statistic = Callable[[Array], Array]  # of each column of residuals or outputs, of shape (n, columns)


def zheng_statistic(near: Smoother) -> Statistic:
    """Build Zheng's statistic T of residuals, from the kernel weights between all pairs of different rows."""
    problem, recipe = near.problem(near.training, exclude_self=True), near.recipe
    similarity, factors, term = problem.similarity, problem.factors, square(recipe.kernel)
    if factors is not None:
        factors = replace(factors, tables=tuple(table**2 for table in factors.tables))
    squared = replace(problem, similarity=similarity.squared(term.kernel, term.width), factors=factors)
    columns = problem.key.shape[1] if recipe.kernel.composition == "product" else 1

    def sums(problem: Problem, value: Array) -> Array:
        """Return kernel sums of values of the other rows, not normalised, of shape (n, columns)."""
        state = sum_problem(replace(problem, value=value, value_center=np.zeros(value.shape[1])), recipe)
        unit = np.where(state.denominator > 0, np.exp(state.shift), 0.0)
        return unit[:, None] * state.numerator[:, : value.shape[1]]

    if not np.any(sums(squared, np.ones((len(problem.key), 1))) > 0):
        raise ValueError(
            f"no two rows are within reach of each other at bandwidth={recipe.bandwidth.tolist()}; use a larger one"
        )

    def statistic(residual: Array) -> Array:
        together, squares = np.sum(residual * sums(problem, residual), axis=0), residual**2
        variance = 2.0 * term.factor**columns * np.sum(squares * sums(squared, squares), axis=0)
        return np.asarray(np.divide(together, np.sqrt(variance), where=variance > 0, out=np.zeros_like(together)))

    return statistic


REPEATED = "repeated rows are predicted by their own copies: fit each row once, without weights"


def columns_by_residuals(
    sample: TestSample, restricted: Smoother, smoothing: Array, tested: list[int], null: str
) -> TestResult:
    r"""Test whether input columns matter, using residuals of the fit without them."""
    # the smoothing of tested columns is at most n^(-2/(4+d)), for power even if the fit has smoothed them away
    n, d = len(sample), sample.X.shape[1]
    sharp = smoothing.copy()
    sharp[tested] = np.minimum(sharp[tested], n ** (-2.0 / (4.0 + d)))
    # The choice of kernel hardly matters; the Gaussian leaves no row without neighbours.
    recipe = Recipe.of("gaussian", sample.test_bandwidth(get_kernel("gaussian")), n_jobs=restricted.recipe.n_jobs)
    statistic, rows = zheng_statistic(sample.smoother(recipe, sharp)), restricted.training
    value = sample.y[:, None]
    left = value - predicted_from_others(restricted)
    own = value - predicted(restricted, rows, value)
    sample.refuse_exact(left, f"the fit where {null}", own, REPEATED)
    return sample.test(
        lambda outputs: statistic(outputs - predicted(restricted, rows, outputs)),
        sample.y - own[:, 0],
        left[:, 0],
        null=null,
        bandwidth=recipe.bandwidth[:d],  # levels alone have a column of zeros
        smoothing=tuple(sharp.tolist()),
    )


def columns_by_slopes(sample: TestSample, fit: Smoother, tested: list[int], null: str) -> TestResult:
    """Test whether numeric columns matter, using their slopes in the full fit."""
    value, rows = sample.y[:, None], fit.training
    left = value - predicted_from_others(fit)
    sample.refuse_exact(left, "the fit", value - predicted(fit, rows, value), "give the model a larger one")
    level = sample.X.copy()
    level[:, tested] = np.median(level[:, tested], axis=0)
    nearest = replace(fit, recipe=replace(fit.recipe, empty="nearest"))
    middle = predicted(nearest, EvaluationPoints(level, rows.code), value)[:, 0]
    bandwidth = np.broadcast_to(fit.recipe.bandwidth, (fit.columns,))
    return sample.test(slope_statistic(fit, tested), middle, left[:, 0], null=null, bandwidth=bandwidth)


def slope_statistic(fit: Smoother, tested: list[int]) -> Statistic:
    r"""Build the significance statistic I: squared t-statistics of the tested columns' slopes, averaged over rows.

    .. math:: I = \frac1n \sum_i \sum_{a \in S} \Big(\frac{\hat\beta_{ia}}{s_i \lVert l^{(a)}_i \rVert}\Big)^2, \qquad
              s_i^2 = \frac{\sum_j K_{ij} y_j^2}{\sum_j K_{ij}} - \Big(\frac{\sum_j K_{ij} y_j}{\sum_j K_{ij}}\Big)^2

    with the slopes of local planes, the norms of their linear weights, which do not depend on outputs, and the local
    variance of R's np.
    """
    planes, means = (replace(fit, recipe=replace(fit.recipe, degree=degree)) for degree in (1, 0))
    norm, rows = slope_norms(planes)[:, tested], fit.training

    def statistic(value: Array) -> Array:
        value = value - value.mean(axis=0)  # the variance is a difference of squares
        columns = value.shape[1]
        with_values = planes.with_values(value)
        slope = with_values.fit(with_values.problem(rows)).fit.slope[:, tested, :]
        moments = predicted(means, rows, np.hstack([value, value**2]))
        variance = np.maximum(moments[:, columns:] - moments[:, :columns] ** 2, 0.0)
        error = norm[:, :, None] * np.sqrt(variance)[:, None, :]
        # A row without others has neither a slope nor a variance.
        ratio = np.divide(slope, error, where=error > 0, out=np.zeros_like(slope))
        return np.asarray(np.mean(np.sum(ratio**2, axis=1), axis=0))

    return statistic


def slope_norms(planes: Smoother) -> Array:
    """Return the norm of the linear weights of each local slope, times its column's bandwidth: shape (m, d)."""
    _, shares = plane_slopes(planes.fit(planes.problem(planes.training)))
    sums = SharedSums(planes.sums)
    norms = np.sqrt(np.stack([squared_norm([(1.0, share)], sums) for share in shares], axis=1))
    return np.where(np.isfinite(norms), norms * planes.recipe.bandwidth, 0.0)
