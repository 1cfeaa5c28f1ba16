"""Dates as numbers: days since 1970-01-01, of what ISO 8601 writes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, date, datetime, time, timedelta
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

ISO = re.compile(r"\d{4}-\d{2}-\d{2}(?:[T ]\d{2}:\d{2}(?::\d{2}(?:\.\d+)?)?(?:Z|[+-]\d{2}(?::?\d{2})?)?)?")
OTHER = re.compile(r"\d{1,4}([./-])\d{1,2}\1\d{1,4}(?:[ T].*)?")
YEAR, MONTH = r"(?:1[5-9]|20)\d\d", r"(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]{0,6}\.?"
NAMED = re.compile(  # months by their names, months alone, quarters and weeks: one way to write each
    rf"\d{{1,2}}[-./ ]{{0,2}}{MONTH}[-./, ]{{0,2}}(?:{YEAR}|\d\d)|{MONTH}[- ]?(?:\d{{1,2}},? )?{YEAR}"
    rf"|\d{{1,2}}\.? [^\W\d_]{{3,9}}\.? {YEAR}|{YEAR}[-/](?:0[1-9]|1[0-2])|(?:0?[1-9]|1[0-2])[-/.]{YEAR}"
    rf"|{YEAR}[- ]?Q[1-4]|{YEAR}-?W\d\d(?:-?\d)?|{YEAR}\u5e74\d{{1,2}}\u6708(?:\d{{1,2}}\u65e5)?",
    re.IGNORECASE,
)
MOST = 1000  # cells are looked at
EPOCH, DAY = datetime(1970, 1, 1, tzinfo=UTC), timedelta(days=1)


def looks_like_date(cell: Any) -> bool:
    """Tell whether a cell looks like a date, of ISO 8601 or another.

    Examples
    --------
    >>> [looks_like_date(cell) for cell in ("2020-01-31", "31.1.2020", "31 Jan 2020", "2020Q1", "1.5", "1/2")]
    [True, True, True, True, False, False]
    """
    if isinstance(cell, date | np.datetime64):
        return True
    return isinstance(cell, str) and any(form.fullmatch(cell.strip()) for form in (ISO, OTHER, NAMED))


def are_dates(cells: Sequence[Any]) -> bool:
    """Tell whether more than half of the cells look like dates: other text among them is then a mistake.

    Examples
    --------
    >>> are_dates(["2020-01-31", "2020-02-01", "unknown"]), are_dates(["unknown", "2020-02-01", "closed"])
    (True, False)
    """
    some = cells[:: -(-len(cells) // MOST)]
    return 2 * sum(map(looks_like_date, some)) > len(some)


def days_of(cells: Sequence[Any]) -> tuple[Array, int | None]:
    """Return dates as days since 1970-01-01 UTC; without a time zone they are in UTC.

    Parameters
    ----------
    cells : sequence of str, datetime.date or numpy.datetime64
        Of ISO 8601, such as 2020-01-31 or 2020-01-31T06:00Z.

    Returns
    -------
    days : ndarray
        NaN where a cell is no such date.
    first : int or None
        The first of those cells.

    Examples
    --------
    >>> days_of(["1970-01-02", "2020-01-31T06:00", "31.1.2020"])
    (array([1.000000e+00, 1.829225e+04,          nan]), 2)
    """
    days = np.array([_day(cell) for cell in cells], dtype=np.float64)
    bad = np.flatnonzero(np.isnan(days))
    return days, int(bad[0]) if bad.size else None


def _day(cell: Any) -> float:
    if isinstance(cell, np.datetime64):
        return float((cell - np.datetime64(0, "D")) / np.timedelta64(1, "D"))
    if isinstance(cell, str):
        cell = cell.strip()
        if not ISO.fullmatch(cell):
            return np.nan
        try:
            cell = datetime.fromisoformat(cell)
        except ValueError:  # no such day
            return np.nan
    if isinstance(cell, date) and not isinstance(cell, datetime):
        cell = datetime.combine(cell, time())
    if not isinstance(cell, datetime):
        return np.nan
    return ((cell if cell.tzinfo else cell.replace(tzinfo=UTC)) - EPOCH) / DAY
