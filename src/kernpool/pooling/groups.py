r"""Queries that do not meet the keys of their group: the sums over all other groups, without subtracting any.

Leaving whole groups out is no sum less another: where a group holds nearly all of the weight of a window, the
difference would be rounding. The groups are put in order and halved, again and again: the queries of one half meet the
keys of the other, as a plain problem for whatever algorithm suits it, and states merge. What remains of a few groups
with few pairs is one sum under a mask.

.. math:: S_i = \bigoplus_{l} \text{state}\big(x_i,\ \text{the other half at level } l\big)

With G groups that is at most :math:`\log_2 G` passes of n queries over n keys in all, each over half of the pairs or
less, so never more than :math:`n^2` pairs, and O(n log n log G) for kernels and columns whose sums take O(n log n).
Memory is O(n), and a mask of a million pairs. A part costs some milliseconds whatever is in it: 1e5 rows of one column
take 1.8 s with 100 groups and 2.7 s with 20 000, and 0.04 s without (one core).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from typing import NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from kernpool.algorithms import Gradients
from kernpool.algorithms.far.gradients import find_far
from kernpool.core.groups import Groups
from kernpool.core.problem import Problem
from kernpool.core.state import PoolState, empty_state
from kernpool.execution.progress import Progress
from kernpool.execution.threads import cut
from kernpool.pooling.cells import CellPlan
from kernpool.pooling.plan import FaultCount, Plan, read_pullback, read_wanted

Array = NDArray[np.float64]
Index = NDArray[np.intp]

WANTED = frozenset({"log_bandwidth", "smoothing", "query"})
MASKED_PAIRS = 1 << 20  # under one mask: compiled tiles take a millisecond for them, a halving twice as long
FAR_PAIRS = 1 << 18  # of far queries, with all keys under a mask


class Visit(NamedTuple):
    """Queries and keys that meet.

    Parameters
    ----------
    queries, keys : ndarray of int
        Which they are.
    masked : bool
        Whether some of them are of the same group.
    """

    queries: Index
    keys: Index
    masked: bool


@dataclass(frozen=True)
class GroupPlan(FaultCount):
    """How a problem is summed whose queries do not meet the keys of their group; `choose` makes one.

    Parameters
    ----------
    algorithm : str
        ``"groups"``.
    reason : str
        Why this way, in words.
    """

    algorithm: str
    reason: str
    _choose: Callable[[Problem], Plan | CellPlan] = field(repr=False, compare=False)

    def reduce(self, problem: Problem, *, n_jobs: int | None = None, progress: Progress | None = None) -> PoolState:
        """Sum weights and weighted values over the keys of all other groups; parameters and result as of `Plan.reduce`.

        For slopes with all their digits let the problem have a ``value_center`` of zero, as with levels.
        """
        layout, center = problem.layout, problem.value_center
        total = empty_state(len(problem.query), layout.width)
        for visit, part, report in _parts(problem, progress):
            plan = self._choose(part)
            state = plan.reduce(part, n_jobs=n_jobs, progress=report)
            self._count_faults(plan.faults)
            total.add(visit.queries, state)
        return PoolState(total.shift, total.denominator, layout.with_center(total.denominator, total.numerator, center))

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
        """Differentiate ``sum(cotangent * pooled)``; parameters and result as of `CellPlan.pullback`.

        Parameters
        ----------
        problem : Problem
            What was summed.
        state : PoolState
            What `reduce` returned.
        cotangent : ndarray of shape (m, c)
            Derivative of a scalar by the pooled values.
        wanted : collection of {"log_bandwidth", "smoothing", "query"}, default=("log_bandwidth",)
            Which derivatives; one row per query. ``"smoothing"`` is of problems with levels.
        n_jobs, progress
            As in `reduce`.

        Returns
        -------
        Gradients
            Those wanted.

        Raises
        ------
        ValueError
            If something else is wanted, shapes do not fit, or the kernel has no slope.
        """
        known = WANTED if problem.factors is not None else WANTED - {"smoothing"}
        wanted = read_wanted(wanted, known)
        state, cotangent = read_pullback(problem, state, cotangent)
        k = 0 if problem.factors is None else len(problem.factors.tables)
        sums = {
            name: np.zeros((len(cotangent), k if name == "smoothing" else problem.query.shape[1])) for name in wanted
        }
        far = find_far(state)
        if far.size:  # as with levels: parts are weighed against each other by logits, which is too rough out there
            bare = problem.without_center()
            for piece in cut(far.size, max(1, FAR_PAIRS // problem.shape[1])):
                some = far[piece]
                part = _masked(bare.block(some))
                found = self._choose(part).pullback(part, state.rows(some), cotangent[some], wanted, n_jobs=n_jobs)
                for name in wanted:
                    sums[name][some] = getattr(found, name)
        near = state.without(far)
        for visit, part, report in _parts(problem, progress):
            rows = visit.queries
            gradients = self._choose(part).pullback(
                part, near.rows(rows), cotangent[rows], wanted, n_jobs=n_jobs, progress=report
            )
            for name in wanted:
                sums[name][rows] += getattr(gradients, name)
        return Gradients(**sums)


def plan_of_groups(problem: Problem, choose_part: Callable[[Problem], Plan | CellPlan], each: str) -> GroupPlan:
    """Return the plan of a problem with groups.

    Parameters
    ----------
    problem : Problem
        With groups.
    choose_part : callable
        How parts without groups are summed.
    each : str
        The same in words.
    """
    parts, count = len(_visits(problem)), len(np.unique(cast(Groups, problem.groups).key_code))
    return GroupPlan("groups", f"{count} groups, each left out, in {parts} part(s): each by {each}", choose_part)


def _parts(problem: Problem, progress: Progress | None) -> Iterator[tuple[Visit, Problem, Progress | None]]:
    """Return the visits, each with its problem, and with what its progress is reported to."""
    visits, m = _visits(problem), len(problem.query)
    bare, done = problem.without_center(), 0
    total = sum(visit.queries.size * visit.keys.size for visit in visits)
    for visit in visits:
        pairs, report = visit.queries.size * visit.keys.size, None
        if progress is not None:
            report = partial(_report, progress, m, done, pairs, total)
        if visit.masked:
            part = _masked(bare.block(visit.queries, visit.keys))
        else:
            part = replace(bare, groups=None).part(visit.queries, visit.keys)
        yield visit, part, report
        done += pairs
    if progress is not None:
        progress(m, m)


def _masked(problem: Problem) -> Problem:
    """Return the same problem with a mask in place of the groups: m x n booleans."""
    mask = cast(Groups, problem.groups).takes_part()
    return replace(problem, attn_mask=mask if problem.attn_mask is None else mask & problem.attn_mask, groups=None)


def _visits(problem: Problem) -> list[Visit]:
    groups, weight = cast(Groups, problem.groups), problem.key_weight
    of = groups.query_code, groups.key_code, weight
    return problem.prepare("groups", of, lambda: _halve(groups, weight))


def _halve(groups: Groups, weight: Array | None) -> list[Visit]:
    """Cut the pairs of different groups into visits; keys of weight zero are in none."""
    kept = np.arange(len(groups.key_code)) if weight is None else np.flatnonzero(weight > 0)
    keys = kept[np.argsort(groups.key_code[kept], kind="stable")]
    codes = np.unique(groups.key_code[kept])
    mine = np.isin(groups.query_code, codes)
    free, queries = np.flatnonzero(~mine), np.flatnonzero(mine)
    queries = queries[np.argsort(groups.query_code[queries], kind="stable")]
    key_start = np.append(np.searchsorted(groups.key_code[keys], codes), len(keys))
    query_start = np.append(np.searchsorted(groups.query_code[queries], codes), len(queries))
    visits = [Visit(free, keys, False)] if free.size else []

    def part(low: int, high: int, rows: Index, start: NDArray[np.intp]) -> Index:
        return rows[start[low] : start[high]]

    waiting = [(0, len(codes))]
    while waiting:
        low, high = waiting.pop()
        some, others = part(low, high, queries, query_start), part(low, high, keys, key_start)
        if high - low < 2 or not some.size:
            continue
        if some.size * others.size <= MASKED_PAIRS:
            visits.append(Visit(some, others, True))
            continue
        halfway = key_start[low] + others.size // 2
        middle = int(np.clip(low + np.abs(key_start[low : high + 1] - halfway).argmin(), low + 1, high - 1))
        for first, second in (((low, middle), (middle, high)), ((middle, high), (low, middle))):
            asked = part(*first, queries, query_start)
            if asked.size:
                visits.append(Visit(asked, part(*second, keys, key_start), False))
        waiting += [(middle, high), (low, middle)]
    return visits


def _report(progress: Progress, m: int, done: int, pairs: int, all_pairs: int, part: int, parts: int) -> None:
    progress(min(m - 1, m * (done * parts + pairs * part) // (all_pairs * parts)), m)
