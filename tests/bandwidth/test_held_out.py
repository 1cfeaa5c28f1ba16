"""Searches on as many rows as take seconds, and the factor by which their bandwidths become those of all rows."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from kernpool import (
    LocalLinearRegressor,
    NadarayaWatsonClassifier,
    NadarayaWatsonRegressor,
    Nearest,
    distribution_bandwidth,
    get_kernel,
)
from kernpool.bandwidth.criteria import CRITERIA, LOG_LOSS
from kernpool.bandwidth.search import Found, SearchOptions, TrainingRows, setup
from kernpool.bandwidth.search.held_out import PRIOR_SPREAD, HeldOutRows, adjust_to_all_rows, hold_out
from kernpool.bandwidth.search.setup import affordable_rows
from kernpool.core import NO_CATEGORIES, Exclusion
from kernpool.estimators.kernel_smoother import KernelSmoother

OPTIONS = SearchOptions(get_kernel("gaussian"))


def make_rows(n=400, d=2, *, seed=0):
    g = np.random.default_rng(seed)
    X = g.uniform(-1, 1, size=(n, d))
    return X, np.sin(4 * X[:, 0]) + 0.3 * g.normal(size=n)


def criterion_of(held, others, **options):
    found = Found(np.array([0.2, 0.9]), np.zeros(0))
    return HeldOutRows(held, others, found, NO_CATEGORIES, replace(OPTIONS, **options))


@pytest.fixture
def few(monkeypatch):
    """Rows that are few enough for a test are many."""
    monkeypatch.setattr(setup, "FEWEST_ROWS", 120)
    monkeypatch.setattr(setup, "AFFORDABLE_SUMS", 1.0)


def test_all_rows_are_searched_unless_there_are_many_in_several_columns():
    def rows(n, d):
        return TrainingRows.from_arrays(np.random.default_rng(0).random((n, d), dtype=np.float32), np.zeros(n))

    assert affordable_rows(rows(10**6, 1), OPTIONS) == 10**6
    assert affordable_rows(rows(20_000, 2), OPTIONS) == 20_000
    assert affordable_rows(rows(100_000, 2), OPTIONS) < 20_000
    planes = replace(OPTIONS, degree=1)
    assert affordable_rows(rows(100_000, 10), planes) < affordable_rows(rows(100_000, 10), OPTIONS)
    assert affordable_rows(rows(5000, 20), planes) == 2048
    assert affordable_rows(rows(2100, 20), planes) == 2100
    # In many columns a search on so many rows would take minutes. Without a ridge planes need all their coefficients.
    with_ridge, without = (replace(planes, criterion=CRITERIA[name]) for name in ("regularised", "aicc"))
    assert [affordable_rows(rows(5000, d), with_ridge) for d in (50, 100, 200, 700)] == [1033, 464, 145, 100]
    assert [affordable_rows(rows(n, 200), without) for n in (300, 500, 5000)] == [300, 404, 404]
    assert affordable_rows(rows(500, 200), OPTIONS) == 500
    assert affordable_rows(rows(5000, 500), OPTIONS) < 1200


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("degree", "ridge"), [(0, 0.0), (1, 0.0), (1, 0.5)])
def test_the_criterion_is_the_error_of_rows_predicted_from_all_others(degree, ridge, weighted):
    X, y = make_rows()
    weight = np.random.default_rng(1).uniform(0.5, 2.0, size=400) if weighted else None
    rows = TrainingRows.from_arrays(X, y, weight)
    held, others = hold_out(rows, 100, np.random.RandomState(0))
    assert (len(held.X), len(others.X)) == (100, 300)
    criterion = criterion_of(held, others, degree=degree, ridge=ridge)
    at = criterion.evaluate(np.log([0.7]))
    kind, more = (LocalLinearRegressor, {"ridge": ridge}) if degree else (NadarayaWatsonRegressor, {})
    model = kind(bandwidth=[0.14, 0.63], **more).fit(others.X, others.value[:, 0], sample_weight=others.weight)
    error = np.average((model.predict(held.X) - held.value[:, 0]) ** 2, weights=held.weight)
    assert at.error.sum() == pytest.approx(error, rel=1e-12)
    raw = criterion.evaluate(np.log([1.0]))
    prior = np.log(at.penalised / raw.penalised) - np.log(at.error.sum() / raw.error.sum())
    assert prior == pytest.approx((np.log(0.7) / PRIOR_SPREAD) ** 2 / held.number)


def test_the_log_loss_is_that_of_classes_mixed_with_the_best_share_of_priors():
    X, y = make_rows()
    labels = np.column_stack([y > 0, y <= 0]).astype(float)
    held, others = hold_out(TrainingRows.from_arrays(X, labels), 100, np.random.RandomState(0))
    at = criterion_of(held, others, criterion=LOG_LOSS).evaluate(np.zeros(1))
    pooled = NadarayaWatsonRegressor(bandwidth=[0.2, 0.9]).fit(others.X, others.value).predict(held.X)
    shares, prior = np.linspace(1 / 101, 100 / 101, 20_001)[:, None], others.value.mean(axis=0)
    right = held.value > 0.5
    losses = -np.log((1 - shares) * pooled[right] + shares * np.broadcast_to(prior, right.shape)[right]).mean(axis=1)
    assert at.penalised == pytest.approx(losses.min(), rel=1e-6)
    assert at.prior_share == pytest.approx(shares[losses.argmin(), 0], abs=1e-4)
    assert at.error.sum() == pytest.approx(np.mean(np.sum((pooled - held.value) ** 2, axis=1)), rel=1e-12)


def test_groups_are_held_out_as_a_whole():
    X, y = make_rows()
    group = np.repeat(np.arange(40), 10)
    held, others = hold_out(TrainingRows.from_arrays(X, y, exclusion=Exclusion(group)), 55, np.random.RandomState(0))
    assert (len(held.X), len(others.X)) == (50, 350)
    assert len(set(others.units.code)) == 35
    # Where all groups are larger some rows of the smallest are held out, and all others of it are left out.
    two = TrainingRows.from_arrays(X, y, exclusion=Exclusion((np.arange(400) > 150).astype(int)))
    held, others = hold_out(two, 55, np.random.RandomState(0))
    assert (len(held.X), len(others.X)) == (55, 249)
    assert set(held.X[:, 0]) <= set(X[:151, 0])
    # A group of most rows is never held out.
    giant = TrainingRows.from_arrays(X, y, exclusion=Exclusion(np.maximum(np.arange(400) - 380, 0)))
    for seed in range(5):
        held, _ = hold_out(giant, 10, np.random.RandomState(seed))
        assert len(held.X) == 10
        assert set(held.X[:, 0]) <= set(X[381:, 0])


def adjusted(X, y, bandwidth, relevance, searched):
    search = SimpleNamespace(relevance=np.array(relevance))
    found = Found(bandwidth, np.zeros(0), bandwidth_search=search)
    return adjust_to_all_rows(
        found, TrainingRows.from_arrays(X, y), OPTIONS, NO_CATEGORIES, searched, np.random.RandomState(0)
    )


@pytest.mark.parametrize("off", [0.5, 2.0])
def test_bandwidths_that_are_far_off_are_corrected_and_flat_columns_stay(off):
    X, y = make_rows(4000, 3)
    best = np.array([0.045, 1e4, 1e4])
    found = adjusted(X, y, best * [off, 1, 1], [1, 0, 0], 4000)
    assert 0.026 < found.bandwidth[0] < 0.062  # the prior pulls it back to .022 and .09
    factor = found.bandwidth[0] / (0.045 * off)
    assert found.bandwidth_note.endswith(f"{factor:.6g}: 800 rows held out are predicted best so from 3200 others")
    assert np.all(found.bandwidth[1:] > 1e3)
    assert adjusted(X, y, best, [0, 0, 0], 400).bandwidth.tolist() == best.tolist()


def test_without_evidence_the_factor_is_that_of_the_rate():
    """Of noise: the prior keeps the factor near the rate."""
    g = np.random.default_rng(2)
    X, y = g.normal(size=(600, 2)), g.normal(size=600)
    assert adjusted(X, y, np.full(2, 5.0), [1, 1], 600).bandwidth == pytest.approx(5.0, rel=0.3)


@pytest.mark.usefixtures("few")
@pytest.mark.parametrize("kind", [NadarayaWatsonRegressor, LocalLinearRegressor, NadarayaWatsonClassifier])
def test_a_default_fit_of_many_rows_says_what_was_done(kind):
    X, y = make_rows(1200)
    y = y if kind is not NadarayaWatsonClassifier else y > 0
    model = kind().fit(X, y)
    assert model.bandwidth_search_.rows == 120
    assert "on a sample of 120 of 1200 rows (random_state=0), then times" in model.bandwidth_note_
    assert "240 rows held out are predicted best so from 960 others" in model.bandwidth_note_
    assert not hasattr(model, "search_rows_")  # all rows have been looked at
    again = kind(n_jobs=1).fit(X[::-1], y[::-1])
    assert again.bandwidth_.tolist() == model.bandwidth_.tolist()
    every = kind(search={"rows": None}).fit(X, y)
    assert every.bandwidth_search_.rows == 1200
    assert not hasattr(every, "bandwidth_note_")
    new, truth = make_rows(2000, seed=1)
    if kind is NadarayaWatsonClassifier:
        assert model.score(new, truth > 0) > every.score(new, truth > 0) - 0.01
    else:
        assert model.score(new, truth) > every.score(new, truth) - 0.01
        assert model.loo_error_ == pytest.approx(every.loo_error_, rel=0.25)


@pytest.mark.usefixtures("few")
def test_the_share_of_priors_is_that_of_the_rows_held_out(monkeypatch):
    """Leaving out each of a million rows took most of five minutes."""
    X, y = make_rows(1200)
    every = NadarayaWatsonClassifier(search={"rows": None}).fit(X, y > 0)
    monkeypatch.delattr(KernelSmoother, "leave_one_out")
    model = NadarayaWatsonClassifier().fit(X, y > 0)
    assert model.prior_share_ == pytest.approx(every.prior_share_, abs=0.02)
    assert NadarayaWatsonClassifier(prior_share=0.25).fit(X, y > 0).prior_share_ == 0.25


@pytest.mark.usefixtures("few")
def test_other_windows_have_a_share_of_their_own():
    X, y = make_rows(600)
    nearest, found = (
        NadarayaWatsonClassifier(window=Nearest(40), search={"rows": most}).fit(X, y > 0).prior_share_
        for most in ("auto", None)
    )
    fixed = NadarayaWatsonClassifier().fit(X, y > 0).prior_share_
    assert nearest != fixed
    assert nearest == pytest.approx(found, abs=0.01)


@pytest.mark.usefixtures("few")
def test_categories_and_several_outputs_in_other_units_are_adjusted_too():
    pandas = pytest.importorskip("pandas", reason="frames need pandas")
    X, y = make_rows(900)
    level = np.random.default_rng(3).integers(3, size=900)
    frame = pandas.DataFrame({"x": X[:, 0], "city": np.array(["a", "b", "c"])[level]})
    y = y + level
    model = NadarayaWatsonRegressor().fit(frame, np.column_stack([y, 1000 * y]))
    one = NadarayaWatsonRegressor().fit(frame, y)
    assert model.bandwidth_[0] == pytest.approx(one.bandwidth_[0], rel=0.05)
    assert 0.0 <= model.smoothing_[0] < one.bandwidth_search_.smoothing[0] + 0.05
    assert "times" in model.bandwidth_note_


@pytest.mark.usefixtures("few")
def test_errors_are_in_the_units_of_the_outputs_and_factors_in_none():
    X, y = make_rows(900)
    one = NadarayaWatsonRegressor().fit(X, y)
    both = NadarayaWatsonRegressor().fit(X, np.column_stack([y, 1000 * y + 1]))
    assert both.loo_error_ == pytest.approx((1 + 1e6) * one.loo_error_, rel=0.05)
    tiny = NadarayaWatsonRegressor().fit(X, 1e-140 * y)
    assert tiny.bandwidth_ == pytest.approx(one.bandwidth_, rel=1e-6)


@pytest.mark.usefixtures("few")
def test_classes_of_one_row_may_be_held_out():
    X, y = make_rows(600)
    labels = (y > 0).astype(int)
    labels[:5] = np.arange(2, 7)
    for seed in range(3):
        model = NadarayaWatsonClassifier(search={"random_state": seed}).fit(X, labels)
        assert np.all(np.isfinite(model.bandwidth_))


@pytest.mark.usefixtures("few")
def test_constant_columns_keep_their_infinite_bandwidth():
    X, y = make_rows(600, 3)
    X[:, 1] = 5.0
    with pytest.warns(UserWarning, match="do not vary"):
        model = NadarayaWatsonRegressor().fit(X, y)
    assert "times" in model.bandwidth_note_
    assert np.isinf(model.bandwidth_).tolist() == [False, True, False]
    one = TrainingRows.from_arrays(np.column_stack([np.zeros(10**5), np.arange(10**5)]), np.zeros(10**5))
    assert affordable_rows(one, OPTIONS) == 10**5


@pytest.mark.usefixtures("few")
def test_bandwidths_of_distributions_are_those_of_all_rows():
    X, y = make_rows(600)
    every, some = (
        distribution_bandwidth(NadarayaWatsonRegressor(bandwidth=0.3, search={"rows": most}).fit(X, y))
        for most in (None, "auto")
    )
    assert (every.rows, some.rows) == (600, 120)
    assert some.bandwidth[0] == pytest.approx(every.bandwidth[0], rel=0.5)
    assert some.bandwidth[0] < some.tried[np.argmin(some.values), 0]
