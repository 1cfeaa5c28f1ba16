"""What columns are, from a file to a model to predictions: levels, dates, classes, missing cells, kept inputs."""

import json
from datetime import date
from pathlib import Path

import numpy as np
import pytest

from kernpool import LocalLinearRegressor, NadarayaWatsonClassifier, NadarayaWatsonRegressor, load_model
from kernpool.data import MixedTable
from kernpool.tables.file_formats import read_table
from tests.support.commands import kernpool

N = 40
RNG = np.random.default_rng(0)
DOSE = RNG.uniform(0, 4, N).round(3)
SIDE = RNG.choice(["left", "right", "off"], N)
SIZE = RNG.choice(["S", "M", "L"], N)
DAY = np.array([date(2020, 1, 1 + i % 28).isoformat() for i in range(N)])
Y = (np.sin(DOSE) + (SIDE == "left") + 0.1 * RNG.normal(size=N)).round(4)
KIND = np.where(DOSE + (SIDE == "left") > 2.5, "high", "low")
BANDWIDTH = ("--bandwidth", "0.5", "--smoothing")


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    lines = [
        "dose,side,size,day,kind,y",
        *map(",".join, zip(map(str, DOSE), SIDE, SIZE, DAY, KIND, map(str, Y), strict=True)),
    ]
    (tmp_path / "t.csv").write_text("\n".join(lines) + "\n")


def fit(*options):
    done = kernpool("fit", "t.csv", "--target", "y", "--model", "m", "--force", *options)
    assert done.returncode == 0, done.stderr
    return done.stderr.decode()


def predict(*options, data="t.csv"):
    done = kernpool("predict", "m", data, *options)
    assert done.returncode == 0, done.stderr
    return [line.split(",") for line in done.stdout.decode().splitlines()], done.stderr.decode()


def predicted(*options, data="t.csv"):
    return np.array([float(line[-1]) for line in predict(*options, data=data)[0][1:]])


@pytest.mark.parametrize("degree", ["0", "1"])
def test_text_becomes_levels(degree):
    said = fit("--features", "dose,side,kind", "--degree", degree, *BANDWIDTH, "0.2,0.2")
    assert "side 0.2 (3 levels)" in said
    kind = LocalLinearRegressor if degree == "1" else NadarayaWatsonRegressor
    columns = MixedTable({"dose": DOSE, "side": SIDE.tolist(), "kind": KIND.tolist()})
    model = kind(bandwidth=0.5, smoothing=[0.2, 0.2], n_jobs=-1).fit(columns, Y)
    np.testing.assert_allclose(predicted(), model.predict(columns), rtol=1e-12)


def test_levels_that_are_ordered_and_numbers_that_are_levels():
    fit("--features", "dose,size", "--ordered", "size=S:M:L", *BANDWIDTH, "0.3")
    frame = MixedTable({"dose": DOSE, "size": SIZE.tolist()}, {"size": ("S", "M", "L")})
    expected = NadarayaWatsonRegressor(bandwidth=0.5, smoothing=0.3).fit(frame, Y)
    assert expected.encoding_.kinds == ("numeric", "ordered")
    np.testing.assert_allclose(predicted(), expected.predict(frame), rtol=1e-12)
    described = json.loads(kernpool("info", "m").stdout)
    assert described["levels"] == {"size": ["S", "M", "L"]}
    codes = np.where(SIDE == "left", 1, 2)
    lines = ["dose,code,y", *map(",".join, zip(map(str, DOSE), map(str, codes), map(str, Y), strict=True))]
    with open("codes.csv", "w") as file:
        file.write("\n".join(lines))
    done = kernpool(
        "fit", "codes.csv", "--target", "y", "--unordered", "code", *BANDWIDTH, "0", "--model", "m", "--force"
    )
    assert done.returncode == 0, done.stderr
    with open("new.csv", "w") as file:
        file.write("code,dose\n01,1\n2.0,1\n")
    apart = [NadarayaWatsonRegressor(bandwidth=0.5).fit(DOSE[codes == c, None], Y[codes == c]) for c in (1, 2)]
    np.testing.assert_allclose(predicted(data="new.csv"), [model.predict([[1.0]])[0] for model in apart], rtol=1e-12)


def test_dates_are_days():
    refused = kernpool("fit", "t.csv", "--target", "y", "--features", "day")
    assert refused.returncode == 1
    assert b"column 'day' holds '2020-01-01': a date; say --dates day" in refused.stderr
    said = fit("--features", "dose,day", "--dates", "--bandwidth", "0.5,3")
    assert "dates      day, in days since 1970-01-01" in said
    days = np.array([(date.fromisoformat(day) - date(1970, 1, 1)).days for day in DAY], dtype=float)
    expected = NadarayaWatsonRegressor(bandwidth=[0.5, 3.0]).fit(np.c_[DOSE, days], Y)
    np.testing.assert_allclose(predicted(), expected.predict(np.c_[DOSE, days]), rtol=1e-12)
    assert load_model("m").encoding_.kinds == ("numeric", "date")
    with open("new.csv", "w") as file:
        file.write("dose,day\n1,31.1.2020\n")
    wrong = kernpool("predict", "m", "new.csv")
    assert b"holds '31.1.2020', which is no date like 2020-12-31" in wrong.stderr
    assert wrong.stderr.count(b"\n") == 1


