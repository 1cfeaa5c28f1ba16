"""Table formats: reading and writing of CSV, TSV, Parquet and `.npy`, chosen by the file suffix unless given.

Tables are written whole or some rows at a time, into a file that appears under its name once it is complete.

Spreadsheets run text that begins with ``=``, ``+``, ``-`` or ``@`` as a formula. In CSV and TSV such column names and
such text get an apostrophe in front, as OWASP recommends; cells that are kept from the input are not changed.
"""

import csv
import io
import re
import sys
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from kernpool.data import MISSING, SMALL, TableError, import_parquet, row_labels
from kernpool.data.atomic_files import whole_file
from kernpool.execution.error_messages import abbreviate
from kernpool.tables.table import Table, table_format

NAMED = {"comma": ",", "semicolon": ";", "tab": "\t", "pipe": "|", "space": " "}
SUFFIXES = ("gz", "bz2", "xz", "zst")


@dataclass(frozen=True)
class TextFormat:
    """Format of a text table: separator, decimal sign, encoding, and markers of missing cells in lower case."""

    separator: str | None = None
    decimal: str | None = None
    encoding: str = "utf-8-sig"
    blanks: frozenset[str] = MISSING


PLAIN = TextFormat()


def as_separator(given: str) -> str:
    r"""Return the separator character that a value of ``--sep`` stands for, such as ``;`` for ``semicolon``.

    Examples
    --------
    >>> as_separator("semicolon"), as_separator("tab"), as_separator("^")
    (';', '\t', '^')
    """
    separator = NAMED.get(given.lower(), given)
    if len(separator) != 1 or separator in '"\r\n' or separator.isalnum():
        raise ValueError(f"--sep must be one character, or one of {', '.join(NAMED)}; got {abbreviate(given)}")
    return separator


def input_format(name: str, override: str | None = None) -> str:
    """Return the table format of an input file: the given one, else the one that its suffix names.

    A suffix of a compression, such as ``.gz``, is ignored. A folder with Parquet files is Parquet.

    Examples
    --------
    >>> input_format("table.csv.gz"), input_format("table.txt"), input_format("-")
    ('csv', 'csv', 'csv')
    """
    path = Path(name)
    if override is None and name != "-" and path.is_dir() and next(path.rglob("*.parquet"), None) is not None:
        return "parquet"
    if override is None and path.suffix.removeprefix(".").lower() in SUFFIXES:
        path = path.with_suffix("")
    if override is None and path.suffix.lower() in (".txt", ".dat", ".data", ".tab"):
        return "csv"  # whose separator is found
    return table_format(name if name == "-" else str(path), override)


