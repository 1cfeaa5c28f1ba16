"""Kernel similarity of a query and a key, as a logit ``s(q, k) = log K((q - k) / h)``.

Pooling weights are the softmax of these logits over the keys. With a kernel as the similarity this is Nadaraya-Watson
regression; with a learned one (`kernpool.torch`) it is an attention layer.

Differences are formed first and scaled by the bandwidth second: ``fl(q - k)`` loses nothing for neighbours however
far from the origin both lie, whereas ``q / h - k / h`` would lose digits in proportion to ``|q| / h``.

**Geometry.** A column on a circle, or a pair of columns on the globe, is pooled as a point in two or three columns
(`kernpool.data.column_options`). A plane in these would have a slope across the circle, along which nothing moves, and
which keys near the query hardly determine. So a local plane takes the offsets of keys along the tangent at the query:
of a circle of radius R and an angle delta ``R sin(delta)``, of a sphere the two that span its tangent plane (Di Marzio,
Panzera and Taylor, "Local polynomial regression for circular predictors", Statistics and Probability Letters 79 (2009),
2066-2075).

With the normal n at the query, a unit vector, these are ``P t`` of the offsets t, with ``P = I - n n'``. Moments of
``P t`` are linear in those of t. So every algorithm sums as ever, and `Geometry.project_planes` maps the sums. Along n
it puts a spread without any relation to the values, as large as that along the tangent: no slope or linear weight has a
part along n, and the design is regular, so that `solve` needs to know nothing of it. Rejected: offsets of their own in
each algorithm, which the sums would have to be written for.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from kernpool._arrays import AnyArray, Array, Index
from kernpool.core.moments import Layout
from kernpool.core.state import PoolState
from kernpool.kernels import Kernel
from kernpool.kernels.registry import Profile


class Geometry(tuple[int, ...]):
    """Which pooled columns are one point together, on a circle or sphere about the origin, and share a bandwidth.

    The number of columns of each bandwidth, in their order; empty if each column has its own.

    Examples
    --------
    A column, and two that are a point on a circle:

    >>> geometry = Geometry((1, 2))
    >>> geometry.per_column(np.array([0.5, 3.0])).tolist(), geometry.sums(np.array([1.0, 2.0, 4.0])).tolist()
    ([0.5, 3.0, 3.0], [1.0, 6.0])
    """

    __slots__ = ()

    @property
    def starts(self) -> Index:
        """Position of the first column of each bandwidth."""
        return np.cumsum((0, *self))[:-1]

    def per_column(self, numbers: AnyArray) -> AnyArray:
        """Return numbers of bandwidths, of shape (..., bandwidths), as numbers of columns, of shape (..., d)."""
        return np.repeat(numbers, self, axis=-1) if self else numbers

    def sums(self, numbers: Array) -> Array:
        """Return the sums of numbers of columns, of shape (..., d), over those of each bandwidth."""
        return np.add.reduceat(numbers, self.starts, axis=-1) if self else numbers

    def lengths(self, numbers: Array) -> Array:
        """Return numbers of columns, of shape (..., d), by bandwidth; of several columns the length of the vector."""
        return np.asarray(np.hypot.reduceat(numbers, self.starts, axis=-1)) if self else numbers

    def evened(self, spread: Array) -> Array:
        """Return spreads of columns with one for all axes of a circle or a sphere, whose directions are arbitrary."""
        return self.per_column(self.lengths(spread) / np.sqrt(self)) if self else spread

    def project_planes(self, query: Array, layout: Layout, state: PoolState) -> PoolState:
        """Return kernel sums of local planes with offsets along the tangents at the queries.

        Examples
        --------
        Keys at angles of -.3 and .2 radians from the query, at which the values are linear in the sine.

        >>> import kernpool
        >>> angle, slope = np.array([-0.3, 0.2]), 5.0
        >>> key, value = np.column_stack([np.cos(angle), np.sin(angle)]), slope * np.sin(angle)
        >>> state, layout = kernpool.pool_state([[1.0, 0.0]], key, value, degree=1), Layout(1, 2, 1)
        >>> sums = Geometry((2,)).project_planes(np.array([[1.0, 0.0]]), layout, state)
        >>> fit = kernpool.core.solve(sums, layout)
        >>> bool(abs(fit.intercept[0, 0]) < 1e-14), fit.slope.round(9).ravel().tolist()
        (True, [0.0, 5.0])
        """
        numerator = state.numerator.copy()
        m, d, c = len(numerator), layout.columns, layout.values
        upper, lower = np.triu_indices(d)
        second = np.empty((m, d, d))
        second[:, upper, lower] = second[:, lower, upper] = numerator[:, layout.second]
        first = self.project(query, numerator[:, layout.first, None])
        cross = self.project(query, numerator[:, layout.cross].reshape(m, d, c))
        second = self.project(query, self.project(query, second).transpose(0, 2, 1))
        for columns, normal in self._normals(query):
            spread = np.trace(second[:, columns, columns], axis1=1, axis2=2) / (normal.shape[1] - 1)
            second[:, columns, columns] += spread[:, None, None] * normal[:, :, None] * normal[:, None, :]
        numerator[:, layout.first], numerator[:, layout.cross] = first[:, :, 0], cross.reshape(m, d * c)
        numerator[:, layout.second] = second[:, upper, lower]
        return PoolState(state.shift, state.denominator, numerator)

    def project(self, query: Array, vectors: Array) -> Array:
        """Return the parts of vectors, of shape (m, d, ...), that are along the tangents at the queries."""
        vectors = vectors.copy()
        for columns, normal in self._normals(query):
            across = np.einsum("ma,ma...->m...", normal, vectors[:, columns])
            vectors[:, columns] -= np.einsum("ma,m...->ma...", normal, across)
        return vectors

    def _normals(self, query: Array) -> Iterator[tuple[slice, Array]]:
        """Yield the columns of each circle and sphere, and their normals at the queries, of shape (m, columns)."""
        for start, size in zip(self.starts, self, strict=True):
            if size > 1:
                columns = slice(start, start + size)
                yield columns, query[:, columns] / np.linalg.norm(query[:, columns], axis=1, keepdims=True)


CARTESIAN = Geometry()


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
    geometry : Geometry, optional
        Which columns are one point together.
    """

    kernel: Kernel
    bandwidth: Array
    widening: Array | None = None
    geometry: Geometry = CARTESIAN

    @property
    def is_uniform(self) -> bool:
        """Whether all queries have the same bandwidths."""
        return self.widening is None

    @property
    def n_widths(self) -> int:
        """Number of different factors of the bandwidths."""
        return 1 if self.widening is None else len(np.unique(self.widening))

    def parts(self) -> Iterator[tuple[slice | Index, KernelLogits]]:
        """Yield the queries whose windows are alike, with the similarity that they have.

        Examples
        --------
        >>> from kernpool.kernels import get_kernel
        >>> similarity = KernelLogits(get_kernel("gaussian"), np.array([0.5]), widening=np.array([1.0, 2.0, 1.0]))
        >>> [(rows.tolist(), part.bandwidth.tolist()) for rows, part in similarity.parts()]
        [([0, 2], [0.5]), ([1], [1.0])]
        """
        if self.widening is None:
            yield slice(None), self
            return
        factors, number = np.unique(self.widening, return_inverse=True)
        for i, factor in enumerate(factors.tolist()):
            yield np.flatnonzero(number == i), replace(self, bandwidth=factor * self.bandwidth, widening=None)

    @property
    def radii(self) -> Array:
        """Radius of the window of each query in bandwidths, or of all; infinite unless the kernel is compact."""
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

    def widths(self, queries: slice | Index = slice(None)) -> Array:
        """Return the bandwidths of the columns, of shape (d,), or those at each of some queries, of shape (m, d)."""
        return self.bandwidth if self.widening is None else self.widening[queries, None] * self.bandwidth

    def at(self, queries: slice | Index) -> KernelLogits:
        """Return the similarity of the queries with these indices."""
        if self.widening is None:
            return self
        return replace(self, widening=self.widening[queries])

    def squared(self, kernel: Kernel, width: float) -> KernelLogits:
        """Return the similarity of a product of two kernels: `kernel`, in bandwidths multiplied by `width`."""
        return replace(self, kernel=kernel, bandwidth=self.bandwidth * width)

    def offset(self, query: Array, key: Array, column: int) -> Array:
        """Return the offset ``(key - query) / bandwidth`` of one column for all pairs, of shape (m, n)."""
        return (key[None, :, column] - query[:, column, None]) / self.width(column)

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
