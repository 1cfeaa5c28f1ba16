"""A problem on a line: one column, keys and queries in bins, everything else carried along in their order."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kernpool.algorithms.sweep.bins import PIECE, make_bins
from kernpool.algorithms.sweep.loops import bins as bin_loops
from kernpool.core.problem import Problem
from kernpool.execution.threads import cut, run_blocks

Array = NDArray[np.float64]
_NONE = np.empty(0)


class Keys(NamedTuple):
    """What compiled loops know of keys in bins: an empty weight stands for one each; values are (columns, n)."""

    x: Array
    weight: Array
    value: Array
    offset: NDArray[np.int64]
    low: Array
    high: Array

    def bins_between(self, low: Array, high: Array) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Return first and last-plus-one bin of a run that holds all keys from `low` to `high`."""
        first = np.searchsorted(self.high, low, side="left")
        return first, np.maximum(first, np.searchsorted(self.low, high, side="right"))


class Queries(NamedTuple):
    """What compiled loops know of queries in groups: where each came from, and which key is its own (-1 for none)."""

    x: Array
    order: NDArray[np.integer]
    offset: NDArray[np.int64]
    low: Array
    high: Array
    own: NDArray[np.int64]
    own_weight: Array


@dataclass(frozen=True)
class Line:
    """Keys and queries of a problem with one column, in order.

    Parameters
    ----------
    keys : Keys
        Those with positive weight.
    queries : Queries
        All of them, in groups of neighbours.
    key_order : ndarray of shape (keys,)
        Where each key came from.
    bandwidth : float
        In the units of the column.
    leave_out : bool
        Whether queries have own keys.
    queries_per_block : int
        How many neighbours, at most, look at the same keys.
    """

    keys: Keys
    queries: Queries
    key_order: NDArray[np.integer]
    bandwidth: float
    leave_out: bool
    queries_per_block: int = 16

    @property
    def total_weight(self) -> float:
        """Sum of the weights of all keys."""
        return float(self.keys.weight.sum()) if self.keys.weight.size else float(len(self.keys.x))

    @classmethod
    def arrange(cls, problem: Problem, key_bin: float, query_group: float, queries_per_block: int, n_jobs: int) -> Line:
        """Put a problem in order; sizes of bins and groups in numbers."""
        own, made_of = problem.self_index, (problem.key, problem.value, problem.key_weight, key_bin)
        keys, source = problem.prepare("bins", made_of, partial(_keys_in_bins, problem, key_bin, n_jobs))
        groups = make_bins(problem.query[:, 0], query_group, n_jobs)
        if own is None:
            places, left = np.full(1, -1), np.zeros(1)
        else:
            # The last entry answers for "no own key".
            inverse = np.full(len(problem.key) + 1, -1, dtype=source.dtype)
            inverse[source] = np.arange(len(source), dtype=source.dtype)
            places, left = inverse[own[groups.order]].astype(np.int64), problem.own_weight[groups.order]
        return cls(
            keys,
            Queries(groups.x, groups.order, groups.offset, groups.low, groups.high, places, left),
            source,
            float(problem.similarity.bandwidth[0]),
            own is not None,
            queries_per_block,
        )


def _keys_in_bins(problem: Problem, key_bin: float, n_jobs: int) -> tuple[Keys, NDArray[np.integer]]:
    """Put the keys of positive weight in bins; also return where each came from."""
    kept = None
    key, weight = problem.key[:, 0], problem.key_weight
    if weight is not None and not weight.all():
        (kept,) = np.nonzero(weight)
        key = key[kept]
    bins = make_bins(key, key_bin, n_jobs)
    source = bins.order if kept is None else kept[bins.order].astype(bins.order.dtype)
    weights = _NONE if weight is None else _gather(weight[:, None], source, n_jobs)[0]
    values = _gather(problem.value, source, n_jobs)
    return Keys(bins.x, weights, values, bins.offset, bins.low, bins.high), source


def _gather(columns: Array, order: NDArray[np.integer], n_jobs: int) -> Array:
    out = np.empty((columns.shape[1], len(order)))

    def gather(part: slice) -> Iterator[None]:
        bin_loops.gather(columns, order, part.start, part.stop, out)
        yield

    run_blocks(gather, cut(len(order), PIECE), n_jobs, None)
    return out
