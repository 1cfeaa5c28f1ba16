"""The recipe: how to pool, whatever is pooled. Made once, checked when it is made, and then only read."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kernpool.core.empty import Empty, Fill, check_empty, fill_empty
from kernpool.core.keys import Keys
from kernpool.core.moments import check_degree
from kernpool.core.problem import Problem
from kernpool.core.reading import Rows, as_tol
from kernpool.core.ridge import as_ridge, ridge_weight
from kernpool.core.similarity import Composition, KernelSimilarity, check_composition
from kernpool.data.checks import as_bandwidth
from kernpool.kernels import Kernel, get_kernel
from kernpool.pooling.plan import check_algorithm, choose_algorithm

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)  # arrays have no single truth
class Recipe:
    """How to pool: the same for arrays, levels, chunks, partitions of a cluster and running sums.

    Parameters
    ----------
    kernel, bandwidth, composition, degree, tol, algorithm, empty, n_jobs
        As in `pool`. A bandwidth of one number is for any number of columns.
    ridge : float or ndarray of shape (d,), default=0.0
        Penalty on the slopes of a local linear fit, in keys at the query; see `kernpool.core.ridge`.
    warns_of_nearest : bool, default=False
        Whether ``empty="nearest"`` warns where windows are empty, as it does for estimators, whose default it is.

    Raises
    ------
    TypeError, ValueError
        If one of them is out of its range.

    Notes
    -----
    `Recipe.of` reads names of kernels and single numbers. Recipes are compared by `pools_like`.

    Examples
    --------
    >>> Recipe.of(kernel="epanechnikov", bandwidth=0.5, degree=1).bandwidth
    array([0.5])
    >>> Recipe.of(bandwidth=-1.0)
    Traceback (most recent call last):
    ValueError: bandwidth must be positive, got -1.0; it is a length in the units of the keys
    """

    kernel: Kernel
    bandwidth: Array
    composition: str = "radial"
    degree: int = 0
    tol: float | None = None
    algorithm: str = "auto"
    empty: Empty = "nan"
    n_jobs: int | None = None
    ridge: Array | float = 0.0
    warns_of_nearest: bool = False

    def __post_init__(self) -> None:
        check_empty(self.empty)
        check_degree(self.degree)
        check_composition(self.composition)
        check_algorithm(self.algorithm)
        as_tol(self.tol)
        as_ridge(self.ridge)
        if self.degree == 2 and np.any(self.ridge):
            raise ValueError("ridge is on the slopes of local planes; use degree=1, or ridge=0")

    @classmethod
    def of(cls, kernel: str | Kernel = "gaussian", bandwidth: ArrayLike = 1.0, **options: Any) -> Recipe:
        """Read a kernel that may be a name, and a bandwidth that may be one number.

        Parameters
        ----------
        kernel, bandwidth, **options
            As in `pool`.

        Returns
        -------
        Recipe
            Checked.
        """
        if type(bandwidth) is float:  # as nearly always; reading it all again takes a tenth of a small call
            with suppress(TypeError):  # of what cannot be remembered, or is refused below
                return _remembered(get_kernel(kernel), bandwidth, **options)
        return cls(get_kernel(kernel), as_bandwidth(bandwidth, None), **options)

    def problem(
        self, query: ArrayLike | Rows, key: ArrayLike | Keys, value: ArrayLike | Rows | None = None, **pairs: Any
    ) -> Problem:
        """Make a problem of some pairs.

        Parameters
        ----------
        query, key, value
            As for `Problem.from_arrays`.
        **pairs
            What it takes of pairs beside: key_weight, attn_mask, exclude_self, self_index, factors.

        Returns
        -------
        Problem
            To be summed as this recipe says.
        """
        return Problem.from_arrays(
            query,
            key,
            value,
            kernel=self.kernel,
            bandwidth=self.bandwidth,
            composition=self.composition,
            tol=self.tol,
            degree=self.degree,
            **pairs,
        )

    def refuse_unable(self, columns: int) -> None:
        """Raise ValueError if a named algorithm cannot pool so many numeric columns as this recipe says."""
        if self.algorithm != "auto":
            row = np.zeros((1, columns))
            choose_algorithm(self.problem(row, row, np.zeros((1, 1))), self.algorithm)

    def fill_empty(self, values: Array, occupied: NDArray[np.bool_], fill: Fill | None = None) -> Array:
        """Give the rows of empty windows what the recipe says; parameters as of `kernpool.core.empty.fill_empty`."""
        return fill_empty(values, occupied, self.empty, fill, warn=self.warns_of_nearest)

    def ridge_weight(self, columns: int) -> Array | None:
        """Return the ridge of each column in units of key weight times kernel; None if there is none."""
        if not self.degree or not np.any(self.ridge):
            return None
        bandwidth = np.broadcast_to(self.bandwidth, (columns,))
        similarity = KernelSimilarity(self.kernel, bandwidth, cast(Composition, self.composition))
        return ridge_weight(self.ridge, columns, similarity.log_peak)

    def pools_like(self, other: Recipe) -> bool:
        """Tell whether sums of both recipes may be merged: the same kernel, bandwidth, composition and degree."""
        same = self.kernel == other.kernel and np.array_equal(self.bandwidth, other.bandwidth)
        return same and (self.composition, self.degree) == (other.composition, other.degree)


@lru_cache(maxsize=64, typed=True)
def _remembered(kernel: Kernel, bandwidth: float, **options: Any) -> Recipe:
    return Recipe(kernel, as_bandwidth(bandwidth, None), **options)
