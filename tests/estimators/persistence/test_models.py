"""Model files: a round trip is exact, and damage is found before anything is believed."""

import json
import re

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from kernpool import NadarayaWatsonRegressor, load_model, make_kernel, register_kernel, save_model
from kernpool.data.model_format import ModelFileError


@pytest.fixture
def model(generator):
    X = generator.normal(size=(30, 2))
    return NadarayaWatsonRegressor("tricube", empty="nearest").fit(
        X, X[:, 0], sample_weight=generator.uniform(0.2, 1.0, 30)
    )


@pytest.fixture
def folder(model, tmp_path):
    save_model(model, tmp_path / "model")
    return tmp_path / "model"


def test_a_missing_file_and_a_folder_that_is_no_model(folder, tmp_path):
    (folder / "key_.npy").unlink()
    with pytest.raises(ModelFileError, match=r"key_.npy is missing"):
        load_model(folder)
    with pytest.raises(ModelFileError, match=r"has no model.json"):
        load_model(tmp_path)
    (tmp_path / "model.json").write_text("[]")
    with pytest.raises(ModelFileError, match="is no kernpool model"):
        load_model(tmp_path)


def test_another_version_is_named(folder):
    header = json.loads((folder / "model.json").read_text())
    assert header["version"] == 1
    for version in (0, 2, 99, None, True, 1.0, "1"):
        (folder / "model.json").write_text(json.dumps(header | {"version": version}))
        expected = f"format version {version!r}, this kernpool reads version 1; use the kernpool that wrote it, or fit"
        with pytest.raises(ModelFileError, match=re.escape(expected)):
            load_model(folder)


def test_what_cannot_be_saved(tmp_path):
    with pytest.raises(NotFittedError):
        save_model(NadarayaWatsonRegressor(), tmp_path / "model")
    with pytest.raises(FileNotFoundError, match="does not exist; make it first"):
        save_model(NadarayaWatsonRegressor(bandwidth=1.0).fit([[0.0]], [0.0]), tmp_path / "no" / "model")
    with pytest.raises(ValueError, match="features must name 1 columns"):
        save_model(NadarayaWatsonRegressor(bandwidth=1.0).fit([[0.0]], [0.0]), tmp_path / "model", features=["a", "b"])


def test_a_kernel_of_ones_own_is_saved_by_name(tmp_path):
    from kernpool.kernels import registry

    mine = make_kernel("test-saved", lambda u: 1 / (1 + u**2) ** 2)
    with pytest.raises(ValueError, match="is not registered"):
        save_model(NadarayaWatsonRegressor(mine, 1.0).fit([[0.0], [1.0]], [0.0, 1.0]), tmp_path / "model")
    register_kernel(mine)
    save_model(NadarayaWatsonRegressor("test-saved", 1.0).fit([[0.0], [1.0]], [0.0, 1.0]), tmp_path / "model")
    assert load_model(tmp_path / "model").predict([[0.5]]) == [0.5]
    del registry._KERNELS["test-saved"], registry._NAMES["test-saved"]
    with pytest.raises(ValueError, match="unknown kernel 'test-saved'"):
        load_model(tmp_path / "model")


def test_deep_nesting(folder):
    (folder / "model.json").write_text("[" * 100_000)
    with pytest.raises(ModelFileError, match="truncated or edited"):
        load_model(folder)


def test_a_full_disk_leaves_what_was_there(model, folder, tmp_path, monkeypatch):
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    monkeypatch.setattr(np, "save", lambda *_, **__: (_ for _ in ()).throw(OSError(28, "No space left on device")))
    for name in ("other", "model"):
        with pytest.raises(OSError, match="No space left on device; nothing was written") as caught:
            save_model(model, tmp_path / name, force=True)
        assert caught.value.filename == str(tmp_path / name)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
    assert list(tmp_path.iterdir()) == [folder]
