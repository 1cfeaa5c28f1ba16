"""How sure models on Dask are, and models in memory at queries on Dask."""

import warnings

import numpy as np
import pytest

dask = pytest.importorskip("dask", reason="clusters need the extra 'dask'")
distributed = pytest.importorskip("distributed", reason="clusters need the extra 'dask'")
da = pytest.importorskip("dask.array", reason="clusters need the extra 'dask'")

from kernpool import (
    EmptyWindowWarning,
    LocalLinearRegressor,
    NadarayaWatsonRegressor,
    open_chunks,
)
from kernpool.dask import open_partitions

RNG = np.random.default_rng(0)
X = RNG.uniform(size=(90, 2))
Y = np.sin(6 * X[:, 0]) + 0.2 * RNG.normal(size=90)
WEIGHT = RNG.integers(0, 3, size=90)
Q = RNG.uniform(size=(11, 2))
SAME = {"rtol": 1e-11, "atol": 1e-13}


def cut(array, rows):
    return da.from_array(array, chunks=(rows, *array.shape[1:]))


@pytest.fixture(autouse=True)
def without_threads():
    with dask.config.set(scheduler="synchronous"):
        yield


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("rows", [40, 90, (0, 17, 0, 73)])
def test_resamples_are_those_of_memory(weighted, rows):
    local = NadarayaWatsonRegressor(bandwidth=0.2).fit(X, Y, WEIGHT if weighted else None)
    expected = local.bootstrap(Q, n_resamples=13, kind="poisson", random_state=4)
    pairs = [cut(X, rows), cut(Y, 33), *([cut(WEIGHT, 50)] if weighted else [])]
    model = NadarayaWatsonRegressor(bandwidth=0.2).fit(*pairs)
    np.testing.assert_allclose(model.bootstrap(Q, n_resamples=13, kind="poisson", random_state=4), expected, **SAME)
    tops = model.bootstrap(Q, lambda fit: fit.max(), n_resamples=13, kind="poisson", random_state=4)
    np.testing.assert_allclose(tops, expected.max(axis=1), **SAME)


def test_several_outputs_and_empty_windows():
    both = np.c_[Y, -Y]
    local = NadarayaWatsonRegressor(bandwidth=0.2).fit(X, both)
    model = NadarayaWatsonRegressor(bandwidth=0.2).fit(cut(X, 40), cut(both, 40))
    expected = local.bootstrap(Q, n_resamples=5, kind="poisson")
    np.testing.assert_allclose(model.bootstrap(Q, n_resamples=5, kind="poisson"), expected, **SAME)
    model = NadarayaWatsonRegressor("boxcar", bandwidth=0.05, empty="nan").fit(cut(X, 40), cut(Y, 40))
    with pytest.warns(EmptyWindowWarning, match="resamples some window has no row"):
        assert np.isnan(model.bootstrap(Q, n_resamples=3, kind="poisson")).any()
    for empty in ("nearest", "mean"):
        model.set_params(empty=empty)
        with pytest.warns(EmptyWindowWarning, match="resamples some window has no row.* larger bandwidth"):
            found = model.bootstrap(Q, n_resamples=3, kind="poisson")
        local = NadarayaWatsonRegressor("boxcar", bandwidth=0.05, empty=empty).fit(X, Y)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", EmptyWindowWarning)
            expected = local.bootstrap(Q, n_resamples=3, kind="poisson")
        assert np.isnan(found).any()
        np.testing.assert_allclose(found[~np.isnan(found)], expected[~np.isnan(found)], **SAME)
    model.set_params(empty="raise")
    with pytest.raises(ValueError, match="have no row, and empty='raise'; use a larger bandwidth"):
        model.bootstrap(Q, n_resamples=3, kind="poisson")


