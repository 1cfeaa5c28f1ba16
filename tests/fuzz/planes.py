"""Sums with moments by every algorithm, against brute force; local fits against long double."""

import numpy as np

from kernpool import choose
from kernpool.core import solve
from kernpool.pooling.rounding_error import rounding_of_weights
from tests.fuzz import truth
from tests.fuzz.report import LEAST, able
from tests.fuzz.sums import SAMPLE, compare, rows_of, windowed

DENSE_PAIRS = 1e6  # that the reference implementation is asked for
FAINTEST = 1e-95  # root of the least share of a key that is compared where it alone determines a slope


def linear(case, report):
    """Sums with moments by every algorithm, and the fits where keys determine them."""
    problem = windowed(case, case.problem()).without_center()
    base = choose(problem, "brute").reduce(problem)
    compare_moments(problem, base, base, "brute", case, report)
    for name in able(problem):
        if name == "brute" or (name == "reference" and problem.shape[0] * problem.shape[1] > DENSE_PAIRS):
            continue
        state = choose(problem, name).reduce(problem, n_jobs=1 + case.index % 2)
        compare(problem, state, base, name, report)
        compare_moments(problem, state, base, name, case, report)


def compare_moments(problem, state, base, who, case, report):
    """Hold sums of offsets against those of brute force, and the fits of a sample against long double."""
    layout, mean = problem.layout, base.finalize("zero")
    upper, lower = np.triu_indices(layout.columns)
    squares = np.zeros((len(mean), layout.columns))
    squares[:, upper[upper == lower]] = mean[:, layout.second][:, upper == lower]
    size, largest = np.sqrt(np.maximum(squares, 0.0)), np.abs(problem.value).max(axis=0)
    scale = np.zeros_like(mean)
    size = np.maximum(size, FAINTEST * np.maximum(size.max(axis=1, keepdims=True), 1.0))
    if problem.similarity.kernel.name == "constant":  # about the mean of all keys, which rounds as keys do
        size = np.maximum(size, 1e-3 * np.abs(problem.key).max(axis=0) / problem.similarity.bandwidth)
    scale[:, layout.value], scale[:, layout.first] = largest, size
    scale[:, layout.second] = size[:, upper] * size[:, lower]
    scale[:, layout.cross] = (size[:, :, None] * largest).reshape(len(mean), -1)
    if layout.degree == 2:
        fourth = mean[:, [layout.places(4)[a, a, a, a] for a in range(layout.columns)]]
        size = np.maximum(np.maximum(fourth, 0.0) ** 0.25, size)
        size = np.maximum(size, np.sqrt(FAINTEST) * np.maximum(size.max(axis=1, keepdims=True), 1.0))
        for one, place in [*layout.places(3).items(), *layout.places(4).items()]:
            scale[:, place] = np.prod(size[:, list(one)], axis=1)
        pairs = np.stack([size[:, a] * size[:, b] for a, b in layout.places(2)], axis=1)
        scale[:, layout.cross_second] = (pairs[:, :, None] * largest).reshape(len(mean), -1)
    if who != "brute":
        with np.errstate(all="ignore"):
            off = np.abs(state.finalize("zero") - mean)
        quick = np.all(off <= 2e-12 * scale + LEAST, axis=1)
        doubtful = np.flatnonzero(~quick & (base.denominator > 0))
        if doubtful.size:
            report.doubts += doubtful.size
            few = rows_of(base, doubtful)
            allowed = 16.0 * rounding_of_weights(problem.block(doubtful), few)[:, None] * scale[doubtful] + LEAST
            if (bad := doubtful[np.any(~(off[doubtful] <= allowed), axis=1)]).size:
                worst = np.nanmax(off[doubtful] / allowed)
                report.wrong(who, bad, f"moments of {bad.size} queries are off by {worst:.3g} times what is allowed")
    rows = np.unique(case.generator().integers(0, len(problem.query), SAMPLE))
    right, least = truth.fitted(problem, rows)
    few = rows_of(state, rows)
    fit = solve(few, layout)
    posed = (least > truth.WELL_POSED) & (few.denominator > 0)
    with np.errstate(all="ignore"):
        allowed = (4.0 * rounding_of_weights(problem.block(rows), few) / least**2)[:, None] * largest
    off = np.abs(fit.intercept - right)
    report.saw("long double", len(rows))
    if (bad := rows[posed & np.any(~(off <= allowed), axis=1)]).size:
        report.wrong(
            who, bad, f"local fits of degree {layout.degree} are off by {off[posed].max():.3g} from long double"
        )
