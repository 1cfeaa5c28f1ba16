"""Windows: brute force over those keys alone that can matter to a query.

On a line in order, the keys within some radius of a query follow each other. For a compact kernel the radius is the
bandwidth. For one of infinite support it reaches from the nearest key on until what lies beyond is at most `tol` of the
weight of that key, so that it holds far from all keys as well, where every weight by itself underflows.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from kernpool.algorithms import window_loops
from kernpool.algorithms.line import Line
from kernpool.algorithms.threads import run_blocks
from kernpool.algorithms.tiles import CODES
from kernpool.kernels import Kernel
from kernpool.progress import Progress
from kernpool.state import PoolState

Array = NDArray[np.float64]

PAIRS_PER_CALL = 1 << 22
ROUNDING = 1.0 + 1e-12


def radius(kernel: Kernel, nearest: Array, share: Array) -> Array:
    r"""How far the keys reach that have to be summed, in bandwidths.

    Parameters
    ----------
    kernel : Kernel
        A built-in one.
    nearest : ndarray
        Distance of the nearest key, in bandwidths.
    share : ndarray
        What a weight may be beside that of the nearest key and be left out: ``tol * w_nearest / W``.

    Returns
    -------
    ndarray
        `r` such that :math:`K(u) \le share \cdot K(nearest)` for all :math:`u > r`.
    """
    if kernel.is_compact:
        return np.full(nearest.shape, ROUNDING)
    with np.errstate(divide="ignore"):
        decades: Array = -np.log(share)
    if kernel.name == "gaussian":
        return np.asarray(ROUNDING * np.sqrt(nearest**2 + 2.0 * decades))
    if kernel.name == "laplace":
        return ROUNDING * (nearest + decades)
    if kernel.name == "logistic":  # between exp(-u) / 4 and exp(-u)
        return ROUNDING * (nearest + decades + np.log(4.0))
    return np.full(nearest.shape, np.inf)


def spans(line: Line, kernel: Kernel, rows: NDArray[np.intp], tol: float) -> tuple[NDArray[np.int64], ...]:
    """First and last-plus-one key of the window of each of some queries."""
    keys, q = line.keys, line.queries.x[rows]
    nearest, share = np.zeros(len(rows)), np.ones(len(rows))
    if not kernel.is_compact:
        own = line.queries.own[rows] if line.leave_out else line.queries.own
        left = line.queries.own_weight[rows] if line.leave_out else line.queries.own_weight
        window_loops.nearest_keys(q, own, left, line.leave_out, keys, nearest, share)
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
    first, last = spans(line, kernel, rows, tol)
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
