"""Estimators on chunks: the predictions of the rows in memory, from rows that are elsewhere."""

from importlib.util import find_spec

import numpy as np
import pytest
from sklearn.base import clone

from kernpool import LocalLinearRegressor, NadarayaWatsonRegressor, open_chunks
from kernpool.data import TableError
from kernpool.data.chunks.base import seed_of
from kernpool.pooling import ChunkPairs

needs_pyarrow = pytest.mark.skipif(not find_spec("pyarrow"), reason="Parquet needs the extra 'arrow'")


@pytest.fixture
def rows(generator):
    X = generator.normal(size=(700, 2))
    return X, np.sin(2 * X[:, 0]) + X[:, 1] + 0.1 * generator.normal(size=700), generator.integers(0, 4, 700) * 1.0


@pytest.fixture
def path(rows, tmp_path):
    X, y, weight = rows
    table = np.rec.fromarrays([*X.T, y, weight], names="a,b,y,w")
    np.save(tmp_path / "rows.npy", table.view(np.ndarray))
    return tmp_path / "rows.npy"


def named(query):
    pandas = pytest.importorskip("pandas", reason="frames need pandas")
    return pandas.DataFrame(query, columns=["a", "b"])


def test_a_file_with_the_name_of_the_target(rows, path, generator):
    X, y, weight = rows
    query = generator.normal(size=(20, 2))
    model = NadarayaWatsonRegressor(bandwidth=0.5).fit(path, "y", "w")
    assert model.n_features_in_ == 2
    assert model.feature_names_in_.tolist() == ["a", "b"]
    expected = NadarayaWatsonRegressor(bandwidth=0.5).fit(X, y, weight).predict(query)
    np.testing.assert_allclose(model.predict(named(query)), expected, rtol=1e-12)
    with pytest.raises(ValueError, match="another order than in fit"):
        model.predict(named(query)[["b", "a"]])


def test_a_plain_matrix_has_no_names(rows, tmp_path):
    X, y, _ = rows
    np.save(tmp_path / "plain.npy", np.c_[X, y])
    model, known = (NadarayaWatsonRegressor(bandwidth=0.5) for _ in range(2))
    model.fit(str(tmp_path / "plain.npy"), "2")
    assert not hasattr(model, "feature_names_in_")
    np.testing.assert_allclose(model.predict(X[:5]), known.fit(X, y).predict(X[:5]), rtol=1e-12)


@needs_pyarrow
def test_parquet_and_streams(rows, tmp_path):
    import pyarrow as pa
    from pyarrow import parquet

    X, y, _ = rows
    table = pa.table({"a": X[:, 0], "b": X[:, 1], "y": y})
    parquet.write_table(table, tmp_path / "rows.parquet", row_group_size=100)
    expected = NadarayaWatsonRegressor(bandwidth=0.5).fit(X, y).predict(X[:9])
    for source in (tmp_path / "rows.parquet", str(tmp_path / "rows.parquet"), table):
        model = NadarayaWatsonRegressor(bandwidth=0.5).fit(source, "y")
        assert model.feature_names_in_.tolist() == ["a", "b"]
        np.testing.assert_allclose(model.predict(named(X[:9])), expected, rtol=1e-12)
    with pytest.raises(ValueError, match="which an iterator does not allow"):
        NadarayaWatsonRegressor(bandwidth=0.5).fit(table.to_reader(), "y")


@pytest.mark.parametrize("bandwidth", ["loo", "aicc", "scott"])
def test_few_rows_give_the_bandwidth_of_the_rows_in_memory(bandwidth, rows):
    X, y, _ = (part[:150] for part in rows)
    expected = NadarayaWatsonRegressor(bandwidth=bandwidth).fit(X, y)
    model = NadarayaWatsonRegressor(bandwidth=bandwidth).fit(open_chunks(X, y, rows=40))
    np.testing.assert_array_equal(model.bandwidth_, expected.bandwidth_)
    assert getattr(model, "loo_error_", None) == getattr(expected, "loo_error_", None)
    assert model.bandwidth_note_ == f"{bandwidth!r} on all 150 rows"


