"""Missing cells on the command line: left out, or categories, by fit; what predict answers; what is refused."""

import io
import json

import numpy as np
import pandas as pd
import pytest

from kernpool import LocalLinearRegressor, NadarayaWatsonClassifier, NadarayaWatsonRegressor, load_model
from tests.support.commands import kernpool

pytest.importorskip("pyarrow", reason="Parquet needs the extra 'arrow'")

N = 50
FEATURES = ["x", "z", "day", "color", "side"]


def made():
    """Rows of which each column but z misses some cells, and one misses the output."""
    random = np.random.default_rng(5)
    day = pd.Timestamp("2024-01-01") + pd.to_timedelta(random.integers(0, 90, N), "D")
    color, side = random.choice(["red", "blue", "green"], N), random.choice(["L", "R"], N)
    columns = {"x": random.normal(size=N), "z": random.normal(size=N), "day": day, "color": color, "side": side}
    table = pd.DataFrame(columns)
    y = np.sin(2 * table["x"]) + (table["color"] == "red") + 0.1 * random.normal(size=N)
    for name, none in {"x": np.nan, "day": pd.NaT, "color": None, "side": None}.items():
        table.loc[random.random(N) < 0.15, name] = none
    y[7] = np.nan
    return table, y


X, Y = made()
QUERY = X.iloc[:30]
ONE = {name: X[X[name].isna()].iloc[:1] for name in ("x", "day", "color", "side")}  # rows that miss a cell


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("missing")
    whole = X.assign(y=Y)
    whole.to_csv(path / "t.csv", index=False)
    whole.to_parquet(path / "t.parquet")
    QUERY.to_csv(path / "new.csv", index=False)
    QUERY.to_parquet(path / "new.parquet")
    for name, one in ONE.items():
        one.to_csv(path / f"no-{name}.csv", index=False)
    return path


def run(folder, *arguments, stdin=b""):
    done = kernpool(*arguments, cwd=folder, stdin=stdin)
    assert done.returncode == 0, done.stderr.decode()
    return done


def table_of(done):
    return pd.read_csv(io.BytesIO(done.stdout))


@pytest.mark.parametrize(
    ("kind", "missing", "suffix", "categorical"),
    [
        (NadarayaWatsonRegressor, "category", "csv", 4),
        (NadarayaWatsonRegressor, "drop", "parquet", 2),
        (LocalLinearRegressor, "category", "parquet", 4),
        (LocalLinearRegressor, "drop", "csv", 2),
    ],
)
def test_answers_are_those_of_the_estimator(kind, missing, suffix, categorical, folder):
    """Fit and predict of files with empty cells equal those of a frame, for one row as well."""
    smoothing, degree = [0.2] * categorical, str(int(kind is LocalLinearRegressor))
    expected = kind(bandwidth=[1.0, 1.0, 30.0], smoothing=smoothing, missing=missing).fit(X, Y)
    model = folder / f"m-{degree}-{missing}"
    options = ("--target", "y", "--dates", "--degree", degree, "--missing", missing, "--model", model)
    options += ("--bandwidth", "1,1,30", "--smoothing", ",".join(map(str, smoothing)))
    said = run(folder, "fit", f"t.{suffix}", *options).stderr.decode()
    kept = N - expected.n_missing_
    assert f"rows       {kept}\n" in said
    lacking = "missing cells" if missing == "drop" else "no value of 'y'"
    assert f"{expected.n_missing_} of {N} rows have {lacking} and are left out" in said
    count = int(X[Y.notna()].isna().any(axis=1).sum())
    assert (f"{count} of {kept} rows have missing cells, which are categories" in said) == (missing == "category")
    again = load_model(model)
    assert (again.missing, again.n_missing_) == (missing, expected.n_missing_)
    np.testing.assert_array_equal(again.predict(QUERY), expected.predict(QUERY))
    done = run(folder, "predict", model, f"new.{suffix}", "--interval", "0.9")
    found, interval = table_of(done), expected.confidence_interval(QUERY, level=0.9)
    np.testing.assert_allclose(found["y"], expected.predict(QUERY), rtol=1e-12)
    np.testing.assert_allclose(found["y_lower"], interval.lower, rtol=1e-10)
    np.testing.assert_allclose(found["y_upper"], interval.upper, rtol=1e-10)
    gaps = int(QUERY.isna().any(axis=1).sum())
    assert np.count_nonzero(np.isnan(found["y"])) == (gaps if missing == "drop" else 0)
    note = f"{gaps} of 30 rows have missing cells, and no prediction"
    assert (note in done.stderr.decode()) == (missing == "drop")
    if missing == "category":
        named = run(folder, "predict", model, f"new.{suffix}", "--interval", "0.9", "--missing", "category")
        assert named.stdout == done.stdout
    for name, one in ONE.items():
        alone = table_of(run(folder, "predict", model, f"no-{name}.csv"))
        np.testing.assert_allclose(alone["y"], expected.predict(one), rtol=1e-12)
    fewer = table_of(run(folder, "predict", model, f"new.{suffix}", "--missing", "drop"))
    np.testing.assert_allclose(fewer["y"], expected.predict(QUERY.dropna()), rtol=1e-12)


