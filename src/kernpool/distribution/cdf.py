"""Conditional distribution functions of pairs in arrays, and in chunks."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kernpool.core.empty import Empty
from kernpool.data.chunks.base import Chunks
from kernpool.distribution.chunk_functions import Function, array_functions, chunk_functions
from kernpool.distribution.settled import as_thresholds
from kernpool.distribution.y_bandwidth import check_y_bandwidth
from kernpool.execution.messages import abbreviate, explain_calls
from kernpool.execution.progress import Progress
from kernpool.execution.warnings import underflow_is_zero
from kernpool.kernels import Kernel
from kernpool.pooling.arrays import ArrayPairs
from kernpool.pooling.choice import choose
from kernpool.pooling.chunked import read_queries
from kernpool.pooling.pool import as_pairs
from kernpool.pooling.recipe import Recipe

Array = NDArray[np.float64]


@underflow_is_zero
@explain_calls
def pool_cdf(
    query: ArrayLike,
    key: ArrayLike | Chunks,
    value: ArrayLike | None = None,
    y: ArrayLike | None = None,
    *,
    y_bandwidth: float | None = None,
    kernel: str | Kernel = "gaussian",
    bandwidth: ArrayLike = 1.0,
    composition: str = "radial",
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
    r"""Pool how much of the weight lies at or below thresholds: the conditional distribution function.

    .. math:: F(y \mid q) = \sum_{j:\, v_j \le y} \alpha_j(q)

    with the weights alpha of `pool`. It is the inverse of `pool_quantile`. Smoothed in y it is

    .. math:: F(y \mid q) = \sum_j \alpha_j(q)\, \Phi\big((y - v_j) / h_y\big).

    Parameters
    ----------
    query, key : array_like
        As in `pool`, chunks and large memory maps included.
    value : array_like of shape (..., n)
        One value per key; None for chunks, which bring them.
    y : float, or array_like of shape (t,) or (m, t)
        Thresholds: the same for all queries, or a row of them for each.
    y_bandwidth : float, optional
        Standard deviation of a normal distribution around each value, in units of the value; by default there is none.
    kernel, bandwidth, composition, key_weight, attn_mask, exclude_self, self_index, tol
        As in `pool`.
    algorithm : str, default="auto"
        How sums over many keys are organised, as in `pool`.
    empty : {"nan", "nearest", "mean", "zero", "raise"}, default="nan"
        What a query without any key of positive weight gets: NaN with one warning, the distribution of the nearest
        keys, that of all keys that take part, that of a value of zero, or an error.
    n_jobs : int, optional
        Threads; the result has the same bits for any number.
    progress : callable, optional
        Called as ``progress(done, total)`` in rows of chunks, if their number is known.

    Returns
    -------
    ndarray of shape (..., m) or (..., m, t)
        Between 0 and 1, and not falling with the threshold; exactly 0 below and 1 above all keys that count,
        unless smoothed. With a last axis for thresholds unless `y` is one number.

    Raises
    ------
    TypeError, ValueError
        As in `pool`, and if `y` holds NaN or has a shape that is none of these, or `value` several columns.

    Warns
    -----
    EmptyWindowWarning
        If windows are empty and `empty` is ``"nan"``.

    See Also
    --------
    pool_quantile : The inverse.

    Notes
    -----
    Keys are put in the order of their values once, and those between two thresholds are summed at once: with the same
    thresholds for all queries one pass over all keys, whatever the number of thresholds. With a row of them for each
    query keys are halved until a threshold lies among few: about log2(n / 512) passes, or one over all pairs where that
    is less. Memory is O(n + m t). Both sides of a threshold are summed, so that small shares keep their digits.

    Examples
    --------
    >>> import kernpool
    >>> kernpool.pool_cdf([0.0, 5.0], [0.0, 1.0, 5.0], [3.0, 7.0, 8.0], [2.0, 3.0, 8.0]).round(3)
    array([[0.   , 0.622, 1.   ],
           [0.   , 0.   , 1.   ]])
    """
    recipe = Recipe.of(
        kernel, bandwidth, composition=composition, tol=tol, algorithm=algorithm, empty=empty, n_jobs=n_jobs
    )
    if y is None:
        raise TypeError("y must be given: the thresholds, such as y=0.0")
    width = None if y_bandwidth is None else _as_width(y_bandwidth)
    pairs = as_pairs(key, value, key_weight, attn_mask, exclude_self, self_index)
    if not isinstance(pairs, ArrayPairs):
        opened = pairs.opened(query)
        m = opened.leading[-1] if opened.leading else len(read_queries(opened.query).array)
        threshold, with_axis = as_thresholds(y, m)
        if opened.leading and len(threshold) > 1:  # every item of a batch has the same thresholds
            threshold = np.tile(threshold, (int(np.prod(opened.leading[:-1])), 1, 1))
        found = chunk_functions(recipe, opened.query, opened.chunks, Function(threshold, width), progress)[:, 0]
        found = found if with_axis else found[:, 0]
        return found.reshape(*(opened.leading or found.shape[:1]), *found.shape[1:])
    batch, tables = pairs.batch(recipe, query), []
    for i in range(len(batch)):
        problem, values = batch.problem(i), batch.values(i)
        choose(problem, recipe.algorithm)  # says what it cannot do
        if values.shape[1] != 1:
            raise ValueError(f"value must be one column, got {values.shape[1]}; call pool_cdf for one after the other")
        threshold, with_axis = as_thresholds(y, len(problem.query))
        found = array_functions(recipe, problem, values, Function(threshold, width))[:, 0]
        tables.append(found if with_axis else found[:, 0])
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
