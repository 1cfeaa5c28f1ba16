"""Models that refer to their rows: what is written, and what is refused before anything is believed."""

import json
import os

import numpy as np
import pytest

from kernpool import LocalLinearRegressor, NadarayaWatsonRegressor, load_model, open_chunks, save_model
from kernpool.data import TableError
from kernpool.data.model_format import ModelFileError, checksum

QUERY = np.linspace(-1, 1, 7)[:, None]


@pytest.fixture
def data(generator, tmp_path):
    x = generator.normal(size=20_000)
    np.save(tmp_path / "rows.npy", np.c_[x, np.sin(x), generator.integers(0, 2, 20_000)])
    return tmp_path / "rows.npy"


@pytest.fixture
def model(data):
    return NadarayaWatsonRegressor(max_search_rows=100).fit(data, "1", "2")


@pytest.fixture
def folder(model, tmp_path):
    save_model(model, tmp_path / "model")
    return tmp_path / "model"


def edit(folder, **entries):
    """Change ``model.json`` as somebody would who knows how to make the checksum."""
    header = json.loads((folder / "model.json").read_text()) | entries
    header.pop("checksum")
    (folder / "model.json").write_text(json.dumps(header | {"checksum": checksum(header)}))


def test_a_reference_and_not_the_rows(model, folder, data):
    assert sum(path.stat().st_size for path in folder.iterdir()) < 5_000
    assert not [path for path in folder.iterdir() if path.stem in ("key_", "value_")]
    header = json.loads((folder / "model.json").read_text())
    assert header["chunks"]["path"] == str(data.resolve())
    assert (header["features"], header["target"]) == (["0"], "1")
    for memory in (None, 1 << 20):
        again = load_model(folder, memory=memory)
        np.testing.assert_allclose(again.predict(QUERY), model.predict(QUERY), rtol=1e-12)
        assert again.get_params() == model.get_params()
        assert (again.bandwidth_note_, again.loo_error_) == (model.bandwidth_note_, model.loo_error_)
        assert (again.n_features_in_, hasattr(again, "key_")) == (1, False)


def test_the_fingerprint_is_that_of_the_fit(data, tmp_path):
    whole = data.read_bytes()
    model = NadarayaWatsonRegressor(bandwidth=0.5).fit(data, "1")
    data.write_bytes(whole[:-1] + b"!")
    save_model(model, tmp_path / "model")
    with pytest.raises(TableError, match="not the file that the model was fitted to"):
        load_model(tmp_path / "model")
    data.write_bytes(whole)
    save_model(load_model(tmp_path / "model"), tmp_path / "again")
    load_model(tmp_path / "again")


def test_parquet_with_names(tmp_path, generator):
    pa = pytest.importorskip("pyarrow", reason="Parquet needs the extra 'arrow'")
    from pyarrow import parquet

    (tmp_path / "rows").mkdir()
    for i in range(3):
        a, b = generator.normal(size=(2, 50))
        parquet.write_table(pa.table({"a": a, "b": b, "y": a + b}), tmp_path / "rows" / f"{i}.parquet")
    model = LocalLinearRegressor(bandwidth=0.5).fit(tmp_path / "rows", "y")
    save_model(model, tmp_path / "model")
    again = load_model(tmp_path / "model")
    assert again.feature_names_in_.tolist() == ["a", "b"]
    frame = pytest.importorskip("pandas", reason="frames need pandas").DataFrame({"a": [0.0, 1.0], "b": [1.0, 0.0]})
    np.testing.assert_array_equal(again.predict(frame), model.predict(frame))
    parquet.write_table(pa.table({"a": a, "b": b, "y": a}), tmp_path / "rows" / "3.parquet")
    with pytest.raises(TableError, match=r"3\.parquet was not there when the model was fitted"):
        load_model(tmp_path / "model")
    (tmp_path / "rows" / "3.parquet").unlink()
    (tmp_path / "rows" / "1.parquet").unlink()
    with pytest.raises(TableError, match=r"1\.parquet is missing"):
        load_model(tmp_path / "model")


def test_a_data_file_that_changed(folder, data):
    whole = data.read_bytes()
    for other in (whole[:-8], whole + bytes(8), whole[:200] + bytes(8) + whole[208:], b"", b"not an array"):
        data.write_bytes(other)
        with pytest.raises(TableError, match=r"rows\.npy"):
            load_model(folder)
    data.write_bytes(whole)
    os.utime(data)  # a copy will do
    load_model(folder)
    data.unlink()
    with pytest.raises(TableError, match="does not exist; put the data back, or fit again"):
        load_model(folder)


class Bomb:
    def __reduce__(self):
        return pytest.fail, ("code of a file was run",)


def test_no_code_is_run(folder, data):
    header = json.loads((folder / "model.json").read_text())
    np.save(data, np.array([Bomb()], dtype=object), allow_pickle=True)
    with pytest.raises(TableError, match=r"rows\.npy is truncated or no \.npy file of numbers"):
        load_model(folder)
    np.save(folder / "bandwidth_.npy", np.array([Bomb()], dtype=object), allow_pickle=True)
    with pytest.raises((ModelFileError, TableError)):
        load_model(folder)
    # even with a digest to match
    from kernpool.data.atomic_files import sha256

    np.save(data, np.zeros((3, 3)))
    save_model(NadarayaWatsonRegressor(bandwidth=1.0).fit([[0.0]], [0.0]), folder, force=True)
    header = json.loads((folder / "model.json").read_text())
    np.save(folder / "key_.npy", np.array([Bomb()], dtype=object), allow_pickle=True)
    header["arrays"]["key_"]["sha256"] = sha256(folder / "key_.npy")
    edit(folder, arrays=header["arrays"])
    with pytest.raises(ModelFileError, match=r"key_\.npy is no \.npy file of numbers"):
        load_model(folder)


def test_an_edit_by_hand(folder):
    """Every entry of a header is edited in `test_edited_headers.py`."""
    path = folder / "model.json"
    whole = path.read_text()
    path.write_text(whole.replace("rows.npy", "cows.npy"))
    with pytest.raises(ModelFileError, match="its checksum is wrong"):
        load_model(folder)
    path.write_text(whole)
    chunks = json.loads(whole)["chunks"]
    edit(folder, chunks=chunks | {"path": "rows.npy"})
    with pytest.raises(ModelFileError, match="was edited"):
        load_model(folder)
    edit(folder, chunks=chunks | {"features": ["0", "9"]})
    with pytest.raises(TableError, match="no column '9'"):
        load_model(folder)
    edit(folder, chunks=chunks)
    load_model(folder)


def test_rows_that_lie_in_no_file(tmp_path):
    model = NadarayaWatsonRegressor(bandwidth=1.0).fit(open_chunks([([0.0, 1.0], [0.0, 1.0])]))
    with pytest.raises(TypeError, match=r"the rows of this model lie in no file.*or to arrays, which are saved"):
        save_model(model, tmp_path / "model")
    assert list(tmp_path.iterdir()) == []
