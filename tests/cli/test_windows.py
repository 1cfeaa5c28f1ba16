"""Windows that follow the rows on the command line: options, the model that they make, and its report."""

import json

import numpy as np
import pandas
import pytest

from kernpool import LocalLinearRegressor, Nearest, load_model
from tests.support.commands import kernpool

RANDOM = np.random.default_rng(0)
X = RANDOM.lognormal(size=(80, 1))
Y = np.sin(2 * np.log(X[:, 0])) + 0.2 * RANDOM.normal(size=80)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("windows")
    np.savetxt(path / "data.csv", np.c_[X, Y], fmt="%.17g", delimiter=",", header="x,y", comments="")
    return path


@pytest.mark.parametrize(
    ("asked", "parameters"),
    [
        (["--neighbors", "20"], {"window": Nearest(20)}),
        (["--neighbors", "25%"], {"window": Nearest(0.25)}),
        (["--neighbors", "auto"], {"window": Nearest()}),
    ],
)
def test_options_are_those_of_the_estimator(folder, asked, parameters):
    model = LocalLinearRegressor(**parameters).fit(X, Y)
    options = ("--target", "y", "--degree", "1", "--model", folder / "model", "--force", *asked)
    done = kernpool("fit", folder / "data.csv", *options)
    assert done.returncode == 0, done.stderr
    again = load_model(folder / "model")
    np.testing.assert_allclose(again.predict(pandas.DataFrame({"x": X[:, 0]})), model.predict(X), rtol=1e-12)
    assert f"windows    to the {model.window_.k} nearest rows" in done.stderr.decode()
    shown = json.loads(kernpool("info", folder / "model").stdout)
    assert shown["windows"] == f"to the {model.window_.k} nearest rows"
