"""Keys that are read once: the numbers of keys that are read every time, and nothing stale."""

import pickle
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from kernpool import LocalLinearRegressor, NadarayaWatsonRegressor, Problem, choose
from kernpool.algorithms.tree.kd_tree import plant
from kernpool.core import Keys
from tests.support.capabilities import algorithms, fitting_columns
from tests.support.problems import with_algorithm


@pytest.mark.covering
@pytest.mark.parametrize("weighted", [False, True])
@algorithms(kernel=["gaussian", "epanechnikov", "laplace"], degree=[0, 1])
def test_prepared_keys_pool_as_fresh_ones_do(algorithm, kernel, degree, weighted, generator):
    """Query after query, at changing bandwidths and numbers of queries: the bits of what was never prepared."""
    d = fitting_columns(algorithm)
    key, value = generator.normal(size=(700, d)), generator.normal(size=(700, 2))
    weight = generator.integers(0, 3, 700).astype(float) if weighted else None
    keys = Keys.read(key, value, weight)
    for m, h in ((5, 0.8), (40, 0.8), (5, 1.3), (5, 0.8)):
        query = generator.normal(size=(m, d))
        options = {"kernel": kernel, "bandwidth": h, "degree": degree}
        known = Problem.from_arrays(query, keys, **options)
        fresh = replace(Problem.from_arrays(query, key, value, key_weight=weight, **options), prepared=None)
        for problem in (known, known.block(np.array([3, 1])), known.block(slice(1, 4), slice(100, 600))):
            reference = replace(problem, prepared=None)
            found, expected = (choose(each, algorithm).reduce(each) for each in (problem, reference))
            assert found.numerator.tobytes() == expected.numerator.tobytes()
        found, expected = (choose(each, algorithm).reduce(each) for each in (known, fresh))
        for name in ("shift", "denominator", "numerator"):
            assert getattr(found, name).tobytes() == getattr(expected, name).tobytes()


@pytest.mark.parametrize("algorithm", ["brute", "sweep", "kd_tree"])
def test_changed_arrays_are_prepared_anew(algorithm, generator):
    """Whoever replaces keys, values or weights of a problem gets the sums of the new ones."""
    key, value = generator.normal(size=(900, 1)), generator.normal(size=(900, 1))
    problem = Problem.from_arrays(key[:70], Keys.read(key, value, np.ones(900)), bandwidth=0.4)
    choose(problem, algorithm).reduce(problem)
    other = generator.normal(size=(900, 1))
    for changed in (
        replace(problem, key=other),
        replace(problem, value=other),
        replace(problem, key_weight=np.abs(other[:, 0])),
        replace(problem, query=problem.key, key=problem.query, value=problem.value[:70], key_weight=None),
    ):
        found = choose(changed, algorithm).reduce(changed).finalize()
        bare = replace(changed, prepared=None)
        assert_array_equal(found, choose(bare, algorithm).reduce(bare).finalize())


@pytest.mark.parametrize("make", [NadarayaWatsonRegressor, LocalLinearRegressor])
def test_a_model_reads_its_rows_once(make, generator, monkeypatch):
    X, y = generator.normal(size=(3000, 2)), generator.normal(size=3000)
    model = make(bandwidth=0.5).fit(X, y)
    first = model.predict(X[:40])
    read, planted = [], []
    before = Keys.read
    monkeypatch.setattr(Keys, "read", lambda *rows: read.append(rows) or before(*rows))
    monkeypatch.setattr("kernpool.algorithms.tree.blocks.plant", lambda *_: planted.append(0))
    monkeypatch.setattr("kernpool.algorithms.brute.fused._in_units", lambda *_: planted.append(0))
    assert_array_equal(model.predict(X[:40]), first)
    model.set_params(empty="nan")
    model.predict(X[:1])
    assert read == planted == []
    model.fit(X[:500], y[:500])
    monkeypatch.undo()
    expected = make(bandwidth=0.5, empty="nan").fit(X[:500], y[:500]).predict(X[:9])
    assert_array_equal(model.predict(X[:9]), expected)


def test_what_was_prepared_is_not_pickled(generator):
    X, y = generator.normal(size=(5000, 2)), generator.normal(size=5000)
    model = NadarayaWatsonRegressor(bandwidth=0.5).fit(X, y)
    before = len(pickle.dumps(model))
    model.predict(X[:30])
    again = pickle.loads(pickle.dumps(model))
    assert len(pickle.dumps(model)) == before
    assert_array_equal(again.predict(X[:30]), model.predict(X[:30]))


def test_entries_belong_to_the_very_arrays():
    problem, array = Problem.from_arrays([0.0], [0.0], [1.0]), np.zeros(10_000)
    first = problem.prepare("x", (array, np.array([0.5]), None), object)
    assert problem.prepare("x", (array, np.array([0.5]), None), object) is first
    for of in ((array.copy(), np.array([0.5]), None), (array, np.array([0.6]), None), (array, np.array([0.5])), ()):
        assert problem.prepare("x", of, object) is not first
        first = problem.prepare("x", (array, np.array([0.5]), None), object)


@pytest.mark.filterwarnings("ignore::kernpool.EmptyWindowWarning")
@pytest.mark.parametrize("empty", ["nearest", "mean"])
def test_filling_empty_windows_leaves_the_tree_in_place(empty, generator, monkeypatch):
    X, far = generator.normal(size=(3000, 2)), 4.0 * generator.normal(size=(3000, 2))
    model = with_algorithm(NadarayaWatsonRegressor("epanechnikov", 0.1, empty=empty).fit(X, X[:, 0]), "kd_tree")
    model.predict(far)
    bandwidths = []
    monkeypatch.setattr(
        "kernpool.algorithms.tree.blocks.plant",
        lambda problem, *more: bandwidths.append(problem.similarity.bandwidth[0]) or plant(problem, *more),
    )
    model.predict(far)
    assert 0.1 not in bandwidths
