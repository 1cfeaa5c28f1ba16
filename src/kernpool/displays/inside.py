"""Which rows are inside their intervals: what a caller passes, read and refused."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kernpool.data.checks import refuse_foreign
from kernpool.data.columns import with_days
from kernpool.displays.section import column_index
from kernpool.displays.style import as_numbers
from kernpool.execution.messages import abbreviate
from kernpool.inference.intervals import check_level

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Inside:
    """Rows with an interval.

    Parameters
    ----------
    x : ndarray of shape (n,)
        By what they are to be sliced.
    inside : ndarray of bool, shape (n,)
        Whether their values are inside.
    level : float
        What their intervals promise.
    infinite, unknown : int
        How many intervals have no end, and how many further rows have no interval.
    """

    x: NDArray[Any]
    inside: NDArray[np.bool_]
    level: float
    infinite: int
    unknown: int

    @classmethod
    def of(cls, x: ArrayLike, y: ArrayLike, interval: Any, level: float | None) -> Inside:
        """Read rows, values and intervals.

        Parameters
        ----------
        x, y : array_like of shape (m,)
            By what to slice, and values.
        interval : PredictionInterval, Interval or pair of array_like
            Ends of shape (m,); NaN where there is no interval.
        level : float or None
            What was promised; None is the level of `interval`.

        Raises
        ------
        ValueError
            If shapes differ, x or y is not finite, an upper end is below its lower one, no row has an interval, or the
            level is none.
        TypeError
            If `interval` has no ends.
        """
        lower, upper, level = _ends(interval, level)
        refuse_foreign("x", x)
        x, y = np.asarray(x), as_numbers("y", y)
        if x.ndim != 1 or not y.shape == lower.shape == upper.shape == x.shape:
            raise ValueError(
                "x, y and both ends of the intervals must be one number for each row, of one output: got shapes "
                f"{x.shape}, {y.shape}, {lower.shape} and {upper.shape}"
            )
        check_level(level)
        known = ~(np.isnan(lower) | np.isnan(upper))
        for name, array in (("x", x[known]), ("y", y)):
            if array.dtype.kind == "f" and not np.all(np.isfinite(array)):
                raise ValueError(f"{name} must be finite, got {array[~np.isfinite(array)][0]}; leave such rows out")
        if not known.any():
            raise ValueError(
                f"none of the {len(y)} rows has an interval; ask where there are rows of the fit, or use a model with "
                "empty='nearest'"
            )
        if np.any(lower[known] > upper[known]):
            raise ValueError("intervals must have their lower end first: interval=(lower, upper)")
        infinite = np.count_nonzero(np.isinf(lower[known]) | np.isinf(upper[known]))
        inside = ((lower <= y) & (y <= upper))[known]
        return cls(x[known], inside, float(level), int(infinite), int(np.count_nonzero(~known)))


def _ends(interval: Any, level: float | None) -> tuple[Array, Array, float]:
    """Return the ends of intervals, and what they promise."""
    lower, upper = getattr(interval, "lower", None), getattr(interval, "upper", None)
    if lower is None or upper is None:
        if not isinstance(interval, tuple | list) or len(interval) != 2:
            raise TypeError(
                "interval must be what prediction_interval or confidence_interval returns, or a pair (lower, upper), "
                f"got {abbreviate(interval)}"
            )
        lower, upper = interval
    level = getattr(interval, "level", None) if level is None else level
    if level is None:
        raise ValueError("level must say what a pair of ends promises, such as level=0.9")
    return as_numbers("lower", lower), as_numbers("upper", upper), level


def is_training(estimator: Any, X: Any) -> bool:
    """Whether rows are those that an estimator of numeric columns holds."""
    key = getattr(estimator, "key_", None)
    if key is None or getattr(estimator, "encoding_", None) is not None:
        return False
    refuse_foreign("X", X)
    given = np.asarray(X)
    return given.shape == key.shape and bool(np.array_equal(given, key))


def column_of(X: Any, against: int | str) -> tuple[Any, str]:
    """Return a column of rows, and its name; dates stay dates.

    Examples
    --------
    >>> column_of([[1.0, 2.0], [3.0, 4.0]], 1)
    (array([2., 4.]), 'column 1')
    """
    names, width = [str(name) for name in getattr(X, "columns", [])], np.shape(X)[1]
    index = column_index(against, names, width, name="against")
    cells = X[X.columns[index]] if names else np.asarray(X)[:, index]
    label = names[index] if names else "x" if width == 1 else f"column {index}"
    if with_days("X", cells)[1] is not None:
        return cells, label
    column = np.asarray(cells)
    return column.astype(np.str_) if column.dtype.kind == "O" else column, label
