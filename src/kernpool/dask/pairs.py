"""Key-value pairs in Dask partitions: sums, samples and questions that workers compute and a tree merges.

The tasks of a mean are the center of the values, the state of each block, and a tree that merges eight neighbours at
a time, in order of partition number. Nothing in it depends on which worker computed what. So results have the same
bits for any number of workers, with Dask's own schedulers, and after workers have died. Whatever else is asked of the
partitions (`StoredPairs.ask`) is merged by the same tree.

Tasks run on a cluster if there is a client, otherwise with the scheduler that Dask would use.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial, reduce
from typing import Any

import dask
import dask.array as da
import numpy as np
from dask.base import get_scheduler, is_dask_collection
from dask.delayed import delayed
from numpy.typing import ArrayLike, NDArray

from kernpool.core.state import PoolState, empty_state
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
from kernpool.data import TIME_KINDS, Kind
from kernpool.data.chunks.base import Chunks
from kernpool.data.chunks.parquet import ColumnNames
from kernpool.execution.error_messages import abbreviate
from kernpool.execution.progress import Progress
from kernpool.pooling import (
    QueryBatch,
    Recipe,
    StoredPairs,
    Sums,
    center_of,
    finalize,
    found_in_pairs,
    merge_states,
    quotient,
)
from kernpool.pooling.out_of_core import reason_of_chunks
from kernpool.pooling.stored_pairs import Answer, ChunkReason, Question, Task, answer_of, joined_answers, sum_chunks

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


def sent_once(value: Any) -> Any:
    """Wrap a value in a Dask task, so that it is sent to the cluster once and copied between workers."""
    return delayed(_same)(value)


def _same(value: Any) -> Any:
    return value


Array = NDArray[np.float64]

FAN_IN = 8


@dataclass(frozen=True, eq=False)
class PartitionPairs(StoredPairs):
    """Key-value pairs in Dask partitions: workers compute on the parts, and a tree merges their results.

    Parameters
    ----------
    partitions : Partitions
        The pairs.
    client : distributed.Client, optional
        The cluster; by default the scheduler that Dask would use, which is that of the latest client if there is one.
    retries : int, default=3
        How often a task that failed is tried again.
    """

    partitions: Partitions
    client: Any = None
    retries: int = RETRIES

    @property
    def flat(self) -> bool:  # type: ignore[override]  # read only
        """Whether values are one column without an axis of its own."""
        return self.partitions.flat

    @property
    def outputs(self) -> int:  # type: ignore[override]  # read only
        """Number of value columns."""
        return self.partitions.outputs

    @property
    def labels(self) -> Sequence[Any] | None:  # type: ignore[override]  # read only
        """Labels of the key columns, by which query columns are matched."""
        return self.partitions.names

    @property
    def kinds(self) -> Sequence[Kind] | None:  # type: ignore[override]  # read only
        """Kinds of the key columns, if some are dates or durations; None if all are numbers."""
        return self.partitions.kinds

    @property
    def parts(self) -> int:  # type: ignore[override]  # read only
        """Number of partitions."""
        return len(self.partitions.blocks)

    @property
    def rows(self) -> int | None:  # type: ignore[override]  # read only
        """Number of pairs; None if some partition has not been counted."""
        rows = self.partitions.rows
        return None if None in rows else sum(filter(None, rows))

    @cached_property
    def columns(self) -> int:
        """Number of key columns."""
        if self.labels is not None:
            return len(self.labels)
        return int(max(self._compute([delayed(_key_columns)(block) for block in self.partitions.blocks])))

    def counted(self) -> PartitionPairs:
        """Return the pairs with the rows of every partition counted; raise ValueError if there are none."""
        rows = list(self.partitions.rows)
        unknown = [i for i, size in enumerate(rows) if size is None]
        sizes = self._compute([delayed(_row_count)(self.partitions.blocks[i]) for i in unknown])
        for i, size in zip(unknown, sizes, strict=True):
            rows[i] = size
        if not sum(filter(None, rows)):
            raise ValueError("there are no rows: all partitions are empty")
        return replace(self, partitions=replace(self.partitions, rows=tuple(rows)))

    def center(self) -> Array:
        """Return a center for all values, of shape (outputs,); raise ValueError if no pair has positive weight."""
        (center,) = self._compute([center_task(self.partitions)])
        return found_in_pairs(center)

    def combine(
        self,
        task: Task[Answer],
        joined: Callable[[Answer, Answer], Answer],
        starts: Sequence[int] | None = None,
        progress: Progress | None = None,  # noqa: ARG002  # the scheduler has its own
    ) -> Answer:
        """Call ``task(chunks, start)`` for each partition in a Dask task, and merge the results in a tree."""
        (answer,) = self._compute([self._tree(task, joined, self._starts if starts is None else starts)])
        return answer  # type: ignore[no-any-return]  # Dask is not typed

    def delayed_answer(self, question: Question[Answer]) -> Any:
        """Return the Dask task of the answer to a map-reduce query, which is None if no pair has positive weight."""
        return self._tree(partial(answer_of, question), partial(joined_answers, question), self._starts)

    def _tree(self, task: Task[Answer], joined: Callable[[Answer, Answer], Answer], starts: Sequence[int]) -> Any:
        once, parts = sent_once(task), zip(self.partitions.blocks, starts, strict=True)
        return merge_tree([delayed(_of_block)(once, block, int(start)) for block, start in parts], joined)

    def asked(self, recipe: Recipe, query: ArrayLike) -> QueryBatch:
        """Validate queries as a `QueryBatch`, with their columns in the order of the key columns; one thread a task."""
        return super().asked(replace(recipe, n_jobs=1), query)

    def plan(self, recipe: Recipe, query: Any) -> ChunkReason:  # noqa: ARG002  # as of all pairs
        """Return the algorithm that sums partitions, and the reason for the choice, without computing."""
        return reason_of_chunks(recipe, f"{len(self.partitions.blocks)} partition(s)", "a tree merges their states")

    def reduce(self, recipe: Recipe, query: Any, progress: Progress | None = None) -> Sums:  # noqa: ARG002
        """Sum weights and weighted values over all partitions, at each query, on the cluster."""
        asked, center = self.asked(recipe, query), center_task(self.partitions)
        state, center = self._compute([state_tree(sent_once(asked), self.partitions, center), center])
        center = found_in_pairs(center)

        def fill(rows: NDArray[np.intp]) -> Array:
            limit = sent_once(asked.at(rows, recipe.empty))
            return quotient(*self._compute([state_tree(limit, self.partitions, center, recipe.empty)]))

        return asked.sums(state, center, self.flat, fill=fill)

    def pool(
        self,
        recipe: Recipe,
        query: Any,
        progress: Progress | None = None,
    ) -> Any:
        """Compute pooled values at queries in memory, or, lazily, at a Dask collection; parameters as of `finalize`."""
        if not is_dask_collection(query):
            return super().pool(recipe, query, progress)
        array = as_dask_array(select(query, self.labels) if is_frame(query) else query)
        with dask.annotate(retries=self.retries):
            return _lazy(replace(recipe, n_jobs=1), array, self.partitions)

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

    @property
    def _starts(self) -> Sequence[int]:
        """Index of the first pair of each partition among all; zeros if partitions have not been counted."""
        rows = self.partitions.rows
        return [0] * len(rows) if None in rows else np.cumsum([0, *rows[:-1]]).tolist()

    def _compute(self, tasks: list[Any]) -> Any:
        return compute(tasks, self.client, self.retries)

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
    Tasks use one thread each: give workers as many threads as they have processors. Values are pooled less a center,
    which is found in the first partition with rows; where Dask does not know how many rows partitions have, all are
    looked at first, so persist them, or call ``compute_chunk_sizes()``. For queries on Dask, pooled values are a Dask
    array that is not computed yet; ``empty="nearest"`` and ``"mean"`` then keep or read every partition for a
    second time. Dask's ``KilledWorker`` usually means that workers have too little memory for a partition.

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
    return PartitionPairs(partitions, client, retries)


def _of_block(task: Task[Answer], block: Any, start: int) -> Answer:
    return task(read_block(block), start)


def _row_count(block: Any) -> int:
    return sum(len(chunk.key) for chunk in read_block(block))


def _key_columns(block: Any) -> int:
    return next((chunk.key.shape[1] for chunk in read_block(block)), 0)


def center_task(partitions: Partitions) -> Any:
    """Return the Dask task that computes a center for all values, from the first partition with positive weights."""
    known = [block for block, rows in zip(partitions.blocks, partitions.rows, strict=True) if rows]
    one_will_do = known and None not in partitions.rows and not any(_may_lack_weight(block) for block in known)
    blocks = known[:1] if one_will_do else list(partitions.blocks)
    return delayed(_first)([block if isinstance(block, Chunks) else delayed(_center)(block) for block in blocks])


def state_tree(asked: Any, partitions: Partitions, center: Any, limit: str | None = None) -> Any:
    """Return the Dask task that computes the kernel sums of all partitions and merges them in a tree."""
    states = [delayed(block_state)(asked, block, center, partitions.outputs) for block in partitions.blocks]
    return merge_tree(states, partial(merge_states, limit=limit))


def merge_tree(parts: list[Any], joined: Callable[[Any, Any], Any]) -> Any:
    """Return the Dask task that merges results of partitions in a tree, eight at a time, in their order."""
    while len(parts) > 1:
        parts = [delayed(_merged)(parts[i : i + FAN_IN], joined) for i in range(0, len(parts), FAN_IN)]
    return parts[0]


def block_state(asked: QueryBatch, block: Any, center: Array | None, outputs: int) -> PoolState:
    """Compute the kernel sums over one block of rows; this runs in a Dask task."""
    if center is None or not len(asked):
        return empty_state(len(asked), asked.layout(outputs).width)
    return sum_chunks(asked, read_block(block), center)


def _may_lack_weight(block: Any) -> bool:
    """Return whether a block may have no pair of positive weight, though it has rows."""
    if isinstance(block, tuple):
        return len(block) > 3 or (isinstance(block[2], ColumnNames) and bool(block[2].weight))
    return not isinstance(block, Chunks)  # rows without some


def _center(block: Any) -> Array | None:
    centers = (center_of(chunk) for chunk in read_block(block))
    return next((center for center in centers if center is not None), None)


def _first(found: list[Any]) -> Array | None:
    centers = (part if part is None or isinstance(part, np.ndarray) else _center(part) for part in found)
    return next((center for center in centers if center is not None), None)


def _merged(parts: list[Answer], joined: Callable[[Answer, Answer], Answer]) -> Answer:
    return reduce(joined, parts)


def _lazy(recipe: Recipe, array: Any, partitions: Partitions) -> Any:
    center, parts = center_task(partitions), []
    for block, rows in zip(delayed_blocks(array), row_counts(array), strict=True):
        asked = delayed(partial(QueryBatch.of, recipe))(block)
        state, filled = state_tree(asked, partitions, center), None
        if recipe.empty_value is None:
            limit = delayed(_empty_windows)(asked, state)
            filled = state_tree(limit, partitions, center, recipe.empty)
        pooled = delayed(_finalized)(asked, state, center, filled, partitions.flat)
        length = np.nan if rows is None else rows
        shape = (length,) if partitions.flat else (length, partitions.outputs)
        parts.append(da.from_delayed(pooled, shape, dtype=np.float64))
    return da.concatenate(parts, allow_unknown_chunksizes=True)


def _empty_windows(asked: QueryBatch, state: PoolState) -> QueryBatch:
    return asked.at(np.flatnonzero(state.denominator == 0), asked.recipe.empty)


def _finalized(
    asked: QueryBatch,
    state: PoolState,
    center: Array | None,
    filled: PoolState | None,
    flat: bool,
) -> Any:
    center = found_in_pairs(center)
    if not len(asked):
        return np.empty(0) if flat else np.empty((0, len(center)))
    sums = asked.sums(state, center, flat, fill=lambda _: quotient(filled or state))
    return finalize(sums, asked.recipe)
