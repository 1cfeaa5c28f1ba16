"""Nadaraya-Watson regression on a Dask cluster: a fit stores references to the rows, and a bandwidth.

Bootstrap, quantiles, distribution functions and prediction intervals follow from sums over the partitions, and from
rows that are drawn from them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NoReturn, Self

import numpy as np
from dask.base import is_dask_collection
from dask.delayed import delayed
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.metrics import r2_score
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from kernpool.conformal import PredictionInterval
from kernpool.core.state import PoolState, empty_state
from kernpool.dask.partitions import Partitions, as_dask_array, as_partitions, in_days, is_frame, read_block, select
from kernpool.dask.pool import (
    RETRIES,
    AskPartitions,
    LeaveOneOutError,
    PartitionPairs,
    block_state,
    center_task,
    compute,
    draw_rows,
    find_client,
    joined,
    leave_one_out_error,
    merge_tree,
    pool_partitions,
    sent_once,
)
from kernpool.data import TIME_KINDS, as_real_array
from kernpool.data.chunks.base import Chunk, Chunks
from kernpool.data.chunks.sources import open_chunks
from kernpool.data.columns import Kind
from kernpool.data.encoding import Encoding
from kernpool.distribution import asked_of
from kernpool.estimators.bandwidth import (
    DEFAULT_SEARCH_ROWS,
    SearchDraw,
    SearchSample,
    bandwidth_of_sample,
    draw,
    given_bandwidth,
    join,
    seed_of,
)
from kernpool.estimators.extrapolation import (
    joined_ranges,
    may_extrapolate,
    range_of,
    reach_of_range,
    warn_of_extrapolation,
    window_of,
)
from kernpool.estimators.methods.conditional_distribution import ConditionalDistribution, ReadOutcomes
from kernpool.estimators.methods.distribution import given_y_bandwidths
from kernpool.estimators.methods.prediction_intervals import ChunksWithout, UniformRange, interval_of_source
from kernpool.estimators.parameter_validation import NamedCalls, check_parameters, search_parameters
from kernpool.estimators.regressors import NadarayaWatsonRegressor
from kernpool.estimators.training_rows import as_outputs, as_table, fitted_labels, keep_labels, read_inputs, unshared
from kernpool.execution.error_messages import check_flag
from kernpool.inference.resampling import random_draws
from kernpool.inference.resampling.bootstrap import Resampling, collect_states, resampled_state, unit_rows
from kernpool.kernels import Kernel, get_kernel
from kernpool.pooling import QueryBatch, Sums, quotient
from kernpool.pooling.recipe import Recipe

# after kernpool.dask.partitions, which says what to install
# isort: split

Array = NDArray[np.float64]

ROWS_FOR_LEAVE_ONE_OUT = 100_000  # a pass over their pairs: a minute on one processor at worst
PARTITIONS_FOR_LEAVE_ONE_OUT = 32  # whose square is the number of tasks of a pass, at some milliseconds each


class DaskNadarayaWatsonRegressor(NamedCalls, RegressorMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn ships no types
    r"""Nadaraya-Watson (local constant) kernel regression on Dask collections or files.

    .. math:: \hat y(x) = \sum_j w_j K((x - x_j)/h)\, y_j \Big/ \sum_j w_j K((x - x_j)/h)

    Parameters
    ----------
    kernel, bandwidth, bandwidth_convention, composition, common_factor, random_state, algorithm, tol, empty
        As for `NadarayaWatsonRegressor`, which has parameters for categorical columns too. A bandwidth by name is found
        on rows drawn from all partitions, and brought to the number of all rows by the rate
        :math:`n^{-1/(4 + d)}`; see Notes.
    max_search_rows : int or None, default=None
        How many rows are drawn; None is 10 000, for which a search takes seconds.
    max_search_seconds : float or None, default=None
        As for `NadarayaWatsonRegressor`; drawing the rows is not counted.
    n_jobs : int or None, default=None
        Threads of the search in this process; tasks use one each.
    client : distributed.Client or None, default=None
        The cluster; None for the scheduler that Dask would use.

    Attributes
    ----------
    bandwidth_ : ndarray of shape (d,)
        In the convention ``"support"``.
    bandwidth_note_ : str
        How it was found.
    loo_error_ : float
        Leave-one-out mean squared error over all rows at `bandwidth_`; only after a search by leave-one-out, and
        where there are no more rows than are drawn, or at most 100 000 in at most 32 partitions.
    n_rows_ : int
        Number of training rows.
    n_features_in_ : int
        Number of columns.
    feature_names_in_ : ndarray of str
        Names of the columns, if they have any.
    encoding_ : Encoding or None
        Which columns of a dataframe are dates or durations, read as days since 1970-01-01 UTC and as days; None if all
        are numbers.
    client_ : distributed.Client or None
        The cluster that is used.

    See Also
    --------
    NadarayaWatsonRegressor : In memory, with categorical columns, slopes and weights.
    kernpool.dask.pool : The function underneath.

    Notes
    -----
    Fitting keeps references: Dask collections and names of files, no rows. They have to be there when predictions are
    made; persist collections that are costly to make.

    The bandwidth is that of `NadarayaWatsonRegressor` fitted to the same rows in chunks, to the last bit: which rows
    are drawn depends on `random_state`, their order and which of them have a weight of zero, not on partitions or
    workers.

    Examples
    --------
    >>> import dask.array
    >>> from kernpool import DaskNadarayaWatsonRegressor
    >>> X = dask.array.linspace(0.0, 1.0, 100, chunks=30)[:, None]
    >>> model = DaskNadarayaWatsonRegressor(bandwidth=0.1).fit(X, X[:, 0] ** 2)
    >>> model.predict([[0.5]]).round(3)
    array([0.26])
    >>> model.predict(X)
    dask.array<concatenate, shape=(100,), dtype=float64, chunksize=(30,), chunktype=numpy.ndarray>
    """

    _degree = 0  # of the local fit

    def __init__(
        self,
        kernel: str | Kernel = "gaussian",
        bandwidth: Any = "regularised",
        *,
        bandwidth_convention: str = "support",
        composition: str = "radial",
        common_factor: bool = False,
        max_search_rows: int | None = None,
        max_search_seconds: float | None = None,
        random_state: Any = 0,
        algorithm: str = "auto",
        tol: float | None = None,
        empty: str = "nearest",
        n_jobs: int | None = None,
        client: Any = None,
    ) -> None:
        self.kernel = kernel
        self.bandwidth = bandwidth
        self.bandwidth_convention = bandwidth_convention
        self.composition = composition
        self.common_factor = common_factor
        self.max_search_rows = max_search_rows
        self.max_search_seconds = max_search_seconds
        self.random_state = random_state
        self.algorithm = algorithm
        self.tol = tol
        self.empty = empty
        self.n_jobs = n_jobs
        self.client = client

    def fit(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        groups: None = None,
        *,
        target: Any = None,
        features: Any = None,
    ) -> Self:
        """Store references to the training rows, and choose the bandwidth.

        Parameters
        ----------
        X : Dask array of shape (n, d), Dask dataframe, Chunks, or str or Path
            Inputs. Chunks, and files by name, bring their outputs and weights along.
        y : Dask array or series of shape (n,) or (n, c), or str
            Outputs, or the name of their column in X.
        sample_weight : Dask array or series of shape (n,), or str
            Frequencies of rows, or the name of their column in X.
        groups : None
            Not for rows on a cluster; see `NadarayaWatsonRegressor.fit`.
        target, features : str or sequence of str, optional
            Columns of X, as in `open_chunks`; `target` in place of y.

        Returns
        -------
        self
            The estimator, fitted.

        Raises
        ------
        TypeError, ValueError
            If a parameter is out of its range, X cannot be read by workers, or there are groups.

        Warns
        -----
        RepeatedRowsWarning
            If a tenth or more of the rows that the bandwidth is searched on are copies of others; drop duplicates.
        """
        check_parameters(self)
        if groups is not None:
            raise TypeError(
                "groups must be None for rows on a cluster, where a sample breaks them up; fit some groups in memory"
            )
        if isinstance(y, str):
            y, target = None, y
        if isinstance(X, str | Path):
            X, sample_weight = open_chunks(X, None, sample_weight, target=target, features=features), None
        if isinstance(X, Chunks) and (y is not None or sample_weight is not None):
            raise TypeError("chunks bring their outputs and weights along, so y and sample_weight must be None")
        partitions = as_partitions(X, y, sample_weight, target=target, features=features, dates=True)
        partitions, columns = count_rows(partitions, self.client_)
        found = self._find_bandwidth(partitions, columns)
        # Nothing is assigned before everything is known, so that a failed refit leaves the old fit whole.
        for stale in ("loo_error_", "loo_empty_windows_", "_search_draw", "key_range_"):
            self.__dict__.pop(stale, None)
        self.__dict__ |= found
        self.partitions_, self.n_rows_, self.n_features_in_ = partitions, sum(filter(None, partitions.rows)), columns
        keep_labels(self, partitions.names)
        names, self.encoding_ = vars(self).get("feature_names_in_"), None
        if partitions.kinds is not None:
            self.encoding_ = replace(Encoding.of_numbers(names, columns), kinds=partitions.kinds)
        return self

    def predict(self, X: Any, return_std: bool = False) -> Any:
        """Predict y at new rows: an array for queries in memory, a Dask array for queries on Dask.

        Parameters
        ----------
        X : array_like or Dask array of shape (m, d), or Dask dataframe
            Queries.
        return_std : bool, default=False
            For models in memory only: it needs the rows themselves, and a TypeError says what to do.

        Returns
        -------
        ndarray or Dask array of shape (m,) or (m, c)
            In memory for queries in memory; for Dask queries a Dask array, which is not computed yet.

        Warns
        -----
        EmptyWindowWarning, ExtrapolationWarning
            As `NadarayaWatsonRegressor.predict`; for Dask queries where a block is computed.
        """
        check_is_fitted(self)
        check_flag("return_std", return_std)
        if return_std:
            refuse_without_rows(self, "return_std needs")
        if not is_dask_collection(X):
            X = read_query(self, X)
        else:
            is_array = not is_frame(X)
            X = as_dask_array(X) if is_array else as_dask_array(*self._columns_of(X))
            X = X[:, None] if X.ndim == 1 and self.n_features_in_ == 1 else X
            if X.ndim != 2 or X.shape[1] != self.n_features_in_:
                raise ValueError(f"X must have {self.n_features_in_} columns, as in fit, got shape {X.shape}")
            if is_array and (self.encoding_ is not None or X.dtype.kind in "mM"):
                X = in_days(X, kinds_of(self) or ("numeric",) * X.shape[1])
            X = watch_blocks(self, X)
        return pool_partitions(self._recipe(self.bandwidth_), X, self.partitions_, self.client_, RETRIES)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the coefficient of determination R^2 of the predictions, averaged over outputs.

        Parameters
        ----------
        X, y, sample_weight : array_like, Dask array, or Dask dataframe or series
            Queries, the truth and frequencies; outputs and predictions are brought into memory.

        Returns
        -------
        float
            1 for perfect predictions, 0 for those of the mean.
        """
        given = [y, self.predict(X), sample_weight]
        lazy = [i for i, array in enumerate(given) if is_dask_collection(array)]
        computed = compute([given[i] for i in lazy], self.client_, RETRIES) if lazy else ()
        for i, array in zip(lazy, computed, strict=True):
            given[i] = array
        truth = as_outputs(given[0], type(self).__name__)
        weight = None if given[2] is None else as_real_array("sample_weight", given[2])
        return float(r2_score(truth, given[1], sample_weight=weight))

    def leave_one_out_error(self, max_rows: int | None = None) -> float:
        r"""Compute the leave-one-out mean squared error at the fitted bandwidth, on the cluster.

        .. math:: CV(h) = \sum_i w_i \lVert y_i - \hat y_{-i}(x_i) \rVert^2 \Big/ \sum_i w_i

        Parameters
        ----------
        max_rows : int, optional
            Predict so many rows, drawn by `random_state`, each from all others; by default all.

        Returns
        -------
        float
            Mean squared error, summed over outputs.

        Notes
        -----
        For P partitions P^2 tasks, and a pass over all pairs of rows if `max_rows` is None.
        """
        check_is_fitted(self)
        return self._leave_one_out(self.partitions_, max_rows, self.bandwidth_).error

    def to_local(self) -> NadarayaWatsonRegressor:
        """Load all training rows into memory, and return a `NadarayaWatsonRegressor` with the same bandwidth.

        Returns
        -------
        NadarayaWatsonRegressor
            With the same `bandwidth_`, and predictions that are equal up to rounding.
        """
        check_is_fitted(self)
        rows = fetch_all(self.partitions_, self.client_)
        given = {name: value for name, value in self.get_params(deep=False).items() if name != "client"}
        model = NadarayaWatsonRegressor(**given | {"bandwidth": self.bandwidth_, "bandwidth_convention": "support"})
        value = rows.value[:, 0] if self.partitions_.flat else rows.value
        model.fit(rows.key, value, None if np.all(rows.weight == 1.0) else rows.weight)
        for name in ("loo_error_", "loo_empty_windows_"):
            if hasattr(self, name):
                setattr(model, name, getattr(self, name))
        keep_labels(model, fitted_labels(self))
        model.encoding_ = self.encoding_
        model.set_params(bandwidth=self.bandwidth, bandwidth_convention=self.bandwidth_convention)
        return model

    @property
    def client_(self) -> Any:
        """Dask client in use: `client`, or the most recent client; None for Dask's local schedulers."""
        return find_client(self.client)

    def __getstate__(self) -> dict[str, Any]:
        return dict(super().__getstate__()) | {"client": None}  # a connection cannot be saved

    def __sklearn_clone__(self) -> Self:
        given = self.get_params(deep=False)
        return type(self)(**{name: value if name == "client" else deepcopy(value) for name, value in given.items()})

    def _columns_of(self, frame: Any) -> tuple[Any, dict[Any, Any]]:
        """Select the columns of the fit from a Dask dataframe; also return the kinds of its time columns by label."""
        found = select(frame, fitted_labels(self))
        if self.encoding_ is None:
            return found, {}
        kinds = zip(found.columns, self.encoding_.kinds, strict=True)
        return found, {label: kind for label, kind in kinds if kind in TIME_KINDS}

    def _recipe(self, bandwidth: Any) -> Recipe:
        recipe = Recipe.of(
            self.kernel,
            bandwidth,
            composition=self.composition,
            tol=self.tol,
            algorithm=self.algorithm,
            empty=self.empty,
            n_jobs=1,  # per task
            warns_of_nearest=True,
        )
        recipe.refuse_unable(len(np.atleast_1d(bandwidth)))
        return recipe

    def _find_bandwidth(self, partitions: Partitions, columns: int) -> dict[str, Any]:
        if not isinstance(self.bandwidth, str):
            given = given_bandwidth(self.bandwidth, columns, get_kernel(self.kernel), self.bandwidth_convention)
            return {"bandwidth_": given, "bandwidth_note_": "as given"}
        size, seed = self.max_search_rows or DEFAULT_SEARCH_ROWS, seed_of(self.random_state)
        sample = draw_sample(partitions, size, seed, self.client_)
        search = bandwidth_of_sample(sample, partitions.flat, partitions.names, **search_parameters(self))
        found = {name: search[name] for name in ("bandwidth_", "bandwidth_note_", "key_range_")}
        found["_search_draw"] = SearchDraw(size, seed)
        if self.bandwidth not in ("loo", "regularised"):
            return found
        n, whole = sum(filter(None, partitions.rows)), sample is not None and len(sample.key) == sample.rows
        if whole:
            found |= {name: search[name] for name in ("loo_error_", "loo_empty_windows_")}
        elif n <= ROWS_FOR_LEAVE_ONE_OUT and len(partitions.blocks) <= PARTITIONS_FOR_LEAVE_ONE_OUT:
            error = self._leave_one_out(partitions, None, found["bandwidth_"])
            found |= {"loo_error_": error.error, "loo_empty_windows_": error.empty_windows}
        return found

    def _leave_one_out(self, partitions: Partitions, max_rows: int | None, bandwidth: Array) -> LeaveOneOutError:
        places, recipe = drawn_indices(partitions, max_rows, self.random_state), self._recipe(bandwidth)
        return leave_one_out_error(partitions, places, recipe, client=self.client_, retries=RETRIES)

    # after kernpool.dask.partitions, which says what to install
    # isort: split

    def bootstrap(
        self,
        X: ArrayLike,
        statistic: Callable[[Array], Any] | None = None,
        *,
        n_resamples: int = 999,
        kind: str = "poisson",
        random_state: Any = 0,
        max_bytes: int = 1 << 30,
    ) -> Array:
        """Compute the fit, or a statistic of it, in bootstrap resamples of the rows at the fitted bandwidth.

        Parameters
        ----------
        X : array_like of shape (m, d)
            Evaluation points, in memory.
        statistic : callable, optional
            Takes the fit of a resample, of shape (m,) or (m, c), and returns a number or an array; by default the fit.
        n_resamples : int, default=999
            How many.
        kind : {"poisson"}, default="poisson"
            Each row counts a Poisson number of times, by a hash of its number, whichever partition it is in. Other
            kinds need the fit at every row.
        random_state : int, RandomState, Generator or None, default=0
            Seed of the draws.
        max_bytes : int, default=2**30
            The largest result allowed.

        Returns
        -------
        ndarray of shape (n_resamples, m), (n_resamples, m, c), or (n_resamples, ...) of a statistic
            As `NadarayaWatsonRegressor.bootstrap` of the same rows in the same order, up to rounding; the same bits for
            any number of workers.

        Raises
        ------
        TypeError
            If X is a Dask collection.
        ValueError
            If the kind is another, the result is larger than `max_bytes`, a weight is no whole number, or a window of a
            resample is empty with ``empty="raise"``.

        Warns
        -----
        EmptyWindowWarning
            If a window of a resample is empty. The fit there is NaN, unless ``empty="zero"``: the nearest row, or the
            mean, of each resample would take another pass over all rows.

        Notes
        -----
        One pass over the rows, and one more for weights. Tasks keep three numbers for each place and resample, or
        more with several outputs.

        Examples
        --------
        >>> import dask.array
        >>> from kernpool import DaskNadarayaWatsonRegressor
        >>> X = dask.array.linspace(0.0, 1.0, 100, chunks=30)[:, None]
        >>> model = DaskNadarayaWatsonRegressor(bandwidth=0.1).fit(X, X[:, 0] ** 2)
        >>> model.bootstrap([[0.5]], n_resamples=99).shape
        (99, 1)
        """
        check_is_fitted(self)
        how = Resampling(kind, n_resamples, random_state, max_bytes)
        if kind != "poisson":
            raise ValueError(
                f"kind={kind!r} needs the fit at every row, and the rows are on a cluster; use kind='poisson', which "
                "draws row by row, or to_local() where they fit into memory"
            )
        if is_dask_collection(X):
            raise TypeError("X must be in memory: all resamples keep their sums at every point of X; use X.compute()")
        return bootstrap_partitions(self, X, how, statistic)

    def prediction_interval(
        self,
        X: ArrayLike,
        *,
        level: float = 0.9,
        method: str = "adaptive",
        weights: Any = None,
        X_calibration: ArrayLike | None = None,
        y_calibration: ArrayLike | None = None,
        calibration: str | None = None,
        groups: ArrayLike | None = None,
    ) -> PredictionInterval:
        """Compute prediction intervals of y at new rows, calibrated on held-out rows.

        Parameters
        ----------
        X : array_like of shape (m, d)
            Evaluation points, in memory.
        level : float, default=0.9
            Coverage of the intervals.
        method : {"adaptive", "split"}, default="adaptive"
            Others need the rows themselves.
        weights, X_calibration, y_calibration, calibration, groups
            As of `NadarayaWatsonRegressor.prediction_interval` of a model on chunks; in memory.

        Returns
        -------
        PredictionInterval
            That of `NadarayaWatsonRegressor` fitted to the same rows in chunks, up to rounding.

        Raises
        ------
        TypeError
            If X is a Dask collection, or the method needs the rows.
        ValueError
            As of `NadarayaWatsonRegressor.prediction_interval`.

        Warns
        -----
        InferenceWarning
            If there are too few rows for the level, or intervals are infinite.
        EmptyWindowWarning, ExtrapolationWarning
            As `predict`.

        Notes
        -----
        Some thousand rows are drawn from all partitions, and brought here. Then all others are gone through once.

        Examples
        --------
        >>> import dask.array
        >>> from kernpool import DaskNadarayaWatsonRegressor
        >>> X = dask.array.linspace(0.0, 1.0, 1000, chunks=300)[:, None]
        >>> model = DaskNadarayaWatsonRegressor(bandwidth=0.1).fit(X, X[:, 0] ** 2)
        >>> found = model.prediction_interval([[0.5]], method="split")
        >>> found.n_calibration, bool(found.lower[0] < 0.25 < found.upper[0])
        (250.0, True)
        """
        check_is_fitted(self)
        return interval_of_source(
            self, PartitionSource(self), X, level=level, method=method, weights=weights, X_calibration=X_calibration,
            y_calibration=y_calibration, calibration=calibration, groups=groups,
        )  # fmt: skip

    def get_prediction(self, X: Any = None, **options: Any) -> NoReturn:  # noqa: ARG002  # as all others are called
        """Raise TypeError, since standard errors need the rows in memory; the message says what to do instead."""
        refuse_without_rows(self, "standard errors, confidence intervals, summaries and tests need")

    confidence_interval = summary = significance_test = get_prediction

    def conditional_distribution(self, X: ArrayLike, *, y_bandwidth: Any = None) -> ConditionalDistribution:
        """Return the conditional distribution of y at new rows, whose questions are passes over all partitions.

        Parameters
        ----------
        X : array_like of shape (m, d)
            Evaluation points, in memory.
        y_bandwidth : float or array_like of shape (c,), optional
            Smooths the distribution in y; a sample of the rows in memory finds one.

        Returns
        -------
        ConditionalDistribution
            With the methods `cdf`, `pdf`, `pit` and, without `y_bandwidth`, `quantile` and `interval`; others need the
            rows in memory.

        Raises
        ------
        TypeError
            If X is None or a Dask collection, or `y_bandwidth` the name of a rule.
        ValueError
            If `y_bandwidth` is not positive.

        Warns
        -----
        ExtrapolationWarning
            If rows of X are far beyond the training rows; `kernpool.ExtrapolationWarning` has the rule.
        """
        check_is_fitted(self)
        if X is None:
            refuse_without_rows(self, "leave-one-out distributions of its training rows need")
        if is_dask_collection(X):
            raise TypeError(
                "X must be in memory for distributions, which take several passes; compute it, or some of it"
            )
        model: Any = self
        partitions = model.partitions_
        widths = None if y_bandwidth is None else given_y_bandwidths(y_bandwidth, partitions.outputs)
        asked = asked_of(model._recipe(model.bandwidth_), unshared(read_query(self, X)), partitions.names)
        ask = AskPartitions(partitions, model.client_, RETRIES)
        outcomes = ReadOutcomes(asked, ask, partitions.outputs, partial(refuse_without_rows, self))
        return ConditionalDistribution(outcomes, partitions.flat, widths)

    def quantile(self, X: ArrayLike, levels: ArrayLike = 0.5) -> Array:
        """Compute conditional quantiles of y at new rows, in a few passes over all partitions.

        Parameters
        ----------
        X : array_like of shape (m, d)
            Evaluation points, in memory.
        levels : float or array_like of shape (l,), default=0.5
            Quantile orders, probabilities in any order; by default the conditional median.

        Returns
        -------
        ndarray of shape (m,), (m, l), (m, c) or (m, c, l)
            As of `NadarayaWatsonRegressor.quantile`.

        Raises
        ------
        TypeError
            If X is a Dask collection.
        ValueError
            If a level is not between 0 and 1.

        Warns
        -----
        EmptyWindowWarning
            If windows are empty and `empty` is ``"nearest"``, the default, or ``"nan"``.
        ExtrapolationWarning
            If rows of X are far beyond the training rows; `kernpool.ExtrapolationWarning` has the rule.
        """
        return self.conditional_distribution(X).quantile(levels)


