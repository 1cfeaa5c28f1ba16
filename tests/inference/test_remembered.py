"""Sums that are shared are not made again, and are those that would be made; answers do not depend on earlier ones."""

from dataclasses import replace

import numpy as np
import pytest

from kernpool import LocalLinearRegressor, NadarayaWatsonRegressor
from kernpool.smoother import SharedSums, estimate, squared_norm
from tests.support.inference_cases import pair

# Samples of tests are not about the bias that these bandwidths leave.
pytestmark = pytest.mark.filterwarnings("ignore:.*the correction for bias is larger than two standard errors")


@pytest.mark.covering
@pytest.mark.parametrize("method", ["robust", "quadratic", "naive"])
@pytest.mark.parametrize("situation", ["weighted line", "product", "levels"])
@pytest.mark.parametrize("kernel", ["gaussian", "epanechnikov", "boxcar", "constant"])
def test_norms_are_those_of_fresh_sums(kernel, situation, method):
    smoother, dense, places = pair(kernel, situation, 1)
    found = estimate(smoother, places, method)
    for psi in (None, dense.squared("hc3")[:, 0], None, dense.squared("hc3")[:, 1]):
        fresh = squared_norm(found.terms, smoother.sums, psi)
        np.testing.assert_allclose(squared_norm(found.terms, found.sums, psi), fresh, rtol=1e-13)


def test_what_differs_between_problems_of_the_same_points_and_rows_is_compared():
    """All else is equal: sums are shared by the fits and norms of one smoother, which leave no pairs out."""
    smoother, _, places = pair("gaussian", "levels", 1)
    problem = replace(smoother.problem(places), value=smoother.keys.value)
    tables = tuple(0.5 * table for table in problem.factors.tables)
    changed = {
        "similarity": problem.with_kernel(problem.similarity.kernel, 1.0 + 1e-12).similarity,
        "key_weight": np.linspace(1.0, 2.0, len(problem.key)),
        "weight_unit": 2.0,
        "degree": 2,
        "factors": replace(problem.factors, tables=tables),
    }
    state = smoother.sums(problem)
    assert SharedSums(None, [(problem, state)])(replace(problem)) is state
    for name, other in changed.items():
        different = replace(problem, **{name: other})
        assert SharedSums(smoother.sums, [(problem, state)])(different) is not state, name


KINDS = [
    (LocalLinearRegressor, "gaussian"),
    (LocalLinearRegressor, "epanechnikov"),
    (NadarayaWatsonRegressor, "gaussian"),
]


@pytest.fixture
def rows(generator):
    X = generator.uniform(size=(90, 1))
    return X, np.sin(6 * X[:, 0]) + 0.2 * generator.normal(size=90)


@pytest.mark.parametrize(("regressor", "kernel"), KINDS)
def test_answers_have_the_same_bits_whatever_was_asked_before(regressor, kernel, rows):
    X, y = rows

    def answers(model, order):
        asked = {
            "interval": lambda: model.confidence_interval(X).upper,
            "robust": lambda: model.confidence_interval(X[:9], method="robust").upper,
            "band": lambda: model.confidence_interval(X, simultaneous=True).upper,
            "error": lambda: model.get_prediction(X).standard_error,
            "slopes": lambda: model.get_prediction(X).slope_standard_error,
            "norm": lambda: np.array(model.summary().trace_squared),
        }
        return {name: asked[name]() for name in order}

    order = ["interval", "band", "robust", "error", "slopes", "norm"]
    first = answers(regressor(kernel, 0.15).fit(X, y), order)
    for other in (order[::-1], order[2:] + order[:2], [*order, *order]):
        for name, value in answers(regressor(kernel, 0.15).fit(X, y), other).items():
            np.testing.assert_array_equal(value, first[name], err_msg=name)
