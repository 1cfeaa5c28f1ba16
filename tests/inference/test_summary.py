"""Summaries: numbers against tables and published ones, and what is printed."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from threadpoolctl import threadpool_limits

from kernpool import LocalLinearRegressor, NadarayaWatsonRegressor, Plan
from kernpool.inference import summarise
from kernpool.smoother import fit_training
from tests.support.inference_cases import bend, pair


def test_published_numbers():
    x, y = bend()
    found = LocalLinearRegressor(bandwidth=0.06).fit(x[:, None], y).summary()
    numbers = [
        found.trace, found.trace_squared, found.rss[0], found.residual_sd[0], found.loo_error, found.r2[0],
        found.correlation_r2[0], found.aicc[0], found.gcv[0],
    ]  # fmt: skip
    target = [8.028610514782441, 6.112411798906193, 25.275119430175163, 0.36467562877886617, 0.13740236463186947,
              0.8879878065642628, 0.8913128027455897, -0.9734445578688147, 0.13716717535749176]  # fmt: skip
    assert_allclose(numbers, target, rtol=1e-12)
    assert found.loo_r2[0] == pytest.approx(0.878, abs=1e-3)


@pytest.mark.covering
@pytest.mark.parametrize("degree", [0, 1])
@pytest.mark.parametrize("situation", ["weighted line", "ridge", "product", "levels"])
@pytest.mark.parametrize("kernel", ["gaussian", "epanechnikov", "laplace", "cosine"])
def test_numbers_are_those_of_the_reference(kernel, situation, degree):
    smoother, dense, _ = pair(kernel, situation, degree)
    kept, w = dense.w > 0, dense.w
    share = dense.coefficients(dense.x, dense.code)[:, 0]
    squared = np.sum(share[:, kept] ** 2 / w[kept], axis=1)
    fit, mean = share @ dense.y, w @ dense.y / w.sum()
    rss = w @ (dense.y - fit) ** 2
    pooled = dense.kernel_weights(dense.x, dense.code) * w
    effective = pooled.sum(axis=1) ** 2 / np.sum(pooled[:, kept] ** 2 / w[kept], axis=1)
    found = summarise(smoother, fit_training(smoother), "model", "given", ())
    assert found.trace == pytest.approx(w @ dense.leverage(), rel=1e-11)
    assert found.trace_squared == pytest.approx(w @ squared, rel=1e-11)
    assert_allclose(found.rss, rss, rtol=1e-10)
    assert_allclose(found.r2, 1 - rss / (w @ (dense.y - mean) ** 2), rtol=1e-10)
    assert_allclose(found.loo_error, np.sum(w @ dense.squared("hc3")) / w.sum(), rtol=1e-11)
    least, _, most = found.effective_rows
    assert_allclose((least, most), (effective[kept].min(), effective[kept].max()), rtol=1e-11)
    assert found.few == pytest.approx(w[kept] @ (effective[kept] < 10) / w.sum())


def test_many_rows_are_summarised_by_two_passes_and_as_rows_that_intervals_have_fitted(monkeypatch):
    made, reduce = [], Plan.reduce
    monkeypatch.setattr(
        Plan, "reduce", lambda plan, problem, **options: made.append(1) or reduce(plan, problem, **options)
    )
    n = 20_000
    x = np.arange(n) / n
    y = np.sin(9 * x) + np.cos(1e5 * x)
    first, again = (LocalLinearRegressor(bandwidth=0.01).fit(x[:, None], y) for _ in range(2))
    found = first.summary()
    assert len(made) == 2
    again.confidence_interval([[0.5]])
    right = again.summary()
    assert found.trace_squared == pytest.approx(right.trace_squared, rel=1e-12)
    assert found.trace == right.trace
    assert found.effective_rows == pytest.approx(right.effective_rows, rel=1e-12)


@pytest.mark.parametrize("degree", [0, 1])
def test_of_clusters_it_says_what_is_left_out(degree):
    x, y = bend(90)
    g = np.random.default_rng(1)
    y, weight, groups = np.c_[y, g.normal(size=90)], g.integers(0, 3, size=90), np.arange(90) // 6
    weight[:6] = 0  # a cluster without weight does not count
    model = (NadarayaWatsonRegressor, LocalLinearRegressor)[degree](bandwidth="loo")
    found = model.fit(x[:, None], y, sample_weight=weight, groups=groups).summary()
    alone = model.leave_one_out()
    assert found.cluster_error == pytest.approx(model.loo_error_, rel=1e-9)
    squared, total = weight @ (y - alone.prediction) ** 2, weight @ (y - weight @ y / weight.sum()) ** 2
    assert_allclose(found.cluster_r2, 1 - squared / total, rtol=1e-9)
    sizes = np.bincount(groups, weight)
    sizes = sizes[sizes > 0]
    assert (found.n_clusters, found.cluster_sizes) == (len(sizes), (sizes.min(), np.median(sizes), sizes.max()))
    plain = type(model)(bandwidth=model.bandwidth_).fit(x[:, None], y, sample_weight=weight).summary()
    assert_allclose(found.loo_r2, plain.loo_r2, rtol=1e-12)
    assert found.loo_error != pytest.approx(found.cluster_error, rel=1e-3)


def test_two_clusters_are_enough_for_a_summary():
    x, y = bend(60)
    found = LocalLinearRegressor(bandwidth=0.1).fit(x[:, None], y, groups=np.arange(60) % 2).summary()
    assert found.cluster_sizes == (30.0, 30.0, 30.0)


@pytest.mark.parametrize("weighted", [False, True])
def test_a_constant_in_y_takes_no_digits_but_those_of_y(weighted):
    """Sums of squares of 1e8 less each other would lose all of them."""
    g = np.random.default_rng(0)
    X, weight = g.uniform(size=(200, 1)), g.integers(0, 4, 200) if weighted else None
    y = np.rint(2.0**20 * (np.sin(5 * X[:, 0]) + 0.3 * g.normal(size=200))) / 2.0**20  # so that shifted ones are exact
    one, far = (LocalLinearRegressor(bandwidth=0.1).fit(X, y + by, weight).summary() for by in (0.0, 2.0**27))
    for name in ("rss", "residual_sd", "r2", "correlation_r2", "loo_r2", "aicc", "gcv"):
        assert_allclose(getattr(far, name), getattr(one, name), rtol=4 * 2.0**27 * np.finfo(float).eps)
    fit = LocalLinearRegressor(bandwidth=0.1).fit(X, y, weight).predict(X)
    w = np.ones(200) if weight is None else weight
    mean = w @ y / w.sum()
    both = (w @ ((y - mean) * (fit - mean))) ** 2 / ((w @ (y - mean) ** 2) * (w @ (fit - mean) ** 2))
    assert_allclose(one.correlation_r2, both, rtol=1e-12)


def test_the_same_bits_whatever_threads_blas_has(generator):
    """Other threads hold BLAS to one thread for a moment, and dot products of many rows then round otherwise."""
    X, weight = generator.uniform(0, 10, (30_000, 1)), generator.integers(1, 4, 30_000)
    y = np.sin(X[:, 0]) + generator.normal(size=30_000)
    found = []
    for limit in (None, 1):
        with threadpool_limits(limit, user_api="blas"):
            model = NadarayaWatsonRegressor(bandwidth=0.5).fit(X, y, sample_weight=weight)
            summary, band = model.summary(), model.confidence_interval(X[:20], simultaneous=True)
            found.append(
                [summary.trace, summary.rss, summary.r2, summary.loo_error, summary.few, band.lower, band.upper]
            )
    for one, other in zip(*found, strict=True):
        assert_array_equal(one, other)
