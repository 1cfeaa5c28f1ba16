"""Small problems by the shortest way: a few rows in float64 arrays, pooled by dense NumPy without being read twice.

`pool` of 100 queries and 50 keys is 20 microseconds of sums. Reading arrays of any kind, in batches, with masks and
weights, and choosing among algorithms takes five times as long. So what is plain is recognised and summed by the
reference at once, with the very same operations in the same order. Whatever is unusual, or wrong, is left to the way
that all other problems go, which has words for it.
"""

from __future__ import annotations

from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from kernpool.algorithms import reference
from kernpool.core.problem import Problem
from kernpool.core.reading import EPSILON, center_of_values
from kernpool.core.similarity import Composition, KernelSimilarity
from kernpool.data.checks import LARGEST
from kernpool.execution.threads import resolve_n_jobs
from kernpool.pooling.loading import is_dense
from kernpool.pooling.recipe import Recipe
from kernpool.pooling.settle import Sums
from kernpool.pooling.tiny_values import FAINT, SMALL

FLOAT64: np.dtype[Any] = np.dtype(np.float64)
NO_CENTER = np.zeros(1)


def sum_small(recipe: Recipe, query: Any, key: Any, value: Any) -> Sums | None:
    """Sum over plain arrays of few rows.

    Parameters
    ----------
    recipe : Recipe
        How to pool.
    query, key, value : object
        What the caller of `pool` passed, without weights, masks and rows to leave out.

    Returns
    -------
    Sums or None
        To the bit those of the long way; None for all that is not plain, small and as it should be.

    Examples
    --------
    >>> sums = sum_small(Recipe.of(), np.array([0.0]), np.array([-1.0, 1.0]), np.array([2.0, 4.0]))
    >>> sums.state.finalize()
    array([[3.]])
    >>> sum_small(Recipe.of(), [0.0], [-1.0, 1.0], [2.0, 4.0])  # lists are read
    """
    for array in (query, key, value):
        if type(array) is not np.ndarray or array.dtype is not FLOAT64 or not 0 < array.ndim < 3 or not array.size:
            return None
    if recipe.degree or recipe.tol is not None or recipe.algorithm not in ("auto", "reference"):
        return None
    problem = _problem(recipe, *(x[:, None] if x.ndim == 1 else np.ascontiguousarray(x) for x in (query, key, value)))
    if problem is None:
        return None
    resolve_n_jobs(recipe.n_jobs)
    state = reference.reduce_in_blocks(problem)
    if not state.denominator.min() >= FAINT:  # windows may be empty, or in need of another unit
        return None
    return Sums(problem.restored(state), problem.layout, shape=(len(query), *value.shape[1:]))


def _problem(
    recipe: Recipe, query: NDArray[np.float64], key: NDArray[np.float64], value: NDArray[np.float64]
) -> Problem | None:
    """Return the problem that `Recipe.problem` makes of tables, if there is nothing to be said about them."""
    (n, d), h = key.shape, recipe.bandwidth
    if query.shape[1] != d or len(value) != n or h.size not in (1, d):
        return None
    bandwidth = h if h.size == d else np.full(d, h[0])
    similarity = KernelSimilarity(recipe.kernel, bandwidth, cast(Composition, recipe.composition))
    if not is_dense(Problem(query, key, value, NO_CENTER, similarity)):  # before anything looks at all rows
        return None
    # The columns together; NaN and infinity fail every comparison.
    query_high, key_high = np.maximum.reduce(query, axis=None), np.maximum.reduce(key, axis=None)
    query_low, key_low = np.minimum.reduce(query, axis=None), np.minimum.reduce(key, axis=None)
    if not (query_low >= -LARGEST and query_high <= LARGEST and key_low >= -LARGEST and key_high <= LARGEST):
        return None
    if not max(query_high, key_high) - min(query_low, key_low) <= LARGEST * bandwidth.min():
        return None
    center = center_of_values(value, None, None)
    size = np.abs(center)
    if not (size.max() <= LARGEST and np.all((size >= SMALL) | (size == 0.0))):
        return None  # such values are refused, or pooled in larger units
    centered = value - center
    spread = np.maximum.reduce(np.abs(centered), axis=0)
    if not (spread.min() >= SMALL and spread.max() + size.max() <= LARGEST):
        return None
    return Problem(query, key, centered, center, similarity, tol=EPSILON)
