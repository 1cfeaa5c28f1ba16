"""Chunks of Parquet files and Arrow streams: the columns of keys, values and weights, read some rows at a time."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote

import numpy as np
from numpy.typing import NDArray

from kernpool.data.array_validation import SMALL, TableError, import_parquet
from kernpool.data.atomic_files import fingerprint
from kernpool.data.chunks.base import Chunk, Chunks, Split, check_exact, check_finite, rows_per_chunk
from kernpool.data.columns import Kind
from kernpool.data.dates import arrow_kind, times_of
from kernpool.data.number_parsing import arrow_numbers, as_floats, is_code, is_real
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
        """Return a dictionary of the data files and the columns used, by which a saved model finds its data again.

        It has fingerprints of the files, which detect changes.
        """
        return {
            "kind": kind,
            "path": str(path.resolve()),
            "features": self.features,
            "target": self.target[0] if self.flat else self.target,
            "weight": self.weight[0] if self.weight else None,
            "files": {name_in(path, file): fingerprint(file) for file in files},
        }

    def chunk(self, table: Any) -> Chunk:
        """Convert a matrix, whose rows are the columns of keys, values and weights in this order, to a `Chunk`.

        Columns of the arrays of the chunk are contiguous in memory.
        """
        d, c = len(self.features), len(self.target)
        return Chunk(table[:d].T, table[d : d + c].T, table[-1] if self.weight else None)


class _Collected:
    """Buffer that joins Arrow batches into chunks of a fixed number of rows.

    One buffer is in memory at a time.
    """

    def __init__(self, names: ColumnNames, rows: int) -> None:
        self.names, self.filled = names, 0
        self.table = np.empty((len(names.all), rows))

    def add(
        self, batch: Any, source: str, place: Callable[[int, str], str], constants: Mapping[str, float]
    ) -> Iterator[Chunk]:
        """Copy an Arrow batch into the buffer, and yield a `Chunk` whenever the buffer is full.

        Columns named in `constants` have one value in all rows.
        """
        start, rows = 0, self.table.shape[1]
        columns = [
            np.full(batch.num_rows, constants[name])
            if name in constants
            else _numbers(f"{source}: column {name!r}", batch.column(name))
            for name in self.names.all
        ]
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
    """Chunks of a Parquet file, or of all Parquet files of a folder in the order of their names.

    A folder that is partitioned by a column, into folders such as ``year=2020``, has that column.

    Parameters
    ----------
    path : str or Path
        File or folder.
    target : str or sequence of str
        Columns of values.
    features : sequence of str, optional
        Columns of keys; by default all others.
    weight : str, optional
        Column of weights.
    rows : int, optional
        Per chunk.
    memory : int, optional
        Bytes that pooling may take in all, instead of `rows`.
    """

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
        schemas = [_open(file).schema_arrow for file in self.files]
        self._constants = _partition_values(self.path, self.files)
        present = [*schemas[0].names, *(name for name in self._constants[0] if name not in schemas[0].names)]
        names = ColumnNames(str(self.files[0]), present, features, target, weight, schemas[0].pandas_metadata)
        self._names, self.left_out = names, names.left_out
        for file, schema in zip(self.files, schemas, strict=True):
            _check_schema(file, schema, self.files[0], schemas[0], names, self._constants[0])
        self.flat, self.names = self._names.flat, tuple(self._names.features)
        self.kinds = _time_kinds(schemas[0], names.features)
        self.outputs = len(self._names.target)
        self.rows = sum(_open(file).metadata.num_rows for file in self.files)
        self._step = rows or rows_per_chunk(len(self._names.all), memory)

    def __iter__(self) -> Iterator[Chunk]:
        """Iterate over the chunks of all files, in the order of the files."""
        pieces = [FilePiece(*piece) for piece in zip(self.files, self._constants, strict=True)]
        return iter(ParquetGroups(pieces, self._names, self.rows or 0, self._step))

    def parts(self) -> list[Chunks]:
        """Return the row groups of the files as a list of `ParquetGroups`, for other processes.

        They refer to the files by name. Adjacent row groups of a file are joined up to the chunk size.
        """
        parts: list[Chunks] = []
        for file, constants in zip(self.files, self._constants, strict=True):
            first = rows = 0
            for group, size in enumerate([*_group_sizes(_open(file)).tolist(), self._step]):
                if rows and rows + size > self._step:
                    piece = FilePiece(file.absolute(), constants, range(first, group))
                    parts.append(ParquetGroups([piece], self._names, rows, self._step))
                    first, rows = group, 0
                rows += size
        return parts

    def split_by_box(self, low: NDArray[np.float64], high: NDArray[np.float64]) -> Split | None:
        """Split the row groups by the statistics of the files; one that lacks some may lie in any box."""
        found = [_group_ranges(*one, self._names) for one in zip(self.files, self._constants, strict=True)]
        sizes = np.concatenate([rows for rows, _ in found])
        least, most = np.concatenate([ranges for _, ranges in found], axis=2)
        d, c = len(self._names.features), len(self._names.target)
        weight = most[-1] if self._names.weight else np.ones(len(sizes))
        value = np.maximum(np.abs(least), np.abs(most))[d : d + c]
        known = np.isfinite(weight) & np.isfinite(value).all(axis=0) & ~(least > most).any(axis=0)
        outside = ((low > most[:d].T) | (high < least[:d].T)).any(axis=1) & known
        if not outside.any() or not np.any(sizes[~outside & (weight > 0)]):
            return None
        here, there = (np.fmax.reduce(value[:, which], axis=1) for which in (~outside, outside))
        with np.errstate(all="ignore"):
            heaviest = weight[outside].max() * np.where(there <= here, 1.0, there / here).max()
        cuts = np.cumsum([len(rows) for rows, _ in found])[:-1]
        near, far = (
            ParquetGroups(
                [
                    FilePiece(file, constants, np.flatnonzero(some).tolist())
                    for file, constants, some in zip(self.files, self._constants, np.split(which, cuts), strict=True)
                    if some.any()
                ],
                self._names,
                int(sizes[which].sum()),
                self._step,
            )
            for which in (~outside, outside)
        )
        return Split(near, far, float(heaviest))

    def is_boolean(self, name: str) -> bool:
        """Return whether a column of the Parquet files holds booleans."""
        schema = _open(self.files[0]).schema_arrow
        return name in schema.names and str(schema.field(name).type) == "bool"

    def reference(self) -> dict[str, Any]:
        """Return a dictionary with the path, the columns used and a fingerprint of each file, for `reopen`."""
        return self._names.reference("parquet", self.path, self.files)


class FilePiece(NamedTuple):
    """Some row groups of one Parquet file.

    Parameters
    ----------
    file : Path
        The file.
    constants : mapping of str to float
        Values of the columns by which the folder is partitioned.
    groups : sequence of int, optional
        Which row groups, in their order; by default all.
    """

    file: Path
    constants: Mapping[str, Any]
    groups: Sequence[int] | None = None


class ParquetGroups(Chunks):
    """Chunks of row groups of Parquet files; nothing is read before iteration.

    Parameters
    ----------
    pieces : sequence of FilePiece
        Which row groups of which files.
    names : ColumnNames
        Which columns are keys, values and weights.
    rows : int
        How many there are.
    step : int
        Rows per chunk.
    """

    def __init__(self, pieces: Sequence[FilePiece], names: ColumnNames, rows: int, step: int) -> None:
        self.pieces, self._names, self.rows, self._step = pieces, names, rows, step
        self.flat, self.names, self.outputs = names.flat, tuple(names.features), len(names.target)

    def __iter__(self) -> Iterator[Chunk]:
        """Iterate over the chunks of the row groups, in order."""
        collected = _Collected(self._names, min(self._step, max(1, self.rows or 1)))
        for piece in self.pieces:
            yield from _read(piece, self._names, collected)
        yield from collected.rest()

    def parts(self) -> list[Chunks]:
        """Return a list of this object alone, as it is not split further."""
        return [self]


def _read(piece: FilePiece, names: ColumnNames, collected: _Collected) -> Iterator[Chunk]:
    """Yield all full chunks of row groups of a Parquet file; rows that fill no chunk stay in `collected`."""
    from pyarrow import ArrowException

    file, constants, groups = piece
    parquet = _open(file)
    sizes = _group_sizes(parquet)
    chosen = np.arange(len(sizes)) if groups is None else np.array(groups, dtype=np.intp)
    ends, start = np.cumsum(sizes[chosen]), 0
    left_out = np.cumsum(sizes)[chosen] - ends  # rows before each chosen group that are not read
    constants = {name: value for name, value in constants.items() if name not in parquet.schema_arrow.names}
    columns = [name for name in names.all if name not in constants]
    try:
        for batch in parquet.iter_batches(
            batch_size=BATCH_ROWS,
            row_groups=None if groups is None else list(groups),
            columns=columns,
            use_threads=file.stat().st_size > SMALL,
        ):
            yield from collected.add(batch, str(file), partial(_in_group, chosen, ends, left_out, start), constants)
            start += batch.num_rows
    except (ArrowException, OSError) as error:
        raise TableError(f"{file} is truncated or damaged: {error}") from None


def _group_sizes(parquet: Any) -> NDArray[np.int64]:
    metadata = parquet.metadata
    return np.array([metadata.row_group(i).num_rows for i in range(metadata.num_row_groups)], dtype=np.int64)


def _group_ranges(
    file: Path, constants: Mapping[str, Any], names: ColumnNames
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return the number of rows of each row group of a file, and the least and the greatest number of each column.

    The latter, of shape (2, columns, row groups), are in the units in which columns are read, and NaN where the file
    does not say, or says that cells are missing.
    """
    parquet = _open(file)
    metadata, schema = parquet.metadata, parquet.schema_arrow
    paths = [metadata.schema.column(i).path for i in range(metadata.num_columns)]
    ranges = np.full((2, len(names.all), metadata.num_row_groups), np.nan)
    for column, name in enumerate(names.all):
        if name not in schema.names:
            ranges[:, column] = constants[name]
        elif paths.count(name) == 1:  # a field of a nested column may have the path of another column
            place = paths.index(name)
            found = [metadata.row_group(i).column(place).statistics for i in range(metadata.num_row_groups)]
            ranges[:, column] = _ends(found, schema.field(name).type)
    return _group_sizes(parquet), ranges


