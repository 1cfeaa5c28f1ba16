"""Fast quantiles for many queries on one column: weights are summed at a few nodes and interpolated at queries.

The tree of `weighted_quantile.py` visits each query on some ten levels, and suits few queries. Here the keys in
reach of a block of neighbouring queries are ordered by value and cut into buckets. At a few nodes among the queries
the weights are summed up to the end of each bucket, and a query interpolates these sums
(`loops/one_column_quantile.py`). So all keys are visited some hundred times, whatever the bandwidth, and a query
searches only one bucket.

Accuracy. Over a block of queries the sum of the weights of some keys is a smooth function of the query. Of ``P``
Chebyshev nodes on a block of half width ``r`` bandwidths the interpolant is within ``2 (r / 2)**P max|K^(P)| / P!``
of each kernel:

=================== ===================================================== =================================
kernels             smooth                                                nodes, widest block, bound
=================== ===================================================== =================================
gaussian            everywhere; ``|K^(P)| < 1.1 sqrt(P!)`` (Cramer)       20, h: 2e-21 of the height
logistic            everywhere; poles at a distance of pi                 16, h: 7e-17 of the kernel
compact polynomials inside the window, away from a kink                   degree + 1, h / 4: exact
cosine              inside the window                                     10, h / 4: 5e-17 of the height
laplace, constant   not here: a kink that far keys share, a single sum
=================== ===================================================== =================================

The logistic kernel is ``-4`` times the sum of ``(u - z)**-2`` over its poles ``z``. For one pole the interpolant is
within ``(1 / |u - z| + |T'(z) / T(z)|) / (|u - z| |T(z)|)``, with T the Chebyshev polynomial of degree P on the
block: 6.4e-17 for the two nearest poles, where the block is at the key, and less elsewhere. Beyond 8 bandwidths
from the key the kernel is a series of exponentials, whose derivatives bound the error by 1e-20 of the kernel. All
these bounds are proven for exact arithmetic; `tests/distribution/test_smoothness.py` checks them with 40 digits.
The rounding error on top of them is measured.

Interpolated sums are used only where they are so large that these bounds are below their rounding: Gaussian ones
from `least_of_window` on, all others from 1/32 of the largest at a node on. The weights of the bucket in which a
quantile is found are also summed key by key, and have to agree with the interpolated sum. All other queries go to
the tree. Keys near the end of a window or near a kink are few where blocks are narrow, and each query visits them
itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import inf, log2, sqrt

import numpy as np
from numpy.typing import NDArray

from kernpool.algorithms.algorithm import radius
from kernpool.core.problem import Problem
from kernpool.execution.threads import cut, resolve_n_jobs, run_blocks
from kernpool.kernels import Gaussian, Kernel, NearlyExponential, Polynomial

NODES_OF_GAUSSIAN, NODES_OF_LOGISTIC = 20, 16
NODES_OF_COSINE = 10
COMPACT_WIDTH = 0.25  # bandwidths, width of the widest block; with many keys blocks are smaller
SPARE_BITS = 10.0  # sums are used down to 2**-10 of the mean weight of a key, some four bandwidths away from all
LOST_BITS = 55.0  # what keys out of reach weigh together is below 2**-55 of any sum that is used


@dataclass(frozen=True)
class Smoothness:
    """Parameters for interpolating sums of a kernel between queries: nodes, block width, and non-smooth points.

    Parameters
    ----------
    nodes : int
        Per block.
    width : float
        Width of the widest block, in bandwidths.
    edge, kink : bool
        Whether the kernel is not smooth at the end of its window, and at zero.
    least_of_window : float
        A sum below this fraction of the weight of the keys in reach is not used: the interpolant is within 2e-21 of
        each.
    """

    nodes: int
    width: float
    edge: bool = False
    kink: bool = False
    least_of_window: float = 0.0

    def width_of(self, density: float, h: float) -> float:
        """Return the width, in bandwidths, of a block of queries, where there are `density` queries per unit of length.

        Sums at nodes cost ``2 h nodes`` keys' worth per block, keys that each query visits itself ``(2 + kink) width``.
        """
        if not self.edge:
            return self.width
        balance = sqrt(2.0 * self.nodes / ((2.0 + self.kink) * max(density * h, 1e-300)))
        return min(self.width, balance)


def smoothness_of(kernel: Kernel) -> Smoothness | None:
    """Return the interpolation parameters of a built-in kernel, or None if its sums are not interpolated."""
    form = kernel.form
    if isinstance(form, Gaussian):
        return Smoothness(NODES_OF_GAUSSIAN, 1.0, least_of_window=2.0**-17)
    if isinstance(form, NearlyExponential):
        return Smoothness(NODES_OF_LOGISTIC, 1.0)
    if isinstance(form, Polynomial):
        return Smoothness(1 + form.inner * form.outer, COMPACT_WIDTH, edge=True, kink=form.inner % 2 == 1)
    if kernel.name == "cosine":
        return Smoothness(NODES_OF_COSINE, COMPACT_WIDTH, edge=True)
    return None


def least_sum(kernel: Kernel, keys: int, total: float) -> float:
    """Return the smallest interpolated sum of weights that is precise enough to use; zero for compact kernels."""
    return 0.0 if kernel.is_compact else 2.0 ** -(log2(keys) + SPARE_BITS) * total


def reach_of(kernel: Kernel, keys: int) -> float:
    """Return the distance, in bandwidths, beyond which keys are negligible in sums of at least `least_sum`."""
    if kernel.is_compact:
        return 1.0
    share = 2.0 ** -(log2(keys) + SPARE_BITS + LOST_BITS)
    found = float(radius(kernel, np.zeros(()), np.array(share)))
    return found if found > 0 else inf


Array = NDArray[np.float64]
Index = NDArray[np.signedinteger]  # of 32 bits where these are enough

BUCKET = 128  # keys
FEWEST_KEYS = 4096  # that are put in order together, where windows have fewer
MOST_QUERIES = 1 << 16  # that are held together
QUERIES_PER_BLOCK = 1 << 13
PAIRS_PER_CALL = 1 << 24  # about 20 ms
LEAST_SHARE = 2.0**-40  # of the sum of all weights; below it rounded sums do not show which keys have weight

# Seconds, to tell whether this is quicker than the tree: per key and node, per key and block, per request; and in the
# tree per key and tree level, per request and tree level, per pair.
PER_NODE, PER_BLOCK, PER_REQUEST, PER_NEAR = 1.6e-9, 2e-9, 1.2e-6, 2e-9
TREE_PER_KEY, TREE_PER_REQUEST, PER_PAIR = 5e-8, 1.5e-6, 1.5e-9


@dataclass(frozen=True)
class SortedLine:
    """One-dimensional keys in ascending order, with the index of each in another order, such as that of the values.

    Parameters
    ----------
    problem : Problem
        Problem of one column that the loops support.
    smooth : Smoothness
        Interpolation parameters of its kernel.
    order : ndarray of int, shape (n,)
        Keys of positive weight in the order of cumulation.
    x : ndarray of shape (n,)
        Their column, ascending.
    place : ndarray of int32 or int64, shape (n,)
        Indices in `order` of the keys of `x`.
    """

    problem: Problem
    smooth: Smoothness
    order: Index
    x: Array
    place: Index

    @classmethod
    def of(cls, problem: Problem, order: Index) -> SortedLine | None:
        """Sort the keys of a one-column problem; return None if the problem is not supported by the loops."""
        smooth = smoothness_of(problem.similarity.kernel)
        plain = problem.attn_mask is None and problem.factors is None and problem.groups is None
        if smooth is None or not plain or problem.key.shape[1] != 1 or not np.isfinite(problem.similarity.bandwidth[0]):
            return None
        key = problem.key[:, 0]
        along = narrow(np.argsort(key[order]))
        return cls(problem, smooth, order, key[order[along]], along)

    @property
    def h(self) -> float:
        """Bandwidth of the only column."""
        return float(self.problem.similarity.bandwidth[0])

    @property
    def reach(self) -> float:
        """Distance from a query within which keys matter, in the units of the column."""
        return self.h * reach_of(self.problem.similarity.kernel, len(self.order))

    def places(self, level: Array, slack: float, n_jobs: int | None) -> Iterator[tuple[Index, Index]]:
        """Yield, in batches, the index of the key at which each query's cumulative weight reaches its quantile orders.

        Parameters
        ----------
        level : ndarray of shape (m, l)
            Between 0 and 1.
        slack : float
            Tolerance for reaching a quantile order.
        n_jobs : int or None
            Threads.

        Yields
        ------
        rows : ndarray of int
            Some of the queries.
        place : ndarray of int, shape (rows, l)
            Indices of keys; -1 where the window is empty, digits would be lost, or a quantile order is nearly zero.
        """
        query = self.problem.query[:, 0]
        along = narrow(np.argsort(query, kind="stable"))
        for some in self._runs(query, along):
            rows = along[some]
            share = np.ascontiguousarray(level[rows] - slack)
            share[share < LEAST_SHARE] = np.inf  # which nothing reaches
            yield rows, self._search(query[rows], rows, share, n_jobs)

    def _runs(self, query: Array, along: Index) -> Iterator[slice]:
        """Yield slices of neighbouring queries, in the order `along`, that share most of their keys."""
        start, n = 0, len(self.x)
        while start < len(query):
            first = query[along[start]]
            known = self.x[min(int(np.searchsorted(self.x, first - self.reach)) + FEWEST_KEYS, n - 1)]
            high = max(first + self.reach, known - self.reach)
            ahead = along[start : start + MOST_QUERIES]
            stop = start + max(1, int(np.searchsorted(query[ahead], high, side="right")))
            yield slice(start, stop)
            start = stop

    def _search(self, query: Array, rows: Index, share: Array, n_jobs: int | None) -> Index:
        from kernpool.algorithms.loops.kernel_weights import CODES  # with code that loads Numba
        from kernpool.distribution.loops.one_column_quantile import find_in_blocks

        kernel, found = self.problem.similarity.kernel, np.full(share.shape, -1)
        doubt = 1e-12 * self.h + 1e-15 * np.abs(query).max()
        some = slice(
            int(np.searchsorted(self.x, query[0] - self.reach - doubt)),
            int(np.searchsorted(self.x, query[-1] + self.reach + doubt, side="right")),
        )
        place = np.sort(self.place[some])
        if not place.size:
            return found
        keys = self.order[place]
        weight = np.empty(0) if self.problem.key_weight is None else self.problem.key_weight[keys]
        start = self._blocks(query)
        own, own_weight, removed = self._own(rows, place)
        least = least_sum(kernel, len(self.order), self.problem.total_weight)
        nodes = np.cos(np.pi * (np.arange(self.smooth.nodes) + 0.5) / self.smooth.nodes)
        # New arrays: Numba treats read-only arrays as other types, for which it would compile again.
        key, bandwidth = self.problem.key[keys, 0][None, :], self.problem.similarity.bandwidth.copy()

        def work(blocks: slice) -> Iterator[None]:
            find_in_blocks(
                query, start, blocks.start, blocks.stop, key, weight, bandwidth, CODES[kernel.name],
                not kernel.is_compact or None, self.reach, self.smooth.edge, self.smooth.kink, BUCKET, nodes, least,
                self.smooth.least_of_window, share, own, own_weight, removed, found,
            )  # fmt: skip
            yield

        looks = len(query) * BUCKET * share.shape[1] // (len(start) - 1)
        together = max(1, PAIRS_PER_CALL // (len(place) * len(nodes) + looks))
        run_blocks(work, cut(len(start) - 1, together), resolve_n_jobs(n_jobs), None)
        return np.where(found >= 0, keys[found], -1)

    def _blocks(self, query: Array) -> NDArray[np.int64]:
        """Return the boundaries of blocks of queries, limited in width by the kernel and in number of queries."""
        extent = float(query[-1] - query[0])
        width = self.h * self.smooth.width_of(len(query) / extent if extent > 0 else 0.0, self.h)
        cell = np.floor((query - query[0]) / width)
        (first,) = np.nonzero(np.diff(cell, prepend=-1.0))
        place = np.arange(len(query)) - np.repeat(first, np.diff(first, append=len(query)))
        return np.append(np.flatnonzero(place % QUERIES_PER_BLOCK == 0), len(query)).astype(np.int64)

    def _own(self, rows: Index, place: Index) -> tuple[NDArray[np.int64], Array, Array]:
        """Return the index of each query's own key, the frequency left of it, and the weight that exclusion removes.

        Indices are those in `place`, -1 for none. The weight removed is frequency times kernel.
        """
        problem = self.problem
        own, removed = np.full(len(rows), -1), np.zeros(len(rows))
        if problem.self_index is None:
            return own, removed.copy(), removed
        of = np.full(len(problem.key) + 1, -1)
        of[self.order[place]] = np.arange(len(place))
        key = problem.self_index[rows]
        own = np.where(key >= 0, of[key], -1)
        u = np.abs(problem.query[rows, 0] - problem.key[key, 0]) / self.h
        weight = 1.0 if problem.key_weight is None else problem.key_weight[key]
        left = problem.own_weight[rows]
        removed = np.where(own >= 0, (weight - left) * problem.similarity.kernel.profile(u), 0.0)
        return own, left, removed


def narrow(index: Index) -> Index:
    """Convert indices to int32 where they fit, to save memory.

    At a million points memory is mostly indices.
    """
    return index.astype(np.int32) if len(index) < 1 << 31 else index


def is_quicker(problem: Problem, levels: int, report: Callable[[float, float], object] | None = None) -> bool:
    """Return whether interpolation in blocks is estimated to be faster than bisection of a tree of keys.

    The estimate is made from counts and a sample of keys.

    Parameters
    ----------
    problem : Problem
        Problem of one column.
    levels : int
        Number of quantile orders of each query.
    report : callable, optional
        Called with both estimates, in seconds.
    """
    smooth, (m, n) = smoothness_of(problem.similarity.kernel), problem.shape
    if smooth is None:
        return False
    query, h = problem.query[:, 0], float(problem.similarity.bandwidth[0])
    reach, extent = h * reach_of(problem.similarity.kernel, n), float(np.ptp(query))
    width = smooth.width_of(m / extent if extent > 0 else 0.0, h)
    blocks = min(float(m), 1.0 + extent / (width * h) + m / QUERIES_PER_BLOCK)
    sample = np.sort(problem.key[:: 1 + n // 2048, 0])
    asked = query[:: 1 + m // 2048]
    inside = np.searchsorted(sample, asked + reach, side="right") - np.searchsorted(sample, asked - reach)
    window = float(inside.mean()) / len(sample) * n
    together = max(1.5 * window, float(min(FEWEST_KEYS, n)))
    near = window * (2.0 + smooth.kink) * width / 2.0 if smooth.edge else 0.0
    ours = (
        4e-7 * n
        + blocks * (together * PER_BLOCK + window * min(smooth.nodes, m / blocks) * PER_NODE)
        + m * (levels * PER_REQUEST + near * PER_NEAR)
    )
    depth = max(1.0, np.log2(n / 512.0))
    tree = min(depth * (n * TREE_PER_KEY + m * levels * TREE_PER_REQUEST), m * n * PER_PAIR)
    if report is not None:
        report(ours, tree)
    return bool(ours < tree)
