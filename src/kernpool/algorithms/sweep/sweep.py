"""Sweep: one column, in time that grows with the keys plus the queries and not with their pairs.

Keys and queries are put in order, up to a few neighbours. What makes a kernel add up decides the rest (`sums.py`):

=================== ============================================================ ======================
kernels             far keys                                                     file
=================== ============================================================ ======================
compact polynomials moments of cells, added up to one polynomial per group       `polynomials.py`
laplace             two sums of exponentials that run along the line             `laplace.py`
gaussian            Taylor series of cells, added up to one series per group     `gaussian.py`
constant            one sum                                                      `sums.py`
cosine, logistic    none: brute force over the window of each query              `windows.py`
=================== ============================================================ ======================

With moments of local fits the same, up to quadratic ones, but for those with the Laplace kernel.

Where queries are few beside the keys, such as the places of a curve to draw, keys are not even put in order: they are
summed in cells that lie between the queries and the ends of their windows (`few_queries.py`).

A query whose sum is small beside what it is made of, such as one far from all keys, is done again over the keys of its
window, one by one. So is every gradient, but for those of `gradients.py`.
"""

from __future__ import annotations

from kernpool.algorithms.algorithm import Algorithm, Array, Gradients
from kernpool.algorithms.sweep.cost import seconds
from kernpool.algorithms.sweep.sums import arrange, reduce
from kernpool.core.problem import Problem
from kernpool.core.state import PoolState
from kernpool.execution.progress import Progress
from kernpool.kernels.forms import Exponential


def pullback(
    problem: Problem,
    state: PoolState,
    cotangent: Array,
    wanted: frozenset[str],
    n_jobs: int = 1,
    progress: Progress | None = None,
) -> Gradients:
    """Differentiate by series where they apply, and over the pairs within windows elsewhere."""
    from kernpool.algorithms.sweep import gradients as sweep_gradients
    from kernpool.algorithms.sweep import windows

    if sweep_gradients.applies(problem, state, wanted):
        return sweep_gradients.differentiate_by_series(problem, state, cotangent, wanted, n_jobs, progress)
    return windows.differentiate_windows(problem, arrange(problem, n_jobs), state, cotangent, wanted, n_jobs, progress)


SWEEP = Algorithm(
    name="sweep",
    summary="one column in linear time",
    reduce=reduce,
    pullback=pullback,
    seconds=seconds,
    attn_mask=False,
    logit_bias=False,
    own_kernels=False,
    columns=(1, 1),
    degree=2,
    degree_of_form={Exponential: 1},
)
