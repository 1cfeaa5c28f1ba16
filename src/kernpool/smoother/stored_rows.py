"""The linear smoother of rows that are not in memory: sums over all of them, residuals of a sample.

`StoredSmoother` is a `Smoother` for inference, with the same formulas: kernel sums go through all rows, part by part,
as predictions do. What there would be for every row, its leave-one-out residual, there is for the rows of a sample.
Where the sample is all rows, standard errors are those of the rows in memory.

`mean_slopes` are derivatives of weighted means by the queries, with any kernel: sums over rows, too.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np

from kernpool._arrays import Array, Index, Integers
from kernpool.bandwidth.rules_of_thumb import rate_factor
from kernpool.core import SINGLE_ROWS, Keys, PoolState, Problem
from kernpool.data import Chunk
from kernpool.data.chunks.base import RowSample, seed_of
from kernpool.execution import Progress, current_progress
from kernpool.pooling import MapReduce, QueryBatch, Recipe, Source, Sums, choose, merge_states
from kernpool.smoother.linear_smoother import EvaluationPoints, Smoother
from kernpool.smoother.quadratic_forms import Terms, norms_by_rows


@dataclass(frozen=True, eq=False, kw_only=True)
class StoredSmoother(Smoother):
    """Linear smoother of rows that are not in memory, with a sample of them in `keys`.

    Parameters
    ----------
    source : Source
        All rows.
    place : ndarray of int, shape (k,)
        Index among all rows of each row of the sample.
    total : float
        Number of rows, each counted by its frequency.
    sample_factor : float
        Bandwidths for the rows of the sample alone, in units of those for all rows.
    """

    source: Source
    place: Index
    total: float
    sample_factor: float

    @classmethod
    def of(cls, source: Source, sample: RowSample, recipe: Recipe) -> StoredSmoother:
        """Build the smoother of stored pairs from a sample of them."""
        keys = Keys.read(sample.key, sample.value, sample.weight)
        factor = 1.0 / rate_factor(len(sample.key), sample.rows, sample.key.shape[1])
        total = sample.rows * float(sample.weight.mean())
        return cls(keys, recipe, source=source, place=sample.place, total=total, sample_factor=factor)

    @property
    def rows(self) -> float:
        """Number of all rows; with frequencies that differ, as the sample has them on average."""
        return self.total

    def of_residuals(self) -> Smoother:
        """Return the smoother of the sample alone, with bandwidths for its number of rows."""
        wider = replace(self.recipe, bandwidth=np.asarray(self.recipe.bandwidth * self.sample_factor))
        return Smoother(self.keys, wider, factor=self.factor)

    def sums(self, problem: Problem) -> PoolState:
        """Return the sums of a pooling problem over all rows, with centred values, in one pass.

        Of the problem only its queries, similarity and degree count, and whether the rows of the sample, which are its
        queries then, leave themselves out.
        """
        similarity = problem.similarity
        recipe = replace(
            self.recipe,
            kernel=similarity.kernel,
            bandwidth=similarity.bandwidth,
            degree=problem.degree,
            tol=None,
            algorithm="auto",
            ridge=0.0,  # no part of sums
        )
        asked = self.source.asked(recipe, problem.query)
        center = self.keys.center[: problem.value.shape[1]]
        place = None if problem.self_index is None else self.place
        merged = partial(merge_states, limit=None)
        state: PoolState = self.source.ask(MapReduce(partial(_centered_sums, asked, center, place), merged))
        return state

    def norms_by_rows(self, terms: Terms, rows: Index, psi: Array | None = None) -> Array:
        """Return the squared norms of linear weights at some queries, by the weight of every row, in one pass."""
        assert psi is None  # residuals are those of a sample
        norms: Array = self.source.ask(MapReduce(partial(_norms, terms, rows), np.add))
        return norms


def _centered_sums(asked: QueryBatch, center: Array, place: Index | None, chunk: Chunk) -> PoolState:
    """Sum the rows of a chunk, with centred values, at each query; leave out the row of the query's own `place`."""
    own = None
    if place is not None:
        inside = (place >= chunk.start) & (place < chunk.start + len(chunk.key))
        own = np.where(inside, place - chunk.start, -1)
    value = chunk.value[:, : len(center)] - center
    return asked.state(chunk._replace(value=value), np.zeros_like(center), own)


