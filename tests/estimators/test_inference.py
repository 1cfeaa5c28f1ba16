"""What regressors say of how sure they are."""

import warnings
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

from kernpool import EmptyWindowWarning, LocalLinearRegressor, NadarayaWatsonClassifier, NadarayaWatsonRegressor
from tests.support.dense_inference import Dense
from tests.support.inference_cases import PLACES, bend
from tests.support.problems import with_algorithm

# Samples of tests are not about the bias that these bandwidths leave.
pytestmark = pytest.mark.filterwarnings("ignore:.*the correction for bias is larger than two standard errors")

BOTH = [NadarayaWatsonRegressor, LocalLinearRegressor]
X, Q = bend()[0][:, None], PLACES[:, None]
Y = bend()[1]


def reference(model, degree):
    ridge = getattr(model, "ridge_", 0.0)
    weight = np.ones(len(model.key_)) if model.key_weight_ is None else model.key_weight_
    value = model.value_.reshape(len(model.value_), -1)
    return Dense(model.key_, value, model.bandwidth_, weight, degree=degree, ridge=ridge)


@pytest.mark.parametrize(("regressor", "degree"), [(NadarayaWatsonRegressor, 0), (LocalLinearRegressor, 1)])
@pytest.mark.parametrize("variance", ["local", "sandwich", "nn"])
def test_shapes_and_numbers_are_those_of_the_reference(regressor, degree, variance):
    weight = np.arange(200) % 3 + 1.0
    two = np.column_stack([Y, np.cos(9 * Y)])
    model = regressor(bandwidth=0.06).fit(X, two, sample_weight=weight)
    dense = reference(model, degree)
    share = dense.shares(Q)
    error = model.get_prediction(Q, variance=variance).standard_error
    np.testing.assert_allclose(error, dense.standard_error(share, Q, variance=variance), rtol=1e-11)
    mean, std = model.predict(Q, return_std=True)
    np.testing.assert_array_equal(mean, model.predict(Q))
    np.testing.assert_allclose(std**2, dense.noise(Q)[0] * (1 + dense.quadratic(share)), rtol=1e-11)
    robust = model.confidence_interval(Q, method="robust", variance=variance)
    np.testing.assert_allclose(robust.center, dense.shares(Q, method="robust") @ two, rtol=1e-10)
    assert robust.lower.shape == robust.upper.shape == robust.standard_error.shape == (7, 2)
    assert robust.df.shape == (7,)
    one = regressor(bandwidth=0.06).fit(X, Y, sample_weight=weight)
    np.testing.assert_allclose(one.get_prediction(Q, variance=variance).standard_error, error[:, 0], rtol=1e-11)
    np.testing.assert_allclose(
        one.confidence_interval(Q, method="robust", variance=variance).upper, robust.upper[:, 0], rtol=1e-10
    )


def test_least_squares_of_statsmodels():
    """The constant kernel of degree 1 is ordinary least squares, with HC0 to HC3 of its coefficients and means."""
    import statsmodels.api as sm

    g = np.random.default_rng(0)
    design = g.normal(size=(40, 2))
    y = 1 + design @ [2.0, -1.0] + design[:, 0] * g.normal(size=40)
    model = LocalLinearRegressor(kernel="constant", bandwidth=1.0).fit(design, y)
    at = g.normal(size=(6, 2))
    for kind in ("hc0", "hc1", "hc2", "hc3"):
        ols = sm.OLS(y, sm.add_constant(design)).fit(cov_type=kind.upper())
        np.testing.assert_allclose(
            model.get_prediction(at, variance=kind).slope_standard_error[0], ols.bse[1:], rtol=1e-11
        )
        mean = sm.add_constant(at, has_constant="add")
        target = np.sqrt(np.einsum("ma,ab,mb->m", mean, ols.cov_params(), mean))
        np.testing.assert_allclose(model.get_prediction(at, variance=kind).standard_error, target, rtol=1e-11)


