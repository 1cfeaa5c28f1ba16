"""Classifiers asked for sets and leave-one-out probabilities: what they take, keep and refuse."""

import numpy as np
import pytest
from sklearn.base import clone

import tests.support.dense_classes as reference
from kernpool import InferenceWarning, NadarayaWatsonClassifier
from kernpool.conformal.sets import ClassRows

METHODS = ["lac", "aps"]


def sample(generator, n=80):
    X = generator.uniform(-1.0, 1.0, size=(n, 2))
    score = 2 * X[:, :1] * np.arange(3) + generator.gumbel(size=(n, 3))
    return X, np.array(["a", "b", "c"])[np.argmax(score, axis=1)]


@pytest.fixture
def rows(generator):
    return sample(generator)


@pytest.fixture
def model(rows):
    return NadarayaWatsonClassifier(bandwidth=0.4, prior_share=0.05).fit(*rows)


def test_leave_one_out_probabilities_of_clusters(rows):
    X, y = rows
    school = np.arange(80) // 4
    model = NadarayaWatsonClassifier(bandwidth=0.4, prior_share=0.05).fit(X, y, groups=school)
    found = model.leave_one_out().probability
    for i in (0, 41):
        rest = school != school[i]
        other = clone(model).fit(X[rest], y[rest])
        np.testing.assert_allclose(found[i], other.predict_proba(X[i : i + 1])[0], rtol=1e-12)
    score = 1.0 - np.sum(reference.labels_of(model) * found, axis=1)
    threshold = model.predict_set(X, 0.8).threshold[0]
    assert threshold == pytest.approx(np.sort(score)[65 - 1], rel=1e-12)  # .8 (80 + 1) = 64.8


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("kind", [str, int, bool, float])
def test_labels_of_any_kind(kind, method, generator):
    X, _ = sample(generator)
    number = (X[:, 0] + 0.3 * generator.normal(size=80) > 0).astype(int)
    y = np.array(["no", "yes"])[number] if kind is str else number.astype(kind)
    model = NadarayaWatsonClassifier(bandwidth=0.4, prior_share=0.05).fit(X, y)
    found = model.predict_set(X[:9], 0.9, method=method, random_state=0)
    assert {type(label) for labels in found.labels for label in labels} == {type(y.tolist()[0])}
    found = model.predict_set(X[:9], 0.8, method=method, X_calibration=X[:20], y_calibration=y[:20].tolist())
    assert found.n_calibration == 20


@pytest.mark.filterwarnings("ignore::kernpool.ExtrapolationWarning")  # at 9
def test_empty_windows_have_the_sets_of_the_priors(rows):
    X, y = rows
    for empty in ("mean", "nan", "zero", "nearest"):
        model = NadarayaWatsonClassifier("epanechnikov", 0.5, prior_share=0.1, empty=empty).fit(X, y)
        for method in METHODS:
            found = model.predict_set([[9.0, 9.0]], 0.9, method=method, random_state=0)
            assert found.member[0].sum() >= 2
        score = 1.0 - model.class_prior_
        found = model.predict_set([[9.0, 9.0]], 0.9)
        np.testing.assert_array_equal(found.member[0], score <= found.threshold)
    model = NadarayaWatsonClassifier("epanechnikov", 0.5, empty="raise").fit(X, y)
    assert model.predict_set(X, 0.9).size.min() > 0
    with pytest.raises(ValueError, match="no key"):
        model.predict_set([[9.0, 9.0]], 0.9)


def rows_that_calibrate(X, y):
    return {"X_calibration": X, "y_calibration": y}


PLACE = [[0.0, 0.0]]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"method": "lap"}, "method must be 'lac' or 'aps', got 'lap'"),
        ({"level": 90}, "90 percent is level=0.9"),
        ({"by_class": "yes"}, "by_class must be True or False, got 'yes'"),
        ({"allow_empty": 1}, "allow_empty must be True or False, got 1"),
        ({"X_calibration": PLACE}, "go together, and y_calibration is None"),
        (rows_that_calibrate([[0.0]], ["a"]), "X_calibration or y_calibration: X has 1 features"),
        (rows_that_calibrate(PLACE, ["a", "b"]), "one label for each row of X_calibration"),
        (
            rows_that_calibrate(PLACE * 3, ["a", "z", "new"]),
            "no training row has: 'new', 'z'; the classes are 'a', 'b', 'c'. Fit the model to rows of all classes",
        ),
        (rows_that_calibrate(np.empty((0, 2)), []), "X_calibration or y_calibration: X is empty: 0 sample"),
        (rows_that_calibrate([[0.0, np.nan]], ["a"]), "X_calibration or y_calibration: column 1 of X is missing"),
        (rows_that_calibrate(PLACE, [["a", "b"]]), "X_calibration or y_calibration: y should be a 1d array"),
    ],
)
def test_bad_input(options, message, model):
    with pytest.raises((TypeError, ValueError), match=message):
        model.predict_set(PLACE, **options)


def test_labels_that_look_alike_are_told_apart(rows):
    X, _ = rows
    model = NadarayaWatsonClassifier(bandwidth=0.4).fit(X, np.arange(80) % 2)
    with pytest.raises(ValueError, match="no training row has: '0', '1'; the classes are 0, 1"):
        model.predict_set(X, X_calibration=X, y_calibration=["0", "1"] * 40)
    one, other = (model.predict_set(X, X_calibration=X, y_calibration=np.arange(80) % 2 * unit) for unit in (1, 1.0))
    np.testing.assert_array_equal(one.member, other.member)


