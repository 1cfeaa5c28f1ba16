"""Estimators, in a process that has its compiler: predictions, leave-one-out, classes."""

import warnings

import numpy as np

from kernpool import LocalLinearRegressor, NadarayaWatsonClassifier, NadarayaWatsonRegressor, Problem, choose, pool
from tests.fuzz.report import LEAST
from tests.support.promises import rounding

NAMES = ("kernel", "composition", "bandwidth")
MOST_ROWS = 3000  # that are all left out in turn


def model(case, report):
    """Fit at the case's bandwidth, and hold everything that is predicted against brute force."""
    weight = case.options.get("key_weight")
    if weight is not None and case.index % 2:
        weight = np.ceil(weight)  # frequencies
    problem = case.problem(key_weight=weight)
    options = {name: case.options[name] for name in NAMES} | {"empty": "zero", "n_jobs": 2}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of weights whose mean is unusual
        regressor = NadarayaWatsonRegressor(**options).fit(case.key, case.value, sample_weight=weight)
        plane = LocalLinearRegressor(**options).fit(case.key, case.value, sample_weight=weight)
        label = np.round(case.value[:, 0]).astype(int) % 3
        classifier = NadarayaWatsonClassifier(**options).fit(case.key, label, sample_weight=weight)
    base = choose(problem, "brute").reduce(problem)
    for turn in range(2):
        hold(problem, base, regressor.predict(case.query), f"predict, call {turn + 1}", report)
    few = problem.block(slice(0, 64))
    expected = pool(few.query, case.key, case.value, degree=1, algorithm=plane.algorithm, key_weight=weight, **options)
    report.saw("predict, planes", len(expected))
    np.testing.assert_allclose(
        plane.predict(case.query[:64]).reshape(expected.shape), expected, rtol=1e-9, atol=1e-9 * np.ptp(case.value)
    )
    shares = Problem.from_arrays(
        case.query, case.key, (label[:, None] == classifier.classes_).astype(float), key_weight=weight,
        **{name: case.options[name] for name in NAMES},
    )  # fmt: skip
    state = choose(shares, "brute").reduce(shares)
    occupied = state.denominator > 0
    found = np.where(occupied[:, None], classifier.predict_proba(case.query), 0.0)
    hold(shares, state, found, "predict_proba", report)
    if len(case.key) <= MOST_ROWS:
        deleted = Problem.from_arrays(
            case.key, case.key, case.value, key_weight=weight, exclude_self=True,
            **{name: case.options[name] for name in NAMES},
        )  # fmt: skip
        state = choose(deleted, "brute").reduce(deleted)
        found = regressor.leave_one_out().prediction.reshape(case.value.shape)
        hold(deleted, state, np.where(state.denominator[:, None] > 0, found, 0.0), "leave-one-out", report)


def hold(problem, state, found, who, report):
    """Hold predictions against the state of brute force."""
    target = state.finalize("zero")
    report.saw(who, len(target))
    off = np.abs(found.reshape(target.shape) - target)
    allowed = 2.0 * rounding(problem, state) + LEAST
    if (bad := np.flatnonzero(np.any(~(off <= allowed), axis=1))).size:
        report.wrong(who, bad, f"{bad.size} of {len(off)} queries are off by up to {np.nanmax(off[bad]):.3g}")
