"""Few queries and many keys on a line, such as a curve to draw: the keys are not moved, but summed where they lie.

The line is cut into cells at the queries and at the ends of their windows (`cell_edges.py`). One pass over the keys adds
each to the moments of its cell, and a query is a sum over the cells of its window (`cell_loops.py`). Nothing depends on
the order of the keys, and moments of chunks of keys add up.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import comb, factorial, sqrt

import numpy as np
from numpy.typing import NDArray

from kernpool.algorithms import cell_loops as loops
from kernpool.algorithms.cell_edges import Edges, cut_line, join_windows, window_ends
from kernpool.algorithms.polynomials import POLYNOMIALS
from kernpool.algorithms.radius import radius
from kernpool.algorithms.threads import cut, run_blocks
from kernpool.problem import Problem
from kernpool.progress import Progress
from kernpool.state import PoolState

Array = NDArray[np.float64]
Index = NDArray[np.intp]

FAMILIES = dict.fromkeys(POLYNOMIALS, loops.POLYNOMIAL) | {"laplace": loops.LAPLACE, "gaussian": loops.GAUSSIAN}
FARTHEST = {"laplace": 50.0, "gaussian": 5.0}  # bandwidths to the nearest cell, beyond which queries are left
KEYS_PER_CELL = 32  # at least, on average
NARROWEST, WIDEST, USUAL_CELLS = 1 / 8, 1 / 2, 1024  # of polynomials: bandwidths, and cells in all windows in between
PARTS = 8  # of the keys, each with moments of its own
KEYS_PER_PART, KEYS_PER_CALL = 1 << 16, 1 << 18  # the latter take 5 ms
QUERIES_PER_CALL = 64
PER_KEY, PER_MOMENT, PER_CELL, PER_TERM = 9e-9, 1e-9, 15e-9, 2e-9  # seconds
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
    coefficient : ndarray of shape (2, terms)
        A polynomial kernel in powers of ``abs(u)`` and of ``1 - abs(u)``; of others only the number of terms counts.
    """

    edges: Edges
    block: NDArray[np.int64]
    start: NDArray[np.int64]
    center: Array
    half_width: Array
    bandwidth: float
    coefficient: Array

    @classmethod
    def make(cls, problem: Problem) -> Cells | None:
        """Cut the line for a problem; None if that takes too many cells for its keys."""
        kernel, h = problem.similarity.kernel, float(problem.similarity.bandwidth[0])
        query, most = problem.query[:, 0], len(problem.key) / KEYS_PER_CELL
        if kernel.is_compact:
            low, stop = window_ends(query, h, edge_belongs=kernel.name == "boxcar")
            begin, end = join_windows(low, stop)
            block_width = h * float(np.clip((end - begin).sum() / (h * USUAL_CELLS), NARROWEST, WIDEST))
            edges = cut_line(low, query, stop, block_width, most)
        else:
            reach = h * _reach(problem) + 4.0 * np.finfo(float).eps * np.abs(query).max()
            begin, end = join_windows(query - reach, np.nextafter(query + reach, np.inf))
            inner, block_width = query if kernel.name == "laplace" else NONE, 0.0
            width = h * _best_width(problem, len(inner), reach / h, (end - begin).sum() / h)
            edges = cut_line(begin, inner, end, width, most)
        if edges is None:
            return None
        block, start = loops.join_cells(edges.low, edges.high, block_width)
        low, high = edges.low[start[1:-2] - 1], edges.high[start[2:-1] - 2]
        center = np.pad(0.5 * low + 0.5 * high, 1)[block]
        half_width = np.pad(0.5 * (high - low) / h, 1)[block]
        widest = float(half_width[edges.live].max())
        coefficient = _powers(kernel.name) if kernel.is_compact else np.empty((2, terms(kernel.name, widest)))
        return cls(edges, block, start, center, half_width, h, coefficient)

    def sum_moments(self, key: Array, weight: Array | None, value: Array, n_jobs: int) -> Array:
        """Sum the moments of keys, of shape (cells, terms, 1 + columns); those of chunks of keys add up."""
        parts = cut(len(key), max(KEYS_PER_PART, -(-len(key) // PARTS)))
        moments = np.zeros((len(parts), len(self.block), self.coefficient.shape[1], 1 + value.shape[1]))
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


def reduce(problem: Problem, out: PoolState, n_jobs: int, progress: Progress | None) -> bool:
    """Pool into `out`; denominators of -1 mark queries to be done key by key. False, and nothing done, if too fine."""
    cells = Cells.make(problem)
    if cells is None:
        return False
    kernel, query = problem.similarity.kernel, problem.query[:, 0]
    moment = cells.sum_moments(problem.key[:, 0], problem.key_weight, problem.value, n_jobs)
    if kernel.is_compact:
        low, stop = window_ends(query, cells.bandwidth, edge_belongs=kernel.name == "boxcar")
        first, last = cells.edges.starting_at(low), cells.edges.starting_at(stop)
    else:
        first, last = _cells_in_reach(problem, cells, moment[:, 0, 0])
    middle = first if kernel.name == "gaussian" else np.clip(cells.edges.starting_at(query), first, last)
    prefix, suffix = np.empty_like(moment), np.empty_like(moment)
    loops.accumulate(cells.start, moment, prefix, suffix)
    inverse = 1.0 / np.maximum(np.arange(float(moment.shape[1])), 1.0)

    def pool_queries(part: slice) -> Iterator[None]:
        loops.pool_queries(
            query[part], first[part], middle[part], last[part], cells.block, cells.start, cells.center,
            cells.half_width, prefix, suffix, cells.bandwidth, FAMILIES[kernel.name], cells.coefficient, inverse,
            out.denominator[part], out.numerator[part],
        )  # fmt: skip
        yield

    run_blocks(pool_queries, cut(len(query), QUERIES_PER_CALL), n_jobs, progress)
    if not kernel.is_compact:
        out.denominator[first == last] = -1.0  # far from all keys
    if problem.self_index is not None:
        _leave_own_out(problem, out)
    return True


def _powers(name: str) -> Array:
    """Coefficients of a kernel in powers of ``abs(u)``, and of ``1 - abs(u)``."""
    height, inner, outer = POLYNOMIALS[name]
    in_u, in_rest = np.zeros(inner + 1), np.array([float(comb(inner, r)) * (-1) ** (r + 1) for r in range(inner + 1)])
    in_u[0], in_u[inner], in_rest[0] = 1.0, -1.0, 0.0  # 1 - u**inner, and 1 - (1 - z)**inner
    coefficient = np.zeros((2, inner * outer + 1))
    for row, base in zip(coefficient, (in_u, in_rest), strict=True):
        row[:] = height * np.polynomial.polynomial.polypow(base, outer)
    return coefficient


def terms(name: str, half_width: float) -> int:
    """How many moments cells need so that their series are exact to rounding.

    The series of a Laplace kernel leaves out the share ``s**p / p!`` of a weight. That of a Gaussian is made of Hermite
    functions; by Cramer's inequality it leaves out ``1.1 s**p / sqrt(p!)`` times ``exp(-d**2 / 4)``.
    """
    p = 1
    if name == "laplace":
        while half_width**p / factorial(p) > 1e-17:
            p += 1
        return p
    while 1.1 * half_width**p / sqrt(factorial(p)) > 1e-18:
        p += 1
    return p


def _share(problem: Problem) -> float:
    """Share of all weight that may be left out; half of a sum may be the own key, which is taken away."""
    weight = problem.key_weight
    total = float(len(problem.key)) if weight is None else float(weight.sum())
    return (problem.tol if problem.self_index is None else 0.5 * problem.tol) / total


def _reach(problem: Problem) -> float:
    """How far the keys reach, in bandwidths, of a query whose nearest cell is as far and as light as can be."""
    weight, kernel = problem.key_weight, problem.similarity.kernel
    lightest = 1.0 if weight is None else float(weight[weight > 0].min())
    return float(radius(kernel, np.array(FARTHEST[kernel.name]), np.array(lightest * _share(problem))))


def _best_width(problem: Problem, cuts: int, reach: float, extent: float) -> float:
    """Width of cells, in bandwidths: with narrow cells a key costs less, with wide ones a query."""
    (m, n), columns = problem.shape, 1 + problem.value.shape[1]
    best, least = 1.0, np.inf
    for halvings in range(1, 11):
        width = 0.5**halvings
        cells, p = cuts + extent / width, terms(problem.similarity.kernel.name, 0.5 * width)
        seconds = n * (PER_KEY + columns * p * PER_MOMENT) + PARTS * cells * p * columns * PER_MOMENT
        seconds += m * min(cells, (cuts + 2.0 * extent / width) * reach / extent) * (PER_CELL + columns * p * PER_TERM)
        if seconds < least:
            best, least = width, seconds
    return best


def _cells_in_reach(problem: Problem, cells: Cells, weight: Array) -> tuple[Index, Index]:
    """First and last-plus-one cell that can matter to each query; none where the nearest is far."""
    query, h, kernel = problem.query[:, 0], cells.bandwidth, problem.similarity.kernel
    low, high = cells.edges.low, cells.edges.high
    (occupied,) = np.nonzero(cells.edges.live[1:-1] & (weight[1:-1] > 0.0))
    if not len(occupied):
        nothing = np.zeros(len(query), dtype=np.intp)
        return nothing, nothing
    after = np.searchsorted(low[occupied], query)
    nearest, lightest = np.full(len(query), np.inf), np.ones(len(query))
    for neighbour in (after - 1, after):
        cell = occupied[np.clip(neighbour, 0, len(occupied) - 1)]
        distance = np.maximum(np.abs(query - low[cell]), np.abs(query - high[cell])) / h  # of its farthest key
        lightest = np.where(distance < nearest, weight[1:-1][cell], lightest)
        nearest = np.minimum(distance, nearest)
    reach = h * radius(kernel, nearest, lightest * _share(problem)) + 4.0 * np.finfo(float).eps * np.abs(query)
    first, last = np.searchsorted(high, query - reach) + 1, np.searchsorted(low, query + reach, side="right") + 1
    return np.where(nearest <= FARTHEST[kernel.name], (first, last), 0)


def _leave_own_out(problem: Problem, out: PoolState) -> None:
    """Take own keys away where that costs no digits, which is where at least half is left."""
    own, weight = problem.self_index, problem.key_weight
    u = np.abs(problem.query[:, 0] - problem.key[own, 0]) / problem.similarity.bandwidth[0]
    removed = ((1.0 if weight is None else weight[own]) - problem.own_weight) * problem.similarity.kernel.profile(u)
    removed = np.where((own >= 0) & (out.denominator >= 0.0), removed, 0.0)
    out.numerator[:] -= removed[:, None] * problem.value[own]
    out.denominator[:] = np.where(removed <= 0.5 * out.denominator, out.denominator - removed, -1.0)
