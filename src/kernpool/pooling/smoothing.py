"""The derivative of a fit by the smoothing of categorical columns: from all pairs at once, or from sums of cells."""

from __future__ import annotations

from functools import partial
from typing import cast

import numpy as np
from numpy.typing import NDArray

from kernpool.core.factors import Factors
from kernpool.core.local_fit import LocalFit
from kernpool.core.moments import Layout
from kernpool.core.problem import Problem
from kernpool.core.state import PoolState

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


def mean_change(sums: PoolState, fit: LocalFit, cotangent: Array, layout: Layout) -> Array:
    r"""Mean over the keys of a cell of :math:`(b + \tau \cdot t)\, g \cdot (v - \beta_0 - \beta \cdot t)`."""
    share = np.divide(1.0, sums.denominator, where=sums.denominator > 0, out=np.zeros(len(sums.denominator)))
    mean = sums.numerator * share[:, None]
    level = np.sum(cotangent * fit.intercept, axis=1)
    moved: Array = fit.base * (np.sum(cotangent * mean[:, layout.value], axis=1) - level)
    if not layout.degree:
        return moved
    m, d = fit.tilt.shape
    along, first = np.einsum("mc,mdc->md", cotangent, fit.slope), mean[:, layout.first]
    upper, lower = np.triu_indices(d)
    second = np.empty((m, d, d))
    second[:, upper, lower] = second[:, lower, upper] = mean[:, layout.second]
    cross = np.einsum("mc,mdc->md", cotangent, mean[:, layout.cross].reshape(m, d, layout.values))
    tilted = cross - level[:, None] * first - np.einsum("mde,me->md", second, along)
    return np.asarray(moved - fit.base * np.sum(along * first, axis=1) + np.sum(fit.tilt * tilted, axis=1))
