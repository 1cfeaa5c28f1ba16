"""Conditional quantiles of data in chunks: repeated counting passes that narrow the range of each quantile.

The first pass sums all weights and sketches the distribution of the values. In each round the range that contains a
quantile is cut into pieces; chunks sum the weights of their rows in each piece, the sums add up over chunks, and
the piece in which the quantile order is reached is the next range. When the rows in all ranges fit into memory they
are read, and the quantile is found among them as in arrays: the result is exact, the value of a row.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kernpool.core.problem import Problem
from kernpool.data.chunks.base import Chunk, Chunks
from kernpool.distribution.chunk_queries import (
    NearestRows,
    Pieces,
    Range,
    RowsInRange,
    TotalWeight,
    ValueSketch,
    WeightHistogram,
    Weights,
    bare_problem,
    in_unit,
    joined_rows,
    weights_in_unit,
)
from kernpool.distribution.ordered_sums import FAR, LN_2, WAYS
from kernpool.distribution.weighted_quantile import LEAST, SLACK, Bisection, Node, known_quantiles, quantiles
from kernpool.execution.progress import Progress
from kernpool.kernels import get_kernel
from kernpool.pooling import ChunkPairs, QueryBatch, Recipe

Array = NDArray[np.float64]
Index = NDArray[np.intp]
Ask = Callable[[Any], Any]  # a map-reduce query to the merged answer of all chunks; None if there are no chunks

HELD_ROWS = 1 << 22  # in memory at a time: about those of a chunk
MASSES = 1 << 22  # numbers that a round may fill
PIECES = 1 << 12  # that a round may cut all ranges into
MOST_PIECES = 1 << 8  # of one range
MOST_ROUNDS = 8
PAIRS = 1 << 20  # of one table


@dataclass
class Requests:
    """Requested quantiles, one per query and quantile order, with the ranges of values that contain them.

    Parameters
    ----------
    row : ndarray of int, shape (r,)
        The query of each request, ascending.
    need : ndarray of shape (r,)
        The cumulative weight to reach, counted from the values above `low`, in the unit of the query.
    low, high : ndarray of shape (r,)
        The quantile is above the first and at most the second.
    passed : ndarray of shape (r, 3)
        The last range below `low` with positive mass: its two ends and its mass; the mass is zero if there is none.
    rows : ndarray of shape (r,)
        Number of rows with a value in the range.
    value : ndarray of shape (r,)
        The quantile, NaN until it is known.
    """

    row: Index
    need: Array
    low: Array
    high: Array
    passed: Array
    rows: Array
    value: Array

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
        """Narrow the range of each request to the piece in which cumulative weight reaches `need`.

        `mass` has a row for each request.
        """
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
        """Move requests, which rounding has led too far, back to the last lower range of values with positive weight.

        The last value of positive weight in that range is searched for.
        """
        self.low[which], self.high[which] = self.passed[which, 0], self.passed[which, 1]
        self.need[which], self.passed[which] = np.nextafter(self.passed[which, 2], 0.0), 0.0


@dataclass
class MultipassQuantile:
    """Search for exact conditional quantiles by repeated passes over chunks.

    Parameters
    ----------
    asked : QueryBatch
        Queries, and how to sum weights; of degree 0.
    ask : callable
        Takes a map-reduce query, evaluates it on every chunk, and returns the merged answer.
    passes : int
        Number of passes so far.
    """

    asked: QueryBatch
    ask: Ask
    passes: int = field(default=0, init=False)

    def quantiles(
        self, level: Array, quantiles_of: Callable[[Problem, Array, Array], Array]
    ) -> tuple[Array, NDArray[np.bool_]]:
        """Find the conditional quantiles of all value columns, and which queries have a key of positive weight.

        Parameters
        ----------
        level : ndarray of shape (l,)
            Between 0 and 1.
        quantiles_of : callable
            Takes a problem, its values and quantile orders; returns quantiles of shape (m, c, l).

        Returns
        -------
        found : ndarray of shape (m, c, l)
            NaN where windows are empty.
        occupied : ndarray of bool, shape (m,)
            Which windows are not empty.
        """
        weights: Weights = self._ask(TotalWeight(self.asked))
        state, kernel = weights.state, self.asked.recipe.kernel
        occupied = state.denominator > 0
        found = np.full((len(self.asked), len(weights.summaries), len(level)), np.nan)
        unit = np.zeros(len(self.asked))
        far = np.zeros(len(unit), dtype=bool)
        if not kernel.is_compact:
            unit[occupied] = np.rint(state.log_denominator[occupied] / LN_2)
            far[occupied] = np.abs(state.log_denominator[occupied]) >= FAR
        near = np.flatnonzero(occupied & ~far)
        # A unit is an exponential, which loses digits for a large exponent.
        slack = SLACK * max(4.0, np.sqrt(weights.rows)) + 4.0 * np.finfo(float).eps * np.abs(
            state.log_denominator[near, None]
        )
        share = np.maximum(level - slack, LEAST)
        whole = in_unit(state, unit)
        for column, summary in enumerate(weights.summaries if near.size else ()):
            row, need = np.repeat(near, len(level)), (whole[near, None] * share).ravel()
            requests = Requests.of(row, need, weights.rows)
            self._narrow(requests, column, unit, summary)
            self._read_ranges(requests, column, unit)
            found[near, column] = requests.value.reshape(len(near), len(level))
        others = np.union1d(np.flatnonzero(far), near[np.isnan(found[near]).any(axis=(1, 2))])
        if len(others):
            found[others] = self.nearest(others, None, lambda p, v: quantiles_of(p, v, level))
        return found, occupied

    def nearest(self, rows: Index, limit: str | None, quantiles_of: Callable[[Problem, Array], Array]) -> Array:
        """Evaluate `quantiles_of` on the nearest rows alone, at queries far from all rows or where no row has weight.

        For far queries these are the few rows that have weight.
        """
        asked = self.asked.at(rows)
        recipe = asked.recipe
        if limit == "nearest":
            recipe = replace(recipe, kernel=get_kernel("gaussian"), bandwidth=1e-8 * recipe.bandwidth)
        held = self._ask(NearestRows(replace(asked, recipe=recipe))).rows
        problem = asked.recipe.problem(asked.query, held.key, held.value, key_weight=held.weight)
        return quantiles_of(problem, held.value)

    def _ask(self, question: Any) -> Any:
        self.passes += 1
        return self.ask(question)

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
            answer = self._ask(WeightHistogram(self.asked, column, unit, tuple(ranges)))
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
                held = joined_rows(self._ask(RowsInRange(column, low[some], high[some])))
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
    """Find the key of each request from dense tables of weights, for kernels without compiled loops.

    The result is that of `Bisection.run`.
    """
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


def chunk_quantiles(
    recipe: Recipe, query: ArrayLike, chunks: Chunks, level: Array, progress: Progress | None = None
) -> Array:
    """Compute conditional quantiles of pairs in chunks, in several passes over them.

    Parameters
    ----------
    recipe : Recipe
        Weights, and the policy for empty windows; of degree 0.
    query : array_like of shape (m,) or (m, d)
        Queries.
    chunks : Chunks
        The pairs; they have to be read several times.
    level : ndarray of shape (l,)
        Between 0 and 1.
    progress : callable, optional
        Called as ``progress(done, total)`` in rows, anew in each pass, if their number is known.

    Returns
    -------
    ndarray of shape (m, c, l)
        Values.

    Raises
    ------
    ValueError
        If the chunks can be read once only, or there are no pairs.
    """
    if not chunks.again:
        raise ValueError(
            "quantiles go through the pairs several times, which an iterator does not allow; give a list, an array or "
            "a file, or a sample of the rows in arrays"
        )
    pairs = ChunkPairs(chunks)
    return counted_quantiles(pairs.asked(recipe, query), partial(pairs.ask, progress=progress), level)


def counted_quantiles(asked: QueryBatch, ask: Ask, level: Array) -> Array:
    """Compute conditional quantiles by map-reduce queries over chunks or partitions.

    Empty windows are filled by the recipe's policy.

    Parameters
    ----------
    asked : QueryBatch
        Queries, and how to sum weights.
    ask : callable
        As of `MultipassQuantile`.
    level : ndarray of shape (l,)
        Between 0 and 1.

    Returns
    -------
    ndarray of shape (m, c, l)
        Values.
    """
    recipe, counting = asked.recipe, MultipassQuantile(asked, ask)

    def of_rows(problem: Problem, value: Array, level: Array) -> Array:
        return known_quantiles(recipe, problem, value, level)[0]

    found, occupied = counting.quantiles(level, of_rows)

    def fill(rows: NDArray[np.intp]) -> Array:
        if recipe.empty == "nearest":
            return counting.nearest(rows, "nearest", lambda p, v: quantiles(recipe, p, v, level)).reshape(len(rows), -1)
        mean = replace(recipe, kernel=get_kernel("constant"))
        one = replace(asked.at(rows[:1]), recipe=mean)
        return np.repeat(MultipassQuantile(one, ask).quantiles(level, of_rows)[0].reshape(1, -1), len(rows), axis=0)

    return recipe.fill_empty(found.reshape(len(found), -1), occupied, fill).reshape(found.shape)
