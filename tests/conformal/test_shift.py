"""Likelihood ratios: order statistics weighed by them are those of rows repeated, scaled or reordered."""

import math
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from kernpool import (
    ExtrapolationWarning,
    InferenceWarning,
    LocalLinearRegressor,
    NadarayaWatsonRegressor,
    density_ratio,
)
from kernpool.conformal import METHODS, Calibration, ConformalProblem, prediction_interval
from kernpool.conformal.covariate_shift import read_weights
from kernpool.conformal.order_statistics import score_bounds, weighted_upper
from tests.support.conformal_settings import setting_of, smallest_reaching

LEVELS = [Fraction(1, 2), Fraction(8, 10), Fraction(9, 10), Fraction(95, 100), Fraction(1, 3)]


@settings(max_examples=60)
@given(
    seed=st.integers(0, 10_000),
    n=st.integers(1, 40),
    level=st.sampled_from(LEVELS),
    ties=st.booleans(),
    zeros=st.floats(0, 0.9),
)
def test_against_the_definition(seed, n, level, ties, zeros):
    """Whole numbers as ratios, so that sums meet shares exactly, in rational arithmetic."""
    g = np.random.default_rng(seed)
    score = np.round(g.normal(size=n), 0 if ties else 6)
    weight = np.where(g.random(n) < zeros, 0, g.integers(0, 9, n))
    weight[g.integers(n)] += 1
    extra = np.array([0, 1, 3, 40, 1000])
    found = weighted_upper(score, weight.astype(float), extra.astype(float), level)
    for ratio, value in zip(extra.tolist(), found, strict=True):
        need = level * (int(weight.sum()) + ratio)
        enough = [s for s in np.sort(score) if int(weight[score <= s].sum()) >= need]
        assert value == (enough[0] if enough else math.inf)


@settings(max_examples=40)
@given(seed=st.integers(0, 10_000), factor=st.sampled_from([1e-200, 0.7, 3.0, 1e150]))
def test_a_common_factor_and_the_order_of_rows_do_not_matter(seed, factor):
    g = np.random.default_rng(seed)
    score, weight, shift = g.normal(size=(30, 2)), g.integers(1, 4, 30).astype(float), g.exponential(size=30)
    places, level, order = g.exponential(size=7) * 3, Fraction(8, 10), g.permutation(30)

    def bounds(score, weight, shift, places):
        rows = Calibration(None, score, None, weight, shift=shift, place_shift=places)
        return score_bounds(ConformalProblem(None, None, level, rows, None), score)

    found = bounds(score, weight, shift, places)
    assert found.shape == (7, 2)
    assert_array_equal(bounds(score, weight, shift * factor, places * factor), found)
    assert_array_equal(bounds(score[order], weight[order], shift[order], places), found)
    times = weight.astype(int)
    repeated = bounds(np.repeat(score, times, 0), np.ones(times.sum()), np.repeat(shift, times), places)
    assert_array_equal(repeated, found)


def test_infinite_ratios_of_places_and_scores():
    score, weight = np.array([1.0, np.inf, 2.0]), np.ones(3)
    found = weighted_upper(score, weight, np.array([0.0, 2.0, np.inf]), Fraction(1, 2))
    assert found.tolist() == [2.0, np.inf, np.inf]
    assert weighted_upper(score, np.array([1.0, 0.0, 1.0]), np.array([0.0]), Fraction(9, 10)) == 2.0


def shifted_rows(n, g, at=1.0):
    """Return rows around zero, with noise that grows."""
    X = g.normal(size=(n, 1)) + at
    return X, np.sin(2 * X[:, 0]) + 0.3 * np.exp(0.5 * X[:, 0]) * g.normal(size=n)


def ratio(X):
    """Of normal rows around 1 to those around 0."""
    return np.exp(np.asarray(X)[:, 0] - 0.5)


