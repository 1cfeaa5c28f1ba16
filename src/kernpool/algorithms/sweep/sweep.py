"""Sweep algorithm: kernel sums in one column, in time that grows with keys plus queries and not with pairs.

Keys and queries are sorted into bins. How they are summed depends on the family of the kernel:

=================== ============================================================ ======================
kernels             far keys                                                     file
=================== ============================================================ ======================
compact polynomials moments of cells, added up to one polynomial per group       `polynomial_kernels.py`
laplace             two sums of exponentials that run along the line             `infinite_kernels.py`
gaussian            Taylor series of cells, added up to one series per group     `infinite_kernels.py`
constant            one sum                                                      this one
cosine, logistic    none: brute force over the window of each query              `windows.py`
=================== ============================================================ ======================

Local linear and local quadratic fits are summed the same way, but not with the Laplace kernel.

A query whose sum is small compared with its terms, such as one far from all keys, is flagged by its family and summed
again over the keys of its window, or by brute force if such queries are few. Gradients are computed over these pairs
as well; Gaussian ones in float32 are sums of the same series (`differentiate_by_series`).

The estimate of time counts keys put in bins, queries looked up, and about sqrt(m n) bins. No compiler is loaded until
a sum is computed, so that the cost model can use this file.
"""

from __future__ import annotations

from dataclasses import replace
from math import ceil, log2, sqrt
from typing import TYPE_CHECKING

import numpy as np

from kernpool._arrays import Array, Flags
from kernpool.algorithms.algorithm import Algorithm, Gradients, are_few, sweep_seconds
from kernpool.core import FLOAT64, PoolState, Problem
from kernpool.execution import Progress, cut, progress_between
from kernpool.kernels import Exponential, Flat, Gaussian, Polynomial

if TYPE_CHECKING:
    from kernpool.algorithms.sweep.sorted_column import SortedColumn


KEY_BIN, QUERY_GROUP, QUERIES_PER_BLOCK = 10.0, 4.0, 16
PIECE = 1 << 18
FEW_UNDONE = 16  # queries that are sooner compared with every key than keys are put in bins


