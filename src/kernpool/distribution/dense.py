"""Places by tables of weights, some queries at a time: for few pairs, and for what no loop can do."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from kernpool.algorithms.reference import pair_weights
from kernpool.core.problem import Problem

Array = NDArray[np.float64]
Index = NDArray[np.intp]

PAIRS = 1 << 18  # in one table
LEAST = 5e-324  # the smallest number: of a sum of no weights nothing is reached


def dense_places(problem: Problem, queries: Index, share: Array) -> Iterator[tuple[slice, Index]]:
    """Look for the first key, in their order, at which the weights of a query reach shares of their sum.

    Parameters
    ----------
    problem : Problem
        With masks, levels and groups as they come.
    queries : ndarray of int, shape (r,)
        Which queries; each has a key that counts.
    share : ndarray of shape (r, l)
        Positive, at most one.

    Yields
    ------
    which : slice
        Some of the queries.
    place : ndarray of int, shape (which, l)
        Their keys.

    Notes
    -----
    Weights are in the unit of their own row, the largest, so that they have all of their digits at any distance.
    """
    at_once = max(1, PAIRS // problem.shape[1])
    for start in range(0, len(queries), at_once):
        which = slice(start, min(start + at_once, len(queries)))
        _, weight = pair_weights(problem.block(queries[which]).with_dense_factors())
        total = np.cumsum(weight, axis=1)
        need = np.maximum(share[which] * total[:, -1:], LEAST)
        place = np.empty(need.shape, dtype=np.intp)
        if need.shape[1] < len(need):
            for number, column in enumerate(need.T):
                place[:, number] = np.argmax(total >= column[:, None], axis=1)
        else:
            for row, (sums, wanted) in enumerate(zip(total, need, strict=True)):
                place[row] = np.searchsorted(sums, wanted, side="left")
        yield which, place
