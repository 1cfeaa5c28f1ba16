r"""Local least squares: coefficients of regressors that vary with the place, from one pool of products of regressors.

With pooling weights :math:`\alpha_j = w_j K((q - z_j) / h) / D`, regressors u, the first of them one, and outputs y::

    A(q) = sum_j alpha_j u_j u_j',    beta(q) = A(q)^-1 sum_j alpha_j u_j y_j

so that values of a local constant smoother are products of regressors. Regressors have mean zero and unit spread, and
outputs mean zero, which keeps the digits of A. One unit of row i has the leverage H_ii = alpha_i / w_i u_i' A^-1 u_i,
and in windows that stay without it the residual e_i / (1 - w H_ii) without w = min(w_i, 1) units of it: exactly that of
a fit to the other rows. Linear weights of y in coefficients are alpha_j A^-1 u_j, so that noise of variance one gives
the coefficients the covariance::

    A^-1 [sum_j alpha_j^2 / w_j u_j u_j'] A^-1                                                                      (1)

a pool of the same products with the square of the kernel.

Coefficients have the bias of local constants: of first order at the edge, and wherever rows happen to lie on one side.
Those of planes, with the regressors u and u times each coordinate of the place, have a bias of second order. Of samples
of 400 rows at bandwidths found by leave-one-out 95 percent intervals around them cover 95 to 96 in a hundred, 93 where
one coefficient is much rougher than others; around local constants 82 to 90, and 92 to 93 around
``2 beta_h - beta_(sqrt(2) h)``, which is wider. On circles and globes planes in all coordinates, which are partly
quadratic, cover 95 where planes along tangents, whose errors are .77 times as wide, cover 88 to 90.

A. S. Fotheringham, C. Brunsdon and M. Charlton, "Geographically Weighted Regression", Wiley (2002).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from kernpool._arrays import Array, Flags
from kernpool.core import PoolState, Problem
from kernpool.execution import cut, weighted_sum
from kernpool.kernels import square
from kernpool.smoother.linear_smoother import EvaluationPoints, Smoother
from kernpool.smoother.quadratic_forms import LinearWeights, product_problem

# Least share of a regressor's local square that those before it do not explain: of less, half of the digits are lost.
COLLINEAR = 1e-10
ROUNDING = 1e-14  # of shares
FLAT, COPY = 0.1, 1e-6  # least spread of a direction, in that of the farthest: of a circle or globe, of other columns
UNITS_AT_ONCE = 16
ALONE = 1e-8  # one minus leverage of a row without which there are no coefficients


def products_of(regressors: Array, outcome: Array) -> Array:
    """Return the products whose means are A and the right side: of pairs but the first, and with the outcome."""
    first, second = np.triu_indices(regressors.shape[1])
    pairs = regressors[:, first[1:]] * regressors[:, second[1:]]
    return np.concatenate([pairs, regressors * outcome[:, None]], axis=1)


def gram_of(mean: Array, p: int) -> Array:
    """Return the matrices A of p regressors at m points, (m, p, p), from local means of the products (m, products)."""
    first, second = np.triu_indices(p)
    gram = np.ones((len(mean), p, p))
    gram[:, first[1:], second[1:]] = gram[:, second[1:], first[1:]] = mean[:, : len(first) - 1]
    return gram


def solve_means(mean: Array, p: int, least: float = COLLINEAR) -> tuple[Array, Array, Flags]:
    """Return the matrices A of means, their inverses, identities where A is singular, and where it is not."""
    gram = np.where(np.isfinite(mean[:, :1, None]), gram_of(mean, p), 0.0)
    determined = np.all(tolerances(gram) > least, axis=1)
    return gram, np.linalg.inv(np.where(determined[:, None, None], gram, np.eye(p))), determined


def tolerances(gram: Array) -> Array:
    """Return the share of each regressor's square that those before it do not explain, (m, p), by Cholesky factors."""
    size = np.sqrt(np.diagonal(gram, axis1=1, axis2=2))
    unit = np.ascontiguousarray((gram / np.maximum(size[:, :, None] * size[:, None], 1e-300)).transpose(1, 2, 0))
    p = len(unit)
    factor, left, least = np.zeros_like(unit), np.empty((len(size), p)), np.ones(len(size))
    for a in range(p):
        for b in range(a):
            factor[a, b] = (unit[a, b] - np.sum(factor[a, :b] * factor[b, :b], axis=0)) / factor[b, b]
        share = unit[a, a] - np.sum(factor[a, :a] ** 2, axis=0)
        left[:, a] = np.where(share * least > ROUNDING, share, 0.0)  # which small shares before make larger
        least = np.minimum(least, np.maximum(share, COLLINEAR))
        factor[a, a] = np.sqrt(np.maximum(left[:, a], COLLINEAR))
    return left


