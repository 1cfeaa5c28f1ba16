"""Down a tree of keys in their order, to the key at which the weights of a query reach a sum.

A node is a range of keys, and the sum of weights over its lower half says in which half a request ends: a sum as any
other, by whatever algorithm suits it. Where pairs would be summed one by one, or are few, the keys of the node are
looked through in their order. Nothing is sorted per query, and nothing of m x n is kept.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kernpool.core.problem import Problem
from kernpool.core.state import PoolState
from kernpool.distribution.selection import Selection
from kernpool.execution.threads import resolve_n_jobs, run_blocks
from kernpool.pooling.choice import choose
from kernpool.pooling.recipe import Recipe

Array = NDArray[np.float64]
Index = NDArray[np.intp]

LN_2 = float(np.log(2.0))
FEWEST_KEYS = 512  # that are halved
QUICK_PAIRS = 1 << 20  # looked through in the time that one more sum takes to begin
PAIR_BY_PAIR = frozenset({"brute", "reference"})  # algorithms that a look at each key costs no more than


class Node(NamedTuple):
    """Keys in their order, and which requests end among them.

    Parameters
    ----------
    keys : slice
        Their range.
    requests : ndarray of int
        Numbers of requests.
    need : ndarray
        The sum that each wants from these keys on.
    """

    keys: slice
    requests: Index
    need: Array


@dataclass(eq=False)
class Passed:
    """For each request the last range of keys of positive mass that it has left behind; filled on the way down.

    Parameters
    ----------
    start, stop : ndarray of int, shape (r,)
        Where it lies.
    mass : ndarray of shape (r,)
        Zero if there is none.
    """

    start: Index
    stop: Index
    mass: Array

    @classmethod
    def nothing(cls, requests: int) -> Passed:
        """Return that of requests which have passed nothing."""
        return cls(np.zeros(requests, dtype=np.intp), np.zeros(requests, dtype=np.intp), np.zeros(requests))

    def put(self, requests: Index, keys: slice, mass: Array) -> None:
        """Let requests pass a range, if there is something in it."""
        some = requests[mass > 0]
        self.start[some], self.stop[some], self.mass[some] = keys.start, keys.stop, mass[mass > 0]

    def nodes(self, requests: Index) -> list[Node]:
        """Return the ranges of some requests, to look for the last key that counts in them."""
        ranges, inverse = np.unique(
            np.stack([self.start[requests], self.stop[requests]], axis=1), axis=0, return_inverse=True
        )
        groups = [requests[inverse.ravel() == i] for i in range(len(ranges))]
        return [
            Node(slice(int(start), int(stop)), some, np.nextafter(self.mass[some], 0.0))
            for (start, stop), some in zip(ranges, groups, strict=True)
        ]


@dataclass(frozen=True)
class Descent:
    """The way of all requests to their keys.

    Parameters
    ----------
    problem : Problem
        Of degree 0, for which there are loops, with its keys in their order; all have a weight.
    rows : ndarray of int, shape (r,)
        The query of each request, in rising order.
    unit : ndarray of shape (m,)
        Powers of two in which masses are counted.
    recipe : Recipe
        By which algorithm, and on how many threads.
    report : callable
        Called with numbers of requests that are done.
    """

    problem: Problem
    rows: Index
    unit: Array
    recipe: Recipe
    report: Callable[[int], object]

    def run(self, need: Array, nodes: list[Node] | None = None) -> Index:
        """Return for each request the place of its key; -1 where all weights are zero.

        Requests may begin in nodes of their own; by default all begin at the root.
        """
        found, passed = np.full(len(need), -1), Passed.nothing(len(need))
        selection = Selection(self.problem, self.unit)
        nodes = nodes or [Node(slice(0, self.problem.shape[1]), np.arange(len(need)), need)]
        while nodes:
            self._look_through(self._leaves(nodes, passed), selection, found)
            # Rounding of the sums has led some past all keys that count: then it is the last key before that does.
            nodes = passed.nodes(np.flatnonzero((found < 0) & (passed.mass > 0)))
            passed.mass[found < 0] = 0.0
        return found

    def _look_through(self, leaves: list[Node], selection: Selection, found: Index) -> None:
        """Look through the keys of leaves, several of them at the same time."""

        def work(some: slice) -> Iterator[None]:
            for leaf in leaves[some]:
                order = np.lexsort((leaf.need, self.rows[leaf.requests]))
                requests = leaf.requests[order]
                for which, place in selection.places(self.rows[requests], leaf.keys, leaf.need[order]):
                    found[requests[which]] = place
                    yield

        blocks = [slice(i, i + 1) for i in range(len(leaves))]
        run_blocks(work, blocks, resolve_n_jobs(self.recipe.n_jobs), lambda *_: self.report(int((found >= 0).sum())))

    def _leaves(self, nodes: list[Node], passed: Passed) -> list[Node]:
        """Go down to where keys are looked through one by one."""
        leaves, waiting = list[Node](), deque(nodes)
        while waiting:
            node = waiting.popleft()
            size = node.keys.stop - node.keys.start
            queries, inverse = np.unique(self.rows[node.requests], return_inverse=True)
            pairs = len(queries) * size
            # Under a mask all algorithms go pair by pair.
            if size <= FEWEST_KEYS or pairs <= QUICK_PAIRS or self.problem.attn_mask is not None:
                leaves += self._cut(node, pairs)
                continue
            lower = slice(node.keys.start, (node.keys.start + node.keys.stop) // 2)
            part = self.problem.part(queries, lower)
            if choose(part.without_factors(), self.recipe.algorithm, often=True).algorithm in PAIR_BY_PAIR:
                leaves += self._cut(node, pairs)
                continue
            state = choose(part, self.recipe.algorithm, often=True).reduce(part, n_jobs=self.recipe.n_jobs)
            mass = self.masses(state, queries)[inverse]
            left = (mass >= node.need) & (mass > 0)
            passed.put(node.requests[~left], lower, mass[~left])
            for keys, some, need in (
                (lower, left, node.need),
                (slice(lower.stop, node.keys.stop), ~left, node.need - mass),
            ):
                if some.any():
                    waiting.append(Node(keys, node.requests[some], need[some]))
        return leaves

    def _cut(self, node: Node, pairs: int) -> list[Node]:
        """Cut a large leaf between queries, for threads; all requests of a query are looked for at once."""
        order = np.argsort(self.rows[node.requests], kind="stable")
        requests, need = node.requests[order], node.need[order]
        starts = np.flatnonzero(np.diff(self.rows[requests], prepend=-1))
        some = starts[np.unique(np.linspace(0, len(starts), -(-pairs // QUICK_PAIRS), endpoint=False).astype(int))]
        return [
            Node(node.keys, part, wanted)
            for part, wanted in zip(np.split(requests, some[1:]), np.split(need, some[1:]), strict=True)
        ]

    def masses(self, state: PoolState, queries: Index) -> Array:
        """Return sums of weights in the unit of their query."""
        shift = np.where(np.isneginf(state.shift), 0.0, state.shift - np.log(self.problem.weight_unit))
        return state.denominator * np.exp(shift - LN_2 * self.unit[queries])
