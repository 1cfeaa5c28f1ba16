r"""Conditional quantiles, exactly: down a tree of keys in the order of their values.

The weights of a query are a distribution over the values,

.. math:: F(y \mid q) = \sum_{v_j \le y} \alpha_j(q), \qquad Q(\tau \mid q) = \min \{ v_j : F(v_j \mid q) \ge \tau \}

A node of the tree is a range of keys in the order of values, and the sum of weights over its lower half says in which
half a quantile lies: a sum as any other, by whatever algorithm suits it. Where summing pair by pair takes no longer,
the keys of the node are looked through in their order. Nothing is sorted per query, and nothing of m x n is kept.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kernpool.algorithms.reference import may_underflow
from kernpool.core.problem import Problem
from kernpool.core.state import PoolState
from kernpool.distribution.selection import FEW_PAIRS, LN_2, Selection
from kernpool.execution.progress import Progress
from kernpool.execution.threads import resolve_n_jobs, run_blocks
from kernpool.pooling.choice import choose
from kernpool.pooling.recipe import Recipe

Array = NDArray[np.float64]
Index = NDArray[np.intp]

# Of the sum of all weights of a query: a level that is met within it is met, such as .1 by 3 of 30 equal weights.
SLACK = 2.0**-50
# What is needed at least: a level of zero is met by the first share that is no underflow, whichever way it is found.
LEAST = 2.0**-960
FEWEST_KEYS = 512  # that are halved
QUICK_PAIRS = 1 << 20  # looked through in the time that one more sum takes to begin
PAIR_BY_PAIR = frozenset({"brute", "reference"})  # algorithms that a look at each key costs no more than


class Node(NamedTuple):
    """Keys in the order of values, and which requests end among them."""

    keys: slice
    requests: Index
    need: Array


@dataclass(frozen=True)
class Passed:
    """For each request the last range of keys of positive mass that it has left behind.

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
    def none(cls, requests: int) -> Passed:
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
            Node(slice(int(start), int(stop)), some, (1.0 - SLACK) * self.mass[some])
            for (start, stop), some in zip(ranges, groups, strict=True)
        ]


