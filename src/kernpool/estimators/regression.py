"""What the regressors share: outputs are numbers, one column or several."""

from __future__ import annotations

from typing import Any, Self, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import RegressorMixin
from sklearn.utils.validation import validate_data

from kernpool.checks import refuse_text
from kernpool.estimators.base import KernelSmoother
from kernpool.kernels import Kernel, get_kernel

Array = NDArray[np.float64]


class KernelRegressor(RegressorMixin, KernelSmoother):  # type: ignore[misc]  # scikit-learn ships no types
    """Fit and predict; subclasses say what is fitted around each query."""

    def __init__(
        self,
        kernel: str | Kernel = "gaussian",
        bandwidth: Any = "loo",
        *,
        bandwidth_convention: str = "support",
        composition: str = "radial",
        unordered: Any = None,
        ordered: Any = None,
        ordered_by: str = "value",
        unordered_kernel: Any = "aitchison_aitken",
        ordered_kernel: Any = "wang_van_ryzin",
        smoothing: Any = None,
        unseen: str = "raise",
        common_factor: bool = False,
        max_search_rows: int | None = None,
        random_state: Any = 0,
        algorithm: str = "auto",
        tol: float | None = None,
        empty: str = "nan",
        n_jobs: int | None = None,
    ) -> None:
        self.kernel = kernel
        self.bandwidth = bandwidth
        self.bandwidth_convention = bandwidth_convention
        self.composition = composition
        self.unordered = unordered
        self.ordered = ordered
        self.ordered_by = ordered_by
        self.unordered_kernel = unordered_kernel
        self.ordered_kernel = ordered_kernel
        self.smoothing = smoothing
        self.unseen = unseen
        self.common_factor = common_factor
        self.max_search_rows = max_search_rows
        self.random_state = random_state
        self.algorithm = algorithm
        self.tol = tol
        self.empty = empty
        self.n_jobs = n_jobs

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        tags.regressor_tags.poor_score = get_kernel(self.kernel).name == "constant"  # the baseline that ignores X
        return tags

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Store the training rows and find the bandwidth.

        Parameters
        ----------
        X : array_like of shape (n, d), or frame
            Inputs; a frame of pandas or polars may have categorical columns.
        y : array_like of shape (n,) or (n, c)
            Outputs; integers and booleans count as numbers.
        sample_weight : array_like of shape (n,), optional
            Frequencies of rows, non-negative.

        Returns
        -------
        self
            The estimator, fitted.

        Raises
        ------
        ValueError
            If X or y holds NaN or infinity, a cell of a categorical column is missing, shapes do not match, or a
            parameter is out of its range.
        """
        encoding = self._encoding_for(X)
        if encoding is not None:
            refuse_text("y", y)
            numeric, code, output = self._read_table(X, y, encoding, multi_output=True, y_numeric=True)
            output = output if output.dtype.kind == "f" else output.astype(np.float64)
            self._fit_pairs(numeric, output, sample_weight, encoding, code)
            return self
        given = {"X": X, "y": y}
        checked = validate_data(self, X, y, dtype=[np.float64, np.float32], multi_output=True, y_numeric=True)
        for name, array in given.items():
            refuse_text(name, array)
        X, y = cast(tuple[Array, NDArray[Any]], checked)
        self._fit_pairs(X, y if y.dtype.kind == "f" else y.astype(np.float64), sample_weight)
        return self

    def predict(self, X: ArrayLike) -> Array:
        """Predict from the training rows.

        Parameters
        ----------
        X : array_like of shape (m, d)
            Queries.

        Returns
        -------
        ndarray of shape (m,) or (m, c)
            One prediction per query.

        Warns
        -----
        EmptyWindowWarning
            If a query has no training row within the kernel's support and ``empty="nan"``.
        RankDeficiencyWarning
            If a local linear fit is not determined by the rows of its window.
        """
        return self._pool(X)

    def _one_per_output(self, slopes: Array) -> Array:
        """Drop the last axis of (m, d, c) if y had one dimension."""
        return slopes[:, :, 0] if self.value_.ndim == 1 else slopes
