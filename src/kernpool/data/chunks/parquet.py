"""Chunks of Parquet files and Arrow streams: the columns of keys, values and weights, read some rows at a time."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from copy import copy
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from kernpool._arrays import AnyArray, Array
from kernpool.data.array_validation import SMALL, TableError, arrow_numbers, import_parquet, is_real
from kernpool.data.atomic_files import fingerprint
from kernpool.data.chunks.base import Chunk, Chunks, check_exact, check_finite, rows_per_chunk
from kernpool.data.columns import Kind
from kernpool.data.dates import arrow_kind, times_of
from kernpool.data.suspect_columns import row_labels

BATCH_ROWS = 1 << 17


class ColumnNames:
    """Names of the columns of a file or stream that hold keys, values and weights."""

    def __init__(
        self,
        source: str,
        present: Sequence[str],
        metadata: Mapping[Any, Any] | None,
        features: Sequence[str] | None,
        target: str | Sequence[str],
        weight: str | None,
    ) -> None:
        self.flat = isinstance(target, str)
        self.target = [target] if isinstance(target, str) else list(target)
        self.weight = [] if weight is None else [weight]
        taken = {*self.target, *self.weight}
        # What pandas adds for the labels of rows is not a column of keys, unless the caller names it.
        labels = row_labels(present, metadata)
        columns = [name for name in present if name not in taken and name not in labels]
        self.left_out = tuple(name for name in labels if name not in taken) if features is None else ()
        self.features = columns if features is None else list(features)
        # A caller who named the columns needs no advice to leave one out.
        self.advice = "name the others as features" if features is None else "convert it to numbers first"
        problem, absent = None, [name for name in self.all if name not in present]
        if len(set(present)) < len(present):
            problem = "two columns have the same name; rename one of them"
        elif absent:
            problem = f"no column {absent[0]!r}"
        elif not self.features or len(set(self.all)) < len(self.all):
            problem = (
                "features, target and weight must name at least one column of keys and each column once, "
                f"got {self.features}, {self.target} and {self.weight}"
            )
        if problem is not None:
            raise TableError(f"{source}: {problem}; columns are {', '.join(map(repr, present))}")

    @property
    def all(self) -> list[str]:
        """Names of the columns of keys, values and weights, in this order."""
        return [*self.features, *self.target, *self.weight]

    def reference(self, kind: str, path: Path, files: Sequence[Path]) -> dict[str, Any]:
        """Return a dictionary of the data files and the columns used, by which a saved model finds its data again."""
        # It has fingerprints of the files, which detect changes.
        return {
            "kind": kind,
            "path": str(path.resolve()),
            "features": self.features,
            "target": self.target[0] if self.flat else self.target,
            "weight": self.weight[0] if self.weight else None,
            "files": {name_in(path, file): fingerprint(file) for file in files},
        }

    def chunk(self, table: Any) -> Chunk:
        """Convert a matrix, whose rows are the columns of keys, values and weights in this order, to a `Chunk`."""
        # Columns of the arrays of the chunk are contiguous in memory.
        d, c = len(self.features), len(self.target)
        return Chunk(table[:d].T, table[d : d + c].T, table[-1] if self.weight else None)


class NamedChunks(Chunks):
    """Chunks of the named columns of a file or a stream.

    Parameters
    ----------
    source : object
        What is opened.
    target, features, weight
        As in `ColumnNames`.
    rows : int, optional
        Per chunk.
    memory : int, optional
        Bytes from which `rows` follows.
    """

    def __init__(
        self,
        source: Any,
        *,
        target: str | Sequence[str],
        features: Sequence[str] | None = None,
        weight: str | None = None,
        rows: int | None = None,
        memory: int | None = None,
    ) -> None:
        self._names = names = ColumnNames(*self._open(source), features, target, weight)
        self.left_out = names.left_out
        self.flat, self.names, self.outputs = names.flat, tuple(names.features), len(names.target)
        self._check()
        self._step = rows or rows_per_chunk(len(names.all), memory)

    @abstractmethod
    def _open(self, source: Any) -> tuple[str, Sequence[str], Mapping[Any, Any] | None]:
        """Open the source; return its name, and the names of its columns with what pandas says of them."""

    @abstractmethod
    def _check(self) -> None:
        """Raise TableError if the columns of keys, values and weights are not as they should be."""


def _checked_columns(batch: Any, names: ColumnNames, source: str, part: str, first: int) -> list[AnyArray]:
    """Return the columns of an Arrow batch as numbers; raise TableError for what float64 would round, NaN, infinity.

    Messages name the source and the part of it, and count rows from the first one of the batch there.
    """
    columns = []
    for name in names.all:
        column = _numbers(f"{source}: column {name!r}", batch.column(name))
        place = lambda row, _: f"{part}row {first + row}, column {name!r}"  # noqa: B023, E731  # at once
        check_exact(column, source, place)
        check_finite(column.astype(np.float64, copy=False), source, place)
        columns.append(column)
    return columns


def _chunks_of(batches: Iterable[list[AnyArray]], names: ColumnNames, rows: int) -> Iterator[Chunk]:
    """Join the columns of batches to chunks of a fixed number of rows, of which one at a time is in memory."""
    table, filled = np.empty((len(names.all), rows)), 0
    for columns in batches:
        start, size = 0, len(columns[0])
        while start < size:
            stop = min(size, start + rows - filled)
            for row, column in zip(table, columns, strict=True):
                row[filled : filled + stop - start] = column[start:stop]
            filled, start = filled + stop - start, stop
            if filled == rows:
                yield names.chunk(table)
                table, filled = np.empty_like(table), 0
    if filled:
        yield names.chunk(table[:, :filled])


class ParquetChunks(NamedChunks):
    """Chunks of a Parquet file, or of all Parquet files of a folder in the order of their names."""

    # A folder that is partitioned by a column, into folders such as ``year=2020``, has that column.

    def _open(self, source: str | Path) -> tuple[str, Sequence[str], Mapping[Any, Any] | None]:
        self.path = Path(source).absolute()  # a model may look for it from another folder
        self.files = parquet_files(self.path)
        self._schema, fragments = _dataset(self.path, self.files)
        self._schemas = [fragment.physical_schema for fragment in fragments]
        self._groups = [group for fragment in fragments for group in fragment.split_by_row_group()]
        self.rows = sum(map(_rows, self._groups))
        return str(self.files[0]), self._schema.names, self._schemas[0].pandas_metadata

    def _check(self) -> None:
        constants = {name for name in self._schema.names if name not in self._schemas[0].names}
        for file, schema in zip(self.files, self._schemas, strict=True):
            _check_schema(file, schema, self.files[0], self._schema, self._names, constants)
        self.kinds = _time_kinds(self._schema, self._names.features)

    def __iter__(self) -> Iterator[Chunk]:
        """Iterate over the chunks of all files, in the order of the files."""
        return _chunks_of(self._batches(), self._names, min(self._step, max(1, self.rows or 1)))

    def _batches(self) -> Iterator[list[AnyArray]]:
        from pyarrow import ArrowException

        for group in self._groups:
            number = group.row_groups[0].id
            first = sum(group.metadata.row_group(i).num_rows for i in range(number))
            try:
                for batch in group.to_batches(
                    self._schema,
                    columns=self._names.all,
                    batch_size=BATCH_ROWS,
                    fragment_scan_options=_scan_options(),
                    use_threads=Path(group.path).stat().st_size > SMALL,
                ):
                    yield _checked_columns(batch, self._names, group.path, f"row group {number}, ", first)
                    first += batch.num_rows
            except (ArrowException, OSError) as error:
                raise TableError(f"{group.path} is truncated or damaged: {error}") from None

    def parts(self) -> list[Chunks]:
        """Return chunks of some row groups each, for other processes, which open the files by name."""
        # Adjacent row groups of a file are joined up to the chunk size.
        parts: list[list[Any]] = []
        for group in self._groups:
            last = parts[-1] if parts and parts[-1][0].path == group.path else None
            if last is not None and sum(map(_rows, last)) + _rows(group) <= self._step:
                last.append(group)
            else:
                parts.append([group])
        return [self._of(row_groups) for row_groups in parts if any(map(_rows, row_groups))]

    def _of(self, row_groups: Sequence[Any]) -> ParquetChunks:
        part = copy(self)
        part._groups, part.rows = list(row_groups), sum(map(_rows, row_groups))
        vars(part).pop("_ranges", None)
        return part

    def split_by_box(self, low: Array, high: Array) -> tuple[Chunks, Chunks, float] | None:
        """Split the row groups by the statistics of the files; one that lacks some may lie in any box."""
        d, ranges = len(self._names.features), self._ranges
        outside = ((ranges[:, :d, 0] > high) | (ranges[:, :d, 1] < low)).any(axis=1)
        largest = np.abs(ranges[:, d:]).max(axis=2)  # of values, and of weights if there are any
        outside &= np.isfinite(largest).all(axis=1)
        weight = largest[:, -1] if self._names.weight else np.ones(len(largest))
        if not outside.any() or not np.any(weight[~outside] > 0):
            return None
        targets = slice(0, len(self._names.target))
        here, there = (np.fmax.reduce(largest[which, targets], axis=0) for which in (~outside, outside))
        with np.errstate(all="ignore"):
            heaviest = weight[outside].max() * np.where(there <= here, 1.0, there / here).max()
        near, far = (self._of([self._groups[i] for i in np.flatnonzero(which)]) for which in (~outside, outside))
        return near, far, float(heaviest)

    @cached_property
    def _ranges(self) -> Array:
        """Least and largest number of each column in each row group, NaN where the files do not say."""
        names = self._names.all
        ranges = [self._range(group, name) for group in self._groups for name in names]
        return np.reshape(ranges, (len(self._groups), len(names), 2))

    def _range(self, group: Any, name: str) -> tuple[float, float]:
        from pyarrow import ArrowException, array, dataset

        try:
            stated = dataset.get_partition_keys(group.partition_expression)
            ends = [stated[name]] if name in stated else list(group.row_groups[0].statistics[name].values())
            numbers = np.asarray(_numbers(name, array(ends, self._schema.field(name).type)), dtype=np.float64)
            return float(numbers.min()), float(numbers.max())
        except (ArrowException, LookupError, TypeError, ValueError, OverflowError):  # such as of half floats
            return np.nan, np.nan

    def is_boolean(self, name: str) -> bool:
        """Return whether a column of the Parquet files holds booleans."""
        return name in self._schema.names and str(self._schema.field(name).type) == "bool"

    def reference(self) -> dict[str, Any]:
        """Return a dictionary with the path, the columns used and a fingerprint of each file, for `reopen`."""
        return self._names.reference("parquet", self.path, self.files)


def _rows(group: Any) -> int:
    return int(group.row_groups[0].num_rows)


class StreamChunks(NamedChunks):
    """Chunks of an Arrow stream, such as a frame of pandas, polars or DuckDB, or a table or reader of pyarrow."""

    def _open(self, source: Any) -> tuple[str, Sequence[str], Mapping[Any, Any] | None]:
        from pyarrow import RecordBatchReader

        self._source, self.again = source, not isinstance(source, RecordBatchReader)
        self._reader = RecordBatchReader.from_stream(source)
        self._schema = self._reader.schema
        self.rows = len(source) if hasattr(source, "__len__") else None
        return "the stream", self._schema.names, self._schema.pandas_metadata

    def _check(self) -> None:
        _check_schema("the stream", self._schema, "the stream", self._schema, self._names)
        self.kinds = _time_kinds(self._schema, self._names.features)
        if hasattr(self._source, "iloc"):  # a frame of pandas has an index
            self.left_out = ()

    def __iter__(self) -> Iterator[Chunk]:
        """Iterate over the chunks of the stream; each iteration opens a new stream if the source can make one."""
        self._start_reading()
        return _chunks_of(self._batches(), self._names, min(self._step, max(1, self.rows or self._step)))

    def _batches(self) -> Iterator[list[AnyArray]]:
        from pyarrow import RecordBatchReader

        reader = self._reader if self._reader is not None else RecordBatchReader.from_stream(self._source)
        self._reader, first = None, 0
        for batch in reader:
            yield _checked_columns(batch, self._names, "the stream", "", first)
            first += batch.num_rows


def parquet_files(path: Path) -> list[Path]:
    """Return the Parquet files at a path, sorted by name: the file itself, or those in a folder and its partitions."""
    if not path.is_dir():
        return [path]
    files = sorted(
        file
        for file in (*path.glob("*.parquet"), *path.glob("*=*/**/*.parquet"))
        if not any(part.startswith(".") for part in file.relative_to(path).parts)
    )
    if not files:
        raise TableError(f"{path} holds no file whose name ends in .parquet")
    return files


def _dataset(folder: Path, files: Sequence[Path]) -> tuple[Any, list[Any]]:
    """Return the schema of Parquet files and of the folders they are in, and a fragment of a dataset for each file."""
    import_parquet()
    from pyarrow import ArrowException, dataset

    try:
        opened = dataset.dataset(
            list(map(str, files)),
            format=dataset.ParquetFileFormat(default_fragment_scan_options=_scan_options()),
            partitioning=dataset.HivePartitioning.discover(),
            partition_base_dir=str(folder),
        )
        return opened.schema, list(opened.get_fragments())
    except (FileNotFoundError, PermissionError):
        raise
    except (ArrowException, OSError) as error:
        raise TableError(f"{folder} is truncated or no Parquet file: {error}") from None


def _scan_options() -> Any:
    # Row groups are read one at a time: with buffers made beforehand, memory grows with the file.
    from pyarrow import dataset

    return dataset.ParquetFragmentScanOptions(pre_buffer=False, page_checksum_verification=True)


def name_in(folder: Path, file: Path) -> str:
    """Return the path of a data file relative to `folder`, as text; just the file name if `folder` is no folder."""
    return file.relative_to(folder).as_posix() if file != folder and folder.is_dir() else file.name


def _time_kinds(schema: Any, names: Sequence[str]) -> tuple[Kind, ...] | None:
    """Return the kind of each key column (numeric, date or duration); None if all of them are numeric."""
    found = [arrow_kind(schema.field(name).type) if name in schema.names else None for name in names]
    return tuple(kind or "numeric" for kind in found) if any(found) else None


def _numbers(label: str, column: Any) -> AnyArray:
    """Return an Arrow array as an array of numbers; dates and durations become days, after a check of their steps."""
    times = times_of(label, column) if arrow_kind(column.type) else None
    if times is None:
        return arrow_numbers(column)
    times.check_steps(label)
    return times.days()


def _check_schema(
    file: Any, schema: Any, first: Any, expected: Any, names: ColumnNames, of_folders: Collection[str] = ()
) -> None:
    """Raise TableError unless a file has the columns of the first one, of the same types, and all are numbers."""
    for name in names.all:
        if name not in of_folders and name not in schema.names:
            raise TableError(f"{file}: no column {name!r}, which {first} has; columns are {', '.join(schema.names)}")
        common = expected.field(name).type
        kind = common if name in of_folders else schema.field(name).type
        is_key = name in names.features
        if not is_real(kind) and not (is_key and arrow_kind(kind)):
            problem = f"not real numbers; {names.advice if is_key else 'convert it to numbers first'}"
        elif kind != common:
            problem = f"and {common} in {first}; write all files with one schema"
        else:
            continue
        raise TableError(f"{file}: column {name!r} holds {kind}, {problem}")
