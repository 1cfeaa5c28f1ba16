"""Partitions of rows: the common form of Dask arrays, Dask dataframes and chunks in files.

A block is `Chunks` that can be pickled, or the Dask tasks of the arrays of one partition. Tasks turn either into
chunks by `read_block`. A block on its way to the cluster is a reference and never carries the rows.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

import dask.array as da
import numpy as np
from dask.base import is_dask_collection

from kernpool.data import Columns, Kind, TableError, as_real_array, dates_refused, refuse_other_columns, with_days
from kernpool.data.chunks.base import ArrayChunks, Chunks
from kernpool.data.chunks.parquet import ColumnNames
from kernpool.data.chunks.sources import open_chunks

NO_DATES: Mapping[Any, Kind] = MappingProxyType({})


@dataclass(frozen=True)
class Partitions:
    """Keys, values and weights in blocks of rows, with row counts, and names and types of the key columns."""

    blocks: tuple[Any, ...]  # for `read_block`, each on its own
    sizes: tuple[int | None, ...]  # pairs in each block; None if unknown before it is read
    outputs: int  # columns of values
    flat: bool  # whether values are one column without an axis of its own
    labels: tuple[Any, ...] | None = None  # of the columns of keys
    kinds: tuple[Kind, ...] | None = None  # None where all are numbers


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


def as_partitions(
    key: Any,
    value: Any = None,
    key_weight: Any = None,
    *,
    target: str | Sequence[str] | None = None,
    features: Sequence[str] | None = None,
) -> Partitions:
    """Convert keys, values and weights, in Dask collections or in chunks, to `Partitions`."""
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


def _of_frame(frame: Any, target: Any, features: Sequence[str] | None, weight: Any) -> Partitions:
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
    return Partitions(blocks, row_counts(table), len(names.target), names.flat, keys, _kinds_of(names.features, kinds))


def _of_arrays(key: Any, value: Any, weight: Any) -> Partitions:
    if value is None:
        raise TypeError("value is missing: key is a Dask array, so give value=, with one row per key")
    arrays = [key, _along("value", value, key)]
    if weight is not None:
        arrays.append(_along("key_weight", weight, key))
    blocks = tuple((number, *block) for number, block in enumerate(zip(*map(delayed_blocks, arrays), strict=True)))
    flat = arrays[1].ndim == 1
    return Partitions(blocks, row_counts(key), 1 if flat else int(arrays[1].shape[1]), flat)


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


def _of_chunks(chunks: Chunks) -> Partitions:
    parts = chunks.parts()
    outputs = chunks.outputs or next((part.outputs for part in parts if part.outputs), None)
    if not parts or outputs is None:
        raise ValueError("there are no pairs: the source is empty")
    rows = tuple(part.rows for part in parts)
    return Partitions(tuple(parts), rows, outputs, chunks.flat, chunks.labels, chunks.kinds)
