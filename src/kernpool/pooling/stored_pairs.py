"""Key-value pairs that are not in memory: the interface that chunks of files and partitions of a cluster share.

Whatever is asked of such pairs is computed part by part and merged: kernel sums (`StoredPairs.reduce`), a `Question`
(`StoredPairs.ask`), a random sample (`StoredPairs.draw_sample`). `ChunkPairs` (`out_of_core.py`) goes through the parts
in turn, `kernpool.dask.PartitionPairs` lets the workers of a cluster do so.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial, reduce
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kernpool.core import FLOAT64, Layout, PoolState, Rows, checked_rows, empty_state, merge
from kernpool.data import Chunk, Kind, as_real_array, labels_of
from kernpool.data.chunks.sampling import RowSample, draw_sample, join_samples
from kernpool.execution.progress import Progress
from kernpool.pooling.recipe import Recipe, Sums, finalize, limit_problem, sum_problem

Array = NDArray[np.float64]
Answer = TypeVar("Answer")
Task = Callable[[Iterable[Chunk], int], Answer]


def found_in_pairs(found: Answer | None) -> Answer:
    """Return what was found in pairs; raise ValueError if it is None, as there are none of positive weight."""
    if found is None:
        raise ValueError("there are no pairs of positive weight: the source is empty, or its weights are all zero")
    return found


SAME_DISTANCE = 16 * float(np.finfo(np.float64).eps)


@dataclass(frozen=True, eq=False)
class QueryBatch:
    """Evaluation points at which every chunk of pairs is summed, with the parameters of pooling.

    Parameters
    ----------
    recipe : Recipe
        How to pool.
    query : Rows
        Evaluation points; read once for all chunks.
    limit : {None, "nearest", "mean"}
        To pool in the limit of a vanishing or of an infinite bandwidth instead, for windows that are empty.
    """

    recipe: Recipe
    query: Rows
    limit: str | None = None

    @classmethod
    def of(cls, recipe: Recipe, query: ArrayLike) -> QueryBatch:
        """Validate queries without batch dimensions and build a `QueryBatch`; an array of no queries is allowed."""
        return cls(recipe, read_queries(query))

    def in_order_of(self, labels: Sequence[Any] | None) -> QueryBatch:
        """Return the queries with their columns in the order of key columns; raise ValueError for other dimensions."""
        if self.query.array.ndim != 2 or not self.query.array.size:
            raise ValueError(
                f"query must have shape (queries,) or (queries, columns) here, got {self.query.array.shape}"
            )
        return replace(self, query=self.query.in_order_of(labels))

    def __len__(self) -> int:
        return len(self.query.array)

    def layout(self, outputs: int) -> Layout:
        """Return the `Layout` that maps weighted sums to columns, for this number of value columns."""
        return Layout(outputs, self.query.array.shape[1], self.recipe.degree)

    def state(self, chunk: Chunk, center: Array, self_index: NDArray[np.intp] | None = None) -> PoolState:
        """Sum weights and weighted values over one chunk of pairs, at each query."""
        if not len(chunk.key) or (chunk.weight is not None and not chunk.weight.any()):
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

    def at(self, rows: NDArray[np.intp], limit: str | None = None) -> QueryBatch:
        """Select the queries with these indices; with a `limit`, for pooling with vanishing or infinite bandwidth."""
        recipe = self.recipe.at(rows)
        recipe = recipe if limit is None else replace(recipe, degree=0)
        return QueryBatch(recipe, self.query._replace(array=self.query.array[rows]), limit)

    def sums(self, state: PoolState, center: Array, flat: bool, **more: Any) -> Sums:
        """Wrap the sums over all chunks as `Sums`, ready for `finalize`; `more` are further fields of `Sums`."""
        layout, m = self.layout(len(center)), len(self)
        shape = (m,) if flat else (m, len(center))
        return Sums(state, layout, center if self.recipe.degree else None, shape=shape, **more)


def sum_chunks(
    asked: QueryBatch,
    chunks: Iterable[Chunk],
    center: Array,
    places: NDArray[np.intp] | None = None,
    start: int = 0,
) -> PoolState:
    """Sum weights and weighted values over chunks of consecutive rows."""
    state, own = empty_state(len(asked), asked.layout(len(center)).width), None
    for chunk in chunks:
        if places is not None:
            inside = (places >= start) & (places < start + len(chunk.key))
            own = np.where(inside, places - start, -1)
        if len(chunk.key):
            state = merge_states(state, asked.state(chunk, center, own), asked.limit)
        start += len(chunk.key)
    return state


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


def center_of(chunk: Chunk) -> Array | None:
    """Return a center for the values of all chunks: the median of each value column of one chunk, or of a sample.

    The sample is every k-th row of a chunk of many.
    """
    value = chunk.value if chunk.weight is None else chunk.value[chunk.weight > 0]
    return np.median(value[:: 1 + (len(value) >> 14)], axis=0) if len(value) else None


class Question(Protocol[Answer]):
    """Interface of map-reduce queries: evaluated on every chunk separately, with answers that merge."""

    def of(self, chunk: Chunk) -> Answer:
        """Evaluate the map-reduce query on one chunk of rows."""

    def joined(self, one: Answer, other: Answer) -> Answer:
        """Merge the answers to the map-reduce query for two disjoint sets of rows."""


class MapReduce(NamedTuple):
    """Map-reduce query made of two functions: the answer of one chunk of rows, and two answers merged."""

    of: Callable[[Chunk], Any]
    joined: Callable[[Any, Any], Any]


class StoredPairs(ABC):
    """Abstract base class of key-value pairs that are not in memory."""

    flat: bool
    outputs: int
    rows: int | None
    parts: int
    labels: Sequence[Any] | None
    kinds: Sequence[Kind] | None

    @abstractmethod
    def reduce(self, recipe: Recipe, query: ArrayLike, progress: Progress | None = None) -> Sums:
        """Sum weights and weighted values over all pairs, at each query."""

    @abstractmethod
    def combine(
        self,
        task: Task[Answer],
        joined: Callable[[Answer, Answer], Answer],
        starts: Sequence[int] | None = None,
        progress: Progress | None = None,
    ) -> Answer:
        """Call ``task(chunks, start)`` for each part of the pairs, and merge what it returns, in order."""

    @abstractmethod
    def counted(self) -> StoredPairs:
        """Return the pairs with the number of each part known; raise ValueError if there are none."""

    def pool(self, recipe: Recipe, query: Any, progress: Progress | None = None) -> Any:
        """Compute pooled values at queries; parameters as of `finalize`."""
        return finalize(self.reduce(recipe, query, progress), recipe)

    @abstractmethod
    def plan(self, recipe: Recipe, query: Any) -> ChunkReason:
        """Return the algorithm that sums the pairs, and the reason for the choice, without reading them."""

    def opened(self, query: ArrayLike) -> OpenedPairs:
        """Return the queries together with the pairs."""
        return OpenedPairs(query, self)

    @property
    @abstractmethod
    def columns(self) -> int:
        """Number of key columns."""

    @abstractmethod
    def center(self) -> Array:
        """Return a center for all values, of shape (outputs,); raise ValueError if no pair has positive weight."""

    def asked(self, recipe: Recipe, query: ArrayLike) -> QueryBatch:
        """Validate queries as a `QueryBatch`, with their columns in the order of the key columns."""
        recipe.refuse_nearest("chunks")
        return QueryBatch.of(recipe, query).in_order_of(self.labels)

    def ask(self, question: Question[Answer], progress: Progress | None = None) -> Answer:
        """Return the answer to a map-reduce query, merged over all chunks that have pairs of positive weight."""
        answer: Answer | None = self.combine(
            partial(answer_of, question), partial(joined_answers, question), progress=progress
        )
        return found_in_pairs(answer)

    def draw_sample(self, size: int, seed: int, progress: Progress | None = None) -> RowSample | None:
        """Draw a uniform random sample of at most `size` pairs of positive weight; None if there are no pairs.

        It depends on the seed and on the order of the pairs, not on how they are divided into parts.
        """
        # Parts send few pairs more than are wanted; where most weights are zero, a second pass sends more.
        limit = 1.0 if self.rows is None else min(1.0, 4.0 * (size + 16) / max(self.rows, 1))
        while True:
            task = partial(_sample_of, size=size, seed=seed, limit=limit)
            sample: RowSample | None = self.combine(task, partial(_joined_samples, size=size), progress=progress)
            if limit == 1.0 or sample is None or len(sample.key) == min(size, sample.rows):
                return sample
            limit = 1.0


class ChunkReason(NamedTuple):
    """Name of the algorithm that sums chunks, and the reason for the choice."""

    algorithm: str
    reason: str


class OpenedPairs(NamedTuple):
    """Queries and pairs that are not in memory, with the original shape of the queries and the dtype of the result."""

    query: ArrayLike  # queries, without batch dimensions
    pairs: StoredPairs  # the pairs
    # shape of the queries as they were given, without their columns; None for (m,)
    leading: tuple[int, ...] | None = None
    dtype: np.dtype[Any] = FLOAT64  # of pooled values

    def shaped(self, found: Array, *more: int) -> NDArray[Any]:
        """Reshape (m, c, ...) results to the query dimensions as given, then value columns, then axes `more`."""
        leading = (len(found),) if self.leading is None else self.leading
        columns = () if self.pairs.flat else found.shape[1:2]
        return found.reshape(*leading, *columns, *more)


def answer_of(question: Question[Answer], chunks: Iterable[Chunk], _start: int = 0) -> Answer | None:
    """Evaluate a map-reduce query on chunks, one after the other; return None if none has a positive weight."""
    some = (chunk for chunk in chunks if len(chunk.key) and (chunk.weight is None or chunk.weight.any()))
    answer: Answer | None = reduce(partial(joined_answers, question), map(question.of, some), None)
    return answer


def joined_answers(question: Question[Answer], one: Answer | None, other: Answer | None) -> Answer | None:
    """Merge two answers to a map-reduce query, either of which may be None."""
    if one is None or other is None:
        return other if one is None else one
    return question.joined(one, other)


def _sample_of(chunks: Iterable[Chunk], start: int, **options: Any) -> RowSample | None:
    return draw_sample(chunks, first=start, **options)


def _joined_samples(one: RowSample | None, other: RowSample | None, size: int) -> RowSample | None:
    return join_samples([one, other], size)


def read_queries(query: ArrayLike) -> Rows:
    """Validate queries as `Rows`, except for emptiness and a wrong shape, which the caller has to check."""
    read = as_real_array("query", query)
    if read.size and read.ndim in (1, 2):
        return checked_rows("query", read)._replace(labels=labels_of(query))
    array = np.asarray(read[:, None] if read.ndim == 1 else read, dtype=np.float64)
    return Rows(array, np.zeros(0), np.zeros(0), read.dtype, None)