def test_derivatives_have_shapes_of_derivatives():
    g = np.random.default_rng(1)
    Z, at = g.uniform(size=(60, 2)), g.uniform(size=(4, 2))
    two = np.column_stack([Z.sum(axis=1), Z[:, 0]]) + 0.1 * g.normal(size=(60, 2))
    for regressor in BOTH:
        model = regressor(bandwidth=0.3).fit(Z, two)
        naive = model.confidence_interval(at, quantity="derivative", method="naive")
        np.testing.assert_allclose(naive.center, model.get_prediction(at).slope, rtol=1e-9, atol=1e-10)
        assert naive.upper.shape == model.get_prediction(at).slope_standard_error.shape == (4, 2, 2)
        assert regressor(bandwidth=0.3).fit(Z, two[:, 0]).get_prediction(at).slope_standard_error.shape == (4, 2)
        assert model.confidence_interval(at, quantity="derivative").center.shape == (4, 2, 2)


def test_frames_with_levels_and_levels_that_are_unseen():
    pd = pytest.importorskip("pandas", reason="frames need pandas")
    frame = pd.DataFrame({"x": X[:, 0], "kind": pd.Categorical(np.where(np.arange(200) % 3, "a", "b"))})
    model = LocalLinearRegressor(bandwidth=0.1, smoothing=0.1, unordered=["kind"], unseen="unlike").fit(
        frame, Y + (np.arange(200) % 3 == 0)
    )
    found = model.confidence_interval(frame[:5])
    assert np.all(found.width > 0)
    strange = pd.DataFrame({"x": [0.5], "kind": ["c"]})
    assert np.isfinite(model.confidence_interval(strange).width).all()
    with pytest.raises(ValueError, match="unseen"):
        model.set_params(unseen="raise").confidence_interval(strange)


@pytest.mark.parametrize("regressor", BOTH)
def test_the_rows_are_left_out_once_per_fit(regressor):
    model = regressor(bandwidth=0.1).fit(X, Y)
    assert model.get_prediction(Q).standard_error.shape == (len(Q),)
    first = model.smoother_.training_fit
    model.confidence_interval(Q)
    model.predict(Q, return_std=True)
    model.summary()
    assert model.smoother_.training_fit is first
    model.fit(X, -Y)
    np.testing.assert_allclose(
        model.get_prediction(Q).standard_error, regressor(bandwidth=0.1).fit(X, Y).get_prediction(Q).standard_error
    )


def test_data_in_single_precision_have_intervals_in_double():
    x, y = X.astype(np.float32), Y.astype(np.float32)
    narrow, wide = (
        LocalLinearRegressor(bandwidth=0.06).fit(a, b) for a, b in ((x, y), (x.astype(float), y.astype(float)))
    )
    at = Q.astype(np.float32)
    np.testing.assert_allclose(
        narrow.get_prediction(at).standard_error, wide.get_prediction(at.astype(float)).standard_error, rtol=1e-11
    )


def test_an_algorithm_that_cannot_square_its_kernel_is_not_insisted_on():
    pytest.importorskip("finufft", reason="Fourier transforms need the extra 'nufft'")
    g = np.random.default_rng(0)
    Z = g.uniform(size=(50, 2))
    model = with_algorithm(NadarayaWatsonRegressor(bandwidth=0.3).fit(Z, Z[:, 0] + 0.1 * g.normal(size=50)), "nufft")
    assert np.all(model.confidence_interval(Z[:3]).width > 0)


def test_what_is_not_there_is_not_accepted():
    model = NadarayaWatsonRegressor(bandwidth=0.1).fit(X, Y)
    with pytest.raises(ValueError, match="quantity must be 'fit' or 'derivative', got 'slope'"):
        model.confidence_interval(Q, quantity="slope")
    with pytest.raises(ValueError, match="variance must be one of"):
        model.get_prediction(Q, variance="hc9")
    with pytest.raises(ValueError, match="2 features"):
        model.confidence_interval(np.zeros((3, 2)))
    assert not hasattr(NadarayaWatsonClassifier, "confidence_interval")
    from sklearn.exceptions import NotFittedError

    with pytest.raises(NotFittedError):
        NadarayaWatsonRegressor().get_prediction(Q)


