"""Leave-one-out error on a Dask cluster: rows of each partition predicted from all other rows.

Each partition draws rows, each partition sums over its own rows for all of the drawn ones, and the sums are merged:
the number of tasks is the square of the number of partitions.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from dask.delayed import delayed
from numpy.typing import NDArray

from kernpool.core.state import PoolState
from kernpool.dask.partitions import Partitions, read_block
from kernpool.dask.pool import block_state, center_task, compute, merge_tree
from kernpool.data.chunks.base import Chunk
from kernpool.pooling import QueryBatch, Recipe, finalize

Array = NDArray[np.float64]
Places = NDArray[np.intp]


@dataclass(frozen=True)
class LeaveOneOutError:
    """Leave-one-out error of a fit to partitions.

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
    recipe: Recipe,
    *,
    client: Any = None,
    retries: int = 3,
) -> LeaveOneOutError:
    """Predict selected rows of each partition from all other rows, and return the mean squared error.

    Parameters
    ----------
    partitions : Partitions
        Keys, values and weights.
    places : sequence of ndarray of int
        For each partition, the indices of its rows to predict.
    recipe : Recipe
        How to pool; empty windows are predicted by the weighted mean of the other rows.
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
    center, blocks, recipe = center_task(partitions), partitions.blocks, replace(recipe, empty="mean")
    sums = delayed(_added)([delayed(_sums)(block, center) for block in blocks])
    tasks = []
    for i, own in enumerate(places):
        if not len(own):
            continue
        rows = delayed(draw_rows)(blocks[i], own)
        asked = delayed(_at_rows)(rows, recipe)
        states = [
            delayed(block_state)(asked, block, center, partitions.outputs, own if i == j else None)
            for j, block in enumerate(blocks)
        ]
        tasks.append(delayed(_squared)(rows, asked, merge_tree(states), center, sums))
    error, weight, empty = np.sum(compute(tasks, client, retries), axis=0)
    return LeaveOneOutError(float(error / weight), int(empty), sum(map(len, places)))


def draw_rows(block: Any, places: Places) -> Chunk | None:
    """Return rows of a block at ascending indices, in a task; None if there are none."""
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
    """Concatenate chunks that have weights; None if there are none."""
    some = [part for part in parts if part is not None]
    if not some:
        return None
    weights = [np.ones(len(part.key)) if part.weight is None else part.weight for part in some]
    return Chunk(
        np.concatenate([part.key for part in some]),
        np.concatenate([part.value for part in some]),
        np.concatenate(weights),
    )


def _at_rows(rows: Chunk, recipe: Recipe) -> QueryBatch:
    return QueryBatch.of(recipe, rows.key)


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


def _squared(rows: Chunk, asked: QueryBatch, state: PoolState, center: Array, sums: Array) -> tuple[float, float, int]:
    """Return the weighted sum of squared errors, the sum of weights, and the number of empty windows."""
    weight = np.ones(len(rows.key)) if rows.weight is None else rows.weight
    unit = np.minimum(weight, 1.0)[:, None]  # of the own row, which is left out

    def mean_of_others(empty: Places) -> Array:
        rest = sums[0] - unit[empty]
        total = sums[1:] - unit[empty] * (rows.value[empty] - center)
        mean: Array = np.divide(total, rest, where=rest > 0, out=np.zeros_like(total))
        return mean + center

    predicted = finalize(asked.recipe, asked.sums(state, center, False, fill=mean_of_others))
    squared = np.sum((rows.value - predicted) ** 2, axis=1)
    return float(weight @ squared), float(weight.sum()), int(np.count_nonzero(state.denominator == 0))
