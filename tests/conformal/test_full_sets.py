"""Full conformal p-values of classes in closed form, against fits to one more row for every place and class."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

import tests.support.dense_classes as reference
from kernpool import NadarayaWatsonClassifier

CASES = {
    "gaussian": {},
    "no prior": {"prior_share": 0.0},
    "compact": {"kernel": "epanechnikov", "bandwidth": 0.6},  # rows by themselves, and places
    "boxcar": {"kernel": "boxcar", "bandwidth": 0.5},
    "product": {"kernel": "product tricube", "bandwidth": 0.8},
    "one column": {"columns": 1},
    "weights": {"weights": np.arange(24) % 4 * 1.0},
    "fractions": {"weights": 0.5 + np.arange(24) % 3},
    "two classes": {"classes": 2},
    "far": {"bandwidth": 0.02},
}


def sample(generator, n=24, columns=2, classes=3):
    X = generator.uniform(-1.0, 1.0, size=(n, columns))
    y = np.argmax(2 * X[:, :1] * np.arange(classes) + generator.gumbel(size=(n, classes)), axis=1)
    y[:classes] = np.arange(classes)
    return X, np.array(["x", "y", "z"])[y]


@pytest.mark.parametrize("by_class", [False, True])
@pytest.mark.parametrize("case", CASES)
def test_p_values_are_those_of_refitting(case, by_class, generator):
    options = {"bandwidth": 0.4, "prior_share": 0.1} | CASES[case]
    shape = {name: options.pop(name) for name in ("columns", "classes") if name in options}
    weight = options.pop("weights", None)
    X, y = sample(generator, **shape)
    model = NadarayaWatsonClassifier(**options).fit(X, y, sample_weight=weight)
    new = np.concatenate([X[5:8], generator.uniform(-1.3, 1.3, size=(4, X.shape[1]))])
    found = model.predict_set(new, 0.7, method="full", by_class=by_class, allow_empty=True)
    assert_allclose(found.p_value, reference.p_values(model, X, y, new, by_class), rtol=1e-12)
    assert_array_equal(found.member, found.p_value > 0.3 + 1e-12)


def test_levels(generator):
    frame = pd.DataFrame({"x": generator.normal(size=24), "level": pd.Categorical(list("abca") * 6)})
    y = np.where(frame.x + (frame.level == "a") + generator.normal(size=24) > 0.5, "up", "down")
    model = NadarayaWatsonClassifier(bandwidth=0.6, smoothing=0.2, prior_share=0.1).fit(frame, y)
    new = frame.iloc[[0, 5, 7]].reset_index(drop=True)
    found = model.predict_set(new, 0.9, method="full").p_value
    assert_allclose(found, reference.p_values(model, frame, y, new), rtol=1e-12)


@pytest.mark.filterwarnings("ignore::kernpool.ExtrapolationWarning")  # of the place at 9
@settings(max_examples=25, deadline=None)
@given(st.data())
def test_p_values_of_any_rows(data):
    """Few places and labels, so that rows tie, windows are empty and classes have one row."""
    n = data.draw(st.integers(2, 7))
    x = np.array(data.draw(st.lists(st.integers(0, 4), min_size=n, max_size=n)), dtype=float)[:, None]
    y = np.array([0, 1, *data.draw(st.lists(st.integers(0, 2), min_size=n - 2, max_size=n - 2))])
    kernel, h = data.draw(st.sampled_from([("gaussian", 0.7), ("boxcar", 1.0), ("epanechnikov", 1.5)]))
    share = data.draw(st.sampled_from([0.0, 0.25]))
    model = NadarayaWatsonClassifier(kernel, h, prior_share=share).fit(x, y)
    new = np.array([[0.0], [2.0], [9.0]])
    for by_class in (False, True):
        found = model.predict_set(new, 0.05, method="full", by_class=by_class).p_value
        assert_allclose(found, reference.p_values(model, x, y, new, by_class), rtol=1e-12)


def test_the_new_row_may_be_any_row(generator):
    """Of the rows together each is left out in turn: the p-values of their classes do not know which came last."""
    X, _ = sample(generator, n=20)
    y, counts = np.array(["x", "y", "z"])[np.arange(20) % 3], []
    for i in range(20):
        rest = np.arange(20) != i
        model = NadarayaWatsonClassifier(bandwidth=0.4, prior_share=0.1).fit(X[rest], y[rest])
        p_value = model.predict_set(X[i : i + 1], 0.5, method="full").p_value[0]
        counts.append(p_value[list(model.classes_).index(y[i])] * 20)
    # Without ties the ranks of all rows are 1 to 20, each once: exactly uniform.
    assert_allclose(np.sort(counts), np.arange(1, 21), rtol=1e-12)


def test_blocks_of_places_change_nothing(generator, monkeypatch):
    X, y = sample(generator)
    model = NadarayaWatsonClassifier(bandwidth=0.4, prior_share=0.1).fit(X, y)
    whole = model.predict_set(X, 0.9, method="full").p_value
    monkeypatch.setattr("kernpool.conformal.sets.PAIRS", 50)
    assert_array_equal(model.predict_set(X, 0.9, method="full").p_value, whole)
