"""Sets of classes by thresholds, against their definitions written out."""

from fractions import Fraction
from itertools import pairwise
from math import ceil

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import tests.support.dense_classes as reference
from kernpool import InferenceWarning, NadarayaWatsonClassifier
from kernpool.conformal.sets import adaptive_mass

NAMES = np.array(["a", "b", "c"])
RANDOM = ("aps",)


def sample(generator, n=60):
    X = generator.uniform(-1.0, 1.0, size=(n, 2))
    score = 2 * X[:, :1] * np.arange(3) + generator.gumbel(size=(n, 3))
    return X, NAMES[np.argmax(score, axis=1)]


@pytest.fixture
def rows(generator):
    return sample(generator)


@pytest.fixture
def model(rows):
    return NadarayaWatsonClassifier(bandwidth=0.4, prior_share=0.05).fit(*rows)


def numbers(y):
    return np.searchsorted(NAMES, y)


def own(table, y):
    return table[np.arange(len(y)), numbers(y)]


def kth_smallest(score, level):
    """Of n scores the one of rank ``ceil(level (n + 1))``."""
    rank = ceil(Fraction(str(level)) * (len(score) + 1))
    return np.inf if rank > len(score) else np.sort(score)[rank - 1]


LEVELS = [0.5, 0.8, 0.9, 0.95]


def adaptive_set(probability, threshold, u):
    """The set S(x, u; pi, tau) of Romano, Sesia and Candes, equations 3 and 4, for one row."""
    order = np.argsort(-probability, kind="stable")
    mass = np.cumsum(probability[order])
    if threshold > mass[-1]:
        return set(order.tolist())
    last = int(np.argmax(mass >= threshold))  # L - 1
    left = (mass[last] - threshold) / probability[order[last]]
    return set(order[: last if u <= left else last + 1].tolist())


def test_adaptive_sets_by_their_definition(generator):
    """The least threshold whose set has the class; their uniform number is one less ours."""
    probability, draw = generator.dirichlet(np.ones(5), size=40), generator.uniform(size=40)
    score = adaptive_mass(probability, draw)
    for i in range(40):
        for c in range(5):
            for threshold in (score[i, c] - 1e-9, score[i, c] + 1e-9):
                is_in = c in adaptive_set(probability[i], threshold, 1.0 - draw[i])
                assert is_in == (score[i, c] <= threshold)


def test_of_equal_probabilities_the_first_comes_first():
    score = adaptive_mass(np.full((1, 4), 0.25), np.array([1.0]))
    assert_array_equal(score, [[0.25, 0.5, 0.75, 1.0]])


@pytest.mark.parametrize("with_rows", [False, True])
@pytest.mark.parametrize("method", ["lac", *RANDOM])
@pytest.mark.parametrize("by_class", [False, True])
def test_sets_by_the_formula(method, by_class, with_rows, model, rows, generator):
    (X, y), places = rows, generator.uniform(-1.2, 1.2, size=(30, 2))
    probability, options = reference.left_out(model, X), {}
    if with_rows:
        X_new, y_new = sample(generator, 90)
        probability, y = model.predict_proba(X_new), y_new
        options = {"X_calibration": X_new, "y_calibration": y_new}
    options |= {"by_class": by_class, "allow_empty": True}
    found = model.predict_set(places, 0.8, method=method, random_state=3, **options)
    random = np.random.RandomState(3)
    draw, there = random.uniform(size=len(y)), random.uniform(size=30)
    score = {
        "lac": lambda probability, _: 1.0 - probability,
        "aps": adaptive_mass,
    }[method]
    calibrating = own(score(probability, draw), y)
    groups = [y == name for name in NAMES] if by_class else [y == y] * 3
    threshold = [kth_smallest(calibrating[of], 0.8) for of in groups]
    assert_allclose(found.threshold, threshold, rtol=1e-12)
    assert_array_equal(found.member, score(model.predict_proba(places), there) <= np.array(threshold) + 1e-12)
    assert len(set(threshold)) == (3 if by_class else 1)
    assert found.n_calibration == len(y)


@pytest.mark.parametrize("method", ["lac", "aps"])
def test_sets_grow_with_the_level(method, model, generator):
    places = generator.uniform(-1.2, 1.2, size=(60, 2))
    tables = [model.predict_set(places, level, method=method, random_state=0).member for level in LEVELS]
    for less, more in pairwise(tables):
        assert np.all(more >= less)
    assert tables[-1].sum() > tables[0].sum()


