"""What the estimators that learn a similarity share: closed form first, then steps while held-out rows gain."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, Literal, Self, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from kernpool.bandwidth import BandwidthSearch, rule_of_thumb, search_bandwidth, search_log_loss
from kernpool.bandwidth.repeated import warn_of_copies
from kernpool.data.folders import Record, read_record, write_record
from kernpool.estimators.extrapolation import reach_of_rows, warn_of_extrapolation
from kernpool.estimators.fitted import read_query
from kernpool.estimators.keywords import NamedCalls
from kernpool.estimators.learned.parameters import FEWEST_ROWS, check_parameters
from kernpool.estimators.learned.records import VERSION, record_of, restored
from kernpool.execution.progress import current_progress
from kernpool.execution.threads import resolve_n_jobs
from kernpool.kernels import get_kernel
from kernpool.pooling.pool import pool
from kernpool.pooling.weights import pooling_weights

Array = NDArray[np.float64]

WIDTH_OF_CONSTANT = 1e-4  # spread over bandwidth that learning starts from, where the bandwidth is infinite


class LearnedPooling(NamedCalls, BaseEstimator):  # type: ignore[misc]  # scikit-learn ships no types
    """Learn a map of rows, pool, and show the weights. Subclasses say what the values and the loss are."""

    record_format: ClassVar[str] = "kernpool learned model"
    record_versions: ClassVar[tuple[int, ...]] = (VERSION,)

    def __init__(
        self,
        similarity: str = "linear",
        *,
        output_size: int | None = None,
        hidden_sizes: Sequence[int] = (64,),
        learning_rate: float = 0.01,
        max_epochs: int = 200,
        batch_size: int = 64,
        penalty: float = 0.01,
        validation_fraction: float = 0.15,
        patience: int = 20,
        warm_start_bandwidth: bool = True,
        max_keys: int | None = None,
        random_state: Any = None,
        device: Any = None,
        dtype: str | None = None,
        n_jobs: int | None = None,
    ) -> None:
        self.similarity = similarity
        self.output_size = output_size
        self.hidden_sizes = hidden_sizes
        self.learning_rate = learning_rate
        self.max_epochs = max_epochs
        self.batch_size = batch_size
        self.penalty = penalty
        self.validation_fraction = validation_fraction
        self.patience = patience
        self.warm_start_bandwidth = warm_start_bandwidth
        self.max_keys = max_keys
        self.random_state = random_state
        self.device = device
        self.dtype = dtype
        self.n_jobs = n_jobs

    def _fit_pairs(
        self, X: Array, value: Array, strata: NDArray[np.intp], loss: Literal["squared_error", "log_loss"]
    ) -> None:
        """Store keys and values, and learn the similarity."""
        standardise = loss == "squared_error"  # outputs in units of their deviations; one-hot labels have the same unit
        parameters = self.get_params()
        check_parameters(parameters, X.shape[1])
        resolve_n_jobs(self.n_jobs)
        if len(X) < FEWEST_ROWS:
            raise ValueError(
                f"learning needs at least {FEWEST_ROWS} rows, of which one is held out, got n_samples = {len(X)}; "
                "NadarayaWatsonRegressor and NadarayaWatsonClassifier do with one"
            )
        from kernpool.torch.learning.fitting import Start, as_device, learn_similarity  # says which extra is missing

        as_device(self.device)  # to be refused before the long work
        warn_of_copies(X, np.zeros((len(X), 0), dtype=np.int64), value, takes_groups=False)
        generator, progress = check_random_state(self.random_state), current_progress()
        output = value.reshape(len(value), -1).astype(np.float64)
        search, bandwidth, spread = self._start(X, output, standardise)
        if standardise:
            deviation = output.std(axis=0)
            output = (output - output.mean(axis=0)) / np.where(deviation > 0, deviation, 1.0)
        similarity, history = learn_similarity(
            X,
            output,
            Start(X.mean(axis=0), spread, np.where(np.isinf(bandwidth), WIDTH_OF_CONSTANT, spread / bandwidth)),
            rows=split_rows(strata, self.validation_fraction, generator),
            loss=loss,
            parameters=parameters,
            generator=generator,
            progress=progress,
        )
        # Nothing is assigned before everything is known, so that a failed refit leaves the old fit whole.
        self.__dict__.pop("bandwidth_search_", None)
        if search is not None:
            self.bandwidth_search_ = search
        self.similarity_, self.key_, self.value_ = similarity, X.copy(), value.copy()
        self.history_ = {"training_loss": history.training_loss, "validation_loss": history.validation_loss}
        self.best_epoch_ = history.best_epoch

    def _start(self, X: Array, output: Array, standardise: bool) -> tuple[BandwidthSearch | None, Array, Array]:
        """Return the search, if there is one, and bandwidths and spreads of the columns."""
        if not self.warm_start_bandwidth:
            deviation = X.std(axis=0)
            return None, rule_of_thumb(X), np.where(deviation > 0, deviation, 1.0)
        # All rows take part, those that are held out too: epoch zero is then the very fit of NadarayaWatsonRegressor(),
        # and looks a little better on held-out rows than it is, so that learning has to be better than by chance.
        # Classes start where their log loss is least: the best Brier score may be that of one neighbour per window,
        # and cross-entropy has no slope there to leave it by.
        options: dict[str, Any] = {
            "common_factor": self.similarity == "width",
            "kernel": get_kernel("gaussian"),
            "n_jobs": self.n_jobs,
            "progress": current_progress(),
        }
        search = search_bandwidth(X, output, **options) if standardise else search_log_loss(X, output, **options)
        names = getattr(self, "feature_names_in_", None)
        if names is not None:
            search = replace(search, names=tuple(map(str, names)))
        return search, search.bandwidth, search.spread

    def _query(self, X: ArrayLike) -> Array:
        check_is_fitted(self)
        return np.asarray(read_query(self, X, warn=False)[0], dtype=np.float64)

    def encode(self, X: ArrayLike) -> Array:
        """Map rows to the space in which a Gaussian of width one compares them.

        Parameters
        ----------
        X : array_like of shape (m, d)
            Rows.

        Returns
        -------
        ndarray of shape (m, E)
            With E = d, or `output_size`. Rows that are one apart get a weight of ``exp(-1/2)``.
        """
        from kernpool.torch.learning.fitting import encode

        row = self._query(X)
        return encode(self.similarity_, row)

    def _encoded(self, X: ArrayLike) -> tuple[Array, Array]:
        from kernpool.torch.learning.fitting import encode

        row = self._query(X)
        query, key = encode(self.similarity_, row), encode(self.similarity_, self.key_)
        warn_of_extrapolation(reach_of_rows(key, None, np.ones(key.shape[1])), query)
        return query, key

    def _pool(self, X: ArrayLike) -> Array:
        query, key = self._encoded(X)
        pooled = pool(query, key, self.value_, bandwidth=1.0, n_jobs=self.n_jobs, progress=current_progress())
        return cast(Array, pooled)

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
        """
        query, key = self._encoded(X)
        return pooling_weights(query, key, bandwidth=1.0, max_bytes=max_bytes)

    def to_record(self) -> Record:
        """Return the fitted model as JSON and arrays; `save_model` writes them, and says more."""
        return record_of(self)

    @classmethod
    def from_record(cls, record: Record) -> Self:
        """Return the model of a record, after checking all of it; `load_model` reads it from a folder."""
        model: Self = restored(cls, record)
        return model

    def save(self, folder: str | Path, *, force: bool = False) -> None:
        """Write the fitted estimator to a folder: the same as `kernpool.save_model`.

        Parameters
        ----------
        folder, force
            As there.
        """
        write_record(folder, self.to_record(), force=force)

    @classmethod
    def load(cls, folder: str | Path) -> Self:
        """Read an estimator of this class, and refuse others: as `kernpool.load_model`.

        Parameters
        ----------
        folder : str or Path
            What `save` or `kernpool.save_model` wrote.
        """
        model: Self = read_record(folder, (cls,))
        return model


def split_rows(
    strata: NDArray[np.intp], fraction: float, generator: np.random.RandomState
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Divide rows into those to learn from and those held out, which have every stratum in proportion.

    Parameters
    ----------
    strata : ndarray of int, shape (n,)
        Number of the stratum of each row, such as its class.
    fraction : float
        Share of rows to hold out; at least one is, and two are not.
    generator : numpy.random.RandomState
        For the draw.

    Returns
    -------
    ndarray, ndarray
        Row numbers in ascending order.

    Examples
    --------
    >>> training, validation = split_rows(np.array([0, 0, 0, 1, 1, 1]), 0.34, np.random.RandomState(0))
    >>> len(training), len(validation), int(validation.max()) > 2
    (4, 2, True)
    """
    n = len(strata)
    count = min(max(1, round(fraction * n)), n - 2)
    order = generator.permutation(n)
    order = order[np.argsort(strata[order], kind="stable")]
    held_out = ((np.arange(count) + generator.uniform()) * n / count).astype(np.intp)  # evenly along the strata
    is_held_out = np.zeros(n, dtype=bool)
    is_held_out[order[held_out]] = True
    return np.flatnonzero(~is_held_out), np.flatnonzero(is_held_out)
