"""Chunks of Parquet files and of Arrow streams: the columns that are needed, a bounded number of rows at a time."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernpool.data.chunks.base import Chunk, Chunks, check_exact, check_finite, rows_per_chunk
from kernpool.data.files import fingerprint
from kernpool.data.tables import SMALL, TableError, import_parquet

INDEX = re.compile(r"__index_level_\d+__")
BATCH_ROWS = 1 << 17


class ColumnNames:
    """Which columns are keys, values and weights."""

    def __init__(
        self,
        source: str,
        present: Sequence[str],
        features: Sequence[str] | None,
        target: str | Sequence[str],
        weight: str | None,
    ) -> None:
        self.flat = isinstance(target, str)
        self.target = [target] if isinstance(target, str) else list(target)
        self.weight = [] if weight is None else [weight]
        taken = {*self.target, *self.weight}
        # What pandas adds for the labels of rows is not a column of keys, unless the caller names it.
        columns = [name for name in present if name not in taken and not INDEX.fullmatch(name)]
        self.features = columns if features is None else list(features)
        # A caller who named the columns needs no advice to leave one out.
        self.advice = "name the others as features" if features is None else "convert it to numbers first"
        if len(set(present)) < len(present):
            raise TableError(f"{source}: two columns have the same name; columns are {', '.join(map(repr, present))}")
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
        """Keys, values, weight."""
        return [*self.features, *self.target, *self.weight]

    def reference(self, kind: str, path: Path, files: Sequence[Path]) -> dict[str, Any]:
        """Return a reference to these columns of some files, with which changes of the files are detected."""
        return {
            "kind": kind,
            "path": str(path.resolve()),
            "features": self.features,
            "target": self.target[0] if self.flat else self.target,
            "weight": self.weight[0] if self.weight else None,
            "files": {file.name: fingerprint(file) for file in files},
        }

    def chunk(self, table: Any) -> Chunk:
        """Cut a table of all of them, one per row, into a chunk: each column is contiguous, as loops need it."""
        d, c = len(self.features), len(self.target)
        return Chunk(table[:d].T, table[d : d + c].T, table[-1] if self.weight else None)


class _Collected:
    """Batches of Arrow, put together to chunks; one table is held at a time."""

    def __init__(self, names: ColumnNames, rows: int) -> None:
        self.names, self.filled = names, 0
        self.table = np.empty((len(names.all), rows))

    def add(self, batch: Any, source: str, place: Callable[[int, str], str]) -> Iterator[Chunk]:
        """Copy a batch in, and yield each table that gets full."""
        start, rows = 0, self.table.shape[1]
        columns = [batch.column(i).to_numpy(zero_copy_only=False) for i in range(batch.num_columns)]
        for column, name in zip(columns, self.names.all, strict=True):
            check_exact(column, source, lambda row, _: place(row, name))  # noqa: B023  # of this turn
        while start < batch.num_rows:
            stop = min(batch.num_rows, start + rows - self.filled)
            for i, name in enumerate(self.names.all):
                part = self.table[i, self.filled : self.filled + stop - start]
                part[:] = columns[i][start:stop]
                check_finite(part, source, lambda row, _: place(start + row, name))  # noqa: B023  # of this turn
            self.filled += stop - start
            start = stop
            if self.filled == rows:
                yield from self.rest()

    def rest(self) -> Iterator[Chunk]:
        """Yield what has been collected."""
        if self.filled:
            yield self.names.chunk(self.table[:, : self.filled])
            self.filled, self.table = 0, np.empty_like(self.table)


class ParquetChunks(Chunks):
    """Rows of a Parquet file, or of all the Parquet files of a folder in the order of their names.

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
        self._names = ColumnNames(str(self.files[0]), schemas[0].names, features, target, weight)
        for file, schema in zip(self.files, schemas, strict=True):
            _check_schema(file, schema, self.files[0], schemas[0], self._names)
        self.flat, self.names = self._names.flat, tuple(self._names.features)
        self.outputs = len(self._names.target)
        self.rows = sum(_open(file).metadata.num_rows for file in self.files)
        self._step = rows or rows_per_chunk(len(self._names.all), memory)

    def __iter__(self) -> Iterator[Chunk]:
        """Go through the files."""
        collected = _Collected(self._names, min(self._step, max(1, self.rows or 1)))
        for file in self.files:
            yield from _read(file, None, self._names, collected)
        yield from collected.rest()

    def parts(self) -> list[Chunks]:
        """Return row groups, by the names of the files; adjacent ones are joined up to the rows of a chunk."""
        parts: list[Chunks] = []
        for file in self.files:
            metadata = _open(file).metadata
            sizes = [metadata.row_group(i).num_rows for i in range(metadata.num_row_groups)]
            first = rows = 0
            for group, size in enumerate([*sizes, self._step]):
                if rows and rows + size > self._step:
                    parts.append(ParquetGroups(file.absolute(), range(first, group), self._names, rows, self._step))
                    first, rows = group, 0
                rows += size
        return parts

    def reference(self) -> dict[str, Any]:
        """Name the files and the columns, with a fingerprint of each file."""
        return self._names.reference("parquet", self.path, self.files)


