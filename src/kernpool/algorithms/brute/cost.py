"""What brute force takes: the cost of a pair, as measured on this class of processor, times all pairs."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from kernpool.algorithms.estimate import Look
from kernpool.algorithms.pair_costs import pair_cost
from kernpool.algorithms.reference import may_underflow
from kernpool.core.problem import Problem
from kernpool.kernels import is_compiled
from kernpool.kernels.forms import Gaussian

CALL, PER_QUERY = 130e-6, 100e-9  # seconds
DENSELY = 20e-9  # seconds of a pair in dense NumPy, beside those of its columns: kernels of the user's own, float masks


def pair_seconds(problem: Problem) -> float:
    """Return the seconds of a pair in compiled loops."""
    similarity = problem.similarity
    d, c, kernel = int(problem.key.shape[1]), int(problem.value.shape[1]), similarity.kernel
    in_logarithms = kernel.is_compact and may_underflow(problem)
    if not is_compiled(kernel) or problem.logit_bias is not None or in_logarithms:
        seconds = DENSELY * (d if in_logarithms else 1.0) + 5e-9 * d
    elif similarity.composition == "product" and d > 1 and not isinstance(kernel.form, Gaussian):
        seconds = pair_cost("product", kernel.name, d)
    elif problem.degree == 1 and problem.attn_mask is None:
        return pair_cost("degree 1", kernel.name, d) + 0.35e-9 * (problem.layout.width - c - d * (d + 3) // 2 - d)
    elif problem.degree or problem.attn_mask is not None:
        seconds = pair_cost("staged", kernel.name, d)
    else:
        seconds = pair_cost("radial" if problem.dtype == np.float64 else "radial, float32", kernel.name, d)
    if problem.degree:
        seconds += 1e-9 + 0.35e-9 * (problem.layout.width - c)
    return seconds + 0.3e-9 * (c - 1)


# As all costs are called.
def seconds(problem: Problem, look: Look, known: Mapping[str, float]) -> float:  # noqa: ARG001
    """Estimate the time of every pair; parameters as of `Algorithm.seconds`."""
    m, n = problem.shape
    return CALL + m * (PER_QUERY + n * pair_seconds(problem))
