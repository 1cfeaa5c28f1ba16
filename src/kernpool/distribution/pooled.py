"""Conditional distribution functions and quantiles of pairs in arrays and in chunks.

Chunks and partitions take one pass for a distribution function: each chunk sums its weights on either side of the
thresholds (smoothed in y: it pools columns of smoothed values), and these sums add up. Empty windows, and queries far
from all rows, take one more pass each.

Intervals of quantiles. The fraction of a window's weight below the true quantile has mean tau and variance
tau (1 - tau) / n, with the effective number of rows n, 1/n = sum_j alpha_j^2 / w_j. So the true quantile lies between
the estimated quantiles of orders r/n and s/n::

    P(B < r) <= alpha/2,    P(B >= s) <= alpha/2,    B ~ Bin(floor(n), tau)

as it does between order statistics of a plain sample (alpha here: one minus the confidence level). No density is
estimated. A normal approximation of the binomial distribution would cover 80 percent, with a nominal 95, where a
single row has all weight.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import binom

from kernpool._arrays import Array
from kernpool.core import FLOAT64, Empty
from kernpool.data import Chunks, as_real_array, refuse_foreign, refuse_other_labels
from kernpool.distribution.functionals import (
    ArrayOutcomes,
    DistributionFunction,
    Quantiles,
    StoredOutcomes,
    without_axes,
)
from kernpool.distribution.scoring_rules import numeric_y_bandwidth
from kernpool.distribution.weighted_quantile import as_levels
from kernpool.execution import Progress, explain_calls, progress_between
from kernpool.kernels import Kernel
from kernpool.pooling import ArrayPairs, Nearest, Recipe, Source, as_pairs, choose


def as_thresholds(y: Any, m: int, outputs: int = 1, *, several: bool = False) -> tuple[Array, bool]:
    """Validate thresholds of y and broadcast them to shape (1 or m, outputs, t).

    There is one row if all queries have the same thresholds. Also returns whether results have an axis of thresholds.
    """
    refuse_foreign("y", y)
    given = np.asarray(y)
    infinite = given.dtype.kind == "f" and given.size > 0 and bool(np.isinf(given).any())
    # Distribution functions are defined at infinity; everything else is read as values are.
    read = as_real_array("y", np.where(np.isinf(given), 0.0, given) if infinite else y)
    threshold = np.asarray(np.where(np.isinf(given), given, read) if infinite else read, dtype=np.float64)
    if not threshold.size:
        raise ValueError(f"y must hold thresholds, one at least, got shape {threshold.shape}")
    if threshold.ndim == 0:
        return np.full((1, outputs, 1), float(threshold)), False
    if threshold.ndim == 1:
        return np.broadcast_to(threshold, (1, outputs, len(threshold))), True
    dimensions = 3 if several else 2
    if threshold.ndim == dimensions:
        rows = threshold if several else threshold[:, None]
        if rows.shape[0] in (1, m) and rows.shape[1] in (1, outputs):
            return np.broadcast_to(rows, (rows.shape[0], outputs, rows.shape[2])), True
    wanted = f"({m}, {outputs}, t)" if several else f"({m}, t)"
    raise ValueError(
        f"y must be one number, thresholds of shape (t,) for all rows, or {wanted} for each row its own, got shape "
        f"{threshold.shape}; one threshold per row is y[:, None]"
    )


@np.errstate(under="ignore")
@explain_calls
def pool_cdf(
    query: ArrayLike,
    key: ArrayLike | Chunks | Source,
    value: ArrayLike | None = None,
    y: ArrayLike | None = None,
    *,
    y_bandwidth: float | None = None,
    kernel: str | Kernel = "gaussian",
    bandwidth: ArrayLike = 1.0,
    key_weight: ArrayLike | None = None,
    attn_mask: ArrayLike | None = None,
    exclude_self: bool = False,
    self_index: ArrayLike | None = None,
    tol: float | None = None,
    algorithm: str = "auto",
    empty: Empty = "nan",
    n_jobs: int | None = None,
    progress: Progress | None = None,
) -> Array:
    r"""Return the conditional distribution function: the fraction of weight on values at or below thresholds.

    .. math:: F(y \mid q) = \sum_{j:\, v_j \le y} \alpha_j(q)

    with the weights alpha of `pool`. It is the inverse of `pool_quantile`. Smoothed in y it is

    .. math:: F(y \mid q) = \sum_j \alpha_j(q)\, \Phi\big((y - v_j) / h_y\big).

    Parameters
    ----------
    query, key : array_like
        As in `pool`, chunks and large memory maps included.
    value : array_like of shape (..., n)
        One value per key; None for chunks, which include values.
    y : float, or array_like of shape (t,) or (m, t)
        Thresholds: the same for all queries, or a row for each query.
    y_bandwidth : float, optional
        Standard deviation of a normal distribution around each value, in units of the value; by default no smoothing.
    kernel, bandwidth, key_weight, attn_mask, exclude_self, self_index, tol
        As in `pool`.
    algorithm : str, default="auto"
        How sums over many keys are organised, as in `pool`.
    empty : {"nan", "nearest", "mean", "zero", "raise"}, default="nan"
        What a query without any key of positive weight gets: NaN with one warning, the distribution of the nearest
        keys, that of all keys that are included, that of a value of zero, or an error.
    n_jobs : int, optional
        Threads; the result has the same bits for any number.
    progress : callable, optional
        Called as ``progress(done, total)`` in rows of chunks, if their number is known.

    Returns
    -------
    ndarray of shape (..., m) or (..., m, t)
        Between 0 and 1, nondecreasing in the threshold; exactly 0 below and 1 above all keys of positive weight,
        unless smoothed. With a last axis for thresholds unless `y` is one number.

    Raises
    ------
    TypeError, ValueError
        As in `pool`, and if `y` contains NaN or its shape is invalid, or `value` has several columns.

    Warns
    -----
    EmptyWindowWarning
        If windows are empty and `empty` is ``"nan"``.

    See Also
    --------
    pool_quantile : The inverse.

    Notes
    -----
    Keys are sorted by value once, and those between two thresholds are summed together: with the same thresholds for
    all queries, one pass over all keys suffices, whatever the number of thresholds. With separate thresholds for each
    query, keys are bisected until a threshold lies among few: about log2(n / 512) passes, or one over all pairs where
    that is less. Memory is O(n + m t). Both sides of a threshold are summed, so that small fractions keep their digits.

    Examples
    --------
    >>> import kernpool
    >>> kernpool.pool_cdf([0.0, 5.0], [0.0, 1.0, 5.0], [3.0, 7.0, 8.0], [2.0, 3.0, 8.0]).round(3)
    array([[0.   , 0.622, 1.   ],
           [0.   , 0.   , 1.   ]])
    """
    recipe = Recipe.of(kernel, bandwidth, tol=tol, algorithm=algorithm, empty=empty, n_jobs=n_jobs)
    if y is None:
        raise TypeError("y must be given: the thresholds, such as y=0.0")
    width = None if y_bandwidth is None else numeric_y_bandwidth(y_bandwidth, 1)
    if np.ndim(y) > 1:  # thresholds for each query
        refuse_other_labels(query=query, y=y)
    pairs = as_pairs(key, value, key_weight, attn_mask, exclude_self, self_index)
    if not isinstance(pairs, ArrayPairs):
        asked = pairs.asked(recipe, query)
        threshold, with_axis = as_thresholds(y, asked.shape[-1])
        if len(threshold) > 1:  # every item of a batch has the same thresholds
            threshold = np.tile(threshold, (len(asked) // asked.shape[-1], 1, 1))
        stored = StoredOutcomes(pairs, asked, progress)
        found = without_axes(stored.evaluate(DistributionFunction(threshold, width)), True, with_axis)
        return found.reshape(*asked.shape, *found.shape[1:])
    batch, tables = pairs.batch(recipe, query), []
    for i in range(batch.n_items):
        problem, values = batch.problem(i), batch.values(i)
        choose(problem, recipe.algorithm)  # raises for what it does not support
        if values.shape[1] != 1:
            raise ValueError(f"value must be one column, got {values.shape[1]}; call pool_cdf for one after the other")
        threshold, with_axis = as_thresholds(y, len(problem.query))
        found = ArrayOutcomes(recipe, problem, values).evaluate(DistributionFunction(threshold, width))
        tables.append(without_axes(found, True, with_axis))
    return np.stack(tables).reshape(*batch.shape, *tables[0].shape)


@np.errstate(under="ignore")
@explain_calls
def pool_quantile(
    query: ArrayLike,
    key: ArrayLike | Chunks | Source,
    value: ArrayLike | None = None,
    levels: ArrayLike = 0.5,
    *,
    kernel: str | Kernel = "gaussian",
    bandwidth: ArrayLike = 1.0,
    window: str | Nearest = "fixed",
    key_weight: ArrayLike | None = None,
    attn_mask: ArrayLike | None = None,
    exclude_self: bool = False,
    self_index: ArrayLike | None = None,
    tol: float | None = None,
    algorithm: str = "auto",
    empty: Empty = "nan",
    n_jobs: int | None = None,
    progress: Progress | None = None,
) -> NDArray[np.floating[Any]]:
    r"""Return weighted quantiles of the values, with kernel weights around each query.

    .. math:: Q(\tau \mid q) = \min \Big\{ v_j : \sum_{l:\, v_l \le v_j} \alpha_l(q) \ge \tau \Big\}

    with the weights alpha of `pool`: the generalised inverse of the conditional distribution function. Every result is
    one of the values, bit for bit.

    Parameters
    ----------
    query, key, value : array_like
        As in `pool`, chunks and large memory maps included; see Notes. Several value columns have separate quantiles.
    levels : float or array_like of shape (l,), default=0.5
        Quantile orders, between 0 and 1, in any order; the default is the conditional median. Order zero is the least
        value whose normalised weight is above 2**-960. An order counts as reached within ``2**-50 sqrt(n)``: .1 by
        three of 30 equal weights, and 1 where no more than that is missing.
    kernel, bandwidth, window, key_weight, attn_mask, exclude_self, self_index, tol
        As in `pool`.
    algorithm : str, default="auto"
        How sums over many keys are organised, as in `pool`.
    empty : {"nan", "nearest", "mean", "zero", "raise"}, default="nan"
        What a query without any key of positive weight gets: NaN with one warning, the quantile of the nearest keys,
        that of all keys that are included, zero, or an error.
    n_jobs : int, optional
        Threads; the result has the same bits for any number.
    progress : callable, optional
        Called as ``progress(done, total)`` now and then; for chunks in rows, anew in each pass.

    Returns
    -------
    ndarray of shape (..., m), (..., m, l), (..., m, c) or (..., m, c, l)
        With an axis for value columns if `value` has one, and a last one for levels unless `levels` is one number.

    Raises
    ------
    TypeError, ValueError
        As in `pool`, and if a quantile order is not between 0 and 1.

    Warns
    -----
    EmptyWindowWarning
        If windows are empty and `empty` is ``"nan"``.

    See Also
    --------
    pool : The mean of the same distribution.

    Notes
    -----
    Equal to sorting each row of the weights by value and cumulating, except where the distribution function equals a
    quantile order within rounding. A table of all weights is never stored; memory is O(n + m).

    The keys are sorted by value once. The sum over the lower half of them decides on which side of the middle a
    quantile lies, and so on recursively: about log2(n / 512) sums in all, each by the algorithm that `choose` finds.
    Where that is brute force, the keys are scanned in order instead until the quantile is reached, so that every pair
    is visited at most twice.

    A float mask, a user-defined kernel, and queries so far away that a logarithm of their weights is beyond 65 536 use
    tables of a few queries. Where few keys have weight, high and low orders are extremes of a small sample.

    *Chunks* of up to 4 million rows are read at once. More are read several times, and have to be a list, arrays or
    files: a pass for the sums of all weights, one for a sample of the values, up to eight that narrow the range of
    values in which each quantile lies, and one for every 4 million rows in these ranges: about six in all for a hundred
    million rows and a few hundred queries.
    The result equals that of arrays, the value of a row, except for orders that are reached within rounding.

    References
    ----------
    .. [1] C. J. Stone, "Consistent nonparametric regression", Annals of Statistics 5 (1977), 595-620, section 1.
    .. [2] Q. Li and J. S. Racine, "Nonparametric Econometrics", Princeton (2007), chapter 6.

    Examples
    --------
    >>> import kernpool
    >>> kernpool.pool_quantile([0.0, 5.0], [0.0, 1.0, 5.0], [3.0, 7.0, 8.0])
    array([3., 8.])
    >>> key, value = [0.0] * 5, [1.0, 2.0, 3.0, 4.0, 50.0]
    >>> kernpool.pool_quantile([0.0], key, value, [0.2, 0.5, 0.9])
    array([[ 1.,  3., 50.]])
    >>> kernpool.pool_quantile([0.0], kernpool.open_chunks([(key, value), ([0.1], [8.0])]), levels=0.9)
    array([50.])
    """
    level = as_levels(levels)
    recipe = Recipe.of(
        kernel,
        bandwidth,
        tol=tol,
        algorithm=algorithm,
        empty=empty,
        n_jobs=n_jobs,
        window=window,
    )
    pairs = as_pairs(key, value, key_weight, attn_mask, exclude_self, self_index)
    if not isinstance(pairs, ArrayPairs):
        asked = pairs.asked(recipe, query)
        found = StoredOutcomes(pairs, asked, progress).evaluate(Quantiles(level.ravel()))
        columns = () if pairs.flat else found.shape[1:2]
        dtype = np.result_type(asked.query.dtype or FLOAT64, pairs.dtype)
        return found.reshape(*asked.shape, *columns, *level.shape).astype(dtype, copy=False)
    batch = pairs.batch(recipe, query)
    m, tables = batch.n_queries, []
    for i in range(batch.n_items):
        report = progress_between(progress, i * m, (i + 1) * m, batch.n_items * m)
        outcomes = ArrayOutcomes(recipe, batch.problem(i), batch.values(i))
        tables.append(outcomes.evaluate(Quantiles(level.ravel(), progress=report)))
    found = tables[0] if len(tables) == 1 else np.stack(tables)
    found = found.reshape(*batch.output_shape, level.size).astype(batch.dtype, copy=False)
    return found if level.ndim else found[..., 0]


ROUNDING = 1e-9  # of a number of rows, which is an integer where weights are equal


def levels_around(level: Array, rows: Array, confidence: float) -> tuple[Array, Array]:
    r"""Return the quantile orders at both ends of confidence intervals of quantiles, as two arrays of shape (m, l)."""
    # The r-th smallest of n is at most the quantile if at least r rows are: binomial, half the error at each end.
    n = np.floor(rows * (1.0 + ROUNDING))[:, None]
    at_least_one = np.maximum(n, 1.0)
    low = binom.ppf(0.5 - 0.5 * confidence, at_least_one, level)
    high = binom.ppf(0.5 + 0.5 * confidence, at_least_one, level) + 1.0
    no_low, no_high = (n < 1.0) | (low < 1.0), (n < 1.0) | (high > n)
    return np.where(no_low, -1.0, low / at_least_one), np.where(no_high, 2.0, high / at_least_one)


def without_ends(low: Array, high: Array, ends: tuple[Array, Array]) -> tuple[Array, Array]:
    """Replace ends of confidence intervals by infinities where their quantile orders leave the range 0 to 1."""
    no_low, no_high = (low <= 0.0)[:, None], (high > 1.0)[:, None]
    lower = np.where(no_low & ~np.isnan(ends[0]), -np.inf, ends[0])
    return lower, np.where(no_high & ~np.isnan(ends[1]), np.inf, ends[1])
