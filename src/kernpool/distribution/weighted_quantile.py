"""Sums of kernel weights over keys in the order of their values, and weighted quantiles.

Few pairs, and problems that have no compiled loop, are summed by tables of the weights of some queries.
`sum_over_pairs` runs a compiled loop over all pairs of a query and a key, and tables for queries that it does not suit.

Quantiles are exact and need no table of weights: they are the key at which cumulative weight reaches order tau. With
the keys in some order::

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
from dataclasses import dataclass, replace
from functools import cached_property, partial
from numbers import Rational
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kernpool._arrays import Array, Flags, Index
from kernpool.algorithms.algorithm import may_underflow
from kernpool.algorithms.reference import pair_weights
from kernpool.core import PoolState, Problem, empty_state
from kernpool.data import as_real_array
from kernpool.execution import Progress, cut, resolve_n_jobs, run_blocks
from kernpool.kernels import Kernel, is_compiled
from kernpool.pooling import Recipe, choose, sum_problem, weight_rows

LN_2 = float(np.log(2.0))
TABLE_PAIRS = 100_000  # that a table takes less time for than loops and several sums need to start
FEWEST_KEYS = 512  # that are halved
QUICK_PAIRS = 1 << 20  # looked at one by one in the time that a few more sums take to start
# Of logarithms of sums: beyond, a power of two next to one is rounded to more than 1e-11. Such queries are ten thousand
# bandwidths away from all keys, or nearly, and have tables in their own unit.
FAR = 2.0**16
BLOCK_PAIRS = 1 << 21  # of a block, which Ctrl-C waits for


def is_small(problem: Problem) -> bool:
    """Return whether a table of all weights is the quickest way to sum them."""
    return problem.shape[0] * problem.shape[1] <= TABLE_PAIRS


def has_loop(problem: Problem) -> bool:
    """Return whether the compiled loops over ordered keys support a problem."""
    kernel = problem.similarity.kernel
    plain = problem.similarity.is_uniform and problem.logit_bias is None and problem.excluded is None
    underflows = kernel.is_compact and may_underflow(problem)
    return plain and is_compiled(kernel) and not underflows


def bare(problem: Problem) -> Problem:
    """Return the problem of the weights alone: local constant, with values of zero."""
    return replace(problem, value=np.zeros((len(problem.key), 1)), value_center=np.zeros(1), degree=0)


def common_units(kernel: Kernel, state: PoolState, weight_unit: float = 1.0) -> tuple[Array, Flags]:
    """Return units for the weights of each query, and the queries that have a key and are near enough for a unit."""
    # powers of two near the sum of weights, against under- and overflow; zero for kernels of compact support
    occupied = state.denominator > 0
    if kernel.is_compact:
        return np.zeros(len(occupied)), occupied
    mass = np.where(occupied, state.log_denominator, 0.0) - np.log(weight_unit)
    return np.rint(mass / LN_2), occupied & (np.abs(mass) < FAR)


def in_unit(state: PoolState, unit: Array, weight_unit: float = 1.0) -> Array:
    """Return each query's sum of weights, divided by the query's ``2**unit``."""
    shift = np.where(np.isneginf(state.shift), 0.0, state.shift - np.log(weight_unit))
    found: Array = state.denominator * np.exp(shift - LN_2 * unit)
    return found


def loop_arguments(problem: Problem, unit: Array) -> Callable[[Index], tuple[Any, ...]]:
    """Return a function from indices of queries to the leading arguments of the compiled loops."""
    from kernpool.algorithms.brute.fused import read_only
    from kernpool.algorithms.brute.tiles import kernel_of  # with code that loads Numba

    code, tables = np.empty((0, len(problem.key)), dtype=np.int64), np.empty((0, 1, 1))
    if problem.factors is not None:
        code, tables = problem.factors.key_code.T, problem.factors.stacked_tables()
    key, key_weight = problem.key.T, np.empty(0) if problem.key_weight is None else problem.key_weight
    key, key_weight, code, tables = (read_only(array) for array in (key, key_weight, code, tables))
    how = read_only(problem.similarity.bandwidth), *kernel_of(problem)
    mask, own, own_weight = problem.attn_mask, problem.self_index, problem.own_weight

    def of(rows: Index) -> tuple[Any, ...]:
        levels = np.empty((len(rows), 0), dtype=np.int64)
        each = (
            np.empty((0, 0), dtype=bool) if mask is None else mask[rows],
            np.full(len(rows), -1) if own is None else own[rows],
            own_weight[rows],
            levels if problem.factors is None else problem.factors.query_code[rows],
        )
        masks = [read_only(array) for array in each]
        return read_only(problem.query[rows]), key, key_weight, *masks, code, tables, *how, read_only(unit[rows])

    return of


def sum_over_pairs(
    recipe: Recipe,
    problem: Problem,
    found: Array,
    loop: Callable[[tuple[Any, ...], Index, Array], None],
    table: Callable[[Array, Index], Array],
) -> Flags:
    """Write results of all pairs into `found`, by a compiled loop or by tables; return which queries have a key."""
    problem = bare(problem)
    m, n = problem.shape
    occupied, near = np.ones(m, dtype=bool), np.zeros(m, dtype=bool)
    if not is_small(problem) and has_loop(problem):
        if problem.key_weight is not None and not problem.key_weight.any():
            return near
        state = sum_problem(problem, replace(recipe, algorithm="auto"))
        occupied = state.denominator > 0
        unit, near = common_units(problem.similarity.kernel, state, problem.weight_unit)
        rows, arguments = np.flatnonzero(near), loop_arguments(problem, unit)

        def work(block: slice) -> Iterator[None]:
            some = rows[block]
            part = np.empty((len(some), *found.shape[1:]))
            loop(arguments(some), some, part)
            found[some] = part
            yield

        run_blocks(work, cut(len(rows), max(1, BLOCK_PAIRS // n)), resolve_n_jobs(recipe.n_jobs), None)
    rest = np.flatnonzero(occupied & ~near)
    for which, share in weight_rows(problem.block(rest)):
        some = rest[which]
        occupied[some] = share.any(axis=1)
        here = occupied[some]
        found[some[here]] = table(share[here], some[here])
    return occupied


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


def as_levels(levels: ArrayLike) -> Array:
    """Validate quantile orders, one or several numbers between 0 and 1, and return them as float64."""
    if isinstance(levels, bool):
        raise ValueError(f"levels must be between 0 and 1, got {levels}; a median is 0.5")
    given = as_real_array("levels", float(levels) if isinstance(levels, Rational) else levels)
    # The float32 next to .1 is above .1, and three of 30 equal weights would not reach it.
    level: Array = np.asarray(given.astype(np.str_) if given.dtype.itemsize < 8 else given, dtype=np.float64)
    if level.ndim > 1 or not level.size:
        raise ValueError(f"levels must be one number or a list of them, got an array of shape {level.shape}")
    wrong = level[~((level >= 0) & (level <= 1))]
    if wrong.size:
        raise ValueError(f"levels must be between 0 and 1, got {wrong.ravel()[0]}; a median is 0.5, not 50")
    return level


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

    @cached_property
    def state(self) -> PoolState:
        """Sum of the kernel weights of all keys at each query, as a `PoolState`, computed on first use."""
        if self.problem.key_weight is not None and not self.problem.key_weight.any():
            return empty_state(len(self.problem.query), 1)
        return sum_problem(self.problem, self.recipe, reuse=False)

    @property
    def occupied(self) -> Flags:
        """Flags of the queries that have a key of positive weight."""
        return self.state.denominator > 0

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
        if not is_small(ordered) and has_loop(ordered):
            unit, near = common_units(ordered.similarity.kernel, self.state, ordered.weight_unit)
            tables = self.occupied & ~near
        elif self.recipe.algorithm != "auto":
            choose(self.problem, self.recipe.algorithm)  # raises for what it does not support
        for part in cut(m, max(LEAST_REQUESTS, len(order) // 2) // levels + 1):
            share = np.maximum(level[part] - slack, LEAST)
            some = np.flatnonzero(near[part])
            if len(some):
                rows = part.start + some
                before = done * levels
                more = lambda count: report(before + count)  # noqa: B023, E731  # called before the next turn
                place = self._descend(ordered, rows, unit, share[some], more)
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


def _report_column(progress: Progress, before: int, total: int, done: int) -> None:
    progress(min(before + done, total - 1), total)


def known_quantiles(
    recipe: Recipe, problem: Problem, value: Array, level: Array, progress: Progress | None = None
) -> tuple[Array, Flags]:
    """Return conditional quantiles, (m, c, l), and which queries have a key of positive weight; NaN at the others."""
    m, c = len(problem.query), value.shape[1]
    level = np.broadcast_to(level, (m, level.shape[-1]))
    sums, total = KernelWeights(bare(problem), recipe), max(1, m * level.shape[1] * c)
    found, occupied = np.full((m, c, level.shape[1]), np.nan), np.zeros(m, dtype=bool)
    small = np.dtype(np.int32 if len(value) < 1 << 31 else np.intp)  # to save memory
    for number, column in enumerate(value.T):
        report: Callable[[int], object] = int
        if progress is not None:
            report = partial(_report_column, progress, number * total // c, total)
        order = np.argsort(column, kind="stable").astype(small)
        for rows, place in sums.places_in_batches(order, level, report):
            found[rows, number], occupied[rows] = column[place], True
    if progress is not None:
        progress(total, total)
    return found, occupied
