"""Laws of intervals, and what they say where there is little to say."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose

from kernpool import EmptyWindowWarning, LocalLinearRegressor
from kernpool.core import Keys
from kernpool.inference import InferenceWarning, interval
from kernpool.inference.variance.residuals import nearest_residuals
from kernpool.pooling import Recipe
from kernpool.smoother import EvaluationPoints, Smoother
from tests.support.inference_cases import NAMES, bend


def found(x, y, q, w=None, h=0.2, degree=1, recipe=None, **options):
    x, q = np.reshape(x, (len(y), -1)), np.reshape(q, (-1, np.reshape(x, (len(y), -1)).shape[1]))
    h = np.broadcast_to(h, (x.shape[1],))
    smoother = Smoother(Keys.read(x, y, w), Recipe.of(bandwidth=h, degree=degree, **(recipe or {})))
    return interval(smoother, EvaluationPoints(q), **options)


@pytest.mark.filterwarnings("ignore:.*the correction for bias is larger than two standard errors")
def test_levels_nest_and_slopes_have_intervals():
    x, y = bend(80)
    narrow, wide = (found(x, y, [0.3, 0.6], level=level) for level in (0.5, 0.99))
    assert np.all(wide.lower < narrow.lower)
    assert np.all(narrow.upper < wide.upper)
    assert np.all(found(x, y, [0.3], columns=[0]).width > 0)
    assert found(x, y, [0.3]).critical is None


def test_a_single_row_in_the_window_makes_a_wide_interval():
    x, y = np.r_[np.linspace(0, 1, 30), 9.0], np.r_[np.cos(9 * np.arange(30)), 0.5]
    alone = found(x, y, [9.1], h=0.3, degree=0, recipe={"kernel": "epanechnikov"}, method="naive")
    assert alone.df == pytest.approx(1.0)
    assert alone.center == pytest.approx(0.5)
    residual = abs(0.5 - np.r_[y[:30]].mean())
    assert alone.width == pytest.approx(2 * 12.706204736 * residual)


def test_an_empty_window_is_nan_with_a_warning_whatever_the_policy():
    x, y = bend(50)
    for empty in ("mean", "zero", "nan", "raise"):
        with pytest.warns(EmptyWindowWarning, match="1 of 2 queries.*whatever empty= says"):
            one = found(x, y, [0.5, 7.0], recipe={"kernel": "epanechnikov", "empty": empty})
        assert np.isfinite(one.width[0]).all()
        assert all(np.isnan(getattr(one, name)[1]).all() for name in NAMES)


@pytest.mark.parametrize("columns", [1, 2, 3])
def test_a_wide_correction_is_told(columns):
    g = np.random.default_rng(0)
    X = g.uniform(-1, 1, (300, columns))
    y = 5 * np.exp(-8 * np.sum(X**2, axis=1)) + 0.1 * g.normal(size=300)
    at = np.zeros((2, columns))
    at[0], h = 0.9, (0.1, 0.2, 0.25)[columns - 1]  # where the curve is level
    with pytest.warns(
        InferenceWarning, match=r"1 of 2 queries \(the first is query 1\) the correction for bias is lar"
    ):
        found(X, y, at, h=h)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found(X, y + 20.0 * g.normal(size=300), at, h=h)  # the noise is larger
        found(X, y, at, h=h, method="naive")  # nothing is corrected


@pytest.mark.parametrize("columns", [1, 2])
def test_nearest_neighbours_with_ties_on_both_sides(columns):
    """In whole numbers half of the rows have equally far neighbours; the reference compares all pairs."""
    g = np.random.default_rng(1)
    from tests.support.dense_inference import Dense

    x = g.integers(0, 6 if columns == 2 else 25, (60, columns)).astype(float)
    y, w = g.normal(size=(60, 2)), g.integers(0, 3, 60).astype(float)
    smoother = Smoother(Keys.read(x, y, w), Recipe.of(bandwidth=np.array([1.0, 2.0])[:columns]))
    dense = Dense(x, y, np.array([1.0, 2.0])[:columns], w)
    kept = w > 0
    assert_allclose(nearest_residuals(smoother)[kept], dense.nearest()[kept] ** 2, rtol=1e-10, atol=1e-14)


def test_nearest_neighbours_of_fractional_weights_and_of_few_rows():
    x, y = np.array([[0.0], [1.0], [3.0]]), np.array([1.0, 2.0, 6.0])
    few = nearest_residuals(Smoother(Keys.read(x, y), Recipe.of(bandwidth=1.0)))
    assert_allclose(few.ravel(), 2 / 3 * (y - np.array([4.0, 3.5, 1.5])) ** 2)
    half = nearest_residuals(Smoother(Keys.read(x, y, [0.5, 0.5, 0.5]), Recipe.of(bandwidth=1.0)))
    assert_allclose(half.ravel(), 1 / 2 * (y - np.array([4.0, 3.5, 1.5])) ** 2)


@pytest.mark.filterwarnings("ignore:.*the correction for bias is larger than two standard errors")
@pytest.mark.covering
@pytest.mark.parametrize("of", ["fit", "derivative"])
@pytest.mark.parametrize("columns", [1, 2, 3])
@pytest.mark.parametrize("variance", ["local", "sandwich", "nn", "hc0", "hc1", "hc2", "hc3"])
def test_a_quadratic_surface_has_no_bias(columns, variance, of, generator):
    """What a robust interval is for: its center is the surface, and its slope, where there is no noise but a hair."""
    x = generator.uniform(-1, 1, (150, columns))
    curve = generator.normal(size=(columns, columns))
    y = 2.0 + x.sum(axis=1) + np.einsum("na,ab,nb->n", x, curve, x) + 1e-9 * generator.normal(size=150)
    places = 0.5 * x[:6]
    truth = {
        "fit": 2.0 + places.sum(axis=1) + np.einsum("na,ab,nb->n", places, curve, places),
        "derivative": 1.0 + places @ (curve + curve.T),
    }[of]
    model = LocalLinearRegressor(bandwidth=0.7).fit(x, y)
    found = model.confidence_interval(places, method="quadratic", variance=variance, quantity=of)
    plain = model.confidence_interval(places, method="naive", variance=variance, quantity=of)
    assert_allclose(found.center, truth, atol=1e-7)
    assert np.abs(plain.center - truth).max() > 1e-2
    assert np.all(found.standard_error > 0)


def test_more_than_three_columns_are_refused(generator):
    x = generator.normal(size=(60, 4))
    model = LocalLinearRegressor(bandwidth=2.0).fit(x, x[:, 0] + generator.normal(size=60))
    with pytest.raises(ValueError, match=r"'quadratic' is for one to 3 numeric columns, got 4; use method='robust'"):
        model.confidence_interval(x[:2], method="quadratic")


@pytest.mark.filterwarnings("ignore:.*the correction for bias is larger than two standard errors")
@pytest.mark.parametrize(
    ("method", "options"),
    [
        ("confidence_interval", {"method": "robust"}),
        ("confidence_interval", {"groups": np.arange(3000) % 50}),
        ("confidence_interval", {"simultaneous": "multiplier", "n_resamples": 150}),
        ("prediction_interval", {"method": "jackknife+"}),
    ],
)
def test_the_bits_do_not_depend_on_the_number_of_threads(method, options):
    """Of so many rows and places that threads share them, as they do not share the tables of the battery."""
    x, y = bend(3000)
    one, two = (
        getattr(LocalLinearRegressor(bandwidth=0.06, n_jobs=jobs).fit(x[:, None], y), method)(
            np.linspace(0, 1, 300)[:, None], **options
        )
        for jobs in (1, 2)
    )
    for name in ("lower", "upper", "center"):
        np.testing.assert_array_equal(getattr(one, name), getattr(two, name), err_msg=name)
