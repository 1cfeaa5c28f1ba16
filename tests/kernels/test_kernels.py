"""Every registered kernel is what its record says it is."""

import copy
import math
import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.integrate import quad

from kernpool import Kernel, get_kernel, kernel_names, make_kernel, pool, pooling_weights, register_kernel
from kernpool.kernels import BUILT_IN, INTERNAL, Exponential, Flat, Gaussian, Polynomial

FINITE = [name for name in BUILT_IN if name != "constant"]


@pytest.mark.parametrize("name", kernel_names())
def test_profile_laws(name):
    kernel = get_kernel(name)
    u = np.linspace(0, 4, 801)
    weight = kernel.profile(u)
    assert np.all(weight >= 0)
    assert np.all(np.diff(weight) <= 0)
    assert np.all(weight[u > kernel.support] == 0)
    positive = weight > 0
    assert_allclose(np.exp(kernel.log_profile(u))[positive], weight[positive], rtol=1e-13)
    assert np.all(np.isneginf(kernel.log_profile(u[~positive])))


def formula(form, u):
    """Compute what a form says, without the tricks that keep the last digits of a profile."""
    match form:
        case Polynomial(inner, outer, height):
            return np.where(u <= 1, height * np.maximum(1 - u**inner, 0) ** outer, 0)
        case Gaussian():
            return np.exp(-(u**2) / 2)
        case Exponential(height):
            return height * np.exp(-u)
    assert form == Flat()
    return np.ones_like(u)


@pytest.mark.parametrize("name", [*kernel_names(), *INTERNAL])
def test_a_form_says_what_the_profile_computes(name):
    kernel, u = get_kernel(name), np.linspace(0, 4, 801)
    weight = kernel.profile(u)
    if kernel.adds_up:
        assert_allclose(weight, formula(kernel.form, u), rtol=1e-12, atol=1e-14)
    elif kernel.form is not None:
        factor = weight / np.exp(-u)
        assert factor.min() == factor[0] == kernel.form.least
        assert np.all(factor <= 1)


def test_all_built_in_kernels_but_one_have_a_form_and_those_of_ones_own_have_none():
    assert [name for name in BUILT_IN if get_kernel(name).form is None] == ["cosine"]
    assert make_kernel("gaussian", lambda u: np.exp(-(u**2) / 2)).form is None


@pytest.mark.parametrize("name", [*FINITE, *INTERNAL])
def test_constants(name):
    kernel = get_kernel(name)
    end = min(kernel.support, 40.0)

    def integral(f):
        return 2 * quad(f, 0, end, limit=200, epsabs=1e-13)[0]

    def density(u):
        return kernel.profile(np.array([u]))[0] / kernel.integral

    assert integral(density) == pytest.approx(1, rel=1e-10)
    assert integral(lambda u: density(u) ** 2) == pytest.approx(kernel.roughness, rel=1e-10)
    assert integral(lambda u: u**2 * density(u)) == pytest.approx(kernel.second_moment, rel=1e-10)


@pytest.mark.parametrize("name", [name for name in BUILT_IN if name not in ("boxcar", "constant")])
def test_log_slopes_are_derivatives(name):
    kernel = get_kernel(name)
    u = np.linspace(0.05, min(0.95 * kernel.support, 6.0), 50)
    difference = (kernel.log_profile(u + 1e-6) - kernel.log_profile(u - 1e-6)) / 2e-6
    assert_allclose(kernel.log_slope(u), difference, rtol=1e-6)


def test_published_canonical_factors():
    """Fifth powers as in KernSmooth's bkde (peers note) and Marron and Nolan (1988)."""
    powers = {
        "gaussian": 1 / math.sqrt(4 * math.pi),
        "boxcar": 9 / 2,
        "epanechnikov": 15,
        "biweight": 35,
        "triweight": 9450 / 143,
    }
    for name, power in powers.items():
        assert get_kernel(name).canonical_factor ** 5 == pytest.approx(power, rel=1e-12)
    assert math.isnan(get_kernel("constant").canonical_factor)


def test_the_four_kernels_as_taught():
    u = np.array([0.0, 0.5, 1.0, 1.5])
    assert_allclose(get_kernel("gaussian").profile(u), np.exp(-(u**2) / 2), rtol=1e-15)
    assert_array_equal(get_kernel("boxcar").profile(u), [1, 1, 1, 0])  # the edge belongs to the window
    assert_array_equal(get_kernel("constant").profile(u), [1, 1, 1, 1])
    assert_allclose(get_kernel("epanechnikov").profile(u), [0.75, 0.5625, 0, 0])
    assert_allclose(get_kernel("triangular").profile(u), [1, 0.5, 0, 0])


