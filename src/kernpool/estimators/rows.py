"""Arrays that grow at their end, in amortised constant time per row: what `partial_fit` keeps its pairs in."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

LEAST_CAPACITY = 64


class GrowingArray:
    """Room for rows to come.

    Whoever appends gets a view of all rows so far. A copy of a model shares the room with it; the first to append goes
    on in it, the other one moves, so that neither sees the rows of the other.

    Examples
    --------
    >>> room = GrowingArray()
    >>> one = room.append(np.array([1.0]), np.array([2.0]))
    >>> room.append(one, np.array([3.0])), room.append(one, np.array([4.0]))
    (array([1., 2., 3.]), array([1., 2., 4.]))
    """

    def __init__(self) -> None:
        self._room: NDArray[Any] = np.empty(0)
        self._used = 0

    def append(self, rows: NDArray[Any], more: NDArray[Any]) -> NDArray[Any]:
        """Return `rows` and then `more`.

        Parameters
        ----------
        rows : ndarray of shape (n, ...)
            What the last call returned, or something else, which is copied.
        more : ndarray of shape (k, ...)
            What is added.

        Returns
        -------
        ndarray of shape (n + k, ...)
            In the common type of both.
        """
        n, dtype = len(rows), np.result_type(rows, more)
        whole = n + len(more)
        goes_on = rows.base is self._room and n == self._used and dtype == self._room.dtype
        if not goes_on or whole > len(self._room):
            room = np.empty((max(LEAST_CAPACITY, 2 * whole), *rows.shape[1:]), dtype=dtype)
            room[:n] = rows
            self._room = room
        self._room[n:whole] = more
        self._used = whole
        return self._room[:whole]

    def __reduce__(self) -> tuple[type[GrowingArray], tuple[()]]:
        # The room is no part of a model: a pickle would hold every row twice.
        return GrowingArray, ()


def append_rows(
    model: Any, key: NDArray[Any], value: NDArray[Any], weight: NDArray[np.float64] | None
) -> dict[str, Any]:
    """Return the training rows of a model with some more; the model itself stays as it is.

    Parameters
    ----------
    model : KernelRegressor
        Fitted to arrays without categorical columns.
    key, value : ndarray
        What is added.
    weight : ndarray of shape (rows,) or None
        Frequencies; None is one each.

    Returns
    -------
    dict
        The attributes of the model that change.
    """
    room = model.__dict__.setdefault("_room", {name: GrowingArray() for name in ("key_", "value_", "key_weight_")})
    grown = {"key_": room["key_"].append(model.key_, key), "value_": room["value_"].append(model.value_, value)}
    grown["key_weight_"] = before = model.key_weight_
    if weight is not None or before is not None:
        before = np.ones(len(model.key_)) if before is None else before
        grown["key_weight_"] = room["key_weight_"].append(before, np.ones(len(key)) if weight is None else weight)
    return grown | {"key_code_": np.zeros((len(grown["key_"]), 0), dtype=np.int64)}
