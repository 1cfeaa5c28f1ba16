"""The objective function of a bandwidth search: criterion, residuals and derivatives at given bandwidths.

Derivatives come from the pullback of the fit, and those of the hat diagonal do, too. A row's own value moves its
fit by ``H_ii``, which is the fit of values that are zero everywhere but in that row. In units of ``H_ii`` its
weighted mean is ``1 / base`` and its cross moments vanish, because the row's own offset is zero. So a pullback of
zero values, with that state in place of their sums, is the derivative of ``log H_ii``.

The penalty of ``"regularised"``. Leave-one-out errors are noisy functions of one bandwidth per column, and their
minimum is where noise helped most: with many columns it has small bandwidths that a fresh sample would not confirm.
The penalised criterion is::

    log S(h) + (c/N) [ sum_a log(1 + (s_a / h_a)^2) + v sum_a (z_a - zbar)^2
                       + sum_b log(1 + r_b / (1 - r_b + eps)) ],    z_a = min(log(h_a / s_a), z_max)

with the spread s_a of a column and the relevance r_b of a categorical one. In units of a log likelihood, (N/2) log
S, the penalty is the log prior density of a maximum a posteriori estimate: Cauchy-like in the relevance s_a / h_a
of each column, and log-normal around a common factor. Its weight falls with the number of rows, so that with many
rows the bandwidths are those of leave-one-out. A single bandwidth, or one common factor, hardly overfits and has no
penalty.
"""

import math
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from kernpool._arrays import Array, Flags, Index
from kernpool.bandwidth.criteria import LARGEST, lies_within_gap, replace_at_high_leverage
from kernpool.bandwidth.rules_of_thumb import canonical_ratio, rate_factor
from kernpool.bandwidth.search.setup import STEPS, STEPS_OF_SEVERAL, SearchOptions, TrainingRows
from kernpool.core import NO_CATEGORIES, Categories, LocalFit, PoolState, Problem, solve, sums_of_others, with_ridge
from kernpool.core.local_fit import change_by_ridge
from kernpool.kernels import Kernel
from kernpool.pooling import choose

LARGEST_LOG_PENALTY = 500.0
FIRST_RIDGE = 0.3  # keys at the query
MOST_UNEVEN = 1.5  # of the upper quartile to the 10th percentile of steps; of uniform rows it is 13
EQUAL, SAME = 1.0 + 1e-12, 1.0 + 1e-15  # criteria: fast ones have twelve digits or so, and near points differ by less
SHARP = 1e-3  # log bandwidths: nearer to each other, points of equal criteria are those of one minimum
EXACT = 1e-28  # mean square, of outputs in units of their range, where rows are predicted exactly


class Trial(NamedTuple):
    """Summary of one evaluation of a criterion: parameters, value, mean square, and number of rows without neighbours.

    Parameters
    ----------
    theta : ndarray of shape (p,)
        Logarithms of the bandwidths, and the smoothings of categorical columns.
    penalised : float
        Mean of squares times penalty.
    error : ndarray of shape (c,)
        Mean of squares of each output.
    empty_windows : int
        Rows that have no other row in their window, and are predicted by the weighted mean of the others.
    ridge : float, default=0.0
        On the slopes of planes.
    prior_share : float, default=NaN
        Weight of the class priors that are mixed in.
    """

    theta: Array
    penalised: float
    error: Array
    empty_windows: int
    ridge: float = 0.0
    prior_share: float = float("nan")


