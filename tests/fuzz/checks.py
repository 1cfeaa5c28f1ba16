"""What every answer is held against: brute force, and long double on a sample and wherever two disagree."""

import warnings
from dataclasses import dataclass, field, replace

import numpy as np

from kernpool import EmptyWindowWarning, NadarayaWatsonRegressor, RankDeficiencyWarning, choose, pool
from kernpool.algorithms import ALGORITHMS
from kernpool.algorithms.verification import FAULTS
from kernpool.local_linear import solve
from kernpool.mixed import MixedProblem
from tests.fuzz import truth
from tests.support.promises import rounding

SAMPLE, DOUBTFUL = 3, 8  # queries that long double looks at: of all, and of those on which two disagree
SLACK = 1e-300  # subnormal sums have few digits


@dataclass
class Report:
    """What was compared, and what was wrong."""

    answers: int = 0
    doubts: int = 0
    algorithms: dict = field(default_factory=dict)
    faults: list = field(default_factory=list)

    def wrong(self, who, rows, story):
        self.faults.append((who, np.atleast_1d(rows), story))

    def saw(self, who, answers):
        self.answers += answers
        self.algorithms[who] = self.algorithms.get(who, 0) + answers


def check(case, report):
    """Run one case by everything that can do it."""
    FAULTS.clear()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", EmptyWindowWarning)
        warnings.simplefilter("ignore", RankDeficiencyWarning)
        CHECKS[case.kind](case, report)
    for who, count in FAULTS.counts().items():
        report.wrong(who, [], f"{count} answers had to be computed again at run time")


def able(problem):
    """Names of the algorithms that can do a problem; `auto` as well."""
    return [*(name for name, one in ALGORITHMS.items() if one.refusal(problem) is None), "auto"]


def pooled(case, report):
    """Pool by every algorithm."""
    problem = case.problem()
    exact = replace(problem, dtype=np.dtype(np.float64), tol=min(problem.tol, 2.0**-52))
    base = choose(exact, "brute").reduce(exact)
    hold_against_truth(case, exact, base, report)
    for name in able(problem):
        if name == "reference" and problem.shape[0] * problem.shape[1] > 3e6:
            continue
        state = choose(problem, name).reduce(problem, n_jobs=1 + case.index % 2)
        compare(problem, state, base, name, report)


def compare(problem, state, base, who, report, factors=None):
    """Hold a state against that of brute force, query by query."""
    report.saw(who, len(base.denominator))
    if (rows := np.flatnonzero((state.denominator == 0) != (base.denominator == 0))).size:
        report.wrong(who, rows, f"{rows.size} windows are empty for one and not for the other")
    layout, spread = problem.layout, np.ptp(problem.value, axis=0)
    with np.errstate(all="ignore"):
        off = np.abs(state.finalize("zero") - base.finalize("zero"))[:, layout.value]
        logs = np.abs(state.log_denominator - base.log_denominator)
    left_out = problem.tol * spread
    narrow = problem.dtype == np.float32 and not problem.moments
    quick = (1e-6 if narrow else 5e-13) * spread + left_out + SLACK
    fine = np.all(off <= quick, axis=1) & ~(logs > 1e-12 * (1 + np.abs(base.log_denominator)) * (1e6 if narrow else 1) + problem.tol)
    doubtful = np.flatnonzero(~fine & (base.denominator > 0))
    if not doubtful.size:
        return
    report.doubts += doubtful.size
    part = problem.block(doubtful)
    few = type(base)(base.shift[doubtful], base.denominator[doubtful], base.numerator[doubtful])
    allowed = 2.0 * rounding(part, few) + left_out + SLACK
    share = allowed.max(axis=1) / np.maximum(spread.max(), 1e-300) + problem.tol + 1e-14 * np.abs(base.log_denominator[doubtful])
    bad = doubtful[np.any(~(off[doubtful] <= allowed), axis=1) | ~(logs[doubtful] <= 4.0 * share)]
    if bad.size:
        some = bad[:DOUBTFUL]
        right, _ = truth.pooled(problem, some, factors)
        mine, brutes = (one.finalize("zero")[some][:, layout.value] - problem.value_center for one in (state, base))
        report.wrong(
            who,
            bad,
            f"{bad.size} of {len(fine)} queries are off by up to {np.nanmax(off[bad]):.3g}, in the logarithm of the denominator by "
            f"{np.nanmax(logs[bad]):.3g}; query {some[0]}: {mine[0]}, brute force {brutes[0]}, long double "
            f"{right[0].astype(float)}, above the centre {problem.value_center}",
        )


