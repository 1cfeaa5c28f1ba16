"""Nadaraya-Watson regression as a scikit-learn estimator."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kernpool.estimators.fitted import per_unit, problem_of, recipe_of
from kernpool.estimators.regression import KernelRegressor
from kernpool.estimators.rows import snapshot
from kernpool.execution.progress import current_progress
from kernpool.pooling.choice import choose

Array = NDArray[np.float64]


class NadarayaWatsonRegressor(KernelRegressor):
    r"""Nadaraya-Watson (local constant) kernel regression.

    .. math:: \hat y(x) = \sum_j w_j K((x - x_j)/h)\, y_j \Big/ \sum_j w_j K((x - x_j)/h)

    Parameters
    ----------
    kernel : str or Kernel, default="gaussian"
        See `kernpool.kernel_names`. ``"constant"`` is average pooling, the mean of y at every query.
    bandwidth : float, array_like of shape (d,), or name, default="regularised"
        A number, one per column, or how to find them; an infinite one weighs all rows alike along its column.
        Leave-one-out windows that are empty cost in every search, so that compact kernels do not prefer windows that
        hold no row. ``"regularised"`` minimises the leave-one-out squared error with
        a penalty on small and unlike bandwidths, whose weight falls with the number of rows: the exact minimum,
        ``"loo"``, is where noise helped most, and predicts new rows worse (benchmarks/tables.py; see
        `kernpool.bandwidth.search.regularity`). For one column or a common factor the two are the
        same. ``"aicc"`` is the corrected information criterion of Hurvich, Simonoff and Tsai, ``"gcv"`` generalised
        cross-validation: see `kernpool.bandwidth.criteria`;
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
        Search on so many rows, drawn at random, instead of on all, and bring the result to the number of all rows by
        the rate :math:`n^{-1/(4 + d)}`; None is 10 000 for rows in chunks.
    max_search_seconds : float or None, default=None
        Stop a search after so many seconds, and take the best bandwidths so far, with a warning; None lets it go to its
        end. Where all rows had no turn yet one pass over them is made even so. Results then depend on the machine.
    random_state : int, RandomState or None, default=0
        For what a search draws; with the default it gives the same result each time.
    algorithm : str, default="auto"
        See `kernpool.choose`; all give the same numbers.
    tol : float or None, default=None
        See `kernpool.pool`; None is the machine epsilon.
    empty : {"nearest", "nan", "mean", "zero", "raise"}, default="nearest"
        Prediction where no training row lies within the kernel's support; see `kernpool.pool`. ``"nearest"`` and
        ``"nan"`` warn of such rows. The nearest by default, so that kernels of compact support can be compared by
        cross-validation; `standard_error` is NaN there whatever this says.
    scale : {"raw", "rank"}, list of them, or dict, default="raw"
        In which units numeric columns are compared: as they are, or as their ranks among the training rows, from 0 to
        1. One per column, or those of some columns by name or position: ``{"income": "rank"}``. Ranks are for columns
        that are dense here and sparse there, where one bandwidth is wrong somewhere; with them bandwidths, given or
        found, are shares of the rows. Raw by default: on other columns ranks take more than they give. Tied rows have
        their mid-rank, rows of weight 3 count three times; between the training values ranks are linear, and beyond
        they go on with the mean slope of the column. Not for rows in chunks.
    n_jobs : int or None, default=None
        Threads; None is 1 unless in a ``joblib.parallel_config`` context, -1 all processors, -2 all but one.

    Attributes
    ----------
    bandwidth_ : ndarray of shape (d,)
        One bandwidth per numeric column, in the convention ``"support"`` whatever the parameter was given in; infinite
        for a column that does not vary; of a column with ``scale="rank"`` in ranks, from 0 to 1; of a column of dates
        or durations in days.
    smoothing_ : ndarray of shape (k,)
        One lambda per categorical column.
    encoding_ : Encoding or None
        How columns were read, if any holds categories, dates or durations; ``encoding_.kinds`` says what each is.
    relevance_ : ndarray of shape (columns,)
        Spread of each numeric column over its bandwidth; zero where the best bandwidth is infinite, so that the column
        plays no role. Of a categorical one, how far its smoothing is from that. Only after a search.
    bandwidth_search_ : BandwidthSearch
        What was minimised, from how many starts, with what result, and all that was tried; only after a search.
    loo_error_ : float
        Leave-one-out mean squared error of the rows and the bandwidth that the search ended with, summed over outputs;
        leave-cluster-out after a fit with `groups`. Only with ``bandwidth="regularised"`` or ``"loo"``, because it
        costs a pass over all pairs.
        `leave_one_out` computes it for any bandwidth. Of the rows that the bandwidth was chosen by, it is too small for
        new ones; `expected_error` corrects it for the search.
    loo_empty_windows_ : int
        Training rows that had no other row in their window there, or none of another group; likewise.
    key_, value_, key_weight_ : ndarray
        The training rows, outputs and weights; absent after a fit to chunks. Not to be written into: what the model
        has made of them is kept for the next queries.
    key_group_ : ndarray of int, shape (n,), or None
        Number of the group of each training row, if `fit` had groups.
    search_rows_ : ndarray of int
        Numbers of the training rows that the bandwidth was searched on, if `max_search_rows` was less than all; rows
        that equal one of them included. The others have not seen it: see `prediction_interval`.
    chunks_ : Chunks
        Where the rows are, after a fit to chunks.
    reference_ : dict or None
        Path, columns and fingerprints of the files that they lie in, as they were when the fit began.
    bandwidth_note_ : str
        How the bandwidth was found in chunks, or with `max_search_rows`: on which sample, and by what factor it was
        made that of all rows.
    n_features_in_ : int
        Number of columns.
    feature_names_in_ : ndarray of str
        Names of the columns, if X was a frame whose labels are strings. `predict` and all other methods refuse a frame
        with its columns in another order: pass ``X[model.feature_names_in_]``.
    column_labels_ : list
        Labels of the columns, if X was a frame whose labels are not strings but numbers, tuples or dates; used as
        `feature_names_in_` is. A saved model holds dates as text.

    See Also
    --------
    LocalLinearRegressor : A plane around each query instead of a constant: no bias at boundaries.
    NadarayaWatsonClassifier : The same for labels.
    kernpool.pool : The function underneath.

    Notes
    -----
    A search takes some 100 passes over pairs of training rows, other fits O(n d); ``predict`` is one pass of O(n m d),
    or less where `kernpool.choose` says so, with O(n + m) memory. Weights are frequencies: a row of weight 3 is three
    equal rows, leave-one-out included.

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

    def derivative(self, X: ArrayLike) -> Array:
        r"""Differentiate the fitted surface.

        .. math:: \frac{\partial \hat y(x)}{\partial x_a} = \sum_j \alpha_j(x)\, (y_j - \hat y(x))\,
                  \frac{\partial \log K((x - x_j)/h)}{\partial x_a}

        Parameters
        ----------
        X : array_like of shape (m, d)
            Queries.

        Returns
        -------
        ndarray of shape (m, d) or (m, d, c)
            Slopes per unit of each numeric column: what finite differences of `predict` tend to. NaN where the window
            is empty and ``empty="nan"``; zero there with the other policies, whose values do not depend on the place.

        Raises
        ------
        ValueError
            If the kernel is user-defined and has no `log_slope`. The slopes of a boxcar are zero: its fit is a step
            function.

        Warns
        -----
        EmptyWindowWarning, ExtrapolationWarning
            As `predict`.

        Notes
        -----
        This is the slope of a local *constant* fit. As an estimate of the slope of the truth it is biased where rows
        are denser on one side; `LocalLinearRegressor.derivative` is the better estimate, and no derivative of its
        `predict`. One pass over pairs, and one per output.

        Examples
        --------
        >>> from kernpool import NadarayaWatsonRegressor
        >>> model = NadarayaWatsonRegressor(bandwidth=0.5).fit([[0.0], [1.0], [2.0]], [0.0, 1.0, 0.0])
        >>> model.derivative([[0.5], [1.0]]).round(3).tolist()
        [[0.964], [0.0]]
        """
        model = snapshot(self)
        problem, progress = problem_of(model, X), current_progress()
        plan = choose(problem, self.algorithm, often=True)
        state = plan.reduce(problem, n_jobs=self.n_jobs, progress=progress)
        (m, d), c = problem.query.shape, problem.value.shape[1]
        slopes = np.empty((m, d, c))
        for b in range(c):
            cotangent = np.zeros((m, c))
            cotangent[:, b] = 1.0
            slopes[:, :, b] = plan.pullback(
                problem, state, cotangent, ["query"], n_jobs=self.n_jobs, progress=progress
            ).query
        flat = recipe_of(model).fill_empty(
            slopes.reshape(m, -1), state.denominator != 0, lambda rows: np.zeros((len(rows), d * c))
        )
        return model._one_per_output(per_unit(model, X, flat.reshape(slopes.shape)))
