"""Kernel similarity of a query and a key, as a logit ``s(q, k) = log K((q - k) / h)``.

Pooling weights are the softmax of these logits over the keys. With a kernel as the similarity this is Nadaraya-Watson
regression; with a learned one (`kernpool.torch`) it is an attention layer.

Differences are formed first and scaled by the bandwidth second: ``fl(q - k)`` loses nothing for neighbours however
far from the origin both lie, whereas ``q / h - k / h`` would lose digits in proportion to ``|q| / h``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from kernpool.kernels import Kernel
from kernpool.kernels.registry import Profile

Array = NDArray[np.float64]


@dataclass(frozen=True)
class KernelLogits:
    r"""Similarity of queries and keys: a kernel, radial or a product over columns, and a bandwidth per column.

    Parameters
    ----------
    kernel : Kernel
        The profile.
    bandwidth : ndarray of shape (d,)
        Positive, in the units of the columns.
    widening : ndarray of shape (m,), optional
        Factor of all bandwidths at each query, for windows that differ between queries; one by default.
    """

    kernel: Kernel
    bandwidth: Array
    widening: Array | None = None

    @property
    def is_uniform(self) -> bool:
        """Whether all queries have the same bandwidths."""
        return self.widening is None

    @property
    def radii(self) -> Array:
        """Radius in bandwidths of the window of each query, (m,), or of all, (); infinite unless the kernel is compact."""
        return np.asarray(self.kernel.support * (1.0 if self.widening is None else self.widening))

    @property
    def log_peak(self) -> float:
        """Logarithm of the kernel weight of a key that coincides with the query."""
        return self.kernel.log_peak(len(self.bandwidth))

    def _columns(self, query: Array, key: Array) -> Iterator[Array]:
        """Yield the differences of queries and keys in bandwidths, of shape (m, n), one column at a time.

        This avoids an array of shape (m, n, d).
        """
        for a in range(len(self.bandwidth)):
            u = query[:, a, None] - key[None, :, a]
            u /= self.width(a)
            yield u

    def width(self, column: int) -> Array:
        """Return the bandwidth of a column: one number, or one for each query, of shape (m, 1)."""
        h = self.bandwidth[column : column + 1]
        return h if self.widening is None else h * self.widening[:, None]

    @property
    def widths(self) -> Array:
        """Bandwidths of the columns, of shape (d,), or of the columns at each query, of shape (m, d)."""
        return self.bandwidth if self.widening is None else self.widening[:, None] * self.bandwidth

    def at(self, queries: slice | NDArray[np.intp]) -> KernelLogits:
        """Return the similarity of the queries with these indices."""
        if self.widening is None:
            return self
        return replace(self, widening=self.widening[queries])

    def squared(self, kernel: Kernel, width: float) -> KernelLogits:
        """Return the similarity of a product of two kernels: `kernel`, in bandwidths multiplied by `width`."""
        return replace(self, kernel=kernel, bandwidth=self.bandwidth * width)

    def offset(self, query: Array, key: Array, column: int) -> Array:
        """Return the offset ``(key - query) / bandwidth`` of one column for all pairs, of shape (m, n)."""
        return np.asarray((key[None, :, column] - query[:, column, None]) / self.width(column))

    def distance(self, query: Array, key: Array) -> Array:
        """Return the Euclidean distance in bandwidths of all pairs of queries and keys, of shape (m, n)."""
        squared, *others = self._columns(query, key)
        if not others:
            return np.abs(squared, out=squared)
        squared *= squared
        for u in others:
            u *= u
            squared += u
        return np.sqrt(squared, out=squared)

    def logits(self, query: Array, key: Array) -> Array:
        """Return the log kernel of all pairs of queries and keys, of shape (m, n); ``-inf`` outside the support."""
        if self.kernel.composition == "radial":
            return self.kernel.log_profile(self.distance(query, key))
        total = np.zeros((len(query), len(key)))
        for u in self._columns(query, key):
            total += self.kernel.log_profile(np.abs(u))
        return total

    def profiles(self, query: Array, key: Array) -> Array:
        """Return the kernel values of all pairs of queries and keys, of shape (m, n).

        Only kernels of compact support are safe from underflow here.
        """
        if self.kernel.composition == "radial":
            return self.kernel.profile(self.distance(query, key))
        product = np.ones((len(query), len(key)))
        for u in self._columns(query, key):
            product *= self.kernel.profile(np.abs(u))
        return product

    def slope_of_log(self) -> Profile:
        """Return the function ``d log K / d |u|`` of the kernel; raise ValueError if the kernel has none."""
        if self.kernel.log_slope is None:
            raise ValueError(
                f"kernel {self.kernel.name!r} has no log_slope, so it has no gradients; pass log_slope= to make_kernel"
            )
        return self.kernel.log_slope

    def logit_slopes(self, query: Array, key: Array) -> Iterator[tuple[Array, Array]]:
        """Yield for each column the differences u in bandwidths, and the derivatives of log K by u, both (m, n).

        The derivatives are meaningful only where ``K > 0``.
        """
        log_slope = self.slope_of_log()
        if self.kernel.composition == "radial":
            distance = self.distance(query, key)
            with np.errstate(all="ignore"):
                # at distance zero the direction is undefined and the slope of a symmetric function is zero
                ratio = np.where(distance > 0, log_slope(distance) / distance, 0.0)
            for u in self._columns(query, key):
                with np.errstate(invalid="ignore"):
                    slope = ratio * u
                yield u, slope
        else:
            for u in self._columns(query, key):
                with np.errstate(all="ignore"):
                    yield u, log_slope(np.abs(u)) * np.sign(u)
