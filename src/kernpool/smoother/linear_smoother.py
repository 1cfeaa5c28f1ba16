"""The fitted model: its training rows, and how they are pooled; linear in the outputs unless these re-weight rows.

Predictions and inference need nothing else. Fitted values are linear in the outputs, so their variance is a sum over
squared linear weights (`quadratic_forms.py`), and another bandwidth, degree or smoothing is another smoother of the
same rows. Smoothers never change; the fit at the training rows is computed once, when it is first needed.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from functools import cached_property, partial
from typing import Any

import numpy as np

from kernpool._arrays import Array, Codes, Flags, Index
from kernpool.bandwidth import LeaveOneOut, TrainingRows, count_copies, leave_one_out
from kernpool.core import (
    FLOAT64,
    FLOAT64_EPSILON,
    NO_CATEGORIES,
    SINGLE_ROWS,
    Categories,
    Empty,
    Exclusion,
    Keys,
    LocalFit,
    PoolState,
    Problem,
    Reweighting,
    Units,
    centered,
    fill_in_silence,
    in_unit,
    merge,
)
from kernpool.core.problem import LARGEST_TOL
from kernpool.execution import Progress, current_progress, cut, weighted_sum
from kernpool.pooling import Floor, Nearest, Recipe, Sums, limit_values, sum_problem
from kernpool.pooling.widths import Window, nearest_widths, width_slopes, with_widths
from kernpool.smoother.quadratic_forms import LinearWeights, Terms, effective_rows, norms_by_rows
from kernpool.smoother.windows import widening, without_values

FEWEST_ROWS = 5
STRETCH = 4  # gaps, of a cluster of rows next to each other
ROUNDING = 1e-12  # of differences of outputs
ROWS_AT_ONCE = 1 << 16  # whose fits are some megabytes, of a million rows twelve times the rows themselves


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

    @property
    def is_uniform(self) -> bool:
        """Whether the windows of all points have the bandwidths of the smoother."""
        return self.widening is None

    def widen(self, recipe: Recipe) -> Recipe:
        """Return a recipe with the windows of these points."""
        return recipe if self.widening is None else replace(recipe, widening=self.widening)

    def rows(self, which: slice | Index) -> EvaluationPoints:
        """Return the evaluation points with these indices."""
        code, widening = self.code, self.widening
        return EvaluationPoints(
            self.query[which], None if code is None else code[which], None if widening is None else widening[which]
        )


@dataclass(frozen=True, eq=False)
class Smoother:
    """Fitted model: training rows, kernel, bandwidths, windows and degree; what is computed once is a property.

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
    window : "fixed", Floor or Nearest
        How far windows reach: `kernpool.smoother.windows` has a floor of effective rows, and `kernpool.pooling.widths`
        windows to the k-th nearest unit of weight.
    first : Smoother or None
        The smoother by whose bandwidths windows are found; None for this one.
    exclusion : Exclusion or None
        Which rows leave-one-out fits leave out together with a row; by default none.
    reweighting : Reweighting or None
        Weights of the rows by their residuals; `linear` is the smoother for inference then.
    """

    keys: Keys
    recipe: Recipe
    key_code: Codes | None = None
    categories: Categories = NO_CATEGORIES
    smoothing: Array = field(default_factory=lambda: np.zeros(0))
    factor: float = 1.0
    window: Window = "fixed"
    first: Smoother | None = None
    exclusion: Exclusion | None = None
    reweighting: Reweighting | None = None

    def __getstate__(self) -> dict[str, Any]:  # without what is computed again when needed
        return {each.name: getattr(self, each.name) for each in fields(self)}

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

    @cached_property
    def rounding(self) -> Array:
        """Size below which residuals of each output are only rounding error."""
        return nothing_left(self.value[self.weight > 0])

    @cached_property
    def training(self) -> EvaluationPoints:
        """The training rows as evaluation points, in the windows that any query there has."""
        first = self.first or self
        return self.points(self.keys.rows.array, self.key_code) if first is self else first.training

    def left_out_points(self, exclusion: Exclusion | None) -> EvaluationPoints:
        """Return the training rows as evaluation points, whose windows are found without the rows that are left out."""
        rows, first = EvaluationPoints(self.keys.rows.array, self.key_code), self.first or self
        if self.window == "fixed":
            return rows
        if exclusion is None:
            return replace(rows, widening=first._widening_of_others)
        if exclusion is first.exclusion:
            return replace(rows, widening=first._widening_left_out)
        return replace(rows, widening=first._widening_without(exclusion))

    @cached_property
    def _widening_of_others(self) -> Array | None:
        return self._widening_without(None)

    @cached_property
    def _widening_left_out(self) -> Array | None:
        return self._widening_without(self.exclusion)

    def _widening_without(self, exclusion: Exclusion | None) -> Array | None:
        """Return the factors of the bandwidths at the rows, each without itself and what is left out with it."""
        rows = EvaluationPoints(self.keys.rows.array, self.key_code)
        return self._widening(self._without(rows, exclusion))

    @cached_property
    def training_fit(self) -> Training:
        """Fitted and leave-one-out values of the training rows: one pass over pairs of them."""
        return fit_training(self)

    def rows_of(self, value: Array) -> TrainingRows:
        """Return the rows of a bandwidth search: those of the fit, with these values."""
        columns, geometry = self.keys.rows.array, self.recipe.geometry
        return TrainingRows.from_arrays(columns, value, self.weight, self.key_code, self.exclusion, geometry)

    @property
    def units(self) -> Units:
        """Units by which the rows are counted, drawn and held out."""
        return SINGLE_ROWS if self.exclusion is None else self.exclusion.units

    @property
    def noise_units(self) -> Units:
        """Units whose rows share noise: rows, clusters, or with a gap stretches of four times as many places."""
        order = self.exclusion
        return self.units if order is None or not order.gap else Units(order.code // (STRETCH * order.gap), "cluster")

    @cached_property
    def residual_of_units(self) -> Array:
        """Outputs minus fits to the rows of all other units, of shape (n, c).

        Minus the mean of these rows where none is in the window; zero for rows of weight zero.
        """
        without, _ = self.fit_left_out(self.exclusion).values("mean")
        return np.where(self.weight[:, None] > 0, self.value - without, 0.0)

    def fit_left_out(self, exclusion: Exclusion | None) -> Fitted:
        """Compute local fits at the training rows without one unit of each row, or all that are left out with it."""
        return self.fit(self.left_out_problem(exclusion))

    @cached_property
    def left_out(self) -> tuple[Array, Flags]:
        """Predictions (n, c) of the rows without each row and what is left out with it, and which have a window."""
        return self.fit_left_out(self.exclusion).values()

    @cached_property
    def residual_scale(self) -> Smoother:
        """Smoother of the absolute leave-one-out residuals, which estimates the size of the noise around a point."""
        return absolute_residuals(self.of_residuals(), self.value - self.left_out[0])

    @cached_property
    def has_copies(self) -> bool:
        """Whether more rows are copies than chance explains: duplicates, or weights above one."""
        rows = self.rows_of(self.value)
        rows = rows.take(np.flatnonzero(rows.weight > 0))
        return count_copies(rows, None if np.all(rows.weight == 1.0) else rows.weight) > 0

    def leave_one_out(self) -> LeaveOneOut:
        """Compute predictions of the rows without each row and what is left out with it, with their error."""
        return leave_one_out(
            self.left_out_problem(self.exclusion),
            algorithm=self.recipe.algorithm,
            n_jobs=self.recipe.n_jobs,
            progress=current_progress(),
            ridge=self.recipe.ridge_weight(self.columns),
        )

    @cached_property
    def linear(self) -> Smoother:
        """Linear smoother for inference: after re-weighting that of pseudovalues, of the same mean and variance."""
        if self.reweighting is None:
            return self
        plain = replace(self, reweighting=None)
        fitted = self.predict(self.problem(plain.training))[:, 0]
        return plain.with_values(self.reweighting.pseudovalues(fitted, plain.value[:, 0], plain.weight)[:, None])

    def row_weights(self, reweighting: Reweighting) -> tuple[Array, bool]:
        """Return the weights of rows of one output by residuals, and whether these stopped for lack of a scale."""

        def fit(factor: Array) -> Array:
            smoother = self.with_weight(self.weight * factor)
            return smoother.predict(smoother.problem(smoother.training))[:, 0]

        return reweighting.weigh(self.value[:, 0], self.weight, fit, self.recipe.kernel.is_compact)

    @cached_property
    def pooled_keys(self) -> Keys:
        """Rows with the weights that they are pooled by: frequencies, times those by residuals if there are any."""
        again = self.reweighting
        return self.keys if again is None else self.with_weight(self.weight * again.weight).keys

    def _without(self, rows: EvaluationPoints, exclusion: Exclusion | None) -> Problem:
        """Return the problem of the training rows, each without itself, or without all that are left out with it."""
        if exclusion is None:
            return self.problem(rows, exclude_self=True)
        return self.problem(rows).excluding(exclusion.code, exclusion)

    def points(self, query: Array, code: Codes | None = None) -> EvaluationPoints:
        """Return rows as evaluation points, with the windows that they have."""
        rows, first = EvaluationPoints(query, code), self.first or self
        return rows if self.window == "fixed" else replace(rows, widening=first._widening(first.problem(rows)))

    def _widening(self, problem: Problem) -> Array | None:
        """Return the factor of the bandwidths at each query of a problem; None if all are one."""
        if isinstance(self.window, Floor):
            unit = min(1.0, self.rows / np.count_nonzero(self.weight))  # weights may be normalised
            return widening(problem, self.window.rows * unit, self.sums)
        assert isinstance(self.window, Nearest)
        assert self.window.k is not None
        return nearest_widths(problem, float(self.window.k), self.recipe.n_jobs)

    def in_own_windows(self, problem: Problem) -> Problem:
        """Return a problem of this smoother in the windows that its queries have without the rows they leave out."""
        if self.window == "fixed":
            return problem
        assert self.first is None
        plain = with_widths(problem, None)
        return with_widths(plain, self._widening(plain))

    def width_slopes(self, problem: Problem) -> Array | None:
        """Return the derivatives of the logarithms of the widths by the queries, (m, d); None where they are zero."""
        # A floor widens by factors of a grid, which are constant but for jumps.
        return width_slopes(problem) if isinstance(self.window, Nearest) else None

    def effective_rows(self, problem: Problem) -> Array:
        """Return the effective sample sizes at the queries of a pooling problem of this smoother, from two passes."""
        problem = without_values(problem)
        return effective_rows(problem, self.sums(problem).log_denominator, self.sums)

    def of_residuals(self) -> Smoother:
        """Return the smoother of the rows whose residuals are known, which are all of them here."""
        return self

    def norms_by_rows(self, terms: Terms, rows: Index, psi: Array | None = None) -> Array:
        """Return the squared norms of linear weights at some queries, by the weight of every row."""
        return norms_by_rows(terms, rows, psi)

    def of_degree(self, degree: int) -> Smoother:
        """Return the smoother with another polynomial degree and the same bandwidths; only degree 1 keeps the ridge."""
        if degree == self.recipe.degree:
            return self
        ridge = self.recipe.ridge if degree == 1 else 0.0
        return replace(self, recipe=replace(self.recipe, degree=degree, ridge=ridge), first=self.first or self)

    def with_values(self, value: Array) -> Smoother:
        """Return the smoother with other outputs, of shape (n, columns), and the same linear weights."""
        value, center = centered(value, self.keys.weight)
        return replace(self, keys=replace(self.keys, value=value, center=center))

    def with_weight(self, weight: Array) -> Smoother:
        """Return the smoother with other weights of its rows, of shape (n,), such as zeros for rows held out."""
        table, unit = in_unit(weight)
        first = None if self.first is None else self.first.with_weight(weight)
        return replace(self, keys=replace(self.keys, weight=table, unit=unit, prepared={}), first=first)

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
        smoothing = self.smoothing
        if levels and len(smoothing):
            smoothing = np.minimum(smoothing * factor**2, self.categories.largest)
        recipe = replace(self.recipe, bandwidth=np.asarray(self.recipe.bandwidth * factor))
        first = self.first or self
        return replace(self, recipe=recipe, smoothing=smoothing, factor=self.factor * factor, first=first)

    def with_own_values(self, problem: Problem) -> Problem:
        """Return a problem of the same rows with the values of this smoother."""
        return replace(problem, value=self.keys.value, value_center=self.keys.center, prepared=None)

    def problem(self, places: EvaluationPoints, *, exclude_self: bool = False) -> Problem:
        """Return the pooling problem with given evaluation points as queries; its sums are exact to rounding."""
        factors = None
        if places.code is not None and self.key_code is not None:
            factors = self.categories.factors(places.code, self.key_code, self.smoothing)
        problem = places.widen(self.recipe).problem(
            places.query, self.pooled_keys, exclude_self=exclude_self, factors=factors
        )
        if problem.dtype is FLOAT64:
            return problem
        return replace(problem, tol=min(FLOAT64_EPSILON, LARGEST_TOL[problem.degree]), dtype=FLOAT64)

    def pool(self, places: EvaluationPoints, progress: Progress | None = None) -> Sums:
        """Sum weights and weighted outputs of the training rows at evaluation points, for predictions."""
        problem, recipe = self.problem(places), self.recipe
        has_center = bool(problem.degree or problem.factors)
        state = sum_problem(problem.without_center() if has_center else problem, recipe, progress)
        fill = partial(limit_values, problem, empty=recipe.empty, n_jobs=recipe.n_jobs)
        return Sums(state, problem.layout, problem.value_center if has_center else None, fill)

    def sums(self, problem: Problem) -> PoolState:
        """Return the kernel sums of a pooling problem, with centred values."""
        return sum_problem(problem.without_center(), self.recipe, auxiliary=True)

    def solve(self, problem: Problem, state: PoolState) -> LocalFit:
        """Return the local polynomial fit at each query, from kernel sums and with the smoother's ridge."""
        ridge = self.recipe.ridge_weight(problem.layout.columns)
        return Sums(state, problem.layout, problem.value_center).fit(ridge)

    def fit(self, problem: Problem) -> Fitted:
        """Compute local fits at the queries of a pooling problem of this smoother."""
        return Fitted(self, problem, self.sums(problem))

    def left_out_problem(self, exclusion: Exclusion | None) -> Problem:
        """Return the pooling problem of fits at the training rows without one unit of each row, or what is left out."""
        return self._without(self.left_out_points(exclusion), exclusion)

    def predict(self, problem: Problem, *, report: bool = False) -> Array:
        """Predict the outputs at the queries of a pooling problem of this smoother; see `Fitted.values`."""
        return self.fit(problem).values(report=report)[0]

    @property
    def fills_empty(self) -> bool:
        """Whether queries without a row in the kernel's support get a value, by the policy for empty windows."""
        value = self.recipe.empty_value
        return value is None or not np.isnan(value)


