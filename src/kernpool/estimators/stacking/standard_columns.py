"""Columns of a table as a matrix of standardised numbers, and weighted means and spreads."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kernpool._arrays import Array, Codes
from kernpool.core import CARTESIAN, Geometry
from kernpool.data import Encoding


def mean_of(value: Array, weight: Array) -> Array:
    """Return the weighted mean of rows, summed from the first one, so that the mean of equal rows is exact."""
    return np.asarray(value[0] + weight @ (value - value[0]) / weight.sum())


def spread_of(value: Array, weight: Array) -> Array:
    """Return the weighted standard deviation of each column; one for columns that are constant."""
    away = centered(value, weight)
    largest = np.max(np.abs(away), axis=0, initial=0.0)
    largest = np.where(largest > 0, largest, 1.0)  # whose squares neither overflow nor underflow
    spread = np.sqrt(weight @ (away / largest) ** 2 / weight.sum())
    return np.where(spread > 0, spread, 1.0) * largest


def centered(value: Array, weight: Array) -> Array:
    """Return rows minus their weighted mean."""
    return value - mean_of(value, weight)


@dataclass(frozen=True, eq=False)
class StandardColumns:
    """Columns of a table as a matrix: numbers in standard deviations from their mean, categories as 0 and 1.

    Parameters
    ----------
    encoding : Encoding
        Of the table: which columns are pooled, and the categories.
    center, spread : ndarray of shape (d,)
        Weighted means and standard deviations of the pooled columns.

    Examples
    --------
    >>> encoding = Encoding(None, ("numeric", "unordered"), (("a", "b"),), (None,))
    >>> columns = StandardColumns.of(np.array([[1.0], [3.0]]), np.ones(2), encoding)
    >>> columns.matrix(np.array([[5.0], [2.0]]), np.array([[1], [-1]]))
    array([[3., 0., 1.],
           [0., 0., 0.]])
    >>> columns.terms
    ((slice(0, 1, None), False), (slice(1, 3, None), True))
    """

    encoding: Encoding
    center: Array
    spread: Array

    @classmethod
    def of(cls, key: NDArray[np.floating], weight: Array, encoding: Encoding) -> StandardColumns:
        """Measure the numeric columns of weighted rows."""
        numbers: Array = encoding.pooled(key).astype(np.float64)
        spread = np.where(np.ptp(numbers, axis=0) > 0, spread_of(numbers, weight), 0.0)
        spread = Geometry(encoding.sizes).evened(spread)
        spread = np.where(spread > 0, spread, np.inf)
        return cls(encoding, mean_of(numbers, weight), spread)

    @property
    def geometry(self) -> Geometry:
        """Which columns of `matrix` are one point together."""
        sizes = self.encoding.sizes
        return Geometry((*sizes, *[1] * sum(map(len, self.encoding.levels)))) if sizes else CARTESIAN

    @property
    def terms(self) -> tuple[tuple[slice, bool], ...]:
        """Columns of `matrix` of each number, circle, globe and category, and whether it is a category."""
        points = self.encoding.sizes or (1,) * len(self.center)
        sizes = [*points, *map(len, self.encoding.levels)]
        ends = np.cumsum(sizes).tolist()
        return tuple(
            (slice(end - size, end), number >= len(points))
            for number, (end, size) in enumerate(zip(ends, sizes, strict=True))
        )

    def matrix(self, key: NDArray[np.floating], code: Codes | None) -> Array:
        """Return the columns of given rows; a constant column is zero, and an unseen category is none of the others."""
        parts = [(self.encoding.pooled(key) - self.center) / self.spread]
        for column, levels in zip([] if code is None else code.T, self.encoding.levels, strict=True):
            parts.append((column[:, None] == np.arange(len(levels))).astype(np.float64))
        return np.hstack(parts)
