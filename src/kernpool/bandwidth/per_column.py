"""One bandwidth per column: damped Gauss-Newton from several starts, and columns that a fit does without.

Criteria have several local minima as a rule, and their number grows with the columns. Starts are: the best common
factor on the spreads of the columns; that factor with one column after the other smoothed away; and places drawn
between. All of them descend for a few steps, on few rows if there are many; the best go on to the end.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernpool.bandwidth.gauss_newton import Descent, descend
from kernpool.bandwidth.objective import Evaluation, Objective
from kernpool.bandwidth.one_factor import candidates
from kernpool.kernels import Kernel

Array = NDArray[np.float64]

FLAT = 1e4  # ranges of a column: beyond, the weights of any two rows differ by less than 1e-8
LADDER = 12  # common factors, to begin with
DRAWN_STARTS = 4
FIRST_STEPS, FINALISTS, MOST_STEPS = 4, 3, 100
FIRST_TOLERANCE, SECOND_TOLERANCE, TOLERANCE = 1e-3, 1e-5, 1e-11
STEPS_ON_MANY_ROWS = 30


def box(X: Array) -> tuple[Array, Array, Array]:
    """Return the lowest and the highest log bandwidth of each column.

    From a tenth of a small gap between neighbouring values, where a Gaussian window holds equal values alone, to 1e4
    ranges, where all values weigh the same. A constant column has the interval of a range of one.

    Parameters
    ----------
    X : ndarray of shape (n, d)
        Rows.

    Returns
    -------
    low, high : ndarray of shape (d,)
        Ends of the interval.
    flat : ndarray of shape (d,)
        Three ranges, where a criterion begins to be flat.
    """
    ends = []
    for column in X.T:
        gaps = np.diff(np.unique(column))
        ends.append((0.1 * np.quantile(gaps, 0.1), FLAT * gaps.sum()) if gaps.size else (0.1, FLAT))
    low, high = np.log(np.array(ends)).T
    return low, high, high - np.log(FLAT) + 1.0


def starts(
    objective: Objective, X: Array, spread: Array, kernel: Kernel, composition: str, generator: Any
) -> Iterator[Evaluation]:
    """Yield places to descend from, the likeliest first.

    Parameters
    ----------
    objective : Objective
        To look for the best common factor with.
    X : ndarray of shape (n, d)
        Its rows.
    spread : ndarray of shape (d,)
        Spreads of the columns.
    kernel, composition
        As in `pool`.
    generator : numpy.random.RandomState
        For the places that are drawn.

    Yields
    ------
    Evaluation
        Where the criterion is finite.
    """
    low, high, _ = box(X)
    grid = candidates(X / spread, kernel, composition)
    ladder = np.log(np.geomspace(grid[0] * 3, grid[-1], LADDER))
    common = [objective.evaluate(np.clip(np.log(spread) + log_factor, low, high)) for log_factor in ladder]
    best = min(common, key=lambda at: at.penalised)
    yield best
    d = X.shape[1]
    for a in range(d):
        without = np.where(np.arange(d) == a, np.minimum(best.theta + 3.0, high), best.theta)
        yield objective.evaluate(without)
    for _ in range(DRAWN_STARTS):
        drawn = best.theta + generator.uniform(-1.5, 3.0, d)
        yield objective.evaluate(np.clip(drawn, low, high))


def minimise(objective: Objective, from_starts: list[Evaluation], X: Array) -> Descent:
    """Descend from all starts for a few steps, and from the best places to the end.

    Parameters
    ----------
    objective : Objective
        Of the same rows as the starts.
    from_starts : list of Evaluation
        Where to begin.
    X : ndarray of shape (n, d)
        Its rows.

    Returns
    -------
    Descent
        The best.
    """
    ends = box(X)
    begun = [
        descend(objective, start, *ends, max_steps=FIRST_STEPS, tolerance=FIRST_TOLERANCE).end
        for start in from_starts
        if np.isfinite(start.penalised)
    ]
    finalists: list[Evaluation] = []
    for at in sorted(begun, key=lambda at: at.penalised):
        if all(np.abs(at.theta - other.theta).max() > 0.05 for other in finalists):
            finalists.append(at)
    ended = [
        descend(objective, at, *ends, max_steps=MOST_STEPS, tolerance=SECOND_TOLERANCE) for at in finalists[:FINALISTS]
    ]
    best = min(ended, key=lambda descent: descent.end.penalised)
    return descend(objective, best.end, *ends, max_steps=MOST_STEPS, tolerance=TOLERANCE)


def flatten(objective: Objective, descent: Descent, X: Array) -> tuple[Descent, NDArray[np.bool_]]:
    """Smooth away every column that the criterion is not worse without, and tell which columns are left.

    Towards an infinite bandwidth the criterion becomes flat, and a descent ends wherever it gets tired.

    Parameters
    ----------
    objective : Objective
        The criterion.
    descent : Descent
        Where a descent ended.
    X : ndarray of shape (n, d)
        Its rows.

    Returns
    -------
    descent : Descent
        Not worse; with bandwidths of 1e4 ranges for columns that were smoothed away.
    relevant : ndarray of bool, shape (d,)
        Which were not.
    """
    low, high, far = box(X)
    at = descent.end
    moved = False
    for a in np.argsort(-(at.theta - high)):
        if at.theta[a] < far[a] - 2.0 or at.theta[a] == high[a]:  # less than a third of the range of the column
            continue
        flat = objective.evaluate(np.where(np.arange(len(high)) == a, high, at.theta))
        if flat.penalised <= at.penalised * (1.0 + 1e-12):
            at, moved = flat, True
    if moved:
        descent = descend(objective, at, low, high, far, max_steps=MOST_STEPS, tolerance=TOLERANCE)
    return descent, descent.end.theta < high - np.log(100.0)
