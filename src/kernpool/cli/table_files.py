"""Files of tables as pandas frames: CSV, TSV, Parquet and `.npy`, by the file suffix unless given.

Tables are written whole or some rows at a time, into a file that appears under its name once it is complete.

Spreadsheets run text that begins with ``=``, ``+``, ``-`` or ``@`` as a formula. In CSV and TSV such column names and
such text get an apostrophe in front, as OWASP recommends; cells that are kept from the input are not changed.
"""

import csv
import io
import re
import sys
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import IO, Any

import numpy as np

from kernpool.data import TableError, import_parquet, row_labels
from kernpool.data.atomic_files import whole_file

FORMATS = ("csv", "tsv", "parquet", "npy")
OTHERS = dict.fromkeys(("xlsx", "xls", "xlsm", "ods"), "is a spreadsheet; save the sheet as CSV")
OTHERS |= dict.fromkeys(("zip", "7z", "rar", "tar", "tgz"), "is an archive; unpack it, and name the table")
PACKED = ("gz", "bz2", "xz", "zst")
MISSING = ("n.a.", "none", "-", ".", "?")  # as well as what pandas knows
LOOKED_AT = 50  # lines, for the separator


def import_pandas() -> Any:
    """Return the module pandas; raise ImportError that names the extra if it is not installed."""
    try:
        return import_module("pandas")
    except ImportError as error:
        raise ImportError('tables need pandas; install it with: pip install "kernpool[cli]"') from error


def table_format(name: str, override: str | None = None) -> str:
    """Return the table format of a file: the given one, else that of its suffix; CSV for standard input and output."""
    suffix = override or ("csv" if name == "-" else Path(name).suffix.removeprefix(".").lower())
    if suffix not in FORMATS and override is None and (suffix in OTHERS or Path(name).is_dir()):
        raise TableError(f"{name} {OTHERS.get(suffix, 'is a folder; name a file in it')}")
    if suffix not in FORMATS:
        raise TableError(f"{name}: unknown format {suffix!r}; known are {', '.join(FORMATS)} (by suffix or --format)")
    return suffix


def input_format(name: str, override: str | None = None) -> str:
    """Return the table format of an input file: the given one, else the one that its suffix names."""
    path = Path(name)
    if override is not None or name == "-":
        return table_format(name, override)
    if path.is_dir() and next(path.rglob("*.parquet"), None) is not None:
        return "parquet"
    path = path.with_suffix("") if path.suffix.removeprefix(".").lower() in PACKED else path
    return "csv" if path.suffix.lower() in (".txt", ".dat", ".data", ".tab") else table_format(str(path))


@dataclass(frozen=True)
class Table:
    """Table read from a file."""

    source: str
    frame: Any  # the index counts the rows of the file from 0
    labels: tuple[str, ...]  # columns that hold labels of rows, as pandas writes its index
    notes: list[str]  # what was assumed in reading it; extended as columns are read
    data: Any = None  # what pandas.read_csv read; None for other formats
    how: dict[str, Any] | None = None

    @cached_property
    def _text(self) -> Any:
        text = _read_csv(self.data, {**(self.how or {}), "dtype": str, "na_filter": False, "na_values": None})
        return text.set_axis(self.frame.columns, axis=1)  # names without the blanks around them

    def as_written(self, name: str) -> Any:
        """Return a column with its cells as they are written, of a text file; of other files as they were read."""
        if self.how is None:
            return self.frame[name]
        return self._text[name].loc[self.frame.index].str.strip()


def read_table(name: str, format: str | None, how: dict[str, Any]) -> Table:
    """Read a table from a file or standard input."""
    # columns of a plain `.npy` matrix are named "0", "1", ...
    pandas = import_pandas()
    format, source, notes = input_format(name, format), "standard input" if name == "-" else name, list[str]()
    if name == "-" and sys.stdin is None:
        raise TableError("standard input is closed, so there is no table to read from it")
    data: Any = io.BytesIO(sys.stdin.buffer.read()) if name == "-" else name
    is_text = format in ("csv", "tsv")
    try:
        if is_text:
            how = {"sep": "\t"} | how if format == "tsv" else how
            how = _with_separator(data, how, notes)
            frame = _read_csv(data, how)
        else:
            frame = _read_npy(data) if format == "npy" else _read_parquet(data)
    except (FileNotFoundError, ImportError, TableError):
        raise
    except pandas.errors.EmptyDataError:
        raise TableError(f"{source} is empty; the first line has to name the columns") from None
    except Exception as error:  # damaged files and archives can make their readers raise nearly anything
        remedy = "; --sep and --encoding say how it is written" if is_text else ""
        raise TableError(f"{source} cannot be read as {format}: {error}{remedy}") from None
    if not isinstance(frame.index, pandas.RangeIndex) and is_text:
        raise TableError(f"{source}: rows have more cells than the first line names; name every column, or say --sep")
    index = [name for name in frame.index.names if name is not None]
    frame = frame.reset_index(drop=not index)
    frame.columns = [str(name).strip() for name in frame.columns]
    if frame.columns.has_duplicates:
        raise TableError(f"{source}: two columns have the same name; rename one. Columns are {', '.join(frame)}")
    if not len(frame):
        raise TableError(f"{source} has no rows")
    if not is_text and "keep_default_na" in how:
        numbers = pandas.to_numeric(pandas.Series(how["na_values"]), errors="coerce").dropna()
        frame = frame.mask(frame.isin([*how["na_values"], *numbers]))
    labels = (*index, *row_labels([*frame.columns]))
    return Table(source, frame, labels, notes, *((data, how) if is_text else ()))


