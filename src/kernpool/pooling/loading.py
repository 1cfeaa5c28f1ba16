"""When compiled code is worth being loaded: not for a single call that dense NumPy does in less than that costs."""

from __future__ import annotations

from kernpool.algorithms.estimate import Look
from kernpool.algorithms.reference import REFERENCE
from kernpool.core.problem import Problem

# What a single call is charged for compiled loops. They take half a second to a second to load, once in a process, and
# a notebook makes some hundred calls: up to a hundred thousand pairs dense NumPy is done in half a millisecond.
LOADING = 8e-4


def is_dense(problem: Problem) -> bool:
    """Tell whether dense NumPy is done before compiled loops would be loaded, which all others are charged.

    Parameters
    ----------
    problem : Problem
        Of a single call; its shape, its degree and its numbers of columns count.

    Returns
    -------
    bool
        Up to about a hundred thousand pairs.
    """
    return REFERENCE.seconds(problem, Look(problem), {}) <= LOADING