Places = list[NDArray[np.intp]]


def read_query(model: Any, X: Any, *, warn: bool = True) -> NDArray[np.float64]:
    """Convert queries in memory to an array with the columns of the model; warn of extrapolation if `warn`."""
    table = as_table(X, vars(model).get("n_features_in_"))
    query = np.asarray(read_inputs(model, table, model.encoding_, reset=False)[0], dtype=np.float64)
    if warn and may_extrapolate(model):
        if "key_range_" not in vars(model):  # the bandwidth was given, and no row has been looked at
            blocks = model.partitions_.blocks
            ranges = compute([delayed(_range_of)(block) for block in blocks], model.client_, RETRIES)
            model.key_range_ = _joined_ranges(ranges)
        low, high = model.key_range_
        names = vars(model).get("feature_names_in_")
        reach = reach_of_range(low, high, *window_of(model))
        warn_of_extrapolation(reach, query, low, high, names, kinds=kinds_of(model))
    return query


def watch_blocks(model: Any, X: Any) -> Any:
    """Return the queries as a Dask array that warns of extrapolation when a block is computed.

    X is returned as it is for a model that cannot extrapolate (`may_extrapolate`).
    """
    if not may_extrapolate(model):
        return X
    key_range = vars(model).get("key_range_")
    if key_range is None:  # the bandwidth was given, and no row has been looked at
        key_range = delayed(_joined_ranges)([delayed(_range_of)(block) for block in model.partitions_.blocks])
    names = vars(model).get("feature_names_in_")
    options = {"key_range": key_range, "window": window_of(model), "names": names, "kinds": kinds_of(model)}
    return X.map_blocks(_watched, **options, dtype=X.dtype, meta=X._meta)