def hold_against_truth(case, problem, base, report, factors=None, fits=None):
    """Hold brute force against long double on a sample of queries, or all answers of another kind."""
    m = len(problem.query)
    rows = np.unique(case.generator().integers(0, m, SAMPLE))
    right, log = truth.pooled(problem, rows, factors)
    found = base.finalize("zero")[rows][:, problem.layout.value] - problem.value_center
    few = type(base)(base.shift[rows], base.denominator[rows], base.numerator[rows])
    allowed = 2.0 * rounding(problem.block(rows), few) + 1e-15 * np.abs(problem.value_center) + SLACK
    occupied = np.isfinite(log) & (few.denominator > 0)
    off = np.abs(found - right.astype(float))
    report.saw("long double", len(rows))
    if (bad := rows[occupied & np.any(~(off <= allowed), axis=1)]).size:
        report.wrong("brute", bad, f"brute force is off by {off[occupied].max():.3g} from long double")
    # where the true sum is rounding itself, which side of the edge decides is nobody's fault
    certain = np.where(np.isfinite(log), log, -np.inf) > -30.0
    if (bad := rows[(few.denominator == 0) & certain]).size:
        report.wrong("brute", bad, "brute force has an empty window where long double has keys")


def linear(case, report):
    """Sums with moments by every algorithm, and the fits where keys determine them."""
    problem = case.problem().without_center()
    base = choose(problem, "brute").reduce(problem)
    compare_moments(problem, base, base, "brute", case, report)
    for name in able(problem):
        if name == "brute" or (name == "reference" and problem.shape[0] * problem.shape[1] > 1e6):
            continue
        state = choose(problem, name).reduce(problem, n_jobs=1 + case.index % 2)
        compare(problem, state, base, name, report)
        compare_moments(problem, state, base, name, case, report)


def compare_moments(problem, state, base, who, case, report, factors=None):
    """Hold sums of offsets against those of brute force, and the fits of a sample against long double."""
    layout, mean = problem.layout, base.finalize("zero")
    upper, lower = np.triu_indices(layout.columns)
    squares = np.zeros((len(mean), layout.columns))
    squares[:, upper[upper == lower]] = mean[:, layout.second][:, upper == lower]
    size, largest = np.sqrt(np.maximum(squares, 0.0)), np.abs(problem.value).max(axis=0)
    scale = np.zeros_like(mean)
    scale[:, layout.value], scale[:, layout.first] = largest, size
    scale[:, layout.second] = size[:, upper] * size[:, lower]
    scale[:, layout.cross] = (size[:, :, None] * largest).reshape(len(mean), -1)
    if who != "brute":
        with np.errstate(all="ignore"):
            off = np.abs(state.finalize("zero") - mean)
        quick = np.all(off <= 2e-12 * scale + SLACK, axis=1)
        doubtful = np.flatnonzero(~quick & (base.denominator > 0))
        if doubtful.size:
            report.doubts += doubtful.size
            few = type(base)(*(part[doubtful] for part in (base.shift, base.denominator, base.numerator)))
            factor = rounding(problem.block(doubtful), few) / np.maximum(np.ptp(problem.value, axis=0), 1e-300)
            allowed = (4.0 * factor.max(axis=1) + 4e-12)[:, None] * scale[doubtful] + SLACK
            if (bad := doubtful[np.any(~(off[doubtful] <= allowed), axis=1)]).size:
                worst = np.nanmax(off[doubtful] / allowed)
                report.wrong(who, bad, f"moments of {bad.size} queries are off by {worst:.3g} times what is allowed")
    rows = np.unique(case.generator().integers(0, len(problem.query), SAMPLE))
    right, least = truth.fitted(problem, rows, factors)
    few = type(base)(*(part[rows] for part in (state.shift, state.denominator, state.numerator)))
    fit = solve(few, layout)
    factor = rounding(problem.block(rows), few).max(axis=1) / max(np.ptp(problem.value), 1e-300)
    posed = (least > truth.WELL_POSED) & (few.denominator > 0)
    with np.errstate(all="ignore"):
        allowed = ((1e-12 + 4.0 * factor) / least**2)[:, None] * largest
    off = np.abs(fit.intercept - right)
    report.saw("long double", len(rows))
    if (bad := rows[posed & np.any(~(off <= allowed), axis=1)]).size:
        report.wrong(who, bad, f"local linear fits are off by {off[posed].max():.3g} from long double")


