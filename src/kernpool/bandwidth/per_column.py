"""One bandwidth per column: damped Gauss-Newton from several starts, and columns that a fit does without.

Criteria have several local minima as a rule, and their number grows with the columns. Starts are: the best common
factors on the spreads of the columns, with categorical columns kept apart, smoothed and ignored; the best of them with
one column after the other smoothed away; and places drawn between. All of them descend for a few steps, on few rows if
there are many; the best go on to the end.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernpool.bandwidth.gauss_newton import Descent, Place, SumOfSquares, descend

Array = NDArray[np.float64]

LADDER = 24  # common factors, to begin with
DRAWN_STARTS = 4
FIRST_STEPS, FINALISTS, MOST_STEPS = 4, 3, 100
FIRST_SMOOTHINGS = (0.02, 0.3, 1.0)  # of the boxes of categorical columns
MOST_VALLEYS = 4
FIRST_TOLERANCE, SECOND_TOLERANCE, TOLERANCE = 1e-3, 1e-5, 1e-11
STEPS_ON_MANY_ROWS = 30


def starts(objective: SumOfSquares, spread: Array, grid: Array, generator: Any) -> Iterator[Any]:
    """Yield places to descend from, the likeliest first.

    Parameters
    ----------
    objective : SumOfSquares
        To look for the best common factor with.
    spread : ndarray of shape (d,)
        Spreads of the columns.
    grid : ndarray
        Common factors on the spreads that are worth a look, increasing; only the ends count.
    generator : numpy.random.RandomState
        For the places that are drawn.

    Yields
    ------
    Place
        Whether or not the criterion is finite there.
    """
    low, high, _ = objective.box
    d, k = len(spread), len(high) - len(spread)
    ladder = np.log(np.geomspace(grid[0] * 3, grid[-1], LADDER))
    numeric = np.arange(d + k) < d
    valleys: list[Place] = []
    for share in FIRST_SMOOTHINGS if k else (0.0,):
        middle = np.concatenate([np.log(spread), share * high[d:]])
        common = [objective.evaluate(np.clip(middle + numeric * log_factor, low, high)) for log_factor in ladder]
        heights = np.array([np.inf, *(at.penalised for at in common), np.inf])
        valleys += [common[i] for i in np.flatnonzero((heights[1:-1] <= heights[:-2]) & (heights[1:-1] < heights[2:]))]
    valleys.sort(key=lambda at: at.penalised)
    if not valleys or not np.isfinite(valleys[0].penalised):
        return
    best = valleys[0]
    yield from valleys[:MOST_VALLEYS]
    for a in range(d + k):
        without = np.where(np.arange(d + k) == a, np.where(numeric, best.theta + 3.0, high), best.theta)
        yield objective.evaluate(np.minimum(without, high))
    for _ in range(DRAWN_STARTS):
        drawn = best.theta + generator.uniform(-1.5, 3.0, d + k)
        yield objective.evaluate(np.clip(np.where(numeric, drawn, high * generator.uniform(size=d + k)), low, high))


def minimise(objective: SumOfSquares, from_starts: list[Place]) -> Descent:
    """Descend from all starts for a few steps, and from the best places to the end.

    Parameters
    ----------
    objective : SumOfSquares
        Of the same rows as the starts.
    from_starts : list of Place
        Where to begin.

    Returns
    -------
    Descent
        The best.
    """
    begun = [
        descend(objective, start, max_steps=FIRST_STEPS, tolerance=FIRST_TOLERANCE).end
        for start in from_starts
        if np.isfinite(start.penalised)
    ]
    finalists: list[Place] = []
    for at in sorted(begun, key=lambda at: at.penalised):
        if all(np.abs(at.theta - other.theta).max() > 0.05 for other in finalists):
            finalists.append(at)
    ended = [descend(objective, at, max_steps=MOST_STEPS, tolerance=SECOND_TOLERANCE) for at in finalists[:FINALISTS]]
    best = min(ended, key=lambda descent: descent.end.penalised)
    return descend(objective, best.end, max_steps=MOST_STEPS, tolerance=TOLERANCE)


def flatten(objective: SumOfSquares, descent: Descent) -> Descent:
    """Smooth away every column that the criterion is not worse without.

    Towards an infinite bandwidth the criterion becomes flat, and a descent ends wherever it gets tired.

    Parameters
    ----------
    objective : SumOfSquares
        The criterion.
    descent : Descent
        Where a descent ended.

    Returns
    -------
    Descent
        Not worse; with bandwidths of 1e4 ranges for columns that were smoothed away.
    """
    _, high, far = objective.box
    at = descent.end
    moved = False
    for a in np.argsort(-(at.theta - high)):
        if at.theta[a] < far[a] - 2.0 or at.theta[a] == high[a]:  # less than a third of the range of the column
            continue
        flat = objective.evaluate(np.where(np.arange(len(high)) == a, high, at.theta))
        if flat.penalised <= at.penalised * (1.0 + 1e-12):
            at, moved = flat, True
    return descend(objective, at, max_steps=MOST_STEPS, tolerance=TOLERANCE) if moved else descent


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
