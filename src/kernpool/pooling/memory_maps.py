"""Memory maps beyond the size of a chunk: read piece by piece, with the results that arrays in memory have."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from kernpool.data.checks import as_real_array
from kernpool.data.chunks import base
from kernpool.execution.progress import Progress
from kernpool.pooling.chunked import ChunkPairs, ChunkReason, Opened
from kernpool.pooling.recipe import Recipe
from kernpool.pooling.settle import Sums


def is_large_map(key: Any, value: Any, key_weight: Any) -> bool:
    """Whether keys are a memory map that is better read chunk by chunk.

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
    """Pairs in large memory maps: the shapes, types and progress of arrays, piece by piece; parameters as in `pool`."""

    key: Any
    value: Any
    key_weight: Any = None

    def plan(self, recipe: Recipe, query: Any) -> ChunkReason:
        """Say how the pieces would be summed."""
        opened = self.opened(query)
        return ChunkPairs(opened.chunks).plan(recipe, opened.query)

    def reduce(self, recipe: Recipe, query: Any, progress: Progress | None = None) -> Sums:
        """Sum over all pieces."""
        opened = self.opened(query)
        m = len(np.asarray(opened.query))

        def report(done: int, total: int) -> None:
            if progress is not None:
                progress(done * m // total, m)

        sums = ChunkPairs(opened.chunks).reduce(recipe, opened.query, report)
        columns = () if opened.chunks.flat else (sums.layout.values,)
        return replace(sums, shape=(*(opened.leading or ()), *columns), dtype=opened.dtype)

    def opened(self, query: Any) -> Opened:
        """Return a table of queries with the pieces; no row of a map is read."""
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
        return Opened(table, base.ArrayChunks(*arrays.values()), leading, np.result_type(rows, *types))
