"""Out-of-core pooling of chunks and large memory maps: sums over each chunk, which are then merged.

The sum over a chunk does not depend on where the chunk lies: the same class serves files and clusters. Values of
local fits are taken less a center that all chunks share, since slopes of large values with small differences would
lose their digits. Weighted means have no center; their error is relative to their own size.

Memory maps beyond the size of a chunk are read piece by piece; the results have the shapes and types of those of
arrays.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kernpool.algorithms.algorithm import radius
from kernpool.core import FLOAT64_EPSILON, PoolState, as_tol
from kernpool.core.input_validation import LEAST_TOL
from kernpool.data import Chunk, Chunks, Kind, TableError, as_bandwidth, as_real_array
from kernpool.data.chunks import base
from kernpool.execution.progress import Progress
from kernpool.pooling.plan import name_of_each
from kernpool.pooling.recipe import Recipe, Sums, quotient
from kernpool.pooling.stored_pairs import (
    Answer,
    ChunkReason,
    OpenedPairs,
    QueryBatch,
    StoredPairs,
    Task,
    center_of,
    found_in_pairs,
    merge_states,
)

Array = NDArray[np.float64]

# Fraction of the tolerance that pairs may take which are not read; and the sum of weights of a query, in keys at the
# query, from which on they take no more.
UNREAD, LEAST_SUM = 2.0**-8, 2.0**-10


def reason_of_chunks(recipe: Recipe, what: str = "chunk by chunk", how: str = "their states are merged") -> ChunkReason:
    """Return the algorithm by which each chunk is summed, and the reason in words."""
    return ChunkReason(recipe.algorithm, f"{what}, each by {name_of_each(recipe.algorithm)}; {how}")


@dataclass(frozen=True, eq=False)
class ChunkPairs(StoredPairs):
    """Key-value pairs in chunks, which need not fit into memory.

    Parameters
    ----------
    chunks : Chunks
        The pairs.
    reference : dict, optional
        `Chunks.reference` as it was when a model was fitted: files that have changed since are not read.
    """

    chunks: Chunks
    reference: dict[str, Any] | None = None
    parts = 1

    @property
    def flat(self) -> bool:  # type: ignore[override]  # known once a chunk has come
        """Whether values are one column without an axis of its own."""
        return bool(self.chunks.flat)

    @property
    def rows(self) -> int | None:  # type: ignore[override]  # likewise
        """Number of pairs, if it is known."""
        return self.chunks.rows

    @property
    def labels(self) -> tuple[str, ...] | None:  # type: ignore[override]  # read only
        """Labels of the key columns, by which query columns are matched."""
        return self.chunks.labels

    @property
    def kinds(self) -> tuple[Kind, ...] | None:  # type: ignore[override]  # read only
        """Kinds of the key columns, if some are dates or durations; None if all are numbers."""
        return self.chunks.kinds

    @property
    def outputs(self) -> int:  # type: ignore[override]  # read only
        """Number of value columns."""
        return self.chunks.outputs or self._first.value.shape[1]

    @property
    def columns(self) -> int:
        """Number of key columns."""
        return int(self._first.key.shape[1])

    @property
    def _first(self) -> Chunk:
        first = next(iter(self.chunks), None)
        if first is None:
            raise ValueError("there are no rows: the chunks given as X are empty; give at least one row")
        return first

    def counted(self) -> ChunkPairs:
        """Return the pairs themselves; raise ValueError if there are none."""
        self._first  # noqa: B018  # raises
        return self

    def center(self) -> Array:
        """Return a center for all values, of shape (outputs,); raise ValueError if no pair has positive weight."""
        return found_in_pairs(next((found for found in map(center_of, self.chunks) if found is not None), None))

    def combine(
        self,
        task: Task[Answer],
        joined: Callable[[Answer, Answer], Answer],  # noqa: ARG002  # there is one part
        starts: Sequence[int] | None = None,
        progress: Progress | None = None,
    ) -> Answer:
        """Call ``task(chunks, start)`` for all chunks as one part; parameters as of `StoredPairs.combine`."""
        self._check_unchanged()
        return task(_watched(self.chunks, progress), 0 if starts is None else starts[0])

    def plan(self, recipe: Recipe, query: ArrayLike) -> ChunkReason:
        """Return the algorithm that sums the chunks, and the reason for the choice; no chunk is read."""
        self.asked(recipe, query)
        return reason_of_chunks(recipe)

    def reduce(self, recipe: Recipe, query: ArrayLike, progress: Progress | None = None) -> Sums:
        """Sum weights and weighted values over all chunks in turn; memory is O(m) plus one chunk.

        Raises
        ------
        TableError
            If the files have changed since the fit.
        ValueError
            If there are no pairs. Later, if windows are empty and the recipe needs the pairs once more, which an
            iterator does not give.
        """
        self._check_unchanged()
        asked = self.asked(recipe, query)
        state, center = reduce_in_reach(asked, self.chunks, progress)

        def fill(rows: NDArray[np.intp]) -> Array:
            if not self.chunks.again:
                raise ValueError(
                    f"empty={recipe.empty!r} goes through the pairs once more, which an iterator does not allow; give "
                    "a list, an array or a file, or use empty='nan' or 'zero'"
                )
            return quotient(reduce_chunks(asked.at(rows, recipe.empty), self.chunks, center=center)[0])

        return asked.sums(state, center, self.flat, fill=fill)

    def _check_unchanged(self) -> None:
        if self.reference is not None and self.chunks.reference() != self.reference:
            raise TableError(
                f"{self.reference['path']} has changed since the model was fitted to it; put the data back, or fit "
                "again"
            )


def _watched(chunks: Chunks, progress: Progress | None) -> Iterator[Chunk]:
    """Iterate over chunks; report the pairs done after each, if their number is known."""
    done = 0
    for chunk in chunks:
        yield chunk
        done += len(chunk.key)
        if progress is not None and chunks.rows is not None:
            progress(done, chunks.rows)


def reduce_in_reach(asked: QueryBatch, chunks: Chunks, progress: Progress | None = None) -> tuple[PoolState, Array]:
    """Return what `reduce_chunks` does, to rounding, and read no chunk known to be out of reach of all queries."""
    # A kernel of infinite support reaches to where the weights of all pairs beyond are `UNREAD` of the tolerance of a
    # query whose sum of weights is `LEAST_SUM`. Queries with a smaller sum are summed over the other chunks as well.
    recipe, (query, low, high, *_) = asked.recipe, asked.query
    kernel, d, split = recipe.kernel, query.shape[1], None
    if d == len(chunks.names or ()) and (kernel.is_compact or not recipe.degree):
        tol = max(as_tol(recipe.tol), LEAST_TOL)
        share = np.array(LEAST_SUM * UNREAD * tol / max(chunks.rows or 0, 1))
        reach = radius(kernel, np.array(0.0), share) * (kernel.support if kernel.is_compact else 1.0)
        widest = 1.0 if recipe.widening is None else recipe.widening.max()
        width = reach * widest * as_bandwidth(recipe.bandwidth, d) + 4 * FLOAT64_EPSILON * np.maximum(
            np.abs(low), np.abs(high)
        )
        split = chunks.split_by_box(low - width, high + width)
    if split is None:
        return reduce_chunks(asked, chunks, progress)
    near, far, heaviest = split
    state, center = reduce_chunks(asked, near, progress)
    if not kernel.is_compact:
        with np.errstate(divide="ignore"):  # where all weights are zero
            least = np.log(LEAST_SUM * heaviest) + recipe.log_peak(d)
        rows = np.flatnonzero(~(state.log_denominator >= least))
        if rows.size:

            def report(done: int, _: int) -> None:
                if progress is not None:
                    progress((near.rows or 0) + done, chunks.rows or 0)

            state.add(rows, reduce_chunks(asked.at(rows), far, report, center)[0])
    return state, center


def reduce_chunks(
    asked: QueryBatch, chunks: Chunks, progress: Progress | None = None, center: Array | None = None
) -> tuple[PoolState, Array]:
    """Sum weights and weighted values over all chunks in order; return the sums and the center of the values."""
    state = None
    for chunk in _watched(chunks, progress):
        center = center_of(chunk) if center is None else center
        if center is not None:
            part = asked.state(chunk, center)
            state = part if state is None else merge_states(state, part, asked.limit)
    return found_in_pairs(state), found_in_pairs(center)


def is_large_map(key: np.memmap[Any, Any], value: Any, key_weight: Any) -> bool:
    """Return whether a memory map of keys is larger than a chunk, so that it is better read chunk by chunk."""
    large = key.ndim <= 2 and key.size * 8 > base.BYTES_PER_CHUNK
    return large and np.ndim(value) <= 2 and (key_weight is None or np.ndim(key_weight) == 1)


@dataclass(frozen=True, eq=False)
class MapPairs:
    """Key-value pairs in large memory maps, which are read chunk by chunk; parameters as in `pool`."""

    key: Any
    value: Any
    key_weight: Any = None

    def plan(self, recipe: Recipe, query: Any) -> ChunkReason:
        """Return the algorithm that sums the chunks of the memory maps, and the reason for the choice."""
        opened = self.opened(query)
        return opened.pairs.plan(recipe, opened.query)

    def reduce(self, recipe: Recipe, query: Any, progress: Progress | None = None) -> Sums:
        """Sum weights and weighted values over all chunks of the memory maps, at each query."""
        opened = self.opened(query)
        m = len(np.asarray(opened.query))

        def report(done: int, total: int) -> None:
            if progress is not None:
                progress(done * m // total, m)

        sums = opened.pairs.reduce(recipe, opened.query, report)
        columns = () if opened.pairs.flat else (sums.layout.values,)
        return replace(sums, shape=(*(opened.leading or ()), *columns), dtype=opened.dtype)

    def opened(self, query: Any) -> OpenedPairs:
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
        return OpenedPairs(table, ChunkPairs(base.ArrayChunks(*arrays.values())), leading, np.result_type(rows, *types))