def test_missing_cells_are_dropped_and_counted():
    with open("t.csv", "a") as file:
        file.write(",left,S,2020-01-01,high,1\n1,NA,S,2020-01-01,high,1\n1,left,S,2020-01-01,high,?\n1,left,,,,2\n")
    refused = kernpool("fit", "t.csv", "--target", "y", "--features", "dose,side")
    assert refused.stderr.count(b"\n") == 1
    assert b"--missing drop" in refused.stderr
    said = fit("--features", "dose,side", "--missing", "drop", *BANDWIDTH, "0.2")
    assert "3 of 44 rows have missing cells and are left out" in said
    assert "rows       41" in said
    lines, said = predict("--missing", "drop", "--keep", "dose,y")
    assert lines[0] == ["dose", "y", "y_predicted"]
    assert lines[-2][:2] == ["1", "?"]  # a row that misses y alone has a prediction
    assert len(lines) == 1 + N + 2
    assert "2 of 44 rows" in said
    told = kernpool("fit", "t.csv", "--target", "y", "--features", "dose", "--na", "x", "--missing", "drop")
    assert b"column 'y' holds '?', not a finite number" in told.stderr


def test_inputs_beside_predictions():
    fit("--features", "dose", "--bandwidth", "0.5")
    lines, _ = predict("--keep", "--se")
    assert lines[0] == ["dose", "side", "size", "day", "kind", "y", "y_predicted", "y_predicted_se"]
    assert [line[3] for line in lines[1:]] == DAY.tolist()
    plain, _ = predict("--se")
    assert [line[-2:] for line in lines[1:]] == plain[1:]
    records = json.loads(kernpool("predict", "m", "t.csv", "--keep", "side", "--json").stdout)
    assert records[0] == {"side": str(SIDE[0]), "y": float(plain[1][0])}
    refused = kernpool("predict", "m", "t.csv", "--keep", "--out", "out.npy")
    assert b"a .npy file holds numbers, and column 'side' is text" in refused.stderr
    refused = kernpool("predict", "m", "t.csv", "--keep", "nothing")
    assert b"no column 'nothing'" in refused.stderr


def test_a_target_of_text_makes_a_classifier():
    options = ("--bandwidth", "0.5", "--model", "c", "--json")
    done = kernpool("fit", "t.csv", "--target", "kind", "--features", "dose", *options)
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    model = NadarayaWatsonClassifier(bandwidth=0.5).fit(DOSE[:, None], KIND)
    probability = model.leave_one_out().probability
    true = np.searchsorted(model.classes_, KIND)
    assert report["classes"] == ["high", "low"]
    assert report["loo_log_loss"] == pytest.approx(-np.log(probability[np.arange(N), true]).mean())
    assert report["loo_wrong"] == (probability.argmax(axis=1) != true).mean()
    records = json.loads(kernpool("predict", "c", "t.csv", "--proba", "--json").stdout)
    assert [record["kind"] for record in records] == model.predict(DOSE[:, None]).tolist()
    np.testing.assert_allclose([r["kind_p_high"] for r in records], model.predict_proba(DOSE[:, None])[:, 0])
    shown = kernpool("fit", "t.csv", "--target", "kind", "--features", "dose", "--bandwidth", "0.5", "--summary")
    assert (shown.returncode, b"leave-one-out accuracy" in shown.stdout) == (0, True)
    assert kernpool("info", "c", "--summary").stdout == shown.stdout
    in_json = json.loads(kernpool("info", "c", "--summary", "--json").stdout)
    assert in_json["accuracy"] == pytest.approx(1.0 - report["loo_wrong"])


def test_one_row_is_predicted():
    fit("--features", "dose", "--bandwidth", "0.5")
    with open("one.csv", "w") as file:
        file.write("dose,y\n1,2\n")
    expected = NadarayaWatsonRegressor(bandwidth=0.5).fit(DOSE[:, None], Y).predict([[1.0]])
    np.testing.assert_allclose(predicted(data="one.csv"), expected, rtol=1e-12)


@pytest.mark.parametrize("suffix", ["parquet", "npy"])
def test_kept_numbers_are_numbers_where_files_have_types(suffix):
    if suffix == "parquet":
        pytest.importorskip("pyarrow", reason="Parquet needs the extra 'arrow'")
    fit("--features", "dose", "--bandwidth", "0.5")
    predict("--keep", "dose,y", "--out", f"out.{suffix}")
    table = read_table(f"out.{suffix}")
    names = ["dose", "y", "y_predicted"] if suffix == "parquet" else ["0", "1", "2"]
    np.testing.assert_array_equal(table.numbers(names)[:, :2], np.c_[DOSE, Y])


@pytest.mark.parametrize(("option", "value"), [("--sep", ";"), ("--decimal", ","), ("--encoding", "latin-1")])
def test_how_text_is_written_is_refused_where_the_table_is_no_text(option, value):
    np.save("t.npy", np.column_stack([DOSE, Y]))
    done = kernpool("fit", "t.npy", "--target", "1", "--model", "m", "--bandwidth", "0.5", option, value)
    assert done.returncode == 2
    assert f"{option} says how text is written, and t.npy is read as npy; drop {option}" in done.stderr.decode()
    assert not Path("m").exists()
