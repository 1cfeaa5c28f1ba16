"""Pooling on a Dask cluster: every partition makes a state, and a tree of fixed shape merges them.

The tree joins eight neighbours at a time, by number of partition, and nothing in it depends on which worker did what:
results have the same bits for any number of workers, with Dask's own schedulers, and after workers have died.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import dask
import dask.array as da
import numpy as np
from dask.base import is_dask_collection
from dask.delayed import delayed
from numpy.typing import ArrayLike, NDArray

from kernpool.core.empty import Empty
from kernpool.core.state import PoolState
from kernpool.dask.cluster import compute
from kernpool.dask.partitions import (
    Partitions,
    as_dask_array,
    as_partitions,
    delayed_blocks,
    is_frame,
    row_counts,
    select,
)
from kernpool.dask.tasks import center_task, sent_once, state_tree
from kernpool.execution.messages import explain_calls
from kernpool.execution.progress import Progress
from kernpool.kernels import Kernel
from kernpool.pooling.chunked import Asked, ChunkReason, reason_of_chunks
from kernpool.pooling.limits import quotient
from kernpool.pooling.recipe import Recipe
from kernpool.pooling.settle import Sums, settle

Array = NDArray[np.float64]

RETRIES = 3
NO_PAIRS = "there are no pairs of positive weight: all partitions are empty, or their weights all zero"


@explain_calls
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
    Tasks use one thread each: give workers as many threads as they have processors. Values are pooled less a center,
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
    recipe = Recipe.of(
        kernel,
        bandwidth,
        composition=composition,
        degree=degree,
        tol=tol,
        algorithm=algorithm,
        empty=empty,
        n_jobs=1,  # per task
    )
    partitions = as_partitions(key, value, key_weight, target=target, features=features)
    return pool_partitions(recipe, query, partitions, client, retries)


@dataclass(frozen=True, eq=False)
class PartitionPairs:
    """Pairs in the partitions of a cluster, for queries in memory."""

    partitions: Partitions
    client: Any = None
    retries: int = RETRIES

    def plan(self, recipe: Recipe, query: Any) -> ChunkReason:  # noqa: ARG002  # as of all pairs
        """Say how the partitions would be summed; nothing is computed."""
        return reason_of_chunks(recipe, f"{len(self.partitions.blocks)} partition(s)", "a tree merges their states")

    # As all pooling is called.
    def reduce(self, recipe: Recipe, query: Any, progress: Progress | None = None) -> Sums:  # noqa: ARG002
        """Sum over all partitions, on the cluster; a task uses one thread."""
        asked, center = Asked.of(replace(recipe, n_jobs=1), query), center_task(self.partitions)
        if asked.query.array.ndim != 2:
            raise ValueError(f"query must have shape (queries,) or (queries, columns) here, got {np.shape(query)}")
        asked = replace(asked, query=asked.query.in_order_of(self.partitions.names))
        state, center = self._compute([state_tree(sent_once(asked), self.partitions, center), center])
        if center is None:
            raise ValueError(NO_PAIRS)

        def fill(rows: NDArray[np.intp]) -> Array:
            limit = sent_once(asked.at(rows, recipe.empty))
            return quotient(*self._compute([state_tree(limit, self.partitions, center, recipe.empty)]))

        return asked.sums(state, center, self.partitions.flat, fill=fill)

    def _compute(self, tasks: list[Any]) -> Any:
        return compute(tasks, self.client, self.retries)


def pool_partitions(recipe: Recipe, query: Any, partitions: Partitions, client: Any, retries: int) -> Any:
    """Pool partitions at queries in memory, or at those of a Dask collection; parameters as in `pool`."""
    if is_dask_collection(query):
        array = as_dask_array(select(query, partitions.names) if is_frame(query) else query)
        with dask.annotate(retries=retries):
            return _lazy(recipe, array, partitions)
    return settle(recipe, PartitionPairs(partitions, client, retries).reduce(recipe, query))


def _lazy(recipe: Recipe, array: Any, partitions: Partitions) -> Any:
    center, parts = center_task(partitions), []
    for block, rows in zip(delayed_blocks(array), row_counts(array), strict=True):
        asked = delayed(partial(Asked.of, recipe))(block)
        state, filled = state_tree(asked, partitions, center), None
        if recipe.empty in ("nearest", "mean"):
            limit = delayed(_empty_windows)(asked, state)
            filled = state_tree(limit, partitions, center, recipe.empty)
        pooled = delayed(_settled)(asked, state, center, filled, partitions.flat)
        length = np.nan if rows is None else rows
        shape = (length,) if partitions.flat else (length, partitions.outputs)
        parts.append(da.from_delayed(pooled, shape, dtype=np.float64))
    return da.concatenate(parts, allow_unknown_chunksizes=True)


def _empty_windows(asked: Asked, state: PoolState) -> Asked:
    return asked.at(np.flatnonzero(state.denominator == 0), asked.recipe.empty)


def _settled(asked: Asked, state: PoolState, center: Array | None, filled: PoolState | None, flat: bool) -> Any:
    if center is None:
        raise ValueError(NO_PAIRS)
    if not len(asked):
        return np.empty(0) if flat else np.empty((0, len(center)))
    return settle(asked.recipe, asked.sums(state, center, flat, fill=lambda _: quotient(filled or state)))