class SearchObjective:
    """Criterion of some rows as a function of log bandwidths and smoothings, and a record of its evaluations.

    Attributes
    ----------
    rows : TrainingRows
        The rows.
    columns : int
        Number of bandwidths; the other parameters are smoothings.
    box : tuple of three ndarrays of shape (p,)
        Bounds of the parameters, and thresholds beyond which the criterion is nearly flat.
    ridge : float
        On the slopes of planes; may be changed between evaluations.
    way : str
        How the criterion is evaluated, and why so.
    starts : int
        Number of starts on these rows, or of points of a grid.
    is_quick : bool
        Whether a faster method than the engine evaluates.
    of_deviance : bool
        Whether residuals are those of deviance.
    tried : list of Trial
        Evaluations whose values may be reported.
    chosen : Trial or None
        The best evaluation where not the criterion alone says so: by the engine, once a faster method has found it.
    rejected : float
        The smallest mean square of windows that are no candidates, because they lie within the gap; whose criterion is
        infinite.
    widest : float
        Largest log bandwidth of candidates, where one factor is searched for.
    """

    rows: TrainingRows
    columns: int
    box: tuple[Array, Array, Array]
    ridge = 0.0
    way = ""
    starts = 0
    is_quick = False
    of_deviance = False
    tried: list[Trial]
    chosen: Trial | None = None
    rejected = widest = math.inf
    # Local minima of a grid of common factors that are refined, and how far, in log bandwidths.
    refined_minima, tolerance = 3, 1e-7

    @abstractmethod
    def evaluate(self, theta: Array) -> Any:
        """Evaluate the criterion at log bandwidths and smoothings; the result has it as ``penalised``."""

    def confirm(self, best: Any) -> None:
        """Evaluate the best point by the engine if a faster method has found it."""

    @property
    def best(self) -> Trial:
        """Evaluated point that was chosen; else of smallest criterion, and where that is flat of largest bandwidths."""
        if self.chosen is not None:
            return self.chosen
        candidates = [one for one in self.tried if one.theta[0] <= self.widest]
        theta, penalised = np.array([one.theta for one in candidates]), [one.penalised for one in candidates]
        return candidates[widest_minimum(theta, np.maximum(penalised, EXACT))]

    def relevant(self, theta: Array) -> Flags:
        """Return which columns matter: bandwidths below 1e2 ranges, and smoothings below their upper ends."""
        _, high, flat = self.box
        return np.asarray(np.where(np.isinf(flat), theta < high, theta < high - np.log(100.0)))

    def expected_minimum(self, fewer: "SearchObjective", theta: Array, degree: int) -> Array:
        """Return the parameters expected to be best for these rows, given the best ones for fewer rows.

        They are within the box, and columns that are smoothed away stay so.
        """
        (low, high, _), d, matter = self.box, self.columns, fewer.relevant(theta)
        factor = rate_factor(len(fewer.rows.X), len(self.rows.X), int(np.count_nonzero(matter[:d])), degree)
        expected = np.append(theta[:d] + np.log(factor), theta[d:] * factor**2)
        return np.where(matter, np.clip(expected, low, high), high)


def widest_minimum(theta: Array, criterion: Array) -> int:
    """Return the row of parameters of least criterion: where that is flat the widest, elsewhere to the last digits.

    Examples
    --------
    >>> widest_minimum(np.array([[0.0], [1.0], [1.0 + 1e-6], [2.0]]), np.array([1.0, 1.0, 1.0 + 1e-13, 2.0]))
    1
    """
    near, width = np.arange(len(theta)), theta.sum(axis=1)
    for equal in (EQUAL, SAME):
        near = near[criterion[near] <= equal * criterion[near].min()]
        widest = near[np.argmax(width[near])]
        near = near[np.abs(theta[near] - theta[widest]).max(axis=1) <= SHARP]
    return int(widest)


def cost_of_empty(empty: Flags, weight: Array) -> float:
    r"""Return the penalty, added to the log mean square, for rows with no other row in the support of the kernel.

    .. math:: -2 \log\big(\max(1 - f, 1 / (N + 1))\big)

    with f the fraction of the N rows whose window holds no other row. Such a row is predicted by the mean of the
    others, so without a cost bandwidths that leave all windows empty would tie with those that smooth everything away.
    The factor is that of generalised cross-validation, with one degree of freedom for each empty window. As a factor on
    the squares, and not a square of its own, it lets one isolated row of many hardly matter, however little noise
    there is.

    Parameters
    ----------
    empty : ndarray of bool, shape (n,)
        Which windows are empty.
    weight : ndarray of shape (n,)
        Frequencies of rows.

    Examples
    --------
    >>> round(cost_of_empty(np.array([True, False, False, False]), np.ones(4)), 2)
    0.58
    """
    total = float(weight.sum())
    occupied, least = 1.0 - float(weight @ empty) / total, 1.0 / (max(total, float(len(weight))) + 1.0)
    return -2.0 * math.log(max(occupied, least))


