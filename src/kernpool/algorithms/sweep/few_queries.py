"""Kernel sums at few queries over many keys in one column, such as a curve to be drawn.

The line is cut into cells at the queries and at the ends of their windows (`line_cells.py`). One pass over the keys
adds each to the moments of its cell, and a query is a sum over the cells of its window (`loops/line_cells.py`). Keys
are not moved, and each is visited once.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import comb

import numpy as np
from numpy.typing import NDArray

from kernpool.algorithms.algorithm import radius
from kernpool.algorithms.sweep.line_cells import Cells, window_ends
from kernpool.algorithms.sweep.loops import line_cells as loops
from kernpool.algorithms.sweep.moment_columns import clear, pop_flags
from kernpool.core import PoolState, Problem
from kernpool.execution.progress import Progress
from kernpool.execution.threads import Work, cut, run_blocks
from kernpool.kernels.registry import Exponential, Form, Gaussian, Polynomial, power_of_square

Array = NDArray[np.float64]
Index = NDArray[np.intp]

FARTHEST: dict[type, float] = {
    Exponential: 50.0,
    Gaussian: 5.0,
}  # bandwidths to the nearest cell, beyond which queries are done key by key
UNDERFLOW = 1e-280
QUERIES_PER_CALL = 64


def pool_cells(problem: Problem, out: PoolState, n_jobs: int, progress: Progress | None) -> NDArray[np.bool_] | None:
    """Write kernel sums of few queries to `out` by moments of cells; return flags of queries still to be computed.

    Those are to be computed key by key. The result is None, and `out` unchanged, if cells cannot be used.
    """
    key = problem.key[:, 0]
    few = FewQueries.of(problem, len(key), float(key.min()), float(key.max()))
    if few is None:
        return None
    few.add(key, problem.key_weight, problem.value, n_jobs)
    return few.finish(out, n_jobs, progress)


@dataclass
class FewQueries:
    """Kernel sums of few queries over chunks of keys, accumulated as moments of cells.

    Keys may come in chunks: moments add up, and nothing is done per query before the end.

    Parameters
    ----------
    problem : Problem
        Its queries, kernel, bandwidth, and which key each query is.
    share : float
        Fraction of the total weight that may be omitted.
    low, stop : ndarray of shape (m,)
        First number of each window, and the first beyond it.
    cells : Cells
        Pieces of the line.
    moment : ndarray
        Of the keys in each.
    """

    problem: Problem
    share: float
    low: Array
    stop: Array
    cells: Cells
    moment: Array

    @classmethod
    def of(cls, problem: Problem, keys: int, lowest: float, highest: float) -> FewQueries | None:
        """Build `FewQueries` for a number of keys in the range `lowest` to `highest`; None if cells cannot be used.

        Cells cannot be used for local fits, for kernels that are neither polynomial, Gaussian nor Laplace, where no
        window reaches the range of the keys, and where many cells would be needed. Where keys are more than those of
        the problem, all of them have weight one.
        """
        kernel, query, h = problem.similarity.kernel, problem.query[:, 0], float(problem.similarity.bandwidth[0])
        if not isinstance(kernel.form, Exponential | Gaussian | Polynomial) or problem.degree:
            return None
        # Half of a sum may be the query itself, which is taken away.
        total = problem.total_weight if keys == len(problem.key) else float(keys)
        share = (problem.tol if problem.self_index is None else 0.5 * problem.tol) / total
        if kernel.is_compact:
            low, stop = window_ends(query, h, edge_belongs=power_of_square(kernel.form) == 0)
        else:
            reach = h * _farthest_reach(problem, share) + 4.0 * np.finfo(float).eps * np.abs(query)
            low, stop = query - reach, np.nextafter(query + reach, np.inf)
        cells = Cells.make(problem, low, stop, keys, lowest, highest)
        if cells is None:  # there would be too many, or no window reaches the keys
            return None
        return cls(problem, share, low, stop, cells, cells.no_moments(problem.value.shape[1]))

    def add(self, key: Array, weight: Array | None, value: Array, n_jobs: int) -> None:
        """Add a chunk of keys, with weights and values, to the moments of the cells."""
        self.moment += self.cells.sum_moments(key, weight, value, n_jobs)

    def finish(self, out: PoolState, n_jobs: int, progress: Progress | None) -> NDArray[np.bool_]:
        """Write kernel sums to `out`, zero for queries that need direct summation; return flags of these queries."""
        problem, cells, moment = self.problem, self.cells, self.moment
        kernel, query = problem.similarity.kernel, problem.query[:, 0]
        if kernel.is_compact:
            first, last = cells.edges.starting_at(self.low), cells.edges.starting_at(self.stop)
        else:
            first, last = self._cells_in_reach(moment[0, :, 0, 0])
        middle = first if isinstance(kernel.form, Gaussian) else np.clip(cells.edges.starting_at(query), first, last)
        if isinstance(kernel.form, Exponential):
            pool_queries = _laplace_queries(problem, cells, moment, first, middle, last, out)
        else:
            pool_queries = _series_queries(problem, cells, moment, first, middle, last, out)
        run_blocks(pool_queries, cut(len(query), QUERIES_PER_CALL), n_jobs, progress)
        undone = pop_flags(out)
        if not kernel.is_compact:
            undone |= (first == last) | ~(out.denominator > UNDERFLOW)  # far from all keys
        if problem.self_index is not None:
            undone |= _leave_self_out(problem, problem.self_index, out, ~undone)
        clear(out, undone)
        return undone

    def _cells_in_reach(self, weight: Array) -> tuple[Index, Index]:
        """Return each query's range of cells of non-negligible weight; empty for queries far from all keys."""
        problem, cells = self.problem, self.cells
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
        reach = h * radius(kernel, nearest, lightest * self.share) + 4.0 * np.finfo(float).eps * np.abs(query)
        first, last = np.searchsorted(high, query - reach) + 1, np.searchsorted(low, query + reach, side="right") + 1
        near = nearest <= FARTHEST[type(kernel.form)]
        return np.where(near, first, 0), np.where(near, last, 0)


