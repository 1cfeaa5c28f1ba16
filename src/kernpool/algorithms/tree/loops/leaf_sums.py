"""Compiled sums over tree leaves, key by key in float64 or float32, and over whole nodes by their moments.

**Pairs.** Fused loops serve the most used kernels, radial, in two or three columns; all others run by the stages of
brute force. Specialisations close over integers alone. Coordinates are those of `LeafCopies` in
`algorithms/tree/kd_tree.py`.

**Error.** A query may miss the fraction `tol` of its weight. One half of it is for the nodes that `list_leaves` did
not list. The other half is for leaves that it did list for the tile: a query leaves out those whose weight is next to
nothing by a bound from its own distance.

Leaves at a medium distance are summed in float32. Their weights have a relative error of at most 2**-15: the
exponent, ``|k|**2 - 2 q.k`` about the center of the leaf, is a sum of terms that add up to less than 70 in size, for
leaves and queries within the bounds of `LeafCopies`. Together they have at most the fraction `FAR_SHARE` of the
denominator, which is verified once it is known. So the error is below 2**-43 = 1e-13 of the range of the values in
the worst case. Leaves are smaller and the signs of roundings vary, and the measured error is 1e-17.

**Nodes.** A node that lies in the support of a whole tile is added by its moments, and none of its keys is visited.
For the boxcar and the constant kernel a node is a count; for the Epanechnikov kernel it is three moments. Biweight
and triweight would need those of order four and six, 15 and 28 in two columns, 35 and 84 in three, which does not
pay. In microseconds per query of 100 000 uniform keys, by moments where nodes lie within (Epanechnikov) and pair by
pair:

    columns, keys within h   Epanechnikov   biweight   triweight
    2,  5 000                         8.8        9.3         8.6
    2, 20 000                         9.9       22.5        24.0
    3,  5 000                        19.8       18.7        15.8
    3, 20 000                        44.9       41.5        36.6

In three columns, where most leaves lie across the edge, three moments are no faster than pairs; in two columns they
are faster where a window holds a fifth of all keys.
"""

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from kernpool.algorithms.loops.kernel_weights import (
    BIWEIGHT,
    BOXCAR,
    EDGE,
    EPANECHNIKOV,
    GAUSSIAN,
    LAPLACE,
    TRIWEIGHT,
    exp2_minus_32_unclamped,
    exp2_minus_64_unclamped,
    tile_weights,
)
from kernpool.algorithms.tree.loops.traversal import (
    FIRST,
    LAST,
    LEAF,
    MARGIN,
    ROUNDING,
    START,
    STOP,
    TAXICAB,
    add_component,
    ceiling,
    node_index,
)
from kernpool.execution.compilation import bare_loop, loop

_ZERO_32 = np.float32(0.0)


@lru_cache
def near_loop(code: int, columns: int, one_value: int) -> Callable[..., Any]:
    """Build the compiled float64 loop that adds the keys of leaves to the sums of queries."""
    last = columns - 1

    @bare_loop
    def sum_near(
        pairs, count, key, key_weight, value, center, factor, query, own, own_weight, denominator, numerator, buffers
    ):  # fmt: skip
        """Add leaves' keys to queries' sums for the listed query-leaf pairs; return the number of pairs not summed."""
        size, current, edgy = key.shape[2], -1, 0
        weight, buffer = buffers[0], buffers[1]
        for r in range(count):
            i, leaf = pairs[r, 0], pairs[r, 1]
            k0, k1, k2, column = key[leaf, 0], key[leaf, 1], key[leaf, last], value[leaf, 0]
            if leaf != current:
                current = leaf
                for j in range(size):
                    weight[j] = key_weight[leaf, j]
            place = own[i] - leaf * size
            if 0 <= place < size:  # replaced, not subtracted: what is left may be nothing beside it
                weight[place] = own_weight[i]
            q0, q1 = (query[i, 0] - center[leaf, 0]) * factor[0], (query[i, 1] - center[leaf, 1]) * factor[1]
            q2 = (query[i, last] - center[leaf, last]) * factor[last]
            edges, total, pooled = 0, 0.0, 0.0
            for j in range(size):
                u = q0 - k0[j]
                s = u * u
                u = q1 - k1[j]
                s += u * u
                if columns > 2:
                    u = q2 - k2[j]
                    s += u * u
                if code == GAUSSIAN:
                    w = exp2_minus_64_unclamped(s)
                elif code == LAPLACE:
                    w = 0.5 * exp2_minus_64_unclamped(math.sqrt(s))
                else:
                    w = max(1.0 - s, 0.0)
                    edges += 1 if abs(1.0 - s) < EDGE else 0
                    if code == EPANECHNIKOV:
                        w *= 0.75
                    elif code == BIWEIGHT:
                        w *= 15 / 16 * w
                    elif code == TRIWEIGHT:
                        w *= 35 / 32 * w * w
                w *= weight[j]
                total += w
                if one_value == 1:
                    pooled += w * column[j]
                else:
                    buffer[j] = w
            if 0 <= place < size:
                weight[place] = key_weight[leaf, place]
            if edges > 0:
                pairs[edgy, 0], pairs[edgy, 1] = i, leaf
                edgy += 1
                continue
            denominator[i] += total
            if one_value == 1:
                numerator[i, 0] += pooled
            else:
                for c in range(value.shape[1]):
                    column, pooled = value[leaf, c], 0.0
                    for j in range(size):
                        pooled += buffer[j] * column[j]
                    numerator[i, c] += pooled
        return edgy

    return sum_near


