"""Opening of data sources as chunks: arrays, memory maps, `.npy` and Parquet files, Arrow streams, iterators."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import copy
from pathlib import Path
from typing import Any

import numpy as np

from kernpool._arrays import AnyArray
from kernpool.data.array_validation import TableError, as_real_array, dates_refused, in_words
from kernpool.data.chunks.base import ArrayChunks, Chunk, Chunks, IteratedChunks, check_exact, check_finite
from kernpool.data.chunks.parquet import NamedChunks, ParquetChunks, StreamChunks
from kernpool.data.columns import Kind
from kernpool.data.suspect_columns import SuspectColumnWarning
from kernpool.execution import warn_caller

Names = str | Sequence[str]


class NpyChunks(NamedChunks):
    """Chunks of a memory-mapped `.npy` file: a matrix with columns named "0", "1", ..., or a structured array."""

    def _open(self, source: str | Path) -> tuple[str, Sequence[str], None]:
        self.path = Path(source).absolute()  # a model may look for it from another folder
        try:
            table = self._table()
        except Exception as error:  # a damaged header can make NumPy raise nearly anything
            raise TableError(f"{self.path} is truncated or no .npy file of numbers: {error}") from None
        if not isinstance(table, np.ndarray) or table.ndim != (1 if table.dtype.names else 2):
            raise TableError(
                f"{self.path}: expected one array, a matrix (rows, columns) or a one-dimensional array with named "
                "columns; save such an array with numpy.save"
            )
        self._first, self.rows, self._dtype = 0, len(table), table.dtype
        return str(self.path), table.dtype.names or [str(i) for i in range(table.shape[1])], None

    def _table(self) -> Any:
        return np.load(self.path, mmap_mode="r", allow_pickle=False)

    def _check(self) -> None:
        for name in self._names.all:
            kind = self._dtype[name] if self._dtype.names else self._dtype
            as_real_array(f"{self.path}: column {name!r}", np.empty(0, kind))  # refuses what is no real number

    def __iter__(self) -> Iterator[Chunk]:
        """Iterate over the chunks of the file, which are ranges of its rows."""
        table = self._table()
        for start, stop in self._ends():
            yield self._chunk(table[start:stop], start)

    def _ends(self) -> Iterator[tuple[int, int]]:
        last = self._first + (self.rows or 0)
        for start in range(self._first, last, self._step):
            yield start, min(start + self._step, last)

    def _chunk(self, block: AnyArray, start: int) -> Chunk:
        names = self._names.all
        numbers = np.empty((len(names), len(block)))

        def place(row: int, i: int) -> str:
            return f"row {start + row}, column {names[i]!r}"

        for i, name in enumerate(names):
            column = block[name] if block.dtype.names else block[:, int(name)]
            check_exact(column, str(self.path), lambda row, _: place(row, i))  # noqa: B023  # called at once
            numbers[i] = column
        check_finite(numbers.T, str(self.path), place)
        return self._names.chunk(numbers)

    def parts(self) -> list[Chunks]:
        """Return the rows of each chunk, for other processes, which open the file by name."""
        parts: list[Chunks] = []
        for start, stop in self._ends():
            part = copy(self)
            part._first, part.rows = start, stop - start
            parts.append(part)
        return parts

    def reference(self) -> dict[str, Any]:
        """Return a dictionary with the path, the columns used and a fingerprint of the file, for `reopen`."""
        return self._names.reference("npy", self.path, [self.path])


def open_chunks(
    source: Any,
    value: Any = None,
    weight: Any = None,
    *,
    target: Names | None = None,
    features: Sequence[str] | None = None,
    rows: int | None = None,
    memory: int | None = None,
) -> Chunks:
    """Open data as chunks of keys and values: files, folders, streams, arrays or iterables.

    Parameters
    ----------
    source : object
        A Parquet file or a folder of such files, which may be partitioned by columns (``year=2020``); a `.npy` file;
        anything with an Arrow stream (frames of pandas, polars, DuckDB, tables of pyarrow); keys as an array or a
        memory map, with `value`; or an iterable of ``(key, value)`` or ``(key, value, weight)``.
    value : array_like of shape (n,) or (n, c), optional
        Values of keys that are an array.
    weight : str or array_like of shape (n,), optional
        Column of weights, or the weights of keys that are an array.
    target : str or sequence of str
        Columns of values of a file or a stream.
    features : sequence of str, optional
        Columns of keys of a file or a stream; by default all others.
    rows : int, optional
        Pairs per chunk; by default so many that a chunk takes 64 MiB.
    memory : int, optional
        Bytes that pooling may take, from which `rows` follows.

    Returns
    -------
    Chunks
        To be given to `pool`, or to ``fit`` of an estimator.

    Warns
    -----
    SuspectColumnWarning
        If columns are excluded because they hold labels of rows, as pandas writes its index to files.

    Raises
    ------
    TableError
        If a file is damaged, a column is missing or does not hold numbers, or files differ in their schemas. A number
        that is not finite is found when its chunk is read; the message gives file, row group, row and column.

    Examples
    --------
    >>> from kernpool import open_chunks, pool
    >>> pairs = [([0.0, 1.0], [1.0, 2.0]), ([2.0], [3.0])]
    >>> pool([1.0], open_chunks(pairs))
    array([2.])
    """
    if isinstance(source, Chunks):
        return source
    if isinstance(source, str | Path) and not Path(source).exists():
        raise FileNotFoundError(f"{source} does not exist")
    if isinstance(source, str | Path) or (value is None and hasattr(source, "__arrow_c_stream__")):
        if target is None:
            raise TypeError(
                "target must name the column of values, or the columns, of a file or a stream: open it with "
                "open_chunks(source, target=...), and give what that returns to pool"
            )
        kind: type[NamedChunks] = StreamChunks
        if isinstance(source, str | Path):
            kind = NpyChunks if Path(source).suffix == ".npy" else ParquetChunks
        chunks = kind(source, target=target, features=features, weight=weight, rows=rows, memory=memory)
        if chunks.left_out:  # never columns that the caller names
            warn_caller(
                f"{in_words(chunks.left_out)} labels of rows, and no column of keys is made of them; name the columns "
                "of keys in features= to choose",
                SuspectColumnWarning,
            )
        return chunks
    if value is not None:
        return ArrayChunks(source, value, weight, rows=rows)
    if isinstance(source, np.ndarray | tuple) or not hasattr(source, "__iter__"):
        raise TypeError(
            f"source must be a file, an Arrow stream, keys with value=, or a list or an iterator of "
            f"(key, value), got {type(source).__name__}"
        )
    return IteratedChunks(source, rows=rows)


def refuse_keys_alone(key: Any) -> None:
    """Raise TypeError if `pool` was given keys without values, instead of chunks of keys and values."""
    alone = key is None or isinstance(key, int | float | range) or hasattr(key, "__array__")
    if isinstance(key, list | tuple) and key:
        first = key[0]
        alone = not isinstance(first, list | tuple) or any(isinstance(part, int | float | np.number) for part in first)
    if alone:
        raise TypeError(
            "value is missing: pool(query, key, value) needs a value for each key. Without value, key must be chunks "
            "of both: an iterable of (key, value) or (key, value, weight), or what open_chunks returns; for a table "
            f"that holds values in a column, open_chunks(table, target=...). Got {type(key).__name__}"
        )


def refuse_dates(labels: Sequence[Any] | None, kinds: Sequence[Kind] | None) -> None:
    """Raise TypeError if key columns of these labels, and of these kinds, are dates or durations."""
    for i, kind in enumerate(kinds or ()):
        if kind != "numeric":
            raise TypeError(
                f"{dates_refused(f'key, column {(labels[i] if labels else i)!r},', f'the kind {kind!r}')}. Or fit "
                "NadarayaWatsonRegressor, which reads dates"
            )


def reopen(reference: dict[str, Any], *, memory: int | None = None) -> Chunks:
    """Open the data files that a saved model refers to; raise TableError if they are missing or have changed."""
    path = Path(reference["path"])
    options = {name: reference[name] for name in ("target", "features", "weight")}
    remedy = "put the data back, or fit again"
    if not path.exists():
        raise TableError(f"{path}, which the model was fitted to, does not exist; {remedy}")
    chunks = (NpyChunks if reference["kind"] == "npy" else ParquetChunks)(path, memory=memory, **options)
    found = chunks.reference()["files"]
    for name, recorded in reference["files"].items():
        if found.pop(name, None) != recorded:
            raise TableError(f"{path}: {name} is missing, or not the file that the model was fitted to; {remedy}")
    if found:
        raise TableError(f"{path}: {next(iter(found))} was not there when the model was fitted; {remedy}")
    return chunks