@pytest.mark.parametrize("method", ["split", "adaptive", "cqr", "full"])
@pytest.mark.parametrize("kind", [NadarayaWatsonRegressor, LocalLinearRegressor])
def test_methods_weigh_their_scores(kind, method):
    """Equal ratios are none; half widths of split are the scores of the definition."""
    g = np.random.default_rng(1)
    (X, y), other, (new, _) = shifted_rows(90, g, 0.0), shifted_rows(80, g, 0.0), shifted_rows(25, g)
    model = kind(bandwidth=0.3).fit(X, y)
    calibration = None if METHODS[method].rows == "own" else other
    rows = X if calibration is None else other[0]
    setting = setting_of(model, new, 0.8, calibration, shift=ratio(rows), place_shift=ratio(new))
    found = prediction_interval(setting, method)
    equal = {"shift": np.full(len(rows), 0.1), "place_shift": np.full(25, 0.1)}
    plain, unshifted = (
        prediction_interval(setting_of(model, new, 0.8, calibration, **options), method) for options in ({}, equal)
    )
    assert_array_equal(unshifted.lower, plain.lower)
    assert_array_equal(unshifted.upper, plain.upper)
    if method == "split":
        for i, own in enumerate(ratio(new)):
            need = 0.8 * (ratio(rows).sum() + own)
            low, high = smallest_reaching(setting.calibration.score[:, 0], ratio(rows), need)
            assert low == high
            assert_allclose(found.upper[i, 0] - setting.prediction[i, 0], low, rtol=1e-13)
    assert "likelihood ratios" in found.guarantee or "without a finite-sample guarantee" in found.guarantee


def test_places_that_count_too_much_are_said():
    g = np.random.default_rng(1)
    (X, y), other = shifted_rows(90, g, 0.0), shifted_rows(20, g, 0.0)
    model = NadarayaWatsonRegressor(bandwidth=0.3).fit(X, y)
    new = np.array([[0.0], [6.0], [7.0]])
    with pytest.warns(ExtrapolationWarning, match="2 of 3 queries"):
        setting = setting_of(model, new, 0.9, other, shift=ratio(other[0]), place_shift=ratio(new))
    with pytest.warns(InferenceWarning, match=r"2 of 3 prediction intervals \(the first is of query 1\) are infinite: "
                      "their weight is too large") as caught:  # fmt: skip
        found = prediction_interval(setting, "split")
    assert len(caught) == 1
    assert np.isinf(found.upper[:, 0]).tolist() == [False, True, True]


@pytest.mark.parametrize("method", sorted(name for name, record in METHODS.items() if not record.shift))
def test_methods_for_which_nothing_is_proved_refuse_ratios(method):
    g = np.random.default_rng(1)
    X, y = shifted_rows(90, g, 0.0)
    model = NadarayaWatsonRegressor(bandwidth=0.3).fit(X, y)
    setting = setting_of(model, X[:3], shift=ratio(X), place_shift=ratio(X[:3]))
    with pytest.raises(ValueError, match=r"weights are for method='adaptive'.*got method="):
        prediction_interval(setting, method)


def test_a_function_of_rows_and_a_pair_of_arrays_are_the_same():
    rows, places = np.arange(6.0).reshape(3, 2), np.arange(4.0).reshape(2, 2)

    def row_sums(table):
        return table.sum(axis=1)

    def refuse():
        raise AssertionError  # rows are asked for by functions alone

    pair = (row_sums(rows), row_sums(places))
    for weights, ask in ((row_sums, lambda: rows), (pair, refuse), ([[1.0, 5.0, 9.0], [1, 5]], refuse)):
        shift, place_shift = read_weights(weights, ask, places, (3, 2))
        assert shift.tolist() == [1.0, 5.0, 9.0]
        assert place_shift.tolist() == [1.0, 5.0]
    _, far = read_weights((np.ones(3), [np.inf, 0.0]), refuse, None, (3, 2))
    assert far.tolist() == [np.inf, 0.0]  # places may be out of reach


