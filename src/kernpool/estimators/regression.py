"""What the regressors share: outputs are numbers, one column or several."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal, Self, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import RegressorMixin

from kernpool.core.keys import Prepared
from kernpool.data.chunks.base import Chunks
from kernpool.estimators.chunked import as_chunks, fit_chunks
from kernpool.estimators.conditional import ConditionalDistribution, std_of_new
from kernpool.estimators.diagnostics import Diagnostics
from kernpool.estimators.inference import Inference
from kernpool.estimators.parameters import check_parameters
from kernpool.estimators.prediction import PredictionIntervals
from kernpool.estimators.rank_notes import RankNotes
from kernpool.estimators.resampled import Resampled
from kernpool.estimators.rows import (
    Scoring,
    answers_by_snapshots,
    append_rows,
    as_table,
    encoding_of,
    frequencies,
    read_rows,
    snapshot,
)
from kernpool.estimators.smoother import KernelSmoother
from kernpool.execution.messages import check_flag
from kernpool.execution.threads import OwnLock
from kernpool.kernels import get_kernel

Array = NDArray[np.float64]


@answers_by_snapshots
class KernelRegressor(
    Inference,
    ConditionalDistribution,
    PredictionIntervals,
    Diagnostics,
    Resampled,
    Scoring,
    RegressorMixin,  # type: ignore[misc]  # scikit-learn is not typed
    KernelSmoother,
):
    """Fit and predict; subclasses say what is fitted around each query."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        tags.regressor_tags.poor_score = get_kernel(self.kernel).name == "constant"  # the baseline that ignores X
        return tags

    def fit(self, X: ArrayLike | Chunks, y: Any = None, sample_weight: Any = None, groups: Any = None) -> Self:
        """Store the training rows, or where they are, and find the bandwidth.

        Parameters
        ----------
        X : array_like of shape (n,) or (n, d), frame, Chunks or path
            Inputs; one dimension is one column. A frame of pandas or polars or a table of pyarrow may have categorical
            columns, and dates and durations, which become days (dates: since 1970-01-01 UTC). Chunks from
            `kernpool.open_chunks`, or the path of a Parquet or `.npy` file or of a folder of Parquet files, need not
            fit into memory: the model keeps a reference, and `predict` reads the rows.
        y : array_like of shape (n,) or (n, c), str, or sequence of str
            Outputs; integers and booleans count as numbers. For a file, or anything with an Arrow stream, the name of
            the target; chunks bring theirs.
        sample_weight : array_like of shape (n,), or str, optional
            Frequencies of rows, non-negative; for a file the name of their column.
        groups : array_like of shape (n,), optional
            Which cluster each row belongs to, such as a school or a patient, where rows of a cluster share noise. The
            search then predicts every row from the rows of all other clusters (leave-cluster-out): from those of its
            own cluster it would be predicted with the shock that they share, best in windows that are too narrow.

        Returns
        -------
        self
            The estimator, fitted.

        Raises
        ------
        ValueError
            If X or y holds NaN or infinity, or a cell is missing (the message names row and column), shapes do not
            match, or a parameter is out of its range; if dates are too close together for days in float64; if a label
            of `groups` is missing, there is a single one, or `bandwidth` is the name of a search that leaves no rows
            out.
        TypeError
            If there are `groups` of rows in chunks; or an argument is a masked array, sparse or a tensor, or y holds
            dates.

        Warns
        -----
        RepeatedRowsWarning
            If a tenth of the rows or more are copies of others, and chance does not explain it: leave-one-out predicts
            them from their own copies.
        SuspectColumnWarning
            If a column of a frame looks like something else than it is read as: text that is numbers, dates or names of
            rows, and numbers that number the rows. The message names the column and the remedy.

        Notes
        -----
        Groups are for ``bandwidth="regularised"``, the default, and ``"loo"``. With a number, or a rule that looks at X
        alone, they are kept (`key_group_`) and change no prediction; ``"aicc"``, ``"gcv"`` and ``"plugin"`` refuse
        them. `loo_error_`, `leave_one_out` and `expected_error` are of left-out clusters then. With G clusters a pass
        takes about as many plain ones as G has octal digits, and never more than all pairs
        (`kernpool.pooling.groups`).

        For chunks a bandwidth that is a name is found on a sample of at most `max_search_rows` rows, 10 000 by default,
        drawn in one pass, and made that of all rows by the rate :math:`n^{-1/(4 + d)}`; `bandwidth_note_` says so, and
        `loo_error_` is that of the sample. With a number the rows are not read before `predict`. `attention_weights`,
        `leave_one_out` and what else needs the rows themselves is for arrays only.

        Examples
        --------
        >>> from kernpool import NadarayaWatsonRegressor, open_chunks
        >>> chunks = open_chunks([([0.0, 1.0], [0.0, 1.0]), ([2.0, 3.0], [1.0, 0.0])])
        >>> NadarayaWatsonRegressor(bandwidth=0.5).fit(chunks).predict([[1.5]])
        array([0.98201379])

        Rows come in clusters that share a shock, and windows have to be wide enough to average over several of them:

        >>> rng = np.random.default_rng(0)
        >>> school = np.repeat(np.arange(20), 4)
        >>> x = rng.uniform(size=20)[school] + 0.01 * rng.normal(size=80)
        >>> y = np.sin(3 * x) + 0.3 * rng.normal(size=20)[school] + 0.1 * rng.normal(size=80)
        >>> alone = NadarayaWatsonRegressor().fit(x[:, None], y)
        >>> clustered = NadarayaWatsonRegressor().fit(x[:, None], y, groups=school)
        >>> bool(clustered.bandwidth_[0] > 3 * alone.bandwidth_[0])
        True
        """
        chunks = as_chunks(X, y, sample_weight)
        if chunks is not None:
            if groups is not None:
                raise TypeError(
                    "groups must be None for rows in chunks, whose bandwidth is found on a sample that would break "
                    "clusters up; fit some of the clusters in memory, and give the bandwidth as a number"
                )
            fit_chunks(self, chunks)
            return self
        check_parameters(self)  # some of them say how rows are read
        rows = read_rows(self, X, y, numbers=True)
        self._fit_pairs(rows, rows.output, sample_weight, groups)
        return self

    def partial_fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Add rows, and leave the bandwidth as it is.

        Parameters
        ----------
        X : array_like of shape (n, d)
            Inputs, columns of numbers, dates or durations.
        y : array_like of shape (n,) or (n, c)
            Outputs.
        sample_weight : array_like of shape (n,), optional
            Frequencies of these rows; one each if there are none.

        Returns
        -------
        self
            The same, bit for bit, as fitted to all rows in this order at this bandwidth.

        Raises
        ------
        TypeError
            If there are categorical columns, the model was fitted to chunks, or an argument is masked or sparse.
        ValueError
            If the columns or the outputs are not those of the first rows, the first rows had groups, or as for `fit`.

        Notes
        -----
        The first call is `fit`: a bandwidth that is a name is found on the first rows and stays. The best one shrinks
        as rows come; fit again when there are several times as many. `loo_error_`, which was that of the first rows, is
        gone after the second call, `bandwidth_search_` stays. O(rows added) time and memory, on average.

        Threads may add rows to one model at once, and to a model and its ``copy.copy``: calls wait for each other, and
        no rows are lost or mixed. All other methods may be called meanwhile, and answer from the rows of whole calls.

        Examples
        --------
        >>> from kernpool import NadarayaWatsonRegressor
        >>> model = NadarayaWatsonRegressor(bandwidth=1.0).partial_fit([[0.0]], [1.0])
        >>> model.partial_fit([[1.0]], [2.0]).predict([[0.5]])
        array([1.5])
        """
        with self.__dict__.setdefault("_adding", OwnLock()):
            return self._add(X, y, sample_weight)

    def _add(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None) -> Self:
        if "chunks_" in vars(self) or isinstance(y, str) or isinstance(X, Chunks):
            raise TypeError(
                "partial_fit adds rows to rows in memory, and chunks are none; write the new rows to a file beside the "
                "others and fit the folder again"
            )
        encodings = encoding_of(self, as_table(X)), vars(self).get("encoding_")
        if any(encoding is not None and not encoding.numbers_alone for encoding in encodings):
            raise TypeError(
                "partial_fit is for numeric columns, and new rows may bring new categories; fit all rows again"
            )
        if not hasattr(self, "key_"):
            return self.fit(X, y, sample_weight)
        if vars(self).get("key_group_") is not None:
            raise ValueError(
                "partial_fit does not know the groups of new rows, and the model was fitted with groups; fit all rows "
                "again"
            )
        key, _, value, _ = read_rows(self, X, y, numbers=True, reset=False)
        if value.shape[1:] != self.value_.shape[1:]:
            raise ValueError(
                f"y must have shape (rows, *{self.value_.shape[1:]}) as it had in the first call, got {value.shape}"
            )
        weight = None if sample_weight is None else frequencies(sample_weight, len(key))
        grown = append_rows(self, key, value, weight)
        for stale in ("loo_error_", "loo_empty_windows_", "_expected_error"):
            self.__dict__.pop(stale, None)
        if "bandwidth_search_" in vars(self):
            self.__dict__ |= {"bandwidth_search_": replace(self.bandwidth_search_, expected_error=None)}
        self.__dict__ |= grown | {"_rank_notes": RankNotes(), "_prepared": Prepared()}
        return self

    @overload
    def predict(self, X: ArrayLike, return_std: Literal[False] = False) -> Array: ...

    @overload
    def predict(self, X: ArrayLike, return_std: Literal[True]) -> tuple[Array, Array]: ...

    def predict(self, X: ArrayLike, return_std: bool = False) -> Array | tuple[Array, Array]:
        """Predict from the training rows; `return_std` is of a new observation, and not the standard error.

        Parameters
        ----------
        X : array_like of shape (m, d)
            Queries.
        return_std : bool, default=False
            Whether to return the standard deviation of a new observation around the prediction too, as
            `GaussianProcessRegressor` does: noise and uncertainty of the curve together. How sure the curve is by
            itself, `standard_error` says. After a fit with `groups` the observation is of a new cluster: noise is then
            taken from residuals of fits without the whole cluster of a row, and has the shock of its cluster in it.

        Returns
        -------
        prediction : ndarray of shape (m,) or (m, c)
            One per query.
        std : ndarray of shape (m,) or (m, c)
            Only with `return_std`. NaN where the window is empty, and where fewer than two clusters count.

        Raises
        ------
        ValueError
            With `return_std`, if there are fewer than five rows or clusters, or the fit takes all degrees of freedom.

        Warns
        -----
        EmptyWindowWarning
            If a query has no training row within the kernel's support, and `empty` is ``"nearest"`` or ``"nan"``.
        ExtrapolationWarning
            If rows of X are far beyond the training rows; `kernpool.ExtrapolationWarning` has the rule.
        RankDeficiencyWarning
            If a local linear fit is not determined by the rows of its window; once per fit.
        """
        check_flag("return_std", return_std)
        model = snapshot(self)
        return (model._pool(X), std_of_new(model, X)) if return_std else model._pool(X)

    def _one_per_output(self, slopes: Array) -> Array:
        """Drop the last axis of (m, d, c) if y had one dimension."""
        return slopes[:, :, 0] if self.value_.ndim == 1 else slopes
