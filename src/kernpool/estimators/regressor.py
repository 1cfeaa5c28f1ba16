"""Nadaraya-Watson regression as a scikit-learn estimator."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import RegressorMixin
from sklearn.utils.validation import validate_data

from kernpool.checks import refuse_text
from kernpool.estimators.base import KernelSmoother
from kernpool.kernels import Kernel, get_kernel

Array = NDArray[np.float64]


class NadarayaWatsonRegressor(RegressorMixin, KernelSmoother):  # type: ignore[misc]  # scikit-learn ships no types
    r"""Nadaraya-Watson (local constant) kernel regression.

    .. math:: \hat y(x) = \sum_j w_j K((x - x_j)/h)\, y_j \Big/ \sum_j w_j K((x - x_j)/h)

    Parameters
    ----------
    kernel : str or Kernel, default="gaussian"
        See `kernpool.kernel_names`. ``"constant"`` is average pooling, the mean of y at every query.
    bandwidth : float, array_like of shape (d,), or {"loo", "scott", "silverman"}, default="loo"
        A number, one per column, or how to find it: ``"loo"`` minimises the exact leave-one-out squared error over one
        common factor on the spreads of the columns (the default because it looks at y); the rules look at X alone.
    bandwidth_convention : {"support", "np", "stata", "locfit", "ksmooth", "std", "canonical"}, default="support"
        What a number given as `bandwidth` means; see `kernpool.convert_bandwidth`. Bandwidths that are found
        have nothing to do with it.
    composition : {"radial", "product"}, default="radial"
        Kernel of the Euclidean norm of the scaled differences, or product of one kernel per column.
    algorithm : str, default="auto"
        See `kernpool.choose`; all give the same numbers.
    tol : float or None, default=None
        See `kernpool.pool`; None is the machine epsilon.
    empty : {"nan", "nearest", "mean", "zero", "raise"}, default="nan"
        Prediction where no training row lies within the kernel's support; see `kernpool.pool`.
    n_jobs : int or None, default=None
        Threads; None is 1 unless in a ``joblib.parallel_config`` context, -1 all processors.

    Attributes
    ----------
    bandwidth_ : ndarray of shape (d,)
        One bandwidth per column, in the convention ``"support"`` whatever the parameter was given in.
    loo_error_ : float
        Leave-one-out mean squared error at `bandwidth_`, summed over outputs; only with ``bandwidth="loo"``, because it
        costs a pass over all pairs. `leave_one_out` computes it for any bandwidth.
    loo_empty_windows_ : int
        Training rows that had no other row in their window there; only with ``bandwidth="loo"``.
    bandwidth_search_ : BandwidthSearch
        All bandwidths tried and their errors; only with ``bandwidth="loo"``.
    key_, value_, key_weight_ : ndarray
        The training rows, outputs and weights.
    n_features_in_ : int
        Number of columns.
    feature_names_in_ : ndarray of str
        Names of the columns, if X had any.

    See Also
    --------
    NadarayaWatsonClassifier : The same for labels.
    kernpool.pool : The function underneath.

    Notes
    -----
    ``fit`` with ``bandwidth="loo"`` takes about 120 passes of O(n^2 d), otherwise O(n d); ``predict`` takes O(n m d)
    time and O(n + m) memory. Weights are frequencies: a row of weight 3 is three equal rows, leave-one-out included.

    References
    ----------
    .. [1] E. A. Nadaraya, "On estimating regression", Theory of Probability and its Applications 9 (1964), 141-142.
    .. [2] W. Haerdle and J. S. Marron, "Optimal bandwidth selection in nonparametric regression function estimation",
       Annals of Statistics 13 (1985), 1465-1481.

    Examples
    --------
    >>> from kernpool import NadarayaWatsonRegressor
    >>> from kernpool.datasets import make_sine_power
    >>> sample = make_sine_power(random_state=0)
    >>> model = NadarayaWatsonRegressor().fit(sample.x_train[:, None], sample.y_train)
    >>> model.bandwidth_.shape
    (1,)
    >>> bool(model.score(sample.x_test[:, None], sample.y_truth) > 0.9)
    True
    """

    def __init__(
        self,
        kernel: str | Kernel = "gaussian",
        bandwidth: Any = "loo",
        *,
        bandwidth_convention: str = "support",
        composition: str = "radial",
        algorithm: str = "auto",
        tol: float | None = None,
        empty: str = "nan",
        n_jobs: int | None = None,
    ) -> None:
        self.kernel = kernel
        self.bandwidth = bandwidth
        self.bandwidth_convention = bandwidth_convention
        self.composition = composition
        self.algorithm = algorithm
        self.tol = tol
        self.empty = empty
        self.n_jobs = n_jobs

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        tags.regressor_tags.poor_score = get_kernel(self.kernel).name == "constant"  # the baseline that ignores X
        return tags

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> NadarayaWatsonRegressor:
        """Store the training rows and find the bandwidth.

        Parameters
        ----------
        X : array_like of shape (n, d)
            Inputs.
        y : array_like of shape (n,) or (n, c)
            Outputs; integers and booleans count as numbers.
        sample_weight : array_like of shape (n,), optional
            Frequencies of rows, non-negative.

        Returns
        -------
        NadarayaWatsonRegressor
            Itself.

        Raises
        ------
        ValueError
            If X or y holds NaN or infinity, shapes do not match, or a parameter is out of its range.
        """
        given = {"X": X, "y": y}
        checked = validate_data(self, X, y, dtype=[np.float64, np.float32], multi_output=True, y_numeric=True)
        for name, array in given.items():
            refuse_text(name, array)
        X, y = cast(tuple[Array, NDArray[Any]], checked)
        self._fit_pairs(X, y if y.dtype.kind == "f" else y.astype(np.float64), sample_weight)
        return self

    def predict(self, X: ArrayLike) -> Array:
        """Predict by pooling the training outputs.

        Parameters
        ----------
        X : array_like of shape (m, d)
            Queries.

        Returns
        -------
        ndarray of shape (m,) or (m, c)
            Weighted means of the training outputs.

        Warns
        -----
        EmptyWindowWarning
            If a query has no training row within the kernel's support and ``empty="nan"``.
        """
        return self._pool(X)
