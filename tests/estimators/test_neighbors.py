"""Estimators whose windows follow the rows: pools of the same windows, refits without a row, and searches by all k."""

import json
from pathlib import Path

import numpy as np
import pytest

import kernpool
from kernpool import LocalLinearRegressor, NadarayaWatsonRegressor, Nearest

RNG = np.random.default_rng(5)
X = RNG.exponential(size=(60, 1))
Y = np.sin(3.0 * X[:, 0]) + 0.2 * RNG.normal(size=60)
NEW = RNG.uniform(0.0, 3.0, size=(20, 1))
TWO, RATIOS = RNG.exponential(size=(60, 2)), [1.0, 3.0]
STORED = json.loads((Path(__file__).parents[1] / "pooling" / "peer_numbers.json").read_text(encoding="utf-8"))
WAVE = np.array(STORED["data"]["wave"]["x"])[:, None], np.array(STORED["data"]["wave"]["y"])
KINDS = NadarayaWatsonRegressor, LocalLinearRegressor


def made(kind, k, **options):
    options = {"kernel": "tricube", "bandwidth": RATIOS if options.pop("two", False) else 1.0} | options
    return kind(window=Nearest(k), **options)


def pooled(query, rows, k, degree, **options):
    options = {"kernel": "tricube", "bandwidth": RATIOS if np.shape(query)[1] == 2 else 1.0} | options
    return kernpool.pool(query, *rows, window=Nearest(k), degree=degree, **options)


def test_a_share_is_a_number_of_rows():
    model = made(LocalLinearRegressor, 17.0 / 60.0).fit(X, Y)
    assert model.window_.k == 17


@pytest.mark.parametrize("kind", KINDS)
def test_search_finds_the_best_of_all_numbers(kind):
    model = kind("tricube", "loo", window=Nearest()).fit(X, Y)
    least = 2 + 2 * kind._degree
    errors = {k: made(kind, k).fit(X, Y).leave_one_out().error for k in range(least, 60)}
    best = min(errors, key=errors.__getitem__)
    assert model.window_.k == best
    np.testing.assert_allclose(model.loo_error_, errors[best])
    assert model.expected_error() > 0.0


@pytest.mark.parametrize("name", ["np_nn_search_wave", "np_nn_aic_wave"])
def test_search_finds_the_numbers_of_np(name):
    for entry in STORED["numbers"]:
        if entry["name"] == name:
            kind, criterion = KINDS[entry["args"]["reg"] == "ll"], "loo" if "search" in name else "aicc"
            model = kind("gaussian", criterion, window=Nearest()).fit(*WAVE)
            own = criterion == "aicc"  # np does not count the row itself, in-sample
            assert model.window_.k == int(entry["values"][0]) + own
            if criterion == "loo":
                np.testing.assert_allclose(model.loo_error_, entry["values"][1], rtol=1e-9)


def test_ratios_of_columns_are_searched_for_fixed_widths():
    fixed = LocalLinearRegressor("tricube", "loo").fit(TWO, Y)
    model = LocalLinearRegressor("tricube", "loo", window=Nearest()).fit(TWO, Y)
    np.testing.assert_array_equal(model.bandwidth_, fixed.bandwidth_)
    errors = [
        made(LocalLinearRegressor, k, bandwidth=model.bandwidth_.tolist(), ridge=0.0).fit(TWO, Y).leave_one_out().error
        for k in range(5, 60)
    ]
    np.testing.assert_allclose(model.loo_error_, min(errors))


@pytest.mark.parametrize("weight", [[1.0], [0.0, 1.0]])
def test_a_row_without_others_is_told_in_words_of_rows(weight):
    """Errors of rows left out are NaN; the message is of rows, and not of arguments of pool."""
    x, y = np.arange(len(weight))[:, None] + 1.0, np.full(len(weight), 2.0)
    model = NadarayaWatsonRegressor(bandwidth=1.0, window=Nearest())
    with pytest.warns(kernpool.EmptyWindowWarning) as said:
        left_out = model.fit(x, y, weight).leave_one_out()
    assert np.isnan([left_out.prediction[-1, 0], left_out.error, model.loo_error_]).all()
    for each in said:
        assert "rows have no other row to be predicted from, and their leave-one-out predictions" in str(each.message)
    assert model.predict([[1.0]]) == [2.0]


def test_a_share_of_weights_that_is_no_whole_number_of_rows_is_refused():
    weight = np.full(50, 0.5)
    x = np.linspace(0.0, 1.0, 50)[:, None]
    whole = np.random.default_rng(0).uniform(0.5, 2.0, 50)
    assert made(NadarayaWatsonRegressor, 0.3).fit(x, x[:, 0], whole * (50 / whole.sum())).window_.k == 15
    with pytest.raises(ValueError, match=r"is 7\.5 rows, and windows reach to a whole number; give k as"):
        made(NadarayaWatsonRegressor, 0.3).fit(x, x[:, 0], weight)


@pytest.mark.parametrize("weight", [None, np.arange(300) % 3])
@pytest.mark.parametrize("columns", [1, 2])
@pytest.mark.parametrize("dense", [True, False])
@pytest.mark.parametrize("period", [None, 24.0])
def test_rows_at_the_distance_of_the_kth_are_all_in_the_window(period, dense, columns, weight, generator):
    """Of hours in tenths, whose differences differ in their last digits, from wherever and in whatever unit."""
    hours = np.round(generator.uniform(0.0, 24.0, size=(300, columns)), 1)
    query, y = hours[:: 1 if dense else 60] + 0.1, generator.normal(size=300)
    found = []
    for origin, unit in ((0.0, 1.0), (7.3, 1.0), (0.0, 1e-3), (0.4, 3.0)):
        turns = None if period is None else {0: period * unit}
        model = made(NadarayaWatsonRegressor, 13, kernel="boxcar", periodic=turns)
        found.append(model.fit((hours + origin) * unit, y, weight).predict((query + origin) * unit))
    np.testing.assert_allclose(found[1:], np.tile(found[0], (3, 1)), rtol=1e-9, atol=1e-12)


def test_numbers_by_aicc_are_those_of_the_least_with_levels_as_well():
    rows = np.column_stack([X, np.arange(60) % 3])
    model = NadarayaWatsonRegressor("tricube", "aicc", window=Nearest(), unordered=[1]).fit(rows, Y)
    options = {"bandwidth": model.bandwidth_, "smoothing": model.smoothing_, "unordered": [1]}
    errors = {k: made(KINDS[0], k, **options).fit(rows, Y).summary().aicc for k in range(4, 30)}
    assert model.window_.k == min(errors, key=errors.__getitem__)
