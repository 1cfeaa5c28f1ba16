"""Chunks of keys on a line, for few queries: one pass adds up moments, and nothing is done per query before its end.

Merging the states of chunks visits all queries once per chunk. Here the line is cut into cells once, for all chunks
(see `algorithms/sweep/few_queries.py`), and the keys of each chunk add to the moments of their cells. For ten thousand
queries and a hundred million keys that takes half of the time.
"""

from __future__ import annotations

from itertools import chain

import numpy as np
from numpy.typing import NDArray

from kernpool.core.reading import Rows, column_range
from kernpool.core.state import PoolState
from kernpool.data.checks import LARGEST
from kernpool.data.chunks.base import Chunks
from kernpool.execution.progress import Progress
from kernpool.execution.threads import resolve_n_jobs
from kernpool.pooling.recipe import Recipe

Array = NDArray[np.float64]

KEYS_PER_QUERY = 64  # from which on queries are few


def are_on_a_line(query: Array, degree: int, algorithm: str, chunks: Chunks) -> bool:
    """Whether chunks might be summed in one pass, and some queries in another."""
    few = chunks.again and chunks.rows is not None and chunks.rows >= KEYS_PER_QUERY * len(query)
    return few and query.shape[1] == 1 and not degree and algorithm in ("auto", "sweep")


def sum_on_a_line(
    recipe: Recipe, query: Rows, chunks: Chunks, progress: Progress | None
) -> tuple[PoolState, Array, NDArray[np.intp]] | None:
    """Sum all chunks.

    Parameters
    ----------
    recipe : Recipe
        How to pool.
    query : Rows
        Where to pool, in one column.
    chunks : Chunks
        Of one column.
    progress : callable or None
        Called as ``progress(pairs_done, pairs_total)`` after every chunk.

    Returns
    -------
    (PoolState, ndarray, ndarray) or None
        The sums; the center of the values, zero; and the rows of queries that are not done and have an empty state.
        None if the kernel, or the places of the queries, or weights do not allow it.
    """
    from kernpool.algorithms.sweep.few_queries import FewQueries  # loads Numba

    jobs, rest, done = resolve_n_jobs(recipe.n_jobs), (chunk for chunk in chunks if len(chunk.key)), 0
    first = next(rest, None)
    if first is None or first.weight is not None or chunks.rows is None:
        return None
    problem = recipe.problem(query, first.key, first.value)
    few = FewQueries.of(problem, chunks.rows, -np.inf, np.inf)
    if few is None:
        return None
    h, zeros = float(problem.similarity.bandwidth[0]), np.zeros(first.value.shape[1])
    for chunk in chain([first], rest):
        keys, values = (np.abs(column_range(part)).max() for part in (chunk.key, chunk.value))
        if not (keys <= 0.25 * LARGEST * min(h, 1.0) and values <= LARGEST):
            recipe.problem(query, chunk.key, chunk.value)  # says what is wrong
        few.add(chunk.key[:, 0], None, chunk.value, jobs)
        done += len(chunk.key)
        if progress is not None:
            progress(done, chunks.rows)
    m = len(query.array)
    state = PoolState(np.zeros(m), np.empty(m), np.empty((m, len(zeros))))
    undone = few.finish(state, jobs, None)
    state.shift[state.denominator == 0] = -np.inf
    return state, zeros, np.flatnonzero(undone)
