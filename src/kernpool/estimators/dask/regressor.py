"""Nadaraya-Watson regression on a Dask cluster: a fit stores references to the rows, and a bandwidth."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

import numpy as np
from dask.base import is_dask_collection
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.metrics import r2_score
from sklearn.utils.validation import check_is_fitted

from kernpool.dask.leave_one_out import LeaveOneOutError, leave_one_out_error
from kernpool.dask.partitions import Partitions, as_dask_array, as_partitions, in_days, is_frame, select
from kernpool.dask.pool import RETRIES, compute, find_client, pool_partitions
from kernpool.data import TIME_KINDS, as_real_array
from kernpool.data.chunks.base import Chunks
from kernpool.data.chunks.opening import open_chunks
from kernpool.data.encoding import Encoding
from kernpool.estimators.bandwidth import DEFAULT_SEARCH_ROWS, SearchDraw, bandwidth_of_sample, given_bandwidth, seed_of
from kernpool.estimators.dask.methods import (
    DaskDistribution,
    DaskInference,
    count_rows,
    draw_sample,
    fetch_all,
    kinds_of,
    places_of,
    read_query,
    refuse_without_rows,
    watch_blocks,
)
from kernpool.estimators.parameters import NamedCalls, check_parameters, search_parameters
from kernpool.estimators.regressors import NadarayaWatsonRegressor
from kernpool.estimators.rows import as_outputs, fitted_labels, keep_labels
from kernpool.execution.messages import check_flag
from kernpool.kernels import Kernel, get_kernel
from kernpool.pooling.recipe import Recipe

# after kernpool.dask.partitions, which says what to install
# isort: split

Array = NDArray[np.float64]

ROWS_FOR_LEAVE_ONE_OUT = 100_000  # a pass over their pairs: a minute on one processor at worst
PARTITIONS_FOR_LEAVE_ONE_OUT = 32  # whose square is the number of tasks of a pass, at some milliseconds each


class DaskNadarayaWatsonRegressor(DaskInference, DaskDistribution, NamedCalls, RegressorMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn ships no types
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
        """Store references to the training rows and choose the bandwidth.

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
        """Predict from the training rows.

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
        """Load all rows and return the same model in memory.

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
        """Cluster in use: `client`, or the most recent client; None for Dask's local schedulers."""
        return find_client(self.client)

    def __getstate__(self) -> dict[str, Any]:
        return dict(super().__getstate__()) | {"client": None}  # a connection cannot be saved

    def __sklearn_clone__(self) -> Self:
        given = self.get_params(deep=False)
        return type(self)(**{name: value if name == "client" else deepcopy(value) for name, value in given.items()})

    def _columns_of(self, frame: Any) -> tuple[Any, dict[Any, Any]]:
        """Return the columns of a Dask dataframe that the model was fitted to, and which of them are dates."""
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
        places, recipe = places_of(partitions, max_rows, self.random_state), self._recipe(bandwidth)
        return leave_one_out_error(partitions, places, recipe, client=self.client_, retries=RETRIES)
