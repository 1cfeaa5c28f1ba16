"""Learned models on disk: a round trip is exact, and damage is found before anything is believed."""

import hashlib
import json
import sys

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="learning needs the extra 'torch'")
safetensors_numpy = pytest.importorskip("safetensors.numpy", reason="saving needs the extra 'torch'")


from kernpool import LearnedPoolingClassifier, LearnedPoolingRegressor
from kernpool.data.atomic_files import sha256
from kernpool.data.model_format import ModelFileError, checksum

QUICK = {"max_epochs": 3, "hidden_sizes": (4, 3), "random_state": 0}
FILES = ["model.json", "tensors.safetensors"]


@pytest.fixture
def model(generator):
    X = generator.normal(size=(40, 3))
    return LearnedPoolingRegressor("linear", output_size=2, learning_rate=0.1, **QUICK).fit(X, X.sum(axis=1))


@pytest.fixture
def folder(model, tmp_path):
    model.save(tmp_path / "model")
    return tmp_path / "model"


def rewrite(folder, change=None, tensors=None):
    """Edit a model so skilfully that all digests are right again."""
    path = folder / "tensors.safetensors"
    if tensors is not None:
        safetensors_numpy.save_file(tensors(safetensors_numpy.load_file(path)), path)
    header = json.loads((folder / "model.json").read_text())
    header.pop("checksum")
    header |= {"sha256": sha256(path)} | (change or {})
    (folder / "model.json").write_text(json.dumps(header | {"checksum": checksum(header)}))


@pytest.mark.covering
@pytest.mark.parametrize("similarity", ["per_feature", "width", "linear", "encoder"])
@pytest.mark.parametrize("outputs", [None, 2])
def test_round_trip(similarity, outputs, tmp_path, generator):
    X = generator.normal(size=(40, 3))
    y = X[:, 0] if outputs is None else X[:, :outputs]
    model = LearnedPoolingRegressor(similarity, learning_rate=0.1, **QUICK).fit(X, y)
    model.save(str(tmp_path / "model"))
    again = LearnedPoolingRegressor.load(str(tmp_path / "model"))
    query = 0.5 * (X + X[::-1])
    np.testing.assert_array_equal(again.predict(query), model.predict(query))
    np.testing.assert_array_equal(again.attention_weights(query), model.attention_weights(query))
    assert again.get_params() == model.get_params()
    assert again.best_epoch_ == model.best_epoch_
    for name, losses in model.history_.items():
        np.testing.assert_array_equal(again.history_[name], losses)
    assert sorted(path.name for path in (tmp_path / "model").iterdir()) == FILES
    again.fit(X, y)


@pytest.mark.parametrize("labels", [["no", "yes"], [0, 7], [False, True], np.array(["a", "b"], dtype=object)])
def test_classifiers(labels, tmp_path, generator):
    X = generator.normal(size=(30, 2))
    model = LearnedPoolingClassifier(**QUICK).fit(X, np.asarray(labels)[(X[:, 0] > 0).astype(int)])
    model.save(tmp_path / "model")
    again = LearnedPoolingClassifier.load(tmp_path / "model")
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    assert again.classes_.dtype == model.classes_.dtype
    with pytest.raises(ModelFileError, match=r"holds a LearnedPoolingClassifier, not a LearnedPoolingReg"):
        LearnedPoolingRegressor.load(tmp_path / "model")


def test_names_and_generators(tmp_path, generator):
    pandas = pytest.importorskip("pandas", reason="frames need pandas")
    X = pandas.DataFrame(generator.normal(size=(30, 2)), columns=["a", "b"])
    settings = QUICK | {"random_state": np.random.RandomState(0), "device": torch.device("cpu")}
    LearnedPoolingRegressor(**settings).fit(X, X["a"]).save(tmp_path / "model")
    again = LearnedPoolingRegressor.load(tmp_path / "model")
    assert again.feature_names_in_.tolist() == ["a", "b"]
    assert (again.random_state, again.device) == (None, "cpu")
    again.predict(X)


