"""Memory maps beyond the size of a chunk: read piece by piece, with the results that arrays in memory have."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernpool.data.checks import as_real_array
from kernpool.data.chunks import base as chunks
from kernpool.execution.progress import Progress
from kernpool.pooling.chunked import pool_chunks


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
    large = isinstance(key, np.memmap) and key.ndim <= 2 and key.size * 8 > chunks.BYTES_PER_CHUNK
    return large and np.ndim(value) <= 2 and (key_weight is None or np.ndim(key_weight) == 1)


def pool_map(
    query: Any, key: Any, value: Any, key_weight: Any = None, *, progress: Progress | None = None, **options: Any
) -> NDArray[np.floating[Any]]:
    """Pool pairs in memory maps as `pool` pools arrays: the same shapes, types and progress.

    Parameters
    ----------
    query, key, value, key_weight, progress
        As in `pool`; values and weights may be in memory.
    **options
        What else `pool_chunks` takes.

    Returns
    -------
    ndarray of shape (m,), (m, c) or (..., m, c)
        In the common floating-point type of the arrays.

    Raises
    ------
    TypeError, ValueError
        As in `pool`.
    """
    rows = as_real_array("query", query)
    if rows.size == 0 or rows.ndim == 0:
        raise ValueError(f"query must have at least one row and one column, got shape {rows.shape}")
    arrays = {"key": key, "value": value} | ({} if key_weight is None else {"key_weight": key_weight})
    for name, array in arrays.items():
        if not isinstance(array, np.memmap):
            arrays[name] = as_real_array(name, array)
    types = [as_real_array(name, arrays[name][:0]).dtype for name in ("key", "value")]  # of no row: nothing is read
    leading = rows.shape[:-1] if rows.ndim > 1 else rows.shape
    table = rows.reshape(-1, rows.shape[-1]) if rows.ndim > 1 else rows
    m = len(table)

    def report(done: int, total: int) -> None:
        if progress is not None:
            progress(done * m // total, m)

    pooled = pool_chunks(table, chunks.ArrayChunks(*arrays.values()), progress=report, **options)
    result = pooled.reshape(*leading, *pooled.shape[1:])
    return result.astype(np.result_type(rows, *types), copy=False)
