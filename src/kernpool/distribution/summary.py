"""What is known of values that are not held: some of them in order, each for as many rows as lie around it.

Summaries of chunks merge. They only say where to look next; what is found there does not depend on them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

POINTS = 1 << 12  # of one chunk
MOST_POINTS = 1 << 16  # of several; then thinned to a quarter


class Summary(NamedTuple):
    """Some values, ascending.

    Parameters
    ----------
    value : ndarray of shape (p,)
        Without ties.
    rows : ndarray of shape (p,)
        How many rows each stands for.
    """

    value: Array
    rows: Array

    @classmethod
    def of(cls, value: Array) -> Summary:
        """Summarise values, in any order."""
        return thinned(np.sort(value), np.ones(len(value)), POINTS)

    def joined(self, other: Summary) -> Summary:
        """Return the summary of the rows of both."""
        value, rows = np.concatenate([self.value, other.value]), np.concatenate([self.rows, other.rows])
        order = np.argsort(value, kind="stable")
        most = MOST_POINTS if len(value) <= MOST_POINTS else MOST_POINTS // 4
        return thinned(value[order], rows[order], most)

    def cuts(self, low: float, high: float, pieces: int) -> Array:
        """Return where to cut the values above `low` and up to `high` into about so many pieces of as many rows.

        A piece holds the values above one cut and up to the next. A value of more rows than a piece has one alone.

        Examples
        --------
        >>> Summary.of(np.arange(8.0)).cuts(-np.inf, np.inf, 4)
        array([1., 3., 5.])
        >>> Summary.of(np.array([1.0, 2.0, 2.0, 2.0, 2.0, 2.0, 3.0])).cuts(-np.inf, np.inf, 3).tolist()
        [1.9999999999999998, 2.0]
        """
        inside = slice(*np.searchsorted(self.value, [low, high], side="right"))
        value, rows = self.value[inside], self.rows[inside]
        if not len(value):
            return np.empty(0)
        sums, piece = np.cumsum(rows), rows.sum() / pieces
        at = np.minimum(np.searchsorted(sums, piece * np.arange(1, pieces)), len(value) - 1)
        heavy = value[rows >= piece]
        cuts = np.unique(np.concatenate([value[at], heavy, np.nextafter(heavy, -np.inf)]))
        return cuts[(cuts > low) & (cuts < min(high, value[-1] if np.isinf(high) else high))]


def thinned(value: Array, rows: Array, points: int) -> Summary:
    """Return at most so many of ascending values, tied ones as one, at equal distances of rows."""
    first = np.flatnonzero(np.diff(value, prepend=-np.inf) > 0) if len(value) else np.empty(0, dtype=np.intp)
    value, rows = value[first], np.add.reduceat(rows, first) if len(first) else rows[:0]
    if len(value) <= points:
        return Summary(value, rows)
    sums = np.cumsum(rows)
    at = np.unique(np.searchsorted(sums, (np.arange(points) + 1.0) / points * sums[-1] * (1.0 - 1e-12)))
    return Summary(value[at], np.diff(sums[at], prepend=0.0))
