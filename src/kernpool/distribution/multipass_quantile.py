"""Conditional quantiles of data in chunks: repeated counting passes that narrow the range of each quantile.

The first pass sums all weights and sketches the distribution of the values. In each round the range that contains a
quantile is cut into pieces; chunks sum the weights of their rows in each piece, the sums add up over chunks, and
the piece in which the quantile order is reached is the next range. When the rows in all ranges fit into memory they
are read, and the quantile is found among them as in arrays: the result is exact, the value of a row.

Each pass is a map-reduce query (`kernpool.pooling.MapReduce`), evaluated on every chunk separately, wherever the chunk
lies. `ValueSketch` sketches the distribution of values that are not in memory: ordered values, each with the number of
rows around it. Sketches only choose where to look next, so the result does not depend on them. `NearestKeys` collects
the few rows that matter for queries with empty windows or far from all rows; these are held in memory.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial, reduce
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kernpool.algorithms.reference import pair_weights
from kernpool.core import PoolState, Problem
from kernpool.data.chunks.base import Chunk
from kernpool.distribution.ordered_sums import LN_2, WAYS, common_units, in_unit
from kernpool.distribution.weighted_quantile import LEAST, SLACK, Bisection, Node
from kernpool.pooling import MapReduce, QueryBatch, merge_states, sum_problem

Array = NDArray[np.float64]
Index = NDArray[np.intp]
Ask = Callable[[Any], Any]  # a map-reduce query to the merged answer of all chunks; None if there are no chunks

POINTS = 1 << 12  # of one chunk
MOST_POINTS = 1 << 16  # of several; then thinned to a quarter


class ValueSketch(NamedTuple):
    """Sketch of the distribution of values: ascending values, each with the number of rows that it represents."""

    value: Array  # shape (p,), ascending, without ties
    rows: Array  # shape (p,): number of rows that each value represents

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
        """Return cut points that split the values in (low, high] into pieces of about equally many rows."""
        # A piece holds the values above one cut and up to the next; a value of more rows than a piece has one alone.
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
    """Thin ascending values to a `ValueSketch` of at most `points` values that represent about equally many rows."""
    first = np.flatnonzero(np.diff(value, prepend=-np.inf) > 0) if len(value) else np.empty(0, dtype=np.intp)
    value, rows = value[first], np.add.reduceat(rows, first) if len(first) else rows[:0]
    if len(value) <= points:
        return ValueSketch(value, rows)
    sums = np.cumsum(rows)
    at = np.unique(np.searchsorted(sums, (np.arange(points) + 1.0) / points * sums[-1] * (1.0 - 1e-12)))
    return ValueSketch(value[at], np.diff(sums[at], prepend=0.0))


DENSE_PAIRS = 1 << 17  # of a range of values, up to which a table is faster than planned sums


class Weights(NamedTuple):
    """Sum of all weights at each evaluation point, and sketches of the values of rows with positive weight."""

    state: PoolState  # sums of all weights
    summaries: tuple[ValueSketch, ...]  # one per value column
    rows: int  # rows of positive weight

    @classmethod
    def of(cls, asked: QueryBatch, chunk: Chunk) -> Weights:
        """Return the total weights and the value sketches of one chunk of rows."""
        chunk = chunk.counted
        state = asked.state(chunk._replace(value=np.zeros((len(chunk.key), 1))), np.zeros(1))
        return cls(state, tuple(ValueSketch.of(column) for column in chunk.value.T), len(chunk.key))

    def joined(self, other: Weights) -> Weights:
        """Merge the total weights and the value sketches of two disjoint sets of rows."""
        summaries = (a.joined(b) for a, b in zip(self.summaries, other.summaries, strict=True))
        return Weights(merge_states(self.state, other.state, None), tuple(summaries), self.rows + other.rows)


class Range(NamedTuple):
    """Range of values, its cut points, and the evaluation points that have a quantile in it."""

    low: float  # excluded
    high: float  # included
    cuts: Array  # shape (pieces - 1,)
    queries: Index  # those with a quantile in the range, ascending


class Pieces(NamedTuple):
    """Weights, row counts and extreme values of the pieces into which cut points divide a range of values."""

    mass: Array  # shape (q, pieces): sums of weights, in the unit of each query
    rows: Array  # shape (pieces,)
    least: Array  # shape (pieces,); infinite where there is no value
    most: Array  # likewise


class Division(NamedTuple):
    """Weights and row counts in the pieces of several ranges of values, and a sketch of the values in them."""

    pieces: tuple[Pieces, ...]
    summary: ValueSketch

    def joined(self, other: Division) -> Division:
        """Add the weights in the pieces of all ranges over two disjoint sets of rows."""
        pieces = (
            Pieces(a.mass + b.mass, a.rows + b.rows, np.minimum(a.least, b.least), np.maximum(a.most, b.most))
            for a, b in zip(self.pieces, other.pieces, strict=True)
        )
        return Division(tuple(pieces), self.summary.joined(other.summary))


def divide(asked: QueryBatch, column: int, unit: Array, ranges: tuple[Range, ...], chunk: Chunk) -> Division:
    """Sum the weights of one chunk of rows in each piece of each of several disjoint, ascending ranges of values."""
    chunk = chunk.counted
    order = np.argsort(chunk.value[:, column], kind="stable")
    value = chunk.value[order, column]
    problem = bare_problem(asked, chunk, order) if len(order) else None
    pieces, held = [], []
    for some in ranges:
        edges = np.concatenate([[some.low], some.cuts, [some.high]])
        place = np.searchsorted(value, edges, side="right")
        pieces.append(_pieces(asked, unit[some.queries], problem, value, some.queries, place))
        held.append(value[place[0] : place[-1]])
    return Division(tuple(pieces), ValueSketch.of(np.concatenate(held)))


def _pieces(
    asked: QueryBatch, unit: Array, problem: Problem | None, value: Array, queries: Index, place: Index
) -> Pieces:
    rows = np.diff(place)
    least, most = np.full(len(rows), np.inf), np.full(len(rows), -np.inf)
    (some,) = np.nonzero(rows)
    least[some], most[some] = value[place[some]], value[place[some + 1] - 1]
    mass = np.zeros((len(queries), len(rows)))
    if problem is not None and len(some):
        if len(queries) * int(rows.sum()) <= DENSE_PAIRS:
            weight = weights_in_unit(problem.block(queries, slice(place[0], place[-1])), unit)
            mass[:, some] = np.add.reduceat(weight, place[some] - place[0], axis=1)
        else:
            for i in some:
                part = problem.part(queries, slice(place[i], place[i + 1]))
                mass[:, i] = in_unit(sum_problem(part, asked.recipe), unit)
    return Pieces(mass, rows.astype(np.float64), least, most)


def rows_in_ranges(column: int, low: Array, high: Array, chunk: Chunk) -> list[Chunk]:
    """Return a list of one chunk: the rows of positive weight with a value in given ranges, and that column alone."""
    chunk = chunk.counted
    value = chunk.value[:, column]
    place = np.minimum(np.searchsorted(high, value), len(high) - 1)
    inside = (value > low[place]) & (value <= high[place])
    weight = None if chunk.weight is None else chunk.weight[inside]
    return [Chunk(chunk.key[inside], value[inside, None], weight)]


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


PAIRS = 1 << 20  # of one table
# Keys whose logits are farther below the largest are negligible: their relative weight is below 2**-115.
MARGIN, ROUNDING = 80.0, 64 * float(np.finfo(np.float64).eps)
MOST_NEAREST = 1 << 22  # keys that are held for queries without a usable unit of weights


class NearestKeys(NamedTuple):
    """Rows that are near enough to matter for queries far from all rows, and the logits of these query-row pairs."""

    largest: Array  # shape (m,): largest logit of each query
    query: Index  # shape (pairs,): the query of each pair with non-negligible weight
    logit: Array  # shape (pairs,)
    row: Index  # shape (pairs,): index in `rows`
    rows: Chunk

    @classmethod
    def of(cls, asked: QueryBatch, chunk: Chunk) -> NearestKeys:
        """Return the rows of one chunk that have non-negligible relative weight for some query."""
        chunk = chunk.counted
        m, n = len(asked), len(chunk.key)
        chunk = chunk._replace(weight=np.ones(n) if chunk.weight is None else chunk.weight)
        nothing = np.empty(0, dtype=np.intp)
        found = [cls(np.full(m, -np.inf), nothing, np.empty(0), nothing, chunk)]
        problem = bare_problem(asked, chunk, np.arange(n)) if n else None
        at_once = max(1, PAIRS // max(1, n))
        for start in range(0, m if problem is not None else 0, at_once):
            assert problem is not None
            block = problem.block(slice(start, start + at_once))
            logit = block.similarity.logits(block.query, block.key)
            largest = np.full(m, -np.inf)
            largest[start : start + at_once] = logit.max(axis=1)
            bound = logit.max(axis=1) - (MARGIN + ROUNDING * np.abs(logit.max(axis=1)))
            query, row = np.nonzero(logit >= bound[:, None])
            found.append(cls(largest, query + start, logit[query, row], row, chunk))
        query, logit, row = (
            np.concatenate([getattr(one, name) for one in found]) for name in ("query", "logit", "row")
        )
        return cls(reduce(np.maximum, [one.largest for one in found]), query, logit, row, chunk).kept()

    def joined(self, other: NearestKeys) -> NearestKeys:
        """Merge the nearest keys of two disjoint sets of rows, dropping pairs of negligible weight."""
        rows = joined_rows([self.rows, other.rows])
        return NearestKeys(
            np.maximum(self.largest, other.largest),
            np.concatenate([self.query, other.query]),
            np.concatenate([self.logit, other.logit]),
            np.concatenate([self.row, other.row + len(self.rows.key)]),
            rows,
        ).kept()

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


HELD_ROWS = 1 << 22  # in memory at a time: about those of a chunk
MASSES = 1 << 22  # numbers that a round may fill
PIECES = 1 << 12  # that a round may cut all ranges into
MOST_PIECES = 1 << 8  # of one range
MOST_ROUNDS = 8


@dataclass
class Requests:
    """Requested quantiles, one per query and quantile order, with the ranges of values that contain them."""

    row: Index  # shape (r,): the query of each request, ascending
    need: Array  # shape (r,): cumulative weight to reach from `low` on, in the unit of the query
    low: Array  # shape (r,): the quantile is above
    high: Array  # shape (r,): and at most this
    passed: Array  # shape (r, 3): ends and mass of the last range below `low` with positive mass; or mass 0
    rows: Array  # shape (r,): number of rows with a value in the range
    value: Array  # shape (r,): the quantile, NaN until it is known

    @classmethod
    def of(cls, row: Index, need: Array, rows: int) -> Requests:
        """Build `Requests` that start with the range of all values."""
        r = len(row)
        return cls(
            row, need, np.full(r, -np.inf), np.full(r, np.inf), np.zeros((r, 3)), np.full(r, float(rows)),
            np.full(r, np.nan),
        )  # fmt: skip

    def ranges(self, which: Index) -> tuple[Array, Array, Array, Index]:
        """Return the distinct value ranges of some requests, their row counts, and the range index of each request."""
        both = np.stack([self.low[which], self.high[which]], axis=1)
        _, first, inverse = np.unique(both, axis=0, return_index=True, return_inverse=True)
        one = which[first]
        return self.low[one], self.high[one], self.rows[one], inverse.ravel()

    def enter(self, which: Index, edges: Array, pieces: Pieces, mass: Array) -> None:
        """Narrow the range of each request to the piece in which cumulative weight reaches `need`."""
        total = np.cumsum(mass, axis=1)
        met = (total >= self.need[which, None]) & (mass > 0)
        last = mass.shape[1] - 1 - np.argmax((mass > 0)[:, ::-1], axis=1)  # where rounding misses the need
        place = np.where(met.any(axis=1), np.argmax(met, axis=1), last)
        each = np.arange(len(which))
        before = np.where(place > 0, total[each, np.maximum(place - 1, 0)], 0.0)
        some = (mass > 0) & (np.arange(mass.shape[1]) < place[:, None])
        left = mass.shape[1] - 1 - np.argmax(some[:, ::-1], axis=1)
        has = some.any(axis=1)
        self.passed[which[has]] = np.stack([edges[left], edges[left + 1], mass[each, left]], axis=1)[has]
        self.need[which] = self.need[which] - before
        self.low[which], self.high[which], self.rows[which] = edges[place], edges[place + 1], pieces.rows[place]
        single = pieces.least[place] == pieces.most[place]
        self.value[which[single]] = pieces.least[place[single]]

    def step_back(self, which: Index) -> None:
        """Move requests that rounding has led too far back to the last lower range of values with positive weight."""
        self.low[which], self.high[which] = self.passed[which, 0], self.passed[which, 1]
        self.need[which], self.passed[which] = np.nextafter(self.passed[which, 2], 0.0), 0.0


@dataclass
class MultipassQuantile:
    """Search for exact conditional quantiles by repeated passes over chunks."""

    asked: QueryBatch  # of degree 0
    ask: Ask  # evaluates a map-reduce query on every chunk and merges the answers

    def quantiles(self, level: Array) -> tuple[Array, NDArray[np.bool_], Index]:
        """Find the conditional quantiles of all value columns."""
        # also returns the queries far from all rows, whose weights have no common unit
        weights: Weights = self.ask(MapReduce(partial(Weights.of, self.asked), Weights.joined))
        state = weights.state
        occupied = state.denominator > 0
        level = np.broadcast_to(level, (len(self.asked), level.shape[-1]))
        found = np.full((len(self.asked), len(weights.summaries), level.shape[1]), np.nan)
        unit, is_near = common_units(self.asked.recipe.kernel, state)
        near, far = np.flatnonzero(is_near), occupied & ~is_near
        # A unit is an exponential, which loses digits for a large exponent.
        slack = SLACK * max(4.0, np.sqrt(weights.rows)) + 4.0 * np.finfo(float).eps * np.abs(
            state.log_denominator[near, None]
        )
        share = np.maximum(level[near] - slack, LEAST)
        whole = in_unit(state, unit)
        for column, summary in enumerate(weights.summaries if near.size else ()):
            row, need = np.repeat(near, level.shape[1]), (whole[near, None] * share).ravel()
            requests = Requests.of(row, need, weights.rows)
            self._narrow(requests, column, unit, summary)
            self._read_ranges(requests, column, unit)
            found[near, column] = requests.value.reshape(len(near), level.shape[1])
        others = np.union1d(np.flatnonzero(far), near[np.isnan(found[near]).any(axis=(1, 2))])
        return found, occupied, others

    def _narrow(self, requests: Requests, column: int, unit: Array, summary: ValueSketch) -> None:
        """Narrow the ranges of requested quantiles until their rows fit in memory, or each holds a single value."""
        for _ in range(MOST_ROUNDS):
            (which,) = np.nonzero(np.isnan(requests.value))
            if not len(which):
                return
            low, high, rows, inverse = requests.ranges(which)
            if rows.sum() <= HELD_ROWS:
                return
            queries = [np.unique(requests.row[which[inverse == i]]) for i in range(len(low))]
            most = min(MOST_PIECES, PIECES // len(low), MASSES // sum(map(len, queries)))
            ranges = [
                Range(a, b, summary.cuts(a, b, max(2, most)), some)
                for a, b, some in zip(low, high, queries, strict=True)
            ]
            if not any(len(one.cuts) for one in ranges):
                return
            question = partial(divide, self.asked, column, unit, tuple(ranges))
            answer = self.ask(MapReduce(question, Division.joined))
            summary = answer.summary
            for i, (one, pieces) in enumerate(zip(ranges, answer.pieces, strict=True)):
                some = which[inverse == i]
                mass = pieces.mass[np.searchsorted(one.queries, requests.row[some])]
                requests.enter(some, np.concatenate([[one.low], one.cuts, [one.high]]), pieces, mass)

    def _read_ranges(self, requests: Requests, column: int, unit: Array) -> None:
        """Read the rows in the ranges of requests in batches that fit in memory, and find the quantiles in them."""
        for _ in range(2):  # once more for requests that rounding has led beyond all rows with weight
            (which,) = np.nonzero(np.isnan(requests.value))
            if not len(which):
                return
            low, high, rows, inverse = requests.ranges(which)
            apart = not (low[1:] < high[:-1]).any()  # unchanged except for ranges that have been returned to
            part = np.cumsum(rows) // HELD_ROWS if apart else np.arange(len(low))
            for number in np.unique(part):
                some = np.flatnonzero(part == number)
                question = partial(rows_in_ranges, column, low[some], high[some])
                held = joined_rows(self.ask(MapReduce(question, list.__add__)))
                self._look_among(held, requests, which[np.isin(inverse, some)], unit)
            lost = which[np.isnan(requests.value[which])]
            requests.step_back(lost[requests.passed[lost, 2] > 0])

    def _look_among(self, held: Chunk, requests: Requests, which: Index, unit: Array) -> None:
        if not len(held.key):
            return
        order = np.argsort(held.value[:, 0], kind="stable")
        value, problem = held.value[order, 0], bare_problem(self.asked, held, order)
        low = np.searchsorted(value, requests.low[which], side="right")
        high = np.searchsorted(value, requests.high[which], side="right")
        some = low < high
        which, low, high = which[some], low[some], high[some]
        need = requests.need[which] / problem.weight_unit
        ranges, inverse = np.unique(np.stack([low, high], axis=1), axis=0, return_inverse=True)
        members = [np.flatnonzero(inverse.ravel() == i) for i in range(len(ranges))]
        nodes = [Node(slice(int(a), int(b)), i, need[i]) for (a, b), i in zip(ranges, members, strict=True)]
        if WAYS["bisection"].refusal(problem) is None:
            place = Bisection(problem, requests.row[which], unit, self.asked.recipe, int).run(need, nodes)
        else:
            place = _by_tables(problem, requests.row[which], unit, nodes)
        requests.value[which] = np.where(place >= 0, value[place], np.nan)


def _by_tables(problem: Problem, rows: Index, unit: Array, nodes: list[Node]) -> Index:
    """Find the key of each request from dense tables of weights, for kernels without compiled loops."""
    found = np.full(len(rows), -1)
    for node in nodes:
        at_once = max(1, PAIRS // (node.keys.stop - node.keys.start))
        for start in range(0, len(node.requests), at_once):
            some = node.requests[start : start + at_once]
            weight = weights_in_unit(problem.block(rows[some], node.keys), unit[rows[some]]) / problem.weight_unit
            total = np.cumsum(weight, axis=1)
            need = np.minimum(node.need[start : start + at_once], total[:, -1])
            place = np.argmax((total >= need[:, None]) & (weight > 0), axis=1)
            found[some] = np.where(total[:, -1] > 0, node.keys.start + place, -1)
    return found
