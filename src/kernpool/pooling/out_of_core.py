"""Out-of-core pooling of chunks and large memory maps: sums over each chunk, which are then merged.

Memory maps beyond the size of a chunk are read piece by piece; the results have the shapes and types of those of
arrays.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from kernpool.algorithms.algorithm import radius
from kernpool.core import FLOAT64, FLOAT64_EPSILON, as_tol
from kernpool.core.input_validation import LEAST_TOL
from kernpool.data import Chunk, Chunks, Kind, TableError, as_bandwidth, as_real_array
from kernpool.data.chunks import base
from kernpool.execution import Progress, progress_between
from kernpool.pooling.recipe import Sums
from kernpool.pooling.source import Answer, QueryBatch, Question, Source, answer_of, found_in_rows

# Fraction of the tolerance that pairs may take which are not read; and the sum of weights of a query, in keys at the
# query, from which on they take no more.
UNREAD, LEAST_SUM = 2.0**-8, 2.0**-10


@dataclass(frozen=True, eq=False)
class ChunkPairs(Source):
    """Key-value pairs in chunks, which need not fit into memory.

    Parameters
    ----------
    chunks : Chunks
        The pairs.
    reference : dict, optional
        `Chunks.reference` as it was when a model was fitted: files that have changed since are not read.
    dtype : dtype, default=float64
        As of `Source`.
    """

    chunks: Chunks
    reference: dict[str, Any] | None = None
    dtype: np.dtype[Any] = FLOAT64

    @property
    def flat(self) -> bool:  # type: ignore[override]  # known once a chunk has come
        """Whether values are one column without an axis of its own."""
        return bool(self.chunks.flat)

    @property
    def rows(self) -> int | None:  # type: ignore[override]  # likewise
        """Number of pairs, if it is known."""
        return self.chunks.rows

    @property
    def labels(self) -> Sequence[Any] | None:  # type: ignore[override]  # read only
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

    def ask(self, question: Question[Answer], progress: Progress | None = None) -> Answer:
        """Return the answer to a map-reduce query, evaluated on one chunk after the other.

        Raises
        ------
        TableError
            If the files have changed since the fit.
        ValueError
            If there are no pairs of positive weight, or an iterator has been read before.
        """
        self._check_unchanged()
        return found_in_rows(answer_of(question, _watched(self.chunks, progress)))

    def sum(self, asked: QueryBatch, progress: Progress | None = None) -> Sums:
        """Return the kernel sums over all pairs, to rounding, and read no chunk that is out of reach of all queries."""
        # A kernel of infinite support reaches to where the weights of all pairs beyond are `UNREAD` of the tolerance of
        # a query whose sum of weights is `LEAST_SUM`. Queries with a smaller sum are summed over the others as well.
        split = self._split(asked)
        if split is None:
            return super().sum(asked, progress)
        nearby, far, heaviest = split
        self._check_unchanged()
        near, kernel = ChunkPairs(nearby).sum(asked, progress), asked.recipe.kernel
        if kernel.is_compact:
            return near
        with np.errstate(divide="ignore"):  # where all weights are zero
            least = np.log(LEAST_SUM * heaviest) + asked.recipe.kernel.log_peak(asked.query.array.shape[1])
        rows = np.flatnonzero(~(near.state.log_denominator >= least))
        if rows.size:
            total = self.rows or 0
            report = progress_between(progress, nearby.rows or 0, total, total)
            near.state.add(rows, ChunkPairs(far).sum(asked.at(rows), report).state)
        return near

    def _split(self, asked: QueryBatch) -> tuple[Chunks, Chunks, float] | None:
        """Split the chunks into those within reach of some query and the others, if they know where they are."""
        recipe, (query, low, high, *_) = asked.recipe, asked.query
        kernel, d = recipe.kernel, query.shape[1]
        if d != len(self.chunks.names or ()) or (recipe.degree and not kernel.is_compact):
            return None
        share = LEAST_SUM * UNREAD * max(as_tol(recipe.tol), LEAST_TOL) / max(self.rows or 0, 1)
        reach = radius(kernel, np.array(0.0), np.array(share)) * (kernel.support if kernel.is_compact else 1.0)
        widest = 1.0 if recipe.widening is None else recipe.widening.max()
        rounding = 4 * FLOAT64_EPSILON * np.maximum(np.abs(low), np.abs(high))
        width = reach * widest * as_bandwidth(recipe.bandwidth, d) + rounding
        return self.chunks.split_by_box(low - width, high + width)

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


def is_large_map(key: np.memmap[Any, Any], value: Any, key_weight: Any) -> bool:
    """Return whether a memory map of keys is larger than a chunk, so that it is better read chunk by chunk."""
    large = key.ndim <= 2 and key.size * 8 > base.BYTES_PER_CHUNK
    return large and np.ndim(value) <= 2 and (key_weight is None or np.ndim(key_weight) == 1)


def pairs_of_maps(key: np.memmap[Any, Any], value: Any, key_weight: Any = None) -> ChunkPairs:
    """Wrap large memory maps, or a map of keys and arrays, as `ChunkPairs`, without reading a row of the maps."""
    arrays = {"key": key, "value": value} | ({} if key_weight is None else {"key_weight": key_weight})
    for name, array in arrays.items():
        if not isinstance(array, np.memmap):
            arrays[name] = as_real_array(name, array)
    types = [as_real_array(name, arrays[name][:0]).dtype for name in ("key", "value")]  # of no row: nothing is read
    return ChunkPairs(base.ArrayChunks(*arrays.values()), dtype=np.result_type(*types))