def _joined_ranges(ranges: list[Any]) -> Any:
    return joined_ranges([part for part in ranges if part is not None])


def _watched(query: NDArray[Any], key_range: Any, window: Any, names: Any, kinds: Any) -> NDArray[Any]:
    low, high = key_range
    warn_of_extrapolation(reach_of_range(low, high, *window), np.asarray(query), low, high, names, kinds=kinds)
    return query


def kinds_of(model: Any) -> Sequence[Kind] | None:
    """Return the kinds (such as numbers or dates) of the training columns; None if all are numeric."""
    return None if model.encoding_ is None else model.encoding_.kinds


def count_rows(partitions: Partitions, client: Any) -> tuple[Partitions, int]:
    """Count the rows of partitions where unknown; return the counted partitions and the number of key columns."""
    rows = list(partitions.rows)
    unknown = [i for i, size in enumerate(rows) if size is None]
    if not unknown and partitions.names is None:
        unknown = [next((i for i, size in enumerate(rows) if size), 0)]
    described = compute([delayed(_describe)(partitions.blocks[i]) for i in unknown], client, RETRIES)
    for i, (size, _) in zip(unknown, described, strict=True):
        rows[i] = size
    if not sum(filter(None, rows)):
        raise ValueError("there are no rows: all partitions are empty")
    columns = max(count for _, count in described) if partitions.names is None else len(partitions.names)
    return replace(partitions, rows=tuple(rows)), columns


