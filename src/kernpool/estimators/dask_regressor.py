"""Nadaraya-Watson regression on a Dask cluster: what is fitted are references to the rows, and a bandwidth."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.metrics import r2_score
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from kernpool.core.empty import check_empty
from kernpool.dask.cluster import compute, find_client
from kernpool.dask.leave_one_out import LeaveOneOutError, draw_rows, joined, leave_one_out_error
from kernpool.dask.partitions import Partitions, as_dask_array, as_partitions, is_frame, read_block
from kernpool.dask.pool import RETRIES, pool_partitions
from kernpool.data.checks import as_bandwidth, refuse_misread
from kernpool.data.chunks.base import Chunk, Chunks
from kernpool.data.chunks.opening import open_chunks
from kernpool.estimators.nadaraya_watson import NadarayaWatsonRegressor
from kernpool.estimators.search_sample import DEFAULT_SEARCH_ROWS, Sample, bandwidth_of_sample, draw, join, seed_of
from kernpool.estimators.smoother import NAMED_BANDWIDTHS
from kernpool.kernels import Kernel, check_convention, convert_bandwidth, get_kernel
from kernpool.pooling.recipe import Recipe

# after kernpool.dask, which says what to install
# isort: split
from dask.base import is_dask_collection
from dask.delayed import delayed

Array = NDArray[np.float64]

ROWS_FOR_LEAVE_ONE_OUT = 100_000  # a pass over their pairs: a minute on one processor at worst
PARTITIONS_FOR_LEAVE_ONE_OUT = 32  # whose square is the number of tasks of a pass, at some milliseconds each


class DaskNadarayaWatsonRegressor(RegressorMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn ships no types
    r"""Nadaraya-Watson (local constant) kernel regression on Dask collections and files that workers read.

    .. math:: \hat y(x) = \sum_j w_j K((x - x_j)/h)\, y_j \Big/ \sum_j w_j K((x - x_j)/h)

    Parameters
    ----------
    kernel, bandwidth, bandwidth_convention, composition, common_factor, random_state, algorithm, tol, empty
        As for `NadarayaWatsonRegressor`. A bandwidth by name is found on rows drawn from all partitions, and brought to
        the number of all rows by the rate :math:`n^{-1/(4 + d)}`; see Notes.
    unordered, ordered, ordered_by, unordered_kernel, ordered_kernel, smoothing, unseen
        There are no categorical columns here yet: leave them as they are.
    max_search_rows : int or None, default=None
        How many rows are drawn; None is 10 000, for which a search takes seconds.
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
        Leave-one-out mean squared error over all rows at `bandwidth_`; only with ``bandwidth="loo"``, and where there
        are no more rows than are drawn, or at most 100 000 in at most 32 partitions.
    n_rows_ : int
        Number of training rows.
    n_features_in_ : int
        Number of columns.
    feature_names_in_ : ndarray of str
        Names of the columns, if they have any.
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
        client: Any = None,
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
        self.client = client

    def fit(
        self, X: Any, y: Any = None, sample_weight: Any = None, *, target: Any = None, features: Any = None
    ) -> Self:
        """Keep references to the training rows and find the bandwidth.

        Parameters
        ----------
        X : Dask array of shape (n, d), Dask dataframe, Chunks, or str or Path
            Inputs. Chunks, and files by name, bring their outputs and weights along.
        y : Dask array or series of shape (n,) or (n, c), or str
            Outputs, or the name of their column in X.
        sample_weight : Dask array or series of shape (n,), or str
            Frequencies of rows, or the name of their column in X.
        target, features : str or sequence of str, optional
            Columns of X, as in `open_chunks`; `target` in place of y.

        Returns
        -------
        self
            The estimator, fitted.

        Raises
        ------
        TypeError, ValueError
            If a parameter is out of its range, or X cannot be read by workers.
        """
        self._check_parameters()
        if isinstance(y, str):
            y, target = None, y
        if isinstance(X, str | Path):
            X, sample_weight = open_chunks(X, None, sample_weight, target=target, features=features), None
        if isinstance(X, Chunks) and (y is not None or sample_weight is not None):
            raise TypeError("chunks bring their outputs and weights along, so y and sample_weight must be None")
        partitions = as_partitions(X, y, sample_weight, target=target, features=features)
        partitions, columns = self._counted(partitions)
        found = self._find_bandwidth(partitions, columns)
        # Nothing is assigned before everything is known, so that a failed refit leaves the old fit whole.
        for stale in ("loo_error_", "loo_empty_windows_", "feature_names_in_"):
            self.__dict__.pop(stale, None)
        self.__dict__ |= found
        self.partitions_, self.n_rows_, self.n_features_in_ = partitions, sum(filter(None, partitions.rows)), columns
        if partitions.names is not None:
            self.feature_names_in_ = np.asarray(partitions.names, dtype=object)
        return self

    def predict(self, X: Any) -> Any:
        """Predict from the training rows.

        Parameters
        ----------
        X : array_like or Dask array of shape (m, d), or Dask dataframe
            Queries.

        Returns
        -------
        ndarray or Dask array of shape (m,) or (m, c)
            In memory for queries in memory; for Dask queries a Dask array, of which nothing is computed yet.
        """
        check_is_fitted(self)
        if not is_dask_collection(X):
            given = X
            X = validate_data(self, X, dtype=np.float64, reset=False)
            refuse_misread("X", given)
        else:
            X = as_dask_array(X[list(self.partitions_.names)] if is_frame(X) and self.partitions_.names else X)
            if X.ndim != 2 or X.shape[1] != self.n_features_in_:
                raise ValueError(f"X must have {self.n_features_in_} columns, as in fit, got shape {X.shape}")
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
        for i, array in zip(
            lazy, compute([given[i] for i in lazy], self.client_, RETRIES) if lazy else (), strict=True
        ):
            given[i] = array
        return float(r2_score(given[0], given[1], sample_weight=given[2]))

    def leave_one_out_error(self, max_rows: int | None = None) -> float:
        r"""Predict rows from all others, at the fitted bandwidth, on the cluster.

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
        places = self._places(self.partitions_, self.n_rows_ if max_rows is None else max_rows)
        return self._loo(self.partitions_, places, self.bandwidth_).error

    def to_local(self) -> NadarayaWatsonRegressor:
        """Return the same model in memory, with all rows.

        Returns
        -------
        NadarayaWatsonRegressor
            With the same `bandwidth_`, and predictions that are equal up to rounding.
        """
        check_is_fitted(self)
        rows = self._draw(self.partitions_, self._places(self.partitions_, self.n_rows_))
        given = {name: value for name, value in self.get_params(deep=False).items() if name != "client"}
        model = NadarayaWatsonRegressor(**given | {"bandwidth": self.bandwidth_, "bandwidth_convention": "support"})
        value = rows.value[:, 0] if self.partitions_.flat else rows.value
        model.fit(rows.key, value, None if np.all(rows.weight == 1.0) else rows.weight)
        for name in ("loo_error_", "loo_empty_windows_", "feature_names_in_"):
            if hasattr(self, name):
                setattr(model, name, getattr(self, name))
        model.set_params(bandwidth=self.bandwidth, bandwidth_convention=self.bandwidth_convention)
        return model

    @property
    def client_(self) -> Any:
        """The cluster that is used: `client`, or that of the latest client; None for Dask's schedulers without one."""
        return find_client(self.client)

    def __getstate__(self) -> dict[str, Any]:
        return dict(super().__getstate__()) | {"client": None}  # a connection cannot be saved

    def __sklearn_clone__(self) -> Self:
        given = self.get_params(deep=False)
        return type(self)(**{name: value if name == "client" else deepcopy(value) for name, value in given.items()})

    def _check_parameters(self) -> None:
        check_empty(self.empty)
        check_convention(self.bandwidth_convention)
        for name in ("unordered", "ordered", "smoothing"):
            given = getattr(self, name)
            if given is not None and np.size(given):
                raise ValueError(f"{name} must be None: categorical columns are for NadarayaWatsonRegressor, in memory")
        if isinstance(self.bandwidth, str) and self.bandwidth not in NAMED_BANDWIDTHS:
            raise ValueError(
                "bandwidth must be a positive number, one per column, or one of "
                f"{', '.join(map(repr, NAMED_BANDWIDTHS))}; got {self.bandwidth!r}"
            )
        most = self.max_search_rows
        if most is not None and (isinstance(most, bool) or not isinstance(most, int | np.integer) or most < 2):
            raise ValueError(f"max_search_rows must be None, for 10 000, or a number of rows from 2 on, got {most!r}")
        self._recipe(1.0)

    def _recipe(self, bandwidth: Any) -> Recipe:
        options = {name: getattr(self, name) for name in ("composition", "tol", "algorithm", "empty")}
        return Recipe.of(self.kernel, bandwidth, **options, n_jobs=1)

    def _counted(self, partitions: Partitions) -> tuple[Partitions, int]:
        """Return partitions that know how many rows they have, and the number of columns of keys."""
        rows = list(partitions.rows)
        unknown = [i for i, size in enumerate(rows) if size is None]
        if not unknown and partitions.names is None:
            unknown = [next((i for i, size in enumerate(rows) if size), 0)]
        described = compute([delayed(_describe)(partitions.blocks[i]) for i in unknown], self.client_, RETRIES)
        for i, (size, _) in zip(unknown, described, strict=True):
            rows[i] = size
        if not sum(filter(None, rows)):
            raise ValueError("there are no rows: all partitions are empty")
        columns = max(count for _, count in described) if partitions.names is None else len(partitions.names)
        return replace(partitions, rows=tuple(rows)), columns

    def _find_bandwidth(self, partitions: Partitions, columns: int) -> dict[str, Any]:
        if not isinstance(self.bandwidth, str):
            given = as_bandwidth(self.bandwidth, columns)
            given = convert_bandwidth(given, get_kernel(self.kernel), source=self.bandwidth_convention)
            return {"bandwidth_": given, "bandwidth_note_": "as given"}
        parameters = {name: value for name, value in self.get_params(deep=False).items() if name != "client"}
        model = NadarayaWatsonRegressor(**parameters)
        sample = self._sample(partitions, self.max_search_rows or DEFAULT_SEARCH_ROWS)
        search = bandwidth_of_sample(model, get_kernel(self.kernel), sample, partitions.flat)
        found = {name: search[name] for name in ("bandwidth_", "bandwidth_note_")}
        if self.bandwidth != "loo":
            return found
        n, whole = sum(filter(None, partitions.rows)), sample is not None and len(sample.key) == sample.rows
        if whole:
            found |= {name: search[name] for name in ("loo_error_", "loo_empty_windows_")}
        elif n <= ROWS_FOR_LEAVE_ONE_OUT and len(partitions.blocks) <= PARTITIONS_FOR_LEAVE_ONE_OUT:
            error = self._loo(partitions, self._places(partitions, n), found["bandwidth_"])
            found |= {"loo_error_": error.error, "loo_empty_windows_": error.empty_windows}
        return found

    def _sample(self, partitions: Partitions, size: int) -> Sample | None:
        """Draw rows: some more than are needed in all, and where weights of zero make them too few, once more."""
        sizes, seed = [rows or 0 for rows in partitions.rows], seed_of(self.random_state)
        starts, limit = np.cumsum([0, *sizes]).tolist(), min(1.0, 4.0 * (size + 16) / sum(sizes))
        while True:
            tasks = [
                delayed(_draw_from)(block, size, seed, first, limit)
                for block, rows, first in zip(partitions.blocks, sizes, starts[:-1], strict=True)
                if rows
            ]
            sample = join(compute(tasks, self.client_, RETRIES), size)
            if limit == 1.0 or sample is None or len(sample.key) == min(size, sample.rows):
                return sample
            limit = 1.0

    def _loo(self, partitions: Partitions, places: list[NDArray[np.intp]], bandwidth: Array) -> LeaveOneOutError:
        recipe = self._recipe(bandwidth)
        return leave_one_out_error(partitions, places, recipe, client=self.client_, retries=RETRIES)

    def _places(self, partitions: Partitions, most: int) -> list[NDArray[np.intp]]:
        """Return for each partition which of its rows are drawn; all, if there are no more."""
        sizes = [rows or 0 for rows in partitions.rows]
        ends, n = np.cumsum(sizes), sum(sizes)
        if n <= most:
            return [np.arange(rows) for rows in sizes]
        generator = np.random.default_rng(check_random_state(self.random_state).randint(1 << 31))
        drawn = np.sort(generator.choice(n, most, replace=False, shuffle=False))  # no permutation of n in memory
        return [
            drawn[(drawn >= end - rows) & (drawn < end)] - (end - rows) for rows, end in zip(sizes, ends, strict=True)
        ]

    def _draw(self, partitions: Partitions, places: list[NDArray[np.intp]]) -> Chunk:
        tasks = [
            delayed(draw_rows)(block, own) for block, own in zip(partitions.blocks, places, strict=True) if len(own)
        ]
        rows = joined(compute(tasks, self.client_, RETRIES))
        if rows is None:
            raise ValueError("there are no rows: all partitions are empty")
        return rows


def _draw_from(block: Any, size: int, seed: int, first: int, limit: float) -> Sample | None:
    """Draw rows of a block, in a task."""
    return draw(read_block(block), size, seed, first=first, limit=limit)


def _describe(block: Any) -> tuple[int, int]:
    """Return the numbers of rows and of columns of keys of a block, in a task."""
    rows = columns = 0
    for chunk in read_block(block):
        rows, columns = rows + len(chunk.key), chunk.key.shape[1]
    return rows, columns
