"""Maxima of the local likelihood: a plane of the linear predictor around each query, by Newton's method.

With z = (1, t) for offsets t of keys from a query, and weights w_j K_j of keys of size s_j::

    max over beta of sum_j w_j K_j s_j l(y_j, beta . z_j),    A = sum_j w_j K_j s_j (-l'') z_j z_j',    readout A^-1 e_0

and theta = beta_0 [1]_. To first order theta less its limit is the sum of ``w_j K_j s_j (readout . z_j) l'_j``.

*Weights of pairs*: those of a block of queries once, by the reference algorithm, whatever windows, categories and
exclusions the problem has, and then compiled steps over keys of positive weight (`loops/newton.py`). A Gaussian with a
log link has a quicker way for many keys (`moved_queries.py`).

*Where there is no maximum*: all outputs of a window are zero, or a plane separates those that are from others. Where
keys have less than half an event, in units of a key at the query (of trials less than half a success or failure), a
prior fills them up to half of one: pseudo-keys with the mean of all rows on either side of the query, a bandwidth, or a
standard deviation, away. Where steps do not end, or end beyond 30 from the link of that mean, a probability of 1e-13,
there is half an event of prior.

.. [1] R. Tibshirani and T. Hastie, "Local likelihood estimation", JASA 82 (1987), 559-567.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernpool.algorithms.reference import pair_weights
from kernpool.bandwidth import TrainingRows
from kernpool.core import Geometry, Problem
from kernpool.execution.progress import Progress
from kernpool.execution.threads import cut, resolve_n_jobs, run_blocks
from kernpool.likelihood.families import Family

Array = NDArray[np.float64]

PAIRS_AT_ONCE = 1 << 17  # whose weights, offsets and temporary arrays stay in the cache of second level
PRIOR = 0.5  # events
TOLERANCE = 1e-10  # of the last step: the error of the maximum is its square, and that of A as large
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
        value, weight = rows.value, rows.weight
        total, size = (weight[:, None] * value).sum(axis=0)
        spread = np.sqrt(weight @ rows.away**2 / rows.total)
        if not 0.0 < total < (size if family.has_logit else np.inf):
            what = "one class" if family.has_logit else "no counts"
            kind = "one, or all trials," if total > 0.0 else "zero"
            raise ValueError(f"y has {what}: it is {kind} in all rows, which shows nothing; add rows of others")
        size_of_row, spread = np.ascontiguousarray(value[:, 1]), np.where(spread > 0, spread, 1.0)
        return cls(family, value[:, 0] / size_of_row, size_of_row, float(total / size), spread, ridge)

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
    occupied : ndarray of bool, shape (m,)
        Which windows have a key.
    log_units : ndarray of shape (m,)
        Logarithms of the sums of weights times sizes.
    """

    beta: Array
    readout: Array
    rank: NDArray[np.int64]
    by_prior: NDArray[np.bool_]
    occupied: NDArray[np.bool_]
    log_units: Array

    @classmethod
    def empty(cls, m: int, p: int) -> LocalMaxima:
        """Return so many maxima of empty windows."""
        beta, readout = np.full((2, m, 1 + p), np.nan)
        by_prior, occupied = np.zeros((2, m), dtype=np.bool_)
        return cls(beta, readout, np.zeros(m, dtype=np.int64), by_prior, occupied, np.full(m, -np.inf))

    @property
    def theta(self) -> Array:
        """Linear predictors at the queries."""
        return self.beta[:, 0]

    def put(self, queries: Any, other: LocalMaxima) -> None:
        """Write the maxima of some queries."""
        for each in fields(self):
            getattr(self, each.name)[queries] = getattr(other, each.name)


@dataclass(frozen=True, eq=False)
class PairBlock:
    """Pairs of some queries and all keys.

    Parameters
    ----------
    queries : slice
        Which they are.
    problem : Problem
        Of these queries.
    alpha : ndarray of shape (m, n)
        Pooling weights, which add up to one; zeros where a window is empty.
    log_total : ndarray of shape (m,)
        Logarithms of their sums before.
    offset : ndarray of shape (m, p, n)
        Offsets of keys in bandwidths, along tangents.
    """

    queries: slice
    problem: Problem
    alpha: Array
    log_total: Array
    offset: Array

    @classmethod
    def of(cls, problem: Problem, queries: slice, degree: int) -> PairBlock:
        """Compute the weights and offsets of pairs of some queries."""
        block = problem.block(queries)
        shift, weight = pair_weights(block.with_dense_factors())
        total, similarity, (m, n) = weight.sum(axis=1), block.similarity, block.shape
        with np.errstate(divide="ignore"):
            log_total = np.where(total > 0, shift + np.log(total), -np.inf)
        alpha = np.divide(weight, total[:, None], where=total[:, None] > 0, out=np.zeros_like(weight))
        columns = [similarity.offset(block.query, block.key, a) for a in range(degree * block.key.shape[1])]
        offset = np.stack(columns, axis=1) if columns else np.empty((m, 0, n))
        if degree and max(similarity.geometry, default=1) > 1:
            offset = np.concatenate(list(_along_tangents(similarity.geometry, block.query, offset)), axis=1)
        return cls(queries, block, alpha, log_total, offset)


