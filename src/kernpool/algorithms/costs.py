"""Seconds that each algorithm takes for a problem on one thread, as `Algorithm.seconds` promises.

Every estimate has the same arguments, used or not. Only ratios matter, and constants are measured.
"""

from collections.abc import Mapping
from math import sqrt

import numpy as np

from kernpool.algorithms.algorithm import PairSample, pair_cost
from kernpool.core import Problem
from kernpool.kernels import Gaussian, Polynomial, is_compiled

# Arrays of more than 128 KiB are fresh pages each time, which cost more than what is computed: 5.3 ms per million pairs
# in blocks of this many, 17.7 in blocks of 25 000.
PAIRS_AT_ONCE = 15_000
MOST_PAIRS = 1_000_000  # arrays of 8 MiB; beyond them it runs only if asked for


def dense_seconds(problem: Problem, look: PairSample, known: Mapping[str, float]) -> float:  # noqa: ARG001
    """Estimate the run time of dense NumPy in seconds; infinity beyond a million pairs."""
    (m, n), d = problem.shape, int(problem.key.shape[1])
    if m * n > MOST_PAIRS:
        return float("inf")
    pair = 2.2e-9 + 1.7e-9 * d + (2.7e-9 * d * (d + 2) if problem.degree else 0.0)
    if problem.degree == 2:
        pair += 7.5e-9 * (problem.layout.fourth.stop - problem.layout.cross.stop)
    return 20e-6 * (1 + m * n // PAIRS_AT_ONCE) + m * n * pair


def may_underflow(problem: Problem) -> bool:
    """Return whether weights are products over more than five columns, which can underflow for compact kernels."""
    # The smallest positive factor is (2e-16)^3.
    return problem.similarity.kernel.composition == "product" and problem.key.shape[1] > 5


CALL, SECONDS_PER_QUERY = 130e-6, 100e-9  # seconds
DENSELY = 20e-9  # seconds of a pair in dense NumPy, beside those of its columns: own kernels, masks


def pair_seconds(problem: Problem) -> float:
    """Estimate the run time of brute force in seconds per query-key pair."""
    similarity = problem.similarity
    d, c, kernel = int(problem.key.shape[1]), int(problem.value.shape[1]), similarity.kernel
    in_logarithms = kernel.is_compact and may_underflow(problem)
    densely = not is_compiled(kernel) or problem.logit_bias is not None
    if densely or in_logarithms:
        seconds = DENSELY * (d if in_logarithms else 1.0) + 5e-9 * d
    elif kernel.composition == "product":
        seconds = pair_cost("product", kernel.profile_name, d)
    elif problem.degree == 1 and problem.attn_mask is None and similarity.is_uniform:
        return pair_cost("degree 1", kernel.profile_name, d) + 0.35e-9 * (
            problem.layout.width - c - d * (d + 3) // 2 - d
        )
    elif problem.degree or problem.attn_mask is not None or not similarity.is_uniform:
        seconds = pair_cost("staged", kernel.profile_name, d)
    else:
        seconds = pair_cost("radial" if problem.dtype == np.float64 else "radial, float32", kernel.profile_name, d)
    if problem.degree:
        seconds += 1e-9 + 0.35e-9 * (problem.layout.width - c)
    return seconds + 0.3e-9 * (c - 1)


def brute_seconds(problem: Problem, look: PairSample, known: Mapping[str, float]) -> float:  # noqa: ARG001
    """Estimate the run time of brute force in seconds."""
    m, n = problem.shape
    return CALL + m * (SECONDS_PER_QUERY + n * pair_seconds(problem))


PER_PLACE, NEAR_PAIR = 0.3e-6, 0.8e-9  # of a key or a query in kd order; of a pair near enough to be visited, at least


def tree_seconds(problem: Problem, look: PairSample, known: Mapping[str, float]) -> float:
    """Estimate the run time of the tree in seconds; infinity where it is not worthwhile."""
    (m, n), kernel = problem.shape, problem.similarity.kernel
    building = 1.5e-3 + PER_PLACE * (m + n)
    # On a line the sweep is faster wherever kernels add up: local lines at 10 000 keys take it 7 to 27 ms with compact
    # kernels, and the tree 44 to 420. A look takes 8 ms, half a pass, and was too kind to the tree.
    on_a_line = problem.key.shape[1] == 1 and kernel.adds_up
    if on_a_line or building + look.seconds > 0.7 * known["brute"]:
        return float("inf")  # no sample can help it
    return building + m * n * look.share * max(NEAR_PAIR, _leaf_seconds(problem))


def _leaf_seconds(problem: Problem) -> float:
    """Estimate the seconds per query-key pair in the leaves that the tree sums, including the traversal."""
    similarity, d = problem.similarity, int(problem.key.shape[1])
    if problem.degree:  # leaves are small, and sums of moments are by stages
        return 4.5 * pair_seconds(problem)
    if similarity.kernel.composition == "product":
        return (1.0 if similarity.kernel.is_compact else 1.5) * pair_seconds(problem)
    return 1.2 * pair_cost("tree", similarity.kernel.profile_name, d) + 0.3e-9 * (int(problem.value.shape[1]) - 1)


PER_TRANSFORMED = {2: 0.6e-6, 3: 2.5e-6}  # seconds per key and per query, by number of columns
DENSE_WINDOW = 100.0  # sum of weights from which on a transform can be certified


def transform_seconds(problem: Problem, look: PairSample, known: Mapping[str, float]) -> float:
    """Estimate the run time of the Fourier transform in seconds; infinity if it is not worthwhile."""
    # It is worthwhile where queries have enough weight for a certificate and brute force takes longer.
    transform = 10e-3 + PER_TRANSFORMED[problem.key.shape[1]] * sum(problem.shape)
    worthwhile = transform + look.seconds <= 0.8 * known["brute"] and look.weight >= DENSE_WINDOW
    return transform if worthwhile else float("inf")


FEW_QUERIES = 64  # keys per query, from which on neighbouring queries are too far apart to look at the same keys


def are_few(m: int, n: int) -> bool:
    """Return whether queries are so few, one per 64 keys or fewer, that bins serve one query each."""
    return n >= FEW_QUERIES * m


PER_KEY, PER_POINT, PER_BIN = 0.045e-6, 0.08e-6, 0.02e-6
FEW_COMPACT, FEW_INFINITE = (18e-9, 35e-9), (20e-9, 17e-9)  # per key, of means and of local lines at few points
PER_WINDOW_KEY, PER_WINDOW = 0.2e-6, {Polynomial: 1.5e-6, Gaussian: 4e-6}  # of windows that differ, in some octaves
CELL_KEYS = 3000  # keys from which on a query of the Gaussian meets few cells that are summed key by key


def sweep_seconds(problem: Problem, look: PairSample, known: Mapping[str, float]) -> float:
    """Estimate the run time of the sweep in seconds."""
    (m, n), kernel = problem.shape, problem.similarity.kernel
    if not problem.similarity.is_uniform:
        rows = PER_WINDOW_KEY * n + PER_WINDOW[type(kernel.form)] * m
        return 1e-3 + (1.0, 1.5, 2.5)[problem.degree] * rows
    if are_few(m, n) and problem.degree < 2 and kernel.adds_up:  # one pass over the keys
        per_key = FEW_COMPACT if kernel.is_compact else FEW_INFINITE
        return 0.9e-3 + per_key[problem.degree] * n + 2e-6 * m
    call, rows = 450e-6, PER_KEY * n + PER_POINT * m + PER_BIN * sqrt(m * n)
    smooth = isinstance(kernel.form, Gaussian)
    if smooth:  # cells of few keys are summed key by key
        call, rows = 900e-6, rows + 0.5 * PER_KEY * n + 1e-6 * m * min(1.0, CELL_KEYS / n)
    total = call + (1.0, 1.3 if smooth else 4.0, 8.0)[problem.degree] * rows
    if not kernel.adds_up and total + look.seconds < known["brute"]:
        total += m * (400e-9 + n * look.share * pair_seconds(problem))
    return total
