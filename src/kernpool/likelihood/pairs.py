"""Local likelihood by all pairs: weights of a block of queries once, then compiled sums at planes.

Weights are those of the reference algorithm, whatever windows, categories and exclusions the problem has. Of rows that
are not in memory each step goes through all of them. `maximise` chooses between these sums and pools at moved queries.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np

from kernpool._arrays import Array, Index, Integers
from kernpool.algorithms.reference import pair_weights
from kernpool.core import Geometry, PoolState, Problem, empty_state
from kernpool.execution import Progress, cut, resolve_n_jobs, run_blocks
from kernpool.likelihood.local_maximum import TOLERANCE, LocalMaxima, Outcome, find_maxima, tangents
from kernpool.likelihood.moved_queries import MovedSums, can_move
from kernpool.pooling import quotient

PAIRS_AT_ONCE = 1 << 18  # whose weights, offsets and temporary arrays stay in the cache


@dataclass(frozen=True, eq=False)
class PairBlock:
    """Pairs of some queries and all keys.

    Parameters
    ----------
    queries : slice
        Which they are.
    problem : Problem
        Of these queries.
    outcome : Outcome
        Of the keys.
    share : ndarray of shape (m, n)
        Weights times sizes, which add up to one; zeros where a window is empty.
    log_units : ndarray of shape (m,)
        Logarithms of their sums before.
    offset : ndarray of shape (m, p, n)
        Offsets of keys in bandwidths, along tangents.
    """

    queries: slice
    problem: Problem
    outcome: Outcome
    share: Array
    log_units: Array
    offset: Array

    @classmethod
    def of(cls, problem: Problem, outcome: Outcome, queries: slice, degree: int) -> PairBlock:
        """Compute the weights and offsets of pairs of some queries."""
        block = problem.block(queries)
        shift, weight = pair_weights(block.with_dense_factors())
        weight = weight * outcome.size
        total, similarity, (m, n) = weight.sum(axis=1), block.similarity, block.shape
        with np.errstate(divide="ignore"):
            log_units = np.where(total > 0, shift + np.log(total * block.weight_unit), -np.inf)
        share = np.divide(weight, total[:, None], where=total[:, None] > 0, out=np.zeros_like(weight))
        columns = [similarity.offset(block.query, block.key, a) for a in range(degree * block.key.shape[1])]
        offset = np.stack(columns, axis=1) if columns else np.empty((m, 0, n))
        if degree and max(similarity.geometry, default=1) > 1:
            offset = np.concatenate(list(_along_tangents(similarity.geometry, block.query, offset)), axis=1)
        return cls(queries, block, outcome, share, log_units, offset)

    def totals(self) -> tuple[Array, Array]:
        """Return the logarithm of the unit of each query, and the means of outputs."""
        return self.log_units, self.share @ self.outcome.y

    def at(self, which: Index, beta: Array) -> tuple[Array, Array]:
        """Return the scores of some queries at planes, and minus their derivatives."""
        from kernpool.likelihood.loops.pair_sums import sum_scores  # compiles

        score, matrix = np.empty(beta.shape), np.empty((*beta.shape, beta.shape[1]))
        sum_scores(self.outcome.family.number, which, *self.keys, beta, score, matrix)
        return score, matrix

    @cached_property
    def keys(self) -> tuple[Integers, Array, Array, Array]:
        """Number of keys of positive weight of each query, their weights, outputs and offsets."""
        from kernpool.likelihood.loops.pair_sums import gather  # compiles

        count, (weight, value) = np.empty(len(self.share), dtype=np.int64), np.empty((2, *self.share.shape))
        offset = np.empty_like(self.offset)
        gather(self.share, self.outcome.y, self.offset, count, weight, value, offset)
        return count, weight, value, offset


def _along_tangents(geometry: Geometry, query: Array, offset: Array) -> Iterator[Array]:
    """Yield offsets of columns, those of points of circles and spheres along the tangents at queries."""
    for start, size in zip(geometry.starts, geometry, strict=True):
        own = offset[:, start : start + size]
        if size > 1:
            basis = np.linalg.qr(query[:, start : start + size, None], mode="complete")[0][:, :, 1:]
            own = np.einsum("map,man->mpn", basis, own)
        yield own


def over_pairs(
    problem: Problem,
    outcome: Outcome,
    degree: int,
    work: Callable[[PairBlock], None],
    n_jobs: int | None,
    progress: Progress | None = None,
) -> None:
    """Call a function with each block of pairs, on several threads."""

    def run(queries: slice) -> Iterator[None]:
        with np.errstate(under="ignore"):
            work(PairBlock.of(problem, outcome, queries, degree))
        yield

    m, n = problem.shape
    run_blocks(run, cut(m, max(1, PAIRS_AT_ONCE // n)), resolve_n_jobs(n_jobs), progress)


def planes_at(block: PairBlock, found: LocalMaxima) -> tuple[Array, Array, Array]:
    """Return what local planes do at the keys of a block of pairs, whose maxima are some of those found.

    Returns
    -------
    pull : ndarray of shape (m, n)
        Derivatives of linear predictors at queries by scores of a unit of size at keys.
    score, curvature : ndarray of shape (m, n)
        Derivatives of log likelihoods of keys by the planes there, and minus second ones; zero without a weight.
    """
    tables = found.beta[block.queries], found.readout[block.queries]
    predictor, along = (each[:, :1] + np.einsum("mp,mpn->mn", each[:, 1:], block.offset) for each in tables)
    with np.errstate(over="ignore", invalid="ignore"):
        share = block.share * np.exp(block.log_units - found.log_units[block.queries])[:, None]
        score, curvature = block.outcome.family.derivatives(block.outcome.y, predictor)
        pull, score, curvature = (np.where(block.share > 0, each, 0.0) for each in (share * along, score, curvature))
        return pull, score, curvature


def state_at(degree: int, beta: Array | None, problem: Problem, outcome: Outcome, n_jobs: int | None) -> PoolState:
    """Return sums of outputs, or of scores and their derivatives at planes, as a state that merges with others."""
    m, q = len(problem.query), 1 + degree * sum(tangents(problem))
    state = empty_state(m, 1 if beta is None else q + q * q)

    def work(block: PairBlock) -> None:
        log_units, mean = block.totals()
        numerator = mean[:, None]
        if beta is not None:
            score, matrix = block.at(np.arange(len(mean)), beta[block.queries])
            numerator = np.hstack([score, matrix.reshape(len(mean), -1)])
        state.put(block.queries, PoolState(log_units, 1.0 * np.isfinite(log_units), numerator))

    over_pairs(problem, outcome, degree, work, n_jobs)
    return state


@dataclass(frozen=True, eq=False)
class StoredPairs:
    """Sums over all pairs of queries and rows that are not in memory: each step goes through all rows."""

    problem: Problem
    outcome: Outcome
    degree: int
    n_jobs: int | None

    def state(self, problem: Problem, beta: Array | None = None) -> PoolState:
        """Return sums over all rows."""
        return self.outcome.over_rows(problem, partial(state_at, self.degree, beta), self.n_jobs)

    def totals(self) -> tuple[Array, Array]:
        """Return the logarithm of the unit of each query, and the means of outputs."""
        state = self.state(self.problem)
        return state.log_denominator, quotient(state)[:, 0]

    def at(self, which: Index, beta: Array) -> tuple[Array, Array]:
        """Return the scores of some queries at planes, and minus their derivatives."""
        found, q = quotient(self.state(self.problem.block(which), beta)), beta.shape[1]
        return found[:, :q], found[:, q:].reshape(-1, q, q)


def maximise(
    problem: Problem,
    outcome: Outcome,
    degree: int,
    *,
    tolerance: float = TOLERANCE,
    start: Array | None = None,
    n_jobs: int | None = None,
    progress: Progress | None = None,
) -> LocalMaxima:
    """Return the local maxima at the queries of a problem, by the way that is quicker."""
    if can_move(problem, outcome, degree):
        found = find_maxima(MovedSums(problem, outcome, n_jobs), problem, outcome, degree, tolerance, moves=True)
        others = np.flatnonzero(found.occupied & ~found.by_moves)
        if others.size:  # rounding of offsets hides slopes that have little weight
            found.put(others, by_pairs(problem.block(others), outcome, degree, tolerance, None, n_jobs, progress))
        return found
    return by_pairs(problem, outcome, degree, tolerance, start, n_jobs, progress)


def by_pairs(
    problem: Problem,
    outcome: Outcome,
    degree: int,
    tolerance: float,
    start: Array | None,
    n_jobs: int | None,
    progress: Progress | None,
) -> LocalMaxima:
    """Return the local maxima from all pairs."""
    if outcome.is_stored:
        return find_maxima(StoredPairs(problem, outcome, degree, n_jobs), problem, outcome, degree, tolerance)
    found = LocalMaxima.empty(len(problem.query), degree * sum(tangents(problem)))

    def work(block: PairBlock) -> None:
        begin = None if start is None else start[block.queries]
        found.put(block.queries, find_maxima(block, block.problem, outcome, degree, tolerance, begin))

    over_pairs(problem, outcome, degree, work, n_jobs, progress)
    return found
