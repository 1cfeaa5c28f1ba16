"""A criterion of all pairs in blocks: the numbers and the slopes of the engine, which sums in another way."""

import itertools
import tracemalloc

import numpy as np
import pytest

from kernpool import LocalLinearRegressor, NadarayaWatsonRegressor, get_kernel
from kernpool.bandwidth import CRITERIA
from kernpool.bandwidth.search import fast_objectives
from kernpool.bandwidth.search.fast_objectives import AllPairsObjective
from kernpool.core import NO_CATEGORIES, Categories
from kernpool.kernels import get_categorical_kernel
from tests.support.searches import canonical_rows, objective_of

LEVELS = {
    "numbers": (),
    "levels": (("aitchison_aitken", 3), ("li_racine_ordered", np.arange(4.0))),
    "others": (("li_racine", 3), ("wang_van_ryzin", np.array([0.0, 0.5, 2.0, 3.0]))),
}


def make_rows(n=60, d=2, outputs=1, weighted=False, levels="numbers", seed=0):
    """Rows, and what the codes of their levels mean."""
    generator = np.random.default_rng(seed)
    X = generator.normal(size=(n, d))
    y = np.sin(2 * X[:, :1]) + 0.3 * generator.normal(size=(n, outputs))
    weight = generator.integers(1, 4, n).astype(float) if weighted else None
    kinds = LEVELS[levels]
    if not kinds:
        return canonical_rows(X, y, weight), NO_CATEGORIES
    code = np.column_stack([generator.integers(0, c if isinstance(c, int) else len(c), n) for _, c in kinds])
    names, counts = zip(*kinds, strict=True)
    return canonical_rows(X, y, weight, code), Categories(tuple(map(get_categorical_kernel, names)), counts)


def both(rows, categories, criterion="loo", **options):
    """The engine, and the quick way."""
    options = {"categories": categories, "kernel": get_kernel("gaussian")} | options
    return objective_of(rows, criterion, **options), objective_of(rows, criterion, kind=AllPairsObjective, **options)


def check(engine, quick, theta, tolerance=1e-11, slopes=1e-10):
    """Compare everything at one place."""
    exact, found = engine.evaluate(theta), quick.evaluate(theta)
    assert quick.tried[-1].empty_windows == engine.tried[-1].empty_windows
    if not np.isfinite(exact.penalised):
        assert found.penalised == exact.penalised
        return
    assert found.penalised == pytest.approx(exact.penalised, rel=tolerance)
    assert np.sum(found.unpenalised**2) == pytest.approx(np.sum(exact.unpenalised**2), rel=tolerance)
    scale = np.abs(exact.residual).max()
    np.testing.assert_allclose(found.residual, exact.residual, rtol=0, atol=1e2 * tolerance * scale)
    if slopes is not None:
        expected, jacobian = engine.jacobian(exact), quick.jacobian(found)
        largest = np.maximum(np.abs(expected).max(axis=0), 1e-12 * scale)
        np.testing.assert_allclose(jacobian / largest, expected / largest, rtol=0, atol=slopes)


@pytest.mark.covering
@pytest.mark.parametrize("degree", [0, 1])
@pytest.mark.parametrize("criterion", CRITERIA)
def test_numbers_and_slopes_are_those_of_the_engine(criterion, degree):
    for levels, (weighted, outputs) in itertools.product(LEVELS, ((False, 1), (True, 2))):
        rows, categories = make_rows(outputs=outputs, weighted=weighted, levels=levels)
        engine, quick = both(rows, categories, criterion, degree=degree)
        check(engine, quick, np.concatenate([np.log([0.7, 1.5]), 0.3 * categories.largest]))


@pytest.mark.covering
@pytest.mark.parametrize("levels", ["levels", "others"])
@pytest.mark.parametrize("degree", [0, 1])
@pytest.mark.parametrize("criterion", CRITERIA)
def test_smoothings_at_the_ends_of_their_boxes(criterion, degree, levels):
    """Factors of zero have slopes; at the other end those of Wang and van Ryzin nearly vanish, and slopes cancel."""
    rows, categories = make_rows(n=200, weighted=True, levels=levels)
    engine, quick = both(rows, categories, criterion, degree=degree)
    bandwidth = np.log([1.5, 3.0])
    for share in ([0.0, 0.3], [0.3, 0.0], [1e-30, 0.5]):
        check(engine, quick, np.concatenate([bandwidth, share * categories.largest]), slopes=1e-8)
    check(engine, quick, np.concatenate([bandwidth, 0.0 * categories.largest]), 1e-10, slopes=1e-6)
    check(engine, quick, np.concatenate([bandwidth, categories.largest]), slopes=1e-7)


@pytest.mark.parametrize("levels", LEVELS)
@pytest.mark.parametrize("which", [0, 1])
def test_residuals_of_some_rows_are_those_among_all(which, levels):
    rows, categories = make_rows(outputs=2, weighted=True, levels=levels)
    theta, queries = np.append(np.log([0.7, 1.5]), 0.3 * categories.largest), np.arange(3, 50, 7)
    found = []
    for some in (None, queries):
        objective = both(rows, categories, degree=1, queries=some)[which]
        at = objective.evaluate(theta)
        found.append(np.hstack([at.residual, objective.jacobian(at).reshape(len(at.residual), -1)]))
    share = np.sqrt(rows.weight[queries].sum() / rows.total)
    np.testing.assert_allclose(share * found[1], found[0][queries], rtol=0, atol=1e-11)


