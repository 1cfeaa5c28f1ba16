"""Conditional distribution functions on a Dask cluster: partitions answer one question, a tree joins the answers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kernpool.core.empty import Empty
from kernpool.dask.partitions import Partitions, as_partitions
from kernpool.dask.pool import RETRIES
from kernpool.dask.quantile import AskPartitions
from kernpool.distribution import Function, as_thresholds, asked_of, counted_functions, without_axes
from kernpool.execution.messages import explain_calls
from kernpool.kernels import Kernel
from kernpool.pooling.recipe import Recipe

Array = NDArray[np.float64]


@explain_calls
def pool_cdf(
    query: ArrayLike,
    key: Any,
    value: Any = None,
    y: ArrayLike | None = None,
    *,
    target: str | Sequence[str] | None = None,
    features: Sequence[str] | None = None,
    key_weight: Any = None,
    kernel: str | Kernel = "gaussian",
    bandwidth: ArrayLike = 1.0,
    composition: str = "radial",
    tol: float | None = None,
    algorithm: str = "auto",
    empty: Empty = "nan",
    client: Any = None,
    retries: int = RETRIES,
) -> Array:
    """Pool how much of the weight lies at or below thresholds, of pairs in Dask collections or files.

    Parameters
    ----------
    query : array_like of shape (m,) or (m, d)
        Where, in memory.
    key, value, target, features, key_weight
        As in `kernpool.dask.pool`.
    y : float, or array_like
        Thresholds, of shape (t,) for all queries, or (m, t); with several value columns (m, c, t), where axes may have
        length 1.
    kernel, bandwidth, composition, tol, algorithm, empty
        As in `kernpool.pool_cdf`.
    client, retries
        As in `kernpool.dask.pool`.

    Returns
    -------
    ndarray of shape (m,), (m, t), (m, c) or (m, c, t)
        As of `kernpool.pool_cdf`, up to rounding; the same bits for any number of workers.

    Raises
    ------
    TypeError, ValueError
        As in `kernpool.dask.pool`, and if `y` is missing, holds NaN or has another shape.

    Warns
    -----
    EmptyWindowWarning
        If windows are empty and `empty` is ``"nan"``.

    Notes
    -----
    One pass over all partitions, and another for windows that are empty or far from all rows.

    Examples
    --------
    >>> import dask.array
    >>> value = dask.array.arange(4.0, chunks=2)
    >>> pool_cdf([1.5], dask.array.ones(4, chunks=2), value, [0.0, 1.5, 3.0])
    array([[0.25, 0.5 , 1.  ]])
    """
    if y is None:
        raise TypeError("y must be given: the thresholds, such as y=0.0")
    recipe = Recipe.of(kernel, bandwidth, composition=composition, tol=tol, algorithm=algorithm, empty=empty, n_jobs=1)
    partitions = as_partitions(key, value, key_weight, target=target, features=features)
    return partition_functions(recipe, query, partitions, y, client, retries)


def partition_functions(
    recipe: Recipe,
    query: ArrayLike,
    partitions: Partitions,
    y: ArrayLike,
    client: Any,
    retries: int,
    *,
    widths: Array | None = None,
    density: bool = False,
) -> Array:
    """Return distribution functions of pairs in partitions, or densities, in the shape of `pool_cdf`.

    Parameters
    ----------
    recipe, query, partitions, y, client, retries
        As of `pool_cdf`.
    widths : ndarray of shape (c,), optional
        Bandwidths in y.
    density : bool, default=False
        Whether densities are wanted.

    Returns
    -------
    ndarray of shape (m,), (m, t), (m, c) or (m, c, t)
        The functions.
    """
    asked = asked_of(recipe, query, partitions.names)
    threshold, with_axis = as_thresholds(y, len(asked), partitions.outputs, several=not partitions.flat)
    ask = AskPartitions(partitions, client, retries)
    found = counted_functions(asked, ask, Function(threshold, widths, density))
    return without_axes(found, partitions.flat, with_axis)
