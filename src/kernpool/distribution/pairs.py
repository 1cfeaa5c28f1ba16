"""What is asked of all pairs of a query and a key: in compiled loops, pair by pair, without a table."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernpool.core.problem import Problem
from kernpool.distribution.descent import LN_2
from kernpool.distribution.places import FAR
from kernpool.distribution.selection import can_select
from kernpool.execution.threads import resolve_n_jobs, run_blocks
from kernpool.pooling.choice import choose
from kernpool.pooling.recipe import Recipe
from kernpool.pooling.weights import weight_rows

Array = NDArray[np.float64]
Index = NDArray[np.intp]

FEW_PAIRS = 100_000  # that tables do before loops are loaded
PAIRS = 1 << 21  # of a block, which Ctrl-C waits for
# Given the leading arguments of a loop and which queries they are of.
Look = Callable[[tuple[Any, ...], Index], None]


def look_through(recipe: Recipe, problem: Problem, look: Look) -> tuple[Index, NDArray[np.bool_]]:
    """Call a loop for blocks of queries, on threads.

    Parameters
    ----------
    recipe : Recipe
        How sums of all weights are found, and on how many threads.
    problem : Problem
        Whose pairs; its values do not matter.
    look : callable
        Calls the loop, which begins with the arguments that it is given.

    Returns
    -------
    rest : ndarray of int
        Queries for which it was not called: too few pairs, no loop for the kernel, or too far from all keys for a unit
        in which all weights are counted. Their windows are not empty.
    occupied : ndarray of bool, shape (m,)
        Which windows are not empty.
    """
    m, n = problem.shape
    bare = replace(problem, value=np.zeros((n, 1)), value_center=np.zeros(1), degree=0)
    everyone = np.arange(m)
    if m * n <= FEW_PAIRS or not can_select(bare):
        return everyone, np.ones(m, dtype=bool)
    if bare.key_weight is not None and not bare.key_weight.any():
        return everyone[:0], np.zeros(m, dtype=bool)
    state = choose(bare, "auto", often=True).reduce(bare, n_jobs=recipe.n_jobs)
    occupied, unit, near = state.denominator > 0, np.zeros(m), state.denominator > 0
    if not bare.similarity.kernel.is_compact:
        mass = np.where(occupied, state.log_denominator, 0.0) - np.log(bare.weight_unit)
        near, unit = occupied & (np.abs(mass) < FAR), np.rint(mass / LN_2)
    rows = np.flatnonzero(near)
    arguments = _arguments(bare, unit)

    def work(block: slice) -> Iterator[None]:
        look(arguments(rows[block]), rows[block])
        yield

    at_once = max(1, PAIRS // n)
    blocks = [slice(i, min(i + at_once, len(rows))) for i in range(0, len(rows), at_once)]
    run_blocks(work, blocks, resolve_n_jobs(recipe.n_jobs), None)
    return np.flatnonzero(occupied & ~near), occupied


def tables_of(problem: Problem, rest: Index, occupied: NDArray[np.bool_]) -> Iterator[tuple[Index, Array]]:
    """Yield some of the queries that no loop was called for, and their weights; say which windows are not empty.

    Parameters
    ----------
    problem : Problem
        Of all queries.
    rest, occupied
        Of `look_through`; `occupied` is changed where it is of queries in `rest`.
    """
    for some, share in weight_rows(problem.block(rest)):
        rows = rest[some]
        occupied[rows] = share.any(axis=1)
        yield rows[occupied[rows]], share[occupied[rows]]


def _arguments(problem: Problem, unit: Array) -> Callable[[Index], tuple[Any, ...]]:
    from kernpool.algorithms.brute.compiled import kernel_of  # with what loads Numba
    from kernpool.algorithms.brute.precision import read_only

    code, tables = np.empty((0, len(problem.key)), dtype=np.int64), np.empty((0, 1, 1))
    if problem.factors is not None:
        code, tables = problem.factors.key_code.T, problem.factors.stacked_tables()
    key, key_weight = problem.key.T, np.empty(0) if problem.key_weight is None else problem.key_weight
    key, key_weight, code, tables = (read_only(array) for array in (key, key_weight, code, tables))
    how = kernel_of(problem)
    mask, own, own_weight = problem.attn_mask, problem.self_index, problem.own_weight

    def of(rows: Index) -> tuple[Any, ...]:
        levels = np.empty((len(rows), 0), dtype=np.int64)
        each = (
            np.empty((0, 0), dtype=bool) if mask is None else mask[rows],
            np.full(len(rows), -1) if own is None else own[rows],
            own_weight[rows],
            levels if problem.factors is None else problem.factors.query_code[rows],
        )
        masks = [read_only(array) for array in each]
        return read_only(problem.query[rows]), key, key_weight, *masks, code, tables, *how, read_only(unit[rows])

    return of
