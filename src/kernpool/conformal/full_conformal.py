"""Full conformal prediction intervals in closed form.

Add the test row (q, y) to the training rows, and let the score of each row be its distance from the fit to all
others: |y - m(q)| of the test row, and of row i, whose fit without itself is m_-i(x_i),

    s_i(y) = |y_i - m_-i^y(x_i)|,   m_-i^y(x_i) = m_-i(x_i) + b_i (y - p_i(q)),

where b_i is the linear weight of the test row in that fit, and p_i(q) the plane around row i at q. For local constant
fits b_i = K / (D_-i + K) and p_i = m_-i(x_i). With rho_i = y_i - m_-i(x_i) + b_i (p_i(q) - m(q)),

    s_i(y) >= |y - m(q)|   if and only if   l_i <= y <= u_i,
    u_i - m(q) = max(rho_i / (1 + b_i), -rho_i / (1 - b_i)),
    l_i - m(q) = min(rho_i / (1 + b_i), -rho_i / (1 - b_i)),

because s_i is the absolute value of a line in y whose slope is less than one, so the difference of both scores
changes sign once on either side of m(q). Each of these intervals contains m(q). So the values of y that at least
k_low of them contain, those with a conformal p-value above alpha, are the interval [l_(k_low), u_(k_up)]. Its
coverage is at least the nominal one, and at most 1 / (n + 1) more where no scores are tied [1]_.

Where the slope is one or more, as for an isolated row, the interval is a half line or the line. It is the line,
too, where rho_i = 0: the scores are then tied whatever y is, as for two points that have only each other in their
windows. A tie counts as "at least", and ties are recognised up to rounding.

Adding or deleting a row (`LocalDesigns`): a local fit changes in closed form. With the weight alpha = K / D of a row,
its offset t in bandwidths, mean tbar and covariance C of the design, and the coefficients b and tau of the linear
weights,

    g = alpha (1 + (t - tbar)' C^-1 (t - tbar)),   l = alpha (b + tau . t)

are its leverage in the local fit and its linear weight in the value. Without the row the fit is
m - l / (1 - g) (y - p(t)), with the plane p of the fit; with a new row of value y it is
m + l / (1 + g) (y - p(t)). For local constant fits g = l = alpha and p is m.

References
----------
.. [1] V. Vovk, A. Gammerman and G. Shafer, "Algorithmic Learning in a Random World", Springer (2005), chapter 2.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kernpool.conformal.calibration import Bounds, ConformalProblem
from kernpool.conformal.order_statistics import score_bound
from kernpool.core import KernelLogits, LocalFit, PoolState, Problem, merge, on_tangents
from kernpool.execution.threads import cut, resolve_n_jobs, run_blocks
from kernpool.smoother import Smoother, log_mass
from kernpool.smoother.bias_correction import inverse_designs

Array = NDArray[np.float64]
Rows = NDArray[np.intp]

# Arrays of 192 KB, of which a tile has some ten: of more than 256 KB they come from the system in fresh pages, which
# takes half of the time (70 ms for 2000 rows and 1000 points, and 147 with arrays of 320 KB).
PAIRS_AT_ONCE = 3 << 13
MOST_PAIRS = 1 << 30  # about a minute


@dataclass(frozen=True, eq=False)
class LocalDesigns:
    """Local fits at m queries, with the design moments needed to add or delete one row in closed form."""

    smoother: Smoother
    problem: Problem
    state: PoolState
    fit: LocalFit  # local fits, given the sums of `state`
    log_mass: Array  # shape (m,): logarithm of the sum of the weights; -inf in empty windows
    mean: Array  # shape (m, d): weighted mean of the offsets, in bandwidths; (m, 0) for local constants
    inverse: Array  # shape (m, d, d): inverse of their covariance, ridge included

    @classmethod
    def of(cls, smoother: Smoother, problem: Problem) -> LocalDesigns:
        """Build a `LocalDesigns`: compute local fits and design moments at the queries of a problem."""
        state, layout = smoother.sums(problem), problem.layout
        fit, m = smoother.solve(problem, state), len(problem.query)
        if not layout.degree:
            return cls(smoother, problem, state, fit, log_mass(state), np.empty((m, 0)), np.empty((m, 0, 0)))
        inverse = inverse_designs(problem, state, smoother.recipe.ridge_weight(smoother.columns))
        mean = np.divide(
            state.numerator[:, layout.first],
            state.denominator[:, None],
            out=np.zeros((m, layout.columns)),
            where=state.denominator[:, None] > 0,
        )
        return cls(smoother, problem, state, fit, log_mass(state), mean, inverse)

    def some(self, which: slice | Rows) -> LocalDesigns:
        """Return the `LocalDesigns` of the queries with the given indices."""
        return LocalDesigns(
            self.smoother, self.problem.block(which), self.state.rows(which), self.fit.rows(which),
            self.log_mass[which], self.mean[which], self.inverse[which],
        )  # fmt: skip

    def tilted(self, offsets: list[Array]) -> tuple[Array, Array]:
        """Return leverages and linear weights of rows at offsets (in bandwidths), over each row's alpha = K / D."""
        if not offsets:
            return np.ones(()), np.ones(())
        share = self.fit.base[:, None] + sum(
            tilt[:, None] * t for tilt, t in zip(self.fit.tilt.T, offsets, strict=True)
        )
        centered = [t - mean[:, None] for mean, t in zip(self.mean.T, offsets, strict=True)]
        leverage = 1.0 + sum(
            self.inverse[:, a, b, None] * centered[a] * centered[b]
            for a in range(len(offsets))
            for b in range(len(offsets))
        )
        return np.asarray(leverage), np.asarray(share)

    def plane(self, offsets: list[Array], output: int) -> Array:
        """Evaluate the local planes of one output at given offsets from the queries: shape (m, k)."""
        start = self.fit.intercept[:, output, None]
        slopes = self.fit.slope[:, :, output].T
        return np.asarray(sum((slope[:, None] * t for slope, t in zip(slopes, offsets, strict=True)), start=start))

    def with_row(self, which: Rows, log_weight: Array, offsets: Array) -> tuple[Array, Array]:
        """Refit rank-deficient local planes, each with one row added."""
        # the fit with the center of the outputs as the new response, and its derivative with respect to the response
        layout, k = self.problem.layout, len(which)
        numerator = np.zeros((k, layout.width))
        numerator[:, layout.first] = offsets
        upper, lower = np.triu_indices(layout.columns)
        numerator[:, layout.second] = offsets[:, upper] * offsets[:, lower]
        row = on_tangents(self.problem.block(which), PoolState(log_weight, np.ones(k), numerator))
        together = merge(self.state.rows(which), row)
        fit = self.smoother.solve(self.problem, together)
        alpha = np.exp(log_weight - together.log_denominator)
        return fit.intercept, alpha * (fit.base + np.sum(fit.tilt * offsets, axis=1))


