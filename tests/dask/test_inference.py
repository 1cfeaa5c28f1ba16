"""How sure models on Dask are, and models in memory at queries on Dask."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

dask = pytest.importorskip("dask", reason="clusters need the extra 'dask'")
distributed = pytest.importorskip("distributed", reason="clusters need the extra 'dask'")
da = pytest.importorskip("dask.array", reason="clusters need the extra 'dask'")

from kernpool import LocalLinearRegressor, NadarayaWatsonRegressor, open_chunks
from kernpool.dask import open_partitions

RNG = np.random.default_rng(0)
X = RNG.uniform(size=(90, 2))
Y = np.sin(6 * X[:, 0]) + 0.2 * RNG.normal(size=90)
WEIGHT = RNG.integers(0, 3, size=90)
Q = RNG.uniform(size=(11, 2))
SAME = {"rtol": 1e-11, "atol": 1e-13}


def cut(array, rows):
    return da.from_array(array, chunks=(rows, *array.shape[1:]))


@pytest.mark.parametrize("regressor", [NadarayaWatsonRegressor, LocalLinearRegressor])
def test_queries_on_dask_of_a_model_in_memory_are_computed(regressor):
    model = regressor(bandwidth=0.2).fit(X, Y)
    found, lazy = model.confidence_interval(Q), model.confidence_interval(cut(Q, 4))
    assert_allclose([lazy.lower, lazy.upper], [found.lower, found.upper], **SAME)


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
            assert_allclose(model.predict(Q), expected, **SAME)
            model.score(cut(X, 40), cut(Y, 40))
            model.quantile(Q)
            model.conditional_distribution(Q).cdf([0.0])
            model.prediction_interval(Q)
        with pytest.warns(UserWarning, match="Sending large graph"):
            client.compute(dask.delayed(sum)([1, 2])).result()
