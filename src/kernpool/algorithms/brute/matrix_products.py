"""Brute force by matrix products for many columns: sums and gradients, and which queries are precise enough.

`Products` computes sums, `ProductGradients` the gradients of Gaussian pooling, with the compiled tiles in
`loops/matrix_products.py`. With ``R_ij = w_ij g_i . (v_j - yhat_i)`` the gradient by a query is

    sum_j R_ij (k_j - q_i) / h^2

and that by a key is its mirror image: a product of R with the keys, less row sums times the query. Coordinates are
taken about the center of the block's queries, in bandwidths, so nothing large is subtracted. Queries that are too far
from that center for the promised precision are left to the staged tiles.
"""

import numpy as np
from numpy.typing import NDArray

from kernpool.algorithms.brute.fused import UNDERFLOW, UNDERFLOW_32, read_only
from kernpool.algorithms.brute.loops import fused_means, matrix_products
from kernpool.algorithms.brute.loops.matrix_products import STEEPEST, gradient_block
from kernpool.algorithms.loops.kernel_weights import CODES, GAUSSIAN, LN_2
from kernpool.core import PoolState, Problem

Array = NDArray[np.float64]


class Products:
    """Kernel sums in many columns, with squared distances by matrix products."""

    def __init__(self, problem: Problem, width: int) -> None:
        self.problem, self.narrow = problem, width == 32
        similarity, dtype = problem.similarity, np.float32 if self.narrow else np.float64
        self.code = CODES[similarity.kernel.profile_name]
        self.block = matrix_products.GAUSSIAN_BLOCK if self.code == GAUSSIAN else matrix_products.OTHER_BLOCK
        self.key = np.ascontiguousarray(problem.key.T)
        self.value_unit = fused_means.exponent_of(np.abs(problem.value).max(axis=0)) * self.narrow
        self.value = np.ascontiguousarray(np.ldexp(problem.value, -self.value_unit).T, dtype=dtype)
        self.weight = np.empty(0, dtype) if problem.key_weight is None else problem.key_weight.astype(dtype)
        self.own, self.own_weight = problem.own
        self.scale = fused_means.scales(self.code, similarity.bandwidth)
        self.epsilon = float(np.finfo(dtype).eps)
        self.least = UNDERFLOW_32 if self.narrow else UNDERFLOW

    def sums(self, queries: slice | NDArray[np.intp], keys: slice) -> tuple[PoolState, NDArray[np.bool_]]:
        """Return the kernel sums of some queries over a slice of keys, and flags of imprecise queries."""
        problem = self.problem
        query, mask = read_only(problem.query[queries]), problem.attn_mask
        center = query.mean(axis=0)
        denominator, numerator = np.empty(len(query)), np.empty((len(query), len(self.value)))
        near = np.empty(len(query))
        radius = self.block(
            query,
            read_only(self.key[:, keys]),
            read_only(self.value[:, keys]),
            read_only(self.weight[keys]),
            read_only(np.empty((0, 0), dtype=bool) if mask is None else mask[queries, keys]),
            read_only(self.own[queries] - keys.start),
            read_only(self.own_weight[queries]),
            read_only(center),
            read_only(self.scale),
            self.code,
            denominator,
            numerator,
            near,
        )
        own_radius = np.sqrt(np.sum(((query - center) * self.scale) ** 2, axis=1))
        rounding = 0.25 * self.epsilon * (own_radius + np.sqrt(radius)) ** 2  # of a squared distance
        if problem.similarity.kernel.is_compact:
            # An error of each weight in the support is no error of the sum's digits; the window may be all edge.
            doubtful = (STEEPEST * rounding * near > 5e-13 * denominator) | (rounding > 1e-7)
        else:
            # Errors of exponents move a mean by their size times the mean absolute deviation of the values, which is at
            # most half of their range. Where the nearest key is beyond four bandwidths the promise allows for more.
            with np.errstate(divide="ignore"):
                nearest = -np.log(denominator) if problem.key_weight is None else np.zeros(len(query))
            allowed = np.where(nearest > 8.0, 4 * self.epsilon * (1 + nearest), 0.0) + (1e-6 if self.narrow else 5e-13)
            doubtful = (denominator <= self.least * (keys.stop - keys.start)) | (0.5 * LN_2 * rounding > allowed)
        return PoolState(np.zeros(len(query)), denominator, np.ldexp(numerator, self.value_unit)), doubtful


class ProductGradients:
    """Gradients of Gaussian pooling in many columns, by matrix products."""

    def __init__(self, problem: Problem, dtype: np.dtype) -> None:
        self.problem, self.dtype = problem, dtype
        self.scale = fused_means.scales(GAUSSIAN, problem.similarity.bandwidth)
        # float32 has a short range: values and slopes come near 1 by powers of two, which is exact.
        narrow = dtype == np.float32
        self.value_unit = fused_means.exponent_of(np.abs(problem.value).max(axis=0)) * narrow
        self.value = np.ascontiguousarray(np.ldexp(problem.value, -self.value_unit).T, dtype=dtype)
        self.weight = np.empty(0, dtype) if problem.key_weight is None else problem.key_weight.astype(dtype)
        self.center = problem.key.mean(axis=0)
        self.radius = float(np.sqrt(np.sum(((problem.key - self.center) * self.scale) ** 2, axis=1)).max())

    def near_enough(self, queries: slice) -> NDArray[np.bool_]:
        """Return flags of queries near enough to the block's center for matrix products to be precise."""
        # Errors of squared distances then move a pooled value by at most 1e-6 (float32) or 5e-13 of the values' range.
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
        """Add the contribution of a slice of queries and a slice of keys to the gradients in `sums`, in place.

        Those by queries have a row per query; those by keys and values are (columns, keys).
        """
        query = self.problem.query[queries]
        found = {name: np.zeros_like(sums[name]) for name in ("query", "key", "value")}
        # One unit for the products of slopes and values of all columns, since these are added up.
        unit = np.max(self.value_unit + fused_means.exponent_of(np.abs(cotangent).max(axis=0, initial=0.0)))
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
