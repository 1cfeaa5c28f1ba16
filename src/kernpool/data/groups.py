"""Groups of rows as callers pass them: one label per row, none of them missing."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernpool.data.checks import is_missing, refuse_foreign


def group_codes(groups: Any, rows: int) -> NDArray[np.int64]:
    """Return the number of the group of each row.

    Parameters
    ----------
    groups : array_like of shape (n,)
        Labels: numbers, strings, dates, or whatever can be sorted.
    rows : int
        How many rows there are.

    Returns
    -------
    ndarray of int64, shape (n,)
        From 0 on, in the order of the labels.

    Raises
    ------
    ValueError
        If there is not one label per row, or one is missing.
    TypeError
        If labels cannot be sorted, or are a tensor.

    Examples
    --------
    >>> group_codes(["b", "a", "b"], 3)
    array([1, 0, 1])
    """
    return labels_and_codes(groups, rows)[1]


def labels_and_codes(groups: Any, rows: int) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Return the labels of the groups in their order, and the number of the group of each row; as `group_codes`."""
    refuse_foreign("groups", groups)
    labels = np.asarray(groups)
    if labels.shape != (rows,):
        raise ValueError(f"groups must have one label for each of the {rows} rows, got shape {labels.shape}")
    listed = isinstance(groups, list | tuple)  # of text and NaN NumPy makes text alone
    if listed or labels.dtype.kind not in "biuSU":
        items = groups if listed else labels.tolist()
        missing = np.array([is_missing(label) for label in items]) | _not_a_time(labels)
        if missing.any():
            raise ValueError(
                f"groups has no label in {missing.sum()} rows (the first is row {np.argmax(missing)}, counted from 0); "
                "leave these rows out, or give each a label of its own"
            )
    try:
        found, code = np.unique(labels, return_inverse=True)
    except TypeError:
        raise TypeError(
            "groups has labels of several types, which cannot be put in order; use numbers or strings alone"
        ) from None
    return found, np.asarray(code, dtype=np.int64)


def named(label: Any) -> str:
    """Return a label as messages name it.

    Examples
    --------
    >>> named("b"), named(np.int64(3)), named(np.datetime64("2020-01-01T00:00:00.000000000"))
    ("'b'", '3', '2020-01-01T00:00:00.000000000')
    """
    return repr(str(label)) if isinstance(label, str) else str(label)


def _not_a_time(labels: NDArray[Any]) -> NDArray[np.bool_]:
    return np.isnat(labels) if labels.dtype.kind in "mM" else np.zeros(labels.shape, dtype=bool)
