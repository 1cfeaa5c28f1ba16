"""The numbers that R 4.2.2 prints for loess (`r_loess.json`): fits, standard errors and statistics.

Its windows count rows whatever their weights. With spans above one they are wider than the farthest row.
"""

import json
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose

import kernpool
from kernpool.pooling.widths import with_widths

PRINTED = json.loads((Path(__file__).parent / "r_loess.json").read_text(encoding="utf-8"))
WAVE, PLANE = ({name: np.array(column) for name, column in PRINTED[table].items()} for table in ("wave", "plane"))
IN_PLANE = np.column_stack([PLANE["x1"], PLANE["x2"]])
WEIGHT = 1 + np.arange(1, 61) % 3.0


def cases(*names):
    found = [case for case in PRINTED["cases"] if case["name"] in names]
    assert found
    names = [" ".join(str(case[key]) for key in case if key != "values") for case in found]
    return pytest.mark.parametrize("case", found, ids=names)


def linear_weights(query, key, case, weight=None):
    """Linear weights of the values in the fit at each query: the pool of a unit matrix."""
    query, key = (np.reshape(points, (len(points), -1)) for points in (query, key))
    n, span = len(key), float(case["span"])
    distance = np.sort(np.linalg.norm(query[:, None] - key, axis=2), axis=1)
    width = distance[:, min(n, int(n * span + 1e-5)) - 1] * np.sqrt(max(1.0, span))
    problem = kernpool.Problem.from_arrays(
        query, key, np.eye(n), kernel="tricube", degree=int(case["degree"]), key_weight=weight
    )
    problem = with_widths(problem, width)
    state = kernpool.choose(problem).reduce(problem.without_center())
    return kernpool.core.solve(state, problem.layout).intercept + problem.value_center


def robust_weights(key, y, case):
    """Bisquare weights after three passes of re-weighting, one and zero near the ends as R has them."""
    weight = np.ones(len(y))
    for _ in range(3 if case.get("family", "symmetric") == "symmetric" else 0):
        residual = np.abs(y - linear_weights(key, key, case, weight) @ y)
        share = residual / (6 * np.median(residual))
        weight = np.where(share <= 0.001, 1.0, np.where(share > 0.999, 0.0, (1 - np.minimum(share, 1) ** 2) ** 2))
    return weight


def agrees_with_estimator(key, y, at, bandwidth, case, expected):
    if case["family"] == "gaussian" and float(case["span"]) <= 1:
        window, degree = kernpool.Nearest(float(case["span"])), int(case["degree"])
        model = kernpool.LocalPolynomialRegressor("tricube", bandwidth, degree=degree, window=window).fit(key, y)
        assert_allclose(model.predict(at), expected, rtol=0, atol=1e-12)


@cases("wave_predict")
def test_fits_errors_and_statistics(case):
    x, y, printed = WAVE["x"], WAVE["y"], np.array(case["values"])
    weight = robust_weights(x, y, case)
    share = linear_weights(PRINTED["wave_at"], x, case, weight)
    assert_allclose(share @ y, printed[:9], rtol=0, atol=1e-11)
    agrees_with_estimator(x, y, PRINTED["wave_at"], 1.0, case, printed[:9])
    if case["family"] == "gaussian":
        matrix = linear_weights(x, x, case)
        left = np.eye(60) - matrix
        squared = left @ left.T
        delta1, delta2 = np.trace(squared), np.sum(squared**2)
        sd = np.sqrt(np.sum((left @ y) ** 2) / delta1)
        statistics = [sd, delta1**2 / delta2, np.sum(matrix**2), np.trace(matrix), delta1, delta2]
        found = [*sd * np.linalg.norm(share, axis=1), *statistics]
        assert_allclose(found, printed[9:], rtol=0, atol=1e-11)


@cases("wave_robust")
def test_robustness_weights(case):
    assert_allclose(robust_weights(WAVE["x"], WAVE["y"], case), case["values"], rtol=0, atol=1e-12)


@cases("plane_predict")
def test_two_columns(case):
    spread = np.ones(2)
    if case["normalize"] == "TRUE":  # by the standard deviation of the middle 80 percent
        spread = np.std(np.sort(IN_PLANE, axis=0)[8:-8], axis=0, ddof=1)
    key, query = IN_PLANE / spread, PRINTED["plane_at"] / spread
    weight = robust_weights(key, PLANE["y"], case)
    found = linear_weights(query, key, case, weight) @ PLANE["y"]
    assert_allclose(found, case["values"], rtol=0, atol=1e-12)
    agrees_with_estimator(IN_PLANE, PLANE["y"], PRINTED["plane_at"], spread, case, case["values"])


@cases("wave_weights")
def test_weights(case):
    matrix, y = linear_weights(WAVE["x"], WAVE["x"], case, WEIGHT), WAVE["y"]
    fitted = matrix @ y
    squares = np.sum(WEIGHT * (y - fitted) ** 2)
    left = np.eye(60) - matrix
    found = [*fitted, np.sqrt(squares / np.sum(left**2)), np.sum(matrix**2)]
    assert_allclose(found, case["values"], rtol=0, atol=1e-11)
