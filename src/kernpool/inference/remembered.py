"""Sums that are asked for more than once: a Gaussian squared is a Gaussian, and slopes differ by no more than tilts.

`RememberedSums` is for one answer, `KeptSums` for one model: an interval and then a band at the same places share them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
from numpy.typing import NDArray

from kernpool.core.factors import Factors
from kernpool.core.moments import Layout
from kernpool.core.problem import Problem
from kernpool.core.state import PoolState
from kernpool.inference.quadratic_forms import Summed

Array = NDArray[np.float64]
Known = tuple[Problem, PoolState]

ROUNDING = 1e-14  # of bandwidths: h sqrt(2) / sqrt(2) is h
MOMENTS = ("first", "second", "third", "fourth")
MOST_PLACES, MOST_STATES = 1 << 14, 12  # a megabyte each, of a band and the interval before it


class RememberedSums:
    """Sums of weights and of offsets, without values, that are kept for the next problem of the same pairs.

    Of the default interval with a Gaussian two of eight passes are saved: the square of the kernel of the wider fit is
    the kernel of the narrower one, and that of the noise the kernel of the wider. Of intervals for d slopes the norms
    take three passes in place of 3 d.

    Parameters
    ----------
    sums : callable
        Sums a problem; `Smoother.sums`.
    known : iterable of (Problem, PoolState)
        States that are there already, such as those of fits. Their values may be any.
    """

    def __init__(self, sums: Summed, known: Iterable[Known] = ()) -> None:
        self._sums, self._known = sums, list(known)

    def __call__(self, problem: Problem) -> PoolState:
        """Return the state of a problem; what it says of values does not mean anything."""
        state = self.known(problem)
        if state is None:
            state = self._sums(problem)
            self.add(problem, state)
        return state

    def known(self, problem: Problem) -> PoolState | None:
        """Return the state of a problem if it is there already."""
        for other, state in self._known:
            if _are_same_pairs(problem, other):
                return _moments(state, other.layout, problem.layout)
        return None

    def add(self, problem: Problem, state: PoolState) -> None:
        """Remember a state."""
        self._known.append((problem, state))

    def made(self, problem: Problem) -> PoolState:
        """Return the state of a problem that will not be asked for again."""
        return self._sums(problem)


class KeptSums:
    """Sums at few places that a model keeps for what is asked next, values and all.

    A band after an interval at the same places saves four passes over the rows of nine, and errors at up to 16 384
    training rows one, as leaving each of them out has summed them.

    Parameters
    ----------
    value : ndarray of shape (n, c)
        The values of the model. Sums of others are not kept, nor are their arrays.
    """

    def __init__(self, value: Array) -> None:
        self._value, self._known = value, list[Known]()

    def get(self, problem: Problem, make: Callable[[], PoolState]) -> PoolState:
        """Return the state of a problem; not to be changed."""
        if problem.value is not self._value or not _has_plain_pairs(problem):
            return make()
        for other, state in self._known:
            if _are_same_pairs(problem, other):
                return state.columns(problem.layout.width)
        state = make()
        self.add(problem, state)
        return state

    def add(self, problem: Problem, state: PoolState) -> None:
        """Keep a state, if it is of few places."""
        if problem.value is self._value and len(problem.query) <= MOST_PLACES:
            self._known = [*self._known[1 - MOST_STATES :], (problem, state)]


def _are_same_pairs(problem: Problem, other: Problem) -> bool:
    one, two = problem.similarity, other.similarity
    return (
        problem.key is other.key
        and _has_plain_pairs(problem)
        and _has_plain_pairs(other)
        and problem.degree <= other.degree
        and one.kernel is two.kernel
        and one.composition == two.composition
        and bool(np.all(np.abs(one.bandwidth - two.bandwidth) <= ROUNDING * one.bandwidth))
        and problem.weight_unit == other.weight_unit
        and _are_equal(problem.key_weight, other.key_weight)
        and _are_equal(problem.query, other.query)
        and _are_equal_factors(problem.factors, other.factors)
    )


def _has_plain_pairs(problem: Problem) -> bool:
    """Whether all queries meet all keys: nothing is left out, by itself, by its group or by a mask."""
    return all(pairs is None for pairs in (problem.self_index, problem.groups, problem.attn_mask, problem.logit_bias))


def _are_equal(one: Array | None, other: Array | None) -> bool:
    if one is None or other is None:
        return one is other
    return one is other or np.array_equal(one, other)


def _are_equal_factors(one: Factors | None, other: Factors | None) -> bool:
    if one is None or other is None:
        return one is other
    return all(np.array_equal(a, b) for a, b in zip(one.tables, other.tables, strict=True)) and all(
        np.array_equal(a, b) for a, b in ((one.query_code, other.query_code), (one.key_code, other.key_code))
    )


def _moments(state: PoolState, layout: Layout, wanted: Layout) -> PoolState:
    """Return the moments of a state in the order of another layout, of the same degree or less."""
    if layout == wanted:
        return state
    numerator = np.zeros((len(state.denominator), wanted.width))
    for name in MOMENTS[: 2 * wanted.degree]:
        numerator[:, getattr(wanted, name)] = state.numerator[:, getattr(layout, name)]
    return PoolState(state.shift, state.denominator, numerator)
