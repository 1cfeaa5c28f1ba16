"""Pooling with categorical columns: sums over cells of keys of equal categories, and derivatives by smoothings.

Keys that have the same category in every categorical column are a *cell*. Within a cell the categorical kernels
depend on the query alone, so the cell is an ordinary problem, for any algorithm, and its state is scaled query by
query: ``shift + log(factor)``. The states of all cells merge. A cell costs half a millisecond whatever its size, so
fifty rows of twenty different combinations are one dense sum, with the factors as a table added to the logits.

The effect of a smoothing lambda on the fit follows from those states too, without another pass over the pairs. With
the fit ``yhat_i = sum_j omega_ij v_j`` and the residuals r from its local plane (see `reference.pullback`)

    d / d log T_i,cell  of  sum_c g_ic yhat_ic   =   sum over j in the cell of  omega_ij g_i . r_ij

which is made of the sums of the cell. They are taken before they are scaled, so that a factor of zero has a
derivative.
"""

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import cast

import numpy as np

from kernpool._arrays import Array, Codes
from kernpool.algorithms import Gradients
from kernpool.core import Factors, Layout, LocalFit, PoolState, Problem, empty_state, solve
from kernpool.core.pair_factors import Some
from kernpool.execution import Progress, progress_between
from kernpool.pooling.plan import check_algorithm, choose_algorithm, name_of_each, read_pullback

# Where a cell that counts nothing is nearer by far than all that count, slopes are cut off here: 1e217, not infinite.
LARGEST_EXPONENT = 500.0


def smoothing_gradient(problem: Problem, fit: LocalFit, log_denominator: Array, cotangent: Array) -> Array:
    """Differentiate each query's fitted value, weighted by `cotangent`, by the smoothing of each categorical column."""
    # For query i this is the derivative of \sum_c g_{ic} \hat y_{ic}.
    factors = cast(Factors, problem.factors)
    log_factors, slopes = factors.logarithms(), factors.pair_slopes()
    offset = partial(problem.similarity.offset, problem.query, problem.key)
    residual = cotangent @ problem.value.T - np.sum(cotangent * fit.intercept, axis=1)[:, None]
    share = np.repeat(fit.base[:, None], problem.shape[1], axis=1)
    along = np.einsum("mc,mdc->md", cotangent, fit.slope)
    for a in range(along.shape[1]):
        t = offset(a)
        residual -= along[:, a, None] * t
        share += fit.tilt[:, a, None] * t
    moved = problem.multiplicity() * share * residual
    logits = problem.similarity.logits(problem.query, problem.key) + np.log(problem.weight_unit)
    if problem.logit_bias is not None:
        logits = logits + problem.logit_bias
    gradient = np.empty((len(cotangent), len(slopes)))
    for a, slope in enumerate(slopes):
        others = sum((factor for b, factor in enumerate(log_factors) if b != a), start=logits)
        exponent = np.minimum(others - log_denominator[:, None], LARGEST_EXPONENT)
        gradient[:, a] = np.sum(moved * slope * np.exp(exponent), axis=1)
    return gradient


def mean_weighted_residual(sums: PoolState, fit: LocalFit, cotangent: Array, layout: Layout) -> Array:
    """Return each query's mean, over a cell's keys, of residual times equivalent-kernel factor times `cotangent`."""
    # It is the mean of (b + \tau \cdot t)\, g \cdot (v - \beta_0 - \beta \cdot t), a factor of the gradient by the
    # smoothings.
    share = np.divide(1.0, sums.denominator, where=sums.denominator > 0, out=np.zeros(len(sums.denominator)))
    mean = sums.numerator * share[:, None]
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


WANTED = frozenset({"log_bandwidth", "smoothing", "query"})
MOST_PAIRS, PAIRS_PER_CELL = 1 << 20, 20_000  # of a cell that is worth a sum of its own