@pytest.mark.parametrize(
    ("weights", "error", "message"),
    [
        (np.ones(3), TypeError, "function of X.*or a pair of arrays.*got an array of shape"),
        (1.0, TypeError, "function of X.*got float"),
        ((np.ones(3),), TypeError, "function of X"),
        ((np.ones(2), np.ones(2)), ValueError, r"rows that calibrate must be one per row, 3, got shape \(2,\)"),
        ((np.ones(3), np.ones((2, 1))), ValueError, r"rows of X must be one per row, 2, got shape \(2, 1\)"),
        (([1.0, -1.0, 1.0], np.ones(2)), ValueError, "rows that calibrate must not be negative or NaN, got -1.0"),
        ((np.ones(3), [1.0, np.nan]), ValueError, "rows of X must not be negative or NaN, got nan"),
        ((["a", "b", "c"], np.ones(2)), TypeError, "must be numbers"),
        (([1.0, np.inf, 1.0], np.ones(2)), ValueError, "must be finite"),
        ((np.zeros(3), np.ones(2)), ValueError, "all zero"),
    ],
)
def test_ratios_that_are_none(weights, error, message):
    with pytest.raises(error, match=message):
        read_weights(weights, lambda: np.ones((3, 1)), np.ones((2, 1)), (3, 2))


@pytest.mark.filterwarnings("ignore::kernpool.InferenceWarning")  # some places count for too much
@pytest.mark.parametrize("kind", [NadarayaWatsonRegressor, LocalLinearRegressor])
def test_full_conformal_of_weighted_rows_is_a_search_over_outputs(kind):
    """The values whose weighted p-value is above alpha are those between both ends."""
    g = np.random.default_rng(4)
    (X, y), (new, _) = shifted_rows(40, g, 0.0), shifted_rows(6, g)
    model, level = kind(bandwidth=0.5).fit(X, y), 0.8
    shifted = setting_of(model, new, level, shift=ratio(X), place_shift=ratio(new))
    found = prediction_interval(shifted, "full")
    total, compared = ratio(X).sum() + ratio(new), 0
    for i, place in enumerate(new):
        lower, upper = found.lower[i, 0], found.upper[i, 0]
        if not np.isfinite(upper - lower):
            # Planes may also hang on the new row, so that nothing bounds what it does.
            assert ratio(new)[i] > (1 - level) * total[i] or kind is LocalLinearRegressor
            continue
        compared += 1
        margin = 1e-6 * (upper - lower)
        for value, inside in ((lower - margin, False), (lower + margin, True), (upper - margin, True),
                              (upper + margin, False)):  # fmt: skip
            rows, outputs = np.vstack([X, place]), np.append(y, value)
            score = np.abs(outputs - kind(bandwidth=0.5).fit(rows, outputs).leave_one_out().prediction.ravel())
            at_least = ratio(X)[score[:-1] >= score[-1]].sum() + ratio(new)[i]
            assert (at_least > (1 - level) * total[i]) == inside
    assert compared >= 3


def test_a_function_of_columns_by_name_gets_a_frame_of_training_rows_too():
    random = np.random.default_rng(0)
    X = pd.DataFrame({"a": random.normal(size=200), "b": random.uniform(size=200)})
    new = pd.DataFrame({"a": random.normal(0.2, size=20), "b": random.uniform(size=20)})
    model = NadarayaWatsonRegressor(bandwidth=[0.5, 0.5]).fit(X, X["a"])
    expected = model.prediction_interval(new, weights=density_ratio(X, new))
    other = ["b", "a"]
    turned = model.prediction_interval(new, weights=density_ratio(X[other], new[other]))
    assert_allclose(turned.upper, expected.upper, rtol=1e-12)
    named = model.prediction_interval(new, weights=lambda table: np.exp(table["a"]))
    pair = (np.exp(X["a"]), np.exp(new["a"]))
    assert_array_equal(named.upper, model.prediction_interval(new, weights=pair).upper)
