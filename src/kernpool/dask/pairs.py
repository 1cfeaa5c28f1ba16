"""Key-value pairs in Dask partitions: workers answer questions about their rows, and a tree merges the answers.

The tasks of a question are the answer of each block of rows, and a tree that merges eight neighbours at a time, in
order of partition number. Nothing in it depends on which worker computed what. So results have the same bits for any
number of workers, with Dask's own schedulers, and after workers have died.

Tasks run on a cluster if there is a client, otherwise with the scheduler that Dask would use.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial, reduce
from typing import Any

import dask
import dask.array as da
import numpy as np
from dask.base import get_scheduler, is_dask_collection
from dask.delayed import delayed
from numpy.typing import ArrayLike, NDArray

from kernpool.dask.partitions import (
    Partitions,
    as_dask_array,
    as_partitions,
    delayed_blocks,
    in_days,
    is_frame,
    read_block,
    row_counts,
    select,
)
from kernpool.data import TIME_KINDS, Chunk, Kind
from kernpool.execution.error_messages import abbreviate
from kernpool.execution.progress import Progress
from kernpool.pooling import MapReduce, QueryBatch, Recipe, Source, finalize, found_in_rows, quotient
from kernpool.pooling.source import Answer, CenteredState, KernelSums, Question, answer_of, joined_answers

# Arrays of the caller are part of the graph so that they outlive any worker, and what Dask recommends of large ones is
# nothing that a caller of ours can do. Settings belong to the process, so one thread changes them at a time.
LARGE_GRAPHS = {"distributed.admin.large-graph-warning-threshold": 1 << 62}
_SUBMISSION = threading.Lock()
RETRIES = 3
SECONDS_TO_CONNECT = 5.0  # of the ten in which a user wants to hear that nobody is there


def compute(tasks: list[Any], client: Any, retries: int) -> Any:
    """Run Dask tasks on a cluster, or with Dask's default scheduler, and return their results."""
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


@dataclass(frozen=True, eq=False)
class PartitionPairs(Partitions, Source):
    """Key-value pairs in Dask partitions: workers compute on the parts, and a tree merges their results.

    Parameters
    ----------
    blocks, sizes, outputs, flat, labels, kinds
        As of `Partitions`.
    client : distributed.Client, optional
        The cluster; by default the scheduler that Dask would use, which is that of the latest client if there is one.
    retries : int, default=3
        How often a task that failed is tried again.
    """

    client: Any = None
    retries: int = RETRIES

    @property
    def rows(self) -> int | None:  # type: ignore[override]  # read only
        """Number of pairs; None if some partition has not been counted."""
        return None if None in self.sizes else sum(filter(None, self.sizes))

    @cached_property
    def columns(self) -> int:
        """Number of key columns."""
        return self.ask(MapReduce(_key_columns, max)) if self.labels is None else len(self.labels)

    def counted(self) -> PartitionPairs:
        """Return the pairs with the rows of every partition counted; raise ValueError if there are none."""
        sizes = list(self.sizes)
        unknown = [i for i, size in enumerate(sizes) if size is None]
        counts = compute([delayed(_row_count)(self.blocks[i]) for i in unknown], self.client, self.retries)
        for i, size in zip(unknown, counts, strict=True):
            sizes[i] = size
        if not sum(filter(None, sizes)):
            raise ValueError("there are no rows: all partitions are empty")
        return replace(self, sizes=tuple(sizes))

    def ask(self, question: Question[Answer], progress: Progress | None = None) -> Answer:  # noqa: ARG002  # Dask's own
        """Return the answer to a map-reduce query, computed by Dask and merged in a tree."""
        (answer,) = compute([self.delayed_answer(question)], self.client, self.retries)
        found: Answer = found_in_rows(answer)
        return found

    def delayed_answer(self, question: Any) -> Any:
        """Return the Dask task of the answer to a map-reduce query, itself perhaps the result of a task.

        The answer is None if no pair has positive weight.
        """
        once = delayed(_same)(question)  # sent to the cluster once, and copied between workers
        sizes = [0] * len(self.blocks) if self.rows is None else self.sizes
        starts = np.cumsum([0, *sizes[:-1]]).tolist()
        parts = [
            delayed(_answer_of_block)(once, block, start) for block, start in zip(self.blocks, starts, strict=True)
        ]
        while len(parts) > 1:
            parts = [delayed(_merged)(once, parts[i : i + FAN_IN]) for i in range(0, len(parts), FAN_IN)]
        return parts[0]

    def asked(self, recipe: Recipe, query: ArrayLike) -> QueryBatch:
        """Validate queries as a `QueryBatch`, with their columns in the order of the key columns; one thread a task."""
        return super().asked(replace(recipe, n_jobs=1), query)

    def pool(self, recipe: Recipe, query: Any, progress: Progress | None = None) -> Any:
        """Compute pooled values at queries in memory, or, lazily, at a Dask collection; parameters as of `finalize`."""
        if not is_dask_collection(query):
            return super().pool(recipe, query, progress)
        array = as_dask_array(select(query, self.labels) if is_frame(query) else query)
        with dask.annotate(retries=self.retries):
            return self._pool_lazily(replace(recipe, n_jobs=1), array)

    def _pool_lazily(self, recipe: Recipe, array: Any) -> Any:
        parts = []
        for block, rows in zip(delayed_blocks(array), row_counts(array), strict=True):
            asked = delayed(partial(QueryBatch.of, recipe))(block)
            sums, filled = self.delayed_answer(delayed(KernelSums)(asked)), None
            if recipe.empty_value is None:
                filled = self.delayed_answer(delayed(_sums_of_empty_windows)(asked, sums))
            pooled = delayed(_finalized)(asked, sums, filled, self.flat)
            length = np.nan if rows is None else rows
            shape = (length,) if self.flat else (length, self.outputs)
            parts.append(da.from_delayed(pooled, shape, dtype=np.float64))
        return da.concatenate(parts, allow_unknown_chunksizes=True)

    def queries(self, X: Any, labels: Sequence[Any] | None, columns: int, kinds: Sequence[Kind] | None) -> Any:
        """Convert queries in a Dask collection to a Dask array of numbers; times become days, as in a fit."""
        if is_frame(X):
            frame = select(X, labels)
            times = {} if kinds is None else dict(zip(frame.columns, kinds, strict=True))
            return as_dask_array(frame, {label: kind for label, kind in times.items() if kind in TIME_KINDS})
        array = as_dask_array(X)
        array = array[:, None] if array.ndim == 1 and columns == 1 else array
        if array.ndim != 2 or array.shape[1] != columns:
            raise ValueError(f"X must have {columns} columns, as in fit, got shape {array.shape}")
        if kinds is not None or array.dtype.kind in "mM":
            numbers: list[Kind] = ["numeric"] * columns
            array = in_days(array, kinds or numbers)
        return array

    def __getstate__(self) -> dict[str, Any]:
        return vars(self) | {"client": None}  # a connection cannot be saved


