"""Integers that float64 would round: found before they become floats, and refused.

Time stamps in nanoseconds, and identifiers, are larger than 2**53, where float64 begins to skip integers. Pooling uses
differences of keys, and those of rounded keys are wrong. Integers that float64 holds are accepted, such as 2**60.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import numpy as np
from numpy.typing import NDArray

LARGEST = 1 << 53  # float64 holds all integers up to here

REMEDY = (
    "subtract an offset from all such numbers while they are integers, as in x - x[0], and then divide into the unit "
    "that you want"
)


def find_inexact(given: Any, read: NDArray[Any]) -> tuple[tuple[int, ...], int] | None:
    """Find an integer that float64 does not hold.

    Parameters
    ----------
    given : object
        What the caller passed: an array, nested lists, a frame.
    read : ndarray
        What it became: of integers, or of floats, among which integers of lists and frames may have been rounded.

    Returns
    -------
    index : tuple of int
        Where the first one is.
    integer : int
        What it is. None instead of both if there is none.

    Notes
    -----
    Arrays of floats cost nothing, and 64-bit integers one pass for the largest. Lists and frames are checked number by
    number only if one of the floats is that large.

    Examples
    --------
    >>> find_inexact([2**60, 2**60 + 1], np.asarray([2**60, 2**60 + 1]))
    ((1,), 1152921504606846977)
    >>> find_inexact([2**60, 0.5], np.asarray([2**60, 0.5])) is None
    True
    """
    if read.dtype.kind in "iu":
        if read.dtype.itemsize < 8 or not read.size or (int(read.min()) >= -LARGEST and int(read.max()) <= LARGEST):
            return None
        return _first_inexact(read)
    if isinstance(given, np.ndarray) and given.dtype.kind != "O":
        return None
    if not read.size or (read.dtype.kind == "f" and read.min() > -LARGEST and read.max() < LARGEST):
        return None  # rounding cannot have made a large integer smaller than this
    columns = _columns(given)
    if columns is None:
        return _of_objects(np.asarray(given, dtype=object))
    for i, column in enumerate(columns):
        found = find_inexact(column, np.asarray(column))
        if found is not None:
            return (*found[0], i), found[1]
    return None


def refuse_inexact(name: str, given: Any, read: NDArray[Any]) -> None:
    """Refuse integers that float64 does not hold.

    Parameters
    ----------
    name : str
        The argument's name, for messages.
    given, read
        As in `find_inexact`.

    Raises
    ------
    ValueError
        If there is one; the message names it, its place, and the remedy.
    """
    found = find_inexact(given, read)
    if found is not None:
        raise ValueError(f"{name} holds {would_round(found[1], f'at index {found[0]}')}")


def would_round(integer: int, where: str = "") -> str:
    """Describe what is wrong with an integer, and the remedy.

    Parameters
    ----------
    integer : int
        One that float64 does not hold.
    where : str
        Words that follow the integer.

    Returns
    -------
    str
        The end of a sentence.

    Examples
    --------
    >>> would_round(2**53 + 1)[:75]
    'the integer 9007199254740993, which float64 would round to 9007199254740992'
    """
    return f"the integer {integer}{where and ' '}{where}, which float64 would round to {float(integer):.0f}: {REMEDY}"


def _first_inexact(read: NDArray[Any]) -> tuple[tuple[int, ...], int] | None:
    floats = read.astype(np.float64)
    inside = floats < 2.0 ** (64 if read.dtype.kind == "u" else 63)  # the nearest float may be beyond all integers
    back = np.where(inside, floats, 0.0).astype(read.dtype)
    wrong = np.flatnonzero(~inside | (back != read))
    if not wrong.size:
        return None
    index = tuple(int(place) for place in np.unravel_index(wrong[0], read.shape))
    return index, int(read[index])


def _of_objects(objects: NDArray[Any]) -> tuple[tuple[int, ...], int] | None:
    for place, item in enumerate(objects.flat):
        whole = isinstance(item, int | np.integer) or (
            isinstance(item, Decimal) and abs(item) < 1 << 64 and item == item.to_integral_value()
        )
        if whole and not -LARGEST <= item <= LARGEST and int(float(item)) != item:
            return tuple(int(i) for i in np.unravel_index(place, objects.shape)), int(item)
    return None


def _columns(given: Any) -> list[Any] | None:
    """Return the columns of a frame, whose types differ; None of anything else."""
    if hasattr(given, "get_columns"):  # polars
        return list(given.get_columns())
    if hasattr(given, "iloc") and getattr(given, "ndim", 1) == 2:  # pandas
        return [given.iloc[:, i] for i in range(given.shape[1])]
    if hasattr(given, "column_names") and hasattr(given, "itercolumns"):  # pyarrow
        return list(given.itercolumns())
    return None
