"""Ways to sum kernel weights over keys in the order of their values, and the choice between them.

`WAYS` lists them with what they cannot do and what they cost, and `choose_way` is the only place that chooses. Sums of
parts of the keys are those of `kernpool.pooling.choose`. `sum_over_pairs` runs a compiled loop over all pairs of a
query and a key, and tables of weights for the queries that it does not suit.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
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
PER_PAIR_IN_TABLE, PER_PAIR = 1e-8, 2e-9  # seconds
LOADING = 8e-4  # seconds charged for compiled loops and for several sums: tables do 100 000 pairs before
FEWEST_KEYS = 512  # that are halved
QUICK_PAIRS = 1 << 20  # looked at one by one in the time that a few more sums take to start
# Of logarithms of sums: beyond, a power of two next to one is rounded to more than 1e-11. Such queries are ten thousand
# bandwidths away from all keys, or nearly, and have tables in their own unit.
FAR = 2.0**16
PAIRS = 1 << 21  # of a block, which Ctrl-C waits for


@dataclass(frozen=True)
class Way:
    """Way to sum weights over ordered keys, as chosen by `choose_way`."""

    name: str
    reason: str  # what it does, and when it is chosen
    fixed: float  # estimated seconds per call
    per_pair: float  # and per pair of a query and a key
    needs_loop: bool = False  # only for problems with a compiled loop

    def seconds(self, problem: Problem) -> float:
        """Estimate the time for a problem."""
        m, n = problem.shape
        return self.fixed + self.per_pair * m * n

    def refusal(self, problem: Problem) -> str | None:
        """Say what of a problem the compiled loops do not support, if they are needed."""
        kernel = problem.similarity.kernel
        if not self.needs_loop:
            return None
        if not is_compiled(kernel):
            return "has no loop for a kernel of the user's own"
        if problem.similarity.widening is not None:
            return "has no loop for windows of different widths"
        if problem.logit_bias is not None or problem.excluded is not None:
            return "has no loop for an additive mask or groups"
        return "would underflow" if kernel.is_compact and may_underflow(problem) else None


WAYS = {
    way.name: way
    for way in (
        Way("table", "tables of the weights of some queries: few pairs, or no compiled loop", 0.0, PER_PAIR_IN_TABLE),
        Way("pairs", "all pairs in a compiled loop: CRPS, and thresholds smoothed in y", LOADING, PER_PAIR, True),
        Way("bisection", "sums over halves of the keys, then a loop over few: quantiles", LOADING, PER_PAIR, True),
        Way("ranges", "sums over the keys between thresholds, the same for all queries", LOADING, PER_PAIR),
        Way("ranks", "sums over halves of the keys on either side of thresholds of each query", LOADING, PER_PAIR),
    )
}


def choose_way(problem: Problem, name: str) -> Way:
    """Choose how to sum weights over ordered keys: as named, or by tables where these are quicker or alone possible."""
    able = [way for way in (WAYS["table"], WAYS[name]) if way.refusal(problem) is None]
    return min(able, key=lambda way: way.seconds(problem))


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
    if choose_way(problem, "pairs").name == "pairs":
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
