"""What each algorithm would take for a problem: a small model, with constants measured on two cores without AVX-512.

Seconds on one thread. Only ratios matter, and the plan needs them right to a factor of two.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from math import sqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kernpool.algorithms.radius import radius
from kernpool.algorithms.sweep.sums import are_few
from kernpool.core.problem import Problem

# Dense NumPy beyond this many pairs is slower than loading the compiler, and holds arrays of 8 MiB.
DENSE_PAIRS = 1_000_000
MATRIX_COLUMNS = 16  # from which on most kernels use matrix products, and BLAS is told how many threads it has
LOADING = 0.4  # of Numba, where nothing has loaded it yet
NEAR_PAIR, LEAF, TILE = 3e-9, 128, 32  # of the tree: a pair near enough to be visited, keys and queries in a box
TRANSFORM = {2: 1.1e-6, 3: 4.5e-6}  # per key and per query, by number of columns
DENSE_WINDOW = 300.0  # sum of weights from which on a Fourier transform can be certified
# Of one column: keys are put in bins, queries looked up, and there are some sqrt(m n) bins.
PER_KEY, PER_QUERY, PER_BIN = 0.08e-6, 0.2e-6, 0.2e-6
WINDOWED = ("cosine", "logistic")  # of one column: key by key
BOX = 0.6  # how far a box reaches, in radii of the ball that holds as much: fits measured times in 2 and 6 columns
COLLAPSING = ("epanechnikov", "boxcar", "constant")
SAMPLE_QUERIES, LEAST_KEYS, MOST_KEYS, PAIRS_PER_KEY = 64, 256, 2048, 50_000  # of the problem, per key of the sample

Array = NDArray[np.float64]


class Sample(NamedTuple):
    """What a look at some queries and keys tells.

    Parameters
    ----------
    share : float
        Share of pairs that a tree would visit one by one.
    weight : float
        Mean sum of the weights of a query.
    """

    share: float
    weight: float


@dataclass(frozen=True)
class Costs:
    """Estimates for one problem."""

    problem: Problem

    def seconds(self, algorithm: str) -> float:
        """Return the estimate for an algorithm, infinity for one that has none: it runs only if asked for."""
        estimate = _ESTIMATES.get(algorithm)
        return float("inf") if estimate is None else estimate(self)

    @cached_property
    def pair(self) -> float:
        """Seconds of a pair in compiled loops."""
        similarity = self.problem.similarity
        d, c = int(self.problem.key.shape[1]), int(self.problem.value.shape[1])
        name = similarity.kernel.name
        if name == "gaussian":
            seconds = 4.5e-9 + 0.06e-9 * d if d >= 8 else 1.3e-9 + 0.27e-9 * d
        elif name == "epanechnikov" and d <= 3 and similarity.composition == "radial":
            seconds = 0.4e-9 * d
        else:
            seconds = {"cosine": 2e-9, "logistic": 4e-9, "laplace": 1.4e-9}.get(name, 0.9e-9) + 0.27e-9 * d
            if similarity.composition == "product" and d > 1:
                seconds = 40e-9 * d if similarity.kernel.is_compact and d > 5 else seconds * d
        if self.problem.logit_bias is not None:
            seconds += 20e-9
        if self.problem.degree:  # in staged tiles, with (d + 1) (d + 2) / 2 + d c more sums
            seconds += 1e-9 + 0.35e-9 * (d + d * (d + 1) // 2 + d * c)
        return seconds + 0.3e-9 * (c - 1)

    @cached_property
    def waits_for_compiler(self) -> bool:
        """Whether the reference is the fastest only because nothing has loaded the compiler yet."""
        compiled = [_brute(self)] + ([_sweep(self)] if self.problem.key.shape[1] == 1 else [])
        return self.loading > 0.0 and min(compiled) - self.loading < _reference(self)

    @property
    def is_windowed(self) -> bool:
        """Whether the sweep visits the keys of every window one by one."""
        return self.problem.similarity.kernel.name in WINDOWED

    @cached_property
    def loading(self) -> float:
        """Seconds until the first compiled loop can run.

        This is the one place where a plan looks at what the process did before. Without it either the first call of
        more than ten thousand pairs waits a second for compiled loops (0.4 s for Numba, the rest for its cache), or
        every call of up to a million pairs stays dense, where loops take a twentieth of the time (1000 x 1000: 32 ms
        and 1.6).
        """
        return 0.0 if "numba" in sys.modules else LOADING

    @property
    def sample_keys(self) -> int:
        """How many keys a sample has."""
        m, n = self.problem.shape
        return min(n, max(LEAST_KEYS, min(MOST_KEYS, m * n // PAIRS_PER_KEY)))

    @property
    def sampling(self) -> float:
        """Seconds that a sample takes."""
        return 200e-6 + SAMPLE_QUERIES * self.sample_keys * (30e-9 + 3e-9 * int(self.problem.key.shape[1]))

    @cached_property
    def sample(self) -> Sample:
        """What a sample of queries and keys tells; it takes longer for problems that take longer."""
        problem, (m, n) = self.problem, self.problem.shape
        similarity, d = problem.similarity, problem.key.shape[1]
        query = problem.query[:: max(1, m // SAMPLE_QUERIES)][:SAMPLE_QUERIES]
        key = np.array(problem.key[:: max(1, n // self.sample_keys)][: self.sample_keys], order="F")
        distance = similarity.distance(query, key)
        # Balls around queries that hold one key of all, a leaf, a tile; below the first of the sample as if uniform.
        rank = np.array([1 / n, min(1.0, LEAF / n), min(1.0, TILE / m)]) * len(key)
        place = np.clip(np.rint(rank).astype(int), 1, len(key)) - 1
        ball = np.partition(distance, place, axis=1)[:, place] * (rank / (place + 1)).clip(max=1.0) ** (1 / d)
        nearest, boxes = ball[:, 0], BOX * (ball[:, 1] + ball[:, 2])
        weight = similarity.kernel.profile(distance).mean(axis=1) * n
        with np.errstate(divide="ignore", invalid="ignore"):
            relative = np.nan_to_num(weight / similarity.kernel.profile(nearest), nan=1.0)
        reach = radius(similarity.kernel, nearest, problem.tol / n * relative.clip(1.0, n))
        # Leaf and tile meet if any of their places do.
        near = distance <= (reach + boxes)[:, None]
        if similarity.composition == "radial" and similarity.kernel.name in COLLAPSING and not problem.degree:
            near &= distance > (1.0 - boxes)[:, None]  # what lies within the support as a whole is added by moments
        return Sample(float(near.mean()), float(weight.mean()))


def _reference(costs: Costs) -> float:
    m, n = costs.problem.shape
    if m * n > DENSE_PAIRS:
        return float("inf")
    # beyond the cache its temporaries take three times as long
    d = int(costs.problem.key.shape[1])
    pair = 15e-9 + 5e-9 * d + (5e-9 * d * (d + 2) if costs.problem.degree else 0.0)
    return 60e-6 + m * n * pair * (1.0 if m * n < 200_000 else 2.0)


def _brute(costs: Costs) -> float:
    m, n = costs.problem.shape
    call = 400e-6 if costs.problem.key.shape[1] < MATRIX_COLUMNS else 2500e-6
    return costs.loading + call + m * (250e-9 + n * costs.pair)


def _linear(costs: Costs) -> float:
    m, n = costs.problem.shape
    call, per_key = (900e-6, 0.12e-6) if costs.problem.similarity.kernel.name == "gaussian" else (450e-6, PER_KEY)
    rows = per_key * n + PER_QUERY * m + PER_BIN * sqrt(m * n)
    if costs.problem.similarity.kernel.name == "gaussian":  # cells of few keys are summed key by key
        rows += 1.5e-6 * m * min(1.0, 100 / n)
    return costs.loading + call + (4.0 if costs.problem.degree else 1.0) * rows


def _sweep(costs: Costs) -> float:
    m, n = costs.problem.shape
    if are_few(m, n) and not costs.problem.degree and not costs.is_windowed:
        return costs.loading + 2e-3 + 25e-9 * n + 10e-6 * m  # keys are not put in order
    seconds = _linear(costs)
    if costs.is_windowed and seconds + costs.sampling < _brute(costs):
        seconds += m * (400e-9 + n * costs.sample.share * costs.pair)
    return seconds


def _kd_tree(costs: Costs) -> float:
    (m, n), problem = costs.problem.shape, costs.problem
    building = costs.loading + 1.5e-3 + 0.5e-6 * (m + n)
    pair = (1.0 if problem.similarity.kernel.is_compact else 1.5) * costs.pair
    is_linear = problem.key.shape[1] == 1 and not costs.is_windowed
    if building + costs.sampling > (_linear(costs) if is_linear else 0.7 * _brute(costs)):
        return float("inf")  # no sample can help it
    return building + m * n * costs.sample.share * max(NEAR_PAIR, pair)


def _nufft(costs: Costs) -> float:
    m, n = costs.problem.shape
    transform = costs.loading + 10e-3 + TRANSFORM[costs.problem.key.shape[1]] * (m + n)
    if transform + costs.sampling > 0.8 * _brute(costs) or costs.sample.weight < DENSE_WINDOW:
        return float("inf")
    return transform


_ESTIMATES: dict[str, Callable[[Costs], float]] = {
    "reference": _reference,
    "brute": _brute,
    "sweep": _sweep,
    "kd_tree": _kd_tree,
    "nufft": _nufft,
}
