"""Out-of-core pooling of chunks and large memory maps: sums over each chunk, which are then merged.

The sum over a chunk does not depend on where the chunk lies: the same class serves files and clusters. Values of
local fits are taken less a center that all chunks share, since slopes of large values with small differences would
lose their digits. Weighted means have no center; their error is relative to their own size.

For few queries in one column, merging states would visit all queries once per chunk. Instead the line is cut into
cells once, for all chunks (`algorithms/sweep/few_queries.py`). The keys of each chunk add to the moments of their
cells, and queries are evaluated at the end. For ten thousand queries and a hundred million keys that takes half of
the time.

Memory maps beyond the size of a chunk are read piece by piece; the results have the shapes and types of those of
arrays.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kernpool.core import Layout, PoolState, Rows, checked_rows, column_range, empty_state, merge
from kernpool.data import LARGEST, as_real_array, labels_of
from kernpool.data.chunks import base
from kernpool.data.chunks.base import Chunk, Chunks
from kernpool.execution.progress import Progress
from kernpool.execution.threads import resolve_n_jobs
from kernpool.pooling.plan import name_of_each
from kernpool.pooling.plan_choice import choose
from kernpool.pooling.recipe import FLOAT64, Recipe, Sums, limit_problem, quotient

Array = NDArray[np.float64]

KEYS_PER_QUERY = 64  # from which on queries are few


def are_on_a_line(query: Array, degree: int, algorithm: str, chunks: Chunks) -> bool:
    """Return whether `sum_on_a_line` may apply: few queries, and many chunked keys of a single column.

    The chunks must be readable again, since some queries may need a second pass.
    """
    few = chunks.again and chunks.rows is not None and chunks.rows >= KEYS_PER_QUERY * len(query)
    return few and query.shape[1] == 1 and not degree and algorithm in ("auto", "sweep")


def sum_on_a_line(
    recipe: Recipe, query: Rows, chunks: Chunks, progress: Progress | None
) -> tuple[PoolState, Array, NDArray[np.intp]] | None:
    """Sum over all chunks of one-dimensional keys in a single pass, or return None if that is unsupported.

    Parameters
    ----------
    recipe : Recipe
        How to pool.
    query : Rows
        Evaluation points, in one column.
    chunks : Chunks
        Of one column.
    progress : callable or None
        Called as ``progress(pairs_done, pairs_total)`` after every chunk.

    Returns
    -------
    (PoolState, ndarray, ndarray) or None
        The sums; the center of the values, zero; and the rows of queries that are not done and have an empty state.
        None if the kernel, the positions of the queries, or weights do not allow it.
    """
    from kernpool.algorithms.sweep.few_queries import FewQueries  # loads Numba

    jobs, rest, done = resolve_n_jobs(recipe.n_jobs), (chunk for chunk in chunks if len(chunk.key)), 0
    first = next(rest, None)
    if first is None or first.weight is not None or chunks.rows is None:
        return None
    problem = recipe.problem(query, first.key, first.value)
    few = FewQueries.of(problem, chunks.rows, -np.inf, np.inf)
    if few is None:
        return None
    h, zeros = float(problem.similarity.bandwidth[0]), np.zeros(first.value.shape[1])
    for chunk in chain([first], rest):
        keys, values = (np.abs(column_range(part)).max() for part in (chunk.key, chunk.value))
        if not (keys <= 0.25 * LARGEST * min(h, 1.0) and values <= LARGEST):
            recipe.problem(query, chunk.key, chunk.value)  # raises the error
        few.add(chunk.key[:, 0], None, chunk.value, jobs)
        done += len(chunk.key)
        if progress is not None:
            progress(done, chunks.rows)
    m = len(query.array)
    state = PoolState(np.zeros(m), np.empty(m), np.empty((m, len(zeros))))
    undone = few.finish(state, jobs, None)
    state.shift[state.denominator == 0] = -np.inf
    return state, zeros, np.flatnonzero(undone)


NO_PAIRS = "there are no pairs of positive weight: the source is empty, or its weights are all zero"
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

    def __len__(self) -> int:
        return len(self.query.array)

    def layout(self, outputs: int) -> Layout:
        """Return the `Layout` that maps weighted sums to columns, for this number of value columns."""
        return Layout(outputs, self.query.array.shape[1], self.recipe.degree)

    def state(self, chunk: Chunk, center: Array, self_index: NDArray[np.intp] | None = None) -> PoolState:
        """Sum weights and weighted values over one chunk of pairs, at each query.

        Parameters
        ----------
        chunk : Chunk
            Pairs; none at all, or none of any weight, make the state of no keys.
        center : ndarray of shape (c,)
            Center that is subtracted from the values of local linear fits.
        self_index : ndarray of shape (m,), optional
            For leave-one-out, which row of the chunk each query is, -1 for none.

        Returns
        -------
        PoolState
            Sums of weights and of weighted values.
        """
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
        plan = choose(problem, self.recipe.algorithm, reuse=True)
        return plan.reduce(problem, n_jobs=self.recipe.n_jobs)

    def at(self, rows: NDArray[np.intp], limit: str | None = None) -> QueryBatch:
        """Select the queries with these indices; with a `limit`, for pooling with vanishing or infinite bandwidth."""
        recipe = self.recipe if limit is None else replace(self.recipe, degree=0)
        return QueryBatch(recipe, self.query._replace(array=self.query.array[rows]), limit)

    def sums(self, state: PoolState, center: Array, flat: bool, **more: Any) -> Sums:
        """Wrap the sums over all chunks as `Sums`, ready for `finalize`; `more` are further fields of `Sums`."""
        layout, m = self.layout(len(center)), len(self)
        shape = (m,) if flat else (m, len(center))
        return Sums(state, layout, center if self.recipe.degree else None, shape=shape, **more)


class OpenedChunks(NamedTuple):
    """Queries and chunks of key-value pairs, with the original shape of the queries and the dtype of the result.

    Parameters
    ----------
    query : array_like of shape (m,) or (m, d)
        Queries, without batch dimensions.
    chunks : Chunks
        The pairs.
    leading : tuple of int, or None
        Shape of the queries as they were given, without their columns; None for (m,).
    dtype : numpy.dtype
        Of pooled values.
    """

    query: ArrayLike
    chunks: Chunks
    leading: tuple[int, ...] | None = None
    dtype: np.dtype[Any] = FLOAT64

    def shaped(self, found: Array, *more: int) -> NDArray[Any]:
        """Reshape (m, c, ...) results to the query dimensions as given, then value columns, then axes `more`."""
        leading = (len(found),) if self.leading is None else self.leading
        columns = () if self.chunks.flat else found.shape[1:2]
        return found.reshape(*leading, *columns, *more)


class ChunkReason(NamedTuple):
    """Name of the algorithm that sums chunks, and the reason for the choice."""

    algorithm: str
    reason: str


def reason_of_chunks(recipe: Recipe, what: str = "chunk by chunk", how: str = "their states are merged") -> ChunkReason:
    """Return the algorithm by which each chunk is summed, and the reason in words."""
    return ChunkReason(recipe.algorithm, f"{what}, each by {name_of_each(recipe.algorithm)}; {how}")


@dataclass(frozen=True, eq=False)
class ChunkPairs:
    """Key-value pairs in chunks, which need not fit into memory."""

    chunks: Chunks

    def opened(self, query: ArrayLike) -> OpenedChunks:
        """Return the queries together with the chunks, as `OpenedChunks`."""
        return OpenedChunks(query, self.chunks)

    def plan(self, recipe: Recipe, query: ArrayLike) -> ChunkReason:
        """Return the algorithm that sums the chunks, and the reason for the choice; no chunk is read."""
        asked = self._asked(recipe, query)
        if are_on_a_line(asked.query.array, recipe.degree, recipe.algorithm, self.chunks):
            few = f"{len(asked)} queries are few beside {self.chunks.rows} keys on a line"
            return ChunkReason("sweep", f"one pass over all chunks where the kernel allows it: {few}")
        return reason_of_chunks(recipe)

    def reduce(self, recipe: Recipe, query: ArrayLike, progress: Progress | None = None) -> Sums:
        """Sum weights and weighted values over all chunks in turn; memory is O(m) plus one chunk.

        Raises
        ------
        ValueError
            If there are no pairs. Later, if windows are empty and the recipe needs the pairs once more, which an
            iterator does not give.
        """
        asked = self._asked(recipe, query)
        state, center = reduce_chunks(asked, self.chunks, progress)

        def fill(rows: NDArray[np.intp]) -> Array:
            if not self.chunks.again:
                raise ValueError(
                    f"empty={recipe.empty!r} goes through the pairs once more, which an iterator does not allow; give "
                    "a list, an array or a file, or use empty='nan' or 'zero'"
                )
            return quotient(reduce_chunks(asked.at(rows, recipe.empty), self.chunks, center=center)[0])

        return asked.sums(state, center, self.chunks.flat, fill=fill)

    def _asked(self, recipe: Recipe, query: ArrayLike) -> QueryBatch:
        rows = read_queries(query)
        if rows.array.ndim != 2 or not rows.array.size:
            raise ValueError(f"query must have shape (queries,) or (queries, columns) here, got {np.shape(query)}")
        return QueryBatch(recipe, rows.in_order_of(self.chunks.labels))


def read_queries(query: ArrayLike) -> Rows:
    """Validate queries as `Rows`, except for emptiness and a wrong shape, which the caller has to check."""
    read = as_real_array("query", query)
    if read.size and read.ndim in (1, 2):
        return checked_rows("query", read)._replace(labels=labels_of(query))
    array = np.asarray(read[:, None] if read.ndim == 1 else read, dtype=np.float64)
    return Rows(array, np.zeros(0), np.zeros(0), read.dtype, None)


def reduce_chunks(
    asked: QueryBatch, chunks: Chunks, progress: Progress | None = None, center: Array | None = None
) -> tuple[PoolState, Array]:
    """Sum weights and weighted values over all chunks in order; return the sums and the center of the values."""
    recipe = asked.recipe
    if asked.limit is None and are_on_a_line(asked.query.array, recipe.degree, recipe.algorithm, chunks):
        found = sum_on_a_line(recipe, asked.query, chunks, progress)
        if found is not None:
            state, center, undone = found
            if len(undone):
                rest, _ = _merge_all(asked.at(undone), chunks, None, center)
                state.put(undone, rest)
            return state, center
    return _merge_all(asked, chunks, progress, center)


def _merge_all(
    asked: QueryBatch, chunks: Chunks, progress: Progress | None, center: Array | None
) -> tuple[PoolState, Array]:
    state, done = None, 0
    for chunk in chunks:
        center = center_of(chunk) if center is None else center
        if center is not None:
            part = asked.state(chunk, center)
            state = part if state is None else merge_states(state, part, asked.limit)
        done += len(chunk.key)
        if progress is not None and chunks.rows is not None:
            progress(done, chunks.rows)
    if state is None or center is None:
        raise ValueError(NO_PAIRS)
    return state, center


def merge_states(a: PoolState, b: PoolState, limit: str | None) -> PoolState:
    """Merge the kernel sums of two sets of chunks; for the limit "nearest", treat nearly equal distances as ties.

    In the limit "nearest" shifts are squared distances in tiny bandwidths, which algorithms round differently. Then the
    last digit of 1e16 would decide between keys that are equally far; they weigh the same.

    Parameters
    ----------
    a, b : PoolState
        As for `merge`.
    limit : {None, "nearest", "mean"}
        As in `QueryBatch`.

    Returns
    -------
    PoolState
        The state of both.
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

    Parameters
    ----------
    chunk : Chunk
        The first, usually.

    Returns
    -------
    ndarray of shape (c,) or None
        None if there is no pair of positive weight, so that another chunk is needed.
    """
    value = chunk.value if chunk.weight is None else chunk.value[chunk.weight > 0]
    return np.median(value[:: 1 + (len(value) >> 14)], axis=0) if len(value) else None


def is_large_map(key: Any, value: Any, key_weight: Any) -> bool:
    """Return whether keys are a memory map larger than a chunk, which is better read chunk by chunk.

    Parameters
    ----------
    key, value, key_weight : object
        As in `pool`. Batches of keys, values or weights are not for chunks.

    Returns
    -------
    bool
        True if float64 numbers of all keys would take more than a chunk may.
    """
    large = isinstance(key, np.memmap) and key.ndim <= 2 and key.size * 8 > base.BYTES_PER_CHUNK
    return large and np.ndim(value) <= 2 and (key_weight is None or np.ndim(key_weight) == 1)


@dataclass(frozen=True, eq=False)
class MapPairs:
    """Key-value pairs in large memory maps, which are read chunk by chunk; parameters as in `pool`.

    The interface is that of arrays.
    """

    key: Any
    value: Any
    key_weight: Any = None

    def plan(self, recipe: Recipe, query: Any) -> ChunkReason:
        """Return the algorithm that sums the chunks of the memory maps, and the reason for the choice."""
        opened = self.opened(query)
        return ChunkPairs(opened.chunks).plan(recipe, opened.query)

    def reduce(self, recipe: Recipe, query: Any, progress: Progress | None = None) -> Sums:
        """Sum weights and weighted values over all chunks of the memory maps, at each query."""
        opened = self.opened(query)
        m = len(np.asarray(opened.query))

        def report(done: int, total: int) -> None:
            if progress is not None:
                progress(done * m // total, m)

        sums = ChunkPairs(opened.chunks).reduce(recipe, opened.query, report)
        columns = () if opened.chunks.flat else (sums.layout.values,)
        return replace(sums, shape=(*(opened.leading or ()), *columns), dtype=opened.dtype)

    def opened(self, query: Any) -> OpenedChunks:
        """Return the queries, and the memory maps as chunks, without reading a row of the maps."""
        rows = as_real_array("query", query)
        if rows.size == 0 or rows.ndim == 0:
            raise ValueError(f"query must have at least one row and one column, got shape {rows.shape}")
        arrays = {"key": self.key, "value": self.value}
        arrays |= {} if self.key_weight is None else {"key_weight": self.key_weight}
        for name, array in arrays.items():
            if not isinstance(array, np.memmap):
                arrays[name] = as_real_array(name, array)
        types = [as_real_array(name, arrays[name][:0]).dtype for name in ("key", "value")]  # of no row: nothing is read
        leading = rows.shape[:-1] if rows.ndim > 1 else rows.shape
        table = rows.reshape(-1, rows.shape[-1]) if rows.ndim > 1 else rows
        return OpenedChunks(table, base.ArrayChunks(*arrays.values()), leading, np.result_type(rows, *types))