@pytest.mark.parametrize("name", ["loo", "silverman"])
def test_many_rows_give_that_of_a_sample_at_the_rate_of_all(name, generator):
    x = generator.normal(size=3000)
    y = np.sin(2 * x) + 0.3 * generator.normal(size=3000)
    make = NadarayaWatsonRegressor(bandwidth=name, search={"rows": 300, "random_state": 3})
    fits = [clone(make).fit(open_chunks(x, y, rows=size)) for size in (3000, 701, 64)]
    for model in fits[1:]:
        np.testing.assert_array_equal(model.bandwidth_, fits[0].bandwidth_)
    sample = ChunkPairs(open_chunks(x, y, rows=500)).sample(300, seed_of(3))
    alone = NadarayaWatsonRegressor(bandwidth=name, search={"random_state": 3}).fit(sample.key, sample.value[:, 0])
    np.testing.assert_allclose(fits[0].bandwidth_, alone.bandwidth_ * 0.1**0.2, rtol=1e-12)
    assert getattr(fits[0], "loo_error_", None) == getattr(alone, "loo_error_", None)
    assert "on a sample of 300 of 3000 rows (random_state=3)" in fits[0].bandwidth_note_
    assert (
        fits[0].bandwidth_
        != clone(make).set_params(search={"rows": 300, "random_state": 4}).fit(open_chunks(x, y)).bandwidth_
    )


def test_samples_are_uniform_and_leave_rows_of_no_weight_out():
    x, hits = np.arange(40.0), np.zeros(40)
    weight = np.where(x < 10, 0.0, 2.0)
    for seed in range(400):
        sample = ChunkPairs(open_chunks(x, x, weight, rows=7)).sample(6, seed_of(seed))
        assert sample.rows == 30
        assert np.all(np.diff(sample.key[:, 0]) > 0)
        hits[sample.key[:, 0].astype(int)] += 1
    assert not hits[:10].any()
    # 400 draws of 6 in 30: 80 each, with standard deviation 8
    assert np.all(np.abs(hits[10:] - 80) < 40)
    assert np.std(hits[10:]) < 14


def test_progress_counts_rows_of_the_sample_and_of_predict():
    seen = []
    x = np.arange(50.0)
    pairs = ChunkPairs(open_chunks(x, x, rows=20))
    pairs.sample(5, 0, progress=lambda *report: seen.append(report))
    assert seen == [(20, 50), (40, 50), (50, 50)]


def test_a_refit_forgets_the_other_kind(rows):
    X, y, _ = rows
    model = NadarayaWatsonRegressor(bandwidth=0.5).fit(open_chunks(X, y))
    model.fit(X[:100], y[:100])
    assert model.source_ is None
    assert not hasattr(model, "bandwidth_note_")
    model.attention_weights(X[:2])
    model.fit(open_chunks(X, y))
    assert not hasattr(model, "key_")
    expected = model.predict(X[:5])
    with pytest.raises(ValueError, match="are empty"):
        model.fit(open_chunks([]))
    np.testing.assert_array_equal(model.predict(X[:5]), expected)  # a failed refit leaves the old fit whole


def test_arguments_that_do_not_go_together(rows, path, tmp_path):
    X, y, weight = rows
    chunks, model = open_chunks(X, y), NadarayaWatsonRegressor(bandwidth=0.5)
    for arguments, error, message in (
        ((chunks, y), TypeError, "chunks and partitions bring their values and weights"),
        ((path, y), TypeError, r"y must name the column of .*rows\.npy"),
        ((path, "y", weight), TypeError, "sample_weight must name a column"),
        ((X, "y"), TypeError, "names a column, so X must be a file"),
        ((path, "z"), TableError, "no column 'z'"),
        ((tmp_path / "nowhere.parquet", "y"), FileNotFoundError, "does not exist"),
        ((X,), ValueError, "requires y to be passed"),
    ):
        with pytest.raises(error, match=message):
            model.fit(*arguments)


def test_what_is_no_number_is_found_by_the_first_pass(rows):
    X, y, _ = rows
    y = y.copy()
    y[333] = np.nan
    with pytest.raises(TableError, match="row 333 of value is nan"):
        NadarayaWatsonRegressor().fit(open_chunks(X, y, rows=100))


def test_slopes_are_those_of_arrays(rows):
    X, y, _ = rows
    slopes = [NadarayaWatsonRegressor(bandwidth=0.5).fit(*given).get_prediction(X[:9]).slope for given in (
        (open_chunks([(X[:300], y[:300]), (X[300:], y[300:])]),), (X, y))]  # fmt: skip
    np.testing.assert_allclose(*slopes, rtol=1e-9)


def test_distributions_that_take_the_rows_themselves(rows):
    X, y, _ = rows
    chunks = open_chunks([(X, y)])
    model, lines = (kind(bandwidth=0.5).fit(chunks) for kind in (NadarayaWatsonRegressor, LocalLinearRegressor))
    for call in (
        lambda: model.conditional_distribution(X[:3]).crps(y[:3]),
        lambda: model.conditional_distribution(None),
        lambda: model.quantile(X[:3], 0.5, y_bandwidth=0.1),
        lambda: lines.quantile(X[:3]),
    ):
        with pytest.raises(TypeError, match="needs the rows themselves"):
            call()
