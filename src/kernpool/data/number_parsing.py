"""Conversion of one column's cells (text, arrays, Arrow) to floats, and descriptions of non-numeric cells."""

from __future__ import annotations

import math
import re
from decimal import Decimal
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernpool.data.array_validation import LARGEST_INTEGER, find_inexact, is_missing
from kernpool.data.dates import NOT_A_TIME, arrow_kind, ticks_of

Array = NDArray[np.float64]

LONGEST = 60  # characters of a cell that a message shows
SHOWN = 40  # characters of a longer cell
# What programs write where there is nothing, in lower case: R, pandas, SQL, spreadsheets, SAS and Stata, and UCI.
MISSING = frozenset(("", "na", "n/a", "n.a.", "#n/a", "nan", "<na>", "nat", "null", "none", "-", ".", "?"))


def unreadable(cells: Any) -> str | None:
    """Return the type, in words, of a column that is not numeric; None for numeric columns and cells of text files.

    Parameters
    ----------
    cells : sequence of str, ndarray, or pyarrow.ChunkedArray
        The column.

    Examples
    --------
    >>> unreadable(np.array([1j])), unreadable(["1"])
    ('complex128', None)
    """
    if _is_arrow(cells):
        from pyarrow import types

        kind = cells.type
        if types.is_dictionary(kind):
            return f"categories ({kind})"
        return None if is_real(kind) else str(kind)
    if isinstance(cells, np.ndarray) and (cells.dtype.kind not in "fiub" or cells.ndim != 1):
        return f"{cells.dtype}{list(cells.shape[1:]) or ''}"
    return None


def is_real(kind: Any) -> bool:
    """Return whether an Arrow type is of real numbers: integers, floating point, decimals or booleans."""
    from pyarrow import types

    return bool(types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind) or types.is_boolean(kind))


def arrow_numbers(cells: Any) -> NDArray[Any]:
    """Convert an Arrow column of real numbers to an array: decimals to floats, integers unchanged if none is missing.

    Parameters
    ----------
    cells : pyarrow.Array or pyarrow.ChunkedArray
        Of a type that `is_real`.
    """
    from pyarrow import types

    if types.is_decimal(cells.type):
        cells = cells.cast("string").cast("float64")  # as text, since Arrow's own conversion rounds twice
    return np.asarray(cells.to_numpy() if hasattr(cells, "chunks") else cells.to_numpy(zero_copy_only=False))


def as_floats(cells: Any) -> Array:
    """Convert the cells of a column to floats; cells that are not numbers become NaN.

    Parameters
    ----------
    cells : sequence of str, ndarray, or pyarrow.ChunkedArray
        A column that is not `unreadable`.

    Examples
    --------
    >>> as_floats(["1", "x", ""])
    array([ 1., nan, nan])
    """
    if _is_arrow(cells):
        cells = arrow_numbers(cells)
    if isinstance(cells, np.ndarray) and cells.dtype.kind != "O":
        return cells.astype(np.float64)
    if hasattr(cells, "floats") and (fast := cells.floats()) is not None:
        return np.asarray(fast)
    text = "".join(cells) if isinstance(cells[0], str) else "_"
    if text.isascii() and "_" not in text:  # Python would read 1_0 as 10, and digits of other scripts
        try:
            return np.array(cells, dtype=np.float64)
        except ValueError:
            pass
    return np.array([_float(cell) for cell in cells])


def rounded_integer(cells: Any, read: Array, thousands: str = ",") -> tuple[int, int] | None:
    """Return the row and the value of the first integer of a column that was rounded when read as float, or None.

    Parameters
    ----------
    cells : sequence of str, ndarray, or pyarrow.ChunkedArray
        A column.
    read : ndarray
        What `as_floats` made of it, all finite.
    thousands : {",", "."}
        What may separate thousands in it.

    Returns
    -------
    row, integer : int
        Of the first one; None instead of both if there is none.

    Examples
    --------
    >>> cells = ["7", "9007199254740993"]
    >>> rounded_integer(cells, as_floats(cells))
    (1, 9007199254740993)
    """
    if _is_arrow(cells):
        cells = arrow_numbers(cells)
    if isinstance(cells, np.ndarray):
        found = find_inexact(cells, cells)
        return None if found is None else (found[0][0], found[1])
    for row in np.flatnonzero(np.abs(read) >= LARGEST_INTEGER).tolist():
        digits = cells[row].strip().replace(thousands, "")
        if digits.lstrip("+-").isdecimal() and int(digits) != int(read[row]):
            return row, int(digits)
    return None


def is_text(cells: Any, bad: NDArray[np.intp]) -> bool:
    """Return whether no cell of a column is a number, and at least one is text other than a marker of missing cells.

    `bad` holds the indices of the cells that are not finite numbers.
    """
    return not isinstance(cells, np.ndarray) and len(bad) == len(cells) and any(map(_is_word, cells))


@lru_cache
def sentinels(missing: frozenset[str]) -> NDArray[np.float64]:
    """Return the numbers, such as -999, among the markers of missing cells.

    Examples
    --------
    >>> sentinels(frozenset(("", "na", "-999")))
    array([-999.])
    """
    return np.array([read for read in map(_float, sorted(missing)) if math.isfinite(read)], dtype=np.float64)


def is_blank(cell: Any, missing: frozenset[str] = MISSING) -> bool:
    """Return whether a cell is empty or holds a marker of a missing value, such as NA.

    Text is compared without regard to case, numbers by their value.

    Examples
    --------
    >>> [is_blank(cell) for cell in (" ", "NA", None, math.nan, 0.0, "Namibia")]
    [True, True, True, True, False, False]
    """
    if (cell.strip().lower() in missing) if isinstance(cell, str) else is_missing(cell):
        return True
    numbers = sentinels(missing)
    return bool(numbers.size and (numbers == _float(cell)).any())


