"""The error to expect of new rows."""

import numpy as np
import pandas as pd
import pytest

from kernpool import LocalLinearRegressor, NadarayaWatsonClassifier, NadarayaWatsonRegressor
from kernpool.execution import report_progress
from tests.support.thinning import slow


def noise(n, columns, seed):
    generator = np.random.default_rng(seed)
    return generator.normal(size=(n, columns)), generator.normal(size=n)


@pytest.mark.filterwarnings("ignore::kernpool.ExtrapolationWarning")  # two of 1000 new rows
@pytest.mark.slow  # 44 searches in four columns; what is computed is tested below
def test_it_is_what_new_rows_show_where_leave_one_out_is_too_small():
    found = []
    for seed in range(4):
        model = NadarayaWatsonRegressor(bandwidth="loo").fit(*noise(50, 4, seed))
        X, y = noise(1000, 4, 100 + seed)
        unit = np.var(model.value_)  # fifty rows vary by a half, and what is expected with them
        found.append([model.loo_error_ / unit, model.expected_error() / unit, np.mean((model.predict(X) - y) ** 2)])
    promised, expected, met = np.mean(found, axis=0)
    assert promised < 0.9 * met
    assert expected == pytest.approx(met, rel=0.15)


def test_it_is_computed_once_and_recorded():
    model = NadarayaWatsonRegressor().fit(*noise(40, 1, 0))
    first = model.expected_error()
    assert model.expected_error() == first
    assert model.bandwidth_search_.expected_error == first
    model.fit(*noise(40, 1, 1))
    assert model.expected_error() != first


@pytest.mark.parametrize("bandwidth", [0.5, "scott"])
def test_of_a_bandwidth_without_a_search_it_is_that_of_leave_one_out(bandwidth):
    model = NadarayaWatsonRegressor(bandwidth=bandwidth).fit(*noise(60, 1, 0))
    assert model.expected_error() == model.leave_one_out().error


@pytest.mark.covering
@pytest.mark.filterwarnings("ignore::kernpool.RankDeficiencyWarning")
@pytest.mark.filterwarnings("ignore::kernpool.ExtrapolationWarning")  # rows that are held out may lie outside
@pytest.mark.parametrize("make", [NadarayaWatsonRegressor, LocalLinearRegressor])
@pytest.mark.parametrize("bandwidth", ["loo", "aicc", "gcv"])
def test_every_criterion_is_searched_again_without_each_fold(make, bandwidth):
    X, y = noise(40, 1, 1)
    order = np.argsort(X[:, 0])
    X, y, fold_of = X[order], y[order] + X[order, 0], np.random.default_rng(0).permutation(40) % 10

    def error(prediction, y):
        return np.sum((prediction - y) ** 2)

    model = make(bandwidth=bandwidth).fit(X, y)
    met = promised = 0.0
    for k in range(10):
        fold, there = fold_of != k, fold_of == k
        without = make(bandwidth=bandwidth).fit(X[fold], y[fold])
        met += error(without.predict(X[there]), y[there])
        left_out = without.leave_one_out().prediction[:, 0]
        promised += there.sum() * error(left_out, y[fold]) / fold.sum()
    whole = error(model.leave_one_out().prediction[:, 0], y) / 40
    assert model.expected_error() == pytest.approx(met / 40 * np.clip(40 * whole / promised, 0.95, 1.0), rel=1e-6)


@pytest.mark.parametrize("make", [NadarayaWatsonRegressor, LocalLinearRegressor])
def test_a_criterion_that_is_not_defined_without_a_fold(make):
    X, y = noise(4 if make is NadarayaWatsonRegressor else 6, 2, 0)
    model = make(bandwidth="aicc").fit(X, y)
    with pytest.raises(ValueError, match=r"without some of the rows.*not defined for"):
        model.expected_error()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::kernpool.RepeatedRowsWarning")
def test_weights_are_repeated_rows():
    X, y = noise(40, 2, 3)
    weighted = NadarayaWatsonRegressor().fit(X, y, sample_weight=np.full(40, 2.0))
    repeated = NadarayaWatsonRegressor().fit(np.repeat(X, 2, axis=0), np.repeat(y, 2))
    assert weighted.expected_error() == pytest.approx(repeated.expected_error(), rel=1e-6)


def test_levels_and_classes():
    X, y = noise(60, 2, 4)
    frame = pd.DataFrame({"a": X[:, 0], "b": pd.Categorical(np.where(X[:, 1] > 0.5, "x", np.where(y > 0, "y", "z")))})
    assert 0.0 < LocalLinearRegressor().fit(frame, y).expected_error() < 2.0 * np.var(y)
    assert 0.0 < NadarayaWatsonClassifier().fit(X, X[:, 0] > 0).expected_error() < 1.0


@pytest.mark.parametrize("make", [NadarayaWatsonRegressor, *slow(LocalLinearRegressor, NadarayaWatsonClassifier)])
def test_rows_of_few_places_are_held_out_one_by_one(make, generator):
    X = generator.integers(0, 2, (200, 2)).astype(float)
    y = (generator.random(200) < np.where(X[:, 0] > 0, 0.8, 0.2)).astype(float)
    model = make().fit(X, y)
    assert model.expected_error() == pytest.approx(model.loo_error_, rel=0.1)


def test_three_rows_are_too_few():
    model = NadarayaWatsonRegressor().fit([[0.0], [1.0], [2.0]], [0.0, 1.0, 0.0])
    with pytest.raises(ValueError, match="at least four rows"):
        model.expected_error()


@pytest.mark.filterwarnings("ignore::kernpool.ExtrapolationWarning")  # a few of the 2000 new rows
@pytest.mark.filterwarnings("ignore::kernpool.RepeatedRowsWarning")
@pytest.mark.parametrize("bandwidth", [0.3, "loo"])
@pytest.mark.parametrize("share", [0.4, 1.0])
def test_folds_keep_copies_together(bandwidth, share):
    """The error on new rows of the model of all copies, which leave-one-out does not see."""
    X, y = noise(90, 1, 7)
    y = np.sin(2 * X[:, 0]) + 0.4 * y
    X_new, noise_new = noise(2000, 1, 8)
    y_new = np.sin(2 * X_new[:, 0]) + 0.4 * noise_new
    copied = np.r_[np.arange(90), np.arange(int(share * 90))]
    model = NadarayaWatsonRegressor(bandwidth=bandwidth).fit(X[copied], y[copied])
    met = np.mean((model.predict(X_new) - y_new) ** 2)
    assert model.expected_error() == pytest.approx(met, rel=0.3)
    assert model.leave_one_out().error < 0.8 * met
    grouped = NadarayaWatsonRegressor(bandwidth=0.3).fit(X[copied], y[copied], groups=copied)
    if bandwidth == 0.3:
        assert model.expected_error() == pytest.approx(grouped.leave_one_out().error, rel=1e-12)


def test_progress_goes_on_to_the_end():
    model, seen = NadarayaWatsonRegressor().fit(*noise(40, 1, 3)), []
    with report_progress(lambda done, total: seen.append((done, total))):
        model.expected_error()
    done = [one for one, _ in seen]
    assert done == sorted(done)
    assert len(set(done)) > 30
    assert {total for _, total in seen} == {done[-1]}
