"""Dates and durations as numbers: days since 1970-01-01 UTC, from columns of any library and from ISO 8601 text.

`times_of` reads the dates or durations of a column, and `Times.days` converts them to days. `Times.kind` is what a
model stores and compares with the kind of later columns. Every conversion of the package goes through these two.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import Any, Literal, get_args

import numpy as np

from kernpool._arrays import AnyArray, Array, Integers
from kernpool.data.array_validation import is_missing

TimeKind = Literal["date", "date with a time zone", "duration"]

TIME_KINDS: tuple[TimeKind, ...] = get_args(TimeKind)

ISO = re.compile(r"\d{4}-\d{2}-\d{2}(?:[T ]\d{2}:\d{2}(?::\d{2}(?:\.\d+)?)?(?:Z|[+-]\d{2}(?::?\d{2})?)?)?")
OTHER = re.compile(r"\d{1,4}([./-])\d{1,2}\1\d{1,4}(?:[ T].*)?")
YEAR, MONTH = r"(?:1[5-9]|20)\d\d", r"(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]{0,6}\.?"
NAMED = re.compile(  # months by their names, months alone, quarters and weeks: one way to write each
    rf"\d{{1,2}}[-./ ]{{0,2}}{MONTH}[-./, ]{{0,2}}(?:{YEAR}|\d\d)|{MONTH}[- ]?(?:\d{{1,2}},? )?{YEAR}"
    rf"|\d{{1,2}}\.? [^\W\d_]{{3,9}}\.? {YEAR}|{YEAR}[-/](?:0[1-9]|1[0-2])|(?:0?[1-9]|1[0-2])[-/.]{YEAR}"
    rf"|{YEAR}[- ]?Q[1-4]|{YEAR}-?W\d\d(?:-?\d)?|{YEAR}\u5e74\d{{1,2}}\u6708(?:\d{{1,2}}\u65e5)?",
    re.IGNORECASE,
)
MOST = 1000  # cells that are examined
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
PER_DAY = {"h": 24, "m": 1440, "s": 86_400} | {
    unit: 86_400 * 1000**power for power, unit in enumerate(("ms", "us", "ns", "ps", "fs", "as"), 1)
}
NOT_A_TIME = np.iinfo(np.int64).min  # which NumPy and Arrow both show as NaT
LEAST_STEP = 100  # in units of the spacing of float64: steps between times are off by half a percent then


@dataclass(frozen=True, eq=False)
class Times:
    """Dates or durations of one column, as an array in any unit, with their kind.

    Parameters
    ----------
    kind : {"date", "date with a time zone", "duration"}
        Kind of the cells.
    cells : ndarray of datetime64, timedelta64 or float64, shape (n,)
        In any unit, or days; dates with a time zone in UTC. Missing ones are NaT or NaN.
    """

    kind: TimeKind
    cells: AnyArray

    def __len__(self) -> int:
        return len(self.cells)

    def take(self, rows: Any) -> Times:
        """Return the `Times` of the selected rows."""
        return Times(self.kind, self.cells[rows])

    def days(self) -> Array:
        """Return dates as days since 1970-01-01 UTC, or durations as days; NaN where a cell is missing.

        Examples
        --------
        >>> Times("date", np.array(["1970-01-02", "2020-01-31T06", "NaT"], "M8[h]")).days().tolist()
        [1.0, 18292.25, nan]
        """
        if self.cells.dtype.kind == "f":
            return self.cells
        ticks, per_day = ticks_of(self.cells)
        if per_day < 1 << 62:
            whole, rest = np.divmod(ticks, per_day)
            days = whole + rest / per_day
        else:
            days = ticks / per_day
        days[np.isnat(self.cells)] = np.nan
        return np.asarray(days)

    def check_steps(self, label: str) -> None:
        """Raise ValueError if dates or durations are too close together to be distinguished as days in float64."""
        unit = "" if self.cells.dtype.kind == "f" else np.datetime_data(self.cells.dtype)[0]
        if unit not in PER_DAY or not len(self.cells):
            return
        days = self.days()
        days = days[~np.isnan(days)]
        precision = float(np.spacing(np.abs(days).max(initial=0.0)))
        if 1 / PER_DAY[unit] >= LEAST_STEP * precision:
            return
        times = np.unique(self.cells[~np.isnat(self.cells)])
        if len(times) < 2:
            return
        step = float(days.max() - days.min()) / (len(times) - 1)
        if len(np.unique(days)) == len(times) and step >= LEAST_STEP * precision:
            return
        raise ValueError(
            f"{label} holds a {self.kind} per row, too close together: they are converted to days, whose precision is "
            f"{precision * 86_400e6:.2g} microseconds there. Subtract an origin from all such columns and pass seconds "
            "as numbers, as in (t - origin) / numpy.timedelta64(1, 's'), or round them to a coarser unit"
        )


def times_of(label: str, column: Any) -> Times | None:
    """Return a column of dates or durations, of any supported library, as `Times`; None for other columns."""
    if isinstance(column, np.ndarray):
        return _of_array(label, column)
    library = type(column).__module__.partition(".")[0]
    if library == "pandas":
        return _of_pandas(label, column)
    if library == "polars":
        return _of_polars(label, column)
    return _of_arrow(column) if library == "pyarrow" else _of_objects(label, column)


def _of_array(label: str, array: AnyArray) -> Times | None:
    if array.dtype.kind == "M":
        return Times("date", array)
    if array.dtype.kind == "m":
        unit = np.datetime_data(array.dtype)[0]
        if unit in ("Y", "M", "generic"):
            raise ValueError(f"{label} holds durations of dtype {array.dtype}, which have no length in days; pass days")
        return Times("duration", array)
    return _of_objects(label, array.tolist()) if array.dtype.kind == "O" else None


def _of_pandas(label: str, column: Any) -> Times | None:
    column = column if hasattr(column, "iloc") else column.to_series()
    dtype = column.dtype
    if dtype.kind in "mM" and hasattr(dtype, "pyarrow_dtype"):
        from pyarrow import array

        return _of_arrow(array(column))
    if dtype.kind in "mM":
        zone = getattr(dtype, "tz", None)
        cells = (column if zone is None else column.dt.tz_convert(None)).to_numpy()
        return Times(_kind(dtype.kind == "m", zone), cells)
    return _of_objects(label, column.tolist()) if isinstance(dtype, np.dtype) and dtype.kind == "O" else None


def _of_polars(label: str, column: Any) -> Times | None:
    name, zone = column.dtype.base_type().__name__, getattr(column.dtype, "time_zone", None)
    if name == "Object":
        return _of_objects(label, column.to_list())
    if name not in ("Date", "Datetime", "Duration"):
        return None
    if zone is not None:
        column = column.dt.convert_time_zone("UTC").dt.replace_time_zone(None)
    return Times(_kind(name == "Duration", zone), column.to_numpy())


def _kind(is_duration: bool, zone: object) -> TimeKind:
    if is_duration:
        return "duration"
    return "date" if zone is None else "date with a time zone"


def ticks_of(cells: AnyArray) -> tuple[Integers, int]:
    """Return dates or durations of NumPy as whole ticks, and the number of ticks in a day; one for days and longer."""
    # Missing cells hold `NOT_A_TIME`.
    unit = np.datetime_data(cells.dtype)[0]
    unit = unit if unit in PER_DAY else "D"
    return cells.astype(f"{cells.dtype.kind}8[{unit}]").view(np.int64), PER_DAY.get(unit, 1)


def arrow_kind(form: Any) -> TimeKind | None:
    """Return the kind of an Arrow type: date with or without a time zone, duration, or None for anything else."""
    from pyarrow import types

    if not types.is_temporal(form) or types.is_time(form):
        return None
    return _kind(types.is_duration(form), getattr(form, "tz", None))


def _of_arrow(column: Any) -> Times | None:
    from pyarrow import compute, int32, int64, types

    if types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    form, kind = column.type, arrow_kind(column.type)
    if kind is None:
        return None
    if types.is_date32(form):
        column, unit = column.cast(int32()), "D"
    else:
        unit = "ms" if types.is_date64(form) else form.unit
    ticks = np.asarray(compute.fill_null(column.cast(int64()), NOT_A_TIME))
    cells: AnyArray = ticks.view(f"{'m' if kind == 'duration' else 'M'}8[{unit}]")
    return Times(kind, cells)


def _of_objects(label: str, cells: Iterable[Any]) -> Times | None:
    """Return Python dates or durations as `Times`; None if other objects are among them, or all cells are missing."""
    # Cells are in microseconds if these are exact, else in nanoseconds.
    kinds: set[TimeKind] = set()
    ticks: list[tuple[int, int] | None] = []  # microseconds, and nanoseconds in addition
    for cell in cells:
        if is_missing(cell):
            ticks.append(None)
            continue
        if not isinstance(cell, date | timedelta | np.datetime64 | np.timedelta64):
            return None
        kind, tick = _tick(cell)
        kinds.add(kind)
        ticks.append(tick)
    if not kinds:
        return None
    if len(kinds) > 1:
        found = " and ".join(repr(kind) for kind in TIME_KINDS if kind in kinds)
        raise ValueError(f"{label} mixes cells of the kinds {found}; convert all of them to one kind")
    (kind,), fine = kinds, any(tick is not None and tick[1] for tick in ticks)
    numbers = [NOT_A_TIME if tick is None else tick[0] * 1000 + tick[1] if fine else tick[0] for tick in ticks]
    try:
        array = np.array(numbers, dtype=np.int64)
    except OverflowError:
        raise ValueError(f"{label} holds {kind}s in nanoseconds that 64 bits do not hold; round them first") from None
    return Times(kind, array.view(f"{'m' if kind == 'duration' else 'M'}8[{'ns' if fine else 'us'}]"))


def _tick(cell: Any) -> tuple[TimeKind, tuple[int, int]]:
    """Split a date or duration into its kind, whole microseconds (of a date, since 1970) and remaining nanoseconds."""
    if isinstance(cell, np.datetime64 | np.timedelta64):
        whole = cell.astype(f"{cell.dtype.kind}8[us]")
        rest = int((cell - whole) / np.timedelta64(1, "ns")) if np.datetime_data(cell.dtype)[0] in ("ns", "ps") else 0
        return "date" if cell.dtype.kind == "M" else "duration", (int(whole.astype(np.int64)), rest)
    kind = _kind(not isinstance(cell, date), getattr(cell, "tzinfo", None))
    if isinstance(cell, date):
        cell = cell if isinstance(cell, datetime) else datetime.combine(cell, time())
        cell = cell - (EPOCH if cell.tzinfo else EPOCH.replace(tzinfo=None))
    microseconds = (cell.days * 86_400 + cell.seconds) * 1_000_000 + cell.microseconds
    return kind, (microseconds, getattr(cell, "nanoseconds", 0))


def in_words(value: float, kind: str, digits: int = 6) -> str:
    """Format a number as text; in a column of dates or durations, format it as the date or duration it stands for.

    Examples
    --------
    >>> in_words(18292.25, "date"), in_words(1.0, "date with a time zone"), in_words(0.5, "duration")
    ('2020-01-31T06:00', '1970-01-02Z', '0.5 days')
    >>> in_words(18292.25, "numeric"), in_words(18292.25, "numeric", 7), in_words(1e99, "date")
    ('18292.2', '18292.25', '1e+99 days since 1970-01-01')
    """
    if kind not in TIME_KINDS:
        return f"{value:.{digits}g}"
    if kind == "duration":
        return f"{value:.{max(digits, 10)}g} days"
    if not abs(value) < 1e6:
        return f"{value:g} days since 1970-01-01"
    moment = np.datetime64(round(value * 86_400), "s")
    unit = next(unit for unit in ("D", "m", "s") if moment == moment.astype(f"M8[{unit}]"))
    return f"{moment.astype(f'M8[{unit}]')}{'Z' * (kind == 'date with a time zone')}"


def looks_like_date(cell: Any) -> bool:
    """Return whether a cell looks like a date, in ISO 8601 or another common format."""
    if isinstance(cell, date | np.datetime64):
        return True
    return isinstance(cell, str) and any(form.fullmatch(cell.strip()) for form in (ISO, OTHER, NAMED))


def are_dates(cells: Sequence[Any]) -> bool:
    """Return whether more than half of the cells of a column look like dates."""
    # Of a long column at most 1000 cells are examined. Other text among them is then an error.
    some = cells[:: -(-len(cells) // MOST)]
    return 2 * sum(map(looks_like_date, some)) > len(some)