class ParquetGroups(Chunks):
    """Some row groups of a Parquet file: their numbers; nothing is read before iteration.

    Parameters
    ----------
    file : Path
        The file.
    groups : range
        Which row groups.
    names : ColumnNames
        Which columns are keys, values and weights.
    rows : int
        How many there are.
    step : int
        Rows per chunk.
    """

    def __init__(self, file: Path, groups: range, names: ColumnNames, rows: int, step: int) -> None:
        self.file, self.groups, self._names, self.rows, self._step = file, groups, names, rows, step
        self.flat, self.names, self.outputs = names.flat, tuple(names.features), len(names.target)

    def __iter__(self) -> Iterator[Chunk]:
        """Read them."""
        collected = _Collected(self._names, min(self._step, max(1, self.rows or 1)))
        yield from _read(self.file, self.groups, self._names, collected)
        yield from collected.rest()

    def parts(self) -> list[Chunks]:
        """Return these row groups: one part."""
        return [self]


def _read(file: Path, groups: range | None, names: ColumnNames, collected: _Collected) -> Iterator[Chunk]:
    """Yield the chunks that get full with some row groups of a file, None for all."""
    from pyarrow import ArrowException

    parquet = _open(file)
    ends = np.cumsum([parquet.metadata.row_group(i).num_rows for i in range(parquet.num_row_groups)])
    start = int(ends[groups.start - 1]) if groups is not None and groups.start else 0
    chosen = None if groups is None else list(groups)
    try:
        for batch in parquet.iter_batches(
            batch_size=BATCH_ROWS, row_groups=chosen, columns=names.all, use_threads=file.stat().st_size > SMALL
        ):
            yield from collected.add(batch.select(names.all), str(file), partial(_in_group, ends, start))
            start += batch.num_rows
    except (ArrowException, OSError) as error:
        raise TableError(f"{file} is truncated or damaged: {error}") from None


class StreamChunks(Chunks):
    """Rows of anything with an Arrow stream: frames of pandas, polars, DuckDB, tables and readers of pyarrow.

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
        self._names = ColumnNames("the stream", reader.schema.names, features, target, weight)
        _check_schema("the stream", reader.schema, "the stream", reader.schema, self._names)
        self.flat, self.names = self._names.flat, tuple(self._names.features)
        self.outputs = len(self._names.target)
        self.rows = len(source) if hasattr(source, "__len__") else None
        self._step = rows or rows_per_chunk(len(self._names.all), memory)

    def __iter__(self) -> Iterator[Chunk]:
        """Go through the stream; a new one each time, if there is one."""
        from pyarrow import RecordBatchReader

        reader = self._reader if self._reader is not None else RecordBatchReader.from_stream(self._source)
        self._reader, start = None, 0
        collected = _Collected(self._names, min(self._step, max(1, self.rows or self._step)))
        for batch in reader:
            yield from collected.add(batch.select(self._names.all), "the stream", partial(_in_stream, start))
            start += batch.num_rows
        yield from collected.rest()


def _in_group(ends: NDArray[np.integer], start: int, row: int, name: str) -> str:
    group = int(np.searchsorted(ends, start + row, side="right"))
    return f"row group {group}, row {start + row}, column {name!r}"


def _in_stream(start: int, row: int, name: str) -> str:
    return f"row {start + row}, column {name!r}"


def parquet_files(path: Path) -> list[Path]:
    """Return the Parquet files that a path stands for.

    Parameters
    ----------
    path : Path
        A file, or a folder of files whose names end in ``.parquet``; hidden ones, which may be in the course of being
        written, are skipped.

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
    files = sorted(file for file in path.iterdir() if file.suffix == ".parquet" and file.name[0] != ".")
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


def _check_schema(file: Any, schema: Any, first: Any, expected: Any, names: ColumnNames) -> None:
    from pyarrow import types

    for name in names.all:
        if name not in schema.names:
            raise TableError(f"{file}: no column {name!r}, which {first} has; columns are {', '.join(schema.names)}")
        kind = schema.field(name).type
        advice = names.advice if name in names.features else "convert it to numbers first"
        if not (types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind)):
            raise TableError(f"{file}: column {name!r} holds {kind}, not real numbers; {advice}")
        if kind != expected.field(name).type:
            raise TableError(
                f"{file}: column {name!r} holds {kind}, and {expected.field(name).type} in {first}; "
                "write all files with one schema"
            )
