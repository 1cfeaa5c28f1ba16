r"""Starts and neighbours where columns are too many to try them one by one: those that a linear model promises most of.

A start without each of p columns and a line along each cost p times as much as a descent, in every round. The slopes of
the residuals at one place say more cheaply which of them are worth it. A column enters a fit by :math:`u = h^{-2}`, so
that residuals without it are, to first order in u,

.. math:: r - u\, \partial r / \partial u = r + \tfrac12\, \partial r / \partial \log h,

and a smoothing reaches the end of its box in a straight line.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernpool.bandwidth.search.gauss_newton import Place, SumOfSquares

Array = NDArray[np.float64]

MOST_TRIED_ONE_BY_ONE = 8  # columns: up to so many, all of them are
# In 25 problems of 9 to 34 columns the criterion ends as low as by trying all of them, to 4e-6. In five tables of 30
# columns with many minima it ends from 55 % lower to 36 % higher, lower in three, by a quarter of the evaluations.
BATCHES, LINES, PLACES = 3, 10, 6


def gain_without(objective: SumOfSquares, at: Place, jacobian: Array, numeric: NDArray[np.bool_]) -> Array:
    """Return by how much the sum of squares is expected to fall if a column is smoothed away, of shape (p,).

    Parameters
    ----------
    objective : SumOfSquares
        For its box.
    at : Place
        Where.
    jacobian : ndarray of shape (size of residual, p)
        There.
    numeric : ndarray of bool, shape (p,)
        Bandwidths, and not smoothings.

    Returns
    -------
    ndarray of shape (p,)
        Minus infinity where it is smoothed away already.
    """
    _, high, _ = objective.box
    length = np.where(numeric, 0.5, high - at.theta)
    squares = np.einsum("ij,ij->j", jacobian, jacobian)
    gain = -2.0 * length * (jacobian.T @ at.residual.ravel()) - length**2 * squares
    return np.where(at.theta >= high, -np.inf, gain)


def without_batches(objective: SumOfSquares, at: Place, columns: int) -> Iterator[Any]:
    """Yield places without the one, two, four and so on columns that promise the most.

    Parameters
    ----------
    objective : SumOfSquares
        The criterion.
    at : Place
        The best common factor.
    columns : int
        How many are bandwidths, and not smoothings.

    Yields
    ------
    Place
        The best few of them.
    """
    _, high, _ = objective.box
    numeric = np.arange(len(high)) < columns
    order = np.argsort(-gain_without(objective, at, objective.jacobian(at), numeric), kind="stable")
    best: list[Any] = []  # no more than are wanted: an evaluation of planes has n d^2 / 2 numbers
    size = 1
    while size < len(order):
        theta = at.theta.copy()
        theta[order[:size]] = np.where(numeric, theta + 3.0, high)[order[:size]]
        place = objective.evaluate(np.minimum(theta, high))
        best = sorted([*best, place], key=lambda one: float(one.penalised))[:BATCHES]
        size *= 2
    yield from best


def promising(objective: SumOfSquares, at: Place, columns: int) -> NDArray[np.intp]:
    """Return columns whose bandwidths are worth a look from end to end: half of them in use, half of them not.

    Those in use that would be missed the least, and those smoothed away whose slopes go the most with the residuals.

    Parameters
    ----------
    objective : SumOfSquares
        The criterion.
    at : Place
        Where a descent ended.
    columns : int
        How many are bandwidths, and not smoothings.

    Returns
    -------
    ndarray of int
        In increasing order.
    """
    _, high, far = objective.box
    numeric, jacobian = np.arange(len(high)) < columns, objective.jacobian(at)
    gain = gain_without(objective, at, jacobian, numeric)
    size = np.sqrt(np.einsum("ij,ij->j", jacobian, jacobian))
    along = np.divide(jacobian.T @ at.residual.ravel(), size, where=size > 0, out=np.zeros_like(size))
    unused = at.theta > np.where(np.isinf(far), high - 1e-9, far)
    used = np.flatnonzero(~unused)
    missed = used[np.argsort(-gain[used], kind="stable")]
    missing = np.flatnonzero(unused)[np.argsort(-along[unused], kind="stable")]
    chosen = [*missed[: max(LINES // 2, LINES - len(missing))], *missing[: max(LINES // 2, LINES - len(missed))]]
    return np.sort(np.array(chosen, dtype=np.intp))
