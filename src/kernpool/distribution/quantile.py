"""Conditional quantiles of pairs in arrays."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kernpool.core.empty import Empty, fill_empty
from kernpool.core.problem import Problem
from kernpool.data.checks import as_real_array
from kernpool.data.chunks.base import Chunks
from kernpool.distribution.places import Sums
from kernpool.execution.progress import Progress
from kernpool.kernels import Kernel
from kernpool.pooling.arrays import ArrayPairs
from kernpool.pooling.limits import limit_problem
from kernpool.pooling.recipe import Recipe

Array = NDArray[np.float64]


def pool_quantile(
    query: ArrayLike,
    key: ArrayLike,
    value: ArrayLike,
    levels: ArrayLike = 0.5,
    *,
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
) -> NDArray[np.floating[Any]]:
    r"""Pool quantiles of values by the similarity of their keys to each query, in place of their mean.

    .. math:: Q(\tau \mid q) = \min \Big\{ v_j : \sum_{l:\, v_l \le v_j} \alpha_l(q) \ge \tau \Big\}

    with the weights alpha of `pool`: the generalised inverse of the conditional distribution function. Every result is
    one of the values, bit for bit.

    Parameters
    ----------
    query, key, value : array_like
        As in `pool`. Several value columns have quantiles of their own, each.
    levels : float or array_like of shape (l,), default=0.5
        Shares of the weight, between 0 and 1, in any order; the default is the conditional median. Zero is the least
        value whose share is above 2**-960. A level that is met within ``2**-50 sqrt(n)`` is met: .1 by three of 30
        equal weights, and 1 where no more than that is missing.
    kernel, bandwidth, composition, key_weight, attn_mask, exclude_self, self_index, tol
        As in `pool`.
    algorithm : str, default="auto"
        How sums over many keys are organised, as in `pool`.
    empty : {"nan", "nearest", "mean", "zero", "raise"}, default="nan"
        What a query without any key of positive weight gets: NaN with one warning, the quantile of the nearest keys,
        that of all keys that take part, zero, or an error.
    n_jobs : int, optional
        Threads; the result has the same bits for any number.
    progress : callable, optional
        Called as ``progress(done, total)`` now and then.

    Returns
    -------
    ndarray of shape (..., m), (..., m, l), (..., m, c) or (..., m, c, l)
        With an axis for value columns if `value` has one, and a last one for levels unless `levels` is one number.

    Raises
    ------
    TypeError, ValueError
        As in `pool`, and if a level is not between 0 and 1.

    Warns
    -----
    EmptyWindowWarning
        If windows are empty and `empty` is ``"nan"``.

    See Also
    --------
    pool : The mean of the same distribution.

    Notes
    -----
    Equal to sorting each row of the weights by value and adding up, except where the distribution function meets a
    level within rounding. The keys are put in the order of values once; a sum over the lower half of them says on
    which side of the middle a quantile lies, and so on down: about log2(n / 512) sums in all, each by the algorithm
    that `choose` finds. Where that is brute force, the keys are looked through in their order instead, up to the one
    that is wanted, so that every pair counts at most twice. Memory is O(n + m): a table of all weights never exists. A
    float mask, a kernel of one's own, and queries so far away that a logarithm of their weights is beyond 65 536 go by
    tables of a few queries. Where few keys count, high and low levels are extremes of a
    small sample.

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
    """
    if isinstance(key, Chunks):
        raise TypeError(
            "key must be an array: quantiles put all values in order, and chunks are not held together; draw a sample "
            "of the rows, or give the chunks as arrays"
        )
    level = as_levels(levels)
    recipe = Recipe.of(
        kernel, bandwidth, composition=composition, tol=tol, algorithm=algorithm, empty=empty, n_jobs=n_jobs
    )
    batch = ArrayPairs(key, value, key_weight, attn_mask, exclude_self, self_index).batch(recipe, query)
    tables = []
    for i in range(len(batch)):
        report = None if progress is None else partial(_report, progress, i, len(batch))
        tables.append(quantiles(recipe, batch.problem(i), batch.values(i), level.ravel(), report))
    found = (
        (tables[0] if len(tables) == 1 else np.stack(tables))
        .reshape(*batch.output_shape, level.size)
        .astype(batch.dtype, copy=False)
    )
    return found if level.ndim else found[..., 0]


def as_levels(levels: ArrayLike) -> Array:
    """Read levels of quantiles.

    Parameters
    ----------
    levels : float or array_like
        What the caller passed.

    Returns
    -------
    ndarray of shape () or (l,)
        Between 0 and 1.

    Raises
    ------
    ValueError
        If one is not, or there are none, or they have two dimensions.
    """
    given = as_real_array("levels", levels)
    # The float32 next to .1 is above .1, and three of 30 equal weights would not reach it.
    level: Array = np.asarray(given.astype(np.str_) if given.dtype.itemsize < 8 else given, dtype=np.float64)
    if level.ndim > 1 or not level.size:
        raise ValueError(f"levels must be one number or a list of them, got an array of shape {level.shape}")
    wrong = level[~((level >= 0) & (level <= 1))]
    if wrong.size:
        raise ValueError(f"levels must be between 0 and 1, got {wrong.ravel()[0]}; a median is 0.5, not 50")
    return level


def quantiles(recipe: Recipe, problem: Problem, value: Array, level: Array, progress: Progress | None = None) -> Array:
    """Return the quantiles of a problem, with empty windows as the recipe says.

    Parameters
    ----------
    recipe : Recipe
        How to sum, and what empty windows get.
    problem : Problem
        Whose weights.
    value : ndarray of shape (n, c)
        The values as they came.
    level : ndarray of shape (l,) or (m, l)
        The same for all queries, or each its own.
    progress : callable, optional
        As in `pool_quantile`.

    Returns
    -------
    ndarray of shape (m, c, l)
        Values.
    """
    found, occupied = known_quantiles(recipe, problem, value, level, progress)
    return with_limits(recipe, problem, value, level, found, occupied)


def with_limits(
    recipe: Recipe, problem: Problem, value: Array, level: Array, found: Array, occupied: NDArray[np.bool_]
) -> Array:
    """Return quantiles of shape (m, c, l) in which empty windows have what the recipe says; parameters as above."""

    def fill(rows: NDArray[np.intp]) -> Array:
        limit = limit_problem(problem.block(rows), recipe.empty)
        some = level if level.ndim == 1 else level[rows]
        return known_quantiles(recipe, limit, value, some)[0].reshape(len(rows), -1)

    return fill_empty(found.reshape(len(found), -1), occupied, recipe.empty, fill).reshape(found.shape)


def known_quantiles(
    recipe: Recipe, problem: Problem, value: Array, level: Array, progress: Progress | None = None
) -> tuple[Array, NDArray[np.bool_]]:
    """Return quantiles of shape (m, c, l), NaN where windows are empty, and which are not; parameters as above."""
    m, c = len(problem.query), value.shape[1]
    level = np.broadcast_to(level, (m, level.shape[-1]))
    sums, total = Sums.of(problem, recipe), max(1, m * level.shape[1] * c)
    found, occupied = np.full((m, c, level.shape[1]), np.nan), np.zeros(m, dtype=bool)
    for number, column in enumerate(value.T):

        def report(done: int, before: int = number * total // c) -> None:
            if progress is not None:
                progress(min(before + done, total - 1), total)

        for rows, place in sums.each(np.argsort(column, kind="stable"), level, report):
            found[rows, number], occupied[rows] = column[place], True
    if progress is not None:
        progress(total, total)
    return found, occupied


def _report(progress: Progress, item: int, items: int, done: int, total: int) -> None:
    progress(item * total + done, items * total)
