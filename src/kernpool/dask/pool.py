"""Pooling on a Dask cluster: every partition makes a state, and a tree of fixed shape merges them.

The tree joins eight neighbours at a time, by number of partition, and nothing in it depends on which worker did what:
results have the same bits for any number of workers, with Dask's own schedulers, and after workers have died.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kernpool.core.moments import Layout, check_degree
from kernpool.core.problem import as_tol
from kernpool.core.similarity import check_composition
from kernpool.core.state import Empty, PoolState, check_empty, empty_state
from kernpool.dask.partitions import (
    Partitions,
    as_dask_array,
    as_partitions,
    delayed_blocks,
    is_frame,
    read_block,
    row_counts,
)
from kernpool.data.checks import as_bandwidth, as_real_array
from kernpool.data.chunks.parquet import ColumnNames
from kernpool.kernels import Kernel, get_kernel
from kernpool.pooling.chunked import Pooling, center_of, merge_states
from kernpool.pooling.plan import check_algorithm

# after kernpool.dask.partitions, which tells what to install
# isort: split
import dask
import dask.array as da
from dask.base import get_scheduler, is_dask_collection
from dask.delayed import delayed

Array = NDArray[np.float64]

FAN_IN = 8
RETRIES = 3
SECONDS_TO_CONNECT = 5.0  # of the ten in which a user wants to hear that nobody is there


def pool(
    query: Any,
    key: Any,
    value: Any = None,
    *,
    target: str | Sequence[str] | None = None,
    features: Sequence[str] | None = None,
    key_weight: Any = None,
    kernel: str | Kernel = "gaussian",
    bandwidth: ArrayLike = 1.0,
    composition: str = "radial",
    degree: int = 0,
    tol: float | None = None,
    algorithm: str = "auto",
    empty: Empty = "nan",
    client: Any = None,
    retries: int = RETRIES,
) -> Any:
    """Pool pairs that lie in Dask collections, or in files that the workers read, by their similarity to each query.

    Parameters
    ----------
    query : array_like, Dask array of shape (m,) or (m, d), or Dask dataframe
        Where to pool. Arrays in memory are sent once to every worker that needs them.
    key : Dask array of shape (n,) or (n, d), Dask dataframe, or Chunks
        Partitions are blocks of rows, and may be empty. Of a dataframe, `target` and `features` name the columns.
        Of chunks (see `open_chunks`) of Parquet and `.npy` files the workers get the names, so they have to see the
        same files; other chunks that can be cut into parts are sent.
    value : Dask array of shape (n,) or (n, c), optional
        Values of keys that are an array.
    target : str or sequence of str, optional
        Columns of values of a dataframe.
    features : sequence of str, optional
        Columns of keys of a dataframe; by default all others.
    key_weight : Dask array of shape (n,) or str, optional
        Frequencies, or the column of a dataframe that holds them.
    kernel, bandwidth, composition, degree, tol, algorithm, empty
        As in `kernpool.pool`. A kernel of one's own travels by name, and has to be registered in the workers too.
    client : distributed.Client, optional
        The cluster; by default the scheduler that Dask would use, which is that of the latest client if there is one.
    retries : int, default=3
        How often a task that failed is tried again. Tasks of workers that died run again in any case. Dask forgets this
        for a lazy result where it fuses tasks; ``client.compute(pooled, retries=3)`` asks for it again.

    Returns
    -------
    ndarray or Dask array of shape (m,) or (m, c)
        For queries in memory an array in memory; for Dask queries a Dask array, of which nothing is computed yet.

    Raises
    ------
    TypeError, ValueError
        As in `kernpool.pool`; from a task where only the task sees the numbers.

    Warns
    -----
    EmptyWindowWarning
        As in `kernpool.pool`; for Dask queries in the process that finds the empty window, so perhaps in a log.

    Notes
    -----
    There are P tasks per block of queries for P partitions, and P / 7 that merge; each keeps a few numbers per query.
    Tasks use one thread each: give workers as many threads as they have processors. Values are pooled less a centre,
    which is found in the first partition with rows; where Dask does not know how many rows partitions have, all are
    looked at first, so persist them, or call ``compute_chunk_sizes()``. For Dask queries ``empty="nearest"`` and
    ``"mean"`` keep or read every partition for a second time. Dask's ``KilledWorker`` usually means that workers have
    too little memory for a partition.

    Examples
    --------
    >>> import dask.array
    >>> key = dask.array.arange(4, chunks=2)
    >>> pool([1.5], key, 2.0 * key)
    array([3.])
    >>> pool(dask.array.ones(1), key, 2.0 * key).compute().round(3)
    array([2.231])
    """
    check_empty(empty)
    partitions = as_partitions(key, value, key_weight, target=target, features=features)
    similarity = {"kernel": kernel, "bandwidth": bandwidth, "composition": composition, "tol": tol}
    return pool_partitions(query, partitions, options(degree, algorithm, similarity), empty, client, retries)


def options(degree: int, algorithm: str, similarity: dict[str, Any]) -> dict[str, Any]:
    """Check what can be checked without numbers, and return the options of `Pooling`; one thread per task."""
    check_degree(degree)
    check_algorithm(algorithm)
    get_kernel(similarity["kernel"])
    check_composition(similarity["composition"])
    as_tol(similarity["tol"])
    as_bandwidth(similarity["bandwidth"], max(1, np.size(similarity["bandwidth"])))
    return {"degree": degree, "algorithm": algorithm, "n_jobs": 1, "similarity": similarity}


def pool_partitions(
    query: Any, partitions: Partitions, options: dict[str, Any], empty: Empty, client: Any, retries: int
) -> Any:
    """Pool partitions at queries in memory, or at those of a Dask collection; parameters as in `pool`."""
    if is_dask_collection(query):
        by_name = is_frame(query) and partitions.names
        array = as_dask_array(query[list(partitions.names or ())] if by_name else query)
        with dask.annotate(retries=retries):
            return _lazy(array, partitions, options, empty)
    rows = np.asarray(as_real_array("query", query), dtype=np.float64)
    rows = rows[:, None] if rows.ndim == 1 else rows
    pooling, center = Pooling(rows, **options), center_task(partitions)
    state, center = compute([state_tree(delayed(_same)(pooling), partitions, center), center], client, retries)
    if center is None:
        raise ValueError("there are no pairs of positive weight: all partitions are empty, or their weights all zero")

    def fill(rows: NDArray[np.intp]) -> Array:
        task = state_tree(delayed(_same)(pooling.at(rows, empty)), partitions, center, empty)
        return _quotient(*compute([task], client, retries))

    pooled = pooling.finish(state, center, empty, fill)
    return pooled[:, 0] if partitions.flat else pooled


def _lazy(array: Any, partitions: Partitions, options: dict[str, Any], empty: Empty) -> Any:
    center, parts = center_task(partitions), []
    for block, rows in zip(delayed_blocks(array), row_counts(array), strict=True):
        pooling = delayed(_pooling)(block, options)
        state, filled = state_tree(pooling, partitions, center), None
        if empty in ("nearest", "mean"):
            filled = state_tree(delayed(_empty_windows)(pooling, state, empty), partitions, center, empty)
        pooled = delayed(_finish)(pooling, state, center, empty, filled, partitions.flat)
        length = np.nan if rows is None else rows
        shape = (length,) if partitions.flat else (length, partitions.outputs)
        parts.append(da.from_delayed(pooled, shape, dtype=np.float64))
    return da.concatenate(parts, allow_unknown_chunksizes=True)


def center_task(partitions: Partitions) -> Any:
    """Return the task that finds the centre of values in the first partition with rows; None if there is none.

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


