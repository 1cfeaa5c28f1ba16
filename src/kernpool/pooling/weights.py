"""Pooling weights, dense: what each key counts for each query, of plain problems and of those with categorical columns.

`reference.pair_weights` says what weights are; everything that shows weights gets them from `weight_rows`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kernpool.algorithms.reference import pair_weights
from kernpool.core.batch import Batch
from kernpool.core.problem import Problem
from kernpool.core.state import Empty, PoolState, check_empty
from kernpool.pooling.dense_cells import with_factors
from kernpool.pooling.empty import limit_problem
from kernpool.pooling.mixed import MixedProblem

Array = NDArray[np.float64]

PAIRS_AT_ONCE = 1 << 20  # dense temporaries of 8 MiB each


def pooling_weights(
    query: ArrayLike,
    key: ArrayLike,
    *,
    empty: Empty = "nan",
    max_bytes: int = 1 << 30,
    **similarity: Any,
) -> Array:
    r"""Compute the pooling weights alpha, one probability distribution over the keys per query.

    .. math:: \alpha_{ij} = w_j K((q_i - k_j)/h) \Big/ \sum_l w_l K((q_i - k_l)/h)

    Parameters
    ----------
    query, key : array_like
        As in `pool`.
    empty : {"nan", "nearest", "mean", "zero", "raise"}, default="nan"
        Weights of a query whose window is empty: NaN with one warning, all on the nearest key, in proportion to the
        key weights, zeros, or an error.
    max_bytes : int, default=2**30
        The largest result allowed. This is the one function whose result has n x m entries, so it asks first.
    **similarity
        As in `pool_state`.

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
    batch = Batch(query, key, None, degree=0, **similarity)
    weights = weight_tables(batch.problem, len(batch), empty=empty, max_bytes=max_bytes)
    return weights.reshape(*batch.shape, batch.n_queries, batch.n_keys)


def weight_tables(
    problem: Callable[[int], Problem | MixedProblem], items: int = 1, *, empty: Empty = "nan", max_bytes: int = 1 << 30
) -> Array:
    """Compute the weights of some problems of the same shape, with empty windows as `empty` says.

    Parameters
    ----------
    problem : callable
        The number of an item to its problem.
    items : int, default=1
        How many there are.
    empty : {"nan", "nearest", "mean", "zero", "raise"}, default="nan"
        As in `pooling_weights`. The nearest key and the mean of a mixed problem are those of its numeric columns, as in
        `settle_empty`.
    max_bytes : int, default=2**30
        The largest result allowed.

    Returns
    -------
    ndarray of shape (items, m, n)
        Rows are non-negative and sum to one, but for empty windows.

    Raises
    ------
    ValueError
        If the weights would need more than `max_bytes`; or a window is empty, and `empty` is ``"raise"``.

    Warns
    -----
    EmptyWindowWarning
        As `pool` does.

    Examples
    --------
    >>> problem = Problem.from_arrays([0.0, 9.0], [0.0, 1.0], [5.0, 7.0], kernel="boxcar", bandwidth=2.0)
    >>> weight_tables(lambda _: problem, empty="nearest")
    array([[[0.5, 0.5],
            [0. , 1. ]]])
    """
    check_empty(empty)
    m, n = _numeric(problem(0)).shape
    _check_size(m * items, n, max_bytes)
    weights = np.empty((items, m, n))
    for i, table in enumerate(weights):
        for rows, part in weight_rows(problem(i)):
            table[rows] = part
    flat = weights.reshape(-1, n)
    is_empty = ~flat.any(axis=1)
    if not is_empty.any():
        return weights

    def fill(rows: NDArray[np.intp]) -> Array:
        item, row = np.divmod(rows, m)
        limits = [limit_problem(_numeric(problem(i)).block(row[item == i]), empty) for i in np.unique(item).tolist()]
        filled = np.concatenate([part for limit in limits for _, part in weight_rows(limit)])
        return np.where(filled.any(axis=1, keepdims=True), filled, np.nan)

    settled = PoolState(np.zeros(len(flat)), np.where(is_empty, 0.0, 1.0), flat).finalize(empty, fill)
    return settled.reshape(weights.shape)


def weight_rows(problem: Problem | MixedProblem) -> Iterator[tuple[slice, Array]]:
    """Yield the pooling weights of a problem, some rows at a time.

    Parameters
    ----------
    problem : Problem or MixedProblem
        Whose weights.

    Yields
    ------
    rows : slice
        Which queries.
    weights : ndarray of shape (rows, n)
        Their weights of all keys: rows that sum to one, or to zero where the window is empty.

    Examples
    --------
    >>> problem = Problem.from_arrays([0.0, 9.0], [0.0, 1.0], [5.0, 7.0], kernel="boxcar", bandwidth=2.0)
    >>> list(weight_rows(problem))
    [(slice(0, 2, None), array([[0.5, 0.5],
           [0. , 0. ]]))]
    """
    m, n = _numeric(problem).shape
    at_once = max(1, PAIRS_AT_ONCE // n)
    for start in range(0, m, at_once):
        rows = slice(start, min(start + at_once, m))
        part = _numeric(problem).block(rows)
        if isinstance(problem, MixedProblem) and problem.tables:
            part = with_factors(part, problem.log_factors(rows))
        _, weight = pair_weights(part)
        total = weight.sum(axis=1, keepdims=True)
        yield rows, np.divide(weight, total, where=total > 0, out=weight)


def _numeric(problem: Problem | MixedProblem) -> Problem:
    return problem.problem if isinstance(problem, MixedProblem) else problem


def _check_size(queries: int, keys: int, max_bytes: int) -> None:
    size = 8 * queries * keys
    if size > max_bytes:
        raise ValueError(
            f"the weights of {queries} queries x {keys} keys need {size / 1e9:.3g} GB, more "
            f"than max_bytes={max_bytes}; ask for fewer queries, or pass a larger max_bytes"
        )
