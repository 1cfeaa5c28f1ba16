"""`kernpool compare`: errors of other folds, as scikit-learn computes them, of all estimators alike."""

import json

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.model_selection import GroupKFold, KFold, StratifiedKFold, cross_val_predict, cross_val_score

from kernpool import NadarayaWatsonRegressor
from tests.support.commands import kernpool

N = 45
RNG = np.random.default_rng(1)
X = RNG.uniform(0, 4, (N, 1)).round(3)
SIDE = RNG.choice(["left", "right"], N)
Y = (np.sin(X[:, 0]) + (SIDE == "left") + 0.1 * RNG.normal(size=N)).round(4)
SCHOOL = np.arange(N) % 9


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = zip(map(str, X[:, 0]), SIDE, map(str, SCHOOL), map(str, Y), strict=True)
    (tmp_path / "t.csv").write_text("\n".join(["x,side,school,y", *map(",".join, rows)]))


def compared(*options):
    done = kernpool("compare", "t.csv", "--jobs", "1", "--json", *options)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    return found, {result["name"]: result for result in found["results"]}


def test_numbers_are_those_of_scikit_learn():
    found, by_name = compared("--target", "y", "--features", "x", "--folds", "3", "--seed", "7")
    folds = KFold(3, shuffle=True, random_state=7)
    forest = RandomForestRegressor(random_state=7)
    for name, model in (
        ("RandomForestRegressor", forest),
        ("NadarayaWatsonRegressor", NadarayaWatsonRegressor(empty="nearest")),
    ):
        errors = -cross_val_score(model, X, Y, cv=folds, scoring="neg_mean_squared_error")
        assert by_name[name]["mean_squared_error"] == pytest.approx(errors.mean())  # folds are of one size
        assert by_name[name]["standard_error"] == pytest.approx(errors.std(ddof=1) / np.sqrt(3))
        assert by_name[name]["r2"] == pytest.approx(1 - errors.mean() / Y.var())
    assert by_name["mean of y"]["r2"] < 0.1
    assert (found["rows"], found["folds"], found["seed"]) == (N, 3, 7)
    errors = [result["mean_squared_error"] for result in found["results"]]
    assert errors == sorted(errors)
    assert len(errors) == 6


def test_classes_and_levels():
    found, by_name = compared("--target", "side", "--features", "x,y", "--folds", "3")
    folds = StratifiedKFold(3, shuffle=True, random_state=0)
    Z = np.c_[X, Y]
    forest = RandomForestClassifier(random_state=0)
    probability = cross_val_predict(forest, Z, SIDE, cv=folds, method="predict_proba")
    said = probability[np.arange(N), (SIDE == "right").astype(int)]
    expected = -np.log(np.maximum(said, np.finfo(float).eps)).mean()
    assert by_name["RandomForestClassifier"]["log_loss"] == pytest.approx(expected)
    assert by_name["RandomForestClassifier"]["wrong"] == pytest.approx((said < 0.5).mean())
    assert by_name["class frequencies"]["log_loss"] == pytest.approx(0.69, abs=0.02)
    assert len(found["results"]) == 5


def test_clusters_stay_together():
    from kernpool.cli.compare import folds_of
    from kernpool.cli.options import build_parser
    from kernpool.cli.tables import training_rows

    options = ["compare", "t.csv", "--target", "y", "--groups", "school", "--folds", "3"]
    training = training_rows(build_parser().parse_args(options))
    folds = folds_of(training, 3, 0)
    expected = GroupKFold(3, shuffle=True, random_state=0).split(X, Y, SCHOOL.astype(str))
    for (fit, test), (_, theirs) in zip(folds, expected, strict=True):
        np.testing.assert_array_equal(test, theirs)
        assert not set(SCHOOL[fit]) & set(SCHOOL[test])
