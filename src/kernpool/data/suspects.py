"""Columns that look like one thing and would be read as another: numbers with a unit, times, codes, days as digits."""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Iterable
from datetime import date

import numpy as np
from numpy.typing import NDArray

from kernpool.data.codes import PADDED

MEASURE = re.compile(
    # A bracket, as accountants write for less than nothing; limits of detection; what spreadsheets mark text by
    r"((?:=\"|[\"'(<>~\u2264\u2265\u2248\u00b1])?-?[$\u20ac\u00a3\u00a5]?)\s*"
    r"([+-]?\d[\d.,'_ \u2019\u00a0\u202f]*)"  # digits in groups
    r"(\)?\s*(?:[%\u2030$\u20ac\u00a3\u00a5\u00b0]?[^\W\d_]{0,3})[)\"*-]?)"  # a unit, or a sign behind the number
)
DASHES = dict.fromkeys(map(ord, "\u2212\u2013\ufe63\uff0d"), "-")  # that people type for minus
TIME = re.compile(r"\d{1,2}:\d{2}(?::\d{2}(?:\.\d+)?)?")
FIRST_DAY, LAST_DAY = 18_000_101, 21_001_231


def measured(cells: Iterable[str]) -> str | None:
    """Say what text is that people mean as numbers: one unit or sign in all cells, or times of a day.

    Returns
    -------
    str or None
        None if it is something else, such as ``1st``, ``2nd``, or if there is one number only.

    Examples
    --------
    >>> measured(["5%", "7.5%"]), measured(["1 000,50", "2 000,50"]), measured(["00:15", "04:45"])
    ('a number with a unit or another sign', 'a number with a unit or another sign', 'a time of a day')
    >>> measured(["1st", "2nd"]), measured(["A1", "A2"]), measured(["3rd", "3rd"])
    (None, None, None)
    >>> measured(["\u22121", "\u22122"]), measured(["<1", "<2"]), measured(["1,23,456", "2,34,567"])[:8]
    ('a number with a unit or another sign', 'a number with a unit or another sign', 'a number')
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
    """Return a cell with the digits and the minus that Python reads numbers with."""
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
    """Say what else integers may be, that are read as numbers: days as eight digits, or codes with zeros in front.

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