def state_tree(pooling: Any, partitions: Partitions, center: Any, limit: str | None = None) -> Any:
    """Return the task that makes the state of all partitions.

    Parameters
    ----------
    pooling : Delayed
        Of `Pooling`.
    partitions : Partitions
        What is pooled.
    center : Delayed or ndarray of shape (c,)
        What is taken off the values.
    limit : {None, "nearest", "mean"}
        As of the pooling.

    Returns
    -------
    Delayed
        Of a `PoolState`.
    """
    states = [delayed(block_state)(pooling, block, center, partitions.outputs) for block in partitions.blocks]
    return merge_tree(states, limit)


def merge_tree(states: list[Any], limit: str | None = None) -> Any:
    """Return the task that merges states, eight neighbours at a time."""
    while len(states) > 1:
        states = [delayed(_merged)(states[i : i + FAN_IN], limit) for i in range(0, len(states), FAN_IN)]
    return states[0]


def block_state(
    pooling: Pooling, block: Any, center: Array | None, outputs: int, own: NDArray[np.intp] | None = None
) -> PoolState:
    """Return the state of one block, in a task.

    Parameters
    ----------
    pooling : Pooling
        How to pool.
    block : object
        From `Partitions`.
    center : ndarray of shape (c,)
        What is taken off the values.
    outputs : int
        Their number of columns.
    own : ndarray of shape (m,), optional
        For leave-one-out, which row of the block each query is.

    Returns
    -------
    PoolState
        That of no keys, where there are none.
    """
    m, start = len(pooling.query), 0
    state = empty_state(m, Layout(outputs, pooling.query.shape[1], pooling.degree).width)
    for chunk in read_block(block) if m else ():
        if own is not None:
            inside = (own >= start) & (own < start + len(chunk.key))
            exclusion = {"exclude_self": True, "self_index": np.where(inside, own - start, -1)}
            pooling = Pooling(**(vars(pooling) | {"similarity": pooling.similarity | exclusion}))
        if len(chunk.key) and center is not None:
            state = merge_states(state, pooling.state(chunk, center), pooling.limit)
        start += len(chunk.key)
    return state


