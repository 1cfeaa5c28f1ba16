"""Tables read from files: named columns of cells, with errors that name file, row and column.

`file_formats.py` reads and writes them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernpool.data.array_validation import COUNTED, TableError, in_words, would_round
from kernpool.data.number_parsing import (
    MISSING,
    as_floats,
    as_objects,
    cell_at,
    is_blank,
    is_string,
    is_text,
    rounded_integer,
    sentinels,
    take_cells,
    unreadable,
    words,
)

Array = NDArray[np.float64]

FORMATS = ("csv", "tsv", "parquet", "npy")
OTHERS = dict.fromkeys(("xlsx", "xls", "xlsm", "ods"), "is a spreadsheet; save the sheet as CSV")
OTHERS |= dict.fromkeys(("zip", "7z", "rar", "tar", "tgz"), "is an archive; unpack it, and name the table")
SHOWN = 20  # rows that are looked at for a message


@dataclass(frozen=True)
class Advice:
    """Remedies that error messages about the cells of a column suggest.

    Parameters
    ----------
    cell : str
        About cells that are no numbers.
    column : str
        About a column that holds something else.
    blank : str
        About cells that are missing.
    """

    cell: str = "correct or drop such rows"
    column: str = "convert it to numbers first"
    blank: str = "drop such rows with --missing drop"


@dataclass(frozen=True)
class Table:
    """Table read from a file: named columns of equal length, whose cells may be text.

    Parameters
    ----------
    source : str
        File name, for messages.
    columns : dict of str to sequence
        Cells: strings from text files, arrays from the others.
    rows : int
        How many rows there are.
    decimal : str, optional
        Decimal sign of a text file; the other one separates thousands. None: points, and no thousands.
    blanks : frozenset of str
        Markers of missing cells, in lower case.
    notes : list of str
        Assumptions where the file is ambiguous, and how to override them; extended as columns are read.
    places : ndarray, optional
        Row numbers in the file, if some rows were dropped.
    row_labels : tuple of str, default=()
        Columns that hold labels of rows, as pandas writes its index: nothing is predicted from them unless they are
        named.
    """

    source: str
    columns: dict[str, Any]
    rows: int
    decimal: str | None = None
    blanks: frozenset[str] = MISSING
    notes: list[str] = field(default_factory=list)
    places: NDArray[np.intp] | None = None
    row_labels: tuple[str, ...] = ()
    _floats: dict[str, Array] = field(default_factory=dict, repr=False)

    @property
    def names(self) -> list[str]:
        """Names of the columns of the table, in order."""
        return list(self.columns)

    def others(self, *names: str | None) -> list[str]:
        """Return the names of all columns except the given ones and columns of row labels.

        A note says which columns of row labels are excluded.
        """
        left = [name for name in self.row_labels if name not in names]
        if left:
            text = f"{in_words(left)} labels of rows, and nothing is predicted from them; --features says otherwise"
            self.notes.extend([text] if text not in self.notes else [])
        return [name for name in self.names if name not in (*names, *left)]

    def numbers(self, names: Iterable[str], advice: Advice | None = None) -> Array:
        """Return the named columns as an array of finite numbers, of shape (rows, len(names)).

        Parameters
        ----------
        names : iterable of str
            Which columns.
        advice : Advice, optional
            Remedies for messages.

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
        """Return a column as an array of labels, numbers or text; raise TableError if a label is missing.

        The array has the shape (rows,). Spaces around text are removed.

        Raises
        ------
        TableError
            If there is no such column, or a cell is empty; it names file, row and column.
        """
        self.need([name])
        array = np.asarray(as_objects(self.columns[name]))
        if array.ndim != 1:
            raise TableError(f"{self.source}: column {name!r} holds arrays, and groups need one label per row")
        missing = np.array([is_blank(cell, self.blanks) for cell in array.tolist()])
        if missing.any():
            more = f", like {missing.sum() - 1} more cells of this column" if missing.sum() > 1 else ""
            row = int(missing.argmax())
            raise TableError(
                f"{self.place(row, name)} has no label{more} ({COUNTED}); drop such rows with --missing drop, or give "
                f"each a label of its own{or_a_value(array[row])}"
            )
        return array

    def missing(self, names: Iterable[str]) -> NDArray[np.bool_]:
        """Return a boolean array: for each row, whether a cell of the named columns is missing."""
        names, found = list(names), np.zeros(self.rows, dtype=bool)
        self.need(names)
        for name in names:
            cells = self.columns[name]
            if unreadable(cells) is None:
                suspects = np.flatnonzero(np.isnan(self.floats(name)))
                blank = [is_blank(cell_at(cells, row), self.blanks) for row in suspects.tolist()]
                found[suspects] |= np.array(blank, dtype=bool)
            else:
                found |= np.array([is_blank(cell, self.blanks) for cell in as_objects(cells)], dtype=bool)
        return found

    def take(self, rows: NDArray[np.intp]) -> Table:
        """Return a `Table` of the rows with these indices.

        Messages still give the positions of the rows in the file.
        """
        columns = {name: take_cells(cells, rows) for name, cells in self.columns.items()}
        places = rows if self.places is None else self.places[rows]
        return replace(self, columns=columns, rows=len(rows), places=places, _floats={})

    def floats(self, name: str) -> Array:
        """Return a column as floats, read with its decimal sign; cells that are not numbers become NaN."""
        if name not in self._floats:
            cells = self.columns[name]
            if self.decimal is not None and is_string(cells) and unreadable(cells) is None:
                thousands = "." if self.decimal == "," else ","
                cells = [cell.replace(thousands, "").replace(self.decimal, ".") for cell in as_objects(cells)]
            read = as_floats(cells)
            absent = sentinels(self.blanks)
            self._floats[name] = np.where(np.isin(read, absent), np.nan, read) if absent.size else read
        return self._floats[name]

    def need(self, names: Iterable[str]) -> None:
        """Raise TableError if the table lacks one of the named columns."""
        unknown = [name for name in names if name not in self.columns]
        if unknown:
            headless = "; the first line has to name the columns" if _are_numbers(self.names) else self._header_hint()
            raise TableError(
                f"{self.source}: no column {unknown[0]!r}; columns are {', '.join(map(repr, self.names))}{headless}"
            )

    def _header_hint(self) -> str:
        """Return a hint for an error message if the first line of the file seems not to hold the column names.

        It may be a title or a comment, or have another separator. The hint is empty otherwise.
        """
        if not self.names or not is_string(self.columns[self.names[0]]):
            return ""
        name, cells = self.names[0], self.columns[self.names[0]]
        one = len(self.names) == 1 and any(sign in cell for cell in cells[:SHOWN] for sign in ",;\t|")
        if one or name.startswith("#"):
            return "; delete the lines above that of the names"
        # Signs between names that are no separator of this table; one of spaces alone is refused before.
        other = re.fullmatch(r"\w+(?:([^\w\s.-])\w+)(?:\1\w+)*", name) if len(self.names) == 1 else None
        return f"; if {other[1]!r} separates columns, say --sep '{other[1]}'" if other else ""

    def _column(self, name: str, advice: Advice) -> Array:
        cells = self.columns[name]
        what = unreadable(cells)
        if what is not None:
            raise TableError(f"{self.source}: column {name!r} holds {what}, not real numbers; {advice.column}")
        read = self.floats(name)
        bad = np.flatnonzero(~np.isfinite(read))
        if is_text(cells, bad):
            raise TableError(
                f"{self.source}: column {name!r} {words(cell_at(cells, 0))} and other text in all of its {self.rows} "
                f"rows, not real numbers; {advice.column}"
            )
        if bad.size:
            more = f", like {bad.size - 1} more cells of this column" if bad.size > 1 else ""
            what, blank = words(cell_at(cells, bad[0])), is_blank(cell_at(cells, bad[0]), self.blanks)
            what += "" if what == "is empty" else ", a missing cell" if blank else ", not a finite number"
            cell = cell_at(cells, bad[0])
            remedy = advice.blank + or_a_value(cell) if blank else advice.cell + or_missing(cell)
            raise TableError(f"{self.place(bad[0], name)} {what}{more} ({COUNTED}); {remedy}")
        rounded = rounded_integer(cells, read, "." if self.decimal == "," else ",")
        if rounded is not None:
            row, integer = rounded
            raise TableError(f"{self.place(row, name)} holds {would_round(integer)} ({COUNTED})")
        return read

    def place(self, row: int, name: str) -> str:
        """Describe the position of a cell for messages: file, row and column."""
        row = row if self.places is None else int(self.places[row])
        return f"{self.source}: row {row}, column {name!r}"


