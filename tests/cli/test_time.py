"""Rows in the order of a column on the command line: bandwidths without the rows next to each other, and warnings."""

import json

import numpy as np
import pytest

from kernpool import NadarayaWatsonRegressor, load_model
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
    lines = [
        f"{a:.17g},{b:.17g},{y:.17g},{day},{date},{'early' if day < N / 2 else 'late'}"
        for (a, b), y, day, date in zip(X, Y, DAY, DATE, strict=True)
    ]
    (path / "data.csv").write_text("a,b,y,day,date,half\n" + "\n".join(lines) + "\n")
    return path


def fit(folder, *options):
    fixed = ("--target", "y", "--kernel", "epanechnikov", "--bandwidth", "0.3", "--model", "m", "--force")
    return kernpool("fit", "data.csv", *fixed, "--features", "a,b", *options, cwd=folder)


@pytest.mark.parametrize(("column", "others"), [("date", "a,b"), ("day", "a,b"), ("day", "a,b,day")])
def test_rows_are_in_the_order_of_the_column(folder, column, others):
    done = fit(folder, "--time", column, "--gap", GAP, "--features", others, "--json")
    assert done.returncode == 0, done.stderr
    rows = np.column_stack([X, DAY]) if "day" in others else X
    expected = NadarayaWatsonRegressor("epanechnikov", 0.3, gap=GAP).fit(rows, Y, time=DAY)
    model, report = load_model(folder / "m"), json.loads(done.stdout)
    np.testing.assert_array_equal(model.key_place_, DAY)
    np.testing.assert_allclose(report["loo_error"], expected.leave_one_out().error, rtol=1e-12)
    assert report["gap"] == GAP
    alone = NadarayaWatsonRegressor("epanechnikov", 0.3).fit(rows, Y)
    assert report["loo_error"] > 1.02 * alone.leave_one_out().error


def test_the_column_is_no_feature_and_the_report_has_the_gap(folder):
    lines = (folder / "data.csv").read_text().splitlines()
    (folder / "few.csv").write_text("\n".join(",".join(line.split(",")[:4]) for line in lines))
    options = ("--target", "y", "--bandwidth", "0.3")
    done = kernpool("fit", "few.csv", *options, "--time", "day", "--gap", GAP, cwd=folder)
    assert done.returncode == 0, done.stderr
    assert b"columns    a, b\n" in done.stderr
    assert b"gap        4 rows on either side of each are left out with it\n" in done.stderr


@pytest.mark.parametrize(
    ("options", "code", "words"),
    [
        (("--time", "half"), 1, "--time must name a column of numbers or of dates"),
        (("--time", "year"), 1, "no column 'year'"),
        (("--time", "y"), 2, "--time names the target 'y'; name the column of the times"),
        (("--time", "day", "--groups", "half"), 2, "leaves whole clusters out"),
        (("--gap", "3"), 2, "name their column with --time"),
        (("--time", "day", "--memory", "1GiB"), 2, "--time needs the rows in memory"),
    ],
)
def test_what_is_refused(folder, options, code, words):
    done = fit(folder, *options)
    assert words in done.stderr.decode()
    assert done.returncode == code


def test_a_warning_names_the_option(folder):
    options = ("--target", "y", "--features", "a,b", "--time", "date")
    done = kernpool("fit", "data.csv", *options, cwd=folder)
    assert done.returncode == 0, done.stderr
    assert "in the order of time are correlated" in done.stderr.decode()
    assert "fit with --gap 8" in done.stderr.decode()
