"""Cells as they were written, through every command: codes, marks of missing cells, kept inputs, levels, notes."""

import json

import numpy as np
import pandas as pd
import pytest

from kernpool.tables.file_formats import read_table
from tests.support.commands import kernpool
from tests.support.parquet import write_parquet

FIXED = ("--bandwidth", "1")


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def wrote(name, text):
    with open(name, "w", encoding="utf-8") as file:
        file.write(text)
    return name


def done(*arguments, stdin=b""):
    found = kernpool(*arguments, stdin=stdin)
    assert found.returncode == 0, found.stderr
    return found


def refused(*arguments, stdin=b""):
    found = kernpool(*arguments, stdin=stdin)
    assert found.returncode == 1, found.stdout
    assert found.stderr.count(b"\n") == 1
    assert found.stdout == b""
    return found.stderr.decode()


def levels(text, name, *options):
    wrote("levels.csv", text)
    report = json.loads(done("fit", "levels.csv", "--target", "y", "--json", *FIXED, *options).stdout)
    return report["levels"][name]


def rows(names, *lines):
    return "\n".join([names, *lines]) + "\n"


@pytest.fixture
def coded():
    """A model of the levels 0, 1, 2 of k, and of a number x."""
    lines = [f"{i % 3},{i * 0.1:.1f},{(i % 3) * 10 + i * 0.1:.2f}" for i in range(30)]
    wrote("coded.csv", rows("k,x,y", *lines))
    done("fit", "coded.csv", "--target", "y", "--unordered", "k", "--smoothing", "0.1", "--model", "m", *FIXED)


def predicted(text, *options):
    found = done("predict", "m", "-", *options, stdin=text.encode()).stdout.decode().splitlines()[1:]
    return [float(line.split(",")[-1]) for line in found]


def test_one_unknown_level_leaves_the_others_known(coded):
    known = predicted("k,x\n0,0.5\n1,0.5\n")
    unlike = predicted("k,x\n0,0.5\n1,0.5\nother,0.5\n", "--unseen", "unlike")
    assert unlike[:2] == known
    assert unlike[2] == predicted("k,x\n7,0.5\n", "--unseen", "unlike")[0]
    said = refused("predict", "m", "-", stdin=b"k,x\n0,0.5\n1,0.5\nother,0.5\n")
    assert "row 2, column 'k' holds 'other', a level that the model has not seen" in said
    assert "known levels are 0, 1, 2" in said
    assert "--unseen unlike" in said


def test_the_row_of_an_unknown_level_is_that_of_the_file(coded):
    said = refused("predict", "m", "-", "--missing", "drop", stdin=b"k,x\n0,1\nNA,1\nQ,1\n")
    assert "standard input: row 2, column 'k' holds 'Q'" in said


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        (["1E2", "100", "010", "10"], ["010", "10", "100", "1E2"]),
        (["9007199254740992", "9007199254740993"], ["9007199254740992", "9007199254740993"]),
        (["01", "75"], ["01", "75"]),
        (["0.5", "0.50"], ["0.5", "0.50"]),
        (["0.50", "1.25"], [0.5, 1.25]),
        (["1.0", "2.0"], [1, 2]),
        (["-1", "3"], [-1, 3]),
    ],
)
def test_codes_keep_their_letters(cells, expected):
    text = rows("c,x,y", *(f"{c},{i},{i % 4}" for i, c in enumerate(cells * 4)))
    assert levels(text, "c", "--unordered", "c", "--smoothing", "0.1") == expected


def test_classes_keep_their_zeros():
    wrote("t.csv", rows("dep,x", *(f"{'01' if i % 2 else '75'},{i}" for i in range(10))))
    done("fit", "t.csv", "--target", "dep", "--unordered", "dep", "--model", "m", *FIXED)
    found = done("predict", "m", "t.csv", "--proba").stdout.decode().splitlines()
    assert found[0] == "dep,dep_p_01,dep_p_75"
    assert {line.split(",")[0] for line in found[1:]} == {"01", "75"}