def read_table(name: str, format: str | None = None, form: TextFormat = PLAIN) -> Table:
    """Read a table from a file or standard input.

    Parameters
    ----------
    name : str
        File name, or ``-`` for standard input.
    format : {"csv", "tsv", "parquet", "npy"}, optional
        By suffix if not given.
    form : TextFormat, optional
        How text is written.

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
    format = input_format(name, format)
    source = "standard input" if name == "-" else name
    if format in ("csv", "tsv"):
        if name == "-" and sys.stdin is None:
            raise TableError("standard input is closed, so there is no table to read from it")
        return _read_text(sys.stdin.buffer if name == "-" else name, source, format, form)
    binary = io.BytesIO(sys.stdin.buffer.read()) if name == "-" else name
    table = _read_parquet(binary, source) if format == "parquet" else _read_npy(binary, source)
    if not table.rows:
        raise TableError(f"{source} has no rows")
    return replace(table, blanks=form.blanks)


def _read_text(data: Any, source: str, format: str, form: TextFormat) -> Table:
    try:
        import pandas
    except ImportError as error:
        raise ImportError('text tables need pandas; install it with: pip install "kernpool[cli]"') from error
    separator = form.separator or ("\t" if format == "tsv" else ",")
    how: Any = {"sep": r"\s+" if separator == " " else separator, "encoding": form.encoding, "skipinitialspace": True}
    try:
        frame = pandas.read_csv(data, dtype=str, keep_default_na=False, na_filter=False, **how)
    except FileNotFoundError:
        raise
    except pandas.errors.EmptyDataError:
        raise TableError(f"{source} is empty; the first line has to name the columns") from None
    except (ValueError, OSError, EOFError) as error:  # malformed, another encoding, or a damaged archive
        said = f"{source} cannot be read as {format}: {error}"
        raise TableError(f"{said}; --sep and --encoding say how it is written") from None
    if not isinstance(frame.index, pandas.RangeIndex):
        raise TableError(
            f"{source}: rows have more cells than the first line has names; name every column, or say --sep"
        )
    if not len(frame):
        raise TableError(f"{source} has no rows")
    columns = {str(name).strip(): frame[name].tolist() for name in frame.columns}
    return Table(source, columns, len(frame), form.decimal, form.blanks, row_labels=row_labels([*columns]))


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
    from pyarrow.dataset import HivePartitioning

    try:
        if isinstance(data, str) and Path(data).is_dir():
            # Columns by which it is partitioned are text or numbers, and not categories.
            table = parquet.read_table(data, partitioning=HivePartitioning.discover(infer_dictionary=False))
        else:
            size = data.getbuffer().nbytes if isinstance(data, io.BytesIO) else Path(data).stat().st_size
            with parquet.ParquetFile(data, pre_buffer=size > SMALL) as file:
                table = file.read(use_threads=size > SMALL)
    except ArrowException as error:
        raise TableError(f"{source} is truncated or no Parquet file: {error}") from None
    if len(set(table.column_names)) < len(table.column_names):
        raise TableError(
            f"{source}: two columns have the same name; rename one of them. Columns are {', '.join(table.column_names)}"
        )
    columns = dict(zip(table.column_names, table.itercolumns(), strict=True))
    labels = row_labels(table.column_names, table.schema.pandas_metadata)
    return Table(source, columns, table.num_rows, row_labels=labels)


Array = NDArray[np.float64]
Write = Callable[[Array], None]

# What spreadsheets run; a sign alone and a number with a sign are no formulas.
FORMULA = re.compile(r"[=@\t\r]|[+-](?!$|\d*\.?\d+(e[+-]?\d+)?$|\d+\.$)", re.IGNORECASE)
TEXT_ROWS = 1 << 16  # numbers as Python objects take ten times the memory


@contextmanager
def row_writer(name: str, columns: Sequence[str], rows: int, *, force: bool = False) -> Iterator[Write]:
    """Open an output file for a numeric table, and yield a function that appends rows to it.

    Parameters
    ----------
    name : str
        File, whose suffix determines the format, or ``-`` for CSV on standard output.
    columns : sequence of str
        Names of the columns.
    rows : int
        How many rows will come.
    force : bool, default=False
        Overwrite.

    Yields
    ------
    callable
        Takes the next rows, an array of shape (some, columns).

    Raises
    ------
    OSError
        If the disk is full, naming `name`; no partial file remains.

    Examples
    --------
    >>> with row_writer("-", ["y"], 2) as write:
    ...     write(np.array([[1.0], [2.5]]))
    y
    1.0
    2.5
    """
    format = table_format(name)
    if name == "-":
        write = _text(sys.stdout, columns, format)
        yield write
        sys.stdout.flush()
        return
    with whole_file(Path(name), force=force) as temporary:
        if format in ("csv", "tsv"):
            with temporary.open("w", encoding="utf-8", newline="") as text:
                yield _text(text, columns, format)
        else:
            with (
                temporary.open("wb") as binary,
                (_npy if format == "npy" else _parquet)(binary, columns, rows) as write,
            ):
                yield write


def _text(file: IO[str], columns: Sequence[str], format: str) -> Write:
    writer = csv.writer(file, delimiter="\t" if format == "tsv" else ",", lineterminator="\n")
    writer.writerow(map(no_formula, columns))

    def write(block: Array) -> None:
        for start in range(0, len(block), TEXT_ROWS):
            writer.writerows(block[start : start + TEXT_ROWS].tolist())

    return write


@contextmanager
def _npy(file: IO[bytes], columns: Sequence[str], rows: int) -> Iterator[Write]:
    # The header says how many rows there are; a memory map would end in a signal on a full disk.
    described = np.lib.format.header_data_from_array_1_0(np.empty((0, len(columns))))
    np.lib.format.write_array_header_1_0(file, described | {"shape": (rows, len(columns)), "fortran_order": False})

    def write(block: Array) -> None:
        file.write(np.ascontiguousarray(block, dtype=np.float64).tobytes())

    yield write


@contextmanager
def _parquet(file: IO[bytes], columns: Sequence[str], _: int) -> Iterator[Write]:
    parquet = import_parquet()
    import pyarrow

    schema = pyarrow.schema([(name, pyarrow.float64()) for name in columns])
    writer: Any = parquet.ParquetWriter(file, schema)

    def write(block: Array) -> None:
        writer.write_table(pyarrow.Table.from_arrays([pyarrow.array(column) for column in block.T], schema=schema))

    try:
        yield write
    except BaseException:
        with suppress(Exception):  # it would write a footer, and fail again
            writer.close()
        raise
    writer.close()


def no_formula(cell: Any) -> Any:
    """Return a cell for a text file, with an apostrophe in front if spreadsheets would run it as a formula.

    Examples
    --------
    >>> [no_formula(cell) for cell in ("=1+1", "@a", "-x", "-1.5", "+", "a", -2.0)]
    ["'=1+1", "'@a", "'-x", '-1.5', '+', 'a', -2.0]
    """
    return f"'{cell}" if isinstance(cell, str) and FORMULA.match(cell) else cell


def write_table(
    name: str,
    columns: Mapping[str, Any],
    *,
    format: str | None = None,
    force: bool = False,
    kept: Collection[str] = (),
) -> None:
    """Write a table of columns to a file, completely or not at all, or to standard output.

    Parameters
    ----------
    name : str
        File name, or ``-``.
    columns : mapping of str to ndarray or list
        Columns of one length, of numbers or of text.
    format : {"csv", "tsv", "parquet", "npy"}, optional
        By suffix if not given.
    force : bool, default=False
        Overwrite.
    kept : collection of str
        Columns whose cells are those of an input, and are written as they are.
    """
    format = table_format(name, format)
    if name == "-":
        if format in ("csv", "tsv"):
            _write_text(sys.stdout, columns, format, kept)
        else:
            buffer = io.BytesIO()
            _write_binary(buffer, columns, format)
            sys.stdout.buffer.write(buffer.getvalue())
        sys.stdout.flush()
        return
    with whole_file(Path(name), force=force) as temporary:
        if format in ("csv", "tsv"):
            with temporary.open("w", encoding="utf-8", newline="") as text:
                _write_text(text, columns, format, kept)
        else:
            with temporary.open("wb") as binary:
                _write_binary(binary, columns, format)


def _write_text(file: IO[str], columns: Mapping[str, Any], format: str, kept: Collection[str]) -> None:
    writer = csv.writer(file, delimiter="\t" if format == "tsv" else ",", lineterminator="\n")
    writer.writerow(map(no_formula, columns))
    lists = []
    for name, column in columns.items():
        is_number = isinstance(column, np.ndarray) and column.dtype.kind in "fiub"
        cells = column.tolist() if isinstance(column, np.ndarray) else column
        lists.append(cells if is_number or name in kept else map(no_formula, cells))
    writer.writerows(zip(*lists, strict=True))


def _write_binary(file: IO[bytes], columns: Mapping[str, Any], format: str) -> None:
    if format == "npy":
        text = [name for name, column in columns.items() if np.asarray(column).dtype.kind not in "fiub"]
        if text:
            raise TableError(f"a .npy file holds numbers, and column {text[0]!r} is text; write .csv or .parquet")
        np.save(file, np.asarray(np.column_stack(list(columns.values()))), allow_pickle=False)  # not of masked arrays
    else:
        parquet = import_parquet()
        import pyarrow

        parquet.write_table(pyarrow.table(dict(columns)), file)
