"""On Dask: the answer of memory, the same bits for any number of workers, and lazy where the queries are."""

import os
import pickle
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pandas
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

import kernpool

dask = pytest.importorskip("dask", reason="clusters need the extra 'dask'")
distributed = pytest.importorskip("distributed", reason="clusters need the extra 'dask'")
da = pytest.importorskip("dask.array", reason="clusters need the extra 'dask'")
frames = pytest.importorskip("dask.dataframe", reason="clusters need the extra 'dask'")
pyarrow = pytest.importorskip("pyarrow", reason="Parquet needs the extra 'arrow'")

from pyarrow import parquet

from kernpool import EmptyWindowWarning, LocalLikelihoodRegressor, NadarayaWatsonRegressor, open_chunks
from kernpool.dask import open_partitions
from kernpool.dask.pairs import compute
from kernpool.data import ArrayChunks, TableError
from tests.support.partitions import of_partitions

pool, pool_cdf, pool_quantile = map(of_partitions, (kernpool.pool, kernpool.pool_cdf, kernpool.pool_quantile))

RNG = np.random.default_rng(0)
KEY = RNG.normal(size=(3000, 2))
VALUE = 1e6 + np.sin(3.0 * KEY[:, 0]) + KEY[:, 1] ** 2
WEIGHT = RNG.integers(0, 4, size=len(KEY)).astype(float)
QUERY = RNG.normal(size=(60, 2))
CLOSE = {"rtol": 1e-12, "atol": 0.0}
SETTINGS = {"bandwidth": [0.3, 0.5]}


def cut(array, rows):
    return da.from_array(array, chunks=(rows, *array.shape[1:]))


@pytest.fixture(scope="module")
def cluster():
    """Two processes; the tests of it are slow ones, since a cluster gives up where all processors are busy."""
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0", silence_logs=50
    ) as cluster:
        yield cluster


@pytest.fixture
def client(cluster):
    with distributed.Client(cluster, set_as_default=False) as client:
        yield client


@pytest.mark.covering
@pytest.mark.parametrize("rows", [1000, 300, (0, 0, 1, 0, 2999, 0)])
@pytest.mark.parametrize("options", [{}, {"degree": 1}, {"kernel": "epanechnikov"}, {"key_weight": WEIGHT}], ids=str)
def test_any_chunking_gives_the_answer_of_memory(rows, options):
    expected = kernpool.pool(QUERY, KEY, VALUE, empty="mean", **SETTINGS, **options)
    rows = (rows,) if isinstance(rows, tuple) else rows
    if "key_weight" in options:
        options = {"key_weight": cut(WEIGHT, 999)}
    key, value = da.from_array(KEY, chunks=(rows[0] if isinstance(rows, tuple) else rows, 1)), cut(VALUE, 700)
    pooled = pool(QUERY, key, value, empty="mean", **SETTINGS, **options)
    assert isinstance(pooled, np.ndarray)
    assert_allclose(pooled, expected, **CLOSE)
    lazy = pool(cut(QUERY, 40), key, value, empty="mean", **SETTINGS, **options)
    assert isinstance(lazy, da.Array)
    assert lazy.chunks == ((40, 20),)
    assert_allclose(lazy.compute(), expected, **CLOSE)


def test_several_outputs_and_one_column_without_axis():
    key, value = KEY[:, 0], np.column_stack([VALUE, -VALUE])
    expected = kernpool.pool(QUERY[:, 0], key, value)
    assert_allclose(pool(QUERY[:, 0], cut(key, 1100), cut(value, 1100)), expected, **CLOSE)
    lazy = pool(cut(QUERY[:, 0], 100), cut(key, 1100), cut(value, 1100))
    assert lazy.shape == expected.shape
    assert_allclose(lazy.compute(), expected, **CLOSE)


