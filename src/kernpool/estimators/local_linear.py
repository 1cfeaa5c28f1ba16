"""Local linear regression as a scikit-learn estimator."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kernpool.bandwidth.search.setting import is_flat
from kernpool.core.empty import fill_empty
from kernpool.estimators.fitted import fit_of, per_unit, problem_of, scaled_keys
from kernpool.estimators.regression import KernelRegressor
from kernpool.estimators.rows import snapshot
from kernpool.kernels import Kernel, get_kernel

Array = NDArray[np.float64]


class LocalLinearRegressor(KernelRegressor):
    r"""Local linear kernel regression: a plane around each query.

    .. math:: \hat y(x) = \hat\beta_0, \qquad (\hat\beta_0, \hat\beta) = \arg\min_{\beta_0, \beta}
              \sum_j w_j K((x - x_j)/h)\, (y_j - \beta_0 - \beta \cdot (x_j - x))^2

    Parameters
    ----------
    kernel : str or Kernel, default="gaussian"
        See `kernpool.kernel_names`. ``"constant"`` is ordinary least squares.
    bandwidth : float, array_like of shape (d,), or name, default="regularised"
        A number, one per column, or how to find them, as in `NadarayaWatsonRegressor`: ``"regularised"``, ``"loo"``,
        ``"aicc"``, ``"gcv"``, ``"plugin"``, ``"scott"`` or ``"silverman"``.
    ridge : float or None, default=None
        Penalty :math:`\rho` on the squared slopes, in training rows at the query and per squared bandwidth:
        :math:`\rho K(0) \sum_a h_a^2 \beta_a^2` is added to the sum of squares, as if for each column so many rows one
        bandwidth away said that there is no slope. It bounds the variance of planes in thin windows [3]_; full windows
        hardly notice it, unless the bandwidth is much wider than the column, whose slope it then takes away. None finds
        it with the bandwidths where they are ``"regularised"`` and one for each of several columns; elsewhere it is
        zero. Where there may be a ridge, unordered columns of two levels that nobody has named in
        `unordered` are numbers, 0 and 1, in which a plane has a slope; a level that is unseen is halfway.
    bandwidth_convention, composition, unordered, ordered, ordered_by, unordered_kernel, ordered_kernel
        As in `NadarayaWatsonRegressor`.
    smoothing, unseen, common_factor, max_search_rows, max_search_seconds, random_state, algorithm
        As in `NadarayaWatsonRegressor`.
    tol : float or None, default=None
        Ignored beyond the machine epsilon: slopes are made of small differences.
    empty : {"nearest", "nan", "mean", "zero", "raise"}, default="nearest"
        Prediction where no training row lies within the kernel's support; see `kernpool.pool`. ``"nearest"`` and
        ``"nan"`` warn of such rows. The nearest by default, so that kernels of compact support can be compared by
        cross-validation; `standard_error` is NaN there whatever this says.
    scale : {"raw", "rank"}, list of them, or dict, default="raw"
        As in `NadarayaWatsonRegressor`; planes are those of ranks then.
    extrapolate : {"plane", "clip"}, default="plane"
        Predictions beyond the range of y: as the planes have them, or clipped to the range of the training rows,
        widened by a tenth of it on both sides. For several outputs each has its range; rows of weight zero have none.
        Planes by default: over 15 real tables clipping raised the held-out R^2 with ``"loo"`` by .01 on average, by .13
        on one and by nothing on most of them; and a straight line of the data is not followed beyond them any more.
        `derivative` and `leave_one_out` are those of the planes either way, `expected_error` that of predictions.
    n_jobs : int or None, default=None
        As in `NadarayaWatsonRegressor`.

    Attributes
    ----------
    relevance_ : ndarray of shape (columns,)
        Spread of each numeric column over its bandwidth; zero where the best bandwidth is infinite, so that the column
        enters linearly, or with a ridge not at all. Of a categorical one, how far its smoothing is from making no
        difference. Only after a search.
    ridge_ : float
        The ridge, given or found; zero for none.
    bandwidth_, smoothing_, encoding_, bandwidth_search_, loo_error_, loo_empty_windows_
        As in `NadarayaWatsonRegressor`.
    key_, value_, key_weight_, search_rows_, chunks_, reference_, bandwidth_note_, n_features_in_, feature_names_in_
        As in `NadarayaWatsonRegressor`.

    See Also
    --------
    NadarayaWatsonRegressor : A constant around each query: its predictions stay within the range of y.
    kernpool.pool : The function underneath, with ``degree=1``.

    Notes
    -----
    Unlike a local constant fit it has no bias of first order at boundaries, or where rows are denser on one side of
    the query [1]_. Its predictions may leave the range of y, unless ``extrapolate="clip"``.
    Far from all rows, where they are within about 1e-4 of their distance from the query, it turns constant in that
    direction, with a warning, as the search for its bandwidth has it: planes through the nearest two or three rows lead
    anywhere. (``pool(degree=1)`` does continue them, right to rounding.)

    Where the rows of a window do not determine a plane, it is constant in the undetermined directions (a ridge in these
    directions only, see `kernpool.core.designs.bounded_inverse`); a query with a single row in its window gets that
    row's value. A `RankDeficiencyWarning` says so, once per fit: of columns that are constant or linear in others over
    all rows, by name, and of windows with too few rows.

    A pass takes two to four times as long as one of a local constant fit, O(n m d^2). Its moments are
    (d + 1) (d + 2) / 2 numbers for each query: .16 GB for 1000 queries in 200 columns, so that many queries in many
    columns are better asked for in parts. The search for bandwidths holds the moments of all rows up to five times,
    .4 GB for 500 rows of 200 columns, and beyond 4096 rows up to ten times; `max_search_rows` bounds them.

    References
    ----------
    .. [1] J. Fan and I. Gijbels, "Local Polynomial Modelling and Its Applications", Chapman and Hall (1996), section
       3.2.
    .. [2] C. M. Hurvich, J. S. Simonoff and C.-L. Tsai, "Smoothing parameter selection in nonparametric regression
       using an improved Akaike information criterion", JRSS B 60 (1998), 271-293.

    .. [3] B. Seifert and T. Gasser, "Data adaptive ridging in local polynomial regression", JCGS 9 (2000), 338-360.

    Examples
    --------
    >>> from kernpool import LocalLinearRegressor
    >>> model = LocalLinearRegressor(bandwidth=1.0).fit([[0.0], [1.0], [2.0], [4.0]], [1.0, 3.0, 5.0, 9.0])
    >>> model.predict([[-1.0], [3.0]]).round(9), model.derivative([[3.0]]).round(9)
    (array([-1.,  7.]), array([[2.]]))
    """

    _degree = 1
    _results: ClassVar[dict[str, type]] = KernelRegressor._results | {"ridge_": float}

    def __init__(
        self,
        kernel: str | Kernel = "gaussian",
        bandwidth: Any = "regularised",
        *,
        bandwidth_convention: str = "support",
        ridge: float | None = None,
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
        empty: str = "nearest",
        scale: Any = "raw",
        extrapolate: str = "plane",
        n_jobs: int | None = None,
    ) -> None:
        self.kernel = kernel
        self.bandwidth = bandwidth
        self.bandwidth_convention = bandwidth_convention
        self.ridge = ridge
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
        self.scale = scale
        self.extrapolate = extrapolate
        self.n_jobs = n_jobs

    @property
    def _reads_pairs_as_numbers(self) -> bool:
        # A ridge keeps their slopes in bounds; without one, published fits have them as levels.
        searched = isinstance(self.bandwidth, str) and self.bandwidth == "regularised" and not self.common_factor
        return (searched and not is_flat(get_kernel(self.kernel))) if self.ridge is None else self.ridge > 0

    def _report_rank(self, rank: NDArray[np.intp], occupied: NDArray[np.bool_], columns: int) -> None:
        """Warn of slopes that are not determined, once per fit."""
        if self.encoding_ is not None and not self.encoding_.numeric:
            return
        fitted = vars(self)
        names: Any = self.encoding_.names if self.encoding_ is not None else fitted.get("feature_names_in_")
        places = range(columns) if self.encoding_ is None else self.encoding_.numeric
        labels = [str(i) if names is None else repr(str(names[i])) for i in places]
        key = scaled_keys(self) if "key_" in fitted else None
        self._rank_notes.warn(rank, occupied, key, labels, fitted.get("key_weight_"))

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

        Warns
        -----
        EmptyWindowWarning
            If windows are empty, whatever `empty` says.
        ExtrapolationWarning
            If rows of X are far beyond the training rows; `kernpool.ExtrapolationWarning` has the rule.

        Notes
        -----
        :math:`\hat\beta(x)` estimates the slope of the truth at x. It is not the derivative of `predict`, because the
        plane changes from query to query; `NadarayaWatsonRegressor.derivative` is that of its `predict`. In finite
        samples the two differ, as the documentation of R's np notes.

        Examples
        --------
        >>> from kernpool import LocalLinearRegressor
        >>> model = LocalLinearRegressor(bandwidth=1.0).fit([[0.0], [1.0], [2.0]], [0.0, 1.0, 4.0])
        >>> model.derivative([[1.0]]).round(9)
        array([[2.]])
        """
        model = snapshot(self)
        problem = problem_of(model, X)
        fit = fit_of(model, problem)
        slopes: Array = fit.slope / problem.similarity.bandwidth[:, None]
        fill_empty(slopes.reshape(len(slopes), -1), fit.occupied, "nan")
        return model._one_per_output(per_unit(model, X, slopes))

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

        Warns
        -----
        EmptyWindowWarning, ExtrapolationWarning
            As `predict`.
        """
        model = snapshot(self)
        share: Any = super(LocalLinearRegressor, model).attention_weights(X, max_bytes=max_bytes)
        problem = problem_of(model, X, warn=False)
        fit = fit_of(model, problem)
        tilted = np.repeat(fit.base[:, None], share.shape[1], axis=1)
        for a in range(problem.key.shape[1]):
            tilted += fit.tilt[:, a, None] * problem.similarity.offset(problem.query, problem.key, a)
        return np.asarray(np.where(fit.occupied[:, None], share * tilted, share))
