"""Exact weighted distribution functions: the weight of the keys whose values are at or below a threshold.

With the keys ordered by value, and r the rank of the threshold (the number of keys at or below it)::

    F(q, r) = alpha_1(q) + ... + alpha_r(q)

The keys on either side are summed separately, so that nothing is subtracted from one, and F is exactly 0 or 1 where
one side has no weight. `shares_below` computes these sums; the other functions read thresholds, find their ranks
among the values, and treat empty windows.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kernpool.algorithms.reference import pair_weights
from kernpool.core import PoolState, Problem, empty_state
from kernpool.core.state import Fill
from kernpool.data.array_validation import as_real_array, refuse_foreign
from kernpool.pooling import Recipe, algorithm_within, choose, limit_problem

Array = NDArray[np.float64]
Index = NDArray[np.intp]

FEW_PAIRS = 100_000  # that tables handle faster than sums over parts of the keys
PAIRS = 1 << 18  # in one table
FEWEST_KEYS = 512  # that are halved
QUICK_PAIRS = 1 << 20  # scanned in the time that a few more sums take to start
MASKED_PAIRS = 1 << 22  # under one mask, of a byte each
# Of logarithms of sums: beyond, the units of two of them are rounded to more than 3e-13 of their quotient.
FAR = 2.0**10


def shares_below(recipe: Recipe, problem: Problem, order: Index, rank: Index) -> tuple[Array, NDArray[np.bool_]]:
    """Return the fraction of weight on the first `rank` keys of an order, and at which queries any key has weight.

    Parameters
    ----------
    recipe : Recipe
        Algorithm and number of threads.
    problem : Problem
        Its weights are summed; its values are ignored.
    order : ndarray of int, shape (n,)
        Order of the keys, usually by increasing value.
    rank : ndarray of int, shape (1, t) or (m, t)
        Number of keys below, from 0 to n; a single row applies to all queries.

    Returns
    -------
    share : ndarray of shape (m, t)
        Between 0 and 1, nondecreasing in the rank; NaN where the window is empty.
    occupied : ndarray of bool, shape (m,)
        Which queries have a key of positive weight.

    Notes
    -----
    With one row of ranks the keys between two of them are summed at once: one pass in all. With others, about log2(n /
    512) passes, or one over all pairs where that is less. Memory is O(n + m t).

    Examples
    --------
    >>> problem = Problem.from_arrays([0.0, 1.0], [0.0, 1.0, 1.0, 9.0], kernel="boxcar", value=[0.0] * 4)
    >>> shares_below(Recipe.of("boxcar"), problem, np.arange(4), np.array([[0, 1, 2, 3]]))[0].round(3)
    array([[0.   , 0.333, 0.667, 1.   ],
           [0.   , 0.333, 0.667, 1.   ]])
    """
    sides = two_sided_sums(recipe, problem, order, rank)
    share = sides.share()
    keep_order(share, rank)
    return share, ~np.isnan(share[:, 0]) if rank.shape[1] else np.zeros(len(share), dtype=bool)


class TwoSidedSums(NamedTuple):
    """Sums of weights over the keys before and after given positions in an order; sums of disjoint sets of keys merge.

    Parameters
    ----------
    unit : ndarray of shape (m, t)
        Logarithm of the unit of both sums; minus infinity where both are zero.
    below, above : ndarray of shape (m, t)
        The sums.
    """

    unit: Array
    below: Array
    above: Array

    @classmethod
    def none(cls, shape: tuple[int, int]) -> TwoSidedSums:
        """Build sums of zero, those over no keys, in arrays of this shape."""
        return cls(np.full(shape, -np.inf), np.zeros(shape), np.zeros(shape))

    def joined(self, other: TwoSidedSums) -> TwoSidedSums:
        """Add the sums over two disjoint sets of keys."""
        unit = np.maximum(self.unit, other.unit)
        safe = np.where(np.isneginf(unit), 0.0, unit)
        one, two = np.exp(self.unit - safe), np.exp(other.unit - safe)
        return TwoSidedSums(unit, one * self.below + two * other.below, one * self.above + two * other.above)

    def share(self) -> Array:
        """Return the fraction of weight before each position; NaN if both sums are zero."""
        total = self.below + self.above
        share: Array = np.divide(self.below, total, where=total > 0, out=np.full(total.shape, np.nan))
        return share

    def put(self, rows: Index, unit: Array, below: Array, above: Array) -> None:
        """Overwrite, in place, the sums of the queries with these indices.

        A unit per query applies to all its positions.
        """
        self.below[rows], self.above[rows] = below, above
        self.unit[rows] = np.where(below + above > 0, unit if unit.ndim > 1 else unit[:, None], -np.inf)


def two_sided_sums(recipe: Recipe, problem: Problem, order: Index, rank: Index) -> TwoSidedSums:
    """Sum the weights of the first `rank` keys of an order, and separately those of all other keys.

    Parameters are those of `shares_below`.
    """
    bare = replace(problem, value=np.zeros((len(problem.key), 1)), value_center=np.zeros(1), degree=0)
    if bare.key_weight is not None:
        counts = bare.key_weight[order] > 0
        rank = np.append(0, np.cumsum(counts))[rank]
        order = order[counts]
    m, n = len(bare.query), len(order)
    sides = TwoSidedSums.none((m, rank.shape[1]))
    if not n or not rank.shape[1]:
        return sides
    ordered, everyone = bare.block(slice(None), order), np.arange(m)
    ranks = np.broadcast_to(rank, (m, rank.shape[1]))
    if m * n <= FEW_PAIRS:
        _put_dense(ordered, everyone, ranks, sides)
    else:
        far = (
            _put_ranges(recipe, ordered, rank[0], sides) if len(rank) == 1 else _put_tree(recipe, ordered, ranks, sides)
        )
        _put_dense(ordered, far, ranks, sides)
    return sides


def keep_order(share: Array, rank: Array | Index) -> None:
    """Make fractions of weight nondecreasing in threshold (or position), in place, where rounding made them fall."""
    if share.shape[1] < 2:
        return
    order = np.argsort(rank, axis=1, kind="stable")
    rows = np.arange(len(share))[:, None]
    share[rows, order] = np.maximum.accumulate(share[rows, order], axis=1)


def _put_dense(ordered: Problem, queries: Index, rank: Index, sides: TwoSidedSums) -> None:
    """Write the two-sided sums of some queries into `sides`, from dense tables of weights.

    Each row has its own unit.
    """
    n = ordered.shape[1]
    at_once = max(1, PAIRS // n)
    for start in range(0, len(queries), at_once):
        some = queries[start : start + at_once]
        unit, *sums = _cumulated(ordered.block(some))
        below, above = (np.take_along_axis(one, rank[some], axis=1) for one in sums)
        sides.put(some, unit + np.log(ordered.weight_unit), below, above)


def _cumulated(block: Problem) -> tuple[Array, Array, Array]:
    """Return each query's log unit of weights, and the cumulative weights from the first key and from the last key.

    Cumulative weights have the shape (r, n + 1).
    """
    shift, weight = pair_weights(block.with_dense_factors())
    below, above = np.zeros((len(weight), weight.shape[1] + 1)), np.zeros((len(weight), weight.shape[1] + 1))
    np.cumsum(weight, axis=1, out=below[:, 1:])
    np.cumsum(weight[:, ::-1], axis=1, out=above[:, 1:])
    return shift, below, above[:, ::-1]


def _put_ranges(recipe: Recipe, ordered: Problem, rank: Index, sides: TwoSidedSums) -> Index:
    """Write sums at positions common to all queries into `sides`; return queries too far from all keys to be precise.

    They are made from sums over the keys between two positions; the parameter `rank` holds the positions.
    """
    ends = np.unique(np.append(rank, [0, ordered.shape[1]]))
    states = [_sum(recipe, ordered, slice(None), slice(int(a), int(b))) for a, b in pairwise(ends)]
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
    """Write sums at positions that differ by query into `sides`; return queries too far from all keys to be precise.

    They are made by descending a tree of keys.
    """
    m, t = rank.shape
    tree = RankSearch.of(recipe, ordered, np.repeat(np.arange(m), t), rank.ravel())
    tree.descend()
    shift = np.maximum(tree.below.shift, tree.above.shift)
    unit = np.where(np.isneginf(shift), 0.0, shift)
    below, above = (
        state.denominator * np.exp(np.where(state.denominator > 0, state.shift, -np.inf) - unit)
        for state in (tree.below, tree.above)
    )
    sides.put(np.arange(m), *(array.reshape(m, t) for array in (shift, below, above)))
    total = PoolState(shift, below + above, np.zeros((m * t, 1)))
    return np.unique(_far(total) // t)


def _far(state: PoolState) -> Index:
    occupied = state.denominator > 0
    return np.flatnonzero(occupied & ~(np.abs(np.where(occupied, state.log_denominator, 0.0)) < FAR))


def _sum(recipe: Recipe, ordered: Problem, queries: slice | Index, keys: slice) -> PoolState:
    return _summed(recipe, ordered.part(queries, keys))


def _summed(recipe: Recipe, part: Problem) -> PoolState:
    """Return the kernel sums of a problem, by the requested algorithm if that supports the problem, else by "auto"."""
    return choose(part, algorithm_within(part, recipe.algorithm), reuse=True).reduce(part, n_jobs=recipe.n_jobs)


@dataclass(frozen=True)
class RankSearch:
    """Sums of weights before and after a requested position in the order of keys, by descending a binary tree of keys.

    A node is a range of keys that contains the rank of a request. The half of it that does not contain the rank lies
    entirely below or above. That half is summed for all its queries at once, by the algorithm chosen for its shape.

    Parameters
    ----------
    recipe : Recipe
        As of `shares_below`.
    problem : Problem
        With its keys in order; all have a weight.
    rows, rank : ndarray of int, shape (r,)
        Query and rank of each request.
    below, above : PoolState
        Sums on both sides so far; they grow.
    """

    recipe: Recipe
    problem: Problem
    rows: Index
    rank: Index
    below: PoolState
    above: PoolState

    @classmethod
    def of(cls, recipe: Recipe, problem: Problem, rows: Index, rank: Index) -> RankSearch:
        """Build a `RankSearch` with sums of zero, for requests given by query and position."""
        return cls(recipe, problem, rows, rank, empty_state(len(rows), 1), empty_state(len(rows), 1))

    def descend(self) -> None:
        """Compute, in place, the sums of weights before and after the position of every request."""
        nodes = deque([(0, self.problem.shape[1], np.arange(len(self.rows)))])
        while nodes:
            start, stop, requests = nodes.popleft()
            if stop - start <= FEWEST_KEYS or (stop - start) * len(requests) <= QUICK_PAIRS:
                self._scan_keys(slice(start, stop), requests)
                continue
            middle = (start + stop) // 2
            lower = self.rank[requests] <= middle
            left, right = requests[lower], requests[~lower]
            for keys, some, side in (
                (slice(middle, stop), left, self.above),
                (slice(start, middle), right, self.below),
            ):
                if some.size:
                    queries, inverse = np.unique(self.rows[some], return_inverse=True)
                    side.add(some, _sum(self.recipe, self.problem, queries, keys).rows(inverse))
                    nodes.append((start, middle, some) if some is left else (middle, stop, some))

    def _scan_keys(self, keys: slice, requests: Index) -> None:
        """Add the keys of one leaf of the tree to the sums before and after each request's position, using masks."""
        places = np.arange(keys.start, keys.stop)
        for some in _pieces(requests, max(1, MASKED_PAIRS // len(places))):
            part = self.problem.part(self.rows[some], keys)
            counts = np.ones((1, 1), dtype=bool) if part.attn_mask is None else part.attn_mask
            if part.groups is not None:
                counts, part = counts & part.groups.takes_part(), replace(part, groups=None)
            lies_below = places < self.rank[some, None]
            for mask, side in ((counts & lies_below, self.below), (counts & ~lies_below, self.above)):
                if mask.any():
                    side.add(some, _summed(self.recipe, replace(part, attn_mask=mask)))


def _pieces(requests: Index, size: int) -> Iterator[Index]:
    for start in range(0, len(requests), size):
        yield requests[start : start + size]


# Results for the queries of a problem: an array of shape (m, t) or (m, c, t), and which windows are not empty. The
# indices of the queries are passed in addition to their problem.
Known = Callable[[Problem, Index], tuple[Array, NDArray[np.bool_]]]


def as_thresholds(y: Any, m: int, outputs: int = 1, *, several: bool = False) -> tuple[Array, bool]:
    """Validate thresholds of y and broadcast them to shape (1 or m, outputs, t).

    Parameters
    ----------
    y : float or array_like
        The argument of the caller.
    m, outputs : int
        Number of queries, and of outputs.
    several : bool, default=False
        Whether outputs have an axis.

    Returns
    -------
    threshold : ndarray of shape (1, outputs, t) or (m, outputs, t)
        With one row if all queries have the same thresholds.
    with_axis : bool
        Whether results have an axis of thresholds.

    Raises
    ------
    ValueError
        If there are NaN, or the shape is invalid.
    """
    refuse_foreign("y", y)
    given = np.asarray(y)
    infinite = given.dtype.kind == "f" and given.size > 0 and bool(np.isinf(given).any())
    # Distribution functions are defined at infinity; everything else is read as values are.
    read = as_real_array("y", np.where(np.isinf(given), 0.0, given) if infinite else y)
    threshold = np.asarray(np.where(np.isinf(given), given, read) if infinite else read, dtype=np.float64)
    if not threshold.size:
        raise ValueError(f"y must hold thresholds, one at least, got shape {threshold.shape}")
    if threshold.ndim == 0:
        return np.full((1, outputs, 1), float(threshold)), False
    if threshold.ndim == 1:
        return np.broadcast_to(threshold, (1, outputs, len(threshold))), True
    dimensions = 3 if several else 2
    if threshold.ndim == dimensions:
        rows = threshold if several else threshold[:, None]
        if rows.shape[0] in (1, m) and rows.shape[1] in (1, outputs):
            return np.broadcast_to(rows, (rows.shape[0], outputs, rows.shape[2])), True
    wanted = f"({m}, {outputs}, t)" if several else f"({m}, t)"
    raise ValueError(
        f"y must be one number, thresholds of shape (t,) for all rows, or {wanted} for each row its own, got shape "
        f"{threshold.shape}; one threshold per row is y[:, None]"
    )


def rows_of(threshold: Array, rows: Index) -> Array:
    """Return the thresholds of the queries with these indices; a single row common to all is returned unchanged."""
    return threshold if len(threshold) == 1 else threshold[rows]


def known_cdf(
    recipe: Recipe,
    problem: Problem,
    value: Array,
    threshold: Array,
    center: Array | None = None,
    dtype: Any = np.float64,
    side: str = "right",
) -> tuple[Array, NDArray[np.bool_]]:
    """Return the distribution function at thresholds, and which queries have a key of positive weight.

    It is NaN in empty windows.

    Parameters
    ----------
    recipe : Recipe
        How to sum.
    problem : Problem
        The problem with the weights.
    value : ndarray of shape (n,)
        Values that the weights apply to.
    threshold : ndarray of shape (1, t) or (m, t)
        A single row applies to all queries.
    center : ndarray of shape (m,), optional
        Added to the values at each query.
    dtype : dtype, default=float64
        Sums of values and centers are rounded to this type before they are compared, as quantiles are.
    side : {"right", "left"}, default="right"
        Whether values that are equal to a threshold are below it, or not.

    Returns
    -------
    share : ndarray of shape (m, t)
        Between 0 and 1.
    occupied : ndarray of bool, shape (m,)
        Which windows are not empty.
    """
    order = np.argsort(value, kind="stable")
    return shares_below(recipe, problem, order, ranks(value[order], threshold, center, dtype, side))


def ranks(
    ordered: Array, threshold: Array, center: Array | None = None, dtype: Any = np.float64, side: str = "right"
) -> Index:
    """Count the ordered values up to each threshold.

    Parameters are those of `known_cdf`, with values in order.
    """
    if center is None:
        # NumPy's types are wrong for both side and result.
        return np.searchsorted(ordered, threshold, side=side)  # type: ignore[call-overload, no-any-return]
    # Compare the very sums that are quantiles: a threshold minus the center, rounded, may be on the other
    # side of a value.
    low = np.zeros((len(center), threshold.shape[1]), dtype=np.intp)
    high = np.full(low.shape, len(ordered))
    while np.any(low < high):
        middle = (low + high) // 2
        sums = (ordered[np.minimum(middle, len(ordered) - 1)] + center[:, None]).astype(dtype)
        counts = sums <= threshold if side == "right" else sums < threshold
        open_ones = low < high
        low = np.where(open_ones & counts, middle + 1, low)
        high = np.where(open_ones & ~counts, middle, high)
    return low


def finalize_cdf(recipe: Recipe, problem: Problem, known: Known, at_zero: Any, limit: Known | None = None) -> Array:
    """Evaluate a callable, such as a distribution function, and do as `Recipe.empty` says where no key has weight.

    Parameters
    ----------
    recipe : Recipe
        Its policy for empty windows is used.
    problem : Problem
        The problem of all queries.
    known : callable
        Evaluates a problem: returns results and which windows are not empty.
    at_zero : array_like, broadcastable to the results
        Result for a value that is always zero.
    limit : callable, optional
        Evaluates the limits that fill empty windows; by default `known`.

    Returns
    -------
    ndarray
        As `known` returns.
    """
    found, occupied = known(problem, np.arange(len(problem.query)))

    def fill(rows: Index) -> Array:
        part = limit_problem(problem.block(rows), recipe.empty)
        return (limit or known)(part, rows)[0].reshape(len(rows), -1)

    return filled(recipe, found, occupied, at_zero, fill)


def filled(recipe: Recipe, found: Array, occupied: NDArray[np.bool_], at_zero: Any, fill: Fill) -> Array:
    """Replace results where no key has positive weight, as `Recipe.empty` says.

    Parameters are those of `finalize_cdf`.

    `fill` is that of `fill_empty`.
    """
    whole = recipe.fill_empty(found.reshape(len(found), -1), occupied, fill).reshape(found.shape)
    if recipe.empty == "zero" and not occupied.all():
        whole[~occupied] = np.broadcast_to(at_zero, whole.shape)[~occupied]
    return whole
