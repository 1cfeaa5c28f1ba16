"""Tables in files: CSV, TSV, Parquet and `.npy`, by the file suffix unless given, and the types of their columns.

A text column is numeric if one of its cells is a number: other text in it is then a mistake, and the error names it.
Without a single number it holds dates, if most cells look like dates, and otherwise unordered categories.

Tables are written whole or some rows at a time, into a file that appears under its name once it is complete.

Spreadsheets run text that begins with ``=``, ``+``, ``-`` or ``@`` as a formula. In CSV and TSV such column names and
such text get an apostrophe in front, as OWASP recommends; cells that are kept from the input are not changed.
"""

import csv
import io
import re
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import IO, Any, Literal

import numpy as np

from kernpool._arrays import Array
from kernpool.data import TIME_KINDS, Encoding, MixedTable, TableError, as_real_array, import_parquet, row_labels
from kernpool.data.array_validation import COUNTED
from kernpool.data.atomic_files import whole_file
from kernpool.data.dates import are_dates, times_of
from kernpool.data.suspect_columns import is_code

WRITTEN = ("csv", "tsv", "parquet")
FORMATS = (*WRITTEN, "npy")
OTHERS = dict.fromkeys(("xlsx", "xls", "xlsm", "ods"), "is a spreadsheet; save the sheet as CSV")
PACKED = ("gz", "bz2", "xz", "zst")
MISSING = ("n.a.", "none", "-", ".", "?")  # as well as what pandas knows
LOOKED_AT = 50  # lines, for the separator
ZONED = r"[T ].*(?:Z|[+-]\d\d(?::?\d\d)?)$"
SHOWN = 40  # characters of a cell
CORRECT = "correct or drop such rows"
FORTRAN = r"^([+-]?(?:\d+\.\d*|\.\d+))[dD]([+-]?\d+)$"  # 1.5D+02; without a point it may be a code


def import_pandas() -> Any:
    """Return the module pandas; raise ImportError that names the extra if it is not installed."""
    try:
        return import_module("pandas")
    except ImportError as error:
        raise ImportError('tables need pandas; install it with: pip install "kernpool[cli]"') from error


