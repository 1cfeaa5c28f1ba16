"""What columns are, from a file to a model to predictions: numbers, levels, dates, classes, missing and kept cells."""

import io
import json

import numpy as np
import pandas
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from kernpool import LocalLinearRegressor, NadarayaWatsonClassifier, NadarayaWatsonRegressor, load_model, save_model
from kernpool.cli.table_files import read_table
from tests.support.commands import kernpool

N = 40
RNG = np.random.default_rng(0)
FRAME = pandas.DataFrame(
    {
        "dose": RNG.uniform(0, 4, N).round(3),
        "side": RNG.choice(["left", "right", "off"], N),
        "size": RNG.choice(["S", "M", "L"], N),
        "code": RNG.choice([1, 2, 7], N),
        "day": pandas.Timestamp("2020-01-01") + pandas.to_timedelta(RNG.integers(0, 90, N), unit="D"),
    }
)
DOSE, SIDE = FRAME["dose"], FRAME["side"]
FRAME["kind"] = np.where(DOSE + (SIDE == "left") > 2.5, "high", "low")
FRAME["y"] = (np.sin(DOSE) + (SIDE == "left") + 0.1 * RNG.normal(size=N)).round(4)
Y = FRAME["y"]
BANDWIDTH = ("--bandwidth", "0.5")
LEVELS = (*BANDWIDTH, "--smoothing", "0.2")
ORDER = pandas.CategoricalDtype(["S", "M", "L"], ordered=True)


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    FRAME.to_csv("t.csv", index=False)


def done(*arguments, stdin=b""):
    found = kernpool(*arguments, stdin=stdin)
    assert found.returncode == 0, found.stderr
    return found


def fit(*options, data="t.csv", target="y"):
    """Fit a model `m`, and return the report."""
    return json.loads(done("fit", data, "--target", target, "--model", "m", "--force", "--json", *options).stdout)


def predict(*options, data="t.csv", stdin=b""):
    return pandas.read_csv(io.BytesIO(done("predict", "m", data, *options, stdin=stdin).stdout), dtype=str)


def predicted(*options, **how):
    return predict(*options, **how).iloc[:, -1].to_numpy(float)


def wrote(name, text):
    with open(name, "w", encoding="utf-8") as file:
        file.write(text)
    return name


def stored(frame, name):
    if name.endswith("npy"):
        np.save(name, frame.to_records(index=False))
    elif name.endswith("parquet"):
        pytest.importorskip("pyarrow", reason="Parquet needs the extra 'arrow'")
        frame.to_parquet(name, index=False)
    else:
        frame.to_csv(name, index=False)
    return name


@pytest.mark.parametrize(
    ("names", "types", "options", "parameters"),
    [
        (["dose", "side"], {}, LEVELS, {"smoothing": 0.2}),
        (["dose", "side"], {}, (*LEVELS, "--degree", "0"), {"smoothing": 0.2}),
        (["dose", "size"], {"size": ORDER}, (*LEVELS, "--ordered", "size=S:M:L"), {"smoothing": 0.2}),
        (["dose", "code"], {}, (*LEVELS, "--unordered", "code"), {"smoothing": 0.2, "unordered": ["code"]}),
        (["dose", "code"], {}, (*LEVELS, "--ordered", "code"), {"smoothing": 0.2, "ordered": ["code"]}),
        (["dose", "day"], {}, ("--bandwidth", "0.5,3", "--dates"), {"bandwidth": [0.5, 3.0]}),
    ],
)
@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_models_are_those_of_python(names, types, options, parameters, suffix):
    data = stored(FRAME, f"u.{suffix}")
    fit("--features", ",".join(names), *options, data=data)
    kind = NadarayaWatsonRegressor if "--degree" in options else LocalLinearRegressor
    X = FRAME[names].astype(types)
    expected = kind(**{"bandwidth": 0.5} | parameters).fit(X, Y).predict(X)
    for other in (data, "t.csv"):
        assert_allclose(predicted(data=other), expected, rtol=1e-12)
    assert_allclose(load_model("m").predict(X), expected, rtol=1e-12)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ("kind --features side --smoothing 0.2 --bandwidth 1", "classes    high, low\n"),
        ("kind --features dose --bandwidth 0.5", "leave-one-out rows in the wrong class"),
        ("day --features code --dates day --periodic code=7 --bandwidth 1", "bandwidth  code 1\n"),
        ("y --features dose --missing drop --degree 1 --ridge 0.5 --bandwidth 1", "ridge      0.5 rows\n"),
        ("same --features dose --bandwidth 1", "undefined, as y is constant"),
    ],
)
def test_reports_in_words(options, words):
    stored(FRAME.assign(same=1), "t.csv")
    assert words in done("fit", "t.csv", "--target", *options.split(), "--model", "m").stderr.decode()
    told = json.loads(done("predict", "m", "t.csv", "--out", "p.csv", "--json").stdout)
    assert (told["out"], told["rows"]) == ("p.csv", N)


