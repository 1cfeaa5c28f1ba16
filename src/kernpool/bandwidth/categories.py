"""Categorical columns of training rows: their kernels, and the box of each smoothing."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kernpool.core.factors import Factors
from kernpool.kernels.categorical import CategoricalKernel

Array = NDArray[np.float64]
Codes = NDArray[np.int64]


@dataclass(frozen=True)
class Categories:
    """The categorical columns of a table.

    Parameters
    ----------
    kernels : tuple of CategoricalKernel
        One per column.
    levels : tuple of int or ndarray
        What the kernel wants to know: the number of levels, or their places if they are ordered.

    Examples
    --------
    >>> from kernpool.kernels import get_categorical_kernel
    >>> Categories((get_categorical_kernel("aitchison_aitken"),), (3,)).largest.round(3)
    array([0.667])
    """

    kernels: tuple[CategoricalKernel, ...] = ()
    levels: tuple[int | Array, ...] = ()

    def __len__(self) -> int:
        return len(self.kernels)

    def take(self, columns: NDArray[np.intp]) -> Categories:
        """Return some of the columns, in this order."""
        return Categories(tuple(self.kernels[i] for i in columns), tuple(self.levels[i] for i in columns))

    @property
    def largest(self) -> Array:
        """Upper ends of the boxes of the smoothings, of shape (k,); the lower ends are zero."""
        counts = [levels if isinstance(levels, int) else len(levels) for levels in self.levels]
        ends = [kernel.largest(c) if c > 1 else 0.0 for kernel, c in zip(self.kernels, counts, strict=True)]
        return np.array(ends, dtype=np.float64)

    def relevance(self, smoothing: Array) -> Array:
        """Return how far each smoothing is from the upper end of its box, as a share; zero where levels count alike."""
        share = 1.0 - np.divide(smoothing, self.largest, where=self.largest > 0, out=np.ones(len(self)))
        alike = [kernel.is_irrelevant(levels, lam) for kernel, levels, lam in self._with(smoothing)]
        return np.where(alike, 0.0, share)

    def factors(self, query_code: Codes, key_code: Codes, smoothing: Array) -> Factors:
        """Return what pairs of rows of these level numbers, (m, k) and (n, k), are multiplied by at smoothings."""
        each = self._with(smoothing)
        tables = tuple(kernel.table(levels, lam) for kernel, levels, lam in each)
        return Factors(
            query_code, key_code, tables, tuple(kernel.table_slope(levels, lam) for kernel, levels, lam in each)
        )

    def _with(self, smoothing: Array) -> list[tuple[CategoricalKernel, int | Array, float]]:
        return list(zip(self.kernels, self.levels, smoothing.tolist(), strict=True))


NO_CATEGORIES = Categories()
