"""The linear smoother of a fitted model: its training rows, how they are pooled, and sums that computations share.

Inference needs nothing else of a model. Fitted values are linear in the outputs, so their variance is a sum over
squared linear weights (`quadratic_forms.py`), and another bandwidth, degree or smoothing is another smoother of the
same rows.

`SharedSums` avoids passes over the keys within one computation: the square of a Gaussian kernel is a Gaussian kernel
of another bandwidth, and the linear weights of different slopes are combinations of the same moments. Nothing is kept
for later calls but the fit at the training rows.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property, partial

import numpy as np
from numpy.typing import NDArray

from kernpool.core import NO_CATEGORIES, Categories, Factors, Keys, Layout, LocalFit, Prepared, RowOrder
from kernpool.core.input_validation import center_of_values, in_unit, subtract
from kernpool.core.problem import FLOAT64, FLOAT64_EPSILON, LARGEST_TOL, Problem
from kernpool.core.state import Empty, PoolState, fill_in_silence
from kernpool.execution.threads import cut
from kernpool.pooling import Recipe, Sums, limit_values, sum_problem
from kernpool.pooling.widths import nearest_widths
from kernpool.smoother.quadratic_forms import Summed, Terms, log_mass, norms_by_rows
from kernpool.smoother.windows import effective_rows, widening

Array = NDArray[np.float64]
Known = tuple[Problem, PoolState]

ROUNDING = 1e-14  # of bandwidths: h sqrt(2) / sqrt(2) is h
MOMENTS = ("first", "second", "third", "fourth")


class SharedSums:
    """Cache of kernel sums that pooling problems with equal queries, keys and weights share, whatever their values.

    Intervals of d slopes take three passes for the norms instead of 3 d: 67 ms instead of 171 at 401 points of 20 000
    rows in three columns. For the default interval with a Gaussian kernel this saves two of eight passes: the square of
    the kernel of the wider fit is the kernel of the narrower one, and that of the noise fit is the kernel of the wider.

    Parameters
    ----------
    sums : callable
        Sums a problem; `Smoother.sums`.
    known : iterable of (Problem, PoolState)
        States that are already computed, such as those of fits; their values are ignored.
    """

    def __init__(self, sums: Summed, known: Iterable[Known] = ()) -> None:
        self._sums, self._known = sums, list(known)

    def __call__(self, problem: Problem) -> PoolState:
        """Return the kernel sums of a pooling problem, cached or computed; those of weighted values are meaningless."""
        state = self.known(problem)
        if state is None:
            state = self._sums(problem)
            self.add(problem, state)
        return state

    def known(self, problem: Problem) -> PoolState | None:
        """Return the kernel sums of a pooling problem if they are cached, otherwise None."""
        for other, state in self._known:
            if _are_same_pairs(problem, other):
                return _moments(state, other.layout, problem.layout)
        return None

    def add(self, problem: Problem, state: PoolState) -> None:
        """Add the kernel sums of a pooling problem to the cache."""
        self._known.append((problem, state))

    def made(self, problem: Problem) -> PoolState:
        """Compute the kernel sums of a pooling problem without caching them."""
        return self._sums(problem)


def _are_same_pairs(problem: Problem, other: Problem) -> bool:
    one, two = problem.similarity, other.similarity
    return (
        problem.key is other.key
        and has_plain_pairs(problem)
        and has_plain_pairs(other)
        and problem.degree <= other.degree
        and one.kernel is two.kernel
        and one.composition == two.composition
        and bool(np.all(np.abs(one.bandwidth - two.bandwidth) <= ROUNDING * one.bandwidth))
        and are_equal(one.widening, two.widening)
        and are_equal(problem.tied, other.tied)
        and problem.weight_unit == other.weight_unit
        and are_equal(problem.key_weight, other.key_weight)
        and are_equal(problem.query, other.query)
        and are_equal_factors(problem.factors, other.factors)
    )


def has_plain_pairs(problem: Problem) -> bool:
    """Return whether a pooling problem has no self-exclusion, groups, masks or biases of query-key pairs."""
    return all(pairs is None for pairs in (problem.self_index, problem.groups, problem.attn_mask, problem.logit_bias))


def are_equal(one: NDArray[np.generic] | None, other: NDArray[np.generic] | None) -> bool:
    """Return whether two optional arrays are equal, or both None."""
    if one is None or other is None:
        return one is other
    return one is other or np.array_equal(one, other)


def are_equal_factors(one: Factors | None, other: Factors | None) -> bool:
    """Return whether two optional `Factors` have equal category codes and factor tables, or both are None."""
    if one is None or other is None:
        return one is other
    return all(np.array_equal(a, b) for a, b in zip(one.tables, other.tables, strict=True)) and all(
        np.array_equal(a, b) for a, b in ((one.query_code, other.query_code), (one.key_code, other.key_code))
    )


def _moments(state: PoolState, layout: Layout, wanted: Layout) -> PoolState:
    """Return kernel sums rearranged to the columns of moments that a fit of the same or a lower degree needs.

    Sums of values are zero, unless all columns are in place already.
    """
    if layout == wanted:
        return state
    numerator = np.zeros((len(state.denominator), wanted.width))
    for name in MOMENTS[: 2 * wanted.degree]:
        numerator[:, getattr(wanted, name)] = state.numerator[:, getattr(layout, name)]
    return PoolState(state.shift, state.denominator, numerator)


ROWS_AT_ONCE = 1 << 16  # whose fits are some megabytes
Codes = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class EvaluationPoints:
    """Points at which a smoother is evaluated: numeric columns and category codes.

    Parameters
    ----------
    query : ndarray of shape (m, d)
        Numeric columns, in the units in which the smoother compares them.
    code : ndarray of int64, shape (m, k), or None
        Category codes of the categorical columns, if there are any.
    widening : ndarray of shape (m,) or None
        Factor of the bandwidths at each point; `Smoother.points` finds it.
    """

    query: Array
    code: Codes | None = None
    widening: Array | None = None

    def rows(self, which: slice | NDArray[np.intp]) -> EvaluationPoints:
        """Return the evaluation points with these indices."""
        code, widening = self.code, self.widening
        return EvaluationPoints(
            self.query[which], None if code is None else code[which], None if widening is None else widening[which]
        )


@dataclass(frozen=True, eq=False)
class Smoother:
    """Training rows, kernel, bandwidths and degree of a linear smoother.

    Parameters
    ----------
    keys : Keys
        Numeric columns, outputs and frequencies of the rows.
    recipe : Recipe
        Kernel, bandwidths, degree and ridge.
    key_code : ndarray of int64, shape (n, k), or None
        Category codes of the rows.
    categories : Categories
        Categories of the categorical columns.
    smoothing : ndarray of shape (k,)
        Smoothings of the categorical columns.
    factor : float
        Bandwidths in units of those of the first smoother.
    least_rows : float or None
        Effective rows that windows have at least, as `kernpool.smoother.windows` says; None for no floor.
    n_neighbors : int or None
        Units of weight in a window around a point, where widths follow the rows (`kernpool.pooling.widths`); None for
        fixed widths.
    first : Smoother or None
        The smoother by whose bandwidths windows are found; None for this one.
    order : RowOrder or None
        Places of the rows in an order; leave-one-out fits leave out all rows within the gap together with a row.
    """

    keys: Keys
    recipe: Recipe
    key_code: Codes | None = None
    categories: Categories = NO_CATEGORIES
    smoothing: Array = field(default_factory=lambda: np.zeros(0))
    factor: float = 1.0
    least_rows: float | None = None
    n_neighbors: int | None = None
    first: Smoother | None = None
    order: RowOrder | None = None

    @property
    def columns(self) -> int:
        """Number of numeric columns."""
        return int(self.keys.rows.array.shape[1])

    @cached_property
    def weight(self) -> Array:
        """Frequency weights of the training rows, of shape (n,)."""
        weight, n = self.keys.weight, len(self.keys.value)
        return np.ones(n) if weight is None else weight * self.keys.unit

    @property
    def rows(self) -> float:
        """Number of training rows, each counted by its frequency weight."""
        return float(self.weight.sum())

    @property
    def value(self) -> Array:
        """Outputs of the training rows, of shape (n, c)."""
        return np.asarray(self.keys.value + self.keys.center)

    @property
    def widens(self) -> bool:
        """Whether windows differ between evaluation points, and so do those of a row left out."""
        return self.least_rows is not None or self.n_neighbors is not None

    @property
    def training(self) -> EvaluationPoints:
        """The training rows as evaluation points; their windows are found without the row itself."""
        return self.training_points(None)

    def training_points(self, code: Codes | None) -> EvaluationPoints:
        """Return the training rows as evaluation points, with windows of leave-one-out, or leave-cluster-out, fits."""
        rows, first = EvaluationPoints(self.keys.rows.array, self.key_code), self.first or self
        if not self.widens:
            return rows
        recipe, width = first.recipe, (self.least_rows, self.n_neighbors)
        of = recipe.kernel, recipe.composition, recipe.bandwidth, first.smoothing, width, code, self.order

        def make() -> Array | None:
            return first._widening(first._without_related(rows, code))

        found = make() if self.keys.prepared is None else self.keys.prepared.get(("widening", code is None), of, make)
        return replace(rows, widening=found)

    def _without_related(self, rows: EvaluationPoints, code: Codes | None) -> Problem:
        """Return the problem of the training rows, each without itself, its cluster, or the rows within its gap."""
        alone = code is None and self.order is None
        problem = self.problem(rows, exclude_self=alone)
        if code is not None:
            return problem.with_groups(code, code)
        return problem if self.order is None else problem.with_groups(self.order.place, *self.order)

    def points(self, query: Array, code: Codes | None = None) -> EvaluationPoints:
        """Return rows as evaluation points, with windows of enough effective rows."""
        rows, first = EvaluationPoints(query, code), self.first or self
        return replace(rows, widening=first._widening(first.problem(rows))) if self.widens else rows

    def _widening(self, problem: Problem) -> Array | None:
        if self.n_neighbors is not None:
            return nearest_widths(problem, float(self.n_neighbors))
        assert self.least_rows is not None
        least = self.least_rows * min(1.0, self.rows / np.count_nonzero(self.weight))  # weights may be normalised
        return widening(problem, least, self.sums)

    def effective_rows(self, places: EvaluationPoints) -> Array:
        """Return the effective sample sizes at evaluation points, from two passes."""
        return effective_rows(self.problem(places), self.sums)

    def of_residuals(self) -> Smoother:
        """Return the smoother of the rows whose residuals are known, which are all of them here."""
        return self

    def norms_by_rows(self, terms: Terms, rows: NDArray[np.intp], psi: Array | None = None) -> Array:
        """Return the squared norms of linear weights at some queries, by the weight of every row."""
        return norms_by_rows(terms, rows, psi)

    def of_degree(self, degree: int) -> Smoother:
        """Return the smoother with another polynomial degree and the same bandwidths; only degree 1 keeps the ridge."""
        if degree == self.recipe.degree:
            return self
        ridge = self.recipe.ridge if degree == 1 else 0.0
        return replace(self, recipe=replace(self.recipe, degree=degree, ridge=ridge))

    def of_fixed_width(self) -> Smoother:
        """Return the smoother whose windows have the bandwidths of the recipe, at all points and for all rows."""
        return replace(self, least_rows=None, n_neighbors=None)

    def with_values(self, value: Array) -> Smoother:
        """Return the smoother with other outputs, of shape (n, columns), and the same linear weights."""
        center = center_of_values(value, self.keys.weight, None)
        return replace(self, keys=replace(self.keys, value=subtract(value, center), center=center))

    def with_weight(self, weight: Array) -> Smoother:
        """Return the smoother with other weights of its rows, of shape (n,), such as zeros for rows held out."""
        table, unit = in_unit(weight)
        return replace(self, keys=replace(self.keys, weight=table, unit=unit, prepared=Prepared()))

    def widened(self, factor: float, *, levels: bool = True) -> Smoother:
        """Return the smoother with bandwidths multiplied by a factor.

        Parameters
        ----------
        factor : float
            Factor of the bandwidths.
        levels : bool, default=True
            Whether smoothings of categorical columns are multiplied by its square, up to their upper bound: their
            bias grows with the smoothing as that of numeric columns does with the squared bandwidth.

        Returns
        -------
        Smoother
            Smoother of the same rows.
        """
        smoothing = np.minimum(self.smoothing * factor**2, self.categories.largest) if levels else self.smoothing
        recipe = replace(self.recipe, bandwidth=np.asarray(self.recipe.bandwidth * factor))
        first = self.first or self
        return replace(self, recipe=recipe, smoothing=smoothing, factor=self.factor * factor, first=first)

    def problem(self, places: EvaluationPoints, *, exclude_self: bool = False) -> Problem:
        """Return the pooling problem with given evaluation points as queries; its sums are exact to rounding."""
        factors = None
        if len(self.categories) and places.code is not None and self.key_code is not None:
            factors = self.categories.factors(places.code, self.key_code, self.smoothing)
        recipe = replace(self.recipe, widening=places.widening)
        problem = recipe.problem(places.query, self.keys, exclude_self=exclude_self, factors=factors)
        return replace(problem, tol=min(FLOAT64_EPSILON, LARGEST_TOL[problem.degree]), dtype=FLOAT64)

    def sums(self, problem: Problem) -> PoolState:
        """Return the kernel sums of a pooling problem, with centred values."""
        return sum_problem(problem.without_center(), self.recipe, auxiliary=True)

    def solve(self, problem: Problem, state: PoolState) -> LocalFit:
        """Return the local polynomial fit at each query, from kernel sums and with the smoother's ridge."""
        ridge = self.recipe.ridge_weight(self.columns)
        return Sums(state, problem.layout, problem.value_center).fit(ridge)

    def fit(self, places: EvaluationPoints) -> Fitted:
        """Compute local fits at given evaluation points."""
        problem = self.problem(places)
        state = self.sums(problem)
        return Fitted(self, problem, state, self.solve(problem, state))

    def left_out_problem(self, code: Codes | None = None) -> Problem:
        """Return the pooling problem of leave-one-out fits at the training rows; leave-cluster-out for cluster numbers.

        One unit of a row's frequency weight is left out; with an order, all rows within the gap.
        """
        return self._without_related(self.training_points(code), code)

    def predict(self, problem: Problem, *, report: bool = False) -> Array:
        """Predict the outputs at the queries of a pooling problem of this smoother, as `fill_empty` says.

        Parameters
        ----------
        problem : Problem
            From `problem` or `left_out_problem`.
        report : bool, default=False
            As of `fill_empty`.

        Returns
        -------
        ndarray of shape (m, c)
            Takes one pass.
        """
        state = self.sums(problem)
        if not problem.degree:  # of a million places half of the time that is not spent on sums
            occupied = state.denominator > 0
            share = np.divide(1.0, state.denominator, where=occupied, out=np.zeros(len(occupied)))
            values = state.numerator * share[:, None]
            values += problem.value_center
        else:
            m = len(problem.query)
            values, occupied = np.empty((m, problem.value.shape[1])), np.empty(m, dtype=bool)
            for rows in cut(m, ROWS_AT_ONCE):
                fit = self.solve(problem, state.rows(rows))
                values[rows], occupied[rows] = fit.intercept, fit.occupied
        return self.fill_empty(problem, values, occupied, report=report)

    @property
    def fills_empty(self) -> bool:
        """Whether queries without a row in the kernel's support get a value, by the policy for empty windows."""
        value = self.recipe.empty_value
        return value is None or not np.isnan(value)

    def fill_empty(
        self,
        problem: Problem,
        values: Array,
        occupied: NDArray[np.bool_],
        *,
        empty: Empty | None = None,
        report: bool = False,
    ) -> Array:
        """Fill in place the predictions of queries without a row in the kernel's support.

        Parameters
        ----------
        problem : Problem
            Problem of the queries.
        values : ndarray of shape (m, c)
            Predictions; those of empty windows are ignored.
        occupied : ndarray of bool, shape (m,)
            Which windows have a row.
        empty : str, optional
            Policy; by default that of the recipe.
        report : bool, default=False
            Whether to warn of empty windows, or raise ValueError, where the policy says so; otherwise they are NaN
            with ``"raise"``.

        Returns
        -------
        ndarray of shape (m, c)
            `values`.
        """
        if report:
            self.recipe.report_empty(occupied)
        empty = self.recipe.empty if empty is None else empty
        fill = partial(limit_values, problem, empty=empty, n_jobs=self.recipe.n_jobs)
        return fill_in_silence(values, occupied, empty, fill)


@dataclass(frozen=True, eq=False)
class Fitted:
    """Local fits of a smoother at given evaluation points, with their kernel sums.

    Parameters
    ----------
    smoother : Smoother
        The smoother.
    problem : Problem
        Problem of the evaluation points.
    state : PoolState
        Its sums, with centred values, without the ridge.
    fit : LocalFit
        Local fits, given these sums.
    """

    smoother: Smoother
    problem: Problem
    state: PoolState
    fit: LocalFit

    @property
    def log_mass(self) -> Array:
        """Logarithm of each query's sum of weights, of shape (m,); minus infinity where the sum is zero."""
        return log_mass(self.state)
