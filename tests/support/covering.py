"""Which cases of a table of tests `make test` runs: so many that all values are met, and the slow tests run all others.

A test of five algorithms, eleven kernels, two compositions and two numbers of columns has two hundred cases; eleven of
them hold every algorithm, every kernel, and so on. Fifty-five hold every kernel in every algorithm, and every other two
values together as well. Such a selection is a *covering array*. It finds what depends on one value, or on two, which is
nearly every fault (Kuhn, Wallace and Gallo, "Software fault interactions and implications for software testing", IEEE
Transactions on Software Engineering 30, 2004); what takes more is left to `.ci/run`, which runs every case.

Tables of more than `FEW` cases are thinned to every value once, whether or not they carry a mark: most of what a fresh
clone waits for is the compiler, and nearly every other pair of values is another loop.
"""

from collections import Counter, defaultdict
from itertools import combinations

import pytest

FEW = 4  # cases that always run all, if there are no more


def mark_what_is_covered_slow(items):
    """Mark cases of a table as slow, but for a selection that meets all values of the table.

    The mark ``covering(strength=2)`` asks for a selection in which every two values meet, or of a table of few cases.

    Parameters
    ----------
    items : list of pytest.Item
        What was collected. Cases that are slow or skipped anyway neither count nor change.
    """
    tables = defaultdict(list)
    for item in items:
        if getattr(item, "callspec", None) and not _is_left_alone(item):
            tables[item.nodeid.split("[")[0]].append(item)
    for table in tables.values():
        mark = table[0].get_closest_marker("covering")
        if mark is None and len(table) <= FEW:
            continue
        rows = [list(item.callspec.params.values()) for item in table]
        chosen = covering(rows, 1 if mark is None else mark.kwargs.get("strength", 1))
        for number, item in enumerate(table):
            if number not in chosen:
                item.add_marker(pytest.mark.slow)


def _is_left_alone(item):
    return any(mark.name in ("slow", "skip") for mark in item.iter_markers())


def covering(rows, strength=1):
    """Choose rows of a table that hold all combinations of so many values that any row holds.

    Parameters
    ----------
    rows : list of list
        The table. It need not be a full product.
    strength : int, optional
        How many values have to meet: 1 (the default) is every value once, 2 every two.

    Returns
    -------
    set of int
        Numbers of rows, the same ones every time: again and again the one that adds most; of equal ones that whose
        values were chosen least often, and of those the first.
    """
    rows = [[(place, _comparable(value)) for place, value in enumerate(row)] for row in rows]
    parts = [set(combinations(row, min(strength, len(row)))) for row in rows]
    missing, chosen, uses = set().union(*parts), set(), Counter()

    def gain(number):
        return len(parts[number] & missing), -sum(uses[value] for value in rows[number])

    while missing:
        best = max(range(len(rows)), key=gain)
        chosen.add(best)
        missing -= parts[best]
        uses.update(rows[best])
    return chosen


def _comparable(value):
    """Return what equals only itself, and can be a member of a set."""
    try:
        hash(value)
    except TypeError:
        return type(value), repr(value)
    return type(value), value
