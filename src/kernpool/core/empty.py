"""Empty windows: the one place that decides what a query without any key of positive weight becomes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from kernpool.execution.messages import check_choice
from kernpool.execution.warnings import warn_caller

Array = NDArray[np.float64]
Empty = Literal["nan", "nearest", "mean", "zero", "raise"]
Fill = Callable[[NDArray[np.intp]], Array]


class EmptyWindowWarning(RuntimeWarning):
    """Some queries have no key with positive weight, so that their value is NaN, or that of the nearest row."""


def check_empty(empty: str) -> None:
    """Refuse an unknown policy for empty windows.

    Parameters
    ----------
    empty : str
        What the caller passed.

    Raises
    ------
    ValueError
        If it is not one of the policies.
    """
    check_choice("empty", empty, get_args(Empty))


def fill_empty(
    values: Array, occupied: NDArray[np.bool_], empty: Empty, fill: Fill | None = None, *, warn: bool = False
) -> Array:
    """Give the rows of empty windows what the policy says.

    Parameters
    ----------
    values : ndarray of shape (..., m, c)
        One row per query; those of empty windows may hold anything. Changed in place.
    occupied : ndarray of bool, shape (..., m)
        Which windows have a key of positive weight.
    empty : {"nan", "nearest", "mean", "zero", "raise"}
        ``"nan"`` warns once, ``"zero"`` does not, ``"raise"`` raises; ``"nearest"`` and ``"mean"`` ask `fill`.
    fill : callable, optional
        Maps the flat indices of the empty rows to their values.
    warn : bool, default=False
        Whether ``"nearest"`` warns, too: where it is a default that a caller need not have chosen.

    Returns
    -------
    ndarray of shape (..., m, c)
        The values.

    Raises
    ------
    ValueError
        If a window is empty and `empty` is ``"raise"``, or `empty` is unknown or needs a `fill` that is missing.

    Warns
    -----
    EmptyWindowWarning
        If a value becomes NaN, or with `warn` that of the nearest key.

    Examples
    --------
    >>> fill_empty(np.array([[5.0], [7.0]]), np.array([True, False]), "nearest", lambda rows: rows[:, None] + 0.5)
    array([[5. ],
           [1.5]])
    """
    check_empty(empty)
    is_empty = ~occupied
    if not is_empty.any():
        return values
    rows = np.flatnonzero(is_empty)
    story = f"{rows.size} of {is_empty.size} queries have no key with positive weight (the first is query {rows[0]})"
    if empty == "raise":
        raise ValueError(f"{story}; use a larger bandwidth, a kernel of infinite support, or another empty=")
    if empty == "nan":
        values[is_empty] = np.nan
        warn_caller(
            f"{story} and become NaN; use a larger bandwidth, or empty='nearest', 'mean' or 'zero'",
            EmptyWindowWarning,
        )
    elif empty == "zero":
        values[is_empty] = 0.0
    elif fill is None:
        raise ValueError(f"empty={empty!r} needs fill=, a function from the indices of empty rows to their values")
    else:
        if warn and empty == "nearest":
            warn_caller(
                f"{story} and get the answer of the nearest one; use a larger bandwidth, a kernel of infinite support "
                "such as kernel='gaussian', or another empty=",
                EmptyWindowWarning,
            )
        values[is_empty] = fill(rows)
        alone = rows[np.isnan(values[is_empty]).any(axis=-1)]
        if alone.size:
            warn_caller(
                f"{alone.size} of {is_empty.size} queries have no key that takes part, the first is query {alone[0]}: "
                "there is no nearest key and no mean, and they become NaN",
                EmptyWindowWarning,
            )
    return values
