"""Methods of the Dask regressor: bootstrap, quantiles, distribution functions and held-out calibration rows.

`DaskInference` answers by resampling the rows of the partitions, and otherwise says what to use instead.
`DaskDistribution` has conditional quantiles, distribution functions and densities. `PartitionSource` brings
calibration rows into memory and leaves them out of the fit (see `estimators/methods/prediction_intervals.py`).
Further functions count, draw and fetch rows of partitions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NoReturn

import numpy as np
from dask.base import is_dask_collection
from dask.delayed import delayed
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from kernpool.conformal import PredictionInterval
from kernpool.core.state import PoolState, empty_state
from kernpool.dask.leave_one_out import draw_rows, joined
from kernpool.dask.partitions import Partitions, read_block
from kernpool.dask.pool import RETRIES, PartitionPairs, block_state, center_task, compute, merge_tree, sent_once
from kernpool.dask.quantiles import partition_functions, partition_quantiles
from kernpool.data.chunks.base import Chunk
from kernpool.data.columns import Kind
from kernpool.distribution import as_levels
from kernpool.estimators.bandwidth import SearchSample, draw, join
from kernpool.estimators.extrapolation import (
    joined_ranges,
    may_extrapolate,
    range_of,
    reach_of_range,
    warn_of_extrapolation,
    window_of,
)
from kernpool.estimators.methods.distribution import number_of
from kernpool.estimators.methods.prediction_intervals import ChunksWithout, UniformRange, interval_of_source
from kernpool.estimators.rows import as_table, read_inputs
from kernpool.inference.resampling import draws
from kernpool.inference.resampling.bootstrap import Resampling, collect_states, resampled_state, unit_rows
from kernpool.pooling import QueryBatch, Sums, quotient

# after kernpool.dask.partitions, which says what to install
# isort: split

Places = list[NDArray[np.intp]]


def read_query(model: Any, X: Any, *, warn: bool = True) -> NDArray[np.float64]:
    """Read queries in memory with the columns of the model; `warn`: whether to warn of extrapolation."""
    table = as_table(X, vars(model).get("n_features_in_"))
    query = np.asarray(read_inputs(model, table, model.encoding_, reset=False)[0], dtype=np.float64)
    if warn and may_extrapolate(model):
        if "key_range_" not in vars(model):  # the bandwidth was given, and no row has been looked at
            blocks = model.partitions_.blocks
            ranges = compute([delayed(_range_of)(block) for block in blocks], model.client_, RETRIES)
            model.key_range_ = _joined_ranges(ranges)
        low, high = model.key_range_
        names = vars(model).get("feature_names_in_")
        reach = reach_of_range(low, high, *window_of(model))
        warn_of_extrapolation(reach, query, low, high, names, kinds=kinds_of(model))
    return query


def watch_blocks(model: Any, X: Any) -> Any:
    """Return a Dask array of queries that warns of extrapolation when its blocks are computed."""
    if not may_extrapolate(model):
        return X
    key_range = vars(model).get("key_range_")
    if key_range is None:  # the bandwidth was given, and no row has been looked at
        key_range = delayed(_joined_ranges)([delayed(_range_of)(block) for block in model.partitions_.blocks])
    names = vars(model).get("feature_names_in_")
    options = {"key_range": key_range, "window": window_of(model), "names": names, "kinds": kinds_of(model)}
    return X.map_blocks(_watched, **options, dtype=X.dtype, meta=X._meta)


def _joined_ranges(ranges: list[Any]) -> Any:
    return joined_ranges([part for part in ranges if part is not None])


def _watched(query: NDArray[Any], key_range: Any, window: Any, names: Any, kinds: Any) -> NDArray[Any]:
    low, high = key_range
    warn_of_extrapolation(reach_of_range(low, high, *window), np.asarray(query), low, high, names, kinds=kinds)
    return query


def kinds_of(model: Any) -> Sequence[Kind] | None:
    """Return the column types of the training rows; None if all are numeric."""
    return None if model.encoding_ is None else model.encoding_.kinds


def count_rows(partitions: Partitions, client: Any) -> tuple[Partitions, int]:
    """Return partitions with known numbers of rows, and the number of key columns."""
    rows = list(partitions.rows)
    unknown = [i for i, size in enumerate(rows) if size is None]
    if not unknown and partitions.names is None:
        unknown = [next((i for i, size in enumerate(rows) if size), 0)]
    described = compute([delayed(_describe)(partitions.blocks[i]) for i in unknown], client, RETRIES)
    for i, (size, _) in zip(unknown, described, strict=True):
        rows[i] = size
    if not sum(filter(None, rows)):
        raise ValueError("there are no rows: all partitions are empty")
    columns = max(count for _, count in described) if partitions.names is None else len(partitions.names)
    return replace(partitions, rows=tuple(rows)), columns


def draw_sample(partitions: Partitions, size: int, seed: int, client: Any) -> SearchSample | None:
    """Draw rows for the bandwidth search, independent of how the rows are partitioned.

    Tasks draw some more rows than are needed in all; where weights of zero make them too few, they draw once more.
    """
    sizes = [rows or 0 for rows in partitions.rows]
    starts, limit = np.cumsum([0, *sizes]).tolist(), min(1.0, 4.0 * (size + 16) / sum(sizes))
    while True:
        tasks = [
            delayed(_draw_from)(block, size, seed, first, limit)
            for block, rows, first in zip(partitions.blocks, sizes, starts[:-1], strict=True)
            if rows
        ]
        sample = join(compute(tasks, client, RETRIES), size)
        if limit == 1.0 or sample is None or len(sample.key) == min(size, sample.rows):
            return sample
        limit = 1.0


def places_of(partitions: Partitions, most: int | None, random_state: Any) -> Places:
    """Return the indices of drawn rows in each partition; all if there are at most `most` or it is None."""
    sizes = [rows or 0 for rows in partitions.rows]
    ends, n = np.cumsum(sizes), sum(sizes)
    if most is None or n <= most:
        return [np.arange(rows) for rows in sizes]
    generator = np.random.default_rng(check_random_state(random_state).randint(1 << 31))
    drawn = np.sort(generator.choice(n, most, replace=False, shuffle=False))  # no permutation of n in memory
    return [drawn[(drawn >= end - rows) & (drawn < end)] - (end - rows) for rows, end in zip(sizes, ends, strict=True)]


def fetch_all(partitions: Partitions, client: Any) -> Chunk:
    """Load all rows into memory."""
    places = places_of(partitions, None, None)
    tasks = [
        delayed(draw_rows)(block, rows) for block, rows in zip(partitions.blocks, places, strict=True) if len(rows)
    ]
    rows = joined(compute(tasks, client, RETRIES))
    if rows is None:
        raise ValueError("there are no rows: all partitions are empty")
    return rows


def _draw_from(block: Any, size: int, seed: int, first: int, limit: float) -> SearchSample | None:
    """Draw rows of a block, in a task."""
    return draw(read_block(block), size, seed, first=first, limit=limit)


def _range_of(block: Any) -> NDArray[np.float64] | None:
    """Return the range of the keys of a block, in a task; None if it has no rows."""
    ranges = [range_of(chunk.key) for chunk in read_block(block)]
    return joined_ranges(ranges) if ranges else None


def _describe(block: Any) -> tuple[int, int]:
    """Return the number of rows and of key columns of a block, in a task."""
    rows = columns = 0
    for chunk in read_block(block):
        rows, columns = rows + len(chunk.key), chunk.key.shape[1]
    return rows, columns


# after kernpool.dask.partitions, which says what to install
# isort: split

Array = NDArray[np.float64]


class PartitionSource:
    """Partitions that a regressor was fitted to, as a source of rows.

    Parameters
    ----------
    model : DaskNadarayaWatsonRegressor
        Fitted.
    """

    def __init__(self, model: Any) -> None:
        self._model, self._partitions, self._client = model, model.partitions_, model.client_
        self.recipe = model._recipe(model.bandwidth_)
        self.outputs, self.flat = self._partitions.outputs, self._partitions.flat

    def read(self, X: ArrayLike, *, warn: bool = True) -> Array:
        """Read evaluation points in memory."""
        if is_dask_collection(X):
            raise TypeError("X must be in memory for prediction intervals; compute it, or some of it")
        return read_query(self._model, X, warn=warn)

    def draw(self, size: int, seed: int) -> SearchSample | None:
        """Draw rows with the smallest random numbers, in tasks."""
        return draw_sample(self._partitions, size, seed, self._client)

    def sums(self, query: Array, without: UniformRange | None) -> Sums:
        """Sum over all rows except those held out, on the cluster."""
        if without is None:
            return PartitionPairs(self._partitions, self._client, RETRIES).reduce(self.recipe, query)
        asked, center = QueryBatch.of(self.recipe, query), center_task(self._partitions)
        state, center = compute([self._tree(asked, center, without), center], self._client, RETRIES)

        def fill(rows: NDArray[np.intp]) -> Array:
            limit = self.recipe.empty
            return quotient(
                *compute([self._tree(asked.at(rows, limit), center, without, limit)], self._client, RETRIES)
            )

        return asked.sums(state, center, self.flat, fill=fill)

    def _tree(self, asked: QueryBatch, center: Any, without: UniformRange, limit: str | None = None) -> Any:
        """Return the task that computes the state of all rows except those held out."""
        sent = sent_once(asked)
        firsts = np.cumsum([0, *self._partitions.rows]).tolist()
        states = [
            delayed(_state_without)(sent, block, center, self.outputs, without, first)
            for block, first in zip(self._partitions.blocks, firsts[:-1], strict=True)
        ]
        return merge_tree(states, limit)


def _state_without(
    asked: QueryBatch, block: Any, center: Array | None, outputs: int, numbers: UniformRange, first: int
) -> PoolState:
    """Return the pooling state of a block without held-out rows, in a task."""
    return block_state(asked, ChunksWithout(read_block(block), numbers, first), center, outputs)


# after kernpool.dask.partitions, which says what to install
# isort: split


class DaskInference:
    """Bootstrap and prediction intervals of a model whose rows are on a cluster."""

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
        """Bootstrap the fit on the cluster at its bandwidth.

        Parameters
        ----------
        X : array_like of shape (m, d)
            Evaluation points, in memory.
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
            raise TypeError("X must be in memory: all resamples keep their sums at every point of X; use X.compute()")
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
        """Compute prediction intervals, calibrated on held-out rows.

        Parameters
        ----------
        X : array_like of shape (m, d)
            Evaluation points, in memory.
        level : float, default=0.9
            Coverage of the intervals.
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
        """Raise a TypeError that explains what to do: standard errors need the rows in memory."""
        refuse_without_rows(self, "standard errors, confidence intervals, summaries and tests need")

    confidence_interval = summary = significance_test = standard_error


def refuse_without_rows(model: Any, what: str) -> NoReturn:
    """Raise a TypeError that explains what to do if a method needs the rows in memory."""
    raise TypeError(
        f"{type(model).__name__} keeps references to its rows, and {what} the rows themselves; fit "
        "NadarayaWatsonRegressor to a sample of them in memory, with bandwidth=model.bandwidth_, or use "
        "model.to_local() where all of them fit; model.bootstrap(X) resamples on the cluster"
    )


def bootstrap_partitions(model: Any, X: ArrayLike, how: Resampling, statistic: Callable[[Array], Any] | None) -> Array:
    """Bootstrap a fit to partitions; parameters as in `DaskInference.bootstrap`."""
    asked, partitions = QueryBatch.of(model._recipe(model.bandwidth_), read_query(model, X)), model.partitions_
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
    """Return the sum of frequency weights of a block, in a task."""
    return sum(unit_rows(chunk)[1] for chunk in read_block(block))


def _resampled(
    asked: QueryBatch, block: Any, center: Array | None, outputs: int, seed: int, first: int, n_resamples: int
) -> PoolState:
    """Return the states of all resamples of a block, one after the other, in a task."""
    state = empty_state(n_resamples * len(asked), asked.layout(outputs).width)
    if center is None:
        return state
    return resampled_state(state, asked, read_block(block), center, seed, first, n_resamples)[0]


# after kernpool.dask.pool, which says what to install
# isort: split


class DaskDistribution:
    """Conditional quantiles and distribution functions of rows on a cluster."""

    def quantile(self, X: ArrayLike, levels: ArrayLike = 0.5) -> Array:
        """Compute conditional quantiles of y at new rows, in a few passes over all partitions.

        Parameters
        ----------
        X : array_like of shape (m, d)
            Evaluation points, in memory.
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
            If windows are empty and `empty` is ``"nearest"``, the default, or ``"nan"``.
        ExtrapolationWarning
            If rows of X are far beyond the training rows; `kernpool.ExtrapolationWarning` has the rule.
        """
        check_is_fitted(self)
        if is_dask_collection(X):
            raise TypeError("X must be in memory for quantiles, which take several passes; compute it, or some of it")
        query, recipe = read_query(self, X), self._recipe(self.bandwidth_)  # type: ignore[attr-defined]  # set by fit
        # Set by fit.
        return partition_quantiles(recipe, query, self.partitions_, as_levels(levels), self.client_, RETRIES)  # type: ignore[attr-defined]

    def cdf(self, X: ArrayLike, y: ArrayLike, *, y_bandwidth: Any = None) -> Array:
        """Compute the conditional distribution function of y at new rows, in one pass over all partitions.

        Parameters
        ----------
        X : array_like of shape (m, d)
            Evaluation points, in memory.
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
            If windows are empty and `empty` is ``"nearest"``, the default, or ``"nan"``.
        ExtrapolationWarning
            If rows of X are far beyond the training rows; `kernpool.ExtrapolationWarning` has the rule.
        """
        return self._functions(X, y, y_bandwidth, density=False)

    def density(self, X: ArrayLike, y: ArrayLike, *, y_bandwidth: Any) -> Array:
        """Estimate the conditional density of y at new rows, in one pass over all partitions.

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
            If windows are empty and `empty` is ``"nearest"``, the default, or ``"nan"``.
        ExtrapolationWarning
            If rows of X are far beyond the training rows; `kernpool.ExtrapolationWarning` has the rule.
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
