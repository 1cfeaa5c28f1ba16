"""Windows: brute force over those keys alone that can matter to a query.

On a line in order, the keys within some radius of a query follow each other. For a compact kernel the radius is the
bandwidth. For one of infinite support it reaches from the nearest key on until what lies beyond is at most `tol` of the
weight of that key, so that it holds far from all keys as well, where every weight by itself underflows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from kernpool.algorithms import window_loops
from kernpool.algorithms.base import PER_QUERY, Gradients
from kernpool.algorithms.compiled import CompiledBlocks
from kernpool.algorithms.line import Line
from kernpool.algorithms.radius import radius
from kernpool.algorithms.threads import cut, run_blocks
from kernpool.algorithms.tiles import CODES
from kernpool.kernels import Kernel
from kernpool.problem import Problem
from kernpool.progress import Progress
from kernpool.state import PoolState

Array = NDArray[np.float64]

PAIRS_PER_CALL = 1 << 22


def spans(
    line: Line, kernel: Kernel, rows: NDArray[np.intp], tol: float, moments: bool
) -> tuple[NDArray[np.int64], ...]:
    """First and last-plus-one key of the window of each of some queries."""
    keys, q = line.keys, line.queries.x[rows]
    nearest, share = np.zeros(len(rows)), np.ones(len(rows))
    if not kernel.is_compact:
        own = line.queries.own[rows] if line.leave_out else line.queries.own
        left = line.queries.own_weight[rows] if line.leave_out else line.queries.own_weight
        window_loops.nearest_keys(q, own, left, line.leave_out, moments, keys, nearest, share)
        total = float(keys.weight.sum()) if keys.weight.size else float(len(keys.x))
        nearest /= line.bandwidth
        share *= tol / total
    with np.errstate(over="ignore"):
        reach = line.bandwidth * radius(kernel, nearest, share)
    # q - reach is rounded: an ulp of q may be more than the margin of the radius
    reach += 4.0 * np.finfo(float).eps * np.abs(q)
    first = np.searchsorted(keys.high, q - reach, side="left")
    last = np.searchsorted(keys.low, q + reach, side="right")
    return keys.offset[first], keys.offset[np.maximum(first, last)]


def reduce(
    line: Line,
    kernel: Kernel,
    rows: NDArray[np.intp],
    tol: float,
    out: PoolState,
    n_jobs: int = 1,
    progress: Progress | None = None,
) -> None:
    """Pool the queries in these places of the line, into the rows of `out` that they came from."""
    first, last = spans(line, kernel, rows, tol, out.numerator.shape[1] > len(line.keys.value))
    code, infinite = CODES[kernel.name], not kernel.is_compact

    def work(part: slice) -> Iterator[None]:
        window_loops.pool_windows(
            rows[part], line.queries, line.keys, first[part], last[part], line.leave_out, line.bandwidth, code,
            infinite, out.shift, out.denominator, out.numerator,
        )  # fmt: skip
        yield

    run_blocks(work, cut_by_pairs(last - first), n_jobs, progress)


def cut_by_pairs(pairs: NDArray[np.int64]) -> list[slice]:
    """Cut rows into slices of about `PAIRS_PER_CALL` pairs, as their windows are long or short."""
    done = np.cumsum(pairs + 64) // PAIRS_PER_CALL  # 64 pairs take as long as a query without any
    starts = np.concatenate([[0], np.flatnonzero(np.diff(done)) + 1, [len(pairs)]])
    return [slice(int(a), int(b)) for a, b in pairwise(starts) if b > a]


def pullback(
    problem: Problem,
    line: Line,
    state: PoolState,
    cotangent: Array,
    wanted: frozenset[str],
    n_jobs: int = 1,
    progress: Progress | None = None,
) -> Gradients:
    """Differentiate over the pairs within windows; what is left out is at most the machine epsilon of each sum."""
    keys, queries = line.keys, line.queries
    ordered = replace(
        problem,
        query=queries.x[:, None],
        key=keys.x[:, None],
        value=keys.value.T,
        key_weight=keys.weight if keys.weight.size else None,
        self_index=queries.own if line.leave_out else None,
    )
    part_of = PoolState(state.shift[queries.order], state.denominator[queries.order], state.numerator[queries.order])
    cotangent, blocks = cotangent[queries.order], CompiledBlocks(ordered)
    first, last = spans(
        line, problem.similarity.kernel, np.arange(len(queries.x)), np.finfo(float).eps, problem.moments > 0
    )
    # Where no window before ends later, and none after begins earlier: with these, windows are in order.
    end, begin = np.maximum.accumulate(last), np.minimum.accumulate(first[::-1])[::-1]
    places = {"query": queries.order, "log_bandwidth": queries.order, "key": line.key_order, "value": line.key_order}
    shapes = {"query": problem.query, "log_bandwidth": problem.query, "key": problem.key, "value": problem.value}
    sums = {name: np.zeros(shapes[name].shape) for name in wanted}

    def add(names: frozenset[str], some_queries: slice, some_keys: slice, own: slice) -> None:
        found = blocks.pullback(some_queries, some_keys, part_of, cotangent, names)._asdict()
        for name in names:
            sums[name][places[name][own]] += found[name]

    def along_keys(part: slice) -> Iterator[None]:
        start, stop = int(first[part].min()), int(last[part].max())
        for piece in cut(stop - start, blocks.keys_per_call):
            add(wanted & PER_QUERY, part, slice(start + piece.start, start + piece.stop), part)
            yield

    def along_queries(part: slice) -> Iterator[None]:
        start = int(np.searchsorted(end, part.start, side="right"))
        stop = int(np.searchsorted(begin, part.stop, side="left"))
        for piece in cut(max(0, stop - start), blocks.pairs_per_call // ROWS):
            add(wanted - PER_QUERY, slice(start + piece.start, start + piece.stop), part, part)
            yield

    if wanted & PER_QUERY:
        run_blocks(along_keys, cut(len(queries.x), ROWS), n_jobs, progress)
    if wanted - PER_QUERY:
        run_blocks(along_queries, cut(len(keys.x), ROWS), n_jobs, progress)
    return Gradients(**sums)


ROWS = 256  # queries, or keys, whose windows are joined to one
