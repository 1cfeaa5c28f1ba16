"""Columns of Parquet, `.npy` and text files by their types: labels of rows, booleans, times, decimals, marks."""

import json

import numpy as np
import pandas
import pytest

from kernpool import NadarayaWatsonClassifier, NadarayaWatsonRegressor, load_model, save_model
from tests.support.commands import kernpool
from tests.support.parquet import write_parquet

N = 40
RNG = np.random.default_rng(3)
DOSE = RNG.uniform(0, 4, N).round(3)
SIDE = RNG.choice(["left", "right", "off"], N)
Y = (np.sin(DOSE) + (SIDE == "left") + 0.1 * RNG.normal(size=N)).round(4)


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def report_of(name, *options):
    done = kernpool("fit", name, "--target", "y", "--bandwidth", "1", "--json", *options)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def written(frame):
    """Write a frame as CSV and as Parquet, and return the names of the files."""
    frame.to_csv("f.csv")
    frame.to_parquet("f.parquet")
    return "f.csv", "f.parquet"


@pytest.mark.parametrize("name", [None, "day"])
def test_the_index_of_pandas_is_left_out_and_said(name):
    pytest.importorskip("pyarrow", reason="Parquet needs the extra 'arrow'")
    frame = pandas.DataFrame({"x": DOSE, "y": Y}).sort_values("y").rename_axis(name)
    _, file = written(frame)
    label = name or "__index_level_0__"
    for options in ((), ("--memory", "1GiB")):
        report = report_of(file, *options)
        assert report["columns"] == ["x"]
        assert [note for note in report["notes"] if f"column '{label}' holds labels of rows" in note]
    assert report_of(file, "--features", f"x,{label}")["columns"] == ["x", label]
    assert b"holds labels of rows" in kernpool("fit", file, "--target", "y", "--bandwidth", "1").stderr


def test_unnamed_columns_of_text_are_left_out_and_said():
    frame = pandas.DataFrame({"x": DOSE, "y": Y})
    frame.to_csv("once.csv")  # a first column without a name
    pandas.read_csv("once.csv").to_csv("twice.csv", index=False)  # which is called Unnamed: 0 from there on
    assert report_of("once.csv")["columns"] == report_of("twice.csv")["columns"] == ["x"]
    assert "column 'Unnamed: 0' holds labels of rows" in report_of("twice.csv")["notes"][0]


@pytest.mark.parametrize("suffix", ["csv", "parquet", "npy"])
def test_a_boolean_target_has_classes_in_every_format(suffix):
    flag = np.median(Y) < Y
    table = np.zeros(N, dtype=[("x", float), ("y", bool)])
    table["x"], table["y"] = DOSE, flag
    if suffix == "npy":
        np.save("b.npy", table)
    else:
        pytest.importorskip("pyarrow", reason="Parquet needs the extra 'arrow'")
        getattr(pandas.DataFrame(table), f"to_{suffix}")(f"b.{suffix}", index=False)
    report = report_of(f"b.{suffix}", "--model", "flags")
    assert list(map(str, report["classes"])) == ["False", "True"]
    expected = NadarayaWatsonClassifier(bandwidth=1.0).fit(DOSE[:, None], flag)
    with open("q.csv", "w") as file:
        file.write("x,y\n" + "".join(f"{x},{str(y).upper()}\n" for x, y in zip(DOSE, flag, strict=True)))
    records = json.loads(kernpool("predict", "flags", "q.csv", "--proba", "--json").stdout)
    np.testing.assert_allclose(
        [record["y_p_True"] for record in records], expected.predict_proba(DOSE[:, None])[:, 1], rtol=1e-12
    )
    options = ("--sets", "0.8", "--method", "lac", "--calibration", "q.csv")  # TRUE and FALSE, as R writes them
    assert kernpool("predict", "flags", "q.csv", *options).returncode == 0


