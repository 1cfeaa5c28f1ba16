"""Stacks of tables with missing cells, and with columns on circles and the globe."""

import numpy as np
import pandas as pd
import pytest

from kernpool import (
    KernelStackingClassifier,
    KernelStackingRegressor,
    LocalLinearRegressor,
    NadarayaWatsonClassifier,
    NadarayaWatsonRegressor,
    load_model,
    save_model,
)

PLAIN = {"learn_metric": False}


@pytest.fixture
def holey(generator):
    frame = pd.DataFrame({"x": generator.normal(size=50), "z": generator.normal(size=50)})
    y = frame["x"] + np.sin(frame["z"]) + 0.1 * generator.normal(size=50)
    frame.loc[[1, 5, 9, 30], "x"] = np.nan
    frame.loc[[5, 7], "z"] = None
    y[[11, 30]] = np.nan
    return frame, y


def test_drop_is_a_fit_without_these_rows(holey, generator):
    frame, y = holey
    weight, groups = generator.integers(1, 4, 50), np.arange(50) % 12
    kept, known = ~(frame.isna().any(axis=1) | y.isna()), ~frame.isna().any(axis=1)
    given = {"bandwidth": [0.7, 0.9]}
    dropped = KernelStackingRegressor(LocalLinearRegressor(**given, missing="drop"), **PLAIN)
    dropped.fit(frame, y, weight, groups)
    by_hand = KernelStackingRegressor(LocalLinearRegressor(**given), **PLAIN)
    by_hand.fit(frame[kept], y[kept], weight[kept], groups[kept])
    assert dropped.n_missing_ == (~kept).sum() == 6
    assert dropped.member_weights_ == by_hand.member_weights_
    np.testing.assert_array_equal(dropped.predict(frame)[known], by_hand.predict(frame[known]))
    answers = (
        dropped.predict(frame),
        dropped.confidence_interval(frame).lower,
        dropped.prediction_interval(frame).upper,
    )
    for answer in answers:
        np.testing.assert_array_equal(np.isnan(answer), ~known)
    assert np.isnan(dropped.predict(frame[1:2])).all()
    with pytest.raises(ValueError, match="answer NaN at such rows"):
        dropped.attention_weights(frame)


def test_labels_and_probabilities_are_missing_where_cells_are(holey):
    frame, y = holey
    label = np.where(y.isna(), None, np.where(y > 0, "high", "low"))
    local = NadarayaWatsonClassifier(bandwidth=[0.7, 0.9], missing="drop")
    model = KernelStackingClassifier(local, **PLAIN).fit(frame, label)
    missing = frame.isna().any(axis=1)
    np.testing.assert_array_equal(pd.isna(model.predict(frame)), missing)
    np.testing.assert_array_equal(np.isnan(model.predict_proba(frame)).all(axis=1), missing)


def test_category_is_a_fit_to_the_table_made_by_hand(holey, tmp_path):
    frame, y = holey
    kept = y.notna()
    by_hand = pd.DataFrame({name: frame[name].fillna(frame.loc[kept, name].median()) for name in frame})
    for name in frame:
        by_hand[f"{name} missing"] = np.where(frame[name].isna(), "yes", "no")
    given = {"bandwidth": [0.7, 0.9], "smoothing": [0.3, 0.2], "unordered": ["x missing", "z missing"]}
    local = LocalLinearRegressor(bandwidth=[0.7, 0.9], smoothing=[0.3, 0.2], ridge=0.0, missing="category")
    model = KernelStackingRegressor(local, **PLAIN).fit(frame, y)
    same = KernelStackingRegressor(LocalLinearRegressor(ridge=0.0, **given), **PLAIN).fit(by_hand[kept], y[kept])
    np.testing.assert_allclose(model.predict(frame), same.predict(by_hand))
    save_model(model, tmp_path / "model")
    loaded = load_model(tmp_path / "model")
    np.testing.assert_allclose(loaded.predict(frame), model.predict(frame), rtol=1e-12)
    assert loaded.n_missing_ == model.n_missing_ == 2
    complete = KernelStackingRegressor(NadarayaWatsonRegressor(bandwidth=1.0), **PLAIN).fit(
        by_hand[["x", "z"]], by_hand["x"]
    )
    assert not hasattr(complete, "n_missing_")
    with pytest.raises(ValueError, match="use missing='drop'"):
        complete.predict(frame)


@pytest.mark.parametrize("kind", [NadarayaWatsonRegressor, LocalLinearRegressor])
def test_all_members_go_round(kind, generator):
    X = np.column_stack([generator.uniform(0.0, 24.0, 60), generator.normal(size=60)])
    y = np.sin(2 * np.pi * X[:, 0] / 24) + X[:, 1] + 0.1 * generator.normal(size=60)
    model = KernelStackingRegressor(kind(bandwidth=[3.0, 1.0], periodic={0: 24}), **PLAIN).fit(X, y)
    turned = X + np.array([24.0, 0.0]) * generator.integers(-3, 4, 60)[:, None]
    np.testing.assert_allclose(model.predict(turned), model.predict(X), rtol=1e-9)
    np.testing.assert_allclose(model.confidence_interval(turned).lower, model.confidence_interval(X).lower, rtol=1e-8)
    late, early = model.predict([[23.999, 0.0], [0.001, 0.0]])
    assert late == pytest.approx(early, abs=0.01)


def test_the_date_line_is_no_border(generator):
    where = np.column_stack([generator.uniform(-60, 60, 60), generator.uniform(170.0, 190.0, 60)])
    y = where[:, 0] + where[:, 1]
    model = KernelStackingRegressor(LocalLinearRegressor(geographic=(0, 1), bandwidth=2000.0), **PLAIN).fit(where, y)
    np.testing.assert_allclose(model.predict([[5.0, 181.0]]), model.predict([[5.0, -179.0]]), rtol=1e-12)
