"""Search for one bandwidth per column: descents from several starts, which removes irrelevant columns.

Criteria usually have several local minima, more of them the more columns there are. Starts are: the best common factors
on the spreads, with categorical columns kept apart, smoothed and ignored; the best of these with one column after the
other smoothed away; and the best of random points around it. All starts descend for a few steps, on a sample if there
are many rows; the best go on to the end. From there each bandwidth is scanned alone over its whole range.

With many columns that costs too much: a start without each of p columns, and a scan along each, take p times as
long as a descent, in every round. Then starts are a few common factors, and the best of them without the least useful
columns; the best start descends, and the most promising columns are scanned once. The derivatives of the residuals at
one point select these columns. A column enters a fit by u = h^-2, so that the residuals without it are, to first order
in u::

    r - u dr/du = r + (1/2) dr / d(log h)

For a smoothing the extrapolation to the end of its box is linear.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from heapq import nsmallest
from itertools import chain, pairwise
from operator import attrgetter, itemgetter
from typing import Any

import numpy as np

from kernpool._arrays import Array, Index
from kernpool.bandwidth.search.descent import (
    MOST_COLUMNS,
    TOLERANCE,
    GaussNewton,
    descend,
    descend_without_slopes,
    find_ridge,
    flatten,
    gain_without,
)
from kernpool.bandwidth.search.objective import Evaluation, Objective
from kernpool.bandwidth.search.setup import TrainingRows, candidates

by_criterion = attrgetter("penalised")
# On 17 tables of 10 to 36 columns, planes and constants, such a search has the R^2 of new rows of one with three times
# as many starts, finalists and places, random starts and five rounds (.726 and .731 in the mean, better on 12 and worse
# on 7 by more than .001), in a quarter of the time. Without any scan products of columns are missed (.67 for .72).
BATCHES, LINES, PLACES = 2, 10, 4


def without_batches(objective: Objective, at: Evaluation, wide: Array) -> list[Evaluation]:
    """Return the best few evaluations with the 1, 2, 4 and so on least useful columns smoothed nearly away."""
    rank = np.argsort(np.argsort(-gain_without(objective, at, objective.jacobian(at)), kind="stable"))
    sizes = 2 ** np.arange(int(np.ceil(np.log2(len(rank)))))
    # No more at a time than are wanted: an evaluation of planes has n d^2 / 2 numbers.
    points = (objective.evaluate(np.where(rank < size, wide, at.theta)) for size in sizes)
    return nsmallest(BATCHES, points, key=by_criterion)


def promising(objective: Objective, at: Evaluation) -> Index:
    """Return, in order, the columns whose bandwidths are worth scanning; about half of them are relevant so far.

    These are the relevant columns whose removal costs least, and the smoothed-away columns whose slopes correlate most
    with the residuals.
    """
    _, high, flat = objective.box
    jacobian = objective.jacobian(at)
    gain = gain_without(objective, at, jacobian)
    size = np.sqrt(np.einsum("ij,ij->j", jacobian, jacobian))
    along = np.divide(jacobian.T @ at.residual.ravel(), size, where=size > 0, out=np.zeros_like(size))
    unused = at.theta > np.where(np.isinf(flat), high - 1e-9, flat)
    used = np.flatnonzero(~unused)
    missed = used[np.argsort(-gain[used], kind="stable")]
    missing = np.flatnonzero(unused)[np.argsort(-along[unused], kind="stable")]
    chosen = [*missed[: max(LINES // 2, LINES - len(missing))], *missing[: max(LINES // 2, LINES - len(missed))]]
    return np.sort(np.array(chosen, dtype=np.intp))


LADDER, LADDER_OF_MANY = 24, 8  # common factors, to begin with
DRAWN, DRAWN_STARTS = 32, 4  # points, and the best of them
FIRST_SMOOTHINGS = (0.02, 0.3, 1.0)  # of the boxes of categorical columns
MOST_VALLEYS = 4
LINE = 10  # points along each bandwidth


def starts(objective: Objective, spread: Array, grid: Array, generator: Any) -> Iterator[Evaluation]:
    """Yield evaluated starting points of a search over all bandwidths, the most promising first.

    Parameters
    ----------
    objective : Objective
        The criterion, for finding the best common factor.
    spread : ndarray of shape (d,)
        Spreads of the columns.
    grid : ndarray
        Common factors on the spreads to consider, increasing; only the ends are used. A single one if no numeric column
        varies.
    generator : numpy.random.RandomState
        For random starting points.

    Yields
    ------
    Evaluation
        Whether or not the criterion is finite there.
    """
    low, high, flat = objective.box
    d, p, numeric = len(spread), len(high), np.isfinite(flat)
    many = p > MOST_COLUMNS
    size = LADDER_OF_MANY if many else LADDER
    ladder = np.log(np.geomspace(grid[0] * 0.5, grid[-1], size) if len(grid) > 1 else grid)
    middles = [np.append(np.log(spread), share * high[d:]) for share in (FIRST_SMOOTHINGS if p > d else (0.0,))]
    common = (
        valleys_of(objective.evaluate(np.clip(middle + numeric * log_factor, low, high)) for log_factor in ladder)
        for middle in middles
    )
    valleys = nsmallest(MOST_VALLEYS, chain.from_iterable(common), key=by_criterion)
    if not valleys:
        return
    objective.starts = len(valleys)
    yield from valleys
    best = valleys[0]
    wide = np.where(numeric, np.minimum(best.theta + 3.0, high), high)
    if many:
        objective.starts += BATCHES
        yield from without_batches(objective, best, wide)
        return
    for a in range(p):
        objective.starts += 1
        yield objective.evaluate(np.where(np.arange(p) == a, wide, best.theta))
    drawn = best.theta + generator.uniform(-1.5, 3.0, (DRAWN, p))
    drawn = np.clip(np.where(numeric, drawn, high * generator.uniform(size=(DRAWN, p))), low, high)
    objective.starts += DRAWN_STARTS
    yield from nsmallest(DRAWN_STARTS, map(objective.evaluate, drawn), key=by_criterion)


def valleys_of(points: Iterable[Evaluation]) -> Iterator[Evaluation]:
    """Yield the local minima among evaluations along a line; of equal neighbours, the last one.

    At most two evaluations are held at a time: one of planes in d columns has n d^2 / 2 numbers.
    """
    before, here = np.inf, None
    for point in points:
        if here is not None:
            if here.penalised <= before and here.penalised < point.penalised:
                yield here
            before = here.penalised
        here = point
    if here is not None and here.penalised <= before and here.penalised < np.inf:
        yield here


FIRST_STEPS, FINALISTS = 4, 3
MOST_ROUNDS, ROUNDS_OF_MANY = 5, 1
FIRST_TOLERANCE, SECOND_TOLERANCE = 1e-3, 1e-5
STEPS_ON_MANY_ROWS = 30
# Minima of many columns lie in long flat valleys, and a step on three times as many rows takes nine times as long: for
# 20 000 rows of five columns this way takes half the time of going on with all of them at once.
GROWTH, MOST_SAMPLES, TOLERANCE_BETWEEN, TOLERANCE_ON_ALL = 3, 20, 1e-5, 1e-6
# Last gains, relative. At the end one of 2e-4 is followed by less than 7e-5 in all; the standard error of the criterion
# itself is 1e-2 with 20 000 rows. From the last sample to all rows the minimum moves by some 5e-3, so that a rough one
# will do; where steps are cheap, before that, they are worth what they teach of the curvature.
ENOUGH_ON_FEW, ENOUGH_ON_MOST, ENOUGH_ON_ALL = 1e-4, 1e-3, 2e-4


def search_per_column(
    objectives: list[Objective], spread: Array, generator: Any, objective_of: Callable[[TrainingRows], Objective]
) -> str:
    """Search for one bandwidth per column: descend from several starts on a sample of rows, then on ever more rows.

    Parameters
    ----------
    objectives : list of Objective
        Criteria of the rows that starts are tried on, and of all rows: the same, or a sample, of planes preceded by
        some of it as queries. Those of samples between are added to the list.
    spread : ndarray of shape (d,)
        Spreads of the columns.
    generator : numpy.random.RandomState
        For random rows and starting points.
    objective_of : callable
        Criterion of a sample.

    Returns
    -------
    str
        Reason why the search ended; the evaluated points are recorded in the objectives.
    """
    first, last = objectives[0], objectives[-1]
    options, (low, high, _) = first.options, first.box
    grid = candidates(first.rows, spread, options, np.exp(first.box[0]))
    # Points at which each log bandwidth or smoothing is scanned while the others stay fixed.
    size = LINE if len(low) <= MOST_COLUMNS else PLACES
    steps = np.log(np.geomspace(grid[0] * 0.5, grid[-1], size))
    lines = [np.unique(np.clip(np.log(unit) + steps, low[a], high[a])) for a, unit in enumerate(spread)]
    lines += [np.linspace(0.0, 1.0, size) ** 2 * end for end in high[len(spread) :]]
    best = _best_from(first, starts(first, spread, grid, generator))
    if best is None:
        return "undefined everywhere"
    # Starts miss minima that differ in one bandwidth, so each valley along a line through the best point is a new
    # start, as long as that finds something better.
    for _ in range(MOST_ROUNDS if len(lines) <= MOST_COLUMNS else ROUNDS_OF_MANY):
        found = _best_from(first, _valleys_around(first, best.end, lines))
        if found is None or found.end.penalised >= best.end.penalised * (1.0 - SECOND_TOLERANCE):
            break
        best = found
    best = descend(first, best, TOLERANCE)
    if options.kernel.is_compact:
        best = descend_without_slopes(first, best)
    best = flatten(first, best)
    sample = first if first.queries is None else objectives[1]
    if options.ridge is None:
        best = find_ridge(first, best, sample)
    elif sample is not first:
        best = replace(best, end=sample.evaluate(best.end.theta))
        best = descend(sample, best, TOLERANCE_ON_ALL, max_steps=STEPS_ON_MANY_ROWS, enough=ENOUGH_ON_ALL)
        best = flatten(sample, best, TOLERANCE_ON_ALL, ENOUGH_ON_ALL)
    if sample.is_quick:
        sample.confirm(best.end)
    if sample is last:
        return best.reason
    few, every = len(sample.rows.X), len(last.rows.X)
    sizes = (few * GROWTH**times for times in range(1, MOST_SAMPLES) if 2 * few * GROWTH**times <= every)
    objectives[-1:-1] = [objective_of(last.rows.draw(size, generator)) for size in sizes]
    for fewer, objective in pairwise(objectives[objectives.index(sample) :]):
        objective.ridge = sample.ridge
        is_last = objective is last
        tolerance = TOLERANCE_ON_ALL if is_last else TOLERANCE_BETWEEN
        enough = ENOUGH_ON_ALL if is_last else ENOUGH_ON_MOST if objective is objectives[-2] else ENOUGH_ON_FEW
        start = objective.evaluate(objective.expected_minimum(fewer, best.end.theta, options.degree))
        best = replace(best, end=start)
        best = descend(objective, best, tolerance, max_steps=STEPS_ON_MANY_ROWS, enough=enough)
        if is_last:
            best = flatten(objective, best, tolerance, enough)
        objective.confirm(best.end)
    return f"{best.reason}, from the best of {len(objectives[-2].rows.X)} rows"


def _best_from(objective: Objective, from_starts: Iterable[Evaluation]) -> GaussNewton | None:
    """Descend from all starts and return the best result; None if the criterion is finite at none of them."""
    # Criterion, end and curvature alone: evaluations hold large arrays.
    begun: list[tuple[float, Array, Array | None]] = []
    for start in from_starts:
        if np.isfinite(start.penalised):
            one = descend(objective, GaussNewton(start), FIRST_TOLERANCE, max_steps=FIRST_STEPS)
            begun.append((one.end.penalised, one.end.theta, one.curvature))
    finalists: list[tuple[Array, Array | None]] = []
    for _, theta, curvature in sorted(begun, key=itemgetter(0)):
        if all(np.abs(theta - other).max() > 0.05 for other, _ in finalists):
            finalists.append((theta, curvature))
    ends = (
        descend(objective, GaussNewton(objective.evaluate(theta), "", curvature), SECOND_TOLERANCE)
        for theta, curvature in finalists[: FINALISTS if len(objective.box[0]) <= MOST_COLUMNS else 1]
    )
    return min(ends, key=attrgetter("end.penalised"), default=None)


def _valleys_around(objective: Objective, at: Evaluation, lines: list[Array]) -> Iterator[Evaluation]:
    """Yield the local minima, other than the point itself, along the line of each bandwidth through a point."""
    for a in range(len(lines)) if len(lines) <= MOST_COLUMNS else promising(objective, at):
        thetas = np.tile(at.theta, (len(lines[a]), 1))
        thetas[:, a] = lines[a]
        here = int(np.searchsorted(lines[a], at.theta[a]))
        left, right = (map(objective.evaluate, part) for part in (thetas[:here], thetas[here:]))
        yield from (point for point in valleys_of(chain(left, [at], right)) if point is not at)