def test_a_boolean_target_that_is_read_in_chunks_is_said():
    write_parquet("b.parquet", {"x": DOSE, "y": Y > 1})
    (note,) = report_of("b.parquet", "--memory", "1GiB")["notes"]
    assert "column 'y' holds booleans, whose mean is the probability of true" in note


@pytest.mark.parametrize("unit", ["s", "us", "ns"])
@pytest.mark.parametrize(("zone", "ends"), [("Asia/Kolkata", "+05:30"), ("UTC", "Z"), (None, "")])
def test_kept_times_keep_their_zone(zone, ends, unit):
    pytest.importorskip("pyarrow", reason="Parquet needs the extra 'arrow'")
    times = pandas.date_range("2021-06-01", periods=N, freq="90min", tz=zone, unit=unit)
    pandas.DataFrame({"t": times, "x": DOSE, "y": Y}).to_parquet("z.parquet", index=False)
    report_of("z.parquet", "--features", "x", "--model", "z")
    lines = predict_of("z", "z.parquet", "--keep", "t")
    assert [line[0] for line in lines[1:3]] == [f"2021-06-01T00:00:00{ends}", f"2021-06-01T01:30:00{ends}"]
    kept = [pandas.Timestamp(line[0]) for line in lines[1:]]
    assert kept == list(times)


def predict_of(model, *arguments):
    done = kernpool("predict", model, *arguments)
    assert done.returncode == 0, done.stderr
    return [line.split(",") for line in done.stdout.decode().splitlines()]


def test_text_that_means_missing_or_a_value():
    """A country that is called NA is missing, unless the list of marks says otherwise; the option is named."""
    country = np.where(np.arange(N) % 4 == 0, "NA", np.where(np.arange(N) % 2, "ZA", "BW"))
    for name, cells in (("country", country), ("count", np.where(country == "NA", "n.a.", "7"))):
        with open("m.csv", "w") as file:
            file.write(f"{name},x,y\n" + "".join(f"{a},{b},{c}\n" for a, b, c in zip(cells, DOSE, Y, strict=True)))
        refused = kernpool("fit", "m.csv", "--target", "y")
        assert refused.returncode == 1
        assert b"--missing drop" in refused.stderr
        assert b"as in --na=" in refused.stderr
        assert refused.stderr.count(b"\n") == 1
        dropped = report_of("m.csv", "--missing", "drop", *(["--smoothing", "0.1"] if name == "country" else []))
        assert dropped["rows"] == N - 10
        said = [note for note in dropped["notes"] if "holds 'NA' in 10 of these rows. If 'NA' is a value" in note]
        assert bool(said) == (name == "country")
        whole = report_of("m.csv", "--na=", "--unordered", name, "--smoothing", "0.1")
        assert whole["rows"] == N
    refused = kernpool("fit", "m.csv", "--target", "y", "--na=")
    assert b"If 'n.a.' stands for a missing cell, say --na=n.a. --missing drop" in refused.stderr
    assert (
        report_of("m.csv", "--na=n.a.", "--missing", "drop", "--features", "x,count", "--bandwidth", "1,1")["rows"]
        == 30
    )


@pytest.mark.parametrize("memory", [(), ("--memory", "1GiB")])
def test_a_folder_that_is_partitioned_has_that_column(memory):
    pyarrow = pytest.importorskip("pyarrow", reason="Parquet needs the extra 'arrow'")
    from pyarrow import parquet

    year = 2019 + np.arange(N) % 3
    parquet.write_to_dataset(pyarrow.table({"x": DOSE, "year": year, "y": Y}), "h", partition_cols=["year"])
    report = report_of("h", "--model", "h-model", *memory)
    assert sorted(report["columns"]) == ["x", "year"]
    expected = NadarayaWatsonRegressor(bandwidth=1.0).fit(np.c_[DOSE, year], Y).predict([[2.0, 2020.0]])
    with open("one.csv", "w") as file:
        file.write("x,year\n2,2020\n")
    assert float(predict_of("h-model", "one.csv")[1][0]) == pytest.approx(expected[0], rel=1e-12)


