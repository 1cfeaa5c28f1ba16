"""Map-reduce queries behind quantiles over chunks: total weight, weight in ranges of values, rows in a range.

Each query is evaluated on every chunk separately, wherever the chunk lies, and the answers of disjoint sets of rows
merge. `ValueSketch` sketches the distribution of values that are not in memory: ordered values, each with the number of
rows around it. Summaries merge; they only choose where to look next, so the result does not depend on them.
`NearestKeys` collects the few rows that matter for queries with empty windows or far from all rows; these are held in
memory.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kernpool.algorithms.reference import pair_weights
from kernpool.core import PoolState, Problem
from kernpool.data.chunks.base import Chunk
from kernpool.distribution.ordered_sums import LN_2
from kernpool.pooling import QueryBatch, choose, merge_states

Array = NDArray[np.float64]

POINTS = 1 << 12  # of one chunk
MOST_POINTS = 1 << 16  # of several; then thinned to a quarter


class ValueSketch(NamedTuple):
    """Sketch of the distribution of values: ascending values, each with the number of rows that it represents.

    Parameters
    ----------
    value : ndarray of shape (p,)
        Without ties.
    rows : ndarray of shape (p,)
        Number of rows that each value represents.
    """

    value: Array
    rows: Array

    @classmethod
    def of(cls, value: Array) -> ValueSketch:
        """Build a `ValueSketch` of values given in any order."""
        return thinned(np.sort(value), np.ones(len(value)), POINTS)

    def joined(self, other: ValueSketch) -> ValueSketch:
        """Merge the sketches of two disjoint sets of rows."""
        value, rows = np.concatenate([self.value, other.value]), np.concatenate([self.rows, other.rows])
        order = np.argsort(value, kind="stable")
        most = MOST_POINTS if len(value) <= MOST_POINTS else MOST_POINTS // 4
        return thinned(value[order], rows[order], most)

    def cuts(self, low: float, high: float, pieces: int) -> Array:
        """Return cut points that split the values in (low, high] into pieces of about equally many rows.

        A piece holds the values above one cut and up to the next. A value of more rows than a piece has one alone.

        Examples
        --------
        >>> ValueSketch.of(np.arange(8.0)).cuts(-np.inf, np.inf, 4)
        array([1., 3., 5.])
        >>> ValueSketch.of(np.array([1.0, 2.0, 2.0, 2.0, 2.0, 2.0, 3.0])).cuts(-np.inf, np.inf, 3).tolist()
        [1.9999999999999998, 2.0]
        """
        inside = slice(*np.searchsorted(self.value, [low, high], side="right"))
        value, rows = self.value[inside], self.rows[inside]
        if not len(value):
            return np.empty(0)
        sums, piece = np.cumsum(rows), rows.sum() / pieces
        at = np.minimum(np.searchsorted(sums, piece * np.arange(1, pieces)), len(value) - 1)
        heavy = value[rows >= piece]
        cuts = np.unique(np.concatenate([value[at], heavy, np.nextafter(heavy, -np.inf)]))
        return cuts[(cuts > low) & (cuts < min(high, value[-1] if np.isinf(high) else high))]


def thinned(value: Array, rows: Array, points: int) -> ValueSketch:
    """Thin ascending values to a `ValueSketch` of at most `points` values that represent about equally many rows.

    Ties are merged.
    """
    first = np.flatnonzero(np.diff(value, prepend=-np.inf) > 0) if len(value) else np.empty(0, dtype=np.intp)
    value, rows = value[first], np.add.reduceat(rows, first) if len(first) else rows[:0]
    if len(value) <= points:
        return ValueSketch(value, rows)
    sums = np.cumsum(rows)
    at = np.unique(np.searchsorted(sums, (np.arange(points) + 1.0) / points * sums[-1] * (1.0 - 1e-12)))
    return ValueSketch(value[at], np.diff(sums[at], prepend=0.0))


Index = NDArray[np.intp]

DENSE_PAIRS = 1 << 17  # of a range of values, up to which a table is faster than planned sums


def without_axes(found: Array, flat: bool, several: bool) -> Array:
    """Drop the axis of value columns of an (m, c, t) array if `flat`, and the last axis unless `several`."""
    found = found[:, 0] if flat else found
    return found if several else found[..., 0]


class Weights(NamedTuple):
    """Sum of all weights at each evaluation point, and sketches of the values of rows with positive weight.

    Parameters
    ----------
    state : PoolState
        The sums.
    summaries : tuple of ValueSketch
        Sketches of each value column.
    rows : int
        Number of such rows.
    """

    state: PoolState
    summaries: tuple[ValueSketch, ...]
    rows: int


@dataclass(frozen=True, eq=False)
class TotalWeight:
    """Map-reduce query for the total weight at each evaluation point, and for sketches of the values."""

    asked: QueryBatch

    def of(self, chunk: Chunk) -> Weights:
        """Return the total weights and the value sketches of one chunk of rows."""
        chunk = chunk.counted
        state = self.asked.state(chunk._replace(value=np.zeros((len(chunk.key), 1))), np.zeros(1))
        return Weights(state, tuple(ValueSketch.of(column) for column in chunk.value.T), len(chunk.key))

    def joined(self, one: Weights, other: Weights) -> Weights:
        """Merge the total weights and the value sketches of two disjoint sets of rows."""
        summaries = (a.joined(b) for a, b in zip(one.summaries, other.summaries, strict=True))
        return Weights(merge_states(one.state, other.state, None), tuple(summaries), one.rows + other.rows)


class Range(NamedTuple):
    """Range of values, its cut points, and the evaluation points that have a quantile in it.

    Parameters
    ----------
    low, high : float
        Values above the first and up to the second.
    cuts : ndarray of shape (pieces - 1,)
        Cut points in between.
    queries : ndarray of int, shape (q,)
        Queries with a quantile in the range; ascending.
    """

    low: float
    high: float
    cuts: Array
    queries: Index


class Pieces(NamedTuple):
    """Weights, row counts and extreme values of the pieces into which cut points divide a range of values.

    Parameters
    ----------
    mass : ndarray of shape (q, pieces)
        Sums of weights, in the unit of each query.
    rows : ndarray of shape (pieces,)
        Number of rows in each piece.
    least, most : ndarray of shape (pieces,)
        Values; infinite where there is none.
    """

    mass: Array
    rows: Array
    least: Array
    most: Array


class Division(NamedTuple):
    """Weights and row counts in the pieces of several ranges of values, and a sketch of the values in them."""

    pieces: tuple[Pieces, ...]
    summary: ValueSketch


@dataclass(frozen=True, eq=False)
class WeightHistogram:
    """Map-reduce query for the weight in each piece of given ranges of values; the answer is a `Division`.

    Parameters
    ----------
    asked : QueryBatch
        Queries, and how weights are summed.
    column : int
        Value column.
    unit : ndarray of shape (m,)
        Powers of two in which weights are summed.
    ranges : tuple of Range
        Disjoint, ascending.
    """

    asked: QueryBatch
    column: int
    unit: Array
    ranges: tuple[Range, ...]

    def of(self, chunk: Chunk) -> Division:
        """Sum the weights of one chunk of rows in each piece of each range of values."""
        chunk = chunk.counted
        order = np.argsort(chunk.value[:, self.column], kind="stable")
        value = chunk.value[order, self.column]
        problem = bare_problem(self.asked, chunk, order) if len(order) else None
        pieces, held = [], []
        for some in self.ranges:
            edges = np.concatenate([[some.low], some.cuts, [some.high]])
            place = np.searchsorted(value, edges, side="right")
            pieces.append(self._pieces(problem, value, some.queries, place))
            held.append(value[place[0] : place[-1]])
        return Division(tuple(pieces), ValueSketch.of(np.concatenate(held)))

    def joined(self, one: Division, other: Division) -> Division:
        """Add the weights in the pieces of all ranges over two disjoint sets of rows."""
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
            state = choose(part, recipe.algorithm, reuse=True).reduce(part, n_jobs=recipe.n_jobs)
            mass[:, i] = in_unit(state, self.unit[queries])


@dataclass(frozen=True, eq=False)
class RowsInRange:
    """Map-reduce query for the rows of positive weight with a value in given ranges: a list of one-column chunks.

    Parameters
    ----------
    column : int
        Value column.
    low, high : ndarray of shape (ranges,)
        Values above the first and up to the second; ranges are disjoint, ascending.
    """

    column: int
    low: Array
    high: Array

    def of(self, chunk: Chunk) -> list[Chunk]:
        """Return a list of one chunk: the rows of the given chunk whose value lies in the ranges."""
        chunk = chunk.counted
        value = chunk.value[:, self.column]
        place = np.minimum(np.searchsorted(self.high, value), len(self.high) - 1)
        inside = (value > self.low[place]) & (value <= self.high[place])
        weight = None if chunk.weight is None else chunk.weight[inside]
        return [Chunk(chunk.key[inside], value[inside, None], weight)]

    def joined(self, one: list[Chunk], other: list[Chunk]) -> list[Chunk]:
        """Concatenate the lists of chunks of two disjoint sets of rows."""
        return one + other


def joined_rows(chunks: list[Chunk]) -> Chunk:
    """Concatenate the rows of several chunks into one chunk."""
    key, value = (np.concatenate([getattr(chunk, name) for chunk in chunks]) for name in ("key", "value"))
    if all(chunk.weight is None for chunk in chunks):
        return Chunk(key, value)
    weights = [np.ones(len(chunk.key)) if chunk.weight is None else chunk.weight for chunk in chunks]
    return Chunk(key, value, np.concatenate(weights))


def bare_problem(asked: QueryBatch, chunk: Chunk, order: Index) -> Problem:
    """Build the pooling problem of a chunk's rows in a given order, with zeros as values."""
    weight = None if chunk.weight is None else chunk.weight[order]
    return asked.recipe.problem(asked.query, chunk.key[order], np.zeros((len(order), 1)), key_weight=weight)


