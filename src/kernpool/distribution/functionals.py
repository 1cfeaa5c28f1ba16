"""Functionals of conditional distributions: functions, quantiles, draws and scores, of values in memory or not.

A `Functional` is a record of what is computed at each evaluation point: for values in arrays, and, where it can be
done, from map-reduce queries over rows that are not in memory (`kernpool.pooling.Source`); each query is one pass.
`Outcomes` are the values that kernel weights apply to, in arrays or in parts; `Outcomes.evaluate` is the only place
that treats queries without any key of positive weight. A further functional is a further record.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NoReturn

import numpy as np
from scipy.special import ndtr, ndtri

from kernpool._arrays import Array, Flags, Index
from kernpool.core import FLOAT64, PoolState, Problem
from kernpool.data import Chunk
from kernpool.distribution.multipass_quantile import bare_problem, nearest_rows, stored_quantiles
from kernpool.distribution.scoring_rules import known_crps
from kernpool.distribution.smoothed_cdf import known_smooth, known_smooth_quantiles, normal_density
from kernpool.distribution.weighted_cdf import FAR, TwoSidedSums, ranks, two_sided_sums
from kernpool.distribution.weighted_quantile import KernelWeights, bare, known_quantiles
from kernpool.execution import Progress, current_progress
from kernpool.pooling import Answer, MapReduce, QueryBatch, Question, Recipe, Source, limit_problem, merge_states


class Functional(ABC):
    """Abstract base class of functionals of the conditional distribution of each value column."""

    @property
    def at_zero(self) -> Any:
        """Results for an outcome that is always zero, broadcastable to (m, c, t)."""
        return 0.0

    @abstractmethod
    def at(self, rows: Index) -> Functional:
        """Return the functional for the queries with these indices."""

    @abstractmethod
    def of_arrays(self, outcomes: ArrayOutcomes) -> tuple[Array, Flags]:
        """Return results of shape (m, c, t), and which queries have a key of positive weight."""

    def of_stored(self, outcomes: StoredOutcomes) -> tuple[Array, Flags, Index]:
        """Return results from map-reduce queries, which queries have a key, and which are to be computed in arrays.

        By default the rows themselves are needed.
        """
        outcomes.in_memory()


def _stacked(columns: Sequence[tuple[Array, Flags]]) -> tuple[Array, Flags]:
    """Stack results of each value column, (m, t), to (m, c, t)."""
    return np.stack([found for found, _ in columns], axis=1), columns[0][1]


@dataclass(frozen=True, eq=False)
class DistributionFunction(Functional):
    """Distribution function, or density, at given thresholds.

    Parameters
    ----------
    threshold : ndarray of shape (1, c, t) or (m, c, t)
        A single row applies to all queries.
    widths : ndarray of shape (c,), optional
        Bandwidths in y; None for a step function.
    density : bool, default=False
        Whether to compute densities, which need bandwidths.
    """

    threshold: Array
    widths: Array | None = None
    density: bool = False

    @property
    def at_zero(self) -> Array:
        """Values of the function at the thresholds for an outcome that is always zero, (1, c, t) or (m, c, t)."""
        if self.widths is None:
            return np.asarray(self.threshold >= 0, dtype=np.float64)
        u = self.threshold / self.widths[:, None]
        return normal_density(u) / self.widths[:, None] if self.density else np.asarray(ndtr(u))

    def at(self, rows: Index) -> DistributionFunction:
        """Return the function at the thresholds of the queries with these indices."""
        return self if len(self.threshold) == 1 else replace(self, threshold=self.threshold[rows])

    def of_arrays(self, outcomes: ArrayOutcomes) -> tuple[Array, Flags]:
        """Evaluate the function for values in arrays; NaN in empty windows."""
        if self.widths is None:
            found = self.sides(outcomes).share(self.threshold)
            return found, ~np.isnan(found[:, 0, 0])
        return _stacked(
            [
                known_smooth(
                    outcomes.recipe, outcomes.problem, value, self.threshold[:, i], float(self.widths[i]),
                    density=self.density, center=fit,
                )
                for i, (value, fit) in enumerate(outcomes.columns)
            ]
        )  # fmt: skip

    def sides(self, outcomes: ArrayOutcomes) -> TwoSidedSums:
        """Return the sums of weights up to each threshold and above it, of shape (m, c, t)."""
        sides = []
        for i, (value, fit) in enumerate(outcomes.columns):
            order = np.argsort(value, kind="stable")
            rank = ranks(value[order], self.threshold[:, i], fit, outcomes.dtype)
            sides.append(two_sided_sums(outcomes.recipe, outcomes.problem, order, rank))
        return TwoSidedSums(*(np.stack(arrays, axis=1) for arrays in zip(*sides, strict=True)))

    def of_stored(self, outcomes: StoredOutcomes) -> tuple[Array, Flags, Index]:
        """Evaluate the function by one map-reduce query; queries far from all rows are for arrays."""
        asked = outcomes.asked
        found, mass = self._from_sums(outcomes.ask(MapReduce(partial(self._sums_of, asked), _joined_sums)))
        occupied = ~np.isneginf(mass)
        far = occupied & (np.abs(np.where(occupied, mass, 0.0)) >= FAR)
        return found, occupied, np.flatnonzero(far & (not asked.recipe.kernel.is_compact))

    def _sums_of(self, asked: QueryBatch, chunk: Chunk) -> TwoSidedSums | PoolState:
        """Return the sums of one chunk of rows: two-sided ones of steps, or pooled smooth values."""
        chunk = chunk.counted
        given, wanted = chunk.value.shape[1], self.threshold.shape[1]
        if given != wanted:
            raise ValueError(f"value must be {'one column' if wanted == 1 else f'{wanted} columns'}, got {given}")
        problem = bare_problem(asked, chunk)
        outcomes = ArrayOutcomes(asked.recipe, problem, chunk.value)
        if self.widths is None:
            return self.sides(outcomes)
        state = asked.state(chunk._replace(value=np.zeros((len(chunk.key), 1))), np.zeros(1))
        found, occupied = self.of_arrays(outcomes)
        mean = np.where(occupied[:, None, None], found, 0.0).reshape(len(found), -1)
        return replace(state, numerator=state.denominator[:, None] * mean)

    def _from_sums(self, answer: TwoSidedSums | PoolState) -> tuple[Array, Array]:
        """Return the function at its thresholds, of shape (m, c, t), NaN in empty windows, and log total weights."""
        if isinstance(answer, TwoSidedSums):
            with np.errstate(divide="ignore"):
                mass = answer.unit[:, 0, 0] + np.log(answer.below[:, 0, 0] + answer.above[:, 0, 0])
            return answer.share(self.threshold), mass
        sums, total = answer.numerator, answer.denominator[:, None]
        mean = np.divide(sums, total, where=total > 0, out=np.full(sums.shape, np.nan))
        return mean.reshape(len(mean), self.threshold.shape[1], -1), answer.log_denominator


def _joined_sums(one: Any, other: Any) -> TwoSidedSums | PoolState:
    """Merge the sums of two disjoint sets of rows."""
    return one.joined(other) if isinstance(one, TwoSidedSums) else merge_states(one, other, None)


@dataclass(frozen=True, eq=False)
class Quantiles(Functional):
    """Quantiles.

    Parameters
    ----------
    level : ndarray of shape (l,) or (m, l)
        Quantile orders, between 0 and 1: the same for all queries, or a row for each, which smoothed ones cannot have.
    widths : ndarray of shape (c,), optional
        Bandwidths in y of a smoothed distribution; None for quantiles that are values.
    progress : callable, optional
        As in `pool_quantile`, of values in arrays.
    """

    level: Array
    widths: Array | None = None
    progress: Progress | None = None

    @property
    def at_zero(self) -> Array:
        """Zero, or the quantiles of the error around it, (c, l)."""
        return np.zeros(1) if self.widths is None else np.asarray(self.widths[:, None] * ndtri(self.level))

    def at(self, rows: Index) -> Quantiles:
        """Return the quantiles at the queries with these indices, without progress."""
        return Quantiles(self.level if self.level.ndim == 1 else self.level[rows], self.widths)

    def of_arrays(self, outcomes: ArrayOutcomes) -> tuple[Array, Flags]:
        """Return the quantiles of values in arrays, plus the fit; NaN in empty windows."""
        recipe, problem = outcomes.recipe, outcomes.problem
        if self.widths is None:
            found, occupied = known_quantiles(recipe, problem, outcomes.value, self.level, self.progress)
        else:
            pairs = zip(outcomes.value.T, self.widths, strict=True)
            found, occupied = _stacked(
                [known_smooth_quantiles(recipe, problem, value, self.level, float(width)) for value, width in pairs]
            )
        return (found if outcomes.fit is None else found + outcomes.fit[:, :, None]), occupied

    def of_stored(self, outcomes: StoredOutcomes) -> tuple[Array, Flags, Index]:
        """Find the quantiles in several passes over the rows; each Newton step of a smoothed one would be a pass."""
        if self.widths is not None:
            outcomes.in_memory()
        # With equal weights, as of empty="mean", all queries have the quantiles of one.
        m, asked = len(outcomes), outcomes.asked
        alike = asked.recipe.kernel.name == "constant" and self.level.ndim == 1
        if alike:
            asked = asked.at(np.arange(1))
        found, occupied, far = stored_quantiles(asked, outcomes.ask, outcomes.source.rows, self.level)
        if alike:
            found, occupied = np.repeat(found, m, axis=0), np.repeat(occupied, m)
        return found, occupied, far


@dataclass(frozen=True, eq=False)
class RandomDraws(Functional):
    """Random draws: the values at which cumulative weights, in the order of the rows, reach uniform levels.

    Value columns of a row stay together.

    Parameters
    ----------
    level : ndarray of shape (m, s)
        Between 0 and 1.
    """

    level: Array

    def at(self, rows: Index) -> RandomDraws:
        """Return the draws at the queries with these indices."""
        return RandomDraws(self.level[rows])

    def of_arrays(self, outcomes: ArrayOutcomes) -> tuple[Array, Flags]:
        """Return draws of values in arrays, plus the fit."""
        sums, value = KernelWeights(bare(outcomes.problem), outcomes.recipe), outcomes.value
        place = sums.places(np.arange(len(value)), self.level)
        found = np.moveaxis(value[place], 1, 2)
        return (found if outcomes.fit is None else found + outcomes.fit[:, :, None]), place[:, 0] >= 0


@dataclass(frozen=True, eq=False)
class ProbabilityTransform(Functional):
    """Probability integral transform of observed values: ``F(y-) + uniform (F(y) - F(y-))``, of shape (m, c, 1).

    Parameters
    ----------
    y : ndarray of shape (m, c)
        Observed values.
    uniform : ndarray of shape (m, c)
        Between 0 and 1: fraction of the weight of values equal to y that is counted below it.
    residual : ndarray of shape (m, c), optional
        Observed values minus the fit, to the last bit, where there is a fit: a prediction and a residual, added and
        rounded, would miss ties between equal rows.
    """

    y: Array
    uniform: Array
    residual: Array | None = None

    @property
    def at_zero(self) -> Array:
        """Transforms where the outcome is always zero, (m, c, 1)."""
        return np.where(self.y == 0, self.uniform, self.y > 0)[:, :, None]

    def at(self, rows: Index) -> ProbabilityTransform:
        """Return the transform at the queries with these indices, of the observed values themselves."""
        return ProbabilityTransform(self.y[rows], self.uniform[rows])

    def of_arrays(self, outcomes: ArrayOutcomes) -> tuple[Array, Flags]:
        """Return the transforms with values in arrays; NaN in empty windows."""
        seen, outcomes = outcomes.observed(self.y, self.residual)
        share, occupied = self._both_sides(seen).of_arrays(outcomes)
        return self._between(share), occupied

    def of_stored(self, outcomes: StoredOutcomes) -> tuple[Array, Flags, Index]:
        """Return the transforms by one map-reduce query."""
        share, occupied, far = self._both_sides(self.y).of_stored(outcomes)
        return self._between(share), occupied, far

    def _both_sides(self, seen: Array) -> DistributionFunction:
        """Return the distribution function just below each observed value, and at it."""
        return DistributionFunction(np.stack([np.nextafter(seen, -np.inf), seen], axis=2))

    def _between(self, share: Array) -> Array:
        low, high = share[:, :, :1], share[:, :, 1:]
        found: Array = low + self.uniform[:, :, None] * (high - low)
        return found


@dataclass(frozen=True, eq=False)
class RankedScore(Functional):
    """Continuous ranked probability score of observed values, (m, c, 1); parameters as of `ProbabilityTransform`."""

    y: Array
    residual: Array | None = None

    @property
    def at_zero(self) -> Array:
        """Scores where the outcome is always zero, (m, c, 1)."""
        return np.abs(self.y)[:, :, None]

    def at(self, rows: Index) -> RankedScore:
        """Return the scores at the queries with these indices, of the observed values themselves."""
        return RankedScore(self.y[rows])

    def of_arrays(self, outcomes: ArrayOutcomes) -> tuple[Array, Flags]:
        """Return the scores with values in arrays; NaN in empty windows."""
        seen, outcomes = outcomes.observed(self.y, self.residual)
        found, occupied = _stacked(
            [
                known_crps(outcomes.recipe, outcomes.problem, value, seen[:, i], fit)
                for i, (value, fit) in enumerate(outcomes.columns)
            ]
        )
        return found[:, :, None], occupied


class Outcomes(ABC):
    """Abstract base class of values with kernel weights at evaluation points."""

    recipe: Recipe
    dtype: np.dtype[Any]

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def compute(self, functional: Functional) -> tuple[Array, Flags]:
        """Return a functional, (m, c, t), and which queries have a key of positive weight."""

    @abstractmethod
    def limit(self, rows: Index) -> Outcomes:
        """Return the outcomes of vanishing or infinite bandwidth, as `Recipe.empty` says, at some of the queries."""

    @abstractmethod
    def in_memory(self) -> ArrayOutcomes:
        """Return the outcomes with their rows; raise TypeError if these are not in memory."""

    def evaluate(self, functional: Functional) -> Array:
        """Compute a functional, (m, c, t); where no key has weight, that of the limit that `Recipe.empty` names."""
        found, occupied = self.compute(functional)
        if occupied.all():
            return found

        def fill(rows: Index) -> Array:
            return self.limit(rows).compute(functional.at(rows))[0].reshape(len(rows), -1)

        whole = self.recipe.fill_empty(found.reshape(len(found), -1), occupied, fill).reshape(found.shape)
        if self.recipe.empty_value == 0.0:
            whole[~occupied] = np.broadcast_to(functional.at_zero, whole.shape)[~occupied]
        return whole


@dataclass(frozen=True, eq=False)
class ArrayOutcomes(Outcomes):
    """Values in arrays, such as outputs, or residuals around a fit, with their kernel weights.

    Parameters
    ----------
    recipe : Recipe
        How weights are summed, and what empty windows get.
    problem : Problem
        The problem with the weights.
    value : ndarray of shape (n, c)
        Values that the weights apply to.
    fit : ndarray of shape (m, c), optional
        Added to the values at each query.
    whole : Problem, optional
        The problem of empty windows, if that has more rows with a weight; by default `problem`.
    output : ndarray of shape (n, c), optional
        Values in empty windows; by default `value`.
    dtype : dtype, default=float64
        Of predictions: sums of values and the fit are rounded to it before they are compared with thresholds.
    """

    recipe: Recipe
    problem: Problem
    value: Array
    fit: Array | None = None
    whole: Problem | None = None
    output: Array | None = None
    dtype: np.dtype[Any] = FLOAT64

    @classmethod
    def of_residuals(
        cls,
        recipe: Recipe,
        whole: Problem,
        output: Array,
        left_out: tuple[Array, Flags],
        fit: Array,
        dtype: np.dtype[Any] = FLOAT64,
    ) -> ArrayOutcomes:
        """Build the outcomes of a local fit: residuals of the leave-one-out fit, plus the fit.

        Rows that have no residual, since no other row is in their window, have no weight, except in empty windows.
        """
        problem, (prediction, known) = whole, left_out
        if not known.all():
            problem = replace(whole, key_weight=np.where(known, whole.frequency, 0.0), prepared=None)
        residual = np.where(known[:, None], output - prediction, 0.0)
        return cls(recipe, problem, residual, fit, whole, output, dtype)

    def __len__(self) -> int:
        return len(self.problem.query)

    @property
    def columns(self) -> list[tuple[Array, Array | None]]:
        """Each value column, with its fit."""
        return [(value, None if self.fit is None else self.fit[:, i]) for i, value in enumerate(self.value.T)]

    def observed(self, y: Array, residual: Array | None) -> tuple[Array, ArrayOutcomes]:
        """Return what to compare with the values: observed outputs, or residuals, to which no fit is added."""
        return (y, self) if residual is None else (residual, replace(self, fit=None))

    def in_memory(self) -> ArrayOutcomes:
        """Return the outcomes themselves."""
        return self

    def compute(self, functional: Functional) -> tuple[Array, Flags]:
        """Return a functional, (m, c, t), and which queries have a key of positive weight."""
        return functional.of_arrays(self)

    def limit(self, rows: Index) -> ArrayOutcomes:
        """Return the outputs of the nearest keys, or of all keys, as `Recipe.empty` says, at some of the queries."""
        whole = self.problem if self.whole is None else self.whole
        value = self.value if self.output is None else self.output
        return ArrayOutcomes(self.recipe, limit_problem(whole.block(rows), self.recipe.empty), value)


@dataclass(frozen=True, eq=False)
class StoredOutcomes(Outcomes):
    """Values that are not in memory, which are read again for each functional.

    Parameters
    ----------
    source : Source
        The rows.
    asked : QueryBatch
        Evaluation points, and how weights are summed; of degree 0.
    progress : callable, optional
        Called in rows, anew in each pass; by default that of the calling method.
    """

    source: Source
    asked: QueryBatch
    progress: Progress | None = None

    dtype = FLOAT64

    def __len__(self) -> int:
        return len(self.asked)

    @property
    def recipe(self) -> Recipe:  # type: ignore[override]  # read only
        """How weights are summed, and what empty windows get."""
        return self.asked.recipe

    def ask(self, question: Question[Answer]) -> Answer:
        """Return the answer to a map-reduce query over all rows."""
        return self.source.ask(question, self.progress or current_progress())

    def in_memory(self) -> NoReturn:
        """Raise TypeError."""
        raise TypeError(
            "the model was fitted to rows that are not in memory, and this answer needs the rows themselves; fit it to "
            "arrays, such as a sample of the rows, with bandwidth=model.bandwidth_"
        )

    def compute(self, functional: Functional) -> tuple[Array, Flags]:
        """Return a functional, (m, c, t), and which queries have a key; rows of far queries are read into memory."""
        found, occupied, far = functional.of_stored(self)
        if len(far):
            found[far] = functional.at(far).of_arrays(self._nearest(far, self.recipe))[0]
        return found, occupied

    def limit(self, rows: Index) -> Outcomes:
        """Return the nearest rows, in arrays, or all rows with equal weights, at some of the queries."""
        recipe = self.recipe.limit
        if recipe.kernel.name == "constant":
            return replace(self, asked=replace(self.asked.at(rows), recipe=recipe))
        return self._nearest(rows, recipe).limit(np.arange(len(rows)))

    def _nearest(self, rows: Index, recipe: Recipe) -> ArrayOutcomes:
        """Return the rows that have weight, by some recipe, for queries far from all rows, read into memory."""
        asked = self.asked.at(rows)
        held = nearest_rows(replace(asked, recipe=recipe), self.ask)
        return ArrayOutcomes(self.recipe, bare_problem(asked, held), held.value)


def without_axes(found: Array, flat: bool, several: bool) -> Array:
    """Drop the axis of value columns of an (m, c, t) array if `flat`, and the last axis unless `several`."""
    found = found[:, 0] if flat else found
    return found if several else found[..., 0]
