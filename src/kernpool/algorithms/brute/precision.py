"""What the ways of brute force share: how arrays go into loops, in which precision, and where digits may be lost."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernpool.core.problem import Problem
from kernpool.kernels.forms import Gaussian

# Sums of weights per key below which digits may be lost: to underflow, or at the edge of a compact kernel.
UNDERFLOW, UNDERFLOW_32, LOST_ON_EDGE = 1e-280, 1e-30, 1e-10


def is_gaussian(problem: Problem) -> bool:
    """Whether the kernel is the one whose two compositions agree."""
    return isinstance(problem.similarity.kernel.form, Gaussian)


def read_only(array: NDArray[Any]) -> NDArray[Any]:
    """Return an array as loops take it: contiguous, and read-only whether or not it was.

    To Numba both are part of the type, and every mix of types is compiled by itself: six of two seconds were seen.
    """
    view = np.ascontiguousarray(array).view()
    view.flags.writeable = False
    return view


def narrow_type(problem: Problem) -> np.dtype[Any]:
    """Return the float width to compute pairs in: float32 if the arrays came so and are in its range."""
    if problem.dtype == np.float64:
        return problem.dtype
    farthest = max(max(x.max(), -x.min()) for x in problem.ends) / problem.similarity.bandwidth.min()
    return problem.dtype if farthest < 1e15 else np.dtype(np.float64)


def farthest_square(problem: Problem, scale: NDArray[np.float64]) -> float:
    """Return a bound of all squared distances of scaled pairs: the one between the corners of their box."""
    query_low, query_high, key_low, key_high = problem.ends
    extent = np.maximum(query_high, key_high) - np.minimum(query_low, key_low)
    return float(np.sum((extent * scale) ** 2))


def transposed(problem: Problem) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return keys and values column by column, arranged once for all loops that read them so."""

    def arrange() -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        return np.ascontiguousarray(problem.key.T), np.ascontiguousarray(problem.value.T)

    return problem.prepare("transposed", (problem.key, problem.value), arrange)