@dataclass(frozen=True, eq=False)
class Fitted:
    """Local fits of a smoother at given evaluation points: kernel sums, and what is computed from them when needed.

    Parameters
    ----------
    smoother : Smoother
        The smoother.
    problem : Problem
        Problem of the evaluation points.
    state : PoolState
        Its sums, with centred values, without the ridge.
    """

    smoother: Smoother
    problem: Problem
    state: PoolState

    @cached_property
    def fit(self) -> LocalFit:
        """Coefficients of the local fits, which of them have rows, and their ranks."""
        return self.smoother.solve(self.problem, self.state)

    @property
    def linear_weights(self) -> LinearWeights:
        """Linear weights with which the outputs enter the fitted values."""
        fit, log_mass = self.fit, self.state.log_denominator
        return LinearWeights(self.problem, self.smoother.factor, log_mass, fit.base, fit.tilt)

    def values(self, empty: Empty | None = None, *, report: bool = False) -> tuple[Array, Flags]:
        """Return fitted values (m, c), also in empty windows, and which windows have a row.

        Parameters
        ----------
        empty : str, optional
            Policy for empty windows; by default that of the recipe.
        report : bool, default=False
            Whether to warn of empty windows, or raise ValueError, where the policy says so; otherwise they are NaN
            with ``"raise"``.
        """
        problem, state, smoother = self.problem, self.state, self.smoother
        if not problem.degree:  # of a million points half of the time that is not spent on sums
            occupied = state.denominator > 0
            share = np.divide(1.0, state.denominator, where=occupied, out=np.zeros(len(occupied)))
            values = state.numerator * share[:, None]
            values += problem.value_center
        else:
            m = len(problem.query)
            values, occupied = np.empty((m, problem.value.shape[1])), np.empty(m, dtype=bool)
            for rows in cut(m, ROWS_AT_ONCE):
                fit = smoother.solve(problem, state.rows(rows))
                values[rows], occupied[rows] = fit.intercept, fit.occupied
        if report:
            smoother.recipe.report_empty(occupied)
        empty = smoother.recipe.empty if empty is None else empty
        fill = partial(limit_values, problem, empty=empty, n_jobs=smoother.recipe.n_jobs)
        return fill_in_silence(values, occupied, empty, fill), occupied

    def rows(self, which: slice | Index) -> Fitted:
        """Return the local fits at the points with these indices."""
        part = Fitted(self.smoother, self.problem.block(which), self.state.rows(which))
        vars(part)["fit"] = self.fit.rows(which)  # which is solved once
        return part


