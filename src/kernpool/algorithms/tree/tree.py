"""Tree algorithm: keys and queries in kd order; a tile of queries visits only the leaves that can matter to it.

A query may miss the fraction `tol` of its weight. What it misses lies in leaves so far away that a bound on their
weight, from the distance of the boxes, stays below that fraction; with compact kernels nothing is missed. Gradients
leave out what is too far as well (`near_blocks.py`).

Masks are not supported, since they depend on pairs and not on coordinates.
"""

from dataclasses import replace

from kernpool._arrays import Array
from kernpool.algorithms.algorithm import Algorithm, Gradients, may_underflow, tree_seconds
from kernpool.algorithms.brute import brute
from kernpool.algorithms.verification import compared
from kernpool.core import PoolState, Problem
from kernpool.execution import Progress


def _in_logarithms(problem: Problem) -> bool:
    """Return whether weights may underflow inside a compact support, so that brute force in logarithms is needed."""
    return problem.similarity.kernel.is_compact and may_underflow(problem)


def reduce(problem: Problem, n_jobs: int = 1, progress: Progress | None = None) -> PoolState:
    """Compute kernel sums for each query over the keys of non-negligible weight, by a kd tree."""
    if _in_logarithms(problem):
        return brute.reduce(problem, n_jobs, progress)
    from kernpool.algorithms.tree.blocks import (
        PreparedTree,
        visit_blocks,  # loads Numba, which small problems never wait for
    )

    planted = PreparedTree(replace(problem, degree=0), n_jobs)
    state, _ = visit_blocks(planted, planted.blocks(), n_jobs, None if problem.degree else progress)
    state = compared(planted.problem, state, TREE.name, n_jobs)
    if problem.degree:
        from kernpool.algorithms.tree.near_blocks import pool_moments

        return pool_moments(problem, state, n_jobs, progress)
    return state


def pullback(
    problem: Problem,
    state: PoolState,
    cotangent: Array,
    wanted: frozenset[str],
    n_jobs: int = 1,
    progress: Progress | None = None,
) -> Gradients:
    """Compute the gradients of pooling over the keys of non-negligible weight, by blocks in kd order."""
    if _in_logarithms(problem):
        return brute.pullback(problem, state, cotangent, wanted, n_jobs, progress)
    from kernpool.algorithms.tree.near_blocks import differentiate_near

    return differentiate_near(problem, state, cotangent, wanted, n_jobs, progress)


TREE = Algorithm(
    name="kd_tree",
    summary="near pairs only, by a kd tree",
    reduce=reduce,
    pullback=pullback,
    seconds=tree_seconds,
    attn_mask=False,
    logit_bias=False,
    own_kernels=False,
    columns=(1, 16),
    degree=1,
)
