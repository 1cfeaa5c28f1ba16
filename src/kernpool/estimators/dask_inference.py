"""How sure a model on a Dask cluster is: resamples of its rows, and what to do for the rest."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from kernpool.conformal import PredictionInterval
from kernpool.core.state import PoolState, empty_state
from kernpool.dask.cluster import compute
from kernpool.dask.partitions import read_block
from kernpool.dask.pool import RETRIES
from kernpool.dask.tasks import center_task, merge_tree
from kernpool.estimators.dask_held_back import PartitionSource
from kernpool.estimators.dask_rows import read_query
from kernpool.estimators.held_back_intervals import interval_of_source
from kernpool.inference import draws
from kernpool.inference.bootstrap import Resampling
from kernpool.inference.bootstrap_chunks import collect_states, resampled_state, unit_rows
from kernpool.pooling.chunked import Asked

# after kernpool.dask.partitions, which says what to install
# isort: split
from dask.base import is_dask_collection
from dask.delayed import delayed

Array = NDArray[np.float64]


class DaskInference:
    """What a model answers whose rows are on a cluster."""

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
        """Resample the fit on the cluster, at the bandwidth that it has.

        Parameters
        ----------
        X : array_like of shape (m, d)
            Where, in memory.
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
            raise TypeError("X must be in memory: all resamples keep their sums at every place of X; use X.compute()")
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
        """Find intervals that hold the next value of y with a given probability, by rows that are held back.

        Parameters
        ----------
        X : array_like of shape (m, d)
            Places, in memory.
        level : float, default=0.9
            Probability with which an interval is to cover.
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

    def standard_error(self, X: Any = None, **options: Any) -> NoReturn:  # noqa: ARG002  # as all others are called
        """Raise a TypeError that names the remedy."""
        refuse_without_rows(self, "standard errors, confidence intervals, summaries and tests need")

    confidence_interval = summary = significance_test = standard_error


def refuse_without_rows(model: Any, what: str) -> NoReturn:
    """Say what to do instead of asking a model on a cluster."""
    raise TypeError(
        f"{type(model).__name__} keeps references to its rows, and {what} the rows themselves; fit "
        "NadarayaWatsonRegressor to a sample of them in memory, with bandwidth=model.bandwidth_, or use "
        "model.to_local() where all of them fit; model.bootstrap(X) resamples on the cluster"
    )


def bootstrap_partitions(model: Any, X: ArrayLike, how: Resampling, statistic: Callable[[Array], Any] | None) -> Array:
    """Resample a fit to partitions; parameters as of `DaskInference.bootstrap`."""
    asked, partitions = Asked.of(model._recipe(model.bandwidth_), read_query(model, X)), model.partitions_
    center, seed = center_task(partitions), draws.as_seed(how.random_state)
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
    """Return how many unit rows a block has, in a task."""
    return sum(unit_rows(chunk)[1] for chunk in read_block(block))


def _resampled(
    asked: Asked, block: Any, center: Array | None, outputs: int, seed: int, first: int, n_resamples: int
) -> PoolState:
    """Return the states of all resamples of a block, one after the other, in a task."""
    state = empty_state(n_resamples * len(asked), asked.layout(outputs).width)
    if center is None:
        return state
    return resampled_state(state, asked, read_block(block), center, seed, first, n_resamples)[0]