@dataclass(frozen=True)
class Evaluation:
    """Criterion at one set of bandwidths, with the kernel sums and local fits that its derivatives need.

    Parameters
    ----------
    theta : ndarray of shape (p,)
        Logarithms of the bandwidths, the smoothings of categorical columns, and the logarithm of the ridge where it is
        a parameter.
    unpenalised : ndarray of shape (n, c)
        Residuals times the roots of their normalised weights.
    residual : ndarray of shape (n, c)
        These times the root of the penalty, whose squares add up to the criterion.
    penalised : float
        Mean of squares of all outputs times the penalty.
    root : float
        Root of the penalty, which multiplies the residuals; infinite where the criterion is not defined.
    penalty_slope : float
        Derivative of the logarithm of the penalty by the trace of the hat matrix.
    problem, state, fit
        Pooling problem, its sums, and the local fits.
    hat : ndarray of shape (n,)
        Diagonal of the hat matrix; empty for criteria that do not use it.
    by_fit, by_hat : ndarray of shape (n, c) or float
        Derivatives of `unpenalised` by the residuals of the fit, and by the diagonal of the hat matrix.
    ridge : float
        On the slopes of planes.
    """

    theta: Array
    unpenalised: Array
    residual: Array
    penalised: float
    root: float
    penalty_slope: float
    problem: Problem
    state: PoolState
    fit: LocalFit
    hat: Array
    by_fit: Array | float
    by_hat: Array | float
    ridge: float


# Chosen on the tables for tuning of benchmarks/tables.py: R^2 of new rows is flat in both, from 2 to 8 and .1 to .5.
WEIGHT, LIKENESS = 4.0, 0.25
FARTHEST = 3.0  # log spreads: a bandwidth of 20 spreads is practically infinite
EDGE = 0.01


def penalise_bandwidths(
    theta: Array, total: float, *, log_spread: Array, varies: Flags, largest: Array
) -> tuple[float, Array]:
    """Return the penalty on narrow and unequal bandwidths, and on small smoothings, of the regularised criterion.

    Parameters
    ----------
    theta : ndarray of shape (d + k,)
        Log bandwidths and smoothings.
    total : float
        Number of rows.
    log_spread : ndarray of shape (d,)
        Logarithms of the spreads of the numeric columns.
    varies : ndarray of bool, shape (d,)
        Which of them are not constant.
    largest : ndarray of shape (k,)
        Upper bounds of the smoothings.

    Returns
    -------
    penalty : float
        Added to the log mean square.
    slope : ndarray of shape (d + k,)
        Its gradient.

    Examples
    --------
    >>> columns = {"log_spread": np.zeros(2), "varies": np.ones(2, dtype=bool), "largest": np.zeros(0)}
    >>> penalty, slope = penalise_bandwidths(np.log([0.5, 100.0]), 100.0, **columns)
    >>> round(penalty, 4), slope.round(4)
    (0.1327, array([-0.1009,  0.    ]))
    """
    d = len(log_spread)
    slope = np.zeros(len(theta))
    log_ratio = np.where(varies, theta[:d] - log_spread, FARTHEST)
    near = np.minimum(log_ratio, FARTHEST)
    relevance = np.exp(-2.0 * near)
    count = max(1, int(varies.sum()))
    off = np.where(varies, near - near[varies].sum() / count, 0.0)
    penalty = float(np.log1p(relevance)[varies].sum() + LIKENESS * off @ off)
    moving = varies & (log_ratio < FARTHEST)
    slope[:d] = np.where(moving, -2.0 * relevance / (1.0 + relevance) + 2.0 * LIKENESS * off, 0.0)
    unit = np.divide(1.0, largest, where=largest > 0, out=np.zeros(len(largest)))
    share = np.where(largest > 0, theta[d:] * unit, 1.0)
    penalty += float(np.log1p((1.0 - share) / (share + EDGE)).sum())
    slope[d:] = -unit / (share + EDGE)
    return WEIGHT / total * penalty, WEIGHT / total * slope


