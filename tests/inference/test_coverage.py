"""Intervals and bands cover as often as they say, at bandwidths found on the same rows."""

import numpy as np
import pytest

from kernpool import LocalLinearRegressor
from tests.support.inference_cases import PLACES

RUNS = 250
CURVE = np.linspace(0.0, 1.0, 101)

# Some samples have a place with few clusters, or with much bias; they count like all others.
pytestmark = pytest.mark.filterwarnings("ignore::kernpool.InferenceWarning")


def truth(x):
    return np.sin(2 * np.pi * x) + 2 * np.exp(-16 * (x - 0.5) ** 2)


@pytest.mark.slow
def test_coverage_of_a_curve_with_a_peak_and_growing_noise():
    """Binomial errors of 120 runs are 2.0 percent for a place and the band, and less for the mean of seven places.

    A place that is covered in 94 percent, the bar of `benchmarks/interval_coverage.py`, may so be seen at .90; a bound
    of .92 three errors away takes 1400 runs.
    """
    g, covered, held = np.random.default_rng(0), [], []
    for _ in range(120):
        x = g.uniform(size=200)
        y = truth(x) + (0.2 + 0.3 * x) * g.normal(size=200)
        model = LocalLinearRegressor(bandwidth="loo").fit(x[:, None], y)
        single = model.confidence_interval(PLACES[:, None])
        covered.append((single.lower <= truth(PLACES)) & (truth(PLACES) <= single.upper))
        band = model.confidence_interval(CURVE[:, None], simultaneous=True)
        held.append(np.all((band.lower <= truth(CURVE)) & (truth(CURVE) <= band.upper)))
    assert 0.92 <= np.mean(covered) <= 0.98
    assert np.all(np.mean(covered, axis=0) >= 0.90)
    assert 0.92 <= np.mean(held) <= 0.99


@pytest.mark.slow
def test_coverage_where_the_bandwidth_that_is_given_is_too_large():
    """Searches find about .05 here; 500 runs at twice what each finds have 95 percent, and the robust method 88."""
    g, covered = np.random.default_rng(3), {"auto": [], "robust": []}
    for _ in range(150):
        x = g.uniform(size=200)
        y = truth(x) + (0.2 + 0.3 * x) * g.normal(size=200)
        model = LocalLinearRegressor(bandwidth=0.1, n_jobs=1).fit(x[:, None], y)
        for method, of in covered.items():
            found = model.confidence_interval(PLACES[:, None], method=method)
            of.append((found.lower <= truth(PLACES)) & (truth(PLACES) <= found.upper))
    assert 0.92 <= np.mean(covered["auto"]) <= 0.98
    assert np.mean(covered["robust"]) < np.mean(covered["auto"]) - 0.02


def clusters(g, count, size, spread):
    """Clusters whose rows share a shock; they lie within `spread` of each other, or anywhere."""
    groups = np.repeat(np.arange(count), size)
    offset = g.uniform(-1.0, 1.0, size=count * size)
    x = 0.5 + 0.5 * offset if spread is None else np.clip(g.uniform(size=count)[groups] + spread * offset, 0.0, 1.0)
    shock = 0.3 * g.normal(size=count)[groups]
    return x[:, None], np.cos(3.0 * x) + 0.3 * g.normal(size=count * size) + shock, groups


@pytest.mark.slow
@pytest.mark.parametrize(
    ("count", "size", "spread", "mean", "worst", "ignored"),
    [(24, 10, None, 95.7, 94.8, 86.1), (60, 4, 0.02, 94.2, 90.1, 77.7)],
)
def test_coverage_of_rows_in_clusters(count, size, spread, mean, worst, ignored):
    """Figures are those of 2000 runs in `docs/benchmarks/coverage.md`, which have errors of .2, .7 and .4 percent.

    Of 400 runs they are .45, at the worst of seven places binomial, 1.1 to 1.5, and .9.
    """
    g, covered, alone = np.random.default_rng(9), [], []
    for _ in range(RUNS):
        X, y, groups = clusters(g, count, size, spread)
        model = LocalLinearRegressor(bandwidth=0.1, n_jobs=1).fit(X, y)
        for of, given in ((covered, groups), (alone, None)):
            found = model.confidence_interval(PLACES[:, None], method="robust", groups=given)
            of.append((found.lower <= np.cos(3 * PLACES)) & (np.cos(3 * PLACES) <= found.upper))
    assert abs(100 * np.mean(covered) - mean) <= 3 * 0.5
    error = 100 * np.sqrt(worst / 100 * (1 - worst / 100) / RUNS)
    assert 100 * np.min(np.mean(covered, axis=0)) >= worst - 3 * error
    assert abs(100 * np.mean(alone) - ignored) <= 3 * 1.0


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*fewer than two clusters")  # where there is no interval, none covers
def test_coverage_of_groups_that_the_bandwidth_was_searched_with():
    """Nothing is said but ``fit(groups=)``: that covers in 88 percent of 100 samples, and 80 of those fitted without.

    At a bandwidth that does not depend on the sample it is 94 (above): a search over 60 clusters is rough. The first 50
    samples, which these are, have 91 and 80, and an error of 1.7.
    """
    g, covered, alone = np.random.default_rng(10), [], []
    for _ in range(50):
        X, y, groups = clusters(g, 60, 4, 0.02)
        for of, given in ((covered, groups), (alone, None)):
            model = LocalLinearRegressor(n_jobs=1).fit(X, y, groups=given)
            found = model.confidence_interval(PLACES[1:-1, None])
            of.append((found.lower <= np.cos(3 * PLACES[1:-1])) & (np.cos(3 * PLACES[1:-1]) <= found.upper))
    assert 0.86 <= np.mean(covered) <= 0.98
    assert np.mean(covered) - np.mean(alone) >= 0.05


def hill(X):
    return np.sin(2 * np.pi * X[:, 0]) + 2 * np.exp(-16 * np.sum((X - 0.5) ** 2, axis=1))


@pytest.mark.slow
def test_coverage_of_two_columns():
    """The page has 96.2 percent, with an error of .3, and 89.2 at the top of the hill, of 600 runs; these are 80."""
    at = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0], [0.5, 0.5], [0.25, 0.5], [0.5, 0.75]])
    g, covered, naive = np.random.default_rng(7), [], []
    for _ in range(80):
        X = g.uniform(size=(400, 2))
        y = hill(X) + (0.2 + 0.3 * X[:, 0]) * g.normal(size=400)
        model = LocalLinearRegressor(bandwidth="loo", n_jobs=1).fit(X, y)
        for of, method in ((covered, "robust"), (naive, "naive")):
            found = model.confidence_interval(at, method=method)
            of.append((found.lower <= hill(at)) & (hill(at) <= found.upper))
    assert abs(np.mean(covered) - 0.962) <= 3 * 0.009
    assert np.min(np.mean(covered, axis=0)) >= 0.892 - 3 * np.sqrt(0.892 * 0.108 / 80)
    assert np.mean(naive) < 0.87