def draw_sample(partitions: Partitions, size: int, seed: int, client: Any) -> SearchSample | None:
    """Draw a random sample of at most `size` rows of positive weight, which does not depend on the partitioning.

    Tasks draw some more rows than are needed in all; where weights of zero make them too few, they draw once more.
    """
    sizes = [rows or 0 for rows in partitions.rows]
    starts, limit = np.cumsum([0, *sizes]).tolist(), min(1.0, 4.0 * (size + 16) / sum(sizes))
    while True:
        tasks = [
            delayed(_draw_from)(block, size, seed, first, limit)
            for block, rows, first in zip(partitions.blocks, sizes, starts[:-1], strict=True)
            if rows
        ]
        sample = join(compute(tasks, client, RETRIES), size)
        if limit == 1.0 or sample is None or len(sample.key) == min(size, sample.rows):
            return sample
        limit = 1.0


def drawn_indices(partitions: Partitions, most: int | None, random_state: Any) -> Places:
    """Draw at most `most` rows (None: all), and return the indices of these rows within each partition."""
    sizes = [rows or 0 for rows in partitions.rows]
    ends, n = np.cumsum(sizes), sum(sizes)
    if most is None or n <= most:
        return [np.arange(rows) for rows in sizes]
    generator = np.random.default_rng(check_random_state(random_state).randint(1 << 31))
    drawn = np.sort(generator.choice(n, most, replace=False, shuffle=False))  # no permutation of n in memory
    return [drawn[(drawn >= end - rows) & (drawn < end)] - (end - rows) for rows, end in zip(sizes, ends, strict=True)]


