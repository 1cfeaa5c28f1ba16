"""Residuals times random multipliers: one for each row, for each unit row that it stands for, or for each cluster."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from kernpool.inference import draws

Array = NDArray[np.float64]
Integers = NDArray[np.int64]


def multiplied(
    residual: Array,
    kind: str,
    seed: int,
    n_resamples: int,
    *,
    units: Integers | None = None,
    cluster: Integers | None = None,
    results: int = 0,
) -> Iterator[tuple[slice, Array]]:
    """Yield residuals times random multipliers, a block of resamples at a time.

    Parameters
    ----------
    residual : ndarray of shape (n, c)
        One of each unit row that a row stands for.
    kind : str
        As of `draws.multipliers`.
    seed, n_resamples : int
        Of all, and how many.
    units : ndarray of int, shape (n,), optional
        Unit rows that each row stands for. Each has a multiplier of its own, of which a row has the mean.
    cluster : ndarray of int, shape (n,), optional
        Clusters, whose rows have one multiplier together.
    results : int, default=0
        How many numbers each column is to become, if that is more than there are rows.

    Yields
    ------
    block : slice
        Numbers of the resamples.
    values : ndarray of shape (n, resamples, c)
        Outputs, for all of these at once.
    """
    n, c = residual.shape
    size = n if units is None else int(units.sum())
    for block in draws.blocks(n_resamples, max(size, results) * c):
        drawn = size if cluster is None else int(cluster.max()) + 1
        sign = draws.multipliers(kind, seed, block, drawn)
        sign = sign[cluster] if cluster is not None else means_of_units(sign, units)
        yield block, sign[:, :, None] * residual[:, None, :]


def means_of_units(drawn: Array, units: Integers | None) -> Array:
    """Return means over the unit rows of each row; for a weight of zero nothing counts."""
    return drawn if units is None else draws.sums_of_units(drawn, units) / np.maximum(units, 1)[:, None]
