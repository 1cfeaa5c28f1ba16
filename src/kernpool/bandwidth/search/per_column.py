"""One bandwidth per column: damped Gauss-Newton from several starts, and columns that a fit does without.

Criteria have several local minima as a rule, and their number grows with the columns. Starts are: the best common
factors on the spreads of the columns, with categorical columns kept apart, smoothed and ignored; the best of them with
one column after the other smoothed away; and the best of places drawn around (`starts.py`). All of them descend for a
few steps, on few rows if there are many; the best go on to the end. From there every bandwidth is tried alone, from end
to end. Where columns are many, those that promise the most are (`many_columns.py`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kernpool.bandwidth.rate import bring_to_rows
from kernpool.bandwidth.search.course import Course, Watched
from kernpool.bandwidth.search.gauss_newton import Descent, Place, SumOfSquares, descend
from kernpool.bandwidth.search.many_columns import MOST_TRIED_ONE_BY_ONE, promising
from kernpool.bandwidth.search.objective import Objective
from kernpool.bandwidth.search.one_factor import candidates
from kernpool.bandwidth.search.ridge import find_ridge
from kernpool.bandwidth.search.setting import Setting
from kernpool.bandwidth.search.starts import lines, starts, valleys_of
from kernpool.bandwidth.search.way import Way, choose_way

Array = NDArray[np.float64]

FIRST_STEPS, FINALISTS, MOST_STEPS = 4, 3, 100
MOST_ROUNDS = 5
EDGES, NEAR, MOST_LOOKS = (0.4, -0.8), 0.02, 30  # of simplices, in log bandwidths; evaluations for each column
FIRST_TOLERANCE, SECOND_TOLERANCE, TOLERANCE = 1e-3, 1e-5, 1e-11
STEPS_ON_MANY_ROWS = 30
# Minima of many columns lie in long flat valleys, and a step on three times as many rows takes nine times as long: for
# 20 000 rows of five columns this way takes half the time of going on with all of them at once.
GROWTH, TOLERANCE_BETWEEN, TOLERANCE_ON_ALL = 3, 1e-5, 1e-6
# Last gains, relative. At the end one of 2e-4 is followed by less than 7e-5 in all; the standard error of the criterion
# itself is 1e-2 with 20 000 rows. From the last sample to all rows the place moves by some 5e-3, so that a rough one
# will do; where steps are cheap, before that, they are worth what they teach of the curvature.
ENOUGH_ON_FEW, ENOUGH_ON_MOST, ENOUGH_ON_ALL = 1e-4, 1e-3, 2e-4


def search(
    objective: Objective, first: Objective, setting: Setting, spread: Array, generator: Any, course: Course
) -> str:
    """Descend from several starts on few rows, and from the best on more and more of them.

    Parameters
    ----------
    objective, first : Objective
        Of all rows, and of those that starts are tried on: the same, or fewer.
    setting : Setting
        What is minimised.
    spread : ndarray of shape (d,)
        Spreads of the columns.
    generator : numpy.random.RandomState
        For rows and places that are drawn.
    course : Course
        Told what is being done.

    Returns
    -------
    str
        Why the search ended; what was tried is in the objectives.
    """
    grid = candidates(first.rows.X / spread, setting.kernel, setting.composition)
    way = choose_way(first, one_factor=False)
    course.way = way.reason
    on_few = _by(way, first, course)
    begun = course.count(starts(on_few, spread, grid, generator))
    found = minimise(on_few, begun, lines(on_few, spread, grid), len(spread))
    if found is None:
        return "undefined everywhere"
    if setting.kernel.is_compact:
        found = descend_without_slopes(on_few, found)
    best = flatten(on_few, found)
    if setting.ridge is None:
        theta, ridge = find_ridge(on_few, first, best.end.theta)
        objective.ridge, setting = ridge, replace(setting, ridge=ridge)
        best = flatten(on_few, replace(best, end=on_few.evaluate(theta)))
    course.hand_over(best.end.theta)
    if first is objective:
        return best.reason
    before = first
    sizes = sizes_between(len(first.rows.X), len(objective.rows.X))
    for size in sizes:
        enough = ENOUGH_ON_MOST if size == sizes[-1] else ENOUGH_ON_FEW
        between = setting.objective(objective.rows.draw(size, generator))
        course.fewer.append(between)
        _, best = _with_more_rows(between, before, best, TOLERANCE_BETWEEN, enough, course)
        course.hand_over(best.end.theta)
        before = between
    on_all, best = _with_more_rows(objective, before, best, TOLERANCE_ON_ALL, ENOUGH_ON_ALL, course)
    best = flatten(on_all, best, TOLERANCE_ON_ALL, ENOUGH_ON_ALL)
    course.hand_over(best.end.theta)
    return f"{best.reason}, from the best of {len(before.rows.X)} rows"


def _by(way: Way, objective: Objective, course: Course) -> SumOfSquares:
    """Return the criterion of some rows, evaluated this way."""
    if way.make is None:
        return objective
    course.quick = way.make(objective)
    return Watched(course.quick, course.limit)


def _with_more_rows(
    objective: Objective, before: Objective, best: Descent, tolerance: float, enough: float, course: Course
) -> tuple[SumOfSquares, Descent]:
    """Descend from where the best place of fewer rows is expected with these, and say on what."""
    theta = moved(objective, before, best.end.theta)
    quickly = _by(choose_way(objective, one_factor=False, near=theta), objective, course)
    start, steps = quickly.evaluate(theta), STEPS_ON_MANY_ROWS
    found = descend(quickly, start, max_steps=steps, tolerance=tolerance, enough=enough, curvature=best.curvature)
    return quickly, found


def moved(objective: Objective, before: Objective, theta: Array) -> Array:
    """Return where the minimum is expected, given that of fewer rows.

    Parameters
    ----------
    objective, before : Objective
        Of more and of fewer rows.
    theta : ndarray of shape (p,)
        Where it is on the fewer ones.

    Returns
    -------
    ndarray of shape (p,)
        In the box; what is smoothed away stays so.
    """
    (low, high, _), d = objective.box, before.columns
    matter, rows = relevant(before, theta), (len(before.rows.X), len(objective.rows.X))
    bandwidth, smoothing, _ = bring_to_rows(np.exp(theta[:d]), theta[d:], matter, *rows)
    return np.where(matter, np.clip(np.concatenate([np.log(bandwidth), smoothing]), low, high), high)


def minimise(objective: SumOfSquares, from_starts: Iterable[Place], along: list[Array], d: int) -> Descent | None:
    """Descend from all starts for a few steps, from the best places further, and look around at the end.

    Minima that differ in one bandwidth are what starts miss, so from the best place every bandwidth is tried from end
    to end, and each valley along such a line is a start. That repeats as long as it finds something better.

    Parameters
    ----------
    objective : SumOfSquares
        Of the same rows as the starts.
    from_starts : iterable of Place
        Where to begin.
    along : list of ndarray
        What `lines` returns.

    Returns
    -------
    Descent or None
        The best; None if there are no starts.
    """
    best = _best_from(objective, from_starts)
    if best is None:
        return None
    for _ in range(MOST_ROUNDS):
        found = _best_from(objective, _valleys_around(objective, best.end, along, d))
        if found is None or found.end.penalised >= best.end.penalised * (1.0 - SECOND_TOLERANCE):
            break
        best = found
    return go_on(objective, best, TOLERANCE)


class Ended(NamedTuple):
    """Where a descent ended, without what slopes need: of planes in d columns that is n d^2 / 2 numbers."""

    theta: Array
    penalised: float


def _best_from(objective: SumOfSquares, from_starts: Iterable[Any]) -> Descent | None:
    """Descend from starts; None if there are none."""
    begun: list[Descent] = []
    for start in from_starts:
        if np.isfinite(start.penalised):
            one = descend(objective, start, max_steps=FIRST_STEPS, tolerance=FIRST_TOLERANCE)
            begun.append(replace(one, end=Ended(one.end.theta, float(one.end.penalised))))
    finalists: list[Descent] = []
    for one in sorted(begun, key=lambda one: float(one.end.penalised)):
        if all(np.abs(one.end.theta - other.end.theta).max() > 0.05 for other in finalists):
            finalists.append(one)
    best: Descent | None = None
    for one in finalists[:FINALISTS]:
        found = go_on(objective, replace(one, end=objective.evaluate(one.end.theta)), SECOND_TOLERANCE)
        best = found if best is None or found.end.penalised < best.end.penalised else best
    return best


def _valleys_around(objective: SumOfSquares, at: Place, along: list[Array], d: int) -> Iterator[Place]:
    columns = np.arange(len(along)) if len(along) <= MOST_TRIED_ONE_BY_ONE else promising(objective, at, d)
    for a in columns:
        line = along[a]
        thetas = [np.where(np.arange(len(along)) == a, value, at.theta) for value in line]
        here = int(np.searchsorted(line, at.theta[a]))
        left, right = (map(objective.evaluate, part) for part in (thetas[:here], thetas[here:]))
        yield from (place for place in valleys_of(chain(left, [at], right)) if place is not at)


def descend_without_slopes(objective: SumOfSquares, descent: Descent) -> Descent:
    """Go on by the simplex of Nelder and Mead, and from there with slopes again.

    Rows enter a compact window with a kink, and the last one leaves it with a jump: a descent along slopes ends at
    either.

    Parameters
    ----------
    objective : SumOfSquares
        The criterion.
    descent : Descent
        Where a descent ended.

    Returns
    -------
    Descent
        Not worse. Of more than eight columns that matter it is the same: a simplex of so many gets nowhere.
    """
    from scipy.optimize import minimize

    (low, high, _), free = objective.box, np.flatnonzero(relevant(objective, descent.end.theta))
    if not 0 < len(free) <= MOST_TRIED_ONE_BY_ONE:
        return descent
    lowest: Place = descent.end

    def height(x: Array) -> float:
        nonlocal lowest
        theta = descent.end.theta.copy()
        theta[free] = np.clip(x, low[free], high[free])
        tried = objective.evaluate(theta)
        lowest = tried if tried.penalised < lowest.penalised else lowest
        return float(np.nan_to_num(tried.penalised, posinf=np.finfo(float).max))

    for edge in EDGES:
        start = lowest.theta[free]
        simplex = np.vstack([start, start + edge * np.eye(len(free))])
        options = {"initial_simplex": simplex, "maxfev": MOST_LOOKS * len(free), "xatol": NEAR, "fatol": np.inf}
        minimize(height, start, method="Nelder-Mead", options=options)
    return descent if lowest is descent.end else go_on(objective, replace(descent, end=lowest), TOLERANCE)


def go_on(objective: SumOfSquares, descent: Descent, tolerance: float, enough: float = 0.0) -> Descent:
    """Descend further, with what was learned."""
    return descend(
        objective,
        descent.end,
        max_steps=MOST_STEPS,
        tolerance=tolerance,
        enough=enough,
        curvature=descent.curvature,
    )


def flatten(objective: SumOfSquares, descent: Descent, tolerance: float = TOLERANCE, enough: float = 0.0) -> Descent:
    """Smooth away every column that the criterion is not worse without.

    Towards an infinite bandwidth the criterion becomes flat, and a descent stops at an arbitrary point.

    Parameters
    ----------
    objective : SumOfSquares
        The criterion.
    descent : Descent
        Where a descent ended.
    tolerance, enough : float
        As of `descend`, for going on from there.

    Returns
    -------
    Descent
        Not worse; with bandwidths of 1e4 ranges for columns that were smoothed away.
    """
    _, high, far = objective.box
    at, changed = descent.end, False
    for a in np.argsort(-(at.theta - high)):
        if at.theta[a] < far[a] - 2.0 or at.theta[a] == high[a]:  # less than a third of the range of the column
            continue
        flat = objective.evaluate(np.where(np.arange(len(high)) == a, high, at.theta))
        if flat.penalised <= at.penalised * (1.0 + 1e-12):
            at, changed = flat, True
    return go_on(objective, replace(descent, end=at), tolerance, enough) if changed else descent


def sizes_between(few: int, all_rows: int) -> list[int]:
    """Return numbers of rows on the way from few to all.

    Parameters
    ----------
    few, all_rows : int
        The first and the last number, neither of them part of the result.

    Returns
    -------
    list of int
        Each three times the one before, the last at most half of all.

    Examples
    --------
    >>> sizes_between(1024, 20_000)
    [3072, 9216]
    """
    sizes, size = [], few * GROWTH
    while 2 * size <= all_rows:
        sizes.append(size)
        size *= GROWTH
    return sizes


def relevant(objective: SumOfSquares, theta: Array) -> NDArray[np.bool_]:
    """Tell which columns are not smoothed away, of shape (p,).

    Parameters
    ----------
    objective : SumOfSquares
        The criterion.
    theta : ndarray of shape (p,)
        Log bandwidths and smoothings.

    Returns
    -------
    ndarray of bool, shape (p,)
        Bandwidths below 1e2 ranges, smoothings below their upper ends.
    """
    _, high, far = objective.box
    return np.asarray(np.where(np.isinf(far), theta < high, theta < high - np.log(100.0)))