def is_string(cells: Any) -> bool:
    """Return whether a column holds strings: cells of a text file, or a column of a string type."""
    if _is_arrow(cells):
        from pyarrow import types

        kind = cells.type
        if types.is_dictionary(kind):
            kind = kind.value_type
        return bool(types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind))
    if isinstance(cells, np.ndarray):
        return cells.dtype.kind == "U" and cells.ndim == 1
    return True


def is_boolean(cells: Any) -> bool:
    """Return whether a column has a boolean type."""
    return str(cells.type) == "bool" if _is_arrow(cells) else getattr(cells, "dtype", None) == np.bool_


def is_time(cells: Any) -> bool:
    """Return whether a column has a type of dates or durations."""
    if _is_arrow(cells):
        return arrow_kind(cells.type) is not None
    return isinstance(cells, np.ndarray) and cells.dtype.kind in "mM"


def as_objects(cells: Any) -> list[Any]:
    """Return the cells of a column as a list of scalar objects, with spaces around text removed."""
    if _is_arrow(cells):
        found = list(cells.to_numpy()) if is_time(cells) else cells.to_pylist()
    elif isinstance(cells, np.ndarray):
        found = list(cells) if cells.dtype.kind in "mM" else cells.tolist()
    else:
        found = list(cells)
    return [cell.strip() if isinstance(cell, str) else cell for cell in found]


def time_words(cells: Any) -> list[str | None]:
    """Format a column of dates or durations as ISO 8601 text, with the time zone's offset; None for missing cells.

    Examples
    --------
    >>> time_words(np.array(["2020-01-31", "NaT"], dtype="datetime64[s]"))
    ['2020-01-31T00:00:00', None]
    >>> time_words(np.array([-90, 86400], dtype="timedelta64[s]"))
    ['-P0DT0H1M30S', 'P1DT0H0M0S']
    """
    if _is_arrow(cells) and arrow_kind(cells.type) == "duration":
        cells = cells.to_numpy()
    if isinstance(cells, np.ndarray) and cells.dtype.kind == "m":
        ticks, per_day = ticks_of(cells)
        return [None if tick == NOT_A_TIME else _iso_duration(tick, per_day) for tick in ticks.tolist()]
    written = cells.cast("string").to_pylist() if _is_arrow(cells) else np.datetime_as_string(cells).tolist()
    return [None if cell in (None, "NaT") else _iso(cell) for cell in written]


def _iso(written: str) -> str:
    """Convert a time in text to ISO 8601: with T, a colon in the offset, and no trailing zeros of fractions."""
    day, sign, rest = written.replace("T", " ").partition(" ")
    rest = re.sub(r"(\.\d*?)0+(?=\D|$)", lambda found: found[1].rstrip("."), rest)
    return day + sign.replace(" ", "T") + re.sub(r"([+-]\d\d)(\d\d)$", r"\1:\2", rest)


def _iso_duration(ticks: int, per_day: int) -> str:
    """Convert a duration to ISO 8601 text, as pandas writes and reads it; `per_day` is the number of ticks in a day."""
    days, rest = divmod(abs(ticks), per_day)
    whole, seconds = divmod(Decimal(rest) * 86400 / per_day, 60)
    hours, minutes = divmod(int(whole), 60)
    return f"{'-' if ticks < 0 else ''}P{days}DT{hours}H{minutes}M{seconds.normalize():f}S"


def take_cells(cells: Any, rows: NDArray[np.intp]) -> Any:
    """Return the cells of a column in the rows with these indices.

    The result is of the column's type; it is a tuple if the column is a list or a tuple.
    """
    if isinstance(cells, np.ndarray):
        return cells[rows]
    return cells.take(rows) if hasattr(cells, "take") else tuple(cells[row] for row in rows.tolist())


def words(cell: Any) -> str:
    """Describe a cell for a message: that it is empty, or what it holds, shortened if it is long.

    Examples
    --------
    >>> words(" "), words("x"), words("9" * 400)
    ('is empty', "holds 'x'", "holds '9999999999999999999999999999999999999999'... (of 400 characters)")
    """
    text = "" if cell is None else str(cell)
    if not text.strip():
        return "is empty"
    if len(text) > LONGEST:
        return f"holds {text[:SHOWN]!r}... (of {len(text)} characters)"
    return f"holds {text!r}"


def cell_at(cells: Any, row: int) -> Any:
    """Return the cell of a column in one row; an Arrow scalar is converted to a Python object."""
    cell = cells[row]
    return cell.as_py() if hasattr(cell, "as_py") else cell


def _is_arrow(cells: Any) -> bool:
    return hasattr(cells, "null_count")


def _is_word(cell: Any) -> bool:
    return isinstance(cell, str) and not is_blank(cell)


def _float(cell: Any) -> float:
    if isinstance(cell, str):
        cell = cell.strip()  # of spaces that do not break, too
        if "_" in cell or not cell.isascii():
            return math.nan
    if not isinstance(cell, str | int | float | np.number | np.bool_):
        return math.nan
    try:
        return float(cell)
    except (ValueError, OverflowError):
        return math.nan


PADDED = re.compile(r"[+-]?0\d")


def is_code(cell: str) -> bool:
    """Return whether a cell is a code such as 007, which would lose zeros or digits if it were read as a float.

    Leading zeros are lost, and digits beyond those of float64.

    Examples
    --------
    >>> [is_code(cell) for cell in ("007", "9007199254740993", "0.5", "0", "-12")]
    [True, True, False, False, False]
    """
    if PADDED.match(cell):
        return True
    digits = cell.lstrip("+-")
    return digits.isdecimal() and int(digits) > LARGEST_INTEGER
