"""The bootstrap of a fit to chunks, in one pass over them: all resamples keep their sums."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from kernpool.core.state import PoolState
from kernpool.data.chunks.base import Chunks
from kernpool.execution.progress import Progress
from kernpool.inference import draws
from kernpool.inference.bootstrap import Resampling, Statistic, warn_of_empty
from kernpool.pooling.chunked import Asked, center_of, merge_states

Array = NDArray[np.float64]


def bootstrap_chunks(
    chunks: Chunks,
    asked: Asked,
    *,
    how: Resampling,
    statistic: Statistic | None = None,
    progress: Progress | None = None,
) -> Array:
    """Resample a fit to chunks, in one pass over them: all resamples keep their sums.

    Parameters
    ----------
    chunks : Chunks
        Pairs.
    asked : Asked
        How they are pooled, and where.
    how : Resampling
        Of the kind ``"poisson"``.
    statistic, progress
        As of `bootstrap`; progress counts rows, if their number is known.

    Returns
    -------
    ndarray of shape (n_resamples, m), (n_resamples, m, c), or (n_resamples, *statistic)
        As of the arrays that the chunks make.

    Raises
    ------
    ValueError
        If the kind is another, which needs the fit at each row.
    """
    if how.kind != "poisson":
        raise ValueError(
            f"kind={how.kind!r} needs all rows at once, and this model was fitted to chunks; use kind='poisson', which "
            "draws row by row, or fit a sample of the rows"
        )
    seed, recipe = draws.as_seed(how.random_state), asked.recipe
    states: list[PoolState | None] = [None] * how.n_resamples
    center, first, done = None, 0, 0
    for chunk in chunks:
        center = center_of(chunk) if center is None else center
        units = draws.unit_counts(chunk.weight, "the bootstrap")
        size = len(chunk.key) if units is None else int(units.sum())
        if center is None:  # no row has a weight yet
            continue
        for number in range(how.n_resamples):
            counts = draws.poisson_counts(seed, number, first, size)
            times = counts if units is None else draws.sums_of_units(counts, units)
            part = asked.state(chunk._replace(weight=times.astype(np.float64)), center)
            before = states[number]
            states[number] = part if before is None else merge_states(before, part, None)
        first, done = first + size, done + len(chunk.key)
        if progress is not None and chunks.rows is not None:
            progress(done, chunks.rows)

    if center is None:
        raise ValueError("there are no pairs of positive weight: the source is empty, or its weights are all zero")
    empty = []
    ridge = recipe.ridge_weight(asked.query.array.shape[1])

    def fits() -> Iterator[Array]:
        for state in states:
            assert state is not None
            fit = asked.sums(state, center, chunks.flat).fit(ridge)
            empty.append(not fit.occupied.all())
            if empty[-1] and recipe.empty not in ("nan", "zero"):
                raise ValueError(
                    f"some windows of a resample are empty, and empty={recipe.empty!r} would go through the chunks "
                    "once more for each; use a larger bandwidth, or empty='nan' or 'zero'"
                )
            values = np.where(fit.occupied[:, None], fit.intercept, 0.0 if recipe.empty == "zero" else np.nan)
            yield values[:, 0] if chunks.flat else values

    found = how.collect(fits(), statistic, None)
    warn_of_empty(sum(empty), how, recipe)
    return found