def or_a_value(cell: Any) -> str:
    """Return the end of an error message about text that is read as missing: how to have it read as a value."""
    text = cell.strip() if isinstance(cell, str) else ""
    return f". If {text!r} is a value, list what missing cells hold instead, as in --na=-999 or --na=" if text else ""


def or_missing(cell: Any) -> str:
    """Return the end of an error message about text among numbers: how to have it read as missing."""
    text = cell.strip() if isinstance(cell, str) else ""
    is_mark = len(text) <= SHOWN and re.fullmatch(r"[^\d,\s]+", text)
    return f". If {text!r} stands for a missing cell, say --na={text} --missing drop" if is_mark else ""


def _are_numbers(names: list[str]) -> bool:
    """Return whether all column names are numbers, as in a file whose first line holds data instead of names.

    Columns of a matrix, which are numbered from 0, do not count.
    """
    return (
        bool(np.isfinite(as_floats(names)).all()) and names != [str(i) for i in range(len(names))] if names else False
    )


def table_format(name: str, override: str | None = None) -> str:
    """Return the table format of a file: the given one, else that of its suffix; CSV for standard input and output."""
    suffix = override or ("csv" if name == "-" else Path(name).suffix.removeprefix(".").lower())
    if suffix not in FORMATS and override is None and (suffix in OTHERS or Path(name).is_dir()):
        raise TableError(f"{name} {OTHERS.get(suffix, 'is a folder; name a file in it')}")
    if suffix not in FORMATS:
        raise TableError(f"{name}: unknown format {suffix!r}; known are {', '.join(FORMATS)} (by suffix or --format)")
    return suffix
