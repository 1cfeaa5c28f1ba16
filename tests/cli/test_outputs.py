"""No output takes the place of an input, however its name is spelled, and whatever the command."""

import os

import numpy as np
import pandas
import pytest

from kernpool import NadarayaWatsonRegressor, load_model, save_model
from kernpool.cli import main
from kernpool.cli.table_files import row_writer
from tests.support.parquet import write_parquet

ROWS = "dose,effect\n" + "".join(f"{i / 7},{(i / 7) ** 2}\n" for i in range(12))


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    model = NadarayaWatsonRegressor(bandwidth=0.5).fit(np.linspace(0, 2, 9)[:, None], np.linspace(0, 4, 9))
    save_model(model, "m", features=["dose"], target="effect")
    for name in ("in.csv", "more.csv"):
        (tmp_path / name).write_text(ROWS)
    (tmp_path / "folder").mkdir()
    (tmp_path / "tables").mkdir()
    write_parquet("tables/one.parquet", {"dose": [0.5, 1.0], "effect": [1.0, 2.0]})
    (tmp_path / "soft.csv").symlink_to("in.csv")
    (tmp_path / "elsewhere").symlink_to(".")
    os.link("in.csv", "hard.csv")
    np.save("rows.npy", np.c_[np.linspace(0, 2, 9), np.linspace(0, 4, 9)])
    chunked = NadarayaWatsonRegressor(bandwidth=0.5).fit("rows.npy", "1")
    save_model(chunked, "by-reference", features=["0"], target="1")
    return tmp_path


def contents(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


SPELLINGS = ("in.csv", "./in.csv", "folder/../in.csv", "soft.csv", "hard.csv", "elsewhere/in.csv")
CALIBRATED = ("--interval", "0.8", "--method", "split", "--calibration", "more.csv")
REFUSED = {
    **{f"spelled {name}": ("predict", "m", "in.csv", "--out", name) for name in SPELLINGS},
    "in pieces": ("predict", "by-reference", "rows.npy", "--memory", "64MiB", "--out", "rows.npy"),
    "calibration": ("predict", "m", "in.csv", *CALIBRATED, "--out", "more.csv"),
    "model": ("predict", "m", "in.csv", "--out", "m"),
    "rows of the model": ("predict", "by-reference", "in.csv", "--out", "rows.npy"),
    "picture": ("fit", "in.csv", "--target", "effect", "--plot", "in.csv"),
    "page": ("explore", "in.csv", "--target", "effect", "--out", "soft.csv"),
    "page of a model": ("explore", "m", "--out", "m"),
    "file of a folder": ("predict", "m", "tables", "--memory", "64MiB", "--out", "elsewhere/tables/one.parquet"),
}


@pytest.mark.parametrize("arguments", REFUSED.values(), ids=REFUSED)
@pytest.mark.parametrize("force", [True, False])
def test_inputs_stay(arguments, force, here, capsys):
    before = contents(here)
    assert main([*arguments, *(["--force"] if force else [])]) == 2
    said = capsys.readouterr().err
    assert said.startswith(f"kernpool {arguments[0]}: --")
    assert "would replace what" in said
    assert len(said.splitlines()) == 1
    assert contents(here) == before


def test_other_files_are_replaced(here):
    (here / "out.csv").write_text("old")
    assert main(["predict", "m", "in.csv", "--out", "out.csv", "--force"]) == 0
    assert len((here / "out.csv").read_text().splitlines()) == 13
    assert main(["fit", "in.csv", "--target", "effect", "--model", "m", "--force", "--quiet"]) == 0
    assert len(load_model("m").key_) == 12
    # A model that refers to its rows is fitted to the same rows again: they stay where they are.
    again = ("fit", "rows.npy", "--target", "1", "--bandwidth", "0.7", "--memory", "64MiB", "--model", "by-reference")
    rows = (here / "rows.npy").read_bytes()
    assert main([*again, "--force", "--quiet"]) == 0
    assert load_model("by-reference").bandwidth == 0.7
    assert (here / "rows.npy").read_bytes() == rows


@pytest.mark.parametrize("out", ["-", "out.csv", "out.tsv"])
def test_no_name_and_no_class_is_run_by_a_spreadsheet(out, here, capsys):
    """Names and classes that the program writes get an apostrophe; cells that are kept, and numbers, stay."""
    rows = [f"{i},{('=cmd(1)', '+')[i > 5]},{('-2', '=2*3')[i % 2]}" for i in range(12)]
    (here / "t.csv").write_text("=a,@y,-b\n" + "\n".join(rows) + "\n")
    fixed = ("--bandwidth", "1", "--quiet")
    assert main(["fit", "t.csv", "--target", "@y", "--features", "=a", "--model", "c", *fixed]) == 0
    assert main(["predict", "c", "t.csv", "--keep", "=a,-b", "--out", out]) == 0
    written = capsys.readouterr().out if out == "-" else (here / out).read_text()
    cells = [line.split("\t" if out.endswith("tsv") else ",") for line in written.splitlines()]
    assert cells[0] == ["'=a", "'-b", "'@y"]
    assert cells[1] == ["0", "-2", "'=cmd(1)"]
    assert cells[-1] == ["11", "=2*3", "+"]
    with row_writer("-") as write:  # names of columns that come in pieces
        write(pandas.DataFrame([[-1.0, 2.0, 3.0]], columns=["=a", "-1", "y"]))
    assert capsys.readouterr().out == "'=a,-1,y\n-1.0,2.0,3.0\n"


def test_a_bad_input_leaves_the_old_output(here, capsys):
    (here / "bad.csv").write_text("dose\n1\nmany\n")
    (here / "out.csv").write_text("old")
    before = contents(here)
    assert main(["predict", "m", "bad.csv", "--out", "out.csv", "--force"]) == 1
    assert main(["fit", "bad.csv", "--target", "dose", "--model", "m", "--force"]) != 0
    assert contents(here) == before
    assert "bad.csv" in capsys.readouterr().err
