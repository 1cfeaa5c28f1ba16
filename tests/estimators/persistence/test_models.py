"""Model files: a round trip is exact, and damage is found before anything is believed."""

import json
import re

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from kernpool import (
    NadarayaWatsonClassifier,
    NadarayaWatsonRegressor,
    load_model,
    make_kernel,
    register_kernel,
    save_model,
)
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


def test_round_trip(model, folder, generator):
    again = load_model(folder)
    query = generator.normal(size=(50, 2))
    np.testing.assert_array_equal(again.predict(query), model.predict(query))
    assert again.get_params() == model.get_params()
    assert again.loo_error_ == model.loo_error_
    assert again.leave_one_out().error == model.leave_one_out().error
    assert sorted(path.suffix for path in folder.iterdir()) == [".json", ".npy", ".npy", ".npy", ".npy", ".npy"]


@pytest.mark.parametrize("labels", [["no", "yes"], [0, 7]])
def test_classifiers(labels, tmp_path, generator):
    X = generator.normal(size=(20, 1))
    model = NadarayaWatsonClassifier(bandwidth=[0.5]).fit(X, np.array(labels)[(X[:, 0] > 0).astype(int)])
    save_model(model, tmp_path / "model")
    np.testing.assert_array_equal(load_model(tmp_path / "model").predict(X), model.predict(X))


@pytest.mark.parametrize("name", ["model.json", "key_.npy", "value_.npy", "bandwidth_.npy"])
def test_every_truncated_file_is_found(folder, name):
    whole = (folder / name).read_bytes()
    for length in (0, 1, len(whole) // 2, len(whole) - 1):
        (folder / name).write_bytes(whole[:length])
        with pytest.raises(ModelFileError, match=name):
            load_model(folder)


@pytest.mark.parametrize("name", ["model.json", "key_.npy", "value_.npy", "bandwidth_.npy"])
def test_every_edited_file_is_found(folder, name):
    whole = bytearray((folder / name).read_bytes())
    for place in (len(whole) // 2, len(whole) - 3):
        edited = whole.copy()
        edited[place] ^= 1
        (folder / name).write_bytes(edited)
        with pytest.raises(ModelFileError, match=name):
            load_model(folder)


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


def test_objects_are_never_unpickled(folder):
    np.save(folder / "key_.npy", np.array([print], dtype=object), allow_pickle=True)
    with pytest.raises(ModelFileError, match=r"key_.npy"):
        load_model(folder)


def test_deep_nesting_and_archives(folder):
    np.savez(folder / "other.npz", a=np.zeros(3))
    (folder / "key_.npy").write_bytes((folder / "other.npz").read_bytes())
    with pytest.raises(ModelFileError, match=r"key_.npy"):
        load_model(folder)
    (folder / "model.json").write_text("[" * 100_000)
    with pytest.raises(ModelFileError, match="truncated or edited"):
        load_model(folder)


def test_any_damaged_byte_is_found(folder, generator):
    for path in folder.iterdir():
        whole = path.read_bytes()
        for _ in range(30):
            edited = bytearray(whole)
            edited[generator.integers(len(edited))] ^= 1 << generator.integers(8)
            path.write_bytes(edited)
            with pytest.raises(ModelFileError):
                load_model(folder)
        path.write_bytes(whole)
    load_model(folder)


def test_nothing_is_overwritten_without_force(model, folder, tmp_path):
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    with pytest.raises(FileExistsError, match="exists already"):
        save_model(model, folder)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
    save_model(NadarayaWatsonRegressor(bandwidth=2.0).fit([[0.0], [1.0]], [0.0, 1.0]), folder, force=True)
    assert load_model(folder).bandwidth_ == [2.0]
    precious = tmp_path / "precious"
    precious.mkdir()
    (precious / "thesis.txt").write_text("years of work")
    with pytest.raises(FileExistsError, match="is no kernpool model of this version, so it is not replaced"):
        save_model(model, precious, force=True)
    assert (precious / "thesis.txt").exists()


def test_a_failed_save_leaves_nothing(model, tmp_path, monkeypatch):
    monkeypatch.setattr(np, "save", lambda *_, **__: (_ for _ in ()).throw(OSError(28, "No space left on device")))
    with pytest.raises(OSError, match="No space left"):
        save_model(model, tmp_path / "model")
    assert list(tmp_path.iterdir()) == []


def test_what_cannot_be_saved(tmp_path):
    with pytest.raises(NotFittedError):
        save_model(NadarayaWatsonRegressor(), tmp_path / "model")
    with pytest.raises(FileNotFoundError, match="does not exist; make it first"):
        save_model(NadarayaWatsonRegressor(bandwidth=1.0).fit([[0.0]], [0.0]), tmp_path / "no" / "model")
    with pytest.raises(ValueError, match="features must name 1 columns"):
        save_model(NadarayaWatsonRegressor(bandwidth=1.0).fit([[0.0]], [0.0]), tmp_path / "model", features=["a", "b"])


def test_a_kernel_of_ones_own_is_saved_by_name(tmp_path, monkeypatch):
    from kernpool.kernels import registry

    mine = make_kernel("test-saved", lambda u: 1 / (1 + u**2) ** 2)
    with pytest.raises(ValueError, match="is not registered"):
        save_model(NadarayaWatsonRegressor(mine, 1.0).fit([[0.0], [1.0]], [0.0, 1.0]), tmp_path / "model")
    register_kernel(mine)
    save_model(NadarayaWatsonRegressor("test-saved", 1.0).fit([[0.0], [1.0]], [0.0, 1.0]), tmp_path / "model")
    assert load_model(tmp_path / "model").predict([[0.5]]) == [0.5]
    monkeypatch.delitem(registry._KERNELS, "test-saved")
    monkeypatch.delitem(registry._NAMES, "test-saved")
    with pytest.raises(ValueError, match="unknown kernel 'test-saved'"):
        load_model(tmp_path / "model")


def test_bandwidths_of_other_packages(tmp_path, generator):
    """What was given is kept, and not converted twice."""
    X = generator.normal(size=(20, 1))
    model = NadarayaWatsonRegressor("epanechnikov", 0.9, bandwidth_convention="np", empty="nearest").fit(X, X[:, 0])
    save_model(model, tmp_path / "model")
    again = load_model(tmp_path / "model")
    assert again.get_params() == model.get_params()
    np.testing.assert_array_equal(again.bandwidth_, model.bandwidth_)
    np.testing.assert_array_equal(again.fit(X, X[:, 0]).predict(X), model.predict(X))
