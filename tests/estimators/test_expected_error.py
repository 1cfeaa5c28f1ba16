"""The error to expect of new rows."""

import numpy as np
import pandas as pd
import pytest

from kernpool import LocalLinearRegressor, NadarayaWatsonClassifier, NadarayaWatsonRegressor
from kernpool.estimators.fitted import scaled_keys
from tests.support.thinning import slow


def noise(n, columns, seed):
    generator = np.random.default_rng(seed)
    return generator.normal(size=(n, columns)), generator.normal(size=n)


@pytest.mark.slow  # 44 searches in four columns; what is computed is tested below
def test_it_is_what_new_rows_show_where_leave_one_out_is_too_small():
    found = []
    for seed in range(4):
        model = NadarayaWatsonRegressor(bandwidth="loo").fit(*noise(50, 4, seed))
        X, y = noise(1000, 4, 100 + seed)
        unit = np.var(model.value_)  # fifty rows vary by a half, and what is expected with them
        found.append([model.loo_error_ / unit, model.expected_error_ / unit, np.mean((model.predict(X) - y) ** 2)])
    promised, expected, met = np.mean(found, axis=0)
    assert promised < 0.9 * met
    assert expected == pytest.approx(met, rel=0.15)


def test_it_is_computed_once_and_shown():
    model = NadarayaWatsonRegressor().fit(*noise(40, 1, 0))
    assert "to be expected" not in str(model.bandwidth_search_)
    first = model.expected_error_
    assert model.expected_error_ == first
    assert f"to be expected of new rows {first:.6g}" in str(model.bandwidth_search_)
    model.fit(*noise(40, 1, 1))
    assert model.expected_error_ != first


def test_of_a_bandwidth_that_was_given_it_is_that_of_leave_one_out():
    model = NadarayaWatsonRegressor(bandwidth=0.5).fit(*noise(30, 1, 0))
    assert model.expected_error_ == model.leave_one_out().error


@pytest.mark.parametrize("bandwidth", ["scott", "plugin"])
def test_of_a_rule_and_the_plug_in_it_is_that_of_leave_one_out(bandwidth):
    model = NadarayaWatsonRegressor(bandwidth=bandwidth).fit(*noise(60, 1, 0))
    assert model.expected_error_ == model.leave_one_out().error


@pytest.mark.covering
@pytest.mark.parametrize("make", [NadarayaWatsonRegressor, LocalLinearRegressor])
@pytest.mark.parametrize("bandwidth", ["loo", "aicc", "gcv"])
def test_every_criterion_is_searched_again_without_each_fold(make, bandwidth):
    X, y = noise(40, 1, 1)
    order = np.argsort(X[:, 0])
    X, y, fold_of = X[order], y[order] + X[order, 0], np.random.default_rng(0).permutation(40) % 10
    model = make(bandwidth=bandwidth).fit(X, y)
    met = promised = 0.0
    for k in range(10):
        fold, there = fold_of != k, fold_of == k
        without = make(bandwidth=bandwidth).fit(X[fold], y[fold])
        met += np.sum((without.predict(X[there]) - y[there]) ** 2)
        promised += np.sum(there) * without.leave_one_out().error
    assert model.expected_error_ == pytest.approx(model.leave_one_out().error * met / promised, rel=1e-6)


def test_rows_that_were_added_have_not_been_searched_on():
    X, y = noise(40, 1, 2)
    model = NadarayaWatsonRegressor(bandwidth="aicc").fit(X[:30], y[:30]).partial_fit(X[30:], y[30:])
    assert model.expected_error_ == model.leave_one_out().error


@pytest.mark.parametrize("make", [NadarayaWatsonRegressor, LocalLinearRegressor])
def test_a_criterion_that_is_not_defined_without_a_fold(make):
    X, y = noise(4 if make is NadarayaWatsonRegressor else 6, 2, 0)
    model = make(bandwidth="aicc").fit(X, y)
    with pytest.raises(ValueError, match=r"without some of the rows.*not defined for"):
        model.expected_error_  # noqa: B018  # computed by being asked for
    assert not hasattr(model, "expected_error_")


@pytest.mark.slow
@pytest.mark.parametrize("columns", [1, 2])
def test_weights_are_repeated_rows(columns):
    X, y = noise(40, columns, 3)
    weighted = NadarayaWatsonRegressor().fit(X, y, sample_weight=np.full(40, 2.0))
    repeated = NadarayaWatsonRegressor().fit(np.repeat(X, 2, axis=0), np.repeat(y, 2))
    assert weighted.expected_error_ == pytest.approx(repeated.expected_error_, rel=1e-6)


@pytest.mark.slow
def test_levels():
    X, y = noise(60, 2, 4)
    frame = pd.DataFrame({"a": X[:, 0], "b": pd.Categorical(np.where(X[:, 1] > 0.5, "x", np.where(y > 0, "y", "z")))})
    model = LocalLinearRegressor().fit(frame, y)
    assert 0.0 < model.expected_error_ < 2.0 * np.var(y)


def test_classes():
    X, _ = noise(60, 1, 4)
    classes = NadarayaWatsonClassifier().fit(X, X[:, 0] > 0)
    assert 0.0 < classes.expected_error_ < 1.0


@pytest.mark.parametrize("make", [NadarayaWatsonRegressor, *slow(LocalLinearRegressor, NadarayaWatsonClassifier)])
def test_rows_of_few_places_are_held_out_one_by_one(make, generator):
    X = generator.integers(0, 2, (200, 2)).astype(float)
    y = (generator.random(200) < np.where(X[:, 0] > 0, 0.8, 0.2)).astype(float)
    model = make().fit(X, y)
    assert model.expected_error_ == pytest.approx(model.loo_error_, rel=0.1)


@pytest.mark.slow
@pytest.mark.parametrize("columns", [1, 2])
def test_ranks_are_searched_as_ranks(columns):
    X, y = noise(50, columns, 5)
    X = np.exp(2 * X)
    model = NadarayaWatsonRegressor(scale="rank").fit(X, y + np.log(X[:, 0]))
    ranks = NadarayaWatsonRegressor().fit(scaled_keys(model), y + np.log(X[:, 0]))
    assert model.expected_error_ == pytest.approx(ranks.expected_error_, rel=1e-9)


def test_more_rows_are_another_model():
    X, y = noise(60, 2, 6)
    model = NadarayaWatsonRegressor().fit(X[:30], y[:30])
    before = model.expected_error_
    model.partial_fit(X[30:], y[30:] + 5.0)
    assert model.expected_error_ != before
    assert "to be expected" in str(model.bandwidth_search_)


def test_three_rows_are_too_few():
    model = NadarayaWatsonRegressor().fit([[0.0], [1.0], [2.0]], [0.0, 1.0, 0.0])
    with pytest.raises(ValueError, match="at least four rows"):
        model.expected_error_  # noqa: B018  # computed by being asked for
    assert not hasattr(model, "expected_error_")
