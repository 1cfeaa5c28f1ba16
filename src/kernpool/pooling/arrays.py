"""Pairs in memory: plain, in batches, or with levels; one problem, or one for each item of a batch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kernpool.algorithms.far.keys import fit_lost
from kernpool.core.batch import Batch
from kernpool.core.factors import Factors
from kernpool.core.keys import Keys
from kernpool.core.local_fit import LocalFit
from kernpool.core.problem import Problem
from kernpool.core.state import PoolState
from kernpool.execution.progress import Progress
from kernpool.pooling.cells import CellPlan
from kernpool.pooling.choice import choose
from kernpool.pooling.groups import GroupPlan
from kernpool.pooling.limits import limit_values
from kernpool.pooling.plan import Plan
from kernpool.pooling.recipe import Recipe
from kernpool.pooling.settle import Sums
from kernpool.pooling.small import sum_small
from kernpool.pooling.stacked import sum_stack

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class ArrayPairs:
    """Pairs in arrays, with all that may be said of a query and a key; parameters as in `pool`."""

    key: ArrayLike
    value: ArrayLike | None
    key_weight: ArrayLike | None = None
    attn_mask: ArrayLike | None = None
    exclude_self: bool = False
    self_index: ArrayLike | None = None

    @property
    def is_plain(self) -> bool:
        """Whether there is nothing but keys and values."""
        rest = self.key_weight, self.attn_mask, self.self_index
        return self.exclude_self is False and all(x is None for x in rest)

    def batch(self, recipe: Recipe, query: ArrayLike) -> Batch:
        """Return the problems of some queries, one per item of the batch."""
        return Batch(
            query,
            self.key,
            self.value,
            key_weight=self.key_weight,
            attn_mask=self.attn_mask,
            self_index=self.self_index,
            make=partial(recipe.problem, exclude_self=self.exclude_self),
        )

    def plan(self, recipe: Recipe, query: ArrayLike) -> Plan | CellPlan | GroupPlan:
        """Say by which algorithm the first item of the batch would be summed, and why."""
        return choose(self.batch(recipe, query).problem(0), recipe.algorithm)

    def reduce(self, recipe: Recipe, query: ArrayLike, progress: Progress | None = None) -> Sums:
        """Sum over all keys."""
        if self.is_plain and progress is None:
            sums = sum_small(recipe, query, self.key, self.value)
            if sums is not None:
                return sums
        batch = self.batch(recipe, query)
        together = sum_stack(batch, recipe.algorithm, recipe.n_jobs, progress)
        sums = sum_problems(recipe, batch.problem, len(batch), progress, complete=True, together=together)
        return replace(sums, shape=batch.output_shape, dtype=batch.dtype)


@dataclass(frozen=True, eq=False)
class KeyPairs:
    """Keys that have been read before, for one set of queries after the other.

    Parameters
    ----------
    keys : Keys
        The pairs.
    factors : Factors, optional
        Of the queries that come, where there are categorical columns.
    exclude_self : bool, default=False
        Whether queries are the keys themselves, each left out of its fit.
    """

    keys: Keys
    factors: Factors | None = None
    exclude_self: bool = False

    def problem(self, recipe: Recipe, query: ArrayLike) -> Problem:
        """Return the problem of some queries."""
        return recipe.problem(query, self.keys, exclude_self=self.exclude_self, factors=self.factors)

    def plan(self, recipe: Recipe, query: ArrayLike) -> Plan | CellPlan | GroupPlan:
        """Say by which algorithm they would be summed, and why."""
        return choose(self.problem(recipe, query), recipe.algorithm, often=True)

    def reduce(self, recipe: Recipe, query: ArrayLike, progress: Progress | None = None) -> Sums:
        """Sum over all keys."""
        problem = self.problem(recipe, query)
        return sum_problems(recipe, lambda _: problem, 1, progress, often=True)


def sum_problems(
    recipe: Recipe,
    problem: Callable[[int], Problem],
    items: int = 1,
    progress: Progress | None = None,
    *,
    complete: bool = False,
    often: bool = False,
    together: tuple[PoolState, Array] | None = None,
) -> Sums:
    """Sum problems of the same shape, one after the other.

    Parameters
    ----------
    recipe : Recipe
        How to sum.
    problem : callable
        Number of an item to its problem; called again where windows are empty, so that one is held at a time.
    items : int, default=1
        How many there are.
    progress : callable, optional
        Called as ``progress(done, total)`` in queries of all items.
    complete : bool, default=False
        Whether planes that the sums have lost are fitted from the keys themselves; else they are constant there.
    often : bool, default=False
        As of `choose`.
    together : (PoolState, ndarray of shape (items, c)), optional
        Of `sum_stack`, if the items have been summed together.

    Returns
    -------
    Sums
        Rows of the first item first.
    """
    first = problem(0)
    m, centered = len(first.query), bool(first.degree or first.factors)
    if together is None:
        state, centers = _sum_all(recipe, problem, items, progress, centered=centered, often=often)
    else:
        state, centers = together[0] if centered else _with_centers(first, *together), list(together[1])

    def fill(rows: NDArray[np.intp]) -> Array:
        item, row = np.divmod(rows, m)
        parts = [limit_values(problem(i), row[item == i], recipe.empty, recipe.n_jobs) for i in np.unique(item)]
        return np.concatenate(parts)

    def fit_lost_planes(fit: LocalFit) -> LocalFit:
        parts = [fit.rows(slice(i * m, (i + 1) * m)) for i in range(items)]
        return LocalFit.joined(
            [fit_lost(problem(i), part) if part.lost.any() else part for i, part in enumerate(parts)]
        )

    center = np.concatenate([np.broadcast_to(c, (m, len(c))) for c in centers]) if centered else None
    return Sums(state, first.layout, center, fill, fit_lost_planes if complete and first.degree else None)


def sum_states(
    recipe: Recipe, problem: Callable[[int], Problem], items: int = 1, progress: Progress | None = None
) -> PoolState:
    """Return the state of all items, of the values themselves; parameters as of `sum_problems`."""
    return _sum_all(recipe, problem, items, progress, centered=False, often=False)[0]


def _sum_all(
    recipe: Recipe,
    problem: Callable[[int], Problem],
    items: int,
    progress: Progress | None,
    *,
    centered: bool,
    often: bool,
) -> tuple[PoolState, list[Array]]:
    """Return the state of all items, of values less the center of their item or not, and these centers."""
    states, centers = [], []
    for i in range(items):
        one = problem(i)
        centers.append(one.value_center)
        one = one.without_center() if centered else one
        report = None if progress is None else partial(_report, progress, i, items)
        states.append(choose(one, recipe.algorithm, often=often).reduce(one, n_jobs=recipe.n_jobs, progress=report))
    return _joined(states), centers


def local_fit(
    problem: Problem,
    algorithm: str = "auto",
    n_jobs: int | None = None,
    progress: Progress | None = None,
    *,
    complete: bool = True,
    ridge: Array | None = None,
) -> LocalFit:
    """Fit a constant or a plane around each query of a problem.

    Parameters
    ----------
    problem : Problem
        What to fit.
    algorithm, n_jobs, progress
        As in `pool`.
    complete : bool, default=True
        Whether planes that sums have lost are fitted from the keys themselves; else they are constant there.
    ridge : ndarray of shape (d,), optional
        Of `Recipe.ridge_weight`.

    Returns
    -------
    LocalFit
        Values, slopes per bandwidth, and ranks; zeros for empty windows.

    Examples
    --------
    >>> import kernpool
    >>> problem = kernpool.Problem.from_arrays([1.0], [0.0, 2.0, 3.0], [5.0, 9.0, 11.0], bandwidth=2.0, degree=1)
    >>> local_fit(problem).slope / problem.similarity.bandwidth[:, None]
    array([[[2.]]])
    """
    plan = choose(problem, algorithm, often=True)
    state = plan.reduce(problem.without_center(), n_jobs=n_jobs, progress=progress)
    lost = partial(fit_lost, problem) if complete and problem.degree and problem.factors is None else None
    return Sums(state, problem.layout, problem.value_center, complete=lost).fit(ridge)


def _with_centers(first: Problem, state: PoolState, centers: Array) -> PoolState:
    """Return the states of problems without moments, like the first, given those of values less their centers."""
    added = state.denominator[:, None] * np.repeat(centers, len(first.query), axis=0)
    return PoolState(state.shift, state.denominator, state.numerator + added)


def _joined(states: list[PoolState]) -> PoolState:
    """Return the states of several sets of queries as one."""
    if len(states) == 1:
        return states[0]
    return PoolState(
        np.concatenate([state.shift for state in states]),
        np.concatenate([state.denominator for state in states]),
        np.concatenate([state.numerator for state in states]),
    )


def _report(progress: Progress, item: int, items: int, done: int, total: int) -> None:
    progress(item * total + done, items * total)
