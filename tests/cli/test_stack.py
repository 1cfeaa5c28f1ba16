"""`kernpool fit --stack`: the stack of the library, saved, and its answers about tables."""

import io
import json

import numpy as np
import pandas
import pytest
from numpy.testing import assert_allclose

from kernpool import KernelStackingClassifier, KernelStackingRegressor, NadarayaWatsonRegressor
from tests.support.commands import kernpool

RANDOM = np.random.default_rng(0)
TABLE = pandas.DataFrame({"x": RANDOM.uniform(size=40), "kind": RANDOM.choice(["a", "b"], 40)})
Y = np.sin(6 * TABLE["x"]) + (TABLE["kind"] == "a") + 0.2 * RANDOM.normal(size=40)
CLASS = np.where(Y + 0.3 * RANDOM.normal(size=40) > 0.5, "high", "low")


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    TABLE.assign(y=Y, level=CLASS).to_csv("t.csv", index=False)


def done(*arguments):
    found = kernpool(*arguments)
    assert found.returncode == 0, found.stderr
    return found


def answers(*options):
    return pandas.read_csv(io.StringIO(done("predict", "m", "t.csv", *options).stdout.decode()))


def test_numbers_are_those_of_the_library():
    asked = ("--target", "y", "--features", "x,kind", "--degree", "0", "--bandwidth", "0.1", "--smoothing", "0.2")
    report = json.loads(done("fit", "t.csv", *asked, "--stack", "--model", "m", "--json").stdout)
    model = KernelStackingRegressor(NadarayaWatsonRegressor(bandwidth=0.1, smoothing=0.2)).fit(TABLE, Y)
    assert report["members"] == pytest.approx(model.member_weights_)
    assert report["loo_error"] == pytest.approx(model.loo_error_)
    found, curve = answers("--se", "--interval", "0.9"), model.confidence_interval(TABLE, level=0.9)
    assert_allclose(found, np.c_[model.predict(TABLE), model.confidence_interval(TABLE, method="naive").standard_error,
                                 curve.center, curve.lower, curve.upper], rtol=0, atol=1e-8)  # fmt: skip
    new = model.prediction_interval(TABLE, level=0.8)
    assert_allclose(answers("--interval", "0.8", "--method", "auto")["y_new_lower"], new.lower, rtol=0, atol=1e-8)
    shown = json.loads(done("info", "m").stdout)
    assert (shown["estimator"], shown["target"], shown["bandwidth"]) == ("KernelStackingRegressor", "y", {"x": 0.1})
    refused = kernpool("fit", "t.csv", "--target", "y", "--stack", "--gap", "2")
    assert (refused.returncode, b"leave --gap and --time out" in refused.stderr) == (2, True)


def test_classes_have_probabilities_and_sets():
    said = done("fit", "t.csv", "--target", "level", "--features", "x,kind", "--stack", "--model", "m").stderr.decode()
    model = KernelStackingClassifier().fit(TABLE, CLASS)
    assert f"fit        {model.member_weights_['local']:.2f} local, " in said
    found = answers("--proba", "--sets", "0.8")
    assert_allclose(found["level_p_high"], model.predict_proba(TABLE)[:, 0], rtol=1e-6)
    assert (found["level_in_high"] == model.predict_set(TABLE, 0.8).member[:, 0]).all()
