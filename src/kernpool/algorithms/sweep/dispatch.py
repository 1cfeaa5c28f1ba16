"""Sums of the sweep: dispatch by kernel family, recomputation of imprecise queries, and the estimate of time.

Queries that a family marks as imprecise are summed again over the keys of their windows, or by brute force if they
are few. The estimate counts keys put in bins, queries looked up, and about sqrt(m n) bins. No compiler is loaded
until a sum is computed, so that the cost model can use this file.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import ceil, log2, sqrt
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from kernpool.algorithms.algorithm import PairSample
from kernpool.algorithms.brute.brute import pair_seconds
from kernpool.algorithms.sweep.moment_columns import take_marks, with_moments
from kernpool.core import PoolState, Problem
from kernpool.execution.progress import Progress
from kernpool.execution.threads import cut
from kernpool.kernels.registry import Exponential, Flat, Gaussian, Polynomial

if TYPE_CHECKING:
    from kernpool.algorithms.sweep.sorted_column import SortedColumn

KEY_BIN, QUERY_GROUP, QUERIES_PER_BLOCK = 10.0, 4.0, 16
FEW_QUERIES = 64  # keys per query, from which on neighbouring queries are too far apart to look at the same keys
PIECE = 1 << 18
FEW_UNDONE = 16  # queries that are sooner compared with every key than keys are put in bins


def reduce(problem: Problem, n_jobs: int = 1, progress: Progress | None = None) -> PoolState:
    """Sum weights and weighted values over all keys."""
    from kernpool.algorithms.brute import brute  # not before they are needed: they load Numba
    from kernpool.algorithms.sweep import few_queries, windows
    from kernpool.algorithms.sweep.loops.near import UNDONE

    m, kernel = len(problem.query), problem.similarity.kernel
    result = PoolState(np.zeros(m), np.empty(m), np.empty((m, problem.layout.width)))
    for part in cut(m, PIECE):  # the first touch of fresh pages is slow: a few at a time, for Ctrl-C
        result.denominator[part], result.numerator[part] = UNDONE, 0.0
    line: SortedColumn | None = None
    undone: NDArray[np.bool_] | None = None

    def report(start: int, stop: int) -> Progress | None:
        """Convert group counts into query counts; the second half of the progress is for recomputed queries."""
        return None if progress is None else lambda done, total: progress(start + done * (stop - start) // total, m)

    if isinstance(kernel.form, Flat):
        undone = _sum_all(problem, result)
    elif are_few(*problem.shape):
        undone = few_queries.pool_cells(problem, result, n_jobs, report(0, m // 2))
    if undone is None:
        line = arrange(problem, n_jobs)
        _sum_in_order(problem, line, result, n_jobs, report(0, m // 2))
        undone = take_marks(result)
    rows = np.flatnonzero(undone)
    if len(rows) and line is None and len(rows) <= FEW_UNDONE:
        state = brute.reduce(problem.block(rows), n_jobs, report(m // 2, m))
        result.put(rows, state)
    elif len(rows):
        line = line or arrange(problem, n_jobs)
        places = np.flatnonzero(undone[line.queries.order])
        windows.pool_windows(problem, line, places, result, n_jobs, report(m // 2, m))
    elif progress is not None:
        progress(m, m)
    result.shift[result.denominator == 0] = -np.inf
    return result


def are_few(m: int, n: int) -> bool:
    """Tell whether there are so few queries that keys need not be binned."""
    return n >= FEW_QUERIES * m


def _sum_in_order(
    problem: Problem, line: SortedColumn, result: PoolState, n_jobs: int, progress: Progress | None
) -> None:
    """Sum with the method for the kernel's form; queries that must be recomputed are marked."""
    from kernpool.algorithms.sweep import gaussian, laplace, polynomials

    form = problem.similarity.kernel.form
    if isinstance(form, Polynomial) and problem.degree:
        polynomials.pool_panels(line, form, result, n_jobs, progress, problem.degree)
    elif isinstance(form, Polynomial):
        polynomials.pool_polynomial(line, form, result, n_jobs, progress)
    elif isinstance(form, Exponential):
        pool_exponential = laplace.pool_moments if problem.degree else laplace.pool_weights
        pool_exponential(line, result, n_jobs, progress)
    elif isinstance(form, Gaussian):
        if problem.degree:
            gaussian.pool_moments(line, problem.tol, result, n_jobs, progress, problem.degree)
        else:
            gaussian.pool_weights(line, problem.tol, result, n_jobs, progress)