ZONES = {"no zone": None, "a zone": "Asia/Kolkata"}


@pytest.mark.parametrize("zone", ZONES)
@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_dates_of_files_are_those_of_python(suffix, zone):
    """A model of dates answers alike, made and asked here or there, whatever the unit; with a zone is not without."""
    pytest.importorskip("pyarrow", reason="Parquet needs the extra 'arrow'")
    when = pandas.Series(pandas.Timestamp("2022-05-01", tz=ZONES[zone]) + pandas.to_timedelta(DOSE.round(1), unit="D"))
    frame = pandas.DataFrame({"when": when, "x": DOSE[::-1]})
    expected = NadarayaWatsonRegressor(bandwidth=[0.5, 1.0]).fit(frame, Y).predict(frame)
    other = frame.assign(when=when.dt.tz_localize(None if ZONES[zone] else "UTC"))
    for name, table in (("t", frame), ("other", other)):
        getattr(table.assign(y=Y), f"to_{suffix}")(f"{name}.{suffix}", index=False)
    options = ("--target", "y", "--bandwidth", "0.5,1", "--model", "made-here")
    assert json.loads(kernpool("fit", f"t.{suffix}", *options, "--dates", "--json").stdout)["dates"] == ["when"]
    model = load_model("made-here")
    np.testing.assert_allclose(model.predict(frame), expected, rtol=1e-12)
    unit = "s" if zone == "no zone" else f"s, {ZONES[zone]}"
    np.testing.assert_allclose(model.predict(frame.astype({"when": f"datetime64[{unit}]"})), expected, rtol=1e-12)
    with pytest.raises(ValueError, match="with a time zone"):
        model.predict(other)
    with pytest.raises(ValueError, match="held dates"):
        model.predict(frame.assign(when=19_000.0))
    save_model(NadarayaWatsonRegressor(bandwidth=[0.5, 1.0]).fit(frame, Y), "made-there", target="y")
    for made in ("made-here", "made-there"):
        found = [float(line[0]) for line in predict_of(made, f"t.{suffix}")[1:]]
        np.testing.assert_allclose(found, expected, rtol=1e-12)
        refused = kernpool("predict", made, f"other.{suffix}").stderr.decode()
        assert "column 'when' holds dates with" in refused
        assert "and the model was fitted to dates with" in refused
    with open("days.csv", "w") as file:
        file.write("when,x\n19000,1\n")
    assert b"column 'when'" in kernpool("predict", "made-here", "days.csv").stderr


def test_durations_of_parquet_and_dates_of_two_kinds():
    pytest.importorskip("pyarrow", reason="Parquet needs the extra 'arrow'")
    frame = pandas.DataFrame({"lag": pandas.to_timedelta(DOSE.round(1) * 24, unit="h")})
    frame.assign(y=Y).to_parquet("lag.parquet", index=False)
    assert kernpool("fit", "lag.parquet", "--target", "y").returncode == 1
    report = report_of("lag.parquet", "--dates", "--model", "lag")
    assert report["dates"] == ["lag"]
    expected = NadarayaWatsonRegressor(bandwidth=1.0).fit(DOSE.round(1)[:, None], Y).predict(DOSE.round(1)[:, None])
    np.testing.assert_allclose(load_model("lag").predict(frame.astype("timedelta64[ms]")), expected, rtol=1e-12)
    with open("mixed.csv", "w") as file:
        file.write("t,y\n2020-01-01T06:00,1\n2020-01-02T06:00Z,2\n2020-01-03T06:00,3\n")
    refused = kernpool("fit", "mixed.csv", "--target", "y", "--dates").stderr.decode()
    assert "row 1, column 't' holds '2020-01-02T06:00Z', a date with a time zone" in refused
