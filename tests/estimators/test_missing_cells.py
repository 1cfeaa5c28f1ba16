"""Rows with missing cells are refused, left out, or have a level of their own: laws, tables of all kinds, files."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

from kernpool import (
    LocalLinearRegressor,
    NadarayaWatsonClassifier,
    NadarayaWatsonRegressor,
    PartialDisplay,
    load_model,
    open_chunks,
    save_model,
)
from kernpool.data.encoding import Encoding
from kernpool.data.missing_cells import rows_with_missing

ESTIMATORS = [NadarayaWatsonRegressor, LocalLinearRegressor, NadarayaWatsonClassifier]


@pytest.fixture
def complete(generator):
    day = pd.to_datetime("2020-01-01") + pd.to_timedelta(generator.integers(0, 90, 60), unit="D")
    frame = pd.DataFrame({"x": generator.normal(size=60), "side": generator.choice(list("abc"), 60), "day": day})
    return frame, frame["x"] + (frame["side"] == "a") + 0.1 * generator.normal(size=60)


@pytest.fixture
def holey(complete):
    frame, y = complete
    frame, y = frame.copy(), y.copy()
    frame.loc[[1, 5, 9, 30], "x"] = np.nan
    frame.loc[[5, 7, 31], "side"] = None
    frame.loc[[3, 40], "day"] = pd.NaT
    y[[11, 30]] = np.nan
    return frame, y


def output_of(kind, y):
    return np.where(np.isnan(y), None, np.where(y > 0, "high", "low")) if kind is NadarayaWatsonClassifier else y


@pytest.mark.parametrize("kind", ESTIMATORS)
def test_drop_is_a_fit_without_these_rows(kind, holey, generator):
    frame, y = holey
    weight, groups, y = generator.integers(1, 4, 60), np.arange(60) % 7, output_of(kind, y)
    kept = ~(frame.isna().any(axis=1) | pd.isna(y))
    options = {"bandwidth": [0.5, 20.0], "smoothing": [0.2]}
    dropped = kind(missing="drop", **options).fit(frame, y, weight, groups)
    by_hand = kind(**options).fit(frame[kept], y[kept], weight[kept], groups[kept])
    assert dropped.n_missing_ == 9 == (~kept).sum()
    ask = "predict_proba" if kind is NadarayaWatsonClassifier else "predict"
    whole = getattr(dropped, ask)(frame)
    known = ~frame.isna().any(axis=1)
    np.testing.assert_array_equal(whole[known], getattr(by_hand, ask)(frame[known]))
    assert np.isnan(whole[~known]).all()
    alone = getattr(dropped, ask)(frame[1:2])
    assert alone.shape == (1, *whole.shape[1:])
    assert np.isnan(alone).all()
    numbers = kind(bandwidth=[0.5], missing="drop").fit(frame[["x"]], y)
    assert np.isnan(getattr(numbers, ask)(frame[["x"]][1:2])).all()


def test_labels_are_missing_where_cells_are(generator):
    X, label = generator.normal(size=(30, 1)), generator.integers(0, 2, 30)
    X[4] = np.nan
    for labels, missing in ((label, float), (np.array(["no", "yes"])[label], object)):
        said = NadarayaWatsonClassifier(bandwidth=0.5, missing="drop").fit(X, labels).predict(X)
        assert said.dtype == missing
        assert pd.isna(said).tolist() == [row == 4 for row in range(30)]


def test_answers_of_every_shape_are_nan(holey):
    frame, y = holey
    model = NadarayaWatsonRegressor(bandwidth=[0.5, 20.0], smoothing=[0.2], missing="drop").fit(frame, y)
    part, known = frame[:8], ~frame[:8].isna().any(axis=1)
    for answers in (
        model.predict(part, return_std=True)[1],
        model.quantile(part, [0.1, 0.9]),
        model.confidence_interval(part).lower,
        model.prediction_interval(part).upper,
    ):
        assert len(answers) == 8
        np.testing.assert_array_equal(np.isnan(answers).reshape(8, -1).all(axis=1), ~known)
    some = model.confidence_interval(part[known])
    np.testing.assert_array_equal(model.confidence_interval(part).upper[known], some.upper)
    with pytest.raises(ValueError, match="quantile and intervals answer NaN at such rows"):
        model.get_prediction(part)
    # Where no row is known, the answer at a training row says what shape answers have, and no more.
    for rows in (1, 3):
        nothing = part[~known][:1].iloc[np.zeros(rows, dtype=int)]
        for found in (model.confidence_interval(nothing), model.prediction_interval(nothing)):
            assert len(found.lower) == rows
            assert np.all(np.isnan([found.lower, found.upper]))
            assert "nan" in str(found)


def test_classes_of_intervals_are_no_rows(generator):
    X, label = generator.normal(size=(30, 1)), generator.integers(0, 2, 30)
    model = NadarayaWatsonClassifier(bandwidth=0.5, missing="drop").fit(X, label)
    found = model.probability_interval(np.vstack([X[:2], [[np.nan]]]))
    assert found.classes.tolist() == [0, 1]
    assert np.isnan(found.lower).all(axis=1).tolist() == [False, False, True]
    assert np.isnan(found.effective_rows).tolist() == [False, False, True]


def test_predictions_are_printed_beside_their_rows(generator):
    x = generator.normal(size=(40, 1))
    model = NadarayaWatsonRegressor(bandwidth=0.5, missing="drop").fit(x, x[:, 0])
    some = x[:12].copy()
    some[2] = np.nan
    printed = str(model.confidence_interval(some))
    assert "predict" in str(model.confidence_interval(x[:12]))
    assert "predict" not in printed
    assert "n_eff" not in printed


@pytest.mark.parametrize("kind", ESTIMATORS)
def test_category_is_a_fit_to_the_table_made_by_hand(kind, holey):
    frame, y = holey
    y = output_of(kind, y)
    kept = ~pd.isna(y)
    known = frame[kept]
    by_hand = pd.DataFrame({
        "x": frame["x"].fillna(known["x"].median()),
        "side": frame["side"].astype(object).where(frame["side"].notna(), "missing"),
        "day": frame["day"].fillna(known["day"].median()),
        "x missing": np.where(frame["x"].isna(), "yes", "no"),
        "day missing": np.where(frame["day"].isna(), "yes", "no"),
    })  # fmt: skip
    model = kind(missing="category", random_state=0).fit(frame, y)
    same = kind(random_state=0).fit(by_hand[kept], y[kept])
    assert model.n_missing_ == 2
    assert model.encoding_.names == tuple(by_hand)
    np.testing.assert_allclose(model.bandwidth_, same.bandwidth_)
    np.testing.assert_allclose(model.smoothing_, same.smoothing_)
    ask = "predict_proba" if kind is NadarayaWatsonClassifier else "predict"
    np.testing.assert_allclose(getattr(model, ask)(frame), getattr(same, ask)(by_hand))
    assert model.n_features_in_ == 3


def test_arrays_and_frames_of_all_libraries(generator):
    X = generator.normal(size=(40, 2))
    y = X[:, 0] + 0.1 * generator.normal(size=40)
    X[[3, 8], 1] = np.nan
    frames = [X, X.tolist(), pd.DataFrame(X), pl.DataFrame(X, schema=["a", "b"]), pd.DataFrame(X).convert_dtypes()]
    for policy, options in (("drop", {}), ("category", {"smoothing": [0.3]})):
        models = [
            NadarayaWatsonRegressor(bandwidth=[0.4, 2.0], missing=policy, **options).fit(frame, y) for frame in frames
        ]
        found = [model.predict(frame) for model, frame in zip(models, frames, strict=True)]
        for other in found[1:]:
            np.testing.assert_array_equal(other, found[0])
        assert np.isnan(found[0]).sum() == (2 if policy == "drop" else 0)
    np.testing.assert_array_equal(np.flatnonzero(rows_with_missing(frames[3])), [3, 8])


def test_a_table_without_missing_cells_is_fitted_as_ever(complete):
    frame, y = complete
    options = {"bandwidth": [0.5, 20.0], "smoothing": [0.2]}
    plain = NadarayaWatsonRegressor(**options).fit(frame, y).predict(frame)
    for policy in ("drop", "category"):
        model = NadarayaWatsonRegressor(missing=policy, **options).fit(frame, y)
        assert model.n_missing_ == 0
        np.testing.assert_array_equal(model.predict(frame), plain)


def test_models_are_saved_and_drawn(holey, tmp_path):
    pytest.importorskip("matplotlib", reason="pictures need the extra 'plot'")
    frame, y = holey
    options = {"bandwidth": [0.5, 20.0], "smoothing": [0.2, 0.3, 0.3], "missing": "category"}
    model = NadarayaWatsonRegressor(**options).fit(frame, y)
    save_model(model, tmp_path / "model")
    loaded = load_model(tmp_path / "model")
    np.testing.assert_array_equal(loaded.predict(frame), model.predict(frame))
    assert loaded.n_missing_ == model.n_missing_ == 2
    assert Encoding.from_json(model.encoding_.to_json()) == model.encoding_
    assert "x missing" in str(model.summary())
    assert PartialDisplay.from_estimator(model).figure_ is not None


@pytest.mark.parametrize(
    ("fills", "words"),
    [
        ([["0", 1.0]], "does not number"),
        ([[7, 1.0]], "missing cells become"),
        ([[0, None]], "missing cells become"),
        ([[1, 2.0]], "missing cells become"),
        ([[0, float("nan")]], "missing cells become"),
        ([0], "lists"),
    ],
)
def test_an_edited_encoding_is_refused(fills, words):
    table = pd.DataFrame({"x": [1.0, np.nan, 2.0], "side": ["a", None, "b"]})
    plain = Encoding.fit(table, fill=True).to_json()
    assert plain["fills"] == [[0, 1.5], [1, None]]
    with pytest.raises((TypeError, ValueError), match=words):
        Encoding.from_json(plain | {"fills": fills})


def test_messages_name_the_remedies(holey):
    frame, y = holey
    for X in (frame, frame[["x"]], frame[["side"]], frame[["x"]].to_numpy()):
        with pytest.raises(ValueError, match="missing='drop', which leaves them out, or missing='category'"):
            NadarayaWatsonRegressor().fit(X, y.fillna(0.0))
    known = frame.dropna()
    model = NadarayaWatsonRegressor(bandwidth=[0.5, 20.0], smoothing=[0.2], missing="category")
    model.fit(known, y[known.index].fillna(0.0))
    with pytest.raises(ValueError, match="The column had no missing cells where the model was fitted"):
        model.predict(frame)


@pytest.mark.parametrize(
    ("table", "policy", "words"),
    [
        ({"x": [np.nan, np.nan], "z": [1.0, 2.0]}, "category", "column 'x' of X is missing in every row"),
        ({"x": [np.nan, 1.0], "z": [1.0, np.nan]}, "drop", "every row has a missing cell or output"),
        ({"x": [np.nan, 1.0], "x missing": [1.0, 2.0]}, "category", "and a column has it; rename"),
        (
            {"x": pd.Categorical(["a", None], ["a", "b"], ordered=True), "z": [1.0, 2.0]},
            "category",
            "no place in the order of its levels",
        ),
        ({"x": [1.0, 2.0]}, "mean", "missing must be"),
        ({"x": [np.nan, np.inf, 1.0]}, "drop", "inf"),
    ],
)
def test_what_is_refused(table, policy, words):
    frame = pd.DataFrame(table)
    with pytest.raises(ValueError, match=words):
        NadarayaWatsonRegressor(missing=policy).fit(frame, np.arange(len(frame)))


def test_rows_are_added_without_their_gaps(generator):
    X, y = generator.normal(size=(30, 1)), generator.normal(size=30)
    X[[2, 25]] = np.nan
    y[28] = np.nan
    model = NadarayaWatsonRegressor(bandwidth=0.5, missing="drop")
    model.partial_fit(X[:20], y[:20]).partial_fit(X[20:], y[20:])
    assert (model.n_missing_, len(model.key_)) == (3, 27)
    with pytest.raises(TypeError, match="partial_fit is for numeric columns"):
        NadarayaWatsonRegressor(missing="category").partial_fit(X, y)
    with pytest.raises(ValueError, match="missing must be 'raise' for rows that are not in memory"):
        NadarayaWatsonRegressor(missing="drop").fit(open_chunks([(X[5:9], y[5:9])]))
    with pytest.raises(ValueError, match="y is missing in every row"):
        NadarayaWatsonRegressor(missing="category").fit(X, np.full(30, np.nan))
