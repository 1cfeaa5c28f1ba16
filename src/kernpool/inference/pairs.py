r"""The statistic of tests by residuals: whether those of rows that are alike go together.

.. math:: T = \sum_i u_i \sum_{j \ne i} K_{ij} u_j \Big/ \sqrt{2 \sum_i u_i^2 \sum_{j \ne i} K_{ij}^2 u_j^2}

If the model is right, signs of residuals of neighbours are unrelated, and T is about standard normal. If not,
neighbours have residuals of the same sign, and T grows with the number of rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kernpool.core.factors import Factors
from kernpool.inference.linear_map import LinearMap
from kernpool.inference.null_distribution import resample
from kernpool.inference.results import TestResult
from kernpool.pooling.recipe import Recipe

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class PairStatistic:
    """T, for columns of residuals."""

    near: LinearMap
    squared: LinearMap
    factor: float

    @classmethod
    def of(cls, recipe: Recipe, X: Array, factors: Factors | None = None) -> PairStatistic:
        """Weigh pairs of rows.

        Parameters
        ----------
        recipe : Recipe
            Kernel and bandwidth.
        X : ndarray of shape (n, d)
            Numeric columns.
        factors : Factors, optional
            Of categorical ones.

        Raises
        ------
        ValueError
            If no two rows have a weight.
        """
        near = LinearMap.at_rows(recipe, X, factors).without_self()
        squared, factor = near.squared()
        if not np.any(squared.sums(np.ones((len(X), 1))) > 0):
            raise ValueError(
                f"no two rows are within reach of each other at bandwidth={recipe.bandwidth.tolist()}; use a larger one"
            )
        return cls(near, squared, factor)

    def __call__(self, residual: Array) -> Array:
        """Return T of each column of residuals, of shape (n, columns); zero where it is 0 / 0."""
        together = np.sum(residual * self.near.sums(residual), axis=0)
        squares = residual**2
        variance = 2.0 * self.factor * np.sum(squares * self.squared.sums(squares), axis=0)
        return np.asarray(np.divide(together, np.sqrt(variance), where=variance > 0, out=np.zeros_like(together)))


def compare_pairs(
    statistic: PairStatistic,
    residuals: Callable[[Array], Array],
    y: Array,
    middle: Array,
    left: Array,
    *,
    kind: str,
    n_resamples: int,
    seed: int,
    null: str,
) -> TestResult:
    """Test by T.

    Parameters
    ----------
    statistic : PairStatistic
        What pairs weigh.
    residuals : callable
        Residuals of outputs of shape (n, columns) from the model of the null hypothesis.
    y : ndarray of shape (n,)
        The output.
    middle, left : ndarray of shape (n,)
        The fit of the null hypothesis, and the residuals that are multiplied.
    kind, n_resamples, seed
        As of `resample`.
    null : str
        The null hypothesis, in words.
    """

    def of(outputs: Array) -> Array:
        return statistic(residuals(outputs))

    resampled = resample(of, middle, left, kind=kind, n_resamples=n_resamples, seed=seed)
    bandwidth = statistic.near.recipe.bandwidth
    return TestResult.of(of(y[:, None])[0], resampled, null=null, bandwidth=bandwidth)
