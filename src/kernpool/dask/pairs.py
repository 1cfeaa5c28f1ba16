"""Key-value pairs in Dask partitions: workers answer questions about their rows, and a tree merges the answers.

The tasks of a question are the answer of each block of rows, and a tree that merges eight neighbours at a time, in
order of partition number. Nothing in it depends on which worker computed what. So results have the same bits for any
number of workers, with Dask's own schedulers, and after workers have died.

Tasks run on a cluster if there is a client, otherwise with the scheduler that Dask would use.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial, reduce
from types import MappingProxyType
from typing import Any

import dask
import dask.array as da
import numpy as np
from dask.base import get_scheduler, is_dask_collection
from dask.delayed import delayed
from numpy.typing import ArrayLike

from kernpool.data import (
    TIME_KINDS,
    Chunk,
    Columns,
    Kind,
    TableError,
    as_real_array,
    dates_refused,
    refuse_other_columns,
    with_days,
)
from kernpool.data.chunks.base import ArrayChunks, Chunks
from kernpool.data.chunks.parquet import ColumnNames
from kernpool.data.chunks.sources import open_chunks
from kernpool.data.columns import refuse_other_labels
from kernpool.execution.error_messages import abbreviate
from kernpool.execution.progress import Progress
from kernpool.pooling import MapReduce, QueryBatch, Recipe, Source, Sums, finalize, found_in_rows, quotient
from kernpool.pooling.source import Answer, Question, answer_of, joined_answers, kernel_sums

# Arrays of the caller are part of the graph so that they outlive any worker, and what Dask recommends of large ones is
# nothing that a caller of ours can do. Settings belong to the process, so one thread changes them at a time.
LARGE_GRAPHS = {"distributed.admin.large-graph-warning-threshold": 1 << 62}
_SUBMISSION = threading.Lock()
RETRIES = 3


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


FAN_IN = 8
NO_DATES: Mapping[Any, Kind] = MappingProxyType({})


@dataclass(frozen=True, eq=False)
class PartitionPairs(Source):
    """Key-value pairs in Dask partitions: workers compute on the parts, and a tree merges their results.

    Parameters
    ----------
    blocks : tuple
        For `read_block`, each on its own: `Chunks` that can be pickled, or the Dask tasks of the arrays of one
        partition. On its way to the cluster it is a reference and never carries the rows.
    sizes : tuple of int or None
        Pairs in each block; None if unknown before it is read.
    outputs : int
        Columns of values.
    flat : bool
        Whether values are one column without an axis of its own.
    labels : tuple, optional
        Of the columns of keys.
    kinds : tuple of str, optional
        Of the columns of keys; None where all are numbers.
    client : distributed.Client, optional
        The cluster; by default the scheduler that Dask would use, which is that of the latest client if there is one.
    retries : int, default=3
        How often a task that failed is tried again.
    """

    blocks: tuple[Any, ...]
    sizes: tuple[int | None, ...]
    outputs: int
    flat: bool
    labels: Sequence[Any] | None = None
    kinds: tuple[Kind, ...] | None = None
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
            sums, filled = self.delayed_answer(delayed(kernel_sums)(asked)), None
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
    pairs = _as_pairs(key, value, key_weight, target, features)
    return replace(pairs, client=client, retries=retries)


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


def _sums_of_empty_windows(asked: QueryBatch, sums: Sums | None) -> MapReduce:
    empty = np.flatnonzero(found_in_rows(sums).state.denominator == 0)
    return kernel_sums(asked.at(empty, asked.recipe.empty))


def _finalized(asked: QueryBatch, sums: Sums | None, filled: Sums | None, flat: bool) -> Any:
    sums = found_in_rows(sums)
    if not len(asked):
        return np.empty(0) if flat else np.empty((0, sums.layout.values))
    limit = quotient((filled or sums).state)
    return finalize(asked.finished(sums, flat, fill=lambda _: limit), asked.recipe)


def read_block(block: Any) -> Chunks:
    """Return the chunks of key-value pairs of one block of rows; this runs in a Dask task."""
    if isinstance(block, Chunks):
        return block
    number, *arrays = block
    source = f"partition {number}"
    if isinstance(arrays[1], ColumnNames):
        table, names = np.asarray(arrays[0]), arrays[1]
        chunk = names.chunk(table.T)
        return ArrayChunks(chunk.key, chunk.value, chunk.weight, source=source)
    return ArrayChunks(*arrays, source=source)


def _as_pairs(
    key: Any, value: Any, key_weight: Any, target: str | Sequence[str] | None, features: Sequence[str] | None
) -> PartitionPairs:
    """Convert keys, values and weights, in Dask collections or in chunks, to pairs."""
    if is_frame(key) and value is None:
        return _of_frame(key, target, features, key_weight)
    if is_dask_collection(key):
        key = key[list(features)] if is_frame(key) and features is not None else key
        if not is_frame(key):
            array = as_dask_array(key)
            if array.dtype.kind not in "mM":
                return _of_arrays(array, value, key_weight)
            width = 1 if array.ndim == 1 else array.shape[1]
            times: tuple[Kind, ...] = ("date" if array.dtype.kind == "M" else "duration",) * width
            return replace(_of_arrays(in_days(array), value, key_weight), kinds=times)
        kinds = time_kinds(key)
        names = tuple(key.columns)
        value, key_weight = _in_order(key, "value", value), _in_order(key, "key_weight", key_weight)
        found = _of_arrays(as_dask_array(key, kinds, fitting=True), value, key_weight)
        return replace(found, labels=names, kinds=_kinds_of(names, kinds))
    if is_dask_collection(value) or is_dask_collection(key_weight):
        raise TypeError(f"value and key_weight are Dask collections, so key must be one too, got {type(key).__name__}")
    return _of_chunks(open_chunks(key, value, key_weight, target=target, features=features))


def is_frame(collection: Any) -> bool:
    """Return whether an object is a Dask dataframe."""
    return is_dask_collection(collection) and hasattr(collection, "columns") and hasattr(collection, "dtypes")


def select(frame: Any, labels: Sequence[Any] | None) -> Any:
    """Return a Dask dataframe with only the columns of these labels, in this order; all its columns for None."""
    if labels is None or not set(labels) <= set(frame.columns):
        refuse_other_columns(list(frame.columns), labels, "labels of the fit")
        return frame
    return frame[list(labels)]


def time_kinds(frame: Any) -> dict[Any, Kind]:
    """Map the label of each date or duration column of a Dask dataframe to its kind, one of `TimeKind`."""
    sample = frame._meta_nonempty
    columns = ((label, Columns.of(sample[label].to_frame("X")).columns[0]) for label in frame.columns)
    return {label: column.kind for label, column in columns if column.times is not None}


def _kinds_of(labels: Sequence[Any], kinds: Mapping[Any, Kind]) -> tuple[Kind, ...] | None:
    return tuple(kinds.get(label, "numeric") for label in labels) if kinds else None


def as_dask_array(collection: Any, kinds: Mapping[Any, Kind] = NO_DATES, *, fitting: bool = False) -> Any:
    """Convert a Dask array, dataframe or series to a Dask array whose blocks hold whole rows."""
    collection = _as_numbers(collection, kinds, fitting) if is_frame(collection) else collection
    array = collection.to_dask_array() if hasattr(collection, "to_dask_array") else collection
    if not isinstance(array, da.Array) or array.ndim not in (1, 2):
        raise ValueError(
            "Dask collections must be arrays of shape (rows,) or (rows, columns), or dataframes, got "
            f"{type(collection).__name__} of shape {getattr(array, 'shape', 'unknown')}"
        )
    return array.rechunk({1: -1}) if array.ndim == 2 and array.numblocks[1] > 1 else array


def in_days(array: Any, kinds: Sequence[Kind] | None = None) -> Any:
    """Convert a Dask array of dates or durations to numbers of days, block by block."""
    # kinds other than the fitted ones are refused, before anything is computed unless cells are objects
    if array.dtype.kind != "O":
        with_days("X", np.zeros((1, *array.shape[1:]), dtype=array.dtype), kinds)
    return array.map_blocks(_in_days, kinds, dtype=np.float64, meta=np.empty((0,) * array.ndim))


def _in_days(block: Any, kinds: Sequence[Kind] | None) -> Any:
    return np.reshape(with_days("X", block, kinds)[0], block.shape) if len(block) else np.empty(block.shape)


def _as_numbers(frame: Any, kinds: Mapping[Any, Kind], fitting: bool) -> Any:
    """Convert all columns of a Dask dataframe to numbers, after checking their dtypes."""
    # integers are checked before a mixed dataframe turns them into floats
    for name, dtype in zip(frame.columns, _dtypes(frame), strict=True):
        text = dtype.categories if hasattr(dtype, "categories") else dtype
        kind = "b" if text is None else getattr(text, "dtype", text).kind
        if kind in "mM" and name not in kinds:
            raise TableError(dates_refused(f"the Dask dataframe: {name}", str(dtype)))
        if kind not in "fiubmM" and not is_decimal(dtype) and name not in kinds:
            raise TableError(
                f"the Dask dataframe: column {name!r} holds {dtype}, not real numbers; leave it out, encode it with "
                "dask.dataframe.get_dummies, or fit it in memory with NadarayaWatsonRegressor"
            )
    meta = _checked(frame._meta, {}) if not kinds else _checked(frame._meta_nonempty, kinds).iloc[:0]
    return frame.map_partitions(_checked, dict(kinds), fitting, meta=meta, enforce_metadata=False)


def _dtypes(frame: Any) -> list[Any]:
    """Return a list of the column dtypes of a Dask dataframe, or of the single dtype of a series."""
    return [frame.dtype] if frame.ndim == 1 else list(frame.dtypes)


def is_decimal(dtype: Any) -> bool:
    """Return whether a pandas dtype is that of Arrow decimals."""
    return str(getattr(dtype, "pyarrow_dtype", "")).startswith("decimal")


def _checked(frame: Any, kinds: Mapping[Any, Kind], fitting: bool = False) -> Any:
    """Convert one pandas partition to numbers; raise an error if float64 cannot represent its integers."""
    if frame.ndim == 1:
        return _checked(frame.to_frame(frame.name), kinds, fitting).iloc[:, 0]
    frame = frame.copy(deep=False)
    for name, column in frame.items():
        if not isinstance(column.dtype, np.dtype) or column.dtype.kind not in "f" or name in kinds:
            read = Columns.of(column.to_frame(str(name))).columns[0] if len(frame) else None
            if fitting and read is not None and read.times is not None:
                read.times.check_steps(read.label)
            frame[name] = np.empty(0) if read is None else read.numbers(kinds.get(name))
    return frame


def row_counts(array: Any) -> tuple[int | None, ...]:
    """Return the number of rows of each block of a Dask array; None where Dask does not know it."""
    return tuple(None if np.isnan(rows) else int(rows) for rows in array.chunks[0])


def delayed_blocks(array: Any) -> list[Any]:
    """Return one Dask task for each block of rows of an array."""
    # unoptimised, so that work shared by several arrays is done once
    return list(array.to_delayed(optimize_graph=False).ravel())


def _of_frame(frame: Any, target: Any, features: Sequence[str] | None, weight: Any) -> PartitionPairs:
    if target is None:
        raise TypeError("target must name the column of values, or the columns, of a Dask dataframe; or give value=")
    labels = {str(label): label for label in frame.columns}
    frame = frame.rename(columns=str)
    names = ColumnNames("the Dask dataframe", list(frame.columns), None, features, target, weight)
    kinds = time_kinds(frame[names.features])
    # One table, not three arrays: what makes a partition runs once.
    table = as_dask_array(_as_numbers(frame[names.all], kinds, True).astype("float64"))
    blocks = tuple((number, block, names) for number, block in enumerate(delayed_blocks(table)))
    keys = tuple(labels[name] for name in names.features)
    return PartitionPairs(
        blocks, row_counts(table), len(names.target), names.flat, keys, _kinds_of(names.features, kinds)
    )


def _of_arrays(key: Any, value: Any, weight: Any) -> PartitionPairs:
    if value is None:
        raise TypeError("value is missing: key is a Dask array, so give value=, with one row per key")
    arrays = [key, _along("value", value, key)]
    if weight is not None:
        arrays.append(_along("key_weight", weight, key))
    blocks = tuple((number, *block) for number, block in enumerate(zip(*map(delayed_blocks, arrays), strict=True)))
    flat = arrays[1].ndim == 1
    return PartitionPairs(blocks, row_counts(key), 1 if flat else int(arrays[1].shape[1]), flat)


def _along(name: str, other: Any, key: Any) -> Any:
    """Rechunk values or weights to the blocks of rows of the keys; raise ValueError if their rows do not match."""
    known = None not in row_counts(key)
    if not is_dask_collection(other):
        numbers = as_real_array(name, other)
        if not known or len(numbers) != key.shape[0]:
            rows = key.shape[0] if known else "unknown many"
            raise ValueError(
                f"{name} has {len(numbers)} rows in memory, and key {rows} in a Dask collection; give both as Dask "
                "collections with as many rows, or as one dataframe with target="
            )
        return da.from_array(numbers, chunks=(key.chunks[0], *[-1] * (numbers.ndim - 1)))
    array = as_dask_array(other)
    if known and None not in row_counts(array):
        if array.shape[0] != key.shape[0]:
            raise ValueError(f"key has {key.shape[0]} rows and {name} has {array.shape[0]}; each key needs its own")
        return array.rechunk({0: key.chunks[0]})
    if array.numblocks[0] != key.numblocks[0]:
        raise ValueError(
            f"key has {key.numblocks[0]} partitions and {name} has {array.numblocks[0]}, of unknown length, so that "
            "they cannot be matched; call compute_chunk_sizes() on both, or give one dataframe with target="
        )
    return array


def _in_order(key: Any, name: str, other: Any) -> Any:
    """Let workers compare row labels of values or weights with those of the keys, partition by partition."""
    if not hasattr(other, "npartitions") or not hasattr(other, "index") or other.npartitions != key.npartitions:
        return other
    return other.map_partitions(_labelled_like, key, name, meta=other._meta, align_dataframes=False)


def _labelled_like(part: Any, key: Any, name: str) -> Any:
    try:
        refuse_other_labels(key=key, **{name: part})
    except ValueError as error:
        differing = str(error).partition("; ")[0]
        raise ValueError(
            f"{differing} of a partition; rows are paired by position, so join both to one dataframe and give target=, "
            f"or pass {name}.to_dask_array() if its rows are in the order of key"
        ) from None
    return part


def _of_chunks(chunks: Chunks) -> PartitionPairs:
    parts = chunks.parts()
    outputs = chunks.outputs or next((part.outputs for part in parts if part.outputs), None)
    if not parts or outputs is None:
        raise ValueError("there are no pairs: the source is empty")
    rows = tuple(part.rows for part in parts)
    return PartitionPairs(tuple(parts), rows, outputs, chunks.flat, chunks.labels, chunks.kinds)
