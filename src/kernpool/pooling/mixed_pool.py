"""Pooling with categorical columns: from a `MixedProblem` to fits and values."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from kernpool.core.local_fit import LocalFit
from kernpool.core.problem import Problem
from kernpool.core.state import PoolState
from kernpool.execution.progress import Progress
from kernpool.pooling.empty import fill_empty
from kernpool.pooling.fits import fit_by
from kernpool.pooling.mixed import MixedProblem

Array = NDArray[np.float64]


def mixed_fit(
    mixed: MixedProblem, algorithm: str = "auto", n_jobs: int | None = None, progress: Progress | None = None
) -> LocalFit:
    """Fit a constant or a plane around each query, as the moments of the problem say.

    Parameters
    ----------
    mixed : MixedProblem
        What to fit.
    algorithm, n_jobs, progress
        As in `pool`.

    Returns
    -------
    LocalFit
        Values, and slopes per bandwidth; zeros for empty windows.

    Examples
    --------
    >>> from kernpool import Problem
    >>> from kernpool.kernels import get_categorical_kernel
    >>> kernel, level = get_categorical_kernel("li_racine"), np.array([[0], [1]])
    >>> problem = Problem.from_arrays([5.0, 5.0], [5.0, 5.0], [10.0, 20.0])
    >>> mixed = MixedProblem(problem, level, level, (kernel.table(2, 0.25),), (kernel.table_slope(2, 0.25),))
    >>> mixed_fit(mixed).intercept
    array([[12.],
           [18.]])
    """

    def reduce(centred: Problem) -> PoolState:
        return replace(mixed, problem=centred).reduce(algorithm, n_jobs=n_jobs, progress=progress)

    return fit_by(reduce, mixed.problem)


def settle_empty(mixed: MixedProblem, fit: LocalFit, empty: str, n_jobs: int | None = None) -> Array:
    """Return the values of a fit, with empty windows as `empty` says.

    Parameters
    ----------
    mixed : MixedProblem
        What was fitted.
    fit : LocalFit
        From `mixed_fit`.
    empty : {"nan", "nearest", "mean", "zero", "raise"}
        As in `pool`; the nearest key and the mean are those of the numeric columns, whatever the levels.
    n_jobs : int, optional
        Threads.

    Returns
    -------
    ndarray of shape (m, c)
        One value per query.
    """
    state = PoolState(np.zeros(len(fit.rank)), fit.occupied.astype(np.float64), fit.intercept)
    return state.finalize(empty, lambda rows: fill_empty(mixed.problem, rows, empty, n_jobs))  # type: ignore[arg-type]  # checked by finalize
