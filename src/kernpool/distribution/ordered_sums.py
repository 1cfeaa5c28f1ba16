"""Sums of kernel weights over keys in the order of their values: by compiled loops, or by tables of weights.

Few pairs, and problems that have no compiled loop, are summed by tables of the weights of some queries.
`sum_over_pairs` runs a compiled loop over all pairs of a query and a key, and tables for queries that it does not suit.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernpool.algorithms.costs import may_underflow
from kernpool.core import PoolState, Problem
from kernpool.execution.threads import cut, resolve_n_jobs, run_blocks
from kernpool.kernels import Kernel, is_compiled
from kernpool.pooling import Recipe, sum_problem, weight_rows

Array = NDArray[np.float64]
Index = NDArray[np.intp]

LN_2 = float(np.log(2.0))
TABLE_PAIRS = 100_000  # that a table takes less time for than loops and several sums need to start
FEWEST_KEYS = 512  # that are halved
QUICK_PAIRS = 1 << 20  # looked at one by one in the time that a few more sums take to start
# Of logarithms of sums: beyond, a power of two next to one is rounded to more than 1e-11. Such queries are ten thousand
# bandwidths away from all keys, or nearly, and have tables in their own unit.
FAR = 2.0**16
PAIRS = 1 << 21  # of a block, which Ctrl-C waits for


def is_small(problem: Problem) -> bool:
    """Return whether a table of all weights is the quickest way to sum them."""
    return problem.shape[0] * problem.shape[1] <= TABLE_PAIRS


def has_loop(problem: Problem) -> bool:
    """Return whether the compiled loops over ordered keys support a problem, and are worth their start."""
    kernel = problem.similarity.kernel
    plain = problem.similarity.widening is None and problem.logit_bias is None and problem.excluded is None
    underflows = kernel.is_compact and may_underflow(problem)
    return plain and is_compiled(kernel) and not underflows and not is_small(problem)


def bare(problem: Problem) -> Problem:
    """Return the problem of the weights alone: local constant, with values of zero."""
    return replace(problem, value=np.zeros((len(problem.key), 1)), value_center=np.zeros(1), degree=0)


def common_units(kernel: Kernel, state: PoolState, weight_unit: float = 1.0) -> tuple[Array, NDArray[np.bool_]]:
    """Return units for the weights of each query, and the queries that have a key and are near enough for a unit."""
    # powers of two near the sum of weights, against under- and overflow; zero for kernels of compact support
    occupied = state.denominator > 0
    if kernel.is_compact:
        return np.zeros(len(occupied)), occupied
    mass = np.where(occupied, state.log_denominator, 0.0) - np.log(weight_unit)
    return np.rint(mass / LN_2), occupied & (np.abs(mass) < FAR)


def in_unit(state: PoolState, unit: Array, weight_unit: float = 1.0) -> Array:
    """Return each query's sum of weights, divided by the query's ``2**unit``."""
    shift = np.where(np.isneginf(state.shift), 0.0, state.shift - np.log(weight_unit))
    found: Array = state.denominator * np.exp(shift - LN_2 * unit)
    return found


def loop_arguments(problem: Problem, unit: Array) -> Callable[[Index], tuple[Any, ...]]:
    """Return a function from indices of queries to the leading arguments of the compiled loops."""
    from kernpool.algorithms.brute.fused import read_only
    from kernpool.algorithms.brute.tiles import kernel_of  # with code that loads Numba

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


def sum_over_pairs(
    recipe: Recipe,
    problem: Problem,
    found: Array,
    loop: Callable[[tuple[Any, ...], Index, Array], None],
    table: Callable[[Array, Index], Array],
) -> NDArray[np.bool_]:
    """Write results of all pairs into `found`, by a compiled loop or by tables; return which queries have a key."""
    problem = bare(problem)
    m, n = problem.shape
    occupied, near = np.ones(m, dtype=bool), np.zeros(m, dtype=bool)
    if has_loop(problem):
        if problem.key_weight is not None and not problem.key_weight.any():
            return near
        state = sum_problem(problem, replace(recipe, algorithm="auto"))
        occupied = state.denominator > 0
        unit, near = common_units(problem.similarity.kernel, state, problem.weight_unit)
        rows, arguments = np.flatnonzero(near), loop_arguments(problem, unit)

        def work(block: slice) -> Iterator[None]:
            some = rows[block]
            part = np.empty((len(some), *found.shape[1:]))
            loop(arguments(some), some, part)
            found[some] = part
            yield

        run_blocks(work, cut(len(rows), max(1, PAIRS // n)), resolve_n_jobs(recipe.n_jobs), None)
    rest = np.flatnonzero(occupied & ~near)
    for which, share in weight_rows(problem.block(rest)):
        some = rest[which]
        occupied[some] = share.any(axis=1)
        here = occupied[some]
        found[some[here]] = table(share[here], some[here])
    return occupied
