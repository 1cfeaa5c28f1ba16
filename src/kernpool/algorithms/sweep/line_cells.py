"""Cells of a line: intervals between queries and ends of kernel windows, and moments of the keys in each.

The line is cut so that each window consists of whole cells. Then a cell lies on one side of every query, and inside
or outside of every window, so the sums over its keys serve all queries and no key is visited twice. With few queries
there are few cells.

Keys are not moved but summed where they lie, in any order, so the moments of chunks of keys add up. `Edges` needs no
compiler.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import factorial, sqrt

import numpy as np
from numpy.typing import NDArray

from kernpool.algorithms.sweep.loops import line_cells as loops
from kernpool.core.problem import Problem
from kernpool.execution.threads import cut, run_blocks
from kernpool.kernels.registry import Exponential, Form, Polynomial

Array = NDArray[np.float64]
Index = NDArray[np.intp]

SLOTS_PER_EDGE = 8  # of the table that finds cells; with 4 a search by halves is needed so often that it costs 2 ns
CLOSEST = 1e-280  # edges no farther apart than this have no table: slots per unit of length would overflow


@dataclass(frozen=True)
class Edges:
    """Sorted edges that cut the line into cells; cell i is the interval ``edge[i - 1] <= x < edge[i]``.

    There are ``len(edge) + 1`` cells.

    Parameters
    ----------
    edge : ndarray of shape (edges,)
        Ascending, at least two.
    live : ndarray of bool, shape (edges + 1,)
        Whether some window includes the cell; false for the first and the last, which are unbounded.
    """

    edge: Array
    live: NDArray[np.bool_]

    @property
    def low(self) -> Array:
        """Smallest float in each bounded cell, that is, in every cell but the first and the last."""
        return self.edge[:-1]

    @property
    def high(self) -> Array:
        """Largest float in each bounded cell, that is, in every cell but the first and the last."""
        return np.nextafter(self.edge[1:], -np.inf)

    def starting_at(self, x: Array) -> Index:
        """Return the indices of the cells that start at the edges `x`."""
        return np.searchsorted(self.edge, x, side="left") + 1

    def slots(self) -> tuple[float, float, NDArray[np.int32]]:
        """Return a table to look up cells: origin, slots per unit of length, and the number of edges before each slot.

        Rounding keeps the order. So an edge in an earlier slot than a number is below it, whatever the last digit does,
        and only the edges in its own slot have to be compared.
        """
        low, extent = float(self.edge[0]), float(self.edge[-1] - self.edge[0])
        number = SLOTS_PER_EDGE * len(self.edge)
        scale = number / extent if extent > CLOSEST else 0.0
        slot = np.minimum((self.edge - low) * scale, number - 1.0).astype(np.int64)
        return low, scale, np.pad(np.cumsum(np.bincount(slot, minlength=number)), (1, 0)).astype(np.int32)


def cut_line(low: Array, inner: Array, stop: Array, width: float, most: float) -> Edges | None:
    """Cut the line into cells at window ends and at the points `inner`, with a maximum width inside windows.

    Parameters
    ----------
    low, stop : ndarray of shape (windows,)
        First number of each window, and the first beyond it.
    inner : ndarray
        Further cut points.
    width : float
        Approximate largest width of cells inside windows.
    most : float
        Largest number of cells.

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
    """Merge overlapping windows of equal length; return the first number of each union, and the first beyond it."""
    low, stop = np.sort(low), np.sort(stop)
    apart = low[1:] > stop[:-1]
    return low[np.append(True, apart)], stop[np.append(apart, True)]


