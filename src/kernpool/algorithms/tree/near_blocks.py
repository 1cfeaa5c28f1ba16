"""Blocks of queries and keys in kd order, how far a query of each reaches, and which of them that leaves.

Denominators are known here, so a reach is: what is beyond it is at most the machine epsilon of each sum per query,
squared distances included.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from kernpool.algorithms.loops.tiles import GAUSSIAN
from kernpool.algorithms.tree.loops.boxes import MARGIN
from kernpool.algorithms.tree.profile import Profile
from kernpool.core.problem import Problem
from kernpool.core.state import PoolState
from kernpool.execution.threads import cut

Array = NDArray[np.float64]

ROWS = 128  # of a block of queries, or of keys
TINIEST = 5e-324  # beyond where a weight is this, sums without a shift are zero anyway
SLOPE = 1 / 256  # terms have a factor u**2 beside the weight: where weights are an epsilon it is below this reciprocal


def put_in_order(
    problem: Problem, query: Array, query_order: NDArray[np.int64], key: Array, key_order: NDArray[np.int64]
) -> Problem:
    """Return the same problem with queries and keys in order."""
    own = None
    if problem.self_index is not None:
        place = np.empty(len(key), dtype=np.int64)
        place[key_order] = np.arange(len(key))
        own = problem.self_index[query_order]
        own = np.where(own >= 0, place[own], -1)
    return replace(
        problem,
        query=query,
        key=key,
        value=problem.value[key_order],
        key_weight=None if problem.key_weight is None else problem.key_weight[key_order],
        self_index=own,
    )


def weakest(problem: Problem, state: PoolState) -> PoolState:
    """Return a state whose denominators are the least of the sums that must keep their digits, for `find_reach`.

    With moments that may be the mean square of an offset: where the nearest keys are at the very place of the query, a
    slope is determined by the next ones, however small their share.
    """
    if not problem.degree:
        return state
    least = np.minimum(state.denominator, mean_squares(problem, state).min(axis=1))
    return PoolState(state.shift, np.where(state.denominator > 0.0, np.maximum(least, TINIEST), 0.0), state.numerator)


def mean_squares(problem: Problem, state: PoolState) -> Array:
    """Return the sums of squared offsets, column by column."""
    diagonal = np.equal(*np.triu_indices(problem.key.shape[1]))
    return np.asarray(state.numerator[:, problem.layout.second][:, diagonal])


def find_reach(problem: Problem, profile: Profile, state: PoolState) -> Array:
    """How far a query of each block reaches at most, in bandwidths; -1 if all are empty."""
    occupied = state.denominator > 0
    if profile.infinite:
        least = state.shift + np.log(state.denominator, where=occupied, out=np.zeros(len(occupied)))
        decades = np.maximum(math.log(problem.total_weight / (np.finfo(float).eps * SLOPE)) - least, 0.0)
        reach = np.sqrt(2.0 * decades) if profile.code == GAUSSIAN else decades
    else:
        reach = np.ones(len(occupied))
    return np.maximum.reduceat(np.where(occupied, reach * (1.0 + MARGIN), -1.0), np.arange(0, len(occupied), ROWS))


def pieces_of(near: NDArray[np.bool_], rows: int, most: int) -> Iterator[slice]:
    """Cut the rows of near blocks, those that follow each other together, into slices of at most so many."""
    edges = np.flatnonzero(np.diff(near.astype(np.int8), prepend=0, append=0)) * ROWS
    for first, last in zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True):
        for piece in cut(min(last, rows) - first, most):
            yield slice(first + piece.start, first + piece.stop)
