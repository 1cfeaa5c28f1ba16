"""Tree: keys and queries in kd order; a tile of queries visits the leaves it needs.

A query may miss `tol` of its weight. What it misses lies in leaves so far away that a bound on their weight, from the
distance of their boxes, stays below that share; compact kernels miss nothing. Leaves that are less far are summed in
float32, as long as no digit of the result can tell (`tree_pairs`). A node that lies in the support of a whole tile is
added by its moments where that pays (`tree_moments`). Gradients leave out what is too far as well (`tree_gradients`).

Not for masks, which say something about pairs and not about places.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from kernpool.algorithms import brute
from kernpool.algorithms.base import Algorithm, Gradients
from kernpool.algorithms.reference import may_underflow
from kernpool.algorithms.verification import compared
from kernpool.problem import Problem
from kernpool.progress import Progress
from kernpool.state import PoolState

Array = NDArray[np.float64]

SAMPLE = 4096  # keys, and queries, that an estimate of the work looks at
TILES_OF_SAMPLE = 32


def _in_logarithms(problem: Problem) -> bool:
    """Whether weights underflow within the support, so that boxes cannot say who is in; brute force knows how."""
    return problem.similarity.kernel.is_compact and may_underflow(problem)


def reduce(problem: Problem, n_jobs: int = 1, progress: Progress | None = None) -> PoolState:
    """Sum weights and weighted values over the keys that matter."""
    if _in_logarithms(problem):
        return brute.reduce(problem, n_jobs, progress)
    from kernpool.algorithms.tree_walk import Walk  # loads Numba, which small problems never wait for

    walk = Walk(replace(problem, moments=0), n_jobs)
    state, _ = walk.reduce(walk.blocks(), n_jobs, None if problem.moments else progress)
    state = compared(walk.problem, state, TREE.name, n_jobs)
    if problem.moments:
        from kernpool.algorithms import tree_local_linear

        return tree_local_linear.reduce(problem, state, n_jobs, progress)
    return state


def pullback(
    problem: Problem,
    state: PoolState,
    cotangent: Array,
    wanted: frozenset[str],
    n_jobs: int = 1,
    progress: Progress | None = None,
) -> Gradients:
    """Differentiate over the keys that matter."""
    if _in_logarithms(problem):
        return brute.pullback(problem, state, cotangent, wanted, n_jobs, progress)
    from kernpool.algorithms import tree_gradients

    return tree_gradients.pullback(problem, state, cotangent, wanted, n_jobs, progress)


def count_pairs(problem: Problem) -> int:
    """Count the pairs of a query and a key that `reduce` looks at one by one, by running it."""
    if _in_logarithms(problem):
        return len(problem.query) * len(problem.key)
    from kernpool.algorithms.tree_walk import Walk

    walk = Walk(problem)
    return walk.reduce(walk.blocks(), 1, None)[1]


def estimate_share(problem: Problem) -> float:
    """Estimate the share of pairs that `reduce` looks at, from a sample that is the same every time.

    At most 4096 keys and queries, evenly spaced in the order they came in, are put into a tree with as many leaves and
    tiles as the sample allows, and 32 of the tiles are run. Leaves of a sample are larger boxes than the real ones, so
    the estimate errs towards brute force.

    Parameters
    ----------
    problem : Problem
        What is to be summed.

    Returns
    -------
    float
        Between 0 and 1: near 1, nothing can be left out and brute force is faster.
    """
    if _in_logarithms(problem):
        return 1.0
    from kernpool.algorithms.tree_walk import LEAF, TILE, Walk

    m, n = problem.shape
    rows, keys = _spread(m, SAMPLE), _spread(n, SAMPLE)
    leaf = int(np.clip(LEAF * len(keys) // n, 8, LEAF))
    walk = Walk(_sample(problem, rows, keys), 1, leaf, int(np.clip(TILE * len(rows) // m, 8, TILE)))
    tiles = -(-len(rows) // walk.tile)
    blocks = [
        slice(tile * walk.tile, min((tile + 1) * walk.tile, len(rows))) for tile in _spread(tiles, TILES_OF_SAMPLE)
    ]
    looked_at = sum(block.stop - block.start for block in blocks) * len(walk.tree.key) * leaf
    return float(min(1.0, walk.reduce(blocks, 1, None)[1] / looked_at))


def _spread(length: int, most: int) -> NDArray[np.int64]:
    """Return at most `most` numbers below `length`, evenly spaced."""
    size = min(length, most)
    return np.arange(size) * length // size


def _sample(problem: Problem, rows: NDArray[np.int64], keys: NDArray[np.int64]) -> Problem:
    """Return the problem of these queries and these keys, without own keys: they are one in many."""
    weight = None if problem.key_weight is None else problem.key_weight[keys]
    return replace(
        problem,
        query=problem.query[rows],
        key=problem.key[keys],
        value=problem.value[keys],
        key_weight=weight if weight is None or weight.any() else None,
        self_index=None,
    )


TREE = Algorithm(
    name="kd_tree",
    summary="near pairs only, by a kd tree",
    reduce=reduce,
    pullback=pullback,
    attn_mask=False,
    logit_bias=False,
    own_kernels=False,
    columns=(1, 16),
    moments=1,
)
