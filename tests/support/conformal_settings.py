"""What a method of prediction intervals is given, made of a fitted model without its public method."""

import numpy as np

from kernpool.conformal import Calibration, ConformalProblem, as_fraction
from kernpool.estimators.fitted_model import coordinates_of, read_query, smoother_of
from kernpool.smoother import EvaluationPoints


def places_of(model, X):
    numeric, code = read_query(model, X)
    return EvaluationPoints(np.asarray(coordinates_of(model).apply(numeric), dtype=np.float64), code)


def setting_of(model, X, level=0.9, calibration=None, seed=0, **options):
    """Return a setting with training rows left out, or with ``calibration=(X, y)``."""
    smoother = smoother_of(model)
    if calibration is None:
        which = np.flatnonzero(smoother.weight > 0)
        code = None if smoother.key_code is None else smoother.key_code[which]
        where = EvaluationPoints(smoother.training.query[which], code)
        left_out = smoother.predict(smoother.left_out_problem())[which]
        rows = Calibration(where, smoother.value[which], left_out, smoother.weight[which], which, **options)
    else:
        where, y = places_of(model, calibration[0]), np.asarray(calibration[1], dtype=np.float64)
        y = y.reshape(len(y), -1)
        rows = Calibration(where, y, smoother.predict(smoother.problem(where)), np.ones(len(y)), **options)
    return ConformalProblem(smoother, places_of(model, X), as_fraction(level), rows, np.random.default_rng(seed))


def smallest_reaching(score, weight, need):
    """Return the smallest and the largest score that rounding lets be the first at which weights reach a sum.

    Infinite where all weights are not enough.
    """
    order = np.argsort(score, kind="stable")
    kept = order[weight[order] > 0]
    sums = np.cumsum(weight[kept].astype(np.longdouble))
    ends = []
    for shift in (1 - 1e-11, 1 + 1e-11):
        place = int(np.searchsorted(sums, need * shift, side="left"))
        ends.append(score[kept][place] if place < len(kept) else np.inf)
    return ends
