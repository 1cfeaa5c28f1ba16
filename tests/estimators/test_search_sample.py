"""The bandwidth of rows that do not fit into memory: the same from chunks and from a cluster, to the last bit."""

import numpy as np
import pytest

dask = pytest.importorskip("dask", reason="clusters need the extra 'dask'")
da = pytest.importorskip("dask.array", reason="clusters need the extra 'dask'")

from kernpool import LocalPolynomialRegressor, NadarayaWatsonRegressor, open_chunks
from kernpool.dask import open_partitions

RNG = np.random.default_rng(1)
X = RNG.normal(size=(3000, 2))
Y = np.sin(2.0 * X[:, 0]) + 0.1 * RNG.normal(size=3000)
WEIGHT = RNG.integers(0, 3, 3000).astype(float)
WEIGHT[:700] = 0.0


@pytest.fixture(autouse=True)
def without_threads():
    with dask.config.set(scheduler="synchronous"):
        yield


@pytest.fixture
def path(tmp_path):
    pyarrow = pytest.importorskip("pyarrow", reason="Parquet needs the extra 'arrow'")
    parquet = pytest.importorskip("pyarrow.parquet", reason="Parquet needs the extra 'arrow'")
    table = pyarrow.table({"a": X[:, 0], "b": X[:, 1], "y": Y, "w": WEIGHT})
    parquet.write_table(table, tmp_path / "rows.parquet", row_group_size=450)
    return tmp_path / "rows.parquet"


def bandwidth_of(model):
    return model.bandwidth_.tolist(), model.bandwidth_note_


@pytest.mark.filterwarnings("ignore::kernpool.RepeatedRowsWarning")  # weights up to 3
@pytest.mark.covering
@pytest.mark.parametrize("weight", [None, "w"])
@pytest.mark.parametrize("options", [{}, {"bandwidth": "scott"}, {"search": {"rows": 200, "random_state": 7}}], ids=str)
def test_files_give_the_same_bandwidth_here_and_on_a_cluster(options, weight, path):
    options = {"search": {"rows": 200}, **options}
    here = NadarayaWatsonRegressor(**options).fit(path, "y", weight)
    there = NadarayaWatsonRegressor(**options).fit(open_partitions(path, None, weight, target="y"))
    assert bandwidth_of(there) == bandwidth_of(here)
    rows = 3000 if weight is None else np.count_nonzero(WEIGHT)
    assert f"on a sample of 200 of {rows} rows" in here.bandwidth_note_


@pytest.mark.filterwarnings("ignore::kernpool.RepeatedRowsWarning")  # weights of 2 and 3
@pytest.mark.parametrize("rows", [3000, 1100, 37])
def test_the_bandwidth_does_not_depend_on_partitions(rows):
    data = X, np.column_stack([Y, 100.0 * X[:, 1]]), WEIGHT
    expected = NadarayaWatsonRegressor(search={"rows": 150}).fit(open_chunks([data]))
    arrays = (da.from_array(array, chunks=(rows, *array.shape[1:])) for array in data)
    assert bandwidth_of(NadarayaWatsonRegressor(search={"rows": 150}).fit(*arrays)) == bandwidth_of(expected)


@pytest.mark.filterwarnings("ignore::kernpool.RepeatedRowsWarning")  # weights of 2
@pytest.mark.slow
def test_few_rows_of_positive_weight_are_all_drawn():
    """Fewer than are asked for, although there are more rows."""
    weight = np.zeros(3000)
    weight[::20] = 2.0
    here = NadarayaWatsonRegressor(bandwidth="loo", search={"rows": 400}).fit(open_chunks([(X, Y, weight)]))
    arrays = (da.from_array(array, chunks=(800, *array.shape[1:])) for array in (X, Y, weight))
    there = NadarayaWatsonRegressor(bandwidth="loo", search={"rows": 400}).fit(*arrays)
    assert bandwidth_of(there) == bandwidth_of(here)
    assert here.bandwidth_note_ == "'loo' on all 150 rows"
    assert there.loo_error_ == here.loo_error_
    alone = NadarayaWatsonRegressor(bandwidth="loo").fit(X[::20], Y[::20], weight[::20])
    np.testing.assert_array_equal(there.bandwidth_, alone.bandwidth_)


def test_no_rows_of_positive_weight():
    arrays = [da.from_array(array, chunks=(900, *array.shape[1:])) for array in (X, Y, np.zeros(3000))]
    with pytest.raises(ValueError, match="there are no pairs of positive weight"):
        NadarayaWatsonRegressor(search={"rows": 200}).fit(*arrays)


@pytest.mark.parametrize(("bandwidth", "chunked"), [("regularised", False), ("loo", False), ("loo", True)])
def test_arrays_and_chunks_are_corrected_by_one_rule(bandwidth, chunked, generator):
    """Only of columns that play a role; the factor is in the note."""
    inputs = generator.normal(size=(1500, 2))
    outputs = np.sin(2 * inputs[:, 0]) + 0.1 * generator.normal(size=1500)
    rows = (open_chunks(inputs, outputs),) if chunked else (inputs, outputs)
    model = NadarayaWatsonRegressor(bandwidth=bandwidth, search={"rows": 200}).fit(*rows)
    matters = model.relevance_ > 0
    factor = (200 / 1500) ** (1 / (4 + np.count_nonzero(matters)))
    expected = np.where(matters, factor, 1.0) * model.bandwidth_search_.bandwidth
    np.testing.assert_allclose(model.bandwidth_, expected, rtol=1e-12)
    assert f"times {factor:.6g}" in model.bandwidth_note_
    assert matters.tolist() == [True, not chunked]  # of noise in a sample of its own


def test_the_rate_of_quadratics_is_their_own(generator):
    """Their squared bias is of order h^8."""
    x = generator.normal(size=(600, 1))
    model = LocalPolynomialRegressor(degree=2, search={"rows": 150}).fit(x, np.sin(2 * x[:, 0]))
    expected = model.bandwidth_search_.bandwidth * (150 / 600) ** (1 / (8 + 1))
    np.testing.assert_allclose(model.bandwidth_, expected, rtol=1e-12)
    assert model.bandwidth_note_.endswith("rows^(-1/(8 + d))")


def test_a_search_on_some_rows_of_an_array_is_near_that_on_all():
    generator = np.random.default_rng(2)
    inputs = generator.uniform(-1, 1, size=(3000, 2))
    outputs = np.sin(4 * inputs[:, 0]) * np.cos(3 * inputs[:, 1]) + 0.3 * generator.normal(size=3000)
    of_all = NadarayaWatsonRegressor().fit(inputs, outputs).bandwidth_
    sample = NadarayaWatsonRegressor(search={"rows": 300}).fit(inputs, outputs)
    np.testing.assert_allclose(sample.bandwidth_, of_all, rtol=0.25)
    assert np.all(sample.bandwidth_search_.bandwidth > 1.25 * of_all)
