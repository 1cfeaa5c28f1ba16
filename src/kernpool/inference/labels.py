"""Labels of groups and clusters, as numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray


def number_labels(groups: ArrayLike, rows: int, of: str = "rows of X") -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Give labels numbers, in their order.

    Parameters
    ----------
    groups : array_like of shape (rows,)
        Labels: numbers, text, dates.
    rows : int
        How many there must be.
    of : str
        Of what, for messages.

    Returns
    -------
    labels : ndarray
        The different ones, in order.
    number : ndarray of int64, shape (rows,)
        Of each row.

    Raises
    ------
    TypeError
        If labels have no order among each other.
    ValueError
        If there is not one for each row, or one is missing.

    Examples
    --------
    >>> number_labels(["b", "a", "b"], 3)[1]
    array([1, 0, 1])
    >>> number_labels([1.0, float("nan")], 2)
    Traceback (most recent call last):
    ValueError: groups has no label in row 1 (counted from 0); leave such rows out, or give them a label of their own
    """
    labels = np.asarray(groups)
    if labels.shape != (rows,):
        raise ValueError(f"groups must have one label for each of the {rows} {of}, got shape {labels.shape}")
    missing = np.flatnonzero(_missing(labels))
    if missing.size:
        raise ValueError(
            f"groups has no label in row {missing[0]} (counted from 0); leave such rows out, or give them a label of "
            "their own"
        )
    try:
        found, number = np.unique(labels, return_inverse=True)
    except TypeError:
        kinds = sorted({type(label).__name__ for label in labels.tolist()})
        raise TypeError(f"groups mixes labels of types {' and '.join(kinds)}; make them all text") from None
    return found, number.astype(np.int64)


def _missing(labels: NDArray[Any]) -> NDArray[np.bool_]:
    """Return which labels are None, NaN, or what pandas has in their place."""
    if labels.dtype.kind in "fcmM":
        return np.asarray(np.isnan(labels) if labels.dtype.kind in "fc" else np.isnat(labels))
    if labels.dtype != object:
        return np.zeros(len(labels), dtype=bool)
    return np.array([label is None or type(label).__name__ == "NAType" or label != label for label in labels])