def test_dates_are_compared_as_days():
    found = done("compare", "t.csv", "--target", "y", "--features", "day", "--dates", "--folds", "2", "--json")
    assert json.loads(found.stdout)["rows"] == N


@pytest.mark.parametrize("zone", [None, "Asia/Kolkata"])
@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_dates_with_a_zone_are_not_those_without(suffix, zone):
    when = pandas.Series(pandas.Timestamp("2022-05-01", tz=zone) + pandas.to_timedelta(DOSE.round(1), unit="D"))
    frame = pandas.DataFrame({"when": when, "x": DOSE[::-1].to_numpy()})
    other = frame.assign(when=when.dt.tz_localize(None if zone else "UTC"))
    save_model(NadarayaWatsonRegressor(bandwidth=[0.5, 1.0]).fit(frame, Y), "m", target="y")
    assert_allclose(predicted(data=stored(frame, f"z.{suffix}")), load_model("m").predict(frame))
    refused = kernpool("predict", "m", stored(other, f"o.{suffix}")).stderr.decode()
    assert "column 'when' of X holds dates with" in refused
    assert "and it held dates with" in refused
    assert fit("--dates", "--bandwidth", "0.5,1", data=stored(frame.assign(y=Y), f"y.{suffix}"))["dates"] == ["when"]
    assert_allclose(predicted(data=f"z.{suffix}"), load_model("m").predict(frame))


@pytest.mark.parametrize("suffix", ["csv", "parquet", "npy"])
def test_text_and_booleans_make_classifiers(suffix):
    for target, y in (("kind", FRAME["kind"]), ("flag", Y > 1)):
        if suffix == "npy" and target == "kind":
            continue
        report = fit(*BANDWIDTH, data=stored(pandas.DataFrame({"dose": DOSE, target: y}), f"c.{suffix}"), target=target)
        model = NadarayaWatsonClassifier(bandwidth=0.5).fit(FRAME[["dose"]], y)
        assert report["classes"] == model.classes_.tolist()
        probability = model.leave_one_out().probability
        true = np.searchsorted(model.classes_, y)
        assert report["loo_log_loss"] == pytest.approx(-np.log(probability[np.arange(N), true]).mean())
        assert_allclose(predicted("--proba"), model.predict_proba(FRAME[["dose"]])[:, 1], rtol=1e-12)
        in_json = json.loads(done("info", "m", "--summary", "--json").stdout)
        assert in_json["accuracy"] == pytest.approx(1.0 - report["loo_wrong"])
    lines = [f"{x},{str(y > 1).upper()}\n" for x, y in zip(DOSE, Y, strict=True)]
    answers = wrote("q.csv", "dose,flag\n" + "".join(lines))
    done("predict", "m", answers, "--sets", "0.8", "--method", "lac", "--calibration", answers)  # as R writes booleans


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        (["1E2", "100", "010", "10"], ["010", "10", "100", "1E2"]),
        (["9007199254740992", "9007199254740993"], ["9007199254740992", "9007199254740993"]),
        (["01", "75"], ["01", "75"]),
        (["0.50", "1.25"], [0.5, 1.25]),
        (["-1", "3"], [-1, 3]),
    ],
)
def test_codes_keep_their_letters(cells, expected):
    data = wrote("c.csv", "c,x,y\n" + "".join(f"{c},{i},{i % 4}\n" for i, c in enumerate(cells * 4)))
    assert fit("--unordered", "c", *LEVELS, data=data)["levels"]["c"] == expected
    if expected[0] != 0.5:  # which is no class
        classes = wrote("c.csv", "c,x\n" + "".join(f"{c},{i}\n" for i, c in enumerate(cells * 4)))
        assert fit("--unordered", "c", *BANDWIDTH, data=classes, target="c")["classes"] == expected