def chunks(case, report):
    """Pool over random chunks of the keys, as one container and as states that merge."""
    problem, g = case.problem(), case.generator()
    base = choose(problem, "brute").reduce(problem)
    edges = np.unique([0, *g.integers(0, len(case.key) + 1, g.integers(0, 5)), len(case.key)])
    weight = case.options.get("key_weight")
    cut = [slice(*pair) for pair in zip(edges[:-1], edges[1:], strict=True)]
    parts = [(case.key[s], case.value[s], *([] if weight is None else [weight[s]])) for s in cut]
    names = {"kernel", "composition", "bandwidth", "tol"}
    options = {name: case.options[name] for name in names} | {"degree": problem.moments, "empty": "zero"}
    found = pool(case.query, parts, **options)
    expected = pool(case.query, case.key, case.value, key_weight=weight, algorithm="brute", **options)
    report.saw("chunks", len(found))
    off = np.abs(found - expected)
    spread = np.ptp(problem.value, axis=0)
    allowed = 2.0 * rounding(replace(problem, moments=0), _values_of(problem, base)) + 1e-15 * np.abs(case.value).max(axis=0) + SLACK
    if problem.moments:
        centred = problem.without_center()
        rows = np.arange(len(found))[:64]
        _, least = truth.fitted(centred, rows)
        off, allowed = off[rows], ((allowed[rows] + 1e-12 * spread) / np.maximum(least, 1e-30)[:, None] ** 2) * 10.0
        allowed[least < truth.WELL_POSED] = np.inf
    if (bad := np.flatnonzero(np.any(~(off <= allowed), axis=1))).size:
        report.wrong("chunks", bad, f"{bad.size} of {len(off)} queries are off by {off[bad].max():.3g}")


def _values_of(problem, state):
    return type(state)(state.shift, state.denominator, state.numerator[:, problem.layout.value])


def levels(case, report):
    """Categorical columns by every algorithm, against dense weights in long double."""
    problem = case.problem().without_center()
    factors = np.ones(problem.shape)
    for a, table in enumerate(case.tables):
        factors *= table[case.codes[0][:, a][:, None], case.codes[1][:, a]]
    mixed = MixedProblem(problem, *case.codes, case.tables, tuple(np.zeros_like(table) for table in case.tables))
    right, log = truth.pooled(problem, np.arange(len(problem.query)), factors)
    spread, scale = np.ptp(problem.value, axis=0), np.abs(problem.value).max(axis=0)
    for name in able(problem):
        state = mixed.reduce(algorithm=name)
        report.saw(f"levels, {name}", len(right))
        found = state.finalize("zero")[:, problem.layout.value]
        occupied = np.isfinite(log) & (log > -30.0 if problem.similarity.kernel.is_compact else True)
        if (bad := np.flatnonzero(occupied & (state.denominator == 0))).size:
            report.wrong(f"levels, {name}", bad, "a window is empty that long double has keys in")
        with np.errstate(all="ignore"):
            off = np.abs(found - right.astype(float))
            far = 1e-14 * np.abs(state.log_denominator)
            near_edge = 1e-14 * problem.total_weight / state.denominator if problem.similarity.kernel.is_compact else 0.0
            allowed = (2e-12 + far + near_edge)[:, None] * np.maximum(spread, 1e-3 * scale) + SLACK
        occupied &= state.denominator > 0
        if (bad := np.flatnonzero(occupied & np.any(~(off <= allowed), axis=1))).size:
            report.wrong(f"levels, {name}", bad, f"{bad.size} queries are off by {np.nanmax(off[bad]):.3g}")


def model(case, report):
    """An estimator's predictions, twice, in a process that has its compiler."""
    problem = case.problem()
    base = choose(problem, "brute").reduce(problem)
    names = ("kernel", "composition", "bandwidth")
    estimator = NadarayaWatsonRegressor(**{name: case.options[name] for name in names}, empty="zero", n_jobs=2)
    weight = case.options.get("key_weight")
    if weight is not None and weight[weight > 0].mean() > 1 and case.index % 2:
        weight = np.ceil(weight)
        problem = case.problem(key_weight=weight)
        base = choose(problem, "brute").reduce(problem)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of weights whose mean is unusual
        estimator.fit(case.key, case.value, sample_weight=weight)
    target = base.finalize("zero")
    allowed = 2.0 * rounding(problem, base) + SLACK
    for turn in range(2):
        found = estimator.predict(case.query)
        report.saw("model", len(found))
        off = np.abs(found.reshape(target.shape) - target)
        if (bad := np.flatnonzero(np.any(~(off <= allowed), axis=1))).size:
            report.wrong("model", bad, f"call {turn + 1}: {bad.size} queries are off by {off[bad].max():.3g}")


def gradients(case, report):
    from tests.fuzz.gradients import gradients as of_gradients

    of_gradients(case, report)


def layers(case, report):
    from tests.fuzz.layers import layers as of_layers

    of_layers(case, report)


CHECKS = {
    "pool": pooled,
    "linear": linear,
    "gradients": gradients,
    "chunks": chunks,
    "levels": levels,
    "torch": layers,
    "model": model,
}
