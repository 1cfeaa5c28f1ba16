"""One way to save and load: what holds for the files of every kind of model, `kernpool info` included."""

import json
from functools import cache
from importlib.util import find_spec

import numpy as np
import pytest

from kernpool import (
    KernelStackingClassifier,
    KernelStackingRegressor,
    LocalLinearRegressor,
    NadarayaWatsonClassifier,
    NadarayaWatsonRegressor,
    RunningPool,
    load_model,
    save_model,
)
from kernpool.data.model_format import ModelFileError, checksum
from tests.support.commands import kernpool, process
from tests.support.thinning import slow

X = np.random.default_rng(0).normal(size=(30, 2))
LABELS = np.array(["no", "yes"])[(X[:, 0] > 0).astype(int)]


def categorical():
    pandas = pytest.importorskip("pandas", reason="frames need pandas")
    frame = pandas.DataFrame({"b": X[:, 1], "city": ["oslo", "bergen", "tromso"] * 10, "a": X[:, 0]})
    return LocalLinearRegressor(bandwidth=1.0, smoothing=0.1).fit(frame, X[:, 0])


def stacked_categories():
    frame = np.array([["oslo", 0.5], ["bergen", 1.0], ["oslo", 0.25]] * 4, dtype=object)
    local = NadarayaWatsonRegressor(bandwidth=1.0, smoothing=0.1, unordered=[0], unseen="unlike")
    return KernelStackingRegressor(local).fit(frame, X[:12, 0], np.arange(12) % 3, np.arange(12) // 2)


def levels_alone():
    return NadarayaWatsonRegressor(bandwidth=1.0, smoothing=0.1, unordered=[0]).fit([[0], [1], [0]], [1.0, 2.0, 4.0])


def on_chunks(folder, target="2"):
    np.save(folder / "rows.npy", np.c_[X, X[:, 0]])
    return NadarayaWatsonRegressor(bandwidth=0.5).fit(folder / "rows.npy", target)


MAKERS = {
    "regressor": lambda _: NadarayaWatsonRegressor("tricube", empty="nearest", max_search_seconds=60).fit(X, X[:, 0]),
    "classifier": lambda _: NadarayaWatsonClassifier(bandwidth=0.5).fit(X, LABELS),
    "robust": lambda _: LocalLinearRegressor(bandwidth=0.5, robust=True).fit(X, X[:, 0] ** 3),
    "recalibrated": lambda _: NadarayaWatsonClassifier(bandwidth=0.5, recalibrate="isotonic").fit(X, LABELS),
    "in clusters": lambda _: NadarayaWatsonRegressor(bandwidth=0.5).fit(X, X[:, 0], groups=np.arange(30) // 3),
    "categorical": lambda _: categorical(),
    "infinite": lambda _: LocalLinearRegressor(bandwidth=[np.inf, 0.5]).fit(X, X[:, 0]),
    "levels alone": lambda _: levels_alone(),
    "on chunks": on_chunks,
    "several on chunks": lambda folder: on_chunks(folder, ["1", "2"]),
    "stacked": lambda _: KernelStackingRegressor(LocalLinearRegressor(bandwidth=0.5), kernel="gaussian").fit(X, X),
    "stacked categories": lambda _: stacked_categories(),
    "stacked classifier": lambda _: KernelStackingClassifier(NadarayaWatsonClassifier(bandwidth=0.5)).fit(X, LABELS),
    "running pool": lambda _: RunningPool(X[:5], bandwidth=[1.0, 2.0], degree=1).update(X, X),
    "unused pool": lambda _: RunningPool(X[:5]),
}


@cache  # no test changes a model, and some take a second to fit
def made(name):
    return MAKERS[name](None)


def make(name, folder):
    return MAKERS[name](folder) if "on chunks" in name else made(name)


@pytest.fixture(params=MAKERS)
def model(request, tmp_path):
    return make(request.param, tmp_path)


def answer(model):
    """What a model says, bit for bit."""
    if isinstance(model, RunningPool):
        return None if model.state is None else model.values().tobytes()
    if hasattr(model, "leave_one_out") and hasattr(model, "key_") and not hasattr(model, "robust_weight_"):
        return model.leave_one_out().prediction.tobytes()
    at = X[:, : model.n_features_in_]
    return (model.predict_proba(at) if hasattr(model, "classes_") else model.predict(at)).tobytes()


def test_a_round_trip_changes_no_bit(model, tmp_path):
    expected = answer(model)
    record = model._to_record()
    assert answer(type(model)._from_record(record)) == expected
    save_model(model, tmp_path / "model")
    again = load_model(tmp_path / "model")
    assert type(again) is type(model)
    assert answer(again) == expected
    repeated = again._to_record()
    assert repeated.header == record.header
    assert set(repeated.arrays) == set(record.arrays)


def test_no_damaged_byte_is_believed(model, tmp_path, generator):
    folder = tmp_path / "model"
    save_model(model, folder)
    for path in folder.iterdir():
        whole = path.read_bytes()
        for _ in range(10):
            edited = bytearray(whole)
            edited[generator.integers(len(edited))] ^= 1 << generator.integers(8)
            path.write_bytes(edited)
            with pytest.raises(ModelFileError):
                load_model(folder)
        path.write_bytes(whole[:-1])
        with pytest.raises(ModelFileError, match=path.name):
            load_model(folder)
        path.write_bytes(whole)
    load_model(folder)


def test_headers_of_another_kind(model, tmp_path):
    """The header of one model with the name of any other format, version or estimator, and a checksum to match."""
    refusal = ModelFileError if find_spec("torch") else (ModelFileError, ImportError)  # of learned models without torch
    folder = tmp_path / "model"
    save_model(model, folder)
    header = json.loads((folder / "model.json").read_text())
    header.pop("checksum")
    formats = ("kernpool model", "kernpool learned model", "kernpool running pool", "x")
    kinds = ("NadarayaWatsonRegressor", "NadarayaWatsonClassifier", "RunningPool", 3)
    changes = [{"format": name} for name in formats] + [{"version": version} for version in (0, 99, None, True)]
    for change in changes + [{"estimator": name} for name in kinds]:
        if change.items() <= header.items() or change == {"estimator": type(model).__name__}:
            continue
        (folder / "model.json").write_text(json.dumps(header | change | {"checksum": checksum(header | change)}))
        with pytest.raises(refusal):
            load_model(folder)


def test_nothing_is_overwritten_without_force(model, tmp_path):
    folder = tmp_path / "model"
    save_model(model, folder)
    with pytest.raises(FileExistsError, match="exists already"):
        save_model(model, folder)
    save_model(model, folder, force=True)
    assert type(load_model(folder)) is type(model)
    (folder / "model.json").unlink()
    with pytest.raises(FileExistsError, match="is no kernpool model of this version, so it is not replaced"):
        save_model(model, folder, force=True)


def files(folder):
    return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_force_replaces_the_files_of_the_old_model_alone(model, tmp_path):
    """Of every kind by every other: what the user has put into the folder stays, what the old model had goes."""
    old = NadarayaWatsonRegressor(bandwidth=1.0).fit(X, X[:, 0], sample_weight=np.linspace(1.0, 3.0, 30))
    for first, second in ((old, model), (model, old)):
        folder, mine = tmp_path / f"{type(first).__name__} {len(list(tmp_path.iterdir()))}", {}
        save_model(first, folder)
        (folder / "runs").mkdir()
        for name in ("notes.txt", "runs/1.npy", "key.npy", ".hidden"):
            (folder / name).write_text("three weeks of work")
            mine[(folder / name).relative_to(folder)] = b"three weeks of work"
        save_model(second, tmp_path / "alone", force=True)
        save_model(second, folder, force=True)
        assert files(folder) == files(tmp_path / "alone") | mine
        assert type(load_model(folder)) is type(second)


OTHERS = {
    "TensorFlow": {"format": "layers-model", "generatedBy": "keras", "weightsManifest": [{"paths": ["key_.bin"]}]},
    "no format": {"arrays": {"key_": {}}},
    "no object": [1, 2],
    "a file elsewhere": {"format": "kernpool model", "arrays": {"../precious": {}}},
    "arrays of another kind": {"format": "kernpool model", "arrays": "../precious"},
}


@pytest.mark.parametrize("header", OTHERS.values(), ids=OTHERS)
@pytest.mark.parametrize("summed", [True, False])
def test_force_replaces_no_folder_of_another_program(header, summed, tmp_path):
    folder = tmp_path / "m"
    folder.mkdir()
    if summed and isinstance(header, dict):
        header = header | {"checksum": checksum(header)}
    (folder / "model.json").write_text(json.dumps(header))
    for name in ("m/key_.bin", "m/key_.npy", "precious.npy"):
        (tmp_path / name).write_text("years of work")
    before = files(tmp_path)
    with pytest.raises(FileExistsError, match=r"is no kernpool model of this version|is no part of the model"):
        save_model(NadarayaWatsonRegressor(bandwidth=1.0).fit(X, X), folder, force=True)
    assert files(tmp_path) == before


@pytest.mark.parametrize("way", ["plain", "soft link", "hard link"])
def test_force_replaces_no_rows_that_the_new_model_refers_to(way, tmp_path):
    """The rows lie in the model's folder, and even in a file that the old model has written."""
    folder = tmp_path / "m"
    save_model(NadarayaWatsonRegressor(bandwidth=1.0).fit(X, X[:, 0]), folder)
    rows = folder / "key_.npy"
    if way == "soft link":
        (tmp_path / "rows.npy").symlink_to(rows)
        rows = tmp_path / "rows.npy"
    elif way == "hard link":
        (tmp_path / "rows.npy").hardlink_to(rows)
        rows = tmp_path / "rows.npy"
    before = files(tmp_path)
    with pytest.raises(FileExistsError, match=r"key_\.npy holds rows that the model refers to"):
        save_model(NadarayaWatsonRegressor(bandwidth=0.5).fit(rows, "1"), folder, force=True)
    assert files(tmp_path) == before
    np.save(folder / "rows.npy", np.c_[X, X[:, 0]])
    chunked = NadarayaWatsonRegressor(bandwidth=0.5).fit(folder / "rows.npy", "2")
    expected = chunked.predict(X[:3])
    save_model(chunked, folder, force=True)
    np.testing.assert_array_equal(load_model(folder).predict(X[:3]), expected)


def test_force_replaces_no_other_file_of_the_name_of_a_new_one(tmp_path):
    folder = tmp_path / "m"
    save_model(NadarayaWatsonRegressor(bandwidth=1.0).fit(X, X[:, 0]), folder)
    (folder / "key_weight_.npy").write_text("weights of mine")
    before = files(tmp_path)
    weighted = NadarayaWatsonRegressor(bandwidth=1.0).fit(X, X[:, 0], sample_weight=np.linspace(1.0, 3.0, 30))
    with pytest.raises(FileExistsError, match=r"key_weight_\.npy is no part of the model .* move it"):
        save_model(weighted, folder, force=True)
    assert files(tmp_path) == before


EXPECTED = {
    "regressor": {"estimator": "NadarayaWatsonRegressor", "rows": 30, "features": ["0", "1"]},
    "categorical": {"rows": 30, "bandwidth": {"b": 1.0, "a": 1.0}, "smoothing": {"city": 0.1}},
    "levels alone": {"rows": 3, "bandwidth": {}, "smoothing": {"0": 0.1}},
    "on chunks": {"rows": 30, "bandwidth": {"0": 0.5, "1": 0.5}},
    "running pool": {"estimator": "RunningPool", "rows": 30, "queries": 5, "outputs": 2, "bandwidth": [1.0, 2.0]},
}


@pytest.mark.parametrize("command", [kernpool, *slow(process)])
@pytest.mark.parametrize("name", EXPECTED)
def test_the_command_describes_it(name, command, tmp_path):
    save_model(make(name, tmp_path), tmp_path / "model")
    description = json.loads(command("info", tmp_path / "model").stdout)
    assert {entry: description[entry] for entry in EXPECTED[name]} == EXPECTED[name]


def test_tables_are_for_smoothers(tmp_path, capsys):
    from kernpool.cli import main

    save_model(RunningPool(X), tmp_path / "model")
    np.save(tmp_path / "table.npy", X)
    assert main(["predict", str(tmp_path / "model"), str(tmp_path / "table.npy")]) == 1
    assert "holds a RunningPool, which predicts no tables here; load it in Python" in capsys.readouterr().err
    with pytest.raises(TypeError, match="features must be None for a RunningPool"):
        save_model(RunningPool(X), tmp_path / "other", features=["a", "b"])
    assert not (tmp_path / "other").exists()


def test_what_is_no_model_is_refused(tmp_path):
    with pytest.raises(TypeError, match=r"model must be one of NadarayaWatsonRegressor, .*, got dict"):
        save_model({}, tmp_path / "model")
