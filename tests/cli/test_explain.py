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
    model = LocalLinearRegressor(bandwidth=0.5).fit(X, Y)
    save_model(model, "m", features=["dose"], target="effect")
    found = model.get_prediction(AT).explain(k=3)
    for record, i in zip(records(capsys, "--explain"), range(2), strict=True):
        assert record["effect"] == pytest.approx(found.prediction[i])
        assert record["effect_n_eff"] == pytest.approx(found.effective_rows[i])
        for name in ("row", "weight", "contribution", "influence"):
            numbers = [record[f"effect_{name}_{place}"] for place in (1, 2, 3)]
            np.testing.assert_allclose(numbers, getattr(found, name)[i])
        assert "effect_row_4" not in record
    assert "effect_row_2" not in records(capsys, "--explain", "1")[0]


def test_a_classifier_explains_the_predicted_class_and_several_outputs_each(capsys):
    label = np.where(Y > 0, "up", "down")
    model = NadarayaWatsonClassifier(bandwidth=0.5).fit(X, label)
    save_model(model, "m", features=["dose"], target="side")
    found = model.get_prediction(AT).explain(k=1)
    for i, record in enumerate(records(capsys, "--explain", "1")):
        c = list(model.classes_).index(record["side"])
        assert record["side_contribution_1"] == pytest.approx(found.contribution[i, 0, c])
    model = NadarayaWatsonRegressor(bandwidth=0.5).fit(X, np.c_[Y, -Y])
    save_model(model, "m", features=["dose"], target="y", force=True)
    found = model.get_prediction(AT).explain(k=1)
    for i, record in enumerate(records(capsys, "--explain", "1")):
        assert record["y_0_row_1"] == record["y_1_row_1"] == found.row[i, 0]
        assert record["y_1_influence_1"] == pytest.approx(found.influence[i, 0, 1])


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
    for name in ("found.npy", "found.parquet") if importlib.util.find_spec("pyarrow") else ("found.npy",):
        assert main([*command, "--out", name]) == 0
        if name.endswith("npy"):
            assert np.isnan(np.load(name)).tolist()[0][-4:] == [True] * 4
        else:
            import pyarrow.parquet as parquet

            table = parquet.read_table(name)
            assert [table[f"y_{part}_2"].null_count for part in parts] == [1] * 4


def test_what_cannot_be_explained_is_refused(capsys):
    save_model(NadarayaWatsonRegressor(bandwidth=0.5).fit(X, Y), "m", features=["dose"], target="effect")
    np.save("rows.npy", np.c_[X, Y])
    save_model(NadarayaWatsonRegressor(bandwidth=0.5).fit("rows.npy", "1"), "stored", features=["dose"], target="y")
    for arguments, code, words in (
        (("m", "new.csv", "--explain", "0"), 2, "--explain must be a number of training rows from 1 on, got 0"),
        (("m", "new.csv", "--explain", "--cluster", "tcp://nowhere:1"), 2, "--explain cannot be had from a cluster"),
        (("stored", "new.csv", "--explain"), 1, "not in memory"),
    ):
        assert main(["predict", *arguments]) == code
        assert words in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["predict", "m", "new.csv", "--explain", "few"])
    assert "argument --explain: invalid" in capsys.readouterr().err
