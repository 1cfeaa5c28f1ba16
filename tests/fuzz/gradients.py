"""Gradients by every algorithm, against brute force, and against long double on a sample."""

import numpy as np

from kernpool import choose
from kernpool.pooling.rounding_error import rounding_of_weights as weights_off
from tests.fuzz import truth
from tests.fuzz.report import LEAST, able
from tests.support.problems import EVERYTHING

SAMPLE = 3


def gradients(case, report):
    problem = case.problem().without_center()
    if problem.similarity.kernel.log_slope is None:
        return
    cotangent = case.generator().normal(size=(len(problem.query), problem.value.shape[1]))
    plan = choose(problem, "brute")
    state = plan.reduce(problem)
    if problem.degree:  # slopes of windows that do not determine them are anything
        cotangent[truth.conditioning(state, problem.layout) < truth.WELL_POSED] = 0.0
    base = plan.pullback(problem, state, cotangent, EVERYTHING)
    scale = sizes(problem, state, base, cotangent)
    if not problem.degree:
        hold_against_truth(case, problem, state, base, cotangent, scale, report)
    for name in able(problem):
        other = choose(problem, name)
        if name == "brute" or other._chosen.pullback is None:
            continue
        narrow = problem.dtype == np.float32
        if other.algorithm == "sweep" and (narrow or case.index % 2):  # series give all but this one
            found = other.pullback(problem, other.reduce(problem), cotangent, EVERYTHING - {"log_bandwidth"})
        else:
            found = other.pullback(problem, state, cotangent, EVERYTHING)
        for what in EVERYTHING:
            if (mine := getattr(found, what)) is None:
                continue
            right = getattr(base, what)
            report.saw(f"gradients, {name}", len(right))
            off = np.abs(mine - right)
            if (bad := np.flatnonzero(np.any(~(off <= scale[what]), axis=1))).size:
                row = bad[0]
                report.wrong(
                    name,
                    bad if what in ("query", "log_bandwidth") else [],
                    f"gradients by {what}: {bad.size} rows are off by up to {np.nanmax(off[bad]):.3g}; row {row}: "
                    f"{mine[row]}, brute force {right[row]}, allowed {np.broadcast_to(scale[what], off.shape)[row]}",
                )


def sizes(problem, state, base, cotangent):
    """How far gradients may be off: rounding of the weights, times what a gradient is made of.

    The derivative of a pooled value by a place is a mean of ``(v - y) * slope / h`` over the window. Logits have slopes
    of up to the distance in bandwidths, so weights that are off by a share move it by that share of ``range * reach /
    h``.
    """
    spread = np.ptp(problem.value, axis=0)
    factor = weights_off(problem, state)
    occupied = state.denominator > 0
    log = np.where(occupied, state.log_denominator, 0.0)
    distance = np.sqrt(np.maximum(2.0 * np.log(problem.total_weight + 1.0) - 2.0 * log, 0.0))
    density = problem.total_weight * np.exp(-log) if problem.similarity.kernel.is_compact else 1.0
    reach = np.where(occupied, 10.0 + distance + density, 0.0)
    pull = np.abs(cotangent) @ spread
    if problem.degree:  # a local linear fit weighs keys with signs, by as much as they determine it badly
        factor = factor / np.maximum(truth.conditioning(state, problem.layout), 1e-30) ** 2
        reach = reach**2
    per_row = 50.0 * (factor * reach * pull)[:, None]
    columns = per_row / problem.similarity.bandwidth
    return {
        "query": columns + 1e-12 * np.abs(base.query) + LEAST,
        "log_bandwidth": per_row * reach[:, None] + 1e-12 * np.abs(base.log_bandwidth) + LEAST,
        "key": columns.sum(axis=0) + 1e-10 * np.abs(base.key) + LEAST,
        "value": (50.0 * factor * reach * np.abs(cotangent).max(axis=1)).sum() + 1e-10 * np.abs(base.value) + LEAST,
    }


def hold_against_truth(case, problem, state, base, cotangent, scale, report):
    """Hold the gradients of some queries against long double."""
    rows = np.unique(case.generator().integers(0, len(problem.query), SAMPLE))
    weight, _ = truth.weights(problem, rows)
    with np.errstate(all="ignore"):
        share = weight / weight.sum(axis=1, keepdims=True)
    block = problem.block(rows)
    value, g = problem.value.astype(truth.LONG), cotangent[rows].astype(truth.LONG)
    mean = share @ value
    pull = share * (g @ value.T - np.sum(g * mean, axis=1)[:, None])
    similarity = problem.similarity
    u = [-one for one in truth.offsets(block)]
    slope = similarity.kernel.log_slope
    with np.errstate(all="ignore"):
        if similarity.kernel.composition == "product":
            slopes = [slope(np.abs(one)) * np.sign(one) for one in u]
        else:
            distance = np.sqrt(sum(one * one for one in u))
            slopes = [np.where(distance > 0, slope(distance) / distance, 0.0) * one for one in u]
        terms = [np.where(share > 0, pull * one, 0.0) for one in slopes]
    h = similarity.bandwidth
    right = {
        "query": np.stack([term.sum(axis=1) / h[a] for a, term in enumerate(terms)], axis=1),
        "log_bandwidth": np.stack([-(term * u[a]).sum(axis=1) for a, term in enumerate(terms)], axis=1),
    }
    occupied = (state.denominator[rows] > 0) & np.isfinite(share).all(axis=1)
    report.saw("long double", 2 * len(rows))
    for name, target in right.items():
        off = np.abs(getattr(base, name)[rows] - target.astype(float))
        bad = rows[occupied & np.any(~(off <= scale[name][rows]), axis=1)]
        if bad.size:
            report.wrong(
                "brute", bad, f"gradients by {name} are off by {off[occupied].max():.3g} from long double {target[0]}"
            )