@dataclass(frozen=True, eq=False)
class VaryingFit:
    """Coefficients at evaluation points, with what they are made of.

    Parameters
    ----------
    problem : Problem
        Of the points, with products as values.
    state : PoolState
        Its sums.
    gram : ndarray of shape (m, p, p)
        The matrices A.
    solve : ndarray of shape (m, k, p)
        Matrices that make coefficients of means of regressors times outputs: inverses of A, the first k rows of planes;
        of the identity where windows do not determine the coefficients.
    coefficients : ndarray of shape (m, k)
        NaN where windows do not determine them.
    determined : ndarray of bool, shape (m,)
        Where they do.
    """

    problem: Problem
    state: PoolState
    gram: Array
    solve: Array
    coefficients: Array
    determined: Flags


@dataclass(frozen=True, eq=False)
class VaryingTraining:
    """Coefficients at the training rows, and fits, residuals and leverages of a unit of each, of shape (n,).

    Residuals and leverages are zero at rows of weight zero, and fits where windows do not determine coefficients.
    """

    coefficients: Array
    determined: Flags
    fitted: Array
    residual: Array
    leverage: Array
    trace: float


@dataclass(frozen=True, eq=False)
class VaryingSmoother:
    """Local constant smoother of products of regressors, and what coefficients are made of.

    Parameters
    ----------
    smoother : Smoother
        Rows and windows; its values are those of `products_of`.
    regressors : ndarray of shape (n, p)
        The first is one; of planes also times each coordinate.
    outcome : ndarray of shape (n,)
        Outputs.
    origin, basis : ndarray of shape (d,) and (d, k), or None
        Of planes: coordinates of a place are ``(place - origin) @ basis``.
    """

    smoother: Smoother
    regressors: Array
    outcome: Array
    origin: Array | None = None
    basis: Array | None = None

    def planes(self) -> VaryingSmoother:
        """Return the smoother of planes of coefficients in the columns of the places."""
        smoother = self.smoother
        place = smoother.keys.rows.array[smoother.weight > 0]
        origin, size = place.mean(axis=0), np.array(smoother.recipe.geometry or (1,) * place.shape[1])
        block = np.repeat(np.where(size > 1, np.arange(len(size)), -1), size)  # other columns are one block
        basis = []
        for number in np.unique(block):
            own = np.flatnonzero(block == number)
            unit = np.ones(len(own)) if number >= 0 else place[:, own].std(axis=0)
            unit = np.where(unit > 0, unit, 1.0)
            _, spread, direction = np.linalg.svd((place[:, own] - origin[own]) / unit, full_matrices=False)
            kept = spread > max((FLAT if number >= 0 else COPY) * spread[0], 0.0)
            columns = np.zeros((place.shape[1], int(kept.sum())))
            columns[own] = direction[kept].T / unit[:, None] * (math.sqrt(len(place)) / spread[kept])
            basis.append(columns)
        along = np.concatenate(basis, axis=1)
        u, at = self.regressors, (smoother.keys.rows.array - origin) @ along
        u = np.concatenate([u, *(u * column[:, None] for column in at.T)], axis=1)
        smoother = smoother.with_values(products_of(u, self.outcome))
        return VaryingSmoother(smoother, u, self.outcome, origin, along)

    def fit(self, problem: Problem) -> VaryingFit:
        """Compute the coefficients at the queries of a problem of the smoother."""
        state = self.smoother.sums(problem)
        p, mean = self.regressors.shape[1], means_of(problem, state)
        gram, solve, determined = solve_means(mean, p)
        if self.basis is not None and self.origin is not None:
            at = (problem.query - self.origin) @ self.basis
            at = np.concatenate([np.ones((len(at), 1)), at], axis=1)
            one = np.eye(p // at.shape[1])
            solve = np.einsum("mc,ab->macb", at, one).reshape(len(at), len(one), p) @ solve
        found = np.where(determined[:, None], np.einsum("mab,mb->ma", solve, mean[:, -p:]), np.nan)
        return VaryingFit(problem, state, gram, solve, found, determined)

    def at(self, places: EvaluationPoints) -> VaryingFit:
        """Compute the coefficients at evaluation points."""
        return self.fit(self.smoother.problem(places))

    @cached_property
    def training(self) -> VaryingTraining:
        """Coefficients, fits and leverages of the training rows, in a pass."""
        whole, u = self.at(self.smoother.training), self.regressors
        with np.errstate(over="ignore"):
            share = np.exp(whole.problem.log_own - whole.state.log_denominator)
        return self.training_with(whole.coefficients, share * np.einsum("na,nab,nb->n", u, whole.solve, u))

    def training_with(self, coefficients: Array, leverage: Array) -> VaryingTraining:
        """Return fits of the training rows with coefficients, NaN where windows do not determine them."""
        weight, determined = self.smoother.weight, np.asarray(np.isfinite(coefficients).all(axis=1))
        fitted = np.where(determined, np.einsum("na,na->n", self.regressors, coefficients), 0.0)
        residual = np.where(weight > 0, self.outcome - fitted, 0.0)
        leverage = np.where(determined & (weight > 0), leverage, 0.0)
        trace = float(weighted_sum(weight, leverage))
        return VaryingTraining(coefficients, determined, fitted, residual, leverage, trace)

    @cached_property
    def left_out(self) -> tuple[Array, Flags]:
        """Fits (n,) without each row and what is left out with it, and whether the others determine coefficients.

        The mean where they do not. In windows of one width, without others left out, they follow from fits with it: a
        pass takes six times as long as that of these.
        """
        if self.smoother.window == "fixed" and self.smoother.exclusion is None:
            training = self.training
            away = 1.0 - np.minimum(self.smoother.weight, 1.0) * training.leverage
            known = training.determined & (away > ALONE)
            found = self.outcome - (self.outcome - training.fitted) / np.where(known, away, 1.0)
        else:
            others = self.fit(self.smoother.left_out_problem(self.smoother.exclusion))
            known, found = others.determined, np.einsum("na,na->n", self.regressors, others.coefficients)
        return np.where(known, found, 0.0), known

    @property
    def residual(self) -> Array:
        """Outputs less fits without each row and what is left out with it; zero for rows of weight zero."""
        return np.where(self.smoother.weight > 0, self.outcome - self.left_out[0], 0.0)

    def norms(self, fit: VaryingFit) -> Array:
        """Return the covariances (1) of coefficients under noise of variance one, of shape (m, k, k)."""
        m, keys, problem = len(fit.gram), self.smoother.keys, fit.problem
        weights = LinearWeights(problem, 1.0, fit.state.log_denominator, np.ones(m), np.zeros((m, 0)))
        term = square(problem.similarity.kernel)
        squared = replace(product_problem(weights, weights, term, None), value=keys.value, value_center=keys.center)
        state, kernel = self.smoother.sums(squared), squared.similarity.kernel
        columns = squared.key.shape[1] if kernel.composition == "product" else 1
        with np.errstate(invalid="ignore"):
            unit = np.exp(state.log_denominator - 2.0 * weights.log_mass + columns * math.log(term.factor))
        middle = unit[:, None, None] * gram_of(means_of(squared, state), self.regressors.shape[1])
        return _sandwich(fit, middle)

    def covariance_of_units(self, fit: VaryingFit, residual: Array) -> Array:
        """Return covariances of coefficients, (m, k, k), where rows of a unit share noise."""
        number = np.unique(np.asarray(self.smoother.noise_units.code), return_inverse=True)[1]
        score = self.regressors * residual[:, None]
        (m, p), middle = fit.gram.shape[:2], np.zeros(fit.gram.shape)
        for some in cut(int(number.max()) + 1, UNITS_AT_ONCE):
            own = number[:, None] == np.arange(some.start, some.stop)
            smoother = self.smoother.with_values((own[:, :, None] * score[:, None, :]).reshape(len(score), -1))
            problem = smoother.with_own_values(fit.problem)
            mean = np.nan_to_num(means_of(problem, smoother.sums(problem))).reshape(m, -1, p)
            middle += mean.transpose(0, 2, 1) @ mean
        return _sandwich(fit, middle)


def means_of(problem: Problem, state: PoolState) -> Array:
    """Return the means of the values of a problem, NaN in empty windows."""
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(state.numerator / state.denominator[:, None] + problem.value_center)


def _sandwich(fit: VaryingFit, middle: Array) -> Array:
    """Return covariances of coefficients from those of the means of regressors times noise; NaN if undetermined."""
    found = fit.solve @ middle @ fit.solve.transpose(0, 2, 1)
    return np.where(fit.determined[:, None, None], found, np.nan)
