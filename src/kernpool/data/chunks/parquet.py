"""Chunks of Parquet files and Arrow streams: the columns of keys, values and weights, read some rows at a time."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernpool.data.array_validation import SMALL, TableError, import_parquet
from kernpool.data.arrow_numbers import arrow_numbers, is_real
from kernpool.data.atomic_files import fingerprint
from kernpool.data.chunks.base import Chunk, Chunks, Split, check_exact, check_finite, rows_per_chunk
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
        features: Sequence[str] | None,
        target: str | Sequence[str],
        weight: str | None,
        metadata: Mapping[str, Any] | None = None,
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
        if len(set(present)) < len(present):
            raise TableError(
                f"{source}: two columns have the same name; rename one of them. Columns are "
                f"{', '.join(map(repr, present))}"
            )
        for name in self.all:
            if name not in present:
                raise TableError(f"{source}: no column {name!r}; columns are {', '.join(map(repr, present))}")
        if not self.features or len(set(self.all)) < len(self.all):
            raise TableError(
                f"{source}: features, target and weight must name at least one column of keys and each column once, "
                f"got {self.features}, {self.target} and {self.weight}"
            )

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


class _Collected:
    """Buffer that joins Arrow batches into chunks of a fixed number of rows."""

    # One buffer is in memory at a time.

    def __init__(self, names: ColumnNames, rows: int) -> None:
        self.names, self.filled = names, 0
        self.table = np.empty((len(names.all), rows))

    def add(self, batch: Any, source: str, place: Callable[[int, str], str]) -> Iterator[Chunk]:
        """Copy an Arrow batch into the buffer, and yield a `Chunk` whenever the buffer is full."""
        start, rows = 0, self.table.shape[1]
        columns = [_numbers(f"{source}: column {name!r}", batch.column(name)) for name in self.names.all]
        for column, name in zip(columns, self.names.all, strict=True):
            check_exact(column, source, lambda row, _: place(row, name))  # noqa: B023  # called at once
        while start < batch.num_rows:
            stop = min(batch.num_rows, start + rows - self.filled)
            for i, name in enumerate(self.names.all):
                part = self.table[i, self.filled : self.filled + stop - start]
                part[:] = columns[i][start:stop]
                check_finite(part, source, lambda row, _: place(start + row, name))  # noqa: B023  # called at once
            self.filled += stop - start
            start = stop
            if self.filled == rows:
                yield from self.rest()

    def rest(self) -> Iterator[Chunk]:
        """Yield the rows of the buffer as a `Chunk`, if there are any, and start an empty buffer."""
        if self.filled:
            yield self.names.chunk(self.table[:, : self.filled])
            self.filled, self.table = 0, np.empty_like(self.table)


class ParquetChunks(Chunks):
    """Chunks of a Parquet file, or of all Parquet files of a folder in the order of their names."""

    # A folder that is partitioned by a column, into folders such as ``year=2020``, has that column.

    def __init__(
        self,
        path: str | Path,
        *,
        target: str | Sequence[str],
        features: Sequence[str] | None = None,
        weight: str | None = None,
        rows: int | None = None,
        memory: int | None = None,
    ) -> None:
        self.path = Path(path).absolute()  # a model may look for it from another folder
        self.files = parquet_files(self.path)
        self._schema, fragments = _dataset(self.path, self.files)
        files = [fragment.physical_schema for fragment in fragments]
        constants = {name for name in self._schema.names if name not in files[0].names}
        self._names = names = ColumnNames(
            str(self.files[0]), self._schema.names, features, target, weight, files[0].pandas_metadata
        )
        self.left_out = names.left_out
        for file, schema in zip(self.files, files, strict=True):
            _check_schema(file, schema, self.files[0], self._schema, names, constants)
        self.flat, self.names, self.outputs = names.flat, tuple(names.features), len(names.target)
        self.kinds = _time_kinds(self._schema, names.features)
        self._groups = [group for fragment in fragments for group in fragment.split_by_row_group()]
        self.rows = sum(map(_rows, self._groups))
        self._step = rows or rows_per_chunk(len(names.all), memory)

    def __iter__(self) -> Iterator[Chunk]:
        """Iterate over the chunks of all files, in the order of the files."""
        return iter(self._of(self._groups))

    def parts(self) -> list[Chunks]:
        """Return the row groups of the files as a list of `ParquetGroups`, for other processes."""
        # They refer to the files by name. Adjacent row groups of a file are joined up to the chunk size.
        parts: list[list[Any]] = []
        for group in self._groups:
            last = parts[-1] if parts and parts[-1][0].path == group.path else None
            if last is not None and sum(map(_rows, last)) + _rows(group) <= self._step:
                last.append(group)
            else:
                parts.append([group])
        return [self._of(groups) for groups in parts if any(map(_rows, groups))]

    def split_by_box(self, low: NDArray[np.float64], high: NDArray[np.float64]) -> Split | None:
        """Split the row groups by the statistics of the files; one that lacks some may lie in any box."""
        from pyarrow import ArrowInvalid

        box = _box(self._schema, self._names.features, low, high)
        try:
            reached = [bool(group.split_by_row_group(box, self._schema)) for group in self._groups]
        except ArrowInvalid:  # an integer that float64 rounds, which reading refuses
            return None
        largest = np.array([_largest(group, self._names) for group in self._groups])
        outside = ~np.array(reached, dtype=bool) & np.isfinite(largest).all(axis=1)
        if not outside.any() or not np.any(largest[~outside, 0] > 0):
            return None
        here, there = (np.fmax.reduce(largest[which], axis=0) for which in (~outside, outside))
        with np.errstate(all="ignore"):
            heaviest = there[0] * np.where(there <= here, 1.0, there / here)[1:].max()
        near, far = (self._of([self._groups[i] for i in np.flatnonzero(which)]) for which in (~outside, outside))
        return Split(near, far, float(heaviest))

    def _of(self, groups: Sequence[Any]) -> ParquetGroups:
        return ParquetGroups(groups, self._schema, self._names, self._step)

    def is_boolean(self, name: str) -> bool:
        """Return whether a column of the Parquet files holds booleans."""
        return name in self._schema.names and str(self._schema.field(name).type) == "bool"

    def reference(self) -> dict[str, Any]:
        """Return a dictionary with the path, the columns used and a fingerprint of each file, for `reopen`."""
        return self._names.reference("parquet", self.path, self.files)


class ParquetGroups(Chunks):
    """Chunks of row groups of Parquet files; nothing is read before iteration."""

    def __init__(self, groups: Sequence[Any], schema: Any, names: ColumnNames, step: int) -> None:
        self._groups, self._schema, self._names, self._step = groups, schema, names, step
        self.rows = sum(map(_rows, groups))
        self.flat, self.names, self.outputs = names.flat, tuple(names.features), len(names.target)

    def __iter__(self) -> Iterator[Chunk]:
        """Iterate over the chunks of the row groups, in order."""
        from pyarrow import ArrowException

        collected = _Collected(self._names, min(self._step, max(1, self.rows or 1)))
        for group in self._groups:
            start = 0
            try:
                for batch in group.to_batches(
                    self._schema,
                    columns=self._names.all,
                    batch_size=BATCH_ROWS,
                    fragment_scan_options=_scan_options(),
                    use_threads=Path(group.path).stat().st_size > SMALL,
                ):
                    yield from collected.add(batch, group.path, partial(_in_group, group, start))
                    start += batch.num_rows
            except (ArrowException, OSError) as error:
                raise TableError(f"{group.path} is truncated or damaged: {error}") from None
        yield from collected.rest()

    def parts(self) -> list[Chunks]:
        """Return a list of this object alone, as it is not split further."""
        return [self]


def _rows(group: Any) -> int:
    return int(group.row_groups[0].num_rows)


def _largest(group: Any, names: ColumnNames) -> list[float]:
    """Return the largest weight and absolute values of a row group; NaN where the file does not say."""
    stated = group.row_groups[0].statistics or {}

    def size(name: str, default: float = np.nan) -> float:
        return max(abs(float(end)) for end in stated[name].values()) if name in stated else default

    weight = [size(name) for name in names.weight] or [1.0]
    return [*weight, *map(size, names.target)]


def _box(schema: Any, names: Sequence[str], low: NDArray[np.float64], high: NDArray[np.float64]) -> Any:
    """Return the Arrow expression of rows in a box, by the columns whose numbers Arrow compares."""
    from pyarrow import compute, types

    inside = compute.scalar(True)
    for name, *ends in zip(names, low, high, strict=True):
        form = schema.field(name).type
        if arrow_kind(form) and not types.is_duration(form):
            ends = _times_around(form, *ends)
        elif not (types.is_integer(form) or types.is_floating(form)):
            continue
        inside &= (compute.field(name) >= ends[0]) & (compute.field(name) <= ends[1])
    return inside


def _times_around(form: Any, low: float, high: float) -> list[Any]:
    """Return days as scalars of an Arrow type of dates, just before `low` and just after `high`."""
    from pyarrow import int32, int64, scalar, types

    whole = types.is_date32(form)
    per_day = 1 if whole else 86_400 * 1000 ** ["s", "ms", "us", "ns"].index(getattr(form, "unit", "ms"))
    most = 2.0**31 - 1 if whole else 2.0**63 - 2048
    ticks = np.clip([np.floor(low * per_day) - 1, np.ceil(high * per_day) + 1], -most, most)
    return [scalar(int(tick), int32() if whole else int64()).cast(form) for tick in ticks]


class StreamChunks(Chunks):
    """Chunks of an Arrow stream, such as a frame of pandas, polars or DuckDB, or a table or reader of pyarrow."""

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
        from pyarrow import RecordBatchReader

        self._source, self.again = source, not isinstance(source, RecordBatchReader)
        reader = self._reader = RecordBatchReader.from_stream(source)
        schema = reader.schema
        self._names = ColumnNames("the stream", schema.names, features, target, weight, schema.pandas_metadata)
        _check_schema("the stream", schema, "the stream", schema, self._names)
        self.left_out = () if hasattr(source, "iloc") else self._names.left_out  # a frame of pandas has an index
        self.flat, self.names = self._names.flat, tuple(self._names.features)
        self.kinds = _time_kinds(schema, self._names.features)
        self.outputs = len(self._names.target)
        self.rows = len(source) if hasattr(source, "__len__") else None
        self._step = rows or rows_per_chunk(len(self._names.all), memory)

    def __iter__(self) -> Iterator[Chunk]:
        """Iterate over the chunks of the stream; each iteration opens a new stream if the source can make one."""
        from pyarrow import RecordBatchReader

        self._start_reading()
        reader = self._reader if self._reader is not None else RecordBatchReader.from_stream(self._source)
        self._reader, start = None, 0
        collected = _Collected(self._names, min(self._step, max(1, self.rows or self._step)))
        for batch in reader:
            yield from collected.add(batch, "the stream", partial(_in_stream, start))
            start += batch.num_rows
        yield from collected.rest()


def _in_group(group: Any, start: int, row: int, name: str) -> str:
    number = group.row_groups[0].id
    before = sum(group.metadata.row_group(i).num_rows for i in range(number))
    return f"row group {number}, row {before + start + row}, column {name!r}"


def _in_stream(start: int, row: int, name: str) -> str:
    return f"row {start + row}, column {name!r}"


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


def _numbers(label: str, column: Any) -> NDArray[Any]:
    """Return an Arrow array as an array of numbers; dates and durations become days, after a check of their steps."""
    times = times_of(label, column) if arrow_kind(column.type) else None
    if times is None:
        return arrow_numbers(column)
    times.check_steps(label)
    return times.days()


def _check_schema(
    file: Any, schema: Any, first: Any, expected: Any, names: ColumnNames, of_folders: Collection[str] = ()
) -> None:
    for name in names.all:
        if name not in of_folders and name not in schema.names:
            raise TableError(f"{file}: no column {name!r}, which {first} has; columns are {', '.join(schema.names)}")
        kind = (expected if name in of_folders else schema).field(name).type
        advice = names.advice if name in names.features else "convert it to numbers first"
        if not is_real(kind) and not (name in names.features and arrow_kind(kind)):
            raise TableError(f"{file}: column {name!r} holds {kind}, not real numbers; {advice}")
        if kind != expected.field(name).type:
            raise TableError(
                f"{file}: column {name!r} holds {kind}, and {expected.field(name).type} in {first}; "
                "write all files with one schema"
            )
