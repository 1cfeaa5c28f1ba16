"""Types of columns read from files (numeric, categorical, date): chosen at fit, read from the model at prediction.

A column of a text file is numeric if one of its cells is a number: other text in it is then a mistake, and the error
names it. Without a single number it holds dates, if most cells look like dates, and otherwise unordered categories.

Cells of a categorical column become numbers where the number says all that was written; codes such as 01 and 1E2 stay
text.
"""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from kernpool.data.array_validation import COUNTED, LARGEST, TableError
from kernpool.data.columns import KIND_WORDS, MixedTable
from kernpool.data.dates import TIME_KINDS, TimeKind, Times, are_dates, looks_like_date, times_of, times_of_text
from kernpool.data.encoding import Encoding
from kernpool.data.number_parsing import as_objects, cell_at, is_blank, is_code, is_string, is_time, unreadable, words
from kernpool.data.suspect_columns import NUMBERS_ROWS, is_row_number
from kernpool.tables.table import Advice, Table

SHOWN = 20  # levels, in a message
POWER = re.compile(r"\d[eE]")


def levels_in(table: Table, name: str, known: Collection[Any] | None = None) -> list[Any]:
    """Return the cells of a column as category labels; raise TableError if a cell is missing.

    Parameters
    ----------
    table : Table
        From a file.
    name : str
        Of the column.
    known : collection, optional
        Categories of a model, or in a declared order: a cell is the one that it names, whether it is text or a number
        in the file. Without them text is read as numbers if every cell is one, and no two different texts are one
        number.
    """
    table.labels(name)
    cells = table.columns[name]
    found: list[Any] = [cell if isinstance(cell, str | int | float) else _text(cell) for cell in as_objects(cells)]
    is_text = is_string(cells) and unreadable(cells) is None
    if known is not None:
        read = table.floats(name).tolist() if is_text else found
        return _as_known(found, read, known)
    if not is_text or any(is_code(cell) or POWER.search(cell) for cell in found):
        return found
    read = table.floats(name)
    if not np.isfinite(read).all() or len(set(read.tolist())) < len(set(found)):
        return found
    return _whole(read)


def ordered_numbers(table: Table, name: str) -> list[Any]:
    """Return an ordered categorical column as numbers if all its cells are numbers, else as labels.

    Categories that are numbers are compared by value, however they are written.
    """
    found = levels_in(table, name)
    if all(isinstance(level, str) for level in found) and unreadable(table.columns[name]) is None:
        read = table.floats(name)
        return _whole(read) if np.isfinite(read).all() else found
    return found


def refuse_unseen(table: Table, name: str, cells: Sequence[Any], known: Collection[Any]) -> None:
    """Raise TableError, with the position in the file, for a category that the model has not seen."""
    levels = set(known)
    row = next((row for row, cell in enumerate(cells) if cell not in levels), None)
    if row is None:
        return
    shown = ", ".join(map(repr, list(known)[:SHOWN])) + (", ..." if len(known) > SHOWN else "")
    raise TableError(
        f"{table.place(row, name)} holds {cells[row]!r}, a level that the model has not seen ({COUNTED}); known levels "
        f"are {shown}. To pool such rows as unlike every level, say --unseen unlike"
    )


def _text(cell: Any) -> str:
    """Convert a cell that is neither text nor a number to text; a date without time of day is written like 2020-12-31.

    Text files have days in this form. The unit in which a day is stored does not matter.
    """
    if isinstance(cell, np.datetime64) and cell == cell.astype("M8[D]"):
        return str(cell.astype("M8[D]"))
    return str(cell)


def _as_known(found: Sequence[Any], read: Sequence[Any], known: Collection[Any]) -> list[Any]:
    by_text = {str(level): level for level in known}
    flags = {text.lower(): level for text, level in by_text.items() if text.lower() in ("true", "false")}
    by_value = {float(level): level for level in known if isinstance(level, int | float)}

    def as_known(cell: Any, number: Any) -> Any:
        whole = isinstance(cell, float) and cell.is_integer()
        text = str(int(cell)) if whole else str(cell)
        if text in by_text:
            return by_text[text]
        if text.lower() in flags:  # as written by R, Python and SQL
            return flags[text.lower()]
        return by_value.get(number, cell)

    return list(map(as_known, found, read))


def _whole(read: Any) -> list[Any]:
    return [int(number) if number.is_integer() else number for number in read.tolist()]


Array = NDArray[np.float64]
Kind = Literal["numbers", "levels", "dates"]


