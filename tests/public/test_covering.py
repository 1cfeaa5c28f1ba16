"""What is left of large tables for `make test`: every two values, and little more."""

from itertools import combinations, product

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tests.support.covering import covering

tables = st.integers(1, 4).flatmap(
    lambda width: st.lists(st.tuples(*[st.integers(0, 4)] * width), min_size=1, max_size=60)
)


def together(rows, strength):
    return {part for row in rows for part in combinations(enumerate(row), min(strength, len(row)))}


@given(rows=tables, strength=st.integers(1, 3))
def test_all_combinations_of_the_table_are_met(rows, strength):
    chosen = covering(rows, strength)
    assert together([rows[number] for number in chosen], strength) == together(rows, strength)
    assert covering(rows, strength) == chosen


def test_they_are_few():
    rows = list(product("abcde", range(11), "rp", (1, 3)))
    assert len(rows) == 220
    assert len(covering(rows, 1)) == 11
    assert len(covering(rows)) <= 60  # fifty-five pairs of the longest two
    assert len(covering(rows, 4)) == 220


def test_values_are_used_alike():
    """With every value met once, the shorter axes go round."""
    rows = list(product("ab", range(10)))
    assert sum(rows[number][0] == "a" for number in covering(rows, 1)) == 5


def test_values_that_no_set_can_hold_and_values_that_are_equal():
    rows = [(np.zeros(2), True), (np.zeros(2), 1), ([1], 1.0)]
    assert covering(rows, 1) == {0, 1, 2}
