"""Tests with a p-value, asked for on the command line."""

import json

import numpy as np
import pandas
import pytest

from kernpool import LocalLinearRegressor, load_model, specification_test
from tests.support.commands import kernpool, process
from tests.support.thinning import slow

RANDOM = np.random.default_rng(0)
A, B = RANDOM.uniform(size=(2, 60))
Y = np.sin(6 * A) + 0.2 * RANDOM.normal(size=60)
SIDE = np.where(np.arange(60) % 2, "left", "right")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("testing")
    lines = [f"{a:.17g},{b:.17g},{y:.17g},{side}" for a, b, y, side in zip(A, B, Y, SIDE, strict=True)]
    (path / "data.csv").write_text("a,b,y,side\n" + "\n".join(lines) + "\n")
    fit = ("fit", path / "data.csv", "--target", "y", "--features", "a,b", "--degree", "1", "--quiet")
    assert kernpool(*fit, "--bandwidth", "0.15,0.5", "--model", path / "model").returncode == 0
    return path


def printed(done):
    assert done.returncode == 0, done.stderr
    return done.stdout.decode()


@pytest.mark.parametrize("run", [kernpool, *slow(process)])
def test_significance(run, folder):
    model = LocalLinearRegressor(bandwidth=[0.15, 0.5]).fit(pandas.DataFrame({"a": A, "b": B}), Y)
    expected = model.significance_test("b", n_resamples=99, random_state=3)
    command = ("significance", folder / "model", "--column", "b", "--resamples", "99", "--seed", "3")
    assert printed(run("test", *command)) == f"{expected}\n"
    shown = json.loads(printed(kernpool("test", *command, "--json")))
    assert shown["p_value"] == expected.p_value
    assert shown["statistic"] == pytest.approx(expected.statistic, rel=1e-9)
    assert (shown["test"], shown["n_resamples"], len(shown["bandwidth"])) == ("significance", 99, 2)
    assert load_model(folder / "model").n_jobs is None  # it stays as it is
    every = printed(run("test", "significance", folder / "model", "--resamples", "19"))
    assert every.startswith("null hypothesis  y does not depend on the column, given the others\n")
    shown = json.loads(printed(kernpool("test", "significance", folder / "model", "--resamples", "19", "--json")))
    assert [*shown["columns"]] == ["a", "b"]
    both, data = np.c_[A, B], ("specification", folder / "data.csv", "--target", "y", "--features", "a,b")
    assert printed(kernpool("test", *data, "--resamples", "49")) == f"{specification_test(both, Y, n_resamples=49)}\n"
