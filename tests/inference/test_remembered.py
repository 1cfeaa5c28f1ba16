"""Sums that are shared are not made again, and are those that would be made; answers do not depend on earlier ones."""

from dataclasses import fields, replace

import numpy as np
import pytest

from kernpool import LocalLinearRegressor, NadarayaWatsonRegressor
from kernpool.core import ExcludedPairs, Problem
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
    sums = SharedSums(smoother.sums, found.known)
    for psi in (None, dense.squared("hc3")[:, 0], None, dense.squared("hc3")[:, 1]):
        fresh = squared_norm(found.terms, smoother.sums, psi)
        np.testing.assert_allclose(squared_norm(found.terms, sums, psi), fresh, rtol=1e-13)


def test_every_field_of_a_problem_is_compared_or_does_not_matter():
    """A field that is new to problems, as groups once were, has to find its place here, or other sums are returned."""
    smoother, _, places = pair("gaussian", "levels", 1)
    problem = replace(smoother.problem(places), value=smoother.keys.value)
    m, n = problem.shape
    changed = {
        "query": problem.query + 1e-9,
        "key": problem.key.copy(),
        "similarity": problem.with_kernel(problem.similarity.kernel, 1.0 + 1e-12).similarity,
        "key_weight": np.linspace(1.0, 2.0, n),
        "weight_unit": 2.0,
        "self_index": np.zeros(m, dtype=np.int64),
        "attn_mask": np.ones((m, n), dtype=bool),
        "logit_bias": np.zeros((m, n)),
        "degree": 2,
        "factors": None,
        "tied": np.zeros(problem.key.shape[1], dtype=np.intp),
        "excluded": ExcludedPairs(np.zeros(m, dtype=np.int64), np.ones(n, dtype=np.int64)),
    }
    # Sums are exact to rounding whatever a model tolerates, and values do not matter to moments.
    assert {field.name for field in fields(Problem)} - {*changed} == {
        "value", "value_center", "tol", "dtype", "prepared"
    }  # fmt: skip
    made, state = [], smoother.sums(problem)
    assert SharedSums(made.append, [(problem, state)])(replace(problem)) is state
    for name, other in changed.items():
        made, state = [], smoother.sums(problem)
        SharedSums(made.append, [(problem, state)])(replace(problem, **{name: other}))
        assert len(made) == 1, name


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
