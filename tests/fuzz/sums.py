"""Pooled values by every algorithm, against brute force, and against long double where two disagree and on a sample."""

from dataclasses import replace

import numpy as np

from kernpool import PoolState, choose
from kernpool.pooling import rounding_bound
from kernpool.pooling.widths import least_neighbors, nearest_widths, with_widths
from tests.fuzz import truth
from tests.fuzz.report import LEAST, able

SAMPLE = 3  # queries that long double looks at
DENSE_PAIRS = 3e6  # that the reference implementation is asked for


def rows_of(state, rows):
    """Return the state of some queries."""
    return PoolState(state.shift[rows], state.denominator[rows], state.numerator[rows])


def windowed(case, problem):
    """Return the problem of some cases with windows that follow the keys."""
    g, n, kernel = case.generator(), len(problem.key), problem.similarity.kernel
    if case.index % 5 == 2 and problem.logit_bias is None:
        least = 1 + least_neighbors(kernel, problem.key.shape[1], problem.degree)
        return with_widths(problem, nearest_widths(problem, float(g.integers(least, least + n))))
    return problem


def pooled(case, report):
    """Pool by every algorithm."""
    problem = windowed(case, case.problem())
    exact = replace(problem, dtype=np.dtype(np.float64), tol=min(problem.tol, 2.0**-52))
    base = choose(exact, "brute").reduce(exact)
    hold_against_truth(case, exact, base, report)
    for name in able(problem):
        if name == "reference" and problem.shape[0] * problem.shape[1] > DENSE_PAIRS:
            continue
        state = choose(problem, name).reduce(problem, n_jobs=1 + case.index % 2)
        compare(problem, state, base, name, report)


def compare(problem, state, base, who, report):
    """Hold a state against that of brute force, query by query."""
    report.saw(who, len(base.denominator))
    if (rows := np.flatnonzero((state.denominator == 0) != (base.denominator == 0))).size:
        report.wrong(who, rows, f"{rows.size} windows are empty for one and not for the other")
    layout, spread = problem.layout, np.ptp(problem.value, axis=0)
    with np.errstate(all="ignore"):
        off = np.abs(state.finalize("zero") - base.finalize("zero"))[:, layout.value]
        logs = np.abs(state.log_denominator - base.log_denominator)
    left_out = problem.tol * spread
    narrow = problem.dtype == np.float32 and not problem.degree
    quick = (1e-6 if narrow else 5e-13) * spread + left_out + LEAST
    quick_logs = (1e-6 if narrow else 1e-12) * (1.0 + np.abs(base.log_denominator)) + problem.tol
    doubtful = np.flatnonzero((base.denominator > 0) & ~(np.all(off <= quick, axis=1) & (logs <= quick_logs)))
    if not doubtful.size:
        return
    report.doubts += doubtful.size
    few, off, logs = rows_of(base, doubtful), off[doubtful], logs[doubtful]
    allowed = 2.0 * rounding_bound(problem.block(doubtful), few) + left_out + LEAST
    share = allowed.max(axis=1) / np.maximum(spread.max(), LEAST) + problem.tol + 1e-14 * np.abs(few.log_denominator)
    bad = np.flatnonzero(np.any(~(off <= allowed), axis=1) | ~(logs <= 4.0 * share))
    if bad.size:
        first = doubtful[bad[:1]]
        right, _ = truth.pooled(problem, first)
        mine, brutes = (one.finalize("zero")[first][:, layout.value] - problem.value_center for one in (state, base))
        report.wrong(
            who,
            doubtful[bad],
            f"{bad.size} queries are off by up to {np.nanmax(off[bad]):.3g}, the logarithms of "
            f"their denominators by {np.nanmax(logs[bad]):.3g}; query {first[0]}: {mine[0]}, brute force {brutes[0]}, "
            f"long double {right[0].astype(float)}, above the center {problem.value_center}",
        )


def hold_against_truth(case, problem, base, report):
    """Hold brute force against long double on a sample of queries."""
    m = len(problem.query)
    rows = np.unique(case.generator().integers(0, m, SAMPLE))
    right, log = truth.pooled(problem, rows)
    found = base.finalize("zero")[rows][:, problem.layout.value] - problem.value_center
    few = rows_of(base, rows)
    allowed = 2.0 * rounding_bound(problem.block(rows), few) + 1e-15 * np.abs(problem.value_center) + LEAST
    occupied = np.isfinite(log) & (few.denominator > 0)
    off = np.abs(found - right.astype(float))
    report.saw("long double", len(rows))
    if (bad := rows[occupied & np.any(~(off <= allowed), axis=1)]).size:
        report.wrong("brute", bad, f"brute force is off by {off[occupied].max():.3g} from long double")
    # where the true sum is rounding itself, which side of the edge decides is nobody's fault
    certain = np.where(np.isfinite(log), log, -np.inf) > -30.0
    if (bad := rows[(few.denominator == 0) & certain]).size:
        report.wrong("brute", bad, "brute force has an empty window where long double has keys")