@lru_cache
def far_loop(code: int, columns: int, one_value: int) -> Callable[..., Any]:
    """Build the compiled float32 loop that adds the keys of distant leaves to the sums of queries."""
    # It is for a kernel of infinite support. Parameters are as in `near_loop`; the error is derived in the module's
    # docstring.
    last = columns - 1

    @bare_loop
    def sum_far(
        pairs, count, key, value, weight_unit, value_unit, center, factor, query, own, own_weight, denominator,
        numerator, buffers,
    ):  # fmt: skip
        """Add keys of distant leaves to sums of queries, for listed query-leaf pairs, in float32."""
        # Queries are taken as -2 q about the center of the leaf; the weight at the center is factored out.
        size, current = key.shape[2], -1
        weight, buffer = buffers[0], buffers[1]
        for r in range(count):
            i, leaf = pairs[r, 0], pairs[r, 1]
            k0, k1, k2, square = key[leaf, 0], key[leaf, 1], key[leaf, last], key[leaf, columns]
            column = value[leaf, 0]
            if leaf != current:
                current = leaf
                for j in range(size):
                    weight[j] = key[leaf, columns + 1, j]
            place = own[i] - leaf * size
            if 0 <= place < size:
                weight[place] = np.float32(own_weight[i] / weight_unit[leaf])
            q0, q1 = (query[i, 0] - center[leaf, 0]) * factor[0], (query[i, 1] - center[leaf, 1]) * factor[1]
            q2 = (query[i, last] - center[leaf, last]) * factor[last]
            squared = q0 * q0 + q1 * q1
            if columns > 2:
                squared += q2 * q2
            distance = math.sqrt(squared)
            unit = exp2_minus_64_unclamped(squared if code == GAUSSIAN else 1.0 + distance) * weight_unit[leaf]
            p0, p1, p2 = np.float32(-2.0 * q0), np.float32(-2.0 * q1), np.float32(-2.0 * q2)
            add, away, total, pooled = np.float32(squared), np.float32(distance), _ZERO_32, _ZERO_32
            for j in range(size):
                t = square[j] + p0 * k0[j] + p1 * k1[j]
                if columns > 2:
                    t += p2 * k2[j]
                if code == LAPLACE:
                    t = np.float32(math.sqrt(t + add)) - away
                w = exp2_minus_32_unclamped(t) * weight[j]
                total += w
                if one_value == 1:
                    pooled += w * column[j]
                else:
                    buffer[j] = w
            if 0 <= place < size:
                weight[place] = key[leaf, columns + 1, place]
            denominator[i] += unit * total
            if one_value == 1:
                numerator[i, 0] += unit * value_unit[0] * pooled
            else:
                for c in range(value.shape[1]):
                    column, pooled = value[leaf, c], _ZERO_32
                    for j in range(size):
                        pooled += buffer[j] * column[j]
                    numerator[i, c] += unit * value_unit[c] * pooled
        return 0

    return sum_far


NEAR, FAR, STAGED = range(3)  # kinds of pairs: a fused loop in float64, one in float32, the stages of brute force
FAR_SHARE = 2.0**-28
FAR_LEAF = math.log2(FAR_SHARE) - 1.0  # bound of one leaf, several times its weight; measured, all of them stay below
FAR_BEGINS = (
    -8.0
)  # exponent; nearer, which a leaf of small key weights may be, the root in a Laplace kernel loses digits
SKIPS = 5.0  # a leaf may be skipped if its bound is 2**-5 of what a query may spend: one alone must not take it all


