"""Cells: pieces of a line, and the moments of the keys in each.

Keys are not moved but summed where they lie, in any order; so moments of chunks of keys add up.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import factorial, sqrt

import numpy as np
from numpy.typing import NDArray

from kernpool.algorithms.sweep.cell_edges import Edges, cut_line, join_windows
from kernpool.algorithms.sweep.loops import cells as loops
from kernpool.core.problem import Problem
from kernpool.execution.threads import cut, run_blocks
from kernpool.kernels.forms import Exponential, Form, Polynomial

Array = NDArray[np.float64]

KEYS_PER_CELL = 64  # at least, on average
NARROWEST, WIDEST, USUAL_CELLS = 1 / 8, 1 / 2, 1024  # of polynomials: bandwidths, and cells in all windows in between
PARTS = 8  # of the keys, each with moments of its own
KEYS_PER_PART, KEYS_PER_CALL = 1 << 16, 1 << 18  # the latter take 5 ms
PER_TERM, OUT_OF_CACHE = 0.4e-9, 0.2e-12  # seconds per key and term, and per key and moment
PER_SERIES = 4e-9  # per query, cell and term
NONE = np.empty(0)


@dataclass(frozen=True)
class Cells:
    """Cells for the queries of a problem.

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
        """Cut the line for windows ``low <= x < stop``; None if that takes too many cells for the keys."""
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
        """Return the moments of no keys."""
        return np.zeros((values, len(self.block), self.terms, 2))

    def sum_moments(self, key: Array, weight: Array | None, value: Array, n_jobs: int) -> Array:
        """Sum the moments of keys; those of chunks of keys add up."""
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
    """How many moments cells need so that their series are exact to rounding; an even number.

    The series of a Laplace kernel leaves out the share ``s**p / p!`` of a weight. That of a Gaussian is made of Hermite
    functions; by Cramer's inequality it leaves out ``1.1 s**p / sqrt(p!)`` times ``exp(-d**2 / 4)``.
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
    """Width of cells, in bandwidths: narrow cells need fewer moments of keys, wide ones are fewer for queries."""
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
