"""At which key, in the order in which they come, do the weights of a query reach a sum? Pair by pair, in loops."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from kernpool.algorithms.reference import may_underflow
from kernpool.core.problem import Problem
from kernpool.kernels import is_compiled

Array = NDArray[np.float64]
Index = NDArray[np.intp]

PAIRS = 1 << 23  # of a piece, which Ctrl-C waits for


def can_select(problem: Problem) -> bool:
    """Whether there are loops for a problem: a built-in kernel, and nothing that goes by logits or by groups."""
    kernel = problem.similarity.kernel
    plain = problem.logit_bias is None and problem.groups is None
    return is_compiled(kernel) and plain and not (kernel.is_compact and may_underflow(problem))


class Selection:
    """The search among the keys of a problem, in their order.

    Parameters
    ----------
    problem : Problem
        Of degree 0, for which there are loops (`can_select`).
    unit : ndarray of shape (m,)
        Powers of two in which weights are counted, about the logarithm of their sum, so that they neither underflow nor
        overflow; zero for kernels of compact support.
    """

    def __init__(self, problem: Problem, unit: Array) -> None:
        self.problem, self.unit = problem, unit

    def places(self, rows: Index, keys: slice, need: Array) -> Iterator[tuple[Index, Index]]:
        """Search some keys, piece by piece.

        Parameters
        ----------
        rows : ndarray of int, shape (r,)
            The query of each request, in rising order.
        keys : slice
            Where to look.
        need : ndarray of shape (r,)
            The sum that is wanted, in units of ``2**unit``; rising where rows are equal.

        Yields
        ------
        which : ndarray of int
            Some of the requests.
        place : ndarray of int
            Their key, the first at which the sum is reached, or else the last one of positive weight; -1 where all
            weights are zero.
        """
        asked, start = np.unique(rows, return_index=True)
        start = np.append(start, len(rows))
        at_once = max(1, PAIRS // (keys.stop - keys.start))
        for first in range(0, len(asked), at_once):
            last = min(first + at_once, len(asked))
            which = np.arange(start[first], start[last])
            yield which, self._search(asked[first:last], keys, start[first : last + 1] - start[first], need[which])

    def _search(self, queries: Index, keys: slice, start: Index, need: Array) -> Index:
        from kernpool.algorithms.brute.precision import read_only  # with what loads Numba
        from kernpool.distribution.loops.selection import select_block

        problem, (key, weight, level, tables, kernel) = self.problem, self._arrays
        m, mask, factors = len(queries), problem.attn_mask, problem.factors
        none = np.empty((m, 0), dtype=np.int64)
        found = np.full(len(need), -1)
        select_block(
            read_only(problem.query[queries]),
            key,
            weight,
            read_only(np.empty((0, 0), dtype=bool) if mask is None else mask[queries]),
            read_only(np.full(m, -1) if problem.self_index is None else problem.self_index[queries]),
            read_only(self._own_weight[queries]),
            read_only(none if factors is None else factors.query_code[queries]),
            level,
            tables,
            *kernel,
            read_only(self.unit[queries]),
            keys.start,
            keys.stop,
            read_only(start),
            read_only(need),
            found,
        )
        return found

    @cached_property
    def _own_weight(self) -> Array:
        return self.problem.own_weight

    @cached_property
    def _arrays(self) -> tuple[Array, Array, NDArray[np.int64], Array, tuple[Array, int, bool | None, bool]]:
        from kernpool.algorithms.brute.compiled import kernel_of
        from kernpool.algorithms.brute.precision import read_only

        problem = self.problem
        weight = np.empty(0) if problem.key_weight is None else problem.key_weight
        code, tables = np.empty((0, len(problem.key)), dtype=np.int64), np.empty((0, 1, 1))
        if problem.factors is not None:
            code, tables = problem.factors.key_code.T, problem.factors.stacked_tables()
        return read_only(problem.key.T), read_only(weight), read_only(code), read_only(tables), kernel_of(problem)
