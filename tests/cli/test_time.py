"""Rows in the order of a column on the command line: bandwidths without the rows next to each other, and warnings."""

import json

import numpy as np
import pytest

from kernpool import LocalLinearRegressor, load_model
from tests.support.commands import kernpool

RANDOM = np.random.default_rng(0)
N, GAP = 120, 4
DAY = RANDOM.permutation(N)  # rows are in any order
NOISE = RANDOM.normal(size=N)
for t in range(1, N):
    NOISE[t] += 0.8 * NOISE[t - 1]
X = np.column_stack([DAY / N, RANDOM.uniform(size=N)])
Y = np.sin(5 * X[:, 0]) + X[:, 1] + 0.4 * NOISE[DAY]
DATE = np.datetime64("2024-01-01") + DAY


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("time")
    lines = [f"{a:.17g},{b:.17g},{y:.17g},{day},{date}" for (a, b), y, day, date in zip(X, Y, DAY, DATE, strict=True)]
    (path / "data.csv").write_text("a,b,y,day,date\n" + "\n".join(lines) + "\n")
    return path


@pytest.mark.parametrize(("column", "others"), [("date", "a,b"), ("day", "a,b"), ("day", "a,b,day")])
def test_rows_are_in_the_order_of_the_column(folder, column, others):
    bandwidth = [0.3, 0.3, 40.0][: 1 + others.count(",")]  # along days beyond the gap
    given = ",".join(map(str, bandwidth))
    fixed = ("--target", "y", "--kernel", "epanechnikov", "--bandwidth", given, "--model", "m", "--force", "--json")
    done = kernpool("fit", "data.csv", *fixed, "--time", column, "--gap", GAP, "--features", others, cwd=folder)
    assert done.returncode == 0, done.stderr
    rows = np.column_stack([X, DAY]) if "day" in others else X
    expected = LocalLinearRegressor("epanechnikov", bandwidth, gap=GAP).fit(rows, Y, time=DAY)
    model, report = load_model(folder / "m"), json.loads(done.stdout)
    np.testing.assert_array_equal(model.exclusion_.code, DAY)
    np.testing.assert_allclose(report["loo_error"], expected.leave_one_out().error, rtol=1e-12)
    assert report["gap"] == GAP
    alone = LocalLinearRegressor("epanechnikov", bandwidth).fit(rows, Y)
    assert report["loo_error"] > 1.02 * alone.leave_one_out().error


def test_what_is_said(folder):
    """A warning names the option."""
    done = kernpool("fit", "data.csv", "--target", "y", "--features", "a,b", "--time", "day", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert b"in the order of time are correlated" in done.stderr
    assert b"fit with --gap 9" in done.stderr


def test_the_time_is_read_by_its_cells_though_the_column_is_one_of_levels(folder):
    fixed = ("--target", "y", "--bandwidth", "0.3", "--smoothing", "0.5", "--model", "levels")
    done = kernpool(
        "fit", "data.csv", *fixed, "--features", "a,date", "--unordered", "date", "--time", "date", cwd=folder
    )
    assert done.returncode == 0, done.stderr
