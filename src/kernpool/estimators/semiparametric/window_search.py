"""Search for the windows of varying coefficients: a width, or a number of nearest rows, by a criterion of all rows.

A grid of widths from narrow to wide, in which all rows weigh alike, at one or two ratios of the columns: those of their
spreads, and columns in equal units, as the two of a place have. The best is refined: along the ratio, or, with several
bandwidths or smoothings, in all of them (Nelder and Mead), so that the criterion is at most that of any common width
near by. Windows to the nearest rows take the best of these ratios, and the number of rows as other estimators search
for it. Of more than 5000 rows as many are drawn and fitted from all rows; all of them with ``search={"rows": None}``.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize, minimize_scalar
from scipy.special import expit
from sklearn.utils import check_random_state

from kernpool.bandwidth import TrainingRows
from kernpool.bandwidth.criteria import CRITERIA, Criterion, check_exclusion
from kernpool.bandwidth.rules_of_thumb import RULES, rule_of_thumb
from kernpool.bandwidth.search import Found
from kernpool.core import Categories
from kernpool.data.array_validation import INFINITE, as_bandwidth
from kernpool.estimators.bandwidth import MOST_ROWS, given_smoothing, minimise_over_whole_numbers
from kernpool.estimators.fitted_model import smoother_of_rows
from kernpool.estimators.model import FittedModel
from kernpool.execution.error_messages import abbreviate
from kernpool.pooling.widths import Nearest, count_neighbors, width_finder, with_widths
from kernpool.smoother.local_least_squares import VaryingSmoother

Array = NDArray[np.float64]

GRID, NARROWEST, WIDEST = 15, 0.1, 4.0  # steps, and ends in rules of thumb and in extents of the rows
GRID_ROWS = 300
STEPS, FEWER, TOLERANCE = 25, 6, 0.02  # evaluations for each number, of many rows, and in logarithms of widths
START, LEVELS = 0.3, 9.0  # of smoothings, in their largest, and how far a search of one goes, in its logit


@dataclass(frozen=True, eq=False)
class WindowSearch:
    """Criterion of windows as a function of bandwidths and smoothings; the best so far is remembered."""

    model: FittedModel
    rows: TrainingRows
    varying: VaryingSmoother
    criterion: Criterion
    queries: NDArray[np.intp] | slice
    best: dict[str, Any] = field(default_factory=lambda: {"value": np.inf})

    @classmethod
    def of(
        cls, model: FittedModel, rows: TrainingRows, categories: Categories, u: Array, outcome: Array
    ) -> WindowSearch:
        """Return the search of a model with rows of positive weight."""
        name = model.bandwidth if isinstance(model.bandwidth, str) and model.bandwidth in CRITERIA else "loo"
        if rows.exclusion is not None:
            check_exclusion(rows.exclusion, CRITERIA[name], name)
        start = Found(np.ones(rows.bandwidths), START * np.asarray(categories.largest), None)
        varying = VaryingSmoother(smoother_of_rows(model, start, rows, categories), u, outcome)
        asked: dict[str, Any] = {"rows": "auto", "random_state": 0} | dict(model.search or {})
        most = MOST_ROWS if asked["rows"] == "auto" else asked["rows"]
        queries: Any = slice(None)
        if most is not None and most < len(u):
            queries = np.sort(check_random_state(asked["random_state"]).permutation(len(u))[:most])
        return cls(model, rows, varying, CRITERIA[name], queries)

    def of_few(self, rows: int) -> WindowSearch:
        """Return the search with at most so many rows as queries: wide windows hold many rows."""
        queries = np.arange(len(self.varying.outcome))[self.queries]
        if len(queries) <= rows:
            return self
        some = np.sort(np.random.RandomState(0).permutation(queries)[:rows])
        return replace(self, queries=some, best={"value": np.inf})

    def at(self, bandwidth: Array, smoothing: Array) -> VaryingSmoother:
        """Return the smoother with these bandwidths, as they are compared."""
        smoother = self.varying.smoother
        recipe = replace(smoother.recipe, bandwidth=self.rows.geometry.per_column(bandwidth))
        return replace(self.varying, smoother=replace(smoother, recipe=recipe, smoothing=smoothing))

    def value(self, bandwidth: Array, smoothing: Array) -> float:
        """Return the criterion of windows of these bandwidths."""
        varying = self.at(bandwidth, smoothing)
        problem = varying.judged(self.criterion)
        problem = problem if isinstance(self.queries, slice) else problem.block(self.queries)
        value = varying.criterion(self.criterion, problem, self.queries)
        if value < self.best["value"]:
            self.best.update(value=value, bandwidth=bandwidth, smoothing=smoothing)
        return value

    def fixed(self, ratios: list[Array]) -> None:
        """Search for the best bandwidths: on a grid along each ratio, and around its best."""
        largest = np.asarray(self.varying.smoother.categories.largest)
        free, levels, first = np.isfinite(ratios[0]), len(largest), START * largest
        few, tried = self.of_few(GRID_ROWS), []
        for ratio in ratios:
            wide = float(np.linalg.norm(np.ptp(self.rows.X, axis=0) / self.rows.geometry.per_column(ratio)))
            step = np.log(max(WIDEST * wide, 1.0) / NARROWEST) / GRID
            each = [ratio * NARROWEST * np.exp(step * i) for i in range(GRID + 1)]
            tried += [(few.value(bandwidth, first), i, step, bandwidth) for i, bandwidth in enumerate(each)]
        tried = sorted((one for one in tried if np.isfinite(one[0])), key=lambda one: one[:2])
        chosen = next((one for one in tried if np.isfinite(self.value(one[3], first))), None)  # of all rows, too
        if chosen is None:
            return
        least, _, step, found = chosen
        start = np.append(np.log(found[free]), np.full(levels, np.log(START / (1.0 - START))))

        def of(theta: Array, search: WindowSearch = self) -> float:
            bandwidth = found.copy()
            bandwidth[free] = np.exp(theta[: free.sum()])
            return min(search.value(bandwidth, largest * expit(theta[free.sum() :])), 1e300)

        if len(start) == 1:
            away = np.array([-1.0, 1.0]) * (LEVELS if levels else step)
            minimize_scalar(
                lambda move: of(start + move), bounds=away, method="bounded", options={"xatol": TOLERANCE / 4}
            )
            return
        # Of many queries around the best of some of them.
        some = self.of_few(MOST_ROWS)
        for search, spread, steps in [(some, 0.4, STEPS), (self, 0.1, FEWER)][: 1 + (some is not self)]:
            simplex = np.vstack([start, start + spread * np.eye(len(start))])
            options: dict[str, Any] = {"xatol": TOLERANCE, "fatol": 1e-5 * abs(least), "maxfev": steps * len(start)}
            options["initial_simplex"] = simplex
            start = minimize(of, start, args=(search,), method="Nelder-Mead", options=options).x

    def neighbors(self, window: Nearest, ratio: Array, smoothing: Array, near: int | None) -> tuple[float, int]:
        """Return the criterion of windows to the nearest rows, and their number: the best, near another, or given."""
        varying = self.at(ratio, smoothing)
        smoother, leaves = varying.smoother, self.criterion.exclude_self
        problem = smoother.left_out_problem(smoother.exclusion) if leaves else smoother.problem(smoother.training)
        total = float(self.rows.weight.sum())
        given = None if window.k is None else round(count_neighbors(window, problem))
        problem = problem if isinstance(self.queries, slice) else problem.block(self.queries)
        find, known = width_finder(problem), {}

        def value(k: int) -> float:
            widened = with_widths(problem, find(k))
            known[k] = varying.criterion(self.criterion, widened, self.queries)
            return known[k]

        most = int(total) - int(leaves)
        least = min(varying.regressors.shape[1] + 1, most)
        if near is not None:  # of other ratios
            least, most = max(least, near // 2), min(most, 2 * near)
        k = given or minimise_over_whole_numbers(value, least, most)
        return known[k] if k in known else value(k), k


def find_windows(
    model: FittedModel, rows: TrainingRows, categories: Categories, u: Array, outcome: Array
) -> tuple[Array, Array, Any]:
    """Return bandwidths, smoothings and windows: those given, or the best of a search.

    Parameters
    ----------
    model : estimator
        Its parameters, checked.
    rows : TrainingRows
        Rows of positive weight, with products as values.
    categories : Categories
        Of its columns.
    u, outcome : ndarray of shape (n, p) and (n,)
        Regressors and outputs.
    """
    bandwidth, window = model.encoding_.distinct(model.bandwidth), model.window
    named = isinstance(bandwidth, str)
    searched = named and bandwidth not in RULES
    if searched and model.smoothing is not None:
        raise ValueError(
            f"smoothing is searched for with bandwidth={bandwidth!r} and must be None, got "
            f"{abbreviate(model.smoothing)}; leave it out, or give bandwidths as numbers too"
        )
    if not model.encoding_.numeric:
        ratio = np.full(rows.bandwidths, np.inf)
    elif named:
        rule = bandwidth if bandwidth in RULES else "scott"
        ratio = rule_of_thumb(rows.X, rows.weight, rule=rule, kernel=model.kernel, geometry=rows.geometry)
    else:
        ratio = np.array(np.broadcast_to(as_bandwidth(bandwidth, rows.bandwidths), rows.bandwidths))
        ratio[ratio == INFINITE] = np.inf
    smoothing = START * categories.largest if searched else given_smoothing(model.smoothing, categories)
    if not searched and not (isinstance(window, Nearest) and window.k is None):
        return ratio, smoothing, window
    search, free, ratios = WindowSearch.of(model, rows, categories, u, outcome), np.isfinite(ratio), [ratio]
    if searched:
        if free.sum() > 1:
            ratios.append(np.where(free, np.exp(np.mean(np.log(ratio[free]))), np.inf))
        if free.sum() + len(categories.kernels) > 1 or not isinstance(window, Nearest):
            search.fixed(ratios)
        best, smoothing = search.best.get("bandwidth"), search.best.get("smoothing", smoothing)
        if not isinstance(window, Nearest):  # wide windows are refused where there is none
            return (WIDEST * ratio if best is None else best), smoothing, window
        ratios += [] if best is None or free.sum() <= 1 else [best]
    assert isinstance(window, Nearest)
    found = [(*search.neighbors(window, ratios[0], smoothing, None), 0)]
    found += [(*search.neighbors(window, ratios[i], smoothing, found[0][1]), i) for i in range(1, len(ratios))]
    _, k, which = min(found)
    return ratios[which], smoothing, Nearest(k)
