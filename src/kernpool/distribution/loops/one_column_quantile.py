"""Compiled loops of quantiles on one column: interpolated cumulative weights for blocks of neighbouring queries.

Keys are in the order of their values, cut into buckets. Over a block of queries the weight up to the end of a
bucket is a smooth function of the query, except for keys near the edges of windows and near the kink of a kernel,
which each query visits itself. It is interpolated from a few nodes. So a query finds its bucket by bisection, and
searches only that bucket for the key at which its weights reach the quantile.
"""

import numpy as np

from kernpool.algorithms.brute.loops.tiles import TILE, multiply
from kernpool.algorithms.loops.kernel_weights import tile_weights
from kernpool.distribution.loops.ordered_values import place_in_tile
from kernpool.execution.compilation import bare_part, loop, part

NARROWEST = 2.0**-40  # of the position: nodes in a smaller block would not be distinct numbers
MARGIN, ULPS = 1e-12, 1e-15  # of bandwidths and of positions: rounding error of a comparison
LEAST_OF_NODES = 2.0**-5  # of the largest sum at a node: sums much below it would lose digits
DOUBTFUL = 1e-12  # of the sum: tolerance between summed and interpolated weights of a bucket


@bare_part
def place_nodes(query, first, last, unit, node):
    """Write interpolation nodes for a block of queries into `node`; return their number, and whether to interpolate.

    No nodes at all if the block is so narrow that rounding would misplace them.
    """
    low, high = query[first], query[last - 1]
    if low == high:
        node[0] = low
        return 1, False
    if last - first <= unit.size:
        for i in range(last - first):
            node[i] = query[first + i]
        return last - first, False
    half = 0.5 * (high - low)
    if half <= NARROWEST * max(abs(low), abs(high)):
        return 0, True
    for p in range(unit.size):
        node[p] = 0.5 * low + 0.5 * high + half * unit[p]
    return unit.size, True


@bare_part
def interpolation_weights(node, half, weight):
    """Write the barycentric interpolation weights of the nodes into `weight`."""
    for p in range(node.size):
        product = 1.0
        for r in range(node.size):
            if r != p:
                product *= (node[p] - node[r]) / half
        weight[p] = 1.0 / product


@bare_part
def interpolate(q, node, weight, basis):
    """Write the coefficient of each node for interpolation at q into `basis`, by the barycentric formula.

    Berrut and Trefethen 2004, equation 4.2.
    """
    total = 0.0
    for p in range(node.size):
        basis[p] = 0.0
    for p in range(node.size):
        if q == node[p]:
            for r in range(p):
                basis[r] = 0.0
            basis[p] = 1.0
            return
        basis[p] = weight[p] / (q - node[p])
        total += basis[p]
    for p in range(node.size):
        basis[p] /= total


@bare_part
def find_zones(low, high, reach, h, edge, kink, between, zone):
    """Write three ranges of key values into `zone`: in reach of queries, where the kernel is smooth, and at its kink.

    The kernel is smooth at keys in the second range and outside the third.
    """
    doubt = MARGIN * h + ULPS * max(abs(low), abs(high))
    zone[0], zone[1] = low - reach - doubt, high + reach + doubt
    zone[2], zone[3] = zone[0], zone[1]
    zone[4], zone[5] = np.inf, -np.inf
    if between and edge:
        zone[2], zone[3] = high - h + doubt, low + h - doubt
    if between and kink:
        zone[4], zone[5] = low, high


@bare_part
def count_near(key, zone):
    """Return the number of keys in reach of a block of queries at which the kernel is not smooth."""
    number = 0
    for j in range(key.size):
        x = key[j]
        smooth = (zone[2] <= x) & (x <= zone[3]) & ((x < zone[4]) | (x > zone[5]))
        number += 1 if (zone[0] <= x) & (x <= zone[1]) & (not smooth) else 0
    return number


@part
def sum_at_nodes(
    key, key_weight, zone, bandwidth, code, infinite, bucket, node, mass, near_start, near_key, near_weight
):
    """Sum weights at interpolation nodes, cumulated by bucket, into `mass`, over keys where the kernel is smooth.

    Collect all other keys in reach, and return the total key weight of the smooth ones.
    """
    held, held_weight = np.empty((1, bucket)), np.empty(bucket)
    weight_buffer, s_buffer, exponent_buffer = np.empty(bucket), np.empty(bucket), np.empty(bucket)
    n, near, weighed = key.shape[1], 0, 0.0
    for p in range(node.size):
        mass[0, p] = 0.0
    near_start[0] = 0
    for b in range(mass.shape[0] - 1):
        count = 0
        for j in range(b * bucket, min((b + 1) * bucket, n)):
            x, w = key[0, j], key_weight[j] if key_weight.size else 1.0
            smooth = (zone[2] <= x) & (x <= zone[3]) & ((x < zone[4]) | (x > zone[5]))
            held[0, count], held_weight[count] = x, w
            count += 1 if smooth else 0
            weighed += w if smooth else 0.0
            if near_weight.size > 1:
                near_key[0, near], near_weight[near] = x, w
                near += 1 if (zone[0] <= x) & (x <= zone[1]) & (not smooth) else 0
        near_start[b + 1] = near
        weight, s, exponent = weight_buffer[:count], s_buffer[:count], exponent_buffer[:count]
        for p in range(node.size):
            total = 0.0
            if count:
                q = node[p : p + 1]
                tile_weights(weight, s, exponent, s, q, held, 0, bandwidth, code, infinite, False, 0.0)
                for j in range(count):
                    total += weight[j] * held_weight[j]
            mass[b + 1, p] = mass[b, p] + total
    return weighed


