"""Exact conditional quantiles of rows that are not in memory, by passes that narrow the range of each quantile.

Few rows are read, and have the quantiles of arrays. Of many rows a first pass sums all weights, and a second one draws
a sample of the values. Sampled values cut the range that contains a quantile into pieces; a pass sums the weights in
each piece, and the piece in which the quantile order is reached is the next range. When the rows in all ranges fit into
memory they are read, and the quantile is found among them: it is the value of a row. The sample only chooses where to
look next, so the result does not depend on it.

`nearest_rows` collects the few rows that matter for queries with empty windows or far from all rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from operator import add
from typing import Any

import numpy as np

from kernpool._arrays import Array, Flags, Index
from kernpool.algorithms.reference import pair_weights
from kernpool.core import PoolState, Problem
from kernpool.data.chunks.base import Chunk, Sampling
from kernpool.distribution.weighted_quantile import LEAST, LN_2, SLACK, common_units, in_unit, known_quantiles
from kernpool.execution.threads import cut
from kernpool.pooling import MapReduce, QueryBatch, merge_states, sum_problem

Ask = Callable[[Any], Any]  # a map-reduce query to its answer over all rows

HELD_ROWS = 1 << 22  # in memory at a time: about those of a chunk
SAMPLED_ROWS = 1 << 16
PIECES, MOST_PIECES = 1 << 12, 1 << 8  # that a round cuts all ranges into, and one of them
MASSES = 1 << 22  # numbers that a round may fill
MOST_ROUNDS = 8
DENSE_PAIRS = 1 << 17  # of a range of values, up to which a table is faster than planned sums
PAIRS = 1 << 20  # of one table


def stored_quantiles(asked: QueryBatch, ask: Ask, rows: int | None, level: Array) -> tuple[Array, Flags, Index]:
    """Find the quantiles of all value columns, (m, c, l).

    Also returns which queries have a key of positive weight, and which are to be computed from their `nearest_rows`.
    """
    if rows is None:
        rows = ask(MapReduce(_number_of_rows, add))
    if rows <= HELD_ROWS:
        held = joined_rows(ask(MapReduce(_all_rows, list.__add__)))
        problem = bare_problem(asked, held)
        return *known_quantiles(asked.recipe, problem, held.value, level), np.empty(0, dtype=np.intp)
    state: PoolState = ask(MapReduce(partial(_total, asked), partial(merge_states, limit=None)))
    occupied = state.denominator > 0
    unit, is_near = common_units(asked.recipe.kernel, state)
    (near,) = np.nonzero(is_near)
    # A unit is an exponential, which loses digits for a large exponent.
    eps = float(np.finfo(np.float64).eps)
    slack = SLACK * max(4.0, np.sqrt(rows)) + 4.0 * eps * np.abs(state.log_denominator[near, None])
    share = np.maximum(np.broadcast_to(level, (len(asked), level.shape[-1]))[near] - slack, LEAST)
    need = (in_unit(state, unit)[near, None] * share).ravel()
    sampled = np.sort(ask(Sampling(SAMPLED_ROWS, 0)).value, axis=0)
    found = np.full((len(asked), sampled.shape[1], share.shape[1]), np.nan)
    for column, sample in enumerate(sampled.T if near.size else ()):
        requests = Requests.of(np.repeat(near, share.shape[1]), need.copy(), rows)
        search = Search(asked, ask, column, unit, sample)
        search.narrow(requests)
        search.read(requests)
        found[near, column] = requests.value.reshape(share.shape)
    # Rounding has led some of the rest to a range without any weight.
    rest = (occupied & ~is_near) | (is_near & np.isnan(found).any(axis=(1, 2)))
    return found, occupied, np.flatnonzero(rest)


def _number_of_rows(chunk: Chunk) -> int:
    return len(chunk.key)


def _total(asked: QueryBatch, chunk: Chunk) -> PoolState:
    return asked.state(chunk._replace(value=np.zeros((len(chunk.key), 1))), np.zeros(1))


def _all_rows(chunk: Chunk) -> list[Chunk]:
    return [chunk.counted]


def joined_rows(chunks: list[Chunk]) -> Chunk:
    """Concatenate the rows of several chunks into one chunk."""
    weights = [np.ones(len(chunk.key)) if chunk.weight is None else chunk.weight for chunk in chunks]
    keys, values = [chunk.key for chunk in chunks], [chunk.value for chunk in chunks]
    return Chunk(np.concatenate(keys), np.concatenate(values), np.concatenate(weights))


def bare_problem(asked: QueryBatch, chunk: Chunk) -> Problem:
    """Build the pooling problem of a chunk's rows, with zeros as values."""
    return asked.recipe.problem(asked.query, chunk.key, np.zeros((len(chunk.key), 1)), key_weight=chunk.weight)


