"""Rows that are not in memory: the interface that chunks of files share with partitions of Dask.

A `Source` answers a `Question` by map and reduce: every chunk of rows is answered separately, wherever it lies, and two
answers are merged to one. Kernel sums (`kernel_sums`), samples, ranges of columns and the passes of quantiles are
questions. Chunks are gone through in turn (`out_of_core.py`), and partitions by the workers of Dask
(`kernpool.dask`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from kernpool._arrays import Array, Index
from kernpool.core import FLOAT64, Layout, PoolState, Rows, checked_rows, empty_state, merge
from kernpool.data import Chunk, Kind, as_real_array, labels_of
from kernpool.data.chunks.base import RowSample, Sampling
from kernpool.execution import Progress
from kernpool.pooling.recipe import Recipe, Sums, finalize, limit_problem, quotient, sum_problem

Answer = TypeVar("Answer")

SAME_DISTANCE = 16 * float(np.finfo(np.float64).eps)


def found_in_rows(found: Answer | None) -> Answer:
    """Return what was found in rows; raise ValueError if it is None, as there are none of positive weight."""
    if found is None:
        raise ValueError("there are no pairs of positive weight: the source is empty, or its weights are all zero")
    return found


@dataclass(frozen=True, eq=False)
class QueryBatch:
    """Evaluation points at which every chunk of pairs is summed, with the parameters of pooling.

    Parameters
    ----------
    recipe : Recipe
        How to pool.
    query : Rows
        Evaluation points; read once for all chunks.
    shape : tuple of int
        Shape of the evaluation points as they were given, without their columns.
    limit : {None, "nearest", "mean"}
        To pool in the limit of a vanishing or of an infinite bandwidth instead, for windows that are empty.
    """

    recipe: Recipe
    query: Rows
    shape: tuple[int, ...]
    limit: str | None = None

    @classmethod
    def of(cls, recipe: Recipe, query: ArrayLike) -> QueryBatch:
        """Validate queries of any shape and build a `QueryBatch`; an array of no queries is allowed."""
        read = as_real_array("query", query)
        shape = read.shape[:-1] if read.ndim > 1 else read.shape
        if not read.size:
            array = np.empty((0, read.shape[-1] if read.ndim > 1 else 1))
            return cls(recipe, Rows(array, np.zeros(0), np.zeros(0), read.dtype, None), shape)
        rows = checked_rows("query", read.reshape(-1, read.shape[-1] if read.ndim > 1 else 1))
        return cls(recipe, rows._replace(dtype=read.dtype, labels=labels_of(query)), shape)

    def in_order_of(self, labels: Sequence[Any] | None) -> QueryBatch:
        """Return the queries with their columns in the order of key columns; raise ValueError if there are none."""
        if not self.query.array.size or not self.shape:
            raise ValueError(f"query must have at least one row and one column, got {self.query.array.size} numbers")
        return replace(self, query=self.query.in_order_of(labels))

    def __len__(self) -> int:
        return len(self.query.array)

    def layout(self, outputs: int) -> Layout:
        """Return the `Layout` that maps weighted sums to columns, for this number of value columns."""
        return Layout(outputs, self.query.array.shape[1], self.recipe.degree)

    def state(self, chunk: Chunk, center: Array, self_index: Index | None = None) -> PoolState:
        """Sum weights and weighted values over one chunk of pairs, at each query."""
        if not len(self) or (chunk.weight is not None and not chunk.weight.any()):
            return empty_state(len(self), self.layout(chunk.value.shape[1]).width)
        problem = self.recipe.problem(
            self.query,
            chunk.key,
            chunk.value,
            key_weight=chunk.weight,
            exclude_self=self_index is not None,
            self_index=self_index,
        )
        if self.recipe.degree:
            problem = replace(problem, value_center=problem.value_center - center)
        if self.limit is not None:
            problem = limit_problem(problem, self.limit)
        return sum_problem(problem, self.recipe)

    def at(self, rows: Index, limit: str | None = None) -> QueryBatch:
        """Select the queries with these indices; with a `limit`, for pooling with vanishing or infinite bandwidth."""
        recipe = self.recipe.at(rows)
        recipe = recipe if limit is None else replace(recipe, degree=0)
        return QueryBatch(recipe, self.query._replace(array=self.query.array[rows]), (len(rows),), limit)

    def finished(self, sums: Sums, flat: bool, **more: Any) -> Sums:
        """Return the sums over all rows ready for `finalize`; `more` are further fields of `Sums`."""
        shape = self.shape if flat else (*self.shape, sums.layout.values)
        return replace(sums, center=sums.center if self.recipe.degree else None, shape=shape, **more)


def merge_states(a: PoolState, b: PoolState, limit: str | None) -> PoolState:
    """Merge the kernel sums of two sets of chunks; for the limit "nearest", treat nearly equal distances as ties.

    In the limit "nearest" shifts are squared distances in tiny bandwidths, which algorithms round differently. Then the
    last digit of 1e16 would decide between keys that are equally far; they weigh the same.
    """
    if limit == "nearest":
        both = np.isfinite(a.shift) & np.isfinite(b.shift)
        apart = np.abs(np.subtract(a.shift, b.shift, where=both, out=np.full(a.shift.shape, np.inf)))
        tied = both & (apart <= SAME_DISTANCE * np.abs(a.shift))
        a = replace(a, shift=np.where(tied, b.shift, a.shift))
    return merge(a, b)


class Question(Protocol[Answer]):
    """Interface of map-reduce queries: evaluated on every chunk separately, with answers that merge."""

    def of(self, chunk: Chunk) -> Answer:
        """Evaluate the map-reduce query on one chunk of rows, some of which have a positive weight."""

    def joined(self, one: Answer, other: Answer) -> Answer:
        """Merge the answers to the map-reduce query for two disjoint sets of rows."""


class MapReduce(NamedTuple):
    """Map-reduce query made of two functions: the answer of one chunk of rows, and two answers merged."""

    of: Callable[[Chunk], Any]
    joined: Callable[[Any, Any], Any]


def kernel_sums(asked: QueryBatch) -> MapReduce:
    """Return the map-reduce query for sums of weights and weighted values at evaluation points.

    Each chunk takes its own values less their median, as slopes of large values with small differences would lose their
    digits. Weighted means have no center.
    """
    return MapReduce(partial(_sums_of_chunk, asked), partial(_joined_sums, asked))


def _sums_of_chunk(asked: QueryBatch, chunk: Chunk) -> Sums:
    value = chunk.value if chunk.weight is None else chunk.value[chunk.weight > 0]
    center = np.quantile(value[:: 1 + (len(value) >> 14)], 0.5, axis=0, method="lower")  # of every k-th row of many
    return Sums(asked.state(chunk, center), asked.layout(len(center)), center)


def _joined_sums(asked: QueryBatch, one: Sums, other: Sums) -> Sums:
    """Merge the sums of two disjoint sets of rows, with the center of the first."""
    state = other.state
    if asked.recipe.degree and one.center is not None and other.center is not None:
        state = one.layout.with_center(state, other.center - one.center)
    return replace(one, state=merge_states(one.state, state, asked.limit))


class Source(ABC):
    """Abstract base class of key-value pairs that are not in memory."""

    dtype: np.dtype[Any] = FLOAT64  # of keys and values, which with that of queries is that of pooled values
    flat: bool
    outputs: int
    rows: int | None
    labels: Sequence[Any] | None
    kinds: Sequence[Kind] | None

    @property
    @abstractmethod
    def columns(self) -> int:
        """Number of key columns."""

    @abstractmethod
    def counted(self) -> Source:
        """Return the pairs with the number of each part known; raise ValueError if there are none."""

    @abstractmethod
    def ask(self, question: Question[Answer], progress: Progress | None = None) -> Answer:
        """Return the answer to a map-reduce query, merged over all chunks that have pairs of positive weight."""

    def sample(self, size: int, seed: int, progress: Progress | None = None) -> RowSample:
        """Draw a uniform random sample of at most `size` pairs of positive weight.

        It depends on the seed and on the order of the pairs, not on how they are divided into parts.
        """
        return self.ask(Sampling(size, seed), progress)

    def sum(self, asked: QueryBatch, progress: Progress | None = None) -> Sums:
        """Return the kernel sums over all pairs at evaluation points."""
        sums: Sums = self.ask(kernel_sums(asked), progress)
        return sums

    def reduce(self, recipe: Recipe, query: ArrayLike, progress: Progress | None = None) -> Sums:
        """Sum weights and weighted values over all pairs, at each query."""
        asked = self.asked(recipe, query)

        def fill(rows: Index) -> Array:
            return quotient(self.ask(kernel_sums(asked.at(rows, recipe.empty))).state)

        dtype = np.result_type(asked.query.dtype or FLOAT64, self.dtype)
        return asked.finished(self.sum(asked, progress), self.flat, fill=fill, dtype=dtype)

    def pool(self, recipe: Recipe, query: Any, progress: Progress | None = None) -> Any:
        """Compute pooled values at queries; parameters as of `finalize`."""
        return finalize(self.reduce(recipe, query, progress), recipe)

    def asked(self, recipe: Recipe, query: ArrayLike) -> QueryBatch:
        """Validate queries as a `QueryBatch`, with their columns in the order of the key columns."""
        recipe.refuse_nearest("chunks")
        return QueryBatch.of(recipe, query).in_order_of(self.labels)


def answer_of(question: Question[Answer], chunks: Iterable[Chunk], start: int = 0) -> Answer | None:
    """Evaluate a map-reduce query on consecutive chunks, of which the first row has the index `start` among all rows.

    None if no row has a positive weight.
    """
    answer = None
    for chunk in chunks:
        if len(chunk.key) and (chunk.weight is None or chunk.weight.any()):
            answer = joined_answers(question, answer, question.of(chunk._replace(start=start)))
        start += len(chunk.key)
    return answer


def joined_answers(question: Question[Answer], one: Answer | None, other: Answer | None) -> Answer | None:
    """Merge two answers to a map-reduce query, either of which may be None."""
    if one is None or other is None:
        return other if one is None else one
    return question.joined(one, other)
