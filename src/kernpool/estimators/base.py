"""What both estimators share: training rows become keys and values, new rows become queries."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted, validate_data

from kernpool.bandwidth import RULES, LeaveOneOut, leave_one_out, rule_of_thumb, search_common_factor
from kernpool.checks import as_bandwidth, as_key_weight
from kernpool.kernels import Kernel, get_kernel
from kernpool.plan import choose
from kernpool.pool import pool, pooling_weights
from kernpool.problem import Problem
from kernpool.progress import current_progress
from kernpool.similarity import check_composition
from kernpool.state import check_empty

Array = NDArray[np.float64]

UNUSUAL_MEAN_WEIGHT = 10.0


class KernelSmoother(BaseEstimator):  # type: ignore[misc]  # scikit-learn ships no types
    """Fit bandwidths to pairs, pool, and show the weights. Subclasses say what the values are."""

    kernel: str | Kernel
    bandwidth: Any
    composition: str
    algorithm: str
    tol: float | None
    empty: str
    n_jobs: int | None

    def _fit_pairs(self, X: Array, value: Array, sample_weight: ArrayLike | None) -> None:
        """Store keys and values and find the bandwidth."""
        check_empty(self.empty)
        check_composition(self.composition)
        kernel = get_kernel(self.kernel)
        self.key_, self.value_ = X, value
        self.key_weight_ = None if sample_weight is None else _frequencies(sample_weight, len(X))
        for stale in ("loo_error_", "loo_empty_windows_", "bandwidth_search_"):
            self.__dict__.pop(stale, None)
        if not isinstance(self.bandwidth, str):
            self.bandwidth_ = as_bandwidth(self.bandwidth, X.shape[1])
        elif self.bandwidth in RULES:
            kept = slice(None) if self.key_weight_ is None else self.key_weight_ > 0
            weight = None if self.key_weight_ is None else self.key_weight_[kept]
            self.bandwidth_ = rule_of_thumb(X[kept].astype(np.float64), weight, rule=self.bandwidth, kernel=kernel)
        elif self.bandwidth == "loo":
            self._search(kernel)
        else:
            raise ValueError(
                f"bandwidth must be a positive number, one per column, or one of 'loo', {', '.join(map(repr, RULES))}; "
                f"got {self.bandwidth!r}"
            )

    def _search(self, kernel: Kernel) -> None:
        X, value = self.key_.astype(np.float64), self.value_.reshape(len(self.value_), -1).astype(np.float64)
        weight = np.ones(len(X)) if self.key_weight_ is None else self.key_weight_
        kept = weight > 0
        X, value, weight = X[kept], value[kept], weight[kept]
        if weight.sum() <= 1:
            warnings.warn(
                "bandwidth='loo' needs more than one row to leave one out; using the rule of Scott instead",
                UserWarning,
                stacklevel=4,
            )
            self.bandwidth_ = rule_of_thumb(X, weight, kernel=kernel)
            self.loo_error_, self.loo_empty_windows_ = np.nan, 0
            return
        self.bandwidth_search_ = search_common_factor(
            X,
            value,
            weight,
            kernel=kernel,
            composition=self.composition,
            algorithm=self.algorithm,
            n_jobs=self.n_jobs,
            progress=current_progress(),
        )
        self.bandwidth_ = self.bandwidth_search_.bandwidth
        self.loo_error_ = self.bandwidth_search_.error
        self.loo_empty_windows_ = self.bandwidth_search_.empty_windows

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
        This is Kish's effective sample size of the pooling weights. Cost as for `predict`.
        """
        problem = self._problem(X)
        state = choose(problem, self.algorithm).reduce(problem, n_jobs=self.n_jobs)
        squares = problem.with_kernel(squared(problem.similarity.kernel))
        state_of_squares = choose(squares).reduce(squares, n_jobs=self.n_jobs)
        with np.errstate(invalid="ignore"):
            size = np.exp(2.0 * state.log_denominator - state_of_squares.log_denominator)
        return np.where(state.denominator > 0, size, 0.0)

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
        return leave_one_out(problem, algorithm=self.algorithm, n_jobs=self.n_jobs)

    def _problem(self, X: ArrayLike) -> Problem:
        return Problem.from_arrays(self._query(X), self.key_, np.zeros(len(self.key_)), **self._similarity)


def squared(kernel: Kernel) -> Kernel:
    """Return the kernel ``K(u)^2``."""
    return replace(
        kernel,
        name=f"{kernel.name} squared",
        profile=lambda u: kernel.profile(u) ** 2,
        log_profile=lambda u: 2.0 * kernel.log_profile(u),
        log_slope=None,
    )


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
