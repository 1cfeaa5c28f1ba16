"""Values so small that their products with weights would underflow: pooled in larger units, and brought back.

Denominators go down to 1e-280 before an algorithm counts in another unit. Times a value of 1e-30 that is nothing, and
the pooled value would be zero without a word. Powers of two are exact, so nothing else changes.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from kernpool.core.problem import Problem
from kernpool.core.reading import column_range
from kernpool.core.state import PoolState

Exponents = NDArray[np.int64]

SMALL = 2.0**-64  # values of at least this size, times the smallest denominator, have all of their digits
SAMPLE = 1024  # values that are looked at first
FAINT = 2.0**-500  # denominators below this are counted in a unit of their own, before a center is multiplied by them


def enlarged(problem: Problem) -> tuple[Problem, Exponents | None]:
    """Return a problem whose values are near 1 where they were tiny, and by which powers of two; None if none were.

    Parameters
    ----------
    problem : Problem
        Any.

    Returns
    -------
    problem : Problem
        The same one, as a rule.
    exponents : ndarray of int, shape (c,), or None
        Value columns were multiplied by two to the power of these.

    Examples
    --------
    >>> problem = Problem.from_arrays([0.0], [0.0, 1.0], [-(2.0**-101), 2.0**-101])
    >>> larger, exponents = enlarged(problem)
    >>> larger.value.ravel(), exponents.tolist()
    (array([-0.5,  0. ]), [99])
    """
    if np.all(np.abs(problem.value[:: 1 + len(problem.value) // SAMPLE]).max(axis=0) >= SMALL):
        return problem, None  # as nearly always
    low, high = column_range(problem.value)
    largest = np.maximum(np.abs(low), np.abs(high))
    tiny = (largest > 0.0) & (largest < SMALL)
    if not tiny.any():
        return problem, None
    exponents = np.where(tiny, -np.frexp(largest)[1], 0)
    return replace(problem, value=np.ldexp(problem.value, exponents)), exponents


def brought_back(problem: Problem, state: PoolState, exponents: Exponents | None) -> PoolState:
    """Return the state of a problem, given that of the enlarged one.

    Parameters
    ----------
    problem : Problem
        As it came.
    state : PoolState
        Of the enlarged problem.
    exponents : ndarray of int, shape (c,), or None
        From `enlarged`.

    Returns
    -------
    PoolState
        In a unit in which neither values nor their center underflow.
    """
    if exponents is not None:
        return multiplied(problem, state, -exponents)
    center = np.abs(problem.value_center)
    return near_one(state, np.inf if np.any((center > 0.0) & (center < SMALL)) else FAINT)


def multiplied(problem: Problem, state: PoolState, exponents: Exponents) -> PoolState:
    """Return the state of values multiplied by powers of two.

    Parameters
    ----------
    problem : Problem
        What was summed.
    state : PoolState
        Its sums.
    exponents : ndarray of int, shape (c,)
        Which powers.

    Returns
    -------
    PoolState
        Denominators are near 1.
    """
    layout, state = problem.layout, near_one(state, np.inf)
    numerator = state.numerator.copy()
    numerator[:, layout.value] = np.ldexp(numerator[:, layout.value], exponents)
    if layout.degree:
        numerator[:, layout.cross] = np.ldexp(numerator[:, layout.cross], np.tile(exponents, layout.columns))
    if layout.degree == 2:
        each = np.tile(exponents, layout.columns * (layout.columns + 1) // 2)
        numerator[:, layout.cross_second] = np.ldexp(numerator[:, layout.cross_second], each)
    return PoolState(state.shift, state.denominator, numerator)


def near_one(state: PoolState, below: float = FAINT) -> PoolState:
    """Return the same sums with denominators below a bound counted in units of their own.

    Parameters
    ----------
    state : PoolState
        Any.
    below : float
        The bound.

    Returns
    -------
    PoolState
        The same object if there is none.

    Examples
    --------
    >>> state = near_one(PoolState(np.zeros(1), np.array([2.0**-600]), np.array([[2.0**-601]])))
    >>> state.denominator, state.numerator
    (array([0.5]), array([[0.25]]))
    """
    if state.denominator.size and state.denominator.min() >= below:
        return state
    rows = np.flatnonzero((state.denominator > 0.0) & (state.denominator < below))
    if not rows.size:
        return state
    exponent = np.frexp(state.denominator[rows])[1]
    shift, denominator, numerator = state.shift.copy(), state.denominator.copy(), state.numerator.copy()
    shift[rows] += exponent * np.log(2.0)
    denominator[rows] = np.ldexp(denominator[rows], -exponent)
    numerator[rows] = np.ldexp(numerator[rows], -exponent[:, None])
    return PoolState(shift, denominator, numerator)


def without_shift(state: PoolState) -> PoolState:
    """Return the same sums in the unit 1, which is what compact kernels are summed in.

    Parameters
    ----------
    state : PoolState
        Any whose sums are in range.

    Returns
    -------
    PoolState
        The same object if it has no shift.

    Examples
    --------
    >>> state = without_shift(PoolState(np.log([4.0]), np.array([0.5]), np.array([[0.25]])))
    >>> state.shift, state.denominator, state.numerator
    (array([0.]), array([2.]), array([[1.]]))
    """
    if not np.any(state.shift[state.denominator > 0.0]):
        return state
    unit = np.exp(np.where(state.denominator > 0.0, state.shift, 0.0))
    return PoolState(np.zeros_like(unit), unit * state.denominator, unit[:, None] * state.numerator)
