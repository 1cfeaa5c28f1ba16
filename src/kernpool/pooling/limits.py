"""What fills empty windows: the same sum in the limit of a small or of a large bandwidth."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from kernpool.core.problem import Problem
from kernpool.core.state import PoolState
from kernpool.kernels import get_kernel
from kernpool.pooling.choice import choose

Array = NDArray[np.float64]


def limit_problem(problem: Problem, empty: str) -> Problem:
    """Return the problem that fills empty windows: weighted means in the limit of a small or of a large bandwidth.

    The nearest key (keys, if tied) is where a Gaussian of vanishing bandwidth puts its weight, the weighted mean what
    the constant kernel gives; masks, weights and the query itself are respected by construction. Of categorical
    columns, which may be what keeps keys out, it knows nothing.

    Parameters
    ----------
    problem : Problem
        What was pooled.
    empty : {"nearest", "mean"}
        Which limit.

    Returns
    -------
    Problem
        Local constant.
    """
    # A tree for the limit would take the place of the one that the next queries need.
    bare = replace(problem, factors=None, degree=0, prepared=None)
    if empty == "nearest":
        return bare.with_kernel(get_kernel("gaussian"), factor=1e-8)
    return bare.with_kernel(get_kernel("constant"))


def limit_values(problem: Problem, rows: NDArray[np.intp], empty: str, n_jobs: int | None = None) -> Array:
    """Return the values of rows whose window is empty under the policy "nearest" or "mean"."""
    limit = limit_problem(problem.block(rows), empty)
    return quotient(choose(limit).reduce(limit, n_jobs=n_jobs))


def quotient(state: PoolState) -> Array:
    """Return weighted means, NaN where no key takes part at all."""
    with np.errstate(invalid="ignore"):
        return np.asarray(state.numerator / state.denominator[:, None])
