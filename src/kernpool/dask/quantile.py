"""Conditional quantiles on a Dask cluster: partitions answer questions, and a tree of fixed shape joins the answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
from dask.delayed import delayed
from numpy.typing import ArrayLike, NDArray

from kernpool.core.empty import Empty
from kernpool.dask.cluster import compute
from kernpool.dask.partitions import Partitions, as_partitions, read_block
from kernpool.dask.pool import NO_PAIRS, RETRIES
from kernpool.dask.tasks import FAN_IN, sent_once
from kernpool.distribution import as_levels, asked_of, counted_quantiles, without_axes
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
    """Pool quantiles of values by the similarity of their keys to each query, of pairs in Dask collections or files.

    Parameters
    ----------
    query : array_like of shape (m,) or (m, d)
        Where, in memory.
    key, value, target, features, key_weight
        As in `kernpool.dask.pool`.
    levels : float or array_like of shape (l,), default=0.5
        Shares of the weight, between 0 and 1; by default the conditional median.
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
    """Return quantiles of pairs in partitions, in the shape of `pool_quantile`; parameters as of it."""
    found = counted_quantiles(
        asked_of(recipe, query, partitions.names), AskPartitions(partitions, client, retries), level.ravel()
    )
    return without_axes(found, partitions.flat, level.ndim > 0)


@dataclass(frozen=True)
class AskPartitions:
    """Who asks questions (`kernpool.distribution.questions`) of all partitions, and returns the joined answer."""

    partitions: Partitions
    client: Any
    retries: int

    def __call__(self, question: Any) -> Any:
        """Ask."""
        one = sent_once(question)
        answers = [delayed(answer_of)(one, block) for block in self.partitions.blocks]
        while len(answers) > 1:
            answers = [delayed(joined)(one, answers[i : i + FAN_IN]) for i in range(0, len(answers), FAN_IN)]
        (answer,) = compute(answers, self.client, self.retries)
        if answer is None:
            raise ValueError(NO_PAIRS)
        return answer


def answer_of(question: Any, block: Any) -> Any:
    """Ask the chunks of one block, in a task; None if it has no rows of positive weight."""
    some = (chunk for chunk in read_block(block) if len(chunk.key) and (chunk.weight is None or chunk.weight.any()))
    return joined(question, [question.of(chunk) for chunk in some])


def joined(question: Any, answers: list[Any]) -> Any:
    """Join answers; None where there is none."""
    some = [answer for answer in answers if answer is not None]
    return reduce(question.joined, some) if some else None
