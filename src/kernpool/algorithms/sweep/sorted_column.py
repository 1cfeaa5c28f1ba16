"""Keys and queries of one column, sorted into bins in linear time.

The algorithms for one column need to know which keys lie between two points, not their exact order. So numbers are
put into equal bins by counting, which reads memory a few times where sorting reads it twenty times: first into some
hundred buckets, then each bucket, which fits into a cache, into its bins. Bins that come out overfull, because the
numbers are bunched, heavy-tailed or tied, are sorted and cut. A run of equal numbers becomes a bin of its own, of
width zero.

`SortedColumn` is a problem in this order, with weights and values rearranged alike.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kernpool._arrays import Array, Index, Integers
from kernpool.algorithms.sweep.loops import bucket_sort as bin_loops
from kernpool.core import Problem
from kernpool.execution import cut, run_blocks

PIECE = 1 << 20  # numbers per call of a loop: about 10 ms
FEW_BINS = 1 << 13  # up to which numbers are scattered once
BUCKETS = 512  # that numbers are scattered into before, or more, if there are more bins
MOST_SHIFT = 11  # so that a bucket fits into the second-level cache
PARTS = 8  # of the numbers, scattered side by side, each with counts of its own
OVERFULL = 8  # times the size aimed at
CLOSEST = 1e-280  # numbers no farther apart than this are sorted: bins per unit of length would overflow


@dataclass(frozen=True)
class Bins:
    """Numbers sorted into consecutive bins: no number is larger than any number of the next bin."""

    order: NDArray[np.integer]  # where each number came from
    x: Array  # the numbers, bin after bin; within a bin in any order
    offset: Integers  # where each bin starts. No bin is empty.
    low: Array  # smallest and largest number of each bin
    high: Array


def make_bins(x: Array, size: float, n_jobs: int = 1) -> Bins:
    """Sort numbers into consecutive bins of about `size` numbers each."""
    x = np.ascontiguousarray(x)
    order, ordered, end = _scatter(x, max(1, round(len(x) / size)), n_jobs)
    offset = np.concatenate([[0], end[np.diff(end, prepend=0) > 0]])
    offset = _divide_overfull(order, ordered, offset, max(2.0, size), n_jobs)
    low, high = np.empty(len(offset) - 1), np.empty(len(offset) - 1)

    def measure(bins: slice) -> Iterator[None]:
        bin_loops.extremes(ordered, offset[bins.start : bins.stop + 1], low[bins], high[bins])
        yield

    run_blocks(measure, cut(len(low), max(1, int(PIECE / size))), n_jobs, None)
    return Bins(order, ordered, offset, low, high)


def _scatter(x: Array, bins: int, n_jobs: int) -> tuple[NDArray[np.integer], Array, Integers]:
    """Sort numbers into bins of equal width by counting; return original indices, the numbers, and where bins end."""
    n, low, high = len(x), float(x.min()), float(x.max())
    narrow = np.dtype(np.int32 if n < 1 << 31 else np.int64)  # half the memory, and half of what is moved
    if bins == 1 or not high - low > CLOSEST:  # few, all equal, or next to it: one bin, to be sorted
        return np.arange(n, dtype=narrow), x.copy(), np.array([n])
    # A bucket has 2**shift bins.
    shift = 0 if bins <= FEW_BINS else min((bins // BUCKETS).bit_length(), MOST_SHIFT)
    scale, buckets = bins / (high - low), ((bins - 1) >> shift) + 1
    parts = cut(n, max(1 << 16, -(-n // PARTS)))
    place = np.zeros((len(parts), buckets), dtype=np.int64)
    index = {part.start: i for i, part in enumerate(parts)}

    def count(part: slice) -> Iterator[None]:
        for piece in cut(part.stop - part.start, PIECE):
            bin_loops.count(x[part][piece], low, scale, bins - 1, shift, place[index[part.start]])
            yield

    run_blocks(count, parts, n_jobs, None)
    bin_loops.starts(place)
    order, ordered = np.empty(n, dtype=narrow), np.empty(n)

    def touch(part: slice) -> Iterator[None]:
        # The first touch of fresh pages is slow, and the first piece to be scattered would touch all of them.
        order[part], ordered[part] = 0, 0.0
        yield

    run_blocks(touch, cut(n, PIECE), n_jobs, None)

    def scatter(part: slice) -> Iterator[None]:
        for piece in cut(part.stop - part.start, PIECE):
            first = part.start + piece.start
            bin_loops.scatter(
                x[part][piece], first, low, scale, bins - 1, shift, place[index[part.start]], order, ordered
            )
            yield

    run_blocks(scatter, parts, n_jobs, None)
    end = place[-1]  # where the last part stopped to write into each bucket
    if shift == 0:
        return order, ordered, end
    start = np.concatenate([[0], end])
    again_order, again, end = np.empty_like(order), np.empty_like(ordered), np.zeros(bins, dtype=np.int64)

    def scatter_again(part: slice) -> Iterator[None]:
        for bucket in range(part.start, part.stop):
            bin_loops.scatter_again(ordered, order, start, bucket, low, scale, bins - 1, shift, end, again_order, again)
            yield

    run_blocks(scatter_again, cut(buckets, 8), n_jobs, None)
    return again_order, again, end


def _divide_overfull(order: NDArray[np.integer], x: Array, offset: Integers, size: float, n_jobs: int) -> Integers:
    """Sort the numbers of overfull bins in place, and return bin offsets that cut those bins further."""
    (overfull,) = np.nonzero(np.diff(offset) > OVERFULL * size)
    if not len(overfull):
        return offset
    cuts: dict[int, Integers] = {}  # new ones, by where the bin starts

    def divide(which: slice) -> Iterator[None]:
        for b in overfull[which]:
            start, stop = int(offset[b]), int(offset[b + 1])
            part, source = x[start:stop], order[start:stop]
            if (
                len(part) > PIECE and part.max() - part.min() > CLOSEST
            ):  # too long to sort in one go: scatter it once more
                finer = make_bins(part, size)
                source[:], part[:] = source[finer.order], finer.x
                cuts[start] = start + finer.offset[1:-1]
            else:
                rank = np.argsort(part)
                source[:], part[:] = source[rank], part[rank]
                cuts[start] = start + bin_loops.cuts(part, size)[1:]
            yield

    run_blocks(divide, cut(len(overfull), 16), n_jobs, None)
    new = np.concatenate([cuts[start] for start in sorted(cuts)])
    return np.insert(offset, np.searchsorted(offset, new), new)  # np.unique took seconds for millions of bins


_NONE = np.empty(0)


class SortedKeys(NamedTuple):
    """One-dimensional keys sorted into bins, with weights (empty array if all are one) and values (columns, n)."""

    x: Array
    weight: Array
    value: Array
    offset: Integers
    low: Array
    high: Array

    def bins_between(self, low: Array, high: Array) -> tuple[Index, Index]:
        """Return the first bin that overlaps `low` to `high`, and the one after the last; equal if none does."""
        first = np.searchsorted(self.high, low, side="left")
        return first, np.maximum(first, np.searchsorted(self.low, high, side="right"))


class SortedQueries(NamedTuple):
    """One-dimensional queries sorted into bins, with original indices and indices of own keys (-1 for none)."""

    x: Array
    order: NDArray[np.integer]
    offset: Integers
    low: Array
    high: Array
    own: Integers
    own_weight: Array


@dataclass(frozen=True)
class SortedColumn:
    """Keys and queries of a one-dimensional problem, sorted into bins."""

    keys: SortedKeys  # those with positive weight
    queries: SortedQueries  # all of them, in bins of neighbours
    key_order: NDArray[np.integer]  # where each key came from
    bandwidth: float  # in the units of the column
    leave_out: bool  # whether queries have own keys
    queries_per_block: int = 16  # how many neighbours, at most, look at the same keys

    @property
    def total_weight(self) -> float:
        """Sum of the weights of all keys."""
        return float(self.keys.weight.sum()) if self.keys.weight.size else float(len(self.keys.x))

    @classmethod
    def arrange(
        cls, problem: Problem, key_bin: float, query_group: float, queries_per_block: int, n_jobs: int
    ) -> SortedColumn:
        """Sort a problem's keys and queries into bins of about `key_bin` keys and `query_group` queries."""
        own, made_of = problem.self_index, (problem.key, problem.value, problem.key_weight, key_bin)
        keys, source = problem.prepare("bins", made_of, partial(_keys_in_bins, problem, key_bin, n_jobs))
        bins = make_bins(problem.query[:, 0], query_group, n_jobs)
        if own is None:
            places, left = np.full(1, -1), np.zeros(1)
        else:
            # The last entry answers for "no own key".
            inverse = np.full(len(problem.key) + 1, -1, dtype=source.dtype)
            inverse[source] = np.arange(len(source), dtype=source.dtype)
            places, left = inverse[own[bins.order]].astype(np.int64), problem.own_weight[bins.order]
        return cls(
            keys,
            SortedQueries(bins.x, bins.order, bins.offset, bins.low, bins.high, places, left),
            source,
            float(problem.similarity.bandwidth[0]),
            own is not None,
            queries_per_block,
        )


