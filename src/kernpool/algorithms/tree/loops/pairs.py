"""Compiled lists of the pairs of a query and a leaf that have to be summed, and how; and the sums by stages.

Of the share `tol` of its weight that a query may miss, one half is for the nodes that `list_leaves` did not list. The
other half is for leaves that it did list for the tile: a query spends it on those of them that a bound on their weight,
from its own distance, says are next to nothing.

Leaves that are far, but not so far, are summed in float32. Their weights have a relative error of at most 2**-15: the
exponent, |k|**2 - 2 q.k about the center of the leaf, is a sum of terms that add up to less than 70 in size, for leaves
and queries within the bounds of `copies.py`. Together they weigh at most `FAR_SHARE` of the denominator, which
is verified once it is known. So the error is below 2**-43 = 1e-13 of the range of the values, in the worst case; leaves
are smaller and signs are those of roundings, and what is measured is 1e-17.
"""

from __future__ import annotations

import math

import numpy as np

from kernpool.algorithms.loops.exponential import exp2_minus_64_unclamped
from kernpool.algorithms.loops.tiles import tile_weights
from kernpool.algorithms.tree.loops.boxes import MARGIN, ROUNDING, TAXICAB, add_component, ceiling
from kernpool.algorithms.tree.loops.visit import LEAF, START, STOP
from kernpool.execution.compiling import loop

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
    """List the pairs of some visits by their kind, until the lists are full; return the next visit.

    Parameters
    ----------
    query : ndarray of shape (d, m)
        Queries, transposed.
    far_leaf, budget : float
        Logarithm of the share from which on a leaf is far, and what queries may spend.
    lowest : ndarray of shape (leaves, 2)
        See `copies.Copies`.
    least, spent : ndarray of shape (m,)
        Lower bounds of the logarithms of denominators, infinite for queries that are to be left alone; what queries
        have spent, which grows.
    pairs, sizes : ndarray of shape (3, size, 2) and (3,)
        Written.
    """
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
            if infinite and least[i] == np.inf:  # no key takes part, or the sums are done: not even a share is spent
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
    """Add leaves to queries pair by pair, for every kernel, by the stages of brute force."""
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