Penalty = Callable[[Array, float], tuple[float, Array]]

FLAT = 1e4  # ranges of a column: beyond, the weights of any two rows differ by less than 1e-8
STEEPEST = 1e30  # slope of a prediction, in ranges of the outputs
ROUNDING = 1e-12


@dataclass(eq=False)
class Objective(SearchObjective):
    """Bandwidth-selection criterion of training rows as a function of log bandwidths and smoothings.

    Parameters
    ----------
    rows : TrainingRows
        In canonical form; several outputs should be in comparable units. Rows that are held out
        together take a criterion that leaves rows out.
    options : SearchOptions
        Criterion and options of pooling. Its `progress` is called in queries of the evaluation at hand.
    categories : Categories, optional
        Categories of the codes.
    penalty : callable, optional
        A penalty on bandwidths: `penalise_bandwidths` for the columns of the search.
    queries : ndarray of int, optional
        Rows that are predicted, from all, in increasing order; by default all.
    """

    rows: TrainingRows
    options: SearchOptions
    categories: Categories = NO_CATEGORIES
    penalty: Penalty | None = None
    queries: Index | None = None

    def __post_init__(self) -> None:
        rows, options, largest = self.rows, self.options, self.categories.largest
        self.tried, self.columns = [], rows.bandwidths
        # To 1e4 ranges, where all values weigh the same; there a constant column stays. Criteria begin to be flat at
        # three ranges. Smoothings have no flat part.
        low, high = np.log(narrowest(rows, options.kernel)), np.log(FLAT * np.where(rows.extent > 0, rows.extent, 1.0))
        flat = np.append(high - np.log(FLAT) + 1.0, np.full(len(largest), np.inf))
        self.box = np.append(low, 0.0 * largest), np.append(high, largest), flat
        self.parameters = self.columns + len(largest)
        self.ridge = FIRST_RIDGE * rows.unit if options.ridge is None else options.ridge
        problem = Problem.from_arrays(
            rows.X,
            rows.X,
            rows.value,
            kernel=options.kernel,
            bandwidth=rows.geometry.per_column(np.exp(high) / FLAT),
            key_weight=None if np.all(rows.weight == 1.0) else rows.weight,
            degree=options.degree,
            geometry=rows.geometry,
        )
        if rows.exclusion is not None:
            problem = problem.excluding(rows.exclusion.code, rows.exclusion)
        own = np.arange(len(rows.X)) if options.criterion.exclude_self and rows.exclusion is None else None
        problem = replace(problem, self_index=own, value_center=np.zeros_like(problem.value_center))
        self.problem, self.judged = problem, replace(rows, value=problem.value)
        if self.queries is not None:
            self.problem, self.judged = problem.block(self.queries), self.judged.take(self.queries)
        self._share = np.sqrt(self.judged.weight / self.judged.total)[:, None]
        self._of_all = self.judged.weight * (self.rows.total / self.judged.total)
        self._log_peak = problem.similarity.kernel.log_peak(rows.X.shape[1])

    def evaluate(self, theta: Array) -> Evaluation:
        """Evaluate the criterion at log bandwidths, smoothings and maybe a log ridge, and record it in `tried`."""
        problem, options = self.at(theta), self.options
        plan = choose(problem, options.algorithm, reuse=True)
        state = plan.reduce(problem, n_jobs=options.n_jobs, progress=options.progress)
        return self.judge(theta, problem, state)

    def jacobian(self, at: Evaluation) -> Array:
        """Return derivatives of the residuals with respect to all parameters of the evaluation, of shape (n c, p).

        This takes one pass over the pairs of rows per output.
        """
        n, c = at.residual.shape
        moved = np.empty((n, c, self.parameters))
        for b in range(c):
            cotangent = np.zeros((n, c))
            cotangent[:, b] = 1.0
            moved[:, b] = self.pullback(at, cotangent)
        return self.differentiate(at, moved, self._log_hat_moved(at) if at.hat.size else None)

    def at(self, theta: Array) -> Problem:
        """Return the `Problem` of pooling the training rows at given log bandwidths and smoothings."""
        bandwidth = self.rows.geometry.per_column(np.exp(theta[: self.columns]))
        similarity = replace(self.problem.similarity, bandwidth=bandwidth)
        if self.parameters == self.columns:
            return replace(self.problem, similarity=similarity)
        smoothing = theta[self.columns : self.parameters]
        factors = self.categories.factors(self.judged.code, self.rows.code, smoothing)
        return replace(self.problem, similarity=similarity, factors=factors)

    def value_in(self, problem: Problem) -> float:
        """Return the criterion in the windows of a problem that has values and queries of this one."""
        state = choose(problem, reuse=True).reduce(problem, n_jobs=self.options.n_jobs)
        return self.judge(np.zeros(0), problem, state).penalised

    def ratios(self, bandwidth: Array) -> list[Array]:
        """Return bandwidths to compare in windows to the nearest rows, given those found."""
        return [bandwidth]

    def judge(self, theta: Array, problem: Problem, state: PoolState) -> Evaluation:
        """Evaluate the criterion from precomputed kernel sums, and record it in `tried`.

        Parameters
        ----------
        theta : ndarray of shape (p,)
            Log bandwidths, smoothings and maybe a log ridge.
        problem : Problem
            The result of `at` there.
        state : PoolState
            Its sums.
        """
        criterion, weight = self.options.criterion, self.judged.weight
        ridge = float(np.exp(theta[-1])) if len(theta) > self.parameters else self.ridge
        if ridge:
            state = with_ridge(state, problem.layout, np.asarray(ridge * np.exp(self._log_peak)))
        fit = solve(state, problem.layout)
        prediction = fit.intercept
        if not fit.occupied.all():
            prediction = np.where(fit.occupied[:, None], prediction, self._mean_of_others())
        residual = (self.judged.value - prediction) * self._share
        hat, empty = np.empty(0), ~fit.occupied
        if criterion.log_penalty is not None:
            itself = np.exp(problem.log_own - state.shift) / state.denominator
            # No other row is in a compact kernel's support where a row's weight for itself is all that there is.
            alone = (weight <= 1.0) & (itself * weight >= 1.0 - ROUNDING)
            hat, empty = itself * fit.base, alone & self.problem.similarity.kernel.is_compact
        by_fit: Array | float = 1.0
        by_hat: Array | float = 0.0
        if hat.size and problem.degree:
            residual, by_fit, by_hat = replace_at_high_leverage(residual, self.alone, hat, self.bound)
        cost = cost_of_empty(empty, weight) if empty.any() else 0.0
        return self.record(theta, residual, problem, state, fit, hat, by_fit, by_hat, ridge, cost)

    def record(
        self,
        theta: Array,
        unpenalised: Array,
        problem: Problem,
        state: PoolState,
        fit: LocalFit,
        hat: Array,
        by_fit: Array | float = 1.0,
        by_hat: Array | float = 0.0,
        ridge: float = 0.0,
        cost: float = 0.0,
    ) -> Evaluation:
        """Penalise degrees of freedom and bandwidths, and record the evaluation in `tried`.

        Parameters
        ----------
        theta, unpenalised, problem, state, fit, hat, by_fit, by_hat, ridge
            As of `Evaluation`.
        cost : float, default=0.0
            Cost of empty windows, added to the logarithm of the penalty.
        """
        freedom, slope = self.options.criterion.log_penalty, 0.0
        if freedom is not None:
            penalty, slope = freedom(float(self._of_all @ hat), self.rows.total)
            cost += penalty
        # Windows to the nearest rows have no bandwidths, and are no candidates of a search by these.
        if len(theta) and problem.excluded is not None and cost < math.inf and lies_within_gap(problem):
            self.rejected = min(self.rejected, float(np.sum(unpenalised**2)))
            cost = math.inf
        root = np.inf
        residual = np.full_like(unpenalised, np.inf)
        if cost < LARGEST_LOG_PENALTY:  # beyond, it overflows
            if self.penalty is not None:
                cost += self.penalty(theta[: self.parameters], self.rows.number)[0]
            root = math.exp(0.5 * cost)
            residual = unpenalised * root
        error = np.sum(unpenalised**2, axis=0)
        penalised = float(np.sum(residual**2))
        empty_windows = int(np.count_nonzero(~fit.occupied))
        self.tried.append(Trial(theta[: self.parameters], penalised, error, empty_windows, ridge))
        return Evaluation(
            theta, unpenalised, residual, penalised, root, slope, problem, state, fit, hat, by_fit, by_hat, ridge
        )

    def differentiate(self, at: Evaluation, moved: Array, log_hat_moved: Array | None) -> Array:
        """Return the derivatives of the residuals, of shape (n c, p), given those of the fitted values.

        Parameters
        ----------
        at : Evaluation
            The evaluated point.
        moved : ndarray of shape (n, c, p)
            Derivatives of the fits with respect to log bandwidths and smoothings.
        log_hat_moved : ndarray of shape (n, p) or None
            Derivatives of the logarithms of the diagonal of the hat matrix, at equal factors of the categories of a row
            with themselves; None for a criterion without penalty.

        Returns
        -------
        ndarray of shape (n c, p) or (n c, p + 1)
            Including normalised weights and the penalty; with respect to the log ridge last, where it is a parameter.
        """
        factor = at.root * self._share * at.by_fit
        by_ridge: list[Array] = []
        if at.ridge:
            weight, sums = np.asarray(at.ridge * np.exp(self._log_peak)), self.rows.geometry.sums
            change = sums(change_by_ridge(at.state, at.fit, weight, at.fit.slope))
            moved[:, :, : self.columns] += 2.0 * change
            if log_hat_moved is not None:
                own = np.divide(at.fit.tilt, at.fit.base[:, None])[:, :, None]
                log_hat_moved[:, : self.columns] += 2.0 * sums(change_by_ridge(at.state, at.fit, weight, own))[:, 0]
            if len(at.theta) > self.parameters:
                by_ridge = [np.ravel(-factor * change.sum(axis=2))]
        # Where weights overflow, slopes are differences of infinities; squares of slopes have to be finite.
        result = -factor[:, :, None] * np.clip(np.nan_to_num(moved, nan=0.0), -STEEPEST, STEEPEST)
        if log_hat_moved is not None:
            by_trace, by_hat = self._penalty_gradient(at, log_hat_moved)
            result += at.residual[:, :, None] * (0.5 * by_trace) + at.root * by_hat
        if self.penalty is not None:
            slope = self.penalty(at.theta[: self.parameters], self.rows.number)[1]
            result += at.residual[:, :, None] * (0.5 * slope)
        return np.column_stack([result.reshape(-1, self.parameters), *by_ridge])

    @cached_property
    def alone(self) -> Array:
        """Each row's deviation from the mean of the other rows, times the square root of its normalised weight."""
        return np.asarray((self.judged.value - self._mean_of_others()) * self._share)

    @cached_property
    def bound(self) -> Array:
        """Bounds on the residuals of rows of leverage one, times the square roots of the rows' normalised weights."""
        deviation = np.sqrt(np.sum(self.alone**2, axis=0))
        return np.asarray(LARGEST * np.where(deviation > 0, deviation, 1.0) * self._share)

    def _penalty_gradient(self, at: Evaluation, log_hat_moved: Array) -> tuple[Array, Array]:
        """Return derivatives of the log penalty, and of residuals via leverages, with respect to all parameters."""
        moved = np.clip(np.nan_to_num(log_hat_moved, nan=0.0), -STEEPEST, STEEPEST)
        factors = at.problem.factors
        columns = () if factors is None else zip(factors.tables, factors.slopes, strict=True)
        for a, (table, slope) in enumerate(columns):
            moved[:, self.columns + a] += (np.diagonal(slope) / np.diagonal(table))[self.judged.code[:, a]]
        by_hat = np.asarray(at.by_hat)[..., None] * (at.hat[:, None] * moved)[:, None]
        return np.asarray(at.penalty_slope * ((self._of_all * at.hat) @ moved)), by_hat

    def _log_hat_moved(self, at: Evaluation) -> Array:
        layout = replace(at.problem.layout, values=1)
        numerator = np.zeros((len(at.hat), layout.width))
        if layout.degree:
            whole = at.problem.layout
            numerator[:, layout.first] = at.state.numerator[:, whole.first]
            numerator[:, layout.second] = at.state.numerator[:, whole.second]
        numerator[:, layout.value] = (at.state.denominator / at.fit.base)[:, None]
        problem = replace(at.problem, value=np.zeros((len(at.hat), 1)), value_center=np.zeros(1))
        state = PoolState(at.state.shift, at.state.denominator, numerator)
        return self.pullback(replace(at, problem=problem, state=state), np.ones((len(at.hat), 1)))

    def pullback(self, at: Evaluation, cotangent: Array) -> Array:
        """Return, for each row, the derivatives of its prediction times its cotangent with respect to all parameters.

        Of shape (n, p). The products are summed over outputs. Parameters are log bandwidths and smoothings.
        """
        wanted = ("log_bandwidth", "smoothing") if self.categories.kernels else ("log_bandwidth",)
        options = self.options
        plan = choose(at.problem, options.algorithm, reuse=True)
        found = plan.pullback(at.problem, at.state, cotangent, wanted, n_jobs=options.n_jobs, progress=options.progress)
        by_bandwidth = None if found.log_bandwidth is None else self.rows.geometry.sums(found.log_bandwidth)
        return np.hstack([part for part in (by_bandwidth, found.smoothing) if part is not None])

    def _mean_of_others(self) -> Array:
        others, total = sums_of_others(self.rows.weight, self.problem.value, self.rows.exclusion)
        mean = np.divide(total, others[:, None], where=others[:, None] > 0, out=np.zeros_like(total))
        return mean if self.queries is None else mean[self.queries]