def test_classes_and_a_search(folder):
    """A missing class leaves its row out; smoothing of what is missing is searched, and reported by name."""
    features = [*FEATURES[:3], "side"]
    options = ("--target", "color", "--features", ",".join(features), "--dates", "--missing", "category")
    report = json.loads(run(folder, "fit", "t.parquet", *options, "--model", "classes", "--json").stdout)
    expected = NadarayaWatsonClassifier(missing="category").fit(X[features], X["color"])
    assert report["rows"] == N - expected.n_missing_ == X["color"].notna().sum()
    names = expected.encoding_.names
    numeric = [name for name in names if name in ("x", "z", "day")]
    assert report["bandwidth"] == dict(zip(numeric, expected.bandwidth_.tolist(), strict=True))
    assert list(report["smoothing"]) == ["side", "x missing", "day missing"]
    np.testing.assert_array_equal(list(report["smoothing"].values()), expected.smoothing_)
    shown = json.loads(run(folder, "info", "classes").stdout)
    assert (shown["parameters"]["missing"], shown["n_missing"]) == ("category", expected.n_missing_)
    found = table_of(run(folder, "predict", "classes", "new.csv", "--proba"))
    assert found["color"].tolist() == expected.predict(QUERY[features]).tolist()
    columns = [f"color_p_{label}" for label in expected.classes_]
    np.testing.assert_allclose(found[columns], expected.predict_proba(QUERY[features]), rtol=1e-12)


def test_classes_of_rows_that_are_left_out(folder):
    """A row that misses a cell has no class: an empty cell, null, and NaN for probabilities."""
    options = ("--target", "color", "--features", "x,z", "--missing", "drop", "--model", "dropped", "--bandwidth", "1")
    run(folder, "fit", "t.csv", *options)
    gap = QUERY["x"].isna().to_numpy()
    found = table_of(run(folder, "predict", "dropped", "new.csv", "--proba"))
    np.testing.assert_array_equal(found.isna().any(axis=1), gap)
    records = json.loads(run(folder, "predict", "dropped", "new.csv", "--json").stdout)
    assert [record["color"] is None for record in records] == gap.tolist()
    run(folder, "predict", "dropped", "new.csv", "--out", "classes.parquet")
    np.testing.assert_array_equal(pd.read_parquet(folder / "classes.parquet")["color"].isna(), gap)


def test_a_plot_has_a_panel_for_what_is_missing(folder):
    options = ("--target", "y", "--features", "x,side", "--missing", "category", "--plot", "p.svg")
    options += ("--bandwidth", "1", "--smoothing", "0.2,0.2")
    run(folder, "fit", "t.csv", *options)
    assert (folder / "p.svg").stat().st_size > 0


def test_marks_that_are_read_as_missing_are_told(folder):
    (folder / "na.csv").write_text("c,y\nNA,1\na,2\nb,3\nNA,1\na,2\n")
    options = ("fit", "na.csv", "--target", "y", "--missing", "category", "--smoothing", "0.1", "--bandwidth", "1")
    said = run(folder, *options).stderr.decode()
    assert "2 of 5 rows have missing cells, which are categories" in said
    assert "column 'c' holds 'NA' in 2 of these rows. If 'NA' is a value" in said
    assert "(3 levels)" in said


