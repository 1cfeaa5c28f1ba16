"""Sweep algorithm: kernel sums in one column, in time that grows with keys plus queries and not with pairs.

Keys and queries are sorted into bins. How they are summed depends on the family of the kernel (`dispatch.py`):

=================== ============================================================ ======================
kernels             far keys                                                     file
=================== ============================================================ ======================
compact polynomials moments of cells, added up to one polynomial per group       `polynomials.py`
laplace             two sums of exponentials that run along the line             `laplace.py`
gaussian            Taylor series of cells, added up to one series per group     `gaussian.py`
constant            one sum                                                      `dispatch.py`
cosine, logistic    none: brute force over the window of each query              `windows.py`
=================== ============================================================ ======================

Local linear and local quadratic fits are summed the same way; with the Laplace kernel only local linear ones.

Where queries are few compared with the keys, such as the points of a curve to be drawn, keys are not sorted: they are
summed in cells that lie between the queries and the ends of their windows (`few_queries.py`).

A query whose sum is small compared with its terms, such as one far from all keys, is computed again over the keys of
its window, one by one. Gradients are computed over these pairs as well, except those of `series_gradients.py`.
"""

from kernpool.algorithms.algorithm import Algorithm, Array, Gradients
from kernpool.algorithms.sweep.dispatch import arrange, reduce, seconds
from kernpool.core import PoolState, Problem
from kernpool.execution.progress import Progress
from kernpool.kernels.registry import Exponential


def pullback(
    problem: Problem,
    state: PoolState,
    cotangent: Array,
    wanted: frozenset[str],
    n_jobs: int = 1,
    progress: Progress | None = None,
) -> Gradients:
    """Compute gradients by series where possible, and over the pairs within windows elsewhere."""
    from kernpool.algorithms.sweep import series_gradients as sweep_gradients
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
