"""Windows on a line whose widths differ between queries, in linear time: those of nearest keys, and of lowess.

The width of a window may be the distance of the farthest of its k nearest keys, so it differs between queries, and sums
over windows of one width (`polynomial_kernels.py`) do not apply. Queries whose widths share a power of two form an
octave. The cells of an octave are narrower than its windows, so a window consists of some whole cells, a suffix and a
prefix of the cells at its ends, and some keys; see `loops/octaves.py`. Each octave costs one pass over the keys.
Equally dense keys have two octaves, those of an exponential distribution five to ten.

`sum_windows` sums every polynomial kernel, and the Gaussian, of every degree. `NearestWindows` fits the lines of
lowess: its windows do not depend on the weights and values of keys, so re-weighted fits prepare them once.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import log, sqrt

import numpy as np

from kernpool._arrays import Array, Integers
from kernpool.algorithms.brute import brute
from kernpool.algorithms.sweep.loops import octaves as loops
from kernpool.algorithms.sweep.loops import polynomial_kernels as cell_loops
from kernpool.algorithms.sweep.loops import window_sums
from kernpool.algorithms.sweep.polynomial_kernels import derivatives
from kernpool.core import PoolState, Problem
from kernpool.execution import Progress, cut, run_blocks
from kernpool.kernels import Gaussian, Polynomial

QUERIES_PER_BLOCK, BINS_PER_BLOCK = 1 << 12, 1 << 12  # a few milliseconds
NARROWEST = float(np.finfo(np.float64).tiny)  # of cells, whose widths divide


@dataclass(frozen=True)
class Octave:
    """Queries whose widths share a power of two, and the bins of keys in their windows, in cells."""

    h: float  # largest width of a cell of more than one bin, between a quarter and half of the widths
    queries: Integers  # which queries
    first_bin: int  # first bin of keys in their windows
    offset: Integers  # where each bin starts among all keys
    low: Array  # smallest and largest key of each bin
    high: Array
    start: Integers  # first bin of each cell, counted from `first_bin`
    cell_of: Integers  # cell of each bin

    @classmethod
    def divide(cls, x: Array, first: Integers, last: Integers, width: Array) -> tuple[Octave, ...]:
        """Divide sorted queries by their widths, given the first and the last key but one of each window."""
        n = len(x)
        edges = np.append(np.arange(0, n, loops.BIN), n)
        low, high = x[edges[:-1]], x[edges[1:] - 1]
        exponent = np.frexp(width)[1]  # widths are at least 2**(exponent - 1)
        exponent[width == 0.0] = exponent[width > 0.0].min(initial=0)

        def octave(power: int) -> Octave:
            queries = np.flatnonzero(exponent == power)
            begin, end = first[queries].min() // loops.BIN, -(-last[queries].max() // loops.BIN)
            h = max(float(np.ldexp(1.0, power - 2)), NARROWEST)
            start, cell_of = np.empty(end - begin + 1, np.int64), np.empty(end - begin, np.int64)
            bins = slice(begin, end)
            offset = edges[begin : end + 1]
            cells = cell_loops.join(offset, low[bins], high[bins], h, start, cell_of)
            return cls(h, queries, int(begin), offset, low[bins], high[bins], start[: cells + 1], cell_of)

        return tuple(octave(int(power)) for power in np.unique(exponent))

    @property
    def cells(self) -> tuple[Array, Array, Integers, Integers]:
        """Ends of the bins, and how they are joined into cells."""
        return self.low, self.high, self.start, self.cell_of

    def moments(self, x: Array, weight: Array, columns: Array, terms: int, n_jobs: int) -> Array:
        """Return the moments of the weights and of `columns` up to each bin of its cell, and from it on."""
        bins = len(self.low)
        moment = np.empty((2, bins, 1 + len(columns), terms))

        def sum_bins(part: slice) -> Iterator[None]:
            scratch = np.zeros((2 + len(columns), loops.BIN))  # a weight of zero times what is there may be NaN
            cell_loops.sum_bins(
                x, weight, columns, self.offset, *self.cells, self.h, part.start, part.stop, scratch, moment
            )  # fmt: skip
            yield

        run_blocks(sum_bins, cut(bins, BINS_PER_BLOCK), n_jobs, None)
        for side in (cell_loops.PREFIX, cell_loops.SUFFIX):
            cell_loops.add_up(moment, self.cell_of, side, 0, bins)
        return moment


def sum_windows(problem: Problem, n_jobs: int = 1, progress: Progress | None = None) -> PoolState:
    """Compute kernel sums of a problem of one column whose windows differ between queries."""
    # The kernel is a compact polynomial or the Gaussian. Queries whose sums would lose digits are computed by brute
    # force, and so are those of a Gaussian whose sums are less than half of the lightest key, which have no key near.
    form = problem.similarity.kernel.form
    m, layout = len(problem.query), problem.layout
    order, x, weight, value = problem.prepare(
        "sorted line", (problem.key, problem.value, problem.key_weight), lambda: _in_order(problem)
    )
    place = np.argsort(problem.query[:, 0], kind="stable")
    q = np.ascontiguousarray(problem.query[place, 0])
    width = np.ascontiguousarray(np.broadcast_to(problem.similarity.widths()[:, 0], m)[place])
    left_out = None
    if problem.self_index is not None:
        rank = np.empty(len(order) + 1, np.int64)
        rank[order], rank[-1] = np.arange(len(order)), -1
        left_out = rank[problem.self_index[place]], problem.own_weight[place]
    assert isinstance(form, Polynomial | Gaussian)  # others are refused: `Algorithm.windows`
    sums = sum_sorted(
        form, x, weight, value, q, width, problem.degree, left_out=left_out, n_jobs=n_jobs, progress=progress
    )
    numerator = np.empty((m, layout.width))
    numerator[:, layout.value] = sums[:, 1:, 0]
    if problem.degree:
        numerator[:, layout.first], numerator[:, layout.second] = sums[:, 0, 1:2], sums[:, 0, 2:3]
        numerator[:, layout.cross] = sums[:, 1:, 1]
    if problem.degree == 2:
        numerator[:, layout.third], numerator[:, layout.fourth] = sums[:, 0, 3:4], sums[:, 0, 4:5]
        numerator[:, layout.cross_second] = sums[:, 1:, 2]
    state = PoolState(np.empty(m), np.empty(m), np.empty_like(numerator))
    total = sums[:, 0, 0]
    state.put(place, PoolState(np.where(total > 0.0, 0.0, -np.inf), total, numerator))
    least = 0.5 * _lightest(weight) if isinstance(form, Gaussian) else 0.0
    rest = np.flatnonzero(~(state.denominator >= least))  # NaN, too
    if rest.size:
        state.put(rest, brute.reduce(problem.block(rest), n_jobs))
    return state


def sum_sorted(
    form: Polynomial | Gaussian,
    x: Array,
    weight: Array,
    value: Array,
    query: Array,
    width: Array,
    degree: int,
    *,
    left_out: tuple[Integers, Array] | None = None,
    n_jobs: int = 1,
    progress: Progress | None = None,
) -> Array:
    """Return sums over the windows of sorted queries of kernel weights, times powers of offsets, and times values."""
    # A window of the Gaussian ends where all keys together have 1e-17 of the weight of the lightest.
    if isinstance(form, Polynomial):
        inner, outer, height, reach, cells = form.inner, form.outer, form.height, 1.0, 1.0
        polynomial, least = derivatives(inner, outer), window_sums.LEAST_SHARES
        terms = polynomial.shape[1]
    else:
        inner, outer, height, cells = 0, 0, 1.0, window_sums.GAUSSIAN_CELLS
        total = float(weight.sum()) if weight.size else float(len(x))
        reach = sqrt(2.0 * (log(1e17) + log(total) - log(_lightest(weight))))
        polynomial, least = np.empty((0, 0, 0)), window_sums.LEAST_SHARES_GAUSSIAN
        terms = window_sums.GAUSSIAN_TERMS
    own, left = (np.empty(0, np.int64), np.empty(0)) if left_out is None else left_out
    m, powers, most = len(query), 1 + degree, 1 + 2 * degree
    terms += most - 1
    first, last = _window_ends(x, query, reach * width)
    equal, above = np.searchsorted(x, query), np.searchsorted(x, query, side="right")
    sums = np.empty((m, 1 + len(value), most))
    done = 0
    for octave in Octave.divide(x, first, last, cells * width):
        queries = octave.queries
        if np.all(last[queries] - first[queries] <= loops.FEW):
            moment = np.zeros((2, 1, 1 + len(value), terms))
        else:
            moment = octave.moments(x, weight, value, terms, n_jobs)

        def visit(part: slice, octave: Octave = octave, moment: Array = moment) -> Iterator[None]:
            window_sums.sum_windows(
                x, weight, value, query, width, first, equal, above, last, own, left, octave.queries[part],
                *octave.cells, moment, octave.first_bin, octave.h, inner, outer, polynomial, least, most, powers, sums,
            )  # fmt: skip
            yield

        run_blocks(visit, cut(len(queries), QUERIES_PER_BLOCK), n_jobs, None)
        done += len(queries)
        if progress is not None:
            progress(done, m)
    sums *= height
    return sums


def _lightest(weight: Array) -> float:
    return float(weight[weight > 0.0].min()) if weight.size else 1.0


def _in_order(problem: Problem) -> tuple[Integers, Array, Array, Array]:
    """Return the order of the keys on the line, and keys, weights and values in it, the values column by column."""
    order = np.argsort(problem.key[:, 0], kind="stable")
    weight = np.empty(0) if problem.key_weight is None else problem.key_weight[order]
    return order, np.ascontiguousarray(problem.key[order, 0]), weight, np.ascontiguousarray(problem.value[order].T)


def _window_ends(x: Array, q: Array, width: Array) -> tuple[Integers, Integers]:
    """Return the first key in each window, and the first one beyond it: ``|q - x| / width < 1``, as it is rounded."""
    n = len(x)
    ends = []
    for sign in (1.0, -1.0):  # the upper ends are the lower ends of the line turned round
        line, at = (x, q) if sign > 0 else (-x[::-1], -q)
        first = np.searchsorted(line, at - width)
        while True:
            out = np.flatnonzero((first < n) & ((at - line[np.minimum(first, n - 1)]) / width >= 1.0))
            first[out] = np.searchsorted(line, line[first[out]], side="right")
            within = np.flatnonzero((first > 0) & ((at - line[first - 1]) / width < 1.0))
            first[within] = np.searchsorted(line, line[first[within] - 1])
            if not (out.size or within.size):
                break
        ends.append(first)
    low, high = ends[0], n - ends[1]
    return low, np.maximum(low, high)


@dataclass(frozen=True)
class NearestWindows:
    """Windows of the k nearest keys of each query on a line, prepared for local linear tricube fits."""

    x: Array  # sorted keys
    query: Array  # sorted queries
    k: int  # keys in a window, at most n
    first: Integers  # first key of each window, and first key that is not below the query
    middle: Integers
    width: Array  # distance of the farthest key in the window. It may be zero.
    octaves: tuple[Octave, ...]  # the queries by their widths; those of width zero are in the octave of the smallest

    @classmethod
    def prepare(cls, x: Array, query: Array, k: int) -> NearestWindows:
        """Find the windows of sorted queries among sorted keys, and divide the queries into octaves."""
        m = len(query)
        first, middle, width = np.empty(m, np.int64), np.empty(m, np.int64), np.empty(m)
        loops.find_windows(x, query, k, first, middle, width)
        return cls(x, query, k, first, middle, width, Octave.divide(x, first, first + k, width))

    def fit(self, weight: Array, value: Array, n_jobs: int) -> Array:
        """Return the local linear fit at every query, with each key's tricube weight times its own weight.

        Parameters
        ----------
        weight, value : ndarray of shape (n,)
            Of the keys. Values should be centered: rounding errors are relative to them.
        n_jobs : int
            Threads; the fits have the same bits for any number.

        Returns
        -------
        ndarray of shape (m,)
            NaN where less than two keys have a weight above 1e-12. Where the window has width zero, the mean of the
            keys that equal the query.
        """
        fitted = np.empty(len(self.query))
        for octave in self.octaves:
            moment = np.empty((2, 1, 2, loops.TERMS))
            if self.k > loops.FEW:
                moment = octave.moments(self.x, weight, value[None], loops.TERMS, n_jobs)

            def fit(part: slice, octave: Octave = octave, moment: Array = moment) -> Iterator[None]:
                loops.fit_lines(
                    self.x, weight, value, self.query, self.width, self.first, self.middle, self.k,
                    octave.queries[part], *octave.cells, moment, octave.first_bin, octave.h, fitted,
                )  # fmt: skip
                yield

            run_blocks(fit, cut(len(octave.queries), QUERIES_PER_BLOCK), n_jobs, None)
        return fitted
