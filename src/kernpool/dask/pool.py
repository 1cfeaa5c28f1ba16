"""Pooling on a Dask cluster: means, quantiles, distribution functions and leave-one-out errors over partitions.

The tasks of a mean are the center of the values, the state of each block, and a tree that merges eight neighbours at
a time, in order of partition number. Nothing in it depends on which worker computed what. So results have the same
bits for any number of workers, with Dask's own schedulers, and after workers have died.

For quantiles and distribution functions, partitions compute the partial sums of map-reduce queries
(`kernpool.distribution.chunk_queries`), which the same tree merges. Quantiles take several passes over the partitions.

For a leave-one-out error each partition draws rows, each partition sums over its own rows for all of the drawn ones,
and the sums are merged: the number of tasks is the square of the number of partitions.

Tasks run on a cluster if there is a client, otherwise with the scheduler that Dask would use.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial, reduce
from typing import Any

import dask
import dask.array as da
import numpy as np
from dask.base import get_scheduler, is_dask_collection
from dask.delayed import delayed
from numpy.typing import ArrayLike, NDArray

from kernpool.core.state import Empty, PoolState, empty_state
from kernpool.dask.partitions import (
    Partitions,
    as_dask_array,
    as_partitions,
    delayed_blocks,
    is_frame,
    read_block,
    row_counts,
    select,
)
from kernpool.data.chunks.base import Chunk
from kernpool.data.chunks.parquet import ColumnNames
from kernpool.distribution import (
    Function,
    as_levels,
    as_thresholds,
    asked_of,
    counted_functions,
    counted_quantiles,
    without_axes,
)
from kernpool.execution.error_messages import abbreviate, explain_calls
from kernpool.execution.progress import Progress
from kernpool.kernels import Kernel
from kernpool.pooling.out_of_core import ChunkReason, QueryBatch, center_of, merge_states, reason_of_chunks
from kernpool.pooling.recipe import Recipe, Sums, finalize, quotient

# Arrays of the caller are part of the graph so that they outlive any worker, and what Dask recommends of large ones is
# nothing that a caller of ours can do. Settings belong to the process, so one thread changes them at a time.
LARGE_GRAPHS = {"distributed.admin.large-graph-warning-threshold": 1 << 62}
_SUBMISSION = threading.Lock()
SECONDS_TO_CONNECT = 5.0  # of the ten in which a user wants to hear that nobody is there


def compute(tasks: list[Any], client: Any, retries: int) -> Any:
    """Run Dask tasks on a cluster, or with Dask's default scheduler, and return their results.

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
    with _SUBMISSION, dask.config.set(LARGE_GRAPHS):
        futures = client.compute(tasks, retries=retries)
    return client.gather(futures)


def find_client(client: Any = None) -> Any:
    """Return the given Dask client, else the current one, else None; raise TypeError if it is no client."""
    if client is not None and not hasattr(client, "gather"):
        raise TypeError(
            f"client must be a distributed.Client or None, got {abbreviate(client)}; "
            "connect to the address of a scheduler with distributed.Client(address)"
        )
    found = getattr(get_scheduler(), "__self__", None) if client is None else client
    return found if hasattr(found, "gather") else None


def connect(address: str, timeout: float = SECONDS_TO_CONNECT) -> Any:
    """Connect to the Dask cluster at an address; raise ConnectionError within ten seconds if no scheduler answers.

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
        # A client that finds nobody may stay the default one of all later tasks, which would wait for it forever.
        Client(address, timeout=timeout, set_as_default=False).close()
        return Client(address, timeout=timeout)
    except (OSError, TimeoutError, ValueError) as error:
        raise ConnectionError(
            f"no Dask scheduler answers at {address!r} ({type(error).__name__}); start one with `dask scheduler`, and "
            "give the address that it prints, such as tcp://10.0.0.1:8786"
        ) from None


Array = NDArray[np.float64]

FAN_IN = 8


def sent_once(value: Any) -> Any:
    """Wrap a value in a Dask task, so that it is sent to the cluster once and copied between workers."""
    return delayed(_same)(value)


def _same(value: Any) -> Any:
    return value


def center_task(partitions: Partitions) -> Any:
    """Return the Dask task that computes a center for all values from the first partition with rows of positive weight.

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
    """Return the Dask task that computes the kernel sums of all partitions and merges them in a tree.

    Parameters
    ----------
    asked : Delayed
        Of `QueryBatch`.
    partitions : Partitions
        What is pooled.
    center : Delayed or ndarray of shape (c,)
        Subtracted from the values.
    limit : {None, "nearest", "mean"}
        As of `QueryBatch`.

    Returns
    -------
    Delayed
        Of a `PoolState`.
    """
    states = [delayed(block_state)(asked, block, center, partitions.outputs) for block in partitions.blocks]
    return merge_tree(states, limit)


