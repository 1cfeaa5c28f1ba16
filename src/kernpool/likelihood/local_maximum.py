"""Maxima of the local likelihood: a plane of the linear predictor around each query, by Newton's method.

With z = (1, t) for offsets t of keys from a query, and weights w_j K_j of keys of size s_j::

    max over beta of sum_j w_j K_j s_j l(y_j, beta . z_j),    A = sum_j w_j K_j s_j (-l'') z_j z_j',    readout A^-1 e_0

and theta = beta_0 [1]_. To first order theta less its limit is the sum of ``w_j K_j s_j (readout . z_j) l'_j``.

*Sums* over keys, of scores l' and second derivatives at planes, are those of all pairs (`pairs.py`), pools at moved
queries (`moved_queries.py`), or either of them over rows that are not in memory (`stored_outcome.py`): what follows
knows no difference. They are in units of the sum of weights times sizes.

*Steps* are those of Newton. The log likelihood is concave along every direction, so its slope along a step says whether
the step went too far, and no likelihood is ever evaluated: a step is halved while that slope is more negative than half
of what it was.

*Where there is no maximum*: all outputs of a window are zero, or a plane separates those that are from others. Where
keys have less than half an event, in units of a key at the query (of trials less than half a success or failure), a
prior fills them up to half of one: pseudo-keys with the mean of all rows on either side of the query, a bandwidth, or a
standard deviation, away. Where steps do not end, or end beyond 30 from the link of that mean, a probability of 1e-13,
there is half an event of prior.

.. [1] R. Tibshirani and T. Hastie, "Local likelihood estimation", JASA 82 (1987), 559-567.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Any, Protocol, TypeVar

import numpy as np

from kernpool._arrays import Array, Flags, Index, Integers
from kernpool.bandwidth import TrainingRows
from kernpool.core import Problem
from kernpool.likelihood.families import Family
from kernpool.smoother.local_least_squares import COLLINEAR, tolerances

Sums = TypeVar("Sums")  # kernel sums, or numbers
SumsOfRows = Callable[[Problem, "Outcome", int | None], Sums]  # by the keys of a problem, on so many threads

PRIOR = 0.5  # events
TOLERANCE = 1e-10  # of the last step: the error of the maximum is its square, and that of A as large
MOST, MOST_OF_PRIOR, MOST_EVALUATIONS = 30, 100, 1000  # steps, and with those that are halved
FARTHEST = 30.0  # from the link of the mean of all rows: a probability of 1e-13 is no finding of fewer rows
LARGEST_EXPONENT = 300.0


@dataclass(frozen=True, eq=False)
class Outcome:
    """Outputs of rows: y per unit of exposure or trials, and how many of these each has.

    Parameters
    ----------
    family : Family
        Their distribution.
    y, size : ndarray of shape (n,)
        Outputs per unit, and units.
    mean : float
        Of all rows.
    spread : ndarray of shape (bandwidths,)
        Standard deviations of columns; one of those that are constant.
    ridge : float
        Penalty on half of the squares of slopes, by standard deviations, in keys at the query.
    """

    family: Family
    y: Array
    size: Array
    mean: float
    spread: Array
    ridge: float = 0.0

    @classmethod
    def of(cls, family: Family, rows: TrainingRows, ridge: float = 0.0) -> Outcome:
        """Return the outcome of rows whose values are counts (or amounts, or successes) and sizes, (n, 2)."""
        spread = np.sqrt(rows.weight @ rows.away**2 / rows.total)
        spread = np.where(spread > 0, spread, 1.0)
        found = cls(family, np.zeros(0), np.zeros(0), 0.0, spread, ridge).of_values(rows.value)
        return found.with_mean(rows.weight @ np.column_stack([found.size * found.y, found.size]))

    def of_values(self, value: Array) -> Outcome:
        """Return the outcome of other rows."""
        size = np.ascontiguousarray(value[:, 1]) if value.shape[1] > 1 else np.ones(len(value))
        return replace(self, y=value[:, 0] / size, size=size)

    def with_mean(self, totals: Array) -> Outcome:
        """Return the outcome with the mean of outputs and sizes that add up to these; raise if it shows nothing."""
        total, size = totals
        if not 0.0 < total < (size if self.family.has_logit else np.inf):
            what = "one class" if self.family.has_logit else "no counts"
            kind = "one, or all trials," if total > 0.0 else "zero"
            raise ValueError(f"y has {what}: it is {kind} in all rows, which shows nothing; add rows of others")
        return replace(self, mean=float(total / size))

    is_stored = False

    def over_rows(self, problem: Problem, sums: SumsOfRows[Sums], n_jobs: int | None) -> Sums:
        """Return sums over all rows: the keys of the problem, unless rows are not in memory."""
        return sums(problem, self, n_jobs)

    def prior(self, total: Array, units: Array) -> tuple[Array, Array]:
        """Return the sizes of the prior, and of a whole one, for windows with a total of outputs in so many units.

        Trials, or the exposure in which so many counts are expected.
        """
        one = 1.0 / self.mean if self.family.name == "poisson" else 1.0
        events = np.minimum(total, units - total) if self.family.has_logit else total
        few = np.zeros_like(total) if self.family.name == "gamma" else np.maximum(PRIOR - events, 0.0)
        return one * few, np.full_like(total, one * PRIOR)


@dataclass(frozen=True, eq=False)
class LocalMaxima:
    """Local planes of the linear predictor at m queries.

    Parameters
    ----------
    beta, readout : ndarray of shape (m, 1 + p)
        Coefficients of offsets in bandwidths, along tangents where columns are closed, and A^-1 e_0, of weights times
        sizes that add up to one; NaN in empty windows.
    rank : ndarray of int, shape (m,)
        How many coefficients the keys determine.
    by_prior : ndarray of bool, shape (m,)
        Where a prior fills a window up.
    log_units : ndarray of shape (m,)
        Logarithms of the sums of weights times sizes, minus infinity in empty windows.
    variance : ndarray of shape (m,)
        Part of prior and penalty in the variance of the linear predictor.
    by_moves : ndarray of bool, shape (m,)
        Where they are found by pools at moved queries.
    """

    beta: Array
    readout: Array
    rank: Integers
    by_prior: Flags
    log_units: Array
    variance: Array
    by_moves: Flags

    @classmethod
    def empty(cls, m: int, p: int) -> LocalMaxima:
        """Return so many maxima of empty windows."""
        beta, readout = np.full((2, m, 1 + p), np.nan)
        by_prior, by_moves = np.zeros((2, m), dtype=np.bool_)
        return cls(beta, readout, np.zeros(m, dtype=np.int64), by_prior, np.full(m, -np.inf), np.zeros(m), by_moves)

    @property
    def theta(self) -> Array:
        """Linear predictors at the queries."""
        return self.beta[:, 0]

    @property
    def occupied(self) -> Flags:
        """Which windows have a key."""
        return self.log_units > -np.inf

    def own_units(self, problem: Problem) -> Array:
        """Return the weight of a key at each query, in the sum of weights times sizes."""
        with np.errstate(invalid="ignore"):
            return np.exp(np.minimum(problem.log_own - self.log_units, LARGEST_EXPONENT))

    def at(self, queries: Index) -> LocalMaxima:
        """Return the maxima of some queries."""
        return LocalMaxima(*(getattr(self, each.name)[queries] for each in fields(self)))

    def put(self, queries: Any, other: LocalMaxima) -> None:
        """Write the maxima of some queries."""
        for each in fields(self):
            getattr(self, each.name)[queries] = getattr(other, each.name)


class ScoreSums(Protocol):
    """Sums over the keys of queries, in units of their weights times sizes."""

    def totals(self) -> tuple[Array, Array]:
        """Return the logarithm of the unit of each query, and the means of outputs."""

    def at(self, which: Index, beta: Array) -> tuple[Array, Array]:
        """Return the scores (k, 1 + p) of some queries at planes, and minus their derivatives (k, 1 + p, 1 + p)."""


def prior_sums(outcome: Outcome, spread: Array, amount: Array, ridge: Array, beta: Array) -> tuple[Array, Array]:
    """Return the scores of pseudo-keys and of a penalty on slopes at planes, and minus their derivatives.

    Parameters
    ----------
    outcome : Outcome
        Its mean is that of the pseudo-keys.
    spread : ndarray of shape (m, p)
        Standard deviations of columns, in bandwidths.
    amount : ndarray of shape (m,)
        Weight of the pseudo-keys: two on either side of the query along each column, or one at it.
    ridge : ndarray of shape (m,)
        Penalty on half of the squares of slopes per standard deviation.
    beta : ndarray of shape (m, 1 + p)
        Planes.
    """
    penalty, p = ridge[:, None] * spread**2, spread.shape[1]
    score, matrix = np.zeros(beta.shape), np.zeros((*beta.shape, 1 + p))
    score[:, 1:], matrix[:, range(1, 1 + p), range(1, 1 + p)] = -penalty * beta[:, 1:], penalty
    few = np.flatnonzero(amount > 0)
    if few.size:
        reach = np.minimum(spread[few], 1.0)[:, None] * np.eye(p)
        z = np.ones((len(few), max(2 * p, 1), 1 + p))
        z[:, : 2 * p, 1:] = np.concatenate([reach, -reach], axis=1)
        mean, along = np.array(outcome.mean), np.einsum("mka,ma->mk", z, beta[few])
        weight = amount[few, None] / z.shape[1]
        first, second = (weight * each for each in outcome.family.derivatives(mean, along))
        score[few] += np.einsum("mk,mka->ma", first, z)
        matrix[few] += np.einsum("mk,mka,mkb->mab", second, z, z)
    return score, matrix


def tangents(problem: Problem) -> list[int]:
    """Return how many directions a plane has in the columns of each bandwidth."""
    return [max(size - 1, 1) for size in problem.similarity.geometry or (1,) * problem.key.shape[1]]


def find_maxima(
    sums: ScoreSums,
    problem: Problem,
    outcome: Outcome,
    degree: int,
    tolerance: float = TOLERANCE,
    start: Array | None = None,
    *,
    moves: bool = False,
) -> LocalMaxima:
    """Return the local maxima at the queries of a problem, by sums over its keys; from planes to start from, if known.

    A tolerance beyond the smallest is for searches: second derivatives are those before the last step. Sums at moved
    queries are tried once, and say where steps end.
    """
    family = outcome.family
    log_units, mean = sums.totals()
    found = LocalMaxima.empty(len(mean), degree * sum(tangents(problem)))
    found.log_units[:] = log_units
    geometry, widths = problem.similarity.geometry, problem.similarity.widths()
    widths = widths[..., geometry.starts] if geometry else widths
    spread = np.repeat(outcome.spread / widths, tangents(problem), axis=-1)[..., : found.beta.shape[1] - 1]
    spread = np.broadcast_to(spread, found.beta[:, 1:].shape)

    def prior_at(which: Index, beta: Array) -> tuple[Array, Array]:
        return prior_sums(outcome, spread[which], amount[which], own[which] * outcome.ridge, beta)

    def at(which: Index, beta: Array) -> tuple[Array, Array]:
        (score, matrix), (own_score, own_matrix) = sums.at(which, beta), prior_at(which, beta)
        return score + own_score, matrix + own_matrix

    with np.errstate(all="ignore"):  # steps that go too far are halved
        own = found.own_units(problem)
        amount, whole = (own * each for each in outcome.prior(mean / own, 1.0 / own))
        left = np.flatnonzero(found.occupied)
        tries = [(None, False), (None, True)] if start is None else [(start, False), (None, False), (None, True)]
        for begin, by_prior in tries[:1] if moves else tries:
            if by_prior:
                left = left[amount[left] < whole[left]]
                amount[left] = whole[left]
            if not left.size:
                break
            beta = np.zeros((len(left), found.beta.shape[1]))
            beta[:, 0] = family.link((mean[left] + amount[left] * outcome.mean) / (1.0 + amount[left]))
            if begin is not None:
                beta = np.where(np.isfinite(begin[left]).all(axis=1, keepdims=True), begin[left], beta)
            ended = climb(at, left, beta, found, np.where(amount[left] > 0, MOST_OF_PRIOR, MOST), tolerance)
            away = np.abs(found.theta[left] - family.link(np.array(outcome.mean)))
            left = left[~(ended & ((away <= FARTHEST) | (family.name == "gamma")))]
        found.by_prior[:], found.by_moves[:] = found.occupied & (amount > 0), found.occupied & moves
        found.by_moves[left] = False
        matrix = prior_at(np.arange(len(own)), found.beta)[1]
        found.variance[:] = own * np.einsum("ma,mab,mb->m", found.readout, matrix, found.readout)
    return found


def climb(
    at: Callable[[Index, Array], tuple[Array, Array]],
    which: Index,
    beta: Array,
    found: LocalMaxima,
    most: Index,
    tolerance: float,
) -> Flags:
    """Write the local maxima of some queries by Newton's method, and return where its steps end.

    Parameters
    ----------
    at : callable
        Scores of queries at planes, and minus their derivatives.
    which : ndarray of int, shape (k,)
        Which queries.
    beta : ndarray of shape (k, 1 + p)
        Planes to begin with; overwritten.
    found : LocalMaxima
        Of all queries.
    most : ndarray of int, shape (k,)
        Steps.
    tolerance : float
        As of `find_maxima`.
    """
    exact = tolerance <= TOLERANCE
    step, slope, ended = np.zeros(beta.shape), np.full(len(which), np.inf), np.zeros(len(which), dtype=np.bool_)
    moving, (taken, rank) = np.arange(len(which)), np.zeros((2, len(which)), dtype=np.int64)
    for _ in range(MOST_EVALUATIONS):
        score, matrix = at(which[moving], beta[moving])
        along = np.sum(score * step[moving], axis=1)
        # A slope that grows along the step, of a concave function, is that of sums which overflow.
        far = ~ended[moving] & ~((along >= -0.5 * slope[moving]) & (along <= 2.0 * slope[moving]))
        back, on = moving[far], moving[~far]
        step[back] *= 0.5
        slope[back] *= 0.5
        beta[back] -= step[back]
        score, kept, inverse = score[~far], *invert(matrix[~far])
        found.readout[which[on]], found.rank[which[on]] = inverse[:, 0], kept.sum(axis=1)
        taken[on] += 1
        rank[on] = np.maximum(rank[on], kept.sum(axis=1))
        step[on] = np.where(ended[on, None], 0.0, np.einsum("mab,mb->ma", inverse, np.where(kept, score, 0.0)))
        slope[on] = np.sum(score * step[on], axis=1)
        length, scale = np.abs(step[on]).max(axis=1), np.maximum(np.abs(beta[on]).max(axis=1), 1.0)
        beta[on] += step[on]
        done, ended[on] = ended[on] | ~np.isfinite(length), length <= tolerance * scale
        done |= ended[on] & (not exact)
        moving = np.concatenate([back, on[~done]])
        moving = moving[taken[moving] < most[moving]]
        if not moving.size:
            break
    found.beta[which] = beta
    return np.asarray(ended & (found.rank[which] == rank))  # a direction that is lost on the way has no maximum


def invert(matrix: Array) -> tuple[Flags, Array]:
    """Return which directions of symmetric matrices (m, q, q) those before do not explain, and inverses in these."""
    size = np.sqrt(np.diagonal(matrix, axis1=1, axis2=2))
    kept = tolerances(matrix) > COLLINEAR
    both, q = kept[:, :, None] & kept[:, None], matrix.shape[1]
    unit = size[:, :, None] * size[:, None]
    inverse = np.linalg.inv(np.where(both, matrix / unit, np.eye(q)))
    return kept, np.where(both, inverse / unit, 0.0)
