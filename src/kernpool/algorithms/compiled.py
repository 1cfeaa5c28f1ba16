"""The bridge from a problem to the compiled loops: contiguous arrays, codes for kernels, empty arrays for None."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from kernpool.algorithms import loops
from kernpool.algorithms.base import Gradients
from kernpool.algorithms.tiles import CODES, LN_2
from kernpool.problem import Problem
from kernpool.state import PoolState

Array = NDArray[np.float64]
_NONE = np.empty(0)
_NO_TABLE = np.empty((0, 0))


class CompiledBlocks:
    """Blocks of a problem whose kernel is built in."""

    pairs_per_call = (
        1 << 22
    )  # 3 ms of Gaussian, 40 ms of the slowest kernel: short for Ctrl-C, long for a call from Python
    keys_per_call = 1 << 18

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.key = np.ascontiguousarray(problem.key.T)
        self.value = np.ascontiguousarray(problem.value.T)
        self.own = np.full(len(problem.query), -1) if problem.self_index is None else problem.self_index
        self.own_weight = problem.own_weight
        similarity = problem.similarity
        self.kernel = (
            similarity.bandwidth,
            CODES[similarity.kernel.name],
            not similarity.kernel.is_compact,
            # For one column and for the Gaussian the compositions agree, and the radial loop is the shorter one.
            similarity.composition == "product" and len(self.key) > 1 and similarity.kernel.name != "gaussian",
        )

    def _pairs(self, queries: slice, keys: slice) -> tuple[object, ...]:
        problem = self.problem
        mask = np.empty((0, 0), dtype=bool) if problem.attn_mask is None else problem.attn_mask[queries, keys]
        return (
            problem.query[queries],
            np.ascontiguousarray(self.key[:, keys]),
            np.ascontiguousarray(self.value[:, keys]),
            _NONE if problem.key_weight is None else problem.key_weight[keys],
            np.ascontiguousarray(mask),
            self.own[queries] - keys.start,
            self.own_weight[queries],
            *self.kernel,
        )

    def reduce(self, queries: slice, keys: slice) -> PoolState:
        """Return the state of one block."""
        m, c = queries.stop - queries.start, len(self.value)
        state = PoolState(np.empty(m), np.empty(m), np.empty((m, c)))
        loops.reduce_block(*self._pairs(queries, keys), state.shift, state.denominator, state.numerator)
        return state

    def pullback(
        self, queries: slice, keys: slice, state: PoolState, cotangent: Array, wanted: frozenset[str]
    ) -> Gradients:
        """Return the part of the gradients that one block contributes."""
        shift, denominator = state.shift[queries], state.denominator[queries]
        occupied = denominator > 0
        inverse = np.divide(1.0, denominator, where=occupied, out=np.zeros_like(denominator))
        # Loops count in whole powers of two. For states that they made themselves the remainder is exactly zero.
        shift = np.where(occupied, shift, 0.0)
        unit = np.rint(shift / LN_2)
        inverse *= np.exp(unit * LN_2 - shift)
        fitted = state.numerator[queries] * np.where(occupied, 1.0, 0.0)[:, None]
        fitted = np.divide(fitted, denominator[:, None], where=occupied[:, None], out=fitted)
        m, n, d, c = len(shift), keys.stop - keys.start, len(self.key), len(self.value)
        shapes = {"query": (m, d), "log_bandwidth": (m, d), "key": (d, n), "value": (c, n)}
        sums = {name: np.zeros(shape) if name in wanted else _NO_TABLE for name, shape in shapes.items()}
        loops.pullback_block(
            *self._pairs(queries, keys), unit, inverse, fitted, np.ascontiguousarray(cotangent[queries]), *sums.values()
        )
        return Gradients(
            query=sums["query"], log_bandwidth=sums["log_bandwidth"], key=sums["key"].T, value=sums["value"].T
        )
