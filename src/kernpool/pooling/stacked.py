"""A batch of many small problems: read at once, and summed in one compiled call.

A thousand problems of 50 x 50 take 3 ms of sums, and as many calls of `Plan.reduce` a hundred. So where every item
would run on the reference or by brute force, all of them go through the staged tiles together: every built-in kernel,
degree, key weights and leave-one-out. What is rare is left to the plans: masks, values so tiny that they are counted in
larger units, and items with an answer that no weighted mean can have.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from kernpool.algorithms import reference
from kernpool.algorithms.estimate import Look
from kernpool.algorithms.verification import SLACK
from kernpool.core.batch import Batch
from kernpool.core.problem import Problem
from kernpool.core.stack import Stack
from kernpool.core.state import PoolState, empty_state
from kernpool.execution.progress import Progress
from kernpool.execution.threads import cut, resolve_n_jobs, run_blocks
from kernpool.kernels import is_compiled
from kernpool.pooling.choice import choose
from kernpool.pooling.loading import LOADING
from kernpool.pooling.tiny_values import FAINT, SMALL, near_one

Array = NDArray[np.float64]

MOST_PAIRS = 1 << 18  # of an item; larger ones have work enough for a call of their own
# What is read and summed at a time: pairs, a millisecond or two, and numbers, a mebibyte for each copy of them.
PIECE, NUMBERS = 1 << 20, 1 << 17


def sum_stack(
    batch: Batch, algorithm: str, n_jobs: int | None, progress: Progress | None
) -> tuple[PoolState, Array] | None:
    """Sum all items of a batch together.

    Parameters
    ----------
    batch : Batch
        Problems of one shape.
    algorithm : str
        As of `choose`; one that is asked for by name is used as it is, but for brute force.
    n_jobs, progress
        As of `pool`.

    Returns
    -------
    (PoolState, ndarray of shape (b, c)) or None
        The states of all items, the first item's rows first, of values less their centers, and these; None where items
        are to be summed one by one.
    """
    first, items = batch.problem(0), len(batch)
    if not _is_worth_it(first, items, algorithm):
        return None
    m, width = len(first.query), first.layout.width
    state, center = empty_state(items * m, width), np.empty((items, first.value.shape[1]))
    irregular: list[slice] = []
    from kernpool.algorithms.brute.stacked import sum_items  # loads Numba

    report = None if progress is None else lambda done, total: progress(done * m, total * m)

    def work(some: slice) -> Iterator[None]:
        stack = batch.stack(some)
        if stack is None:
            irregular.append(some)
            return
        part = sum_items(first, stack)
        for i in np.flatnonzero(_is_unusual(first, stack, part)):
            one = batch.problem(some.start + int(i))
            part.put(slice(i * m, (i + 1) * m), choose(one, algorithm).reduce(one.without_center()))
            stack.center[i] = one.value_center
        state.put(slice(some.start * m, some.stop * m), part)
        center[some] = stack.center
        yield

    n, columns = len(first.key), first.key.shape[1] + first.value.shape[1]
    together = max(1, min(PIECE // (m * n), NUMBERS // ((m + n) * columns)))
    run_blocks(work, cut(items, together), resolve_n_jobs(n_jobs), report)
    if irregular:
        return None
    tiny = (center != 0.0) & (np.abs(center) < SMALL)
    return near_one(state, np.inf if tiny.any() else FAINT), center


def _is_worth_it(first: Problem, items: int, algorithm: str) -> bool:
    """Whether there is a loop for such items, each is small, and all of them are worth loading compiled code."""
    (m, n), kernel = first.shape, first.similarity.kernel
    if items == 1 or m * n > MOST_PAIRS or algorithm not in ("auto", "brute") or not is_compiled(kernel):
        return False
    if first.attn_mask is not None or first.logit_bias is not None:
        return False
    if kernel.is_compact and reference.may_underflow(first):
        return False
    if algorithm == "brute":
        return True
    densely = items * reference.seconds(first, Look(first), {})
    return choose(first).algorithm in ("reference", "brute") and densely > LOADING


def _is_unusual(first: Problem, stack: Stack, state: PoolState) -> NDArray[np.bool_]:
    """Tell the items whose values are tiny, or with an answer that cannot be a weighted mean."""
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
    unusual: NDArray[np.bool_] = tiny | ~possible.all(axis=1)
    return unusual
