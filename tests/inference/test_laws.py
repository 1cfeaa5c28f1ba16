"""Laws of intervals, and what they say where there is little to say."""

import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernpool import EmptyWindowWarning
from kernpool.core import Keys
from kernpool.inference import InferenceWarning, fit_training, interval
from kernpool.inference.variance.residuals import nearest_residuals
from kernpool.pooling import Recipe
from kernpool.smoother import EvaluationPoints, Smoother
from tests.support.inference_cases import bend, pair, smoother_of_bend

NAMES = ("center", "lower", "upper", "standard_error")


def found(x, y, q, w=None, h=0.2, degree=1, recipe=None, **options):
    x, q = np.reshape(x, (len(y), -1)), np.reshape(q, (-1, np.reshape(x, (len(y), -1)).shape[1]))
    h = np.broadcast_to(h, (x.shape[1],))
    smoother = Smoother(Keys.read(x, y, w), Recipe.of(bandwidth=h, degree=degree, **(recipe or {})))
    return interval(smoother, fit_training(smoother), EvaluationPoints(q), **options)


@given(a=st.floats(-10, 10), b=st.floats(0.1, 10), seed=st.integers(0, 99))
def test_units_of_outputs_and_columns(a, b, seed):
    g = np.random.default_rng(seed)
    x, y, q = g.uniform(size=30), g.normal(size=30), np.array([0.2, 0.5, 1.0])
    one, other = found(x, y, q), found(b * x + a, a - b * y, b * q + a, h=0.2 * b)
    np.testing.assert_allclose(other.standard_error, b * one.standard_error, rtol=1e-9)
    np.testing.assert_allclose(other.center, a - b * one.center, rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(other.upper, a - b * one.lower, rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(other.df, one.df, rtol=1e-10)


def test_order_of_rows_and_several_outputs():
    smoother, dense, places = pair("epanechnikov", "weighted line", 1)
    together = interval(smoother, fit_training(smoother), places)
    order = np.random.default_rng(0).permutation(len(dense.y))
    for column in range(2):
        alone = found(
            dense.x[order],
            dense.y[order, column],
            places.query,
            dense.w[order],
            dense.h,
            recipe={"kernel": "epanechnikov"},
        )
        for name in NAMES:
            np.testing.assert_allclose(getattr(alone, name)[:, 0], getattr(together, name)[:, column], rtol=1e-9)


@pytest.mark.parametrize("method", ["robust", "naive"])
def test_the_bits_do_not_depend_on_the_number_of_threads(method):
    results = []
    for n_jobs in (1, 2, 8):
        smoother = smoother_of_bend(n_jobs=n_jobs, algorithm="sweep")
        results.append(
            interval(smoother, fit_training(smoother), EvaluationPoints(np.linspace(0, 1, 300)[:, None]), method=method)
        )
    for name in NAMES:
        assert len({getattr(one, name).tobytes() for one in results}) == 1, name


@pytest.mark.filterwarnings("ignore:.*the correction for bias is larger than two standard errors")
def test_levels_nest_and_slopes_have_intervals():
    x, y = bend(80)
    narrow, wide = (found(x, y, [0.3, 0.6], level=level) for level in (0.5, 0.99))
    assert np.all(wide.lower < narrow.lower)
    assert np.all(narrow.upper < wide.upper)
    assert np.all(found(x, y, [0.3], columns=[0]).width > 0)
    assert found(x, y, [0.3]).critical is None


def test_weights_count_as_rows():
    x, y = np.arange(4.0), np.array([1.0, 2.0, 0.0, 1.0])
    assert np.isfinite(found(x, y, [1.0], [1, 1, 2, 1], h=2.0).width).all()


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
        assert all(np.isnan(getattr(one, name)[1]).all() for name in (*NAMES, "df"))


@pytest.mark.parametrize("kernel", ["gaussian", "laplace"])
def test_far_queries_do_not_underflow(kernel):
    x, y = bend(60)
    far = found(x, y, [1.0, 9.0, 400.0], h=0.1, degree=0, recipe={"kernel": kernel}, method="naive")
    assert np.all(far.width[1:] >= far.width[0] * (1 - 1e-12))  # of Laplace they are equal: it has no memory
    assert np.all(np.isfinite(far.width))


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
    np.testing.assert_allclose(nearest_residuals(smoother)[kept], dense.nearest()[kept] ** 2, rtol=1e-10, atol=1e-14)


def test_nearest_neighbours_of_fractional_weights_and_of_few_rows():
    x, y = np.array([[0.0], [1.0], [3.0]]), np.array([1.0, 2.0, 6.0])
    few = nearest_residuals(Smoother(Keys.read(x, y), Recipe.of(bandwidth=1.0)))
    np.testing.assert_allclose(few.ravel(), 2 / 3 * (y - np.array([4.0, 3.5, 1.5])) ** 2)
    half = nearest_residuals(Smoother(Keys.read(x, y, [0.5, 0.5, 0.5]), Recipe.of(bandwidth=1.0)))
    np.testing.assert_allclose(half.ravel(), 1 / 2 * (y - np.array([4.0, 3.5, 1.5])) ** 2)
