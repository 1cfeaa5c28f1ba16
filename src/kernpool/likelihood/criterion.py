"""Leave-one-out deviance as the criterion of a bandwidth search, with its derivatives.

Each row is fitted without itself, exactly. With r_i^2 the deviance of row i at the linear predictor of that fit, the
criterion is a mean of squares as any other, of deviance residuals, whose derivatives are those of the predictors::

    d theta_i / d log h_a = sum_j w_j s_j (dK_ij / d log h_a) (readout_i . z_ij) l'_ij
    dr_i / d theta_i = -s_i l'_i / r_i

by the implicit function theorem: the formula of local least squares with scores for residuals.

``"regularised"`` adds the relevance of each column, ``spread_a / h_a``, and of each category, over the number of rows
(of gamma times the dispersion at a rule of thumb): the log density of a prior, as that of
`kernpool.bandwidth.search.log_loss` with half of its weight, since a deviance is twice a log likelihood. Without it the
bandwidths of a third of samples of 200 rows of a line follow noise. Of a logistic and a Poisson sine and line errors of
the linear predictor are .160 and .132, .0185 and .0070 without it, .162 and .071, .0171 and .0049 with it, and .229 and
.055, .0191 and .0041 with four times as much. Relevances are squares of residuals of their own, so that steps are those
of least squares.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from kernpool._arrays import Array
from kernpool.bandwidth.criteria import lies_within_gap
from kernpool.bandwidth.rules_of_thumb import rate_factor
from kernpool.bandwidth.search.objective import STEEPEST, Evaluation, Objective, cost_of_empty
from kernpool.core import Problem
from kernpool.likelihood.families import Family
from kernpool.likelihood.local_maximum import LocalMaxima, Outcome
from kernpool.likelihood.pairs import PairBlock, maximise, over_pairs, planes_at

FLAT = 1e-6  # deviance residuals of a unit: below, they are linear in the predictor
NEAR = 0.5  # log bandwidths
TOLERANCE = 1e-6  # of the last step: the error of a maximum is its square


def deviance_residuals(outcome: Outcome, theta: Array, rows: Any = slice(None)) -> Array:
    """Return signed roots of the deviances of rows."""
    y, size = outcome.y[rows], outcome.size[rows]
    root = np.sqrt(size * outcome.family.deviance(y, theta))
    return np.asarray(np.where(y >= outcome.family.mean(theta), root, -root))


def filled(outcome: Outcome, found: LocalMaxima) -> Array:
    """Return linear predictors, of empty windows that of the mean of all rows."""
    return np.where(found.occupied, found.theta, outcome.family.link(np.array(outcome.mean)))


@dataclass(eq=False)
class Deviance(Objective):
    """Leave-one-out deviance of training rows, whose values are counts (amounts, successes) and sizes."""

    of_deviance = True
    family: Family = field(kw_only=True)
    ridge_of_slopes: float = field(kw_only=True, default=0.0)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.outcome = Outcome.of(self.family, self.rows, self.ridge_of_slopes)
        self.which: Any = slice(None) if self.queries is None else self.queries
        self.log_spread = np.log(self.outcome.spread)
        self.penalty = None  # of squared errors

    def value_in(self, problem: Problem) -> float:
        """Return the mean deviance of the rows that are queries of a problem, in its windows."""
        found = maximise(problem, self.outcome, self.options.degree, tolerance=TOLERANCE, n_jobs=self.options.n_jobs)
        residual = deviance_residuals(self.outcome, filled(self.outcome, found), self.which)
        return float(self._share[:, 0] ** 2 @ residual**2)

    def evaluate(self, theta: Array) -> Evaluation:
        """Evaluate the criterion at log bandwidths and smoothings, and record it in `tried`."""
        problem, outcome = self.at(theta), self.outcome
        found = self._maxima(theta, problem)
        predictor, size = filled(outcome, found), outcome.size[self.which]
        residual = deviance_residuals(outcome, predictor, self.which)
        score, curvature = outcome.family.derivatives(outcome.y[self.which], predictor)
        flat = np.abs(residual) <= FLAT * np.sqrt(size)
        with np.errstate(invalid="ignore"):  # where amounts differ by a hundred orders of magnitude
            by_fit = np.where(flat, np.sqrt(size * curvature), size * score / np.where(flat, 1.0, residual))
        empty = ~found.occupied
        cost = cost_of_empty(empty, self.judged.weight) if empty.any() else 0.0
        if problem.excluded is not None and lies_within_gap(problem):
            cost = math.inf
        every = np.append(residual * self._share[:, 0], self._relevance(theta)[0])
        nothing: Any = None
        fit: Any = found
        at = self.record(theta, every[:, None], problem, nothing, fit, np.empty(0), by_fit[:, None], cost=cost)
        self.tried[-1] = self.tried[-1]._replace(error=np.array([float(self._share[:, 0] ** 2 @ residual**2)]))
        return at

    def _maxima(self, theta: Array, problem: Problem) -> LocalMaxima:
        options = self.options
        found = maximise(
            problem, self.outcome, options.degree, tolerance=TOLERANCE, start=self._start(theta), n_jobs=options.n_jobs,
            progress=options.progress,
        )  # fmt: skip
        self._last = theta, found.beta
        return found

    @cached_property
    def dispersion(self) -> float:
        """Dispersion of gamma at a rule of thumb; one for others."""
        if self.family.name != "gamma":
            return 1.0
        theta = self.log_spread + np.log(rate_factor(1, len(self.rows.X), self.columns, self.options.degree))
        theta = np.append(np.clip(theta, self.box[0][: self.columns], None), 0.5 * self.box[1][self.columns :])
        mean = self.family.mean(filled(self.outcome, self._maxima(theta, self.at(theta))))
        share = self._share[:, 0] ** 2
        return float(share @ (self.outcome.y[self.which] / mean - 1.0) ** 2)

    def _relevance(self, theta: Array) -> tuple[Array, Array]:
        """Return roots of the penalties of columns and categories, and their derivatives by the own parameters."""
        if not self.options.criterion.regular:
            return np.zeros(0), np.zeros(0)
        d, largest = self.columns, self.categories.largest
        unit = self.dispersion / self.rows.number
        root = np.sqrt(unit * np.exp(self.log_spread - theta[:d])) * (self.rows.extent > 0)
        share = np.divide(theta[d:], largest, where=largest > 0, out=np.ones_like(largest))
        of_levels = np.sqrt(unit * np.maximum(1.0 - share, 0.0))
        slope = np.divide(-0.5 * unit, largest * of_levels, where=of_levels > 0, out=np.zeros_like(of_levels))
        return np.append(root, of_levels), np.append(-0.5 * root, slope)

    def _start(self, theta: Array) -> Array | None:
        """Return the planes of the evaluation before, if bandwidths are near: steps from there are fewer by a third."""
        before = getattr(self, "_last", None)
        if before is None or self.rows.geometry:
            return None
        change = theta[: self.columns] - before[0][: self.columns]
        if np.abs(change).max() > NEAR:
            return None
        return np.asarray(before[1] * np.append(1.0, np.exp(change))[: before[1].shape[1]])

    def jacobian(self, at: Evaluation) -> Array:
        """Return derivatives of the residuals with respect to all parameters, of shape (n, p)."""
        found: Any = at.fit
        moved = np.zeros((len(found.theta), self.parameters))

        def work(block: PairBlock) -> None:
            (pull, score, _), problem, factors = planes_at(block, found), block.problem, block.problem.factors
            pull *= score
            slopes = problem.similarity.logit_slopes(problem.query, problem.key)
            by_column = np.stack([-np.einsum("mn,mn,mn->m", pull, slope, u) for u, slope in slopes], axis=1)
            levels = () if factors is None else zip(factors.pair_slopes(), factors.logarithms(), strict=True)
            by_level = [np.einsum("mn,mn,mn->m", pull, slope, np.exp(-log)) for slope, log in levels]
            moved[block.queries] = np.column_stack([self.rows.geometry.sums(by_column), *by_level])

        over_pairs(at.problem, self.outcome, self.options.degree, work, self.options.n_jobs)
        moved[~found.occupied] = 0.0
        steep = np.clip(np.nan_to_num(moved), -STEEPEST, STEEPEST)
        slopes = self._relevance(at.theta)[1]
        of_relevance = np.diag(slopes) if slopes.size else np.zeros((0, self.parameters))
        return np.asarray(np.vstack([-self._share * at.by_fit * steep, of_relevance]) * at.root)
