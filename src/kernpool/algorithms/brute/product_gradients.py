r"""Gradients of Gaussian pooling for many columns, by matrix products, in the tiles of `loops/products.py`.

With :math:`R_{ij} = w_{ij} g_i \cdot (v_j - \hat y_i)` the gradient by a query is
:math:`\sum_j R_{ij} (k_j - q_i) / h^2` and that by a key its mirror image: a product of R with the keys, less row sums
times the query. Nothing large is subtracted, because coordinates are about the center of the block's queries, in
bandwidths; queries for which that is not near enough are left to the staged tiles.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from kernpool.algorithms.brute.loops import fused
from kernpool.algorithms.brute.loops.product_gradients import gradient_block
from kernpool.algorithms.loops.tiles import GAUSSIAN, LN_2
from kernpool.core.problem import Problem

Array = NDArray[np.float64]


class ProductGradients:
    """The matrix products of the gradients of a problem of many columns.

    Parameters
    ----------
    problem : Problem
        Gaussian, without mask and moments.
    dtype : dtype
        In which products are formed.
    """

    def __init__(self, problem: Problem, dtype: np.dtype) -> None:
        self.problem, self.dtype = problem, dtype
        self.scale = fused.scales(GAUSSIAN, problem.similarity.bandwidth)
        # float32 has a short range: values and slopes come near 1 by powers of two, which is exact.
        narrow = dtype == np.float32
        self.value_unit = fused.exponent_of(np.abs(problem.value).max(axis=0)) * narrow
        self.value = np.ascontiguousarray(np.ldexp(problem.value, -self.value_unit).T, dtype=dtype)
        self.weight = np.empty(0, dtype) if problem.key_weight is None else problem.key_weight.astype(dtype)
        self.center = problem.key.mean(axis=0)
        self.radius = float(np.sqrt(np.sum(((problem.key - self.center) * self.scale) ** 2, axis=1)).max())

    def near_enough(self, queries: slice) -> NDArray[np.bool_]:
        """Tell for which queries squared distances are right to 1e-6 (float32) or 5e-13, as the forward pass wants."""
        query = self.problem.query[queries]
        center = query.mean(axis=0)
        own = np.sqrt(np.sum(((query - center) * self.scale) ** 2, axis=1))
        apart = float(np.sqrt(np.sum(((self.center - center) * self.scale) ** 2)))
        rounding = 0.25 * float(np.finfo(self.dtype).eps) * (own + self.radius + apart) ** 2
        return np.asarray(0.5 * LN_2 * rounding <= (1e-6 if self.dtype == np.float32 else 5e-13))

    def add(
        self,
        queries: slice,
        keys: slice,
        key: Array,
        own: NDArray[np.intp],
        own_weight: Array,
        inverse: Array,
        middle: Array,
        cotangent: Array,
        sums: dict[str, Array],
    ) -> None:
        """Add what a block contributes to sums per query, and (columns, keys) per key and value."""
        query = self.problem.query[queries]
        found = {name: np.zeros_like(sums[name]) for name in ("query", "key", "value")}
        # One unit for the products of slopes and values of all columns, since these are added up.
        unit = np.max(self.value_unit + fused.exponent_of(np.abs(cotangent).max(axis=0, initial=0.0)))
        unit *= self.dtype == np.float32
        slope_unit = unit - self.value_unit
        gradient_block(
            query,
            key[:, keys],
            self.value[:, keys],
            self.weight[keys],
            own,
            own_weight,
            query.mean(axis=0),
            self.scale,
            inverse,
            np.ldexp(middle, -self.value_unit).astype(self.dtype),
            np.ldexp(cotangent, -slope_unit).astype(self.dtype),
            found["query"],
            found["key"],
            found["value"],
        )
        scale = np.ldexp(2.0 * LN_2 * self.scale, unit)
        if found["query"].size:
            sums["query"] += found["query"] * scale
        if found["key"].size:
            sums["key"] += found["key"] * scale[:, None]
        if found["value"].size:
            sums["value"] += np.ldexp(found["value"], slope_unit[:, None])
