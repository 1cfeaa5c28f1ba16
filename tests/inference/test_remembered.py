"""Sums that are known are not made again, and are those that would be made."""

from dataclasses import replace

import numpy as np
import pytest

from kernpool import LocalLinearRegressor
from kernpool.inference.corrected import estimate
from kernpool.inference.quadratic_forms import squared_norm
from kernpool.inference.remembered import RememberedSums
from kernpool.inference.smoother import Smoother
from tests.support.inference_cases import pair

# Samples of tests are not about the bias that these bandwidths leave.
pytestmark = pytest.mark.filterwarnings("ignore:.*the correction for bias is larger than two standard errors")


@pytest.mark.covering(strength=1)
@pytest.mark.parametrize("method", ["robust", "quadratic", "naive"])
@pytest.mark.parametrize("situation", ["weighted line", "product", "levels"])
@pytest.mark.parametrize("kernel", ["gaussian", "epanechnikov", "boxcar", "constant"])
def test_norms_are_those_of_fresh_sums(kernel, situation, method):
    smoother, dense, places = pair(kernel, situation, 1)
    found = estimate(smoother, places, method)
    sums = RememberedSums(smoother.sums, found.known)
    for psi in (None, dense.squared("hc3")[:, 0], None, dense.squared("hc3")[:, 1]):
        fresh = squared_norm(found.terms, smoother.sums, psi)
        np.testing.assert_allclose(squared_norm(found.terms, sums, psi), fresh, rtol=1e-13)


def test_problems_that_differ_in_anything_are_summed():
    smoother, _, places = pair("gaussian", "levels", 1)
    problem = smoother.problem(places)
    made = []
    sums = RememberedSums(lambda one: made.append(one) or smoother.sums(one))
    state = sums(problem)
    assert sums(replace(problem)) is state
    weight = np.linspace(1.0, 2.0, len(problem.key))
    tables = tuple(table**2 for table in problem.factors.tables)
    others = [
        replace(problem, query=problem.query + 1e-9),
        replace(problem, key_weight=weight),
        replace(problem, factors=replace(problem.factors, tables=tables)),
        replace(problem, factors=None),
        problem.with_kernel(problem.similarity.kernel, 1.0 + 1e-12),
        replace(problem, degree=2),
        replace(problem, key=problem.key.copy()),
    ]
    for number, other in enumerate(others):
        sums(other)
        assert len(made) == 2 + number
    for other in others:
        sums(other)
    assert len(made) == 1 + len(others)


@pytest.mark.parametrize(("kernel", "passes"), [("gaussian", 6), ("epanechnikov", 7)])
def test_how_many_passes_an_interval_takes(kernel, passes, monkeypatch):
    """Of slopes by two columns no more than of the value; one of them is over the training rows."""
    made, sums = [], Smoother.sums
    monkeypatch.setattr(Smoother, "sums", lambda smoother, problem: made.append(problem) or sums(smoother, problem))
    x = np.random.default_rng(0).uniform(size=(60, 2))
    for of in ("fit", "derivative"):
        made.clear()
        model = LocalLinearRegressor(kernel, bandwidth=0.5).fit(x, np.cos(9 * np.arange(60)))
        model.confidence_interval(x[:5], of=of)
        assert len(made) == passes