def test_calibration_rows_of_empty_windows(rows):
    """They have the priors, as places have; or are refused by name."""
    X, y = rows
    far = {"X_calibration": np.full((19, 2), 9.0), "y_calibration": y[:19]}
    model = NadarayaWatsonClassifier("epanechnikov", 0.9, prior_share=0.1).fit(X, y)
    score = np.sort(1.0 - model.class_prior_[np.searchsorted(model.classes_, y[:19])])
    np.testing.assert_allclose(model.predict_set(X, 0.8, **far).threshold, score[15], rtol=1e-12)
    model.set_params(empty="raise").fit(X, y)
    with pytest.raises(ValueError, match=r"X_calibration or y_calibration: 19 of 19 queries .* have no key"):
        model.predict_set(X[:1], 0.8, **far)


def test_a_class_without_rows_that_calibrate_is_in_every_set(model, rows):
    X, y = rows
    rest = y != "b"
    options = {"X_calibration": X[rest], "y_calibration": y[rest], "by_class": True, "random_state": 0}
    for method in ("lac", "aps"):
        with pytest.warns(InferenceWarning, match="at least 9 rows of each class .* there are 0 of 'b', so that these"):
            found = model.predict_set(X, 0.9, method=method, **options)
        np.testing.assert_array_equal(np.isinf(found.threshold), [False, True, False])
        assert found.member[:, 1].all()
        assert not found.member[:, [0, 2]].all()


def test_classes_whose_rows_have_no_weight(rows):
    X, y = rows
    weight = (y != "b") * 1.0
    model = NadarayaWatsonClassifier(bandwidth=0.4, prior_share=0.05).fit(X, y, sample_weight=weight)
    found = model.predict_set(X, 0.8)
    assert found.n_calibration == weight.sum()
    assert not found.member[:, 1].any()
    other = clone(model).fit(X[weight > 0], y[weight > 0]).predict_set(X, 0.8)
    np.testing.assert_array_equal(found.member[:, [0, 2]], other.member)
    for method in METHODS:
        with pytest.warns(InferenceWarning, match="there are 0 of 'b'"):
            assert model.predict_set(X, 0.8, method=method, by_class=True).member[:, 1].all()
    with pytest.raises(ValueError, match=r"sample_weight is zero for every key.*; give some key a positive weight"):
        model.fit(X, y, sample_weight=np.zeros(80))


@pytest.mark.parametrize("method", METHODS)
def test_sets_of_one_class(method, rows):
    X, _ = rows
    model = NadarayaWatsonClassifier(bandwidth=0.4).fit(X, np.full(80, "only"))
    found = model.predict_set(X, 0.9, method=method, random_state=0)
    assert found.labels == [["only"]] * 80
    if method == "lac":
        assert model.predict_set(X, 0.9, method=method).member.all()


def test_draws_are_those_of_the_seed(model, rows):
    X, _ = rows
    for method in ("aps",):
        one, other, third = (model.predict_set(X, 0.6, method=method, random_state=seed).member for seed in (0, 0, 1))
        np.testing.assert_array_equal(one, other)
        assert np.any(one != third)
        generators = (np.random.default_rng(3) for _ in range(2))
        one, other = (model.predict_set(X, 0.6, method=method, random_state=g).member for g in generators)
        np.testing.assert_array_equal(one, other)


def test_draws_of_heavy_rows_are_bounded(rows, monkeypatch):
    """A row of weight 1e6 draws often, but not a million times; the sets are nearly those of equal weights."""
    X, y = rows
    monkeypatch.setattr("kernpool.conformal.sets.MOST_ROWS", 800)
    with pytest.warns(UserWarning, match="weights are read as frequencies"):
        model = NadarayaWatsonClassifier(bandwidth=0.4, prior_share=0.05).fit(X, y, sample_weight=np.full(80, 1e6))
    found = model.predict_set(X, 0.8, method="aps", random_state=0)
    assert found.n_calibration == 8e7
    score = 1.0 - np.sum(reference.labels_of(model) * model.leave_one_out().probability, axis=1)
    units = ClassRows(np.eye(3)[np.zeros(80, dtype=int)], np.zeros(80, dtype=int), np.full(80, 1e6)).units()
    assert len(units.weight) == 800
    assert units.total == pytest.approx(8e7, rel=1e-12)
    assert model.predict_set(X, 0.8).threshold[0] == pytest.approx(np.sort(score)[64], rel=1e-12)


def test_places_in_parts_are_refused(model, tmp_path):
    for ask in (model.predict, model.predict_proba, model.predict_set, model.probability_interval):
        with pytest.raises(TypeError, match=r"X must be rows in memory, got str; pass one part .*iter_batches"):
            ask(str(tmp_path / "rows.parquet"))
    with pytest.raises(TypeError, match="takes rows in memory; for rows in chunks fit NadarayaWatsonRegressor"):
        clone(model).fit(str(tmp_path / "rows.parquet"), "y")


@pytest.mark.parametrize("share", ["loo", 0.0])
def test_classes_of_one_row_and_one_class(share, rows):
    X, y = rows
    model = NadarayaWatsonClassifier(bandwidth=0.4, prior_share=share)
    probability = model.fit(X, np.where(np.arange(80) == 3, "odd", y)).predict_proba(X)
    np.testing.assert_allclose(probability.sum(axis=1), 1.0, rtol=1e-14)
    np.testing.assert_allclose(model.fit(X, np.full(80, 2)).predict_proba(X), 1.0)