def merge_tree(states: list[Any], limit: str | None = None) -> Any:
    """Return the Dask task that merges kernel sums in a tree, eight at a time."""
    while len(states) > 1:
        states = [delayed(_merged)(states[i : i + FAN_IN], limit) for i in range(0, len(states), FAN_IN)]
    return states[0]


def block_state(
    asked: QueryBatch, block: Any, center: Array | None, outputs: int, places: NDArray[np.intp] | None = None
) -> PoolState:
    """Compute the kernel sums over one block of rows; this runs in a Dask task.

    Parameters
    ----------
    asked : QueryBatch
        Where and how to pool.
    block : object
        From `Partitions`.
    center : ndarray of shape (c,)
        Subtracted from the values.
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
    """Return whether a block of a Dask collection has key weights, so that it may lack pairs of positive weight."""
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
    """Compute kernel-weighted means or local fits of pairs in Dask collections, or in files that the workers read.

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
    """Key-value pairs in Dask partitions, for queries in memory."""

    partitions: Partitions
    client: Any = None
    retries: int = RETRIES

    def plan(self, recipe: Recipe, query: Any) -> ChunkReason:  # noqa: ARG002  # as of all pairs
        """Return the algorithm that sums partitions, and the reason for the choice, without computing."""
        return reason_of_chunks(recipe, f"{len(self.partitions.blocks)} partition(s)", "a tree merges their states")

    # As all pooling is called.
    def reduce(self, recipe: Recipe, query: Any, progress: Progress | None = None) -> Sums:  # noqa: ARG002
        """Sum weights and weighted values over all partitions, at each query, on the cluster.

        A task uses one thread.
        """
        asked, center = QueryBatch.of(replace(recipe, n_jobs=1), query), center_task(self.partitions)
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
    """Compute pooled values over partitions, at queries in memory or in a Dask collection; parameters as in `pool`."""
    if is_dask_collection(query):
        array = as_dask_array(select(query, partitions.names) if is_frame(query) else query)
        with dask.annotate(retries=retries):
            return _lazy(recipe, array, partitions)
    return finalize(recipe, PartitionPairs(partitions, client, retries).reduce(recipe, query))


def _lazy(recipe: Recipe, array: Any, partitions: Partitions) -> Any:
    center, parts = center_task(partitions), []
    for block, rows in zip(delayed_blocks(array), row_counts(array), strict=True):
        asked = delayed(partial(QueryBatch.of, recipe))(block)
        state, filled = state_tree(asked, partitions, center), None
        if recipe.empty in ("nearest", "mean"):
            limit = delayed(_empty_windows)(asked, state)
            filled = state_tree(limit, partitions, center, recipe.empty)
        pooled = delayed(_finalized)(asked, state, center, filled, partitions.flat)
        length = np.nan if rows is None else rows
        shape = (length,) if partitions.flat else (length, partitions.outputs)
        parts.append(da.from_delayed(pooled, shape, dtype=np.float64))
    return da.concatenate(parts, allow_unknown_chunksizes=True)


def _empty_windows(asked: QueryBatch, state: PoolState) -> QueryBatch:
    return asked.at(np.flatnonzero(state.denominator == 0), asked.recipe.empty)


def _finalized(asked: QueryBatch, state: PoolState, center: Array | None, filled: PoolState | None, flat: bool) -> Any:
    if center is None:
        raise ValueError(NO_PAIRS)
    if not len(asked):
        return np.empty(0) if flat else np.empty((0, len(center)))
    return finalize(asked.recipe, asked.sums(state, center, flat, fill=lambda _: quotient(filled or state)))