@pytest.mark.parametrize("method", ["lac", "aps"])
def test_no_set_is_empty_unless_it_may_be(method, model, generator):
    places = generator.uniform(-1.0, 1.0, size=(200, 2))
    one, other = (
        model.predict_set(places, 0.3, method=method, random_state=0, **choice)
        for choice in ({"allow_empty": True}, {})
    )
    assert one.size.min() == 0
    assert other.size.min() == 1
    top = np.eye(3, dtype=bool)[model.predict_proba(places).argmax(axis=1)]
    assert_array_equal(other.member, one.member | top)


@pytest.mark.parametrize("method", ["lac", "aps"])
def test_too_few_rows_name_the_least_number(method, rows):
    X, _ = rows
    model = NadarayaWatsonClassifier(bandwidth=0.5, prior_share=0.1).fit(X[:18], NAMES[np.arange(18) % 3])
    with pytest.warns(InferenceWarning, match=r"level 0.95 need at least 19 rows .* there are 18, so that every set"):
        found = model.predict_set(X, 0.95, method=method)
    assert found.member.all()
    message = r"level 0.9 need at least 9 rows of each class .* there are 6 of 'a', 6 of 'b', 6 of 'c', so that these"
    with pytest.warns(InferenceWarning, match=message):
        assert model.predict_set(X, 0.9, method=method, by_class=True).member.all()
    model.fit(X[:19], NAMES[np.arange(19) % 3])
    assert not model.predict_set(X, 0.6, method=method, by_class=True).member.all()


def test_ties_are_in(model, generator):
    """Places where calibration rows are: the score of the class is the threshold, but for rounding."""
    place, other = np.array([[0.05, 0.1]]), generator.uniform(-1.0, 1.0, size=(97, 2))
    options = {"X_calibration": np.repeat(place, 30, axis=0), "y_calibration": ["b"] * 30}
    for count in (1, 7, 31, 400):
        places = np.concatenate([np.repeat(place, count, axis=0), other])
        assert model.predict_set(places, 0.4, **options).member[:count, 1].all()


def test_levels_of_columns_and_many_classes(generator):
    frame = pd.DataFrame({"x": generator.normal(size=300), "level": pd.Categorical(list("abc") * 100)})
    y = np.clip(np.round(2 * frame.x + 3 * (frame.level == "a") + generator.normal(size=300)), -5, 7).astype(int)
    model = NadarayaWatsonClassifier(bandwidth=0.4, smoothing=0.1, prior_share=0.01).fit(frame, y)
    score = 1.0 - np.sum(reference.labels_of(model) * reference.left_out(model, frame), axis=1)
    found = model.predict_set(frame, 0.9)
    assert_allclose(found.threshold[0], kth_smallest(score, 0.9), rtol=1e-12)
    for method in RANDOM:
        inside = model.predict_set(frame, 0.9, method=method, random_state=0).member[np.arange(300), y - y.min()]
        assert inside.mean() > 0.85


def test_the_record_lists_labels(model, rows):
    X, _ = rows
    found = model.predict_set(X, 0.8)
    assert found.labels == [NAMES[row].tolist() for row in found.member]
    assert_array_equal(found.size, [len(labels) for labels in found.labels])


GIVEN = {"bandwidth": 0.5, "prior_share": 0.1}


@pytest.mark.parametrize(("parameters", "fit", "options", "words"), [
    (GIVEN, {}, {}, "about 0.8 for new rows like these, without a finite-sample guarantee"),
    (GIVEN, {}, {"rows": 50}, "at least 0.8 for new rows like these, on average over new points and calibration rows"),
    (GIVEN, {}, {"rows": 50, "by_class": True}, "of the fit, whichever it is, with a probability of at least 0.8"),
    ({"bandwidth": "scott"}, {}, {"rows": 50}, "at least 0.8 for new rows like these"),
    (GIVEN, {"groups": np.arange(60) // 3}, {}, "of the fit in a new cluster"),
    (GIVEN, {"sample_weight": np.full(60, 2.0)}, {}, "rows are repeated or have weights above one"),
])  # fmt: skip
def test_the_sentence_says_what_is_guaranteed(parameters, fit, options, words, rows, generator):
    options = dict(options)
    if count := options.pop("rows", 0):
        options |= dict(zip(("X_calibration", "y_calibration"), sample(generator, count), strict=True))
    model = NadarayaWatsonClassifier(**parameters).fit(*rows, **fit)
    assert words in model.predict_set(rows[0][:3], 0.8, **options).guarantee


def test_sets_have_classes_of_their_own():
    X, y = np.arange(6.0)[:, None], np.array([0, 1, 0, 1, 0, 1])
    model = NadarayaWatsonClassifier(bandwidth=1.0, prior_share=0.1).fit(X, y)
    model.predict_set(X, level=0.5).classes[:] = 7
    assert model.classes_.tolist() == [0, 1]