def test_missing_files_and_other_folders(folder, tmp_path):
    (folder / "tensors.safetensors").unlink()
    with pytest.raises(ModelFileError, match=r"tensors\.safetensors is missing"):
        LearnedPoolingRegressor.load(folder)
    with pytest.raises(ModelFileError, match=r"has no model\.json"):
        LearnedPoolingRegressor.load(tmp_path)
    (folder / "model.json").write_text('{"format": "kernpool model", "version": 1}')
    with pytest.raises(ModelFileError, match="is no kernpool learned model"):
        LearnedPoolingRegressor.load(folder)


def test_tensors_are_those_that_the_parameters_ask_for(folder):
    whole = {path.name: path.read_bytes() for path in folder.iterdir()}
    cases = [
        ({}, lambda tensors: {n: t for n, t in tensors.items() if n != "map.weight"}, "no tensor 'map.weight'"),
        ({}, lambda tensors: tensors | {"key": tensors["key"][:-1]}, r"'key' is float64 of shape \(39, 3\)"),
        ({}, lambda tensors: tensors | {"value": tensors["value"].astype(np.float32)}, "'value' is float32"),
        ({}, lambda tensors: tensors | {"map.weight": tensors["map.weight"].T.copy()}, "'map.weight' is float64 of"),
        ({"key_shape": [41, 3]}, None, "do not fit together"),
        ({"best_epoch": 4}, None, "do not fit together"),
        ({"features": ["a"]}, None, "do not fit together"),
        ({"value_shape": []}, None, "was edited"),
        ({"parameters": {"similarity": "linear"}}, None, "was edited"),
        ({"version": 99}, None, "version 99, this kernpool reads version 1"),
    ]
    for change, tensors, message in cases:
        rewrite(folder, change, tensors)
        with pytest.raises(ModelFileError, match=message):
            LearnedPoolingRegressor.load(folder)
        for name, content in whole.items():
            (folder / name).write_bytes(content)
    LearnedPoolingRegressor.load(folder)


def test_giants_are_refused_before_they_are_allocated(folder):
    header = json.loads((folder / "model.json").read_text())
    parameters = header["parameters"] | {"similarity": "encoder", "output_size": 2, "hidden_sizes": [10**9, 10**9]}
    rewrite(folder, {"parameters": parameters})
    with pytest.raises(ModelFileError, match=r"no tensor 'map\.linear\.center'"):
        LearnedPoolingRegressor.load(folder)


def test_what_is_no_file_of_safetensors(folder):
    content = b"\x00" * 100
    (folder / "tensors.safetensors").write_bytes(content)
    rewrite(folder, {"sha256": hashlib.sha256(content).hexdigest()})
    with pytest.raises(ModelFileError, match="is no file of safetensors"):
        LearnedPoolingRegressor.load(folder)


def test_without_safetensors_the_extra_is_named(model, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "safetensors", None)
    with pytest.raises(ImportError, match=r'needs safetensors, .* pip install "kernpool\[torch\]"'):
        model.save(tmp_path / "model")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("labels", [["2021-03", "2020-11", "2022-01"], [7, 3, 5], [0.5, 0.25, 2.0]])
def test_labels_that_are_no_strings_come_back(labels, tmp_path, generator):
    """A frame of the fit is accepted without a warning, and its columns in another order are refused."""
    pandas = pytest.importorskip("pandas", reason="frames need pandas")
    rows = generator.normal(size=(40, 3))
    columns = pandas.to_datetime(labels) if isinstance(labels[0], str) else labels
    frame = pandas.DataFrame(rows, columns=columns)
    model = LearnedPoolingRegressor("width", learning_rate=0.1, **QUICK).fit(frame, rows[:, 0])
    model.save(tmp_path / "model")
    again = LearnedPoolingRegressor.load(tmp_path / "model")
    np.testing.assert_array_equal(again.predict(frame), model.predict(frame))
    assert not hasattr(again, "feature_names_in_")
    with pytest.raises(ValueError, match="another order"):
        again.predict(frame[frame.columns[::-1]])
