r"""Coefficients that vary in windows of their own: backfitting of one coefficient after the other.

Next to the others, the coefficient of a regressor u is least squares of the partial residuals
:math:`r = y - \sum_{b \ne a} u_b \beta_b` around each place, a weighted mean::

    beta(q) = sum_j K_j u_j r_j / sum_j K_j u_j^2 = mean of r_j / u_j with the weights K_j u_j^2

so that each is a local constant smoother of the same rows, and its leave-one-out error chooses its width, as a factor
of the width that all have in common. Factors are found in the first sweeps, and then stay.

A. S. Fotheringham, W. Yang and W. Kang, "Multiscale geographically weighted regression", Annals of the American
Association of Geographers 107 (2017), 1247-1265.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from kernpool.execution.threads import weighted_sum
from kernpool.smoother.linear_smoother import EvaluationPoints, Smoother
from kernpool.smoother.local_least_squares import ALONE, VaryingSmoother, means_of

Array = NDArray[np.float64]

SMALL = 1e-6  # of a regressor, beside its spread of one, by which nothing is divided
NARROWEST, WIDEST, GRID = 0.25, 4.0, 16  # factors, in the width in common and in extents of the rows
SEARCHES, SWEEPS, TOLERANCE = 5, 100, 1e-6


@dataclass(frozen=True, eq=False)
class Backfitting:
    """Coefficients each in windows of its own.

    Parameters
    ----------
    varying : VaryingSmoother
        Rows, and windows that all coefficients have in common.
    factor : ndarray of shape (p,)
        Width of the windows of each coefficient, in that one.
    partial : ndarray of shape (n, p)
        Outputs less all other terms.
    """

    varying: VaryingSmoother
    factor: Array
    partial: Array

    def one(self, a: int, factor: float) -> Smoother:
        """Return the smoother whose fits are a coefficient in windows of this factor."""
        u, smoother = self.varying.regressors[:, a], self.varying.smoother
        known = np.abs(u) > SMALL
        value = np.divide(self.partial[:, a], u, where=known, out=np.zeros(len(u)))
        weighted = smoother.with_weight(np.where(known, smoother.weight * u**2, 0.0))
        return weighted.with_values(value[:, None]).widened(factor, levels=False)

    def at(self, places: EvaluationPoints) -> Array:
        """Return the coefficients at evaluation points, (m, p), NaN where their windows are empty."""
        found = np.empty((len(places.query), len(self.factor)))
        for a, factor in enumerate(self.factor):
            own = self.one(a, factor)
            problem = own.problem(places)
            found[:, a] = means_of(problem, own.sums(problem))[:, 0]
        return found

    def error(self, a: int, factor: float, rows: NDArray[np.intp]) -> float:
        """Return the leave-one-out error of a coefficient in windows of this factor; infinite if one is empty."""
        own, u, weight = self.one(a, factor), self.varying.regressors[rows, a], self.varying.smoother.weight[rows]
        exclusion = own.exclusion
        whole = own.problem(own.training) if exclusion is None else own.left_out_problem(exclusion)
        problem = whole.block(rows)
        state = own.sums(problem)
        residual = self.partial[rows, a] - u * means_of(problem, state)[:, 0]
        away = np.ones(len(rows))
        if exclusion is None:
            with np.errstate(over="ignore", invalid="ignore"):
                share = np.exp(problem.log_own - state.log_denominator)
                away -= np.where(np.abs(u) > SMALL, np.minimum(weight, 1.0) * u**2 * share, 0.0)
        if not (np.isfinite(residual[weight > 0]).all() and np.all(away[weight > 0] > ALONE)):
            return np.inf
        kept = weight > 0
        return float(weighted_sum(weight[kept], (residual[kept] / away[kept]) ** 2) / weight.sum())


def backfit(varying: VaryingSmoother, rows: NDArray[np.intp]) -> Backfitting:
    """Fit coefficients in windows of their own, found by leave-one-out errors of these rows."""
    u, y, smoother = varying.regressors, varying.outcome, varying.smoother
    recipe, place = smoother.recipe, smoother.keys.rows.array
    extent = float(np.linalg.norm(np.ptp(place, axis=0) / recipe.bandwidth))
    grid = np.geomspace(NARROWEST, max(WIDEST * extent, 1.0), GRID)
    beta, factor = np.nan_to_num(varying.training.coefficients), np.ones(u.shape[1])
    fit, before = Backfitting(varying, factor, np.zeros(u.shape)), np.zeros(len(y))
    for sweep in range(SWEEPS):
        for a in range(u.shape[1]):
            partial = fit.partial.copy()
            partial[:, a] = y - np.sum(np.delete(u * beta, a, axis=1), axis=1)
            fit, factor = replace(fit, partial=partial), fit.factor.copy()
            if sweep < SEARCHES:
                steps = grid if not sweep else factor[a] * np.geomspace(0.7, 1.0 / 0.7, 5)
                errors = [fit.error(a, each, rows) for each in steps]
                factor[a] = steps[int(np.argmin(errors))] if np.isfinite(min(errors)) else 1.0
            fit = replace(fit, factor=factor)
            own = fit.one(a, factor[a])
            problem = own.problem(smoother.training)
            beta[:, a] = np.nan_to_num(means_of(problem, own.sums(problem))[:, 0])
        now = np.sum(u * beta, axis=1)
        if sweep >= SEARCHES and np.sum((now - before) ** 2) <= TOLERANCE**2 * np.sum(y**2):
            break
        before = now
    return fit
