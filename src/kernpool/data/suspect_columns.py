"""Detection of suspicious columns: numbers or dates stored as text, row names, and row numbers.

The rules, for estimators and the command line alike:

- Text is suspect if all of it is numbers, numbers with one unit or times of a day, if most of it is dates, or if more
  than half of the cells, and more than 20, differ from each other, as names of rows do.
- Numbers in a table of several columns are suspect if they number the rows: whole numbers, all different, in a column
  called id, index, row, rownames or the like, or whose name ends in id; or exactly 1..n or 0..n-1, in any order, of
  20 rows or more, unless the name is one of time, order or measure, such as t, day, yr, trial, depth, dose or x.

Columns that the caller names as categorical, and those that declare their categories, are not questioned.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import date
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kernpool.data.columns import Columns
from kernpool.data.dates import are_dates
from kernpool.data.number_parsing import PADDED, is_code

MEASURE = re.compile(
    # A bracket, as accountants write for less than nothing; limits of detection; what spreadsheets mark text by
    r"((?:=\"|[\"'(<>~\u2264\u2265\u2248\u00b1])?-?[$\u20ac\u00a3\u00a5]?)\s*"
    r"([+-]?\d[\d.,'_ \u2019\u00a0\u202f]*)"  # digits in groups
    r"(\)?\s*(?:[%\u2030$\u20ac\u00a3\u00a5\u00b0]?[^\W\d_]{0,3})[)\"*-]?)"  # a unit, or a sign behind the number
)
DASHES = dict.fromkeys(map(ord, "\u2212\u2013\ufe63\uff0d"), "-")  # that people type for minus
TIME = re.compile(r"\d{1,2}:\d{2}(?::\d{2}(?:\.\d+)?)?")
FIRST_DAY, LAST_DAY = 18_000_101, 21_001_231
FEW = 20  # different texts are never too many, and fewer numbers may count by chance
LOOKED_AT = 100  # different texts, for dates
ROW_LABELS = re.compile(r"__index_level_\d+__|Unnamed: 0(?:\.\d+)?")  # what pandas writes for those without a name
ROW_NUMBERS = re.compile(  # names of columns
    r"(?i:ids?|uuid|guid|index|idx|row(?:[ ._-]?(?:names?|numbers?|index|id|num|no|nr))?|.*[ ._-]id)|.*[a-z]I[dD]"
)
TIME_OR_ORDER = re.compile(  # names of columns that may well count
    r"[xt]|(?:.*[\W_])?(?:(?:date)?time(?:stamp|point|step|index)?|tick|date|dt|day|week|wk|month|mon|quarter|qtr|year|yr|hour|hr"
    r"|minute|min|second|sec|season|period|epoch|era|step|stage|phase|trend|order|rank|seq|sequence|age|lag|horizon"
    r"|trial|iteration|iter|frame|cycle|round|session|visit|wave|generation|gen|run|lap|turn|attempt|repetition|rep"
    r"|position|pos|distance|dist|depth|height|altitude|elevation|length|level|dose|dosage|concentration|temperature|temp"
    r"|pressure|speed|angle|degree|frequency|load|chapter|page|line|floor)s?\d*(?:[\W_].*)?|[xt]\d+",
    re.IGNORECASE,
)


class SuspectColumnWarning(UserWarning):
    """Warning about a predictor whose content contradicts its type, such as row numbers, or numbers stored as text.

    The message names the column and the remedy. A column that is meant so is named in ``unordered=`` if it holds
    categories; else the warning is ignored with ``warnings.simplefilter("ignore", SuspectColumnWarning)``.
    """


class SuspectColumn(NamedTuple):
    """Finding that a column is suspicious: the reason, and remedies in Python and on the command line.

    In the remedies ``{name}`` stands for the column's name.
    """

    what: str
    in_python: str
    at_command_line: str


def describe_measures(cells: Iterable[str]) -> str | None:
    """Describe text cells if all are numbers with the same unit or sign, or all are times of day; else return None.

    Returns
    -------
    str or None
        None if it is something else, such as ``1st``, ``2nd``, or if there is one number only.

    Examples
    --------
    >>> describe_measures(["5%", "7.5%"]), describe_measures(["00:15", "04:45"])
    ('a number with a unit or another sign', 'a time of a day')
    >>> [describe_measures(cells) for cells in (["1st", "2nd"], ["A1", "A2"], ["3rd", "3rd"])]
    [None, None, None]
    >>> columns = ["1 000,50", "2 000,50"], ["\u22121", "\u22122"], ["<1", "<2"], ["1,23,456", "2,34,567"]
    >>> {describe_measures(cells) for cells in columns}
    {'a number with a unit or another sign'}
    """
    units, numbers = set(), set()
    times = plain = True
    for written in cells:
        cell = _in_ascii(written)
        times = times and TIME.fullmatch(cell) is not None
        found = None if times else MEASURE.fullmatch(cell)
        if not times and found is None:
            return None
        if found is not None:
            units.add((found[1].replace("-", "").strip("() "), found[3].strip(") ")))
            plain = plain and _is_plain(written)
        numbers.add(cell if found is None else found[2])
    if len(numbers) < 2 or len(units) > 1:
        return None
    if units == {("", "")} and plain:
        return None  # text of digits, of a file that says that it is text; addresses such as 10.0.0.1
    return "a time of a day" if times else "a number with a unit or another sign"


def _in_ascii(cell: str) -> str:
    """Return a text cell with its digits and dashes replaced by ASCII digits and the ASCII minus."""
    if cell.isascii():
        return cell
    return "".join(str(unicodedata.decimal(sign, sign)) for sign in cell.translate(DASHES))


def _is_plain(cell: str) -> bool:
    if cell.count(".") > 1:
        return True
    try:
        return cell.isascii() and "_" not in cell and not math.isnan(float(cell))
    except ValueError:
        return False


def doubt(cells: Iterable[str], read: NDArray[np.float64]) -> str:
    """Describe a column of integers that may be dates (eight digits) or codes (leading zeros); return '' for others.

    Parameters
    ----------
    cells : iterable of str
        As they were written.
    read : ndarray
        As they were read.

    Returns
    -------
    str
        Empty if nothing is in doubt.

    Examples
    --------
    >>> doubt(["20200131", "20200201"], np.array([20200131.0, 20200201.0]))
    "holds '20200131', read as a number; if it is a date, write it as 2020-01-31 and say --dates"
    >>> doubt(["01000", "75001"], np.array([1000.0, 75001.0]))
    "holds '01000', read as the number 1000; if it is a code, say --unordered"
    """
    if not len(read) or not (np.floor(read) == read).all():
        return ""
    if read.min() >= FIRST_DAY and read.max() <= LAST_DAY:
        found = list(map(str.strip, cells))
        days = {cell: _day(cell) for cell in dict.fromkeys(found)}
        if len(days) > 1 and None not in days.values():
            return (
                f"holds {found[0]!r}, read as a number; if it is a date, write it as {days[found[0]]} and say --dates"
            )
        return ""
    for cell, number in zip(cells, read.tolist(), strict=True):
        if PADDED.match(cell.strip()):
            return f"holds {cell.strip()!r}, read as the number {int(number)}; if it is a code, say --unordered"
    return ""


def _day(cell: str) -> date | None:
    try:
        return date.fromisoformat(cell) if len(cell) == len("20200131") and cell.isdecimal() else None
    except ValueError:
        return None


def suspect_columns(X: Any, named: Collection[str | int]) -> Iterator[str]:
    """Yield a warning sentence for each suspicious column of a frame, such as row numbers or numbers stored as text.

    Parameters
    ----------
    X : pandas.DataFrame, polars.DataFrame or array_like
        Training rows without missing cells. Columns of an array have no names, and are not looked at.
    named : collection of str or int
        Columns that the caller names as categorical.

    Examples
    --------
    >>> from kernpool.data.columns import MixedTable
    >>> table = MixedTable({"Id": np.array([7.0, 3.0, 5.0]), "x": np.array([1.0, 1.5, 2.0]), "dose": ["1", "2", "1"]})
    >>> for sentence in suspect_columns(table, []):
    ...     print(sentence[:74])
    column 'Id' of X numbers the rows, which says nothing about new rows; drop
    column 'dose' of X holds numbers as text, such as '1', read as categories;
    """
    table = Columns.of(X)
    if table.names is None:
        return
    for place, (name, column) in enumerate(zip(table.names, table.columns, strict=True)):
        if name in named or place in named:
            continue
        found = None
        if column.kind == "numeric" and len(table.names) > 1:
            found = row_numbers(name, column.numbers())
        elif column.kind == "unordered" and column.levels is None:
            cells = list(map(str, column.items()))
            found = units_or_times(cells) or numbers_or_dates(cells) or row_names(cells)
        if found is not None:
            yield f"{column.label} {found.what}; {found.in_python.format(name=name)}"


def row_labels(names: Sequence[str], metadata: Mapping[str, Any] | None = None) -> tuple[str, ...]:
    """Return the names of the columns of a file in which pandas has stored its index, the row labels.

    Parameters
    ----------
    names : sequence of str
        Of all columns.
    metadata : mapping, optional
        What pandas has written about a Parquet file, or an Arrow table, in ``schema.pandas_metadata``.

    Examples
    --------
    >>> row_labels(["x", "__index_level_0__", "Unnamed: 0"]), row_labels(["x", "day"], {"index_columns": ["day"]})
    (('__index_level_0__', 'Unnamed: 0'), ('day',))
    """
    stated = (metadata or {}).get("index_columns", ())  # a range, which is in no column, is a dict
    return tuple(name for name in names if name in stated or ROW_LABELS.fullmatch(name))


def suspect_numbers(names: Sequence[Any], rows: NDArray[np.floating[Any]], *, whole: bool) -> Iterator[str]:
    """Yield a warning sentence for each column that seems to hold row numbers, for data in chunks or on a cluster.

    Parameters
    ----------
    names : sequence of d names
        Of the columns.
    rows : ndarray of shape (n, d)
        All rows, or a sample of them.
    whole : bool
        Whether it is all rows.

    Examples
    --------
    >>> list(suspect_numbers(["id", "x"], np.array([[9.0, 0.5], [7.0, 1.5], [4.0, 0.0]]), whole=False))
    ["column 'id' of X numbers the rows, which says nothing about new rows; drop it before fit and predict"]
    """
    for name, column in zip(map(str, names), rows.T, strict=True) if len(names) > 1 else ():
        found = row_numbers(name, column, whole=whole)
        if found is not None:
            yield f"column {name!r} of X {found.what}; {found.in_python}"


def row_numbers(name: str, read: NDArray[np.floating[Any]], *, whole: bool = True) -> SuspectColumn | None:
    """Return a `SuspectColumn` if a numeric column seems to hold row numbers, by its name and values, else None.

    Of a sample of the rows, with ``whole=False``, only the names are known, and no sequence 1..n.

    Examples
    --------
    >>> count = np.arange(30.0)
    >>> [row_numbers(name, count) is not None for name in ("index", "PassengerId", "house", "day", "t1")]
    [True, True, True, False, False]
    >>> row_numbers("id", np.array([1.0, 1.0, 2.0])), row_numbers("index", count + 0.5), row_numbers("house", count + 7)
    (None, None, None)
    """
    labels = (ROW_NUMBERS.fullmatch(name) or ROW_LABELS.fullmatch(name)) is not None
    n = len(read)
    if n < 3 or not (labels or (whole and n >= FEW and not TIME_OR_ORDER.fullmatch(name))):
        return None
    low, high = read.min(), read.max()
    if not labels and not (low in (0.0, 1.0) and high - low == n - 1):
        return None
    if (np.floor(read) != read).any() or len(np.unique(read)) < n:
        return None
    return SuspectColumn(
        "numbers the rows, which says nothing about new rows",
        "drop it before fit and predict",
        "leave it out with --features",
    )


def row_names(cells: Sequence[Any]) -> SuspectColumn | None:
    """Return a `SuspectColumn` if most cells of a text column differ from each other, as row names do, else None."""
    different = len(set(cells))
    if different <= max(FEW, len(cells) // 2):
        return None
    return SuspectColumn(
        f"holds {different} different texts in {len(cells)} rows, such as {str(cells[0])[:40]!r}, like names of rows, "
        "which say nothing about new rows",
        "drop it before fit and predict, or name it in unordered=[{name!r}]",
        "leave it out with --features, or say --unordered {name}",
    )


def units_or_times(cells: Sequence[str]) -> SuspectColumn | None:
    """Return a `SuspectColumn` if a text column holds numbers with a unit, or times of the day, else None."""
    what = describe_measures(cells)
    return (
        None
        if what is None
        else SuspectColumn(
            f"holds {cells[0]!r}: {what}",
            "write plain numbers, such as 1234.5, or name it in unordered=[{name!r}]",
            "write plain numbers, such as 1234.5, or say --unordered {name} if these are levels or classes",
        )
    )


def numbers_or_dates(cells: Sequence[str]) -> SuspectColumn | None:
    """Return a `SuspectColumn` if a text column holds plain numbers or mostly dates, else None.

    None of the numbers may be a code such as 007.
    """
    different = list(dict.fromkeys(cells))
    dates = are_dates(different[:: -(-len(different) // LOOKED_AT)])
    if not dates and not all(_is_plain(cell.strip()) and not is_code(cell.strip()) for cell in different):
        return None
    what, remedy = ("dates", "as with pandas.to_datetime") if dates else ("numbers", "as with astype(float)")
    return SuspectColumn(
        f"holds {what} as text, such as {cells[0]!r}, read as categories",
        f"convert it to {what}, {remedy}, or name it in unordered=[{{name!r}}]",
        "say --unordered {name}",
    )