@loop
def list_pairs(
    visits, place, count, query, lower, upper, scale, norm, code, infinite, far_leaf, budget, lowest, log_mass, unit,
    least, spent, pairs, sizes,
):  # fmt: skip
    """List query-leaf pairs by the loop that sums them, until a list is full; return the next row of `visits`."""
    squared = np.empty(query.shape[1])
    skip = math.log2(budget) - SKIPS if budget > 0.0 else -np.inf
    for kind in range(3):
        sizes[kind] = 0
    for k in range(place, count):
        leaf, start, stop = visits[k, LEAF], visits[k, START], visits[k, STOP]
        if max(sizes[0], sizes[1], sizes[2]) + stop - start > pairs.shape[1]:
            return k
        for i in range(start, stop):  # all queries of the tile at once: this vectorises, what follows does not
            squared[i] = 0.0
        for a in range(query.shape[0]):
            low, high = lower[leaf, a], upper[leaf, a]
            for i in range(start, stop):
                gap = max(max(query[a, i] - high, low - query[a, i]), 0.0)
                squared[i] = add_component(squared[i], gap * scale[a], norm)
        for i in range(start, stop):
            if infinite and least[i] == np.inf:  # no key is included, or the sums are done: nothing is omitted
                continue
            kind, total = NEAR, squared[i]
            if infinite:
                exponent = ceiling(total * total if norm == TAXICAB else total, code)
                share = exponent * (1.0 - ROUNDING) + log_mass[leaf] - least[i]
                if share <= skip:
                    weight = exp2_minus_64_unclamped(min(-share, 1000.0))
                    if spent[i] + weight <= budget:
                        spent[i] += weight
                        continue
                if unit[i] != 0.0 or exponent < lowest[leaf, NEAR]:
                    kind = STAGED
                elif share <= far_leaf and lowest[leaf, FAR] <= exponent <= FAR_BEGINS:
                    kind = FAR
            elif total > 1.0 + MARGIN:
                continue
            elif lowest[leaf, NEAR] > 0.0:
                kind = STAGED
            pairs[kind, sizes[kind], 0], pairs[kind, sizes[kind], 1] = i, leaf
            sizes[kind] += 1
    return count


@loop
def sum_stages(
    pairs, count, key, key_weight, value, query, own, own_weight, unit, bandwidth, code, infinite, product,
    denominator, numerator,
):  # fmt: skip
    """Add keys of leaves to sums of queries, for listed query-leaf pairs, by the loop that supports every kernel."""
    size, current, keys = key.shape[2], 0, key[0]
    weight, s, exponent, column = np.empty(size), np.empty(size), np.empty(size), np.empty(size)
    for r in range(count):
        i, leaf = pairs[r, 0], pairs[r, 1]
        if leaf != current:  # views are made once per leaf: threads count references to the same array in turns
            current, keys = leaf, key[leaf]
        tile_weights(weight, s, exponent, column, query[i], keys, 0, bandwidth, code, infinite, product, unit[i])
        place = own[i] - leaf * size
        own_kernel = weight[place] if 0 <= place < size else 0.0
        for j in range(size):
            weight[j] *= key_weight[leaf, j]
        if 0 <= place < size:  # replaced, not subtracted: what is left may be nothing beside it
            weight[place] = own_kernel * own_weight[i]
        total = 0.0
        for j in range(size):
            total += weight[j]
        denominator[i] += total
        for c in range(value.shape[1]):
            pooled = 0.0
            for j in range(size):
                pooled += weight[j] * value[leaf, c, j]
            numerator[i, c] += pooled


@loop
def add_nodes(
    nodes, count, visits, visit_count, query, own, size, center, moments, scale, code, denominator, numerator, collapsed
):  # fmt: skip
    """Add whole tree nodes to queries' sums by moments; return the length of the list of leaves still to be summed."""
    # Leaves with the own key of a query are added to the visits. On the way down to the own key of a query, if it is
    # there, the other halves are added.
    leaves, d = center.shape[0] // 2, query.shape[1]
    t = np.empty(d)
    for k in range(count):
        for i in range(nodes[k, 0], nodes[k, 1]):
            first, last = nodes[k, FIRST], nodes[k, LAST]
            home = own[i] // size
            if not first <= home < last:
                home = -1
            while first < last:
                low, high = first, last  # the node to add now; first ... last - 1 remain
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
                node, squared = node_index(low, high, leaves), 0.0
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