def _norms(terms: Terms, rows: Index, chunk: Chunk) -> Array:
    """Return the part of a chunk in the squared norms of linear weights at some queries."""
    return norms_by_rows([(a, share.over(chunk.key, chunk.weight)) for a, share in terms], rows)


NOISE_ROWS = 4000  # whose residuals say how large the noise is


@dataclass(frozen=True, eq=False)
class StoredModel:
    """Fitted model of rows that are not in memory: predictions are of all rows, and inference has a sample of them.

    Parameters
    ----------
    source : Source
        All rows.
    recipe : Recipe
        Kernel, bandwidths, degree and ridge.
    random_state : int, RandomState or None
        Seed of the sample, which is drawn when it is first needed.
    """

    source: Source
    recipe: Recipe
    random_state: Any = 0
    window = "fixed"
    exclusion = None
    units = SINGLE_ROWS

    def points(self, query: Array, _code: Integers | None = None) -> EvaluationPoints:
        """Return rows as evaluation points; windows are those of the bandwidths."""
        return EvaluationPoints(query)

    def pool(self, places: EvaluationPoints, progress: Progress | None = None) -> Sums:
        """Sum weights and weighted outputs of all rows at evaluation points, for predictions."""
        return self.source.reduce(self.recipe, places.query, progress)

    @cached_property
    def linear(self) -> StoredSmoother:
        """Linear smoother for inference, with a sample of the rows."""
        sample = self.source.sample(NOISE_ROWS, seed_of(self.random_state), current_progress())
        return StoredSmoother.of(self.source, sample, self.recipe)


def mean_slopes(
    problem: Problem,
    state: PoolState,
    algorithm: str,
    n_jobs: int | None = None,
    progress: Progress | None = None,
    width_slopes: Array | None = None,
) -> Array:
    """Return the derivatives of weighted means by the queries.

    Parameters
    ----------
    problem : Problem
        Local constant; of some of the rows, the part of the derivatives that these make.
    state : PoolState
        Sums over all rows.
    algorithm, n_jobs, progress
        As in `kernpool.pool`.
    width_slopes : ndarray of shape (m, d), optional
        Derivatives of the logarithms of the widths of windows by the queries; zero by default.

    Returns
    -------
    ndarray of shape (m, d, c)
        Takes one pass for each output.
    """
    plan = choose(problem, algorithm, reuse=True)
    (m, d), c = problem.query.shape, problem.value.shape[1]
    slopes, wanted = np.empty((m, d, c)), ["query", *["log_bandwidth"] * (width_slopes is not None)]
    for b in range(c):
        cotangent = np.zeros((m, c))
        cotangent[:, b] = 1.0
        found = plan.pullback(problem, state, cotangent, wanted, n_jobs=n_jobs, progress=progress)
        slopes[:, :, b] = found.query
        if width_slopes is not None and found.log_bandwidth is not None:
            slopes[:, :, b] += width_slopes * found.log_bandwidth.sum(axis=1, keepdims=True)
    return slopes


def mean_slopes_of_stored(source: Source, recipe: Recipe, query: Array, state: PoolState) -> Array:
    """Return the derivatives of weighted means of rows that are not in memory, from their sums, in one pass."""
    asked = source.asked(recipe, query)
    question = MapReduce(partial(_mean_slopes_of_chunk, asked, state), np.add)
    slopes: Array = source.ask(question, current_progress())
    return slopes


def _mean_slopes_of_chunk(asked: QueryBatch, state: PoolState, chunk: Chunk) -> Array:
    problem = asked.recipe.problem(asked.query, chunk.key, chunk.value, key_weight=chunk.weight)
    return mean_slopes(problem, state, asked.recipe.algorithm, asked.recipe.n_jobs)
