"""Compiled sums over nodes that lie in the support of a tile as a whole: by moments, and no key is looked at.

For the boxcar and the constant kernel a node is a count; for the Epanechnikov kernel it is three moments. Biweight and
triweight would need those of order four and six, 15 and 28 in two columns, 35 and 84 in three, and it does not pay. In
microseconds per query of 100 000 uniform keys, by moments where nodes lie within (Epanechnikov) and pair by pair:

    columns, keys within h   Epanechnikov   biweight   triweight
    2,  5 000                         8.8        9.3         8.6
    2, 20 000                         9.9       22.5        24.0
    3,  5 000                        19.8       18.7        15.8
    3, 20 000                        44.9       41.5        36.6

So in three columns, where most leaves lie across the edge, three moments are no faster than pairs; in two columns they
are where a window holds a fifth of all keys.
"""

from __future__ import annotations

import numpy as np

from kernpool.algorithms.loops.tiles import BOXCAR
from kernpool.algorithms.tree.loops.boxes import node_name
from kernpool.algorithms.tree.loops.visit import FIRST, LAST, LEAF, START, STOP
from kernpool.execution.compiling import loop


@loop
def add_nodes(
    nodes, count, visits, visit_count, query, own, size, center, moments, scale, code, denominator, numerator, collapsed
):  # fmt: skip
    """Add nodes to the sums of their queries, and the own leaf of a query to its visits; return how many those are.

    On the way down to the own key of a query, if it is there, the other halves are added.
    """
    leaves, d = center.shape[0] // 2, query.shape[1]
    t = np.empty(d)
    for k in range(count):
        for i in range(nodes[k, 0], nodes[k, 1]):
            first, last = nodes[k, FIRST], nodes[k, LAST]
            home = own[i] // size
            if not first <= home < last:
                home = -1
            while first < last:
                low, high = first, last  # what is added now; first ... last - 1 is what remains
                if home < 0:
                    first = last
                elif last - first == 1:
                    visits[visit_count, LEAF], visits[visit_count, START], visits[visit_count, STOP] = home, i, i + 1
                    visit_count += 1
                    break
                else:
                    middle = (first + last) // 2
                    if home < middle:
                        low, last = middle, middle
                    else:
                        high, first = middle, middle
                node, squared = node_name(low, high, leaves), 0.0
                for a in range(d):
                    t[a] = (query[i, a] - center[node, a]) * scale[a]
                    squared += t[a] * t[a]
                for channel in range(moments.shape[1]):
                    total = moments[node, channel, 0]
                    if code != BOXCAR:  # sum of 1 - (t_q - t)**2
                        total = total * (1.0 - squared) - moments[node, channel, 1 + d]
                        for a in range(d):
                            total += 2.0 * t[a] * moments[node, channel, 1 + a]
                        total *= 0.75
                    if channel > 0:
                        numerator[i, channel - 1] += total
                    else:
                        denominator[i] += total
                if code != BOXCAR:  # a count loses no digits
                    collapsed[i] += moments[node, 0, 0]
    return visit_count