@pytest.mark.parametrize("empty", ["nearest", "mean", "zero", "nan", "raise"])
@pytest.mark.filterwarnings("ignore::kernpool.EmptyWindowWarning")
def test_empty_windows_follow_the_policy(empty):
    query, options = QUERY * 3.0, {"kernel": "boxcar", "bandwidth": 0.1, "empty": empty}
    pairs, lazy = (cut(KEY, 800), cut(VALUE, 800)), cut(query, 60)
    if empty == "raise":
        with pytest.raises(ValueError, match="have no key with positive weight"):
            pool(query, *pairs, **options)
        with pytest.raises(ValueError, match="have no key with positive weight"):
            pool(lazy, *pairs, **options).compute()
        return
    expected = kernpool.pool(query, KEY, VALUE, **options)
    assert_allclose(pool(query, *pairs, **options), expected, **CLOSE)
    assert_allclose(pool(lazy, *pairs, **options).compute(), expected, **CLOSE)


def test_empty_windows_warn_here():
    with pytest.warns(EmptyWindowWarning, match="1 of 1 queries"):
        pool([100.0], cut(KEY[:, 0], 1000), cut(VALUE, 1000), kernel="boxcar")


def test_dataframes_and_rows_that_dask_does_not_count():
    frame = pandas.DataFrame({"b": KEY[:, 1], "y": VALUE, "a": KEY[:, 0], "w": WEIGHT.astype(int)})
    frame["row"] = np.arange(len(frame))
    lazy = frames.from_pandas(frame, npartitions=4)
    lazy = lazy[lazy.w >= 0]
    expected = kernpool.pool(QUERY, KEY, VALUE, key_weight=WEIGHT, **SETTINGS)
    options = {"target": "y", "features": ["a", "b"], "key_weight": "w", **SETTINGS}
    assert_allclose(pool(QUERY, lazy, **options), expected, **CLOSE)
    query = frames.from_pandas(pandas.DataFrame({"b": QUERY[:, 1], "a": QUERY[:, 0]}), npartitions=2)
    assert_allclose(pool(query, lazy, **options).compute(), expected, **CLOSE)
    sparse = lazy[lazy.row >= 1600]  # whose first two partitions are empty
    expected = kernpool.pool(QUERY, KEY[1600:], VALUE[1600:], key_weight=WEIGHT[1600:], **SETTINGS)
    assert_allclose(pool(query, sparse, **options).compute(), expected, **CLOSE)
    with pytest.raises(TypeError, match="target must name"):
        pool(QUERY, lazy)
    with pytest.raises(TableError, match="column 'b' holds"):
        pool(QUERY, lazy.assign(b=lazy.b.astype(str)), target="y")


def test_bad_input_is_told_apart():
    key, value = cut(KEY, 1000), cut(VALUE, 1000)
    gap = da.where(da.arange(6000).reshape(3000, 2).rechunk((1000, 2)) == 5001, np.nan, key)
    for given, message in (
        ((key, value[:-1]), "key has 3000 rows and value has 2999"),
        ((key, VALUE[:7]), "value has 7 rows in memory"),
        ((key,), "value is missing"),
        ((KEY, value), "so key must be one too"),
        ((key[:0], value[:0]), "the source is empty, or its weights are all zero"),
        ((gap, value), "partition 2: row 500 of key, column 1 is nan"),
        ((iter([(KEY, VALUE)]),), "can be read only once"),
    ):
        with pytest.raises((TypeError, ValueError), match=message):
            pool(QUERY, *given)
    with pytest.raises(ValueError, match="unknown kernel"):
        pool(cut(QUERY, 10), key, value, kernel="gauss")


def bits_everywhere(client, *arguments, **options):
    """Pool on both workers, on either alone, and in this process, and return what all agree on."""
    results = [pool(*arguments, **options), pool(*arguments, client=client, **options)]
    for worker in client.scheduler_info()["workers"]:
        with dask.annotate(workers=[worker]):
            results.append(pool(*arguments, client=client, **options))
    for other in results[1:]:
        assert_array_equal(other, results[0])
    return results[0]


