"""Local linear fits on a line with nearest-neighbour windows, in linear time: the smoother of lowess.

The width of a window is the distance of the farthest of its k nearest keys, so it differs between queries, and sums
over windows of one width (`polynomial_kernels.py`) do not apply. Queries whose widths share a power of two form an
octave. The cells of an octave are at most half as wide as its windows, so a window consists of a few whole cells, a
suffix and a prefix of the cells at its ends, and some keys; see `loops/octaves.py`. Each octave costs one pass over
the keys. Equally dense keys have two octaves, those of an exponential distribution five to ten.

Windows do not depend on the weights and values of keys: robust fits prepare them once.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kernpool.algorithms.sweep.loops import octaves as loops
from kernpool.algorithms.sweep.loops import polynomial_kernels as cell_loops
from kernpool.execution.threads import cut, run_blocks

Array = NDArray[np.float64]
Index = NDArray[np.int64]

QUERIES_PER_BLOCK, BINS_PER_BLOCK = 1 << 12, 1 << 12  # a few milliseconds
NARROWEST = float(np.finfo(np.float64).tiny)  # of cells, whose widths divide


@dataclass(frozen=True)
class Octave:
    """Queries whose windows are between ``2 h`` and ``4 h`` wide, and the bins of keys in their windows, in cells.

    Parameters
    ----------
    h : float
        Largest width of a cell of more than one bin.
    queries : ndarray of int
        Which queries.
    first_bin : int
        First bin of keys in their windows.
    offset : ndarray of shape (bins + 1,)
        Where each bin starts among all keys.
    low, high : ndarray of shape (bins,)
        Smallest and largest key of each bin.
    start : ndarray of shape (cells + 1,)
        First bin of each cell, counted from `first_bin`.
    cell_of : ndarray of shape (bins,)
        Cell of each bin.
    """

    h: float
    queries: Index
    first_bin: int
    offset: Index
    low: Array
    high: Array
    start: Index
    cell_of: Index


@dataclass(frozen=True)
class NearestWindows:
    """Windows of the k nearest keys of each query on a line, prepared for local linear tricube fits.

    Parameters
    ----------
    x : ndarray of shape (n,)
        Sorted keys.
    query : ndarray of shape (m,)
        Sorted queries.
    k : int
        Keys in a window, at most n.
    first, middle : ndarray of shape (m,)
        First key of each window, and first key that is not below the query.
    width : ndarray of shape (m,)
        Distance of the farthest key in the window. It may be zero.
    octaves : tuple of Octave
        The queries by their widths; those of width zero are in the octave of the smallest.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.array([0.0, 1.0, 2.0, 4.0, 8.0])
    >>> windows = NearestWindows.prepare(x, np.array([0.5, 4.0]), 3)
    >>> windows.first.tolist(), windows.width.tolist()
    ([0, 1], [1.5, 3.0])
    >>> windows.fit(np.ones(5), 3.0 * x, n_jobs=1).tolist()
    [1.5, 12.0]
    """

    x: Array
    query: Array
    k: int
    first: Index
    middle: Index
    width: Array
    octaves: tuple[Octave, ...]

    @classmethod
    def prepare(cls, x: Array, query: Array, k: int) -> NearestWindows:
        """Find the windows of sorted queries among sorted keys, and divide the queries into octaves."""
        m, n = len(query), len(x)
        first, middle, width = np.empty(m, np.int64), np.empty(m, np.int64), np.empty(m)
        loops.find_windows(x, query, k, first, middle, width)
        edges = np.append(np.arange(0, n, loops.BIN), n)
        low, high = x[edges[:-1]], x[edges[1:] - 1]
        exponent = np.frexp(width)[1]  # widths are at least 2**(exponent - 1)
        exponent[width == 0.0] = exponent[width > 0.0].min(initial=0)

        def octave(power: int) -> Octave:
            queries = np.flatnonzero(exponent == power)
            begin, end = first[queries[0]] // loops.BIN, -(-(first[queries[-1]] + k) // loops.BIN)
            h = max(float(np.ldexp(1.0, power - 2)), NARROWEST)
            start, cell_of = np.empty(end - begin + 1, np.int64), np.empty(end - begin, np.int64)
            bins = slice(begin, end)
            offset = edges[begin : end + 1]
            cells = cell_loops.join(offset, low[bins], high[bins], h, start, cell_of)
            return Octave(h, queries, int(begin), offset, low[bins], high[bins], start[: cells + 1], cell_of)

        return cls(x, query, k, first, middle, width, tuple(octave(int(power)) for power in np.unique(exponent)))

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
            self._fit_octave(octave, weight, value, n_jobs, fitted)
        return fitted

    def _fit_octave(self, octave: Octave, weight: Array, value: Array, n_jobs: int, fitted: Array) -> None:
        bins = len(octave.low)
        cells = octave.offset, octave.low, octave.high, octave.start, octave.cell_of
        moment = np.empty((2, bins, 2, loops.TERMS))
        columns = value[None]

        def sum_bins(part: slice) -> Iterator[None]:
            scratch = np.zeros((3, loops.BIN))  # a weight of zero times what happens to be there may be NaN
            cell_loops.sum_bins(
                self.x, weight, columns, *cells, octave.h, part.start, part.stop, scratch, moment
            )  # fmt: skip
            yield

        def fit(part: slice) -> Iterator[None]:
            loops.fit_lines(
                self.x, weight, value, self.query, self.width, self.first, self.middle, self.k, octave.queries[part],
                *cells[1:], moment, octave.first_bin, octave.h, fitted,
            )  # fmt: skip
            yield

        if self.k > loops.FEW:
            run_blocks(sum_bins, cut(bins, BINS_PER_BLOCK), n_jobs, None)
            for side in (cell_loops.PREFIX, cell_loops.SUFFIX):
                cell_loops.add_up(moment, octave.cell_of, side, 0, bins)
        run_blocks(fit, cut(len(octave.queries), QUERIES_PER_BLOCK), n_jobs, None)
