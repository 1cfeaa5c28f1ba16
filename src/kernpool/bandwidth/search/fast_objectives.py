"""Fast evaluation of a criterion for small tables, in compiled loops over all pairs of rows.

A search evaluates a criterion at hundreds of bandwidths. `Objective` makes a plan for each, visits categories cell
by cell, differentiates output by output and sums every pair twice; with a thousand rows most of its time is
overhead.

`PairwiseObjective` visits every pair once for both of its rows: plain Gaussian means of few columns.
`AllPairsObjective`, for some thousand rows, makes one table of weights for a block of rows and all rows as keys,
and uses it for everything that is summed; from the sums on (fits, residuals, penalty) it is `Objective`. For sums of
squares `Objective` evaluates the best point once more, and its value is the one reported.

Derivatives of a local fit at row i, with offsets t_ij, z_ij = (1, t_ij) and the design A_i = sum_j K_ij z_ij
z_ij'::

    d yhat_i = sum_j dK_ij (c_i . z_ij) (v_j - beta_i . z_ij),    c_i = A_i^-1 e_0

The derivative of the hat diagonal H_ii = K_ii c_i0, at equal K_ii, is the same sum with -(c_i . z_ij)^2 instead of
(c_i . z_ij)(v_j - beta_i . z_ij): one more output. No sum is subtracted from another, so that derivatives keep
their digits, and any c and beta will do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np

from kernpool._arrays import Array, Index
from kernpool.bandwidth.search.objective import Evaluation, Objective, Trial
from kernpool.core import LocalFit, PoolState, Problem
from kernpool.execution import cut, resolve_n_jobs, run_blocks

LN_2 = float(np.log(2.0))
PER_BANDWIDTH = float(np.sqrt(0.5 / LN_2))  # units in which a Gaussian weight is a power of two


class FastObjective(Objective):
    """Bandwidth-selection criterion of a small data set, evaluated by compiled loops over all pairs of rows."""

    is_quick = True

    def __post_init__(self) -> None:
        from kernpool.bandwidth.loops import all_pairs

        super().__post_init__()
        self.loops = all_pairs

    def confirm(self, best: Trial | Evaluation) -> None:
        """Evaluate the best point by the engine; its value is the one reported."""
        self.ridge = best.ridge
        Objective.evaluate(self, best.theta)
        self.chosen = self.tried[-1]


LONGEST_REACH = 36.0  # bandwidths: the weight of a row there is 5e-282
SMALLEST_SUM = 1e-260  # fraction of the largest weight of a row: far above all rows out of reach together
LOG_SHARE = 40.0  # what weighs less than exp(-40) of a row's nearest neighbour, 4e-18, does not show in its sums


class PairwiseObjective(FastObjective):
    """Criterion of local constant Gaussian fits on numeric columns; each pair's weight is computed once for both."""

    def __post_init__(self) -> None:
        """Arrange the rows for loops over their pairs."""
        super().__post_init__()
        rows = self.rows
        self._columns = np.ascontiguousarray(rows.X.T)
        counted = np.vstack([np.ones(len(rows.X)), self.problem.value.T])
        self._weighted = rows.weight * counted
        # Weight of a row for itself: all but one unit, or everything.
        unit = np.minimum(rows.weight, 1.0) if self.options.criterion.exclude_self else 0.0
        self._own = (rows.weight - unit) * counted
        step = np.concatenate([[np.inf], np.diff(self._columns[0]), [np.inf]])
        self._nearest = np.minimum(step[:-1], step[1:])  # distance to the nearest other row
        self._log_ratio = LOG_SHARE + float(np.log(rows.weight.max() / rows.weight.min()))

    def evaluate(self, theta: Array) -> Evaluation:
        """Evaluate the criterion at given log bandwidths, to about twelve digits, and record it in `tried`.

        The engine does so if there are several columns and a row's sum of weights is negligible.
        """
        (scaled, reach), n = self._scaled(theta), len(self.rows.X)
        sums = self._own.copy()
        self.loops.add_others(scaled, self._weighted, reach, sums, np.empty(n))
        self._report()
        if len(self._columns) == 1:
            # Decide by distance, not by the sum: near the end of the reach part of the weight is already dropped.
            far = (self._nearest * np.exp(-theta[0])) ** 2 > LONGEST_REACH**2 - 2.0 * self._log_ratio
            alone = far & (self._own[0] == 0.0)
            if alone.any():
                self.loops.sum_nearest(scaled, self._weighted, alone, self._log_ratio / LN_2, sums)
        elif np.any(sums[0] <= SMALLEST_SUM * self.rows.weight.max()):
            return super().evaluate(theta)
        denominator, empty = sums[0], np.empty((n, 0))
        prediction = (sums[1:] / denominator).T
        hat = 1.0 / denominator if self.options.criterion.log_penalty is not None else np.empty(0)
        residual = (self.problem.value - prediction) * self._share
        state = PoolState(np.zeros(n), denominator, empty)
        fit = LocalFit(prediction, empty[:, :, None], np.ones(n), empty, np.zeros(n, np.intp), np.ones(n, np.bool_))
        return self.record(theta, residual, self.problem, state, fit, hat)

    def jacobian(self, at: Evaluation) -> Array:
        """Return the derivatives of the residuals with respect to the log bandwidths, of shape (n c, p)."""
        if at.problem is not self.problem:  # evaluated by the engine
            return super().jacobian(at)
        scaled, reach = self._scaled(at.theta)
        sums, (kernel, moved_row) = np.zeros((len(scaled), *self._weighted.shape)), np.empty((2, scaled.shape[1]))
        self.loops.add_derivatives(scaled, self._weighted, reach, sums, kernel, moved_row)
        self._report()
        moved = np.moveaxis(sums, 0, 2) / (PER_BANDWIDTH**2 * at.state.denominator[:, None])
        moved = self.rows.geometry.sums(moved)
        weight, value = moved[0], np.moveaxis(moved[1:], 0, 1)
        # The diagonal of the hat matrix is one over the denominator.
        by_log_hat = -weight if at.hat.size else None
        return self.differentiate(at, value - at.fit.intercept[:, :, None] * weight[:, None], by_log_hat)

    def _report(self) -> None:
        if self.options.progress is not None:
            self.options.progress(len(self.rows.X), len(self.rows.X))

    def _scaled(self, theta: Array) -> tuple[Array, float]:
        """Return the columns scaled for the compiled loops, and the kernel's cut-off distance in the first column."""
        reach = LONGEST_REACH
        if len(self._columns) == 1:
            reach = min(reach, float(np.hypot(self._nearest.max() / np.exp(theta[0]), np.sqrt(2.0 * self._log_ratio))))
        unit = PER_BANDWIDTH * np.exp(-self.rows.geometry.per_column(theta))
        return self._columns * unit[:, None], float(reach * PER_BANDWIDTH)


