"""A floor of effective rows is an ordinary model at each query, with bandwidths times the widening of the query."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import kernpool
from kernpool import Floor, LocalLinearRegressor, NadarayaWatsonClassifier, NadarayaWatsonRegressor
from kernpool.bandwidth import TrainingRows
from kernpool.bandwidth.search import Found
from kernpool.core import NO_CATEGORIES, ExcludedPairs, Exclusion, Problem
from kernpool.estimators.bandwidth import find_floor
from kernpool.pooling import choose
from kernpool.pooling.weights import weight_tables
from kernpool.pooling.widths import with_widths
from kernpool.smoother.windows import FACTORS

RNG = np.random.default_rng(5)
X = np.column_stack([RNG.gamma(2.0, size=70), RNG.normal(size=70)])
Y = np.sin(2.0 * X[:, 0]) + X[:, 1] + 0.3 * RNG.normal(size=70)
NEW = np.column_stack([RNG.uniform(0.0, 5.0, size=25), RNG.normal(size=25)])
LEVEL = RNG.choice(list("abc"), size=70)
H = [0.25, 0.4]

MODELS = {
    "planes": LocalLinearRegressor(bandwidth=H, ridge=0.01, window=Floor(6)),
    "constants": NadarayaWatsonRegressor(bandwidth=H, window=Floor(6)),
    "compact": LocalLinearRegressor("epanechnikov", bandwidth=[1.0, 1.5], window=Floor(6)),
}


def weights_of(model, query):
    return model.attention_weights(query)


def at_each_width(model, answer, query, rows=X, y=Y):
    """What ordinary models of each width answer, at the queries of this width."""
    widening = model.get_prediction(query).widening
    assert len(np.unique(widening)) >= 2, "the case is of several widths"
    found = None
    for factor in np.unique(widening):
        (some,) = np.nonzero(widening == factor)
        part = query.iloc[some] if hasattr(query, "iloc") else query[some]
        options = {"bandwidth": (factor * model.bandwidth_).tolist(), "window": "fixed"}
        one = np.asarray(answer(type(model)(**model.get_params() | options).fit(rows, y), part))
        found = np.zeros((len(widening), *one.shape[1:])) if found is None else found
        found[some] = one
    return found


def test_window_is_the_narrowest_with_enough_rows():
    model = MODELS["constants"].fit(X, Y)
    widening, ordinary = model.get_prediction(NEW).widening, []
    for factor in FACTORS:
        one = NadarayaWatsonRegressor(bandwidth=[factor * h for h in H]).fit(X, Y)
        share = one.attention_weights(NEW)
        ordinary.append(1.0 / np.sum(share**2, axis=1))
    enough = np.array(ordinary) >= 6
    enough[-1] = True
    np.testing.assert_array_equal(widening, np.array(FACTORS)[enough.argmax(axis=0)])
    assert not enough[-2].all(), "somewhere the widest window is not enough"


@pytest.mark.parametrize("kind", ["planes", "constants"])
def test_standard_errors_are_of_the_weights_of_each_window(kind):
    model = MODELS[kind].fit(X, Y)
    found = model.confidence_interval(NEW, method="naive")
    share = at_each_width(model, weights_of, NEW)
    squared = (Y - model.leave_one_out().prediction[:, 0]) ** 2

    def noise(one, q):
        wide = NadarayaWatsonRegressor(one.kernel, (2.0 * one.bandwidth_).tolist()).fit(X, squared)
        return wide.predict(q)

    error = np.sqrt(at_each_width(model, noise, NEW) * np.sum(share**2, axis=1))
    np.testing.assert_allclose(found.standard_error, error, rtol=1e-9)


def test_bias_is_removed_by_the_same_window_a_root_of_two_wider():
    model = MODELS["planes"].fit(X, Y)
    found = model.confidence_interval(NEW, method="robust")

    def corrected(one, q):
        wider = LocalLinearRegressor(bandwidth=(np.sqrt(2.0) * one.bandwidth_).tolist(), ridge=0.01).fit(X, Y)
        return 2.0 * one.predict(q) - wider.predict(q)

    np.testing.assert_allclose(found.center, at_each_width(model, corrected, NEW), rtol=1e-9)


def test_errors_of_clusters():
    group, wide = np.arange(70) % 9, [2.0 * h for h in H]
    model = LocalLinearRegressor(bandwidth=wide, ridge=0.01, window=Floor(15)).fit(X, Y)
    near = NEW[np.abs(NEW[:, 0] - 1.5) < 1.0]
    found = model.confidence_interval(near, method="naive", groups=group)
    share = at_each_width(model, weights_of, near)
    left = LocalLinearRegressor(bandwidth=wide, ridge=0.01, window=Floor(15)).fit(X, Y, groups=group)
    residual = Y - left.leave_one_out().prediction[:, 0]
    sums = np.stack([np.sum((share * residual)[:, group == g], axis=1) for g in range(9)])
    np.testing.assert_allclose(found.standard_error, np.sqrt(np.sum(sums**2, axis=0)), rtol=1e-9)


def test_attention_of_rows():
    model = MODELS["planes"].fit(X, Y)
    found = kernpool.row_diagnostics(model).attention
    received = np.zeros(70)
    for i in range(70):
        rest = np.arange(70) != i
        one = LocalLinearRegressor(bandwidth=H, ridge=0.01, window=Floor(6)).fit(X[rest], Y[rest])
        factor = one.get_prediction(X[[i]]).widening[0]
        share = kernpool.pooling_weights(X[[i]], X[rest], bandwidth=[factor * h for h in H])[0]
        received[rest] += share
    np.testing.assert_allclose(found, received, rtol=1e-9)


def test_default_floor_and_its_absence():
    found = LocalLinearRegressor(window=Floor(6)).fit(X, Y)
    assert found.loo_error_ == pytest.approx(found.leave_one_out().error, rel=1e-10)
    assert 1.0 < NadarayaWatsonClassifier().fit(X, Y > 0).window_.rows <= 12.0
    for given in (
        LocalLinearRegressor(),
        NadarayaWatsonClassifier(bandwidth=0.5),
        LocalLinearRegressor(bandwidth="loo"),
        LocalLinearRegressor(bandwidth=0.5),
        NadarayaWatsonRegressor(),
    ):
        assert given.fit(X, Y > 0).window_ == "fixed"
        np.testing.assert_array_equal(given.get_prediction(NEW).widening, np.ones(25))
    assert NadarayaWatsonClassifier(window="fixed").fit(X, Y > 0).window_ == "fixed"
    assert found.expected_error() > found.loo_error_


def test_columns_without_spread():
    model = LocalLinearRegressor().fit(pd.DataFrame({"level": pd.Categorical(LEVEL)}), Y)
    assert model.window_ == "fixed"
    constant = NadarayaWatsonRegressor(bandwidth=1.0, window=Floor(5)).fit(np.ones((9, 1)), np.arange(9.0))
    assert constant.predict([[1.0]]) == 4.0


WIDENING = np.array(FACTORS)[RNG.integers(0, len(FACTORS), size=25)]


def problem_of(degree, **options):
    return with_widths(Problem.from_arrays(NEW, X, Y, bandwidth=0.5, degree=degree, **options), WIDENING)


@pytest.mark.parametrize(
    ("algorithm", "degree"),
    [*((name, degree) for name in ("reference", "brute") for degree in (0, 1, 2)), ("kd_tree", 0), ("kd_tree", 1)],
)
@pytest.mark.parametrize("kernel", ["gaussian", "tricube", "laplace"])
def test_every_algorithm_sums_in_windows_of_each_query(kernel, algorithm, degree):
    problem = problem_of(degree, kernel=kernel)
    state = choose(problem, algorithm).reduce(problem)
    weights = weight_tables(lambda _: problem, empty="zero")[0]
    mean = np.divide(state.numerator[:, 0], state.denominator, where=state.denominator > 0, out=np.zeros(25))
    np.testing.assert_allclose(mean, weights @ Y, rtol=1e-11, atol=1e-13)
    for i in range(0, 25, 6):
        one = Problem.from_arrays(NEW[[i]], X, Y, kernel=kernel, bandwidth=0.5 * WIDENING[i], degree=degree)
        alone = choose(one, algorithm).reduce(one)
        np.testing.assert_allclose(state.numerator[i], alone.numerator[0], rtol=1e-12, atol=1e-14)


def test_groups_and_gradients():
    code = (np.arange(70) % 7).astype(np.int64)
    problem = with_widths(Problem.from_arrays(X, X, Y, bandwidth=0.5), np.resize(WIDENING, 70))
    problem = problem.excluding(code, Exclusion(code))
    state = choose(problem).reduce(problem)
    dense = weight_tables(lambda _: problem)[0]
    assert not dense[code[:, None] == code].any()
    np.testing.assert_allclose(state.numerator[:, 0] / state.denominator, dense @ Y, rtol=1e-11)
    assert isinstance(problem.excluded, ExcludedPairs)
    problem = problem_of(0)
    state, step = choose(problem).reduce(problem), 1e-6
    slope = choose(problem).pullback(problem, state, np.ones((25, 1)), ["query"]).query
    for a in range(2):
        moved = [replace(problem, query=NEW + sign * step * np.eye(2)[a]) for sign in (1.0, -1.0)]
        above, below = (choose(one).reduce(one).finalize()[:, 0] for one in moved)
        np.testing.assert_allclose(slope[:, a], (above - below) / (2 * step), rtol=1e-5, atol=1e-7)


def test_held_out_fits_have_windows_of_their_own():
    group = np.arange(70) % 7
    model = NadarayaWatsonRegressor(bandwidth=H, window=Floor(6)).fit(X, Y, groups=group)
    near = NEW[np.abs(NEW[:, 0] - 2.0) < 1.0]
    there, residual = np.empty((7, len(near))), np.empty(70)
    for g in range(7):
        rest = group != g
        one = NadarayaWatsonRegressor(bandwidth=H, window=Floor(6)).fit(X[rest], Y[rest])
        there[g], residual[~rest] = one.predict(near), np.abs(Y[~rest] - one.predict(X[~rest]))
    found = model.prediction_interval(near, level=0.5, method="jackknife+")
    ends, share = there[group] + residual[:, None], np.full(70, 1 / 10)
    for j in range(len(near)):
        order = np.argsort(ends[:, j])
        upper = ends[order[np.searchsorted(np.cumsum(share[order]), 0.5 * 8 - 1e-12)], j]
        assert found.upper[j] == pytest.approx(upper, rel=1e-10)


def test_coverage_is_approximate_where_a_new_row_is_not_counted():
    near = NEW[np.abs(NEW[:, 0] - 2.0) < 1.0]
    for window, words in ((Floor(6), "windows follow the rows in them"), ("fixed", "exchangeable with these")):
        model = NadarayaWatsonRegressor(bandwidth=H, window=window).fit(X, Y)
        assert words in model.prediction_interval(near, level=0.6, method="jackknife+").guarantee


def test_default_floor_is_at_least_one_row():
    model, rows = NadarayaWatsonClassifier("epanechnikov"), TrainingRows.from_arrays(X, Y[:, None])
    found = Found(np.full(2, 1e-4), np.zeros(0))  # all windows are empty
    assert find_floor(model, found, rows, NO_CATEGORIES).window == Floor(1.0)


def test_explanations_of_many_queries_are_of_their_windows():
    """Enough pairs for the compiled search, which takes the queries of each width together."""
    many = np.random.default_rng(1)
    rows, queries = many.normal(size=(3000, 2)), many.uniform(-2.5, 2.5, size=(2000, 2))
    model = NadarayaWatsonRegressor(bandwidth=0.1, window=Floor(12)).fit(rows, rows[:, 0])
    found = model.get_prediction(queries).explain(2)
    some = np.arange(0, 2000, 400)
    share = model.attention_weights(queries[some])
    np.testing.assert_array_equal(found.row[some], np.argsort(-share, axis=1, kind="stable")[:, :2])
    np.testing.assert_allclose(found.weight[some], np.take_along_axis(share, found.row[some], axis=1), rtol=1e-11)
    np.testing.assert_allclose(found.effective_rows[some], 1.0 / np.sum(share**2, axis=1), rtol=1e-10)
