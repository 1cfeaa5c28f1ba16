"""Interface of a summation algorithm: its functions, the problems it supports, and estimates of its run time.

`Algorithm` has a function for the sums, one for their gradients, and one that estimates the time. What it supports is
data, so that the plan can read it.

Estimates of time use two things. `PairSample` samples some queries and keys, and finds which share of the pairs is
near. `pair_cost` reads the time of one pair from `pair_costs.json`, which `benchmarks/constants.py` has measured:
nanoseconds on one thread, for numbers of columns between which costs are interpolated linearly. Loops of AVX-512 and
of AVX2 differ by a factor of up to two, not by the same one everywhere, so each class of processors has its own
tables.

`radius` is the distance beyond which keys may be left out. Nothing here needs a compiler, so the cost model can use
it before Numba is loaded.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property
from importlib import resources
from importlib.util import find_spec
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from kernpool.core import PoolState, Problem
from kernpool.execution.progress import Progress
from kernpool.execution.threads import vector_bits
from kernpool.kernels import Exponential, Gaussian, Kernel, NearlyExponential, is_compiled
from kernpool.kernels.registry import Form

Array = NDArray[np.float64]

ROUNDING = 1.0 + 1e-12


def radius(kernel: Kernel, nearest: Array, share: Array) -> Array:
    """Return the distance in bandwidths beyond which keys have negligible weight."""
    if kernel.is_compact:
        return np.full(nearest.shape, ROUNDING)
    with np.errstate(divide="ignore"):
        decades: Array = -np.log(share)
    if isinstance(kernel.form, Gaussian):
        return np.asarray(ROUNDING * np.sqrt(nearest**2 + 2.0 * decades))
    if isinstance(kernel.form, Exponential):
        return np.asarray(ROUNDING * (nearest + decades))
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


FILE = "pair_costs.json"


@cache
def _tables() -> dict[str, Any]:
    stored = json.loads((resources.files(__package__) / FILE).read_text(encoding="utf-8"))
    tables: dict[str, Any] = stored[str(vector_bits())]["nanoseconds"]
    return tables


def pair_cost(loops: str, kernel: str, columns: int) -> float:
    """Return the run time in seconds per query-key pair, from a table of measurements."""
    table = _tables()[loops]
    measured: list[int] = table["columns"]
    cost: dict[str, list[float]] = table["kernels"]
    times = cost.get(kernel) or [max(each) for each in zip(*cost.values(), strict=True)]
    if columns <= measured[-1]:
        return 1e-9 * float(np.interp(columns, measured, times))
    return 1e-9 * times[-1] * columns / measured[-1]