def compute(tasks: list[Any], client: Any, retries: int) -> Any:
    """Run tasks on a cluster, or with the scheduler that Dask would use.

    Parameters
    ----------
    tasks : list of Delayed
        What to run.
    client : distributed.Client or None
        The cluster; None for that of the latest client, or no cluster.
    retries : int
        How often a task that failed is tried again.

    Returns
    -------
    sequence
        Their results.
    """
    client = find_client(client)
    if client is None:
        return dask.compute(*tasks)
    return client.gather(client.compute(tasks, retries=retries))


def find_client(client: Any = None) -> Any:
    """Return a client, or else the one that Dask would use, or None."""
    found = getattr(get_scheduler(), "__self__", None) if client is None else client
    return found if hasattr(found, "gather") else None


def connect(address: str, timeout: float = SECONDS_TO_CONNECT) -> Any:
    """Return a client of the cluster at an address, or say within ten seconds that there is none.

    Parameters
    ----------
    address : str
        Of the scheduler, such as ``"tcp://10.0.0.1:8786"``.
    timeout : float, default=5
        Seconds to wait for an answer.

    Returns
    -------
    distributed.Client
        To be closed by the caller.

    Raises
    ------
    ConnectionError
        If no scheduler answers.
    """
    from distributed import Client

    try:
        return Client(address, timeout=timeout)
    except (OSError, TimeoutError, ValueError) as error:
        raise ConnectionError(
            f"no Dask scheduler answers at {address!r} ({type(error).__name__}); start one with `dask scheduler`, and "
            "give the address that it prints, such as tcp://10.0.0.1:8786"
        ) from None


def _same(pooling: Pooling) -> Pooling:
    return pooling  # as a task of its own it is sent once, and other workers ask each other for it


def _pooling(query: Any, options: dict[str, Any]) -> Pooling:
    rows = np.asarray(as_real_array("query", query), dtype=np.float64)
    return Pooling(rows[:, None] if rows.ndim == 1 else rows, **options)


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


def _quotient(state: PoolState) -> Array:
    with np.errstate(invalid="ignore"):
        return state.numerator / state.denominator[:, None]


def _empty_windows(pooling: Pooling, state: PoolState, limit: str) -> Pooling:
    return pooling.at(np.flatnonzero(state.denominator == 0), limit)


def _finish(
    pooling: Pooling, state: PoolState, center: Array | None, empty: Empty, filled: PoolState | None, flat: bool
) -> Array:
    if center is None:
        raise ValueError("there are no pairs of positive weight: all partitions are empty, or their weights all zero")
    if not len(pooling.query):
        pooled = np.empty((0, len(center)))
    else:
        pooled = pooling.finish(state, center, empty, lambda _: _quotient(filled or state))
    return pooled[:, 0] if flat else pooled