def fetch_all(partitions: Partitions, client: Any) -> Chunk:
    """Load the rows of all partitions into memory, as one chunk."""
    pairs = zip(partitions.blocks, drawn_indices(partitions, None, None), strict=True)
    rows = joined(compute([delayed(draw_rows)(block, rows) for block, rows in pairs if len(rows)], client, RETRIES))
    if rows is None:
        raise ValueError("there are no rows: all partitions are empty")
    return rows


def _draw_from(block: Any, size: int, seed: int, first: int, limit: float) -> SearchSample | None:
    """Draw a random sample of the rows of one block, in a Dask task."""
    return draw(read_block(block), size, seed, first=first, limit=limit)


def _range_of(block: Any) -> NDArray[np.float64] | None:
    """Return the minimum and maximum of each key column of a block, in a Dask task; None without rows."""
    ranges = [range_of(chunk.key) for chunk in read_block(block)]
    return joined_ranges(ranges) if ranges else None


def _describe(block: Any) -> tuple[int, int]:
    """Return the number of rows and the number of key columns of a block, in a Dask task."""
    rows = columns = 0
    for chunk in read_block(block):
        rows, columns = rows + len(chunk.key), chunk.key.shape[1]
    return rows, columns


class PartitionSource:
    """Source of training rows for prediction intervals: the partitions that a Dask regressor was fitted to.

    Parameters
    ----------
    model : DaskNadarayaWatsonRegressor
        Fitted.
    """

    def __init__(self, model: Any) -> None:
        self._model, self._partitions, self._client = model, model.partitions_, model.client_
        self.recipe = model._recipe(model.bandwidth_)
        self.outputs, self.flat = self._partitions.outputs, self._partitions.flat

    def read(self, X: ArrayLike, *, warn: bool = True) -> Array:
        """Convert evaluation points in memory to an array with the columns of the model; refuse Dask collections."""
        if is_dask_collection(X):
            raise TypeError("X must be in memory for prediction intervals; compute it, or some of it")
        return read_query(self._model, X, warn=warn)

    def draw(self, size: int, seed: int) -> SearchSample | None:
        """Draw a uniform random sample of at most `size` training rows, in Dask tasks."""
        return draw_sample(self._partitions, size, seed, self._client)

    def sums(self, query: Array, without: UniformRange | None) -> Sums:
        """Compute kernel sums at the queries over all training rows outside the random set `without`, in Dask tasks."""
        if without is None:
            return PartitionPairs(self._partitions, self._client, RETRIES).reduce(self.recipe, query)
        asked, center = QueryBatch.of(self.recipe, query), center_task(self._partitions)
        state, center = compute([self._sums_task(asked, center, without), center], self._client, RETRIES)

        def fill(rows: NDArray[np.intp]) -> Array:
            limit = self.recipe.empty
            return quotient(
                *compute([self._sums_task(asked.at(rows, limit), center, without, limit)], self._client, RETRIES)
            )

        return asked.sums(state, center, self.flat, fill=fill)

    def _sums_task(self, asked: QueryBatch, center: Any, without: UniformRange, limit: str | None = None) -> Any:
        """Return the Dask task that computes kernel sums over all training rows outside the random set `without`."""
        sent = sent_once(asked)
        firsts = np.cumsum([0, *self._partitions.rows]).tolist()
        states = [
            delayed(_state_without)(sent, block, center, self.outputs, without, first)
            for block, first in zip(self._partitions.blocks, firsts[:-1], strict=True)
        ]
        return merge_tree(states, limit)