@dataclass(frozen=True)
class Descent:
    """The way of all requests to their keys.

    Parameters
    ----------
    problem : Problem
        Of degree 0; its keys in the order of their values.
    rows : ndarray of int, shape (r,)
        The query of each request.
    unit : ndarray of shape (m,)
        Powers of two in which masses are counted.
    recipe : Recipe
        By which algorithm, and on how many threads.
    """

    problem: Problem
    rows: Index
    unit: Array
    recipe: Recipe

    def run(self, need: Array, progress: Progress | None = None) -> Index:
        """Return for each request the place of its key; -1 where all weights are zero."""
        n = self.problem.shape[1]
        compiled = len(np.unique(self.rows)) * n > FEW_PAIRS
        selection = Selection(self.problem, self.unit, compiled=compiled)
        found, passed = np.full(len(need), -1), Passed.none(len(need))
        nodes = [Node(slice(0, n), np.arange(len(need)), need)]
        while nodes:
            leaves = self._leaves(nodes, passed, compiled=compiled)
            self._look_through(leaves, selection, found, progress)
            # Rounding of the sums has led some past all keys that count: then it is the last key before that does.
            nodes = passed.nodes(np.flatnonzero((found < 0) & (passed.mass > 0)))
            passed.mass[found < 0] = 0.0
        return found

    def _look_through(self, leaves: list[Node], selection: Selection, found: Index, progress: Progress | None) -> None:
        """Look through the keys of leaves, several of them at the same time."""

        def work(some: slice) -> Iterator[None]:
            for leaf in leaves[some]:
                order = np.lexsort((leaf.need, self.rows[leaf.requests]))
                requests = leaf.requests[order]
                for which, place in selection.places(self.rows[requests], leaf.keys, leaf.need[order]):
                    found[requests[which]] = place
                    yield

        run_blocks(work, [slice(i, i + 1) for i in range(len(leaves))], resolve_n_jobs(self.recipe.n_jobs), progress)

    def _leaves(self, nodes: list[Node], passed: Passed, *, compiled: bool) -> list[Node]:
        """Go down to where keys are looked through one by one; large leaves are cut by requests, for threads."""
        leaves, waiting = list[Node](), deque(nodes)
        while waiting:
            node = waiting.popleft()
            size = node.keys.stop - node.keys.start
            queries, inverse = np.unique(self.rows[node.requests], return_inverse=True)
            pairs = len(queries) * size
            if size <= FEWEST_KEYS or pairs <= QUICK_PAIRS or not compiled:
                leaves += self._cut(node, pairs)
                continue
            lower = slice(node.keys.start, (node.keys.start + node.keys.stop) // 2)
            part = self.problem.block(queries, lower)
            plan = choose(part, self.recipe.algorithm, often=True)
            if plan.algorithm in PAIR_BY_PAIR:
                leaves += self._cut(node, pairs)
                continue
            mass = self.masses(plan.reduce(part, n_jobs=self.recipe.n_jobs), queries)[inverse]
            left = mass >= node.need
            passed.put(node.requests[~left], lower, mass[~left])
            for keys, some, need in (
                (lower, left, node.need),
                (slice(lower.stop, node.keys.stop), ~left, node.need - mass),
            ):
                if some.any():
                    waiting.append(Node(keys, node.requests[some], need[some]))
        return leaves

    def _cut(self, node: Node, pairs: int) -> list[Node]:
        parts = min(len(node.requests), -(-pairs // QUICK_PAIRS))
        cuts = np.linspace(0, len(node.requests), parts + 1).astype(int)
        order = np.argsort(self.rows[node.requests], kind="stable")
        return [Node(node.keys, node.requests[order[a:b]], node.need[order[a:b]]) for a, b in pairwise(cuts.tolist())]

    def masses(self, state: PoolState, queries: Index) -> Array:
        """Return sums of weights in the unit of their query."""
        shift = np.where(np.isneginf(state.shift), 0.0, state.shift - np.log(self.problem.weight_unit))
        return state.denominator * np.exp(shift - LN_2 * self.unit[queries])


def quantile_places(
    problem: Problem, order: Index, level: Array, recipe: Recipe, progress: Progress | None = None
) -> Index:
    """Return which key is the quantile of each query and level.

    Parameters
    ----------
    problem : Problem
        Keys, queries and what is between them; values do not matter.
    order : ndarray of int, shape (n,)
        Keys by rising value.
    level : ndarray of shape (m, l)
        Between 0 and 1.
    recipe : Recipe
        By which algorithm, and on how many threads.
    progress : callable, optional
        Called as ``progress(done, total)``.

    Returns
    -------
    ndarray of int, shape (m, l)
        Numbers of keys; -1 where the window is empty.
    """
    m, levels = level.shape
    bare = replace(problem, value=np.zeros((len(problem.key), 1)), value_center=np.zeros(1), degree=0)
    state = choose(bare, recipe.algorithm).reduce(bare, n_jobs=recipe.n_jobs)
    ordered = bare.block(slice(None), order)
    (full,) = np.nonzero(state.denominator > 0)
    unit = np.zeros(m)
    if not problem.similarity.kernel.is_compact or may_underflow(problem):  # whose loops count in ones
        unit[full] = np.rint((state.rows(full).log_denominator - np.log(problem.weight_unit)) / LN_2)
    descent = Descent(ordered, np.repeat(full, levels), unit, recipe)
    whole = descent.masses(state.rows(full), full)
    need = (np.maximum(level[full] - SLACK, LEAST) * whole[:, None]).ravel()
    places = np.full((m, levels), -1)
    found = descent.run(need, progress)
    places[full] = np.where(found >= 0, order[found], -1).reshape(len(full), levels)
    return places
