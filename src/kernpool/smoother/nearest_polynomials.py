"""Local polynomial smoother with tricube weights in the windows of the k nearest rows: the smoother of loess.

The window of a query reaches to its k-th nearest row, coincident rows counted. Weights and values of rows do not change
it, so robust fits prepare windows once. Windows of one column are runs of the sorted rows, and sums over wide ones take
linear time in all (`algorithms/sweep/octaves.py`); in several columns every query visits all rows. Where the terms of
the polynomial are collinear up to rounding the fit is the one of least norm, by a singular value decomposition, as that
of R's loess.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

from kernpool.execution.threads import cut, run_blocks
from kernpool.kernels.registry import Polynomial

Array = NDArray[np.float64]
Index = NDArray[np.int64]

TRICUBE, SQUARED = Polynomial(3, 3, 1.0), Polynomial(3, 6, 1.0)
FEW = 2000  # rows in a window, up to which visiting them is as fast as sums in linear time
PAIRS = 1 << 22  # of queries and rows at once
SINGULAR = 100.0 * float(np.finfo(np.float64).eps)  # of the largest singular value; smaller ones are rounding, as in R


@dataclass(frozen=True, eq=False)
class Windows:
    """Windows of queries: which rows, in the order of the smoother, they lie among, and how far they reach.

    Parameters
    ----------
    query : ndarray of shape (m, d)
        In the units of the smoother.
    begin, stop : ndarray of int, shape (m,)
        First row and end of the rows that may be in a window.
    width : ndarray of shape (m,)
        Distance where the kernel is zero; a width of zero holds the rows that equal the query.
    own : ndarray of int, shape (m,)
        The row that the query is, or -1.
    """

    query: Array
    begin: Index
    stop: Index
    width: Array
    own: Index

    def take(self, rows: NDArray[np.intp] | slice) -> Windows:
        """Return the windows of some of the queries."""
        return Windows(self.query[rows], self.begin[rows], self.stop[rows], self.width[rows], self.own[rows])


@dataclass(frozen=True, eq=False)
class WindowFits:
    """Local fits of queries, each NaN where no row of the window has a weight.

    Parameters
    ----------
    fitted, norm, leverage : ndarray of shape (m,)
        Fit, sum of squared linear weights times variances of rows, and the linear weight of the query's own row.
    deficient : ndarray of int
        Queries whose rows do not determine a polynomial, although the window is wider than zero.
    """

    fitted: Array
    norm: Array
    leverage: Array
    deficient: NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class NearestPolynomials:
    """Local polynomial smoother of n rows in windows of the k nearest.

    Parameters
    ----------
    key : ndarray of shape (n, d)
        Rows, in units in which distances are compared.
    k : int
        Rows in a window, at most n.
    degree : {0, 1, 2}
        Of the polynomial, with mixed products.
    stretch : float, default=1.0
        Factor of the distance of the k-th nearest row.
    n_jobs : int, default=1
        Threads; results have the same bits for any number.

    Examples
    --------
    >>> smoother = NearestPolynomials(np.array([[0.0], [1.0], [2.0], [4.0]]), 3, 1)
    >>> smoother.fit(smoother.windows(np.array([[1.5]])), np.ones(4), np.array([0.0, 2.0, 4.0, 8.0])).fitted
    array([3.])
    """

    key: Array
    k: int
    degree: int
    stretch: float = 1.0
    n_jobs: int = 1

    @cached_property
    def order(self) -> NDArray[np.intp]:
        """The rows from the first to the last of a single column, else as they are."""
        rows = np.arange(len(self.key))
        return np.argsort(self.key[:, 0], kind="stable") if self.key.shape[1] == 1 else rows

    @cached_property
    def _column(self) -> Array:
        return np.ascontiguousarray(self.key[self.order].T)

    @cached_property
    def of_rows(self) -> Windows:
        """The windows of the rows themselves."""
        place = np.empty(len(self.key), dtype=np.int64)
        place[self.order] = np.arange(len(self.key))
        return self.windows(self.key, place)

    def windows(self, query: Array, own: Index | None = None) -> Windows:
        """Find the windows of queries of shape (m, d); `own` are the places of those that are rows."""
        # Loads Numba, which other estimators may not need.
        from kernpool.algorithms.sweep.loops.octaves import find_windows

        m, n = len(query), len(self.key)
        own = np.full(m, -1) if own is None else own
        begin, stop = np.zeros(m, dtype=np.int64), np.full(m, n)
        if self.key.shape[1] == 1:
            order = np.argsort(query[:, 0], kind="stable")
            first, middle, width = np.empty(m, dtype=np.int64), np.empty(m, dtype=np.int64), np.empty(m)
            find_windows(self._column[0], query[order, 0], self.k, first, middle, width)
            reach = np.empty(m)
            begin[order], reach[order] = first, width
            stop = begin + self.k
            zero = np.flatnonzero(reach == 0.0)  # all rows that coincide, which may be more than k
            begin[zero] = np.searchsorted(self._column[0], query[zero, 0])
            stop[zero] = np.searchsorted(self._column[0], query[zero, 0], side="right")
        else:
            reach = np.empty(m)
            for part in cut(m, max(PAIRS // n, 1)):
                reach[part] = np.partition(cdist(query[part], self.key), self.k - 1, axis=1)[:, self.k - 1]
        return Windows(query, begin, stop, self.stretch * reach, own)

    def fit(self, windows: Windows, weight: Array, value: Array, variance: Array | None = None) -> WindowFits:
        """Fit polynomials to values of shape (n,) at queries, with each row's kernel weight times its own weight.

        Squared linear weights are multiplied by the variances of rows, by default one.
        """
        variance = np.ones(len(self.key)) if variance is None else variance
        return self._fit(windows, weight, value, variance, np.empty((len(windows.query), 0)))

    def shares(self, windows: Windows, weight: Array) -> Array:
        """Return the linear weights of the values, in the order of `order`, in the fit of each query: shape (m, n)."""
        share = np.zeros((len(windows.query), len(self.key)))
        self._fit(windows, weight, np.zeros(len(self.key)), np.ones(len(self.key)), share)
        return share

    def _fit(self, windows: Windows, weight: Array, value: Array, variance: Array, share: Array) -> WindowFits:
        from kernpool.smoother.loops.nearest_polynomials import fit_windows

        m, (d, n), order = len(windows.query), self._column.shape, self.order
        center = float(np.mean(value))
        weight, value, variance = weight[order], value[order] - center, variance[order]
        fitted, norm, leverage, pivot = found = np.full((4, m), np.nan)
        if d == 1 and self.k > FEW and not share.shape[1]:
            self._fit_line(windows, weight, value, variance, found)
        rest = np.flatnonzero(np.isnan(pivot))
        some, of_rest = windows.take(rest), np.full((4, len(rest)), np.nan)
        query = np.ascontiguousarray(some.query)

        def work(part: slice) -> Iterator[None]:
            fit, squares, own_share, least = of_rest[:, part]
            fit_windows(
                query[part], self._column, weight, variance, value, some.begin[part], some.stop[part],
                some.width[part], some.own[part], self.degree, fit, squares, own_share, share[part], least,
            )  # fmt: skip
            yield

        run_blocks(work, cut(len(rest), max(PAIRS // (4 * n * d), 1)), self.n_jobs, None)
        found[:, rest] = of_rest
        deficient = []
        for i in np.flatnonzero(pivot == 0.0):
            rows = slice(int(windows.begin[i]), int(windows.stop[i]))
            linear, rank = self._least_norm(windows.query[i], rows, float(windows.width[i]), weight[rows])
            fitted[i], norm[i] = linear @ value[rows], linear**2 @ variance[rows]
            own = int(windows.own[i]) - rows.start
            leverage[i] = linear[own] if 0 <= own < len(linear) else 0.0
            deficient += [i] if rank else []
            if share.shape[1]:
                share[i, rows] = linear
        return WindowFits(fitted + center, norm, leverage, np.array(deficient, dtype=np.intp))

    def _fit_line(self, windows: Windows, weight: Array, value: Array, variance: Array, found: Array) -> None:
        """Fit one column from sums in linear time; NaN in `found` is left to `fit_windows`."""
        from kernpool.algorithms.sweep.octaves import sum_sorted
        from kernpool.smoother.loops.nearest_polynomials import fit_sums

        order = np.argsort(windows.query[:, 0], kind="stable")
        order = order[windows.width[order] > 0.0]
        query, width, x = windows.query[order, 0], windows.width[order], self._column[0]
        sums = sum_sorted(TRICUBE, x, weight, value[None], query, width, self.degree, n_jobs=self.n_jobs)
        square, none = weight * (weight * variance), np.empty((0, len(x)))
        squared = sum_sorted(SQUARED, x, square, none, query, width, self.degree, n_jobs=self.n_jobs)
        own = windows.own[order]
        fits = np.full((4, len(order)), np.nan)
        fit_sums(sums, squared[:, 0], np.where(own >= 0, weight[own], 0.0), *fits)
        found[:, order] = fits

    def _least_norm(self, query: Array, rows: slice, width: float, weight: Array) -> tuple[Array, bool]:
        """Return the linear weights of the least-norm fit at one query, and whether singular values were cut."""
        offset = (self._column[:, rows] - query[:, None]) / width
        near = np.maximum(1.0 - np.sqrt(np.sum(offset**2, axis=0)) ** 3, 0.0)
        terms = [np.ones(offset.shape[1])]
        terms += [*offset] if self.degree else []
        if self.degree > 1:
            terms += [offset[a] * offset[b] for a in range(len(offset)) for b in range(a, len(offset))]
        root = near * np.sqrt(near * weight)
        design = np.column_stack(terms) * root[:, None]
        size = np.sqrt(np.sum(design**2, axis=0))
        left, singular, right = np.linalg.svd(design / np.where(size > 0, size, 1.0), full_matrices=False)
        kept = singular > SINGULAR * singular[0]
        linear: Array = root * (left[:, kept] @ (right[kept, 0] / singular[kept])) / size[0]
        return linear, not kept.all()
