r"""Kernels of the global members of a stack, which adapt to what a fit with them has found.

*Laplace kernel* :math:`e^{-|x - x'|_M / L}`. In many columns a few directions matter. They are those in which the fit
changes, so the metric of distances is learned by average gradient outer products (recursive feature machine [1]_): with
the gradients :math:`g_i` at the rows,

.. math:: M = \Big( \sum_i w_i\, g_i g_i' \Big)^{1/2} \Big/ \operatorname{tr}, \qquad
          |x - x'|_M^2 = (x - x')' M (x - x').

*Analysis of variance* [2]_: a sum over columns j, or a product, which has interactions of all orders,

.. math:: k(x, x') = 1 + \sum_j a_j k_j(x_j, x_j') \quad \text{or} \quad \prod_j (1 + c\, a_j k_j(x_j, x_j')), \qquad
          \max_j a_j = 1.

The kernel of a number is :math:`z z' / 2 + e^{-(z - z')^2 / 2}`, of a category the identity. Both are centred, the
one for standard normal z and the other at the rows, and have a mean of one with themselves; z is the standardised
number, or where the column is skewed, its normal score. The shares :math:`a_j` are the standard deviations of the
columns' terms in the last fit.

References
----------
.. [1] A. Radhakrishnan, D. Beaglehole, P. Pandit and M. Belkin, "Mechanism for feature learning in neural networks and
   backpropagation-free machine learning models", Science 383 (2024), 1461-1467.
.. [2] C. Gu, "Smoothing Spline ANOVA Models", 2nd ed., Springer (2013), section 2.4.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np
from scipy.linalg import svd
from scipy.spatial.distance import cdist
from scipy.special import ndtri

from kernpool._arrays import Array
from kernpool.estimators.stacking.standard_columns import StandardColumns, centered, mean_of

COINCIDENT = 1e-9  # lengths; nearer rows have no direction between them
SKEWED, FEW_VALUES = 1.5, 10  # skewness beyond which, and number of distinct values below which not, scores replace
Setting = tuple[float, ...]


@dataclass(frozen=True, eq=False)
class LaplaceKernel:
    """Laplace kernel of a learned metric.

    Parameters
    ----------
    transform : ndarray of shape (d, k)
        Linear map T before distances are taken, after which their root mean square between rows is one: the metric is
        :math:`M = T T'`.
    setting : tuple of float
        The length L.

    Examples
    --------
    >>> LaplaceKernel(np.eye(1), (2.0,)).at(np.array([[0.0]]), np.array([[0.0], [2.0]])).round(3)
    array([[1.   , 0.368]])
    """

    SETTINGS: ClassVar[tuple[Setting, ...]] = ((0.5,), (1.4,), (4.0,))
    MOST_LANDMARKS: ClassVar[int] = 2000  # with 1400 of 10 000 rows of ten columns the squared error is .251 for .218

    transform: Array
    setting: Setting = (1.0,)

    @classmethod
    def of(cls, matrix: Array, weight: Array) -> Self:
        """Return the kernel of plain distances between weighted rows."""
        return cls(_scaled(np.eye(matrix.shape[1]), matrix, weight))

    @property
    def metric(self) -> Array:
        """The matrix M, of shape (d, d)."""
        return self.transform @ self.transform.T

    def __str__(self) -> str:
        learned = np.ptp(np.diagonal(self.metric)) > 0
        return f"laplace kernel, length {self.setting[0]:.3g}{', learned metric' if learned else ''}"

    def at(self, points: Array, others: Array) -> Array:
        """Return the kernel between two sets of rows, of shape (m, n)."""
        return np.asarray(np.exp(cdist(points @ self.transform, others @ self.transform) / -self.setting[0]))

    def gradients(self, landmarks: Array, coefficients: Array, columns: Array) -> Array:
        """Return the gradients of a fit by the columns, of shape (m, d, c)."""
        points, others = columns @ self.transform, landmarks @ self.transform
        (length,), distance = self.setting, cdist(points, others)
        apart = distance > COINCIDENT * length
        slope = np.divide(-np.exp(-distance / length), distance * length, out=np.zeros_like(distance), where=apart)
        found = np.empty((*columns.shape, coefficients.shape[1]))
        for output, coefficient in enumerate(coefficients.T):
            pull = slope * coefficient
            own = points * pull.sum(axis=1)[:, None] - pull @ others
            found[:, :, output] = own @ self.transform.T
        return found

    def adapted(self, landmarks: Array, coefficients: Array, columns: Array, weight: Array) -> Self | None:
        """Return the kernel in the metric of a fit at weighted rows, the kernel with landmarks times coefficients.

        None if the fit is flat; outputs count as they are.
        """
        d = columns.shape[1]
        gradients = self.gradients(landmarks, coefficients, columns) * np.sqrt(weight)[:, None, None]
        stacked = np.moveaxis(gradients, 2, 1).reshape(-1, d)
        _, size, directions = svd(stacked, full_matrices=False, check_finite=False)
        if d == 1 or not size[0] > 0:
            return None
        return replace(self, transform=_scaled(directions.T * np.sqrt(size / size[0]), columns, weight))


def _scaled(transform: Array, columns: Array, weight: Array) -> Array:
    """Return a linear map after which weighted rows have a root mean squared distance of one."""
    variance = mean_of(centered(columns @ transform, weight) ** 2, weight)
    return transform / (np.sqrt(2.0 * variance.sum()) or 1.0)


@dataclass(frozen=True, eq=False)
class ColumnKernel:
    """Centred kernel of one number, circle, globe or category, whose mean over rows with themselves is one.

    Parameters
    ----------
    columns : slice
        Its columns of the matrix.
    frequencies : ndarray of shape (levels,), optional
        Of the levels of a category.
    scores : pair of ndarray, optional
        Values of a skewed number, and their normal scores.
    """

    columns: slice
    frequencies: Array | None
    scores: tuple[Array, Array] | None

    def at(self, points: Array, others: Array) -> Array:
        """Return the kernel between two sets of rows of the matrix, of shape (m, n)."""
        points, others = points[:, self.columns], others[:, self.columns]
        if self.frequencies is not None:
            size = 1.0 - self.frequencies @ self.frequencies
            return (points - self.frequencies) @ (others - self.frequencies).T / (size or 1.0)
        if self.scores is not None:
            points, others = np.interp(points, *self.scores), np.interp(others, *self.scores)
        d = points.shape[1]
        level = 3.0 ** (-0.5 * d)
        # Expectations of the exponential where one of its arguments is standard normal, and where both are.
        mean, other_mean = (
            np.exp(np.sum(rows**2, axis=1, keepdims=True) / -4.0) / 2.0 ** (0.5 * d) for rows in (points, others)
        )
        # One product of matrices adds all in half the time.
        left = np.hstack([0.5 * points, mean, np.ones_like(mean)])
        right = np.hstack([others, -np.ones_like(other_mean), level - other_mean])
        found = np.exp(-0.5 * cdist(points, others, "sqeuclidean"))
        found += left @ right.T
        found /= 1.0 - level + 0.5 * d
        return np.asarray(found)


@dataclass(frozen=True, eq=False)
class AnovaKernel:
    """Sum or product over columns of kernels of one column each.

    Parameters
    ----------
    terms : tuple of ColumnKernel
        One for each number, circle, globe and category.
    share : ndarray of shape (terms,)
        How much each matters; the largest is one.
    setting : tuple of float
        c of the product; zero for the sum.
    """

    SETTINGS: ClassVar[tuple[Setting, ...]] = ((0.0,), (0.3,))
    MOST_LANDMARKS: ClassVar[int] = 1000  # with 2000 of 10 000 rows of ten columns the squared error is .0408 for .0410

    terms: tuple[ColumnKernel, ...]
    share: Array
    setting: Setting = (0.0,)

    @classmethod
    def of(cls, columns: StandardColumns, matrix: Array, weight: Array) -> Self:
        """Return the sum over all columns of a table, with equal shares."""
        terms = []
        for own, is_category in columns.terms:
            frequencies = mean_of(matrix[:, own], weight) if is_category else None
            terms.append(ColumnKernel(own, frequencies, None if is_category else normal_scores(matrix[:, own], weight)))
        return cls(tuple(terms), np.ones(len(terms)))

    def __str__(self) -> str:
        return "product over columns" if self.setting[0] else "sum over columns"

    def _each(self, points: Array, others: Array) -> Iterator[Array]:
        """Yield the part of each term."""
        return (share * term.at(points, others) for term, share in zip(self.terms, self.share, strict=True))

    def at(self, points: Array, others: Array) -> Array:
        """Return the kernel between two sets of rows, of shape (m, n)."""
        (interaction,) = self.setting
        found = np.ones((len(points), len(others)))  # the constant of the sum, which the intercept takes, too
        for part in self._each(points, others):
            if interaction:
                found *= 1.0 + interaction * part
            else:
                found += part
        return found

    def adapted(self, landmarks: Array, coefficients: Array, columns: Array, weight: Array) -> Self | None:
        """Return the kernel with the standard deviations of the terms as shares, of a product those of its sum."""
        fitted = (part @ coefficients for part in self._each(columns, landmarks))
        size = np.array([np.sum(mean_of(centered(term, weight) ** 2, weight)) for term in fitted])
        largest = size.max()
        return replace(self, share=np.sqrt(size / largest)) if largest > 0 else None


RidgeKernel = LaplaceKernel | AnovaKernel


def normal_scores(column: Array, weight: Array) -> tuple[Array, Array] | None:
    """Return the values of a skewed column and their normal scores, standardised; None if the column stays.

    Examples
    --------
    >>> values, scores = normal_scores(np.exp(np.arange(12.0))[:, None], np.ones(12))
    >>> scores[[0, 6, 11]].round(2)
    array([-1.83,  0.11,  1.83])
    >>> normal_scores(np.arange(12.0)[:, None], np.ones(12)) is None
    True
    """
    if column.shape[1] > 1:
        return None
    value, which = np.unique(column, return_inverse=True)
    away = centered(column, weight)
    cubes, squares = mean_of(np.hstack([away**3, away**2]), weight)
    if len(value) < FEW_VALUES or abs(cubes) <= SKEWED * squares**1.5:
        return None
    count = np.bincount(which.ravel(), weight).astype(np.float64)
    below = np.cumsum(count) - 0.5 * count
    score = centered(ndtri(below / weight.sum()), count)
    return value, score / np.sqrt(mean_of(score**2, count))
