"""The derivative of a fit by the smoothing of categorical columns, from all pairs at once."""

from __future__ import annotations

from functools import partial
from typing import cast

import numpy as np
from numpy.typing import NDArray

from kernpool.core.factors import Factors
from kernpool.core.local_fit import LocalFit
from kernpool.core.problem import Problem

Array = NDArray[np.float64]

# Where a cell that counts nothing is nearer by far than all that count, slopes are cut off here: 1e217, not infinite.
LARGEST_EXPONENT = 500.0


def smoothing_gradient(problem: Problem, fit: LocalFit, log_denominator: Array, cotangent: Array) -> Array:
    r"""Differentiate :math:`\sum_c g_{ic} \hat y_{ic}` by the smoothing of each categorical column.

    Parameters
    ----------
    problem : Problem
        With factors, and values less the center that the fit is less of.
    fit : LocalFit
        The fit of all weights.
    log_denominator : ndarray of shape (m,)
        Logarithms of the sums of all weights; infinity for empty windows.
    cotangent : ndarray of shape (m, c)
        The g.

    Returns
    -------
    ndarray of shape (m, k)
        One row per query. The factor of the column itself is left out of the weights, so that a factor of zero has a
        slope.
    """
    factors = cast(Factors, problem.factors)
    log_factors, slopes = factors.logarithms(), factors.pair_slopes()
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
        exponent = np.minimum(others - log_denominator[:, None], LARGEST_EXPONENT)
        gradient[:, a] = np.sum(moved * slope * np.exp(exponent), axis=1)
    return gradient
