"""Dense pooling weights: the weight of each key in each pooled value.

Weights are defined by `reference.pair_weights`; `weight_rows` computes them, some rows at a time, for every function
that shows weights, with and without categorical columns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import ArrayLike

from kernpool._arrays import Array, Flags, Index
from kernpool.algorithms.reference import pair_weights
from kernpool.core import Empty, Problem, check_empty, fill_empty
from kernpool.execution import explain_calls
from kernpool.kernels import Kernel
from kernpool.pooling.in_memory import ArrayPairs
from kernpool.pooling.recipe import Recipe, limit_problem
from kernpool.pooling.widths import Nearest

PAIRS_AT_ONCE = 1 << 20  # dense temporaries of 8 MiB each


@np.errstate(under="ignore")
@explain_calls
def pooling_weights(
    query: ArrayLike,
    key: ArrayLike,
    *,
    kernel: str | Kernel = "gaussian",
    bandwidth: ArrayLike = 1.0,
    window: str | Nearest = "fixed",
    key_weight: ArrayLike | None = None,
    attn_mask: ArrayLike | None = None,
    exclude_self: bool = False,
    self_index: ArrayLike | None = None,
    tol: float | None = None,
    empty: Empty = "nan",
    max_bytes: int = 1 << 30,
) -> Array:
    r"""Return the pooling weights alpha, one probability distribution over the keys per query.

    .. math:: \alpha_{ij} = w_j K((q_i - k_j)/h) \Big/ \sum_l w_l K((q_i - k_l)/h)

    Parameters
    ----------
    query, key : array_like
        As in `pool`.
    kernel, bandwidth, window, key_weight, attn_mask, exclude_self, self_index, tol
        As in `pool`.
    empty : {"nan", "nearest", "mean", "zero", "raise"}, default="nan"
        Weights of a query whose window is empty: NaN with one warning, all on the nearest key, in proportion to the
        key weights, zeros, or an error.
    max_bytes : int, default=2**30
        The largest result allowed. This is the one function whose result has n x m entries, so it asks first.

    Returns
    -------
    ndarray of shape (m, n) or (..., m, n)
        Non-negative, each row sums to one. ``weights @ value`` is what `pool` returns.

    Raises
    ------
    ValueError
        If the weights would need more than `max_bytes`; and as in `pool`.

    Examples
    --------
    >>> import kernpool
    >>> kernpool.pooling_weights([0.0], [-1.0, 0.0, 1.0]).round(3)
    array([[0.274, 0.452, 0.274]])
    """
    recipe = Recipe.of(kernel, bandwidth, tol=tol, empty=empty, window=window)
    batch = ArrayPairs(key, None, key_weight, attn_mask, exclude_self, self_index).batch(recipe, query)
    weights = weight_tables(batch.problem, batch.n_items, empty=empty, max_bytes=max_bytes)
    return weights.reshape(*batch.shape, batch.n_queries, batch.n_keys)


def weight_tables(
    problem: Callable[[int], Problem],
    items: int = 1,
    *,
    empty: Empty = "nan",
    max_bytes: int = 1 << 30,
    warn: bool = False,
) -> Array:
    """Return dense pooling weights of equally shaped problems; `empty` says what they are where no key has weight.

    Examples
    --------
    >>> problem = Problem.from_arrays([0.0, 9.0], [0.0, 1.0], [5.0, 7.0], kernel="boxcar", bandwidth=2.0)
    >>> weight_tables(lambda _: problem, empty="nearest")
    array([[[0.5, 0.5],
            [0. , 1. ]]])
    """
    check_empty(empty)
    m, n = problem(0).shape
    _check_size(m * items, n, max_bytes)
    weights = np.empty((items, m, n))
    for i, table in enumerate(weights):
        for rows, part in weight_rows(problem(i)):
            table[rows] = part
    flat = weights.reshape(-1, n)
    is_empty: Flags = np.logical_not(flat.any(axis=1))
    if not is_empty.any():
        return weights

    def fill(rows: Index) -> Array:
        item, row = np.divmod(rows, m)
        limits = [limit_problem(problem(i).block(row[item == i]), empty) for i in np.unique(item).tolist()]
        filled = np.concatenate([part for limit in limits for _, part in weight_rows(limit)])
        return np.where(filled.any(axis=1, keepdims=True), filled, np.nan)

    return fill_empty(flat, np.logical_not(is_empty), empty, fill, warn=warn).reshape(weights.shape)


def weight_rows(problem: Problem) -> Iterator[tuple[slice, Array]]:
    """Yield the dense pooling weights of a problem, in blocks of queries.

    Examples
    --------
    >>> problem = Problem.from_arrays([0.0, 9.0], [0.0, 1.0], [5.0, 7.0], kernel="boxcar", bandwidth=2.0)
    >>> list(weight_rows(problem))
    [(slice(0, 2, None), array([[0.5, 0.5],
           [0. , 0. ]]))]
    """
    m, n = problem.shape
    at_once = max(1, PAIRS_AT_ONCE // n)
    for start in range(0, m, at_once):
        rows = slice(start, min(start + at_once, m))
        _, weight = pair_weights(problem.block(rows).with_dense_factors())
        total = weight.sum(axis=1, keepdims=True)
        yield rows, np.divide(weight, total, where=total > 0, out=weight)


def _check_size(queries: int, keys: int, max_bytes: int) -> None:
    size = 8 * queries * keys
    if size > max_bytes:
        raise ValueError(
            f"the weights of {queries} queries x {keys} keys need {size / 1e9:.3g} GB, more "
            f"than max_bytes={max_bytes}; ask for fewer queries, or pass a larger max_bytes"
        )
