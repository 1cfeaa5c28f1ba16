"""Local fits of a problem: sums, the solver, and where these have lost a plane, the keys themselves."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from kernpool.algorithms.far.keys import fit_lost
from kernpool.core.local_fit import LocalFit, solve
from kernpool.core.problem import Problem
from kernpool.core.state import PoolState
from kernpool.execution.progress import Progress
from kernpool.pooling.plan import choose


def local_fit(
    problem: Problem, algorithm: str = "auto", n_jobs: int | None = None, progress: Progress | None = None
) -> LocalFit:
    """Fit a plane around each query of a problem with ``degree=1``, by the keys themselves where sums have lost it.

    Parameters
    ----------
    problem : Problem
        What to fit.
    algorithm, n_jobs, progress
        As in `pool`.

    Returns
    -------
    LocalFit
        Values, slopes per bandwidth, and ranks; zeros for empty windows.

    Examples
    --------
    >>> import kernpool
    >>> problem = kernpool.Problem.from_arrays([1.0], [0.0, 2.0, 3.0], [5.0, 9.0, 11.0], bandwidth=2.0, degree=1)
    >>> local_fit(problem).slope / problem.similarity.bandwidth[:, None]
    array([[[2.]]])
    """
    plan, centred = choose(problem, algorithm), problem.without_center()
    fit = solve(plan.reduce(centred, n_jobs=n_jobs, progress=progress), problem.layout)
    return _with_center(problem, fit_lost(problem, fit))


def fit_by(reduce: Callable[[Problem], PoolState], problem: Problem) -> LocalFit:
    """Fit around each query by some way to sum; constant where sums have lost a plane, see `local_linear.solve`.

    Parameters
    ----------
    reduce : callable
        Sums a problem.
    problem : Problem
        What to fit.

    Returns
    -------
    LocalFit
        Values, slopes per bandwidth, and ranks; zeros for empty windows.

    Examples
    --------
    >>> import kernpool
    >>> problem = kernpool.Problem.from_arrays([1.0], [0.0, 2.0], [5.0, 9.0])
    >>> fit_by(choose(problem).reduce, problem).intercept
    array([[7.]])
    """
    return _with_center(problem, solve(reduce(problem.without_center()), problem.layout))


def _with_center(problem: Problem, fit: LocalFit) -> LocalFit:
    return replace(fit, intercept=np.where(fit.occupied[:, None], fit.intercept + problem.value_center, 0.0))