@pytest.mark.slow
@pytest.mark.parametrize("options", [{}, {"degree": 1}, {"kernel": "boxcar", "empty": "nearest"}], ids=str)
def test_one_and_two_workers_give_the_same_bits(client, options):
    pooled = bits_everywhere(client, QUERY, cut(KEY, 300), cut(VALUE, 300), bandwidth=0.2, **options)
    assert_allclose(pooled, kernpool.pool(QUERY, KEY, VALUE, bandwidth=0.2, **options), **CLOSE)


@pytest.mark.slow
def test_workers_read_files_by_name(client, tmp_path):
    table = pyarrow.table({"a": KEY[:, 0], "b": KEY[:, 1], "y": VALUE, "w": WEIGHT})
    parquet.write_table(table, tmp_path / "pairs.parquet", row_group_size=400)
    np.save(tmp_path / "pairs.npy", np.column_stack([KEY, VALUE, WEIGHT]))
    expected = kernpool.pool(QUERY, KEY, VALUE, key_weight=WEIGHT, **SETTINGS)
    for chunks in (
        open_chunks(tmp_path / "pairs.parquet", target="y", weight="w", rows=500),
        open_chunks(tmp_path / "pairs.npy", target="2", weight="3", rows=500),
    ):
        assert_allclose(bits_everywhere(client, QUERY, chunks, **SETTINGS), expected, **CLOSE)
    lazy = pool(cut(QUERY, 60), chunks, **SETTINGS)
    assert_allclose(client.compute(lazy, retries=1).result(), expected, **CLOSE)


@pytest.mark.slow
@pytest.mark.parametrize("family", ["poisson", "binomial"])
def test_workers_fit_counts(client, family):
    """By pools at moved queries, and pair by pair."""
    mean = np.exp(KEY[:, 0]) if family == "poisson" else np.full(len(KEY), 0.3)
    counts = RNG.poisson(mean) if family == "poisson" else RNG.binomial(1, mean)
    model = LocalLikelihoodRegressor(family=family, **SETTINGS)
    expected = model.fit(KEY, counts).predict(QUERY[:5])
    pairs = open_partitions(cut(KEY, 1300), cut(counts, 3000), client=client)
    assert_allclose(model.fit(pairs).predict(QUERY[:5]), expected, rtol=1e-10)
    assert np.all(model.confidence_interval(QUERY[:5]).lower < expected)


