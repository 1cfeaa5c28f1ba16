"""Pooling with groups: sums in which keys of the query's own group are excluded, and their derivatives.

All other groups are summed without subtracting. Where a group holds nearly all of the weight of a window,
the total less the sum of the group would be rounding. The groups are sorted and cut into eight, again and again: the
queries of an eighth are summed with the keys of the seven others, as a plain problem for any algorithm, and states
are merged. When a few groups with few pairs remain, they are one sum under a mask.

    S_i = merge over l of  state(x_i, the other eighths at depth l)

With G groups a query is summed at most about ``log_8 G`` times, a key seven times as often, and each pair once: never
more than n^2 pairs, and O(n log n log G) for kernels and columns whose sums take O(n log n). Memory is O(n), and a
mask of a million pairs. On a line a query costs more than a key: where a part is thin, few queries share a series.
1e5 rows of one column take 1.4 s of a processor with 100 groups and 2.5 s with 20 000, and 0.05 s without groups. Cut
into halves they took 2.1 and 3.5 s, and sixteenths are no quicker. Half of the time is series, half some milliseconds
for each part; less would take cells whose moments are merged group by group, inside each family of kernels.

With a gap the numbers are places in an order, and keys within so many places of the query are excluded. Parts overlap
then: the queries of an eighth are summed with the keys that are further away from all of them than the gap, and the
eighth with the keys around it is cut again. 1e5 rows of one column take 1.6 s of a processor with gaps of five places,
2.4 s with 100 and 6 s with 2000, local planes half as much more.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import NamedTuple, cast

import numpy as np

from kernpool._arrays import Array, Index
from kernpool.core import ExcludedPairs, Problem
from kernpool.execution import Progress, progress_between
from kernpool.pooling.plan import Part, PartsPlan, PoolingPlan

MASKED_PAIRS = 1 << 20  # under one mask: compiled tiles take a millisecond for them, another cut twice as long
WAYS = 8  # parts that a range of groups is cut into, at most


class ExcludedBlock(NamedTuple):
    """Block of queries and keys to sum over, in which keys of the query's own group are excluded."""

    queries: Index  # which they are
    before: Index  # which keys, in two pieces of one order
    after: Index
    masked: bool  # whether some of them are of the same group, or within its gap

    @property
    def keys(self) -> Index:
        """Indices of all keys of the block, including those that a mask excludes for some of its queries."""
        return np.concatenate([self.before, self.after])

    @property
    def pairs(self) -> int:
        """Number of pairs of a query and a key in the block."""
        return self.queries.size * (self.before.size + self.after.size)


def plan_of_excluded(problem: Problem, choose_part: Callable[[Problem], PoolingPlan], each: str) -> PartsPlan:
    """Return the plan for a problem in which keys of the query's own group are excluded."""
    parts, count = len(_blocks(problem)), len(np.unique(cast(ExcludedPairs, problem.excluded).key_code))
    why = f"{count} groups, each left out, in {parts} part(s): each by {each}"
    return PartsPlan("groups", why, choose_part, _parts)


def _parts(problem: Problem, progress: Progress | None) -> Iterator[Part]:
    """Yield the queries of each block of a problem with groups, with their own problem and progress callback."""
    blocks, m, done = _blocks(problem), len(problem.query), 0
    total = sum(block.pairs for block in blocks)
    in_queries = progress_between(progress, 0, m, m)
    for block in blocks:
        report = progress_between(in_queries, done, done + block.pairs, total)
        if block.masked:
            part = _masked(problem.block(block.queries, block.keys))
        else:
            part = replace(problem, excluded=None).part(block.queries, block.keys)
        yield block.queries, part, report
        done += block.pairs
    if progress is not None:
        progress(m, m)


def _masked(problem: Problem) -> Problem:
    """Return the problem with its groups replaced by a mask of m x n booleans."""
    mask = cast(ExcludedPairs, problem.excluded).takes_part()
    return replace(problem, attn_mask=mask if problem.attn_mask is None else mask & problem.attn_mask, excluded=None)


def _blocks(problem: Problem) -> list[ExcludedBlock]:
    excluded, weight = cast(ExcludedPairs, problem.excluded), problem.key_weight
    of = excluded.query_code, excluded.key_code, excluded.gap, weight
    return problem.prepare("groups", of, lambda: _cut(excluded, weight))


def _cut(excluded: ExcludedPairs, weight: Array | None) -> list[ExcludedBlock]:
    """Split the query-key pairs of different groups into blocks, leaving out keys of zero weight."""
    # The groups from `low` to `high` exclude no keys but those from ``key_first[low]`` to ``key_last[high - 1]``, which
    # are their own, and with a gap those around them.
    kept = np.arange(len(excluded.key_code)) if weight is None else np.flatnonzero(weight > 0)
    if not kept.size:
        return []
    keys = kept[np.argsort(excluded.key_code[kept], kind="stable")]
    key_code, gap = excluded.key_code[keys], excluded.gap
    codes = np.unique(np.append(key_code, excluded.query_code[excluded.query_code >= 0]) if gap else key_code)
    mine = np.isin(excluded.query_code, codes)
    free, queries = np.flatnonzero(~mine), np.flatnonzero(mine)
    queries = queries[np.argsort(excluded.query_code[queries], kind="stable")]
    key_first, key_last = np.searchsorted(key_code, codes - gap), np.searchsorted(key_code, codes + gap, side="right")
    query_start = np.append(np.searchsorted(excluded.query_code[queries], codes), len(queries))
    key_middle = np.append(np.searchsorted(key_code, codes), len(keys))
    none = np.zeros(0, dtype=np.intp)
    blocks = [ExcludedBlock(free, keys, none, False)] if free.size else []
    waiting = [(0, len(codes))]
    while waiting:
        low, high = waiting.pop()
        some, (first, last) = queries[query_start[low] : query_start[high]], (key_first[low], key_last[high - 1])
        if high - low < 2 or not some.size:
            continue
        if some.size * (last - first) <= MASKED_PAIRS:
            blocks.append(ExcludedBlock(some, keys[first:last], none, True))
            continue
        # Group starts nearest to a split into equal numbers of keys; a large group may be nearest to several.
        enough = math.ceil(math.sqrt(some.size * (last - first) / MASKED_PAIRS))
        goals = np.linspace(key_middle[low], key_middle[high], min(WAYS, enough, high - low) + 1)[1:-1]
        nearest = low + np.abs(key_middle[low : high + 1, None] - goals).argmin(axis=0)
        ends = np.unique(np.clip(nearest, low + 1, high - 1)).tolist()
        parts = list(zip([low, *ends], [*ends, high], strict=True))
        for begin, end in parts:
            asked = queries[query_start[begin] : query_start[end]]
            before, after = keys[first : key_first[begin]], keys[key_last[end - 1] : last]
            if asked.size and before.size + after.size:
                blocks.append(ExcludedBlock(asked, before, after, False))
        waiting += parts[::-1]
    return blocks
