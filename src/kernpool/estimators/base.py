"""What both estimators share: training rows become keys and values, new rows become queries."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted, validate_data

from kernpool.algorithms.threads import resolve_n_jobs
from kernpool.bandwidth import RULES, LeaveOneOut, leave_one_out, rule_of_thumb, search_common_factor
from kernpool.checks import as_bandwidth, as_key_weight, refuse_text
from kernpool.kernels import Kernel, check_convention, convert_bandwidth, get_kernel
from kernpool.plan import check_algorithm, choose
from kernpool.pool import pool, pooling_weights, weight_rows
from kernpool.problem import Problem, as_tol
from kernpool.progress import current_progress
from kernpool.similarity import check_composition
from kernpool.state import check_empty

Array = NDArray[np.float64]

UNUSUAL_MEAN_WEIGHT = 10.0


class KernelSmoother(BaseEstimator):  # type: ignore[misc]  # scikit-learn ships no types
    """Fit bandwidths to pairs, pool, and show the weights. Subclasses say what the values are."""

    kernel: str | Kernel
    bandwidth: Any
    bandwidth_convention: str
    composition: str
    algorithm: str
    tol: float | None
    empty: str
    n_jobs: int | None

    def _fit_pairs(self, X: Array, value: Array, sample_weight: ArrayLike | None) -> None:
        """Store keys and values and find the bandwidth."""
        check_empty(self.empty)
        check_convention(self.bandwidth_convention)
        check_composition(self.composition)
        check_algorithm(self.algorithm)
        as_tol(self.tol)
        resolve_n_jobs(self.n_jobs)
        kernel = get_kernel(self.kernel)
        weight = None if sample_weight is None else _frequencies(sample_weight, len(X))
        found = self._find_bandwidth(kernel, X, value, weight)
        # Nothing is assigned before everything is known, so that a failed refit leaves the old fit whole.
        for stale in ("loo_error_", "loo_empty_windows_", "bandwidth_search_"):
            self.__dict__.pop(stale, None)
        self.__dict__ |= found
        self.key_, self.value_, self.key_weight_ = _own(X), _own(value), weight

    def _find_bandwidth(self, kernel: Kernel, X: Array, value: Array, weight: Array | None) -> dict[str, Any]:
        """Return `bandwidth_`, and the results of the search if there was one."""
        if not isinstance(self.bandwidth, str):
            given = as_bandwidth(self.bandwidth, X.shape[1])
            return {"bandwidth_": convert_bandwidth(given, kernel, source=self.bandwidth_convention)}
        if self.bandwidth not in ("loo", *RULES):
            raise ValueError(
                f"bandwidth must be a positive number, one per column, or one of 'loo', {', '.join(map(repr, RULES))}; "
                f"got {self.bandwidth!r}"
            )
        times = np.ones(len(X)) if weight is None else weight
        kept = times > 0
        X, value, times = X[kept].astype(np.float64), value[kept].astype(np.float64), times[kept]
        if self.bandwidth in RULES:
            return {"bandwidth_": rule_of_thumb(X, times, rule=self.bandwidth, kernel=kernel)}
        if len(X) == 1 and times[0] <= 1:
            warnings.warn(
                "bandwidth='loo' needs more than one row to leave one out; using the rule of Scott instead",
                UserWarning,
                stacklevel=5,
            )
            rule = rule_of_thumb(X, times, kernel=kernel)
            return {"bandwidth_": rule, "loo_error_": np.nan, "loo_empty_windows_": 0}
        search = search_common_factor(
            X,
            value.reshape(len(value), -1),
            times,
            kernel=kernel,
            composition=self.composition,
            algorithm=self.algorithm,
            n_jobs=self.n_jobs,
            progress=current_progress(),
        )
        return {
            "bandwidth_": search.bandwidth,
            "loo_error_": search.error,
            "loo_empty_windows_": search.empty_windows,
            "bandwidth_search_": search,
        }

    @property
    def _similarity(self) -> dict[str, Any]:
        return {
            "kernel": self.kernel,
            "bandwidth": self.bandwidth_,
            "composition": self.composition,
            "key_weight": self.key_weight_,
        }

    def _query(self, X: ArrayLike) -> Array:
        check_is_fitted(self)
        query: Array = validate_data(self, X, dtype=[np.float64, np.float32], reset=False)
        refuse_text("X", X)
        return query

    def _pool(self, X: ArrayLike) -> NDArray[Any]:
        return pool(
            self._query(X),
            self.key_,
            self.value_,
            algorithm=self.algorithm,
            tol=self.tol,
            empty=self.empty,  # type: ignore[arg-type]  # checked in fit
            n_jobs=self.n_jobs,
            progress=current_progress(),
            **self._similarity,
        )

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
            If the weights need more than `max_bytes`.
        """
        return pooling_weights(
            self._query(X),
            self.key_,
            empty=self.empty,  # type: ignore[arg-type]  # checked in fit
            max_bytes=max_bytes,
            **self._similarity,
        )

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
        problem = self._problem(X)
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
            support; there `effective_sample_size` shows extrapolation.
        """
        problem = self._problem(X)
        return choose(problem, self.algorithm).reduce(problem, n_jobs=self.n_jobs).denominator > 0

    def leave_one_out(self) -> LeaveOneOut:
        """Predict every training row from the others, at the fitted bandwidth.

        Returns
        -------
        LeaveOneOut
            With `prediction` of shape (n, c), `error` and `empty_windows`. For a row of weight 3 one unit is left out.
        """
        check_is_fitted(self)
        problem = Problem.from_arrays(self.key_, self.key_, self.value_, exclude_self=True, **self._similarity)
        return leave_one_out(problem, algorithm=self.algorithm, n_jobs=self.n_jobs, progress=current_progress())

    def _problem(self, X: ArrayLike) -> Problem:
        return Problem.from_arrays(self._query(X), self.key_, np.zeros(len(self.key_)), **self._similarity)


def _own(array: Array) -> Array:
    """Return an array that the caller cannot change; read-only ones, memory maps among them, are not copied."""
    return array.copy() if array.flags.writeable else array


def _frequencies(sample_weight: ArrayLike, n: int) -> Array:
    given = np.asarray(sample_weight)
    try:
        weight = as_key_weight(np.broadcast_to(given, (n,)) if given.ndim == 0 else given, (n,)).copy()
    except (TypeError, ValueError) as error:
        raise type(error)(str(error).replace("key_weight", "sample_weight")) from None
    mean = weight[weight > 0].mean()
    if not 1 / UNUSUAL_MEAN_WEIGHT <= mean <= UNUSUAL_MEAN_WEIGHT:
        warnings.warn(
            f"sample_weight has mean {mean:.3g}: weights are read as frequencies, a weight of 3 as three equal rows, "
            "and their sum as the number of rows. For survey or precision weights divide by the mean first",
            UserWarning,
            stacklevel=4,
        )
    return weight
