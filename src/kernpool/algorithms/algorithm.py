"""Interface of a summation algorithm: its functions, the problems it supports, and estimates of its run time.

`Algorithm` has a function for the sums, one for their gradients, and one that estimates the time. What it supports is
data, so that the plan can read it.

The estimates follow, seconds on one thread. All have the same arguments, used or not; only ratios matter, and constants
are measured. They use two things. `PairSample` samples some queries and keys, and finds which share of the pairs is
near. `pair_cost` reads the time of one pair from `pair_costs.json`, which `benchmarks/constants.py` has measured:
nanoseconds on one thread, for numbers of columns between which costs are interpolated linearly. Loops of AVX-512 and
of AVX2 differ by a factor of up to two, not by the same one everywhere, so each class of processors has its own
tables.

`radius` is the distance beyond which keys may be left out. Nothing here needs a compiler, so the cost model can use
it before Numba is loaded.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property
from importlib import resources
from importlib.util import find_spec
from math import sqrt
from typing import Any, NamedTuple, Protocol

import numpy as np

from kernpool._arrays import Array
from kernpool.core import PoolState, Problem
from kernpool.execution import Progress
from kernpool.execution.threads import vector_bits
from kernpool.kernels import Exponential, Gaussian, Kernel, NearlyExponential, Polynomial, is_compiled
from kernpool.kernels.registry import Form

WANTED = frozenset({"query", "key", "value", "log_bandwidth"})
PER_QUERY = frozenset({"query", "log_bandwidth"})  # the others are one row per key
FITS = ("local constant", "local linear", "local quadratic")  # by degree


FEWEST_FOR_PRODUCTS = 16  # columns from which on matrix products are faster than differences in staged tiles (measured)


class Gradients(NamedTuple):
    """Gradients with respect to queries, keys, values, log-bandwidths and smoothing; None if not requested.

    The result of `Algorithm.pullback`.
    """

    query: Array | None = None
    key: Array | None = None
    value: Array | None = None
    log_bandwidth: Array | None = None
    smoothing: Array | None = None  # of categorical columns, by plans that know them


class Reduce(Protocol):
    """Signature of `Algorithm.reduce`, which computes kernel sums over all keys for each query."""

    def __call__(self, problem: Problem, n_jobs: int = 1, progress: Progress | None = None) -> PoolState:
        """Return each query's sums over all keys of the weights and of the weighted, centered values."""


class Pullback(Protocol):
    """Signature of `Algorithm.pullback`, the backward pass from pooled values to the inputs."""

    # It is a second pass over the pairs.

    def __call__(
        self,
        problem: Problem,
        state: PoolState,
        cotangent: Array,
        wanted: frozenset[str],
        n_jobs: int = 1,
        progress: Progress | None = None,
    ) -> Gradients:
        """Return the gradients named in `wanted`, given a loss's derivatives with respect to the pooled values."""


class Seconds(Protocol):
    """Signature of `Algorithm.seconds`, which estimates the run time of a problem on one thread."""

    def __call__(self, problem: Problem, look: PairSample, known: Mapping[str, float]) -> float:
        """Return the estimated run time in seconds; infinity if the algorithm should not be chosen automatically."""
        # Only ratios matter, and the plan needs them right to a factor of two. `known` are the estimates of the
        # algorithms registered before: if they cannot be beaten, there is no need to evaluate a sample, which takes
        # time.


class Blocks(Protocol):
    """Interface for computing the kernel sums and gradients of one block of queries and keys per call."""

    pairs_per_call: int
    keys_per_call: int
    gradients_use_blas: bool

    def sum_block(self, queries: slice, keys: slice) -> PoolState:
        """Return the kernel sums of a slice of queries over a slice of keys."""

    def differentiate_block(
        self, queries: slice, keys: slice, state: PoolState, cotangent: Array, wanted: frozenset[str]
    ) -> Gradients:
        """Return the contribution of a slice of queries and a slice of keys to the requested gradients."""


@cache
def _is_installed(package: str) -> bool:
    return find_spec(package) is not None


