"""Text files as tables: the encoding and the separator are found or given, and a library's reader cuts the cells.

pyarrow reads large files without quotes, if it is installed: faster, and cut as Python's `csv` cuts them. What it
refuses, quotes, about which readers differ, and small files are left to `csv`, whose messages name the line. pandas
takes lines that are too short, and the first column for names of rows where lines are too long: it is not used.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any, NamedTuple, overload

import numpy as np
from numpy.typing import NDArray

from kernpool.data.cells import MISSING
from kernpool.data.decimals import Decimals
from kernpool.data.decoding import decoded
from kernpool.data.separators import WORDS, find_separator, split_rows
from kernpool.data.suspects import row_labels
from kernpool.data.tables import SMALL, Table, TableError

READERS = ("pyarrow", "csv")
Progress = Callable[[int, int], Any]
STEP = 1 << 15  # rows between two reports of progress


@dataclass(frozen=True)
class TextForm:
    """How a text file is written; what is None is found.

    Parameters
    ----------
    separator, decimal, encoding : str, optional
        Of columns, of numbers, of letters.
    blanks : frozenset of str
        What stands for a missing cell, in lower case.
    readers : sequence of {"pyarrow", "csv"}, optional
        Which may read it, in turn; by default "csv" alone up to `SMALL` bytes, which it reads before pyarrow is loaded.
    """

    separator: str | None = None
    decimal: str | None = None
    encoding: str | None = None
    blanks: frozenset[str] = MISSING
    readers: Sequence[str] | None = None


AS_FOUND = TextForm()


class Cut(NamedTuple):
    """Cells of the columns, and the line of each row."""

    columns: list[Sequence[str]]
    lines: Sequence[int]


def read_text(
    data: bytes, source: str, format: str, form: TextForm = AS_FOUND, progress: Progress | None = None
) -> Table:
    r"""Read a table of text; parameters and errors as in `read_table`.

    Examples
    --------
    >>> table = read_text(b"x;y\n1,5;2\n", "t.csv", "csv")
    >>> table.numbers(["x", "y"]), table.notes[0]
    (array([[1.5, 2. ]]), 'columns are separated by semicolons; --sep says otherwise')
    """
    usual = "\t" if format == "tsv" else ","
    try:
        text, assumed = decoded(data, source, form.encoding)
        separator, text = _stated(text)
        found = form.separator or separator or find_separator(text, source, usual)
    except ValueError as error:
        raise TableError(str(error)) from None
    notes = [] if assumed is None else [f"text is read as {assumed}, as it is no UTF-8; --encoding says otherwise"]
    if form.separator is None and separator is None and found != usual and found in text:
        notes.append(f"columns are separated by {WORDS[found]}; --sep says otherwise")
    names, begin = _header(text, found, source)
    cut = None
    for reader in form.readers or (READERS if len(data) > SMALL else ("csv",)):
        cut = READ[reader](text, found, names, source, begin, progress)
        if cut is not None:
            break
    assert cut is not None
    if not len(cut.lines):
        raise TableError(f"{source} has a header and no rows")
    columns = dict(zip(names, cut.columns, strict=True))
    unnamed = [i for i, name in enumerate(names) if not name]
    if unnamed:
        which = ", ".join(str(i + 1) for i in unnamed)
        are = f"column {which} has no name and is" if len(unnamed) == 1 else f"columns {which} have no names and are"
        notes.append(f"{are} left out; a name in the first line lets one be used")
        columns.pop("", None)
    decimals = _decimals(text, found, columns, form.decimal)
    labels = row_labels(names)
    return Table(source, columns, len(cut.lines), cut.lines, decimals, form.blanks, notes, row_labels=labels)


def _stated(text: str) -> tuple[str | None, str]:
    """Return the separator that a first line ``sep=;`` states, as spreadsheets write it, and the text without it."""
    if text[:4].lower() != "sep=" or len(text) < 6:
        return None, text
    line, end, rest = text.partition("\n")
    separator = line[4:].strip("\r")
    return (
        (separator, "\n" + rest) if end and len(separator) == 1 else (None, text)
    )  # a line that is blank still counts


def _header(text: str, separator: str, source: str) -> tuple[list[str], int]:
    """Return the names of the columns, and how many lines they take; unnamed ones are called ''."""
    reader = split_rows(text, separator, strict=True)
    try:
        header: list[str] = next((row for row in reader if row), [])
    except csv.Error as error:
        raise TableError(f"{source}: after line {reader.line_num}: {error}; expected a line of names") from None
    if not header:
        raise TableError(f"{source} is empty; the first line must name the columns")
    names = [name.strip() for name in header]
    given = [name for name in names if name]
    if len(set(given)) < len(given):
        twice = next(name for name in given if given.count(name) > 1)
        raise TableError(
            f"{source}: two columns have the same name, {twice!r}; rename one of them in the first line. Columns are "
            f"{', '.join(map(repr, names))}"
        )
    return names, reader.line_num


def _decimals(text: str, separator: str, columns: dict[str, Any], given: str | None) -> Decimals | None:
    """Return the decimal signs of the columns, None if all are points for want of a comma."""
    semicolons = separator == ";"
    if given is None and ("," not in text if separator != "," else '"' not in text) and not semicolons:
        return None
    if given is None and not any("," in cell for cells in columns.values() for cell in cells) and not semicolons:
        return None
    return Decimals(columns, given, semicolons=semicolons)


def _with_csv(text: str, separator: str, names: list[str], source: str, _: int, progress: Progress | None) -> Cut:
    reader = split_rows(text, separator, strict=True)
    length, total = len(names), text.count("\n") + 1
    rows: list[list[str]] = []
    lines: list[int] = []
    try:
        next(row for row in reader if row)
        after = reader.line_num
        for row in reader:
            line, after = after + 1, reader.line_num  # where a row begins: quoted cells may have several lines
            if not row:  # a blank line
                continue
            if len(row) != length:
                raise TableError(_ragged(source, line, row, names, first=not rows))
            rows.append(row)
            lines.append(line)
            if progress is not None and not len(rows) % STEP:
                progress(reader.line_num, total)
    except csv.Error as error:
        raise TableError(
            f"{source}: after line {reader.line_num}: {error}; expected text with quotes in pairs, or say --sep"
        ) from None
    return Cut([list(column) for column in zip(*rows, strict=True)] if rows else [[] for _ in names], lines)


def _ragged(source: str, line: int, row: list[str], names: list[str], *, first: bool) -> str:
    message = f"{source}: line {line} has {len(row)} cell{'s' * (len(row) != 1)}, the header has {len(names)}"
    if first and len(row) == len(names) + 1 and not row[-1].strip():
        return f"{message}; if all lines but the first end with a separator, write one at the end of the first, too"
    if first and len(row) == len(names) + 1:
        return f"{message}; if the first cells are names of rows, as R writes them, give them a name in the first line"
    return f"{message}; correct that line, or say --sep if columns are separated by something else"


def _with_pyarrow(text: str, separator: str, names: list[str], _: str, begin: int, __: Progress | None) -> Cut | None:
    """Cut with pyarrow what it cuts as `csv` does; None for the rest."""
    if '"' in text or separator == " " or "\0" in text:
        return None
    try:
        arrow_csv, arrow = import_module("pyarrow.csv"), import_module("pyarrow")
    except ImportError:
        return None
    numbered = [str(i) for i in range(len(names))]
    try:
        table = arrow_csv.read_csv(
            io.BytesIO(text.encode()),
            read_options=arrow_csv.ReadOptions(column_names=numbered, skip_rows=begin),
            parse_options=arrow_csv.ParseOptions(delimiter=separator, quote_char=False),
            convert_options=arrow_csv.ConvertOptions(
                column_types=dict.fromkeys(numbered, arrow.string()), strings_can_be_null=False
            ),
        )
    except (arrow.ArrowException, ValueError, UnicodeError):  # lines of several lengths, no rows
        return None
    return Cut([ArrowText(column) for column in table.itercolumns()], Lines(text, begin, table.num_rows))


READ = {"csv": _with_csv, "pyarrow": _with_pyarrow}


class ArrowText(Sequence[str]):
    """Cells of a text file that pyarrow holds: a sequence of strings, and floats at once if all of them are."""

    def __init__(self, cells: Any) -> None:
        self._cells = cells
        self._listed: list[str] | None = None

    @property
    def _strings(self) -> list[str]:
        if self._listed is None:
            self._listed = self._cells.to_pylist()
        return self._listed

    @overload
    def __getitem__(self, row: int) -> str: ...

    @overload
    def __getitem__(self, row: slice) -> list[str]: ...

    def __getitem__(self, row: int | slice) -> str | list[str]:
        return self._cells[int(row)].as_py() if not isinstance(row, slice) else self._strings[row]

    def __len__(self) -> int:
        return len(self._cells)

    def __iter__(self) -> Iterator[str]:
        return iter(self._strings)

    def take(self, rows: NDArray[np.intp]) -> ArrowText:
        """Return some of the cells."""
        return ArrowText(self._cells.take(import_module("pyarrow").array(rows)))

    def floats(self) -> NDArray[np.float64] | None:
        """Return all cells as finite floats; None unless all of them are."""
        arrow, compute = import_module("pyarrow"), import_module("pyarrow.compute")
        try:
            read: NDArray[np.float64] = compute.cast(self._cells, arrow.float64()).to_numpy()
        except arrow.ArrowException:
            return None
        return read if np.isfinite(read).all() else None


class Lines(Sequence[int]):
    """Lines of the rows of a text file without quotes, looked up when a message needs one."""

    def __init__(self, text: str, begin: int, rows: int) -> None:
        self._text, self._begin, self._rows = text, begin, rows

    def __getitem__(self, row: Any) -> Any:
        lines = (number for number, line in enumerate(io.StringIO(self._text, newline=""), 1) if line.strip("\r\n"))
        places = [number for number in lines if number > self._begin]
        return places[row]

    def __len__(self) -> int:
        return self._rows
