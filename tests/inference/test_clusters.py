"""Rows in clusters: against tables of shares, one cluster after the other, and their laws."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import stdtrit

from kernpool import LocalLinearRegressor, NadarayaWatsonRegressor, RankDeficiencyWarning, kernel_names, make_kernel
from kernpool.core import Exclusion, Keys
from kernpool.inference import InferenceWarning, interval
from kernpool.inference.variance.dependent_rows import errors_of_units
from kernpool.inference.variance.standard_errors import check_variance, errors_of
from kernpool.pooling import Recipe
from kernpool.smoother import EvaluationPoints, Smoother, estimate, squared_norm
from tests.support.inference_cases import NAMES, bend, pair, smoother_of_bend

# Samples of tests are not about the bias that these bandwidths leave.
pytestmark = pytest.mark.filterwarnings("ignore:.*the correction for bias is larger than two standard errors")

SITUATIONS = ["line", "weighted line", "ridge", "product", "levels"]
KERNELS = kernel_names()
CODE = np.arange(70) % 9


def left_out(dense, code):
    """Residuals of fits without the cluster of each row."""
    others = np.where(code[:, None] == code, 0.0, dense.w)
    return dense.y - dense.coefficients(dense.x, dense.code, frequency=others)[:, 0] @ dense.y


def expected(dense, share, residual, code):
    """Standard errors and degrees of freedom, cluster by cluster."""
    kept = [np.flatnonzero((code == g) & (dense.w > 0)) for g in np.unique(code)]
    variance = sum((share[:, rows] @ residual[rows]) ** 2 for rows in kept)
    own = np.stack([np.sum(share[:, rows] ** 2 / dense.w[rows], axis=1) for rows in kept], axis=1)
    return np.sqrt(variance), own.sum(axis=1) ** 2 / np.sum(own**2, axis=1) - 1.0


@pytest.mark.covering
@pytest.mark.parametrize(
    ("kernel", "situation", "degree"),
    [*product(KERNELS, SITUATIONS, [1]), *product(["gaussian", "epanechnikov"], SITUATIONS, [0])],
)
def test_standard_errors_are_those_of_the_reference(kernel, situation, degree):
    smoother, dense, places = pair(kernel, situation, degree)
    residual, kept, w = left_out(dense, CODE), dense.w > 0, dense.w
    own = replace(smoother, exclusion=Exclusion(CODE)).residual_of_units
    assert_allclose(own[kept], residual[kept], rtol=1e-9, atol=1e-11)
    assert np.all(own[~kept] == 0)
    for column, method in [(None, "robust"), (None, "naive"), (smoother.columns - 1, "quadratic")]:
        found = estimate(smoother, places, method, column)
        share = dense.shares(places.query, places.code, method, row=0 if column is None else 1 + column)
        error, df = expected(dense, share, residual, CODE)
        one, one_df, one_size = errors_of_units(smoother, found, CODE, own)
        assert_allclose(one, error, rtol=1e-11, atol=0)
        assert_allclose(one_df, df, rtol=1e-11, atol=1e-11)
        assert_allclose(one_size, np.sqrt(np.sum(share[:, kept] ** 2 / w[kept], axis=1)), rtol=1e-11)
        assert_allclose(one_size, np.sqrt(squared_norm(found.terms, smoother.sums)), rtol=1e-11)
        # Residuals of the fit itself have the usual corrections, and both other names are those left out.
        whole = np.where(kept[:, None], dense.y - dense.coefficients(dense.x, dense.code)[:, 0] @ dense.y, 0.0)
        count, by_fit = len(np.unique(CODE[kept])), expected(dense, share, whole, CODE)[0]
        usual = count / (count - 1) * (w.sum() - 1) / (w.sum() - w @ dense.leverage())
        for variance, target in (
            ("hc0", by_fit),
            ("hc1", np.sqrt(usual) * by_fit),
            *product(["hc3", "sandwich"], [error]),
        ):
            one = errors_of(replace(smoother, exclusion=Exclusion(CODE)), places, [found], variance)[0]
            assert_allclose(one.standard_error, target, rtol=1e-10, err_msg=variance)
            assert_allclose(one_df, df, rtol=1e-11, atol=1e-11)


def test_the_norm_is_unknown_where_a_window_is_empty_and_zero_where_no_row_has_a_share():
    """In a slope of rows at one place, every share is zero; that is told as such, and is no empty window."""
    x = np.repeat([0.0, 1.0, 2.0], 10)[:, None]
    smoother = Smoother(Keys.read(x, np.arange(30.0) % 7), Recipe.of("epanechnikov", [0.5], degree=1))
    smoother = replace(smoother, exclusion=Exclusion(np.arange(30) % 6))
    found = estimate(smoother, EvaluationPoints(np.array([[0.0], [9.0]])), "naive", 0)
    errors, df, size = errors_of_units(smoother, found, smoother.units.code, smoother.residual_of_units)
    assert_array_equal(size, [0.0, np.nan])
    assert np.isnan(errors).all()
    assert np.isnan(df).all()


@pytest.mark.parametrize("degree", [0, 1])
@pytest.mark.parametrize("of", ["fit", "derivative"])
def test_clusters_of_single_rows_are_the_sandwich(degree, of):
    """Of rows of weight one; the rows that a weight stands for are a cluster here, and independent there."""
    x, y = bend()
    model = (NadarayaWatsonRegressor, LocalLinearRegressor)[degree](bandwidth=0.06).fit(x[:, None], y)
    at = np.linspace(0, 1, 9)[:, None]
    one = model.confidence_interval(at, groups=range(200), quantity=of)
    other = model.confidence_interval(at, variance="sandwich", quantity=of)
    assert_allclose(one.standard_error, other.standard_error, rtol=1e-11)
    assert_array_equal(one.center, other.center)
    error = "standard_error" if of == "fit" else "slope_standard_error"
    assert_allclose(
        getattr(model.get_prediction(at, groups=range(200)), error),
        getattr(model.get_prediction(at, variance="sandwich"), error),
        rtol=1e-11,
    )  # fmt: skip


def test_kernels_of_your_own():
    x, y = bend(300)
    own = make_kernel("a bell", lambda u: np.exp(-0.5 * u**2))
    at, groups = np.linspace(0, 1, 300)[:, None], np.arange(300) % 20
    one, other = (
        LocalLinearRegressor(kernel, bandwidth=0.1).fit(x[:, None], y).confidence_interval(at, groups=groups)
        for kernel in (own, "gaussian")
    )
    assert_allclose(one.standard_error, other.standard_error, rtol=1e-9)


@pytest.mark.filterwarnings("ignore::kernpool.ExtrapolationWarning")
def test_far_queries_do_not_underflow():
    x, y = bend(100)
    model = NadarayaWatsonRegressor(bandwidth=0.05).fit(x[:, None], y)
    at = np.linspace(1.5, 9.0, 700)[:, None]  # beyond all weights that float64 can hold, by loops
    with pytest.warns(InferenceWarning, match="fewer than two clusters count"):
        loops, tables = (
            model.confidence_interval(each, groups=np.arange(100) % 10, method="naive") for each in (at, at[-2:])
        )
    assert np.isnan(loops.width[-1])
    assert np.isnan(tables.width[-1])
    assert_allclose(loops.center[-2:], tables.center)


def test_a_place_that_one_cluster_has_alone_has_no_interval():
    """Its own residuals would say nothing of how much clusters differ."""
    x = np.r_[np.linspace(0, 1, 60), 5 + np.linspace(0, 0.1, 6)]
    groups = np.r_[np.arange(60) % 6, np.full(6, 6)]
    model = NadarayaWatsonRegressor("epanechnikov", bandwidth=0.5).fit(x[:, None], np.cos(9 * np.arange(66)))
    with pytest.warns(InferenceWarning, match=r"1 of 2 queries \(the first is query 1\) fewer than two clusters"):
        found = model.confidence_interval([[0.5], [5.05]], groups=groups)
    assert np.isfinite(found.width[0])
    assert np.isnan(found.width[1])
    with pytest.warns(InferenceWarning, match="fewer than two clusters"):
        assert np.isnan(model.get_prediction([[5.05]], groups=groups).standard_error).all()


@pytest.mark.parametrize("variance", ["nn", "hc2"])
def test_variances_of_single_rows_are_refused(variance):
    smoother = replace(smoother_of_bend(), exclusion=Exclusion(np.arange(200) % 20))
    with pytest.raises(ValueError, match=f"variance='{variance}' is for independent rows"):
        check_variance(variance, smoother.exclusion)
    with pytest.raises(ValueError, match=r"independent rows, and these come in clusters.*simultaneous='multiplier'"):
        interval(smoother, smoother.training, simultaneous="tube")


def test_groups_of_the_fit_are_the_default():
    x, y = bend(120)
    groups = np.arange(120) % 12
    model = LocalLinearRegressor(bandwidth=0.1).fit(x[:, None], y, groups=groups)
    plain = LocalLinearRegressor(bandwidth=0.1).fit(x[:, None], y)
    at = np.linspace(0, 1, 5)[:, None]
    for of in ("fit", "derivative"):
        one = model.confidence_interval(at, quantity=of)
        other = plain.confidence_interval(at, quantity=of, groups=groups)
        for field in NAMES:
            assert_array_equal(getattr(one, field), getattr(other, field))
    one, other = model.get_prediction(at), plain.get_prediction(at, groups=groups)
    for field in ("standard_error", "slope_standard_error"):
        assert_array_equal(getattr(one, field), getattr(other, field))
    drawn = model.bootstrap(at, n_resamples=19)
    assert_array_equal(drawn, plain.bootstrap(at, n_resamples=19, groups=groups))
    assert np.all(drawn != plain.bootstrap(at, n_resamples=19))
    with pytest.raises(ValueError, match="fitted with groups=, whose rows go together"):
        model.significance_test(0)


@pytest.mark.filterwarnings("ignore:.*determine no slope in some direction")
def test_what_is_exact_or_has_no_slope_is_told():
    x = np.linspace(0.0, 1.0, 60)
    exact, groups = LocalLinearRegressor(bandwidth=0.3).fit(x[:, None], 3.0 * x), np.arange(60) % 10
    for simultaneous in (False, True):
        with pytest.warns(InferenceWarning, match="all residuals are zero"):
            found = exact.confidence_interval([[0.1], [0.5]], groups=groups, simultaneous=simultaneous)
        assert_array_equal(found.standard_error, 0.0)
    tied = LocalLinearRegressor(bandwidth=0.05, kernel="epanechnikov").fit(
        np.repeat(np.arange(10.0), 10)[:, None], np.random.default_rng(0).normal(size=100)
    )
    with pytest.warns(RankDeficiencyWarning, match="determine no slope by column 0"):
        found = tied.confidence_interval([[1.0], [2.0]], quantity="derivative", groups=np.arange(100) % 20)
    assert np.isnan(found.lower).all()


def test_slopes_have_degrees_of_freedom_of_their_own():
    random = np.random.default_rng(0)
    X, y = random.uniform(size=(120, 2)), random.normal(size=120)
    model = LocalLinearRegressor(bandwidth=[0.3, 0.4]).fit(X, y)
    found = model.confidence_interval(X[:5], quantity="derivative", groups=np.arange(120) % 12)
    half = stdtrit(found.df, 0.975) * found.standard_error
    assert_allclose(found.upper - found.center, half, rtol=1e-12)
    assert found.df.shape == (5, 2)