@pytest.mark.parametrize("ordered", [True, False])
def test_levels_of_integers_in_parquet(ordered):
    sizes, x = [1 + i % 3 for i in range(12)], [i / 4 for i in range(12)]
    write_parquet("o.parquet", {"size": sizes, "x": x, "y": [i % 5 for i in range(12)]})
    wrote("o.csv", rows("size,x,y", *(f"{s},{x_},{i % 5}" for i, (s, x_) in enumerate(zip(sizes, x, strict=True)))))
    kind = ("--ordered", "size=1:2:3") if ordered else ("--unordered", "size")
    expected = None
    for fitted in ("o.parquet", "o.csv"):
        done("fit", fitted, "--target", "y", *kind, "--smoothing", "0.2", "--model", "m", "--force", *FIXED)
        for asked in ("o.parquet", "o.csv"):
            found = done("predict", "m", asked, "--unseen", "unlike").stdout
            assert found == done("predict", "m", asked).stdout
            expected = expected or found
            assert found == expected


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
@pytest.mark.parametrize("mark", ["-999", "-999.0"])
def test_numbers_that_stand_for_missing_cells(mark, suffix):
    cells = [-999.0 if i % 3 == 0 else i * 2.0 for i in range(12)]
    wrote("t.csv", rows("x,y", *(f"{i},{mark if y == -999 else y}" for i, y in enumerate(cells))))
    if suffix == "parquet":
        write_parquet("t.parquet", {"x": np.arange(12), "y": cells})
    said = refused("fit", f"t.{suffix}", "--target", "y", "--na=-999", *FIXED)
    assert "column 'y' holds '-999" in said
    assert "a missing cell" in said
    report = done("fit", f"t.{suffix}", "--target", "y", "--na=-999", "--missing", "drop", "--json", *FIXED)
    assert json.loads(report.stdout)["rows"] == 8
    assert "4 of 12 rows have missing cells and are left out" in json.loads(report.stdout)["notes"]


def test_numbers_that_stand_for_missing_levels_and_days():
    days = [f"2020-01-{i + 1:02}" for i in range(12)]
    days[4] = "9999-12-31"
    text = rows("k,day,x,y", *(f"{(1, 2, 9)[i % 3]},{day},{i},{i % 4}" for i, day in enumerate(days)))
    kinds = ("--unordered", "k", "--dates", "day", "--na=9,9999-12-31", "--smoothing", "0.1", "--bandwidth", "1")
    wrote("t.csv", text)
    assert "column 'k' has no label" in refused("fit", "t.csv", "--target", "y", *kinds)
    said = refused("fit", "t.csv", "--target", "y", "--features", "day,x", "--dates", "--na", "9999-12-31", *FIXED)
    assert "row 4, column 'day' holds '9999-12-31'" in said
    report = json.loads(done("fit", "t.csv", "--target", "y", *kinds, "--missing", "drop", "--json").stdout)
    assert (report["rows"], report["levels"]["k"]) == (6, [1, 2])  # without 4 of k, a day, and 9 of x


def test_kept_inputs_are_as_they_were_written(coded):
    text = 'id,name,k,x\n00123,"Smith, J",0,0.50\n9007199254740993,"B, C",1,0.6\n'
    lines = done("predict", "m", "-", "--keep", stdin=text.encode()).stdout.decode().splitlines()
    assert lines[1].startswith('00123,"Smith, J",0,0.50,')
    assert lines[2].startswith('9007199254740993,"B, C",1,0.6,')
    records = json.loads(done("predict", "m", "-", "--keep", "--json", stdin=text.encode()).stdout)
    assert [record["id"] for record in records] == ["00123", "9007199254740993"]
    assert [record["k"] for record in records] == [0, 1]
    assert [record["x"] for record in records] == [0.5, 0.6]


def test_kept_decimal_commas_become_points_and_codes_stay(coded):
    text = "id;k;x\n007;0;0,5\n010;1;1,25\n"
    read = ("--sep", ";", "--decimal", ",")
    lines = done("predict", "m", "-", "--keep", *read, stdin=text.encode()).stdout.decode().splitlines()
    assert [line.rsplit(",", 1)[0] for line in lines] == ["id,k,x", "007,0,0.5", "010,1,1.25"]


