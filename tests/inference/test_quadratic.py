"""Intervals around local quadratic fits: the numbers of R's nprobust, and where there is no quadratic."""

import numpy as np
import pytest

from kernpool import LocalLinearRegressor, NadarayaWatsonRegressor, RankDeficiencyWarning
from kernpool.core import Keys
from kernpool.inference import fit_training, interval
from kernpool.inference.variance.standard_errors import errors_of
from kernpool.pooling import Recipe
from kernpool.smoother import EvaluationPoints, Smoother, estimate
from tests.support.inference_cases import PLACES, bend, smoother_of_bend

# Samples of tests are not about the bias that these bandwidths leave.
pytestmark = pytest.mark.filterwarnings("ignore:.*the correction for bias is larger than two standard errors")

# R's nprobust, lprobust(p=1, h=.06, rho=1, kernel="gau", vce="nn"): tau.bc and se.rb
NPROBUST = np.array([
    [-0.004112942052698819, 0.06816674843583047], [0.7780512796341741, 0.04926387677536108],
    [1.6918805020979137, 0.05313932136977993], [2.0516998835453517, 0.0661514551474661],
    [-0.28109839556415717, 0.09103494208282248], [-0.45617683175549073, 0.07410548615565582],
    [-0.21274479990221853, 0.2681681081908643],
])  # fmt: skip
KINDS = ["local", "sandwich", "nn", "hc0", "hc1", "hc2", "hc3"]


@pytest.mark.parametrize("algorithm", ["auto", "reference", "brute", "sweep"])
def test_nprobust(algorithm):
    smoother, places = smoother_of_bend(algorithm=algorithm), EvaluationPoints(PLACES[:, None])
    found = estimate(smoother, places, "quadratic")
    error = errors_of(smoother, fit_training(smoother), places, [found], "nn")[0].standard_error
    np.testing.assert_allclose(np.hstack([found.center, error]), NPROBUST, rtol=1e-12)


@pytest.mark.parametrize("regressor", [LocalLinearRegressor, NadarayaWatsonRegressor])
def test_of_a_fitted_model(regressor):
    """The same whatever its degree and its ridge are: only residuals are those of the model, and "nn" has none."""
    x, y = bend()
    options = {"ridge": 3.0} if regressor is LocalLinearRegressor else {}
    model = regressor(bandwidth=0.06, **options).fit(x[:, None], y)
    found = model.confidence_interval(PLACES[:, None], method="quadratic", variance="nn")
    np.testing.assert_allclose(np.column_stack([found.center, found.standard_error]), NPROBUST, rtol=1e-12)
    assert found.method == "quadratic"
    assert np.all(found.lower < found.center)
    assert np.all(found.center < found.upper)


@pytest.mark.covering
@pytest.mark.parametrize("of", ["fit", "derivative"])
@pytest.mark.parametrize("columns", [1, 2, 3])
@pytest.mark.parametrize("variance", KINDS)
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
    np.testing.assert_allclose(found.center, truth, atol=1e-7)
    assert np.abs(plain.center - truth).max() > 1e-2
    assert np.all(found.standard_error > 0)


def test_more_than_three_columns_are_refused(generator):
    x = generator.normal(size=(60, 4))
    model = LocalLinearRegressor(bandwidth=2.0).fit(x, x[:, 0] + generator.normal(size=60))
    with pytest.raises(ValueError, match=r"'quadratic' is for one to 3 numeric columns, got 4; use method='robust'"):
        model.confidence_interval(x[:2], method="quadratic")


def test_rows_that_do_not_determine_a_quadratic_are_told():
    x = np.r_[np.linspace(0.0, 1.0, 40), 5.0, 5.1]
    smoother = Smoother(Keys.read(x, np.cos(30 * x)), Recipe.of("epanechnikov", [0.2], degree=1))
    places, training = EvaluationPoints(np.array([[0.5], [5.05]])), fit_training(smoother)
    with pytest.warns(RankDeficiencyWarning, match="do not determine a quadratic"):
        found = interval(smoother, training, places, method="quadratic", variance="nn")
    plain = interval(smoother, training, places, method="naive", variance="nn")
    assert found.center[1] == pytest.approx(plain.center[1], rel=1e-12)
    assert found.standard_error[1] == pytest.approx(plain.standard_error[1], rel=1e-9)
