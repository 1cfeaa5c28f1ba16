"""What an algorithm is: two functions, and what it supports as data that the plan can read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.util import find_spec
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from kernpool.algorithms.estimate import Look
from kernpool.core.problem import Problem
from kernpool.core.state import PoolState
from kernpool.execution.progress import Progress
from kernpool.kernels import is_compiled
from kernpool.kernels.forms import Form

Array = NDArray[np.float64]


WANTED = frozenset({"query", "key", "value", "log_bandwidth"})
PER_QUERY = frozenset({"query", "log_bandwidth"})  # the others are one row per key
FITS = ("local constant", "local linear", "local quadratic")  # by degree


FEWEST_FOR_PRODUCTS = 16  # columns from which on matrix products are faster than differences in staged tiles (measured)


class Gradients(NamedTuple):
    """What `Algorithm.pullback` returns; what was not wanted is None."""

    query: Array | None = None
    key: Array | None = None
    value: Array | None = None
    log_bandwidth: Array | None = None
    smoothing: Array | None = None  # of categorical columns, by plans that know them


class Reduce(Protocol):
    """Sum over keys: problem to state."""

    def __call__(self, problem: Problem, n_jobs: int = 1, progress: Progress | None = None) -> PoolState:
        """Return the state of the problem's centered values."""


class Pullback(Protocol):
    """Second pass over the pairs: cotangent to gradients."""

    def __call__(
        self,
        problem: Problem,
        state: PoolState,
        cotangent: Array,
        wanted: frozenset[str],
        n_jobs: int = 1,
        progress: Progress | None = None,
    ) -> Gradients:
        """Return the wanted gradients."""


class Seconds(Protocol):
    """How long an algorithm takes, on one thread."""

    def __call__(self, problem: Problem, look: Look, known: Mapping[str, float]) -> float:
        """Return the seconds, infinity for what should run only if asked for.

        Only ratios matter, and the plan needs them right to a factor of two. `known` are the estimates of the
        algorithms registered before: where they cannot be beaten, it is no use to look at a sample, which takes time.
        """


# As all costs are called.
def only_if_asked(problem: Problem, look: Look, known: Mapping[str, float]) -> float:  # noqa: ARG001
    """Estimate infinity."""
    return float("inf")


class Blocks(Protocol):
    """The parts of a problem that one call computes, for algorithms that go through it block by block."""

    pairs_per_call: int
    keys_per_call: int
    uses_blas: bool
    gradients_use_blas: bool

    def prepare(self) -> None:
        """Make what all blocks share, before threads would make it at once and hold each other up."""

    def sum_block(self, queries: slice, keys: slice) -> PoolState:
        """Return the state of one block."""

    def differentiate_block(
        self, queries: slice, keys: slice, state: PoolState, cotangent: Array, wanted: frozenset[str]
    ) -> Gradients:
        """Return the part of the gradients that one block contributes."""


@cache
def _is_installed(package: str) -> bool:
    return find_spec(package) is not None


@dataclass(frozen=True)
class Algorithm:
    r"""A way of organising the sum over keys.

    Parameters
    ----------
    name : str
        What ``algorithm=`` calls it.
    summary : str
        A few words for `Plan.reason`.
    reduce : callable
        ``(problem, n_jobs, progress) -> PoolState`` of the problem's centered values.
    pullback : callable or None
        ``(problem, state, cotangent, wanted, n_jobs, progress) -> Gradients``. With the fit ``yhat``, local linear for
        ``degree=1``, and a cotangent ``g`` of shape (m, c) it differentiates :math:`L = \sum_{ic} g_{ic} \hat
        y_{ic}`: ``query`` (m, d) and ``log_bandwidth`` (m, d) keep one row per query, ``key`` (n, d) and ``value``
        (n, c) one row per key. A gradient is a second pass and not a bigger sum, because the terms ``v_j - yhat_i``
        are small where the sums are large.
    seconds : callable
        ``(problem, look, known) -> float``: what it would take for a problem that it can do, see `Seconds`.
    compositions : frozenset of str
        Which compositions it can do.
    attn_mask, logit_bias, own_kernels : bool
        Whether it can do boolean masks, float masks, and kernels that users registered.
    columns : tuple of int
        The smallest and the largest number of columns it can do.
    form : type or None
        The form of kernels that it can do (`kernpool.kernels.forms`); None is all.
    degree : {0, 1, 2}
        The highest moments it can do: 1 for the sums of a local linear fit, 2 for those of a local quadratic one.
    degree_of_form : mapping of type to {0, 1, 2}
        The same for kernels of some forms, where it is less.
    gradients_degree : {0, 1, 2}
        The highest degree of fits that `pullback` differentiates.
    needs : (str, str) or None
        An optional package without which it cannot run, and the extra that installs it.
    """

    name: str
    summary: str
    reduce: Reduce
    pullback: Pullback | None = None
    seconds: Seconds = only_if_asked
    compositions: frozenset[str] = frozenset({"radial", "product"})
    attn_mask: bool = True
    logit_bias: bool = True
    own_kernels: bool = True
    columns: tuple[int, int] = (1, 1 << 62)
    form: type[Form] | None = None
    degree: int = 0
    degree_of_form: Mapping[type[Form], int] = field(default_factory=dict)
    gradients_degree: int = 1
    needs: tuple[str, str] | None = None

    def refusal(self, problem: Problem) -> str | None:
        """Say what of the problem this algorithm cannot do, or None."""
        composition, kernel = problem.similarity.composition, problem.similarity.kernel
        if composition not in self.compositions:
            return f"does not do composition={composition!r}"
        if problem.attn_mask is not None and not self.attn_mask:
            return "does not do attn_mask"
        if problem.logit_bias is not None and not self.logit_bias:
            return "does not do a floating-point attn_mask"
        if not is_compiled(kernel) and not self.own_kernels:
            return f"has no loop for the kernel {kernel.name!r}"
        if self.form is not None and not isinstance(kernel.form, self.form):
            return f"does not do the kernel {kernel.name!r}"
        fit = FITS[problem.degree]
        if problem.degree > self.degree:
            return f"does not do the moments of a {fit} fit"
        if kernel.form is not None and problem.degree > self.degree_of_form.get(type(kernel.form), problem.degree):
            return f"does not do the moments of a {fit} fit with the kernel {kernel.name!r}"
        fewest, most = self.columns
        if not fewest <= problem.key.shape[1] <= most:
            return f"does {fewest if fewest == most else f'{fewest} to {most}'} column(s), not {problem.key.shape[1]}"
        if self.needs is not None and not _is_installed(self.needs[0]):
            return f'needs the package {self.needs[0]}: pip install "kernpool[{self.needs[1]}]"'
        return None
