"""Estimators, in a process that has its compiler: predictions, leave-one-out, classes."""

import warnings

import numpy as np

from kernpool import LocalLinearRegressor, NadarayaWatsonClassifier, NadarayaWatsonRegressor, Problem, choose
from kernpool.core import solve
from kernpool.pooling import rounding_bound
from kernpool.pooling.rounding_error import rounding_of_weights
from tests.fuzz import truth
from tests.fuzz.report import LEAST

NAMES = ("kernel", "bandwidth")
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
        classifier = NadarayaWatsonClassifier(prior_share=0.0, **options).fit(case.key, label, sample_weight=weight)
    base = choose(problem, "brute").reduce(problem)
    for turn in range(2):
        hold(problem, base, regressor.predict(case.query), f"predict, call {turn + 1}", report)
    hold_planes(case, weight, plane.predict(case.query), report)
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


def hold_planes(case, weight, found, report):
    """Hold local linear predictions against the sums of brute force, where they determine a plane."""
    problem = case.problem(key_weight=weight, degree=1)
    centered = problem.without_center()
    state = choose(centered, "brute").reduce(centered)
    least = truth.conditioning(state, problem.layout)
    target = solve(state, problem.layout).intercept + problem.value_center
    report.saw("predict, planes", len(target))
    off = np.abs(found.reshape(target.shape) - target)
    rounded = 8.0 * rounding_of_weights(problem, state) / np.maximum(least, truth.WELL_POSED) ** 2
    allowed = rounded[:, None] * np.abs(problem.value).max(axis=0) + 1e-15 * np.abs(target) + LEAST
    if (bad := np.flatnonzero((least > truth.WELL_POSED) & np.any(~(off <= allowed), axis=1))).size:
        report.wrong("predict, planes", bad, f"{bad.size} queries are off by up to {np.nanmax(off[bad]):.3g}")


def hold(problem, state, found, who, report):
    """Hold predictions against the state of brute force."""
    target = state.finalize("zero")
    report.saw(who, len(target))
    off = np.abs(found.reshape(target.shape) - target)
    allowed = 2.0 * rounding_bound(problem, state) + LEAST
    if (bad := np.flatnonzero(np.any(~(off <= allowed), axis=1))).size:
        report.wrong(who, bad, f"{bad.size} of {len(off)} queries are off by up to {np.nanmax(off[bad]):.3g}")
