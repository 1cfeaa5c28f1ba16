"""Columns that look like something else: numbers of rows, and numbers or dates that are stored as text.

Numbers in a table of several columns number the rows if they are whole, all different, and called id, index, row,
rownames or the like; or if they are 1..n or 0..n-1 in any order, of 20 rows or more, under a name that is none of
time, order or measure. Columns that the caller names as categorical, or whose categories are declared, are exempt.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernpool.data.array_validation import LARGEST_INTEGER
from kernpool.data.columns import Columns
from kernpool.data.dates import are_dates

FEWEST = 20  # fewer numbers may count by chance
LOOKED_AT = 100  # different texts, for dates
PADDED = re.compile(r"[+-]?0\d")
ROW_LABELS = re.compile(r"__index_level_\d+__|Unnamed: 0(?:\.\d+)?")  # what pandas writes for those without a name
ROW_NUMBERS = re.compile(
    r"(?i:ids?|uuid|index|row(?:[ ._-]?(?:names?|numbers?|index|id))?|.*[ ._-]id)|.*[a-z]I[dD]|" + ROW_LABELS.pattern
)
TIME_OR_ORDER = re.compile(
    r"[xt]\d*|(?:.*[\W_])?(?:time|timestamp|date|dt|day|week|month|quarter|year|yr|hour|hr|minute|second|season|period"
    r"|epoch|step|stage|order|rank|age|trial|iteration|frame|cycle|round|session|visit|wave|position|distance|depth"
    r"|height|level|dose|temperature)s?\d*(?:[\W_].*)?",
    re.IGNORECASE,
)
NUMBERS_ROWS = "numbers the rows, which says nothing about new rows"


class SuspectColumnWarning(UserWarning):
    """Warning about a predictor whose content contradicts its type: row numbers, or numbers or dates stored as text.

    The message names the column and the remedy. A column of categories is named in ``unordered=``; otherwise ignore
    the warning with ``warnings.simplefilter("ignore", SuspectColumnWarning)``.
    """


def suspect_columns(X: Any, named: Collection[str | int]) -> Iterator[str]:
    """Yield a warning sentence for each suspicious column of a frame, but for those that the caller has `named`."""
    table = Columns.of(X)
    names = table.names or ()
    for place, (name, column) in enumerate(zip(names, table.columns, strict=False)):
        if name in named or place in named:
            continue
        if column.kind == "numeric" and len(names) > 1 and is_row_number(name, column.numbers()):
            yield f"{column.label} {NUMBERS_ROWS}; drop it before fit and predict"
        elif column.kind == "unordered" and column.levels is None:
            cells = list(dict.fromkeys(map(str, column.items())))
            what, remedy = numbers_or_dates(cells)
            if what:
                yield (
                    f"{column.label} holds {what} as text, such as {cells[0]!r}, read as categories; convert it to "
                    f"{what}, as with {remedy}, or name it in unordered=[{name!r}]"
                )


def suspect_numbers(names: Sequence[Any], rows: NDArray[np.floating[Any]], *, whole: bool) -> Iterator[str]:
    """Yield a warning sentence for each column that numbers the rows, of all rows if `whole`, otherwise of a sample."""
    for name, column in zip(map(str, names), rows.T, strict=True) if len(names) > 1 else ():
        if is_row_number(name, column, whole=whole):
            yield f"column {name!r} of X {NUMBERS_ROWS}; drop it before fit and predict"


def is_row_number(name: str, read: NDArray[np.floating[Any]], *, whole: bool = True) -> bool:
    """Return whether a numeric column seems to number the rows; of a sample only its name says so."""
    n = len(read)
    is_named = ROW_NUMBERS.fullmatch(name) is not None
    if n < 3 or (np.floor(read) != read).any() or len(np.unique(read)) < n:
        return False
    counts = read.min() in (0.0, 1.0) and np.ptp(read) == n - 1
    return is_named or bool(whole and n >= FEWEST and counts and not TIME_OR_ORDER.fullmatch(name))


def numbers_or_dates(cells: Sequence[str]) -> tuple[str, str]:
    """Return what the different cells of a text column are, numbers or mostly dates, and how to convert them."""
    if are_dates(cells[:: -(-len(cells) // LOOKED_AT)]):
        return "dates", "pandas.to_datetime"
    is_number = all(cell.isascii() and not is_code(cell.strip()) and _reads(cell) for cell in cells)
    return ("numbers", "astype(float)") if is_number else ("", "")


def is_code(cell: str) -> bool:
    """Return whether a cell is a code such as 007, which would lose zeros or digits if it were read as a float."""
    # Leading zeros are lost, and digits beyond those of float64.
    if PADDED.match(cell):
        return True
    digits = cell.lstrip("+-")
    return digits.isdecimal() and int(digits) > LARGEST_INTEGER


def _reads(cell: str) -> bool:
    try:
        return np.isfinite(float(cell)) and "_" not in cell
    except ValueError:
        return False


def row_labels(names: Sequence[str], metadata: Mapping[str, Any] | None = None) -> tuple[str, ...]:
    """Return the names of the columns of a file in which pandas has stored its index, the row labels.

    Examples
    --------
    >>> row_labels(["x", "__index_level_0__", "Unnamed: 0"]), row_labels(["x", "day"], {"index_columns": ["day"]})
    (('__index_level_0__', 'Unnamed: 0'), ('day',))
    """
    stated = (metadata or {}).get("index_columns", ())  # a range, which is in no column, is a dict
    return tuple(name for name in names if name in stated or ROW_LABELS.fullmatch(name))
