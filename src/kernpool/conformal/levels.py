"""What makes training rows and a new row not exchangeable: levels of a single row, copies, fractions of rows."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from kernpool.bandwidth.repeated import count_copies
from kernpool.inference.smoother import Smoother

Array = NDArray[np.float64]
Codes = NDArray[np.int64]

COPIED = (
    "rows are repeated or have weights above one, so that their own copies predict them, as none predicts a new row"
)
FRACTIONS = "weights are no whole numbers of rows"
LONELY = "some level of a categorical column is that of one training row alone, or of new rows only"


def are_copied(smoother: Smoother, value: Array) -> bool:
    """Whether rows, with the outputs or labels given, are copies of others, or stand for several by their weights."""
    rows, weight = smoother.training, smoother.weight
    kept, code = weight > 0, np.zeros((len(weight), 0), dtype=np.int64) if rows.code is None else rows.code
    times = None if np.all(weight[kept] == 1.0) else weight[kept]
    return count_copies(rows.query[kept], code[kept], value[kept], weight=times) > 0


def lonely_levels(
    code: Codes | None,
    new: Codes | None,
    weight: Array,
    group: Codes | None = None,
    which: NDArray[np.intp] | None = None,
) -> bool:
    """Whether a level is that of a single training row, or cluster, or of new rows only.

    A row left out keeps its level in the table, with a place among the ordered ones; a new row whose level nobody has
    seen is unlike every level. These two are not exchangeable.

    Parameters
    ----------
    code : ndarray of int64, shape (n, k), or None
        Level numbers of the training rows.
    new : ndarray of int64, shape (m, k), or None
        Those of new rows, -1 for levels that no training row has.
    weight : ndarray of shape (n,)
        Frequencies.
    group : ndarray of int64, shape (n,), or None
        Cluster of each row, if whole clusters are left out.
    which : ndarray of int, optional
        Rows that are left out; by default those of positive weight.

    Examples
    --------
    >>> code, new = np.array([[0], [0], [1]]), np.array([[0]])
    >>> lonely_levels(code, new, np.ones(3)), lonely_levels(code, new, np.array([1.0, 1.0, 2.0]))
    (True, False)
    """
    if code is None or new is None:
        return False
    if which is None:
        (which,) = np.nonzero(weight > 0)
    for column, asked in zip(code.T, new.T, strict=True):
        if group is None:
            rows = np.bincount(column, weights=weight)
        else:
            pairs = np.unique(np.column_stack([column, group])[weight > 0], axis=0)
            rows = np.bincount(pairs[:, 0], minlength=int(column.max()) + 1).astype(float)
        if np.any(asked < 0) or np.any(rows[column[which]] < 2.0):
            return True
    return False
