"""`kernpool explore`: pages of tables, models and generators."""

import csv
import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from kernpool import LocalLinearRegressor, Nearest
from kernpool.cli import main

RNG = np.random.default_rng(0)
TABLE = pd.DataFrame({"x": RNG.uniform(size=60), "town": RNG.choice(["north", "south"], 60)})
TABLE["y"] = np.sin(6 * TABLE.x) + (TABLE.town == "north")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    TABLE.to_csv("table.csv", index=False)
    TABLE[["x", "y"]].to_csv("numbers.csv", index=False)
    return tmp_path


def explored(line):
    return main(["explore", *line.split()])


def payload_in(page):
    text = Path(page).read_text(encoding="utf-8")
    return json.loads(re.search(r'id="payload">(.*?)</script>', text)[1])


def test_page_of_a_table(folder):
    assert explored("numbers.csv --target y --bandwidth 0.25 --lang zh --out p.html") == 0
    found = payload_in("p.html")
    assert (found["settings"]["bandwidth"], found["language"], found["target"]["name"]) == ([0.25], "zh", "y")
    namespace = {}
    exec(found["python"]["load"], namespace)
    np.testing.assert_array_equal(namespace["X"].to_numpy()[:, 0], pd.read_csv("numbers.csv").x)


def test_page_of_text_columns_and_classes(folder):
    assert explored("table.csv --target y --bandwidth 0.2 --smoothing 0.3 --out p.html") == 0
    x, town = payload_in("p.html")["columns"]
    assert (x["name"], town["name"], town["levels"]) == ("x", "town", ["north", "south"])
    namespace = {}
    exec(payload_in("p.html")["python"]["load"], namespace)
    assert list(namespace["X"].columns) == ["x", "town"]
    assert explored("table.csv --target y --unordered town --out u.html --features x,town") == 0
    assert payload_in("u.html")["python"]["load"].startswith("# X, y")
    again = "table.csv --target town --bandwidth 0.2 --out p.html"
    assert explored(again) == 1  # is there already
    assert explored(f"{again} --force") == 0
    assert payload_in("p.html")["target"]["classes"] == ["north", "south"]


def test_page_of_a_model_and_of_a_generator(folder):
    """Columns have the names of the table, and a generator is fitted as asked."""
    assert main(["fit", "numbers.csv", "--target", "y", "--bandwidth", "0.2", "--degree", "1", "--model", "m"]) == 0
    assert main(["explore", "m", "--out", "p.html", "--json"]) == 0
    found = payload_in("p.html")
    assert (found["settings"]["degree"], found["columns"][0]["name"], found["title"]) == (1, "x", "m")
    asked = ["--kernel", "boxcar", "--bandwidth", "0.3", "--degree", "1", "--ridge", "0.5", "--seed", "3"]
    assert main(["explore", "make_sine_power", *asked, "--out", "g.html", "--quiet"]) == 0
    found = payload_in("g.html")
    chosen = [found["settings"][name] for name in ("kernel", "bandwidth", "degree", "ridge")]
    assert (len(found["samples"]), chosen) == (20, ["boxcar", [0.3], 1, 0.5])


def test_windows_to_the_nearest_rows(folder, capsys):
    for number, line in enumerate(("numbers.csv --target y", "make_sine_power")):
        assert explored(f"{line} --neighbors 20 --out {number}.html") == 0
        found = payload_in(f"{number}.html")["settings"]
        assert (found["widths"], found["neighbors"]) == ("nearest", 20)
    assert explored("numbers.csv --target y --neighbors auto --out k.html") == 0
    searched = LocalLinearRegressor(window=Nearest()).fit(TABLE[["x"]], TABLE["y"])
    assert payload_in("k.html")["settings"]["neighbors"] == searched.window_.k
    assert main(["fit", "numbers.csv", "--target", "y", "--bandwidth", "0.2", "--model", "m", "--quiet"]) == 0
    assert explored("m --neighbors 20 --out no.html") == 2
    assert "--neighbors: m is a fitted model; kernpool fit makes another one" in capsys.readouterr().err
    assert not Path("no.html").exists()


@pytest.mark.parametrize("end", ["\n", "\r", "\u2028"])
def test_names_of_a_table_stay_in_their_comment(folder, end):
    """What is copied as Python runs; a column, a target or a file must not add lines to it."""
    evil = f"a{end}raise SystemExit('run')  #"
    frame = TABLE.rename(columns={"x": evil, "y": f"y{end}raise SystemExit('run')"})
    table = Path(f"t{end}raise SystemExit('run').csv")
    frame.to_csv(table, index=False, quoting=csv.QUOTE_ALL)
    options = ["--bandwidth", "0.5", "--smoothing", "0.2", "--na", "x", "--out", "p.html", "--quiet"]
    assert main(["explore", str(table), "--target", frame.columns[-1], *options]) == 0
    load = payload_in("p.html")["python"]["load"]
    assert load.splitlines() == [load]
    assert load.startswith("# X, y: ")
    exec(load, {})