def test_small_weights_keep_their_digits():
    """A key just inside the window: 1 - u^2 computed as such would keep 6 digits of 16."""
    from mpmath import mp, mpf

    u = np.array([1 - 2.0**-33])
    with mp.workdps(40):
        exact = {
            "epanechnikov": 0.75 * (1 - mpf(u[0]) ** 2),
            "biweight": mpf(15) / 16 * (1 - mpf(u[0]) ** 2) ** 2,
            "triweight": mpf(35) / 32 * (1 - mpf(u[0]) ** 2) ** 3,
            "tricube": mpf(70) / 81 * (1 - mpf(u[0]) ** 3) ** 3,
            "cosine": mp.pi / 4 * mp.cos(mp.pi / 2 * mpf(u[0])),
        }
    for name, value in exact.items():
        assert float(get_kernel(name).profile(u)[0]) == pytest.approx(float(value), rel=1e-14)


def test_an_unknown_name_gets_the_closest_one():
    with pytest.raises(ValueError, match="did you mean 'epanechnikov'"):
        get_kernel("epanechikov")
    with pytest.raises(TypeError, match="kernel must be a name"):
        get_kernel(3)


def test_registering(request):
    mine = make_kernel("test-quadratic", lambda u: np.maximum(1 - u**2, 0), support=1.0, aliases=("test-alias",))
    assert mine.roughness == pytest.approx(0.6)
    assert register_kernel(mine) is mine
    assert get_kernel("test-alias") is mine
    assert get_kernel("tophat") is get_kernel("boxcar")
    assert pickle.loads(pickle.dumps(mine)) is mine
    assert copy.deepcopy(mine) is mine
    assert pool([0.0], [0.5], [2.0], kernel="test-alias") == [2.0]
    with pytest.raises(ValueError, match="already taken"):
        register_kernel(mine)


@pytest.mark.parametrize(
    ("profile", "support", "complaint"),
    [
        (lambda u: u - 1, math.inf, "finite weights >= 0"),
        (lambda u: u, math.inf, "must not increase"),
        (lambda u: np.exp(-u), 1.0, "beyond support"),
        (lambda u: np.full_like(u, np.nan), math.inf, "finite weights"),
    ],
)
def test_a_profile_that_is_no_kernel_is_refused(profile, support, complaint):
    bad = Kernel("test-bad", profile, lambda u: u, None, support, 1.0, 1.0, 1.0)
    with pytest.raises(ValueError, match=complaint):
        register_kernel(bad)
    assert "test-bad" not in kernel_names()


def test_support_is_enforced_and_profiles_are_checked_when_made():
    parabola = make_kernel("test-parabola", lambda u: 1 - u**2, support=1.0)
    assert_array_equal(pool([0.0], [0.0, 2.0], [1.0, 2.0], kernel=parabola), [1.0])
    assert parabola.second_moment == pytest.approx(1 / 5)
    for profile, complaint in (
        (lambda u: 1 - u, "finite weights >= 0"),
        (lambda _: 1.0, "array of as many weights"),
        (np.zeros_like, "'test-bad' must not be all zero"),
        (lambda u: 1e300 * np.exp(-u), "must be between 1e-100 and 1e100 at u = 0, got 1e\\+300; divide the profile"),
        (lambda u: 1e-300 * np.exp(-u), "must be between 1e-100 and 1e100 at u = 0, got 1e-300; divide the profile"),
    ):
        with pytest.raises(ValueError, match=complaint):
            make_kernel("test-bad", profile)
    raw = Kernel("test-raw", lambda u: 1 - u, lambda u: u, None, math.inf, 1.0, 1.0, 1.0)
    with pytest.raises(ValueError, match="finite weights >= 0"):
        pool([0.0], [2.0], [1.0], kernel=raw)


def test_a_record_that_its_name_would_not_find_is_not_pickled():
    impostor = make_kernel("gaussian", lambda u: 1 / (1 + u**2) ** 3)
    with pytest.raises(ValueError, match="is not registered"):
        pickle.dumps(impostor)
    assert copy.copy(impostor) is impostor


def test_squares():
    """They are found by the name of a radial one, and are that one in a single column."""
    kernel = get_kernel("product tophat")
    assert (kernel.name, kernel.composition) == ("product boxcar", "product")
    assert kernel.radial is get_kernel("boxcar")
    assert pickle.loads(pickle.dumps(kernel)) is get_kernel("product boxcar")
    assert get_kernel("product gaussian") is get_kernel("gaussian")
    assert not any(name.startswith("product") for name in kernel_names())
    key = [[0.0, 0.0], [0.6, 0.6], [0.6, -0.9]]
    mine = make_kernel("test-product", lambda u: np.maximum(1 - u**2, 0), support=1.0, composition="product")
    weights = [pooling_weights([[0.0, 0.0]], key, kernel=each) for each in ("product epanechnikov", mine)]
    product = np.array([1.0, 0.64**2, 0.64 * 0.19])
    assert_allclose(weights, [[product / product.sum()]] * 2, rtol=1e-12)
    with pytest.raises(ValueError, match="composition must be 'radial' or 'product'"):
        make_kernel("test-sum", np.exp, composition="sum")