def _weights_in_unit(problem: Problem, unit: Array) -> Array:
    """Return the weights of all pairs, of shape (m, n), divided by ``2**unit`` of their query."""
    shift, weight = pair_weights(problem)
    shift = np.where(np.isneginf(shift), 0.0, shift)
    found: Array = weight * (problem.weight_unit * np.exp(shift - LN_2 * unit))[:, None]
    return found


@dataclass
class Requests:
    """Requested quantiles, one per query and quantile order, with the range of values that contains each of them."""

    query: Index  # shape (r,), ascending
    need: Array  # shape (r,): cumulative weight to reach from `low` on, in the unit of the query
    low: Array  # shape (r,): the quantile is above
    high: Array  # shape (r,): and at most this
    rows: Array  # shape (r,): number of rows with a value in the range
    value: Array  # shape (r,): the quantile, NaN until it is known

    @classmethod
    def of(cls, query: Index, need: Array, rows: int) -> Requests:
        """Build `Requests` that start with the range of all values."""
        r = len(query)
        low, high = np.full(r, -np.inf), np.full(r, np.inf)
        return cls(query, need, low, high, np.full(r, float(rows)), np.full(r, np.nan))

    def ranges(self) -> list[Index]:
        """Return the requests that share a range, for each of the distinct, ascending ranges of unknown quantiles."""
        (open_ones,) = np.nonzero(np.isnan(self.value))
        _, inverse = np.unique(self.low[open_ones], return_inverse=True)
        return [open_ones[inverse == i] for i in range(inverse.max(initial=-1) + 1)]

    def enter(self, which: Index, edges: Array, mass: Array, rows: Array) -> None:
        """Narrow the common range of some requests to the piece in which cumulative weight reaches what each needs."""
        total, each = np.cumsum(mass, axis=1), np.arange(len(which))
        met = (total >= self.need[which, None]) & (mass > 0)
        last = mass.shape[1] - 1 - np.argmax((mass > 0)[:, ::-1], axis=1)  # where rounding misses the need
        place = np.where(met.any(axis=1), np.argmax(met, axis=1), last)
        self.need[which] -= np.where(place > 0, total[each, np.maximum(place - 1, 0)], 0.0)
        self.low[which], self.high[which], self.rows[which] = edges[place], edges[place + 1], rows[place]
        single = np.nextafter(edges[place], np.inf) == edges[place + 1]
        self.value[which[single]] = edges[place[single] + 1]


# Cut points of a range of values, a piece being above one and up to the next, and the queries with a quantile in it.
Range = tuple[Array, Index]
# Sums of weights in the unit of each query, of shape (queries, pieces), and numbers of rows in the pieces of a range.
Pieces = tuple[Array, Array]


