"""Kernels of categorical columns: tables against the formulas of their authors, pair by pair."""

import pickle

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from kernpool.kernels import categorical_kernel_names, get_categorical_kernel, kernel_of_family

YEARS = np.array([1960.0, 1965.0, 1966.0, 1970.0])


def by_hand(name, levels, lam):
    """The factors, one pair at a time, as the papers write them."""
    place = levels if isinstance(levels, np.ndarray) else np.arange(levels)
    c = len(place)
    table = np.empty((c, c))
    for i in range(c):
        for j in range(c):
            d = abs(float(place[i]) - float(place[j]))
            table[i, j] = {
                "aitchison_aitken": lambda d: 1 - lam if d == 0 else lam / (c - 1),
                "li_racine": lambda d: 1 if d == 0 else lam,
                "wang_van_ryzin": lambda d: 1 - lam if d == 0 else (1 - lam) / 2 * lam**d,
                "li_racine_ordered": lambda d: lam**d,
            }[name](d)
    return table


def levels_of(kernel, count):
    return YEARS[:count] if kernel.ordered else count


@pytest.mark.parametrize("count", [2, 3, 4])
@pytest.mark.parametrize("share", [0.0, 0.01, 0.3, 0.9, 1.0])
@pytest.mark.parametrize("name", categorical_kernel_names())
def test_tables_are_the_formulas(name, share, count):
    kernel = get_categorical_kernel(name)
    levels, lam = levels_of(kernel, count), share * kernel.largest(count)
    table = kernel.table(levels, lam)
    assert_allclose(table, by_hand(name, levels, lam), rtol=1e-15)
    assert_array_equal(table, table.T)
    assert 0 <= table.min() <= table.max() <= 1


@pytest.mark.parametrize("count", [2, 4])
@pytest.mark.parametrize("share", [0.0, 0.2, 0.7, 1.0])
@pytest.mark.parametrize("name", categorical_kernel_names())
def test_slopes_are_derivatives(name, share, count):
    """Central differences inside of the box, and one-sided ones of second order at its ends."""
    kernel = get_categorical_kernel(name)
    levels, top = levels_of(kernel, count), kernel.largest(count)
    lam, step = share * top, 1e-6 * top
    tables = [kernel.table(levels, at) for at in np.clip(lam + step * np.arange(-2, 3), 0.0, top)]
    if share == 0.0:
        expected = (4 * tables[3] - tables[4] - 3 * tables[2]) / (2 * step)
    elif share == 1.0:
        expected = (3 * tables[2] + tables[0] - 4 * tables[1]) / (2 * step)
    else:
        expected = (tables[3] - tables[1]) / (2 * step)
    assert_allclose(kernel.table_slope(levels, lam), expected, rtol=1e-8, atol=1e-8)


def test_slopes_at_zero_by_distance():
    kernel = get_categorical_kernel("li_racine_ordered")
    slope = kernel.table_slope(np.array([0.0, 1.0, 2.5]), 0.0)
    assert_array_equal(slope, [[0, 1, 0], [1, 0, 0], [0, 0, 0]])
    steep = kernel.table_slope(np.array([0.0, 0.5]), 0.0)[0, 1]  # infinite in truth
    assert 1e7 < steep < np.inf
    assert steep == kernel.table_slope(np.array([0.0, 0.5]), 2.0**-52)[0, 1]


@pytest.mark.parametrize("name", ["aitchison_aitken", "li_racine", "li_racine_ordered"])
def test_the_upper_end_of_the_box_makes_a_column_irrelevant(name):
    kernel = get_categorical_kernel(name)
    for count in (2, 3, 4, 37, 500):
        levels, top = levels_of(kernel, count), kernel.largest(count)
        assert kernel.is_irrelevant(levels, top)
        assert not kernel.is_irrelevant(levels, 0.99 * top)
        assert not kernel.is_irrelevant(levels, 0.0)


def test_wang_and_van_ryzin_never_make_a_column_irrelevant():
    kernel = get_categorical_kernel("wang_van_ryzin")
    table = kernel.table(np.arange(3), kernel.largest(3))
    assert not kernel.is_irrelevant(np.arange(3), kernel.largest(3))
    assert_allclose(table / table[0, 0], [[1, 0.5, 0.5], [0.5, 1, 0.5], [0.5, 0.5, 1]], rtol=1e-5)


@pytest.mark.parametrize("name", categorical_kernel_names())
def test_one_level_counts_fully_whatever_lambda(name):
    kernel = get_categorical_kernel(name)
    for lam in (0.0, 0.5, 1.0):
        assert_array_equal(kernel.table(levels_of(kernel, 1), lam), [[1.0]])
        assert_array_equal(kernel.table_slope(levels_of(kernel, 1), lam), [[0.0]])
        assert kernel.is_irrelevant(levels_of(kernel, 1), lam)


@given(st.integers(2, 30), st.floats(0, 1))
@example(29, 1.0)  # where 1 - (c - 1) / c loses the digits of c
def test_rows_of_aitchison_and_aitken_are_probabilities(count, share):
    kernel = get_categorical_kernel("aitchison_aitken")
    table = kernel.table(count, share * kernel.largest(count))
    assert_allclose(table.sum(axis=1), 1.0, rtol=1e-13)
    assert np.all(table.diagonal() >= table.max(axis=1) * (1 - count * 2**-52))


@given(st.lists(st.integers(-50, 50), min_size=2, max_size=8, unique=True), st.floats(0, 1))
def test_ordered_factors_fall_with_the_distance(places, share):
    """So that the first and the last level are the unlikest pair of all."""
    places = np.sort(np.array(places, dtype=float))
    for name in categorical_kernel_names(ordered=True):
        kernel = get_categorical_kernel(name)
        table = kernel.table(places, share * kernel.largest(len(places)))
        assert np.all(np.diff(table[0]) <= 0)
        assert table[0, -1] == table.min()


def test_records_travel_by_pickle():
    for name in categorical_kernel_names():
        again = pickle.loads(pickle.dumps(get_categorical_kernel(name)))
        assert again == get_categorical_kernel(name)


def test_what_is_refused():
    unordered, ordered = get_categorical_kernel("aitchison_aitken"), get_categorical_kernel("wang_van_ryzin")
    for kernel, levels, lam, message in (
        (unordered, 2, 0.6, r"lam must lie in \[0, 0.5\] .* 2 levels, got 0.6"),
        (unordered, 2, np.nan, "lam must lie in"),
        (ordered, np.arange(3), 1.0, "lam must lie in"),
        (unordered, 2, "0.5", "lam must be a number"),
        (unordered, np.arange(3), 0.1, "their number, for"),
        (unordered, 0, 0.1, "levels must be an integer from 1 on"),
        (ordered, 3, 0.1, "position of each level"),
        (ordered, ["a", "b"], 0.1, "position of each level"),
        (ordered, np.array([0.0, np.inf]), 0.1, "finite"),
    ):
        with pytest.raises((TypeError, ValueError), match=message):
            kernel.table_slope(levels, lam)
    with pytest.raises(ValueError, match="did you mean 'aitchison_aitken'"):
        kernel_of_family("AitchisonAitken", ordered=False)
    assert kernel_of_family("aitchison_aitken", ordered=True) is ordered
    assert kernel_of_family("li_racine", ordered=True) is get_categorical_kernel("li_racine_ordered")
