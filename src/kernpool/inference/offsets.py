"""Offsets of the curves of groups that are parallel."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kernpool.inference.linear_map import LinearMap
from kernpool.pooling.recipe import Recipe

Array = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Offsets:
    """Offsets from the first group, by least squares on what a rough curve leaves: Speckman's estimate, as in R's sm.

    The bandwidth is small, 2 ranges over the d-th root of the number of rows, where the bias of the curve hardly
    enters.

    Parameters
    ----------
    code : ndarray of int, shape (n,)
        Group of each row, from 0 on.
    rough : LinearMap
        The curve of all rows at that bandwidth.
    """

    code: Integers
    rough: LinearMap

    @classmethod
    def of(cls, X: Array, code: Integers, recipe: Recipe) -> Offsets:
        """Take rows, and the kernel of a recipe; its bandwidth only for columns that do not vary."""
        span = np.ptp(X, axis=0)
        narrow = np.where(span > 0, 2.0 * span * len(X) ** (-1.0 / X.shape[1]), recipe.bandwidth)
        return cls(code, LinearMap.at_rows(Recipe.of(recipe.kernel, narrow, degree=1, n_jobs=recipe.n_jobs), X))

    def of_groups(self, value: Array) -> Array:
        """Return the offset of each group from the first, of shape (groups, columns)."""
        member = (self.code[:, None] == np.arange(1, self.code.max() + 1)).astype(np.float64)
        both = np.hstack([member, value])
        rest = both - self.rough.fit(both)
        k = member.shape[1]
        found = np.linalg.lstsq(rest[:, :k], rest[:, k:], rcond=None)[0]
        return np.concatenate([np.zeros((1, value.shape[1])), found])

    def __call__(self, value: Array) -> Array:
        """Return the offset of each row's group, of shape (n, columns)."""
        return self.of_groups(value)[self.code]
