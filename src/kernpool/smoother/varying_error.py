"""Squared errors of coefficients that vary as the criterion of a bandwidth search, with their derivatives.

With c = A^-1 u of a row, its fit u' A^-1 b moves with the means of products by ::

    d(u' beta) = c' (db - dA beta),        d log H = -d log D - c' dA c / (u' c)

so that one pullback of products makes the slopes of all residuals, and another those of the leverages.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any

import numpy as np

from kernpool._arrays import Array
from kernpool.bandwidth.search.objective import Evaluation, Objective
from kernpool.core import PoolState, Problem
from kernpool.smoother.local_least_squares import COLLINEAR, means_of, solve_means

SURE = 2.0 * COLLINEAR  # so that rounding leaves what is found as it is


@dataclass(eq=False)
class VaryingError(Objective):
    """Squared errors of training rows, whose values are the products of p regressors and an output."""

    p: int = field(kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        first, second = np.triu_indices(self.p)
        self.pairs = first[1:], second[1:]
        value = self.rows.value if self.queries is None else self.rows.value[self.queries]
        self.regressors = np.concatenate([np.ones((len(value), 1)), value[:, : self.p - 1]], axis=1)
        self.outcome = value[:, -self.p]
        self.center = value[0] - self.judged.value[0]
        # Rows without which all others do not determine coefficients, such as the only one of a level, have no say.
        self.alone_in_all = ~solve_means(self._mean_of_others() + self.center, self.p)[2]

    def ratios(self, bandwidth: Array) -> list[Array]:
        """Return bandwidths to compare in windows to the nearest rows: those found, and equal ones, as of a place."""
        varies = np.isfinite(bandwidth)
        if varies.sum() < 2:
            return [bandwidth]
        return [bandwidth, np.where(varies, np.exp(np.mean(np.log(bandwidth[varies]))), np.inf)]

    def judge(self, theta: Array, problem: Problem, state: PoolState) -> Evaluation:
        """Evaluate the criterion from kernel sums of products, and record it in `tried`."""
        u, mean = self.regressors, means_of(problem, state) + self.center
        _, solve, determined = solve_means(mean, self.p, SURE)
        pull = np.where(determined[:, None], np.einsum("nab,nb->na", solve, u), 0.0)
        found = np.where(determined[:, None], np.einsum("nab,nb->na", solve, mean[:, -self.p :]), 0.0)
        residual = np.where(determined, self.outcome - np.einsum("na,na->n", u, found), 0.0)[:, None] * self._share
        hat = np.empty(0)
        if self.options.criterion.log_penalty is not None:
            hat = np.exp(problem.log_own - state.log_denominator) * np.einsum("na,na->n", u, pull)
        # Windows to the nearest rows are of one row less where a row is in its own.
        cost = 0.0 if np.all(determined | (self.alone_in_all & (len(theta) > 0))) else math.inf
        fit: Any = SimpleNamespace(coefficients=found, pull=pull, occupied=determined)
        return self.record(theta, residual, problem, state, fit, hat, cost=cost)

    def jacobian(self, at: Evaluation) -> Array:
        """Return derivatives of the residuals with respect to all parameters, of shape (n, p)."""
        fit: Any = at.fit
        pull, beta, (first, second) = fit.pull, fit.coefficients, self.pairs
        of_pairs = pull[:, first] * beta[:, second] + (first != second) * pull[:, second] * beta[:, first]
        moved = self.pullback(at, np.concatenate([-of_pairs, pull], axis=1))[:, None]
        if not at.hat.size:
            return self.differentiate(at, moved, None)
        share = pull / np.maximum(np.einsum("na,na->n", self.regressors, pull), 1.0)[:, None]
        of_pairs = np.where(first == second, -1.0, -2.0) * pull[:, first] * share[:, second]
        cotangent = np.concatenate([of_pairs, 0.0 * pull, np.ones((len(pull), 1))], axis=1)
        # The mean of one more value, of zeros whose sum is said to be the denominator D, has the slopes of -log D.
        problem, state = at.problem, at.state
        value = np.append(problem.value, np.zeros((len(problem.value), 1)), axis=1)
        problem = replace(problem, value=value, value_center=np.zeros(value.shape[1]))
        numerator = np.append(state.numerator, state.denominator[:, None], axis=1)
        at_hat = replace(at, problem=problem, state=replace(state, numerator=numerator))
        return self.differentiate(at, moved, self.pullback(at_hat, cotangent))
