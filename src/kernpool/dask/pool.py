"""Pooling on a Dask cluster: means, quantiles, distribution functions and leave-one-out errors over partitions.

For a leave-one-out error each partition draws rows, each partition sums over its own rows for all of the drawn ones,
and the sums are merged: the number of tasks is the square of the number of partitions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from dask.delayed import delayed
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_random_state

from kernpool.core.state import Empty, PoolState
from kernpool.dask.pairs import RETRIES, PartitionPairs, block_state, center_task, compute, merge_tree, open_partitions
from kernpool.dask.partitions import Partitions, as_partitions, read_block
from kernpool.data.chunks.base import Chunk
from kernpool.distribution import (
    DistributionFunction,
    Quantiles,
    StoredOutcomes,
    as_levels,
    as_thresholds,
    without_axes,
)
from kernpool.execution.error_messages import explain_calls
from kernpool.kernels import Kernel
from kernpool.pooling import QueryBatch, Recipe, finalize, merge_states

Array = NDArray[np.float64]


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
    )
    partitions = as_partitions(key, value, key_weight, target=target, features=features)
    return PartitionPairs(partitions, client, retries).pool(recipe, query)


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
    recipe = Recipe.of(kernel, bandwidth, composition=composition, tol=tol, algorithm=algorithm, empty=empty)
    partitions = as_partitions(key, value, key_weight, target=target, features=features)
    pairs, level = PartitionPairs(partitions, client, retries), as_levels(levels)
    found = StoredOutcomes(pairs.asked(recipe, query), pairs.ask).evaluate(Quantiles(level.ravel()))
    return without_axes(found, pairs.flat, level.ndim > 0)


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
    recipe = Recipe.of(kernel, bandwidth, composition=composition, tol=tol, algorithm=algorithm, empty=empty)
    partitions = as_partitions(key, value, key_weight, target=target, features=features)
    pairs = PartitionPairs(partitions, client, retries)
    asked = pairs.asked(recipe, query)
    threshold, with_axis = as_thresholds(y, len(asked), pairs.outputs, several=not pairs.flat)
    found = StoredOutcomes(asked, pairs.ask).evaluate(DistributionFunction(threshold))
    return without_axes(found, pairs.flat, with_axis)


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


@explain_calls
def leave_one_out_error(
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
    max_rows: int | None = None,
    random_state: Any = 0,
    client: Any = None,
    retries: int = RETRIES,
) -> LeaveOneOutError:
    r"""Compute the leave-one-out mean squared error of pooling, over all partitions or rows drawn from them.

    .. math:: CV(h) = \sum_i w_i \lVert y_i - \hat y_{-i}(x_i) \rVert^2 \Big/ \sum_i w_i

    Parameters
    ----------
    key, value, target, features, key_weight, kernel, bandwidth, composition, degree, tol, algorithm, client, retries
        As in `kernpool.dask.pool`. Windows without other rows are predicted by the weighted mean of the others.
    max_rows : int, optional
        Predict so many rows, drawn by `random_state`, each from all others; by default all.
    random_state : int, RandomState instance or None, default=0
        Draws the rows.

    Returns
    -------
    LeaveOneOutError
        The same bits for any number of workers.

    Raises
    ------
    TypeError, ValueError
        As in `kernpool.dask.pool`.

    Notes
    -----
    Queries are the rows of one partition, keys those of all: P^2 tasks for P partitions. A row's own key is left out
    where it is met, in its own partition. Its prediction stays where it was made; three numbers per partition come
    back.

    Examples
    --------
    >>> import dask.array
    >>> x = dask.array.arange(4.0, chunks=2)
    >>> leave_one_out_error(x, 2.0 * x, bandwidth=1e-3).error  # the inner rows lie between their neighbours
    2.0
    """
    recipe = Recipe.of(
        kernel, bandwidth, composition=composition, degree=degree, tol=tol, algorithm=algorithm, empty="mean", n_jobs=1
    )
    pairs = open_partitions(
        key, value, key_weight, target=target, features=features, client=client, retries=retries
    ).counted()
    partitions, center, blocks = pairs.partitions, center_task(pairs.partitions), pairs.partitions.blocks
    places = _drawn_indices(partitions, max_rows, random_state)
    sums = delayed(_added)([delayed(_weighted_totals)(block, center) for block in blocks])
    tasks = []
    for i, own in enumerate(places):
        if not len(own):
            continue
        rows = delayed(_rows_at)(blocks[i], own)
        asked = delayed(_at_rows)(rows, recipe)
        states = [
            delayed(block_state)(asked, block, center, partitions.outputs, own if i == j else None)
            for j, block in enumerate(blocks)
        ]
        tasks.append(
            delayed(_squared_errors)(rows, asked, merge_tree(states, partial(merge_states, limit=None)), center, sums)
        )
    error, weight, empty = np.sum(compute(tasks, client, retries), axis=0)
    return LeaveOneOutError(float(error / weight), int(empty), sum(map(len, places)))


def _rows_at(block: Any, places: Places) -> Chunk | None:
    """Return the rows of a block at ascending indices as one `Chunk`; None if there are none.

    This runs in a Dask task.
    """
    parts, start = [], 0
    for chunk in read_block(block) if len(places) else ():
        here = places[(places >= start) & (places < start + len(chunk.key))] - start
        parts.append(chunk.take(here))
        start += len(chunk.key)
    return _joined(parts)


def _joined(parts: Sequence[Chunk | None]) -> Chunk | None:
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

    predicted = finalize(asked.sums(state, center, False, fill=mean_of_others), asked.recipe)
    squared = np.sum((rows.value - predicted) ** 2, axis=1)
    return float(weight @ squared), float(weight.sum()), int(np.count_nonzero(state.denominator == 0))


def _drawn_indices(partitions: Partitions, most: int | None, random_state: Any) -> list[Places]:
    """Draw at most `most` rows (None: all), and return the indices of these rows within each partition."""
    sizes = [rows or 0 for rows in partitions.rows]
    ends, n = np.cumsum(sizes), sum(sizes)
    if most is None or n <= most:
        return [np.arange(rows) for rows in sizes]
    generator = np.random.default_rng(check_random_state(random_state).randint(1 << 31))
    drawn = np.sort(generator.choice(n, most, replace=False, shuffle=False))  # no permutation of n in memory
    return [drawn[(drawn >= end - rows) & (drawn < end)] - (end - rows) for rows, end in zip(sizes, ends, strict=True)]
