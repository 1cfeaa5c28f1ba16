"""Compiled sums of one query over one node of the tree: pair by pair, or all of it at once by its moments."""

from __future__ import annotations

from kernpool.algorithms.compiling import loop
from kernpool.algorithms.kd_loops import node_name
from kernpool.algorithms.tiles import BOXCAR, EDGE, EPANECHNIKOV, GAUSSIAN, LOG2_E, exp2, tile_weights


def _fused(columns):
    """Distance and profile in one pass for a fixed number of columns, which the compiler unrolls and vectorises."""

    @loop
    def gaussian(weight, q, key, scale, unit):
        for j in range(weight.size):
            s = 0.0
            for a in range(columns):
                u = (q[a] - key[a, j]) * scale[a]
                s += u * u
            weight[j] = exp2(-0.5 * LOG2_E * s - unit)

    @loop
    def epanechnikov(weight, q, key, scale):
        near = 0
        for j in range(weight.size):
            s = 0.0
            for a in range(columns):
                u = (q[a] - key[a, j]) * scale[a]
                s += u * u
            weight[j] = 0.75 * max(1.0 - s, 0.0)
            near += 1 if abs(1.0 - s) < EDGE else 0
        return near > 0

    return gaussian, epanechnikov


gaussian_2, epanechnikov_2 = _fused(2)
gaussian_3, epanechnikov_3 = _fused(3)


@loop
def leaf_weights(weight, s, exponent, q, key, profile, unit):
    """Kernel weights of one query and the keys of one leaf, in units of 2**unit."""
    if not profile.product:
        if profile.code == GAUSSIAN and q.size == 2:
            return gaussian_2(weight, q, key, profile.scale, unit)
        if profile.code == GAUSSIAN and q.size == 3:
            return gaussian_3(weight, q, key, profile.scale, unit)
        # a key on the edge of the support is decided by the stages of brute force, for both of us alike
        if profile.code == EPANECHNIKOV and q.size == 2 and not epanechnikov_2(weight, q, key, profile.scale):
            return None
        if profile.code == EPANECHNIKOV and q.size == 3 and not epanechnikov_3(weight, q, key, profile.scale):
            return None
    tile_weights(
        weight, s, exponent, q, key, 0, profile.bandwidth, profile.code, profile.infinite, profile.product, unit
    )
    return None


@loop
def add_pairs(i, leaf, tree, tiles, sums, profile, buffers):
    """Add the keys of a leaf to the sums of query i, one by one."""
    weight, key_weight = buffers[0], tree.weight[leaf]
    leaf_weights(weight, buffers[1], buffers[2], tiles.query[i], tree.key[leaf], profile, sums.unit[i])
    own = tiles.own[i] - leaf * weight.size
    own_weight = weight[own] * tiles.own_weight[i] if 0 <= own < weight.size else 0.0
    for j in range(weight.size):
        weight[j] *= key_weight[j]
    if 0 <= own < weight.size:  # not subtracted: what is left may be nothing beside it
        weight[own] = own_weight
    total = 0.0
    for j in range(weight.size):
        total += weight[j]
    sums.denominator[i] += total
    for c in range(tree.value.shape[1]):
        value = tree.value[leaf, c]
        total = 0.0
        for j in range(weight.size):
            total += weight[j] * value[j]
        sums.numerator[i, c] += total


@loop
def add_moments(i, node, tree, tiles, sums, profile):
    """Add a node that lies in the support of query i as a whole: no key of it is looked at."""
    d = tree.centre.shape[1]
    for channel in range(tree.moments.shape[1]):
        total = tree.moments[node, channel, 0]
        if profile.code != BOXCAR:  # sum of 1 - (t_q - t)**2
            squared, mixed = 0.0, 0.0
            for a in range(d):
                t = (tiles.query[i, a] - tree.centre[node, a]) * profile.scale[a]
                squared += t * t
                mixed += t * tree.moments[node, channel, 1 + a]
            total = 0.75 * (total * (1.0 - squared) + 2.0 * mixed - tree.moments[node, channel, 1 + d])
        if channel > 0:
            sums.numerator[i, channel - 1] += total
        else:
            sums.denominator[i] += total
            if profile.code != BOXCAR:  # a count loses no digits
                sums.collapsed[i] += tree.moments[node, 0, 0]


@loop
def add_whole(i, first, last, tree, tiles, sums, profile, buffers):
    """Add the node of these leaves; on the way down to the query's own key, if it is there, add the other halves."""
    leaves, size = tree.key.shape[0], tree.key.shape[2]
    own = tiles.own[i] // size
    while first <= own < last:
        if last - first == 1:
            add_pairs(i, first, tree, tiles, sums, profile, buffers)
            return size
        middle = (first + last) // 2
        if own < middle:
            add_moments(i, node_name(middle, last, leaves), tree, tiles, sums, profile)
            last = middle
        else:
            add_moments(i, node_name(first, middle, leaves), tree, tiles, sums, profile)
            first = middle
    add_moments(i, node_name(first, last, leaves), tree, tiles, sums, profile)
    return 0