Places = NDArray[np.intp]


@dataclass(frozen=True)
class LeaveOneOutError:
    """Leave-one-out mean squared error over partitions, with counts of predicted rows and of rows without neighbours.

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
    sums = delayed(_added)([delayed(_weighted_totals)(block, center) for block in blocks])
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
        tasks.append(delayed(_squared_errors)(rows, asked, merge_tree(states), center, sums))
    error, weight, empty = np.sum(compute(tasks, client, retries), axis=0)
    return LeaveOneOutError(float(error / weight), int(empty), sum(map(len, places)))


def draw_rows(block: Any, places: Places) -> Chunk | None:
    """Return the rows of a block at ascending indices as one `Chunk`; None if there are none.

    This runs in a Dask task.
    """
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
    """Concatenate chunks of rows, skipping None, with weight one for chunks without weights; None if all are None."""
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


def _weighted_totals(block: Any, center: Array | None) -> Array | None:
    """Return the sum of weights and the weighted sums of centered values of a block of rows, in one array."""
    if center is None:
        return None
    found = []
    for chunk in read_block(block):
        weight = np.ones(len(chunk.key)) if chunk.weight is None else chunk.weight
        found.append(np.concatenate([[weight.sum()], weight @ (chunk.value - center)]))
    return np.sum(found, axis=0) if found else None


def _added(sums: list[Array | None]) -> Array:
    return np.asarray(np.sum([part for part in sums if part is not None], axis=0))


def _squared_errors(
    rows: Chunk, asked: QueryBatch, state: PoolState, center: Array, sums: Array
) -> tuple[float, float, int]:
    """Return the weighted sum of squared leave-one-out errors, the sum of weights, and the count of isolated rows.

    A row is isolated if no other row has weight for it.
    """
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


@explain_calls
def pool_quantile(
    query: ArrayLike,
    key: Any,
    value: Any = None,
    levels: ArrayLike = 0.5,
    *,
    target: str | Sequence[str] | None = None,
    features: Sequence[str] | None = None,
    key_weight: Any = None,
    kernel: str | Kernel = "gaussian",
    bandwidth: ArrayLike = 1.0,
    composition: str = "radial",
    tol: float | None = None,
    algorithm: str = "auto",
    empty: Empty = "nan",
    client: Any = None,
    retries: int = RETRIES,
) -> Array:
    """Compute conditional quantiles of pairs in Dask collections or files, by kernel weights at each query.

    Parameters
    ----------
    query : array_like of shape (m,) or (m, d)
        Evaluation points, in memory.
    key, value, target, features, key_weight
        As in `kernpool.dask.pool`.
    levels : float or array_like of shape (l,), default=0.5
        Quantile orders, between 0 and 1; by default the conditional median.
    kernel, bandwidth, composition, tol, algorithm, empty
        As in `kernpool.pool_quantile`.
    client, retries
        As in `kernpool.dask.pool`.

    Returns
    -------
    ndarray of shape (m,), (m, l), (m, c) or (m, c, l)
        As of `kernpool.pool_quantile`: values of rows.

    Raises
    ------
    TypeError, ValueError
        As in `kernpool.dask.pool`, and if a level is not between 0 and 1.

    Warns
    -----
    EmptyWindowWarning
        If windows are empty and `empty` is ``"nan"``.

    Notes
    -----
    All partitions are read in each of some passes, as chunks are by `kernpool.pool_quantile`: persist collections that
    are costly to make. Up to four million rows at a time come to this process, those whose values may be quantiles.

    Examples
    --------
    >>> import dask.array
    >>> value = dask.array.arange(4.0, chunks=2)
    >>> pool_quantile([1.5], dask.array.ones(4, chunks=2), value, [0.25, 0.5, 1.0])
    array([[0., 1., 3.]])
    """
    recipe = Recipe.of(kernel, bandwidth, composition=composition, tol=tol, algorithm=algorithm, empty=empty, n_jobs=1)
    partitions = as_partitions(key, value, key_weight, target=target, features=features)
    level, asked = as_levels(levels), asked_of(recipe, query, partitions.names)
    found = counted_quantiles(asked, AskPartitions(partitions, client, retries), level.ravel())
    return without_axes(found, partitions.flat, level.ndim > 0)


@dataclass(frozen=True)
class AskPartitions:
    """Callable that evaluates a map-reduce query of `chunk_queries` on all partitions and merges the answers."""

    partitions: Partitions
    client: Any
    retries: int

    def __call__(self, question: Any) -> Any:
        """Return the answer to a map-reduce query, merged over all partitions."""
        one = sent_once(question)
        answers = [delayed(answer_of)(one, block) for block in self.partitions.blocks]
        while len(answers) > 1:
            answers = [delayed(merge_answers)(one, answers[i : i + FAN_IN]) for i in range(0, len(answers), FAN_IN)]
        (answer,) = compute(answers, self.client, self.retries)
        if answer is None:
            raise ValueError(NO_PAIRS)
        return answer


def answer_of(question: Any, block: Any) -> Any:
    """Evaluate a map-reduce query on the chunks of one block; return None if the block has no positive weight.

    This runs in a Dask task.
    """
    some = (chunk for chunk in read_block(block) if len(chunk.key) and (chunk.weight is None or chunk.weight.any()))
    return merge_answers(question, [question.of(chunk) for chunk in some])


def merge_answers(question: Any, answers: list[Any]) -> Any:
    """Merge the answers to a map-reduce query, skipping None; return None if there are none."""
    some = [answer for answer in answers if answer is not None]
    return reduce(question.joined, some) if some else None


@explain_calls
def pool_cdf(
    query: ArrayLike,
    key: Any,
    value: Any = None,
    y: ArrayLike | None = None,
    *,
    target: str | Sequence[str] | None = None,
    features: Sequence[str] | None = None,
    key_weight: Any = None,
    kernel: str | Kernel = "gaussian",
    bandwidth: ArrayLike = 1.0,
    composition: str = "radial",
    tol: float | None = None,
    algorithm: str = "auto",
    empty: Empty = "nan",
    client: Any = None,
    retries: int = RETRIES,
) -> Array:
    """Compute conditional distribution functions of pairs in Dask collections or files, by kernel weights.

    Parameters
    ----------
    query : array_like of shape (m,) or (m, d)
        Evaluation points, in memory.
    key, value, target, features, key_weight
        As in `kernpool.dask.pool`.
    y : float, or array_like
        Thresholds, of shape (t,) for all queries, or (m, t); with several value columns (m, c, t), where axes may have
        length 1.
    kernel, bandwidth, composition, tol, algorithm, empty
        As in `kernpool.pool_cdf`.
    client, retries
        As in `kernpool.dask.pool`.

    Returns
    -------
    ndarray of shape (m,), (m, t), (m, c) or (m, c, t)
        As of `kernpool.pool_cdf`, up to rounding; the same bits for any number of workers.

    Raises
    ------
    TypeError, ValueError
        As in `kernpool.dask.pool`, and if `y` is missing, holds NaN or has another shape.

    Warns
    -----
    EmptyWindowWarning
        If windows are empty and `empty` is ``"nan"``.

    Notes
    -----
    One pass over all partitions, and another for windows that are empty or far from all rows.

    Examples
    --------
    >>> import dask.array
    >>> value = dask.array.arange(4.0, chunks=2)
    >>> pool_cdf([1.5], dask.array.ones(4, chunks=2), value, [0.0, 1.5, 3.0])
    array([[0.25, 0.5 , 1.  ]])
    """
    if y is None:
        raise TypeError("y must be given: the thresholds, such as y=0.0")
    recipe = Recipe.of(kernel, bandwidth, composition=composition, tol=tol, algorithm=algorithm, empty=empty, n_jobs=1)
    partitions = as_partitions(key, value, key_weight, target=target, features=features)
    asked = asked_of(recipe, query, partitions.names)
    threshold, with_axis = as_thresholds(y, len(asked), partitions.outputs, several=not partitions.flat)
    found = counted_functions(asked, AskPartitions(partitions, client, retries), Function(threshold))
    return without_axes(found, partitions.flat, with_axis)