def arrange(problem: Problem, n_jobs: int) -> SortedColumn:
    """Sort keys and queries of a problem of one column into bins.

    A bin of keys costs about as much as 25 pairs, a block of 16 queries as much as 600; and the smaller they are, the
    fewer pairs near the ends of windows are visited one by one.
    """
    from kernpool.algorithms.sweep.sorted_column import SortedColumn

    m, n = problem.shape
    key_bin, query_group = max(KEY_BIN, 5.0 * sqrt(n / m)), max(0.5, QUERY_GROUP * sqrt(m / n))
    if are_few(m, n):  # bins take as long as the sum, and are of use for the next queries if these are about as many
        key_bin = 2.0 ** ceil(log2(key_bin))
    return SortedColumn.arrange(problem, key_bin, query_group, 1 if are_few(m, n) else QUERIES_PER_BLOCK, n_jobs)


def _sum_all(problem: Problem, result: PoolState) -> NDArray[np.bool_]:
    """Sum with the constant kernel, and return the queries that have lost digits."""
    weight, own = problem.key_weight, problem.self_index
    total = problem.total_weight
    # About the weighted mean, from where moments move to any query without cancelling.
    middle = problem.key.mean(axis=0) if weight is None else weight @ problem.key / total
    columns = problem.value
    if problem.degree:
        offset = ((problem.key - middle) / problem.similarity.bandwidth)[:, 0]
        columns = np.ascontiguousarray(with_moments(problem.value.T, offset, problem.degree).T)
    undone = np.zeros(len(problem.query), dtype=bool)
    result.denominator[:] = total
    result.numerator[:] = columns.sum(axis=0) if weight is None else weight @ columns
    if own is not None:
        removed = np.where(own >= 0, (1.0 if weight is None else weight[own]) - problem.own_weight, 0.0)
        # A subtraction costs digits only where little is left.
        undone = removed > 0.5 * total
        result.denominator[:] -= removed
        result.numerator[:] -= removed[:, None] * columns[own]
        if (
            problem.degree
        ):  # nor does what is left of a moment that a key of little weight may make up, far from the others
            layout = problem.layout
            for place in (layout.second, layout.fourth)[: problem.degree]:
                moment = result.numerator[:, place]
                undone |= (moment < 0.75 * (moment + removed[:, None] * columns[own][:, place])).any(axis=1)
    if problem.degree:
        shift = (middle - problem.query) / problem.similarity.bandwidth
        result.numerator[:] = problem.layout.moved(result.denominator, result.numerator, shift)
    return undone


PER_KEY, PER_QUERY, PER_BIN = 0.045e-6, 0.08e-6, 0.02e-6
FEW_COMPACT, FEW_INFINITE = (5e-9, 35e-9), (8e-9, 17e-9)  # per key, of means and of local lines at few points
CELL_KEYS = 3000  # keys from which on a query of the Gaussian meets few cells that are summed key by key


def seconds(problem: Problem, look: PairSample, known: Mapping[str, float]) -> float:
    """Estimate the time of a pass along the line; parameters as in `Algorithm.seconds`."""
    (m, n), kernel = problem.shape, problem.similarity.kernel
    if are_few(m, n) and problem.degree < 2 and kernel.adds_up:  # one pass over the keys
        per_key = FEW_COMPACT if kernel.is_compact else FEW_INFINITE
        return 0.9e-3 + per_key[problem.degree] * n + 2e-6 * m
    call, rows = 450e-6, PER_KEY * n + PER_QUERY * m + PER_BIN * sqrt(m * n)
    smooth = isinstance(kernel.form, Gaussian)
    if smooth:  # cells of few keys are summed key by key
        call, rows = 900e-6, rows + 0.5 * PER_KEY * n + 1e-6 * m * min(1.0, CELL_KEYS / n)
    total = call + (1.0, 1.3 if smooth else 4.0, 8.0)[problem.degree] * rows
    if not kernel.adds_up and total + look.seconds < known["brute"]:
        total += m * (400e-9 + n * look.share * pair_seconds(problem))
    return total