def test_what_resamples_need():
    model = NadarayaWatsonRegressor(bandwidth=0.2).fit(cut(X, 40), cut(Y, 40))
    np.testing.assert_array_equal(model.predict(cut(Q, 4), return_std=True), model.predict(Q, return_std=True))
    for kind in ("wild", "residual", "pairs"):
        with pytest.raises(ValueError, match=f"kind='{kind}' needs all rows at once.*use kind='poisson'"):
            model.bootstrap(Q, kind=kind)
    with pytest.raises(ValueError, match="kind must be one of"):
        model.bootstrap(Q, kind="luck")
    options = {"n_resamples": 3, "kind": "poisson"}
    np.testing.assert_array_equal(model.bootstrap(cut(Q, 4), **options), model.bootstrap(Q, **options))
    with pytest.raises(ValueError, match="expecting 2 features"):
        model.bootstrap(Q[:, :1], kind="poisson")
    with pytest.raises(ValueError, match="more than max_bytes=80"):
        model.bootstrap(Q, kind="poisson", max_bytes=80)
    with pytest.raises(ValueError, match="must be whole numbers"):
        model.fit(cut(X, 40), cut(Y, 40), cut(0.5 * WEIGHT, 40)).bootstrap(Q, n_resamples=3, kind="poisson")


@pytest.mark.parametrize("regressor", [NadarayaWatsonRegressor, LocalLinearRegressor])
def test_queries_on_dask_of_a_model_in_memory_are_computed(regressor):
    model = regressor(bandwidth=0.2).fit(X, Y)
    found, lazy = model.confidence_interval(Q), model.confidence_interval(cut(Q, 4))
    np.testing.assert_allclose([lazy.lower, lazy.upper], [found.lower, found.upper], **SAME)


@pytest.mark.slow
def test_a_cluster_gives_the_bits_of_one_process():
    model = NadarayaWatsonRegressor(bandwidth=0.2).fit(cut(X, 30), cut(Y, 30))
    here = model.bootstrap(Q, n_resamples=9, kind="poisson")
    local = NadarayaWatsonRegressor(bandwidth=0.2).fit(X, Y)
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0", silence_logs=50) as cluster,
        distributed.Client(cluster, set_as_default=False) as client,
    ):
        model.fit(open_partitions(cut(X, 30), cut(Y, 30), client=client))
        np.testing.assert_array_equal(model.bootstrap(Q, n_resamples=9, kind="poisson"), here)
        error = cut(Q, 4).map_blocks(lambda q: local.get_prediction(q).standard_error, drop_axis=1, dtype=float)
        np.testing.assert_allclose(client.compute(error).result(), local.get_prediction(Q).standard_error, **SAME)


@pytest.mark.slow
def test_what_dask_recommends_of_our_graphs_is_not_told_to_the_caller():
    """Of rows in memory graphs are large; warnings are errors here. The caller's own graphs warn as before."""
    options = {"processes": False, "protocol": "tcp", "host": "127.0.0.1", "dashboard_address": None}
    with (
        distributed.LocalCluster(n_workers=1, threads_per_worker=1, silence_logs=50, **options) as cluster,
        distributed.Client(cluster, set_as_default=False) as client,
        dask.config.set({"distributed.admin.large-graph-warning-threshold": 1}),
    ):
        for rows in ([open_chunks(X, Y, rows=40)], [cut(X, 40), cut(Y, 40)]):
            model = NadarayaWatsonRegressor(bandwidth=0.5).fit(open_partitions(*rows, client=client))
            expected = NadarayaWatsonRegressor(bandwidth=0.5).fit(X, Y).predict(Q)
            np.testing.assert_allclose(model.predict(Q), expected, **SAME)
            model.score(cut(X, 40), cut(Y, 40))
            model.quantile(Q)
            model.conditional_distribution(Q).cdf([0.0])
            model.prediction_interval(Q)
            model.bootstrap(Q, n_resamples=9, kind="poisson")
        with pytest.warns(UserWarning, match="Sending large graph"):
            client.compute(dask.delayed(sum)([1, 2])).result()