def _state_without(
    asked: QueryBatch, block: Any, center: Array | None, outputs: int, numbers: UniformRange, first: int
) -> PoolState:
    """Compute kernel sums over the rows of a block outside the random set `numbers`, in a Dask task."""
    return block_state(asked, ChunksWithout(read_block(block), numbers, first), center, outputs)


def refuse_without_rows(model: Any, what: str) -> NoReturn:
    """Raise TypeError because a method needs the rows in memory, and explain what to do instead."""
    raise TypeError(
        f"{type(model).__name__} keeps references to its rows, and {what} the rows themselves; fit "
        "NadarayaWatsonRegressor to a sample of them in memory, with bandwidth=model.bandwidth_, or use "
        "model.to_local() where all of them fit; model.bootstrap(X) resamples on the cluster"
    )


def bootstrap_partitions(model: Any, X: ArrayLike, how: Resampling, statistic: Callable[[Array], Any] | None) -> Array:
    """Bootstrap a fit to Dask partitions; parameters as in `DaskNadarayaWatsonRegressor.bootstrap`."""
    asked, partitions = QueryBatch.of(model._recipe(model.bandwidth_), read_query(model, X)), model.partitions_
    center, seed = center_task(partitions), random_draws.as_seed(how.random_state)
    how.check_request(statistic, len(asked) * partitions.outputs)
    firsts = np.cumsum(
        [0, *compute([delayed(_unit_rows)(block) for block in partitions.blocks], model.client_, RETRIES)]
    )
    states = [
        delayed(_resampled)(asked, block, center, partitions.outputs, seed, int(first), how.n_resamples)
        for block, first in zip(partitions.blocks, firsts[:-1], strict=True)
    ]
    state, found = compute([merge_tree(states), center], model.client_, RETRIES)
    return collect_states(state, asked, found, partitions.flat, how, statistic)


def _unit_rows(block: Any) -> int:
    """Return the sum of the frequency weights of the rows of a block, in a Dask task."""
    return sum(unit_rows(chunk)[1] for chunk in read_block(block))


def _resampled(
    asked: QueryBatch, block: Any, center: Array | None, outputs: int, seed: int, first: int, n_resamples: int
) -> PoolState:
    """Return the kernel sums of a block in each bootstrap resample of its rows, in a Dask task.

    They are in one state, one resample after the other.
    """
    state = empty_state(n_resamples * len(asked), asked.layout(outputs).width)
    if center is None:
        return state
    return resampled_state(state, asked, read_block(block), center, seed, first, n_resamples)[0]


# after kernpool.dask.pool, which says what to install
# isort: split