def test_rows_without_an_output_or_a_group_are_called_that(folder):
    (folder / "few.csv").write_text("x,y,g\n1,1,a\n2,,a\n3,3,\n,4,b\n5,4,c\n")
    options = ("--target", "y", "--groups", "g", "--missing", "category", "--smoothing", "0.1", "--bandwidth", "1")
    said = run(folder, "fit", "few.csv", *options).stderr.decode()
    assert "2 of 5 rows have no value of 'y' or 'g' and are left out" in said
    assert "1 of 3 rows have missing cells, which are categories" in said


FIT = "fit t.csv --target y --dates"


@pytest.mark.parametrize(
    ("command", "code", "message"),
    [
        (f"{FIT} --missing category --features x,z --ordered side=L:R", 2, "name it in --features too"),
        (f"{FIT} --missing category --ordered side=L:R", 1, "which have no place in the order of its levels; name it "
         "in --unordered, or use --missing drop"),
        ("fit nothing.csv --target y --missing category", 1, "all cells of column 'x' are missing; leave it out with"),
        ("fit no-y.csv --target y --missing category", 1, "column 'y' misses all of its cells: fill "
         "some of them in"),
        ("predict drop nothing.csv --missing drop", 1, "column 'x' misses all of its cells: fill some of them in"),
        (f"{FIT} --missing", 2, "expected one argument"),
        (f"{FIT} --missing error", 2, "(choose from 'raise', 'drop', 'category')"),
        (f"{FIT} --missing raise", 1, "is empty"),
        ("fit t.parquet --target y --features x --missing category --memory 1GiB", 2, "--missing must be 'raise' for "
         "rows that are not in memory, got 'category': they are read again by every call; write a file of the complete "
         "rows, or fit a sample of them in memory"),
        ("fit t.parquet --target y --features x --missing drop --memory 1GiB", 2, "--missing must be 'raise'"),
        ("predict drop new.csv --missing category", 2, "--missing category is for models that were fitted with it, and "
         "drop was fitted with --missing drop; fit again with --missing category, or leave it out"),
        ("predict category new.csv --missing catgory", 2, "did you mean 'category'?"),
        ("predict category new.parquet --memory 1GiB --out a.csv", 1, "column 'x' is nan (rows are counted from 0); "
         "--memory reads finite numbers only; leave it out for rows with missing cells"),
        ("predict category new.csv --missing raise", 1, "column 'x' is empty"),
        ("predict category no-z.csv", 1, "row 1 (line 3), column 'z' is missing (rows are counted from 0), and the "
         "model was fitted to a column without missing cells; drop such rows with --missing drop"),
        ("predict category new.parquet --memory 1GiB --missing drop --out a.csv", 2, "--missing drop needs the rows"),
        ("predict drop new.csv --se", 1, "drop such rows with --missing drop"),
    ],
)  # fmt: skip
def test_refusals(command, code, message, folder):
    for missing in ("category", "drop"):
        if not (folder / missing).exists():
            run(folder, *f"{FIT} --features x,z --missing {missing} --model {missing}".split())
    (folder / "nothing.csv").write_text("x,z,y\n,1,1\nNA,2,2\n,3,1\n")
    (folder / "no-y.csv").write_text("x,y\n1,\n2,NA\n")
    (folder / "no-z.csv").write_text("x,z\n1,2\n1,\n")
    done = kernpool(*command.split(), cwd=folder)
    said = done.stderr.decode()
    assert (done.returncode, done.stdout, said.count("\n")) == (code, b"", 1 + said.count("note  ")), said
    assert message in said
    assert not (folder / "a.csv").exists()


def test_a_file_whose_category_is_missing_in_every_row(folder):
    sides = pd.DataFrame({"x": [1.0, 2.0, 3.0, 4.0], "side": ["L", "R", None, "L"], "y": [1.0, 2.0, 3.0, 4.0]})
    sides.to_csv(folder / "sides.csv", index=False)
    (folder / "no_sides.csv").write_text("x,side\n2,\n")
    given = ("--target", "y", "--bandwidth", "1", "--smoothing", "0.2", "--missing", "category", "--model", "sides")
    run(folder, "fit", "sides.csv", *given)
    found = table_of(run(folder, "predict", "sides", "no_sides.csv"))
    known = load_model(folder / "sides").predict(pd.DataFrame({"x": [2.0], "side": [None]}))
    np.testing.assert_allclose(found["y"], known, rtol=1e-12)