@dataclass(frozen=True, eq=False)
class Training:
    """Fitted and leave-one-out values of the training rows, with leverages.

    Parameters
    ----------
    value, fitted, deleted : ndarray of shape (n, c)
        Outputs, fitted values, and leave-one-out values (without one unit of the row): the mean of the others where no
        other row is in its window.
    leverage : ndarray of shape (n,)
        Linear weight of one unit of each row in its own fit, the diagonal of the hat matrix.
    weight : ndarray of shape (n,)
        Frequencies.
    rows : float
        Number of training rows, each counted by its frequency weight.
    trace : float
        Trace of the hat matrix: effective parameters of the fit.
    alone : int
        Number of rows with no other row in their window.
    linear_weights : LinearWeights
        Linear weights of the fits, as large as the rows.
    """

    value: Array
    fitted: Array
    deleted: Array
    leverage: Array
    weight: Array
    rows: float
    trace: float
    alone: int
    linear_weights: LinearWeights

    @cached_property
    def freedom(self) -> float:
        """Degrees of freedom of the residuals; ValueError unless there is more than one."""
        freedom = self.rows - self.trace
        if not freedom > 1.0:
            raise ValueError(
                f"the fit has {self.trace:.6g} effective parameters for {self.rows:g} rows, so that no residual is "
                "left to estimate the noise from; use a larger bandwidth"
            )
        return freedom


