"""Models of rows in clusters: what `fit(groups=...)` selects, keeps, says and refuses."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

from kernpool import LocalLinearRegressor, NadarayaWatsonClassifier, NadarayaWatsonRegressor
from kernpool.data.encoding import label_codes
from kernpool.estimators.expected_error import folds_of
from tests.support.dense_groups import left_out, mean_of_others
from tests.support.searches import canonical_rows

REGRESSORS = (NadarayaWatsonRegressor, LocalLinearRegressor)


def make_schools(n=90, groups=30, *, seed=0, outputs=None):
    """Schools close together in x, whose pupils share a shock."""
    generator = np.random.default_rng(seed)
    school = np.arange(n) % groups
    x = generator.uniform(-1, 1, size=groups)[school] + 0.02 * generator.normal(size=n)
    shape = (groups,) if outputs is None else (groups, outputs)
    shock = 0.5 * generator.normal(size=shape)[school]
    curve = np.sin(2 * x) if outputs is None else np.outer(np.sin(2 * x), np.arange(1, outputs + 1))
    return x[:, None], curve + shock + 0.2 * generator.normal(size=shock.shape), np.array([f"s{g}" for g in school])


@pytest.mark.parametrize("model", REGRESSORS)
def test_the_error_is_that_of_the_dense_reference(model):
    X, y, school = make_schools(outputs=2)
    weight = np.random.default_rng(1).integers(1, 4, len(X)).astype(float)
    fitted = model(bandwidth="loo", n_jobs=2).fit(X, y, weight, groups=school)
    group = fitted.smoother_.units.code
    found = fitted.leave_one_out()
    expected = left_out(X, y, group, weight=weight, h=fitted.bandwidth_, degree=fitted._degree)
    np.testing.assert_allclose(found.prediction, expected, rtol=1e-10, atol=1e-12)
    error = weight @ np.sum((y - expected) ** 2, axis=1) / weight.sum()
    assert fitted.loo_error_ == pytest.approx(error, rel=1e-10)
    assert found.error == pytest.approx(error, rel=1e-10)


@pytest.mark.parametrize("model", REGRESSORS)
@pytest.mark.parametrize("bandwidth", [0.2, "scott"])
def test_bandwidths_that_see_no_y_keep_the_groups(model, bandwidth):
    X, y, school = make_schools()
    fitted, alone = model(bandwidth=bandwidth).fit(X, y, groups=school), model(bandwidth=bandwidth).fit(X, y)
    np.testing.assert_array_equal(fitted.predict(X), alone.predict(X))
    np.testing.assert_array_equal(fitted.smoother_.units.code, label_codes(school, len(X), "groups"))
    assert alone.smoother_.units.code is None
    expected = left_out(X, y[:, None], fitted.smoother_.units.code, h=fitted.bandwidth_, degree=fitted._degree)
    np.testing.assert_allclose(fitted.leave_one_out().prediction, expected, rtol=1e-10, atol=1e-12)
    assert fitted.expected_error() == fitted.leave_one_out().error


def test_levels_are_searched_by_groups():
    X, y, school = make_schools()
    kind = np.random.default_rng(4).choice(["a", "b"], len(X))
    table = pd.DataFrame({"x": X[:, 0], "kind": kind})
    y = y + 2.0 * (kind == "b")
    model = NadarayaWatsonRegressor().fit(table, y, groups=school)
    assert model.smoothing_[0] < 0.2
    assert model.loo_error_ == pytest.approx(model.leave_one_out().error, rel=1e-10)
    assert model.bandwidth_search_.exclusion.units.number(0) == 30


def test_classes_are_predicted_from_the_other_groups():
    X, y, school = make_schools(n=120)
    label = np.where(y > 0, "up", "down")
    alone, model = NadarayaWatsonClassifier().fit(X, label), NadarayaWatsonClassifier().fit(X, label, groups=school)
    assert model.bandwidth_[0] > alone.bandwidth_[0]
    expected = left_out(X, model.value_, model.smoother_.units.code, h=model.bandwidth_, degree=0)
    np.testing.assert_allclose(model.leave_one_out().prediction, expected, rtol=1e-10)
    mixed = (1 - model.prior_share_) * expected + model.prior_share_ * mean_of_others(
        model.value_, model.smoother_.units.code, np.ones(len(X))
    )
    loss = -np.mean(np.log(np.sum(model.value_ * mixed, axis=1)))
    relevance = model.bandwidth_search_.spread / model.bandwidth_
    assert model.bandwidth_search_.value == pytest.approx(loss + relevance.sum() / len(X), rel=1e-6)


def test_the_error_to_expect_holds_whole_groups_out():
    X, y, school = make_schools(n=40, groups=8)
    model = NadarayaWatsonRegressor().fit(X, y, groups=school)
    rows = canonical_rows(X, y[:, None], group=model.smoother_.units.code)
    folds, (met, promised) = list(folds_of(rows)), (0.0, 0.0)
    np.testing.assert_array_equal(np.sum(folds, axis=0), np.ones(40))
    for held in folds:
        out, kept = np.isin(model.smoother_.units.code, rows.units.code[held > 0]), rows.units.code[held == 0]
        assert set(kept).isdisjoint(rows.units.code[held > 0])
        part = NadarayaWatsonRegressor(empty="mean").fit(X[~out], y[~out], groups=school[~out])
        met += np.sum((part.predict(X[out]) - y[out]) ** 2)
        promised += out.sum() * part.loo_error_
    assert len(folds) == 8
    assert model.expected_error() == pytest.approx(met / 40 * np.clip(40 * model.loo_error_ / promised, 15 / 16, 1))


def test_the_error_to_expect_needs_four_groups():
    X, y, school = make_schools(groups=3)
    model = NadarayaWatsonRegressor().fit(X, y, groups=school)
    with pytest.raises(ValueError, match="expected_error needs at least four clusters"):
        model.expected_error()


LABELS = [
    [3, 1, 3], ["c", "a", "c"], np.array(["c", "a", "c"], dtype=object), pd.Series(["c", "a", "c"], dtype="category"),
    pd.Series([3, 1, 3], dtype="Int64"), pl.Series(["c", "a", "c"]), [True, False, True],
    np.array(["2003", "2001", "2003"], dtype="datetime64[Y]"),
]  # fmt: skip
MISSING = [
    [1.0, np.nan, 2.0], ["a", None, "b"], ["a", np.nan, "b"], pd.Series([1, pd.NA, 2], dtype="Int64"),
    pl.Series(["a", None, "b"]), np.array(["2001", "NaT", "2003"], dtype="datetime64[ns]"),
]  # fmt: skip


@pytest.mark.parametrize("labels", LABELS)
def test_labels_of_every_kind(labels):
    assert label_codes(labels, 3, "groups").tolist() == [1, 0, 1]


@pytest.mark.parametrize("labels", MISSING)
def test_a_missing_label_is_named(labels):
    with pytest.raises(ValueError, match=r"groups has no label in 1 rows \(the first is row 1, counted from 0\)"):
        label_codes(labels, 3, "groups")