def table_format(name: str, override: str | None = None, known: Sequence[str] = FORMATS) -> str:
    """Return the table format of a file: the given one, else that of its suffix; CSV for standard input and output."""
    suffix = override or ("csv" if name == "-" else Path(name).suffix.removeprefix(".").lower())
    if suffix not in FORMATS and override is None and (suffix in OTHERS or Path(name).is_dir()):
        raise TableError(f"{name} {OTHERS.get(suffix, 'is a folder; name a file in it')}")
    if suffix not in known:
        raise TableError(f"{name}: unknown format {suffix!r}; known are {', '.join(known)} (by suffix or --format)")
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
    """Table read from a file, with the types of columns that the user has chosen."""

    source: str
    frame: Any  # the index counts the rows of the file from 0
    labels: tuple[str, ...]  # columns that hold labels of rows, as pandas writes its index
    notes: list[str]  # what was assumed in reading it; extended as columns are read
    data: Any = None  # what pandas.read_csv read; None for other formats
    how: dict[str, Any] | None = None
    unordered: Collection[str] = ()
    ordered: Mapping[str, Sequence[str] | None] = field(default_factory=dict)  # with the order of categories
    dates: Collection[str] | None = ()  # read as days; None for all that look like dates

    @cached_property
    def _text(self) -> Any:
        text = _read_csv(self.data, {**(self.how or {}), "dtype": str, "na_filter": False, "na_values": None})
        return text.set_axis(self.frame.columns, axis=1)  # names without the blanks around them

    def as_written(self, name: str) -> Any:
        """Return a column with its cells as they are written, of a text file; of other files as they were read."""
        if self.how is None:
            return self.frame[name]
        return self._text[name].loc[self.frame.index].str.strip()

    def need(self, names: Iterable[str]) -> None:
        """Raise TableError if the table lacks one of the named columns."""
        known = [*self.frame.columns]
        for name in names:
            if name not in known:
                hint = "; if other signs separate columns, say --sep" if len(known) == 1 else ""
                if any("," in other for other in known):
                    hint += "; quote a name with a comma within the option, as in '\"price, usd\"'"
                raise TableError(f"{self.source}: no column {name!r}; columns are {', '.join(map(repr, known))}{hint}")

    def refuse_cells(self, name: str, bad: Any, what: str, remedy: str = CORRECT) -> None:
        """Raise TableError for the first cell of a column where `bad` is true, naming its row in the file."""
        bad = np.asarray(bad)
        if not bad.any():
            return
        row = self.frame.index[bad.argmax()]
        text = str(self.as_written(name).loc[row])
        shown = "is empty" if not text else f"holds {text[:SHOWN]!r}" + "..." * (len(text) > SHOWN)
        more = f", like {bad.sum() - 1} more cells of this column" if bad.sum() > 1 else ""
        raise TableError(f"{self.source}: row {row}, column {name!r} {shown}, {what}{more} ({COUNTED}); {remedy}")

    def kind(self, name: str, remedy: str | None = None) -> Literal["numbers", "levels", "dates"]:
        """Return the kind of a column, as the user has chosen or as its cells are.

        With a remedy, TableError is raised for dates that --dates does not name.
        """
        if name in self.unordered or name in self.ordered:
            return "levels"
        if self.dates and name in self.dates:
            return "dates"
        pandas, column = import_pandas(), self.frame[name]
        if column.dtype.kind in "fiub":
            return "numbers"
        if times_of(name, column) is None:
            if isinstance(column.dtype, pandas.CategoricalDtype):
                return "levels"
            if column.dtype.kind not in "OUS" or as_numbers(column).notna().any():
                return "numbers"
            if not are_dates(column.tolist()):
                return "levels"
        if remedy is not None and self.dates is not None:
            cell = self.as_written(name).iloc[0]
            raise TableError(
                f"{self.source}: column {name!r} holds {str(cell)!r}, a date; write dates as year-month-day, such as "
                f"2020-12-31, and say --dates {name} to read it as days since 1970-01-01{remedy}"
            )
        return "dates"

    def numbers(self, name: str, remedy: str = CORRECT) -> Array:
        """Return a column as numbers; raise TableError, naming the cell, for anything else."""
        column = self.frame[name]
        if column.dtype.kind in "OUS" or not hasattr(column.dtype, "kind"):
            column = as_numbers(column)
            self.refuse_cells(name, column.isna(), "not a number", remedy)
        if column.dtype.kind == "f":
            self.refuse_cells(name, ~np.isfinite(column.astype(np.float64)), "not a finite number", remedy)
        return as_real_array(f"{self.source}: column {name!r}", column.to_numpy()).astype(np.float64)

    def times(self, name: str) -> Any:
        """Return a column as dates or durations of pandas; raise TableError, naming the cell, for anything else."""
        pandas, column = import_pandas(), self.frame[name]
        if pandas.api.types.is_string_dtype(column):
            zoned = column.str.contains(ZONED)
            self.refuse_cells(
                name,
                zoned != zoned.iloc[0],
                "and others differ in having a time zone",
                "write all dates with a time zone, as in 2020-12-31T06:00Z, or none",
            )
            read = pandas.to_datetime(column, format="ISO8601", errors="coerce", utc=bool(zoned.iloc[0]))
            self.refuse_cells(name, read.isna(), "no date like 2020-12-31", "write dates as year-month-day")
            return read
        if times_of(name, column) is None:
            raise TableError(f"{self.source}: column {name!r} holds no dates; write them as text such as 2020-12-31")
        return column

    def days(self, name: str) -> Array:
        """Return a column of dates as days since 1970-01-01, or of durations as days."""
        times = times_of(name, self.times(name))
        assert times is not None
        return times.days()

    def levels(self, name: str, known: Collection[Any] | None = None) -> list[Any]:
        """Return the cells of a column as categories: of the known ones each by its text or number."""
        column = self.as_written(name)
        if known is None:
            return list(without_codes(column).tolist())
        texts = {str(level): level for level in known}
        texts |= {str(level).upper(): level for level in known if str(level) in ("True", "False")}
        numbers = {float(level): level for level in known if isinstance(level, int | float)}
        read = as_numbers(column)
        return [texts.get(str(cell), numbers.get(number, cell)) for cell, number in zip(column, read, strict=True)]

    def features(self, names: Sequence[str]) -> Any:
        """Convert predictor columns to the frame to which estimators are fitted."""
        pandas, columns = import_pandas(), dict[str, Any]()
        wrong = "correct it, leave the column out with --features, or name it in --unordered if it holds codes"
        for name in names:
            kind = self.kind(name, f", --unordered {name} for levels without order, or leave it out with --features")
            if kind == "numbers":
                columns[name] = self.numbers(name, wrong)
                continue
            if kind == "dates":
                columns[name] = self.times(name).array
                continue
            order = self.ordered.get(name)
            cells = self.levels(name, order)
            if order is not None:
                unlisted = [cell not in order for cell in cells]
                what = f"which is not in the order {':'.join(order)}"
                self.refuse_cells(name, unlisted, what, "add it to --ordered")
                columns[name] = pandas.Categorical(cells, order, ordered=True)
                continue
            if name in self.ordered:
                is_text = [isinstance(cell, str) for cell in cells]
                remedy = f"say it, as in --ordered {name}=small:medium:large"
                self.refuse_cells(name, is_text, "whose order is not declared", remedy)
            columns[name] = pandas.Series(cells, dtype=object)
        return pandas.DataFrame(columns).set_axis(self.frame.index)

    def queries(self, names: Sequence[str], encoding: Encoding) -> MixedTable:
        """Read the predictor columns of new rows with the types that they had when the model was fitted."""
        known, pairs = iter(encoding.levels), iter(encoding.pairs)
        columns: dict[str, Any] = {}
        for name, kind in zip(names, encoding.kinds, strict=True):
            if kind in TIME_KINDS:
                columns[name] = times_of(name, self.times(name))
            elif kind == "numeric":
                columns[name] = self.numbers(name, "correct it: the model predicts from numbers in this column")
            else:
                columns[name] = self.levels(name, next(pairs if kind == "binary" else known))
        return MixedTable(columns)


