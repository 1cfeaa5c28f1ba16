"""Exact weighted distribution functions: the weight of the keys whose values are at or below a threshold.

With the keys ordered by value, and r the rank of the threshold (the number of keys at or below it)::

    F(q, r) = alpha_1(q) + ... + alpha_r(q)

The keys on either side are summed separately, so that nothing is subtracted from one, and F is exactly 0 or 1 where
one side has no weight. `two_sided_sums` computes these sums, and `ranks` finds thresholds among the values.
"""

from __future__ import annotations

from collections import deque
from dataclasses import replace
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from kernpool._arrays import Array, Index
from kernpool.algorithms.reference import pair_weights
from kernpool.core import PoolState, Problem, empty_state
from kernpool.distribution.weighted_quantile import FEWEST_KEYS, QUICK_PAIRS, bare, is_small
from kernpool.execution import cut
from kernpool.pooling import Recipe, sum_problem

PAIRS = 1 << 18  # in one table
MASKED_PAIRS = 1 << 22  # under one mask, of a byte each
# Of logarithms of sums: beyond, the units of two of them are rounded to more than 3e-13 of their quotient.
FAR = 2.0**10


class TwoSidedSums(NamedTuple):
    """Sums of weights over the keys before and after given positions; sums of disjoint sets of keys can be merged."""

    unit: Array  # shape (m, t) or (m, c, t): logarithm of the unit of both sums; -inf where both are zero
    below: Array
    above: Array

    def joined(self, other: TwoSidedSums) -> TwoSidedSums:
        """Add the sums over two disjoint sets of keys."""
        unit = np.maximum(self.unit, other.unit)
        safe = np.where(np.isneginf(unit), 0.0, unit)
        one, two = np.exp(self.unit - safe), np.exp(other.unit - safe)
        return TwoSidedSums(unit, one * self.below + two * other.below, one * self.above + two * other.above)

    def share(self, by: Array | Index) -> Array:
        """Return the fraction of weight before each position, between 0 and 1; NaN if both sums are zero."""
        # it does not fall with the thresholds (or positions) `by`, where rounding would make it
        total = self.below + self.above
        share: Array = np.divide(self.below, total, where=total > 0, out=np.full(total.shape, np.nan))
        if share.shape[-1] > 1:
            order = np.broadcast_to(np.argsort(by, axis=-1, kind="stable"), share.shape)
            rising = np.maximum.accumulate(np.take_along_axis(share, order, axis=-1), axis=-1)
            np.put_along_axis(share, order, rising, axis=-1)
        return share

    def put(self, rows: Index, unit: Array, below: Array, above: Array) -> None:
        """Overwrite, in place, the sums of the queries with these indices.

        A unit per query applies to all its positions.
        """
        self.below[rows], self.above[rows] = below, above
        self.unit[rows] = np.where(below + above > 0, unit if unit.ndim > 1 else unit[:, None], -np.inf)


def two_sided_sums(recipe: Recipe, problem: Problem, order: Index, rank: Index) -> TwoSidedSums:
    """Sum the weights of the first `rank` keys of an order, and separately those of all other keys."""
    # one pass for one row of ranks; else about log2(n / 512) passes, or one over all pairs where that is less
    problem = bare(problem)
    if problem.key_weight is not None:
        counts = problem.key_weight[order] > 0
        rank = np.append(0, np.cumsum(counts))[rank]
        order = order[counts]
    m, shape = len(problem.query), (len(problem.query), rank.shape[1])
    sides, ranks = TwoSidedSums(np.full(shape, -np.inf), *np.zeros((2, *shape))), np.broadcast_to(rank, shape)
    if not len(order):
        return sides
    ordered = problem.block(slice(None), order)
    if is_small(ordered):
        rest = np.arange(m)
    elif len(rank) == 1:
        rest = _put_ranges(recipe, ordered, rank[0], sides)
    else:
        rest = _put_tree(recipe, ordered, ranks, sides)
    _put_dense(ordered, rest, ranks, sides)
    return sides


