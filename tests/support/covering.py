"""Which cases of a table of tests run: for `make test` all values are met, for `.ci/run` every two, by night all.

A test of five algorithms, twenty kernels and two numbers of columns has two hundred cases; eleven of
them hold every algorithm, every kernel, and so on. Fifty-five hold every kernel in every algorithm, and every other two
values together as well. Such a selection is a *covering array*. It finds what depends on one value, or on two, which is
nearly every fault (Kuhn, Wallace and Gallo, "Software fault interactions and implications for software testing", IEEE
Transactions on Software Engineering 30, 2004). What takes more is *exhaustive*, more than half
of all slow cases, and waits for `.ci/nightly`: a tenth of it, drawn anew for each gate, made red and green a lottery.

Tables of more than `FEW` cases are thinned to every value once, whether or not they carry a mark: most of what a fresh
clone waits for is the compiler, and nearly every other pair of values is another loop.
"""

from collections import Counter, defaultdict
from heapq import heapify, heappop, heappush
from itertools import combinations

import pytest

FEW = 4  # cases that always run all, if there are no more


def mark_what_is_covered(items):
    """Mark cases of a table as slow, but for a selection that meets all values, and as exhaustive beyond all pairs.

    The mark ``covering(strength=2)`` asks for a quick selection in which every two values meet, or of a table of few
    cases.

    Parameters
    ----------
    items : list of pytest.Item
        What was collected. Cases that are skipped neither count nor change. Those that are slow anyway are not counted
        among the quick ones.
    """
    tables = defaultdict(list)
    for item in items:
        if getattr(item, "callspec", None) and not item.get_closest_marker("skip"):
            tables[item.nodeid.split("[")[0]].append(item)
    for table in tables.values():
        quick = [item for item in table if not item.get_closest_marker("slow")]
        mark = table[0].get_closest_marker("covering")
        if quick and (mark is not None or len(quick) > FEW):
            _mark_others(quick, pytest.mark.slow, 1 if mark is None else mark.kwargs.get("strength", 1))
        if len(table) > FEW:
            quick = [number for number, item in enumerate(table) if not item.get_closest_marker("slow")]
            _mark_others(table, pytest.mark.exhaustive, 2, quick)


def _mark_others(table, mark, strength, chosen=()):
    chosen = covering([list(item.callspec.params.values()) for item in table], strength, chosen)
    for number, item in enumerate(table):
        if number not in chosen:
            item.add_marker(mark)


def covering(rows, strength=1, chosen=()):
    """Choose rows of a table that hold all combinations of so many values that any row holds.

    Parameters
    ----------
    rows : list of list
        The table. It need not be a full product.
    strength : int, optional
        How many values have to meet: 1 (the default) is every value once, 2 every two.
    chosen : iterable of int, optional
        Rows that are among the answer in any case.

    Returns
    -------
    set of int
        Numbers of rows, the same ones every time: again and again the one that adds most; of equal ones that whose
        values were chosen least often, and of those the first.
    """
    rows = [[(place, _comparable(value)) for place, value in enumerate(row)] for row in rows]
    parts = [set(combinations(row, min(strength, len(row)))) for row in rows]
    chosen, uses = set(chosen), Counter()
    missing = set().union(*parts).difference(*(parts[number] for number in chosen))

    def cost(number):
        return -len(parts[number] & missing), sum(uses[value] for value in rows[number]), number

    queue = [cost(number) for number in range(len(rows))]
    heapify(queue)
    while missing:
        # Costs only grow, so what is least by its cost of now is least of all: most others are not computed again.
        best = cost(heappop(queue)[-1])
        if queue and best > queue[0]:
            heappush(queue, best)
            continue
        chosen.add(best[-1])
        missing -= parts[best[-1]]
        uses.update(rows[best[-1]])
    return chosen


def _comparable(value):
    """Return what equals only itself, and can be a member of a set."""
    try:
        hash(value)
    except TypeError:
        return type(value), repr(value)
    return type(value), value
