"""Compiled sums of queries over one node of the tree: pair by pair, or all of it at once by its moments.

A leaf is summed for all queries of a tile that need it in one call: handing the arrays over takes as long as 128 pairs.
"""

from __future__ import annotations

from kernpool.algorithms.compiling import loop
from kernpool.algorithms.kd_loops import node_name
from kernpool.algorithms.tiles import BOXCAR, EDGE, EPANECHNIKOV, GAUSSIAN, LOG2_E, exp2, tile_weights


def _fused(columns, code):
    """Distance, profile and sums in one pass; the compiler folds the integers, and vectorises over the keys."""

    @loop
    def leaf(
        active, count, key, key_weight, value, own_place, query, own_weight, scale, unit,
        denominator, numerator, weight, own_key_weight,
    ):  # fmt: skip
        """Add a leaf to the sums of the active queries; those next to an edge or with a unit are left."""
        left, last = 0, columns - 1
        for r in range(count):
            i = active[r]
            if unit[i] != 0.0:  # far away even a fused product rounds by whole units: the stages that made the unit
                active[left] = i
                left += 1
                continue
            x, y, z = query[i, 0], query[i, 1], query[i, last]
            times = key_weight
            own = own_place[i]
            if 0 <= own < weight.size:  # replaced, not subtracted: what is left may be nothing beside it
                for j in range(weight.size):
                    own_key_weight[j] = key_weight[j]
                own_key_weight[own] = own_weight[i]
                times = own_key_weight
            near, total, pooled = 0, 0.0, 0.0
            for j in range(weight.size):
                u = (x - key[0, j]) * scale[0]
                s = u * u
                u = (y - key[1, j]) * scale[1]
                s += u * u
                if columns == 3:
                    u = (z - key[2, j]) * scale[2]
                    s += u * u
                if code == GAUSSIAN:
                    w = exp2(-0.5 * LOG2_E * s) * times[j]
                else:
                    w = 0.75 * max(1.0 - s, 0.0) * times[j]
                    near += 1 if abs(1.0 - s) < EDGE else 0
                weight[j] = w
                total += w
                pooled += w * value[0, j]
            if near > 0:
                active[left] = i
                left += 1
                continue
            denominator[i] += total
            numerator[i, 0] += pooled
            for c in range(1, value.shape[0]):
                pooled = 0.0
                for j in range(weight.size):
                    pooled += weight[j] * value[c, j]
                numerator[i, c] += pooled
        return left

    return leaf


gaussian_2, gaussian_3 = _fused(2, GAUSSIAN), _fused(3, GAUSSIAN)
epanechnikov_2, epanechnikov_3 = _fused(2, EPANECHNIKOV), _fused(3, EPANECHNIKOV)


@loop
def staged(
    active, count, key, key_weight, value, own_place, query, own_weight, profile, unit, denominator, numerator, buffers
):
    """Add a leaf to the sums of the active queries, for every kernel: by the stages of brute force."""
    weight = buffers[0]
    for r in range(count):
        i = active[r]
        tile_weights(
            weight, buffers[1], buffers[2], query[i], key, 0,
            profile.bandwidth, profile.code, profile.infinite, profile.product, unit[i],
        )  # fmt: skip
        own = own_place[i]
        own_kernel = weight[own] if 0 <= own < weight.size else 0.0
        for j in range(weight.size):
            weight[j] *= key_weight[j]
        if 0 <= own < weight.size:
            weight[own] = own_kernel * own_weight[i]
        total = 0.0
        for j in range(weight.size):
            total += weight[j]
        denominator[i] += total
        for c in range(value.shape[0]):
            pooled = 0.0
            for j in range(weight.size):
                pooled += weight[j] * value[c, j]
            numerator[i, c] += pooled


@loop
def add_pairs(active, count, leaf, tree, tiles, sums, profile, buffers):
    """Add the keys of a leaf to the sums of the active queries, pair by pair; return the number of pairs."""
    key, key_weight, value = tree.key[leaf], tree.weight[leaf], tree.value[leaf]
    size, d = key_weight.size, key.shape[0]
    for r in range(count):
        i = active[r]
        tiles.own_place[i] = tiles.own[i] - leaf * size
    arguments = (
        active, count, key, key_weight, value, tiles.own_place, tiles.query, tiles.own_weight, profile.scale,
        sums.unit, sums.denominator, sums.numerator, buffers[0], buffers[1],
    )  # fmt: skip
    left = count
    if not profile.product:
        if profile.code == GAUSSIAN and d == 2:
            left = gaussian_2(*arguments)
        elif profile.code == GAUSSIAN and d == 3:
            left = gaussian_3(*arguments)
        elif profile.code == EPANECHNIKOV and d == 2:
            left = epanechnikov_2(*arguments)
        elif profile.code == EPANECHNIKOV and d == 3:
            left = epanechnikov_3(*arguments)
    if left:
        staged(
            active, left, key, key_weight, value, tiles.own_place, tiles.query, tiles.own_weight, profile,
            sums.unit, sums.denominator, sums.numerator, buffers,
        )  # fmt: skip
    return count * size


@loop
def add_moments(start, stop, node, query, centre, moments, scale, code, denominator, numerator, collapsed):
    """Add a node that lies in the support of these queries as a whole: no key of it is looked at."""
    d = query.shape[1]
    for i in range(start, stop):
        squared = 0.0
        for a in range(d):
            t = (query[i, a] - centre[node, a]) * scale[a]
            squared += t * t
        for channel in range(moments.shape[1]):
            total = moments[node, channel, 0]
            if code != BOXCAR:  # sum of 1 - (t_q - t)**2
                total = total * (1.0 - squared) - moments[node, channel, 1 + d]
                for a in range(d):
                    t = (query[i, a] - centre[node, a]) * scale[a]
                    total += 2.0 * t * moments[node, channel, 1 + a]
                total *= 0.75
            if channel > 0:
                numerator[i, channel - 1] += total
            else:
                denominator[i] += total
        if code != BOXCAR:  # a count loses no digits
            collapsed[i] += moments[node, 0, 0]


@loop
def add_whole(start, stop, first, last, tree, tiles, sums, profile, buffers):
    """Add the node of these leaves to queries in whose support it lies; return the pairs looked at.

    On the way down to the own key of a query, if it is there, the other halves are added, and its leaf pair by pair.
    """
    leaves, size = tree.key.shape[0], tree.key.shape[2]
    pairs, begun, i = 0, start, start
    while i <= stop:
        has_own = i < stop and first <= tiles.own[i] // size < last
        if i == stop or has_own:  # those before it have none
            add_moments(
                begun, i, node_name(first, last, leaves), tiles.query, tree.centre, tree.moments, profile.scale,
                profile.code, sums.denominator, sums.numerator, sums.collapsed,
            )  # fmt: skip
            begun = i + 1
        if has_own:
            low, high, own = first, last, tiles.own[i] // size
            while high - low > 1:
                middle = (low + high) // 2
                other = node_name(middle, high, leaves) if own < middle else node_name(low, middle, leaves)
                add_moments(
                    i, i + 1, other, tiles.query, tree.centre, tree.moments, profile.scale,
                    profile.code, sums.denominator, sums.numerator, sums.collapsed,
                )  # fmt: skip
                low, high = (low, middle) if own < middle else (middle, high)
            tiles.active[0] = i
            pairs += add_pairs(tiles.active, 1, own, tree, tiles, sums, profile, buffers)
        i += 1
    return pairs
