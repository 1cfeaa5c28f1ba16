"""The tasks: the center of the values, the state of a block, and the tree that merges states.

The tree joins eight neighbours at a time, by number of partition, and nothing in it depends on which worker did what.
"""

from __future__ import annotations

from functools import reduce
from typing import Any

import numpy as np
from dask.delayed import delayed
from numpy.typing import NDArray

from kernpool.core.state import PoolState, empty_state
from kernpool.dask.partitions import Partitions, read_block
from kernpool.data.chunks.parquet import ColumnNames
from kernpool.pooling.chunked import Asked, center_of, merge_states

Array = NDArray[np.float64]

FAN_IN = 8


def sent_once(value: Any) -> Any:
    """Return a task that is this value: it is sent once, and other workers ask each other for it."""
    return delayed(_same)(value)


def _same(value: Any) -> Any:
    return value


def center_task(partitions: Partitions) -> Any:
    """Return the task that finds the center of values in the first partition with rows; None if there is none.

    Parameters
    ----------
    partitions : Partitions
        Where to look. Files are opened until one has rows; of partitions of known length one is needed.

    Returns
    -------
    Delayed
        Of an ndarray of shape (c,), or of None.
    """
    known = [block for block, rows in zip(partitions.blocks, partitions.rows, strict=True) if rows]
    one_will_do = known and None not in partitions.rows and not any(_has_weights(block) for block in known)
    blocks = known[:1] if one_will_do else list(partitions.blocks)
    return delayed(_first)([block if not isinstance(block, tuple) else delayed(_center)(block) for block in blocks])


def state_tree(asked: Any, partitions: Partitions, center: Any, limit: str | None = None) -> Any:
    """Return the task that makes the state of all partitions.

    Parameters
    ----------
    asked : Delayed
        Of `Asked`.
    partitions : Partitions
        What is pooled.
    center : Delayed or ndarray of shape (c,)
        What is taken off the values.
    limit : {None, "nearest", "mean"}
        As of `Asked`.

    Returns
    -------
    Delayed
        Of a `PoolState`.
    """
    states = [delayed(block_state)(asked, block, center, partitions.outputs) for block in partitions.blocks]
    return merge_tree(states, limit)


def merge_tree(states: list[Any], limit: str | None = None) -> Any:
    """Return the task that merges states, eight neighbours at a time."""
    while len(states) > 1:
        states = [delayed(_merged)(states[i : i + FAN_IN], limit) for i in range(0, len(states), FAN_IN)]
    return states[0]


def block_state(
    asked: Asked, block: Any, center: Array | None, outputs: int, places: NDArray[np.intp] | None = None
) -> PoolState:
    """Return the state of one block, in a task.

    Parameters
    ----------
    asked : Asked
        Where and how to pool.
    block : object
        From `Partitions`.
    center : ndarray of shape (c,)
        What is taken off the values.
    outputs : int
        Their number of columns.
    places : ndarray of shape (m,), optional
        For leave-one-out, which row of the block each query is.

    Returns
    -------
    PoolState
        That of no keys, where there are none.
    """
    m, start = len(asked), 0
    state = empty_state(m, asked.layout(outputs).width)
    for chunk in read_block(block) if m else ():
        self_index = None
        if places is not None:
            inside = (places >= start) & (places < start + len(chunk.key))
            self_index = np.where(inside, places - start, -1)
        if len(chunk.key) and center is not None:
            state = merge_states(state, asked.state(chunk, center, self_index), asked.limit)
        start += len(chunk.key)
    return state


def _has_weights(block: Any) -> bool:
    """Whether a block in memory may turn out to have no pair of positive weight."""
    return isinstance(block, tuple) and (
        len(block) > 3 or (isinstance(block[2], ColumnNames) and bool(block[2].weight))
    )


def _center(block: Any) -> Array | None:
    centers = (center_of(chunk) for chunk in read_block(block))
    return next((center for center in centers if center is not None), None)


def _first(found: list[Any]) -> Array | None:
    centers = (part if part is None or isinstance(part, np.ndarray) else _center(part) for part in found)
    return next((center for center in centers if center is not None), None)


def _merged(states: list[PoolState], limit: str | None) -> PoolState:
    return reduce(lambda a, b: merge_states(a, b, limit), states)
