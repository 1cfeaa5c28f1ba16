r"""Mixed inputs: categorical columns multiply a factor onto the kernel weight of the numeric ones.

.. math:: w_{ij} = K\big((q_i - k_j)/h\big) \prod_a T_a(\text{level of } q_i, \text{level of } k_j)

Keys that have the same levels in every categorical column are a *cell*. Within a cell the factors depend on the query
alone, so the cell is a problem like any other, for every algorithm there is, and its state is scaled query by query:
``shift + log(factor)``. The states of all cells merge.

What a smoothing lambda does to the fit follows from those states too, without another pass over the pairs. With the fit
:math:`\hat y_i = \sum_j \omega_{ij} v_j` and the residuals r from its local plane (see `reference.pullback`)

.. math:: \frac{\partial}{\partial \log T_{i,\text{cell}}} \sum_c g_{ic} \hat y_{ic}
          = \sum_{j \in \text{cell}} \omega_{ij}\, g_i \cdot r_{ij},

which is made of the sums of the cell. They are taken before they are scaled, so that a factor of zero has a slope.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, fields, replace
from functools import cached_property, partial
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kernpool.algorithms.far.gradients import find_far
from kernpool.core.local_fit import LocalFit, solve
from kernpool.core.moments import Layout
from kernpool.core.problem import Problem
from kernpool.core.state import PoolState, empty_state, merge
from kernpool.execution.progress import Progress
from kernpool.execution.threads import cut
from kernpool.pooling.dense_cells import is_dense, smoothing_gradient, with_factors
from kernpool.pooling.plan import check_pullback, choose

Array = NDArray[np.float64]
Codes = NDArray[np.int64]
Rows = slice | NDArray[np.intp]

WANTED = frozenset({"log_bandwidth", "smoothing", "query"})
# Where a cell that counts nothing is nearer by far than all that count, slopes are cut off here: 1e217, not infinite.
LARGEST_EXPONENT = 500.0
FAR_PAIRS = 1 << 18  # of far queries, with a table of their factors


class MixedGradients(NamedTuple):
    """What `MixedProblem.pullback` returns, one row per query; what was not wanted is None."""

    log_bandwidth: Array | None = None
    smoothing: Array | None = None
    query: Array | None = None


class Cell(NamedTuple):
    """Keys of the same levels.

    Parameters
    ----------
    levels : ndarray of int64, shape (k,)
        Their level number in each categorical column.
    keys : slice or ndarray of int
        Which they are.
    """

    levels: Codes
    keys: Rows


class Visit(NamedTuple):
    """A cell, and the queries that have something to do with it.

    Parameters
    ----------
    levels : ndarray of int64, shape (k,)
        Level numbers of its keys.
    rows : slice or ndarray of int
        Which queries.
    factors : ndarray of shape (rows, k)
        Logarithms of their factors.
    part : Problem
        Of these queries and these keys; its state is about the centre of the values of all keys.
    report : callable or None
        Who is told of progress.
    """

    levels: Codes
    rows: Rows
    factors: Array
    part: Problem
    report: Progress | None


@dataclass(frozen=True)
class MixedProblem:
    r"""A problem with categorical columns next to the numeric ones.

    Parameters
    ----------
    problem : Problem
        Of the numeric columns and all keys: with moments or without, weights, own keys, masks. Without any numeric
        column it has one of zeros.
    query_code : ndarray of int64, shape (m, k)
        Level numbers of the queries in each categorical column. A level of -1 is unlike every other: its factor is that
        of the first and the last level, which for every kernel of `kernpool.kernels.categorical` is the smallest, given
        that the levels of ordered columns are in order.
    key_code : ndarray of int64, shape (n, k)
        Level numbers of the keys.
    tables : tuple of k ndarrays of shape (levels, levels)
        Factors of pairs of levels, `CategoricalKernel.table` of each column.
    slopes : tuple of k ndarrays of shape (levels, levels)
        Their derivatives by the smoothing of the column, `CategoricalKernel.table_slope`.

    Raises
    ------
    ValueError
        If shapes do not fit together, or level numbers are out of range.

    Notes
    -----
    Time is that of the cells, one after the other: O(n m d) in all at most, and O(m) for each cell; few pairs of many
    cells are one dense sum. A query and a cell
    with a factor of zero between them do not meet, so that smoothings of zero are cheap. Memory is O(n + m), whatever
    the number of cells.

    Examples
    --------
    Two queries at the very place of two keys; other levels count a quarter.

    >>> from kernpool.kernels import get_categorical_kernel
    >>> kernel, level = get_categorical_kernel("li_racine"), np.array([[0], [1]])
    >>> problem = Problem.from_arrays([5.0, 5.0], [5.0, 5.0], [10.0, 20.0])
    >>> mixed = MixedProblem(problem, level, level, (kernel.table(2, 0.25),), (kernel.table_slope(2, 0.25),))
    >>> mixed.reduce().finalize()
    array([[12.],
           [18.]])
    """

    problem: Problem
    query_code: Codes
    key_code: Codes
    tables: tuple[Array, ...]
    slopes: tuple[Array, ...]

    def __post_init__(self) -> None:
        m, n = self.problem.shape
        k = len(self.tables)
        for name, code, shape in (("query_code", self.query_code, (m, k)), ("key_code", self.key_code, (n, k))):
            if code.shape != shape or code.dtype.kind != "i":
                raise ValueError(
                    f"{name} must be integers of shape (rows, tables) = {shape}, got shape {code.shape} of {code.dtype}"
                )
        if len(self.slopes) != k:
            raise ValueError(f"slopes must be one per table, got {len(self.slopes)} for {k} tables")
        for a, (table, slope) in enumerate(zip(self.tables, self.slopes, strict=True)):
            if table.ndim != 2 or table.shape[0] != table.shape[1] or slope.shape != table.shape:
                raise ValueError(
                    f"tables[{a}] and slopes[{a}] must be square and of one shape, got {table.shape} and {slope.shape}"
                )
            for name, code, lowest in (("query_code", self.query_code, -1), ("key_code", self.key_code, 0)):
                low, high = code[:, a].min(), code[:, a].max()
                if low < lowest or high >= len(table):
                    raise ValueError(
                        f"{name}[:, {a}] must lie in [{lowest}, {len(table) - 1}], got values from {low} to {high}"
                    )

    @cached_property
    def cells(self) -> list[Cell]:
        """The keys of positive weight by their levels, in the order of these; a slice of all if there is one cell."""
        weight = self.problem.key_weight
        kept = np.arange(len(self.key_code)) if weight is None else np.flatnonzero(weight > 0)
        cell = np.zeros(len(kept), dtype=np.int64)
        for table, level in zip(self.tables, self.key_code[kept].T, strict=True):
            cell = np.unique(cell * len(table) + level, return_inverse=True)[1]  # numbered anew, so that none overflows
        if not cell.any():
            return [Cell(self.key_code[kept[0]], slice(None))]
        order = np.argsort(cell, kind="stable")
        starts = np.searchsorted(cell[order], np.arange(cell.max() + 2)).tolist()
        parts = [kept[order[start:stop]] for start, stop in pairwise(starts)]
        return [Cell(self.key_code[keys[0]], keys) for keys in parts]

    def reduce(
        self, algorithm: str = "auto", *, n_jobs: int | None = None, progress: Progress | None = None
    ) -> PoolState:
        """Sum weights and weighted values over all keys.

        Parameters
        ----------
        algorithm, n_jobs, progress
            As in `pool`; every cell chooses for itself what ``"auto"`` is.

        Returns
        -------
        PoolState
            As `Plan.reduce` returns it. For slopes with all their digits let the problem have a ``value_center`` of
            zero, and add it to the values of the fit, as `local_fit` does.

        Raises
        ------
        ValueError
            If the algorithm cannot do the problem.
        """
        if not self.tables:
            return choose(self.problem, algorithm).reduce(self.problem, n_jobs=n_jobs, progress=progress)
        if self._is_dense(algorithm):
            whole = with_factors(self.problem, self._log_factors)
            return choose(whole, "reference").reduce(whole, n_jobs=n_jobs, progress=progress)
        layout, center = self.problem.layout, self.problem.value_center
        total = empty_state(len(self.problem.query), layout.width)
        for visit in self._visits(0, progress):
            state = choose(visit.part, algorithm).reduce(visit.part, n_jobs=n_jobs, progress=visit.report)
            shift = np.where(state.denominator > 0, state.shift + visit.factors.sum(axis=1), -np.inf)
            _add(total, visit.rows, PoolState(shift, state.denominator, state.numerator))
        return PoolState(total.shift, total.denominator, layout.with_center(total.denominator, total.numerator, center))

    def pullback(
        self,
        state: PoolState,
        cotangent: Array,
        wanted: Collection[str] = ("log_bandwidth", "smoothing"),
        *,
        algorithm: str = "auto",
        n_jobs: int | None = None,
        progress: Progress | None = None,
    ) -> MixedGradients:
        r"""Differentiate :math:`L = \sum_{ic} g_{ic} \hat y_{ic}`, where yhat is the fit that `state` stands for.

        Parameters
        ----------
        state : PoolState
            What `reduce` returned. Its sums of values may be others than those of the problem: the fit is that of the
            state, and what it is compared with are the values of the problem.
        cotangent : ndarray of shape (m, c)
            The g.
        wanted : collection of {"log_bandwidth", "smoothing", "query"}, default=("log_bandwidth", "smoothing")
            Which derivatives. Those by the smoothings need no slope of the kernel.
        algorithm, n_jobs, progress
            As in `reduce`.

        Returns
        -------
        MixedGradients
            ``log_bandwidth`` and ``query`` of shape (m, d), ``smoothing``, by the lambdas themselves, of shape (m, k):
            one row per query, to be summed or used as they are. Queries with an empty window contribute nothing.

        Raises
        ------
        ValueError
            If something unknown is wanted, shapes do not fit, or the kernel has no slope.

        Notes
        -----
        At a smoothing of zero the derivative is that towards larger ones. It can be huge: where all keys that count are
        far away and one of another level is near, a little smoothing changes everything. It is cut off near 1e217.

        Examples
        --------
        >>> from kernpool.kernels import get_categorical_kernel
        >>> kernel, level = get_categorical_kernel("li_racine"), np.array([[0], [1]])
        >>> problem = Problem.from_arrays([5.0, 5.0], [5.0, 5.0], [10.0, 20.0])
        >>> mixed = MixedProblem(problem, level, level, (kernel.table(2, 0.0),), (kernel.table_slope(2, 0.0),))
        >>> mixed.pullback(mixed.reduce(), np.ones((2, 1)), ["smoothing"]).smoothing
        array([[ 10.],
               [-10.]])
        """
        wanted = frozenset([wanted] if isinstance(wanted, str) else wanted)
        if not wanted or wanted - WANTED:
            raise ValueError(f"wanted must be some of {sorted(WANTED)}, got {sorted(wanted)}")
        cotangent = np.ascontiguousarray(cotangent, dtype=np.float64)
        if not self.tables and "smoothing" not in wanted:
            found = choose(self.problem, algorithm).pullback(
                self.problem, state, cotangent, wanted, n_jobs=n_jobs, progress=progress
            )
            return MixedGradients(found.log_bandwidth, None, found.query)
        check_pullback(self.problem, state, cotangent)
        (m, d), k, layout = self.problem.query.shape, len(self.tables), self.problem.layout
        centred = layout.with_center(state.denominator, state.numerator, -self.problem.value_center)
        state = PoolState(state.shift, state.denominator, centred)
        sums = {name: np.zeros((m, k if name == "smoothing" else d)) for name in wanted}
        numeric = wanted - {"smoothing"}
        smoothed = "smoothing" in wanted and k > 0
        if self._is_dense(algorithm):
            return self._dense_pullback(state, cotangent, numeric, smoothed, progress)
        far = find_far(state) if numeric else np.empty(0, dtype=np.intp)
        if far.size:  # cells tell each other by logits how much they weigh, which is too rough out there
            for piece in cut(far.size, max(1, FAR_PAIRS // self.problem.shape[1])):
                some = far[piece]
                part = self._block(some)._dense_pullback(state.rows(some), cotangent[some], numeric, False, None)
                for name in numeric:
                    sums[name][some] = getattr(part, name)
        near, passes = state.without(far), bool(numeric) + smoothed
        for visit in self._visits(0, progress, 0, passes) if numeric else ():
            rows = visit.rows
            # In the unit of the cell: what the state sums is the factor times the weights of the cell.
            shift = near.shift[rows] - visit.factors.sum(axis=1)
            scaled = PoolState(shift, near.denominator[rows], near.numerator[rows])
            found = choose(visit.part, algorithm).pullback(
                visit.part, scaled, cotangent[rows], numeric, n_jobs=n_jobs, progress=visit.report
            )
            for name in numeric:
                sums[name][rows] += getattr(found, name)
        if smoothed:
            fit = solve(state, layout)
            unit = np.where(fit.occupied, state.log_denominator, np.inf)
            for visit in self._visits(1, progress, passes - 1, passes):
                rows = visit.rows
                own = choose(visit.part, algorithm).reduce(visit.part, n_jobs=n_jobs, progress=visit.report)
                moved = _moved(own, _rows_of(fit, rows), cotangent[rows], layout)
                for a, slope in enumerate(self._padded_slopes):
                    others = np.delete(visit.factors, a, axis=1).sum(axis=1)
                    exponent = np.minimum(own.log_denominator - unit[rows] + others, LARGEST_EXPONENT)
                    change = slope[self.query_code[rows, a], visit.levels[a]]
                    sums["smoothing"][rows, a] += change * np.exp(exponent) * moved
        return MixedGradients(**sums)

    def _block(self, rows: Rows) -> MixedProblem:
        return replace(self, problem=self.problem.block(rows), query_code=self.query_code[rows])

    def _is_dense(self, algorithm: str) -> bool:
        return bool(self.tables) and algorithm == "auto" and is_dense(self.problem, len(self.cells))

    def log_factors(self, rows: Rows = slice(None)) -> list[Array]:
        """Return the logarithms of all factors of some queries, of shape (rows, n) for each categorical column."""
        code = zip(self.query_code[rows].T, self.key_code.T, strict=True)
        return [table[query[:, None], key] for table, (query, key) in zip(self.log_tables, code, strict=True)]

    @cached_property
    def _log_factors(self) -> list[Array]:
        return self.log_factors()

    def _dense_pullback(
        self, state: PoolState, cotangent: Array, numeric: frozenset[str], smoothed: bool, progress: Progress | None
    ) -> MixedGradients:
        """Do as `pullback` in one piece, of a state of centred values."""
        bare = self.problem.without_center()
        found: dict[str, Array] = {}
        if numeric:
            whole = with_factors(bare, self._log_factors)
            gradients = choose(whole, "reference").pullback(whole, state, cotangent, numeric)
            found |= {name: getattr(gradients, name) for name in numeric}
        if smoothed:
            fit = solve(state, self.problem.layout)
            unit = np.where(fit.occupied, state.log_denominator, np.inf)
            code = zip(self.query_code.T, self.key_code.T, strict=True)
            slopes = [slope[q[:, None], k] for slope, (q, k) in zip(self._padded_slopes, code, strict=True)]
            found["smoothing"] = smoothing_gradient(
                bare, self._log_factors, slopes, fit, unit, cotangent, LARGEST_EXPONENT
            )
        if progress is not None:
            progress(len(cotangent), len(cotangent))
        return MixedGradients(**found)

    @cached_property
    def log_tables(self) -> list[Array]:
        """Logarithms of the tables, with a last row for the level -1, which is unlike every other."""
        with np.errstate(divide="ignore"):
            return [np.log(_with_unlike(table)) for table in self.tables]

    @cached_property
    def _padded_slopes(self) -> list[Array]:
        return [_with_unlike(slope) for slope in self.slopes]

    def _visits(self, zeros: int, progress: Progress | None, number: int = 0, passes: int = 1) -> Iterator[Visit]:
        """Go through the cells, with the queries that at most so many factors of zero keep apart from each."""
        m, bare = len(self.problem.query), self.problem.without_center()
        for place, cell in enumerate(self.cells):
            report = None
            if progress is not None:
                report = partial(_report, progress, m, number * len(self.cells) + place, passes * len(self.cells))
            factors = np.empty((m, len(self.tables)))
            for a, table in enumerate(self.log_tables):
                factors[:, a] = table[self.query_code[:, a], cell.levels[a]]
            meet = np.isneginf(factors).sum(axis=1) <= zeros
            rows: Rows = slice(None) if meet.all() else np.flatnonzero(meet)
            if meet.any():
                whole = isinstance(cell.keys, slice)
                part = bare.block(rows) if whole else bare.part(rows, cell.keys)
                yield Visit(cell.levels, rows, factors[rows], part, report)
            elif report is not None:
                report(1, 1)


def _with_unlike(table: Array) -> Array:
    """Add a last row, which the code -1 finds: every level is as unlike as the first and the last one."""
    return np.vstack([table, np.full((1, len(table)), table[0, -1])])


def _report(progress: Progress, m: int, place: int, places: int, done: int, total: int) -> None:
    progress(place * m + done * m // total, places * m)


def _add(total: PoolState, rows: Rows, part: PoolState) -> None:
    whole = merge(PoolState(total.shift[rows], total.denominator[rows], total.numerator[rows]), part)
    total.shift[rows], total.denominator[rows], total.numerator[rows] = (
        whole.shift, whole.denominator, whole.numerator
    )  # fmt: skip


def _rows_of(fit: LocalFit, rows: Rows) -> LocalFit:
    return LocalFit(*(getattr(fit, field.name)[rows] for field in fields(fit)))


def _moved(own: PoolState, fit: LocalFit, cotangent: Array, layout: Layout) -> Array:
    r"""Mean over the keys of a cell of :math:`(b + \tau \cdot t)\, g \cdot (v - \beta_0 - \beta \cdot t)`."""
    share = np.divide(1.0, own.denominator, where=own.denominator > 0, out=np.zeros(len(own.denominator)))
    mean = own.numerator * share[:, None]
    level = np.sum(cotangent * fit.intercept, axis=1)
    moved: Array = fit.base * (np.sum(cotangent * mean[:, layout.value], axis=1) - level)
    if not layout.degree:
        return moved
    m, d = fit.tilt.shape
    along, first = np.einsum("mc,mdc->md", cotangent, fit.slope), mean[:, layout.first]
    upper, lower = np.triu_indices(d)
    second = np.empty((m, d, d))
    second[:, upper, lower] = second[:, lower, upper] = mean[:, layout.second]
    cross = np.einsum("mc,mdc->md", cotangent, mean[:, layout.cross].reshape(m, d, layout.values))
    tilted = cross - level[:, None] * first - np.einsum("mde,me->md", second, along)
    return np.asarray(moved - fit.base * np.sum(along * first, axis=1) + np.sum(fit.tilt * tilted, axis=1))
