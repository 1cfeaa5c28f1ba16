"""Numbers of other packages, computed there from the same bits: nprobust, and dense sums with 17 digits."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from kernpool import LocalLinearRegressor, NadarayaWatsonRegressor
from kernpool.inference import interval
from kernpool.inference.variance.standard_errors import errors_of
from kernpool.smoother import EvaluationPoints, estimate
from tests.support.inference_cases import PLACES, smoother_of_bend
from tests.support.inference_cases import bend as curve

# Samples of tests are not about the bias that these bandwidths leave.
pytestmark = pytest.mark.filterwarnings("ignore:.*the correction for bias is larger than two standard errors")

# R's nprobust, lprobust(p=1, h=.06, rho=1, kernel="gau", vce="nn"): tau.us, se.us, tau.bc and se.rb
NPROBUST = {"naive": np.array([
    [0.006292862692830862, 0.049814922005628405], [0.7569656687178801, 0.0403361214830642],
    [1.6740020429913378, 0.04163954140817981], [1.9481698247953636, 0.050442385825889544],
    [-0.17183750515327256, 0.07033647118320796], [-0.3971873804052889, 0.060547086196812976],
    [-0.13945141867397376, 0.21646266302176154],
]), "quadratic": np.array([
    [-0.004112942052698819, 0.06816674843583047], [0.7780512796341741, 0.04926387677536108],
    [1.6918805020979137, 0.05313932136977993], [2.0516998835453517, 0.0661514551474661],
    [-0.28109839556415717, 0.09103494208282248], [-0.45617683175549073, 0.07410548615565582],
    [-0.21274479990221853, 0.2681681081908643],
])}  # fmt: skip
ERRORS = {
    "hc0": [0.04613669486838767, 0.03908749682435052, 0.04398394812780213, 0.05370564507201304, 0.06442206132067554,
            0.07088746272620178, 0.196368198935203],
    "hc1": [0.047091575780692375, 0.03989648205256887, 0.04489427411961512, 0.05481717886325162, 0.06575539039554573,
            0.07235460477597484, 0.20043238787378595],
    "hc2": [0.04852219252115981, 0.03986750541321954, 0.044734659810843944, 0.054625994382508605, 0.06552598477459107,
            0.07259768758881016, 0.2064342780444069],
    "hc3": [0.05110272782373191, 0.04066533609173328, 0.04549818528180757, 0.05556211569612085, 0.0666488251951206,
            0.0743676161235389, 0.21708633524784096],
}  # fmt: skip
SLOPES = [7.579259648514934, 7.126037382391949, 5.1477691457715355, -5.937629426390544, -5.7505795208121215,
          1.7930466468351476, 2.554182804575796]  # fmt: skip
SLOPE_ERRORS = [0.7012279803408954, 0.5908850197679405, 0.5539050967326745, 0.6495751961113427, 0.7682388959435159,
                1.0939044125799173, 2.4382756864701247]  # fmt: skip
DEFAULT = {
    "center": [-0.005383197057618135, 0.7645800171791675, 1.6971848394473334, 2.0447733737458735,
               -0.26736519880487947, -0.4176780950401433, -0.11457861900381026],
    "df": [43.42351468048742, 62.2137664628485, 82.63125112410084, 84.65665126706753, 81.6010489309386,
           61.05756384034103, 42.22292975993363],
    "lower": [-0.23381952884220333, 0.6709025090485752, 1.5858888324088598, 1.9115636758626873, -0.42337574442813786,
              -0.5804807249957502, -0.5756239506587949],
    "upper": [0.22305313472696706, 0.8582575253097597, 1.808480846485807, 2.17798307162906, -0.1113546531816211,
              -0.2548754650845364, 0.34646671265117435],
}  # fmt: skip
NOISE = [0.24547853319673626, 0.2670427728030661, 0.3030959482114334, 0.3629360142439815, 0.42509462781744506,
         0.4581304071172073, 0.48255758641987584]  # fmt: skip
NORMS = [0.46156675008661463, 0.17550018459392833, 0.1846055649228464, 0.1845888425245914, 0.18447274691531274,
         0.17771837300609353, 0.47350401359852556]  # fmt: skip
AT = EvaluationPoints(PLACES[:, None])
DIGITS = {"rtol": 1e-12, "atol": 1e-14}


@pytest.fixture(scope="module")
def bend():
    return smoother_of_bend()


@pytest.mark.parametrize("method", NPROBUST)
@pytest.mark.parametrize("algorithm", ["auto", "reference", "brute", "sweep"])
def test_nprobust(algorithm, method):
    smoother = smoother_of_bend(algorithm=algorithm)
    found = estimate(smoother, AT, method)
    error = errors_of(smoother, AT, [found], "nn")[0].standard_error
    assert_allclose(np.hstack([found.center, error]), NPROBUST[method], **DIGITS)


@pytest.mark.parametrize("regressor", [LocalLinearRegressor, NadarayaWatsonRegressor])
def test_quadratics_of_a_fitted_model(regressor):
    """The same whatever its degree and its ridge are: only residuals are those of the model, and "nn" has none."""
    x, y = curve()
    options = {"ridge": 3.0} if regressor is LocalLinearRegressor else {}
    model = regressor(bandwidth=0.06, **options).fit(x[:, None], y)
    found = model.confidence_interval(PLACES[:, None], method="quadratic", variance="nn")
    assert_allclose(np.column_stack([found.center, found.standard_error]), NPROBUST["quadratic"], rtol=1e-12)
    assert found.method == "quadratic"


@pytest.mark.parametrize("kind", ERRORS)
def test_sandwiches(bend, kind):
    error = errors_of(bend, AT, [estimate(bend, AT, "naive")], kind)[0].standard_error[:, 0]
    assert_allclose(error, ERRORS[kind], **DIGITS)


def test_slopes(bend):
    found = estimate(bend, AT, "naive", column=0)
    assert_allclose(found.center[:, 0], SLOPES, **DIGITS)
    error = errors_of(bend, AT, [found], "sandwich")[0].standard_error[:, 0]
    assert_allclose(error, SLOPE_ERRORS, **DIGITS)


def test_the_default_interval(bend):
    found = interval(bend, AT)
    for name, target in DEFAULT.items():
        assert_allclose(getattr(found, name).ravel(), target, **DIGITS, err_msg=name)
    errors = errors_of(bend, AT, [estimate(bend, AT, "robust")])[0]
    assert_allclose(np.sqrt(errors.noise[:, 0]), NOISE, **DIGITS)
    assert_allclose(errors.spread[:, 0], NORMS, **DIGITS)
