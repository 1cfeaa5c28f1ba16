"""Rows of one column as points: how many rows are at the same place, their mean, and their squares about it.

What depends on rows through points alone depends neither on their order nor on whether rows are repeated or weighted.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Points:
    """Rows of one column, by increasing place, those at the same place together.

    Parameters
    ----------
    place : ndarray of shape (n,)
        Where, strictly increasing.
    rows : ndarray of shape (n,)
        How many rows are there; fractions are allowed.
    mean : ndarray of shape (n,)
        Their mean of y.
    squares : ndarray of shape (n,)
        Their sum of squares about that mean.
    """

    place: Array
    rows: Array
    mean: Array
    squares: Array

    @property
    def total(self) -> float:
        """Number of rows."""
        return float(self.rows.sum())

    @property
    def width(self) -> float:
        """Distance between the first and the last place."""
        return float(self.place[-1] - self.place[0])

    def between(self, first: float, last: float) -> Points:
        """Take the rows of these numbers, counted from the left; of a point on the boundary as many as belong."""
        edges = np.clip(np.concatenate([[0.0], np.cumsum(self.rows)]), first, last)
        share = np.diff(edges) / self.rows
        kept = share > 1e-9  # what rounding leaves of a point is none of it
        return Points(self.place[kept], (share * self.rows)[kept], self.mean[kept], (share * self.squares)[kept])


def gather(x: Array, y: Array, rows: Array) -> Points:
    """Gather rows into points.

    Parameters
    ----------
    x, y, rows : ndarray of shape (n,)
        Places, outputs, and how often each row counts (positive).

    Returns
    -------
    Points
        One per distinct place.
    """
    place, point = np.unique(x, return_inverse=True)
    count = sum_by_place(point, rows, len(place))
    mean = sum_by_place(point, rows * y, len(place)) / count
    squares = sum_by_place(point, rows * (y - mean[point]) ** 2, len(place))
    return Points(place, count, mean, squares)


def sum_by_place(place: NDArray[np.intp], amount: Array, places: int) -> Array:
    """Sum amounts that belong to the same place.

    Parameters
    ----------
    place : ndarray of int, shape (n,)
        Which place.
    amount : ndarray of shape (n,)
        How much.
    places : int
        Number of places.

    Returns
    -------
    ndarray of shape (places,)
        Sums.
    """
    return np.bincount(place, amount, places).astype(np.float64, copy=False)
