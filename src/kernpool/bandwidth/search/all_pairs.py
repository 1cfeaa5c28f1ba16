"""The same criterion by a quicker way for some thousand rows: blocks of rows against all rows, in compiled loops.

A search evaluates hundreds of bandwidths. The engine makes a plan for each, goes through cells of levels one by one, and
differentiates output by output. Here a block of rows has one table of weights, for whatever is summed with them, and
columns, levels and outputs are only read. From the sums on everything is the engine's: fits, residuals and penalty.

With the weights of a pair, its share and its residual from the local plane, the derivative of a fit is the pullback

.. math:: \\partial \\hat y_i = \\sum_j \\partial K_{ij} \\, (c_i \\cdot z_{ij}) (v_j - \\beta_i \\cdot z_{ij}),
          \\qquad z_{ij} = (1, t_{ij}), \\quad c_i = A_i^{-1} e_0,

and that of the hat diagonal :math:`H_{ii} = K_{ii} c_{i0}` the same with :math:`-(c_i \\cdot z_{ij})^2`: one more
output. What is found is evaluated once more by the engine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from kernpool.bandwidth.search.objective import Evaluation, Objective, Tried, best_of
from kernpool.core.problem import Problem
from kernpool.core.state import PoolState
from kernpool.execution.threads import cut, resolve_n_jobs, run_blocks
from kernpool.kernels import get_kernel

Array = NDArray[np.float64]

PAIRS_AT_ONCE = 1 << 16  # a table of half a megabyte: with another one it stays in the second-level cache
LN_2 = float(np.log(2.0))
PER_BANDWIDTH = float(np.sqrt(0.5 / LN_2))  # units in which a Gaussian weight is a power of two


class AllPairsObjective:
    """A criterion of some thousand rows, as a function of log bandwidths and smoothings.

    Parameters
    ----------
    engine : Objective
        The same by the engine.

    Notes
    -----
    An evaluation takes O(n^2 d) for means, O(n^2 d^2) for local lines, and a Jacobian O(n^2 (d + k) c). Memory is
    O(n (d + c)) and a megabyte or two for each thread.
    """

    def __init__(self, engine: Objective) -> None:
        from kernpool.bandwidth.loops import all_pairs

        self.engine, self.rows, self.box = engine, engine.rows, engine.box
        self.tried: list[Tried] = []
        self._loops = all_pairs
        problem, code = engine.problem, engine.rows.code
        # Rows of the same levels follow each other, so that a row of factors is looked up once for all of them.
        self._order = np.lexsort(code.T[::-1]) if code.shape[1] else np.arange(len(code))
        self._back = np.argsort(self._order)
        weight = np.ones(len(code)) if problem.key_weight is None else problem.key_weight
        own = problem.own_weight if engine.criterion.exclude_self else weight
        self._weight, self._own = weight[self._order], own[self._order]
        self._columns = np.ascontiguousarray(problem.key[self._order].T)
        self._value = np.ascontiguousarray(problem.value[self._order].T)
        self._levels = np.ascontiguousarray(code[self._order].T)
        self._is_gaussian = problem.similarity.kernel is get_kernel("gaussian")

    def hand_over(self, theta: Array) -> None:
        """Pass on what was tried, and have the best evaluated by the engine."""
        self.engine.tried_quickly += self.tried
        self.engine.evaluate(theta)

    @property
    def best(self) -> Tried:
        """The smallest of all that was tried; of equal ones that with the largest bandwidths."""
        return best_of(self.tried)

    def evaluate(self, theta: Array) -> Evaluation:
        """Return the criterion, to ten digits or more, and remember it in `tried`."""
        problem = self.engine.at(theta)
        at = self.engine.judge(theta, problem, self._sum(problem))
        self.tried.append(at.tried)
        return at

    def jacobian(self, at: Evaluation) -> Array:
        """Return the derivatives of the residuals, of shape (n c, p)."""
        moved = self._differentiate(at)
        c = at.residual.shape[1]
        return self.engine.differentiate(at, moved[:, :c], moved[:, c] if at.hat.size else None)

    def _sum(self, problem: Problem) -> PoolState:
        """Return the sums of all rows, in their own order."""
        layout, unit = problem.layout, 1.0 / problem.similarity.bandwidth
        (d, n), c = self._columns.shape, layout.values
        sums, shift, tables = np.empty((n, 1 + layout.width)), np.empty(n), self._exponents_of_levels(problem)

        def work(block: slice) -> Iterator[None]:
            exponents, row = self._exponents(problem, block), np.empty(n)
            kernel = self._weigh(exponents, tables, -1, None, block, shift, False, row)
            self._loops.add_moments(
                kernel, self._columns, unit, self._value, block.start, layout.degree, np.empty((d, n)), row, sums
            )
            yield

        self._run(work)
        occupied = shift < np.inf
        sums[~occupied] = 0.0
        state = PoolState(np.where(occupied, -LN_2 * shift, -np.inf), sums[:, 0], sums[:, 1:])
        return problem.restored(state.rows(self._back))

    def _differentiate(self, at: Evaluation) -> Array:
        """Return derivatives by all bandwidths and smoothings, of shape (n, c, p): of fits, then of the log hat."""
        problem, fit, order = at.problem, at.fit.rows(self._order), self._order
        unit, tables, slopes = 1.0 / problem.similarity.bandwidth, self._exponents_of_levels(problem), ()
        if problem.factors is not None:
            slopes = problem.factors.slopes
        (d, n), c, k = self._columns.shape, self._value.shape[0], len(slopes)
        outputs = c + (1 if at.hat.size else 0)
        shift = (np.log(problem.weight_unit) - at.state.shift[order]) / LN_2
        moved = np.empty((n, outputs, d + k))

        def work(block: slice) -> Iterator[None]:
            exponents, row, size = self._exponents(problem, block), np.empty(n), block.stop - block.start
            changes = np.empty((size, outputs, n))
            self._loops.spread(
                self._columns,
                unit,
                self._value,
                block.start,
                fit.base,
                fit.tilt,
                fit.intercept,
                fit.slope,
                row,
                changes,
            )
            kernel = self._weigh(exponents, tables, -1, None, block, shift, True, row)
            self._add_numeric(problem, block, exponents, kernel, changes, moved)
            for a, slope in enumerate(slopes):
                # The factors of the column itself are left out, so that one of zero has a slope.
                kernel = self._weigh(exponents, tables, a, slope, block, shift, True, row)
                moved[block, :, d + a] = np.matmul(changes, kernel[:, :, None])[:, :, 0]
            yield

        self._run(work)
        denominator = at.state.denominator[order]
        share = np.divide(1.0, denominator, where=denominator > 0, out=np.zeros(n))
        moved *= share[:, None, None]
        moved[:, c:] *= -np.divide(1.0, fit.base, where=fit.base > 0, out=np.zeros(n))[:, None, None]
        return moved[self._back]

    def _exponents(self, problem: Problem, block: slice) -> Array:
        """Return the exponents of the weights of a block, of shape (rows, n), factors of levels apart."""
        n = self._columns.shape[1]
        if self._is_gaussian:
            exponents = np.empty((block.stop - block.start, n))
            self._loops.add_squares(self._columns, PER_BANDWIDTH / problem.similarity.bandwidth, block.start, exponents)
            return exponents
        return problem.similarity.logits(self._columns.T[block], self._columns.T) * (-1.0 / LN_2)

    def _exponents_of_levels(self, problem: Problem) -> Array:
        """Return the exponents of all tables of factors, of shape (k, most levels, most levels)."""
        tables = () if problem.factors is None else problem.factors.tables
        most = max(map(len, tables), default=1)
        padded = np.zeros((len(tables), most, most))
        with np.errstate(divide="ignore"):
            for a, table in enumerate(tables):
                padded[a, : len(table), : len(table)] = -np.log2(table)
        return padded

    def _weigh(
        self,
        exponents: Array,
        tables: Array,
        skipped: int,
        slope: Array | None,
        block: slice,
        shift: Array,
        fixed: bool,
        row: Array,
    ) -> Array:
        slope, kernel = np.zeros((1, 1)) if slope is None else slope, np.empty_like(exponents)
        self._loops.weigh(
            exponents,
            self._levels,
            tables,
            skipped,
            slope,
            self._weight,
            self._own,
            block.start,
            shift,
            fixed,
            row,
            kernel,
        )
        return kernel

    def _add_numeric(
        self, problem: Problem, block: slice, exponents: Array, kernel: Array, changes: Array, moved: Array
    ) -> None:
        """Write the derivatives by the log bandwidths."""
        (d, n), outputs = self._columns.shape, changes.shape[1]
        if self._is_gaussian:
            slopes = np.empty((len(kernel), outputs, d))
            self._loops.sum_squares(
                kernel,
                changes,
                self._columns,
                1.0 / problem.similarity.bandwidth,
                block.start,
                np.empty(n),
                np.empty((outputs, n)),
                slopes,
            )
            moved[block, :, :d] = slopes
            return
        inside, weighted = np.isfinite(exponents), changes * kernel[:, None, :]
        for a, (u, slope) in enumerate(problem.similarity.logit_slopes(self._columns.T[block], self._columns.T)):
            by_column = np.multiply(u, slope, where=inside, out=np.zeros_like(u))
            moved[block, :, a] = -np.matmul(weighted, by_column[:, :, None])[:, :, 0]

    def _run(self, work: Callable[[slice], Iterator[None]]) -> None:
        n = self._columns.shape[1]
        run_blocks(work, cut(n, max(1, PAIRS_AT_ONCE // n)), resolve_n_jobs(self.engine.n_jobs), self.engine.progress)
