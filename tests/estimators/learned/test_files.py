"""Learned models on disk: a round trip is exact; damage is that of all models, and edits are found."""

import json

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="learning needs the extra 'torch'")


from kernpool import LearnedPoolingClassifier, LearnedPoolingRegressor
from kernpool.data.model_format import ModelFileError, write_array, write_header

QUICK = {"max_epochs": 3, "hidden_sizes": (4, 3), "random_state": 0}


@pytest.fixture
def model(generator):
    X = generator.normal(size=(40, 3))
    return LearnedPoolingRegressor("linear", output_size=2, learning_rate=0.1, **QUICK).fit(X, X.sum(axis=1))


@pytest.fixture
def folder(model, tmp_path):
    model.save(tmp_path / "model")
    return tmp_path / "model"


def rewrite(folder, change, arrays=None):
    """Edit a model so skilfully that all digests are right again: entries, and arrays."""
    header = json.loads((folder / "model.json").read_text())
    header.pop("checksum")
    for name, edit in (arrays or {}).items():
        header["arrays"][name] = write_array(folder / f"{name}.npy", edit(np.load(folder / f"{name}.npy")))
    header |= change(header) if callable(change) else change
    write_header(folder, header)


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
    again.fit(X, y)


@pytest.mark.parametrize("labels", [["no", "yes"], [0, 7], [False, True], np.array(["a", "b"], dtype=object)])
def test_classifiers(labels, tmp_path, generator):
    X = generator.normal(size=(30, 2))
    model = LearnedPoolingClassifier(**QUICK).fit(X, np.asarray(labels)[(X[:, 0] > 0).astype(int)])
    model.save(tmp_path / "model")
    again = LearnedPoolingClassifier.load(tmp_path / "model")
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    np.testing.assert_array_equal(again.classes_, model.classes_)
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


def test_arrays_are_those_that_the_parameters_ask_for(folder):
    whole = {path.name: path.read_bytes() for path in folder.iterdir()}

    def without(header):
        return {"arrays": {name: entry for name, entry in header["arrays"].items() if name != "map.weight"}}

    giant = {"similarity": "encoder", "output_size": 2, "hidden_sizes": [10**9, 10**9]}
    cases = [
        (without, {}, "do not fit together"),
        ({}, {"key_": lambda key: key[:-1]}, r"value_ holds float64 in shape \(40,\), where \(39,\) is expected"),
        ({}, {"value_": lambda value: value.astype(np.float32)}, "do not fit together"),
        ({}, {"map.weight": np.transpose}, r"map\.weight holds float64 in shape"),
        ({}, {"map.center": lambda center: center * np.nan}, r"map\.center holds NaN or infinity"),
        ({}, {"key_": lambda key: key + np.inf}, "key_ holds NaN or infinity"),
        ({"best_epoch": 4}, {}, "do not fit together"),
        ({"features": ["a"]}, {}, "do not fit together"),
        ({"parameters": {"similarity": "linear"}}, {}, "was edited"),
        # Nothing of the size of the parameters is allocated.
        (lambda header: {"parameters": header["parameters"] | giant}, {}, "do not fit together"),
    ]
    for change, arrays, message in cases:
        rewrite(folder, change, arrays)
        with pytest.raises(ModelFileError, match=message):
            LearnedPoolingRegressor.load(folder)
        for name, content in whole.items():
            (folder / name).write_bytes(content)
    LearnedPoolingRegressor.load(folder)


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