@dataclass(frozen=True)
class CellPlan:
    """Plan for categorical columns: separate sums over cells of keys with equal categories, or one dense sum."""

    # Time is that of the cells, one after the other: O(n m d) in all at most, and O(m) for each cell. A query skips the
    # cells for which its factor is zero, so that smoothings of zero are cheap. Memory is O(n + m), whatever the number
    # of cells.

    algorithm: str  # ``"cells"``, or ``"reference"`` for one dense sum
    reason: str  # why this way, in words
    _asked: str = field(default="auto", repr=False, compare=False)

    @np.errstate(under="ignore")
    def reduce(self, problem: Problem, *, n_jobs: int | None = None, progress: Progress | None = None) -> PoolState:
        """Sum weights and weighted values over all keys at each query, categorical kernels included.

        Parameters and result are those of `Plan.reduce`.

        For slopes at full precision let the problem have a ``value_center`` of zero, and add the center to the values
        of the fit, as `local_fit` does.
        """
        if self._is_dense:
            return self._sum(problem.with_dense_factors(), "reference", n_jobs, progress)
        layout, center = problem.layout, problem.value_center
        total = empty_state(len(problem.query), layout.width)
        for _, rows, factors, part, report in _blocks(problem, 0, progress):
            state = self._sum(part, self._asked, n_jobs, report)
            shift = np.where(state.denominator > 0, state.shift + factors.sum(axis=1), -np.inf)
            total.add(rows, PoolState(shift, state.denominator, state.numerator))
        return layout.with_center(total, center)

    @np.errstate(under="ignore")
    def pullback(
        self,
        problem: Problem,
        state: PoolState,
        cotangent: Array,
        wanted: Collection[str] = ("log_bandwidth", "smoothing"),
        *,
        n_jobs: int | None = None,
        progress: Progress | None = None,
    ) -> Gradients:
        r"""Differentiate a weighted sum of fitted values with respect to log-bandwidths, smoothings or queries.

        The sum is :math:`L = \sum_{ic} g_{ic} \hat y_{ic}`, where yhat is the fit that `state` stands for.

        Parameters
        ----------
        problem : Problem
            The problem that was summed.
        state : PoolState
            Result of `reduce`. Its sums may be of other values than those of the problem: the fit is that of the state,
            and residuals are those of the problem's values.
        cotangent : ndarray of shape (m, c)
            The g.
        wanted : collection of {"log_bandwidth", "smoothing", "query"}, default=("log_bandwidth", "smoothing")
            Which derivatives. Those by the smoothings need no slope of the kernel.
        n_jobs, progress
            As in `reduce`.

        Returns
        -------
        Gradients
            ``log_bandwidth`` and ``query`` of shape (m, d), ``smoothing``, by the lambdas themselves, of shape (m, k):
            one row per query, to be summed or used as they are. Queries with an empty window contribute nothing.

        Raises
        ------
        ValueError
            If something unknown is wanted, shapes do not fit, or the kernel has no slope.

        Notes
        -----
        At a smoothing of zero the derivative is one-sided. It can be huge: where all keys of positive weight are far
        away and one of another category is near, a little smoothing changes everything. It is cut off near 1e217.

        Examples
        --------
        >>> import kernpool
        >>> from kernpool.core import Factors
        >>> from kernpool.kernels import get_categorical_kernel
        >>> kernel, level = get_categorical_kernel("li_racine"), np.array([[0], [1]])
        >>> factors = Factors(level, level, (kernel.table(2, 0.0),), (kernel.table_slope(2, 0.0),))
        >>> problem = Problem.from_arrays([5.0, 5.0], [5.0, 5.0], [10.0, 20.0], factors=factors)
        >>> plan = kernpool.choose(problem)
        >>> plan.pullback(problem, plan.reduce(problem), np.ones((2, 1)), ["smoothing"]).smoothing
        array([[ 10.],
               [-10.]])
        """
        wanted, cotangent = read_pullback(problem, state, cotangent, wanted, WANTED)
        state = problem.layout.with_center(state, -problem.value_center)
        if self._is_dense:
            found = _dense_pullback(problem, state, cotangent, wanted)
            if progress is not None:
                progress(len(cotangent), len(cotangent))
            return Gradients(**found)
        numeric = wanted - {"smoothing"}
        sums = {name: np.zeros(problem.query.shape) for name in numeric}
        passes = len(wanted & {"smoothing"}) + (1 if numeric else 0)
        for _, rows, factors, part, report in _blocks(problem, 0, progress, 0, passes) if numeric else ():
            # In the unit of the cell: what the state sums is the factor times the weights of the cell.
            shift = state.shift[rows] - factors.sum(axis=1)
            scaled = PoolState(shift, state.denominator[rows], state.numerator[rows])
            gradients = choose_algorithm(part, self._asked).pullback(
                part, scaled, cotangent[rows], numeric, n_jobs=n_jobs, progress=report
            )
            for name in numeric:
                sums[name][rows] += getattr(gradients, name)
        if "smoothing" in wanted:
            sums["smoothing"] = self._smoothing(problem, state, cotangent, n_jobs, progress, passes)
        return Gradients(**sums)

    @property
    def _is_dense(self) -> bool:
        return self.algorithm == "reference"

    def _sum(self, problem: Problem, algorithm: str, n_jobs: int | None, progress: Progress | None) -> PoolState:
        return choose_algorithm(problem, algorithm).reduce(problem, n_jobs=n_jobs, progress=progress)

    def _smoothing(
        self,
        problem: Problem,
        state: PoolState,
        cotangent: Array,
        n_jobs: int | None,
        progress: Progress | None,
        passes: int,
    ) -> Array:
        """Differentiate fitted values by the smoothings, cell by cell, from sums of centered values."""
        factors, layout = cast(Factors, problem.factors), problem.layout
        slopes, fit = factors.padded_slopes, solve(state, layout)
        gradient = np.zeros((len(problem.query), len(slopes)))
        unit = np.where(fit.occupied, state.log_denominator, np.inf)
        for levels, rows, own, part, report in _blocks(problem, 1, progress, passes - 1, passes):
            sums = self._sum(part, self._asked, n_jobs, report)
            moved = mean_weighted_residual(sums, fit.rows(rows), cotangent[rows], layout)
            for a, slope in enumerate(slopes):
                others = np.delete(own, a, axis=1).sum(axis=1)
                exponent = np.minimum(sums.log_denominator - unit[rows] + others, LARGEST_EXPONENT)
                change = slope[factors.query_code[rows, a], levels[a]]
                gradient[rows, a] += change * np.exp(exponent) * moved
        return gradient