@dataclass(frozen=True)
class Choice:
    """Column types that the user has chosen: unordered and ordered categorical columns, and dates.

    Parameters
    ----------
    unordered : collection of str
        Unordered categorical columns.
    ordered : mapping of str to sequence or None
        Ordered categorical columns, with the order of their categories unless these are numbers.
    dates : collection of str or None
        Columns that are read as days since 1970-01-01; None for all that look like dates.
    """

    unordered: Collection[str] = ()
    ordered: Mapping[str, Sequence[str] | None] = field(default_factory=dict)
    dates: Collection[str] | None = ()

    def named(self) -> set[str]:
        """Return the names of all columns whose type the user has chosen."""
        return {*self.unordered, *self.ordered, *(self.dates or ())}


@dataclass(frozen=True, eq=False)
class Features:
    """Predictor columns in the form that estimators take, with the names of categorical and date columns.

    Parameters
    ----------
    X : ndarray of shape (n, d) or MixedTable
        Numbers alone are an array.
    unordered, ordered : list of str
        Columns that are named for the estimator: numeric categories, and ordered ones.
    dates : list of str
        Columns that were dates.
    """

    X: Any
    unordered: list[str]
    ordered: list[str]
    dates: list[str]


def kind_of(table: Table, name: str) -> Kind:
    """Return the kind of a column of a table: "numbers", "levels" (categories) or "dates".

    Unrecognised content is reported as "numbers", and reading it fails later.
    """
    cells = table.columns[name]
    if is_time(cells):
        return "dates"
    if not is_string(cells):
        return "numbers"
    if unreadable(cells) is None and not np.isnan(table.floats(name)).all():
        return "numbers"
    found = [cell for cell in as_objects(cells) if not is_blank(cell, table.blanks)]
    if not found:
        return "numbers"
    return "dates" if are_dates(found) else "levels"


def features_of(table: Table, names: Sequence[str], choice: Choice, advice: Advice) -> Features:
    """Convert the predictor columns of a table to the form in which estimators are fitted to them.

    Parameters
    ----------
    table : Table
        From a file.
    names : sequence of str
        Which.
    choice : Choice
        Types declared by the caller.
    advice : Advice
        About cells and columns that cannot be read.

    Raises
    ------
    TableError
        If a column cannot be read, or a choice is missing: for dates, and for names of rows.
    """
    table.need([*names, *sorted(choice.named())])
    columns: dict[str, Any] = {}
    unordered, dates = [], []
    for name in names:
        asked = name in choice.unordered or name in choice.ordered
        kind = "levels" if asked else kind_of(table, name)
        if kind == "dates" or (choice.dates and name in choice.dates):
            cells: Any = _dates(table, name, choice)
            dates.append(name)
        elif kind == "levels":
            cells = _declared(table, name, choice) if name in choice.ordered else levels_in(table, name)
            if name in choice.unordered:
                unordered.append(name)
        else:
            cells = moderate_numbers(table, name, advice)
        columns[name] = cells
    ordered = [name for name in names if name in choice.ordered]
    if all(isinstance(cells, np.ndarray) for cells in columns.values()):
        return Features(np.column_stack(list(columns.values())), unordered, ordered, dates)
    declared = {name: levels for name, levels in choice.ordered.items() if levels is not None and name in columns}
    return Features(MixedTable(columns, declared), unordered, ordered, dates)


def moderate_numbers(table: Table, name: str, advice: Advice) -> Array:
    """Return a column as numbers; raise TableError, naming the cell, if the square of a number would overflow."""
    read = table.numbers([name], advice)[:, 0]
    large = np.abs(read) > LARGEST
    if large.any():
        row = int(large.argmax())
        raise TableError(
            f"{table.place(row, name)} {words(cell_at(table.columns[name], row))}, beyond {LARGEST:g} in magnitude, "
            f"where squares overflow ({COUNTED}); divide the column by a large number"
        )
    return read


def queries_of(
    table: Table,
    names: Sequence[str],
    encoding: Encoding | None,
    advice: Advice,
    *,
    unseen: str = "raise",
) -> Any:
    """Read the predictor columns of new rows with the types that they had when the model was fitted.

    The result is an array, or a `MixedTable` with categories or dates.

    Parameters
    ----------
    table : Table
        From a file.
    names : sequence of str
        Which, in the order of the fit.
    encoding : Encoding or None
        Encoding of the model, with their kinds and categories.
    advice : Advice
        About cells that cannot be read.
    unseen : {"raise", "unlike"}
        Whether a category that the model does not have is an error.

    Raises
    ------
    TableError
        If a column cannot be read so.
    """
    table.need(names)
    kinds = ("numeric",) * len(names) if encoding is None else encoding.kinds
    columns: dict[str, Any] = {}
    known = iter(()) if encoding is None else iter(encoding.levels)
    pairs = iter(()) if encoding is None else iter(encoding.pairs)
    for name, kind in zip(names, kinds, strict=True):
        levels = () if kind == "numeric" or kind in TIME_KINDS else next(pairs if kind == "binary" else known)
        if kind in TIME_KINDS:
            cells: Any = _times_as_fitted(table, name, kind)
        elif kind == "numeric":
            cells = moderate_numbers(table, name, advice)
        else:
            cells = levels_in(table, name, levels)
            if unseen == "raise":
                refuse_unseen(table, name, cells, levels)
        columns[name] = cells
    if all(isinstance(cells, np.ndarray) for cells in columns.values()):
        return np.column_stack(list(columns.values()))
    return MixedTable(columns)