def _keys_in_bins(problem: Problem, key_bin: float, n_jobs: int) -> tuple[SortedKeys, NDArray[np.integer]]:
    """Return the keys of positive weight, sorted into bins, and their original indices."""
    kept = None
    key, weight = problem.key[:, 0], problem.key_weight
    if weight is not None and not weight.all():
        (kept,) = np.nonzero(weight)
        key = key[kept]
    bins = make_bins(key, key_bin, n_jobs)
    source = bins.order if kept is None else kept[bins.order].astype(bins.order.dtype)
    weights = _NONE if weight is None else _gather(weight[:, None], source, n_jobs)[0]
    values = _gather(problem.value, source, n_jobs)
    return SortedKeys(bins.x, weights, values, bins.offset, bins.low, bins.high), source


def _gather(columns: Array, order: NDArray[np.integer], n_jobs: int) -> Array:
    out = np.empty((columns.shape[1], len(order)))

    def gather(part: slice) -> Iterator[None]:
        bin_loops.gather(columns, order, part.start, part.stop, out)
        yield

    run_blocks(gather, cut(len(order), PIECE), n_jobs, None)
    return out


def with_moments(value: Array, offset: Array, degree: int) -> Array:
    """Append the powers of keys' offsets, and their products with values, to the value columns."""
    # Their order is that of `Layout`.
    square = offset * offset
    rows = [value, offset, square, offset * value]
    if degree == 2:
        rows += [square * offset, square * square, square * value]
    return np.vstack(rows)
