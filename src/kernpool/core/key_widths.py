"""Windows whose widths belong to the keys: factors of the bandwidths for each key, and those without the query's own.

The factor of a key is its distance to its k-th nearest other key. A key that is left out of the fit around a query was
counted in the factors of the keys near it, which are then larger: a fit without a row has never seen it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Index = slice | NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class KeyWidths:
    """Factors of all bandwidths at each key.

    Parameters
    ----------
    factor : ndarray of shape (n,)
        Positive.
    metric : ndarray of shape (d,)
        Bandwidths in which distances from keys are measured, whatever those of the fit are.
    product : bool
        Whether a distance is that of the farthest column; otherwise it is Euclidean.
    without_one : ndarray of shape (n,) or None
        Factors where one unit of a key that was counted is left out; None if no query leaves its own key out.
    not_counted : ndarray of shape (n,) or None
        Distance up to which a key that is left out was not counted: zero for keys whose coincident keys are passed
        over, -1 for all others.
    leaves_out : ndarray of bool, shape (m,), or None
        Queries whose own key, which is where they are, is left out.
    power : int
        Of the division by the factor in each column, which gives all keys the same mass; 2 for squared weights.
    """

    factor: Array
    metric: Array
    product: bool = False
    without_one: Array | None = None
    not_counted: Array | None = None
    leaves_out: NDArray[np.bool_] | None = None
    power: int = 1

    def at(self, queries: Index, keys: Index) -> KeyWidths:
        """Return the widths of some keys, for some queries."""
        if self.without_one is None or self.not_counted is None or self.leaves_out is None:
            return replace(self, factor=self.factor[keys])
        return replace(
            self,
            factor=self.factor[keys],
            without_one=self.without_one[keys],
            not_counted=self.not_counted[keys],
            leaves_out=self.leaves_out[queries],
        )

    def factors(self, query: Array, key: Array) -> Array:
        """Return the factor of each pair of query and key, of shape (m, n), or (1, n) if queries do not differ."""
        if self.without_one is None or self.not_counted is None or self.leaves_out is None:
            return self.factor[None]
        distance = np.zeros((len(query), len(key)))
        for a, h in enumerate(self.metric):
            u = np.abs(query[:, a, None] - key[None, :, a]) / h
            if self.product:
                np.maximum(distance, u, out=distance)
            else:
                distance = u if len(self.metric) == 1 else distance + u * u
        if not self.product and len(self.metric) > 1:
            distance = np.sqrt(distance)
        counted = (distance <= self.factor) & (distance > self.not_counted) & self.leaves_out[:, None]
        return np.where(counted, self.without_one, self.factor)

    def log_mass(self, factors: Array) -> Array:
        """Return the logarithm of what weights are multiplied by, for factors of pairs."""
        return -float(self.power * np.count_nonzero(np.isfinite(self.metric))) * np.log(factors)

    def equals(self, other: KeyWidths) -> bool:
        """Return whether two are the same widths for all queries."""
        return (
            self.leaves_out is other.leaves_out is None
            and self.power == other.power
            and self.product == other.product
            and np.array_equal(self.factor, other.factor)
            and np.array_equal(self.metric, other.metric)
        )
