"""Kernel sums that computations of one call share.

The square of a Gaussian kernel is a Gaussian kernel of another bandwidth, and the linear weights of different slopes
are combinations of the same moments. Nothing is kept for later calls.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from kernpool.core import Factors, Layout
from kernpool.core.problem import Problem
from kernpool.core.state import PoolState
from kernpool.smoother.quadratic_forms import Summed

Known = tuple[Problem, PoolState]

ROUNDING = 1e-14  # of bandwidths: h sqrt(2) / sqrt(2) is h
MOMENTS = ("first", "second", "third", "fourth")


class SharedSums:
    """Cache of kernel sums that pooling problems with equal queries, keys and weights share, whatever their values.

    Intervals of d slopes take three passes for the norms instead of 3 d: 67 ms instead of 171 at 401 points of 20 000
    rows in three columns. For the default interval with a Gaussian kernel this saves two of eight passes: the square of
    the kernel of the wider fit is the kernel of the narrower one, and that of the noise fit is the kernel of the wider.

    Parameters
    ----------
    sums : callable
        Sums a problem; `Smoother.sums`.
    known : iterable of (Problem, PoolState)
        States that are already computed, such as those of fits; their values are ignored.
    """

    def __init__(self, sums: Summed, known: Iterable[Known] = ()) -> None:
        self._sums, self._known = sums, list(known)

    def __call__(self, problem: Problem) -> PoolState:
        """Return the kernel sums of a pooling problem, cached or computed; those of weighted values are meaningless."""
        state = self.known(problem)
        if state is None:
            state = self._sums(problem)
            self.add(problem, state)
        return state

    def known(self, problem: Problem) -> PoolState | None:
        """Return the kernel sums of a pooling problem if they are cached, otherwise None."""
        for other, state in self._known:
            if _are_same_pairs(problem, other):
                return _moments(state, other.layout, problem.layout)
        return None

    def add(self, problem: Problem, state: PoolState) -> None:
        """Add the kernel sums of a pooling problem to the cache."""
        self._known.append((problem, state))

    def made(self, problem: Problem) -> PoolState:
        """Compute the kernel sums of a pooling problem without caching them."""
        return self._sums(problem)


def _are_same_pairs(problem: Problem, other: Problem) -> bool:
    one, two = problem.similarity, other.similarity
    return (
        problem.key is other.key
        and has_plain_pairs(problem)
        and has_plain_pairs(other)
        and problem.degree <= other.degree
        and one.kernel is two.kernel
        and bool(np.all(np.abs(one.bandwidth - two.bandwidth) <= ROUNDING * one.bandwidth))
        and are_equal(one.widening, two.widening)
        and are_equal(problem.tied, other.tied)
        and problem.weight_unit == other.weight_unit
        and are_equal(problem.key_weight, other.key_weight)
        and are_equal(problem.query, other.query)
        and are_equal_factors(problem.factors, other.factors)
    )


def has_plain_pairs(problem: Problem) -> bool:
    """Return whether a pooling problem has no self-exclusion, groups, masks or biases of query-key pairs."""
    return all(pairs is None for pairs in (problem.self_index, problem.excluded, problem.attn_mask, problem.logit_bias))


def are_equal(one: NDArray[np.generic] | None, other: NDArray[np.generic] | None) -> bool:
    """Return whether two optional arrays are equal, or both None."""
    if one is None or other is None:
        return one is other
    return one is other or np.array_equal(one, other)


def are_equal_factors(one: Factors | None, other: Factors | None) -> bool:
    """Return whether two optional `Factors` have equal category codes and factor tables, or both are None."""
    if one is None or other is None:
        return one is other
    return all(np.array_equal(a, b) for a, b in zip(one.tables, other.tables, strict=True)) and all(
        np.array_equal(a, b) for a, b in ((one.query_code, other.query_code), (one.key_code, other.key_code))
    )


def _moments(state: PoolState, layout: Layout, wanted: Layout) -> PoolState:
    """Return kernel sums rearranged to the columns of moments that a fit of the same or a lower degree needs.

    Sums of values are zero, unless all columns are in place already.
    """
    if layout == wanted:
        return state
    numerator = np.zeros((len(state.denominator), wanted.width))
    for name in MOMENTS[: 2 * wanted.degree]:
        numerator[:, getattr(wanted, name)] = state.numerator[:, getattr(layout, name)]
    return PoolState(state.shift, state.denominator, numerator)
