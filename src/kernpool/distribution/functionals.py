"""Functionals of conditional distributions: functions, quantiles, draws and scores, of values in memory or not.

A `Functional` is a record of what is computed at each evaluation point: for values in arrays, and, where it can be
done, from map-reduce queries over parts of the rows (`kernpool.pooling.MapReduce`); each query is one pass.
`Outcomes` are the values that kernel weights apply to, in arrays or in parts; `Outcomes.evaluate` is the only place
that treats queries without any key of positive weight. A further functional is a further record.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NoReturn

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtr, ndtri

from kernpool.core import FLOAT64, PoolState, Problem
from kernpool.data.chunks.base import Chunk
from kernpool.distribution.multipass_quantile import Ask, MultipassQuantile, NearestKeys, bare_problem
from kernpool.distribution.scoring_rules import known_crps
from kernpool.distribution.smoothed_cdf import known_smooth, known_smooth_quantiles, normal_density
from kernpool.distribution.weighted_cdf import FAR, TwoSidedSums, ranks, two_sided_sums
from kernpool.distribution.weighted_quantile import KernelWeights, known_quantiles
from kernpool.execution.progress import Progress
from kernpool.kernels import get_kernel
from kernpool.pooling import ChunkPairs, MapReduce, QueryBatch, Recipe, StoredPairs, limit_problem, merge_states

Array = NDArray[np.float64]
Flags = NDArray[np.bool_]
Index = NDArray[np.intp]


class Functional(ABC):
    """Abstract base class of functionals of the conditional distribution of each value column."""

    in_one_pass = False
    needs_rows: str | None = None  # subject and verb of the refusal of values not in arrays; None if parts are enough

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

    def of_parts(self, asked: QueryBatch, ask: Ask) -> tuple[Array, Flags, Index]:
        """Return results from map-reduce queries, which queries have a key, and which are to be computed in arrays."""
        raise NotImplementedError(self.needs_rows)


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

    in_one_pass = True

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

    def of_parts(self, asked: QueryBatch, ask: Ask) -> tuple[Array, Flags, Index]:
        """Evaluate the function by one map-reduce query; queries far from all rows are for arrays."""
        found, mass = self._from_sums(ask(MapReduce(partial(self._sums_of, asked), _joined_sums)))
        occupied = ~np.isneginf(mass)
        far = occupied & (np.abs(np.where(occupied, mass, 0.0)) >= FAR)
        return found, occupied, np.flatnonzero(far & (not asked.recipe.kernel.is_compact))

    def _sums_of(self, asked: QueryBatch, chunk: Chunk) -> TwoSidedSums | PoolState:
        """Return the sums of one chunk of rows: two-sided ones of steps, or pooled smooth values."""
        chunk = chunk.counted
        given, wanted = chunk.value.shape[1], self.threshold.shape[1]
        if given != wanted:
            raise ValueError(f"value must be {'one column' if wanted == 1 else f'{wanted} columns'}, got {given}")
        problem = bare_problem(asked, chunk, np.arange(len(chunk.key)))
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
    def needs_rows(self) -> str | None:  # type: ignore[override]  # read only
        """Say that each Newton step of a smoothed quantile would be a pass."""
        return None if self.widths is None else "smoothed quantiles need"

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

    def of_parts(self, asked: QueryBatch, ask: Ask) -> tuple[Array, Flags, Index]:
        """Find the quantiles in several passes over the rows."""
        # With equal weights, as of empty="mean", all queries have the quantiles of one.
        alike = asked.recipe.kernel == get_kernel("constant") and self.level.ndim == 1
        found, occupied, far = MultipassQuantile(asked.at(np.arange(1)) if alike else asked, ask).quantiles(self.level)
        if alike:
            found, occupied = np.repeat(found, len(asked), axis=0), np.repeat(occupied, len(asked))
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

    needs_rows = "draws need"

    def at(self, rows: Index) -> RandomDraws:
        """Return the draws at the queries with these indices."""
        return RandomDraws(self.level[rows])

    def of_arrays(self, outcomes: ArrayOutcomes) -> tuple[Array, Flags]:
        """Return draws of values in arrays, plus the fit."""
        sums, value = KernelWeights.of(outcomes.problem, outcomes.recipe), outcomes.value
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

    in_one_pass = True

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

    def of_parts(self, asked: QueryBatch, ask: Ask) -> tuple[Array, Flags, Index]:
        """Return the transforms by one map-reduce query."""
        share, occupied, far = self._both_sides(self.y).of_parts(asked, ask)
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

    needs_rows = "scores need"

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
    def compute(self, functional: Functional) -> tuple[Array, Flags]:
        """Return a functional, (m, c, t), and which queries have a key of positive weight."""

    @abstractmethod
    def limit(self, rows: Index) -> Outcomes:
        """Return the outcomes of vanishing or infinite bandwidth, as `Recipe.empty` says, at some of the queries."""

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

    def __len__(self) -> int:
        return len(self.problem.query)

    @property
    def columns(self) -> list[tuple[Array, Array | None]]:
        """Each value column, with its fit."""
        return [(value, None if self.fit is None else self.fit[:, i]) for i, value in enumerate(self.value.T)]

    def observed(self, y: Array, residual: Array | None) -> tuple[Array, ArrayOutcomes]:
        """Return what to compare with the values: observed outputs, or residuals, to which no fit is added."""
        return (y, self) if residual is None else (residual, replace(self, fit=None))

    def compute(self, functional: Functional) -> tuple[Array, Flags]:
        """Return a functional, (m, c, t), and which queries have a key of positive weight."""
        return functional.of_arrays(self)

    def limit(self, rows: Index) -> ArrayOutcomes:
        """Return the outputs of the nearest keys, or of all keys, as `Recipe.empty` says, at some of the queries."""
        whole = self.problem if self.whole is None else self.whole
        value = self.value if self.output is None else self.output
        return ArrayOutcomes(self.recipe, limit_problem(whole.block(rows), self.recipe.empty), value)


def refuse_parts(what: str) -> NoReturn:
    """Raise TypeError for a functional that needs all rows in memory."""
    raise TypeError(f"{what} the rows themselves in memory; give arrays, such as a sample of the rows")


@dataclass(frozen=True, eq=False)
class StoredOutcomes(Outcomes):
    """Values in chunks of files or in partitions of a cluster, which are read again for each functional.

    Parameters
    ----------
    asked : QueryBatch
        Evaluation points, and how weights are summed; of degree 0.
    ask : callable
        Takes a map-reduce query, evaluates it on every part of the rows, and returns the merged answer.
    again : bool, default=True
        Whether more than one pass over the rows is possible.
    refuse : callable
        Raises TypeError for what needs the rows in memory; takes the subject and verb of the message.
    """

    asked: QueryBatch
    ask: Ask
    again: bool = True
    refuse: Callable[[str], NoReturn] = refuse_parts

    dtype = FLOAT64

    @classmethod
    def of_pairs(
        cls, recipe: Recipe, query: ArrayLike, pairs: StoredPairs, progress: Progress | None = None
    ) -> StoredOutcomes:
        """Build the `StoredOutcomes` of stored pairs; `progress` is called in rows, anew in each pass."""
        again = not isinstance(pairs, ChunkPairs) or pairs.chunks.again
        return cls(pairs.asked(recipe, query), partial(pairs.ask, progress=progress), again)

    def __len__(self) -> int:
        return len(self.asked)

    @property
    def recipe(self) -> Recipe:  # type: ignore[override]  # read only
        """How weights are summed, and what empty windows get."""
        return self.asked.recipe

    def compute(self, functional: Functional) -> tuple[Array, Flags]:
        """Return a functional, (m, c, t), and which queries have a key; rows of far queries are read into memory."""
        if functional.needs_rows is not None:
            self.refuse(functional.needs_rows)
        if not (self.again or functional.in_one_pass):
            raise ValueError(
                "quantiles go through the pairs several times, which an iterator does not allow; give a list, an array "
                "or a file, or a sample of the rows in arrays"
            )
        found, occupied, far = functional.of_parts(self.asked, self.ask)
        if len(far):
            self._read_again("queries that are far from all rows")
            found[far] = functional.at(far).of_arrays(self._nearest(far, self.recipe))[0]
        return found, occupied

    def limit(self, rows: Index) -> Outcomes:
        """Return the nearest rows, in arrays, or all rows with equal weights, at some of the queries."""
        self._read_again(f"empty windows, with empty={self.recipe.empty!r},")
        recipe = self.recipe.limit
        if recipe.kernel.name == "constant":
            return replace(self, asked=replace(self.asked.at(rows), recipe=recipe))
        return self._nearest(rows, recipe).limit(np.arange(len(rows)))

    def _nearest(self, rows: Index, recipe: Recipe) -> ArrayOutcomes:
        """Return the rows that have weight, by some recipe, for queries far from all rows, read into memory."""
        asked = self.asked.at(rows)
        question = partial(NearestKeys.of, replace(asked, recipe=recipe))
        held = self.ask(MapReduce(question, NearestKeys.joined)).rows
        problem = self.recipe.problem(asked.query, held.key, held.value, key_weight=held.weight)
        return ArrayOutcomes(self.recipe, problem, held.value)

    def _read_again(self, why: str) -> None:
        if not self.again:
            raise ValueError(
                f"{why} go through the pairs once more, which an iterator does not allow; give a list, an array or a "
                "file, or leave such queries out"
            )


def without_axes(found: Array, flat: bool, several: bool) -> Array:
    """Drop the axis of value columns of an (m, c, t) array if `flat`, and the last axis unless `several`."""
    found = found[:, 0] if flat else found
    return found if several else found[..., 0]
