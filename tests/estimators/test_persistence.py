"""Saved models answer the same in another process, and files that are no models, or hold other objects, are refused."""

import json
import pickle
import subprocess
import sys
from pathlib import Path
from zipfile import ZipFile

import numpy as np
import pytest
import skops.io

from kernpool import (
    KernelStackingRegressor,
    LocalLinearRegressor,
    NadarayaWatsonClassifier,
    NadarayaWatsonRegressor,
    load_model,
    make_kernel,
    open_chunks,
    save_model,
)
from kernpool.estimators.persistence import ModelFileError
from kernpool.kernels import register_kernel, registry

pandas = pytest.importorskip("pandas", reason="frames need pandas")
GENERATOR = np.random.default_rng(0)
X = GENERATOR.normal(size=(60, 2))
Y = np.sin(X[:, 0]) + 0.1 * GENERATOR.normal(size=60)
LABEL = np.where(Y > 0, "up", "down")
FRAME = pandas.DataFrame({"a": X[:, 0], "city": list("uvw") * 20, "hour": GENERATOR.uniform(0, 24, 60)})
DATES = pandas.DataFrame({"day": pandas.date_range("2024", periods=60), "a": X[:, 0]})
MODELS = {
    "columns": lambda: LocalLinearRegressor(bandwidth=[1.0, 6.0], smoothing=0.5, periodic={"hour": 24}).fit(FRAME, Y),
    "dates": lambda: LocalLinearRegressor(bandwidth=[20.0, 1.0]).fit(DATES, Y),
    "classes": lambda: NadarayaWatsonClassifier(bandwidth=0.5).fit(FRAME[["a"]], LABEL),
    "stack": lambda: KernelStackingRegressor().fit(FRAME, Y),
}
ASK = """
import pickle, sys
from kernpool import load_model
answers = []
for path, at in pickle.load(sys.stdin.buffer):
    model = load_model(path)
    found = [model.predict(at)]
    if hasattr(model, "predict_proba"):
        found.append(model.predict_proba(at))
    elif hasattr(model, "confidence_interval"):
        found.append(model.confidence_interval(at).lower)
    answers.append(found)
sys.stdout.buffer.write(pickle.dumps(answers))
"""


def answers(model, at):
    if hasattr(model, "predict_proba"):
        return [model.predict(at), model.predict_proba(at)]
    return [model.predict(at), model.confidence_interval(at).lower]


@pytest.mark.filterwarnings("ignore")
def test_another_process_answers_the_same_bits(tmp_path):
    asked, expected = [], []
    for name, make in MODELS.items():
        model = make()
        names = list(getattr(model, "feature_names_in_", ()))
        at = (DATES if "day" in names else FRAME)[names][:9] if names else X[:9, : model.n_features_in_]
        save_model(model, tmp_path / name)
        asked.append((tmp_path / name, at))
        expected.append(answers(model, at))
    told = subprocess.run([sys.executable, "-W", "ignore", "-c", ASK], input=pickle.dumps(asked), stdout=-1, check=True)
    for found, wanted in zip(pickle.loads(told.stdout), expected, strict=True):
        for one, other in zip(found, wanted, strict=True):
            np.testing.assert_array_equal(one, other)


def test_rows_in_files_are_referred_to(tmp_path):
    np.save(tmp_path / "rows.npy", np.c_[X, Y])
    model = NadarayaWatsonRegressor(bandwidth=0.5).fit(tmp_path / "rows.npy", "2")
    save_model(model, tmp_path / "model")
    np.testing.assert_array_equal(load_model(tmp_path / "model").predict(X), model.predict(X))
    with pytest.raises(FileExistsError, match="is not replaced by a model"):
        save_model(model, tmp_path / "rows.npy", force=True)
    np.save(tmp_path / "rows.npy", np.c_[X, -Y])
    with pytest.raises(ValueError, match="not the file that the model was fitted to"):
        load_model(tmp_path / "model")
    with pytest.raises(TypeError, match="lie in no file"):
        save_model(NadarayaWatsonRegressor(bandwidth=0.5).fit(open_chunks([(X, Y)])), tmp_path / "other")


def test_a_kernel_of_ones_own_goes_by_its_name(tmp_path):
    mine = make_kernel("test-saved", lambda u: 1 / (1 + u**2) ** 2)
    model = NadarayaWatsonRegressor(mine, 1.0).fit(X, Y)
    with pytest.raises(ValueError, match="call register_kernel before saving"):
        save_model(model, tmp_path / "model")
    register_kernel(mine)
    save_model(model, tmp_path / "model")
    np.testing.assert_array_equal(load_model(tmp_path / "model").predict(X), model.predict(X))
    registry._REGISTERED.remove("test-saved")
    del registry._NAMES["test-saved"]
    with pytest.raises(ModelFileError, match=r"unknown kernel 'test-saved'.*register_kernel has been given"):
        load_model(tmp_path / "model")


class Foreign:
    """No type of the package."""


def edited(content, header, path):
    path.write_bytes(content)
    with ZipFile(path, "a") as archive:
        archive.writestr("kernpool.json", json.dumps(header))
    return path


def test_other_objects_and_damage_are_refused(tmp_path):
    model = NadarayaWatsonRegressor(bandwidth=1.0).fit(X, Y)
    save_model(model, tmp_path / "model")
    whole = (tmp_path / "model").read_bytes()
    model.secret = Foreign()
    files = {
        "holds a .*Foreign, which is no part": edited(skops.io.dumps([Foreign()]), {"version": 2}, tmp_path / "foreign")
    }
    run = skops.io.dumps([subprocess.run])
    files["holds a subprocess.run, which is no part"] = edited(run, {"version": 2}, tmp_path / "function")
    files["and no model"] = edited(skops.io.dumps([1.0]), {"version": 2}, tmp_path / "list")
    for version in (1, 3):
        path = tmp_path / f"version{version}"
        files[f"of format version {version}, this kernpool reads version 2"] = edited(run, {"version": version}, path)
    for i, content in enumerate((whole[: len(whole) // 2], pickle.dumps(model), b"")):
        files["no kernpool model" + "|" * i] = tmp_path / f"damaged{i}"
        (tmp_path / f"damaged{i}").write_bytes(content)
    files["is no file; kernpool.save_model writes one"] = tmp_path
    for match, path in files.items():
        with pytest.raises(ModelFileError, match=match.rstrip("|")):
            load_model(path)
    with pytest.raises(TypeError, match="Foreign, which is not saved"):
        save_model(model, tmp_path / "other")


def test_a_save_that_fails_leaves_what_was_there(tmp_path, monkeypatch):
    model = NadarayaWatsonRegressor(bandwidth=1.0).fit(X, Y)
    save_model(model, tmp_path / "model")
    before = (tmp_path / "model").read_bytes()
    with pytest.raises(FileExistsError, match="force=True"):
        save_model(model, tmp_path / "model")
    monkeypatch.setattr(Path, "write_bytes", lambda *_: (_ for _ in ()).throw(OSError(28, "No space left on device")))
    with pytest.raises(OSError, match="No space left on device; nothing was written"):
        save_model(model.fit(X, -Y), tmp_path / "model", force=True)
    assert [path.read_bytes() for path in tmp_path.iterdir()] == [before]