def choose_for_levels(problem: Problem, algorithm: str) -> CellPlan:
    """Choose, for categorical columns, between sums over cells of keys with equal categories and one dense sum."""
    check_algorithm(algorithm)
    (m, n), cells = problem.shape, len(_cells(problem))
    if algorithm == "auto" and m * n <= MOST_PAIRS and m * n < PAIRS_PER_CELL * cells:
        why = f"{m} queries x {n} keys in {cells} cells of equal levels are few pairs for each"
        return CellPlan("reference", f"dense sum with a table of factors: {why}", algorithm)
    why = f"{cells} cell(s) of equal levels, one after the other: each by {name_of_each(algorithm)}"
    return CellPlan("cells", why, algorithm)


def _cells(problem: Problem) -> list[tuple[Codes, Some]]:
    factors, weight = cast(Factors, problem.factors), problem.key_weight
    return problem.prepare("cells", (factors.key_code, weight), lambda: factors.cells(weight))


def _blocks(
    problem: Problem, zeros: int, progress: Progress | None, number: int = 0, passes: int = 1
) -> Iterator[tuple[Codes, Some, Array, Problem, Progress | None]]:
    """Yield cells of keys, each with the queries for which at most `zeros` categorical kernels are zero."""
    # Levels of the keys, which queries, logarithms of their factors, the problem of both, whose state is about the
    # center of the values of all keys, and a callback for progress. Cells without such queries are skipped.
    m, bare, cells = len(problem.query), problem.without_factors().without_center(), _cells(problem)
    for place, (levels, keys) in enumerate(cells, number * len(cells)):
        report = progress_between(progress, place * m, (place + 1) * m, passes * len(cells) * m)
        factors = cast(Factors, problem.factors).to_cell(levels)
        meet = np.isneginf(factors).sum(axis=1) <= zeros
        rows: Some = slice(None) if meet.all() else np.flatnonzero(meet)
        if meet.any():
            part = bare.block(rows) if isinstance(keys, slice) else bare.part(rows, keys)
            yield levels, rows, factors[rows], part, report
        elif report is not None:
            report(1, 1)


def _dense_pullback(problem: Problem, state: PoolState, cotangent: Array, wanted: frozenset[str]) -> dict[str, Array]:
    """Differentiate fitted values in one dense sum over all pairs, from sums of centered values."""
    bare, found = problem.without_center(), {}
    numeric = wanted - {"smoothing"}
    if numeric:
        whole = bare.with_dense_factors()
        gradients = choose_algorithm(whole, "reference").pullback(whole, state, cotangent, numeric)
        found = {name: getattr(gradients, name) for name in numeric}
    if "smoothing" in wanted:
        fit = solve(state, problem.layout)
        unit = np.where(fit.occupied, state.log_denominator, np.inf)
        found["smoothing"] = smoothing_gradient(bare, fit, unit, cotangent)
    return found
