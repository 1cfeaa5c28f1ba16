"""Gradients of Gaussian pooling in one column in linear time, for float32 inputs.

Weights change by their offsets from the query, so the gradient by a query is made of the sums of a local linear fit,

    dL/dq_i = 1/h sum_b g_ib ((sum_j w_ij u_ij v_jb) / D_i - yhat_ib (sum_j w_ij u_ij) / D_i)

with ``u_ij = (k_j - q_i) / h``, and those by keys and values are the same sums with keys and queries exchanged: keys
become the queries, with ``g_i / D_i`` and ``g_i . yhat_i / D_i`` as values. All of them are Taylor series of cells.

The differences are of large sums, which the pairs of `windows.py` avoid. In single precision that costs nothing: sums
are in double precision, and their rounding, relative to the spread of all values, is a thousandth of the rounding of
float32 values. Problems in double precision use the pairs.
"""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from kernpool.algorithms.algorithm import Array, Gradients
from kernpool.algorithms.sweep import dispatch as sweep_sums
from kernpool.algorithms.sweep import windows
from kernpool.core import FLOAT64, PoolState, Problem
from kernpool.execution.progress import Progress
from kernpool.kernels.registry import Gaussian

# Weight about a query below which it is computed pair by pair. The truncation error of series is a fraction of all
# weights about a key, and its effect is the larger, the less weight the query has.
LEAST_WEIGHT = 1e-3
# Weight about the average query from which on series are faster: windows hold seven times as many keys (measured: with
# 170 keys pairs took half of the time of series, with 1700 two and a half times as long).
MANY = 100.0
EPSILON = float(np.finfo(np.float64).eps)
WANTED = frozenset({"query", "key", "value"})


def applies(problem: Problem, state: PoolState, wanted: frozenset[str]) -> bool:
    """Tell whether the requested gradients can be computed from series, faster than from pairs."""
    own = problem.self_index
    return (
        isinstance(problem.similarity.kernel.form, Gaussian)
        and problem.dtype == np.float32
        and problem.attn_mask is None
        and not problem.degree
        and wanted <= WANTED
        and (own is None or (problem.key_weight is None and _differ(own[own >= 0])))
        and float(np.mean(_weight_about(state))) >= MANY
    )


def _differ(own: NDArray[np.int64]) -> bool:
    return len(np.unique(own)) == len(own)


def _weight_about(state: PoolState) -> Array:
    with np.errstate(under="ignore"):
        return np.asarray(state.denominator * np.exp(np.minimum(state.shift, 0.0)))


def differentiate_by_series(
    problem: Problem,
    state: PoolState,
    cotangent: Array,
    wanted: frozenset[str],
    n_jobs: int = 1,
    progress: Progress | None = None,
) -> Gradients:
    """Compute the gradients of a problem from series; parameters as in `Algorithm.pullback`."""
    found = {name: np.zeros_like(getattr(problem, name)) for name in wanted}
    light = _weight_about(state) < LEAST_WEIGHT
    clear, others = np.flatnonzero(~light), np.flatnonzero(light & cotangent.any(axis=1))
    parts = []
    if len(clear):
        parts.append((clear, _by_series(problem.block(clear), state.rows(clear), cotangent[clear], wanted, n_jobs)))
    if len(others):
        part = problem.block(others)
        line = sweep_sums.arrange(part, n_jobs)
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
        own, layout = sweep_sums.reduce(asked, n_jobs), asked.layout
        # In the unit of the state, which may be that of other keys too.
        first, cross = own.numerator[:, layout.first], own.numerator[:, layout.cross]
        moved = np.sum(slope * (cross - pooled * first), axis=1, keepdims=True)
        found["query"] = moved * np.exp(own.shift - sums.shift)[:, None] / (denominator * h)
    if wanted == {"query"}:
        return found
    share = slope / (denominator * np.exp(sums.shift)[:, None])
    answer = np.hstack([share, np.sum(share * pooled, axis=1, keepdims=True)])
    exchanged = _exchanged(problem, answer, "key" in wanted)
    sums, layout = sweep_sums.reduce(exchanged, n_jobs), exchanged.layout
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
    """Return the problem with the roles of keys and queries exchanged."""
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