def as_numbers(column: Any) -> Any:
    """Return a column as numbers, with NaN for every cell that is not a number."""
    try:
        column = column.astype(object).replace(FORTRAN, r"\1e\2", regex=True)
        return import_pandas().to_numeric(column, errors="coerce")
    except OverflowError:  # of integers of hundreds of digits, which are no identifiers of float64
        return column.map(lambda cell: float(str(cell)) if str(cell).lstrip("+-").isdecimal() else np.nan)


def without_codes(column: Any) -> Any:
    """Return text as numbers where these say all that is written; codes such as 01 and 1E2 stay text."""
    cells = [cell for cell in column if isinstance(cell, str)]
    if not cells or any(is_code(cell) or "e" in cell.lower() for cell in cells):
        return column
    try:
        return import_pandas().to_numeric(column)
    except ValueError:
        return column


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
    frame.columns = written = [str(name).strip() for name in frame.columns]
    if is_text:  # pandas makes x and x.1 of x and x
        first = _read_csv(data, how | {"header": None, "nrows": 1, "dtype": str, "na_filter": False})
        written = [*filter(None, map(str.strip, first.iloc[0]))]
    if len(set(written)) < len(written):
        raise TableError(f"{source}: two columns have the same name; rename one. Columns are {', '.join(written)}")
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
def row_writer(name: str, *, force: bool = False, kept: Collection[str] = ()) -> Iterator[Write]:
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
            with _parquet(temporary) as write:
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
def _parquet(file: Path) -> Iterator[Write]:
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
