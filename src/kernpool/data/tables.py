"""Tables in and out: CSV, TSV, Parquet and `.npy`, by suffix; errors name file, row and column."""

from __future__ import annotations

import csv
import io
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from kernpool.data.cells import as_floats, cell_at, is_text, rounded_integer, unreadable, words
from kernpool.data.columns import is_missing
from kernpool.data.files import whole_file
from kernpool.data.integers import would_round

Array = NDArray[np.float64]

COUNTED = "rows are counted from 0"
FORMATS = ("csv", "tsv", "parquet", "npy")


class TableError(ValueError):
    """A table cannot be read, or does not hold what is asked of it."""


@dataclass(frozen=True)
class Advice:
    """What to do about a column that is not as it should be.

    Parameters
    ----------
    cell : str
        About cells that are no numbers.
    column : str
        About a column that holds something else.
    """

    cell: str = "correct or drop such rows"
    column: str = "convert it to numbers first"


@dataclass(frozen=True)
class Table:
    """Named columns of one length, not yet known to be numbers.

    Parameters
    ----------
    source : str
        File name, for messages.
    columns : dict of str to sequence
        Cells: strings from text files, arrays from the others.
    rows : int
        How many rows there are.
    lines : sequence of int, optional
        Line of every row in a text file, for messages.
    """

    source: str
    columns: dict[str, Any]
    rows: int
    lines: Sequence[int] | None = None

    @property
    def names(self) -> list[str]:
        """Names of the columns."""
        return list(self.columns)

    def numbers(self, names: Iterable[str], advice: Advice | None = None) -> Array:
        """Return columns as finite numbers, of shape (rows, len(names)).

        Parameters
        ----------
        names : iterable of str
            Which columns.
        advice : Advice, optional
            What messages advise.

        Raises
        ------
        TableError
            If a column is missing, or a cell is empty, no number, NaN, infinite, or an integer that float64 would
            round; it names file, row and column.
        """
        names = list(names)
        self.need(names)
        return np.column_stack([self._column(name, advice or Advice()) for name in names])

    def labels(self, name: str) -> NDArray[Any]:
        """Return a column of labels, numbers or text, of shape (rows,); spaces around text do not count.

        Raises
        ------
        TableError
            If there is no such column, or a cell is empty; it names file, row and column.
        """
        self.need([name])
        cells = self.columns[name]
        found = cells.to_pylist() if hasattr(cells, "to_pylist") else cells
        array = np.asarray([cell.strip() if isinstance(cell, str) else cell for cell in found])
        if array.ndim != 1:
            raise TableError(f"{self.source}: column {name!r} holds arrays, and groups need one label per row")
        missing = np.array([is_missing(cell) or cell == "" for cell in array.tolist()])
        if missing.any():
            more = f", like {missing.sum() - 1} more cells of this column" if missing.sum() > 1 else ""
            raise TableError(
                f"{self._place(int(missing.argmax()), name)} has no label{more} ({COUNTED}); drop such rows, or give "
                "each a label of its own"
            )
        return array

    def need(self, names: Iterable[str]) -> None:
        """Refuse columns that are not in the table."""
        unknown = [name for name in names if name not in self.columns]
        if unknown:
            raise TableError(f"{self.source}: no column {unknown[0]!r}; columns are {', '.join(map(repr, self.names))}")

    def _column(self, name: str, advice: Advice) -> Array:
        cells = self.columns[name]
        what = unreadable(cells)
        if what is not None:
            raise TableError(f"{self.source}: column {name!r} holds {what}, not real numbers; {advice.column}")
        read = as_floats(cells)
        bad = np.flatnonzero(~np.isfinite(read))
        if is_text(cells, bad):
            raise TableError(
                f"{self.source}: column {name!r} {words(cell_at(cells, 0))} and other text in all of its {self.rows} "
                f"rows, not real numbers; {advice.column}"
            )
        if bad.size:
            more = f", like {bad.size - 1} more cells of this column" if bad.size > 1 else ""
            what = words(cell_at(cells, bad[0]))
            what += "" if what == "is empty" else ", not a finite number"
            raise TableError(f"{self._place(bad[0], name)} {what}{more} ({COUNTED}); {advice.cell}")
        rounded = rounded_integer(cells, read)
        if rounded is not None:
            row, integer = rounded
            raise TableError(f"{self._place(row, name)} holds {would_round(integer)} ({COUNTED})")
        return read

    def _place(self, row: int, name: str) -> str:
        line = "" if self.lines is None else f" (line {self.lines[row]})"
        return f"{self.source}: row {row}{line}, column {name!r}"


def table_format(name: str, override: str | None = None) -> str:
    """Return the format of a file by its suffix, CSV for standard input and output, or the one that overrides it."""
    suffix = override or ("csv" if name == "-" else Path(name).suffix.removeprefix(".").lower())
    if suffix not in FORMATS:
        raise TableError(f"{name}: unknown format {suffix!r}; known are {', '.join(FORMATS)} (by suffix or --format)")
    return suffix


