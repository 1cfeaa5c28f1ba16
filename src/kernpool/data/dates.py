"""Dates as numbers: days since 1970-01-01, of what ISO 8601 writes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from datetime import UTC, date, datetime, time, timedelta
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

ISO = re.compile(r"\d{4}-\d{2}-\d{2}(?:[T ]\d{2}:\d{2}(?::\d{2}(?:\.\d+)?)?(?:Z|[+-]\d{2}(?::?\d{2})?)?)?")
OTHER = re.compile(r"\d{1,4}([./-])\d{1,2}\1\d{1,4}(?:[ T].*)?")
EPOCH, DAY = datetime(1970, 1, 1, tzinfo=UTC), timedelta(days=1)


def looks_like_date(cell: Any) -> bool:
    """Tell whether a cell looks like a date, of ISO 8601 or another.

    Examples
    --------
    >>> [looks_like_date(cell) for cell in ("2020-01-31", "31.1.2020", "1.5", "1/2")]
    [True, True, False, False]
    """
    if isinstance(cell, date | np.datetime64):
        return True
    return isinstance(cell, str) and bool(ISO.fullmatch(cell.strip()) or OTHER.fullmatch(cell.strip()))


def are_dates(cells: Iterable[Any]) -> bool:
    """Tell whether all cells look like dates."""
    return all(map(looks_like_date, cells))


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
