"""What each algorithm would take for a problem: a small model, with constants measured on two cores without AVX-512.

Seconds on one thread. Only ratios matter, and the plan needs them right to a factor of two.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from kernpool.algorithms.radius import radius
from kernpool.algorithms.sweep import are_few
from kernpool.problem import Problem

# Dense NumPy beyond this many pairs is slower than loading the compiler, and holds arrays of 8 MiB.
DENSE_PAIRS = 1_000_000
LOADING = 0.4  # of Numba, where nothing has loaded it yet
NEAR_PAIR, LEAF, TILE = 3e-9, 128, 32  # of the tree: a pair near enough to be visited, keys and queries in a box
TRANSFORM = {2: 1.5e-6, 3: 8e-6}  # per key and per query, by number of columns
DENSE_WINDOW = 300.0  # sum of weights from which on a Fourier transform can be certified
SAMPLE_QUERIES, SAMPLE_KEYS = 64, 4096

Array = NDArray[np.float64]


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
        else:
            seconds = {"cosine": 2e-9, "logistic": 4e-9, "laplace": 1.4e-9}.get(name, 0.9e-9) + 0.27e-9 * d
            if similarity.composition == "product" and d > 1:
                seconds = 40e-9 * d if similarity.kernel.is_compact and d > 5 else seconds * d
        if self.problem.logit_bias is not None:
            seconds += 20e-9
        return seconds + 0.3e-9 * (c - 1)

    @cached_property
    def loading(self) -> float:
        """Seconds until the first compiled loop can run."""
        return 0.0 if "numba" in sys.modules else LOADING

    @cached_property
    def sample(self) -> tuple[float, float]:
        """Share of keys that a tree would visit, and the mean sum of weights of a query, from a sample of both."""
        problem, (m, n) = self.problem, self.problem.shape
        similarity, d = problem.similarity, problem.key.shape[1]
        query = problem.query[:: max(1, m // SAMPLE_QUERIES)][:SAMPLE_QUERIES]
        key = problem.key[:: max(1, n // SAMPLE_KEYS)][:SAMPLE_KEYS]
        distance = similarity.distance(query, key)
        nearest = distance.min(axis=1)
        reach = radius(similarity.kernel, nearest, np.full(nearest.shape, problem.tol / n))
        # A box of the tree is near if any place of it is: half its diagonal more, in uniform data.
        extent = np.maximum(np.ptp(key, axis=0) / similarity.bandwidth, 1e-300)
        log_side = np.log(extent).mean() + np.log(np.array([LEAF / n, TILE / m]).clip(max=1.0)) / d
        reach = reach + 0.5 * np.sqrt(d) * np.exp(log_side).sum()
        weight = similarity.kernel.profile(distance).mean() * n
        return float((distance <= reach[:, None]).mean()), float(weight)


def _reference(costs: Costs) -> float:
    m, n = costs.problem.shape
    if m * n > DENSE_PAIRS:
        return float("inf")
    # beyond the cache its temporaries take three times as long
    return 60e-6 + m * n * (15e-9 + 5e-9 * int(costs.problem.key.shape[1])) * (1.0 if m * n < 200_000 else 2.0)


def _brute(costs: Costs) -> float:
    m, n = costs.problem.shape
    return costs.loading + 200e-6 + m * n * costs.pair


def _sweep(costs: Costs) -> float:
    m, n = costs.problem.shape
    if costs.problem.similarity.kernel.name in ("cosine", "logistic"):  # key by key
        return costs.loading + 450e-6 + 0.25e-6 * (m + n) + m * (400e-9 + n * costs.sample[0] * costs.pair)
    if are_few(m, n):  # keys are not put in order
        return costs.loading + 2e-3 + 25e-9 * n + 10e-6 * m
    return costs.loading + 450e-6 + 0.25e-6 * (m + n)


def _kd_tree(costs: Costs) -> float:
    m, n = costs.problem.shape
    building = costs.loading + 300e-6 + 0.5e-6 * (m + n)
    if building > 0.5 * _brute(costs):
        return float("inf")  # no sample can help it
    return building + m * n * costs.sample[0] * max(NEAR_PAIR, 1.5 * costs.pair)


def _nufft(costs: Costs) -> float:
    m, n = costs.problem.shape
    transform = costs.loading + 10e-3 + TRANSFORM[costs.problem.key.shape[1]] * (m + n)
    if transform > 0.5 * _brute(costs) or costs.sample[1] < DENSE_WINDOW:
        return float("inf")
    return transform


_ESTIMATES: dict[str, Callable[[Costs], float]] = {
    "reference": _reference,
    "brute": _brute,
    "sweep": _sweep,
    "kd_tree": _kd_tree,
    "nufft": _nufft,
}