def refuse_few_rows(total: float, what: str) -> None:
    """Raise ValueError unless the total of frequency weights is at least five; `what` begins the message."""
    if not total >= FEWEST_ROWS:
        raise ValueError(
            f"{what} at least {FEWEST_ROWS} rows, got {total:g}; weights are frequencies, and a weight of 3 is three "
            "equal rows"
        )


def nothing_left(value: Array) -> Array:
    """Return, for each output, the size below which residuals are only rounding error.

    Parameters
    ----------
    value : ndarray of shape (n, c)
        Outputs.

    Returns
    -------
    ndarray of shape (c,)
        For each output.
    """
    size = np.max(np.abs(value), axis=0)
    return np.asarray(ROUNDING * np.ptp(value, axis=0) + 4.0 * np.finfo(np.float64).eps * size)


def fit_training(smoother: Smoother) -> Training:
    """Compute fitted values, leave-one-out values, leverages and linear weights of the training rows in one pass.

    The sums of the fit are those of the leave-one-out fit plus the row itself: nothing is subtracted, so that a row of
    leverage near one keeps its digits. Where rows next to them are left out too, values without these take a pass;
    where windows follow the rows, so does the fit, whose windows count the row.

    Raises
    ------
    ValueError
        If there are fewer than five rows.
    """
    weight, exclusion = smoother.weight, smoother.exclusion
    total = float(weight.sum())
    refuse_few_rows(total, "inference needs")
    others = smoother.fit_left_out(None)
    one_by_one = exclusion is None or smoother.units.code is not None
    held_out = others if one_by_one else smoother.fit_left_out(exclusion)
    deleted, has_others = held_out.values("mean")
    problem, n = others.problem, len(weight)
    log_own = problem.log_own
    unit = np.minimum(weight, 1.0)
    fitted, share, mass, base = np.empty_like(smoother.keys.value), np.empty(n), np.empty(n), np.empty(n)
    tilt = np.empty((n, problem.layout.regressors))
    own_windows = None if smoother.window == "fixed" else smoother.sums(smoother.problem(smoother.training))
    for rows in cut(n, ROWS_AT_ONCE):
        if own_windows is None:
            part = others.state.rows(rows)
            numerator = np.zeros_like(part.numerator)
            numerator[:, problem.layout.value] = unit[rows, None] * smoother.keys.value[rows]
            shift = np.where(unit[rows] > 0, log_own[rows], part.shift)  # a row of weight zero sets no unit of weights
            together = merge(part, PoolState(shift, unit[rows], numerator))
        else:
            together = own_windows.rows(rows)
        fit = smoother.solve(problem, together)
        fitted[rows], base[rows], tilt[rows], mass[rows] = fit.intercept, fit.base, fit.tilt, together.log_denominator
        with np.errstate(divide="ignore", over="ignore"):
            share[rows] = np.exp(log_own[rows] - together.log_denominator)
    leverage = np.where(np.isfinite(mass) & (weight > 0), share * base, 0.0)
    linear = LinearWeights(smoother.problem(smoother.training), smoother.factor, mass, base, tilt)
    alone = int(np.count_nonzero(~has_others & (weight > 0)))
    trace = float(weighted_sum(weight, leverage))
    return Training(smoother.value, fitted, deleted, leverage, weight, total, trace, alone, linear)


SCALE_WINDOW = 3.0  # bandwidths of the fit: a mean of absolute residuals is rougher than the mean of outputs


def absolute_residuals(smoother: Smoother, residual: Array) -> Smoother:
    """Return the local constant smoother of the absolute residuals of the training rows; NaN are ignored.

    Its windows are three times as wide, and it predicts the mean of all rows in an empty window.
    """
    known = np.asarray(~np.isnan(residual).any(axis=1))
    weight = np.where(known, smoother.weight, 0.0)
    wide = smoother.of_degree(0).widened(SCALE_WINDOW, levels=False)
    wide = replace(wide, recipe=replace(wide.recipe, empty="mean"))
    if not weight.any():  # nothing is known of the noise: one width everywhere
        return wide.with_values(np.ones_like(residual))
    return wide.with_weight(weight).with_values(np.where(known[:, None], np.abs(residual), 0.0))
