"""Conditional quantiles and distribution functions on a Dask cluster.

Partitions compute the partial sums of map-reduce queries (`kernpool.distribution.chunk_queries`), and a tree of fixed
shape merges them, so results do not depend on the workers. Quantiles take several passes over the partitions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
from dask.delayed import delayed
from numpy.typing import ArrayLike, NDArray

from kernpool.core.state import Empty
from kernpool.dask.partitions import Partitions, as_partitions, read_block
from kernpool.dask.pool import FAN_IN, NO_PAIRS, RETRIES, compute, sent_once
from kernpool.distribution import (
    Function,
    as_levels,
    as_thresholds,
    asked_of,
    counted_functions,
    counted_quantiles,
    without_axes,
)
from kernpool.execution.messages import explain_calls
from kernpool.kernels import Kernel
from kernpool.pooling.recipe import Recipe

Array = NDArray[np.float64]


@explain_calls
def pool_quantile(
    query: ArrayLike,
    key: Any,
    value: Any = None,
    levels: ArrayLike = 0.5,
    *,
    target: str | Sequence[str] | None = None,
    features: Sequence[str] | None = None,
    key_weight: Any = None,
    kernel: str | Kernel = "gaussian",
    bandwidth: ArrayLike = 1.0,
    composition: str = "radial",
    tol: float | None = None,
    algorithm: str = "auto",
    empty: Empty = "nan",
    client: Any = None,
    retries: int = RETRIES,
) -> Array:
    """Compute conditional quantiles of pairs in Dask collections or files, by kernel weights at each query.

    Parameters
    ----------
    query : array_like of shape (m,) or (m, d)
        Evaluation points, in memory.
    key, value, target, features, key_weight
        As in `kernpool.dask.pool`.
    levels : float or array_like of shape (l,), default=0.5
        Quantile orders, between 0 and 1; by default the conditional median.
    kernel, bandwidth, composition, tol, algorithm, empty
        As in `kernpool.pool_quantile`.
    client, retries
        As in `kernpool.dask.pool`.

    Returns
    -------
    ndarray of shape (m,), (m, l), (m, c) or (m, c, l)
        As of `kernpool.pool_quantile`: values of rows.

    Raises
    ------
    TypeError, ValueError
        As in `kernpool.dask.pool`, and if a level is not between 0 and 1.

    Warns
    -----
    EmptyWindowWarning
        If windows are empty and `empty` is ``"nan"``.

    Notes
    -----
    All partitions are read in each of some passes, as chunks are by `kernpool.pool_quantile`: persist collections that
    are costly to make. Up to four million rows at a time come to this process, those whose values may be quantiles.

    Examples
    --------
    >>> import dask.array
    >>> value = dask.array.arange(4.0, chunks=2)
    >>> pool_quantile([1.5], dask.array.ones(4, chunks=2), value, [0.25, 0.5, 1.0])
    array([[0., 1., 3.]])
    """
    recipe = Recipe.of(kernel, bandwidth, composition=composition, tol=tol, algorithm=algorithm, empty=empty, n_jobs=1)
    partitions = as_partitions(key, value, key_weight, target=target, features=features)
    return partition_quantiles(recipe, query, partitions, as_levels(levels), client, retries)


def partition_quantiles(
    recipe: Recipe, query: ArrayLike, partitions: Partitions, level: Array, client: Any, retries: int
) -> Array:
    """Return quantiles of pairs in partitions, in the shape of `pool_quantile`, with its parameters."""
    found = counted_quantiles(
        asked_of(recipe, query, partitions.names), AskPartitions(partitions, client, retries), level.ravel()
    )
    return without_axes(found, partitions.flat, level.ndim > 0)


@dataclass(frozen=True)
class AskPartitions:
    """Callable that evaluates a request of `chunk_queries` on all partitions and merges the answers."""

    partitions: Partitions
    client: Any
    retries: int

    def __call__(self, question: Any) -> Any:
        """Return the merged answer of all partitions."""
        one = sent_once(question)
        answers = [delayed(answer_of)(one, block) for block in self.partitions.blocks]
        while len(answers) > 1:
            answers = [delayed(joined)(one, answers[i : i + FAN_IN]) for i in range(0, len(answers), FAN_IN)]
        (answer,) = compute(answers, self.client, self.retries)
        if answer is None:
            raise ValueError(NO_PAIRS)
        return answer


def answer_of(question: Any, block: Any) -> Any:
    """Return the answer of the chunks of one block, in a task; None if the block has no positive weight."""
    some = (chunk for chunk in read_block(block) if len(chunk.key) and (chunk.weight is None or chunk.weight.any()))
    return joined(question, [question.of(chunk) for chunk in some])


def joined(question: Any, answers: list[Any]) -> Any:
    """Merge answers, skipping None; return None if there are none."""
    some = [answer for answer in answers if answer is not None]
    return reduce(question.joined, some) if some else None


@explain_calls
def pool_cdf(
    query: ArrayLike,
    key: Any,
    value: Any = None,
    y: ArrayLike | None = None,
    *,
    target: str | Sequence[str] | None = None,
    features: Sequence[str] | None = None,
    key_weight: Any = None,
    kernel: str | Kernel = "gaussian",
    bandwidth: ArrayLike = 1.0,
    composition: str = "radial",
    tol: float | None = None,
    algorithm: str = "auto",
    empty: Empty = "nan",
    client: Any = None,
    retries: int = RETRIES,
) -> Array:
    """Compute conditional distribution functions of pairs in Dask collections or files, by kernel weights.

    Parameters
    ----------
    query : array_like of shape (m,) or (m, d)
        Evaluation points, in memory.
    key, value, target, features, key_weight
        As in `kernpool.dask.pool`.
    y : float, or array_like
        Thresholds, of shape (t,) for all queries, or (m, t); with several value columns (m, c, t), where axes may have
        length 1.
    kernel, bandwidth, composition, tol, algorithm, empty
        As in `kernpool.pool_cdf`.
    client, retries
        As in `kernpool.dask.pool`.

    Returns
    -------
    ndarray of shape (m,), (m, t), (m, c) or (m, c, t)
        As of `kernpool.pool_cdf`, up to rounding; the same bits for any number of workers.

    Raises
    ------
    TypeError, ValueError
        As in `kernpool.dask.pool`, and if `y` is missing, holds NaN or has another shape.

    Warns
    -----
    EmptyWindowWarning
        If windows are empty and `empty` is ``"nan"``.

    Notes
    -----
    One pass over all partitions, and another for windows that are empty or far from all rows.

    Examples
    --------
    >>> import dask.array
    >>> value = dask.array.arange(4.0, chunks=2)
    >>> pool_cdf([1.5], dask.array.ones(4, chunks=2), value, [0.0, 1.5, 3.0])
    array([[0.25, 0.5 , 1.  ]])
    """
    if y is None:
        raise TypeError("y must be given: the thresholds, such as y=0.0")
    recipe = Recipe.of(kernel, bandwidth, composition=composition, tol=tol, algorithm=algorithm, empty=empty, n_jobs=1)
    partitions = as_partitions(key, value, key_weight, target=target, features=features)
    return partition_functions(recipe, query, partitions, y, client, retries)


def partition_functions(
    recipe: Recipe,
    query: ArrayLike,
    partitions: Partitions,
    y: ArrayLike,
    client: Any,
    retries: int,
    *,
    widths: Array | None = None,
    density: bool = False,
) -> Array:
    """Return distribution functions or densities of pairs in partitions, in the shape of `pool_cdf`.

    Parameters
    ----------
    recipe, query, partitions, y, client, retries
        As of `pool_cdf`.
    widths : ndarray of shape (c,), optional
        Bandwidths in y.
    density : bool, default=False
        Whether densities are wanted.

    Returns
    -------
    ndarray of shape (m,), (m, t), (m, c) or (m, c, t)
        The functions.
    """
    asked = asked_of(recipe, query, partitions.names)
    threshold, with_axis = as_thresholds(y, len(asked), partitions.outputs, several=not partitions.flat)
    ask = AskPartitions(partitions, client, retries)
    found = counted_functions(asked, ask, Function(threshold, widths, density))
    return without_axes(found, partitions.flat, with_axis)