def pair_logits(problem: Problem, rows: slice | Rows, keys: slice | Rows) -> tuple[Array, list[Array]]:
    """Return log kernel values of pairs of queries and keys, and for planes the offsets in bandwidths."""
    part = problem.block(rows, keys)
    return _logits_and_offsets(part, part.similarity, part.query, part.key, _log_factors(part))


def _log_factors(part: Problem) -> list[Array]:
    return [] if part.factors is None else part.factors.logarithms()


def _logits_and_offsets(
    part: Problem, windows: KernelLogits, query: Array, key: Array, log_factors: Sequence[Array]
) -> tuple[Array, list[Array]]:
    logits = np.asarray(sum(log_factors, start=windows.logits(query, key)))
    columns = range(key.shape[1]) if part.degree else range(0)
    return logits, [windows.offset(query, key, a) for a in columns]


def check_pairs(method: str, places: int, rows: int) -> None:
    """Raise ValueError if pairs of evaluation points and rows are too many for a method that loops over them."""
    if places * rows > MOST_PAIRS:
        raise ValueError(
            f"method={method!r} goes through all pairs of evaluation points and rows, at most {MOST_PAIRS:,}, got "
            f"{places:,} times {rows:,}; use method='adaptive', which takes the time of a few predictions, or "
            "pass fewer evaluation points at once"
        )


TIES = 64.0 * float(np.finfo(np.float64).eps)  # slopes of one, and scores tied at them, up to rounding