def weights_in_unit(problem: Problem, unit: Array) -> Array:
    """Return the weights of all pairs, of shape (m, n), divided by ``2**unit`` of their query."""
    shift, weight = pair_weights(problem)
    shift = np.where(np.isneginf(shift), 0.0, shift)
    found: Array = weight * (problem.weight_unit * np.exp(shift - LN_2 * unit))[:, None]
    return found


def in_unit(state: PoolState, unit: Array) -> Array:
    """Return each query's sum of weights, divided by the query's ``2**unit``."""
    shift = np.where(np.isneginf(state.shift), 0.0, state.shift)
    found: Array = state.denominator * np.exp(shift - LN_2 * unit)
    return found


PAIRS = 1 << 20  # of one table
# Keys whose logits are farther below the largest are negligible: their relative weight is below 2**-115.
MARGIN, ROUNDING = 80.0, 64 * float(np.finfo(np.float64).eps)
MOST_NEAREST = 1 << 22  # keys that are held for queries without a usable unit of weights


class NearestKeys(NamedTuple):
    """Rows that are near enough to matter for queries far from all rows, and the logits of these query-row pairs.

    Parameters
    ----------
    largest : ndarray of shape (m,)
        Largest logit of each query.
    query : ndarray of int, shape (pairs,)
        The query of each pair of a query and a row with non-negligible weight.
    logit : ndarray of shape (pairs,)
        Logit of each pair.
    row : ndarray of int, shape (pairs,)
        Index of its row in `rows`.
    rows : Chunk
        The rows.
    """

    largest: Array
    query: Index
    logit: Array
    row: Index
    rows: Chunk

    def kept(self) -> NearestKeys:
        """Drop pairs of negligible weight, and rows left without pairs; raise ValueError if too many rows remain."""
        keep = self.logit >= self.largest[self.query] - (MARGIN + ROUNDING * np.abs(self.largest[self.query]))
        row, place = np.unique(self.row[keep], return_inverse=True)
        if len(row) > MOST_NEAREST:
            raise ValueError(
                f"{len(self.largest)} queries are far from all rows, or have empty windows, and more than "
                f"{MOST_NEAREST} rows are among the nearest to them; leave such queries out, use empty='nan', or give "
                "arrays in place of chunks"
            )
        weight = None if self.rows.weight is None else self.rows.weight[row]
        rows = Chunk(self.rows.key[row], self.rows.value[row], weight)
        return NearestKeys(self.largest, self.query[keep], self.logit[keep], place.ravel(), rows)


