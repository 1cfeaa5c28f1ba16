"""Which cases of a large table `make test` runs: so many that all values meet, and the slow tests run all others.

A test of five algorithms, eleven kernels, two compositions and two numbers of columns has two hundred cases; fifty-five
of them hold every kernel in every algorithm, and every other two values together as well. Such a selection is a
*covering array*. It finds what depends on one value or on two, which is nearly every fault (Kuhn, Wallace and Gallo,
"Software fault interactions and implications for software testing", IEEE Transactions on Software Engineering 30,
2004); what takes three is left to `.ci/run`.
"""

from collections import Counter, defaultdict
from itertools import combinations

import pytest


def mark_what_is_covered_slow(items):
    """Mark cases of tests that carry the mark `covering` as slow, but for a selection that meets all their values.

    Parameters
    ----------
    items : list of pytest.Item
        What was collected. Cases that are slow or skipped anyway neither count nor change.
    """
    tables = defaultdict(list)
    for item in items:
        if item.get_closest_marker("covering") and not _is_left_alone(item):
            tables[item.nodeid.split("[")[0]].append(item)
    for table in tables.values():
        rows = [list(item.callspec.params.values()) for item in table]
        strength = table[0].get_closest_marker("covering").kwargs.get("strength", 2)
        chosen = covering(rows, strength)
        for number, item in enumerate(table):
            if number not in chosen:
                item.add_marker(pytest.mark.slow)


def _is_left_alone(item):
    return any(mark.name in ("slow", "skip") for mark in item.iter_markers())


def covering(rows, strength=2):
    """Choose rows of a table that hold all combinations of so many values that any row holds.

    Parameters
    ----------
    rows : list of list
        The table. It need not be a full product.
    strength : int, optional
        How many values have to meet: 1 is every value once, 2 (the default) every two.

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
