"""Conventions of other packages for bandwidths, each held to the package or to the formula of its manual."""

import numpy as np

from kernpool import NadarayaWatsonRegressor, convert_bandwidth, pool
from kernpool.datasets import make_sine_power

sample = make_sine_power(random_state=0)
x, y, query = sample.x_train, sample.y_train, np.linspace(0.5, 4.5, 9)
distance = np.abs(query[:, None] - x)


def weighted_mean(weight):
    """Nadaraya-Watson, written out."""
    return weight @ y / weight.sum(axis=1)


def fitted(kernel, bandwidth, convention):
    """The same, by kernpool."""
    model = NadarayaWatsonRegressor(kernel, convert_bandwidth(bandwidth, kernel, source=convention))
    return model.fit(x[:, None], y).predict(query[:, None])


def check_support():
    """scikit-learn's densities, one of all rows and one weighted by y, make the same weighted mean."""
    from sklearn.neighbors import KernelDensity

    positive = y - y.min() + 1.0  # its weights have to be

    def density(weight):
        model = KernelDensity(kernel="epanechnikov", bandwidth=0.8).fit(x[:, None], sample_weight=weight)
        return weight.sum() * np.exp(model.score_samples(query[:, None]))

    found = density(positive) / density(np.ones_like(y)) + y.min() - 1.0
    np.testing.assert_allclose(found, fitted("epanechnikov", 0.8, "support"))


def check_np():
    """The Epanechnikov kernel of `npreg(ckertype = "epanechnikov")`, as in `?np.kernels`."""
    u = distance / 0.3
    weight = np.where(u**2 < 5, 3 / (4 * np.sqrt(5)) * (1 - u**2 / 5), 0.0)
    np.testing.assert_allclose(weighted_mean(weight), fitted("epanechnikov", 0.3, "np"))


def check_stata():
    """`npregress kernel y x, estimator(constant) kernel(epanechnikov)`, by the kernel of the entry of `kdensity`."""
    z = distance / 0.3
    weight = np.where(np.abs(z) < np.sqrt(5), 3 / 4 * (1 - z**2 / 5) / np.sqrt(5), 0.0)
    np.testing.assert_allclose(weighted_mean(weight), fitted("epanechnikov", 0.3, "stata"))
    weight = np.where(np.abs(z) < 1, 1 - np.abs(z), 0.0)
    np.testing.assert_allclose(weighted_mean(weight), fitted("triangular", 0.3, "stata"))


def check_locfit():
    """`locfit(y ~ lp(x, h = 1.2, deg = 0), kern = "gauss")`."""
    u = distance / 1.2
    np.testing.assert_allclose(weighted_mean(np.exp(-((2.5 * u) ** 2) / 2)), fitted("gaussian", 1.2, "locfit"))
    weight = np.where(u < 1, (1 - u**3) ** 3, 0.0)
    np.testing.assert_allclose(weighted_mean(weight), fitted("tricube", 1.2, "locfit"))


def check_ksmooth():
    """Its kernels are scaled so that their quartiles, viewed as densities, are at +/- 0.25 bandwidth."""
    from scipy import stats

    sigma = convert_bandwidth(1.5, "gaussian", source="ksmooth")
    half = convert_bandwidth(1.5, "boxcar", source="ksmooth")
    quartiles = stats.norm(scale=sigma).ppf(0.75), stats.uniform(-half, 2 * half).ppf(0.75)
    np.testing.assert_allclose(quartiles, 0.25 * 1.5)

    u = distance / (0.3706506 * 1.5)  # the constant in its C code, and its cut
    weight = np.where(u <= 4, np.exp(-(u**2) / 2), 0.0)
    np.testing.assert_allclose(weighted_mean(weight), fitted("gaussian", 1.5, "ksmooth"), atol=1e-3)


def check_std():
    """Statsmodels' `KernelReg`; then the standard deviation of a compact kernel, summed up."""
    from statsmodels.nonparametric.kernel_regression import KernelReg

    found, _ = KernelReg(y, x, "c", reg_type="lc", bw=[0.3]).fit(query)
    np.testing.assert_allclose(found, fitted("gaussian", 0.3, "std"))

    half = convert_bandwidth(0.3, "triangular", source="std")
    u = np.linspace(-1.0, 1.0, 100_001)
    deviation = np.sqrt(np.average((half * u) ** 2, weights=1 - np.abs(u)))
    np.testing.assert_allclose(deviation, 0.3, rtol=1e-6)


def check_canonical():
    """At the factors of KernSmooth's `bkde(canonical = TRUE)` two kernels smooth about equally."""
    u = distance / (35**0.2 * 0.3)
    weight = np.where(u < 1, (1 - u**2) ** 2, 0.0)
    np.testing.assert_allclose(weighted_mean(weight), fitted("biweight", 0.3, "canonical"))

    same = convert_bandwidth(convert_bandwidth(0.3, "gaussian", target="canonical"), "biweight", source="canonical")

    def gap(bandwidth):
        found = pool(query, x, y, kernel="biweight", bandwidth=bandwidth)
        return np.abs(pool(query, x, y, bandwidth=0.3) - found).max()

    assert gap(same) < 0.2 * gap(0.3)
