"""Sums in windows that differ between queries: the queries of each width are pooled as a problem of their own.

A problem whose bandwidths are multiplied by a factor at each query (`KernelLogits.widening`) is cut by these factors.
What is left is ordinary: every algorithm, kernel, category and group does it, with its own preparation of the keys.
There are to be few different factors, as a floor of effective rows takes them from a grid
(`kernpool.smoother.windows`). Windows that follow the keys (`kernpool.pooling.widths`) have as many as there are
queries: these are for the algorithms that take a factor for each query (`Algorithm.widening`), which are fewer.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from kernpool.algorithms import Gradients
from kernpool.core import PoolState, Problem, empty_state
from kernpool.execution.progress import Progress
from kernpool.pooling.plan import PoolingPlan

Array = NDArray[np.float64]

FEW = 8  # different factors; each factor is a problem of its own


@dataclass(frozen=True)
class WidenedPlan:
    """Plan for bandwidths that differ between queries by a factor; `choose` builds it."""

    algorithm: str  # ``"widened"``
    reason: str  # why this way, in words
    _choose: Callable[[Problem], PoolingPlan] = field(repr=False, compare=False)

    @classmethod
    def of(cls, widening: Array, choose_part: Callable[[Problem], PoolingPlan], each: str) -> WidenedPlan:
        """Return the plan for a widening; `choose_part` plans the queries of one width, `each` says how in words."""
        return cls("widened", f"{len(np.unique(widening))} width(s) of windows: each by {each}", choose_part)

    def reduce(self, problem: Problem, *, n_jobs: int | None = None, progress: Progress | None = None) -> PoolState:
        """Sum weights and weighted values over all keys, at each query; parameters and result as of `Plan.reduce`."""
        total = empty_state(len(problem.query), problem.layout.width)
        for rows, part, report in _parts(problem, progress):
            total.put(rows, self._choose(part).reduce(part, n_jobs=n_jobs, progress=report))
        return total

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

        Factors of the bandwidths are constants here.
        """
        found: dict[str, Array] = {}
        for rows, part, report in _parts(problem, progress):
            gradients = self._choose(part).pullback(
                part, state.rows(rows), cotangent[rows], wanted, n_jobs=n_jobs, progress=report
            )
            for name in wanted:
                one = getattr(gradients, name)
                found.setdefault(name, np.zeros((len(problem.query), one.shape[1])))[rows] = one
        return Gradients(**found)


def queries_by_width(problem: Problem) -> Iterator[tuple[slice | NDArray[np.intp], Problem]]:
    """Yield the queries of each width of windows, with the ordinary problem of these queries.

    Examples
    --------
    >>> problem = Problem.from_arrays([0.0, 9.0], [0.0, 1.0], [5.0, 7.0], widening=np.array([1.0, 2.0]))
    >>> [(rows.tolist(), part.similarity.bandwidth.tolist()) for rows, part in queries_by_width(problem)]
    [([0], [1.0]), ([1], [2.0])]
    """
    widening = problem.similarity.widening
    if widening is None:
        yield slice(None), problem
        return
    factors, number = np.unique(widening, return_inverse=True)
    for i, factor in enumerate(factors.tolist()):
        (rows,) = np.nonzero(number == i)
        part = problem.block(rows)
        similarity = replace(part.similarity, bandwidth=factor * part.similarity.bandwidth, widening=None)
        yield rows, replace(part, similarity=similarity)


def _parts(
    problem: Problem, progress: Progress | None
) -> Iterator[tuple[slice | NDArray[np.intp], Problem, Progress | None]]:
    """Yield the queries of each width with their problem and their part of the progress."""
    done, m = 0, len(problem.query)
    for rows, part in queries_by_width(problem):
        yield rows, part, None if progress is None else partial(_report, progress, done, m)
        done += len(part.query)


def _report(progress: Progress, before: int, m: int, done: int, _total: int) -> None:
    progress(before + done, m)
