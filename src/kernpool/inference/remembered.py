"""Sums that are asked for more than once: a Gaussian squared is a Gaussian, and slopes differ by no more than tilts."""

from __future__ import annotations

from collections.abc import Iterable

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


def _are_same_pairs(problem: Problem, other: Problem) -> bool:
    one, two = problem.similarity, other.similarity
    return (
        problem.key is other.key
        and has_plain_pairs(problem)
        and has_plain_pairs(other)
        and problem.degree <= other.degree
        and one.kernel is two.kernel
        and one.composition == two.composition
        and bool(np.all(np.abs(one.bandwidth - two.bandwidth) <= ROUNDING * one.bandwidth))
        and problem.weight_unit == other.weight_unit
        and are_equal(problem.key_weight, other.key_weight)
        and are_equal(problem.query, other.query)
        and are_equal_factors(problem.factors, other.factors)
    )


def has_plain_pairs(problem: Problem) -> bool:
    """Whether all queries meet all keys: nothing is left out, by itself, by its group or by a mask."""
    return all(pairs is None for pairs in (problem.self_index, problem.groups, problem.attn_mask, problem.logit_bias))


def are_equal(one: Array | None, other: Array | None) -> bool:
    """Whether two arrays are equal, or there are none."""
    if one is None or other is None:
        return one is other
    return one is other or np.array_equal(one, other)


def are_equal_factors(one: Factors | None, other: Factors | None) -> bool:
    """Whether factors are of the same levels and tables, or there are none."""
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