Selection = slice | Index

NUMBERS_AT_ONCE = 1 << 17  # a megabyte of the factors of the weights, next to the weights in the second-level cache
NO_SLOPE = np.zeros((1, 1))
LARGEST_EXPONENT = 100.0  # of a factor that derivatives are divided by


class Tables:
    """Factors of the weights at the bandwidths of a problem: units of the columns, and tables of the categorical ones.

    Attributes
    ----------
    unit : ndarray of shape (d,)
        By which the columns are multiplied, so that a weight is ``2**-(squared distance)``.
    exponents : ndarray of shape (k, most levels, most levels)
        Exponents of the categorical factors; infinity for a factor of zero.
    slopes : list of k ndarrays of shape (levels, levels)
        Derivatives of the factors by the smoothing.
    log_slopes : list of k ndarrays of shape (levels, levels)
        Derivatives of the log factors; empty where a factor is close to zero.
    """

    def __init__(self, problem: Problem) -> None:
        self.unit = PER_BANDWIDTH / problem.similarity.bandwidth
        tables, slopes = ((), ()) if problem.factors is None else (problem.factors.tables, problem.factors.slopes)
        most = max(map(len, tables), default=1)
        self.exponents, self.log_slopes = np.zeros((len(tables), most, most)), list[Array]()
        with np.errstate(divide="ignore"):
            for exponent, table in zip(self.exponents, tables, strict=True):
                exponent[: len(table), : len(table)] = -np.log2(table)
        self.slopes = list(map(np.ascontiguousarray, slopes))
        if self.exponents.max(initial=0.0) <= LARGEST_EXPONENT:
            self.log_slopes = [slope / table for slope, table in zip(self.slopes, tables, strict=True)]


