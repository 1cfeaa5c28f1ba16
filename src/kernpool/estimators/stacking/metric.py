r"""Kernel ridge regression of a table: standardised columns, and the metric of distances learned by gradients.

In many columns a few directions matter. They are those in which the fit changes, so the metric is learned by average
gradient outer products (recursive feature machine [1]_): with the gradients :math:`g_i` of the fit at the rows,

.. math:: M = \Big( \sum_i w_i\, g_i g_i' \Big)^{1/2} \Big/ \operatorname{tr}, \qquad
          |x - x'|_M^2 = (x - x')' M (x - x'),

the fit is solved again in the new distances, and of a few rounds that of the least leave-one-out error is kept.

References
----------
.. [1] A. Radhakrishnan, D. Beaglehole, P. Pandit and M. Belkin, "Mechanism for feature learning in neural networks and
   backpropagation-free machine learning models", Science 383 (2024), 1461-1467.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import svd

from kernpool.estimators.stacking.kernel_ridge import (
    MOST_LANDMARKS,
    Array,
    Codes,
    KernelRidge,
    fit_kernel_ridge,
    kernels_of,
    mean_of,
    spread_of,
)

ROUNDS = 3  # of a new metric
SEARCH_ROWS = 1000  # that metric, length and ridge are chosen on if there are more than `MOST_LANDMARKS`


@dataclass(frozen=True, eq=False)
class StandardColumns:
    """Columns of a table as a matrix: numbers in standard deviations from their mean, categories as 0 and 1.

    Parameters
    ----------
    center, spread : ndarray of shape (d,)
        Weighted means and standard deviations of the numeric columns.
    levels : tuple of int
        Number of categories of each categorical column.

    Examples
    --------
    >>> columns = StandardColumns.of(np.array([[1.0], [3.0]]), np.ones(2), (2,))
    >>> columns.matrix(np.array([[5.0], [2.0]]), np.array([[1], [-1]]))
    array([[3., 0., 1.],
           [0., 0., 0.]])
    """

    center: Array
    spread: Array
    levels: tuple[int, ...]

    @classmethod
    def of(cls, key: NDArray[np.floating], weight: Array, levels: tuple[int, ...]) -> StandardColumns:
        """Measure the numeric columns of weighted rows."""
        numbers: Array = key.astype(np.float64)
        spread = np.where(np.ptp(numbers, axis=0) > 0, spread_of(numbers, weight), np.inf)
        return cls(mean_of(numbers, weight), spread, levels)

    def matrix(self, key: NDArray[np.floating], code: Codes | None) -> Array:
        """Return the columns of given rows; a constant column is zero, and an unseen category is none of the others."""
        parts = [(key - self.center) / self.spread]
        for column, levels in zip([] if code is None else code.T, self.levels, strict=True):
            parts.append((column[:, None] == np.arange(levels)).astype(np.float64))
        return np.hstack(parts)


def metric_of(ridge: KernelRidge, columns: Array, value: Array, weight: Array) -> Array | None:
    """Return a linear map T with the metric :math:`T T'` of the average gradient outer product; None for a flat fit.

    Parameters
    ----------
    ridge : KernelRidge
        The fit.
    columns, value, weight : ndarray
        Rows; outputs count in their standard deviations.

    Returns
    -------
    ndarray of shape (d, k)
        Its columns are the directions in which the fit changes, at most d and at most as many as gradients.
    """
    gradients = ridge.gradients(columns) / spread_of(value, weight) * np.sqrt(weight)[:, None, None]
    stacked = np.moveaxis(gradients, 2, 1).reshape(-1, columns.shape[1])
    _, size, directions = svd(stacked, full_matrices=False, check_finite=False)
    total = size.sum()
    return np.asarray(directions.T * np.sqrt(size / total)) if total > 0 else None


def fit_metric_and_ridge(
    kernel: str, columns: Array, value: Array, weight: Array, group: Codes | None = None, *, rounds: int = ROUNDS
) -> KernelRidge:
    """Fit a kernel ridge regression, choosing metric, length and ridge by the leave-one-out error.

    Parameters
    ----------
    kernel : {"gaussian", "laplace"}
        Name of the kernel.
    columns, value, weight, group
        As of `fit_kernel_ridge`.
    rounds : int, default=3
        How often the metric is learned from the last fit; with zero it is that of the standardised columns.
    """

    def fit(transform: Array) -> KernelRidge:
        kernels = kernels_of(kernel, columns @ transform, weight)
        return fit_kernel_ridge(kernels, columns, value, weight, group, transform=transform)

    d = columns.shape[1]
    best = found = fit(np.eye(d) / np.sqrt(d))
    for _ in range(rounds):
        transform = metric_of(found, columns, value, weight)
        if transform is None:
            break
        found = fit(transform)
        best = found if found.error < best.error else best
    return best


def fit_table(
    kernel: str,
    columns: Array,
    value: Array,
    weight: Array,
    group: Codes | None = None,
    *,
    learn_metric: bool = True,
    generator: np.random.Generator,
) -> KernelRidge:
    """Fit a kernel ridge regression to any number of rows.

    Beyond `MOST_LANDMARKS` rows, metric, length and ridge are chosen on drawn rows, and drawn rows are the landmarks.

    Parameters
    ----------
    kernel, columns, value, weight, group
        As of `fit_metric_and_ridge`.
    learn_metric : bool, default=True
        Whether to learn the metric.
    generator : numpy.random.Generator
        Draws the rows.
    """
    rounds, n = ROUNDS if learn_metric else 0, len(columns)
    if n <= MOST_LANDMARKS:
        return fit_metric_and_ridge(kernel, columns, value, weight, group, rounds=rounds)
    order = generator.permutation(n)
    some, landmarks = order[:SEARCH_ROWS], order[:MOST_LANDMARKS]
    clusters = None if group is None or np.ptp(group[some]) == 0 else group[some]
    best = fit_metric_and_ridge(kernel, columns[some], value[some], weight[some], clusters, rounds=rounds)
    return fit_kernel_ridge([best.kernel], columns, value, weight, group, transform=best.transform, landmarks=landmarks)
