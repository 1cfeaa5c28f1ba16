"""Exact weighted quantiles without a table of weights: the key at which cumulative weight reaches order tau.

With the keys in some order::

    j(tau) = min { j : sum_{l <= j} alpha_l(q) >= tau }

In the order of the values that is the generalised inverse of the conditional distribution function; in any order,
with uniform tau, it is a random draw from it.

`Bisection` goes down a binary tree of keys in that order. A node is a range of keys, and the weight of its lower half
decides in which half a quantile lies; that sum is computed by whichever algorithm suits it. Where pairs would be
summed one by one, or are few, a compiled loop scans the keys of the node. Nothing is sorted per query, and nothing of
size m x n is kept. `dense_places` uses tables of weights, for few pairs and for kernels without a loop.
`KernelWeights` chooses between them, and `known_quantiles` has values in arrays.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kernpool.algorithms.reference import pair_weights
from kernpool.core import PoolState, Problem, empty_state
from kernpool.distribution.ordered_sums import (
    FEWEST_KEYS,
    QUICK_PAIRS,
    bare,
    common_units,
    has_loop,
    in_unit,
    loop_arguments,
)
from kernpool.execution.progress import Progress
from kernpool.execution.threads import cut, resolve_n_jobs, run_blocks
from kernpool.pooling import Recipe, choose, sum_problem

Array = NDArray[np.float64]
Index = NDArray[np.intp]

PAIRS_IN_TABLE = 1 << 18  # in one table
LEAST_SUM = 5e-324  # the smallest number: a sum of zero reaches nothing


def dense_places(problem: Problem, queries: Index, share: Array) -> Iterator[tuple[slice, Index]]:
    """Yield, in batches, the first key at which each query's cumulative weight reaches its quantile orders."""
    # weights are in the unit of their own row, the largest, so that they keep their digits at any distance
    for which in cut(len(queries), max(1, PAIRS_IN_TABLE // problem.shape[1])):
        _, weight = pair_weights(problem.block(queries[which]).with_dense_factors())
        total = np.cumsum(weight, axis=1)
        need = np.clip(share[which] * total[:, -1:], LEAST_SUM, total[:, -1:])
        place = np.empty(need.shape, dtype=np.intp)
        if need.shape[1] < len(need):
            for number, column in enumerate(need.T):
                place[:, number] = np.argmax(total >= column[:, None], axis=1)
        else:
            for row, (sums, wanted) in enumerate(zip(total, need, strict=True)):
                place[row] = np.searchsorted(sums, wanted, side="left")
        place[total[:, -1] == 0] = -1
        yield which, place


PAIRS = 1 << 23  # of a piece, which Ctrl-C waits for
PAIR_BY_PAIR = frozenset({"brute", "reference"})  # algorithms that cost no less than visiting each key


class Node(NamedTuple):
    """Range of keys in a binary tree, and the requests whose keys lie in it."""

    keys: slice
    requests: Index
    need: Array  # cumulative weight that each request has to reach, from the first of `keys` on


@dataclass(frozen=True)
class Bisection:
    """Search by bisection of the ordered keys for the key at which each request's cumulative weight is reached."""

    problem: Problem  # of degree 0, keys in their order, all of positive weight
    rows: Index  # shape (r,): the query of each request, ascending
    unit: Array  # shape (m,): powers of two
    recipe: Recipe
    report: Callable[[int], object]  # called with numbers of finished requests

    def run(self, need: Array) -> Index:
        """Return the index of the key at which each request reaches its cumulative weight.

        -1 where rounding of the sums has led to keys without weight.
        """
        found = np.full(len(need), -1)
        arguments = loop_arguments(self.problem, self.unit)
        whole = Node(slice(0, self.problem.shape[1]), np.arange(len(need)), need)
        self._scan_keys(self._leaves(whole), arguments, found)
        return found

    def _scan_keys(self, leaves: list[Node], arguments: Callable[[Index], tuple[Any, ...]], found: Index) -> None:
        """Search the keys of the leaves one by one, several leaves in parallel, and write indices into `found`."""
        # the first key at which the sum is reached, or else the last one of positive weight
        from kernpool.algorithms.brute.fused import read_only  # with code that loads Numba
        from kernpool.distribution.loops.ordered_values import select_block

        loop: Any = select_block

        def work(some: slice) -> Iterator[None]:
            for leaf in leaves[some]:
                order = np.lexsort((leaf.need, self.rows[leaf.requests]))
                requests, need, keys = leaf.requests[order], leaf.need[order], leaf.keys
                queries, start = np.unique(self.rows[requests], return_index=True)
                start = np.append(start, len(requests))
                for part in cut(len(queries), max(1, PAIRS // (keys.stop - keys.start))):
                    which = slice(start[part.start], start[part.stop])
                    place, first = np.full(len(requests[which]), -1), start[part.start : part.stop + 1] - which.start
                    loop(
                        *arguments(queries[part]), keys.start, keys.stop, read_only(first), read_only(need[which]),
                        place,
                    )  # fmt: skip
                    found[requests[which]] = place
                    yield

        blocks = [slice(i, i + 1) for i in range(len(leaves))]
        run_blocks(work, blocks, resolve_n_jobs(self.recipe.n_jobs), lambda *_: self.report(int((found >= 0).sum())))

    def _leaves(self, whole: Node) -> list[Node]:
        """Descend the tree of keys, and return the nodes whose keys are to be scanned one by one."""
        leaves, waiting = list[Node](), deque([whole])
        while waiting:
            node = waiting.popleft()
            size = node.keys.stop - node.keys.start
            queries, inverse = np.unique(self.rows[node.requests], return_inverse=True)
            pairs = len(queries) * size
            # Under a mask all algorithms visit pair by pair.
            if size <= FEWEST_KEYS or pairs <= QUICK_PAIRS or self.problem.attn_mask is not None:
                leaves += self._cut(node, pairs)
                continue
            lower = slice(node.keys.start, (node.keys.start + node.keys.stop) // 2)
            part = self.problem.part(queries, lower)
            if choose(part.without_factors(), self.recipe.algorithm, reuse=True).algorithm in PAIR_BY_PAIR:
                leaves += self._cut(node, pairs)
                continue
            mass = in_unit(
                sum_problem(part, self.recipe, auxiliary=True), self.unit[queries], self.problem.weight_unit
            )[inverse]
            left = (mass >= node.need) & (mass > 0)
            for keys, some, need in (
                (lower, left, node.need),
                (slice(lower.stop, node.keys.stop), ~left, node.need - mass),
            ):
                if some.any():
                    waiting.append(Node(keys, node.requests[some], need[some]))
        return leaves

    def _cut(self, node: Node, pairs: int) -> list[Node]:
        """Split a large leaf of the tree by queries, for threads; requests of one query stay together."""
        order = np.argsort(self.rows[node.requests], kind="stable")
        requests, need = node.requests[order], node.need[order]
        starts = np.flatnonzero(np.diff(self.rows[requests], prepend=-1))
        some = starts[np.unique(np.linspace(0, len(starts), -(-pairs // QUICK_PAIRS), endpoint=False).astype(int))]
        return [
            Node(node.keys, part, wanted)
            for part, wanted in zip(np.split(requests, some[1:]), np.split(need, some[1:]), strict=True)
        ]


AnyIndex = NDArray[np.signedinteger]  # of 32 bits where these are enough

# Of the sum of all weights, times the square root of the number of keys: an order within it counts as reached, such as
# .1 by three of 30 equal weights, in whatever order they are added.
SLACK = 2.0**-50
# Of that sum, the least target: an order of zero is reached by the first weight that does not underflow.
LEAST = 2.0**-960
LEAST_REQUESTS = 1 << 18  # that go down the tree together, where keys are few: it takes about 200 bytes for each


@dataclass(frozen=True)
class KernelWeights:
    """Kernel weights of all keys at each query, for quantile searches in any order of the keys.

    Parameters
    ----------
    problem : Problem
        Of degree 0, with a single column of zeros for values.
    recipe : Recipe
        Algorithm of the sums, and number of threads.
    """

    problem: Problem
    recipe: Recipe

    @classmethod
    def of(cls, problem: Problem, recipe: Recipe) -> KernelWeights:
        """Build the `KernelWeights` of a problem, ignoring its values."""
        return cls(bare(problem), recipe)

    @cached_property
    def state(self) -> PoolState:
        """Sum of the kernel weights of all keys at each query, as a `PoolState`, computed on first use."""
        if self.problem.key_weight is not None and not self.problem.key_weight.any():
            return empty_state(len(self.problem.query), 1)
        return sum_problem(self.problem, self.recipe, reuse=False)

    @property
    def occupied(self) -> NDArray[np.bool_]:
        """Flags of the queries that have a key of positive weight."""
        return np.asarray(self.state.denominator > 0)

    def places(self, order: AnyIndex, level: Array, report: Callable[[int], object] = int) -> AnyIndex:
        """Return the index of the key at which each query's cumulative weight reaches its quantile orders.

        It is -1 where the window is empty; `report` is called with numbers of finished queries times orders.
        """
        found = np.full(level.shape, -1)
        for rows, place in self.places_in_batches(order, level, report):
            found[rows] = place
        return found

    def places_in_batches(
        self, order: AnyIndex, level: Array, report: Callable[[int], object] = int
    ) -> Iterator[tuple[AnyIndex, AnyIndex]]:
        """Yield the key indices that `places` returns, in batches of queries, to save memory."""
        weight, (m, levels), done = self.problem.key_weight, level.shape, 0
        order = order if weight is None else order[weight[order] > 0]
        if not len(order):
            return
        slack = SLACK * max(4.0, np.sqrt(len(order)))
        ordered = self.problem.block(slice(None), order)
        # Tables are for few pairs, problems without compiled loops, and queries far from all keys.
        unit, near, tables = np.zeros(m), np.zeros(m, dtype=bool), np.ones(m, dtype=bool)
        if has_loop(ordered):
            unit, near = common_units(ordered.similarity.kernel, self.state, ordered.weight_unit)
            tables = self.occupied & ~near
        else:
            choose(self.problem, self.recipe.algorithm)  # raises for what it does not support
        for part in cut(m, max(LEAST_REQUESTS, len(order) // 2) // levels + 1):
            share = np.maximum(level[part] - slack, LEAST)
            some = np.flatnonzero(near[part])
            if len(some):
                rows = part.start + some
                place = self._descend(ordered, rows, unit, share[some], partial(_report, report, done * levels))
                yield rows, order[place]
                done += len(rows)
                report(done * levels)
            some = np.flatnonzero(tables[part])
            for which, place in dense_places(ordered, part.start + some, share[some]):
                here = place[:, 0] >= 0
                yield part.start + some[which][here], order[place[here]]
                done += len(place)
                report(done * levels)

    def _descend(
        self, ordered: Problem, rows: Index, unit: Array, share: Array, report: Callable[[int], object]
    ) -> Index:
        """Return the keys at the quantile orders of some queries, as indices of the ordered ones."""
        whole = in_unit(self.state.rows(rows), unit[rows], ordered.weight_unit)
        search = Bisection(ordered, np.repeat(rows, share.shape[1]), unit, self.recipe, report)
        found = search.run((share * whole[:, None]).ravel()).reshape(share.shape)
        lost = np.flatnonzero((found < 0).any(axis=1))
        for which, place in dense_places(ordered, rows[lost], share[lost]):
            found[lost[which]] = place
        return found


def _report(report: Callable[[int], object], before: int, more: int) -> None:
    report(before + more)


def narrow(index: AnyIndex) -> AnyIndex:
    """Convert indices to int32 where they fit, to save memory."""
    return index.astype(np.int32) if len(index) < 1 << 31 else index


def known_quantiles(
    recipe: Recipe, problem: Problem, value: Array, level: Array, progress: Progress | None = None
) -> tuple[Array, NDArray[np.bool_]]:
    """Return conditional quantiles, (m, c, l), and which queries have a key of positive weight; NaN at the others."""
    m, c = len(problem.query), value.shape[1]
    level = np.broadcast_to(level, (m, level.shape[-1]))
    sums, total = KernelWeights.of(problem, recipe), max(1, m * level.shape[1] * c)
    found, occupied = np.full((m, c, level.shape[1]), np.nan), np.zeros(m, dtype=bool)
    for number, column in enumerate(value.T):

        def report(done: int, before: int = number * total // c) -> None:
            if progress is not None:
                progress(min(before + done, total - 1), total)

        for rows, place in sums.places_in_batches(narrow(np.argsort(column, kind="stable")), level, report):
            found[rows, number], occupied[rows] = column[place], True
    if progress is not None:
        progress(total, total)
    return found, occupied
