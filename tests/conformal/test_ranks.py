"""Ranks are counted exactly, and order statistics are those of rows repeated by their weights."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from kernpool.conformal.calibration import as_fraction, least_rows, upper_rank, upper_statistic
from kernpool.conformal.methods import warn_of_few
from kernpool.inference import InferenceWarning


@given(st.integers(1, 999), st.integers(0, 100_000))
def test_ranks_are_those_of_decimal_levels(thousandths, n):
    rank = upper_rank(as_fraction(thousandths / 1000), n)
    assert rank == upper_rank(as_fraction(thousandths / 1000), float(n)) == -((-thousandths * (n + 1)) // 1000)


def test_floats_would_be_off_by_one():
    assert upper_rank(as_fraction(0.55), 99) == 55.0
    assert np.ceil(0.55 * 100) == 56.0


@given(st.sampled_from([0.5, 0.8, 0.9, 0.95, 0.99, 0.999]))
def test_the_least_number_of_rows_is_least(level):
    n = least_rows(as_fraction(level))
    assert upper_rank(as_fraction(level), n) <= n
    assert upper_rank(as_fraction(level), n - 1) > n - 1


@given(st.integers(0, 2**32 - 1), st.integers(1, 9), st.integers(0, 40))
def test_weights_are_repeated_values(seed, n, rank):
    generator = np.random.default_rng(seed)
    values, weight = generator.integers(0, 5, (3, n)).astype(float), generator.integers(1, 4, n).astype(float)
    values[generator.uniform(size=values.shape) < 0.1] = np.inf
    repeated = np.sort(np.repeat(values, weight.astype(int), axis=1), axis=1)
    total = repeated.shape[1]
    expected = repeated[:, max(rank, 1) - 1] if rank <= total else np.full(3, np.inf)
    assert_array_equal(upper_statistic(values, weight, float(rank)), expected)
    assert_array_equal(upper_statistic(np.repeat(values, weight.astype(int), axis=1), None, rank), expected)


def test_fractions_of_rows_are_counted():
    values, weight = np.array([1.0, 2.0, 3.0]), np.array([0.1, 0.2, 0.7])
    assert upper_statistic(values, weight, 0.1 + 0.2) == 2.0
    assert upper_statistic(values, weight, 0.31) == 3.0
    assert upper_statistic(values, weight, 1.01) == np.inf


def test_too_few_rows_are_said_to_be():
    with pytest.warns(InferenceWarning, match="needs at least 19 clusters to calibrate it, got 18"):
        warn_of_few(as_fraction(0.95), 18.0, "clusters")
    warn_of_few(as_fraction(0.95), 19.0)