@dataclass(frozen=True)
class Algorithm:
    r"""Record of a summation algorithm: its functions, and the features of problems that it supports.

    Parameters
    ----------
    name : str
        What ``algorithm=`` calls it.
    summary : str
        A few words for `Plan.reason`.
    reduce : callable
        ``(problem, n_jobs, progress) -> PoolState`` of the problem's centered values.
    pullback : callable
        ``(problem, state, cotangent, wanted, n_jobs, progress) -> Gradients``. With the fit ``yhat``, local linear for
        ``degree=1``, and a cotangent ``g`` of shape (m, c) it differentiates :math:`L = \sum_{ic} g_{ic} \hat
        y_{ic}`: ``query`` (m, d) and ``log_bandwidth`` (m, d) keep one row per query, ``key`` (n, d) and ``value``
        (n, c) one row per key. A gradient is a second pass and not a bigger sum, because the terms ``v_j - yhat_i``
        are small where the sums are large.
    seconds : callable
        ``(problem, look, known) -> float``: what it would take for a problem that it can do, see `Seconds`.
    attn_mask, logit_bias, own_kernels : bool
        Whether it can do boolean masks, float masks, and kernels that users registered.
    columns : tuple of int
        The smallest and the largest number of columns it can do.
    form : type or None
        The form of kernels that it can do (`kernpool.kernels.registry`); None is all.
    degree : {0, 1, 2}
        The highest moments it can do: 1 for the sums of a local linear fit, 2 for those of a local quadratic one.
    degree_of_form : mapping of type to {0, 1, 2}
        The same for kernels of some forms, where it is less.
    gradients_degree : {0, 1, 2}
        The highest degree of fits that `pullback` differentiates.
    windows : tuple of type
        The forms of kernels whose windows may differ between queries; ``(object,)`` is all.
    needs : (str, str) or None
        An optional package without which it cannot run, and the extra that installs it.
    """

    name: str
    summary: str
    reduce: Reduce
    pullback: Pullback
    seconds: Seconds
    attn_mask: bool = True
    logit_bias: bool = True
    own_kernels: bool = True
    columns: tuple[int, int] = (1, 1 << 62)
    form: type[Form] | None = None
    degree: int = 0
    degree_of_form: Mapping[type[Form], int] = field(default_factory=dict)
    gradients_degree: int = 1
    windows: tuple[type, ...] = ()
    needs: tuple[str, str] | None = None

    def refusal(self, problem: Problem) -> str | None:
        """Return the reason, as text, why this algorithm cannot compute the problem; None if it can."""
        kernel = problem.similarity.kernel
        if problem.attn_mask is not None and not self.attn_mask:
            return "does not support attn_mask"
        if problem.logit_bias is not None and not self.logit_bias:
            return "does not support a floating-point attn_mask"
        if not self.own_kernels and not is_compiled(kernel):
            return f"has no compiled loop for the kernel {kernel.name!r}"
        if self.form is not None and not isinstance(kernel.form, self.form):
            return f"does not support the kernel {kernel.name!r}"
        if not problem.similarity.is_uniform and not isinstance(kernel.form, self.windows):
            return f"does not support windows that differ between queries with the kernel {kernel.name!r}"
        fit = f"degree={problem.degree} (a {FITS[problem.degree]} fit)"
        if problem.degree > self.degree:
            return f"does not support {fit}"
        if kernel.form is not None and problem.degree > self.degree_of_form.get(type(kernel.form), problem.degree):
            return f"does not support {fit} with the kernel {kernel.name!r}"
        fewest, most = self.columns
        if not fewest <= problem.key.shape[1] <= most:
            number = fewest if fewest == most else f"{fewest} to {most}"
            return f"supports {number} column(s) of query and key, not {problem.key.shape[1]}"
        if self.needs is not None and not _is_installed(self.needs[0]):
            return f'needs the package {self.needs[0]}: pip install "kernpool[{self.needs[1]}]"'
        return None


ROUNDING = 1.0 + 1e-12