def test_a_kept_column_of_notes_needs_no_decimal_sign(coded):
    text = 'k,x,note\n0,0.5,"1,234"\n1,0.6,abc\n'
    lines = done("predict", "m", "-", "--keep", "note", stdin=text.encode()).stdout.decode().splitlines()
    assert lines[1].startswith('"1,234",')


def test_rows_that_are_dropped_are_counted_for_programs(coded):
    dropped = "1 of 3 rows have missing cells and are left out"
    found = done("predict", "m", "-", "--missing", "drop", "--json", stdin=b"k,x\n0,0.5\n1,\n2,0.5\n")
    assert len(json.loads(found.stdout)) == 2
    assert json.loads(found.stderr) == {"note": dropped, "command": "predict"}
    wrote("t.csv", rows("x,y", *(f"{i},{(i * 7) % 5}" for i in range(12)), "NA,1"))
    asked = ("--target", "y", "--missing", "drop", "--json")
    test = done("test", "specification", "t.csv", *asked, "--resamples", "9", *FIXED)
    page = done("explore", "t.csv", *asked, "--out", "page.html", *FIXED)
    for found in (test, page):
        assert json.loads(found.stdout)["notes"] == ["1 of 13 rows have missing cells and are left out"]


def test_days_of_parquet_are_not_missing():
    days = np.datetime64("2020-01-01") + np.arange(6)
    write_parquet("d.parquet", {"day": days, "y": [1.0, 2, 3, 2, 1, None]})
    report = done("fit", "d.parquet", "--target", "y", "--dates", "--missing", "drop", "--json", *FIXED)
    assert json.loads(report.stdout)["rows"] == 5
    np.testing.assert_array_equal(read_table("d.parquet").missing(["day"]), False)


def test_days_that_are_levels_in_two_formats():
    """Of Parquet and of text: the same days are the same levels."""
    days = np.repeat(np.datetime64("2020-01-01") + np.arange(3), 4).astype("M8[us]")
    columns = {"day": days, "x": np.arange(12.0), "y": np.arange(12) % 5}
    write_parquet("d.parquet", columns)
    wrote("d.csv", rows("day,x,y", *(f"{str(day)[:10]},{x},{y}" for day, x, y in zip(*columns.values(), strict=True))))
    kind = ("--unordered", "day", "--smoothing", "0.2", "--model", "m")
    done("fit", "d.parquet", "--target", "y", *kind, *FIXED)
    assert done("predict", "m", "d.csv").stdout == done("predict", "m", "d.parquet").stdout


@pytest.mark.parametrize("name", ["d.npy", "d.parquet"])
def test_durations_are_kept_as_iso_8601(name):
    """As pandas writes and reads them, from .npy and from Parquet; before, .npy ended in an error of NumPy."""
    waited = np.array([-90_500, 86_400_000, 3_661_001, "NaT"], dtype="timedelta64[ms]")
    frame = pd.DataFrame({"x": [0.1, 0.2, 0.3, 0.4], "waited": waited})
    if name == "d.npy":
        np.save(name, np.array(np.rec.fromarrays([frame["x"].to_numpy(), waited], names=["x", "waited"])))
    else:
        pytest.importorskip("pyarrow", reason="Parquet needs the extra 'arrow'")
        frame.to_parquet(name)
    wrote("t.csv", "x,y\n0,1\n0.5,2\n1,3\n")
    done("fit", "t.csv", "--target", "y", "--model", "m", *FIXED)
    lines = done("predict", "m", name, "--keep", "waited").stdout.decode().splitlines()
    kept = [line.split(",")[0] for line in lines[1:]]
    assert kept == ["-P0DT0H1M30.5S", "P1DT0H0M0S", "P0DT1H1M1.001S", ""]
    assert [pd.Timedelta(cell) for cell in kept[:3]] == [pd.Timedelta(cell) for cell in waited[:3]]
