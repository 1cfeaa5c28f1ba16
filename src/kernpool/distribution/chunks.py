"""Conditional quantiles of pairs in chunks, which need not fit into memory."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kernpool.core.problem import Problem
from kernpool.data.chunks.base import Chunks
from kernpool.distribution.arrays import known_quantiles, quantiles
from kernpool.distribution.counting import Ask, Counting
from kernpool.distribution.questions import asked_of
from kernpool.execution.progress import Progress
from kernpool.kernels import get_kernel
from kernpool.pooling.chunked import NO_PAIRS, Asked
from kernpool.pooling.recipe import Recipe

Array = NDArray[np.float64]


def chunk_quantiles(
    recipe: Recipe, query: ArrayLike, chunks: Chunks, level: Array, progress: Progress | None = None
) -> Array:
    """Return quantiles of pairs in chunks, in some passes over them.

    Parameters
    ----------
    recipe : Recipe
        How to weigh, and what empty windows get; of degree 0.
    query : array_like of shape (m,) or (m, d)
        Where.
    chunks : Chunks
        The pairs; they have to be read several times.
    level : ndarray of shape (l,)
        Between 0 and 1.
    progress : callable, optional
        Called as ``progress(done, total)`` in rows, anew in each pass, if their number is known.

    Returns
    -------
    ndarray of shape (m, c, l)
        Values.

    Raises
    ------
    ValueError
        If the chunks can be read once only, or there are no pairs.
    """
    if not chunks.again:
        raise ValueError(
            "quantiles go through the pairs several times, which an iterator does not allow; give a list, an array or "
            "a file, or a sample of the rows in arrays"
        )
    return counted_quantiles(asked_of(recipe, query, chunks.labels), partial(ask_all, chunks, progress), level)


def counted_quantiles(asked: Asked, ask: Ask, level: Array) -> Array:
    """Return quantiles of pairs that answer questions, with empty windows as the recipe says.

    Parameters
    ----------
    asked : Asked
        Where and how.
    ask : callable
        As of `Counting`.
    level : ndarray of shape (l,)
        Between 0 and 1.

    Returns
    -------
    ndarray of shape (m, c, l)
        Values.
    """
    recipe, counting = asked.recipe, Counting(asked, ask)

    def of_rows(problem: Problem, value: Array, level: Array) -> Array:
        return known_quantiles(recipe, problem, value, level)[0]

    found, occupied = counting.quantiles(level, of_rows)

    def fill(rows: NDArray[np.intp]) -> Array:
        if recipe.empty == "nearest":
            return counting.nearest(rows, "nearest", lambda p, v: quantiles(recipe, p, v, level)).reshape(len(rows), -1)
        mean = replace(recipe, kernel=get_kernel("constant"))
        one = replace(asked.at(rows[:1]), recipe=mean)
        return np.repeat(Counting(one, ask).quantiles(level, of_rows)[0].reshape(1, -1), len(rows), axis=0)

    return recipe.fill_empty(found.reshape(len(found), -1), occupied, fill).reshape(found.shape)


def ask_all(chunks: Chunks, progress: Progress | None, question: Any) -> Any:
    """Ask all chunks a question, one after the other."""
    answer, done = None, 0
    for chunk in chunks:
        done += len(chunk.key)
        if len(chunk.key) and (chunk.weight is None or chunk.weight.any()):
            part = question.of(chunk)
            answer = part if answer is None else question.joined(answer, part)
        if progress is not None and chunks.rows is not None:
            progress(done, chunks.rows)
    if answer is None:
        raise ValueError(NO_PAIRS)
    return answer
