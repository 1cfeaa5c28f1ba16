"""Outcomes of rows that are not in memory, over which sums go part by part, with those of a sample of the rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from kernpool.core import PoolState, Problem, merge
from kernpool.data import Chunk
from kernpool.likelihood.local_maximum import Outcome, Sums, SumsOfRows
from kernpool.pooling import MapReduce, QueryBatch, Recipe, Source


@dataclass(frozen=True, eq=False, kw_only=True)
class StoredOutcome(Outcome):
    """Outputs of a sample of rows, and the source of all."""

    source: Source
    recipe: Recipe

    is_stored = True

    def over_rows(self, problem: Problem, sums: SumsOfRows[Sums], n_jobs: int | None) -> Sums:
        """Return sums over all rows; of the problem only queries, kernel, bandwidths and degree count."""
        similarity = problem.similarity
        recipe = replace(
            self.recipe, kernel=similarity.kernel, bandwidth=similarity.bandwidth, degree=problem.degree, n_jobs=n_jobs
        )
        asked = self.source.asked(recipe, problem.query)
        found: Sums = self.source.ask(MapReduce(partial(_of_chunk, sums, asked, self.in_memory), _merged))
        return found

    @property
    def in_memory(self) -> Outcome:
        """Outcome of the sample alone."""
        return Outcome(self.family, self.y, self.size, self.mean, self.spread, self.ridge)


def _of_chunk(sums: Callable[..., Any], asked: QueryBatch, outcome: Outcome, chunk: Chunk) -> Any:
    problem = asked.recipe.problem(asked.query, chunk.key, chunk.value, key_weight=chunk.weight)
    return sums(problem, outcome.of_values(chunk.value), asked.recipe.n_jobs)


def _merged(one: Any, other: Any) -> Any:
    return merge(one, other) if isinstance(one, PoolState) else np.add(one, other)