def test_planes_that_are_not_determined_are_told_once():
    from kernpool import RankDeficiencyWarning

    Z = np.column_stack([X[:, 0], 2 * X[:, 0]])
    model = LocalLinearRegressor(bandwidth=0.2, ridge=0.0).fit(Z, Y)
    with pytest.warns(RankDeficiencyWarning):
        first = model.get_prediction(Z[:3]).standard_error
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        np.testing.assert_array_equal(model.get_prediction(Z[:3]).standard_error, first)
    assert np.all(first > 0)


def test_an_empty_window_has_no_standard_error_whatever_the_policy():
    model = NadarayaWatsonRegressor("epanechnikov", bandwidth=0.1, empty="mean").fit(X, Y)
    with pytest.warns(EmptyWindowWarning, match="1 of 1 queries"):
        mean, std = model.predict([[9.0]], return_std=True)
    assert np.isfinite(mean)
    assert np.isnan(std)


@pytest.mark.filterwarnings("ignore::kernpool.SerialCorrelationWarning")  # by chance
@pytest.mark.parametrize("regressor", [NadarayaWatsonRegressor, LocalLinearRegressor])
def test_which_correction_the_curve_has_depends_on_where_the_bandwidth_is_from(regressor):
    """Of a bandwidth that the rows chose the robust one; of others the quadratic one, which covers if it is large."""
    rows = X, Y
    for bandwidth, expected in (("loo", "robust"), (0.1, "quadratic"), ("scott", "quadratic")):
        model = regressor(bandwidth=bandwidth).fit(*rows)
        found, named = model.confidence_interval(Q), model.confidence_interval(Q, method=expected)
        assert found.method == expected
        np.testing.assert_array_equal(found.upper, named.upper)
        assert model.confidence_interval(Q, quantity="derivative").method == "robust"
    moved = regressor(bandwidth="loo").fit(*rows).set_params(bandwidth=0.3)
    assert moved.confidence_interval(Q).method == "robust"


def test_more_than_three_columns_and_levels_alone_have_the_robust_correction(generator):
    Z, y = generator.uniform(size=(80, 4)), generator.normal(size=80)
    assert NadarayaWatsonRegressor(bandwidth=2.0).fit(Z, y).confidence_interval(Z[:2]).method == "robust"
    levels = pd.DataFrame({"kind": pd.Categorical(list("abcd") * 20)})
    model = NadarayaWatsonRegressor(bandwidth=1.0, smoothing=0.2).fit(levels, y)
    assert model.confidence_interval(levels[:4]).method == "robust"


@pytest.mark.parametrize(
    "given", [np.float32(0.9), np.array(0.9), np.array(0.9, np.float32), Fraction(9, 10), Decimal("0.9")]
)
def test_a_level_may_be_a_number_of_any_kind(given, generator):
    """float32 has a number near .9 that is not .9: intervals of ranks would be those of another level."""
    X = generator.normal(size=(79, 1))
    y = X[:, 0] + generator.normal(size=79)
    model = LocalLinearRegressor(bandwidth=0.8).fit(X, y)
    classifier = NadarayaWatsonClassifier(bandwidth=0.8).fit(X, y > 0)
    distribution = model.conditional_distribution(X[:3])
    for ask in (
        lambda level: model.confidence_interval(X[:3], level=level),
        lambda level: model.prediction_interval(X[:3], level=level),
        lambda level: classifier.probability_interval(X[:3], level=level),
        lambda level: distribution.quantile_interval(level=level),
    ):
        found, expected = ask(given), ask(0.9)
        np.testing.assert_array_equal(found.lower, expected.lower)
        np.testing.assert_array_equal(found.upper, expected.upper)
        assert type(found.level) is float
        assert found.level == 0.9
    np.testing.assert_array_equal(
        classifier.predict_set(X[:3], level=given).member, classifier.predict_set(X[:3], level=0.9).member
    )
    np.testing.assert_array_equal(distribution.interval(given), distribution.interval(0.9))
    np.testing.assert_array_equal(distribution.quantile(given), distribution.quantile(0.9))
