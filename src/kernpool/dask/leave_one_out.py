"""Leave-one-out on a Dask cluster: the rows of every partition predicted from all the others, wherever those are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernpool.core.state import PoolState
from kernpool.dask.partitions import Partitions, read_block
from kernpool.dask.pool import block_state, center_task, compute, merge_tree
from kernpool.data.chunks.base import Chunk
from kernpool.pooling.chunked import Pooling

# after kernpool.dask.partitions, which tells what to install
# isort: split
from dask.delayed import delayed

Array = NDArray[np.float64]
Places = NDArray[np.intp]


@dataclass(frozen=True)
class LeaveOneOutError:
    """How well rows are predicted from all others.

    Parameters
    ----------
    error : float
        Weighted mean of the squared error, summed over outputs.
    empty_windows : int
        Rows without another in their window; they are predicted by the weighted mean of the others.
    rows : int
        How many were predicted.
    """

    error: float
    empty_windows: int
    rows: int


def leave_one_out_error(
    partitions: Partitions,
    places: Sequence[Places],
    options: dict[str, Any],
    *,
    scale: Array | float = 1.0,
    client: Any = None,
    retries: int = 3,
) -> LeaveOneOutError:
    """Predict some rows of each partition from all other rows, and measure the error.

    Parameters
    ----------
    partitions : Partitions
        Keys, values and weights.
    places : sequence of ndarray of int
        For each partition, which of its rows.
    options : dict
        Those of `Pooling`.
    scale : ndarray of shape (c,) or float, default=1.0
        Units in which errors of the outputs are counted.
    client, retries
        As in `kernpool.dask.pool`.

    Returns
    -------
    LeaveOneOutError
        The same bits for any number of workers.

    Notes
    -----
    Queries are the rows of one partition, keys those of all: P^2 tasks for P partitions. A row's own key is left out
    where it is met, in its own partition. Its prediction stays where it was made; three numbers per partition come
    back.
    """
    center, blocks = center_task(partitions), partitions.blocks
    sums = delayed(_added)([delayed(_sums)(block, center) for block in blocks])
    tasks = []
    for i, own in enumerate(places):
        if not len(own):
            continue
        rows = delayed(draw_rows)(blocks[i], own)
        pooling = delayed(_at_rows)(rows, options)
        states = [
            delayed(block_state)(pooling, block, center, partitions.outputs, own if i == j else None)
            for j, block in enumerate(blocks)
        ]
        tasks.append(delayed(_squared)(rows, pooling, merge_tree(states), center, sums, scale))
    error, weight, empty = np.sum(compute(tasks, client, retries), axis=0)
    return LeaveOneOutError(float(error / weight), int(empty), sum(map(len, places)))


def draw_rows(block: Any, places: Places) -> Chunk | None:
    """Return some rows of a block, in a task: those at ascending places; None if there are none."""
    parts, start = [], 0
    for chunk in read_block(block) if len(places) else ():
        here = places[(places >= start) & (places < start + len(chunk.key))] - start
        parts.append(
            Chunk(
                chunk.key[here], chunk.value[here], np.ones(len(here)) if chunk.weight is None else chunk.weight[here]
            )
        )
        start += len(chunk.key)
    return joined(parts)


def joined(parts: Sequence[Chunk | None]) -> Chunk | None:
    """Return chunks with weights as one, None if there are none."""
    some = [part for part in parts if part is not None]
    if not some:
        return None
    weights = [np.ones(len(part.key)) if part.weight is None else part.weight for part in some]
    return Chunk(
        np.concatenate([part.key for part in some]),
        np.concatenate([part.value for part in some]),
        np.concatenate(weights),
    )


def _at_rows(rows: Chunk, options: dict[str, Any]) -> Pooling:
    return Pooling(rows.key, **options)


def _sums(block: Any, center: Array | None) -> Array | None:
    """Return the sum of weights and of weighted values of a block."""
    if center is None:
        return None
    found = []
    for chunk in read_block(block):
        weight = np.ones(len(chunk.key)) if chunk.weight is None else chunk.weight
        found.append(np.concatenate([[weight.sum()], weight @ (chunk.value - center)]))
    return np.sum(found, axis=0) if found else None


def _added(sums: list[Array | None]) -> Array:
    return np.asarray(np.sum([part for part in sums if part is not None], axis=0))


def _squared(
    rows: Chunk, pooling: Pooling, state: PoolState, center: Array, sums: Array, scale: Array | float
) -> tuple[float, float, int]:
    """Return the weighted sum of squared errors, the sum of weights, and the number of empty windows."""
    weight = np.ones(len(rows.key)) if rows.weight is None else rows.weight
    unit = np.minimum(weight, 1.0)[:, None]  # of the own row, which is left out

    def mean_of_others(empty: Places) -> Array:
        rest = sums[0] - unit[empty]
        total = sums[1:] - unit[empty] * (rows.value[empty] - center)
        mean: Array = np.divide(total, rest, where=rest > 0, out=np.zeros_like(total))
        return mean + center

    predicted = pooling.finish(state, center, "mean", mean_of_others)
    squared = np.sum(((rows.value - predicted) / scale) ** 2, axis=1)
    return float(weight @ squared), float(weight.sum()), int(np.count_nonzero(state.denominator == 0))
