"""Rows smoothed at themselves, for as many columns of values as resampling makes; shares do not depend on values."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from kernpool.bandwidth.leave_one_out import leave_one_out
from kernpool.core.empty import fill_empty
from kernpool.core.factors import Factors
from kernpool.core.local_fit import LocalFit
from kernpool.core.problem import Problem
from kernpool.core.reading import center_of_values, subtract
from kernpool.kernels.products import square
from kernpool.pooling.arrays import local_fit
from kernpool.pooling.choice import choose
from kernpool.pooling.limits import limit_values
from kernpool.pooling.recipe import Recipe

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class LinearMap:
    """A fit as a linear map from values of the keys to values at the queries.

    Parameters
    ----------
    problem : Problem
        Its queries, keys and weights; the values in it are not used.
    recipe : Recipe
        How it is summed: algorithm, threads, ridge, and what empty windows become.
    """

    problem: Problem
    recipe: Recipe

    @classmethod
    def at_rows(
        cls, recipe: Recipe, X: Array, factors: Factors | None = None, weight: Array | None = None
    ) -> LinearMap:
        """Return the fit at the keys themselves.

        Parameters
        ----------
        recipe : Recipe
            How to pool.
        X : ndarray of shape (n, d)
            Numeric columns.
        factors : Factors, optional
            Of categorical ones, rows with rows.
        weight : ndarray of shape (n,), optional
            Frequencies.
        """
        return cls(recipe.problem(X, X, np.zeros(len(X)), key_weight=weight, factors=factors), recipe)

    def of(self, value: Array) -> Problem:
        """Return the problem with these values, of shape (n, columns)."""
        center = center_of_values(value, self.problem.key_weight, None)
        return replace(self.problem, value=subtract(value, center), value_center=center)

    def without_self(self) -> LinearMap:
        """Return the fit that leaves one unit of each query's own key out; queries are the keys."""
        return replace(self, problem=replace(self.problem, self_index=np.arange(len(self.problem.key))))

    def local(self, value: Array) -> LocalFit:
        """Return the local fits of these values, for empty windows zero."""
        ridge = self.recipe.ridge_weight(self.problem.key.shape[1])
        return local_fit(self.of(value), self.recipe.algorithm, self.recipe.n_jobs, complete=False, ridge=ridge)

    def fit(self, value: Array) -> Array:
        """Return the fit of each column of values, of shape (m, columns); for empty windows as the recipe says."""
        found = self.local(value)
        if found.occupied.all():
            return found.intercept
        if self.recipe.empty in ("nearest", "mean"):
            fill = partial(limit_values, self.of(value), empty=self.recipe.empty, n_jobs=self.recipe.n_jobs)
            return fill_empty(found.intercept, found.occupied, self.recipe.empty, fill)
        return np.where(found.occupied[:, None], found.intercept, 0.0 if self.recipe.empty == "zero" else np.nan)

    def means_of_squares(self, square: Array) -> Array:
        """Return local means of columns of squares, for empty windows zero.

        Not their center is taken off, but the least of them, which costs no digits where squares are small.
        """
        center = np.min(square, axis=0)
        problem = replace(self.problem, value=subtract(square, center), value_center=center)
        found = local_fit(problem, self.recipe.algorithm, self.recipe.n_jobs, complete=False)
        return np.where(found.occupied[:, None], np.maximum(found.intercept, 0.0), 0.0)

    def look(self, value: Array) -> None:
        """Warn, once, of empty windows, or raise, as the recipe says; `fit` does not."""
        if self.recipe.empty in ("nan", "raise", "nearest"):
            found = self.local(value[:, :1])
            self.recipe.fill_empty(found.intercept, found.occupied, lambda rows: found.intercept[rows])

    def predicted_from_others(self, value: Array) -> Array:
        """Return the leave-one-out fit of each column at the keys; isolated rows have the mean of the others."""
        others = self.without_self()
        ridge = self.recipe.ridge_weight(self.problem.key.shape[1])
        found = leave_one_out(others.of(value), algorithm=self.recipe.algorithm, n_jobs=self.recipe.n_jobs, ridge=ridge)
        return found.prediction

    def sums(self, value: Array) -> Array:
        """Return the sums of weight times value themselves, of shape (m, columns)."""
        problem = self.of(value)
        plan = choose(problem, self.recipe.algorithm, often=True)
        state = plan.reduce(problem, n_jobs=self.recipe.n_jobs)
        unit = np.where(state.denominator > 0, np.exp(state.shift), 0.0)
        return np.asarray(unit[:, None] * state.numerator[:, : value.shape[1]])

    def squared(self) -> tuple[LinearMap, float]:
        """Return the same with all weights of pairs squared, up to a factor, and that factor; weights of rows stay."""
        problem, term = self.problem, square(self.problem.similarity.kernel)
        columns = problem.key.shape[1] if problem.similarity.composition == "product" else 1
        factors = problem.factors
        if factors is not None:
            tables = tuple(table**2 for table in factors.tables)
            problem = problem.without_factors().with_factors(replace(factors, tables=tables))
        return replace(self, problem=problem.with_kernel(term.kernel, term.width)), term.factor**columns
