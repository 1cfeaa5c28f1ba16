"""What the estimators share: training rows become keys and values, new rows become queries."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted, check_X_y, validate_data

from kernpool.bandwidth import CRITERIA, RULES, LeaveOneOut, leave_one_out, rule_of_thumb, search_bandwidth
from kernpool.bandwidth.categories import NO_CATEGORIES, Categories
from kernpool.bandwidth.plugin.plugin import plugin_bandwidth
from kernpool.core.empty import check_empty
from kernpool.core.keys import Prepared
from kernpool.core.reading import as_tol
from kernpool.core.similarity import check_composition
from kernpool.data.checks import as_bandwidth, as_key_weight
from kernpool.data.columns import is_frame
from kernpool.data.frames import Encoding
from kernpool.estimators.fitted import at_least_one_column, pool_at, problem_of, recipe_of
from kernpool.execution.progress import current_progress
from kernpool.execution.threads import resolve_n_jobs
from kernpool.execution.warnings import warn_caller
from kernpool.kernels import Kernel, check_convention, convert_bandwidth, get_categorical_kernel, get_kernel
from kernpool.pooling.choice import choose
from kernpool.pooling.plan import check_algorithm
from kernpool.pooling.weights import weight_rows, weight_tables

Array = NDArray[np.float64]
Codes = NDArray[np.int64]

UNUSUAL_MEAN_WEIGHT = 10.0
NAMED_BANDWIDTHS = (*CRITERIA, "plugin", *RULES)
ROWS = ("key_", "value_", "key_weight_", "key_code_")
FOUND = ("loo_error_", "loo_empty_windows_", "relevance_", "bandwidth_search_", "bandwidth_note_")
FITTED = (*ROWS, *FOUND, "chunks_", "reference_", "_room")


class KernelSmoother(BaseEstimator):  # type: ignore[misc]  # scikit-learn ships no types
    """Fit bandwidths to pairs, pool, and show the weights. Subclasses say what the values are."""

    _degree = 0  # of the local fit
    _standardise = True  # whether the search counts several outputs in units of their standard deviations

    kernel: str | Kernel
    bandwidth: Any
    bandwidth_convention: str
    composition: str
    unordered: Any
    ordered: Any
    ordered_by: str
    unordered_kernel: Any
    ordered_kernel: Any
    smoothing: Any
    unseen: str
    common_factor: bool
    max_search_rows: int | None
    random_state: Any
    algorithm: str
    tol: float | None
    empty: str
    n_jobs: int | None

    def _encoding_for(self, X: Any) -> Encoding | None:
        """Return how categorical columns are read, None if there are none."""
        unordered = () if self.unordered is None else self.unordered
        ordered = () if self.ordered is None else self.ordered
        if not (is_frame(X) or len(unordered) or len(ordered)):
            return None
        encoding = Encoding.fit(X, unordered=unordered, ordered=ordered, ordered_by=self.ordered_by)
        return encoding if encoding.categorical else None

    def _read_table(self, X: Any, y: ArrayLike, encoding: Encoding, **options: Any) -> tuple[Array, Codes, Any]:
        """Read training rows with categorical columns: numbers, level numbers, outputs."""
        validate_data(self, X, skip_check_array=True)  # keeps names and number of columns
        numeric, code = encoding.encode(X)
        _, y = check_X_y(code, y, estimator=self, **options)
        return at_least_one_column(numeric), code, y

    def _fit_pairs(
        self,
        X: Array,
        value: Array,
        sample_weight: ArrayLike | None,
        encoding: Encoding | None = None,
        code: Codes | None = None,
    ) -> None:
        """Store keys and values and find the bandwidth."""
        kernel = self._check_parameters()
        weight = None if sample_weight is None else frequencies(sample_weight, len(X))
        code = np.zeros((len(X), 0), dtype=np.int64) if code is None else code
        categories = NO_CATEGORIES if encoding is None else self._categories_of(encoding)
        found = self._find_bandwidth(kernel, X, code, categories, value, weight)
        if "bandwidth_search_" in found:
            names = getattr(self, "feature_names_in_", None) if encoding is None else encoding.names
            if names is not None and encoding is not None:
                names = [names[i] for i in (*encoding.numeric, *encoding.categorical)]
            if names is not None and len(names) == found["relevance_"].size:
                found["bandwidth_search_"] = replace(found["bandwidth_search_"], names=tuple(map(str, names)))
        if encoding is not None and "relevance_" in found:  # in the order of the columns
            found["relevance_"] = _in_order(found["relevance_"], encoding)
        rows = {"key_": _own(X), "value_": _own(value), "key_weight_": weight, "key_code_": code}
        self._replace_fit(found | rows | {"encoding_": encoding})

    def _check_parameters(self) -> Kernel:
        """Refuse parameters out of their range, and return the kernel."""
        check_empty(self.empty)
        check_composition(self.composition)
        check_convention(self.bandwidth_convention)
        check_algorithm(self.algorithm)
        as_tol(self.tol)
        resolve_n_jobs(self.n_jobs)
        if self.unseen not in ("raise", "unlike"):
            raise ValueError(f"unseen must be 'raise' or 'unlike', got {self.unseen!r}")
        if not isinstance(self.common_factor, bool | np.bool_):
            raise ValueError(f"common_factor must be True or False, got {self.common_factor!r}")
        most = self.max_search_rows
        if most is not None and (isinstance(most, bool) or not isinstance(most, int | np.integer) or most < 2):
            raise ValueError(f"max_search_rows must be None, for all, or a number of rows from 2 on, got {most!r}")
        return get_kernel(self.kernel)

    def _replace_fit(self, fitted: dict[str, Any]) -> None:
        """Forget an earlier fit; called when everything is known, so that a failed refit leaves the old one whole."""
        for stale in FITTED:
            self.__dict__.pop(stale, None)
        self.__dict__ |= fitted | self._fresh()

    def _fresh(self) -> dict[str, Any]:
        """Return what every fit begins with, empty, and predictions fill."""
        return {"_prepared": Prepared()}

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            if name in ROWS and "chunks_" in self.__dict__:
                raise AttributeError(
                    f"this {type(self).__name__} was fitted to chunks: it knows where its rows are and does not hold "
                    f"them, so there is no {name} and only predict and score work; fit it to arrays, such as a sample "
                    "of the rows"
                )
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def _categories_of(self, encoding: Encoding) -> Categories:
        names = {"ordered": self.ordered_kernel, "unordered": self.unordered_kernel}
        kinds = [encoding.kinds[i] for i in encoding.categorical]
        kernels = [get_categorical_kernel(names[kind], ordered=kind == "ordered") for kind in kinds]
        return Categories(tuple(kernels), encoding.table_levels)

    def _find_bandwidth(
        self, kernel: Kernel, X: Array, code: Codes, categories: Categories, value: Array, weight: Array | None
    ) -> dict[str, Any]:
        """Return `bandwidth_` and `smoothing_`, and the results of the search if there was one."""
        if not isinstance(self.bandwidth, str):
            given = convert_bandwidth(
                as_bandwidth(self.bandwidth, X.shape[1]), kernel, source=self.bandwidth_convention
            )
            return {"bandwidth_": given, "smoothing_": self._given_smoothing(categories)}
        if self.bandwidth not in NAMED_BANDWIDTHS:
            raise ValueError(
                "bandwidth must be a positive number, one per column, or one of "
                f"{', '.join(map(repr, NAMED_BANDWIDTHS))}; got {self.bandwidth!r}"
            )
        times = np.ones(len(X)) if weight is None else weight
        kept = times > 0
        X, code, value, times = X[kept].astype(np.float64), code[kept], value[kept].astype(np.float64), times[kept]
        too_few = len(X) == 1 and times[0] <= 1 and self.bandwidth in CRITERIA
        if too_few:
            warn_caller(
                f"bandwidth={self.bandwidth!r} needs more than one row; using the rule of Scott instead",
            )
            rule = rule_of_thumb(X, times, kernel=kernel)
            return {
                "bandwidth_": rule,
                "smoothing_": np.zeros(len(categories)),
                "loo_error_": np.nan,
                "loo_empty_windows_": 0,
            }
        if self.bandwidth not in CRITERIA:
            return {
                "bandwidth_": self._rule(kernel, X, value, times),
                "smoothing_": self._given_smoothing(categories),
            }
        if self.smoothing is not None:
            raise ValueError(
                f"smoothing is searched for with bandwidth={self.bandwidth!r}; leave it None, or give bandwidths too"
            )
        search = search_bandwidth(
            X,
            value.reshape(len(value), -1),
            times,
            code=code,
            categories=categories,
            criterion=self.bandwidth,
            degree=self._degree,
            common_factor=self.common_factor,
            standardise=self._standardise,
            kernel=kernel,
            composition=self.composition,
            algorithm=self.algorithm,
            n_jobs=self.n_jobs,
            progress=current_progress(),
            random_state=self.random_state,
            max_search_rows=self.max_search_rows,
        )
        found = {
            "bandwidth_": search.bandwidth,
            "smoothing_": search.smoothing,
            "relevance_": search.relevance,
            "bandwidth_search_": search,
        }
        if self.bandwidth == "loo":
            found |= {"loo_error_": search.error, "loo_empty_windows_": search.empty_windows}
        return found

    def _rule(self, kernel: Kernel, X: Array, value: Array, times: Array) -> Array:
        if self.bandwidth in RULES:
            return rule_of_thumb(X, times, rule=self.bandwidth, kernel=kernel)
        if X.shape[1] != 1 or value.reshape(len(value), -1).shape[1] != 1:
            raise ValueError(
                f"bandwidth='plugin' is for one column and one output, got {X.shape[1]} columns and "
                f"{value.reshape(len(value), -1).shape[1]} outputs; use 'loo', 'aicc' or 'gcv'"
            )
        return np.array([plugin_bandwidth(X[:, 0], value.ravel(), times, kernel=kernel)])

    def _given_smoothing(self, categories: Categories) -> Array:
        """Return the smoothings that the user gave, which must go with bandwidths that are not searched for."""
        largest = categories.largest
        if self.smoothing is None and len(categories):
            raise ValueError(
                f"smoothing must be one number per categorical column, {len(categories)} in all, when bandwidth is not "
                "'loo', 'aicc' or 'gcv', which find it"
            )
        smoothing = np.zeros(0) if self.smoothing is None else np.atleast_1d(np.asarray(self.smoothing, dtype=float))
        if smoothing.shape != largest.shape:
            raise ValueError(
                f"smoothing must be one number per categorical column, {len(categories)} in all, got {self.smoothing!r}"
            )
        if not np.all((smoothing >= 0.0) & (smoothing <= largest)):
            raise ValueError(f"smoothing must lie in [0, {largest.tolist()}] column by column, got {self.smoothing!r}")
        return smoothing

    def _pool(self, X: ArrayLike) -> NDArray[Any]:
        check_is_fitted(self)
        return pool_at(self, X, self._report_rank)

    def _report_rank(self, rank: NDArray[np.intp], occupied: NDArray[np.bool_], columns: int) -> None:
        """Hear of planes that are not determined, of which a constant has none."""

    def attention_weights(self, X: ArrayLike, *, max_bytes: int = 1 << 30) -> Array:
        """Compute the weights that pooling gives to every training row.

        Parameters
        ----------
        X : array_like of shape (m, d)
            Queries.
        max_bytes : int, default=2**30
            The largest result allowed, since it has one entry per query and training row.

        Returns
        -------
        ndarray of shape (m, n)
            Row i is a probability distribution over the training rows; its product with the training outputs is the
            prediction.

        Raises
        ------
        ValueError
            If the weights need more than `max_bytes`; or a window is empty, and `empty` is ``"raise"``.

        Warns
        -----
        EmptyWindowWarning
            If a query has no training row within the kernel's support and ``empty="nan"``.
        """
        problem, empty = problem_of(self, X), recipe_of(self).empty
        weights: Array = weight_tables(lambda _: problem, empty=empty, max_bytes=max_bytes)[0]
        return weights

    def effective_sample_size(self, X: ArrayLike) -> Array:
        r"""Compute how many training rows a prediction effectively averages over.

        .. math:: n_{\text{eff}}(q) = \Big(\sum_j w_j K_j\Big)^2 \Big/ \sum_j w_j K_j^2

        Parameters
        ----------
        X : array_like of shape (m, d)
            Queries.

        Returns
        -------
        ndarray of shape (m,)
            Between 1 and n, the number of rows (the sum of the weights); 0 where the window is empty. A prediction far
            outside the data rests on one row.

        Notes
        -----
        This is Kish's effective sample size of the pooling weights. O(n m d) time in dense NumPy, O(n + m) memory.
        """
        problem = problem_of(self, X)
        times = np.ones(len(self.key_)) if self.key_weight_ is None else self.key_weight_
        kept = times > 0
        size = np.zeros(len(problem.query))
        for rows, weights in weight_rows(problem):
            squares = np.sum(weights[:, kept] ** 2 / times[kept], axis=1)
            size[rows] = np.divide(1.0, squares, where=squares > 0, out=np.zeros_like(squares))
        return size

    def support_mask(self, X: ArrayLike) -> NDArray[np.bool_]:
        """Tell which queries have training rows within the kernel's support.

        Parameters
        ----------
        X : array_like of shape (m, d)
            Queries.

        Returns
        -------
        ndarray of bool, shape (m,)
            False where the window is empty, so that `empty` decides the prediction. Always True for kernels of infinite
            support, unless levels are kept apart; there `effective_sample_size` shows extrapolation.
        """
        problem = problem_of(self, X)
        occupied = choose(problem, self.algorithm).reduce(problem, n_jobs=self.n_jobs).denominator > 0
        return np.asarray(occupied)

    def leave_one_out(self) -> LeaveOneOut:
        """Predict every training row from the others, at the fitted bandwidth.

        Returns
        -------
        LeaveOneOut
            With `prediction` of shape (n, c), `error` and `empty_windows`. For a row of weight 3 one unit is left out.
        """
        exact = replace(problem_of(self, None, exclude_self=True), tol=as_tol(None))
        return leave_one_out(exact, algorithm=self.algorithm, n_jobs=self.n_jobs, progress=current_progress())


def _in_order(relevance: Array, encoding: Encoding) -> Array:
    """Put the relevance of numeric and of categorical columns into the order of the table."""
    k = len(encoding.categorical)
    ordered = np.zeros(len(encoding.kinds))
    ordered[list(encoding.categorical)] = relevance[len(relevance) - k :]
    if encoding.numeric:
        ordered[list(encoding.numeric)] = relevance[: len(relevance) - k]
    return ordered


def _own(array: Array) -> Array:
    """Return an array that the caller cannot change; read-only ones, memory maps among them, are not copied."""
    return array.copy() if array.flags.writeable else array


def frequencies(sample_weight: ArrayLike, n: int) -> Array:
    """Return weights of rows as an array of one's own; unusual ones warn."""
    given = np.asarray(sample_weight)
    try:
        weight = as_key_weight(np.broadcast_to(given, (n,)) if given.ndim == 0 else given, (n,)).copy()
    except (TypeError, ValueError) as error:
        raise type(error)(str(error).replace("key_weight", "sample_weight")) from None
    mean = weight[weight > 0].mean()
    if not 1 / UNUSUAL_MEAN_WEIGHT <= mean <= UNUSUAL_MEAN_WEIGHT:
        warn_caller(
            f"sample_weight has mean {mean:.3g}: weights are read as frequencies, a weight of 3 as three equal rows, "
            "and their sum as the number of rows. For survey or precision weights divide by the mean first",
        )
    return weight