def window_ends(query: Array, h: float, edge_belongs: bool) -> tuple[Array, Array]:
    """Return the smallest float in each query's kernel window, and the smallest float beyond its upper end.

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
    outside, inside = _to_integers(start - margin), _to_integers(np.minimum(start + margin, middle))
    while np.any(inside - outside > 1):  # the predicate is monotone, so halving ends at neighbours
        between = (outside >> 1) + (inside >> 1) + (outside & inside & 1)
        u = (middle - _to_floats(between)) / h
        belongs = u <= 1.0 if edge_belongs else u < 1.0
        outside, inside = np.where(belongs, outside, between), np.where(belongs, between, inside)
    first = _to_floats(inside)
    return first[: len(query)], np.nextafter(-first[len(query) :], np.inf)


def _to_integers(x: Array) -> NDArray[np.int64]:
    """Map floats to integers in the same order, neighbouring floats to consecutive integers."""
    bits = x.view(np.int64)
    return np.where(bits < 0, np.iinfo(np.int64).min - bits, bits)


def _to_floats(rank: NDArray[np.int64]) -> Array:
    return np.where(rank < 0, np.iinfo(np.int64).min - rank, rank).view(np.float64)


KEYS_PER_CELL = 64  # at least, on average
NARROWEST, WIDEST, USUAL_CELLS = 1 / 8, 1 / 2, 1024  # of polynomials: bandwidths, and cells in all windows in between
PARTS = 8  # of the keys, each with moments of its own
KEYS_PER_PART, KEYS_PER_CALL = 1 << 16, 1 << 18  # the latter take 5 ms
PER_TERM, OUT_OF_CACHE = 0.4e-9, 0.2e-12  # seconds per key and term, and per key and moment
PER_SERIES = 4e-9  # per query, cell and term
NONE = np.empty(0)


@dataclass(frozen=True)
class Cells:
    """Cells into which kernel windows cut the line, and what is needed to sum the moments of the keys in each.

    Parameters
    ----------
    edges : Edges
        Where they begin and end.
    block : ndarray of shape (cells,)
        Cells in a row make a block.
    start : ndarray of shape (blocks + 1,)
        First cell of each block.
    center : ndarray of shape (cells,)
        Of the cell's block: what moments are about.
    half_width : ndarray of shape (cells,)
        Of the cell's block, in bandwidths.
    bandwidth : float
        In the units of the column.
    terms : int
        How many moments are needed.
    """

    edges: Edges
    block: NDArray[np.int64]
    start: NDArray[np.int64]
    center: Array
    half_width: Array
    bandwidth: float
    terms: int

    @classmethod
    def make(cls, problem: Problem, low: Array, stop: Array, keys: int, lowest: float, highest: float) -> Cells | None:
        """Build `Cells` for windows ``low <= x < stop``; None if windows miss the keys' range or cells are too many."""
        kernel, h = problem.similarity.kernel, float(problem.similarity.bandwidth[0])
        query = problem.query[:, 0]
        begin, end = join_windows(low, stop)
        begin, end = np.maximum(begin, lowest), np.minimum(end, np.nextafter(highest, np.inf))
        occupied = begin < end
        if not occupied.any():
            return None
        begin, end, block_width = begin[occupied], end[occupied], 0.0
        extent = max(float((end - begin).sum()) / h, 1e-300)  # bandwidths
        if kernel.is_compact:
            inner, width = query, h * float(np.clip(extent / USUAL_CELLS, NARROWEST, WIDEST))
            block_width = width
        else:
            low, stop, window = begin, end, float(stop[0] - low[0]) / h
            inner = query[(query > begin[0]) & (query < end[-1])] if isinstance(kernel.form, Exponential) else NONE
            width = h * _best_width(problem, keys, len(inner), extent, window)
        edges = cut_line(low, inner, stop, width, keys / KEYS_PER_CELL)
        if edges is None:
            return None
        block, start = loops.join_cells(edges.low, edges.high, block_width)
        first, last = edges.low[start[1:-2] - 1], edges.high[start[2:-1] - 2]
        center = np.pad(0.5 * first + 0.5 * last, 1)[block]
        half_width = np.pad(0.5 * (last - first) / h, 1)[block]
        terms = count_terms(kernel.form, float(half_width[edges.live].max()))
        return cls(edges, block, start, center, half_width, h, terms)

    def no_moments(self, values: int) -> Array:
        """Return an array of zeros, (values, cells, terms, 2), to which moments of cells can be added."""
        return np.zeros((values, len(self.block), self.terms, 2))

    def sum_moments(self, key: Array, weight: Array | None, value: Array, n_jobs: int) -> Array:
        """Compute the moments of a chunk of keys in each cell; those of several chunks can be added."""
        parts = cut(len(key), max(KEYS_PER_PART, -(-len(key) // PARTS)))
        moments = np.stack([self.no_moments(value.shape[1])] * len(parts))
        low, scale, slots = self.edges.slots()
        index = {part.start: i for i, part in enumerate(parts)}

        def add(part: slice) -> Iterator[None]:
            for piece in cut(part.stop - part.start, KEYS_PER_CALL):
                loops.add_keys(
                    key[part][piece], NONE if weight is None else weight[part][piece], value[part][piece],
                    low, scale, slots, self.edges.edge, self.center, self.bandwidth, moments[index[part.start]],
                )  # fmt: skip
                yield

        run_blocks(add, parts, n_jobs, None)
        return np.asarray(moments.sum(axis=0))


def count_terms(form: Form | None, half_width: float) -> int:
    """Return the even number of moments per cell that makes the power series exact up to rounding.

    The series of a Laplace kernel omits the fraction ``s**p / p!`` of a weight. That of a Gaussian is made of Hermite
    functions; by Cramer's inequality it omits ``1.1 s**p / sqrt(p!)`` times ``exp(-d**2 / 4)``.
    """
    p = 2
    if isinstance(form, Polynomial):
        return 2 * (form.inner * form.outer // 2 + 1)
    if isinstance(form, Exponential):
        while half_width**p / factorial(p) > 1e-17:
            p += 2
    else:
        while 1.1 * half_width**p / sqrt(factorial(p)) > 1e-18:
            p += 2
    return p


def _best_width(problem: Problem, keys: int, cuts: int, extent: float, window: float) -> float:
    """Return the width of cells, in bandwidths, with the smallest estimated run time.

    Narrow cells need fewer moments, wide ones are fewer per query.
    """
    m, n, form = len(problem.query), keys, problem.similarity.kernel.form
    share = min(1.0, window / extent)  # of the cells that a query looks at
    best, least = 1.0, np.inf
    for halvings in range(1, 11):
        width = 0.5**halvings
        cells, terms = cuts + extent / width, count_terms(form, 0.5 * width)
        series = m * share * cells * (1 if isinstance(form, Exponential) else terms)
        seconds = n * terms * (PER_TERM + cells * OUT_OF_CACHE) + series * PER_SERIES
        if seconds < least:
            best, least = width, seconds
    return best
