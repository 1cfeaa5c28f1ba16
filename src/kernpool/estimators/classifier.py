"""Nadaraya-Watson classification: the values are one-hot labels, so the pooled values are probabilities."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin

from kernpool.data.chunks.base import Chunks
from kernpool.estimators.labels import one_hot
from kernpool.estimators.rows import read_rows
from kernpool.estimators.smoother import KernelSmoother
from kernpool.kernels import Kernel

Array = NDArray[np.float64]


class NadarayaWatsonClassifier(ClassifierMixin, KernelSmoother):  # type: ignore[misc]  # scikit-learn ships no types
    r"""Nadaraya-Watson (local constant) kernel classification.

    .. math:: \hat p_c(x) = \sum_j w_j K((x - x_j)/h)\, [y_j = c] \Big/ \sum_j w_j K((x - x_j)/h)

    Parameters
    ----------
    kernel : str or Kernel, default="gaussian"
        See `kernpool.kernel_names`.
    bandwidth : float, array_like of shape (d,), or name, default="loo"
        As in `NadarayaWatsonRegressor`; ``"loo"`` minimises the leave-one-out Brier score.
    bandwidth_convention, composition, unordered, ordered, ordered_by, unordered_kernel, ordered_kernel
        As in `NadarayaWatsonRegressor`.
    smoothing, unseen, common_factor, max_search_rows, max_search_seconds, random_state
        As in `NadarayaWatsonRegressor`.
    algorithm : str, default="auto"
        See `kernpool.choose`.
    tol : float or None, default=None
        See `kernpool.pool`.
    empty : {"mean", "nearest", "nan", "zero", "raise"}, default="mean"
        Probabilities where no training row lies within the kernel's support. ``"mean"`` gives the class priors; with
        ``"nan"`` and ``"zero"`` such rows have probabilities of that kind and no predicted class.
    n_jobs : int or None, default=None
        Threads; None is 1 unless in a ``joblib.parallel_config`` context, -1 all processors, -2 all but one.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels, sorted.
    loo_error_ : float
        Leave-one-out Brier score, the squared error summed over classes; only with ``bandwidth="loo"``.
    key_, value_, key_weight_ : ndarray
        The training rows, one-hot labels and weights.
    bandwidth_, smoothing_, encoding_, relevance_, bandwidth_search_, loo_empty_windows_
        As in `NadarayaWatsonRegressor`.
    n_features_in_, feature_names_in_
        As in `NadarayaWatsonRegressor`.

    See Also
    --------
    NadarayaWatsonRegressor : The same for numbers, with the notes on cost.

    Notes
    -----
    The Brier score is a proper scoring rule, so its minimum asks for honest probabilities and not only for the right
    class. Costs are those of `NadarayaWatsonRegressor` with one output per class.

    References
    ----------
    .. [1] G. W. Brier, "Verification of forecasts expressed in terms of probability", Monthly Weather Review 78 (1950),
       1-3.

    Examples
    --------
    >>> from kernpool import NadarayaWatsonClassifier
    >>> model = NadarayaWatsonClassifier(bandwidth=1.0).fit([[0.0], [1.0], [5.0]], ["low", "low", "high"])
    >>> model.predict([[0.5], [4.0]]).tolist()
    ['low', 'high']
    >>> model.predict_proba([[3.0]]).round(3)
    array([[0.48, 0.52]])
    """

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
        max_search_seconds: float | None = None,
        random_state: Any = 0,
        algorithm: str = "auto",
        tol: float | None = None,
        empty: str = "mean",
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
        self.max_search_seconds = max_search_seconds
        self.random_state = random_state
        self.algorithm = algorithm
        self.tol = tol
        self.empty = empty
        self.n_jobs = n_jobs

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> NadarayaWatsonClassifier:
        """Store the training rows and find the bandwidth.

        Parameters
        ----------
        X : array_like of shape (n, d)
            Inputs.
        y : array_like of shape (n,)
            Labels: numbers or strings.
        sample_weight : array_like of shape (n,), optional
            Frequencies of rows, non-negative.

        Returns
        -------
        NadarayaWatsonClassifier
            Itself.

        Raises
        ------
        ValueError
            If X holds NaN or infinity, y is continuous, shapes do not match, or a parameter is out of its range.
        """
        if isinstance(X, Chunks | str | Path):
            raise TypeError(
                "NadarayaWatsonClassifier takes rows in memory; for rows in chunks fit NadarayaWatsonRegressor to one "
                "column of 0 and 1 per class, whose predictions are the probabilities"
            )
        rows = read_rows(self, X, y, numbers=False)
        classes, _, value = one_hot(rows.output, rows.key.dtype)
        self._fit_pairs(rows, value, sample_weight, standardise=False)  # one-hot labels have the same unit
        self.classes_ = classes
        return self

    def predict_proba(self, X: ArrayLike) -> Array:
        """Pool the one-hot labels.

        Parameters
        ----------
        X : array_like of shape (m, d)
            Queries.

        Returns
        -------
        ndarray of shape (m, n_classes)
            Probabilities in the order of `classes_`.
        """
        return cast(Array, np.clip(self._pool(X), 0.0, 1.0))  # rounding may leave -1e-17

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Predict the class of the highest probability.

        Parameters
        ----------
        X : array_like of shape (m, d)
            Queries.

        Returns
        -------
        ndarray of shape (m,)
            Labels; of equally probable classes the first.

        Raises
        ------
        ValueError
            If a window is empty and `empty` is ``"nan"`` or ``"zero"``, since then no class is more probable.
        """
        probability = self.predict_proba(X)
        nothing = ~(probability.sum(axis=1) > 0)
        if nothing.any():
            raise ValueError(
                f"{np.count_nonzero(nothing)} of {len(probability)} rows have no training row within the kernel's "
                f"support and empty={self.empty!r} gives them no class; use empty='mean' or 'nearest'"
            )
        labels: NDArray[Any] = self.classes_[probability.argmax(axis=1)]
        return labels