@dataclass(frozen=True)
class Search:
    """Search for the quantiles of one value column by passes over all rows."""

    asked: QueryBatch  # of degree 0
    ask: Ask
    column: int
    unit: Array  # shape (m,): powers of two
    sample: Array  # some of the values, ascending

    def narrow(self, requests: Requests) -> None:
        """Narrow the ranges of requested quantiles until their rows fit into memory, or each holds a single value."""
        for _ in range(MOST_ROUNDS):
            members = requests.ranges()
            if sum(requests.rows[some[0]] for some in members) <= HELD_ROWS:
                return
            queries = [np.unique(requests.query[some]) for some in members]
            pieces = max(2, min(MOST_PIECES, PIECES // len(members), MASSES // sum(map(len, queries))))
            firsts = (some[0] for some in members)
            edges = [self._edges(requests.low[first], requests.high[first], pieces) for first in firsts]
            if all(len(one) == 2 for one in edges):
                return
            ranges = list(zip(edges, queries, strict=True))
            found = self.ask(MapReduce(partial(self._divide, ranges), _joined_pieces))
            for some, (ends, asked), (mass, rows) in zip(members, ranges, found, strict=True):
                requests.enter(some, ends, mass[np.searchsorted(asked, requests.query[some])], rows)

    def _edges(self, low: float, high: float, pieces: int) -> Array:
        """Cut a range at sampled values into pieces of about equally many rows; frequent values have a piece alone."""
        inside = self.sample[slice(*np.searchsorted(self.sample, [low, high], side="right"))]
        if not len(inside):
            return np.array([low, high])
        cuts = inside[np.linspace(0, len(inside) - 1, pieces).astype(int)]
        frequent = np.intersect1d(cuts, inside[1:][inside[1:] == inside[:-1]])
        cuts = np.unique(np.concatenate([cuts, frequent, np.nextafter(frequent, -np.inf)]))
        return np.concatenate([[low], cuts[(cuts > low) & (cuts < high)], [high]])

    def _divide(self, ranges: list[Range], chunk: Chunk) -> list[Pieces]:
        """Sum the weights of one chunk of rows in each piece of several disjoint ranges of values."""
        chunk = chunk.counted
        chunk = chunk.take(np.argsort(chunk.value[:, self.column], kind="stable"))
        value, problem = chunk.value[:, self.column], bare_problem(self.asked, chunk)
        return [self._pieces(problem, asked, np.searchsorted(value, ends, side="right")) for ends, asked in ranges]

    def _pieces(self, problem: Problem, queries: Index, place: Index) -> Pieces:
        rows, unit = np.diff(place), self.unit[queries]
        mass, (some,) = np.zeros((len(queries), len(rows))), np.nonzero(rows)
        if len(some) and mass.shape[0] * rows.sum() <= DENSE_PAIRS:
            weight = _weights_in_unit(problem.block(queries, slice(place[0], place[-1])), unit)
            mass[:, some] = np.add.reduceat(weight, place[some] - place[0], axis=1)
        else:
            for i in some:
                part = problem.part(queries, slice(place[i], place[i + 1]))
                mass[:, i] = in_unit(sum_problem(part, self.asked.recipe), unit)
        return mass, rows.astype(np.float64)

    def read(self, requests: Requests) -> None:
        """Read the rows in the ranges of requests in batches that fit into memory, and find the quantiles in them."""
        members = requests.ranges()
        batch = np.cumsum([requests.rows[some[0]] for some in members]) // HELD_ROWS
        for number in np.unique(batch):
            some = [members[i] for i in np.flatnonzero(batch == number)]
            low, high = (np.array([ends[one[0]] for one in some]) for ends in (requests.low, requests.high))
            held = joined_rows(self.ask(MapReduce(partial(_rows_in_ranges, self.column, low, high), list.__add__)))
            held = held.take(np.argsort(held.value[:, 0], kind="stable"))
            for one in some if len(held.key) else ():
                self._find(held, requests, one)

    def _find(self, held: Chunk, requests: Requests, which: Index) -> None:
        """Find the quantiles of requests with a common range among rows in the order of their values."""
        problem, value, ends = bare_problem(self.asked, held), held.value[:, 0], (requests.low, requests.high)
        keys = slice(*(int(np.searchsorted(value, end[which[0]], side="right")) for end in ends))
        for piece in cut(len(which), max(1, PAIRS // max(1, keys.stop - keys.start))):
            some = which[piece]
            rows = requests.query[some]
            weight = _weights_in_unit(problem.block(rows, keys), self.unit[rows])
            total = np.cumsum(weight, axis=1)
            need = np.minimum(requests.need[some], total[:, -1])  # where rounding misses the need
            place = np.argmax((total >= need[:, None]) & (weight > 0), axis=1)
            requests.value[some] = np.where(total[:, -1] > 0, value[keys][place], np.nan)


def _joined_pieces(one: list[Pieces], other: list[Pieces]) -> list[Pieces]:
    return [(a[0] + b[0], a[1] + b[1]) for a, b in zip(one, other, strict=True)]


def _rows_in_ranges(column: int, low: Array, high: Array, chunk: Chunk) -> list[Chunk]:
    """Return a list of one chunk: the rows of positive weight with a value in given ranges, and that column alone."""
    chunk = chunk.counted
    value = chunk.value[:, column]
    place = np.minimum(np.searchsorted(high, value), len(high) - 1)
    inside = (value > low[place]) & (value <= high[place])
    return [chunk._replace(value=value[:, None]).take(inside)]


# Keys whose logits are farther below the largest are negligible: their relative weight is below 2**-115.
MARGIN, ROUNDING = 80.0, 64 * float(np.finfo(np.float64).eps)
MOST_NEAREST = 1 << 22  # rows that are held for queries without a usable unit of weights


def nearest_rows(asked: QueryBatch, ask: Ask) -> Chunk:
    """Return the rows of non-negligible relative weight for some query, far from all rows, by one pass."""
    nearest: Chunk = ask(MapReduce(partial(_nearest_of, asked), partial(_nearest_of_both, asked)))
    return nearest


def _nearest_of_both(asked: QueryBatch, one: Chunk, other: Chunk) -> Chunk:
    return _nearest_of(asked, joined_rows([one, other]))


def _nearest_of(asked: QueryBatch, chunk: Chunk) -> Chunk:
    """Return the rows of a chunk that matter; raise ValueError if they are too many."""
    chunk = chunk.counted
    problem, matters = bare_problem(asked, chunk), np.zeros(len(chunk.key), dtype=bool)
    for some in cut(len(asked), max(1, PAIRS // len(chunk.key))):
        block = problem.block(some)
        logit = block.similarity.logits(block.query, block.key)
        largest = logit.max(axis=1, keepdims=True)
        matters |= (logit >= largest - (MARGIN + ROUNDING * np.abs(largest))).any(axis=0)
    if np.count_nonzero(matters) > MOST_NEAREST:
        raise ValueError(
            f"{len(asked)} queries are far from all rows, or have empty windows, and more than {MOST_NEAREST} rows are "
            "among the nearest to them; leave such queries out, use empty='nan', or give arrays in place of chunks"
        )
    return chunk.take(matters)
