"""How many rows of each slice of a column are inside their intervals, and how far chance may have moved that."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincinv

Array = NDArray[np.float64]

MOST_LABELS = 30


@dataclass(frozen=True, eq=False)
class Slices:
    """Slices of rows, in the order of a column.

    Parameters
    ----------
    left, right, center : ndarray of shape (s,)
        Least value, largest and median of the column in each slice; of labels their numbers.
    rows, inside : ndarray of int, shape (s,)
        How many rows each slice has, and how many of these are inside their intervals.
    lower, upper : ndarray of shape (s,)
        Exact binomial (Clopper-Pearson) limits of the probability to be inside.
    labels : ndarray of shape (s,) or None
        Of a column of text, what the slices are.
    """

    left: Array
    right: Array
    center: Array
    rows: NDArray[np.int64]
    inside: NDArray[np.int64]
    lower: Array
    upper: Array
    labels: NDArray[Any] | None = None

    @property
    def coverage(self) -> Array:
        """Shares of rows that are inside, of shape (s,)."""
        return np.asarray(self.inside / self.rows)

    @classmethod
    def of(cls, x: NDArray[Any], inside: NDArray[np.bool_], slices: int, confidence: float) -> Slices:
        """Cut rows into slices of about the same size; rows of one value stay together.

        Parameters
        ----------
        x : ndarray of shape (n,)
            The column: numbers, or labels, of which each is a slice.
        inside : ndarray of bool, shape (n,)
            Whether the row is inside its interval.
        slices : int
            How many of numbers, at most.
        confidence : float
            Of the binomial limits.

        Examples
        --------
        >>> found = Slices.of(np.arange(20.0), np.arange(20) > 0, 2, 0.95)
        >>> found.rows, found.coverage, found.lower.round(3), found.upper.round(3)
        (array([10, 10]), array([0.9, 1. ]), array([0.555, 0.692]), array([0.997, 1.   ]))
        """
        values, at, counts = np.unique(x, return_inverse=True, return_counts=True)
        labels = None
        if x.dtype.kind in "fiub":
            middle = np.cumsum(counts) - 0.5 * counts
            _, slice_of_value = np.unique((middle * slices / len(x)).astype(np.int64), return_inverse=True)
            number, place = slice_of_value[at], x.astype(np.float64)
        else:
            if len(values) > MOST_LABELS:
                raise ValueError(
                    f"the column has {len(values)} different labels, and at most {MOST_LABELS} can be drawn; give "
                    "numbers or coarser labels"
                )
            number, place, labels = at, at.astype(np.float64), values
        rows = np.bincount(number)
        found = np.bincount(number, weights=inside).astype(np.int64)
        parts = [place[number == one] for one in range(len(rows))]
        left, right, center = (np.array([of(part) for part in parts]) for of in (np.min, np.max, np.median))
        return cls(left, right, center, rows, found, *binomial_limits(found, rows, confidence), labels)


def binomial_limits(hits: NDArray[np.int64], trials: NDArray[np.int64], confidence: float) -> tuple[Array, Array]:
    """Return exact limits of a probability: Clopper and Pearson, Biometrika 26 (1934), 404-413.

    Examples
    --------
    >>> [float(limit.round(4)) for limit in binomial_limits(np.array(9), np.array(10), 0.95)]
    [0.555, 0.9975]
    """
    tail = 0.5 * (1.0 - confidence)
    misses = trials - hits
    lower = np.where(hits > 0, betaincinv(np.maximum(hits, 1), misses + 1, tail), 0.0)
    upper = np.where(misses > 0, betaincinv(hits + 1, np.maximum(misses, 1), 1.0 - tail), 1.0)
    return lower, upper