def _with_separator(data: Any, how: dict[str, Any], notes: list[str]) -> dict[str, Any]:
    """Return the arguments of `pandas.read_csv` with the separator that the first lines show, unless it is given."""
    if "sep" in how:
        return how
    plain = {"sep": "\x1f", "quoting": csv.QUOTE_NONE, "header": None, "nrows": LOOKED_AT, "dtype": str}
    sample = "\n".join(_read_csv(data, how | plain)[0].astype(str))
    with suppress(csv.Error):
        how = {"sep": csv.Sniffer().sniff(sample, ",;\t").delimiter} | how
    if how.get("sep") == ";" and "decimal" not in how and re.search(r"\d,\d", sample):
        how = {"decimal": ","} | how
    if how.get("sep", ",") != ",":
        commas = " and decimal commas" if how.get("decimal") == "," else ""
        notes.append(f"read with {how['sep']!r} between columns{commas}; --sep and --decimal say otherwise")
    return how


def _read_csv(data: Any, how: dict[str, Any]) -> Any:
    if isinstance(data, io.BytesIO):
        data.seek(0)
    spaces = {"sep": r"\s+"} if how.get("sep") == " " else {}
    return import_pandas().read_csv(data, **{"skipinitialspace": True} | how | spaces)


def _read_npy(data: Any) -> Any:
    array = np.load(data, allow_pickle=False)
    if not isinstance(array, np.ndarray):
        raise TableError(f"{data} is an archive of arrays (.npz), not one array; save the table with np.save")
    return import_pandas().DataFrame(array.astype(array.dtype.newbyteorder("="), copy=False))


def _read_parquet(data: Any) -> Any:
    parquet = import_parquet()
    from pyarrow.dataset import HivePartitioning

    # Columns by which a folder is partitioned are text or numbers, and not categories.
    return parquet.read_table(data, partitioning=HivePartitioning.discover()).to_pandas()


# What spreadsheets run; a sign alone and a number with a sign are no formulas.
FORMULA = re.compile(r"[=@\t\r]|[+-](?!$|\d*\.?\d+(e[+-]?\d+)?$|\d+\.$)", re.IGNORECASE)


def no_formula(cell: Any) -> Any:
    """Return a cell for a text file, with an apostrophe in front if spreadsheets would run it as a formula."""
    return f"'{cell}" if isinstance(cell, str) and FORMULA.match(cell) else cell


Write = Callable[[Any], None]


@contextmanager
def row_writer(name: str, rows: int, *, force: bool = False, kept: Collection[str] = ()) -> Iterator[Write]:
    """Open an output file for a table, and yield a function that appends the rows of a frame to it."""
    # columns in `kept` are cells of an input, and are written as they are
    format = table_format(name)
    if name == "-":
        yield _text(sys.stdout, format, kept)
        sys.stdout.flush()
        return
    with whole_file(Path(name), force=force) as temporary:
        if format in ("csv", "tsv"):
            with temporary.open("w", encoding="utf-8", newline="") as text:
                yield _text(text, format, kept)
        else:
            with temporary.open("wb") as binary, (_npy if format == "npy" else _parquet)(binary, rows) as write:
                yield write


def _text(file: IO[str], format: str, kept: Collection[str]) -> Write:
    header = True

    def write(frame: Any) -> None:
        nonlocal header
        for name in frame.columns.difference([*kept], sort=False):
            if frame[name].dtype.kind not in "fiub":
                frame[name] = frame[name].map(no_formula)
        frame = frame.rename(columns=no_formula)
        frame.to_csv(file, sep="\t" if format == "tsv" else ",", index=False, header=header, lineterminator="\n")
        header = False

    return write


@contextmanager
def _npy(file: IO[bytes], rows: int) -> Iterator[Write]:
    def write(frame: Any) -> None:
        text = [name for name in frame if frame[name].dtype.kind not in "fiub"]
        if text:
            raise TableError(f"a .npy file holds numbers, and column {text[0]!r} is text; write .csv or .parquet")
        if not file.tell():  # a memory map would end in a signal on a full disk
            header = {"descr": "<f8", "fortran_order": False, "shape": (rows, frame.shape[1])}
            np.lib.format.write_array_header_1_0(file, header)
        file.write(np.ascontiguousarray(frame, dtype="<f8").tobytes())

    yield write


@contextmanager
def _parquet(file: IO[bytes], _: int) -> Iterator[Write]:
    parquet = import_parquet()
    import pyarrow

    writers: list[Any] = []

    def write(frame: Any) -> None:
        table = pyarrow.Table.from_pandas(frame, preserve_index=False)
        if not writers:
            writers.append(parquet.ParquetWriter(file, table.schema))
        writers[0].write_table(table)

    try:
        yield write
    except BaseException:
        with suppress(Exception):  # it would write a footer, and fail again
            writers[0].close()
        raise
    for writer in writers:
        writer.close()
