"""Distribution functions of pairs in chunks or partitions, in one pass.

Each chunk sums its rows on either side of thresholds, or pools columns of their values, and the sums add up. Windows
that are empty, and those far from all rows, take another pass each.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtr

from kernpool.core.problem import Problem
from kernpool.core.state import PoolState
from kernpool.data.chunks.base import Chunk, Chunks
from kernpool.distribution.below import Sides, keep_order, sides_of
from kernpool.distribution.chunks import ask_all
from kernpool.distribution.counting import Ask, Counting
from kernpool.distribution.places import FAR
from kernpool.distribution.questions import asked_of, bare_problem, of_positive_weight
from kernpool.distribution.settled import filled, known_cdf, ranks, rows_of, settled
from kernpool.distribution.smooth import known_smooth, normal_density
from kernpool.execution.progress import Progress
from kernpool.kernels import get_kernel
from kernpool.pooling.chunked import Asked, merge_states
from kernpool.pooling.recipe import Recipe

Array = NDArray[np.float64]
Index = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Function:
    """A distribution function of each value column, or a density.

    Parameters
    ----------
    threshold : ndarray of shape (1, c, t) or (m, c, t)
        One row is for all queries.
    widths : ndarray of shape (c,), optional
        Bandwidths in y; None is for steps at the values.
    density : bool, default=False
        Whether densities are wanted; they have bandwidths.
    """

    threshold: Array
    widths: Array | None = None
    density: bool = False

    @property
    def at_zero(self) -> Array:
        """What is true of a value that is always zero, of shape (1, c, t) or (m, c, t)."""
        if self.widths is None:
            return np.asarray(self.threshold >= 0, dtype=np.float64)
        u = self.threshold / self.widths[:, None]
        return normal_density(u) / self.widths[:, None] if self.density else np.asarray(ndtr(u))

    def at(self, rows: Index) -> Function:
        """Return the same for some queries."""
        return replace(self, threshold=rows_of(self.threshold, rows))

    def checked(self, chunk: Chunk) -> Chunk:
        """Return a chunk that has as many value columns as are asked about."""
        given, asked = chunk.value.shape[1], self.threshold.shape[1]
        if given != asked:
            raise ValueError(f"value must be {'one column' if asked == 1 else f'{asked} columns'}, got {given}")
        return chunk

    def known(self, recipe: Recipe, problem: Problem, value: Array) -> tuple[Array, NDArray[np.bool_]]:
        """Return what arrays say, of shape (m, c, t), and which windows are not empty."""
        found = []
        for number, column in enumerate(value.T):
            threshold = self.threshold[:, number]
            if self.widths is None:
                found.append(known_cdf(recipe, problem, column, threshold))
            else:
                width = float(self.widths[number])
                found.append(known_smooth(recipe, problem, column, threshold, width, density=self.density))
        return np.stack([one for one, _ in found], axis=1), found[0][1]


@dataclass(frozen=True, eq=False)
class HowMuchBelow:
    """Ask for sums on either side of thresholds: `Sides` of each value column."""

    asked: Asked
    function: Function

    def of(self, chunk: Chunk) -> tuple[Sides, ...]:
        """Ask a chunk."""
        chunk, sides = self.function.checked(of_positive_weight(chunk)), []
        problem = bare_problem(self.asked, chunk, np.arange(len(chunk.key)))
        for number, value in enumerate(chunk.value.T):
            order = np.argsort(value, kind="stable")
            rank = ranks(value[order], self.function.threshold[:, number])
            sides.append(sides_of(self.asked.recipe, problem, order, rank))
        return tuple(sides)

    def joined(self, one: tuple[Sides, ...], other: tuple[Sides, ...]) -> tuple[Sides, ...]:
        """Return the answer of the rows of both."""
        return tuple(a.joined(b) for a, b in zip(one, other, strict=True))

    def result(self, answer: tuple[Sides, ...]) -> tuple[Array, Array]:
        """Return shares of shape (m, c, t), NaN where windows are empty, and logarithms of the sums of all weights."""
        shares = [sides.share() for sides in answer]
        for number, share in enumerate(shares):
            keep_order(share, self.function.threshold[:, number])
        first = answer[0]
        with np.errstate(divide="ignore"):
            return np.stack(shares, axis=1), first.unit[:, 0] + np.log(first.below[:, 0] + first.above[:, 0])


@dataclass(frozen=True, eq=False)
class HowSmooth:
    """Ask for sums of weights times columns of values, smoothed in y: a `PoolState`."""

    asked: Asked
    function: Function

    def of(self, chunk: Chunk) -> PoolState:
        """Ask a chunk."""
        chunk = self.function.checked(of_positive_weight(chunk))
        state = self.asked.state(chunk._replace(value=np.zeros((len(chunk.key), 1))), np.zeros(1))
        problem = bare_problem(self.asked, chunk, np.arange(len(chunk.key)))
        found, occupied = self.function.known(self.asked.recipe, problem, chunk.value)
        mean = np.where(occupied[:, None, None], found, 0.0).reshape(len(found), -1)
        return replace(state, numerator=state.denominator[:, None] * mean)

    def joined(self, one: PoolState, other: PoolState) -> PoolState:
        """Return the answer of the rows of both."""
        return merge_states(one, other, None)

    def result(self, answer: PoolState) -> tuple[Array, Array]:
        """Return means of shape (m, c, t), NaN where windows are empty, and logarithms of the sums of all weights."""
        sums, total = answer.numerator, answer.denominator[:, None]
        mean = np.divide(sums, total, where=total > 0, out=np.full(sums.shape, np.nan))
        return mean.reshape(len(mean), self.function.threshold.shape[1], -1), answer.log_denominator


def chunk_functions(
    recipe: Recipe, query: ArrayLike, chunks: Chunks, function: Function, progress: Progress | None = None
) -> Array:
    """Return distribution functions of pairs in chunks.

    Parameters
    ----------
    recipe : Recipe
        How to weigh, and what empty windows get; of degree 0.
    query : array_like of shape (m,) or (m, d)
        Where.
    chunks : Chunks
        The pairs; they have to be read again where windows are empty and something fills them, or far from all rows.
    function : Function
        What is wanted, for as many value columns as there are.
    progress : callable, optional
        As of `chunk_quantiles`.

    Returns
    -------
    ndarray of shape (m, c, t)
        With what the recipe says for empty windows.
    """
    asked = asked_of(recipe, query, chunks.labels)
    return counted_functions(asked, partial(ask_all, chunks, progress), function, again=chunks.again)


def counted_functions(asked: Asked, ask: Ask, function: Function, *, again: bool = True) -> Array:
    """Return distribution functions of pairs that answer questions, with empty windows as the recipe says.

    Parameters
    ----------
    asked : Asked
        Where and how.
    ask : callable
        As of `Counting`.
    function : Function
        What is wanted.
    again : bool, default=True
        Whether more than one question may be asked.

    Returns
    -------
    ndarray of shape (m, c, t)
        The answers.
    """
    recipe = asked.recipe
    found, mass = _answers(asked, ask, function)
    occupied = ~np.isneginf(mass)
    far = np.flatnonzero(occupied & (np.abs(np.where(occupied, mass, 0.0)) >= FAR))

    def once_more(why: str) -> None:
        if not again:
            raise ValueError(
                f"{why} go through the pairs once more, which an iterator does not allow; give a list, an array or a "
                "file, or leave such queries out"
            )

    if len(far) and not recipe.kernel.is_compact:
        once_more("queries that are far from all rows")
        found[far] = Counting(asked, ask).nearest(far, None, lambda p, v: function.at(far).known(recipe, p, v)[0])

    def fill(rows: Index) -> Array:
        once_more(f"empty windows, with empty={recipe.empty!r},")
        if recipe.empty == "nearest":
            some = function.at(rows)
            counting = Counting(asked, ask)
            return counting.nearest(rows, "nearest", lambda p, v: array_functions(recipe, p, v, some)).reshape(
                len(rows), -1
            )
        one = replace(asked.at(rows), recipe=replace(recipe, kernel=get_kernel("constant")))
        return _answers(one, ask, function.at(rows))[0].reshape(len(rows), -1)

    return filled(recipe, found, occupied, function.at_zero, fill)


def _answers(asked: Asked, ask: Ask, function: Function) -> tuple[Array, Array]:
    """Ask once: functions of shape (m, c, t), and logarithms of the sums of all weights."""
    if function.widths is None:
        below = HowMuchBelow(asked, function)
        return below.result(ask(below))
    smooth = HowSmooth(asked, function)
    return smooth.result(ask(smooth))


def array_functions(recipe: Recipe, problem: Problem, value: Array, function: Function) -> Array:
    """Return distribution functions of a problem and its values, of shape (m, c, t); parameters as above."""

    def known(some: Problem, rows: Index) -> tuple[Array, NDArray[np.bool_]]:
        return function.at(rows).known(recipe, some, value)

    return settled(recipe, problem, known, function.at_zero)