@pytest.mark.slow
def test_killed_worker_changes_no_bit(tmp_path, cluster, client):
    blocks = 24

    def slow(block, block_info=None):
        (tmp_path / str(block_info[0]["chunk-location"][0])).touch()
        time.sleep(0.1)
        return block

    key, value = cut(KEY, len(KEY) // blocks), cut(VALUE, len(KEY) // blocks)
    expected = pool(QUERY, key, value, **SETTINGS)
    client.wait_for_workers(2, timeout=60)
    processes = client.run(os.getpid)
    done = []

    def kill():
        while len(list(tmp_path.iterdir())) < blocks // 2:
            time.sleep(0.01)
        os.kill(min(processes.values()), signal.SIGKILL)
        done.append(len(list(tmp_path.iterdir())))

    killer = threading.Thread(target=kill)
    killer.start()
    pooled = pool(QUERY, key.map_blocks(slow, dtype=float, meta=np.empty((0, 0))), value, client=client, **SETTINGS)
    killer.join()
    assert done[0] < blocks
    assert_array_equal(pooled, expected)


def fitted(*arguments, client=None, **options):
    return NadarayaWatsonRegressor(**options).fit(open_partitions(*arguments, client=client))


@pytest.mark.parametrize("weighted", [False, True])
def test_regressor_is_the_local_one(weighted):
    weight = WEIGHT if weighted else None
    local = NadarayaWatsonRegressor(bandwidth=[0.2, 0.4]).fit(KEY, VALUE, weight)
    lazy = [cut(KEY, 800), cut(VALUE, 800)] + ([cut(WEIGHT, 800)] if weighted else [])
    model = fitted(*lazy, bandwidth=[0.2, 0.4])
    assert model.bandwidth_note_ == "as given"
    assert (model.source_.rows, model.n_features_in_) == (3000, 2)
    assert_allclose(model.predict(QUERY), local.predict(QUERY), **CLOSE)
    assert isinstance(model.predict(cut(QUERY, 50)), da.Array)
    assert model.score(cut(KEY, 800), cut(VALUE, 700)) == pytest.approx(local.score(KEY, VALUE), abs=1e-9)
    with pytest.raises(ValueError, match="2 columns"):
        model.predict(cut(KEY[:, :1], 100))


def test_small_data_find_the_bandwidth_of_the_local_search():
    key, value = KEY[:150], VALUE[:150]
    local = NadarayaWatsonRegressor(bandwidth="loo").fit(key, value)
    model = fitted(cut(key, 60), cut(value, 60), bandwidth="loo")
    assert_allclose(model.bandwidth_, local.bandwidth_, rtol=1e-12)
    assert model.loo_error_ == local.loo_error_
    assert model.bandwidth_note_ == "'loo' on all 150 rows"


@pytest.mark.slow
def test_regressor_of_files_keeps_references(client, tmp_path):
    table = pyarrow.table({"a": KEY[:, 0], "b": KEY[:, 1], "y": VALUE})
    parquet.write_table(table, tmp_path / "pairs.parquet", row_group_size=400)
    model = fitted(open_chunks(tmp_path / "pairs.parquet", target="y", rows=400), bandwidth=0.3, client=client)
    assert model.source_.client is client
    assert pickle.loads(pickle.dumps(model)).source_.client is None
    assert clone(model).get_params() == model.get_params()
    assert list(model.feature_names_in_) == ["a", "b"]
    assert len(pickle.dumps(model)) < 10_000
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        pooled = model.predict(QUERY)
    assert_allclose(pooled, kernpool.pool(QUERY, KEY, VALUE, bandwidth=0.3), **CLOSE)
    again = NadarayaWatsonRegressor(bandwidth=0.3).fit(open_partitions(tmp_path / "pairs.parquet", target="y"))
    assert_allclose(again.predict(cut(QUERY, 50)).compute(), pooled, **CLOSE)


def test_regressor_of_a_dataframe():
    frame = pandas.DataFrame({"b": KEY[:, 1], "y": VALUE, "a": KEY[:, 0], "w": WEIGHT})
    lazy, query = frames.from_pandas(frame, npartitions=4), pandas.DataFrame(QUERY, columns=["a", "b"])
    expected = kernpool.pool(QUERY, KEY, VALUE, key_weight=WEIGHT, bandwidth=0.3)
    model = NadarayaWatsonRegressor(bandwidth=0.3)
    model.fit(open_partitions(lazy, target="y", key_weight="w", features=["a", "b"]))
    assert_allclose(model.predict(query), expected, **CLOSE)
    assert model.source_.rows == len(KEY)
    model.fit(lazy, "y", "w")
    assert_allclose(model.predict(query[["b", "a"]]), expected, **CLOSE)
    model.fit(lazy[["a", "b"]], lazy.y, lazy.w)
    assert_allclose(model.predict(query), expected, **CLOSE)
    assert_allclose(model.predict(frames.from_pandas(query, npartitions=2)).compute(), expected, **CLOSE)
    numbered = lazy.rename(columns={"a": 2, "b": 1})
    model.fit(numbered[[2, 1]], lazy.y, lazy.w)
    query = query.set_axis([2, 1], axis=1)
    for asked in (query, query[[1, 2]].assign(more=0.0)):  # of Dask frames the columns are taken by their labels
        assert_allclose(model.predict(frames.from_pandas(asked, npartitions=1)).compute(), expected, **CLOSE)
    with pytest.raises(ValueError, match="another order than in fit"):
        model.predict(query[[1, 2]])
    with pytest.raises(ValueError, match=r"missing are \[2\]"):
        model.predict(frames.from_pandas(query[[1]], npartitions=1))


def test_queries_in_memory_are_compared_by_the_names_of_a_dataframe():
    frame = pandas.DataFrame({"a": KEY[:, 0], "b": KEY[:, 1], "y": VALUE})
    lazy, query = frames.from_pandas(frame, npartitions=3), pandas.DataFrame(QUERY, columns=["a", "b"])
    for function, options in ((pool, {}), (pool_quantile, {"levels": 0.5}), (pool_cdf, {"y": 1e6})):
        one, other = (function(q, lazy, target="y", **options, **SETTINGS) for q in (query, query[["b", "a"]]))
        assert_array_equal(one, other)


def test_regressor_refuses_what_it_cannot_do():
    key, value = cut(KEY, 1000), cut(VALUE, 1000)
    for options, message in (
        ({"bandwidth": "lou"}, "bandwidth must be"),
        ({"search": {"rows": 1}}, r"search\['rows'\] must be"),
        ({"empty": "none"}, "empty must be"),
    ):
        with pytest.raises(ValueError, match=message):
            fitted(key, value, **options)
    with pytest.raises(ValueError, match=r"ordered must be None for rows that are not in memory.*got \['a'\]"):
        fitted(key, value, ordered=["a"])
    with pytest.raises(ValueError, match="all partitions are empty"):
        fitted(key[:0], value[:0], bandwidth=1.0)
    with pytest.raises(TypeError, match="leave y and sample_weight out"):
        NadarayaWatsonRegressor().fit(open_partitions(key, value), VALUE)


@pytest.mark.slow
@pytest.mark.parametrize("lazy", [False, True])
def test_tasks_are_tried_again(lazy, tmp_path, client):
    class Flaky(ArrayChunks):
        def __iter__(self):
            if len(list(folder.iterdir())) < 3:
                (folder / str(len(list(folder.iterdir())))).touch()
                raise OSError("the network is down")
            return super().__iter__()

        def parts(self):
            return [self]

    folder = tmp_path
    query = cut(QUERY, 60) if lazy else QUERY
    pooled = pool(query, Flaky(KEY, VALUE), client=client, **SETTINGS)
    # Dask forgets retries where it fuses tasks of an array, unless they are asked for as here.
    pooled = client.compute(pooled, retries=3).result() if lazy else pooled
    assert_allclose(pooled, kernpool.pool(QUERY, KEY, VALUE, **SETTINGS), **CLOSE)
    for file in folder.iterdir():
        file.unlink()
    with pytest.raises(OSError, match="the network is down"):
        compute([pool(query, Flaky(KEY, VALUE), client=client, retries=0, **SETTINGS)], client, 0)


def test_without_dask_the_extra_is_named():
    script = """
import sys

class Nowhere:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "dask":
            raise ModuleNotFoundError(f"No module named {name!r}")

sys.meta_path.insert(0, Nowhere())
try:
    from kernpool.dask import open_partitions
except ImportError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert 'needs Dask, which is not installed; install it with: pip install "kernpool[dask]"' in done.stdout


def test_a_client_that_is_none_is_refused():
    """An address is no client: without an error the work would run here, and not on that cluster."""
    X = da.from_array(np.linspace(0.0, 1.0, 20), chunks=10)
    for client in ("tcp://10.0.0.1:8786", 3):
        with pytest.raises(TypeError, match=r"client must be a distributed.Client or None, got .*distributed.Client"):
            pool([0.5], X, X, bandwidth=0.1, client=client)
