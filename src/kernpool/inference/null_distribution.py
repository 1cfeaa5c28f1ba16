"""Outputs drawn under a null hypothesis: its fit, and residuals times random multipliers."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from kernpool.execution.messages import check_choice
from kernpool.execution.progress import current_progress
from kernpool.inference.multiplied import multiplied

Array = NDArray[np.float64]

KINDS = ("wild", "mammen", "gaussian")


def resample(
    statistic: Callable[[Array], Array],
    middle: Array,
    residual: Array,
    *,
    kind: str,
    n_resamples: int,
    seed: int,
) -> Array:
    """Return a statistic of outputs under the null hypothesis, residuals times random multipliers.

    Parameters
    ----------
    statistic : callable
        Takes outputs of shape (n, columns), and returns numbers of shape (..., columns).
    middle : ndarray of shape (n,)
        The fit under the null hypothesis.
    residual : ndarray of shape (n,)
        What is multiplied.
    kind : {"wild", "mammen", "gaussian"}
        By what.
    n_resamples, seed : int
        How many, and the seed.

    Returns
    -------
    ndarray of shape (..., n_resamples)
        In the order of their numbers. Progress is reported after each block of columns.
    """
    progress, parts = current_progress(), []
    for block, moved in multiplied(residual[:, None], kind, seed, n_resamples):
        parts.append(statistic(middle[:, None] + moved[:, :, 0]))
        if progress is not None:
            progress(block.stop, n_resamples)
    return np.concatenate(parts, axis=-1)


def check_kind(kind: str) -> None:
    """Refuse an unknown kind of multipliers."""
    check_choice("kind", kind, KINDS)
