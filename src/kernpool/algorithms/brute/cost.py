"""What brute force takes: constants measured on two cores without AVX-512, right to a factor of two."""

from __future__ import annotations

from collections.abc import Mapping

from kernpool.algorithms.algorithm import FEWEST_FOR_PRODUCTS
from kernpool.algorithms.estimate import Look
from kernpool.core.problem import Problem
from kernpool.kernels.forms import Exponential, Gaussian, NearlyExponential, power_of_square

PAIR = {NearlyExponential: 4e-9, Exponential: 1.4e-9, type(None): 2e-9}  # seconds, beside those of its columns
OTHER_PAIR = 0.9e-9


def pair_seconds(problem: Problem) -> float:
    """Return the seconds of a pair in compiled loops."""
    similarity = problem.similarity
    d, c, kernel = int(problem.key.shape[1]), int(problem.value.shape[1]), similarity.kernel
    if isinstance(kernel.form, Gaussian):
        seconds = 4.5e-9 + 0.06e-9 * d if d >= 8 else 1.3e-9 + 0.27e-9 * d
    elif power_of_square(kernel.form) == 1 and d <= 3 and similarity.composition == "radial":
        seconds = 0.4e-9 * d
    else:
        seconds = PAIR.get(type(kernel.form), OTHER_PAIR) + 0.27e-9 * d
        if similarity.composition == "product" and d > 1:
            seconds = 40e-9 * d if kernel.is_compact and d > 5 else seconds * d
    if problem.logit_bias is not None:
        seconds += 20e-9
    if problem.degree:  # in staged tiles, with more sums
        seconds += 1e-9 + 0.35e-9 * (problem.layout.width - c)
    return seconds + 0.3e-9 * (c - 1)


def seconds(problem: Problem, look: Look, known: Mapping[str, float]) -> float:  # noqa: ARG001
    """Estimate the time of every pair; parameters as of `Algorithm.seconds`."""
    m, n = problem.shape
    call = 400e-6 if problem.key.shape[1] < FEWEST_FOR_PRODUCTS else 2500e-6
    return call + m * (250e-9 + n * pair_seconds(problem))
