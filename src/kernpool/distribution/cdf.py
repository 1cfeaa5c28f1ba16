"""Conditional distribution functions, for pairs in arrays and in chunks.

Chunks and partitions take one pass: each chunk sums its weights on either side of the thresholds (smoothed in y: it
pools columns of smoothed values), and these sums add up. Empty windows, and queries far from all rows, take one
more pass each.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kernpool.core.state import Empty
from kernpool.data import Chunks, as_real_array, refuse_foreign
from kernpool.distribution.functionals import ArrayOutcomes, DistributionFunction, StoredOutcomes, without_axes
from kernpool.distribution.scoring_rules import check_y_bandwidth
from kernpool.execution.error_messages import abbreviate, explain_calls
from kernpool.execution.progress import Progress
from kernpool.execution.warnings import underflow_is_zero
from kernpool.kernels import Kernel
from kernpool.pooling import ArrayPairs, Recipe, Source, as_pairs, choose

Array = NDArray[np.float64]


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


@underflow_is_zero
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
    width = None if y_bandwidth is None else _as_width(y_bandwidth)
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
    for i in range(len(batch)):
        problem, values = batch.problem(i), batch.values(i)
        choose(problem, recipe.algorithm)  # raises for what it does not support
        if values.shape[1] != 1:
            raise ValueError(f"value must be one column, got {values.shape[1]}; call pool_cdf for one after the other")
        threshold, with_axis = as_thresholds(y, len(problem.query))
        found = ArrayOutcomes(recipe, problem, values).evaluate(DistributionFunction(threshold, width))
        tables.append(without_axes(found, True, with_axis))
    return np.stack(tables).reshape(*batch.shape, *tables[0].shape)


def _as_width(y_bandwidth: Any) -> Array:
    width = check_y_bandwidth(y_bandwidth, 1)
    if isinstance(width, str):
        raise TypeError(
            f"y_bandwidth must be a positive number here, "
            f"got {abbreviate(y_bandwidth)}; the y_bandwidth method of a fitted "
            "regressor finds one"
        )
    return width
