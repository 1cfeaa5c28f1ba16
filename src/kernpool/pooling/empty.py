"""What an empty window gets: the same sum in the limit of a small or of a large bandwidth."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from kernpool.core.problem import Problem
from kernpool.kernels import get_kernel
from kernpool.pooling.plan import choose

Array = NDArray[np.float64]


def limit_problem(problem: Problem, empty: str) -> Problem:
    """Return the problem that fills empty windows: the same sum in the limit of a small or of a large bandwidth.

    The nearest key (keys, if tied) is where a Gaussian of vanishing bandwidth puts its weight, the weighted mean what
    the constant kernel gives; masks, weights and the own key are respected by construction.
    """
    if empty == "nearest":
        return problem.with_kernel(get_kernel("gaussian"), factor=1e-8)
    return problem.with_kernel(get_kernel("constant"))


def fill_empty(problem: Problem, rows: NDArray[np.intp], empty: str, n_jobs: int | None = None) -> Array:
    """Return the values of rows whose window is empty under the policy "nearest" or "mean"."""
    limit = replace(limit_problem(problem.block(rows), empty), degree=0)
    state = choose(limit).reduce(limit, n_jobs=n_jobs)
    with np.errstate(invalid="ignore"):  # 0 / 0 where no key takes part at all
        return state.numerator / state.denominator[:, None]
