"""Sums at few places that a model keeps for what is asked next: an interval and then a band at the same places."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from kernpool.core.problem import Problem
from kernpool.core.state import PoolState
from kernpool.inference.remembered import are_equal, are_equal_factors, has_plain_pairs

Array = NDArray[np.float64]

MOST_PLACES, MOST_BYTES = 1 << 14, 1 << 24  # of one state, of all of them


class KeptSums:
    """Sums that a model keeps, values and all.

    They are those that the very same problem would be summed to, bit for bit, so that no answer depends on what was
    asked before. A band after an interval at the same places makes one or two passes over rows and places in place of
    five, beside those along its grid.

    Parameters
    ----------
    value : ndarray of shape (n, c)
        The values of the model. Sums of others are not kept, nor are their arrays.
    """

    def __init__(self, value: Array) -> None:
        self._value, self._known = value, list[tuple[Problem, PoolState]]()

    def get(self, problem: Problem, make: Callable[[], PoolState]) -> PoolState:
        """Return the state of a problem; not to be changed."""
        if problem.value is not self._value or not has_plain_pairs(problem):
            return make()
        for other, state in self._known:
            if _is_same(problem, other):
                return state
        state = make()
        self.add(problem, state)
        return state

    def add(self, problem: Problem, state: PoolState) -> None:
        """Keep a state, if it is of few places, and as many of those before it as there is room for."""
        if problem.value is not self._value or len(problem.query) > MOST_PLACES:
            return
        # The query may be an array of the caller, who may change it.
        self._known.append((replace(problem, query=problem.query.copy()), state))
        while sum(_size(each) for _, each in self._known) > MOST_BYTES:
            self._known.pop(0)


def _size(state: PoolState) -> int:
    return state.shift.nbytes + state.denominator.nbytes + state.numerator.nbytes


def _is_same(problem: Problem, other: Problem) -> bool:
    one, two = problem.similarity, other.similarity
    return (
        problem.key is other.key
        and has_plain_pairs(problem)
        and (problem.degree, problem.tol, problem.dtype) == (other.degree, other.tol, other.dtype)
        and one.kernel is two.kernel
        and one.composition == two.composition
        and np.array_equal(one.bandwidth, two.bandwidth)
        and np.array_equal(problem.value_center, other.value_center)
        and problem.weight_unit == other.weight_unit
        and are_equal(problem.key_weight, other.key_weight)
        and np.array_equal(problem.query, other.query)
        and are_equal_factors(problem.factors, other.factors)
    )
