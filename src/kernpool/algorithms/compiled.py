"""The bridge from a problem to the compiled loops: contiguous arrays, codes for kernels, empty arrays for None."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernpool.algorithms import fused, loops
from kernpool.algorithms.base import Gradients
from kernpool.algorithms.tiles import CODES, LN_2
from kernpool.problem import Problem
from kernpool.state import PoolState

Array = NDArray[np.float64]
_NONE = np.empty(0)
_NO_TABLE = np.empty((0, 0))
# Sums of weights per key below which digits may be lost: to underflow, or at the edge of a compact kernel.
FAINT, FAINT_32, FAINT_ON_EDGE = 1e-280, 1e-30, 1e-10


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
        self.fused = FusedPairs(problem) if FusedPairs.can_do(problem) else None

    def _pairs(self, queries: slice | NDArray[np.intp], keys: slice) -> tuple[object, ...]:
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
        if self.fused is None:
            return self._staged(queries, keys)
        state = self.fused.reduce(queries, keys)
        (faint,) = np.nonzero(state.denominator <= self.fused.faint * (keys.stop - keys.start))
        if faint.size:
            again = self._staged(queries.start + faint, keys)
            state.shift[faint], state.denominator[faint] = again.shift, again.denominator
            state.numerator[faint] = again.numerator
        return state

    def _staged(self, queries: slice | NDArray[np.intp], keys: slice) -> PoolState:
        pairs = self._pairs(queries, keys)
        m, c = len(self.own[queries]), len(self.value)
        state = PoolState(np.empty(m), np.empty(m), np.empty((m, c)))
        loops.reduce_block(*pairs, state.shift, state.denominator, state.numerator)
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


class FusedPairs:
    """The fused loops of a problem, and its arrays in the precision that they run in."""

    def __init__(self, problem: Problem) -> None:
        similarity, weight = problem.similarity, problem.key_weight
        code = CODES[similarity.kernel.name]
        dtype = narrow_type(problem) if similarity.kernel.name != "epanechnikov" else np.dtype(np.float64)
        # float32 has a short range: coordinates and values come near 1 by powers of two, which is exact.
        unit = exponent_of(similarity.bandwidth) if dtype == np.float32 else np.zeros(problem.key.shape[1], dtype=int)
        self.query = np.ldexp(problem.query, -unit).astype(dtype)
        self.key = np.ascontiguousarray(np.ldexp(problem.key, -unit).T, dtype=dtype)
        self.value_unit = exponent_of(np.abs(problem.value).max(axis=0)) * (dtype == np.float32)
        value = np.ldexp(problem.value, -self.value_unit)
        self.value = np.ascontiguousarray((value if weight is None else value * weight[:, None]).T, dtype=dtype)
        self.weight = np.empty(0, dtype) if weight is None else weight.astype(dtype)
        self.own = np.full(len(problem.query), -1) if problem.self_index is None else problem.self_index
        self.own_weight = problem.own_weight
        self.scale = fused.scales(code, np.ldexp(similarity.bandwidth, -unit)).astype(dtype)
        self.height = fused.height(code)
        # Sums up to this times the number of keys are done again: tails have underflowed, or the edge decides.
        self.faint = FAINT_ON_EDGE if similarity.kernel.is_compact else FAINT_32 if dtype == np.float32 else FAINT
        self.loop = fused.specialise(
            code, len(self.key), 8 * dtype.itemsize, int(weight is not None), int(len(self.value) == 1)
        )

    @staticmethod
    def can_do(problem: Problem) -> bool:
        """Whether there is a fused loop for this problem."""
        similarity, d = problem.similarity, problem.key.shape[1]
        radial = similarity.composition == "radial" or d == 1 or similarity.kernel.name == "gaussian"
        plain = problem.attn_mask is None and d <= fused.MOST_COLUMNS
        return radial and plain and CODES[similarity.kernel.name] in fused.KERNELS

    def reduce(self, queries: slice, keys: slice) -> PoolState:
        """Return the state of one block, in which faint sums are wrong."""
        m = queries.stop - queries.start
        state = PoolState(np.zeros(m), np.empty(m), np.empty((m, len(self.value))))
        self.loop(
            self.query[queries],
            np.ascontiguousarray(self.key[:, keys]),
            np.ascontiguousarray(self.value[:, keys]),
            self.weight[keys],
            self.own[queries] - keys.start,
            self.own_weight[queries],
            self.scale,
            state.denominator,
            state.numerator,
        )
        denominator, numerator = self.height * state.denominator, self.height * state.numerator
        return PoolState(state.shift, denominator, np.ldexp(numerator, self.value_unit))


def exponent_of(x: Array) -> NDArray[np.intp]:
    """Return the power of two below x > 0, as an integer; zero for zero."""
    return np.where(x > 0, np.frexp(x)[1] - 1, 0)


def narrow_type(problem: Problem) -> np.dtype[Any]:
    """Return the float width to compute pairs in: float32 if the arrays came so and are in its range."""
    bandwidth = problem.similarity.bandwidth
    farthest = max((np.abs(x) / bandwidth).max() for x in (problem.query, problem.key))
    return problem.dtype if farthest < 1e15 else np.dtype(np.float64)
