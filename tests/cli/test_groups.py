"""Clusters of rows on the command line: bandwidths for new ones, and intervals that let their rows go together."""

import io

import numpy as np
import pandas
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from kernpool import LocalLinearRegressor, load_model
from tests.support.commands import kernpool, process

RANDOM = np.random.default_rng(0)
CLASS = np.repeat([f"class {i}" for i in range(12)], 6)
X = RANDOM.uniform(-1, 1, size=12).repeat(6) + 0.1 * RANDOM.normal(size=72)
Y = np.sin(2 * X) + 0.4 * RANDOM.normal(size=12).repeat(6) + 0.2 * RANDOM.normal(size=72)
PLACES = pandas.DataFrame({"x": np.linspace(-0.5, 0.5, 5)})


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("groups")
    lines = [f"{x:.17g},{y:.17g},{label}" for x, y, label in zip(X, Y, CLASS, strict=True)]
    (path / "data.csv").write_text("x,y,class\n" + "\n".join(lines) + "\n")
    PLACES.to_csv(path / "new.csv", index=False)
    return path


@pytest.fixture(scope="module")
def fitted(folder):
    options = ("--target", "y", "--groups", "class", "--degree", "1", "--model", folder / "model")
    done = process("fit", folder / "data.csv", *options)
    assert done.returncode == 0, done.stderr
    return LocalLinearRegressor().fit(X[:, None], Y, groups=CLASS)


def test_bandwidths_are_those_of_left_out_clusters(folder, fitted):
    model = load_model(folder / "model")
    assert_allclose(model.bandwidth_, fitted.bandwidth_, rtol=1e-6)
    assert_array_equal(model.exclusion_.code, fitted.exclusion_.code)
    assert_array_equal(model.key_, X[:, None])  # the labels are no column to predict from
    alone = LocalLinearRegressor().fit(X[:, None], Y)
    assert model.bandwidth_[0] > 1.5 * alone.bandwidth_[0]


def test_intervals_are_of_clusters(folder, fitted):
    model = load_model(folder / "model")
    asked = ("predict", folder / "model", folder / "new.csv", "--se", "--interval", "0.9")
    done = kernpool(*asked)
    assert done.returncode == 0, done.stderr
    numbers = np.loadtxt(io.StringIO(done.stdout.decode()), delimiter=",", skiprows=1)
    found = model.confidence_interval(PLACES, level=0.9, groups=CLASS)
    prediction = model.get_prediction(PLACES)
    expected = [prediction.mean, prediction.standard_error, found.center, found.lower, found.upper]
    assert_allclose(numbers, np.column_stack(expected), rtol=1e-12)
    rows = model.confidence_interval(PLACES, level=0.9, groups=range(72))
    assert np.mean(rows.width) < 0.9 * np.mean(found.width)
    refused = kernpool(*asked, "--variance", "nn")
    assert refused.returncode == 2
    assert b"--variance nn is for independent rows" in refused.stderr
    assert b"leave --variance out" in refused.stderr


def test_numbers_are_clusters_whatever_the_bandwidth(folder):
    np.save(folder / "data.npy", np.c_[X, Y, np.arange(72) // 6])
    options = ("--target", "1", "--groups", "2", "--bandwidth", "0.3", "--kernel", "epanechnikov")
    done = kernpool("fit", folder / "data.npy", *options, "--features", "0,2")  # asked for, the column is one too
    assert done.returncode == 0, done.stderr
    assert b"columns    0, 2\nclusters   2: 12, of 6 to 6 rows, median 6\n" in done.stderr
    assert b"empty leave-cluster-out windows       72, predicted by the mean of the other clusters" in done.stderr
