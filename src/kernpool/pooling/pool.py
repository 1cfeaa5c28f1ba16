"""Kernel pooling of values at queries: `pool`, its sums `pool_state`, and the interface of key-value sources.

For one query `q` and pairs ``(k_j, v_j)`` the pooled value is the weighted mean

    yhat(q) = sum_j alpha_j v_j,   alpha_j = w_j K((q - k_j) / h) / sum_l w_l K((q - k_l) / h)

or, with ``degree=1`` or 2, the value at `q` of the plane or quadratic that fits the values best with these weights.

Arrays, previously read keys, chunks, memory maps and partitions of Dask all plan, and sum, their pairs.
"""

from __future__ import annotations

from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kernpool.core import Empty, PoolState
from kernpool.data import Chunks, open_chunks
from kernpool.data.chunks.sources import refuse_dates, refuse_keys_alone
from kernpool.execution import Progress, explain_calls
from kernpool.kernels import Kernel
from kernpool.pooling.in_memory import ArrayPairs, sum_problems
from kernpool.pooling.out_of_core import ChunkPairs, is_large_map, pairs_of_maps
from kernpool.pooling.recipe import Recipe, finalize
from kernpool.pooling.source import Source
from kernpool.pooling.widths import Nearest


@np.errstate(under="ignore")
@explain_calls
def pool(
    query: ArrayLike,
    key: ArrayLike | Chunks | Source,
    value: ArrayLike | None = None,
    *,
    kernel: str | Kernel = "gaussian",
    bandwidth: ArrayLike = 1.0,
    degree: int = 0,
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
    r"""Pool values by the similarity of their keys to each query: Nadaraya-Watson or local polynomial regression.

    With weights :math:`a_{ij} = w_j K((q_i - k_j)/h)` the result is

    .. math:: \hat y_i = \frac{\sum_j a_{ij} v_j}{\sum_j a_{ij}} \quad (\text{degree } 0), \qquad
              \hat y_i = \arg\min_{\beta_0} \min_{\beta} \sum_j a_{ij} \,(v_j - \beta_0 - \beta \cdot (k_j - q_i))^2
              \quad (\text{degree } 1),

    and of degree 2 with :math:`\sum_{a \le b} \gamma_{ab} t_a t_b` added to :math:`\beta \cdot t`, where :math:`t =
    k_j - q_i`.

    Parameters
    ----------
    query : array_like of shape (m,), (m, d) or (..., m, d)
        Evaluation points. One dimension counts as one column. Leading dimensions are batches and broadcast, as in
        torch's ``scaled_dot_product_attention``. Columns of two frames of pandas or polars are compared by name.
    key : array_like of shape (n,), (n, d) or (..., n, d), or Chunks
        Keys, which queries are compared with. With chunks (see `open_chunks`) pairs come from files, streams or
        iterators, and need not fit into memory; iterables of ``(key, value)`` or ``(key, value, weight)`` are accepted.
        Large memory maps are read chunk by chunk. Dask collections are opened by `kernpool.dask.open_partitions`;
        queries on Dask then give a Dask array.
    value : array_like of shape (n,), (n, c) or (..., n, c)
        Values to pool; required unless `key` is chunks, which include values.
    kernel : str or Kernel, default="gaussian"
        See `kernel_names`. The Gaussian is positive everywhere, so no query is without neighbours. In several columns
        it is a kernel of the Euclidean norm of ``u``; ``"product epanechnikov"`` is a product of one kernel per column.
    bandwidth : float or array_like of shape (d,), default=1.0
        The ``h`` in ``u = distance / h``, in the units of the columns. Infinity weighs all keys alike along a column.
    degree : {0, 1, 2}, default=0
        Fit a constant, a plane or a quadratic around each query. A constant is the weighted mean, which stays between
        the values and needs a single key; it is the default because that is what pooling means. A plane has no bias at
        boundaries or where keys are denser on one side [3]_ [4]_, returns an affine function of the keys as it is, may
        leave the range of the values, and takes two to three times as long. Where the keys of a window do not determine
        a slope in some direction, or are far away, the fit is constant in it, with one warning. A quadratic, in one to
        three columns, has no bias where the values are curved; it returns a quadratic function of the keys as it is,
        varies more from sample to sample than a plane, takes one and a half to three times as long, and has no
        gradients. Where keys do not determine a curvature, the fit is that of ``degree=1``, with one warning.
    window : "fixed" or Nearest, default="fixed"
        With ``Nearest(k)`` each query's bandwidths are multiplied by the distance, in bandwidths, of the nearest keys
        that hold k units of weight, as in lowess, loess and locfit [5]_: windows are wide where keys are thin.
        `bandwidth` then says no more than the ratios of the columns. Coincident keys are counted; one unit of an
        excluded own key is not: the result is that of a call without it. See `kernpool.pooling.widths`.
    key_weight : array_like of shape (n,) or (..., n), optional
        Non-negative frequencies: a weight of 3 counts like three equal pairs.
    attn_mask : array_like of shape (..., m, n), optional
        Boolean: True includes the key. Floating point: added to the logits.
    exclude_self : bool, default=False
        Exclude one unit of each query's own key (leave-one-out): its weight becomes ``max(w - 1, 0)``.
    self_index : array_like of int, shape (m,) or (..., m), optional
        Which key is query i's own, -1 for none; by default key i.
    tol : float, optional
        Fraction of a query's total weight that may be omitted; the result is then within
        ``tol * (max(value) - min(value))`` of the exact one. The default is the machine epsilon of the inputs,
        so that nothing is lost beyond rounding; with ``degree=1`` it is at most that of float64, and less with
        ``degree=2``.
    algorithm : str, default="auto"
        How the sum is organised; all give the same numbers up to rounding. See `choose`, and Notes for the last bits.
    empty : {"nan", "nearest", "mean", "zero", "raise"}, default="nan"
        Value of a query without any key of positive weight: NaN with one warning, the value of the nearest key, the
        weighted mean of all included keys, zero, or an error. Where a mask excludes all keys, nearest and mean are NaN
        with a warning too.
    n_jobs : int, optional
        Threads; the result has the same bits for any number. None is 1 unless in a ``joblib.parallel_config``
        context, -1 all processors, -2 all but one.
    progress : callable, optional
        Called as ``progress(done, total)`` now and then, in queries; in rows of chunks and memory maps.

    Returns
    -------
    ndarray of shape (m,), (m, c) or (..., m, c)
        One pooled value per query, without the last axis if `value` had one dimension. In the common floating-point
        type of the arrays, float64 for integers and for chunks; sums are float64 all the same.

    Raises
    ------
    TypeError
        If an array holds complex numbers, strings or objects, or is a torch tensor; or there are keys and no values.
    ValueError
        If an array is empty, holds NaN or infinity or has the wrong shape, a name is unknown, or a number is out of
        its range, such as ``degree=2`` in more than three columns.

    Warns
    -----
    EmptyWindowWarning
        If windows are empty and `empty` is ``"nan"``.
    RankDeficiencyWarning
        If the keys of a window do not determine a plane, or a quadratic with ``degree=2``.

    See Also
    --------
    pooling_weights : The weights themselves.
    pool_state : The sums before the division, which merge over chunks of keys.
    NadarayaWatsonRegressor : The same with a bandwidth found from the data.

    Notes
    -----
    Time is O(n + m) for one column; O(n m d) or less for more, as far as keys are near (see `choose`). Memory is
    O(n + m): the n x m weights exist only in tiles. Values are centered before they are summed. Far from all keys,
    where every Gaussian weight underflows, the result is the nearest key's value, for every degree: a plane is found
    from sums of offsets ``k - q``, whose rounding grows with the squared ratio of the distance of the keys from the
    query to their spread. Where that ratio is beyond ten thousand in some direction, the fit is constant in it, with a
    warning; with ``degree=2`` it is linear from a ratio of a hundred on, such as ten bandwidths from the nearest key of
    a Gaussian (see `kernpool.core.local_fit`).

    The result has the same bits for any number of threads, and for every call of the same problem. From about a
    hundred thousand pairs on it is computed by compiled loops, which the first call of a process waits for: half a
    second or more, and several where they have never been compiled. ``algorithm="reference"`` does without (see
    `choose`).

    Where the layers and `kernpool.pool` differ on purpose:

    ===================== ============================ ==============================
    what                  `kernpool.pool`              `kernpool.torch`
    ===================== ============================ ==============================
    infinite or NaN rows  ValueError                   NaN, without asking the device
    empty window          NaN and a warning (`empty=`) zero, with a gradient of zero
    no queries            ValueError                   no rows
    no keys               ValueError                   zeros
    no columns            ValueError                   the mean: all keys are alike
    ===================== ============================ ==============================

    References
    ----------
    .. [1] E. A. Nadaraya, "On estimating regression", Theory of Probability and its Applications 9 (1964), 141-142.
    .. [2] G. S. Watson, "Smooth regression analysis", Sankhya A 26 (1964), 359-372.
    .. [3] M. P. Wand and M. C. Jones, "Kernel Smoothing", Chapman and Hall (1995), section 5.2.
    .. [4] J. Fan and I. Gijbels, "Local Polynomial Modelling and Its Applications", Chapman and Hall (1996), ch. 3.
    .. [5] C. Loader, "Local Regression and Likelihood", Springer (1999), section 2.2.1.
    .. [6] L. Breiman, W. Meisel and E. Purcell, "Variable kernel estimates of multivariate densities", Technometrics 19
           (1977), 135-144.

    Examples
    --------
    >>> import kernpool
    >>> kernpool.pool([0.0, 1000.0], [0.0, 1.0], [10.0, 20.0])
    array([13.77540669, 20.        ])
    >>> kernpool.pool([0.2, 0.8], [0.0, 1.0], [10.0, 20.0], kernel="epanechnikov", bandwidth=0.5)
    array([10., 20.])
    >>> kernpool.pool([[[0.0]], [[0.0]]], [[[0.0], [1.0]]], [[[1.0], [3.0]]], kernel="constant").shape
    (2, 1, 1)
    >>> key = [0.0, 1.0, 2.0, 3.0]
    >>> [kernpool.pool([0.0], key, key, degree=degree).round(9).tolist() for degree in (0, 1)]
    [[0.519418844], [0.0]]
    >>> kernpool.pool([0.0], [0.0, 1.0, 5.0], [1.0, 2.0, 9.0], kernel="boxcar", window=kernpool.Nearest(2))
    array([1.5])
    >>> square = [0.0, 1.0, 4.0, 9.0]
    >>> [kernpool.pool([1.5], key, square, degree=degree).round(9).tolist() for degree in (1, 2)]
    [[3.037882843], [2.25]]
    """
    recipe = Recipe.of(
        kernel,
        bandwidth,
        degree=degree,
        tol=tol,
        algorithm=algorithm,
        empty=empty,
        n_jobs=n_jobs,
        window=window,
    )
    pairs = as_pairs(key, value, key_weight, attn_mask, exclude_self, self_index)
    if isinstance(pairs, Source):
        return cast(NDArray[np.floating[Any]], pairs.pool(recipe, query, progress))
    return finalize(pairs.reduce(recipe, query, progress), recipe)


def as_pairs(
    key: ArrayLike | Chunks | Source,
    value: ArrayLike | None,
    key_weight: ArrayLike | None = None,
    attn_mask: ArrayLike | None = None,
    exclude_self: bool = False,
    self_index: ArrayLike | None = None,
) -> ArrayPairs | Source:
    """Wrap keys and values as `ArrayPairs` or `Source`, by their type; parameters as in `pool`."""
    plain = attn_mask is None and not exclude_self and self_index is None
    if value is None:
        if not isinstance(key, Source):
            refuse_keys_alone(key)
        if not (plain and key_weight is None):
            raise ValueError(
                "chunks bring their own weights, and take no key_weight, attn_mask, exclude_self or self_index; give "
                "arrays, or for leave-one-out means merge pool_state(..., self_index=...) of each chunk"
            )
        pairs = key if isinstance(key, Source) else ChunkPairs(open_chunks(key))
        refuse_dates(pairs.labels, pairs.kinds)
        return pairs
    if plain and isinstance(key, np.memmap) and is_large_map(key, value, key_weight):
        return pairs_of_maps(key, value, key_weight)
    return ArrayPairs(cast(ArrayLike, key), value, key_weight, attn_mask, exclude_self, self_index)


@np.errstate(under="ignore")
@explain_calls
def pool_state(
    query: ArrayLike,
    key: ArrayLike,
    value: ArrayLike,
    *,
    kernel: str | Kernel = "gaussian",
    bandwidth: ArrayLike = 1.0,
    degree: int = 0,
    window: str | Nearest = "fixed",
    key_weight: ArrayLike | None = None,
    attn_mask: ArrayLike | None = None,
    exclude_self: bool = False,
    self_index: ArrayLike | None = None,
    tol: float | None = None,
    algorithm: str = "auto",
    n_jobs: int | None = None,
    progress: Progress | None = None,
) -> PoolState:
    """Sum weights and weighted values at each query without dividing, so that sums over chunks of keys can be merged.

    Parameters
    ----------
    query, key, value : array_like
        As in `pool`.
    degree : {0, 1, 2}, default=0
        1 for the additional sums of a local linear fit, 2 for those of a local quadratic one, in more columns of the
        numerator: see `kernpool.core.moments` for their order, and `kernpool.core.local_fit.solve` for the fit.
    window
        As in `pool`. Windows reach to the nearest of these keys: states of chunks of keys do not merge to those of all.
    kernel, bandwidth, key_weight, attn_mask, exclude_self, self_index, tol, algorithm, n_jobs, progress
        As in `pool`.

    Returns
    -------
    PoolState
        ``finalize()`` gives the pooled values.

    Raises
    ------
    TypeError, ValueError
        As in `pool`.

    Notes
    -----
    Give every chunk the same query, kernel and bandwidth. For leave-one-out over chunks, `self_index` is the position
    within the chunk, and -1 where the own key is in another one.

    Examples
    --------
    >>> import kernpool
    >>> from functools import reduce
    >>> chunks = [([0.0, 1.0], [1.0, 2.0]), ([2.0], [3.0])]
    >>> states = [kernpool.pool_state([1.0], key, value) for key, value in chunks]
    >>> reduce(kernpool.merge, states).finalize()
    array([[2.]])
    """
    recipe = Recipe.of(
        kernel,
        bandwidth,
        degree=degree,
        tol=tol,
        algorithm=algorithm,
        n_jobs=n_jobs,
        window=window,
    )
    batch = ArrayPairs(key, value, key_weight, attn_mask, exclude_self, self_index).batch(recipe, query)
    state = sum_problems(batch.problem, recipe, batch.n_items, progress, centered=False).state
    shape = (*batch.shape, batch.n_queries)
    return PoolState(state.shift.reshape(shape), state.denominator.reshape(shape), state.numerator.reshape(*shape, -1))