@pytest.fixture
def coded():
    """A model of the levels 1, 2, 7 of a code, and of a number."""
    fit("--features", "code,dose", "--unordered", "code", *LEVELS)


def test_one_unknown_level_leaves_the_others_known(coded):
    known = predicted(data="-", stdin=b"code,dose\n1,0.5\n2,0.5\n")
    text = b"code,dose\n01,0.5\n2.0,0.5\nother,0.5\n"
    unlike = predicted("--unseen", "unlike", data="-", stdin=text)
    assert_array_equal(unlike[:2], known)
    said = kernpool("predict", "m", "-", stdin=text).stderr.decode()
    assert "column 'code' of X has the level 'other' in row 2" in said
    assert "known levels are 1, 2, 7" in said
    assert "--unseen unlike" in said


def test_kept_inputs_are_as_they_were_written(coded):
    text = b'id,name,code,dose\n00123,"Smith, J",1,0.50\n9007199254740993,NA,2,0.6\n'
    lines = done("predict", "m", "-", "--keep", stdin=text).stdout.decode().splitlines()
    assert lines[0] == "id,name,code,dose,y"
    assert lines[1].startswith('00123,"Smith, J",1,0.50,')
    assert lines[2].startswith("9007199254740993,NA,2,0.6,")
    records = json.loads(done("predict", "m", "-", "--keep", "--json", stdin=text).stdout)
    assert [[*record.values()][:4] for record in records] == [
        ["00123", "Smith, J", 1, 0.5],
        ["9007199254740993", "NA", 2, 0.6],
    ]
    commas = b"id;code;dose\n007;1;0,5\n010;2;1,25\n"
    lines = done("predict", "m", "-", "--keep", stdin=commas).stdout.decode().splitlines()
    assert [line.rsplit(",", 1)[0] for line in lines] == ["id,code,dose", "007,1,0.5", "010,2,1.25"]


def test_kept_numbers_are_numbers_where_files_have_types(coded):
    pytest.importorskip("pyarrow", reason="Parquet needs the extra 'arrow'")
    done("predict", "m", "t.csv", "--keep", "dose,y", "--out", "out.parquet")
    frame = read_table("out.parquet", None, {}).frame
    assert_array_equal(frame.iloc[:, :2], FRAME[["dose", "y"]])
    assert [*frame] == ["dose", "y", "y_predicted"]
    refused = kernpool("predict", "m", "t.csv", "--out", "o.npy")
    assert b"unknown format 'npy'; known are csv, tsv, parquet" in refused.stderr


@pytest.mark.parametrize("suffix", ["csv", "parquet", "npy"])
def test_missing_cells_are_dropped_and_counted(suffix):
    frame = pandas.DataFrame({"x": np.arange(12.0), "y": [-999.0 if i % 3 == 0 else i * 2.0 for i in range(12)]})
    data = stored(frame, f"n.{suffix}")
    assert fit("--na=-999", "--missing", "drop", *BANDWIDTH, data=data)["rows"] == 8
    refused = kernpool("fit", data, "--target", "y", "--na=-999", *BANDWIDTH)
    assert (refused.returncode, refused.stderr.count(b"\n")) == (1, 1)
    assert b"row 0, column 'y'" in refused.stderr
    assert b"a missing cell, like 3 more cells of this column (rows are counted from 0)" in refused.stderr