def _series_queries(
    problem: Problem, cells: Cells, moment: Array, first: Index, middle: Index, last: Index, out: PoolState
) -> Work:
    kernel, query = problem.similarity.kernel, problem.query[:, 0]
    rows = moment.reshape(*moment.shape[:2], -1)
    prefix, suffix = np.empty_like(rows), np.empty_like(rows)
    loops.accumulate(cells.start, rows, prefix, suffix)
    coefficient = _coefficients(kernel.form, cells.terms)

    def pool_queries(part: slice) -> Iterator[None]:
        loops.pool_queries(
            query[part], first[part], middle[part], last[part], cells.block, cells.start, cells.center,
            cells.half_width, prefix, suffix, cells.bandwidth, kernel.is_compact, coefficient,
            out.denominator[part], out.numerator[part],
        )  # fmt: skip
        yield

    return pool_queries


def _laplace_queries(
    problem: Problem, cells: Cells, moment: Array, first: Index, middle: Index, last: Index, out: PoolState
) -> Work:
    """Return a function that writes the Laplace-kernel sums of a slice of queries to `out`, by moments of cells.

    A key has the weight ``exp(-d) exp(s)`` for queries to the right of its cell, ``exp(-d) exp(-s)`` to the left.
    """
    query, power = problem.query[:, 0], np.arange(cells.terms)
    series = np.cumprod(1.0 / np.maximum(power, 1.0))
    sums = np.concatenate([moment[:1, :, :, 0], moment[..., 1]])  # of weight, and of weight times each value
    rightward, leftward = sums @ series, sums @ ((-1.0) ** power * series)

    def pool_queries(part: slice) -> Iterator[None]:
        loops.pool_laplace(
            query[part], first[part], middle[part], last[part], cells.center, cells.bandwidth, leftward, rightward,
            out.denominator[part], out.numerator[part],
        )  # fmt: skip
        yield

    return pool_queries


def _coefficients(form: Form | None, terms: int) -> Array:
    """Return the coefficients of a polynomial kernel, or the recurrence factors of Hermite functions (Gaussian).

    They are for `make_series`. A polynomial is in powers of ``abs(u)``, and in those of ``1 - abs(u)``.
    """
    if not isinstance(form, Polynomial):
        return -1.0 / np.arange(1.0, terms + 1.0)[None, :]
    inner, outer = form.inner, form.outer
    in_u, in_rest = np.zeros(inner + 1), np.array([float(comb(inner, r)) * (-1) ** (r + 1) for r in range(inner + 1)])
    in_u[0], in_u[inner], in_rest[0] = 1.0, -1.0, 0.0  # 1 - u**inner, and 1 - (1 - z)**inner
    found = np.zeros((2, terms))
    for row, base in zip(found, (in_u, in_rest), strict=True):
        row[: inner * outer + 1] = form.height * np.polynomial.polynomial.polypow(base, outer)
    return found


def _farthest_reach(problem: Problem, share: float) -> float:
    """Return the largest distance, in bandwidths, at which a key can have non-negligible weight for a query.

    That is for a query whose nearest cell is as far and as light as possible; queries farther away are computed key by
    key.
    """
    weight, kernel = problem.key_weight, problem.similarity.kernel
    lightest = 1.0 if weight is None else float(weight.min() or weight[weight > 0].min())
    return float(radius(kernel, np.array(FARTHEST[type(kernel.form)]), np.array(lightest * share)))


def _leave_self_out(problem: Problem, self_index: Index, out: PoolState, done: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Subtract each query's own key (leave-one-out); return flags of queries that lose more than half their weight."""
    weight = problem.key_weight
    u = np.abs(problem.query[:, 0] - problem.key[self_index, 0]) / problem.similarity.bandwidth[0]
    self_weight = 1.0 if weight is None else weight[self_index]
    removed = (self_weight - problem.own_weight) * problem.similarity.kernel.profile(u)
    removed = np.where((self_index >= 0) & done, removed, 0.0)
    lost: NDArray[np.bool_] = removed > 0.5 * out.denominator
    out.numerator[:] -= removed[:, None] * problem.value[self_index]
    out.denominator[:] -= removed
    return lost
