"""Columns that look like one thing and would be read as another: numbers with a unit, times, codes, days as digits."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import date

import numpy as np
from numpy.typing import NDArray

from kernpool.data.codes import PADDED

MEASURE = re.compile(
    r"(\(?-?[$\u20ac\u00a3\u00a5]?)\s*"  # a bracket, as accountants write for less than nothing, or a currency
    r"([+-]?\d[\d.,' \u2019\u00a0\u202f]*)"  # digits in groups
    r"(\)?\s*(?:[%\u2030$\u20ac\u00a3\u00a5\u00b0]?[^\W\d_]{0,3})\)?)"  # a unit
)
GROUPED = re.compile(r"[' \u2019\u00a0\u202f]")
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
    """
    units, numbers = set(), set()
    times = True
    for cell in cells:
        times = times and TIME.fullmatch(cell) is not None
        found = None if times else MEASURE.fullmatch(cell)
        if not times and found is None:
            return None
        if found is not None:
            units.add((found[1].replace("-", "").strip("() "), found[3].strip(") ")))
        numbers.add(cell if found is None else found[2])
    if len(numbers) < 2 or len(units) > 1:
        return None
    if units == {("", "")} and not any(GROUPED.search(number.strip()) for number in numbers):
        return None  # text of digits, of a file that says that it is text
    return "a time of a day" if times else "a number with a unit or another sign"


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
