"""A linear smoother: the training rows and how they are pooled, which is all that inference knows of a model.

Its values are linear in the outputs, so their variance is a sum over squared shares (`quadratic_forms.py`), and another
bandwidth, degree or smoothing is another smoother of the same rows.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from kernpool.bandwidth.categories import NO_CATEGORIES, Categories
from kernpool.core.keys import Keys
from kernpool.core.local_fit import LocalFit
from kernpool.core.problem import FLOAT64, FLOAT64_EPSILON, LARGEST_TOL, Problem
from kernpool.core.reading import center_of_values, subtract
from kernpool.core.state import PoolState
from kernpool.inference.kept_sums import KeptSums
from kernpool.inference.printing import ROWS
from kernpool.pooling.choice import choose
from kernpool.pooling.plan import algorithm_within
from kernpool.pooling.recipe import Recipe
from kernpool.pooling.settle import Sums
from kernpool.pooling.weights import effective_rows

Array = NDArray[np.float64]
Codes = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Places:
    """Where something is to be known.

    Parameters
    ----------
    query : ndarray of shape (m, d)
        Numeric columns, in the units in which the smoother compares them.
    code : ndarray of int64, shape (m, k), or None
        Level numbers of the categorical columns, if there are any.
    """

    query: Array
    code: Codes | None = None

    def rows(self, which: slice | NDArray[np.intp]) -> Places:
        """Return some of the places."""
        return Places(self.query[which], None if self.code is None else self.code[which])


@dataclass(frozen=True, eq=False)
class Smoother:
    """Training rows, and how they are pooled.

    Parameters
    ----------
    keys : Keys
        Numeric columns, outputs and frequencies of the rows.
    recipe : Recipe
        Kernel, bandwidths, degree and ridge.
    key_code : ndarray of int64, shape (n, k), or None
        Level numbers of the rows.
    categories : Categories
        Of the categorical columns.
    smoothing : ndarray of shape (k,)
        Of the categorical columns.
    factor : float
        Bandwidths in units of those that the first smoother had.
    kept : KeptSums or None
        Where sums at few places are kept; None to keep none.
    """

    keys: Keys
    recipe: Recipe
    key_code: Codes | None = None
    categories: Categories = NO_CATEGORIES
    smoothing: Array = field(default_factory=lambda: np.zeros(0))
    factor: float = 1.0
    kept: KeptSums | None = None

    @property
    def columns(self) -> int:
        """Number of numeric columns."""
        return int(self.keys.rows.array.shape[1])

    @cached_property
    def weight(self) -> Array:
        """Frequencies of the rows, of shape (n,)."""
        weight, n = self.keys.weight, len(self.keys.value)
        return np.ones(n) if weight is None else weight * self.keys.unit

    @property
    def value(self) -> Array:
        """Outputs of the rows, of shape (n, c)."""
        return np.asarray(self.keys.value + self.keys.center)

    @property
    def training(self) -> Places:
        """The rows themselves."""
        return Places(self.keys.rows.array, self.key_code)

    def effective_rows(self, places: Places) -> Array:
        """Return the effective sample sizes of the windows of those places that a printed table shows."""
        return effective_rows(self.problem(places.rows(slice(0, ROWS))), self.weight)

    def of_degree(self, degree: int) -> Smoother:
        """Return the local fit of another degree at the same bandwidths; constants and quadratics have no ridge."""
        if degree == self.recipe.degree:
            return self
        ridge = self.recipe.ridge if degree == 1 else 0.0
        return replace(self, recipe=replace(self.recipe, degree=degree, ridge=ridge))

    def with_values(self, value: Array) -> Smoother:
        """Return the same rows with other outputs, of shape (n, columns); shares do not depend on them."""
        center = center_of_values(value, self.keys.weight, None)
        return replace(self, keys=replace(self.keys, value=subtract(value, center), center=center))

    def widened(self, factor: float, *, levels: bool = True) -> Smoother:
        """Return the smoother with other bandwidths.

        Parameters
        ----------
        factor : float
            What bandwidths are multiplied by.
        levels : bool, default=True
            Whether smoothings of categorical columns are multiplied by its square, up to the end of their box: their
            bias grows with the smoothing as that of numeric columns does with the squared bandwidth.

        Returns
        -------
        Smoother
            Of the same rows.
        """
        smoothing = np.minimum(self.smoothing * factor**2, self.categories.largest) if levels else self.smoothing
        recipe = replace(self.recipe, bandwidth=np.asarray(self.recipe.bandwidth * factor))
        return replace(self, recipe=recipe, smoothing=smoothing, factor=self.factor * factor)

    def problem(self, places: Places, *, exclude_self: bool = False) -> Problem:
        """Return the problem of some places; sums are exact to rounding whatever the model tolerates."""
        factors = None
        if len(self.categories) and places.code is not None and self.key_code is not None:
            factors = self.categories.factors(places.code, self.key_code, self.smoothing)
        problem = self.recipe.problem(places.query, self.keys, exclude_self=exclude_self, factors=factors)
        return replace(problem, tol=min(FLOAT64_EPSILON, LARGEST_TOL[problem.degree]), dtype=FLOAT64)

    def sums(self, problem: Problem) -> PoolState:
        """Sum a problem, of values less their center, by the algorithm of the recipe where that can do it."""

        def make() -> PoolState:
            plan = choose(problem, algorithm_within(problem, self.recipe.algorithm), often=True)
            return plan.reduce(problem.without_center(), n_jobs=self.recipe.n_jobs)

        return make() if self.kept is None else self.kept.get(problem, make)

    def settled(self, problem: Problem, state: PoolState) -> LocalFit:
        """Solve for the constant or the plane around each query, with the ridge of the recipe."""
        ridge = self.recipe.ridge_weight(self.columns)
        return Sums(state, problem.layout, problem.value_center).fit(ridge)

    def fit(self, places: Places) -> Fitted:
        """Fit around some places."""
        problem = self.problem(places)
        state = self.sums(problem)
        return Fitted(self, problem, state, self.settled(problem, state))


@dataclass(frozen=True, eq=False)
class Fitted:
    """A smoother at some places.

    Parameters
    ----------
    smoother : Smoother
        What was fitted.
    problem : Problem
        Of the places.
    state : PoolState
        Its sums, of values less their center, without the ridge.
    fit : LocalFit
        What they give.
    """

    smoother: Smoother
    problem: Problem
    state: PoolState
    fit: LocalFit

    @property
    def log_mass(self) -> Array:
        """Logarithm of the sum of the weights, of shape (m,); minus infinity where the window is empty."""
        return log_mass(self.state)


def log_mass(state: PoolState) -> Array:
    """Return the logarithm of the sum of the weights, of shape (m,); minus infinity where the window is empty."""
    return np.where(state.denominator > 0, state.log_denominator, -np.inf)
