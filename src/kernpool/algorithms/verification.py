"""Verification of results: weighted means within the range of values, samples against brute force.

A weighted mean with non-negative weights lies between the least and the greatest of its values, and a denominator is
finite and positive, or zero where the window is empty. A result that violates this is computed again by the reference
implementation. Algorithms that leave keys out also compute a few queries of a large call by brute force; if the two
disagree, the whole call is computed by brute force, with a warning.

Neither happens unless a loop has a defect. `FAULTS` counts both, and is zero after every test.
"""

import logging
import threading

import numpy as np

from kernpool._arrays import Array, Flags, Index
from kernpool.algorithms.brute import brute
from kernpool.core import PoolState, Problem, column_range
from kernpool.execution import warn_caller

Rows = Index

LOG = logging.getLogger("kernpool")

# Rounding that is not a fault, as a fraction of the range of the values: a thousand times the guarantee for many keys,
# because sums of series may lose digits where few keys have positive weight.
SLACK = {np.dtype(np.float64): 1e-9, np.dtype(np.float32): 1e-3}
MOST_DENSELY = 1 << 24  # pairs for the reference implementation, a second; beyond, the staged tiles
FEWEST_COMPILED = 1 << 14  # queries from which on a compiled loop is faster than NumPy
SAMPLE_VALUES = 4096
# Queries from which on a call is verified by brute force, and how many are verified: n keys each, which takes less than
# a hundredth of the time that the tree takes to sort n keys.
FEWEST_QUERIES, SAMPLE_QUERIES = 4096, 4
# Pairs of the look up to which it is NumPy's, some tenths of a millisecond: compiling the tiles for it alone was a
# third of a first call.
MOST_AT_FIRST = 1 << 16


class Faults:
    """Counts of wrong results that were corrected in this process, by the name of the algorithm."""

    def __init__(self) -> None:
        self._lock, self._counts = threading.Lock(), dict[str, int]()

    def add(self, algorithm: str, queries: int) -> None:
        """Add a number of queries with wrong results to the count of an algorithm."""
        with self._lock:
            self._counts[algorithm] = self._counts.get(algorithm, 0) + queries

    def counts(self) -> dict[str, int]:
        """Return a copy of the counts of wrong results by algorithm; empty if there were none."""
        with self._lock:
            return dict(self._counts)

    def clear(self) -> None:
        """Reset the counts of wrong results of all algorithms."""
        with self._lock:
            self._counts.clear()


FAULTS = Faults()


def corrected(problem: Problem, state: PoolState, algorithm: str) -> tuple[PoolState, int]:
    """Check kernel sums for impossible results, and compute those again by brute force."""
    # Windows may be empty under a compact kernel or a mask, or where a query's own key is the only one.
    weight, masked = problem.key_weight, problem.attn_mask is not None or problem.logit_bias is not None
    may_be_empty = masked or problem.similarity.kernel.is_compact
    if problem.self_index is not None and not may_be_empty:
        may_be_empty = (len(problem.key) if weight is None else np.count_nonzero(weight)) == 1
    rows = np.arange(len(state.denominator))
    # Means lie within the range of a sample, as a rule; only where some do not, all values are looked at.
    for step in (1 + len(problem.value) // SAMPLE_VALUES, 1):
        low, high = column_range(_taking_part(problem, step))
        margin = (SLACK[problem.dtype] + problem.tol) * (high - low)
        low, high = low - margin, high + margin
        if len(rows) >= FEWEST_COMPILED:
            # This loads Numba, as algorithms have by now.
            from kernpool.algorithms.loops.kernel_weights import count_impossible

            if not count_impossible(state.denominator, state.numerator, low, high):
                return state, 0
        total, sums = state.denominator[rows], state.numerator[rows, : low.size]
        with np.errstate(all="ignore"):
            mean = sums / total[:, None]
            possible = (total > 0.0) & (total < np.inf) & np.all((low <= mean) & (mean <= high), axis=1)
        if may_be_empty:
            possible |= (total == 0.0) & np.all(sums == 0.0, axis=1)
        rows = rows[~possible]
        if not rows.size:
            return state, 0
    again = brute.reduce_densely if len(rows) * len(problem.key) <= MOST_DENSELY else brute.reduce_staged
    exact = again(problem.block(rows))
    wrong = ~_agree(problem, state.rows(rows), exact)
    state.put(rows, exact)
    faults = int(wrong.sum())
    if faults:
        FAULTS.add(algorithm, faults)
        LOG.debug("%s: %d of %d answers were impossible and were computed again", algorithm, faults, len(state.shift))
    return state, faults


def compared(problem: Problem, state: PoolState, algorithm: str, n_jobs: int) -> PoolState:
    """Verify a few queries of a large call by brute force; if they disagree, compute all queries again."""
    # The selection depends on the number of queries alone, so that results do not depend on threads.
    m = len(problem.query)
    if m < FEWEST_QUERIES:
        return state
    rows = (np.arange(SAMPLE_QUERIES) * m + m // 2) // SAMPLE_QUERIES
    again = brute.reduce_densely if SAMPLE_QUERIES * len(problem.key) <= MOST_AT_FIRST else brute.reduce_staged
    agree = _agree(problem, state.rows(rows), again(problem.block(rows)))
    if agree.all():
        return state
    FAULTS.add(algorithm, m)
    warn_caller(
        f"algorithm {algorithm!r} disagreed with brute force on {SAMPLE_QUERIES - int(agree.sum())} of "
        f"{SAMPLE_QUERIES} queries that were computed both ways, so all {m} were computed by brute force. This is a "
        "defect of kernpool; please report it with the data, and use algorithm='brute' until it is fixed",
        RuntimeWarning,
    )
    return brute.reduce(problem, n_jobs)


def _agree(problem: Problem, found: PoolState, exact: PoolState) -> Flags:
    """Return for each query whether two results agree in pooled values and weight sums, up to rounding and `tol`."""
    c, spread = problem.value.shape[1], np.ptp(_taking_part(problem), axis=0)
    with np.errstate(all="ignore"):
        mine, right = (state.numerator[:, :c] / state.denominator[:, None] for state in (found, exact))
        off = np.abs(mine - right)
        # Logits far from all keys round by their size; so does the log of a denominator, a little more coarsely.
        share = SLACK[problem.dtype] + problem.tol + 1e-14 * np.abs(exact.log_denominator)
        if problem.similarity.kernel.is_compact:  # next to the edge weights are rounding, as the promise says
            share += 1e-3 * SLACK[np.dtype(np.float64)] * problem.total_weight / exact.denominator
        allowed = share[:, None] * spread + 1e-300
        logs_agree = np.abs(found.log_denominator - exact.log_denominator) <= 1e-6 + 4.0 * share
    empty = exact.denominator == 0
    same: Flags = np.where(empty, found.denominator == 0, np.all(off <= allowed, axis=1) & logs_agree)
    return same


def _taking_part(problem: Problem, step: int = 1) -> Array:
    """Return the values of every `step`-th key, without those of zero weight; at least one row."""
    value, weight = problem.value[::step], problem.key_weight
    if weight is None or (kept := weight[::step] > 0).all():
        return np.ascontiguousarray(value)
    return value[kept] if kept.any() else problem.value[weight > 0][:1]
