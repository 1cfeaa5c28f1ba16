"""Columns of Dask frames, of every type that pandas has: numbers as in memory, or refused by their names."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.base import clone

dask = pytest.importorskip("dask", reason="clusters need the extra 'dask'")
pytest.importorskip("distributed", reason="clusters need the extra 'dask'")
pandas = pytest.importorskip("pandas", reason="frames need pandas")
frames = pytest.importorskip("dask.dataframe", reason="frames need the extra 'dask'")

from kernpool import NadarayaWatsonRegressor
from kernpool.data import TableError

ROWS = 30


KINDS = {
    "bool": lambda random: random.random(ROWS) < 0.4,
    "boolean": lambda random: pandas.array(random.random(ROWS) < 0.4, dtype="boolean"),
    "double[pyarrow]": lambda random: pandas.array(random.random(ROWS), dtype="double[pyarrow]"),
    "category": lambda random: pandas.Categorical(random.integers(2, 5, ROWS)),
}


@pytest.mark.parametrize("kind", KINDS)
def test_columns_of_every_type_are_numbers(kind, generator):
    """The same as in memory, alone and next to others, whether outputs are a column or a series."""
    if "pyarrow" in kind:
        pytest.importorskip("pyarrow", reason="types of Arrow in pandas")
    cells = KINDS[kind](generator)
    x, y = generator.random(ROWS), pandas.Series(generator.random(ROWS), name="y")
    numbers = np.asarray(cells.tolist() if hasattr(cells, "tolist") else list(cells), dtype=np.float64)
    for frame, key in (
        (pandas.DataFrame({"c": cells, "x": x}), np.column_stack([numbers, x])),
        (pandas.DataFrame({"c": cells}), numbers[:, None]),
    ):
        expected = NadarayaWatsonRegressor(bandwidth=0.5).fit(key, y).predict(key)
        lazy = frames.from_pandas(frame, npartitions=3)
        model = NadarayaWatsonRegressor(bandwidth=0.5)
        for fitted in (
            model.fit(lazy, frames.from_pandas(y, npartitions=3)),
            clone(model).fit(frames.from_pandas(frame.assign(y=y), npartitions=3), "y"),
        ):
            assert_allclose(fitted.predict(lazy).compute(), expected, rtol=1e-12)
    flag = pandas.Series(cells == cells[0], name="y")
    lazy, key = frames.from_pandas(frame, npartitions=3), numbers[:, None]
    found = model.fit(lazy, frames.from_pandas(flag, npartitions=3)).predict(lazy)
    expected = NadarayaWatsonRegressor(bandwidth=0.5).fit(key, flag.to_numpy(dtype=float)).predict(key)
    assert_allclose(found.compute(), expected, rtol=1e-12)


@pytest.mark.parametrize("cells", [["a", "b"], pandas.Categorical(["a", "b"])])
def test_text_is_refused_by_its_column(cells):
    lazy = frames.from_pandas(pandas.DataFrame({"side": cells, "x": [1.0, 2.0]}), npartitions=1)
    for arguments in ((lazy, lazy["x"]), (lazy, "x")):
        with pytest.raises(TableError, match=r"column 'side' holds (string|category), not real numbers; leave it out"):
            NadarayaWatsonRegressor(bandwidth=1.0).fit(*arguments)


def test_labels_in_another_order_are_refused():
    lazy = frames.from_pandas(pandas.DataFrame({"x": [0.0, 9.0], "y": [2.0, 3.0]}, index=["a", "b"]), npartitions=1)
    x, y, turned = lazy[["x"]], lazy["y"], lazy["y"].map_partitions(lambda part: part[::-1])
    model = NadarayaWatsonRegressor(bandwidth=1.0)
    for given in ((x, turned), (x, y, turned)):
        with pytest.raises(ValueError, match=r"other row labels than key, .* pass \w+\.to_dask_array\(\) if"):
            model.fit(*given)
    assert model.fit(x, turned.to_dask_array()).predict(x).compute()[0] == 3.0