def reduce(problem: Problem, n_jobs: int = 1, progress: Progress | None = None) -> PoolState:
    """Compute kernel sums over all keys for one-dimensional queries, without visiting every query-key pair."""
    from kernpool.algorithms.brute import brute  # not before they are needed: they load Numba
    from kernpool.algorithms.sweep import windows
    from kernpool.algorithms.sweep.loops.near_pairs import UNDONE

    if not problem.similarity.is_uniform:
        from kernpool.algorithms.sweep import octaves

        return octaves.sum_windows(problem, n_jobs, progress)
    m, kernel = len(problem.query), problem.similarity.kernel
    result = PoolState(np.zeros(m), np.empty(m), np.empty((m, problem.layout.width)))
    for part in cut(m, PIECE):  # the first touch of fresh pages is slow: a few at a time, for Ctrl-C
        result.denominator[part], result.numerator[part] = UNDONE, 0.0
    line: SortedColumn | None = None
    again = progress_between(progress, m // 2, m, m)  # of recomputed queries
    if isinstance(kernel.form, Flat):
        undone = _sum_all(problem, result)
    else:
        line = arrange(problem, n_jobs)
        _sum_in_order(problem, line, result, n_jobs, progress_between(progress, 0, m // 2, m))
        undone = result.denominator < 0.0  # flagged by `UNDONE`
        result.denominator[undone], result.numerator[undone] = 0.0, 0.0
    rows = np.flatnonzero(undone)
    if len(rows) and line is None and len(rows) <= FEW_UNDONE:
        state = brute.reduce(problem.block(rows), n_jobs, again)
        result.put(rows, state)
    elif len(rows):
        line = line or arrange(problem, n_jobs)
        places = np.flatnonzero(undone[line.queries.order])
        windows.pool_windows(problem, line, places, result, n_jobs, again)
    elif progress is not None:
        progress(m, m)
    result.shift[result.denominator == 0] = -np.inf
    return result


def _sum_in_order(
    problem: Problem, line: SortedColumn, result: PoolState, n_jobs: int, progress: Progress | None
) -> None:
    """Write kernel sums to `result` by the method for the kernel's family; flag queries to be recomputed."""
    from kernpool.algorithms.sweep import infinite_kernels, polynomial_kernels

    form = problem.similarity.kernel.form
    if isinstance(form, Polynomial) and problem.degree:
        polynomial_kernels.pool_panels(line, form, result, n_jobs, progress, problem.degree)
    elif isinstance(form, Polynomial):
        polynomial_kernels.pool_polynomial(line, form, result, n_jobs, progress)
    elif isinstance(form, Exponential):
        infinite_kernels.pool_laplace(line, result, n_jobs, progress)
    elif isinstance(form, Gaussian):
        if problem.degree:
            infinite_kernels.pool_gaussian_moments(line, problem.tol, result, n_jobs, progress, problem.degree)
        else:
            infinite_kernels.pool_gaussian(line, problem.tol, result, n_jobs, progress)


def arrange(problem: Problem, n_jobs: int) -> SortedColumn:
    """Sort keys and queries of a one-column problem into bins whose sizes balance the costs of a sum."""
    # A bin of keys costs about as much as 25 pairs, a block of 16 queries as much as 600; and the smaller they are, the
    # fewer pairs near the ends of windows are visited one by one.
    from kernpool.algorithms.sweep.sorted_column import SortedColumn

    m, n = problem.shape
    key_bin, query_group = max(KEY_BIN, 5.0 * sqrt(n / m)), max(0.5, QUERY_GROUP * sqrt(m / n))
    if are_few(m, n):  # bins take as long as the sum, and are of use for the next queries if these are about as many
        key_bin = 2.0 ** ceil(log2(key_bin))
    return SortedColumn.arrange(problem, key_bin, query_group, 1 if are_few(m, n) else QUERIES_PER_BLOCK, n_jobs)


def _sum_all(problem: Problem, result: PoolState) -> Flags:
    """Write constant-kernel sums to `result`, and return flags of imprecise queries."""
    weight, own = problem.key_weight, problem.self_index
    total = problem.total_weight
    # About the weighted mean, from where moments move to any query without cancelling.
    middle = problem.key.mean(axis=0) if weight is None else weight @ problem.key / total
    columns = problem.value
    if problem.degree:
        from kernpool.algorithms.sweep.sorted_column import with_moments

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
        if problem.degree:  # of a moment too, most of which may be that of a light key far from the others
            layout = problem.layout
            for place in (layout.second, layout.fourth)[: problem.degree]:
                moment = result.numerator[:, place]
                undone |= (moment < 0.75 * (moment + removed[:, None] * columns[own][:, place])).any(axis=1)
    if problem.degree:
        shift = (middle - problem.query) / problem.similarity.bandwidth
        result.numerator[:] = problem.layout.moved(result.denominator, result.numerator, shift)
    return undone


# Weight about a query below which it is computed pair by pair. The truncation error of series is a fraction of all
# weights about a key, and its effect is the larger, the less weight the query has.
LEAST_WEIGHT = 1e-3
# Weight about the average query from which on series are faster: windows hold seven times as many keys (measured: with
# 170 keys pairs took half of the time of series, with 1700 two and a half times as long).
MANY = 100.0
EPSILON = float(np.finfo(np.float64).eps)
WANTED = frozenset({"query", "key", "value"})


def applies(problem: Problem, state: PoolState, wanted: frozenset[str]) -> bool:
    """Return whether the requested gradients can be computed by Taylor series, and faster than pair by pair."""
    if problem.self_index is not None:  # each key has to be the own one of a single query, when they are exchanged
        own = problem.self_index[problem.self_index >= 0]
        if problem.key_weight is not None or len(np.unique(own)) < len(own):
            return False
    return (
        isinstance(problem.similarity.kernel.form, Gaussian)
        and problem.dtype == np.float32
        and problem.attn_mask is None
        and not problem.degree
        and wanted <= WANTED
        and float(np.mean(_weight_about(state))) >= MANY
    )


def _weight_about(state: PoolState) -> Array:
    with np.errstate(under="ignore"):
        return state.denominator * np.exp(np.minimum(state.shift, 0.0))


def differentiate_by_series(
    problem: Problem,
    state: PoolState,
    cotangent: Array,
    wanted: frozenset[str],
    n_jobs: int = 1,
    progress: Progress | None = None,
) -> Gradients:
    """Compute the gradients of Gaussian pooling in one column by Taylor series, in linear time."""
    # dL/dq_i = 1/h sum_b g_ib ((sum_j w_ij u_ij v_jb) / D_i - yhat_ib (sum_j w_ij u_ij) / D_i)
    # with ``u_ij = (k_j - q_i) / h``, and those by keys and values are the same sums with keys and queries exchanged:
    # keys become the queries, with ``g_i / D_i`` and ``g_i . yhat_i / D_i`` as values.
    # The differences are of large sums, which the pairs of `windows.py` avoid. In single precision that costs nothing:
    # sums are in double precision, and their rounding, relative to the spread of all values, is a thousandth of the
    # rounding of float32 values. Problems in double precision use the pairs.
    from kernpool.algorithms.sweep import windows

    found = {name: np.zeros_like(getattr(problem, name)) for name in wanted}
    light = _weight_about(state) < LEAST_WEIGHT
    clear, others = np.flatnonzero(~light), np.flatnonzero(light & cotangent.any(axis=1))
    parts = []
    if len(clear):
        parts.append((clear, _by_series(problem.block(clear), state.rows(clear), cotangent[clear], wanted, n_jobs)))
    if len(others):
        part = problem.block(others)
        line = arrange(part, n_jobs)
        by_pairs = windows.differentiate_windows(part, line, state.rows(others), cotangent[others], wanted, n_jobs)
        parts.append((others, by_pairs._asdict()))
    for rows, gradients in parts:
        for name in wanted:
            found[name][rows if name == "query" else slice(None)] += gradients[name]
    if progress is not None:
        progress(len(light), len(light))
    return Gradients(**found)


def _by_series(
    problem: Problem, sums: PoolState, slope: Array, wanted: frozenset[str], n_jobs: int
) -> dict[str, Array]:
    h, c = problem.similarity.bandwidth, problem.value.shape[1]
    found = {}
    denominator = sums.denominator[:, None]
    pooled = sums.numerator[:, :c] / denominator
    if "query" in wanted:
        asked = replace(problem, degree=1, tol=EPSILON)
        own, layout = reduce(asked, n_jobs), asked.layout
        # In the unit of the state, which may be that of other keys too.
        first, cross = own.numerator[:, layout.first], own.numerator[:, layout.cross]
        moved = np.sum(slope * (cross - pooled * first), axis=1, keepdims=True)
        found["query"] = moved * np.exp(own.shift - sums.shift)[:, None] / (denominator * h)
    if wanted == {"query"}:
        return found
    share = slope / (denominator * np.exp(sums.shift)[:, None])
    answer = np.hstack([share, np.sum(share * pooled, axis=1, keepdims=True)])
    exchanged = _exchanged(problem, answer, "key" in wanted)
    sums, layout = reduce(exchanged, n_jobs), exchanged.layout
    scale = np.exp(sums.shift)[:, None]  # zero where no query is near
    if problem.key_weight is not None:
        scale = scale * problem.key_weight[:, None]
    if "value" in wanted:
        found["value"] = scale * sums.numerator[:, :c]
    if "key" in wanted:
        cross = sums.numerator[:, layout.cross]
        found["key"] = scale * (np.sum(problem.value * cross[:, :c], axis=1, keepdims=True) - cross[:, c:]) / h
    return found


def _exchanged(problem: Problem, answer: Array, degree: bool) -> Problem:
    """Return the problem with keys as queries, queries as keys, and `answer` as the values."""
    own = None
    if problem.self_index is not None:
        own = np.full(len(problem.key), -1)
        (asking,) = np.nonzero(problem.self_index >= 0)
        own[problem.self_index[asking]] = asking
    return replace(
        problem,
        query=problem.key,
        key=problem.query,
        value=answer,
        value_center=np.zeros(answer.shape[1]),
        key_weight=None,
        weight_unit=1.0,
        self_index=own,
        tol=EPSILON,
        dtype=FLOAT64,
        degree=int(degree),
    )


def pullback(
    problem: Problem,
    state: PoolState,
    cotangent: Array,
    wanted: frozenset[str],
    n_jobs: int = 1,
    progress: Progress | None = None,
) -> Gradients:
    """Compute the gradients of pooling in one column, by Taylor series if possible, else pair by pair in windows."""
    from kernpool.algorithms.brute import brute
    from kernpool.algorithms.sweep import windows

    if not problem.similarity.is_uniform:
        return brute.pullback(problem, state, cotangent, wanted, n_jobs, progress)
    if applies(problem, state, wanted):
        return differentiate_by_series(problem, state, cotangent, wanted, n_jobs, progress)
    return windows.differentiate_windows(problem, arrange(problem, n_jobs), state, cotangent, wanted, n_jobs, progress)


SWEEP = Algorithm(
    name="sweep",
    summary="one column in linear time",
    reduce=reduce,
    pullback=pullback,
    seconds=sweep_seconds,
    attn_mask=False,
    logit_bias=False,
    own_kernels=False,
    columns=(1, 1),
    degree=2,
    degree_of_form={Exponential: 0},
    windows=(Polynomial, Gaussian),
)
