"""Pooling of arrays in memory: one problem, a batch of problems, or keys that are used repeatedly.

`sum_stack` sums a batch of many small problems in one compiled call. A thousand problems of 50 x 50 take 3 ms of
sums, and as many calls of `Plan.reduce` a hundred. So where every item would run on the reference or by brute force,
all of them go through the staged tiles together: every built-in kernel, degree, key weights and leave-one-out. Rare
cases are summed by plans: masks, values so tiny that they are counted in larger units, and items with an impossible
result.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import ArrayLike

from kernpool._arrays import Array, Flags, Index
from kernpool.algorithms.algorithm import PairSample, dense_seconds, may_underflow
from kernpool.algorithms.verification import SLACK
from kernpool.core import LocalFit, PoolState, Problem, Stack, empty_state
from kernpool.core.batch import Batch
from kernpool.execution import Progress, cut, progress_between, resolve_n_jobs, run_blocks
from kernpool.kernels import is_compiled
from kernpool.pooling.plan import FAINT, LOADING, SMALL, PoolingPlan, near_one
from kernpool.pooling.recipe import Recipe, Sums, choose, limit_values, sum_problem

MOST_PAIRS = 1 << 18  # of an item; larger ones have work enough for a call of their own
# What is read and summed at a time: pairs, a millisecond or two, and numbers, a mebibyte for each copy of them.
PIECE, NUMBERS = 1 << 20, 1 << 17


def sum_stack(batch: Batch, recipe: Recipe, progress: Progress | None) -> Sums | None:
    """Sum all problems of a batch in one compiled loop; return None if items have to be summed one by one."""
    first, items = batch.problem(0), batch.n_items
    if not _is_worth_it(first, items, recipe.algorithm):
        return None
    m, width = len(first.query), first.layout.width
    state, center = empty_state(items * m, width), np.empty((items, first.value.shape[1]))
    irregular: list[slice] = []
    from kernpool.algorithms.brute.tiles import sum_items  # loads Numba

    report = None if progress is None else lambda done, total: progress(done * m, total * m)

    def work(some: slice) -> Iterator[None]:
        stack = batch.stack(some)
        if stack is None:
            irregular.append(some)
            return
        part = sum_items(first, stack)
        for i in np.flatnonzero(_is_unusual(first, stack, part)):
            one = batch.problem(some.start + int(i))
            part.put(slice(i * m, (i + 1) * m), sum_problem(one.without_center(), recipe, reuse=False))
            stack.center[i] = one.value_center
        state.put(slice(some.start * m, some.stop * m), part)
        center[some] = stack.center
        yield

    n, columns = len(first.key), first.key.shape[1] + first.value.shape[1]
    together = max(1, min(PIECE // (m * n), NUMBERS // ((m + n) * columns)))
    run_blocks(work, cut(items, together), resolve_n_jobs(recipe.n_jobs), report)
    if irregular:
        return None
    tiny = (center != 0.0) & (np.abs(center) < SMALL)
    state = near_one(state, np.inf if tiny.any() else FAINT)
    if not recipe.degree:
        added = state.denominator[:, None] * np.repeat(center, m, axis=0)
        state = PoolState(state.shift, state.denominator, state.numerator + added)
    return _with_limits(state, center, batch.problem, recipe, centered=recipe.degree > 0)


def _is_worth_it(first: Problem, items: int, algorithm: str) -> bool:
    """Return whether one compiled loop over the whole batch is supported, and worth loading."""
    (m, n), kernel = first.shape, first.similarity.kernel
    if m * n > MOST_PAIRS or algorithm not in ("auto", "brute") or not is_compiled(kernel):
        return False
    if first.attn_mask is not None or first.logit_bias is not None or not first.similarity.is_uniform:
        return False
    if kernel.is_compact and may_underflow(first):
        return False
    if algorithm == "brute":
        return True
    densely = items * dense_seconds(first, PairSample(first), {})
    return choose(first).algorithm in ("reference", "brute") and densely > LOADING


def _is_unusual(first: Problem, stack: Stack, state: PoolState) -> Flags:
    """Flag batch items with tiny values, or with sums that no weighted mean of their values can have."""
    items, m = stack.own.shape
    largest = np.maximum(np.abs(stack.low), np.abs(stack.high))
    tiny = np.any((largest > 0.0) & (largest < SMALL), axis=1)
    margin = (SLACK[first.dtype] + first.tol) * (stack.high - stack.low)
    low, high = (stack.low - margin)[:, None], (stack.high + margin)[:, None]
    weight = state.denominator.reshape(items, m)
    sums = state.numerator.reshape(items, m, -1)[:, :, : stack.center.shape[1]]
    with np.errstate(all="ignore"):
        mean = sums / weight[:, :, None]
        possible = (weight > 0.0) & (weight < np.inf) & np.all((low <= mean) & (mean <= high), axis=2)
    if first.similarity.kernel.is_compact:
        possible |= (weight == 0.0) & np.all(sums == 0.0, axis=2)
    unusual: Flags = tiny | ~possible.all(axis=1)
    return unusual


@dataclass(frozen=True, eq=False)
class ArrayPairs:
    """Key-value pairs in arrays, with weights, masks and excluded keys; parameters as in `pool`."""

    key: ArrayLike
    value: ArrayLike | None
    key_weight: ArrayLike | None = None
    attn_mask: ArrayLike | None = None
    exclude_self: bool = False
    self_index: ArrayLike | None = None

    def batch(self, recipe: Recipe, query: ArrayLike) -> Batch:
        """Return the pooling problems of the keys and the given queries, one per batch item."""
        return Batch(
            query,
            self.key,
            self.value,
            key_weight=self.key_weight,
            attn_mask=self.attn_mask,
            self_index=self.self_index,
            make=partial(recipe.problem, exclude_self=self.exclude_self),
        )

    def plan(self, recipe: Recipe, query: ArrayLike) -> PoolingPlan:
        """Return the algorithm that pools the first batch item, and the reason for the choice."""
        return choose(self.batch(recipe, query).problem(0), recipe.algorithm)

    def reduce(self, recipe: Recipe, query: ArrayLike, progress: Progress | None = None) -> Sums:
        """Sum weights and weighted values over all keys, at each query of each batch item."""
        batch = self.batch(recipe, query)
        sums = sum_stack(batch, recipe, progress) if batch.n_items > 1 else None
        if sums is None:
            sums = sum_problems(batch.problem, recipe, batch.n_items, progress, centered=recipe.degree > 0)
        return replace(sums, shape=batch.output_shape, dtype=batch.dtype)


def sum_problems(
    problem: Callable[[int], Problem],
    recipe: Recipe,
    items: int = 1,
    progress: Progress | None = None,
    *,
    centered: bool,
) -> Sums:
    """Sum weights and weighted values of equally shaped problems, one problem after the other."""
    states, centers = [], []
    for i in range(items):
        one = problem(i)
        centers.append(one.value_center)
        m = len(one.query)
        report = progress_between(progress, i * m, (i + 1) * m, items * m) if items > 1 else progress
        states.append(sum_problem(one.without_center() if centered else one, recipe, report, reuse=False))
    state = states[0]
    if items > 1:
        sums = zip(*((state.shift, state.denominator, state.numerator) for state in states), strict=True)
        state = PoolState(*map(np.concatenate, sums))
    return _with_limits(state, np.stack(centers), problem, recipe, centered=centered)


def _with_limits(
    state: PoolState, centers: Array, problem: Callable[[int], Problem], recipe: Recipe, *, centered: bool
) -> Sums:
    """Return the kernel sums of equally shaped problems as `Sums`, with values for empty windows."""
    # `centers`, of shape (items, c), are those of the values of each problem.
    first = problem(0)
    m = len(first.query)

    def fill(rows: Index) -> Array:
        item, row = np.divmod(rows, m)
        parts = [limit_values(problem(i), row[item == i], recipe.empty, recipe.n_jobs) for i in np.unique(item)]
        return np.concatenate(parts)

    return Sums(state, first.layout, np.repeat(centers, m, axis=0) if centered else None, fill)


def local_fit(problem: Problem, recipe: Recipe, progress: Progress | None = None) -> LocalFit:
    """Fit a local constant, plane or quadratic around each query of a problem.

    Examples
    --------
    >>> recipe = Recipe.of(bandwidth=2.0, degree=1)
    >>> problem = recipe.problem([1.0], [0.0, 2.0, 3.0], [5.0, 9.0, 11.0])
    >>> local_fit(problem, recipe).slope / problem.similarity.bandwidth[:, None]
    array([[[2.]]])
    """
    state = sum_problem(problem.without_center(), recipe, progress)
    return Sums(state, problem.layout, problem.value_center).fit(recipe.ridge_weight(problem.key.shape[1]))
