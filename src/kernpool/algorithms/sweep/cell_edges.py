"""Where a line is cut into cells so that windows consist of whole cells. Needs no compiler.

A cell that lies on one side of every query, and inside or outside of every window, has no key that has to be looked at
twice: what is summed over it once serves all queries. With few queries there are few such cells.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Index = NDArray[np.intp]

SLOTS_PER_EDGE = 8  # of the table that finds cells; with 4 a search by halves is needed so often that it costs 2 ns
CLOSEST = 1e-280  # edges no farther apart than this have no table: slots per unit of length would overflow


@dataclass(frozen=True)
class Edges:
    """Edges in order: cell i, of ``len(edge) + 1``, has the numbers ``edge[i - 1] <= x < edge[i]``.

    Parameters
    ----------
    edge : ndarray of shape (edges,)
        Ascending, at least two.
    live : ndarray of bool, shape (edges + 1,)
        Whether some query wants the cell; the first and the last, which have no end, never are.
    """

    edge: Array
    live: NDArray[np.bool_]

    @property
    def low(self) -> Array:
        """Smallest number of each cell but the first and the last."""
        return self.edge[:-1]

    @property
    def high(self) -> Array:
        """Largest number of each cell but the first and the last."""
        return np.nextafter(self.edge[1:], -np.inf)

    def starting_at(self, x: Array) -> Index:
        """Return the cells that start at these edges."""
        return np.searchsorted(self.edge, x, side="left") + 1

    def slots(self) -> tuple[float, float, NDArray[np.int32]]:
        """Return a table of equal slots of the line: its origin, slots per length, and how many edges lie before each.

        Rounding keeps the order. So an edge in an earlier slot than a number is below it, whatever the last digit does,
        and only the edges in its own slot have to be compared.
        """
        low, extent = float(self.edge[0]), float(self.edge[-1] - self.edge[0])
        number = SLOTS_PER_EDGE * len(self.edge)
        scale = number / extent if extent > CLOSEST else 0.0
        slot = np.minimum((self.edge - low) * scale, number - 1.0).astype(np.int64)
        return low, scale, np.pad(np.cumsum(np.bincount(slot, minlength=number)), (1, 0)).astype(np.int32)


def cut_line(low: Array, inner: Array, stop: Array, width: float, most: float) -> Edges | None:
    """Cut a line at the ends of windows, at inner places, and where cells that a window has would be too wide.

    Parameters
    ----------
    low, stop : ndarray of shape (windows,)
        First number of each window, and the first beyond it.
    inner : ndarray
        Where else to cut.
    width : float
        Cells in windows become about so wide at most.
    most : float
        How many cells there may be.

    Returns
    -------
    Edges or None
        None if there would be more.
    """
    edge = np.unique(np.concatenate([low, inner, stop]))
    low, stop = np.sort(low), np.sort(stop)

    def is_live(start: Array) -> NDArray[np.bool_]:
        return np.searchsorted(low, start, side="right") > np.searchsorted(stop, start, side="right")

    extent = np.diff(edge)
    pieces = np.where(is_live(edge[:-1]), np.maximum(np.ceil(extent / width), 1.0), 1.0)
    if not pieces.sum() <= most:
        return None
    count = pieces.astype(np.int64)
    first = np.cumsum(count) - count
    step = np.arange(count.sum()) - np.repeat(first, count)
    cuts = np.repeat(edge[:-1], count) + step * np.repeat(extent / count, count)
    edge = np.unique(np.append(np.minimum(cuts, edge[-1]), edge))
    return Edges(edge, np.concatenate([[False], is_live(edge[:-1]), [False]]))


def join_windows(low: Array, stop: Array) -> tuple[Array, Array]:
    """Join windows of one length that overlap: the first number of each union, and the first beyond it."""
    low, stop = np.sort(low), np.sort(stop)
    apart = low[1:] > stop[:-1]
    return low[np.append(True, apart)], stop[np.append(apart, True)]


def window_ends(query: Array, h: float, edge_belongs: bool) -> tuple[Array, Array]:
    """Find the first number of each window, and the first beyond it, to the last digit.

    Parameters
    ----------
    query : ndarray of shape (m,)
        Middles of windows.
    h : float
        Bandwidth.
    edge_belongs : bool
        Whether numbers of ``abs(query - x) / h == 1`` are inside, as NumPy rounds it.

    Returns
    -------
    low, stop : ndarray of shape (m,)
        Windows are ``low <= x < stop``.

    Examples
    --------
    >>> import numpy as np
    >>> low, stop = window_ends(np.array([0.3]), 0.1, True)
    >>> float(low[0]), bool((0.3 - low[0]) / 0.1 <= 1.0), bool((0.3 - np.nextafter(low[0], -1.0)) / 0.1 <= 1.0)
    (0.19999999999999998, True, False)
    """
    middle = np.concatenate([query, -query])  # the right end is the left end of the mirror image
    farthest = h if edge_belongs else np.nextafter(h, 0.0)  # distances up to this one are inside
    # Half a unit more is rounded to it. Next to zero this difference is exact, else good to two units of its own.
    start = middle - farthest - 0.5 * np.spacing(farthest)
    margin = 4.0 * np.spacing(np.abs(start))
    outside, inside = _rank(start - margin), _rank(np.minimum(start + margin, middle))
    while np.any(inside - outside > 1):  # the predicate is monotone, so halving ends at neighbours
        between = (outside >> 1) + (inside >> 1) + (outside & inside & 1)
        u = (middle - _number(between)) / h
        belongs = u <= 1.0 if edge_belongs else u < 1.0
        outside, inside = np.where(belongs, outside, between), np.where(belongs, between, inside)
    first = _number(inside)
    return first[: len(query)], np.nextafter(-first[len(query) :], np.inf)


def _rank(x: Array) -> NDArray[np.int64]:
    """Integers in the order of floating-point numbers, next to each other for neighbours."""
    bits = x.view(np.int64)
    return np.where(bits < 0, np.iinfo(np.int64).min - bits, bits)


def _number(rank: NDArray[np.int64]) -> Array:
    return np.where(rank < 0, np.iinfo(np.int64).min - rank, rank).view(np.float64)
