"""Selection of tests for `make test`: of large tables every value or pair, of every subpackage some files."""

from itertools import combinations, product
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.covering import FEW, covering, mark_what_is_covered
from tests.support.later import FILES, LATER, TESTS

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


class Item:
    """Stands for a case that pytest has collected."""

    def __init__(self, name, *marks, **params):
        self.nodeid, self.marks = f"{name}[{params}]", list(marks)
        self.callspec = SimpleNamespace(params=params)

    def iter_markers(self):
        return iter(self.marks)

    def get_closest_marker(self, name):
        return next((mark for mark in self.marks if mark.name == name), None)

    def add_marker(self, mark):
        self.marks.append(getattr(mark, "mark", mark))

    def is_slow(self):
        return self.get_closest_marker("slow") is not None


def cases(*marks, rows=3, columns=3):
    return [Item("table", *marks, row=row, column=column) for row in range(rows) for column in range(columns)]


def quick(items):
    mark_what_is_covered(items)
    return [item.callspec.params for item in items if not item.is_slow()]


def test_large_tables_keep_every_value_and_small_ones_every_case():
    left = quick(cases())
    assert len(left) == 3
    assert {case["row"] for case in left} == {case["column"] for case in left} == {0, 1, 2}
    assert len(quick(cases(rows=2, columns=FEW // 2))) == FEW
    assert len(quick([Item("one axis", row=row) for row in range(30)])) == 30
    assert len(quick([*cases(pytest.mark.covering.mark, rows=1, columns=2), Item("other", row=0)])) == 3


def test_a_mark_asks_for_every_two_values_or_for_a_selection_of_few():
    assert len(quick(cases(pytest.mark.covering(strength=2).mark))) == 9
    assert len(quick(cases(pytest.mark.covering.mark, rows=2, columns=2))) == 2


def test_what_is_skipped_neither_counts_nor_changes():
    items = cases(rows=2, columns=2) + cases(pytest.mark.skip.mark, rows=4, columns=4)
    before = [list(item.marks) for item in items]
    mark_what_is_covered(items)
    assert [item.marks for item in items] == before


def cube(*marks):
    return [Item("cube", *marks, x=x, y=y, z=z) for x, y, z in product(range(4), repeat=3)]


@pytest.mark.parametrize("marks", [(), (pytest.mark.slow.mark,)], ids=["thinned", "slow"])
def test_what_no_pair_needs_is_exhaustive(marks):
    items = cube(*marks)
    mark_what_is_covered(items)
    kept = [item for item in items if not item.get_closest_marker("exhaustive")]
    assert together([list(item.callspec.params.values()) for item in kept], 2) == together(
        product(range(4), repeat=3), 2
    )
    assert 16 <= len(kept) <= 24
    assert all(item.is_slow() for item in items if item not in kept)
    assert sum(not item.is_slow() for item in items) == (0 if marks else 4)


def test_files_that_are_left_to_the_gate_exist_and_every_subpackage_keeps_some():
    assert [path for path in FILES if not path.is_file()] == []
    for subpackage in LATER:
        assert set((TESTS / subpackage).rglob("test_*.py")) - FILES
