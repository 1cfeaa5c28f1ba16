"""Plans: an algorithm chosen by estimated time, the reason for it, and the sums and gradients that it computes.

Compiled code takes half a second or more to load, so a single call that dense NumPy does quickly does not load it.

Tiny values are pooled in larger units. Denominators go down to 1e-280 before an algorithm counts in another unit;
times a value of 1e-30 that would underflow, and the pooled value would be zero without a warning. Units are powers of
two, which are exact, so nothing else changes.

A problem whose bandwidths are multiplied by a factor at each query (`KernelLogits`) is cut by these factors, by a
`PartsPlan`. What is left is ordinary: every algorithm, kernel, category and group does it, with its own
preparation of the keys. There are to be few different factors, as a floor of effective rows takes them from a grid
(`kernpool.smoother.windows`). Windows that follow the keys (`kernpool.pooling.widths`) have as many as there are
queries: these are for the algorithms that take a factor for each query (`Algorithm.windows`), which are fewer.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field, replace
from typing import Protocol, cast

import numpy as np

from kernpool._arrays import Array, Index, Integers
from kernpool.algorithms import ALGORITHMS, Algorithm, Gradients, reference
from kernpool.algorithms.algorithm import PER_QUERY, WANTED, PairSample, may_underflow
from kernpool.algorithms.reference import REFERENCE
from kernpool.algorithms.verification import corrected
from kernpool.core import PoolState, Problem, column_range, empty_state
from kernpool.execution import Progress, abbreviate, cut, progress_between, resolve_n_jobs
from kernpool.execution.error_messages import did_you_mean

# Seconds charged to a single call for compiled loops. They take half a second to a second to load, once in a process,
# and a notebook makes some hundred calls: up to a hundred thousand pairs dense NumPy takes half a millisecond.
LOADING = 8e-4


Exponents = Integers

SMALL = 2.0**-64  # values of at least this size, times the smallest denominator, have all of their digits
SAMPLE = 1024  # values that are looked at first
FAINT = 2.0**-500  # denominators below this are counted in a unit of their own, before a center is multiplied by them


def scaled_up(problem: Problem) -> tuple[Problem, Exponents | None]:
    """Scale up value columns of tiny numbers by powers of two; return the problem and the exponents, if any."""
    # Exponents are None for a problem without such a column.
    if np.all(np.abs(problem.value[:: 1 + len(problem.value) // SAMPLE]).max(axis=0) >= SMALL):
        return problem, None  # as nearly always
    low, high = column_range(problem.value)
    largest = np.maximum(np.abs(low), np.abs(high))
    tiny = (largest > 0.0) & (largest < SMALL)
    if not tiny.any():
        return problem, None
    exponents = np.where(tiny, -np.frexp(largest)[1], 0)
    return replace(problem, value=np.ldexp(problem.value, exponents)), exponents


def multiplied(problem: Problem, state: PoolState, exponents: Exponents) -> PoolState:
    """Return the kernel sums as if each value column had been multiplied by a power of two."""
    layout, state = problem.layout, near_one(state, np.inf)
    numerator = state.numerator.copy()
    numerator[:, layout.value] = np.ldexp(numerator[:, layout.value], exponents)
    if layout.degree:
        numerator[:, layout.cross] = np.ldexp(numerator[:, layout.cross], np.tile(exponents, layout.columns))
    if layout.degree == 2:
        each = np.tile(exponents, layout.columns * (layout.columns + 1) // 2)
        numerator[:, layout.cross_second] = np.ldexp(numerator[:, layout.cross_second], each)
    return PoolState(state.shift, state.denominator, numerator)


def near_one(state: PoolState, below: float = FAINT) -> PoolState:
    """Rescale kernel sums so that each sum of weights less than `below` becomes about 1, with `shift` to match."""
    if state.denominator.size and state.denominator.min() >= below:
        return state
    rows = np.flatnonzero((state.denominator > 0.0) & (state.denominator < below))
    if not rows.size:
        return state
    exponent = np.frexp(state.denominator[rows])[1]
    shift, denominator, numerator = state.shift.copy(), state.denominator.copy(), state.numerator.copy()
    shift[rows] += exponent * np.log(2.0)
    denominator[rows] = np.ldexp(denominator[rows], -exponent)
    numerator[rows] = np.ldexp(numerator[rows], -exponent[:, None])
    return PoolState(shift, denominator, numerator)


def without_shift(state: PoolState) -> PoolState:
    """Return the same kernel sums in absolute units, with a `shift` of zero."""
    # Sums of compact kernels are in these units.
    if not np.any(state.shift[state.denominator > 0.0]):
        return state
    unit = np.exp(np.where(state.denominator > 0.0, state.shift, 0.0))
    return PoolState(np.zeros_like(unit), unit * state.denominator, unit[:, None] * state.numerator)


class PoolingPlan(Protocol):
    """Interface of a plan to pool problems: one algorithm, or several for parts of a problem."""

    @property
    def algorithm(self) -> str:
        """Name of the algorithm."""

    @property
    def reason(self) -> str:
        """Why this way, in words."""

    def reduce(self, problem: Problem, *, n_jobs: int | None = None, progress: Progress | None = None) -> PoolState:
        """Sum weights and weighted values over all keys, at each query."""

    def pullback(
        self,
        problem: Problem,
        state: PoolState,
        cotangent: Array,
        wanted: Collection[str],
        *,
        n_jobs: int | None = None,
        progress: Progress | None = None,
    ) -> Gradients:
        """Differentiate ``sum(cotangent * pooled)``."""


@dataclass(frozen=True)
class Plan:
    """Plan to pool a problem by a single algorithm, with the reason for its choice.

    Parameters
    ----------
    algorithm : str
        Its name.
    seconds : dict
        Estimated seconds on one thread by algorithm, infinite if it is used on request only; empty if as asked.
    """

    algorithm: str
    _chosen: Algorithm = field(repr=False, compare=False)
    _shape: tuple[int, int] = field(default=(0, 0), repr=False)
    seconds: dict[str, float] = field(default_factory=dict, repr=False, compare=False)

    @property
    def reason(self) -> str:
        """Why this one, in words."""
        if not self.seconds:
            return f"{self._chosen.summary}: as asked"
        best, *others = sorted(self.seconds, key=self.seconds.__getitem__)
        m, n = self._shape
        why = f"{self._chosen.summary}: about {_seconds_as_text(self.seconds[best])} for {m} queries x {n} keys"
        if not others:
            return f"{why}, before compiled loops would be loaded"
        second = self.seconds[others[0]]
        return why if second == float("inf") else f"{why}, {others[0]} about {_seconds_as_text(second)}"

    def __repr__(self) -> str:
        return f"Plan(algorithm={self.algorithm!r}, reason={self.reason!r})"

    @np.errstate(under="ignore")
    def reduce(self, problem: Problem, *, n_jobs: int | None = None, progress: Progress | None = None) -> PoolState:
        """Sum weights and weighted values over all keys by the chosen algorithm.

        Parameters
        ----------
        problem : Problem
            Problem to sum.
        n_jobs : int or None, default=None
            Threads; see `pool`.
        progress : callable or None, default=None
            Called as ``progress(done, total)``.

        Returns
        -------
        PoolState
            The sums over all keys, of values with their center.
        """
        if problem.factors is not None or problem.excluded is not None:
            refuse_parts(problem)
        larger, exponents = scaled_up(problem)
        state = self._chosen.reduce(larger, resolve_n_jobs(n_jobs), progress)
        if self._chosen is not REFERENCE:  # which it would be compared with
            state, _ = corrected(larger, state, self.algorithm)
        if exponents is not None:
            return problem.restored(multiplied(problem, state, -exponents))
        center = np.abs(problem.value_center)  # must not underflow in the unit of the sums either
        tiny = np.any((center > 0.0) & (center < SMALL))
        return problem.restored(near_one(state, np.inf if tiny else FAINT))

    @np.errstate(under="ignore")
    def pullback(
        self,
        problem: Problem,
        state: PoolState,
        cotangent: Array,
        wanted: Collection[str],
        *,
        n_jobs: int | None = None,
        progress: Progress | None = None,
    ) -> Gradients:
        """Differentiate ``sum(cotangent * pooled)`` with respect to queries, keys, values or log-bandwidths.

        If the problem has moments, pooled is the local linear fit.

        Parameters
        ----------
        problem : Problem
            The problem that was summed.
        state : PoolState
            Result of `reduce` for it.
        cotangent : ndarray of shape (m, c)
            Derivative of a scalar with respect to the pooled values.
        wanted : collection of {"query", "key", "value", "log_bandwidth"}
            Which derivatives; ``log_bandwidth`` is one row per query, to be summed or used as it is.
        n_jobs, progress
            As in `reduce`.

        Returns
        -------
        Gradients
            The wanted ones. Queries with an empty window contribute nothing.

        Raises
        ------
        ValueError
            If a derivative is unknown, or the kernel has no slope.

        Notes
        -----
        Rounding of the logits is all that limits gradients: they are right to the machine epsilon times the largest
        logit, which is the squared distance from the nearest key over two for a Gaussian. Where that is beyond 2^40, a
        million bandwidths, the fit is the value of the nearest key, and moves with nothing else. For any kernel all
        gradients of such queries but those by values are exactly zero.
        """
        if problem.factors is not None or problem.excluded is not None:
            refuse_parts(problem)
        wanted, cotangent = read_pullback(problem, state, cotangent, wanted, WANTED, self._chosen)
        larger, exponents = scaled_up(problem)
        reduced = problem.reduced(state)
        if exponents is not None:
            reduced, cotangent = multiplied(problem, reduced, exponents), np.ldexp(cotangent, -exponents)
        if problem.similarity.kernel.is_compact and problem.logit_bias is None and not may_underflow(problem):
            reduced = without_shift(reduced)  # as algorithms sum them
        # Queries so far from all keys that rounded logits do not say how weights change move with values alone.
        (far,) = np.nonzero((reduced.shift < 0.5 * -FAR) & (reduced.denominator > 0))
        far = far[reduced.shift[far] + np.log(reduced.denominator[far]) < -FAR]
        near, threads = reduced.without(far) if far.size else reduced, resolve_n_jobs(n_jobs)
        found = self._chosen.pullback(larger, near, cotangent, wanted, threads, progress)
        if found.value is None:
            return found
        for piece in cut(far.size, max(1, FAR_PAIRS // larger.shape[1])):
            # With sums of its own: logits that another algorithm has rounded differ by more than one.
            part = larger.block(far[piece])
            of_far = reference.pullback(part, reference.reduce(part), cotangent[far[piece]], frozenset({"value"}))
            found.value[:] += cast(Array, of_far.value)
        return found if exponents is None else found._replace(value=np.ldexp(found.value, exponents))


FAR = 2.0**40  # logits below minus this have lost all but four digits: 1.5 million bandwidths of a Gaussian
FAR_PAIRS = 1 << 18  # of far queries, at once


def refuse_parts(problem: Problem) -> None:
    """Raise ValueError for a problem with categorical columns or groups, which a single algorithm does not support."""
    what = "factors" if problem.excluded is None else "groups"
    raise ValueError(
        f"this plan was chosen for a problem without {what}, and would ignore {what}; use "
        "choose(problem) of the problem itself" + (", or problem.without_factors()" if what == "factors" else "")
    )


def read_pullback(
    problem: Problem,
    state: PoolState,
    cotangent: Array,
    wanted: Collection[str],
    known: frozenset[str],
    algorithm: Algorithm = REFERENCE,
) -> tuple[frozenset[str], Array]:
    """Return the names of the requested derivatives, and the cotangent; raise ValueError if they do not fit."""
    wanted = frozenset([wanted] if isinstance(wanted, str) else wanted)
    if not wanted or wanted - known:
        raise ValueError(f"wanted must be some of {sorted(known)}, got {sorted(wanted)}")
    most = algorithm.gradients_degree
    if problem.degree > most:
        raise ValueError(
            f"there are no gradients of degree={problem.degree}, only of degree=0 to {most}; differentiate, or search "
            f"for a bandwidth, with degree={most}"
        )
    cotangent = np.ascontiguousarray(cotangent, dtype=np.float64)
    m, layout = len(problem.query), problem.layout
    for name, shape, width, what in (
        ("cotangent", cotangent.shape, layout.values, "value columns"),
        ("state.numerator", state.numerator.shape, layout.width, "columns of its layout"),
    ):
        if shape != (m, width):
            raise ValueError(f"{name} must have shape (queries, {what}) = {(m, width)}, got {shape}")
    return wanted, cotangent


def name_of_each(algorithm: str) -> str:
    """Return a phrase, for the reason of a plan, that names the algorithm used for each part of a problem."""
    return "the algorithm that suits it" if algorithm == "auto" else f"algorithm {algorithm!r}, as asked"


def check_algorithm(algorithm: str) -> None:
    """Raise ValueError unless the algorithm is "auto" or the name of a registered one."""
    if not isinstance(algorithm, str) or (algorithm != "auto" and algorithm not in ALGORITHMS):
        known = ("auto", *ALGORITHMS)
        hint = did_you_mean(algorithm, known) if isinstance(algorithm, str) else ""
        raise ValueError(f"unknown algorithm {abbreviate(algorithm)}; {hint}known algorithms: {', '.join(known)}")


def choose_algorithm(problem: Problem, algorithm: str = "auto", *, reuse: bool = True) -> Plan:
    """Choose the plan for a problem without categorical columns or groups; parameters as in `choose`."""
    if algorithm != "auto":
        check_algorithm(algorithm)
        chosen = ALGORITHMS[algorithm]
        if refusal := chosen.refusal(problem):
            able = [name for name, other in ALGORITHMS.items() if other.refusal(problem) is None]
            raise ValueError(f"algorithm {algorithm!r} {refusal}; use algorithm='auto' or one of {able}")
        return Plan(chosen.name, chosen)
    densely = 0.0 if reuse else REFERENCE.seconds(problem, PairSample(problem), {})
    if not reuse and densely <= LOADING:
        return Plan(REFERENCE.name, REFERENCE, problem.shape, {REFERENCE.name: densely})
    look, seconds = PairSample(problem), dict[str, float]()
    for name, one in ALGORITHMS.items():
        if one.refusal(problem) is None:
            seconds[name] = one.seconds(problem, look, seconds)
    if not reuse:
        seconds = {name: s + (0.0 if name == REFERENCE.name else LOADING) for name, s in seconds.items()}
    best = min(seconds, key=seconds.__getitem__)
    return Plan(best, ALGORITHMS[best], problem.shape, seconds)


def _seconds_as_text(seconds: float) -> str:
    """Format a time in seconds as text with a unit and one or two digits."""
    for unit, size in (("s", 1.0), ("ms", 1e-3)):
        if seconds >= size:
            return f"{seconds / size:.2g} {unit}" if seconds < 100 * size else f"{seconds / size:.0f} {unit}"
    return f"{seconds * 1e6:.0f} us"


FEW = 8  # different factors; each factor is a problem of its own


Part = tuple[slice | Index, Problem, Progress | None]


@dataclass(frozen=True)
class PartsPlan:
    """Plan for a problem that is cut into parts, each summed by a plan of its own; `choose` builds it.

    The parts are queries of one width of windows, or blocks of pairs that take part where rows are left out together.
    """

    algorithm: str  # ``"widened"`` or ``"groups"``
    reason: str  # why this way, in words
    _choose: Callable[[Problem], PoolingPlan] = field(repr=False, compare=False)
    # Which queries, their problem, and their progress.
    _parts: Callable[[Problem, Progress | None], Iterator[Part]] = field(repr=False, compare=False)

    @np.errstate(under="ignore")
    def reduce(self, problem: Problem, *, n_jobs: int | None = None, progress: Progress | None = None) -> PoolState:
        """Sum weights and weighted values over all keys that take part; parameters and result as of `Plan.reduce`.

        For slopes at full precision let the problem have a ``value_center`` of zero, as with categories.
        """
        total = empty_state(len(problem.query), problem.layout.width)
        for rows, part, report in self._parts(problem, progress):
            total.add(rows, self._choose(part).reduce(part, n_jobs=n_jobs, progress=report))
        return total

    @np.errstate(under="ignore")
    def pullback(
        self,
        problem: Problem,
        state: PoolState,
        cotangent: Array,
        wanted: Collection[str] = ("log_bandwidth",),
        *,
        n_jobs: int | None = None,
        progress: Progress | None = None,
    ) -> Gradients:
        """Differentiate ``sum(cotangent * pooled)`` by what has one row per query; as of `Plan.pullback`.

        These are log-bandwidths, queries and, of a problem with categories, smoothings. Factors of the bandwidths are
        constants here.
        """
        known = PER_QUERY if problem.factors is None else PER_QUERY | {"smoothing"}
        wanted, cotangent = read_pullback(problem, state, cotangent, wanted, known)
        (m, d), k = problem.query.shape, 0 if problem.factors is None else len(problem.factors.tables)
        sums = {name: np.zeros((m, k if name == "smoothing" else d)) for name in wanted}
        for rows, part, report in self._parts(problem, progress):
            gradients = self._choose(part).pullback(
                part, state.rows(rows), cotangent[rows], wanted, n_jobs=n_jobs, progress=report
            )
            for name in wanted:
                sums[name][rows] += getattr(gradients, name)
        return Gradients(**sums)


def parts_by_width(problem: Problem, progress: Progress | None) -> Iterator[Part]:
    """Yield the queries of each width of windows with their problem and their part of the progress."""
    done, m = 0, len(problem.query)
    for rows, similarity in problem.similarity.parts():
        part = replace(problem.block(rows), similarity=similarity)
        yield rows, part, progress_between(progress, done, done + len(part.query), m)
        done += len(part.query)