def read_table(name: str, format: str | None = None) -> Table:
    """Read a table.

    Parameters
    ----------
    name : str
        File name, or ``-`` for standard input.
    format : {"csv", "tsv", "parquet", "npy"}, optional
        By suffix if not given.

    Returns
    -------
    Table
        Columns of a text file are named by its first line, those of a plain `.npy` matrix ``"0"``, ``"1"``, ...

    Raises
    ------
    TableError
        If the file is malformed or empty.
    FileNotFoundError
        If there is none.
    """
    format = table_format(name, format)
    source = "standard input" if name == "-" else name
    if format in ("csv", "tsv"):
        if name == "-":
            if sys.stdin is None:
                raise TableError("standard input is closed, so there is no table to read from it")
            return _read_text(io.TextIOWrapper(sys.stdin.buffer, "utf-8-sig", newline=""), source, format)
        with open(name, encoding="utf-8-sig", newline="") as file:
            return _read_text(file, source, format)
    data = io.BytesIO(sys.stdin.buffer.read()) if name == "-" else name
    table = _read_parquet(data, source) if format == "parquet" else _read_npy(data, source)
    if not table.rows:
        raise TableError(f"{source} has no rows")
    return table


def _read_text(file: IO[str], source: str, format: str) -> Table:
    reader = csv.reader(file, delimiter="\t" if format == "tsv" else ",", strict=True)
    try:
        header = next(reader, None)
        if not header:
            raise TableError(f"{source} is empty; the first line must name the columns")
        names = [name.strip() for name in header]
        if len(set(names)) < len(names):
            raise TableError(f"{source}: two columns have the same name; columns are {', '.join(map(repr, names))}")
        rows, lines = [], []
        for row in reader:
            if not row:  # a blank line
                continue
            if len(row) != len(names):
                raise TableError(f"{source}: line {reader.line_num} has {len(row)} cells, the header has {len(names)}")
            rows.append(row)
            lines.append(reader.line_num)
    except (csv.Error, UnicodeDecodeError) as error:
        raise TableError(
            f"{source}: after line {reader.line_num}: {error}; expected UTF-8 text in {format} form"
        ) from None
    if not rows:
        raise TableError(f"{source} has a header and no rows")
    return Table(source, dict(zip(names, zip(*rows, strict=True), strict=True)), len(lines), lines)


def _read_npy(data: Any, source: str) -> Table:
    try:
        array = np.load(data, allow_pickle=False)
    except FileNotFoundError:
        raise
    except Exception as error:  # a damaged header can make NumPy raise nearly anything
        raise TableError(f"{source} is truncated or no .npy file: {error}") from None
    if not isinstance(array, np.ndarray):
        raise TableError(f"{source} is an archive of arrays (.npz), not one array; save the table with np.save")
    if array.dtype.names:
        return Table(source, {name: array.ravel()[name] for name in array.dtype.names}, array.size)
    if array.ndim != 2:
        raise TableError(f"{source}: expected a matrix (rows, columns) or a structured array, got shape {array.shape}")
    return Table(source, {str(i): column for i, column in enumerate(array.T)}, len(array))


def _read_parquet(data: Any, source: str) -> Table:
    parquet = import_parquet()
    from pyarrow import ArrowException

    try:
        table = parquet.read_table(data)
    except ArrowException as error:
        raise TableError(f"{source} is truncated or no Parquet file: {error}") from None
    if len(set(table.column_names)) < len(table.column_names):
        raise TableError(f"{source}: two columns have the same name; columns are {', '.join(table.column_names)}")
    return Table(source, dict(zip(table.column_names, table.itercolumns(), strict=True)), table.num_rows)


def import_parquet() -> Any:
    """Return ``pyarrow.parquet``, or say how to install it."""
    try:
        import pyarrow.parquet
    except ImportError as error:
        raise ImportError(
            'Parquet files need pyarrow, which is not installed; install it with: pip install "kernpool[arrow]"'
        ) from error
    return pyarrow.parquet


def write_table(name: str, columns: dict[str, Array], *, format: str | None = None, force: bool = False) -> None:
    """Write columns to a file, whole or not at all, or to standard output.

    Parameters
    ----------
    name : str
        File name, or ``-``.
    columns : dict of str to ndarray
        Columns of one length.
    format : {"csv", "tsv", "parquet", "npy"}, optional
        By suffix if not given.
    force : bool, default=False
        Overwrite.
    """
    format = table_format(name, format)
    if name == "-":
        if format in ("csv", "tsv"):
            _write_text(sys.stdout, columns, format)
        else:
            buffer = io.BytesIO()
            _write_binary(buffer, columns, format)
            sys.stdout.buffer.write(buffer.getvalue())
        sys.stdout.flush()
        return
    with whole_file(Path(name), force=force) as temporary:
        if format in ("csv", "tsv"):
            with temporary.open("w", encoding="utf-8", newline="") as text:
                _write_text(text, columns, format)
        else:
            with temporary.open("wb") as binary:
                _write_binary(binary, columns, format)


def _write_text(file: IO[str], columns: dict[str, Array], format: str) -> None:
    writer = csv.writer(file, delimiter="\t" if format == "tsv" else ",", lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(zip(*(column.tolist() for column in columns.values()), strict=True))


def _write_binary(file: IO[bytes], columns: dict[str, Array], format: str) -> None:
    if format == "npy":
        np.save(file, np.column_stack(list(columns.values())), allow_pickle=False)
    else:
        parquet = import_parquet()
        import pyarrow

        parquet.write_table(pyarrow.table(columns), file)