def _put_dense(ordered: Problem, queries: Index, rank: Index, sides: TwoSidedSums) -> None:
    """Write the two-sided sums of some queries into `sides`, from dense tables of weights."""
    for piece in cut(len(queries), max(1, PAIRS // ordered.shape[1])):
        some = queries[piece]
        unit, weight = pair_weights(ordered.block(some).with_dense_factors())
        below, above = np.zeros((2, len(weight), weight.shape[1] + 1))
        np.cumsum(weight, axis=1, out=below[:, 1:])
        np.cumsum(weight[:, ::-1], axis=1, out=above[:, 1:])
        below, above = (np.take_along_axis(one, rank[some], axis=1) for one in (below, above[:, ::-1]))
        sides.put(some, unit + np.log(ordered.weight_unit), below, above)


def _put_ranges(recipe: Recipe, ordered: Problem, rank: Index, sides: TwoSidedSums) -> Index:
    """Write sums at positions common to all queries into `sides`; return queries too far from all keys for it."""
    ends = np.unique(np.append(rank, [0, ordered.shape[1]]))
    parts = (ordered.part(slice(None), slice(int(a), int(b))) for a, b in pairwise(ends))
    states = [sum_problem(part, recipe, auxiliary=True) for part in parts]
    shift = np.stack([np.where(state.denominator > 0, state.shift, -np.inf) for state in states])
    unit = shift.max(axis=0)
    mass = np.stack([state.denominator for state in states]) * np.exp(shift - np.where(np.isneginf(unit), 0.0, unit))
    below, above = np.zeros((len(ends), mass.shape[1])), np.zeros((len(ends), mass.shape[1]))
    np.cumsum(mass, axis=0, out=below[1:])
    np.cumsum(mass[::-1], axis=0, out=above[1:])
    place = np.searchsorted(ends, rank)
    sides.put(np.arange(mass.shape[1]), unit, below[place].T, above[::-1][place].T)
    total = PoolState(unit, mass.sum(axis=0), np.zeros((mass.shape[1], 1)))
    return _far(total)


def _put_tree(recipe: Recipe, ordered: Problem, rank: Index, sides: TwoSidedSums) -> Index:
    """Write sums at positions that differ by query into `sides`; return queries too far from all keys for it."""
    (m, t), several = rank.shape, ordered.shape[1] + 1
    # Thresholds of a query with no value between them are one request.
    request, inverse = np.unique(np.arange(m)[:, None] * several + rank, return_inverse=True)
    rows, ranks_of_rows = np.divmod(request, several)
    states = sums_by_rank(recipe, ordered, rows, ranks_of_rows)
    shift = np.maximum(states[0].shift, states[1].shift)
    unit = np.where(np.isneginf(shift), 0.0, shift)
    below, above = (
        state.denominator * np.exp(np.where(state.denominator > 0, state.shift, -np.inf) - unit) for state in states
    )
    sides.put(np.arange(m), *(array[inverse.ravel()].reshape(m, t) for array in (shift, below, above)))
    total = PoolState(shift, below + above, np.zeros((len(shift), 1)))
    return np.unique(rows[_far(total)])


def _far(state: PoolState) -> Index:
    occupied = state.denominator > 0
    return np.flatnonzero(occupied & ~(np.abs(np.where(occupied, state.log_denominator, 0.0)) < FAR))


def sums_by_rank(recipe: Recipe, problem: Problem, rows: Index, rank: Index) -> tuple[PoolState, PoolState]:
    """Return sums of weights before and after each requested position in the order of keys, by a tree of keys."""
    # the half of a node without the rank lies entirely below or above, and is summed for all its queries at once
    below, above = empty_state(len(rows), 1), empty_state(len(rows), 1)

    def scan(keys: Index, requests: Index) -> None:
        """Add the keys of one leaf of the tree to the sums before and after each request's position, using masks."""
        for piece in cut(len(requests), max(1, MASKED_PAIRS // len(keys))):
            some = requests[piece]
            part = problem.part(rows[some], slice(keys[0], keys[-1] + 1))
            counts = np.ones((1, 1), dtype=bool) if part.attn_mask is None else part.attn_mask
            if part.excluded is not None:
                counts, part = counts & part.excluded.takes_part(), replace(part, excluded=None)
            lies_below = keys < rank[some, None]
            for mask, side in ((counts & lies_below, below), (counts & ~lies_below, above)):
                if mask.any():
                    side.add(some, sum_problem(replace(part, attn_mask=mask), recipe, auxiliary=True))

    nodes = deque([(0, problem.shape[1], np.arange(len(rows)))])
    while nodes:
        start, stop, requests = nodes.popleft()
        if stop - start <= FEWEST_KEYS or (stop - start) * len(requests) <= QUICK_PAIRS:
            scan(np.arange(start, stop), requests)
            continue
        middle = (start + stop) // 2
        lower = rank[requests] <= middle
        left, right = requests[lower], requests[~lower]
        for keys, some, side in ((slice(middle, stop), left, above), (slice(start, middle), right, below)):
            if some.size:
                queries, inverse = np.unique(rows[some], return_inverse=True)
                side.add(some, sum_problem(problem.part(queries, keys), recipe, auxiliary=True).rows(inverse))
                nodes.append((start, middle, some) if some is left else (middle, stop, some))
    return below, above


def ranks(ordered: Array, threshold: Array, center: Array | None = None, dtype: Any = np.float64) -> Index:
    """Count the values up to each threshold."""
    if center is None:
        return np.searchsorted(ordered, threshold, side="right")
    # Compare the very sums that are quantiles: a threshold minus the center, rounded, may be on the other
    # side of a value.
    low = np.zeros((len(center), threshold.shape[1]), dtype=np.intp)
    high = np.full(low.shape, len(ordered))
    while np.any(low < high):
        middle = (low + high) // 2
        sums = (ordered[np.minimum(middle, len(ordered) - 1)] + center[:, None]).astype(dtype)
        counts, open_ones = sums <= threshold, low < high
        low = np.where(open_ones & counts, middle + 1, low)
        high = np.where(open_ones & ~counts, middle, high)
    return low
