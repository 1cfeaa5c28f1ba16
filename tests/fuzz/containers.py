"""Keys in chunks, and keys with levels."""

from dataclasses import replace
from itertools import pairwise

import numpy as np

from kernpool import PoolState, choose, pool
from kernpool.core import Factors
from kernpool.pooling import rounding_bound
from tests.fuzz import truth
from tests.fuzz.report import LEAST, able


def chunks(case, report):
    """Pool over random chunks of the keys, as one container and as states that merge."""
    problem, g = case.problem(), case.generator()
    base = choose(problem, "brute").reduce(problem)
    edges = np.unique([0, *g.integers(0, len(case.key) + 1, g.integers(0, 5)), len(case.key)])
    weight = case.options.get("key_weight")
    cut = [slice(*pair) for pair in pairwise(edges)]
    parts = [(case.key[s], case.value[s], *([] if weight is None else [weight[s]])) for s in cut]
    names = {"kernel", "bandwidth", "tol"}
    options = {name: case.options[name] for name in names} | {"degree": problem.degree, "empty": "zero"}
    expected = pool(case.query, case.key, case.value, key_weight=weight, algorithm="brute", **options)
    allowed = _allowed_of_chunks(case, problem, base)
    for name in able(problem):
        found = pool(case.query, parts, algorithm=name, **options)
        report.saw(f"chunks, {name}", len(found))
        off = np.abs(found - expected)
        if (bad := np.flatnonzero(np.any(~(off <= allowed), axis=1))).size:
            report.wrong(f"chunks, {name}", bad, f"{bad.size} of {len(off)} queries are off by {off[bad].max():.3g}")


def _allowed_of_chunks(case, problem, base):
    """How far merged states may be off: as the whole, and for planes as far as keys determine them."""
    spread = np.ptp(problem.value, axis=0)
    allowed = (
        2.0 * rounding_bound(replace(problem, degree=0), _values_of(problem, base))
        + 1e-15 * np.abs(case.value).max(axis=0)
        + LEAST
    )
    allowed += problem.tol * spread
    if problem.degree:
        centered = problem.without_center()
        least = truth.conditioning(choose(centered, "brute").reduce(centered), problem.layout)
        allowed = 10.0 * (allowed + 1e-12 * spread) / np.maximum(least, 1e-30)[:, None] ** 2
        allowed[least < truth.WELL_POSED] = np.inf
    return allowed


def _values_of(problem, state):
    return PoolState(state.shift, state.denominator, state.numerator[:, problem.layout.value])


def levels(case, report):
    """Categorical columns by every algorithm, against dense weights in long double."""
    problem = case.problem().without_center()
    factors = np.ones(problem.shape)
    for a, table in enumerate(case.tables):
        factors *= table[case.codes[0][:, a][:, None], case.codes[1][:, a]]
    slopes = tuple(np.zeros_like(table) for table in case.tables)
    mixed = problem.with_factors(Factors(*case.codes, case.tables, slopes))
    right, log = truth.pooled(problem, np.arange(len(problem.query)), factors)
    spread, scale = np.ptp(problem.value, axis=0), np.abs(problem.value).max(axis=0)
    for name in able(problem):
        state = choose(mixed, name).reduce(mixed)
        report.saw(f"levels, {name}", len(right))
        found = state.finalize("zero")[:, problem.layout.value]
        occupied = np.isfinite(log) & (log > -30.0 if problem.similarity.kernel.is_compact else True)
        if (bad := np.flatnonzero(occupied & (state.denominator == 0))).size:
            report.wrong(f"levels, {name}", bad, "a window is empty that long double has keys in")
        with np.errstate(all="ignore"):
            off = np.abs(found - right.astype(float))
            far = 1e-14 * np.abs(state.log_denominator)
            near_edge = (
                1e-14 * problem.total_weight / state.denominator if problem.similarity.kernel.is_compact else 0.0
            )
            allowed = (2e-12 + far + near_edge)[:, None] * np.maximum(spread, 1e-3 * scale) + LEAST
        occupied &= state.denominator > 0
        if (bad := np.flatnonzero(occupied & np.any(~(off <= allowed), axis=1))).size:
            report.wrong(f"levels, {name}", bad, f"{bad.size} queries are off by {np.nanmax(off[bad]):.3g}")
