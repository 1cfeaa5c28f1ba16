"""Sweep: one column, in time linear in the numbers of keys and of queries."""

from __future__ import annotations

from math import sqrt

import numpy as np

from kernpool.algorithms import brute
from kernpool.algorithms.base import Algorithm
from kernpool.problem import Problem
from kernpool.progress import Progress
from kernpool.state import PoolState


def reduce(problem: Problem, n_jobs: int = 1, progress: Progress | None = None) -> PoolState:
    """Sum weights and weighted values over all keys."""
    from kernpool.algorithms import exponentials, polynomials, taylor, windows
    from kernpool.algorithms.line import Line

    (m, n), kernel = problem.shape, problem.similarity.kernel
    # Bins of keys cost about as much as 25 pairs each and groups of queries 100, and the smaller they are, the fewer
    # pairs are visited one by one: about 2 m n / bins.
    key_bin = max(8.0, 5.0 * sqrt(n / m))
    query_group = max(0.5, 10.0 * sqrt(m / n))
    line = Line.arrange(problem, key_bin, query_group, n_jobs)
    result = PoolState(np.zeros(m), np.empty(m), np.empty((m, problem.value.shape[1])))
    if kernel.name in polynomials.POLYNOMIALS:
        polynomials.reduce(line, kernel.name, result, n_jobs, progress)
    elif kernel.name == "laplace":
        exponentials.reduce(line, result, n_jobs, progress)
    elif kernel.name == "gaussian":
        taylor.reduce(line, problem.tol, result, n_jobs, progress)
    else:
        result.denominator[:] = -1.0
    left = result.denominator < 0
    if left.any():
        windows.reduce(line, kernel, np.flatnonzero(left[line.queries.order]), problem.tol, result, n_jobs, progress)
    result.shift[result.denominator == 0] = -np.inf
    return result


SWEEP = Algorithm(
    name="sweep",
    summary="one column in linear time",
    reduce=reduce,
    pullback=brute.pullback,
    attn_mask=False,
    logit_bias=False,
    own_kernels=False,
    columns=(1, 1),
)