@dataclass(frozen=True, eq=False)
class NearestRows:
    """Map-reduce query for the rows that matter for queries far from all rows; the answer is `NearestKeys`.

    Parameters
    ----------
    asked : QueryBatch
        The queries.
    """

    asked: QueryBatch

    def of(self, chunk: Chunk) -> NearestKeys:
        """Return the rows of one chunk that have non-negligible relative weight for some query."""
        chunk = chunk.counted
        m, n = len(self.asked), len(chunk.key)
        chunk = chunk._replace(weight=np.ones(n) if chunk.weight is None else chunk.weight)
        nothing = np.empty(0, dtype=np.intp)
        found = [NearestKeys(np.full(m, -np.inf), nothing, np.empty(0), nothing, chunk)]
        problem = bare_problem(self.asked, chunk, np.arange(n)) if n else None
        at_once = max(1, PAIRS // max(1, n))
        for start in range(0, m if problem is not None else 0, at_once):
            assert problem is not None
            block = problem.block(slice(start, start + at_once))
            logit = block.similarity.logits(block.query, block.key)
            largest = np.full(m, -np.inf)
            largest[start : start + at_once] = logit.max(axis=1)
            bound = logit.max(axis=1) - (MARGIN + ROUNDING * np.abs(logit.max(axis=1)))
            query, row = np.nonzero(logit >= bound[:, None])
            found.append(NearestKeys(largest, query + start, logit[query, row], row, chunk))
        query, logit, row = (
            np.concatenate([getattr(one, name) for one in found]) for name in ("query", "logit", "row")
        )
        return NearestKeys(reduce(np.maximum, [one.largest for one in found]), query, logit, row, chunk).kept()

    def joined(self, one: NearestKeys, other: NearestKeys) -> NearestKeys:
        """Merge the nearest keys of two disjoint sets of rows, dropping pairs of negligible weight."""
        rows = joined_rows([one.rows, other.rows])
        return NearestKeys(
            np.maximum(one.largest, other.largest),
            np.concatenate([one.query, other.query]),
            np.concatenate([one.logit, other.logit]),
            np.concatenate([one.row, other.row + len(one.rows.key)]),
            rows,
        ).kept()
