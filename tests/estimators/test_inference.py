"""What regressors say of how sure they are."""

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

from kernpool import EmptyWindowWarning, LocalLinearRegressor, NadarayaWatsonClassifier, NadarayaWatsonRegressor
from tests.support.dense_inference import Dense
from tests.support.inference_cases import PLACES, bend

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


def test_data_in_single_precision_have_intervals_in_double():
    x, y = X.astype(np.float32), Y.astype(np.float32)
    narrow, wide = (
        LocalLinearRegressor(bandwidth=0.06).fit(a, b) for a, b in ((x, y), (x.astype(float), y.astype(float)))
    )
    at = Q.astype(np.float32)
    np.testing.assert_allclose(
        narrow.get_prediction(at).standard_error, wide.get_prediction(at.astype(float)).standard_error, rtol=1e-11
    )


def test_what_is_not_there_is_not_accepted():
    model = NadarayaWatsonRegressor(bandwidth=0.1).fit(X, Y)
    with pytest.raises(ValueError, match="quantity must be 'fit' or 'derivative', got 'slope'"):
        model.confidence_interval(Q, quantity="slope")
    with pytest.raises(ValueError, match="variance must be one of"):
        model.get_prediction(Q, variance="hc9")
    with pytest.raises(ValueError, match="2 features"):
        model.confidence_interval(np.zeros((3, 2)))
    assert not hasattr(NadarayaWatsonClassifier, "confidence_interval")


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
def test_a_level_may_be_a_number_of_any_kind(given):
    """float32 has a number near .9 that is not .9: intervals of ranks would be those of another level."""
    model = LocalLinearRegressor(bandwidth=0.8).fit(X, Y)
    at = model.conditional_distribution(Q)
    for ask in (
        lambda level: model.confidence_interval(Q, level=level),
        lambda level: model.prediction_interval(Q, level=level),
        lambda level: at.quantile_interval(level=level),
    ):
        found, expected = ask(given), ask(0.9)
        np.testing.assert_array_equal(found.lower, expected.lower)
        assert type(found.level) is float
        assert found.level == 0.9