def open_partitions(
    key: Any,
    value: Any = None,
    key_weight: Any = None,
    *,
    target: str | Sequence[str] | None = None,
    features: Sequence[str] | None = None,
    client: Any = None,
    retries: int = RETRIES,
) -> PartitionPairs:
    """Open Dask collections, or files that the workers read, as pairs for `kernpool.pool` or ``fit`` of a regressor.

    Parameters
    ----------
    key : Dask array, Dask dataframe, Chunks, str or Path
        Keys, one per row, as an array or in columns of a dataframe; partitions are blocks of rows, and may be empty. Of
        a dataframe, `target` and `features` name the columns. A path is that of a Parquet or ``.npy`` file or folder.
        Of these and of chunks of such files (see `open_chunks`) the workers get the names, so they have to see the same
        files; other chunks that can be cut into parts are sent.
    value : Dask array of shape (n,) or (n, c), optional
        Values of keys that are an array.
    key_weight : Dask array of shape (n,) or str, optional
        Frequencies, or the column of a dataframe that holds them.
    target : str or sequence of str, optional
        Columns of values of a dataframe.
    features : sequence of str, optional
        Columns of keys of a dataframe; by default all others. Dates and durations are days, to regressors.
    client : distributed.Client, optional
        The cluster; by default the scheduler that Dask would use, which is that of the latest client if there is one.
    retries : int, default=3
        How often a task that failed is tried again. Tasks of workers that died run again in any case. Dask forgets this
        for a lazy result where it fuses tasks; ``client.compute(pooled, retries=3)`` asks for it again.

    Returns
    -------
    PartitionPairs
        References to the rows.

    Raises
    ------
    TypeError
        If the pairs cannot be cut into blocks.
    ValueError
        If keys, values and weights do not go together; from a task where only the task sees the numbers.

    Notes
    -----
    There are P tasks per block of queries for P partitions, and P / 7 that merge; each keeps a few numbers per query.
    Tasks use one thread each: give workers as many threads as they have processors. For queries on Dask, pooled values
    are a Dask array that is not computed yet; ``empty="nearest"`` and ``"mean"`` then keep or read every partition for
    a second time. Dask's ``KilledWorker`` usually means that workers have too little memory for a partition.

    Examples
    --------
    >>> import dask.array
    >>> from kernpool import LocalLinearRegressor, pool
    >>> X = dask.array.linspace(0.0, 1.0, 100, chunks=30)[:, None]
    >>> pairs = open_partitions(X, 2.0 * X[:, 0])
    >>> pool([[0.5]], pairs, bandwidth=0.1)
    array([1.])
    >>> pool(dask.array.full((1, 1), 0.5), pairs, bandwidth=0.1).compute().round(9)
    array([1.])
    >>> LocalLinearRegressor(bandwidth=0.1).fit(pairs).predict([[0.5]])
    array([1.])
    """
    partitions = as_partitions(key, value, key_weight, target=target, features=features)
    return PartitionPairs(**vars(partitions), client=client, retries=retries)


def _same(value: Any) -> Any:
    return value


def _answer_of_block(question: Question[Answer], block: Any, start: int) -> Answer | None:
    return answer_of(question, read_block(block), start)


def _merged(question: Question[Answer], answers: list[Answer | None]) -> Answer | None:
    return reduce(partial(joined_answers, question), answers)


def _row_count(block: Any) -> int:
    return sum(len(chunk.key) for chunk in read_block(block))


def _key_columns(chunk: Chunk) -> int:
    return int(chunk.key.shape[1])


def _sums_of_empty_windows(asked: QueryBatch, sums: CenteredState | None) -> KernelSums:
    empty = np.flatnonzero(found_in_rows(sums).state.denominator == 0)
    return KernelSums(asked.at(empty, asked.recipe.empty))


def _finalized(asked: QueryBatch, sums: CenteredState | None, filled: CenteredState | None, flat: bool) -> Any:
    sums = found_in_rows(sums)
    if not len(asked):
        return np.empty(0) if flat else np.empty((0, len(sums.center)))
    limit = quotient((filled or sums).state)
    return finalize(asked.sums(sums, flat, fill=lambda _: limit), asked.recipe)
