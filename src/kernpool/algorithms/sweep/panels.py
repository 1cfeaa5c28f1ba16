"""Panels: the moments of a local fit on a line, for compact kernels, by way of the sums of any values.

Moments about one place are values like any other: offsets of keys from it, their squares, their products with values.
About the queries they follow by a shift, which costs no digits if the place is near. So the line is cut into panels of
queries two bandwidths wide, each with the keys in its reach and its middle as the place; a shift is at most one
bandwidth, and each key belongs to two panels or three. For local quadratic fits, whose sums have fourth powers, panels
are half as wide: the middle of a panel is then never farther than half a bandwidth, and what a shift costs a sixteenth.
Panels with few pairs are left to be done key by key.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from kernpool.algorithms.sweep.line import Keys, Line, Queries
from kernpool.algorithms.sweep.loops.gaussian import join
from kernpool.algorithms.sweep.loops.near import UNDONE
from kernpool.algorithms.sweep.offsets import with_moments
from kernpool.algorithms.sweep.polynomials import pool_polynomial
from kernpool.core.moments import Layout
from kernpool.core.state import PoolState
from kernpool.execution.progress import Progress
from kernpool.kernels.forms import Polynomial

WIDTH = (0.0, 2.0, 1.0)  # bandwidths, by degree
NEAR = 0.01  # mean squared offset, beside the squared shift, that still has twelve digits after it
NEAR_FOURTH = 0.003  # mean fourth power, beside that of the shift
FEW = 1 << 17  # pairs, up to which visiting them is faster than setting a panel up


def pool_panels(
    line: Line, form: Polynomial, out: PoolState, n_jobs: int, progress: Progress | None, degree: int = 1
) -> None:
    """Pool with moments into `out`, in which all queries are marked; those that have to be done key by key stay so."""
    keys, queries, h, width = line.keys, line.queries, line.bandwidth, WIDTH[degree]
    starts = join(queries.low, queries.high, queries.offset, width * h, len(queries.x))
    low, high = queries.low[starts[:-1]], queries.high[starts[1:] - 1]
    reach = h * (1.0 + 1e-12) + 4.0 * np.finfo(float).eps * np.maximum(np.abs(low), np.abs(high))
    first, last = keys.bins_between(low - reach, high + reach)
    pairs = (keys.offset[last] - keys.offset[first]) * np.diff(queries.offset[starts])
    panels = np.flatnonzero((high - low <= width * h) & (pairs > FEW))
    layout = Layout(len(keys.value), 1, degree)
    for done, i in enumerate(panels):
        middle = 0.5 * low[i] + 0.5 * high[i]
        panel = _cut(line, slice(first[i], last[i]), slice(starts[i], starts[i + 1]), middle, degree)
        pool_polynomial(panel, form, out, n_jobs, None)
        rows, shift = panel.queries.order, (middle - panel.queries.x) / h
        denominator = out.denominator[rows]
        moved = layout.moved(denominator, out.numerator[rows], shift[:, None])
        # Of keys much nearer to the query than the middle is, digits are lost.
        near = moved[:, layout.second.start] < NEAR * denominator * shift**2
        if degree == 2:
            near |= moved[:, layout.fourth.start] < NEAR_FOURTH * denominator * shift**4
        out.numerator[rows], out.denominator[rows] = moved, np.where(near, UNDONE, denominator)
        if progress is not None:
            progress(done + 1, len(panels))


def _cut(line: Line, key_bins: slice, query_groups: slice, middle: float, degree: int) -> Line:
    """Return a part of a line whose values are those of a state with moments about the middle."""
    keys, queries = line.keys, line.queries
    start, stop = int(keys.offset[key_bins.start]), int(keys.offset[key_bins.stop])
    begin, end = int(queries.offset[query_groups.start]), int(queries.offset[query_groups.stop])
    offset = (keys.x[start:stop] - middle) / line.bandwidth
    own = queries.own
    if line.leave_out:
        own = queries.own[begin:end] - start
        own = np.where((own >= 0) & (own < stop - start), own, -1)  # out of reach it has no weight anyway
    return replace(
        line,
        keys=Keys(
            keys.x[start:stop],
            keys.weight[start:stop],
            with_moments(keys.value[:, start:stop], offset, degree),
            keys.offset[key_bins.start : key_bins.stop + 1] - start,
            keys.low[key_bins],
            keys.high[key_bins],
        ),
        queries=Queries(
            queries.x[begin:end],
            queries.order[begin:end],
            queries.offset[query_groups.start : query_groups.stop + 1] - begin,
            queries.low[query_groups],
            queries.high[query_groups],
            own,
            queries.own_weight[begin:end] if line.leave_out else queries.own_weight,
        ),
    )
