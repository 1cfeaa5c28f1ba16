"""Marks: how loops and what calls them say, inside of the sweep, that a query has to be done again by its pairs."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from kernpool.core.state import PoolState

UNDONE = -1.0  # in place of a denominator


def take_marks(state: PoolState) -> NDArray[np.bool_]:
    """Return which queries are marked, and make their sums those of no keys."""
    undone: NDArray[np.bool_] = state.denominator < 0.0
    clear(state, undone)
    return undone


def clear(state: PoolState, rows: NDArray[np.bool_]) -> None:
    """Make the sums of some queries those of no keys."""
    state.denominator[rows], state.numerator[rows] = 0.0, 0.0
