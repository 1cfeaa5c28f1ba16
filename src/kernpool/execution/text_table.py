"""Text output of results: significant digits chosen by the standard error, short lists, aligned columns."""

import html
import math
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernpool.execution.error_messages import explain_calls

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


def lines_of(facts: Mapping[str, str], least: int = 8) -> list[str]:
    """Format names and values as lines, with the values below each other from column `least` + 2 on.

    Examples
    --------
    >>> lines_of({"level": "0.9", "method": "naive"})
    ['level     0.9', 'method    naive']
    """
    width = max(least, *(len(name) for name in facts))
    return [f"{name:{width}}  {value}" for name, value in facts.items()]


def printed_table(
    facts: Mapping[str, str], names: Sequence[str], rows: Sequence[Sequence[str]], *, more: bool = False
) -> str:
    """Format facts, of which the first is how many rows a table has, and below them its first rows.

    `more` says whether the table has further rows.
    """
    first, *rest = lines_of(facts)
    lines = [first + ", the first below" * more, *rest, "", *columns_of_text(names, rows)]
    return "\n".join([*lines, *["  ..."] * more])


def frame_of(columns: Mapping[str, Array]) -> Any:
    """Build a pandas data frame from arrays of shape (m, ...), with a column for each output or class.

    Raises
    ------
    ImportError
        If pandas is not installed.

    Examples
    --------
    >>> frame_of({"mean": np.zeros(2), "slope": np.ones((2, 2))}).columns.tolist()
    ['mean', 'slope_0', 'slope_1']
    """
    try:
        pandas: Any = import_module("pandas")
    except ImportError as error:
        raise ImportError(
            "to_frame needs pandas, which is not installed; install it with: pip install pandas"
        ) from error
    table = {
        name if array.ndim == 1 else f"{name}_{number}": values
        for name, array in columns.items()
        for number, values in enumerate(array.reshape(len(array), -1).T)
    }
    return pandas.DataFrame(table)


@explain_calls
class IntervalTable(PrintedResult):
    """Mixin of results that are intervals at evaluation points: their widths, and their text."""

    center: Array
    lower: Array
    upper: Array

    @property
    def width(self) -> Array:
        """Widths of the intervals: upper limit minus lower limit."""
        return np.asarray(self.upper - self.lower)

    def to_frame(self) -> Any:
        """Return the intervals as a pandas data frame: center, lower and upper limit, of each output or class.

        Raises
        ------
        ImportError
            If pandas is not installed.
        """
        return frame_of({"center": self.center, "lower": self.lower, "upper": self.upper})

    def _printed(
        self,
        facts: Mapping[str, str],
        columns: Mapping[str, Array | None],
        *,
        axes: Sequence[str] = ("output",),
        error: Array | None = None,
        labels: NDArray[Any] | None = None,
        center: str = "center",
        before: Mapping[str, Array] | None = None,
    ) -> str:
        """Return facts and the first six intervals as text.

        Parameters
        ----------
        facts : mapping
            Further lines above the table.
        columns : mapping
            Names and numbers of further columns, of shape (m, ...); None is left out.
        axes : sequence of str, default=("output",)
            Names of the axes of the center after the first.
        error : ndarray of shape (m, ...), optional
            Standard errors, of which two digits are shown; by default ends have four digits.
        labels : ndarray, optional
            Names along the second axis, by default its indices.
        center : str, default="center"
            Name of the centers.
        before : mapping, optional
            Names and numbers of columns before the center, of its shape, with as many digits.
        """
        few = self.center[:ROWS]  # of a million points, too
        columns, rows = {name: column for name, column in columns.items() if column is not None}, []
        before = before or {}
        for at in [np.unravel_index(i, few.shape) for i in range(min(few.size, ROWS))]:
            ends = np.array([of[at] for of in (*before.values(), self.center, self.lower, self.upper)])
            digits = 4 if error is None else digits_beside(ends, error[at])
            place = at if labels is None else (at[0], labels[at[1]])
            further = [f"{column[at[: column.ndim]]:.3g}" for column in columns.values() if column is not None]
            rows.append([*map(str, place), *(f"{end:.{digits}g}" for end in ends), *further])
        names = ["point", *axes[: few.ndim - 1], *before, center, "lower", "upper", *columns]
        facts = {"points": f"{len(self.center)}", **facts}
        return printed_table(facts, names, rows, more=self.center.size > len(rows))
