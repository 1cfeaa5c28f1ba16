"""Where descents begin, and what is looked at from where they end."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from heapq import nsmallest
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernpool.bandwidth.search.gauss_newton import SumOfSquares
from kernpool.bandwidth.search.many_columns import MOST_TRIED_ONE_BY_ONE, PLACES, without_batches

Array = NDArray[np.float64]

LADDER = 24  # common factors, to begin with
DRAWN, DRAWN_STARTS = 32, 4  # places, and the best of them
FIRST_SMOOTHINGS = (0.02, 0.3, 1.0)  # of the boxes of categorical columns
MOST_VALLEYS = 4
LINE = 10  # places along each bandwidth


def starts(objective: SumOfSquares, spread: Array, grid: Array, generator: Any) -> Iterator[Any]:
    """Yield places to descend from, the likeliest first.

    Parameters
    ----------
    objective : SumOfSquares
        To look for the best common factor with.
    spread : ndarray of shape (d,)
        Spreads of the columns.
    grid : ndarray
        Common factors on the spreads that are worth a look, increasing; only the ends count. A single one if no numeric
        column varies.
    generator : numpy.random.RandomState
        For the places that are drawn.

    Yields
    ------
    Place
        Whether or not the criterion is finite there.
    """
    low, high, _ = objective.box
    d, k = len(spread), len(high) - len(spread)
    many = d + k > MOST_TRIED_ONE_BY_ONE
    ladder = np.log(np.geomspace(grid[0] * 3, grid[-1], LADDER) if len(grid) > 1 else grid)[:: 2 if many and k else 1]
    numeric = np.arange(d + k) < d
    middles = [np.concatenate([np.log(spread), share * high[d:]]) for share in (FIRST_SMOOTHINGS if k else (0.0,))]
    common = (
        valleys_of(objective.evaluate(np.clip(middle + numeric * log_factor, low, high)) for log_factor in ladder)
        for middle in middles
    )
    valleys = nsmallest(MOST_VALLEYS, chain.from_iterable(common), key=_height)
    if not valleys or not np.isfinite(valleys[0].penalised):
        return
    best = valleys[0]
    yield from valleys
    if many:
        yield from without_batches(objective, best, d)
    for a in () if many else range(d + k):
        without = np.where(np.arange(d + k) == a, np.where(numeric, best.theta + 3.0, high), best.theta)
        yield objective.evaluate(np.minimum(without, high))
    drawn = best.theta + generator.uniform(-1.5, 3.0, (DRAWN, d + k))
    drawn = np.clip(np.where(numeric, drawn, high * generator.uniform(size=(DRAWN, d + k))), low, high)
    yield from nsmallest(DRAWN_STARTS, (objective.evaluate(place) for place in drawn), key=_height)


def valleys_of(places: Iterable[Any]) -> Iterator[Any]:
    """Yield the local minima along a line, of neighbours of equal height the last.

    At most two evaluations are held at a time: of planes in d columns one has n d^2 / 2 numbers.
    """
    before, here = np.inf, None
    for place in places:
        if here is not None:
            if here.penalised <= before and here.penalised < place.penalised:
                yield here
            before = here.penalised
        here = place
    if here is not None and here.penalised <= before and here.penalised < np.inf:
        yield here


def _height(at: Any) -> float:
    return float(at.penalised)


def lines(objective: SumOfSquares, spread: Array, grid: Array) -> list[Array]:
    """Return for each bandwidth and smoothing the values to look at while the others stay.

    Parameters
    ----------
    objective, spread, grid
        As for `starts`.

    Returns
    -------
    list of ndarray
        In increasing order.
    """
    low, high, _ = objective.box
    size = LINE if len(low) <= MOST_TRIED_ONE_BY_ONE else PLACES
    steps = np.log(np.geomspace(grid[0] * 3, grid[-1], size))
    numeric = [np.unique(np.clip(np.log(unit) + steps, low[a], high[a])) for a, unit in enumerate(spread)]
    return numeric + [np.linspace(0.0, 1.0, size) ** 2 * end for end in high[len(spread) :]]
