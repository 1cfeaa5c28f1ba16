"""Blocks: neighbouring queries that look at the same keys; see `loops/near.py`."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kernpool.algorithms.sweep.line import Line
from kernpool.algorithms.sweep.loops import near as loops
from kernpool.core.state import PoolState

Array = NDArray[np.float64]


@dataclass(frozen=True)
class QueryBlocks:
    """Blocks of queries, in the order of the line.

    Parameters
    ----------
    place : ndarray of shape (blocks + 1,)
        Where each block starts and the last one stops.
    low, high : ndarray of shape (blocks,)
        Smallest and largest query of each.
    runs : ndarray of shape (blocks, 6)
        At which bin each run of keys starts, to be filled in; see `loops/near.py`.
    """

    place: NDArray[np.int64]
    low: Array
    high: Array
    runs: NDArray[np.int64]

    @classmethod
    def cut(cls, line: Line, part: slice, width: float, most: int) -> QueryBlocks:
        """Cut a part of the queries into blocks, at most so wide and at most so many queries each."""
        size = part.stop - part.start
        place, low, high = np.empty(size + 1, np.int64), np.empty(size), np.empty(size)
        number = loops.cut_blocks(line.queries.x, part.start, part.stop, width, most, place, low, high)
        return cls(place[: number + 1], low[:number], high[:number], np.zeros((number, 6), np.int64))

    def add_near(self, line: Line, total: Array, inner: int, outer: int) -> tuple[Array, Array]:
        """Sum over near keys, with a kernel of height 1; returns the sums, and how much the near keys of blocks weigh.

        `total` has the sums of weight and of weight times value of every bin of keys.
        """
        keys, columns = line.keys, 1 + len(line.keys.value)
        near, near_weight = np.empty(len(self.place), np.int64), np.empty(len(self.low))
        loops.make_room(keys.offset, self.runs, near)
        size = near[-1] + 2 * loops.WIDTH
        near_x, times = np.empty(size), np.empty((columns, size))
        loops.collect(*keys, total, self.runs, near, near_x, times, near_weight)
        found = np.empty((columns, self.place[-1] - self.place[0]))
        loops.pairs(inner, outer)(line.queries.x, self.place, near, near_x, times, line.bandwidth, found)
        return found, near_weight

    def write_out(self, line: Line, found: Array, height: float, inner: int, outer: int, out: PoolState) -> None:
        """Take each query itself out, and bring sums to the rows that queries came from."""
        keys, queries = line.keys, line.queries
        if line.leave_out:
            loops.take_own_out(
                keys.x, keys.weight, keys.value, keys.offset, self.runs, self.place, queries.x, queries.own,
                queries.own_weight, line.bandwidth, height, inner, outer, found,
            )  # fmt: skip
        loops.write_out(found, queries.order, self.place[0], out.denominator, out.numerator)