def _declared(table: Table, name: str, choice: Choice) -> list[Any]:
    """Return the cells of an ordered categorical column; raise TableError if the order of its categories is unknown.

    Cells have the form in which their order was declared: text, or numbers if it was not.
    """
    order = choice.ordered[name]
    if order is None:
        found = ordered_numbers(table, name)
        first = next((cell for cell in found if isinstance(cell, str)), None)
        if first is not None:
            raise TableError(
                f"{table.source}: column {name!r} holds text such as {first!r}, whose order is not declared; say "
                f"it, as in --ordered {name}=small:medium:large"
            )
        return found
    found = levels_in(table, name, order)
    unlisted = next((cell for cell in found if cell not in order), None)
    if unlisted is not None:
        raise TableError(
            f"{table.source}: column {name!r} holds {unlisted!r}, which is not in the order {':'.join(order)}; add it "
            "to --ordered"
        )
    return found


def _dates(table: Table, name: str, choice: Choice) -> Times:
    if choice.dates is None or name in choice.dates:
        return times_in(table, name)
    raise TableError(
        f"{date_to_choose(table, name)}, --unordered {name} for levels without order, or leave it out with --features"
    )


def date_to_choose(table: Table, name: str) -> str:
    """Return the beginning of an error message about a date column that --dates does not name."""
    cells = table.columns[name]
    row = int((~table.missing([name])).argmax())
    if is_string(cells):
        row = next((place for place, found in enumerate(as_objects(cells)) if looks_like_date(found)), row)
    cell = cell_at(cells, row)
    _, bad = times_of_text([cell] if isinstance(cell, str) else [])
    form = "" if bad is None else "write dates as year-month-day, such as 2020-12-31, and "
    return (
        f"{table.source}: column {name!r} {words(cell)}: a date; {form}say --dates {name} to read it as days since "
        "1970-01-01"
    )


def times_in(table: Table, name: str) -> Times:
    """Return a column as dates or durations; raise TableError if a cell is missing or holds anything else."""
    cells, blank = table.columns[name], table.missing([name])
    if blank.any():
        row = int(blank.argmax())
        raise TableError(
            f"{table.place(row, name)} {words(cell_at(cells, row))}, and a date is expected ({COUNTED}); drop rows "
            "without one with --missing drop"
        )
    if is_time(cells):
        times = times_of(f"{table.source}: column {name!r}", cells)
        assert times is not None
        return times
    if not is_string(cells):
        raise TableError(
            f"{table.source}: column {name!r} holds numbers, and dates are expected; write them as text such as "
            "2020-12-31, or with a type of dates"
        )
    found = as_objects(cells)
    times, bad = times_of_text(found)
    if bad is None:
        return times
    other, _ = times_of_text(found[bad : bad + 1])
    if other.kind != times.kind:
        raise TableError(
            f"{table.place(bad, name)} {words(found[bad])}, a {other.kind}, and others hold a {times.kind} "
            f"({COUNTED}); write all dates with a time zone, as in 2020-12-31T06:00Z, or none"
        )
    raise TableError(
        f"{table.place(bad, name)} {words(cell_at(cells, bad))}, which is no date like 2020-12-31 ({COUNTED}); write "
        "dates as year-month-day, such as 2020-12-31"
    )


def _times_as_fitted(table: Table, name: str, kind: TimeKind) -> Times:
    """Return a column as dates or durations; raise TableError if the model was fitted to another kind."""
    times = times_in(table, name)
    if times.kind != kind:
        raise TableError(
            f"{table.source}: column {name!r} holds {KIND_WORDS[times.kind]}, and the model was fitted to "
            f"{KIND_WORDS[kind]}; convert the column, or fit a model to the column as it is"
        )
    return times


def note_row_numbers(table: Table, names: Sequence[str], X: Any) -> None:
    """Add a note to a table for each predictor column that seems to hold row numbers, if there are several columns."""
    columns = X.columns if isinstance(X, MixedTable) else dict(zip(names, X.T, strict=True))
    for name, cells in columns.items() if len(columns) > 1 else ():
        if isinstance(cells, np.ndarray) and is_row_number(name, cells):
            table.notes.append(f"column {name!r} {NUMBERS_ROWS}; leave it out with --features")