def _ends(statistics: Sequence[Any], form: Any) -> Any:
    """Return the least and the greatest cell of each row group, of an Arrow type, as numbers; NaN where unknown."""
    from pyarrow import array

    def ends(one: Any) -> tuple[Any, Any]:
        known = one is not None and one.has_min_max and one.null_count == 0
        return (one.min, one.max) if known else (None, None)

    try:
        cells = [array(cells, type=form) for cells in zip(*map(ends, statistics), strict=True)]
        return [np.asarray(_numbers("", one, check=False), dtype=np.float64) for one in cells]
    except (ValueError, TypeError, ArithmeticError, NotImplementedError):
        return np.nan  # of a type whose statistics pyarrow does not convert


class StreamChunks(Chunks):
    """Chunks of an Arrow stream, such as a frame of pandas, polars or DuckDB, or a table or reader of pyarrow.

    Parameters
    ----------
    source : object
        With the method ``__arrow_c_stream__``.
    target, features, weight, rows, memory
        As for `ParquetChunks`.
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
        from pyarrow import RecordBatchReader

        self._source, self.again = source, not isinstance(source, RecordBatchReader)
        reader = self._reader = RecordBatchReader.from_stream(source)
        schema = reader.schema
        self._names = ColumnNames("the stream", schema.names, features, target, weight, schema.pandas_metadata)
        _check_schema("the stream", schema, "the stream", schema, self._names, {})
        self.left_out = () if hasattr(source, "iloc") else self._names.left_out  # a frame of pandas has an index
        self.flat, self.names = self._names.flat, tuple(self._names.features)
        self.kinds = _time_kinds(schema, self._names.features)
        self.outputs = len(self._names.target)
        self.rows = len(source) if hasattr(source, "__len__") else None
        self._step = rows or rows_per_chunk(len(self._names.all), memory)

    def __iter__(self) -> Iterator[Chunk]:
        """Iterate over the chunks of the stream; each iteration opens a new stream if the source can make one."""
        from pyarrow import RecordBatchReader

        reader = self._reader if self._reader is not None else RecordBatchReader.from_stream(self._source)
        self._reader, start = None, 0
        collected = _Collected(self._names, min(self._step, max(1, self.rows or self._step)))
        for batch in reader:
            yield from collected.add(batch, "the stream", partial(_in_stream, start), {})
            start += batch.num_rows
        yield from collected.rest()


def _in_group(
    chosen: NDArray[np.intp],
    ends: NDArray[np.integer],
    left_out: NDArray[np.integer],
    start: int,
    row: int,
    name: str,
) -> str:
    i = int(np.searchsorted(ends, start + row, side="right"))
    return f"row group {chosen[i]}, row {start + row + left_out[i]}, column {name!r}"


def _in_stream(start: int, row: int, name: str) -> str:
    return f"row {start + row}, column {name!r}"


def parquet_files(path: Path) -> list[Path]:
    """Return the Parquet files at a path, sorted by name: the file itself, or those in a folder and its partitions.

    Parameters
    ----------
    path : Path
        A file, or a folder of files whose names end in ``.parquet``, in folders such as ``year=2020`` too; hidden ones,
        which may be in the course of being written, are skipped.

    Returns
    -------
    list of Path
        In the order of their names.

    Raises
    ------
    TableError
        If there is none.
    """
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


def _open(file: Path) -> Any:
    parquet = import_parquet()
    from pyarrow import ArrowException

    try:
        # Row groups are read one at a time: with buffers made beforehand, memory grows with the file.
        return parquet.ParquetFile(file, pre_buffer=False, page_checksum_verification=True)
    except (FileNotFoundError, PermissionError):
        raise
    except (ArrowException, OSError) as error:
        raise TableError(f"{file} is truncated or no Parquet file: {error}") from None


def name_in(folder: Path, file: Path) -> str:
    """Return the path of a data file relative to `folder`, as text; just the file name if `folder` is no folder."""
    return file.relative_to(folder).as_posix() if file != folder and folder.is_dir() else file.name


def _partition_values(folder: Path, files: Sequence[Path]) -> list[dict[str, float | str]]:
    """Return each Parquet file's values of the partition columns, read from folder names such as ``year=2020``.

    They are numbers if all values of a column are and none is a code such as 007, else text.
    """
    written: list[dict[str, str]] = []
    for file in files:
        parts = file.relative_to(folder).parent.parts if file != folder else ()
        pairs = (part.partition("=") for part in parts)
        written.append({unquote(name): unquote(value) for name, _, value in pairs})
        if list(written[-1]) != list(written[0]):
            raise TableError(
                f"{file} lies in folders of {list(written[-1])}, and {files[0]} in those of {list(written[0])}; "
                "partition all files of a folder by the same columns, in the same order"
            )
    values: list[dict[str, float | str]] = [{} for _ in files]
    for name in written[0]:
        cells = [one[name] for one in written]
        read = as_floats(cells)
        numbers = bool(np.isfinite(read).all()) and not any(map(is_code, cells))
        for one, cell in zip(values, read.tolist() if numbers else cells, strict=True):
            one[name] = cell
    return values


def _time_kinds(schema: Any, names: Sequence[str]) -> tuple[Kind, ...] | None:
    """Return the kind of each key column (numeric, date or duration); None if all of them are numeric."""
    found = [arrow_kind(schema.field(name).type) if name in schema.names else None for name in names]
    return tuple(kind or "numeric" for kind in found) if any(found) else None


def _numbers(label: str, column: Any, *, check: bool = True) -> NDArray[Any]:
    """Return an Arrow array as an array of numbers; dates and durations become days, after a check of their steps."""
    times = times_of(label, column) if arrow_kind(column.type) else None
    if times is None:
        return arrow_numbers(column)
    if check:
        times.check_steps(label)
    return times.days()


def _check_schema(
    file: Any, schema: Any, first: Any, expected: Any, names: ColumnNames, constants: Mapping[str, Any]
) -> None:
    for name in names.all:
        if name in constants and name not in schema.names:
            if isinstance(constants[name], str):
                raise TableError(
                    f"{first}: the folder is partitioned by column {name!r}, which holds text such as "
                    f"{constants[name]!r}, not real numbers; {names.advice}"
                )
            continue
        if name not in schema.names:
            raise TableError(f"{file}: no column {name!r}, which {first} has; columns are {', '.join(schema.names)}")
        kind = schema.field(name).type
        advice = names.advice if name in names.features else "convert it to numbers first"
        if not is_real(kind) and not (name in names.features and arrow_kind(kind)):
            raise TableError(f"{file}: column {name!r} holds {kind}, not real numbers; {advice}")
        if kind != expected.field(name).type:
            raise TableError(
                f"{file}: column {name!r} holds {kind}, and {expected.field(name).type} in {first}; "
                "write all files with one schema"
            )
