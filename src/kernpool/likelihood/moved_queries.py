"""Sums of the local likelihood of a Gaussian kernel and a log link, as pools at moved queries.

With offsets t in bandwidths, ``K(t) exp(b . t) = exp(|b|^2 / 2) K(t - b)``: sums of weights that a plane tilts are
those of a pool at ``q + h b`` (of gamma, whose score has 1/m, at ``q - h b``, with weights times y), and ``t = t' + b``
of the offsets t' there. So a step takes linear time on a line, with a million rows and 401 queries some .03 s, and its
states merge. Squares and products of Gaussians are Gaussians.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property, partial

import numpy as np

from kernpool._arrays import Array, Index
from kernpool.core import PoolState, Problem, centered, in_unit
from kernpool.core.local_fit import moment_matrix
from kernpool.kernels import get_kernel
from kernpool.likelihood.local_maximum import LocalMaxima, Outcome
from kernpool.pooling import choose, quotient

FEWEST_PAIRS = 1 << 22  # fewer take less time pair by pair
WIDEST = 30.0  # spreads: queries that move by slopes in wider bandwidths are so far away that offsets lose digits


def can_move(problem: Problem, outcome: Outcome, degree: int) -> bool:
    """Return whether sums at planes are pools at moved queries, where these are quicker."""
    similarity, (m, n) = problem.similarity, problem.shape
    # A unit of the own row would be a unit of other weights.
    alike = problem.key_weight is None and outcome.family.name == "poisson" and np.all(outcome.size == 1.0)
    return (
        degree == 1
        and not outcome.family.has_logit
        and similarity.kernel is get_kernel("gaussian")
        and similarity.is_uniform
        and not similarity.geometry
        and bool(np.all(similarity.bandwidth <= WIDEST * outcome.spread))
        and (outcome.is_stored or m * n >= FEWEST_PAIRS)
        and (problem.self_index is None or bool(alike))
    )


def state_of(of_y: bool, problem: Problem, outcome: Outcome, n_jobs: int | None) -> PoolState:
    """Return the kernel sums of keys by frequency and size, and of their outputs; or of the weights of tilted sums."""
    weight = None if problem.key_weight is None else problem.key_weight * problem.weight_unit
    if np.any(outcome.size != 1.0):
        weight = outcome.size if weight is None else weight * outcome.size
    if outcome.family.name == "gamma" and not of_y:
        weight = outcome.y if weight is None else weight * outcome.y
    value, center = centered(outcome.y[:, None] if of_y else np.zeros((len(problem.key), 1)), weight)
    weight, unit = (None, 1.0) if weight is None else in_unit(weight)
    problem = replace(problem, value=value, value_center=center, key_weight=weight, weight_unit=unit)
    return choose(problem, reuse=True).reduce(problem, n_jobs=n_jobs)


def tilted(problem: Problem, outcome: Outcome, beta: Array, width: float, log_unit: Array, n_jobs: int | None) -> Array:
    """Return sums ``w K^(1 / width^2) (-l'') z z'`` of keys, (m, 1 + d, 1 + d), in a log unit, at planes."""
    sign = -1.0 if outcome.family.name == "gamma" else 1.0
    tilt, similarity = sign * beta[:, 1:], problem.similarity
    moved = replace(
        problem,
        query=problem.query + similarity.bandwidth * width**2 * tilt,
        similarity=replace(similarity, bandwidth=similarity.bandwidth * width),
    )
    state, layout = outcome.over_rows(moved, partial(state_of, False), n_jobs), replace(moved.layout, values=1)
    moments = layout.moved(state.denominator, state.numerator, width * tilt)
    scale = np.append(1.0, np.full(layout.columns, width))
    matrix = np.empty((len(beta), len(scale), len(scale)))
    matrix[:, 0, 0], matrix[:, 1:, 1:] = state.denominator, moment_matrix(moments, layout, (1, 1))
    matrix[:, 0, 1:] = matrix[:, 1:, 0] = moments[:, layout.first]
    with np.errstate(over="ignore", invalid="ignore"):
        log_scale = state.shift + sign * beta[:, 0] + 0.5 * width**2 * np.sum(tilt**2, axis=1) - log_unit
        return np.asarray(matrix * (scale[:, None] * scale) * np.exp(log_scale)[:, None, None])


@dataclass(frozen=True, eq=False)
class MovedSums:
    """Sums over the keys of a problem with a Gaussian kernel, of a log link."""

    problem: Problem
    outcome: Outcome
    n_jobs: int | None

    @cached_property
    def state(self) -> PoolState:
        """Sums of outputs and offsets, which no plane changes."""
        return self.outcome.over_rows(self.problem, partial(state_of, True), self.n_jobs)

    def totals(self) -> tuple[Array, Array]:
        """Return the logarithm of the unit of each query, and the means of outputs."""
        return self.state.log_denominator, quotient(self.state)[:, 0]

    def at(self, which: Index, beta: Array) -> tuple[Array, Array]:
        """Return the scores of some queries at planes, and minus their derivatives."""
        state, layout = self.state.rows(which), replace(self.problem.layout, values=1)
        matrix = tilted(self.problem.block(which), self.outcome, beta, 1.0, state.log_denominator, self.n_jobs)
        share = quotient(state)
        if self.outcome.family.name == "gamma":
            return matrix[:, 0] - np.column_stack([np.ones(len(share)), share[:, layout.first]]), matrix
        return np.column_stack([share[:, 0], share[:, layout.cross]]) - matrix[:, 0], matrix


def squared_pulls(
    problem: Problem, outcome: Outcome, found: LocalMaxima, other: LocalMaxima | None, factor: float, n_jobs: int | None
) -> Array:
    """Return the variance of the linear predictor at dispersion one, or of twice it less that in wider windows.

    Parameters
    ----------
    problem, outcome, found
        Of the predictor.
    other : LocalMaxima or None
        Maxima in bandwidths times `factor`.
    factor : float
        Of these.
    n_jobs : int or None
        Threads.
    """

    def product(one: LocalMaxima, two: LocalMaxima, width: float) -> Array:
        matrix = tilted(problem, outcome, found.beta, width, one.log_units + two.log_units, n_jobs)
        readouts = (each.readout / np.append(1.0, np.full(d, 1.0 if each is found else factor)) for each in (one, two))
        return np.asarray(np.einsum("ma,mab,mb->m", next(readouts), matrix, next(readouts)))

    d = problem.query.shape[1]
    with np.errstate(invalid="ignore"):
        square = product(found, found, 0.5**0.5)
        if other is None:
            return square
        between, of_wide = product(found, other, (1.0 + factor**-2) ** -0.5), product(other, other, factor * 0.5**0.5)
        return np.asarray(4.0 * square - 4.0 * between + of_wide)
