"""Rows that are held back from a fit whose rows are not in memory: by which intervals are calibrated.

Every row has a number (`search_sample.py`). Those whose numbers lie in a range are brought into memory, and whoever
goes through the rows skips them: so they are other rows than those of the fit, and a search that has drawn the smallest
numbers has not seen them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kernpool.data.chunks.base import Chunk, Chunks
from kernpool.estimators.fitted import check_unchanged, numeric_query, recipe_of
from kernpool.estimators.search_sample import Sample, SearchDraw, draw
from kernpool.execution.progress import current_progress
from kernpool.pooling.chunked import ChunkPairs
from kernpool.pooling.recipe import Recipe
from kernpool.pooling.settle import Sums

Array = NDArray[np.float64]

MOST_HELD = 4_000  # the coverage of split conformal, given so many rows, has a standard deviation of half a percent
LEAST_HELD = 2


class Numbers(NamedTuple):
    """Rows whose numbers lie in a range.

    Parameters
    ----------
    seed : int
        Of the numbers.
    least, largest : float
        The ends of the range, which belong to it.
    rows : int
        How many rows of positive weight lie in it.
    """

    seed: int
    least: float
    largest: float
    rows: int


class HeldBack(NamedTuple):
    """Rows that are held back.

    Parameters
    ----------
    key, value, weight : ndarray
        The rows, in an order that was drawn.
    numbers : Numbers
        Which they are.
    rows : int
        How many rows of positive weight there are in all.
    searched : bool
        Whether the search for the bandwidth may have seen some of them.
    """

    key: Array
    value: Array
    weight: Array
    numbers: Numbers
    rows: int
    searched: bool

    def part(self, start: int, stop: int | None = None) -> HeldBack:
        """Return some of them; the others are held back as well."""
        return self._replace(key=self.key[start:stop], value=self.value[start:stop], weight=self.weight[start:stop])


class Source(Protocol):
    """Where the rows of a fit are, and how they are pooled."""

    recipe: Recipe
    outputs: int
    flat: bool

    def read(self, X: ArrayLike, *, warn: bool = True) -> Array:
        """Read places in memory; `warn` says whether to warn of extrapolation."""

    def draw(self, size: int, seed: int) -> Sample | None:
        """Draw the rows of the smallest numbers."""

    def sums(self, query: Array, without: Numbers | None) -> Sums:
        """Sum over all rows but some."""


@dataclass(frozen=True, eq=False)
class ChunksWithout(Chunks):
    """Chunks that skip some rows.

    Parameters
    ----------
    chunks : Chunks
        All rows.
    numbers : Numbers
        Which of them are skipped.
    first : int, default=0
        The place of the first of these rows among all.
    rows : int or None
        How many are left, if that is known.
    """

    chunks: Chunks
    numbers: Numbers
    first: int = 0
    rows: int | None = None

    def __iter__(self) -> Iterator[Chunk]:
        """Go through the others."""
        bits = np.random.PCG64(self.numbers.seed)
        bits.advance(self.first)
        generator = np.random.Generator(bits)
        for chunk in self.chunks:
            lots = generator.random(len(chunk.key))
            kept = (lots < self.numbers.least) | (lots > self.numbers.largest)
            if kept.all():
                yield chunk
            else:
                # A named tuple of its own fields.
                yield Chunk(*(None if part is None else part[kept] for part in chunk))  # type: ignore[arg-type]

    @property
    def flat(self) -> bool:  # type: ignore[override]  # read only, a field elsewhere
        """As of all rows."""
        return self.chunks.flat

    @property
    def outputs(self) -> int | None:  # type: ignore[override]  # read only, a field elsewhere
        """As of all rows."""
        return self.chunks.outputs

    @property
    def names(self) -> tuple[str, ...] | None:  # type: ignore[override]  # read only, a field elsewhere
        """As of all rows."""
        return self.chunks.names


class ChunkSource:
    """The chunks that a regressor was fitted to.

    Parameters
    ----------
    model : KernelRegressor
        Fitted to chunks.
    """

    def __init__(self, model: Any) -> None:
        check_unchanged(model)
        self._model, self._chunks, self.recipe = model, model.chunks_, recipe_of(model)
        first = next(iter(self._chunks), None)
        if first is None:
            raise ValueError("there are no rows: the source is empty")
        self.outputs, self.flat = first.value.shape[1], bool(self._chunks.flat)

    def read(self, X: ArrayLike, *, warn: bool = True) -> Array:
        """Read places."""
        return np.asarray(numeric_query(self._model, X, warn=warn), dtype=np.float64)

    def draw(self, size: int, seed: int) -> Sample | None:
        """Draw rows in one pass."""
        return draw(self._chunks, size, seed)

    def sums(self, query: Array, without: Numbers | None) -> Sums:
        """Sum over all rows but some in one pass."""
        chunks, rows = self._chunks, self._chunks.rows
        if without is not None:
            # With weights of zero there may be more rows in the range, and fewer left.
            chunks = ChunksWithout(chunks, without, rows=None if rows is None else max(rows - without.rows, 0))
        return ChunkPairs(chunks).reduce(self.recipe, query, current_progress())


def held_back(source: Source, size: int, level_rows: int, search: SearchDraw | None, seed: int, which: Any) -> HeldBack:
    """Choose rows to hold back.

    Parameters
    ----------
    source : Source
        Where the rows are.
    size : int
        How many, or a quarter of all if that is less.
    level_rows : int
        How many are needed for a finite interval.
    search : SearchDraw or None
        What the search for the bandwidth drew; None if there was none, or nobody knows.
    seed : int
        Of the numbers of rows, if nothing was drawn before.
    which : {None, "all", "unsearched"}
        Whether the search may have seen them. None is rows that it has not seen, if there are as many as are wanted.

    Returns
    -------
    HeldBack
        In the order of their numbers.

    Raises
    ------
    ValueError
        If there are too few rows to hold some back.
    """
    seen, seed = (0, seed) if search is None else search
    sample = source.draw(seen + size, seed)
    rows = 0 if sample is None else sample.rows
    wanted = min(size, max(rows // 4, LEAST_HELD))
    if sample is None or rows <= wanted:
        raise ValueError(
            f"prediction intervals of a fit whose rows are not in memory hold some rows back, and there are {rows}; "
            "fit the rows in memory, or give X_calibration and y_calibration"
        )
    unsearched = max(rows - seen, 0)
    if which == "unsearched" and unsearched < min(wanted, level_rows):
        raise ValueError(
            f"calibration='unsearched' needs rows that the search for the bandwidth has not seen, and of {rows} there "
            f"are {unsearched}; fit with max_search_rows less than the number of rows, or leave calibration out"
        )
    fresh = which == "unsearched" or (which is None and unsearched >= wanted)
    first = seen if fresh else 0
    order = np.argsort(sample.lot)[first : first + (min(wanted, unsearched) if fresh else wanted)]
    lots = sample.lot[order]
    numbers = Numbers(seed, float(lots[0]), float(lots[-1]), len(order))
    return HeldBack(
        sample.key[order], sample.value[order], sample.weight[order], numbers, rows, searched=not fresh and seen > 0
    )


def values_of(recipe: Recipe, sums: Sums, queries: int) -> Array:
    """Return predictions of shape (m, c): NaN where the window is empty and ``empty`` is ``"nan"`` or ``"raise"``.

    Where it is ``"nearest"``, the first `queries` of them, which are not calibration rows, are warned of.
    """
    fit = sums.fit(recipe.ridge_weight(sums.layout.columns))
    values, (empty,) = fit.intercept, np.nonzero(~fit.occupied)
    if empty.size and recipe.empty in ("mean", "nearest") and sums.fill is not None:
        values[empty] = sums.fill(empty)
        if recipe.empty == "nearest":
            recipe.fill_empty(values[:queries], fit.occupied[:queries], lambda rows: values[rows])
    elif empty.size:
        values[empty] = 0.0 if recipe.empty == "zero" else np.nan
    return values
