"""Honest probabilities: the share of the class priors, and rows that leave little to learn from."""

from contextlib import nullcontext

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris
from sklearn.metrics import accuracy_score, log_loss

from kernpool import EmptyWindowWarning, NadarayaWatsonClassifier, pool
from kernpool.bandwidth.criteria import prior_of_others, prior_share

BANDWIDTHS = ["loo", "log_loss", 0.5]


@pytest.fixture
def rows(generator):
    X = generator.normal(size=(40, 2))
    return X, np.where(X[:, 0] + 0.7 * generator.normal(size=40) > 0, "up", "down")


def is_honest(model, X):
    probability = model.predict_proba(X)
    np.testing.assert_allclose(probability.sum(axis=1), 1.0, rtol=1e-12)
    least = model.prior_share_ * model.class_prior_
    assert np.all(probability >= least * (1 - 1e-12))
    np.testing.assert_array_equal(model.predict(X), model.classes_[probability.argmax(axis=1)])
    return probability


def test_the_equation(rows):
    X, y = rows
    label, weight = np.eye(2)[(y == "up").astype(int)], np.arange(40) % 3 + 0.0
    model = NadarayaWatsonClassifier(bandwidth=0.6).fit(X, y, sample_weight=weight)
    left_out = pool(X, X, label, bandwidth=0.6, key_weight=weight, exclude_self=True)
    found = prior_share(np.sum(label * left_out, axis=1), prior_of_others(label, weight), weight)
    assert model.prior_share_ == pytest.approx(found.share, abs=1e-8)
    np.testing.assert_allclose(model.class_prior_, weight @ label / weight.sum())
    query = X[:9] + 0.2
    pooled = pool(query, X, label, bandwidth=0.6, key_weight=weight)
    expected = (1 - model.prior_share_) * pooled + model.prior_share_ * model.class_prior_
    np.testing.assert_allclose(model.predict_proba(query), expected, rtol=1e-12)
    np.testing.assert_allclose(model.attention_weights(query) @ label, pooled, rtol=1e-10)
    np.testing.assert_allclose(model.leave_one_out().prediction, left_out)


@pytest.mark.parametrize("share", [0.0, 0, 0.25, np.float32(0.5)])
def test_a_share_that_is_given(share, rows):
    X, y = rows
    model = NadarayaWatsonClassifier(bandwidth=0.6, prior_share=share).fit(X, y)
    assert model.prior_share_ == share
    pooled = pool(X, X, (y[:, None] == model.classes_).astype(float), bandwidth=0.6)
    np.testing.assert_allclose(model.predict_proba(X), (1 - share) * pooled + share * model.class_prior_)


@pytest.mark.parametrize("share", [1.0, -0.1, np.nan, "cv", None, True, [0.1]])
def test_no_share(share, rows):
    with pytest.raises(ValueError, match="prior_share must be 'loo', or a number from 0 on and below 1"):
        NadarayaWatsonClassifier(prior_share=share).fit(*rows)


@pytest.mark.filterwarnings("ignore::kernpool.ExtrapolationWarning")  # at 99
def test_empty_windows_keep_what_empty_says(rows):
    found = {}
    for empty in ("mean", "nearest", "nan", "zero"):
        model = NadarayaWatsonClassifier("epanechnikov", 3.0, empty=empty).fit(*rows)
        with pytest.warns(EmptyWindowWarning) if empty in ("nan", "nearest") else nullcontext():
            found[empty] = model.predict_proba([[99.0, 0.0]])[0]
    np.testing.assert_allclose(found["mean"], model.class_prior_)
    assert np.all(found["zero"] == 0)
    assert np.all(np.isnan(found["nan"]))
    least = found["nearest"].argmin()
    assert 0 < found["nearest"][least] == pytest.approx(model.prior_share_ * model.class_prior_[least])
    with pytest.raises(ValueError, match="empty='zero' gives them no class"):
        model.predict([[99.0, 0.0]])


@pytest.mark.slow  # three models of the iris table
def test_log_loss_is_bounded_where_windows_hold_one_neighbour():
    X, y = load_iris(return_X_y=True)
    fold = np.arange(150) % 5 == 0
    pooled, mixed, searched = (
        log_loss(y[fold], NadarayaWatsonClassifier(**options).fit(X[~fold], y[~fold]).predict_proba(X[fold]))
        for options in ({"prior_share": 0.0}, {}, {"bandwidth": "log_loss"})
    )
    assert mixed <= pooled + 0.01
    assert searched < 0.15


