"""What the sweep takes: keys are put in bins, queries looked up, and there are some sqrt(m n) bins."""

from __future__ import annotations

from collections.abc import Mapping
from math import sqrt

from kernpool.algorithms.brute.cost import pair_seconds
from kernpool.algorithms.estimate import Look
from kernpool.algorithms.sweep.sums import are_few
from kernpool.core.problem import Problem
from kernpool.kernels.forms import Gaussian

PER_KEY, PER_QUERY, PER_BIN = 0.045e-6, 0.08e-6, 0.02e-6
FEW_COMPACT, FEW_INFINITE = (5e-9, 35e-9), (8e-9, 17e-9)  # per key, of means and of local lines at few places
CELL_KEYS = 3000  # keys from which on a query of the Gaussian meets few cells that are summed key by key


def seconds(problem: Problem, look: Look, known: Mapping[str, float]) -> float:
    """Estimate the time of a pass along the line; parameters as of `Algorithm.seconds`."""
    (m, n), kernel = problem.shape, problem.similarity.kernel
    if are_few(m, n) and problem.degree < 2 and kernel.adds_up:  # one pass over the keys
        per_key = FEW_COMPACT if kernel.is_compact else FEW_INFINITE
        return 0.9e-3 + per_key[problem.degree] * n + 2e-6 * m
    call, rows = 450e-6, PER_KEY * n + PER_QUERY * m + PER_BIN * sqrt(m * n)
    smooth = isinstance(kernel.form, Gaussian)
    if smooth:  # cells of few keys are summed key by key
        call, rows = 900e-6, rows + 0.5 * PER_KEY * n + 1e-6 * m * min(1.0, CELL_KEYS / n)
    total = call + (1.0, 1.3 if smooth else 4.0, 8.0)[problem.degree] * rows
    if not kernel.adds_up and total + look.seconds < known["brute"]:
        total += m * (400e-9 + n * look.share * pair_seconds(problem))
    return total
