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
from numpy.typing import NDArray

from kernpool.core import Factors, PoolState, Problem
from kernpool.inference.hypothesis_tests.base import TestResult, TestSample, WildBootstrap
from kernpool.inference.resampling.bootstrap import SmootherMatrix
from kernpool.kernels import get_kernel
from kernpool.pooling import Recipe, sum_problem
from kernpool.smoother.bias_correction import slope_shares
from kernpool.smoother.quadratic_forms import inner

Array = NDArray[np.float64]
Statistic = Callable[[Array], Array]  # of each column of residuals or outputs, of shape (n, columns)


def zheng_statistic(recipe: Recipe, X: Array, factors: Factors | None = None) -> Statistic:
    """Build Zheng's statistic T of residuals, from the kernel weights between all pairs of different rows."""
    near = SmootherMatrix.at_rows(recipe, X, factors).without_self()
    squared, factor = near.squared()
    if not np.any(squared.sums(np.ones((len(X), 1))) > 0):
        raise ValueError(
            f"no two rows are within reach of each other at bandwidth={recipe.bandwidth.tolist()}; use a larger one"
        )

    def statistic(residual: Array) -> Array:
        together, squares = np.sum(residual * near.sums(residual), axis=0), residual**2
        variance = 2.0 * factor * np.sum(squares * squared.sums(squares), axis=0)
        return np.asarray(np.divide(together, np.sqrt(variance), where=variance > 0, out=np.zeros_like(together)))

    return statistic


REPEATED = "repeated rows are predicted by their own copies: fit each row once, without weights"


def columns_by_residuals(
    sample: TestSample, restricted: SmootherMatrix, smoothing: Array, tested: list[int], null: str, how: WildBootstrap
) -> TestResult:
    r"""Test whether input columns matter, using residuals of the fit without them."""
    # the smoothing of tested columns is at most n^(-2/(4+d)), for power even if the fit has smoothed them away
    n, d = len(sample), sample.X.shape[1]
    sharp = smoothing.copy()
    sharp[tested] = np.minimum(sharp[tested], n ** (-2.0 / (4.0 + d)))
    # The choice of kernel hardly matters; the Gaussian leaves no row without neighbours.
    recipe = Recipe.of("gaussian", sample.test_bandwidth(get_kernel("gaussian")), n_jobs=restricted.recipe.n_jobs)
    statistic = zheng_statistic(recipe, sample.numeric, sample.factors(sharp))
    value = sample.y[:, None]
    left = value - restricted.predicted_from_others(value)
    own = value - restricted.fit(value)
    sample.refuse_exact(left, "the fit without the tested columns", own, REPEATED)
    return how.test(
        lambda outputs: statistic(outputs - restricted.fit(outputs)),
        sample.y,
        sample.y - own[:, 0],
        left[:, 0],
        null=null,
        bandwidth=recipe.bandwidth,
    )


def columns_by_slopes(
    sample: TestSample, recipe: Recipe, factors: Factors | None, tested: list[int], null: str, how: WildBootstrap
) -> TestResult:
    """Test whether numeric columns matter, using their slopes in the full fit."""
    fit = SmootherMatrix.at_rows(recipe, sample.X, factors)
    value = sample.y[:, None]
    left = value - fit.predicted_from_others(value)
    sample.refuse_exact(left, "the fit", value - fit.fit(value), "give the model a larger one")
    level = sample.X.copy()
    level[:, tested] = np.median(level[:, tested], axis=0)
    there = recipe.problem(level, sample.X, np.zeros(len(sample)), factors=factors)
    middle = SmootherMatrix(there, replace(recipe, empty="nearest")).fit(value)[:, 0]
    statistic = slope_statistic(recipe, sample.X, factors, tested)
    bandwidth = fit.problem.similarity.bandwidth
    return how.test(statistic, sample.y, middle, left[:, 0], null=null, bandwidth=bandwidth)


def slope_statistic(recipe: Recipe, X: Array, factors: Factors | None, tested: list[int]) -> Statistic:
    r"""Build the significance statistic I: squared t-statistics of the tested columns' slopes, averaged over rows.

    .. math:: I = \frac1n \sum_i \sum_{a \in S} \Big(\frac{\hat\beta_{ia}}{s_i \lVert l^{(a)}_i \rVert}\Big)^2, \qquad
              s_i^2 = \frac{\sum_j K_{ij} y_j^2}{\sum_j K_{ij}} - \Big(\frac{\sum_j K_{ij} y_j}{\sum_j K_{ij}}\Big)^2

    with the slopes of local planes, the norms of their linear weights, which do not depend on outputs, and the local
    variance of R's np.
    """
    planes = SmootherMatrix.at_rows(replace(recipe, degree=1), X, factors)
    means = SmootherMatrix.at_rows(replace(recipe, degree=0), X, factors)
    norm = slope_norms(planes)[:, tested]

    def statistic(value: Array) -> Array:
        value = value - value.mean(axis=0)  # the variance is a difference of squares
        columns = value.shape[1]
        slope = planes.local(value).slope[:, tested, :]
        moments = means.fit(np.hstack([value, value**2]))
        variance = np.maximum(moments[:, columns:] - moments[:, :columns] ** 2, 0.0)
        error = norm[:, :, None] * np.sqrt(variance)[:, None, :]
        # A row without others has neither a slope nor a variance.
        ratio = np.divide(slope, error, where=error > 0, out=np.zeros_like(slope))
        return np.asarray(np.mean(np.sum(ratio**2, axis=1), axis=0))

    return statistic


def slope_norms(planes: SmootherMatrix) -> Array:
    """Return the norm of the linear weights of each local slope, times its column's bandwidth: shape (m, d)."""
    recipe, problem = planes.recipe, planes.problem_with(np.zeros((len(planes.problem.key), 1)))

    def sums(problem: Problem) -> PoolState:
        return sum_problem(problem, recipe)

    ridge, bandwidth = recipe.ridge_weight(problem.key.shape[1]), problem.similarity.bandwidth
    shares = slope_shares(problem, sums(problem), ridge)
    norms = np.stack([np.sqrt(np.maximum(inner(share, share, sums), 0.0)) for share in shares], axis=1)
    return np.where(np.isfinite(norms), norms * bandwidth, 0.0)
