r"""The same criterion by a quicker way for some thousand rows: blocks of rows against all rows, in compiled loops.

A search evaluates hundreds of bandwidths. The engine makes a plan for each, goes through levels cell by cell, and
differentiates output by output. Here a block of rows has one table of weights, whatever is summed with them. From the
sums on everything is the engine's: fits, residuals and penalty.

With the design :math:`A_i = \sum_j K_{ij} z_{ij} z_{ij}'`, :math:`z_{ij} = (1, t_{ij})`, the derivative of a fit is

.. math:: \partial \hat y_i = \sum_j \partial K_{ij} \, (c_i \cdot z_{ij}) (v_j - \beta_i \cdot z_{ij}),
          \qquad c_i = A_i^{-1} e_0,

and that of the hat diagonal :math:`H_{ii} = K_{ii} c_{i0}`, at equal :math:`K_{ii}`, is the same with
:math:`-(c_i \cdot z_{ij})^2`: one more output. No sum is subtracted from another, so that slopes keep their digits, and
any c and beta will do. What is found is evaluated once more by the engine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from kernpool.bandwidth.search.evaluation import Evaluation
from kernpool.bandwidth.search.objective import Objective
from kernpool.bandwidth.search.quick import LN_2, PER_BANDWIDTH, QuickObjective
from kernpool.core.problem import Problem
from kernpool.core.state import PoolState
from kernpool.execution.threads import cut, resolve_n_jobs, run_blocks
from kernpool.kernels import get_kernel

Array = NDArray[np.float64]
Selection = slice | NDArray[np.intp]

NUMBERS_AT_ONCE = 1 << 17  # a megabyte of what is summed with weights, beside them in the second-level cache
NO_SLOPE = np.zeros((1, 1))
LARGEST_EXPONENT = 100.0  # of a factor that derivatives are divided by


@dataclass(frozen=True)
class Tables:
    """What the loops make of the levels at one place.

    Parameters
    ----------
    exponents : ndarray of shape (k, most levels, most levels)
        Of the factors; infinity is zero.
    slopes : tuple of k ndarrays of shape (levels, levels)
        Derivatives of the factors by the smoothing.
    log_slopes : tuple of k ndarrays of shape (levels, levels)
        Of their logarithms; empty where a factor is next to zero.
    """

    exponents: Array
    slopes: tuple[Array, ...]
    log_slopes: tuple[Array, ...] = ()

    @classmethod
    def of(cls, problem: Problem) -> Tables:
        """Return those of a problem."""
        if problem.factors is None:
            return cls(np.zeros((0, 1, 1)), ())
        most = max(map(len, problem.factors.tables))
        exponents = np.zeros((len(problem.factors.tables), most, most))
        with np.errstate(divide="ignore"):
            for a, table in enumerate(problem.factors.tables):
                exponents[a, : len(table), : len(table)] = -np.log2(table)
        slopes = tuple(np.ascontiguousarray(slope) for slope in problem.factors.slopes)
        if exponents.max() > LARGEST_EXPONENT:
            return cls(exponents, slopes)
        tables = problem.factors.tables
        return cls(exponents, slopes, tuple(slope / table for slope, table in zip(slopes, tables, strict=True)))


class Buffers:
    """Memory for one block of rows: made anew, each would take as long as what is done with it."""

    def __init__(self, size: int, n: int, d: int, outputs: int) -> None:
        self.exponents, self.kernel, self.changes = (
            np.empty((size, n)),
            np.empty((size, n)),
            np.empty(size * outputs * n),
        )
        self.offset, self.pair, self.moved, self.row = (
            np.empty((d, n)),
            np.empty((2, n)),
            np.empty((outputs, n)),
            np.empty(n),
        )


class AllPairsObjective(QuickObjective):
    """A criterion of some thousand rows, as a function of log bandwidths and smoothings.

    Parameters
    ----------
    engine : Objective
        The same by the engine.

    Notes
    -----
    An evaluation takes O(n^2 (d + k)) for means and O(n^2 (d^2 + k)) for local lines, a Jacobian O(n^2 (d + k) c).
    Memory is O(n (d + c)) and a few megabytes for each thread. The bits are the same for any number of threads.
    """

    def __init__(self, engine: Objective) -> None:
        from kernpool.bandwidth.loops import all_pairs

        super().__init__(engine)
        self._loops = all_pairs
        problem, code = engine.problem, engine.rows.code
        # Rows of the same levels follow each other, so that a row of factors is looked up once for all of them.
        # Without levels nothing is moved, nor copied: the sums of planes in many columns take most of the memory.
        self._order: Selection = slice(None)
        self._back: Selection = slice(None)
        if code.shape[1]:
            self._order = np.lexsort(code.T[::-1])
            self._back = np.argsort(self._order)
        weight = np.ones(len(code)) if problem.key_weight is None else problem.key_weight
        own = problem.own_weight if engine.criterion.exclude_self else weight
        # Copies, because loops are compiled once more for arrays that are read-only.
        self._weight, self._own, self._key = (np.array(part[self._order]) for part in (weight, own, problem.key))
        self._columns = np.ascontiguousarray(self._key.T)
        self._value = np.ascontiguousarray(problem.value[self._order].T)
        self._levels = np.ascontiguousarray(code[self._order].T)
        new_cell = np.any(self._levels[:, 1:] != self._levels[:, :-1], axis=0)
        self._ends = np.append(np.flatnonzero(new_cell) + 1, len(code))
        self._is_gaussian = problem.similarity.kernel is get_kernel("gaussian")
        self._size = max(1, NUMBERS_AT_ONCE // (len(code) * (1 + len(self._value))))
        self._free: list[Buffers] = []

    def evaluate(self, theta: Array) -> Evaluation:
        """Return the criterion, to ten digits or more, and remember it in `tried`."""
        problem = self.engine.at(theta)
        at = self.engine.judge(theta, problem, self._sum(problem))
        self.tried.append(at.tried)
        # Descents keep several evaluations, and no derivative here looks at moments: n d^2 / 2 numbers each.
        return replace(at, state=PoolState(at.state.shift, at.state.denominator, np.empty((len(self._key), 0))))

    def jacobian(self, at: Evaluation) -> Array:
        """Return the derivatives of the residuals, of shape (n c, p)."""
        moved, c = self._differentiate(at), at.residual.shape[1]
        return self.engine.differentiate(at, moved[:, :c], moved[:, c] if at.hat.size else None)

    def pullback(self, at: Evaluation, cotangent: Array) -> Array:
        """Return the derivatives of the sum of predictions times cotangents, of shape (n, p): of each row its part."""
        return self._differentiate(at, cotangent)[:, 0]

    def _sum(self, problem: Problem) -> PoolState:
        """Return the sums of all rows, in their own order."""
        layout, unit, tables = problem.layout, 1.0 / problem.similarity.bandwidth, Tables.of(problem)
        n = len(self._key)
        sums, shift = np.empty((n, 1 + layout.width)), np.empty(n)

        def work(block: slice, buffers: Buffers) -> None:
            exponents = self._exponents(problem, block, buffers)
            kernel = self._weigh(exponents, tables, -1, block, shift, False, buffers)
            self._loops.add_moments(
                kernel,
                self._columns,
                unit,
                self._value,
                block.start,
                layout.degree,
                buffers.offset,
                buffers.pair,
                sums,
            )

        self._run(work)
        occupied = shift < np.inf
        sums[~occupied] = 0.0
        # A view of the weights would keep the moments in memory.
        state = PoolState(np.where(occupied, -LN_2 * shift, -np.inf), sums[:, 0].copy(), sums[:, 1:])
        return problem.restored(state.rows(self._back))

    def _differentiate(self, at: Evaluation, cotangent: Array | None = None) -> Array:
        """Return derivatives by all bandwidths and smoothings, of shape (n, c, p): of fits, then of the log hat.

        With a cotangent of shape (n, c) those of the sums of fits times it are the only ones, of shape (n, 1, p).
        """
        problem, fit, tables = at.problem, at.fit.rows(self._order), Tables.of(at.problem)
        unit, state = 1.0 / problem.similarity.bandwidth, at.state.rows(self._order)
        (n, d), c = self._key.shape, len(self._value)
        outputs = c + (1 if at.hat.size else 0)
        shift = (np.log(problem.weight_unit) - state.shift) / LN_2
        moved = np.empty((n, outputs if cotangent is None else 1, len(at.theta)))
        towards = None if cotangent is None else cotangent[self._order]
        cells = self._ends if tables.log_slopes else self._ends[:0]

        def work(block: slice, buffers: Buffers) -> None:
            exponents, size = self._exponents(problem, block, buffers), block.stop - block.start
            changes = buffers.changes[: size * outputs * n].reshape(size, outputs, n)
            self._loops.spread(
                self._columns,
                unit,
                self._value,
                block.start,
                fit.base,
                fit.tilt,
                fit.intercept,
                fit.slope,
                buffers.row,
                changes,
            )
            if towards is not None:
                changes = np.matmul(towards[block, None, :], changes[:, :c])
            kernel = self._weigh(exponents, tables, -1, block, shift, True, buffers)
            moved[block, :, :d], by_cell = self._along_bandwidths(
                problem, block, exponents, kernel, changes, cells, buffers
            )
            for a, log_slope in enumerate(tables.log_slopes):
                level = self._levels[a]
                moved[block, :, d + a] = np.einsum("ibs,is->ib", by_cell, log_slope[level[block]][:, level[cells - 1]])
            for a in () if tables.log_slopes else range(len(tables.slopes)):
                # The factors of the column itself are left out, so that one of zero has a slope.
                kernel = self._weigh(exponents, tables, a, block, shift, True, buffers)
                moved[block, :, d + a] = np.matmul(changes, kernel[:, :, None])[:, :, 0]

        self._run(work)
        moved *= _inverse(state.denominator)
        if towards is None:
            moved[:, c:] *= -_inverse(fit.base)
        return moved[self._back]

    def _exponents(self, problem: Problem, block: slice, buffers: Buffers) -> Array:
        """Return the exponents of the weights of a block, of shape (rows, n), factors of levels apart."""
        if not self._is_gaussian:
            return problem.similarity.logits(self._key[block], self._key) * (-1.0 / LN_2)
        exponents = buffers.exponents[: block.stop - block.start]
        self._loops.add_squares(self._columns, PER_BANDWIDTH / problem.similarity.bandwidth, block.start, exponents)
        return exponents

    def _weigh(
        self, exponents: Array, tables: Tables, skipped: int, block: slice, shift: Array, fixed: bool, buffers: Buffers
    ) -> Array:
        """Return the weights of a block; without a column of levels, with the slopes of its factors, where skipped."""
        kernel, slope = buffers.kernel[: len(exponents)], NO_SLOPE if skipped < 0 else tables.slopes[skipped]
        self._loops.weigh(
            exponents,
            self._levels,
            tables.exponents,
            skipped,
            slope,
            self._weight,
            self._own,
            block.start,
            shift,
            fixed,
            buffers.row,
            buffers.pair[0],
            kernel,
        )
        return kernel

    def _along_bandwidths(
        self,
        problem: Problem,
        block: slice,
        exponents: Array,
        kernel: Array,
        changes: Array,
        ends: NDArray[np.intp],
        buffers: Buffers,
    ) -> tuple[Array, Array]:
        """Return the derivatives of a block by the log bandwidths, and sums of changes over cells that end there.

        Neither is in units of the denominator yet.
        """
        slopes = np.empty((*changes.shape[:2], len(self._columns)))
        if self._is_gaussian:
            unit, by_cell = 1.0 / problem.similarity.bandwidth, np.empty((*changes.shape[:2], len(ends)))
            self._loops.sum_squares(
                kernel,
                changes,
                self._columns,
                unit,
                ends,
                block.start,
                buffers.row,
                buffers.moved,
                slopes,
                by_cell,
            )
            return slopes, by_cell
        inside, weighted = np.isfinite(exponents), changes * kernel[:, None, :]
        for a, (u, slope) in enumerate(problem.similarity.logit_slopes(self._key[block], self._key)):
            change = np.multiply(u, slope, where=inside, out=np.zeros_like(u))
            slopes[:, :, a] = -np.matmul(weighted, change[:, :, None])[:, :, 0]
        starts = np.append(0, ends)[: len(ends)]
        return slopes, np.add.reduceat(weighted, starts, axis=2)

    def _run(self, work: Callable[[slice, Buffers], None]) -> None:
        (n, d), outputs = self._key.shape, 1 + len(self._value)

        def one(block: slice) -> Iterator[None]:
            try:
                buffers = self._free.pop()
            except IndexError:
                buffers = Buffers(self._size, n, d, outputs)
            work(block, buffers)
            self._free.append(buffers)
            yield

        run_blocks(one, cut(n, self._size), resolve_n_jobs(self.engine.n_jobs), self.engine.progress)


def _inverse(x: Array) -> Array:
    """Return inverses of what is positive, and zeros, to be multiplied onto the rows of derivatives."""
    return np.divide(1.0, x, where=x > 0, out=np.zeros(len(x)))[:, None, None]
