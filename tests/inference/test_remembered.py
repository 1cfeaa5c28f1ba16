"""Sums that are known are not made again, and are those that would be made."""

from dataclasses import fields, replace
from functools import partial

import numpy as np
import pytest

from kernpool import LocalLinearRegressor, NadarayaWatsonRegressor
from kernpool.core import Problem
from kernpool.core.groups import Groups
from kernpool.inference.corrected import estimate
from kernpool.inference.quadratic_forms import squared_norm
from kernpool.inference.remembered import MOST_PLACES, KeptSums, RememberedSums
from kernpool.inference.smoother import Smoother
from kernpool.pooling.plan import Plan
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


def test_every_field_of_a_problem_is_compared_or_does_not_matter():
    """A field that is new to problems, as groups once were, has to find its place here, or other sums are returned."""
    smoother, _, places = pair("gaussian", "levels", 1)
    problem = replace(smoother.problem(places), value=smoother.keys.value)
    m, n = problem.shape
    changed = {
        "query": problem.query + 1e-9,
        "key": problem.key.copy(),
        "similarity": replace(problem.similarity, composition="product"),
        "key_weight": np.linspace(1.0, 2.0, n),
        "weight_unit": 2.0,
        "self_index": np.zeros(m, dtype=np.int64),
        "attn_mask": np.ones((m, n), dtype=bool),
        "logit_bias": np.zeros((m, n)),
        "degree": 2,
        "factors": None,
        "groups": Groups.read(np.zeros(m, dtype=np.int64), np.ones(n, dtype=np.int64)),
    }
    # Sums are exact to rounding whatever a model tolerates, values do not matter to moments, and for kept sums they are
    # those of the model.
    assert {field.name for field in fields(Problem)} - {*changed} == {
        "value", "value_center", "tol", "dtype", "prepared"
    }  # fmt: skip
    for name, other in changed.items():
        made, state, one = [], smoother.sums(problem), replace(problem, **{name: other})
        remembered, kept = RememberedSums(made.append, [(problem, state)]), KeptSums(problem.value)
        kept.add(problem, state)
        remembered(one)
        kept.get(one, partial(made.append, one))
        assert len(made) == 2, name


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


@pytest.mark.parametrize("kernel", ["gaussian", "epanechnikov"])
@pytest.mark.parametrize("make", [LocalLinearRegressor, NadarayaWatsonRegressor])
def test_answers_do_not_depend_on_what_was_asked_before(make, kernel):
    generator = np.random.default_rng(0)
    x, weight = generator.uniform(size=(200, 1)), generator.integers(1, 4, 200)
    y = np.sin(6 * x[:, 0]) + generator.normal(size=200)
    q = np.linspace(0.0, 1.0, 21)[:, None]
    asked = [
        lambda model: model.standard_error(x),
        lambda model: model.confidence_interval(q, simultaneous="tube").lower,
        lambda model: model.confidence_interval(q, method="quadratic").lower,
        lambda model: model.confidence_interval(q, of="derivative").lower,
        lambda model: model.confidence_interval(x).upper,
        lambda model: model.confidence_interval(q).upper,
        lambda model: np.array([model.summary().trace_squared]),
    ]
    model = make(kernel, bandwidth=0.1).fit(x, y, sample_weight=weight)
    for ask in asked if kernel == "gaussian" or make is LocalLinearRegressor else [*asked[:3], *asked[4:]]:
        right = ask(make(kernel, bandwidth=0.1).fit(x, y, sample_weight=weight))
        np.testing.assert_allclose(ask(model), right, rtol=1e-10, atol=1e-12)


def test_how_many_sums_a_model_makes(monkeypatch):
    made, reduce = [], Plan.reduce
    monkeypatch.setattr(
        Plan, "reduce", lambda plan, problem, **options: made.append(1) or reduce(plan, problem, **options)
    )
    x = np.random.default_rng(0).uniform(size=(200, 1))
    model = LocalLinearRegressor(bandwidth=0.1).fit(x, np.cos(99 * x[:, 0]))
    q = np.linspace(0.0, 1.0, 21)[:, None]
    for ask, passes in [
        (lambda: model.confidence_interval(q), 6),  # rows left out, two fits, noise, two norms
        (lambda: model.confidence_interval(q, simultaneous="tube"), 6),  # noise, and five along the grid
        (lambda: model.confidence_interval(q, simultaneous="tube"), 1 + 5),
        (lambda: model.standard_error(q), 2),  # of the noise, with its norm
        (lambda: model.standard_error(x), 3),  # these and the norm: leaving rows out has fitted them
        (lambda: model.summary(), 0),
    ]:
        made.clear()
        ask()
        assert len(made) <= passes


def test_sums_of_other_values_or_of_many_places_are_not_kept():
    smoother, _, places = pair("gaussian", "weighted line", 1)
    kept, made = KeptSums(smoother.keys.value), []
    problem = smoother.problem(places)

    def make(one):
        return kept.get(one, lambda: made.append(one) or smoother.sums(one))

    state = make(problem)
    assert make(replace(problem)) is state
    np.testing.assert_array_equal(make(replace(problem, degree=0)).numerator, state.numerator[:, problem.layout.value])
    assert len(made) == 1
    for other in (replace(problem, value=problem.value.copy()), smoother.problem(smoother.training, exclude_self=True)):
        make(other)
        make(other)
    assert len(made) == 5
    many = replace(problem, query=np.resize(problem.query, (MOST_PLACES + 1, 1)))
    for _ in range(2):
        make(many)
    assert len(made) == 7
