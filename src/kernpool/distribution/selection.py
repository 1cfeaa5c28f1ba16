"""At which key, in the order in which they come, do the weights of a query reach a sum? Every pair once."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from kernpool.algorithms.reference import may_underflow, pair_weights
from kernpool.core.problem import Problem
from kernpool.kernels import is_compiled

Array = NDArray[np.float64]
Index = NDArray[np.intp]

LN_2 = float(np.log(2.0))
FEW_PAIRS = 100_000  # that dense arrays do sooner than a compiler loads
DENSE_PAIRS = 1 << 18  # at once
COMPILED_PAIRS = 1 << 23  # of a piece, which Ctrl-C waits for


class Selection:
    """The search among the keys of a problem, in their order.

    Parameters
    ----------
    problem : Problem
        Of degree 0; with masks, levels and groups as they come.
    unit : ndarray of shape (m,)
        Powers of two in which weights are counted, about the logarithm of their sum: weights neither underflow nor
        overflow.
    compiled : bool
        Whether compiled loops are worth their loading.
    """

    def __init__(self, problem: Problem, unit: Array, *, compiled: bool) -> None:
        self.problem, self.unit = problem, unit
        kernel = problem.similarity.kernel
        in_loops = is_compiled(kernel) and problem.logit_bias is None and problem.groups is None
        self.compiled = compiled and in_loops and not (kernel.is_compact and may_underflow(problem))

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
        n = keys.stop - keys.start
        at_once = max(1, (COMPILED_PAIRS if self.compiled else DENSE_PAIRS) // n)
        search = self._by_loops if self.compiled else self._densely
        for first in range(0, len(asked), at_once):
            last = min(first + at_once, len(asked))
            which = np.arange(start[first], start[last])
            place = search(asked[first:last], keys, start[first : last + 1] - start[first], need[which])
            yield which, np.where(place >= 0, place + keys.start, -1)

    def _densely(self, queries: Index, keys: slice, start: Index, need: Array) -> Index:
        part = self.problem.block(queries, keys).with_dense_factors()
        shift, weight = pair_weights(part)
        with np.errstate(invalid="ignore"):  # minus infinity where no key takes part
            weight *= np.exp(np.where(np.isneginf(shift), 0.0, shift) - LN_2 * self.unit[queries])[:, None]
        total = np.cumsum(weight, axis=1)
        row = np.repeat(np.arange(len(queries)), np.diff(start))
        reached = (total[row] >= np.minimum(need, total[row, -1])[:, None]) & (weight[row] > 0.0)
        return np.where(reached.any(axis=1), reached.argmax(axis=1), -1)

    def _by_loops(self, queries: Index, keys: slice, start: Index, need: Array) -> Index:
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
        return found - np.where(found >= 0, keys.start, 0)

    @cached_property
    def _own_weight(self) -> Array:
        return self.problem.own_weight

    @cached_property
    def _arrays(self) -> tuple[Array, Array, NDArray[np.int64], Array, tuple[Array, int, bool, bool]]:
        from kernpool.algorithms.brute.precision import read_only
        from kernpool.algorithms.loops.tiles import CODES

        problem, similarity = self.problem, self.problem.similarity
        weight = np.empty(0) if problem.key_weight is None else problem.key_weight
        code, tables = np.empty((0, len(problem.key)), dtype=np.int64), np.empty((0, 1, 1))
        if problem.factors is not None:
            code, tables = problem.factors.key_code.T, problem.factors.stacked_tables()
        product = similarity.composition == "product" and problem.key.shape[1] > 1
        kernel = (
            read_only(similarity.bandwidth),
            CODES[similarity.kernel.name],
            not similarity.kernel.is_compact,
            product and similarity.kernel.name != "gaussian",
        )
        return read_only(problem.key.T), read_only(weight), read_only(code), read_only(tables), kernel
