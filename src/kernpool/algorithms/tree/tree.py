"""Tree algorithm: keys and queries in kd order; a tile of queries visits only the leaves that can matter to it.

A query may miss the fraction `tol` of its weight. What it misses lies in leaves so far away that a bound on their
weight, from the distance of the boxes, stays below that fraction; with compact kernels nothing is missed. Leaves at a
medium distance are summed in float32, as far as that changes no digit of the result. A node that lies in the support
of a whole tile is added by its moments where that is faster (both in `loops/leaf_sums.py`). Gradients leave out what
is too far as well (`near_blocks.py`).

Masks are not supported, since they depend on pairs and not on coordinates.
"""

from collections.abc import Mapping
from dataclasses import replace

from kernpool.algorithms.algorithm import Algorithm, Array, Gradients, PairSample, pair_cost
from kernpool.algorithms.brute import brute
from kernpool.algorithms.brute.brute import pair_seconds
from kernpool.algorithms.reference import may_underflow
from kernpool.algorithms.verification import compared
from kernpool.core import PoolState, Problem
from kernpool.execution.progress import Progress
from kernpool.kernels.registry import Gaussian


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


PER_PLACE, NEAR_PAIR = 0.3e-6, 0.8e-9  # of a key or a query in kd order; of a pair near enough to be visited, at least


def seconds(problem: Problem, look: PairSample, known: Mapping[str, float]) -> float:
    """Estimate the run time of the tree in seconds; infinity where it is not worthwhile."""
    (m, n), kernel = problem.shape, problem.similarity.kernel
    building = 1.5e-3 + PER_PLACE * (m + n)
    # On a line the sweep is faster wherever kernels add up: local lines at 10 000 keys take it 7 to 27 ms with compact
    # kernels, and the tree 44 to 420. A look takes 8 ms, half a pass, and was too kind to the tree.
    on_a_line = problem.key.shape[1] == 1 and kernel.adds_up
    if on_a_line or building + look.seconds > 0.7 * known["brute"]:
        return float("inf")  # no sample can help it
    return building + m * n * look.share * max(NEAR_PAIR, _pair_seconds(problem))


def _pair_seconds(problem: Problem) -> float:
    """Estimate the seconds per query-key pair in the leaves that the tree sums, including the traversal."""
    similarity, d = problem.similarity, int(problem.key.shape[1])
    if problem.degree:  # leaves are small, and sums of moments are by stages
        return 4.5 * pair_seconds(problem)
    if similarity.composition == "product" and d > 1 and not isinstance(similarity.kernel.form, Gaussian):
        return (1.0 if similarity.kernel.is_compact else 1.5) * pair_seconds(problem)
    return 1.2 * pair_cost("tree", similarity.kernel.name, d) + 0.3e-9 * (int(problem.value.shape[1]) - 1)


TREE = Algorithm(
    name="kd_tree",
    summary="near pairs only, by a kd tree",
    reduce=reduce,
    pullback=pullback,
    seconds=seconds,
    attn_mask=False,
    logit_bias=False,
    own_kernels=False,
    columns=(1, 16),
    degree=1,
)