@part
def add_near(q, near_key, near_weight, bandwidth, code, infinite, sums):
    """Write one query's cumulative weights over the collected keys, where the kernel is not smooth, into `sums`."""
    weight_buffer, s_buffer, exponent_buffer = np.empty(TILE), np.empty(TILE), np.empty(TILE)
    total, near = 0.0, sums.size - 1
    sums[0] = 0.0
    for begin in range(0, near, TILE):
        size = min(TILE, near - begin)
        weight, s = weight_buffer[:size], s_buffer[:size]
        tile_weights(weight, s, exponent_buffer[:size], s, q, near_key, begin, bandwidth, code, infinite, False, 0.0)
        for j in range(size):
            total += weight[j] * near_weight[begin + j]
            sums[begin + j + 1] = total


@bare_part
def sum_before(b, basis, mass, near_sum, near_start, own_bucket, removed):
    """Return one query's interpolated sum of the weights of all keys before bucket b."""
    total = near_sum[near_start[b]]
    for p in range(basis.size):
        total += basis[p] * mass[b, p]
    return total - removed if own_bucket < b else total


@part
def find_quantile_keys(
    q, key, key_weight, bandwidth, code, infinite, bucket, basis, mass, near_sum, near_start, floor, share, own,
    own_weight, removed, no_mask, buffer, found,
):  # fmt: skip
    """Write into `found` the key at which one query's cumulative weight reaches each quantile order; -1 if imprecise.

    It stays -1 where sums of weights are not above `floor`, or a bucket summed key by key disagrees with interpolation.
    """
    n, buckets = key.shape[1], mass.shape[0] - 1
    own_bucket = own // bucket if own >= 0 else buckets
    whole = sum_before(buckets, basis, mass, near_sum, near_start, own_bucket, removed)
    if not whole > floor or removed > whole:
        return
    for k in range(share.size):
        need, total, reached, under, over = share[k] * whole, 0.0, whole, 0, buckets
        if not need <= whole:
            continue
        while over - under > 1:
            middle = (under + over) // 2
            before = sum_before(middle, basis, mass, near_sum, near_start, own_bucket, removed)
            if before >= need:
                reached, over = before, middle
            else:
                total, under = before, middle
        begin = under * bucket
        size = min(bucket, n - begin)
        weight, s, exponent = buffer[0, :size], buffer[1, :size], buffer[2, :size]
        tile_weights(weight, s, exponent, s, q, key, begin, bandwidth, code, infinite, False, 0.0)
        multiply(weight, begin, key_weight, no_mask, own, own_weight)
        inside = 0.0
        for j in range(size):
            inside += weight[j]
        if not abs(reached - total - inside) <= DOUBTFUL * whole:
            continue
        place = place_in_tile(weight, total, need)
        if place >= 0:
            found[k] = begin + place


@loop
def find_in_blocks(
    query, start, first, last, key, key_weight, bandwidth, code, infinite, reach, edge, kink, bucket, unit, least,
    least_of_window, share, own, own_weight, removed, found,
):  # fmt: skip
    """Write into `found` the key at which each query's cumulative weight reaches each quantile order; -1 if imprecise.

    Parameters
    ----------
    query : of shape (m,)
        Ascending; block i is ``start[i]`` to ``start[i + 1]``, and blocks from `first` to `last` are processed.
    reach : float
        Distance within which keys have weight, in the units of the column.
    unit : of shape (nodes,)
        Reference nodes, between -1 and 1.
    least, least_of_window : float
        A sum below the first, or below the second times the weight of the keys in reach, has too few digits.
    share : of shape (m, l)
        Quantile orders, as fractions of the sum of all weights; rows in any order.
    own, own_weight, removed : of shape (m,)
        Index of each query's own key (-1: none), its remaining frequency, and the weight that its removal subtracts.
    """
    size, buckets = unit.size, (key.shape[1] + bucket - 1) // bucket
    node_buffer, pull, basis_buffer, zone = np.empty(size), np.empty(size), np.empty(size), np.empty(6)
    mass, near_start = np.empty((buckets + 1, size)), np.zeros(buckets + 1, dtype=np.int64)
    no_mask, buffer = np.empty(0, dtype=np.bool_), np.empty((3, bucket))
    for block in range(first, last):
        low, high = query[start[block]], query[start[block + 1] - 1]
        nodes, between = place_nodes(query, start[block], start[block + 1], unit, node_buffer)
        if nodes == 0:
            continue
        node, basis = node_buffer[:nodes], basis_buffer[:nodes]
        if between:
            interpolation_weights(node, 0.5 * (high - low), pull)
        find_zones(low, high, reach, bandwidth[0], edge, kink, between, zone)
        near = count_near(key[0], zone) if between and (edge or kink) else 0
        near_key, near_weight, near_sum = np.empty((1, near + 1)), np.empty(near + 1), np.zeros(near + 1)
        weighed = sum_at_nodes(
            key, key_weight, zone, bandwidth, code, infinite, bucket, node, mass, near_start, near_key, near_weight
        )
        floor = least
        if between:
            for p in range(nodes):
                floor = max(floor, LEAST_OF_NODES * mass[buckets, p])
            floor = max(floor, least_of_window * weighed)
        for i in range(start[block], start[block + 1]):
            if between:
                interpolate(query[i], node, pull, basis)
            else:
                basis[:] = 0.0
                basis[0 if nodes == 1 else i - start[block]] = 1.0
            if near:
                add_near(query[i : i + 1], near_key, near_weight, bandwidth, code, infinite, near_sum)
            find_quantile_keys(
                query[i : i + 1], key, key_weight, bandwidth, code, infinite, bucket, basis, mass, near_sum, near_start,
                floor, share[i], own[i], own_weight[i], removed[i], no_mask, buffer, found[i],
            )  # fmt: skip
