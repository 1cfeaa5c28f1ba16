"""Laws of the state: they hold for every algorithm, because all of them end in it."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.testing import assert_allclose, assert_array_equal

from kernpool import EmptyWindowWarning, PoolState, empty_state, merge
from kernpool.core import Stack

SHAPE = (3,)
numbers = st.floats(-5, 5)


@st.composite
def states(draw):
    """States of three queries; a query may be empty, and shifts may be far apart."""
    occupied = draw(hnp.arrays(bool, SHAPE))
    shift = draw(hnp.arrays(float, SHAPE, elements=st.floats(-2000, 50)))
    denominator = draw(hnp.arrays(float, SHAPE, elements=st.floats(0.1, 10)))
    numerator = draw(hnp.arrays(float, (3, 2), elements=numbers))
    return PoolState(
        np.where(occupied, shift, -np.inf),
        np.where(occupied, denominator, 0),
        np.where(occupied[:, None], numerator, 0),
    )


def same(a, b):
    assert_allclose(a.finalize("zero"), b.finalize("zero"), rtol=1e-12, atol=1e-12)
    assert_allclose(a.log_denominator, b.log_denominator, rtol=1e-12, atol=1e-12)


@given(states())
def test_identity(state):
    same(merge(state, empty_state(3, 2)), state)
    same(merge(empty_state(3, 2), state), state)


def test_empty_with_empty_is_empty_without_nan():
    both = merge(empty_state(2, 1), empty_state(2, 1))
    assert np.all(np.isneginf(both.shift))
    assert np.all(both.denominator == 0)
    assert np.all(both.numerator == 0)


@given(states(), states(), states())
def test_associative(a, b, c):
    same(merge(merge(a, b), c), merge(a, merge(b, c)))


@given(states(), states())
def test_commutative(a, b):
    same(merge(a, b), merge(b, a))


@given(states(), states(), st.floats(-30, 30))
def test_the_shift_is_a_gauge(a, b, by):
    moved = PoolState(a.shift + by, a.denominator * np.exp(-by), a.numerator * np.exp(-by))
    same(merge(moved, b), merge(a, b))


def test_merging_other_queries_is_refused():
    with pytest.raises(ValueError, match=r"shapes \(2, 1\) and \(3, 1\)"):
        merge(empty_state(2, 1), empty_state(3, 1))


def test_only_finalize_decides_what_an_empty_window_becomes():
    state = PoolState(np.array([0.0, -np.inf]), np.array([2.0, 0.0]), np.array([[6.0], [0.0]]))
    with pytest.warns(EmptyWindowWarning, match="1 of 2 queries") as caught:
        assert_array_equal(state.finalize(), [[3.0], [np.nan]])
    assert len(caught) == 1
    assert_array_equal(state.finalize("zero"), [[3.0], [0.0]])
    assert_array_equal(state.finalize("mean", lambda rows: 10.0 * rows[:, None]), [[3.0], [10.0]])
    with pytest.raises(ValueError, match="larger bandwidth"):
        state.finalize("raise")
    with pytest.raises(ValueError, match="needs fill="):
        state.finalize("mean")
    with pytest.raises(ValueError, match="'nan', 'nearest', 'mean', 'zero', 'raise'"):
        state.finalize("nothing")


def test_values_of_positive_weight_bound_those_of_a_stack():
    value = np.array([[[5.0], [9.0], [2.0], [-7.0]]])
    stack = Stack.of(np.zeros((1, 2, 1)), np.zeros((1, 4, 1)), value, np.array([[3.0, 1.0, 2.0, 0.0]]))
    assert_array_equal([stack.low + stack.center, stack.high + stack.center], [[[2.0]], [[9.0]]])
