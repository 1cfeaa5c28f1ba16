"""Many small problems of one shape by the staged tiles, in one call."""

from __future__ import annotations

from typing import Any

import numpy as np

from kernpool.algorithms.brute.compiled import kernel_of, moments_of
from kernpool.algorithms.brute.loops import stacked as loops
from kernpool.algorithms.brute.precision import read_only
from kernpool.core.problem import Problem
from kernpool.core.stack import Stack
from kernpool.core.state import PoolState


def sum_items(first: Problem, stack: Stack) -> PoolState:
    """Return the states of problems like the first, whose rows come first, of values less their centers."""
    (items, m), width = stack.own.shape, first.layout.width
    shift, denominator, numerator = np.empty((items, m)), np.empty((items, m)), np.empty((items, m, width))
    mask = np.empty((items, 0, 0), dtype=bool)
    arrays = (stack.query, stack.key, stack.value, stack.key_weight, mask, stack.own, stack.own_weight)
    sums = shift, denominator, numerator
    arguments: list[Any] = [*map(read_only, arrays), *kernel_of(first), *moments_of(first), *sums]
    loops.reduce_stack(*arguments)
    shift += np.log(stack.unit)[:, None]
    return PoolState(shift.ravel(), denominator.ravel(), numerator.reshape(-1, width))