class Buffers:
    """Work arrays for one block of rows, allocated once and reused."""

    def __init__(self, size: int, n: int, d: int, outputs: int) -> None:
        self.exponents, self.kernel = np.empty((size, n)), np.empty((size, n))
        self.changes, self.moved = np.empty(size * outputs * n), np.empty((outputs, n))
        self.offset, self.pair, self.row = np.empty((d, n)), np.empty((2, n)), np.empty(n)


class AllPairsObjective(FastObjective):
    """Criterion of some thousand rows, evaluated from dense weight matrices of blocks of rows against all rows.

    Notes
    -----
    An evaluation takes O(n^2 (d + k)) for means and O(n^2 (d^2 + k)) for local lines, a Jacobian O(n^2 (d + k) c).
    Memory is O(n (d + c)) and a few megabytes for each thread. The bits are the same for any number of threads.
    """

    def __post_init__(self) -> None:
        """Arrange the rows by their categories, for loops over blocks of rows and all rows."""
        super().__post_init__()
        problem, code = self.problem, self.rows.code
        # Rows of the same categories are adjacent, so that a row of factors is looked up once for all of them, and
        # queries are before other keys. Without categories sums of queries are not reordered or copied: those of planes
        # in many columns take most of the memory.
        every = np.arange(len(code))
        queries = every if self.queries is None else self.queries
        keys = np.lexsort([every, *code.T[::-1], ~np.isin(every, queries)])
        self._order: Selection = slice(None)
        self._back: Selection = slice(None)
        if code.shape[1]:
            self._order = np.searchsorted(queries, keys[: len(queries)])
            self._back = np.argsort(self._order)
        weight = problem.frequency
        own = problem.own_weight if self.options.criterion.exclude_self else weight
        # Copies, because loops are compiled once more for arrays that are read-only.
        self._weight, self._own, self._key = np.array(weight[keys]), np.array(own[self._order]), problem.key[keys]
        self._columns = np.ascontiguousarray(self._key.T)
        self._value = np.ascontiguousarray(problem.value[keys].T)
        self._levels = np.ascontiguousarray(code[keys].T)
        new_cell = np.any(self._levels[:, 1:] != self._levels[:, :-1], axis=0)
        self._ends = np.append(np.flatnonzero(new_cell) + 1, len(code))
        self._size = max(1, NUMBERS_AT_ONCE // (len(code) * (1 + len(self._value))))
        self._free: list[Buffers] = []

    def evaluate(self, theta: Array) -> Evaluation:
        """Evaluate the criterion at given log bandwidths and smoothings, and record it in `tried`.

        It is accurate to ten digits or more.
        """
        problem = self.at(theta)
        at = self.judge(theta, problem, self._sum(problem))
        # Descents keep several evaluations, and no derivative here looks at moments: n d^2 / 2 numbers each.
        return replace(at, state=PoolState(at.state.shift, at.state.denominator, np.empty((len(self._own), 0))))

    def jacobian(self, at: Evaluation) -> Array:
        """Return derivatives of the residuals with respect to log bandwidths and smoothings, of shape (n c, p)."""
        moved, c = self._differentiate(at), at.residual.shape[1]
        return self.differentiate(at, moved[:, :c], moved[:, c] if at.hat.size else None)

    def pullback(self, at: Evaluation, cotangent: Array) -> Array:
        """Return, for each row, the derivatives of its prediction times its cotangent with respect to all parameters.

        Of shape (n, p). The products are summed over outputs. Parameters are log bandwidths and smoothings.
        """
        return self._differentiate(at, cotangent)[:, 0]

    def _sum(self, problem: Problem) -> PoolState:
        """Return the kernel sums (a `PoolState`) at all training rows, in the original order of the rows."""
        layout, unit, tables = problem.layout, 1.0 / problem.similarity.bandwidth, Tables(problem)
        n = len(self._own)
        sums, shift = np.empty((n, 1 + layout.width)), np.empty(n)

        def work(block: slice, buffers: Buffers) -> None:
            kernel = self._weigh(tables, block, buffers, shift, fixed=False)
            self.loops.add_moments(
                kernel, self._columns, unit, self._value, block.start, layout.degree, buffers.offset, buffers.pair, sums
            )

        self._run(work)
        occupied = shift < np.inf
        sums[~occupied] = 0.0
        # A view of the weights would keep the moments in memory.
        state = PoolState(np.where(occupied, -LN_2 * shift, -np.inf), sums[:, 0].copy(), sums[:, 1:])
        return problem.restored(state.rows(self._back))

    def _differentiate(self, at: Evaluation, cotangent: Array | None = None) -> Array:
        """Return derivatives of fits and of log leverages (hat diagonal) with respect to log bandwidths and smoothings.

        Of shape (n, c, p), or (n, c + 1, p) with the derivatives of log H_ii last, for criteria that use them. With a
        cotangent of shape (n, c), return only the derivatives of the sums of fits times it, of shape (n, 1, p).
        """
        problem, fit, tables = at.problem, at.fit.rows(self._order), Tables(at.problem)
        unit, state = 1.0 / problem.similarity.bandwidth, at.state.rows(self._order)
        (n, d), c = self._key.shape, len(self._value)
        outputs = c + (1 if at.hat.size else 0)
        shift = (np.log(problem.weight_unit) - state.shift) / LN_2
        moved = np.empty((len(self._own), outputs if cotangent is None else 1, self.parameters))
        towards = None if cotangent is None else cotangent[self._order]
        cells = self._ends if tables.log_slopes else self._ends[:0]

        def work(block: slice, buffers: Buffers) -> None:
            size = block.stop - block.start
            changes = buffers.changes[: size * outputs * n].reshape(size, outputs, n)
            self.loops.differentiate_by_weights(
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
            kernel = self._weigh(tables, block, buffers, shift, fixed=True)
            slopes, by_cell = (np.empty((*changes.shape[:2], size)) for size in (d, len(cells)))
            self.loops.differentiate_by_bandwidths(
                kernel, changes, self._columns, unit, cells, block.start, buffers.row, buffers.moved, slopes, by_cell
            )
            moved[block, :, :d] = slopes
            for a, log_slope in enumerate(tables.log_slopes):
                level = self._levels[a]
                moved[block, :, d + a] = np.einsum("ibs,is->ib", by_cell, log_slope[level[block]][:, level[cells - 1]])
            for a in () if tables.log_slopes else range(len(tables.slopes)):
                # The column's own factor is omitted, so that a factor of zero has a slope.
                kernel = self._weigh(tables, block, buffers, shift, fixed=True, skipped=a)
                moved[block, :, d + a] = np.matmul(changes, kernel[:, :, None])[:, :, 0]

        self._run(work)
        moved *= _inverse(state.denominator)
        if towards is None:
            moved[:, c:] *= -_inverse(fit.base)
        return moved[self._back]

    def _weigh(
        self, tables: Tables, block: slice, buffers: Buffers, shift: Array, *, fixed: bool, skipped: int = -1
    ) -> Array:
        """Return a block's pair weights; derivatives replace the factors of categorical column `skipped` (-1: none)."""
        size = block.stop - block.start
        exponents, kernel = buffers.exponents[:size], buffers.kernel[:size]
        if skipped < 0:  # before another column is skipped, distances have been computed
            self.loops.square_distances(self._columns, tables.unit, block.start, exponents)
        slope = NO_SLOPE if skipped < 0 else tables.slopes[skipped]
        self.loops.weigh(
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

        run_blocks(one, cut(len(self._own), self._size), resolve_n_jobs(self.options.n_jobs), self.options.progress)


def _inverse(x: Array) -> Array:
    """Return reciprocals of positive numbers and zero for the others, of shape (n, 1, 1)."""
    return np.divide(1.0, x, where=x > 0, out=np.zeros(len(x)))[:, None, None]
