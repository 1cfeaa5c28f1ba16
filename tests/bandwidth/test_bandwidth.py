"""Bandwidth rules and leave-one-out search."""

import warnings

import numpy as np
import pytest

from kernpool import (
    EmptyWindowWarning,
    LocalLinearRegressor,
    NadarayaWatsonClassifier,
    NadarayaWatsonRegressor,
    Problem,
    get_kernel,
    pool,
    pooling_weights,
)
from kernpool.bandwidth import leave_one_out, rule_of_thumb
from kernpool.core.input_validation import column_spread
from kernpool.datasets import make_sine_linear, make_sine_power
from tests.support.problems import with_products
from tests.support.thinning import slow


def error_at(x, y, h, **options):
    return np.mean((y - pool(x, x, y, bandwidth=h, exclude_self=True, empty="mean", **options)) ** 2)


def criterion_at(x, y, h, **options):
    """The leave-one-out error, times what windows that hold no other row cost."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", EmptyWindowWarning)
        empty = np.isnan(pool(x, x, y, bandwidth=h, exclude_self=True, **options))
    return error_at(x, y, h, **options) * max(1 - empty.mean(), 1 / (len(x) + 1)) ** -2


STEPS = [20, *slow(1)]  # every twentieth place of a grid; all take a second per test


@pytest.mark.covering
@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("kernel", ["gaussian", "epanechnikov", "laplace", "logistic", "tricube"])
@pytest.mark.parametrize("make", [make_sine_linear, make_sine_power])
def test_loo_finds_the_global_minimum(make, kernel, step):
    """No bandwidth on a grid of 2000 does better."""
    x, y, _, _ = make(random_state=5)
    model = NadarayaWatsonRegressor(kernel=kernel).fit(x[:, None], y)
    assert model.loo_error_ == pytest.approx(error_at(x, y, model.bandwidth_[0], kernel=kernel), rel=1e-10)
    grid = np.geomspace(0.003, 50, 2000)[::step]
    assert model.loo_error_ <= min(error_at(x, y, h, kernel=kernel) for h in grid) * (1 + 1e-9)


@pytest.mark.filterwarnings("ignore::kernpool.SerialCorrelationWarning")  # the wave bends within a few rows
def test_two_wells_and_the_deeper_one_wins():
    """A fast wave on a slow one: a local search from a rule of thumb stops in the shallow well."""
    x = np.linspace(0, 10, 400)
    y = np.sin(x) + np.sin(40 * x) + np.random.default_rng(0).normal(0, 0.1, 400)
    model = NadarayaWatsonRegressor().fit(x[:, None], y)
    assert model.bandwidth_[0] < 0.05
    assert rule_of_thumb(x[:, None])[0] > 0.5
    path = model.bandwidth_search_
    assert path.error == path.value == path.values.min()
    assert path.tried.shape == (path.evaluations, 1)


@pytest.mark.parametrize("bandwidth", ["loo", "scott", "silverman"])
@pytest.mark.parametrize("kernel", ["gaussian", "biweight"])
@pytest.mark.filterwarnings("ignore::kernpool.RepeatedRowsWarning")
def test_weighted_and_repeated_rows_are_the_same_problem(bandwidth, kernel, generator):
    X, y = generator.normal(size=(40, 2)), generator.normal(size=40)
    weight = generator.integers(0, 4, 40)
    order = generator.permutation(weight.sum())
    repeated, outputs = np.repeat(X, weight, axis=0)[order], np.repeat(y, weight)[order]
    weighted = NadarayaWatsonRegressor(kernel, bandwidth, empty="mean").fit(X, y, sample_weight=weight)
    plain = NadarayaWatsonRegressor(kernel, bandwidth, empty="mean").fit(repeated, outputs)
    np.testing.assert_allclose(weighted.bandwidth_, plain.bandwidth_, rtol=0 if bandwidth == "loo" else 1e-12)
    np.testing.assert_allclose(weighted.predict(X), plain.predict(X), rtol=1e-10, atol=1e-12)
    if bandwidth == "loo":
        assert weighted.loo_error_ == plain.loo_error_
    np.testing.assert_allclose(weighted.leave_one_out().error, plain.leave_one_out().error, rtol=1e-10)


def test_empty_leave_one_out_windows_get_the_mean_of_the_others_and_are_counted():
    x, y = np.array([[0.0], [0.1], [5.0]]), np.array([1.0, 2.0, 30.0])
    problem = Problem.from_arrays(x, x, y, kernel="boxcar", bandwidth=0.5, exclude_self=True)
    result = leave_one_out(problem)
    np.testing.assert_allclose(result.prediction[:, 0], [2.0, 1.0, 1.5])
    assert result.empty_windows == 1
    weighted = Problem.from_arrays(
        x, x, y, kernel="boxcar", bandwidth=0.5, exclude_self=True, key_weight=[3.0, 1.0, 1.0]
    )
    assert leave_one_out(weighted).prediction[2, 0] == pytest.approx(5 / 4)
    model = NadarayaWatsonRegressor("boxcar", bandwidth="loo").fit(x, y)
    assert model.loo_empty_windows_ == model.leave_one_out().empty_windows


def test_rules_of_thumb():
    """Textbook values for a normal sample of n = 1000: Scott n^(-1/5), Silverman (4/3)^(1/5) n^(-1/5)."""
    x = np.random.default_rng(0).normal(size=(1000, 1))
    spread = column_spread(x)
    assert spread[0] == pytest.approx(1, abs=0.05)
    np.testing.assert_allclose(rule_of_thumb(x, rule="scott") / spread, 1000**-0.2)
    np.testing.assert_allclose(rule_of_thumb(x, rule="silverman") / spread, (4 / 3) ** 0.2 * 1000**-0.2)
    ratio = get_kernel("epanechnikov").canonical_factor / get_kernel("gaussian").canonical_factor
    np.testing.assert_allclose(rule_of_thumb(x, kernel="epanechnikov"), rule_of_thumb(x) * ratio)
    np.testing.assert_array_equal(rule_of_thumb(x, kernel="constant"), rule_of_thumb(x))
    with pytest.raises(ValueError, match="unknown bandwidth rule"):
        rule_of_thumb(x, rule="thumb")


def test_spread_of_odd_columns():
    mostly_zero = np.r_[np.zeros(90), np.arange(10.0)][:, None]
    assert column_spread(mostly_zero)[0] == pytest.approx(mostly_zero.std(ddof=1))  # the IQR is zero
    with pytest.warns(UserWarning, match=r"of bandwidth \[1\] do not vary"):
        np.testing.assert_array_equal(column_spread(np.c_[[0.0, 1.0, 2.0], [5.0, 5.0, 5.0]])[1], 1.0)


def test_a_single_row_and_rows_at_one_place():
    with pytest.warns(UserWarning, match=r"needs more than one row|do not vary"):
        model = NadarayaWatsonRegressor().fit([[1.0]], [7.0])
    assert np.isnan(model.loo_error_)
    np.testing.assert_array_equal(model.predict([[1.0], [99.0]]), [7.0, 7.0])
    with pytest.warns(UserWarning, match="do not vary"):
        model = NadarayaWatsonRegressor().fit([[1.0], [1.0], [1.0]], [1.0, 2.0, 6.0])
    np.testing.assert_allclose(model.predict([[1.0]]), [3.0])


@pytest.mark.covering
@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize(("kernel", "columns"), [("boxcar", 1), ("product boxcar", 2)])
@pytest.mark.parametrize("seed", [0, 1, *slow(2, 3, 4, 5)])
def test_the_step_function_of_the_boxcar_is_searched_step_by_step(seed, kernel, columns, step):
    generator = np.random.default_rng(seed + 20)
    X = generator.uniform(size=(40, columns))
    y = np.sin(20 * X[:, 0]) + 0.3 * generator.normal(size=40)
    model = NadarayaWatsonRegressor(kernel, "loo").fit(X, y)
    best = min(
        criterion_at(X, y, factor * column_spread(X), kernel=kernel) for factor in np.geomspace(1e-3, 10, 1000)[::step]
    )
    assert model.bandwidth_search_.value <= best * (1 + 1e-12)


KERNELS = ["gaussian", "epanechnikov", "triangular", "laplace", "boxcar"]


@pytest.mark.parametrize("degree", [0, 1, 2])
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_a_column_of_infinite_bandwidth_weighs_all_rows_alike(kernel, degree, dtype, generator):
    """Against weighted least squares with the weights of the other column, on polynomials of both."""
    key = generator.uniform(-3, 5, size=(400, 2)).astype(dtype)
    query = generator.uniform(-2, 4, size=(7, 2)).astype(dtype)
    value = (key[:, 0] + np.sin(key[:, 1])).astype(dtype)
    weight = pooling_weights(query[:, 1:], key[:, 1:], kernel=kernel, bandwidth=0.8)
    expected = []
    for at, of in zip(query.astype(float), weight, strict=True):
        a, b = (key.astype(float) - at).T
        design = np.column_stack([np.ones(400), a, b, a * a, a * b, b * b][: (1, 3, 6)[degree]])
        root = np.sqrt(of)
        expected.append(np.linalg.lstsq(design * root[:, None], value * root, rcond=None)[0][0])
    rtol = 1e-9 if dtype == np.float64 else 1e-4
    options = {"degree": degree, "bandwidth": [np.inf, 0.8]}
    for name in with_products([kernel]):
        for algorithm in ("auto", "reference", "brute"):
            found = pool(query, key, value, kernel=name, algorithm=algorithm, **options)
            np.testing.assert_allclose(found, expected, rtol=rtol, atol=rtol)


@pytest.mark.parametrize("unit", [1e-9, 1.0, 1e20])
def test_planes_of_infinite_bandwidth_are_ordinary_least_squares(unit, generator):
    X = unit * generator.normal(size=(60, 2))
    y = 1.0 + X @ [2.0, -3.0] / unit + generator.normal(size=60)
    model = LocalLinearRegressor(bandwidth=np.inf).fit(X, y)
    np.testing.assert_array_equal(model.bandwidth_, [np.inf, np.inf])
    assert np.all(np.isfinite(model.confidence_interval(X[:3]).upper))
    design = np.column_stack([np.ones(60), X / unit])
    coefficient = np.linalg.lstsq(design, y, rcond=None)[0]
    np.testing.assert_allclose(model.predict(X), design @ coefficient, rtol=1e-9)
    np.testing.assert_allclose(model.get_prediction(X[:3]).slope * unit, np.tile(coefficient[1:], (3, 1)), rtol=1e-9)
    np.testing.assert_allclose(
        NadarayaWatsonRegressor("triangular", np.inf).fit(X, y).predict(X[:3]), np.full(3, y.mean()), rtol=1e-12
    )


@pytest.mark.parametrize("bandwidth", ["regularised", "loo", "aicc", "scott"])
@pytest.mark.parametrize("make", [NadarayaWatsonRegressor, LocalLinearRegressor])
def test_a_constant_column_has_an_infinite_bandwidth_and_no_influence(make, bandwidth, generator):
    X = generator.normal(size=(60, 2))
    y = np.sin(2 * X[:, 0]) + X[:, 1] + 0.2 * generator.normal(size=60)
    with pytest.warns(UserWarning, match=r"of bandwidth \[1\] do not vary.*their bandwidth is infinite"):
        model = make(bandwidth=bandwidth).fit(np.insert(X, 1, 7.0, axis=1), y)
    without = make(bandwidth=bandwidth).fit(X, y)
    assert model.bandwidth_[1] == np.inf
    if bandwidth != "scott":  # a rule counts columns
        np.testing.assert_array_equal(model.bandwidth_[[0, 2]], without.bandwidth_)
        assert model.relevance_[1] == 0
        assert np.all(np.isinf(model.bandwidth_search_.tried[:, 1]))


def test_a_table_of_constants_is_not_searched(generator):
    with pytest.warns(UserWarning, match=r"of bandwidth \[0, 1\] do not vary"):
        model = NadarayaWatsonRegressor().fit(np.ones((50, 2)), generator.normal(size=50))
    np.testing.assert_array_equal(model.bandwidth_, [np.inf, np.inf])
    assert model.bandwidth_search_.evaluations == 1
    assert model.bandwidth_search_.reason == "no column varies"


def test_levels_alone_have_an_infinite_bandwidth(generator):
    pandas = pytest.importorskip("pandas", reason="reads frames of pandas")
    level = generator.integers(0, 3, 80)
    frame = pandas.DataFrame({"kind": np.array(["a", "b", "c"])[level]})
    y = level + 0.3 * generator.normal(size=80)
    for model in (NadarayaWatsonRegressor(), LocalLinearRegressor(), NadarayaWatsonClassifier()):
        model.fit(frame, y > 1 if hasattr(model, "predict_proba") else y)
        np.testing.assert_array_equal(model.bandwidth_, [np.inf])
        assert model.relevance_[0] > 0.5
