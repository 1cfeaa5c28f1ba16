"""Text output of results: significant digits chosen by the standard error, short lists, aligned columns."""

import html
import math
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any

import numpy as np

from kernpool._arrays import AnyArray, Array

LISTED = 5  # numbers in a line
ROWS = 6  # of a table


def listed(numbers: Array) -> str:
    """Format the first five numbers of an array as one line."""
    flat = np.ravel(numbers[:LISTED])
    return ", ".join(f"{number:.4g}" for number in flat[:LISTED]) + ", ..." * (np.size(numbers) > LISTED)


def digits_beside(size: Array, error: Array) -> int:
    """Return how many significant digits numbers need to show two digits of their standard errors."""
    with np.errstate(invalid="ignore"):
        errors = error[np.isfinite(error) & (error > 0)]
        largest = np.max(np.abs(size[np.isfinite(size)]), initial=0.0)
    if not errors.size or largest == 0.0:
        return 6
    return min(max(math.ceil(math.log10(largest) - math.log10(float(errors.min()))) + 2, 4), 17)


def columns_of_text(names: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Format a table as lines of aligned columns, each preceded by two spaces."""
    widths = [max(len(cell) for cell in column) for column in zip(names, *rows, strict=True)]
    return [
        "".join(f"  {cell:{width}}" for cell, width in zip(row, widths, strict=True)).rstrip() for row in [names, *rows]
    ]


class PrintedResult:
    """Mixin of results: notebooks show the table that `print` shows."""

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(str(self))}</pre>"


def lines_of(facts: Mapping[str, str], least: int = 8) -> list[str]:
    """Format names and values as lines, with the values below each other from column `least` + 2 on."""
    width = max(least, *(len(name) for name in facts))
    return [f"{name:{width}}  {value}" for name, value in facts.items()]


def printed_table(
    facts: Mapping[str, str], names: Sequence[str], rows: Sequence[Sequence[str]], *, more: bool = False
) -> str:
    """Format facts about a table, its number of rows first, and below them its first rows."""
    # `more` says whether the table has further rows.
    first, *rest = lines_of(facts)
    lines = [first + ", the first below" * more, *rest, "", *columns_of_text(names, rows)]
    return "\n".join([*lines, *["  ..."] * more])


def names_of(index: Any, rows: int) -> AnyArray:
    """Return the labels of rows, as of `kernpool.data.columns.labels_of_rows`, or their numbers if they have none.

    Examples
    --------
    >>> names_of(None, 3)
    array([0, 1, 2])
    """
    return np.arange(rows) if index is None or isinstance(index, type) else np.asarray(index)


def frame_of(columns: Mapping[str, Array], index: Any = None) -> Any:
    """Build a data frame from arrays of shape (m, ...), with a column for each output or class.

    `index` are the labels of the rows, or the class of frames where they have none, by default that of pandas.
    """
    table = {
        name if array.ndim == 1 else f"{name}_{number}": values
        for name, array in columns.items()
        for number, values in enumerate(array.reshape(len(array), -1).T)
    }
    if isinstance(index, type):
        return index(table)
    try:
        pandas: Any = import_module("pandas")
    except ImportError as error:
        raise ImportError(
            "to_frame needs pandas, which is not installed; install it with: pip install pandas"
        ) from error
    return pandas.DataFrame(table, index=index)
