"""Base class of the kernel estimators: choice of the bandwidth, pooling at queries, and access to the weights.

Training rows become keys and values, new rows become queries; subclasses define the values.
"""

from __future__ import annotations

from dataclasses import replace

from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator

from kernpool._arrays import AnyArray, Array, Codes
from kernpool.bandwidth import LeaveOneOut, TrainingRows, warn_of_copies
from kernpool.core import Exclusion, Geometry, check_degree
from kernpool.core.dependent_columns import RankNotes
from kernpool.data import unshared
from kernpool.estimators.bandwidth import choose_windows
from kernpool.estimators.expected_error import expected_error
from kernpool.estimators.extrapolation import Extent
from kernpool.estimators.fitted_model import smoother_of_fit
from kernpool.estimators.limits import PARTS, refuse, smoother_of
from kernpool.estimators.methods.prediction import PredictionBase, prediction_at
from kernpool.estimators.model import FittedModel, NamedCalls, as_fitted
from kernpool.estimators.training_rows import frequencies
from kernpool.pooling import Nearest
from kernpool.smoother import Smoother


class KernelSmoother(NamedCalls, FittedModel, BaseEstimator):  # type: ignore[misc]  # scikit-learn ships no types
    """Base class of kernel estimators: chooses bandwidths, pools values, and exposes the weights.

    Subclasses define the values: outputs or one-hot labels.
    """

    def _fit_pairs(
        self,
        key: AnyArray,
        code: Codes,
        value: Array,
        sample_weight: ArrayLike | None,
        exclusion: Exclusion | None,
    ) -> None:
        """Choose the bandwidth, and store the training rows as keys and values.

        Parameters are already validated, and `encoding_` is known.
        """
        check_degree(self._degree, key.shape[1])
        for part, belongs in PARTS.items():
            if belongs(self):
                refuse(self, part)
        weight = None
        if sample_weight is not None:
            weight = frequencies(sample_weight, len(key))
            exclusion = None if exclusion is None else exclusion.among(weight)
        encoding = self.encoding_
        pooled = encoding.pooled(key)
        rows_of_search = TrainingRows.from_arrays(pooled, value, weight, code, exclusion, Geometry(encoding.sizes))
        warn_of_copies(rows_of_search, bandwidth=self.bandwidth)
        found = choose_windows(self, rows_of_search).of_table(encoding)
        self.__dict__ |= found.attributes() | {
            "key_": unshared(key), "value_": unshared(value), "key_weight_": weight, "key_code_": code,
            "exclusion_": exclusion,
        }  # fmt: skip
        self._freeze()

    def _freeze(self) -> None:
        """Keep the parameters of the fit, and make its smoother of what has been found."""
        super()._freeze()
        held = vars(self)
        self._rank_notes = RankNotes()
        self.smoother_ = smoother = smoother_of_fit(self)
        self._extent = Extent(
            self.encoding_,
            self.kernel,
            self.bandwidth_,
            planes=self._degree > 0,
            priors=hasattr(self, "prior_share") and self.empty == "mean",
            key=held.get("key_"),
            weight=held.get("key_weight_"),
            source=self.source_,
            key_range=held.get("key_range_"),
            ratios=smoother if isinstance(smoother, Smoother) and isinstance(smoother.window, Nearest) else None,
        )

    def expected_error(self) -> float:
        """Estimate the mean squared error for new rows, summed over outputs, by nested cross-validation.

        The leave-one-out error is of the rows that the bandwidths were chosen by, and so too small. This is the error
        of searches without a fold of the rows on that fold, times what all rows gain: the leave-one-out error over that
        of the K searches, between 1 - 1/2K and 1.

        Returns
        -------
        float
            In squared units of the outputs. The model keeps it: the second call is free.

        Raises
        ------
        ValueError
            If there are fewer than four units of rows, or too few for the criterion without a fold of them.

        Notes
        -----
        Five searches, or ten of up to 200 rows: up to ten times as long as the fit. Rows that the fit leaves out
        together, and copies of a row, are in one fold. Where nothing was searched for it is the leave-one-out error.

        Examples
        --------
        >>> import numpy as np
        >>> from kernpool import NadarayaWatsonRegressor
        >>> x = np.linspace(0.0, 1.0, 40)
        >>> model = NadarayaWatsonRegressor().fit(x[:, None], np.sin(5 * x) + np.cos(99 * x) / 5)
        >>> model.loo_error_ < model.expected_error() < 2 * model.loo_error_
        True
        """
        taken = as_fitted(self)
        known: float | None = getattr(taken, "_expected_error_", None)
        if known is None:
            known = expected_error(taken)
            search = getattr(taken, "bandwidth_search_", None)
            found = {} if search is None else {"bandwidth_search_": replace(search, expected_error=known)}
            if self.smoother_ is taken.smoother_:  # unless it was fitted again meanwhile
                self.__dict__ |= found | {"_expected_error_": known}
        return known

    def attention_weights(self, X: ArrayLike, *, max_bytes: int = 1 << 30) -> Array:
        """Compute the weight of every training row in each prediction: the equivalent kernel.

        Parameters
        ----------
        X : array_like of shape (m, d)
            Queries.
        max_bytes : int, default=2**30
            The largest result allowed, since it has one entry per query and training row.

        Returns
        -------
        ndarray of shape (m, n)
            Rows sum to one, and their product with the training outputs is the prediction, with its warnings. Weights
            of a local constant fit are a probability distribution; those of planes may be negative
            (`Prediction.weights` has the formula).

        Raises
        ------
        ValueError
            If the weights need more than `max_bytes`; or a window is empty, and `empty` is ``"raise"``.
        TypeError
            If the model was fitted to chunks.
        """
        return prediction_at(PredictionBase, self, X).weights(max_bytes=max_bytes)

    def leave_one_out(self) -> LeaveOneOut:
        """Compute leave-one-out predictions at the fitted bandwidth.

        Returns
        -------
        LeaveOneOut
            With `prediction` of shape (n, c), `error` and `empty_windows`. For a row of weight 3 one unit is left out,
            and all rows are that the fit leaves out together with it (`exclusion_`), as in the search.
        """
        smoother = smoother_of(self)
        return smoother.leave_one_out()