def radius(kernel: Kernel, nearest: Array, share: Array) -> Array:
    """Return the distance in bandwidths beyond which keys have negligible weight."""
    if kernel.is_compact:
        return np.full(nearest.shape, ROUNDING)
    with np.errstate(divide="ignore"):
        decades: Array = -np.log(share)
    if isinstance(kernel.form, Gaussian):
        return ROUNDING * np.sqrt(nearest**2 + 2.0 * decades)
    if isinstance(kernel.form, Exponential):
        return ROUNDING * (nearest + decades)
    if isinstance(kernel.form, NearlyExponential):
        return np.asarray(ROUNDING * (nearest + decades - np.log(kernel.form.least)))
    return np.full(nearest.shape, np.inf)


QUERIES, LEAST_KEYS, MOST_KEYS, PAIRS_PER_KEY = 64, 256, 2048, 50_000  # of the problem, per key of the sample
# Boxes of the tree. Keys: sixteen vectors of a processor with AVX-512, in boxes still small compared with it;
# queries: enough to share the walk through the tree, few enough for a small box.
LEAF, TILE = 128, 32
BOX = 0.6  # how far a box reaches, in radii of the ball that holds as much: fits measured times in 2 and 6 columns


class PairSample:
    """A lazily evaluated sample of queries and keys, for estimates of computing time."""

    def __init__(self, problem: Problem) -> None:
        (m, n), d = problem.shape, problem.key.shape[1]
        self.problem = problem
        self.keys = min(n, max(LEAST_KEYS, min(MOST_KEYS, m * n // PAIRS_PER_KEY)))  # more for more pairs
        self.seconds = 200e-6 + QUERIES * self.keys * (30e-9 + 3e-9 * d)  # that it takes to evaluate the sample

    @property
    def share(self) -> float:
        """Estimated fraction of query-key pairs that a kd tree would have to sum one by one."""
        return self._found[0]

    @property
    def weight(self) -> float:
        """Estimated sum of kernel weights of a query over all keys, averaged over the sampled queries."""
        return self._found[1]

    @cached_property
    def _found(self) -> tuple[float, float]:
        problem, (m, n) = self.problem, self.problem.shape
        similarity, d = problem.similarity, problem.key.shape[1]
        kernel = similarity.kernel
        query = problem.query[:: max(1, m // QUERIES)][:QUERIES]
        key = np.array(problem.key[:: max(1, n // self.keys)][: self.keys], order="F")
        distance = similarity.distance(query, key)
        # Balls around queries that hold one key of all, a leaf, a tile; below the first of the sample as if uniform.
        rank = np.array([1 / n, min(1.0, LEAF / n), min(1.0, TILE / m)]) * len(key)
        place = np.clip(np.rint(rank).astype(int), 1, len(key)) - 1
        ball = np.partition(distance, place, axis=1)[:, place] * (rank / (place + 1)).clip(max=1.0) ** (1 / d)
        nearest, boxes = ball[:, 0], BOX * (ball[:, 1] + ball[:, 2])
        weight = kernel.profile(distance).mean(axis=1) * n
        with np.errstate(divide="ignore", invalid="ignore"):
            relative = np.nan_to_num(weight / kernel.profile(nearest), nan=1.0)
        reach = radius(kernel, nearest, problem.tol / n * relative.clip(1.0, n))
        # A leaf and a tile are near if any of their points are.
        near = distance <= (reach + boxes)[:, None]
        return float(near.mean()), float(weight.mean())


FILE = "pair_costs.json"


@cache
def _tables() -> Any:
    return json.loads((resources.files(__package__) / FILE).read_text(encoding="utf-8"))


@cache  # a search asks for it with every evaluation
def pair_cost(loops: str, kernel: str, columns: int) -> float:
    """Return the run time in seconds per query-key pair, from a table of measurements."""
    table = _tables()[str(vector_bits())]["nanoseconds"][loops]
    measured: list[int] = table["columns"]
    cost: dict[str, list[float]] = table["kernels"]
    times = cost.get(kernel) or [max(each) for each in zip(*cost.values(), strict=True)]
    if columns <= measured[-1]:
        return 1e-9 * float(np.interp(columns, measured, times))
    return 1e-9 * times[-1] * columns / measured[-1]


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