def test_levels_that_have_nothing_to_do_with_each_other():
    """Of a level that one row alone has: an empty window, and a slope of the factor nevertheless none of the fit."""
    code = np.array([[0], [0], [0], [1], [2], [2]])
    X, y = np.arange(6.0)[:, None], np.array([[1.0], [2.0], [4.0], [8.0], [3.0], [5.0]])
    categories = Categories((get_categorical_kernel("li_racine"),), (3,))
    engine, quick = both(canonical_rows(X, y, None, code), categories)
    theta = np.array([0.0, 0.0])
    quick.evaluate(theta)
    assert quick.best.empty_windows == 1
    check(engine, quick, theta, slopes=1e-10)


@pytest.mark.covering
@pytest.mark.parametrize("degree", [0, 1])
@pytest.mark.parametrize("weighted", [False, True])
def test_bandwidths_from_tiny_to_huge(weighted, degree):
    """Rows are far from all others at first."""
    rows, categories = make_rows(n=80, weighted=weighted, levels="levels")
    engine, quick = both(rows, categories, degree=degree)
    smoothing = 0.4 * categories.largest
    for h in np.geomspace(1e-4, 1e5, 16):
        theta = np.concatenate([np.log([h, 2.0 * h]), smoothing])
        # Below, few keys count in a window, and digits of their planes are lost in either way.
        check(engine, quick, theta, 1e-10 if not degree or h > 0.2 else 1e-3, 1e-8 if h > 0.5 else None)


@pytest.mark.parametrize("degree", [0, 1])
def test_ties_and_rows_far_from_the_rest(degree, generator):
    X = np.round(generator.normal(size=(120, 2)), 1)
    X[:3] += 1e4
    code = generator.integers(0, 3, (120, 1))
    rows = canonical_rows(X, generator.normal(size=(120, 2)), generator.uniform(0.2, 3.0, 120), code)
    engine, quick = both(rows, Categories((get_categorical_kernel("li_racine"),), (3,)), degree=degree)
    for h in (0.5, 3.0, 1e3):
        check(engine, quick, np.array([np.log(h), np.log(h), 0.2]), 1e-9, 1e-7)


def test_tiny_weights(generator):
    X, y = generator.normal(size=(50, 3)), generator.normal(size=(50, 1))
    rows = canonical_rows(X, y, np.full(50, 1e-285))
    check(*both(rows, NO_CATEGORIES, degree=1), np.log([1.0, 2.0, 3.0]))


@pytest.mark.parametrize("columns", [1, 2, 3, 9, 17])
def test_any_number_of_columns(columns):
    """Columns are read in groups, and many are solved for in another way than few."""
    rows, categories = make_rows(n=70, d=columns, outputs=3)
    theta = np.log(np.linspace(2.0, 4.0, columns))
    for degree, criterion in itertools.product((0, 1), ("loo", "gcv")):
        check(*both(rows, categories, criterion, degree=degree), theta)


def test_the_same_bits_for_any_number_of_threads(monkeypatch):
    monkeypatch.setattr(fast_objectives, "NUMBERS_AT_ONCE", 1500)
    rows, categories = make_rows(n=150, outputs=2, levels="levels")
    theta = np.concatenate([np.log([0.8, 1.4]), 0.4 * categories.largest])
    answers = []
    for n_jobs in (1, 3):
        _, quick = both(rows, categories, "aicc", degree=1, n_jobs=n_jobs)
        at = quick.evaluate(theta)
        answers.append(np.concatenate([at.residual.ravel(), quick.jacobian(at).ravel()]))
    np.testing.assert_array_equal(*answers)


@pytest.mark.covering
@pytest.mark.parametrize("make", [NadarayaWatsonRegressor, LocalLinearRegressor])
@pytest.mark.parametrize("criterion", ["loo", "aicc", "gcv"])
def test_a_search_ends_at_a_minimum_of_the_engine(make, criterion, generator):
    """No step along any bandwidth or smoothing lowers the criterion by more than 1e-7 of it."""
    pandas = pytest.importorskip("pandas", reason="reads frames of pandas")
    X, level = generator.normal(size=(320, 2)), generator.integers(0, 5, 320)
    y = np.sin(2 * X[:, 0]) + 0.3 * level + 0.4 * generator.normal(size=320)
    frame = pandas.DataFrame(X, columns=["wave", "noise"])
    frame["kind"] = pandas.Categorical.from_codes(level, list("abcde"))
    found = make(bandwidth=criterion).fit(frame, y).bandwidth_search_
    assert found.way.startswith("all pairs of 320 rows")
    categories = Categories((get_categorical_kernel("aitchison_aitken"),), (5,))
    rows = canonical_rows(X, y[:, None], None, level[:, None])
    engine, _ = both(rows, categories, criterion, degree=int(make is LocalLinearRegressor))
    theta = np.concatenate([np.log(found.bandwidth), found.smoothing])
    here = engine.evaluate(theta).penalised
    assert (np.log(here) if CRITERIA[criterion].in_logs else here) == pytest.approx(found.value, rel=1e-12)
    low, high, _ = engine.box
    for a, step in itertools.product(range(3), (-0.03, -1e-3, 1e-3, 0.03)):
        moved = np.clip(theta + step * np.eye(3)[a] * (high[2] if a == 2 else 1.0), low, high)
        assert engine.evaluate(moved).penalised >= here * (1.0 - 1e-7)


@pytest.mark.slow
def test_search_of_planes_holds_their_moments_a_few_times():
    rng = np.random.default_rng(5)
    n, d = 150, 60
    X = rng.normal(size=(n, d))
    y = X[:, 0] + np.sin(X[:, 1]) + 0.3 * rng.normal(size=n)
    LocalLinearRegressor(bandwidth=1.0).fit(X, y)  # what is loaded once
    tracemalloc.start()
    try:
        LocalLinearRegressor().fit(X, y)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    moments = n * (d + 1) * (d + 2) / 2 * 8
    assert peak < 6 * moments  # 4.1; 67 where every place that was tried kept them
