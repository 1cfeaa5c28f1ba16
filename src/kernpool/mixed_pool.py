"""Pooling with categorical columns: from a `MixedProblem` to fits and values."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from kernpool.empty_windows import fill_empty
from kernpool.far_keys import lost_shares
from kernpool.far_weights import Factors
from kernpool.fits import fit_by
from kernpool.local_linear import LocalFit
from kernpool.mixed import MixedProblem
from kernpool.problem import Problem
from kernpool.progress import Progress
from kernpool.state import PoolState

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

    return fit_by(reduce, mixed.problem, _factors(mixed))


def _factors(mixed: MixedProblem) -> Factors | None:
    def factors(rows: NDArray[np.intp], keys: NDArray[np.intp]) -> Array:
        total = np.zeros(keys.shape)
        for a, table in enumerate(mixed.log_tables):
            total += table[mixed.query_code[rows, a, None], mixed.key_code[keys, a]]
        return total

    return factors if mixed.tables else None


def value_shares(mixed: MixedProblem, fit: LocalFit, alpha: Array) -> Array:
    r"""Compute the share of every value in each fit.

    Parameters
    ----------
    mixed : MixedProblem
        What was fitted.
    fit : LocalFit
        From `mixed_fit`.
    alpha : ndarray of shape (m, n)
        Pooling weights, from `weight_tables`.

    Returns
    -------
    ndarray of shape (m, n)
        :math:`\alpha_{ij} (b_i + \tau_i \cdot t_{ij})`; alpha itself where the window is empty.

    Examples
    --------
    >>> from kernpool import Problem
    >>> from kernpool.weights import weight_tables
    >>> nothing = np.zeros((3, 0), dtype=np.int64)
    >>> problem = Problem.from_arrays([3.0], [0.0, 1.0, 2.0], [5.0, 6.0, 7.0], kernel="constant", moments=1)
    >>> mixed = MixedProblem(problem, nothing[:1], nothing, (), ())
    >>> value_shares(mixed, mixed_fit(mixed), weight_tables(lambda _: mixed)[0])
    array([[-0.66666667,  0.33333333,  1.33333333]])
    """
    problem = mixed.problem
    tilted = np.repeat(fit.base[:, None], alpha.shape[1], axis=1)
    for a in range(problem.key.shape[1]):
        tilted += fit.tilt[:, a, None] * problem.similarity.offset(problem.query, problem.key, a)
    shares: Array = np.where(fit.occupied[:, None], alpha * tilted, alpha)
    lost = np.flatnonzero(fit.lost)
    if lost.size:
        shares[lost] = lost_shares(problem, lost, _factors(mixed))
    return shares


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
