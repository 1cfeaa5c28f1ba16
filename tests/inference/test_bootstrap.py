"""Resampled fits against matrices of shares, and their laws."""

import numpy as np
import pandas
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from kernpool import EmptyWindowWarning, LocalLinearRegressor, NadarayaWatsonRegressor, open_chunks
from kernpool.inference.resampling import random_draws
from tests.support.dense_resampling import leave_one_out, smoother

KINDS = ("wild", "mammen", "gaussian", "residual", "pairs")
MODELS = {0: NadarayaWatsonRegressor, 1: LocalLinearRegressor}


def rows(n=40, columns=2, outputs=None, seed=0):
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, columns))
    shape = n if outputs is None else (n, outputs)
    return X, np.sin(X.sum(axis=1)).reshape(n, *([1] if outputs else [])) + 0.3 * random.normal(size=shape)


@pytest.mark.parametrize("degree", [0, 1])
@pytest.mark.parametrize("kernel", ["gaussian", "epanechnikov"])
def test_resampled_outputs_are_pooled(degree, kernel):
    X, y = rows()
    query, h = X[:7] + 0.1, {"gaussian": 0.8, "epanechnikov": 3.0}[kernel]
    model = MODELS[degree](kernel, h).fit(X, y)
    S, at = smoother(X, h, degree, kernel=kernel), smoother(X, h, degree, query, kernel=kernel)
    for kind in ("wild", "mammen", "gaussian"):
        sign = random_draws.multipliers(kind, 5, slice(0, 70), len(y))
        expected = at @ ((S @ y)[:, None] + leave_one_out(S, y)[:, None] * sign)
        found = model.bootstrap(query, n_resamples=70, kind=kind, random_state=5)
        assert_allclose(found, expected.T, rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("degree", [0, 1])
@pytest.mark.filterwarnings("ignore::kernpool.RepeatedRowsWarning")
def test_exchanged_residuals(degree):
    X, y = rows()
    query, h = X[:7] + 0.1, 0.8
    model = MODELS[degree](bandwidth=h).fit(X, y)
    S, at = smoother(X, h, degree), smoother(X, h, degree, query)
    left = y - S @ y
    left -= left.mean()
    found = model.bootstrap(query, n_resamples=10, kind="residual", random_state=5)
    for number in range(10):
        assert_allclose(found[number], at @ (S @ y + left[random_draws.drawn_rows(5, number, 40)]), atol=1e-11)


@pytest.mark.parametrize("kind", KINDS)
def test_the_unit_of_y_and_levels(kind):
    X, y = rows()
    frame = pandas.DataFrame({"x": X[:, 0], "level": pandas.Categorical(np.where(X[:, 1] > 0, "b", "a"))})
    model = NadarayaWatsonRegressor(bandwidth=0.7, smoothing=0.2)
    found = model.fit(frame, y).bootstrap(frame[:6], n_resamples=9, kind=kind)
    moved = model.fit(frame, 100.0 - 3.0 * y).bootstrap(frame[:6], n_resamples=9, kind=kind)
    assert_allclose(moved, 100.0 - 3.0 * found, rtol=1e-12)


@pytest.mark.filterwarnings("ignore::kernpool.RepeatedRowsWarning")
def test_clusters_share_a_draw():
    X, y = rows()
    groups = np.repeat(np.array(list("abcdefghij")), 4)
    model = LocalLinearRegressor(bandwidth=0.8).fit(X, y)
    S = smoother(X, 0.8, 1)
    sign = random_draws.multipliers("wild", 5, slice(0, 30), 10)[np.repeat(np.arange(10), 4)]
    expected = S @ ((S @ y)[:, None] + leave_one_out(S, y)[:, None] * sign)
    found = model.bootstrap(n_resamples=30, groups=groups, random_state=5)
    assert_allclose(found, expected.T, rtol=1e-11, atol=1e-12)
    alone = model.bootstrap(n_resamples=9, groups=np.arange(40))
    assert np.array_equal(alone, model.bootstrap(n_resamples=9))


def test_a_statistic_reduces_each_fit():
    X, y = rows()
    model = LocalLinearRegressor(bandwidth=0.9).fit(X, y)
    whole = model.bootstrap(n_resamples=30)
    assert np.array_equal(model.bootstrap(n_resamples=30, statistic=np.max), whole.max(axis=1))
    ends = model.bootstrap(n_resamples=30, statistic=lambda fit: [fit.min(), fit.max()], max_bytes=1000)
    assert np.array_equal(ends, np.stack([whole.min(axis=1), whole.max(axis=1)], axis=1))


def stop(done, total):
    raise KeyboardInterrupt


@pytest.mark.parametrize("kind", ["wild", "residual", "pairs"])
def test_too_large_a_result_is_refused_before_any_work(kind, monkeypatch):
    model = LocalLinearRegressor(bandwidth=0.9).fit(*rows())
    monkeypatch.setattr("kernpool.smoother.Smoother.predict", stop)
    with pytest.raises(ValueError, match="1000000000 resamples of 40 numbers each need 320000000000 bytes, more than"):
        model.bootstrap(kind=kind, n_resamples=10**9)


def test_empty_windows_are_named():
    X, y = np.arange(10.0)[:, None], np.arange(10.0)
    here, both = [[3.0]], [[3.0], [50.0]]

    def drawn(empty, *data, at=here, n_resamples=30, **options):
        return (
            NadarayaWatsonRegressor("boxcar", 0.6, empty=empty)
            .fit(*data)
            .bootstrap(at, n_resamples=n_resamples, **options)
        )

    with pytest.warns(EmptyWindowWarning) as caught:
        found = drawn("nan", X, y, at=both)
    assert len(caught) == 1
    assert_array_equal(np.isnan(found), np.tile([False, True], (30, 1)))
    with pytest.warns(EmptyWindowWarning, match="resamples some window has no row"):
        assert 0 < np.isnan(drawn("nan", X, y, kind="pairs")).sum() < 30
    with pytest.warns(EmptyWindowWarning, match="1 of 2 queries .* nearest") as caught:
        assert np.isfinite(drawn("nearest", X, y, at=both, kind="pairs")).all()
    assert len(caught) == 1
    assert not drawn("zero", X, y, at=both[1:]).any()  # warnings are errors
    with pytest.raises(ValueError, match="empty"):
        drawn("raise", X, y, at=both[1:])
    # where all rows have neighbours, those of a resample need not
    with pytest.raises(ValueError, match=r"windows of resample . have no row, and empty='raise'"):
        drawn("raise", X, y, kind="pairs")


def test_chunks_that_are_refused():
    X, y = rows()
    model = LocalLinearRegressor(bandwidth=0.9).fit(open_chunks([(X, y)]))
    with pytest.raises(TypeError, match=r"bootstrap needs the rows themselves.*such as a sample of the rows"):
        model.bootstrap(X[:2], kind="pairs")