def full(setting: ConformalProblem) -> Bounds:
    """Compute full conformal prediction intervals at the evaluation points, in closed form."""
    smoother, calibration = setting.smoother, setting.calibration
    which = calibration.training
    check_pairs("full", len(setting.places.query), len(which))
    at_rows = LocalDesigns.of(smoother, smoother.left_out_problem()).some(which)
    at_places = smoother.fit(setting.places)
    center, occupied = at_places.fit.intercept, at_places.fit.occupied
    lower, upper = np.full(center.shape, -np.inf), np.full(center.shape, np.inf)

    def work(rows: slice) -> Iterator[None]:
        found = (np.flatnonzero(occupied[rows]) + rows.start).astype(np.intp)
        if found.size:
            pairs = _TestRows(at_rows, setting, found, at_places.problem)
            for output in range(center.shape[1]):
                middle = center[found, output]
                below, above = pairs.intervals(output, middle)
                lower[found, output] = middle - score_bound(setting, -below)
                upper[found, output] = middle + score_bound(setting, above)
        yield

    blocks = cut(len(center), max(1, PAIRS_AT_ONCE // len(which)))
    run_blocks(work, blocks, resolve_n_jobs(smoother.recipe.n_jobs), None)
    return Bounds(lower, upper, smoother.fill_empty(at_places.problem, center.copy(), occupied, report=True))


class _TestRows:
    """Change of the leave-one-out fits at the calibration rows if a test row is added at an evaluation point."""

    def __init__(self, at_rows: LocalDesigns, setting: ConformalProblem, places: Rows, problem: Problem) -> None:
        self._at_rows, self._value = at_rows, setting.calibration.value
        part, windows = problem.block(places, setting.calibration.training), at_rows.problem.similarity
        # The new row is a key of the fit around each row, in the window of this row.
        factors = [table.T for table in _log_factors(part)]
        self._logits, self._offsets = _logits_and_offsets(part, windows, part.key, part.query, factors)
        leverage, share = at_rows.tilted(self._offsets)
        with np.errstate(over="ignore", invalid="ignore"):
            inverse = np.exp(at_rows.log_mass[:, None] - self._logits)  # infinite outside the window, zero if alone
            share = share / (inverse + leverage)
        alone = ~at_rows.fit.occupied
        self._share = np.asarray(share)
        if alone.any():
            self._share[alone] = self._logits[alone] > -np.inf
        self._alone = alone
        # A new row may add a direction in which the plane was not identified: these planes are solved once more.
        row = place = np.zeros(0, dtype=np.intp)
        deficient = at_rows.fit.occupied & (at_rows.fit.rank < len(self._offsets))
        if deficient.any():
            row, place = np.nonzero(deficient[:, None] & (self._logits > -np.inf))
        self._again = (row, place)
        if row.size:
            t = np.stack([offset[row, place] for offset in self._offsets], axis=1)
            self._fit_again, self._share[row, place] = at_rows.with_row(row, self._logits[row, place], t)

    def intervals(self, output: int, middle: Array) -> tuple[Array, Array]:
        """Return, for each row, the interval of test outputs that conform at least as well, minus the prediction."""
        # the l_i and u_i of the module docstring, of shape (points, rows)
        at_rows, b = self._at_rows, self._share
        value = self._value[:, output, None]
        with np.errstate(invalid="ignore"):
            rho = value - at_rows.fit.intercept[:, output, None]
            rho = rho + b * (at_rows.plane(self._offsets, output) - middle)
        rho[self._alone] = value[self._alone] - middle  # an added row is the whole fit
        row, place = self._again
        if row.size:
            center = at_rows.problem.value_center[output]
            rho[row, place] = (
                self._value[row, output] - self._fit_again[:, output] - b[row, place] * (middle[place] - center)
            )
        with np.errstate(divide="ignore", invalid="ignore"):
            one, other = rho / (1.0 + b), -rho / (1.0 - b)
        below, above = np.fmin(one, other), np.fmax(one, other)
        zero = np.abs(rho) <= TIES * np.abs(self._value[:, output]).max()
        free = (np.abs(b) > 1.0) | ((np.abs(b) >= 1.0 - TIES) & zero)
        free[self._alone] |= self._logits[self._alone] == -np.inf  # no prediction at all, and an infinite score
        below[free], above[free] = -np.inf, np.inf
        return below.T, above.T