def test_rows_that_are_dropped_are_said_by_every_command(coded):
    wrote("n.csv", "code,dose,y\n1,0.5,?\n2,NA,1\n7,0.5,2\n,0.1,3\n")
    found = done("predict", "m", "n.csv", "--missing", "drop", "--keep", "y", "--json")
    assert [record["y"] for record in json.loads(found.stdout)] == ["?", "2"]
    assert json.loads(found.stderr)["note"] == "2 of 4 rows have missing cells and are left out"
    with open("t.csv", "a") as file:
        file.write(",left,S,1,2020-01-01,high,1\n")
    asked = ("t.csv", "--target", "y", "--features", "dose", "--missing", "drop", "--json", *BANDWIDTH)
    for command in (("test", "specification", *asked, "--resamples", "9"), ("explore", *asked), ("fit", *asked)):
        assert json.loads(done(*command).stdout)["notes"] == ["1 of 41 rows have missing cells and are left out"]


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ("x;y\n1,5;2\n2,5;3\n1000,5;4,5\n", ()),
        ("x;y\n1.5;2\n2.5;3\n1000.5;4.5\n", ()),
        ("x\ty\n1.5\t2\n2.5\t3\n1000.5\t4.5\n", ()),
        ("x,y\n1.5,2\n2.5,3\n1000.5,4.5\n", ()),
        (' x , "y"\n1.5, 2\n2.5, 3\n1000.5, 4.5\n', ()),
        ("x|y\n1.5|2\n2.5|3\n1000.5|4.5\n", ("--sep", "pipe")),
        ("x y\n1.5  2\n2.5 3\n1000.5 4.5\n", ("--sep", "space")),
        ("x;y\n1,5;2\n2,5;3\n1.000,5;4,5\n", ("--decimal", ",")),
    ],
)
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "gb18030"])
def test_separators_are_found_and_said(text, options, encoding):
    with open("s.txt", "w", encoding=encoding) as file:
        file.write(text)
    how = (*options, *(() if encoding.startswith("utf-8") else ("--encoding", encoding)))
    report = fit(*BANDWIDTH, *how, data="s.txt")
    assert report["columns"] == ["x"]
    assert_array_equal(load_model("m").key_[:, 0], [1.5, 2.5, 1000.5])
    assert bool(report["notes"]) == (text[1] in ";\t")


@pytest.mark.parametrize("name", [None, "day"])
@pytest.mark.parametrize("memory", [(), ("--memory", "1GiB")])
def test_the_index_of_pandas_is_left_out_and_said(name, memory):
    pytest.importorskip("pyarrow", reason="Parquet needs the extra 'arrow'")
    FRAME[["dose", "y"]].rename_axis(name).sort_values("y").to_parquet("i.parquet")
    assert fit(*BANDWIDTH, *memory, data="i.parquet")["columns"] == ["dose"]
    if name:
        report = fit("--features", "dose,day", *BANDWIDTH, *memory, data="i.parquet")
        assert report["columns"] == ["dose", "day"]
    FRAME[["dose", "y"]].to_csv("i.csv")
    report = fit(*BANDWIDTH, data="i.csv")
    assert report["columns"] == ["dose"]
    assert "column 'Unnamed: 0' holds labels of rows" in report["notes"][0]
    stored(pandas.DataFrame({"x": DOSE, "y": Y > 1}), "b.parquet")
    (note,) = fit("--memory", "1GiB", data="b.parquet")["notes"]
    assert "column 'y' holds booleans" in note


@pytest.mark.parametrize("memory", [(), ("--memory", "1GiB")])
def test_a_folder_that_is_partitioned_has_that_column(memory):
    pytest.importorskip("pyarrow", reason="Parquet needs the extra 'arrow'")
    frame = FRAME[["dose", "code", "y"]]
    frame.to_parquet("h", partition_cols=["code"])
    assert sorted(fit(*BANDWIDTH, *memory, data="h")["columns"]) == ["code", "dose"]
    expected = LocalLinearRegressor(bandwidth=0.5).fit(frame[["dose", "code"]], Y).predict(frame[["dose", "code"]])
    assert_allclose(predicted(), expected, rtol=1e-12)


@pytest.mark.parametrize(("name", "option"), [("q=u", '"q=u"=S:M:L'), ("size, cm", '"size, cm"=S:M:L')])
def test_names_with_signs_are_quoted(name, option, tmp_path):
    FRAME[["size", "y"]].rename(columns={"size": name}).to_csv(tmp_path / "t.csv", index=False)
    fit = ["fit", tmp_path / "t.csv", "--target", "y", "--bandwidth", "1", "--smoothing", ".1"]
    kernpool(*fit, "--ordered", option, "--model", tmp_path / "m")
    assert load_model(tmp_path / "m").encoding_.levels == (("S", "M", "L"),)


def test_exponents_of_fortran_are_numbers(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, cells in (
        ("fortran", ["1.0D3", "2.5d+2", "-.35D1", "4.25D-1"]),
        ("plain", ["1e3", "250", "-3.5", ".425"]),
    ):
        (tmp_path / f"{name}.csv").write_text("x,y\n" + "".join(f"{cell},{i}\n" for i, cell in enumerate(cells)))
    options = "--target", "y", "--bandwidth", "100", "--json"
    fits = [kernpool("fit", f"{name}.csv", *options) for name in ("fortran", "plain")]
    assert fits[0].returncode == 0, fits[0].stderr
    assert json.loads(fits[0].stdout)["loo_error"] == json.loads(fits[1].stdout)["loo_error"]