@pytest.mark.parametrize("bandwidth", BANDWIDTHS)
def test_classes_of_one_row_each_and_of_all_rows(bandwidth, rows):
    X, y = rows
    model = NadarayaWatsonClassifier(bandwidth=bandwidth).fit(X, np.where(np.arange(40) == 7, "odd", y))
    assert is_honest(model, X).min() > 0
    assert 1 / 41 <= model.prior_share_ < 1
    is_honest(model.fit(X[:6], list("abcdef")), X[:6])
    assert model.prior_share_ == pytest.approx(6 / 7)  # leave-one-out was never right
    np.testing.assert_allclose(is_honest(model.fit(X, np.full(40, 3)), X), 1.0)
    for weight in (None, [1.0]):
        model = NadarayaWatsonClassifier(bandwidth=1.0).fit(X[:1], ["a"], sample_weight=weight)
        assert model.prior_share_ == 0.5
        assert model.predict(X[:1] + 1.0) == ["a"]


@pytest.mark.parametrize("bandwidth", BANDWIDTHS)
def test_equal_rows_with_other_labels(bandwidth):
    X, y = np.repeat([[0.0], [1.0]], 10, axis=0), np.r_[np.arange(10) % 2, np.ones(10, dtype=int)]
    model = NadarayaWatsonClassifier(bandwidth=bandwidth).fit(X, y)
    probability = is_honest(model, [[0.0], [1.0]])
    assert 0.3 < probability[0, 0] < 0.6
    assert probability[1, 1] > 0.7


@pytest.mark.parametrize("bandwidth", BANDWIDTHS)
def test_constant_columns_and_more_columns_than_rows(bandwidth, generator):
    X = generator.normal(size=(12, 20))
    X[:, 3] = 5.0
    y = np.arange(12) % 2
    X[:, 0] += 4 * y
    with pytest.warns(UserWarning, match="do not vary") if isinstance(bandwidth, str) else np.errstate():
        model = NadarayaWatsonClassifier(bandwidth=bandwidth).fit(X, y)
    is_honest(model, X + 0.1)


def test_perfect_separation_is_no_certainty(generator):
    X = np.r_[generator.normal(size=(50, 1)), generator.normal(size=(50, 1)) + 100.0]
    for bandwidth in BANDWIDTHS:
        model = NadarayaWatsonClassifier(bandwidth=bandwidth).fit(X, np.arange(100) // 50)
        assert model.prior_share_ == pytest.approx(1 / 101)
        assert 0.99 < is_honest(model, X).max() <= 1 - 0.5 / 101 + 1e-12


@pytest.mark.parametrize("bandwidth", ["loo", "log_loss"])
def test_a_level_of_no_training_row(bandwidth, generator):
    frame = pd.DataFrame({"x": generator.normal(size=40), "level": pd.Categorical(list("ab") * 20)})
    y = (frame.x + (frame.level == "a") > 0).astype(int)
    new = pd.DataFrame({"x": [0.0], "level": ["c"]})
    model = NadarayaWatsonClassifier(bandwidth=bandwidth).fit(frame, y)
    is_honest(model, frame)
    with pytest.raises(ValueError, match="c"):
        model.predict_proba(new)
    is_honest(model.set_params(unseen="unlike"), new)


@pytest.mark.parametrize("weighted", [False, True])
def test_a_summary_is_of_predictions_without_the_row(weighted, generator):
    X = generator.normal(size=(60, 2))
    y = np.where(X[:, 0] + 0.3 * generator.normal(size=60) > 0, "wet", "dry")
    weight = generator.integers(1, 4, size=60).astype(float) if weighted else np.ones(60)
    model = NadarayaWatsonClassifier(bandwidth=[0.5, 2.0]).fit(X, y, sample_weight=weight if weighted else None)
    summary, probability = model.summary(), model.leave_one_out().probability
    assert summary.log_loss == pytest.approx(log_loss(y, probability, sample_weight=weight), rel=1e-12)
    right = model.classes_[probability.argmax(axis=1)]
    assert summary.accuracy == pytest.approx(accuracy_score(y, right, sample_weight=weight), rel=1e-12)
    assert list(summary.priors) == ["dry", "wet"]
    clusters = NadarayaWatsonClassifier(bandwidth=0.5).fit(X, y, groups=np.arange(60) // 4).summary()
    assert clusters.left_out == "cluster"
