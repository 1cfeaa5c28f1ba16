"""`kernpool predict --explain`: columns of the training rows behind each prediction, as the model has them."""

import csv
import importlib.util
import json

import numpy as np
import pytest

from kernpool import LocalLinearRegressor, NadarayaWatsonClassifier, NadarayaWatsonRegressor, save_model
from kernpool.cli import main

X = np.linspace(0.0, 3.0, 30)[:, None]
Y = np.sin(2.0 * X[:, 0])
AT = np.array([[0.4], [1.9]])


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "new.csv").write_text("dose\n0.4\n1.9\n")


def records(capsys, *options):
    assert main(["predict", "m", "new.csv", "--json", *options]) == 0
    return json.loads(capsys.readouterr().out)


def test_columns_are_those_of_the_explanation(capsys):
    """A classifier explains the predicted class, and a model of several outputs each of them."""
    label = np.where(Y > 0, "up", "down")
    for model, target, ends in (
        (LocalLinearRegressor(bandwidth=0.5).fit(X, Y), "effect", [""]),
        (NadarayaWatsonClassifier(bandwidth=0.5).fit(X, label), "side", [""]),
        (NadarayaWatsonRegressor(bandwidth=0.5).fit(X, np.c_[Y, -Y]), "y", ["_0", "_1"]),
    ):
        save_model(model, "m", features=["dose"], target=target, force=True)
        found = model.get_prediction(AT).explain(k=3)
        for i, record in enumerate(records(capsys, "--explain")):
            for c, end in enumerate(ends):
                name = f"{target}{end}"
                output = list(model.classes_).index(record[name]) if target == "side" else c
                assert record[f"{name}_n_eff"] == pytest.approx(found.effective_rows[i])
                for part in ("row", "weight", "contribution", "influence"):
                    expected = getattr(found, part)[i]
                    expected = expected if expected.ndim == 1 else expected[:, output]
                    np.testing.assert_allclose([record[f"{name}_{part}_{k}"] for k in (1, 2, 3)], expected)
                assert f"{name}_row_4" not in record
        assert f"{target}{ends[0]}_row_2" not in records(capsys, "--explain", "1")[0]


@pytest.mark.parametrize("memory", [(), ("--memory", "64MiB")])
def test_cells_are_empty_where_there_is_no_row(capsys, memory):
    """One row is in the window of the first query, and two in that of the second."""
    x = np.array([[0.0], [0.3], [1.7], [2.0]])
    save_model(NadarayaWatsonRegressor("boxcar", bandwidth=0.25).fit(x, x[:, 0]), "m", features=["0"], target="y")
    np.save("new.npy", AT)
    command = ["predict", "m", "new.npy", "--explain", "2", *memory]
    assert main(command) == 0
    lines = list(csv.DictReader(capsys.readouterr().out.splitlines()))
    parts = ("row", "weight", "contribution", "influence")
    assert [lines[0][f"y_{part}_2"] for part in parts] == [""] * 4
    assert [lines[1][f"y_{part}_2"] for part in parts[:2]] == ["3.0", "0.5"]
    if not memory:
        assert main([*command, "--json"]) == 0
        record = json.loads(capsys.readouterr().out)[0]
        assert [record[f"y_{part}_2"] for part in parts] == [None] * 4
    if importlib.util.find_spec("pyarrow"):
        import pyarrow.parquet as parquet

        assert main([*command, "--out", "found.parquet"]) == 0
        table = parquet.read_table("found.parquet")
        assert [table[f"y_{part}_2"].null_count for part in parts] == [1] * 4


def test_rows_are_those_of_the_file_that_was_fitted(capsys, tmp_path):
    lines = ["dose,y", *(f"{x},{y}" if i != 2 else f",{y}" for i, (x, y) in enumerate(zip(X[:, 0], Y, strict=True)))]
    (tmp_path / "t.csv").write_text("\n".join(lines))
    assert main(["fit", "t.csv", "--target", "y", "--missing", "drop", "--bandwidth", "0.05", "--model", "m"]) == 0
    assert [record["y_row_1"] for record in records(capsys, "--explain")] == [4, 18]
