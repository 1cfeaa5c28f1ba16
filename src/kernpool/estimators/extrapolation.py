"""Predictions of local planes beyond the range of the outputs: as they are, or clipped.

At the edge of the rows a plane is the slope of a few of them, followed as far as the query is away.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernpool.core.keys import Prepared

Array = NDArray[np.float64]

POLICIES = ("plane", "clip")
MARGIN = 0.1  # of the range, on both sides


def check_extrapolate(extrapolate: Any) -> None:
    """Raise if a parameter is no policy.

    Examples
    --------
    >>> check_extrapolate("nearest")
    Traceback (most recent call last):
    ValueError: extrapolate must be 'plane' or 'clip', got 'nearest'
    """
    if not (isinstance(extrapolate, str) and extrapolate in POLICIES):
        raise ValueError(f"extrapolate must be 'plane' or 'clip', got {extrapolate!r}")


def limits_of(model: Any) -> tuple[Array, Array] | None:
    """Return between what a model clips its predictions, one number per output; None if it does not.

    Rows of weight zero do not count. Rows in chunks are gone through once, at the first prediction.
    """
    if getattr(model, "extrapolate", "plane") != "clip":
        return None
    prepared: Prepared = vars(model).setdefault("_prepared", Prepared())
    if "chunks_" in vars(model):
        chunks = model.chunks_
        return prepared.get("limits", (chunks,), lambda: widened((chunk.value, chunk.weight) for chunk in chunks))
    of = model.value_, model.key_weight_
    return prepared.get("limits", of, lambda: widened([of]))


def widened(parts: Iterable[tuple[NDArray[Any], Array | None]]) -> tuple[Array, Array]:
    """Return the range of outputs, widened on both sides.

    Parameters
    ----------
    parts : iterable of (ndarray of shape (n,) or (n, c), ndarray of shape (n,) or None)
        Outputs and weights.

    Returns
    -------
    low, high : ndarray of shape (c,)
        From a tenth of the range below the smallest to as much above the largest.

    Examples
    --------
    >>> widened([(np.array([0.0, 10.0, 99.0]), np.array([1.0, 2.0, 0.0]))])
    (array([-1.]), array([11.]))
    """
    low = high = None
    for value, weight in parts:
        table = value.reshape(len(value), -1) if weight is None else value.reshape(len(value), -1)[weight > 0]
        if len(table):
            low = table.min(axis=0) if low is None else np.minimum(low, table.min(axis=0))
            high = table.max(axis=0) if high is None else np.maximum(high, table.max(axis=0))
    if low is None or high is None:
        raise ValueError("there are no rows of positive weight")
    margin = MARGIN * high.astype(np.float64) - MARGIN * low  # the difference itself may overflow
    return low - margin, high + margin
