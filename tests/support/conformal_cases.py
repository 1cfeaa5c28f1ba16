"""Settings of prediction intervals, and the reference of each case."""

from dataclasses import replace

import numpy as np

from kernpool.conformal import Calibration, ConformalProblem, as_fraction
from kernpool.core import SINGLE_ROWS, Exclusion
from kernpool.smoother import EvaluationPoints
from tests.support.inference_cases import pair


def own_setting(smoother, places, level=0.9, *, group=None, which=None, **options):
    """Training rows calibrate."""
    kept = np.flatnonzero(smoother.weight > 0) if which is None else which
    rows = Calibration(smoother.training.rows(kept), smoother.value[kept], smoother.weight[kept], which=kept)
    if group is not None:
        smoother, rows = (
            replace(smoother, exclusion=Exclusion(group)),
            replace(rows, units=Exclusion(group[kept]).units),
        )
    return ConformalProblem(smoother, places, as_fraction(level), rows, **options)


def other_setting(smoother, places, calibration_places, value, level=0.9, *, group=None):
    """Other rows calibrate."""
    prediction = smoother.predict(smoother.problem(calibration_places))
    rows = Calibration(
        calibration_places,
        value,
        np.ones(len(value)),
        prediction,
        units=SINGLE_ROWS if group is None else Exclusion(group).units,
    )
    return ConformalProblem(smoother, places, as_fraction(level), rows)


def case(kernel, situation, degree, n=30, m=4):
    """A smoother, its reference, places, and their levels, none of them unseen: the reference has no row for these."""
    smoother, dense, places = pair(kernel, situation, degree, n, m)
    code = None if places.code is None else np.maximum(places.code, 0)
    return smoother, dense, EvaluationPoints(places.query, code), code
