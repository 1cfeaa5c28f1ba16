"""The bootstrap of a fit to chunks, in one pass over them: all resamples keep their sums."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

from kernpool.core.state import PoolState, empty_state
from kernpool.data.chunks.base import Chunk, Chunks
from kernpool.execution.progress import Progress
from kernpool.inference import draws
from kernpool.inference.bootstrap import Resampling, Statistic, warn_of_empty
from kernpool.pooling.chunked import NO_PAIRS, Asked, center_of, merge_states

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
    ndarray of shape (n_resamples, m), (n_resamples, m, c), or (n_resamples, ...) of a statistic
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
    seed, first, done = draws.as_seed(how.random_state), 0, 0
    center: Array | None = None
    state: PoolState | None = None
    for chunk in chunks:
        center = center_of(chunk) if center is None else center
        if center is not None:
            if state is None:
                how.check_request(statistic, len(asked) * len(center))
                state = empty_state(how.n_resamples * len(asked), asked.layout(len(center)).width)
            state, first = resampled_state(state, asked, [chunk], center, seed, first, how.n_resamples)
        done += len(chunk.key)
        if progress is not None and chunks.rows is not None:
            progress(done, chunks.rows)
    return collect_states(state, asked, center, bool(chunks.flat), how, statistic)


def unit_rows(chunk: Chunk) -> tuple[NDArray[np.int64] | None, int]:
    """Return how many equal rows each row stands for (None if one each), and how many these are."""
    units = draws.unit_counts(chunk.weight, "the bootstrap")
    return units, len(chunk.key) if units is None else int(units.sum())


def resampled_state(
    state: PoolState,
    asked: Asked,
    chunks: Iterable[Chunk],
    center: Array,
    seed: int,
    first: int,
    n_resamples: int,
) -> tuple[PoolState, int]:
    """Add chunks to the states of all resamples.

    Parameters
    ----------
    state : PoolState
        Of all resamples at all places, one resample after the other.
    asked : Asked
        How pairs are pooled, and where.
    chunks : iterable of Chunk
        Pairs.
    center : ndarray of shape (c,)
        What is taken off the values.
    seed : int
        Of all resamples.
    first : int
        Number of the first unit row.
    n_resamples : int
        How many.

    Returns
    -------
    PoolState
        With these pairs.
    int
        Number of the unit row behind them.
    """
    for chunk in chunks:
        units, size = unit_rows(chunk)
        parts = []
        for number in range(n_resamples):
            counts = draws.poisson_counts(seed, number, first, size)
            times = counts if units is None else draws.sums_of_units(counts, units)
            parts.append(asked.state(chunk._replace(weight=times.astype(np.float64)), center))
        together = PoolState(
            np.concatenate([part.shift for part in parts]),
            np.concatenate([part.denominator for part in parts]),
            np.concatenate([part.numerator for part in parts]),
        )
        state, first = merge_states(state, together, None), first + size
    return state, first


def collect_states(
    state: PoolState | None,
    asked: Asked,
    center: Array | None,
    flat: bool,
    how: Resampling,
    statistic: Statistic | None,
) -> Array:
    """Return the statistic of each resample, from the states of all of them.

    Parameters
    ----------
    state : PoolState or None
        Of `resampled_state`.
    asked, center
        As there.
    flat : bool
        Whether values are one column without an axis of its own.
    how, statistic
        As of `bootstrap_chunks`.

    Raises
    ------
    ValueError
        If there were no pairs, or a window is empty with ``empty="raise"``.

    Warns
    -----
    EmptyWindowWarning
        If a window is empty. The fit there is NaN, unless ``empty="zero"``: ``"nearest"`` and ``"mean"`` would go
        through the pairs once more for each resample.
    """
    if state is None or center is None:
        raise ValueError(NO_PAIRS)
    recipe, m, empty = asked.recipe, len(asked), []
    ridge = recipe.ridge_weight(asked.query.array.shape[1])

    def fits() -> Iterator[Array]:
        for number in range(how.n_resamples):
            part = state.rows(slice(number * m, (number + 1) * m))
            fit = asked.sums(part, center, flat).fit(ridge)
            empty.append(not fit.occupied.all())
            if empty[-1] and recipe.empty == "raise":
                raise ValueError(
                    f"some windows of resample {number} have no row, and empty='raise'; use a larger bandwidth, or "
                    "empty='nan' or 'zero'"
                )
            values = np.where(fit.occupied[:, None], fit.intercept, 0.0 if recipe.empty == "zero" else np.nan)
            yield values[:, 0] if flat else values

    found = how.collect(fits(), statistic, None)
    if recipe.empty != "zero":
        warn_of_empty(sum(empty), how, "use a larger bandwidth, or a kernel of infinite support")
    return found
