"""How sure a model on a Dask cluster is: resamples of its rows, and what to do for the rest."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from kernpool.core.state import PoolState, empty_state
from kernpool.dask.cdf import partition_functions
from kernpool.dask.cluster import compute
from kernpool.dask.partitions import read_block
from kernpool.dask.pool import RETRIES
from kernpool.dask.quantile import partition_quantiles
from kernpool.dask.tasks import center_task, merge_tree
from kernpool.distribution import as_levels
from kernpool.estimators.dask_rows import read_query
from kernpool.estimators.weighed import number_of
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
        ndarray of shape (n_resamples, m), (n_resamples, m, c), or (n_resamples, *statistic)
            As `NadarayaWatsonRegressor.bootstrap` of the same rows in the same order, up to rounding; the same bits for
            any number of workers.

        Raises
        ------
        TypeError
            If X is a Dask collection.
        ValueError
            If the kind is another, the result is larger than `max_bytes`, a weight is no whole number, or `empty` would
            fill windows of resamples from all rows.

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

    def quantile(self, X: ArrayLike, levels: ArrayLike = 0.5) -> Array:
        """Find the values that y stays below with given probabilities, at new rows, in some passes over all partitions.

        Parameters
        ----------
        X : array_like of shape (m, d)
            Places, in memory.
        levels : float or array_like of shape (l,), default=0.5
            Probabilities, in any order; by default the conditional median.

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
            If windows are empty and ``empty="nan"``.
        """
        check_is_fitted(self)
        if is_dask_collection(X):
            raise TypeError("X must be in memory for quantiles, which take several passes; compute it, or some of it")
        query, recipe = read_query(self, X), self._recipe(self.bandwidth_)  # type: ignore[attr-defined]
        return partition_quantiles(recipe, query, self.partitions_, as_levels(levels), self.client_, RETRIES)  # type: ignore[attr-defined]

    def cdf(self, X: ArrayLike, y: ArrayLike, *, y_bandwidth: Any = None) -> Array:
        """Find the probability that y stays at or below thresholds, at new rows, in a pass over all partitions.

        Parameters
        ----------
        X : array_like of shape (m, d)
            Places, in memory.
        y : float, or array_like of shape (t,), (m, t) or (m, c, t)
            Thresholds, as of `NadarayaWatsonRegressor.cdf`.
        y_bandwidth : float or array_like of shape (c,), optional
            Smooths the distribution in y.

        Returns
        -------
        ndarray of shape (m,), (m, t), (m, c) or (m, c, t)
            As of `NadarayaWatsonRegressor.cdf`, up to rounding.

        Raises
        ------
        TypeError
            If X is a Dask collection, or `y_bandwidth` the name of a rule.
        ValueError
            If y holds NaN or has another shape.

        Warns
        -----
        EmptyWindowWarning
            If windows are empty and ``empty="nan"``.
        """
        return self._functions(X, y, y_bandwidth, density=False)

    def density(self, X: ArrayLike, y: ArrayLike, *, y_bandwidth: Any) -> Array:
        """Estimate the conditional density of y at new rows, in a pass over all partitions.

        Parameters
        ----------
        X, y
            As of `cdf`.
        y_bandwidth : float or array_like of shape (c,)
            The bandwidth in y; a sample of the rows in memory finds one.

        Returns
        -------
        ndarray of shape (m,), (m, t), (m, c) or (m, c, t)
            As of `NadarayaWatsonRegressor.density`, up to rounding.

        Raises
        ------
        TypeError, ValueError
            As for `cdf`.

        Warns
        -----
        EmptyWindowWarning
            If windows are empty and ``empty="nan"``.
        """
        if y_bandwidth is None:
            raise TypeError("y_bandwidth must be a positive number, got None")
        return self._functions(X, y, y_bandwidth, density=True)

    def _functions(self, X: ArrayLike, y: ArrayLike, y_bandwidth: Any, *, density: bool) -> Array:
        check_is_fitted(self)
        if is_dask_collection(X) or is_dask_collection(y):
            raise TypeError("X and y must be in memory for distribution functions; compute them, or some of them")
        model: Any = self
        width = None if y_bandwidth is None else number_of(y_bandwidth, model.partitions_.outputs)
        recipe, of = model._recipe(model.bandwidth_), (model.partitions_, y, model.client_, RETRIES)
        return partition_functions(recipe, read_query(self, X), *of, widths=width, density=density)

    def standard_error(self, X: Any = None, **options: Any) -> NoReturn:  # noqa: ARG002
        """Raise a TypeError that names the remedy."""
        refuse_without_rows(self, "standard errors, intervals, summaries and tests need")

    confidence_interval = prediction_interval = summary = significance_test = standard_error


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