def _along_tangents(geometry: Geometry, query: Array, offset: Array) -> Iterator[Array]:
    """Yield offsets of columns, those of points of circles and spheres along the tangents at queries."""
    for start, size in zip(geometry.starts, geometry, strict=True):
        own = offset[:, start : start + size]
        if size > 1:
            basis = np.linalg.qr(query[:, start : start + size, None], mode="complete")[0][:, :, 1:]
            own = np.einsum("map,man->mpn", basis, own)
        yield own


def tangents(problem: Problem) -> list[int]:
    """Return how many directions a plane has in the columns of each bandwidth."""
    return [max(size - 1, 1) for size in problem.similarity.geometry or (1,) * problem.key.shape[1]]


def over_pairs(
    problem: Problem,
    degree: int,
    work: Callable[[PairBlock], None],
    n_jobs: int | None,
    progress: Progress | None = None,
) -> None:
    """Call a function with each block of pairs, on several threads."""

    def run(queries: slice) -> Iterator[None]:
        with np.errstate(under="ignore"):
            work(PairBlock.of(problem, queries, degree))
        yield

    m, n = problem.shape
    run_blocks(run, cut(m, max(1, PAIRS_AT_ONCE // n)), resolve_n_jobs(n_jobs), progress)


def maximise_by_pairs(
    problem: Problem,
    outcome: Outcome,
    degree: int,
    tolerance: float = TOLERANCE,
    start: Array | None = None,
    n_jobs: int | None = None,
    progress: Progress | None = None,
) -> LocalMaxima:
    """Return the local maxima from the weights of all pairs."""
    found = LocalMaxima.empty(len(problem.query), degree * sum(tangents(problem)))

    def work(block: PairBlock) -> None:
        found.put(block.queries, maxima_of(block, outcome, tolerance, None if start is None else start[block.queries]))

    over_pairs(problem, degree, work, n_jobs, progress)
    return found


def maxima_of(
    block: PairBlock, outcome: Outcome, tolerance: float = TOLERANCE, start: Array | None = None
) -> LocalMaxima:
    """Return the local maxima of a block of pairs."""
    from kernpool.likelihood.loops import newton  # compiles

    found = LocalMaxima.empty(len(block.alpha), block.offset.shape[1])
    problem, units, unit = block.problem, block.alpha @ outcome.size, block.problem.weight_unit
    geometry, widths = problem.similarity.geometry, problem.similarity.widths()
    widths = widths[..., geometry.starts] if geometry else widths
    spread = np.repeat(outcome.spread / widths, tangents(problem), axis=-1)[..., : found.beta.shape[1] - 1]
    with np.errstate(divide="ignore", over="ignore"):
        own = np.exp(np.minimum(problem.log_own - block.log_total, LARGEST_EXPONENT)) / unit
        prior, whole = outcome.prior(block.alpha @ (outcome.size * outcome.y) / own, units / own)
        found.log_units[:] = block.log_total + np.log(units * unit)
    newton.maximise(
        outcome.family.number, block.alpha, outcome.size, outcome.y, block.offset, outcome.mean,
        np.broadcast_to(spread, found.beta[:, 1:].shape), own * outcome.ridge, own * prior, own * whole,
        found.beta[:0] if start is None else start, tolerance, tolerance <= TOLERANCE,
        found.beta, found.readout, found.rank, found.by_prior,
    )  # fmt: skip
    found.readout[:] *= units[:, None]
    found.occupied[:] = units > 0
    return found


@dataclass(frozen=True, eq=False)
class PairPlanes:
    """Local planes at the keys of a block of pairs, and what these do to the maxima.

    Parameters
    ----------
    pull : ndarray of shape (m, n)
        Derivatives of linear predictors at queries by scores of a unit of size at keys.
    score, curvature : ndarray of shape (m, n)
        Derivatives of log likelihoods of keys by the planes there, and minus second ones; zero without a weight.
    prior : ndarray of shape (m,)
        What the prior has of the first entry of A^-1: the variance of its scores.
    """

    pull: Array
    score: Array
    curvature: Array
    prior: Array


def planes_of(block: PairBlock, outcome: Outcome, found: LocalMaxima, rows: Any = slice(None)) -> PairPlanes:
    """Return the local planes of a block of pairs, whose maxima are some of those found."""
    tables = found.beta[rows], found.readout[rows]
    predictor, along = (each[:, :1] + np.einsum("mp,mpn->mn", each[:, 1:], block.offset) for each in tables)
    share = block.alpha * outcome.size
    share /= np.maximum(share.sum(axis=1, keepdims=True), np.finfo(np.float64).tiny)
    with np.errstate(over="ignore", invalid="ignore"):
        score, curvature = outcome.family.derivatives(outcome.y, predictor)
        pull, score, curvature = (np.where(share > 0, each, 0.0) for each in (share * along, score, curvature))
        prior = found.readout[rows, 0] - np.sum(pull * along * curvature, axis=1)
        unit = np.exp(np.minimum(block.problem.log_own - found.log_units[rows], LARGEST_EXPONENT))
        return PairPlanes(pull, score, curvature, np.maximum(prior, 0.0) * unit)
