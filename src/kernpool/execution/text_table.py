"""Text output of results: significant digits chosen by the standard error, short lists, aligned columns."""

import html
import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

LISTED = 5  # numbers in a line
ROWS = 6  # of a table


def listed(numbers: Array) -> str:
    """Format the first five numbers of an array as one line.

    Examples
    --------
    >>> listed(np.arange(7.0) / 3)
    '0, 0.3333, 0.6667, 1, 1.333, ...'
    """
    flat = np.ravel(numbers[:LISTED])
    return ", ".join(f"{number:.4g}" for number in flat[:LISTED]) + ", ..." * (np.size(numbers) > LISTED)


def digits_beside(size: Array, error: Array) -> int:
    """Return how many significant digits numbers need to show two digits of their standard errors.

    Parameters
    ----------
    size, error : ndarray
        Numbers and their standard errors; those that are zero or not finite are ignored.

    Returns
    -------
    int
        From 4 to 17, and 6 where no error is known.

    Examples
    --------
    >>> digits_beside(np.array([123456.0]), np.array([0.5]))
    8
    """
    with np.errstate(invalid="ignore"):
        errors = error[np.isfinite(error) & (error > 0)]
        largest = np.max(np.abs(size[np.isfinite(size)]), initial=0.0)
    if not errors.size or largest == 0.0:
        return 6
    return min(max(math.ceil(math.log10(largest) - math.log10(float(errors.min()))) + 2, 4), 17)


def with_sizes(names: list[str], rows: list[list[str]], sizes: Array | None) -> tuple[list[str], list[list[str]]]:
    """Append a column of effective sample sizes to a text table whose first cells are row numbers.

    Without sizes the table is returned as it is.
    """
    if sizes is None:
        return names, rows
    return [*names, "n_eff"], [[*row, f"{sizes[int(row[0])]:.3g}"] for row in rows]


def columns_of_text(names: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Format a table as lines of aligned columns, each preceded by two spaces.

    Examples
    --------
    >>> columns_of_text(["point", "df"], [["0", "12.5"]])
    ['  point  df', '  0      12.5']
    """
    widths = [max(len(cell) for cell in column) for column in zip(names, *rows, strict=True)]
    return [
        "".join(f"  {cell:{width}}" for cell, width in zip(row, widths, strict=True)).rstrip() for row in [names, *rows]
    ]


class PrintedResult:
    """Mixin of results: notebooks show the table that `print` shows."""

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(str(self))}</pre>"
