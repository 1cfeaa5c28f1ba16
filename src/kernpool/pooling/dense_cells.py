"""Mixed problems of few pairs and many cells: the factors as a table beside the logits, instead of cell by cell.

A cell costs half a millisecond whatever is in it. Fifty rows of twenty different levels are one dense sum.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from kernpool.core.local_fit import LocalFit
from kernpool.core.problem import Problem

Array = NDArray[np.float64]

MOST_PAIRS, PAIRS_PER_CELL = 1 << 20, 20_000  # of a cell that is worth a visit


def is_dense(problem: Problem, cells: int) -> bool:
    """Whether a problem of so many cells is better done in one piece.

    Parameters
    ----------
    problem : Problem
        Of the numeric columns.
    cells : int
        Number of combinations of levels.

    Returns
    -------
    bool
        True for few pairs per cell, and not too many in all.
    """
    m, n = problem.shape
    return m * n <= MOST_PAIRS and m * n < PAIRS_PER_CELL * cells


def with_factors(problem: Problem, log_factors: list[Array]) -> Problem:
    """Return the problem with factors on its weights.

    Parameters
    ----------
    problem : Problem
        Of the numeric columns.
    log_factors : list of ndarray of shape (m, n)
        Their logarithms, of each categorical column.

    Returns
    -------
    Problem
        With a `logit_bias`.
    """
    start = np.zeros(problem.shape) if problem.logit_bias is None else problem.logit_bias
    return replace(problem, logit_bias=np.asarray(sum(log_factors, start=start)))


def smoothing_gradient(
    problem: Problem,
    log_factors: list[Array],
    slopes: list[Array],
    fit: LocalFit,
    log_denominator: Array,
    cotangent: Array,
    largest_exponent: float,
) -> Array:
    r"""Differentiate :math:`\sum_c g_{ic} \hat y_{ic}` by the smoothing of each categorical column.

    Parameters
    ----------
    problem : Problem
        Of the numeric columns, with values less the centre that the fit is less of.
    log_factors, slopes : list of ndarray of shape (m, n)
        Logarithms of the factors of each categorical column, and their derivatives by its smoothing.
    fit : LocalFit
        The fit of all weights.
    log_denominator : ndarray of shape (m,)
        Logarithms of the sums of all weights; infinity for empty windows.
    cotangent : ndarray of shape (m, c)
        The g.
    largest_exponent : float
        Where slopes are cut off.

    Returns
    -------
    ndarray of shape (m, k)
        One row per query. A column's own factor is left out of the weights, so that a factor of zero has a slope.
    """
    offset = partial(problem.similarity.offset, problem.query, problem.key)
    residual = cotangent @ problem.value.T - np.sum(cotangent * fit.intercept, axis=1)[:, None]
    share = np.repeat(fit.base[:, None], problem.shape[1], axis=1)
    along = np.einsum("mc,mdc->md", cotangent, fit.slope)
    for a in range(along.shape[1]):
        t = offset(a)
        residual -= along[:, a, None] * t
        share += fit.tilt[:, a, None] * t
    moved = problem.multiplicity() * share * residual
    logits = problem.similarity.logits(problem.query, problem.key) + np.log(problem.weight_unit)
    if problem.logit_bias is not None:
        logits = logits + problem.logit_bias
    gradient = np.empty((len(cotangent), len(slopes)))
    for a, slope in enumerate(slopes):
        others = sum((factor for b, factor in enumerate(log_factors) if b != a), start=logits)
        exponent = np.minimum(others - log_denominator[:, None], largest_exponent)
        gradient[:, a] = np.sum(moved * slope * np.exp(exponent), axis=1)
    return gradient
