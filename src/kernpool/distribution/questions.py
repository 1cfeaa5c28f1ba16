"""What chunks are asked on the way to quantiles: sums of weights, how they divide over ranges of values, and some rows.

A question is asked of every chunk by itself, wherever it lies, and answers of two sets of rows join to one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kernpool.algorithms.reference import pair_weights
from kernpool.core.problem import Problem
from kernpool.core.state import PoolState
from kernpool.data.chunks.base import Chunk
from kernpool.distribution.descent import LN_2
from kernpool.distribution.summary import Summary
from kernpool.pooling.choice import choose
from kernpool.pooling.chunked import Asked, merge_states
from kernpool.pooling.recipe import Recipe

Array = NDArray[np.float64]
Index = NDArray[np.intp]
Answer = TypeVar("Answer")

DENSE_PAIRS = 1 << 17  # of a range of values, up to which a table is sooner made than sums are planned


class Question(Protocol[Answer]):
    """What every chunk is asked."""

    def of(self, chunk: Chunk) -> Answer:
        """Ask a chunk."""

    def joined(self, one: Answer, other: Answer) -> Answer:
        """Return the answer of the rows of both."""


def asked_of(recipe: Recipe, query: ArrayLike, labels: Any = None) -> Asked:
    """Read the queries of questions, of which there must be some, in the order of the columns that chunks name."""
    asked = Asked.of(recipe, query)
    if asked.query.array.ndim != 2 or not asked.query.array.size:
        raise ValueError(f"query must have shape (queries,) or (queries, columns) here, got {np.shape(query)}")
    return Asked(recipe, asked.query.in_order_of(labels))


def without_axes(found: Array, flat: bool, several: bool) -> Array:
    """Drop the axis of outputs of an array of shape (m, c, t) if values are flat, and the last one if it is single."""
    found = found[:, 0] if flat else found
    return found if several else found[..., 0]


class Weights(NamedTuple):
    """Sums of all weights, and what is known of the values of rows that have one.

    Parameters
    ----------
    state : PoolState
        The sums.
    summaries : tuple of Summary
        Of each value column.
    rows : int
        How many.
    """

    state: PoolState
    summaries: tuple[Summary, ...]
    rows: int


@dataclass(frozen=True, eq=False)
class HowMuch:
    """Ask for `Weights`."""

    asked: Asked

    def of(self, chunk: Chunk) -> Weights:
        """Ask a chunk."""
        chunk = of_positive_weight(chunk)
        state = self.asked.state(chunk._replace(value=np.zeros((len(chunk.key), 1))), np.zeros(1))
        return Weights(state, tuple(Summary.of(column) for column in chunk.value.T), len(chunk.key))

    def joined(self, one: Weights, other: Weights) -> Weights:
        """Return the answer of the rows of both."""
        summaries = (a.joined(b) for a, b in zip(one.summaries, other.summaries, strict=True))
        return Weights(merge_states(one.state, other.state, None), tuple(summaries), one.rows + other.rows)


class Range(NamedTuple):
    """A range of values, and where to cut it.

    Parameters
    ----------
    low, high : float
        Values above the first and up to the second.
    cuts : ndarray of shape (pieces - 1,)
        In between.
    queries : ndarray of int, shape (q,)
        Which queries have a quantile there; ascending.
    """

    low: float
    high: float
    cuts: Array
    queries: Index


class Pieces(NamedTuple):
    """What is in the pieces of a range.

    Parameters
    ----------
    mass : ndarray of shape (q, pieces)
        Sums of weights, in the unit of each query.
    rows : ndarray of shape (pieces,)
        How many.
    least, most : ndarray of shape (pieces,)
        Values; infinite where there is none.
    """

    mass: Array
    rows: Array
    least: Array
    most: Array


class Division(NamedTuple):
    """The pieces of all ranges, and what is known of the values in them."""

    pieces: tuple[Pieces, ...]
    summary: Summary


@dataclass(frozen=True, eq=False)
class HowDivided:
    """Ask for a `Division`.

    Parameters
    ----------
    asked : Asked
        Where and how weights are summed.
    column : int
        Of the values.
    unit : ndarray of shape (m,)
        Powers of two in which weights are summed.
    ranges : tuple of Range
        Disjoint, ascending.
    """

    asked: Asked
    column: int
    unit: Array
    ranges: tuple[Range, ...]

    def of(self, chunk: Chunk) -> Division:
        """Ask a chunk."""
        chunk = of_positive_weight(chunk)
        order = np.argsort(chunk.value[:, self.column], kind="stable")
        value = chunk.value[order, self.column]
        problem = bare_problem(self.asked, chunk, order) if len(order) else None
        pieces, held = [], []
        for some in self.ranges:
            edges = np.concatenate([[some.low], some.cuts, [some.high]])
            place = np.searchsorted(value, edges, side="right")
            pieces.append(self._pieces(problem, value, some.queries, place))
            held.append(value[place[0] : place[-1]])
        return Division(tuple(pieces), Summary.of(np.concatenate(held)))

    def joined(self, one: Division, other: Division) -> Division:
        """Return the answer of the rows of both."""
        pieces = (
            Pieces(a.mass + b.mass, a.rows + b.rows, np.minimum(a.least, b.least), np.maximum(a.most, b.most))
            for a, b in zip(one.pieces, other.pieces, strict=True)
        )
        return Division(tuple(pieces), one.summary.joined(other.summary))

    def _pieces(self, problem: Problem | None, value: Array, queries: Index, place: Index) -> Pieces:
        rows = np.diff(place)
        least, most = np.full(len(rows), np.inf), np.full(len(rows), -np.inf)
        (some,) = np.nonzero(rows)
        least[some], most[some] = value[place[some]], value[place[some + 1] - 1]
        mass = np.zeros((len(queries), len(rows)))
        if problem is not None and len(some):
            sums = self._by_table if len(queries) * int(rows.sum()) <= DENSE_PAIRS else self._by_sums
            sums(problem, queries, place, some, mass)
        return Pieces(mass, rows.astype(np.float64), least, most)

    def _by_table(self, problem: Problem, queries: Index, place: Index, some: Index, mass: Array) -> None:
        weight = weights_in_unit(problem.block(queries, slice(place[0], place[-1])), self.unit[queries])
        mass[:, some] = np.add.reduceat(weight, place[some] - place[0], axis=1)

    def _by_sums(self, problem: Problem, queries: Index, place: Index, some: Index, mass: Array) -> None:
        recipe = self.asked.recipe
        for i in some:
            part = problem.part(queries, slice(place[i], place[i + 1]))
            state = choose(part, recipe.algorithm, often=True).reduce(part, n_jobs=recipe.n_jobs)
            mass[:, i] = in_unit(state, self.unit[queries])


@dataclass(frozen=True, eq=False)
class WhichRows:
    """Ask for the rows of positive weight whose value is in some ranges: a list of chunks of one value column.

    Parameters
    ----------
    column : int
        Of the values.
    low, high : ndarray of shape (ranges,)
        Values above the first and up to the second; ranges are disjoint, ascending.
    """

    column: int
    low: Array
    high: Array

    def of(self, chunk: Chunk) -> list[Chunk]:
        """Ask a chunk."""
        chunk = of_positive_weight(chunk)
        value = chunk.value[:, self.column]
        place = np.minimum(np.searchsorted(self.high, value), len(self.high) - 1)
        inside = (value > self.low[place]) & (value <= self.high[place])
        weight = None if chunk.weight is None else chunk.weight[inside]
        return [Chunk(chunk.key[inside], value[inside, None], weight)]

    def joined(self, one: list[Chunk], other: list[Chunk]) -> list[Chunk]:
        """Return the answer of the rows of both."""
        return one + other


def of_positive_weight(chunk: Chunk) -> Chunk:
    """Return the rows of a chunk that have a weight."""
    if chunk.weight is None or (chunk.weight > 0).all():
        return chunk
    some = chunk.weight > 0
    return Chunk(chunk.key[some], chunk.value[some], chunk.weight[some])


def joined_rows(chunks: list[Chunk]) -> Chunk:
    """Return the rows of several chunks as one."""
    key, value = (np.concatenate([getattr(chunk, name) for chunk in chunks]) for name in ("key", "value"))
    if all(chunk.weight is None for chunk in chunks):
        return Chunk(key, value)
    weights = [np.ones(len(chunk.key)) if chunk.weight is None else chunk.weight for chunk in chunks]
    return Chunk(key, value, np.concatenate(weights))


def bare_problem(asked: Asked, chunk: Chunk, order: Index) -> Problem:
    """Return the problem of rows in an order, whose values do not matter."""
    weight = None if chunk.weight is None else chunk.weight[order]
    return asked.recipe.problem(asked.query, chunk.key[order], np.zeros((len(order), 1)), key_weight=weight)


def weights_in_unit(problem: Problem, unit: Array) -> Array:
    """Return a table of weights of shape (m, n), each row in its unit, a power of two."""
    shift, weight = pair_weights(problem)
    shift = np.where(np.isneginf(shift), 0.0, shift)
    found: Array = weight * (problem.weight_unit * np.exp(shift - LN_2 * unit))[:, None]
    return found


def in_unit(state: PoolState, unit: Array) -> Array:
    """Return sums of weights in the unit of each query, a power of two."""
    shift = np.where(np.isneginf(state.shift), 0.0, state.shift)
    found: Array = state.denominator * np.exp(shift - LN_2 * unit)
    return found
