"""Local linear regression as a scikit-learn estimator."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kernpool.estimators.fitted import fit_of, problem_of
from kernpool.estimators.regression import KernelRegressor

Array = NDArray[np.float64]


class LocalLinearRegressor(KernelRegressor):
    r"""Local linear kernel regression: a plane around each query.

    .. math:: \hat y(x) = \hat\beta_0, \qquad (\hat\beta_0, \hat\beta) = \arg\min_{\beta_0, \beta}
              \sum_j w_j K((x - x_j)/h)\, (y_j - \beta_0 - \beta \cdot (x_j - x))^2

    Parameters
    ----------
    kernel : str or Kernel, default="gaussian"
        See `kernpool.kernel_names`. ``"constant"`` is ordinary least squares.
    bandwidth : float, array_like of shape (d,), or name, default="loo"
        A number, one per column, or how to find them. ``"loo"`` minimises the exact leave-one-out squared error (the
        default because that is what a prediction will be judged by), ``"aicc"`` the corrected information criterion of
        Hurvich, Simonoff and Tsai, ``"gcv"`` generalised cross-validation: see `kernpool.bandwidth.criteria`;
        ``"plugin"`` estimates what the best bandwidth is made of, for one column (`plugin_bandwidth`); the rules
        ``"scott"`` and ``"silverman"`` look at X alone.
    bandwidth_convention : {"support", "np", "stata", "locfit", "ksmooth", "std", "canonical"}, default="support"
        What a number given as `bandwidth` means; see `kernpool.convert_bandwidth`. Bandwidths that are found have
        nothing to do with it.
    composition : {"radial", "product"}, default="radial"
        Kernel of the Euclidean norm of the scaled differences of numeric columns, or product of one kernel per column.
        Kernels of categorical columns always multiply in.
    unordered, ordered : collection of str or int, or None, default=None
        Names or positions of categorical columns. Frames of pandas and polars say themselves which columns are: text
        and categories are unordered, ordered categories and Enums ordered; see `kernpool.data.columns`.
    ordered_by : {"value", "rank"}, default="value"
        How far levels of ordered columns are apart: as far as their values, if they are numbers, or as their ranks.
    unordered_kernel : {"aitchison_aitken", "li_racine"}, default="aitchison_aitken"
        See `kernpool.kernels.categorical`.
    ordered_kernel : {"wang_van_ryzin", "li_racine_ordered"}, default="wang_van_ryzin"
        Likewise.
    smoothing : array_like of shape (k,) or None, default=None
        The lambda of each categorical column, zero for levels that have nothing to do with each other. None where it is
        searched for, with the bandwidths.
    unseen : {"raise", "unlike"}, default="raise"
        What a level does that the training rows did not have: an error, or unlike every level.
    common_factor : bool, default=False
        Search for one common factor on the spreads of the columns instead of one bandwidth per column: faster, and
        enough where all columns matter alike.
    max_search_rows : int or None, default=None
        Search on so many rows, drawn at random, instead of on all; None is 10 000 for rows in chunks.
    random_state : int, RandomState or None, default=0
        For what a search draws; with the default it gives the same result each time.
    algorithm : str, default="auto"
        See `kernpool.choose`; all give the same numbers.
    tol : float or None, default=None
        Ignored beyond the machine epsilon: slopes are made of small differences.
    empty : {"nan", "nearest", "mean", "zero", "raise"}, default="nan"
        Prediction where no training row lies within the kernel's support; see `kernpool.pool`.
    n_jobs : int or None, default=None
        Threads; None is 1 unless in a ``joblib.parallel_config`` context, -1 all processors, -2 all but one.

    Attributes
    ----------
    bandwidth_ : ndarray of shape (d,)
        One bandwidth per numeric column, in the convention ``"support"`` whatever the parameter was given in.
    smoothing_ : ndarray of shape (k,)
        One lambda per categorical column.
    encoding_ : Encoding or None
        How categorical columns were read, if there are any.
    relevance_ : ndarray of shape (columns,)
        Spread of each numeric column over its bandwidth; zero where the best bandwidth is infinite, so that the column
        enters linearly. Of a categorical one, how far its smoothing is from making no difference. Only after a search.
    bandwidth_search_ : BandwidthSearch
        What was minimised, from how many starts, with what result, and all that was tried; only after a search.
    loo_error_ : float
        Leave-one-out mean squared error at `bandwidth_`, summed over outputs; only with ``bandwidth="loo"``.
    loo_empty_windows_ : int
        Training rows that had no other row in their window there; only with ``bandwidth="loo"``.
    key_, value_, key_weight_ : ndarray
        The training rows, outputs and weights; absent after a fit to chunks.
    chunks_ : Chunks
        Where the rows are, after a fit to chunks.
    reference_ : dict or None
        Path, columns and fingerprints of the files that they lie in, as they were when the fit began.
    bandwidth_note_ : str
        How the bandwidth was found there: on which sample, and by what factor it was made that of all rows.
    n_features_in_ : int
        Number of columns.
    feature_names_in_ : ndarray of str
        Names of the columns, if X had any.

    See Also
    --------
    NadarayaWatsonRegressor : A constant around each query: its predictions stay within the range of y.
    kernpool.pool : The function underneath, with ``degree=1``.

    Notes
    -----
    Unlike a local constant fit it has no bias of first order at boundaries, or where rows are denser on one side of
    the query [1]_. Its predictions may leave the range of y.
    Far from all rows, where they are within about 1e-4 of their distance from the query, it turns constant in that
    direction, with a warning, as the search for its bandwidth has it: planes through the nearest two or three rows lead
    anywhere. (``pool(degree=1)`` does continue them, right to rounding.)

    Where the rows of a window do not determine a plane, it is constant in the undetermined directions (a ridge in these
    directions only, see `kernpool.core.local_fit.bounded_inverse`); a query with a single row in its window gets that
    row's value. A `RankDeficiencyWarning` says so, once per fit: of columns that are constant or linear in others over
    all rows, by name, and of windows with too few rows.

    A pass takes two to four times as long as one of a local constant fit, O(n m d^2).

    References
    ----------
    .. [1] J. Fan and I. Gijbels, "Local Polynomial Modelling and Its Applications", Chapman and Hall (1996), section
       3.2.
    .. [2] C. M. Hurvich, J. S. Simonoff and C.-L. Tsai, "Smoothing parameter selection in nonparametric regression
       using an improved Akaike information criterion", JRSS B 60 (1998), 271-293.

    Examples
    --------
    >>> from kernpool import LocalLinearRegressor
    >>> model = LocalLinearRegressor(bandwidth=1.0).fit([[0.0], [1.0], [2.0], [4.0]], [1.0, 3.0, 5.0, 9.0])
    >>> model.predict([[-1.0], [3.0]]).round(9), model.derivative([[3.0]]).round(9)
    (array([-1.,  7.]), array([[2.]]))
    """

    _degree = 1

    def _report_rank(self, rank: NDArray[np.intp], occupied: NDArray[np.bool_], columns: int) -> None:
        """Warn of slopes that are not determined, once per fit."""
        if self.encoding_ is not None and not self.encoding_.numeric:
            return
        fitted = vars(self)
        names: Any = self.encoding_.names if self.encoding_ is not None else fitted.get("feature_names_in_")
        places = range(columns) if self.encoding_ is None else self.encoding_.numeric
        labels = [str(i) if names is None else repr(str(names[i])) for i in places]
        self._rank_notes.warn(rank, occupied, fitted.get("key_"), labels, fitted.get("key_weight_"))

    def derivative(self, X: ArrayLike) -> Array:
        r"""Return the slopes of the local planes.

        Parameters
        ----------
        X : array_like of shape (m, d)
            Queries.

        Returns
        -------
        ndarray of shape (m, d) or (m, d, c)
            :math:`\hat\beta` per unit of each numeric column; NaN where the window is empty, zero in directions that
            the rows of a window do not determine.

        Notes
        -----
        :math:`\hat\beta(x)` estimates the slope of the truth at x. It is not the derivative of `predict`, because the
        plane changes from query to query; `NadarayaWatsonRegressor.derivative` is that of its own fit. In finite
        samples the two differ, as the documentation of R's np notes.

        Examples
        --------
        >>> from kernpool import LocalLinearRegressor
        >>> model = LocalLinearRegressor(bandwidth=1.0).fit([[0.0], [1.0], [2.0]], [0.0, 1.0, 4.0])
        >>> model.derivative([[1.0]]).round(9)
        array([[2.]])
        """
        problem = problem_of(self, X)
        fit = fit_of(self, problem)
        slopes: Array = fit.slope / problem.similarity.bandwidth[:, None]
        slopes[~fit.occupied] = np.nan
        return self._one_per_output(slopes)

    def attention_weights(self, X: ArrayLike, *, max_bytes: int = 1 << 30) -> Array:
        r"""Compute the share of every training output in each prediction.

        .. math:: \omega_{ij} = \alpha_{ij}\, (b_i + \tau_i \cdot (x_j - x_i)/h)

        Parameters
        ----------
        X : array_like of shape (m, d)
            Queries.
        max_bytes : int, default=2**30
            The largest result allowed, since it has one entry per query and training row.

        Returns
        -------
        ndarray of shape (m, n)
            Rows sum to one, and their product with the training outputs is the prediction. Unlike those of a local
            constant fit, shares may be negative: a plane is an extrapolation from one side to the other.

        Raises
        ------
        ValueError
            If the shares need more than `max_bytes`.
        """
        share: Any = super().attention_weights(X, max_bytes=max_bytes)
        problem = problem_of(self, X)
        fit = fit_of(self, problem)
        tilted = np.repeat(fit.base[:, None], share.shape[1], axis=1)
        for a in range(problem.key.shape[1]):
            tilted += fit.tilt[:, a, None] * problem.similarity.offset(problem.query, problem.key, a)
        return np.asarray(np.where(fit.occupied[:, None], share * tilted, share))