def narrowest(rows: TrainingRows, kernel: Kernel) -> Array:
    """Return the smallest bandwidths that a search tries; 1e4 of constant columns.

    Rows on a grid, in columns of equal steps and without repetition, have windows that reach to the next row: .6 of a
    step of the Gaussian in one column, .45 in each of several, and what smooths as much of other kernels. Left out, a
    row is predicted by its neighbours on all sides, equally well at all narrow bandwidths, but a point between two rows
    by the nearer one alone: leave-one-out does not see that the fit is a staircase. Of 200 grids of two columns, with
    .45 instead of .3 in one of them and .6 in the other, the error between rows of means is lower in 58 of 78 that
    change, to .85 in the median, and that of planes higher in 33 of 50, to 1.13. Levels that share nothing with their
    neighbours, as of weekdays beside weeks, pay for it (error .047 with .33 of a step, .105 with .45): they are
    categories, and exact as such.

    Where steps differ, dense rows may need windows far below the median step, and where values repeat rows of one value
    predict each other: then a tenth of a small step, where a Gaussian window holds equal values alone.

    Examples
    --------
    >>> from kernpool import get_kernel
    >>> columns = np.arange(6.0), np.repeat([0.0, 5.0, 7.0], 2), np.tile([0.0, 5.0], 3)
    >>> for X in (columns[:1], columns[1:2], columns[::2]):
    ...     rows = TrainingRows.from_arrays(np.column_stack(X), np.arange(6.0))
    ...     print(narrowest(rows, get_kernel("gaussian")).round(2))
    [0.6]
    [0.2]
    [0.45 2.25]
    """
    from scipy.spatial import KDTree

    least, step = np.full(rows.bandwidths, FLAT), np.zeros(rows.bandwidths)
    is_grid = 2 * len(np.unique(rows.X, axis=0)) > rows.number
    for a in range(rows.bandwidths):
        points = np.unique(rows.X[:, rows.bandwidth_of == a], axis=0)
        if len(points) > 1:
            # Distances between neighbouring values of a column, or of points of several columns to their nearest ones.
            gap = np.diff(points[:, 0]) if points.shape[1] == 1 else KDTree(points).query(points, k=2)[0][:, 1]
            low, step[a], high = np.quantile(gap, [0.1, 0.5, 0.75])
            least[a] = 0.1 * low
            is_grid &= bool(high <= MOST_UNEVEN * low)
    reach = STEPS if len(least) == 1 else STEPS_OF_SEVERAL
    return np.maximum(least, reach * canonical_ratio(kernel) * step) if is_grid else least
