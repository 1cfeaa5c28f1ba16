"""Shares of the keys in a local fit: what values and slopes are linear combinations of."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kernpool.core.problem import Problem

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Shares:
    """Shares of the keys in one number per query.

    Parameters
    ----------
    problem : Problem
        Queries, keys, frequencies and similarity.
    factor : float
        Its bandwidths, in a unit that all shares of an inner product have in common.
    log_mass : ndarray of shape (m,)
        Logarithm of the sum of weights; minus infinity where the window is empty.
    base : ndarray of shape (m,)
        See above.
    tilt : ndarray of shape (m, regressors)
        In bandwidths of the problem; without columns for fits that are local constant.
    """

    problem: Problem
    factor: float
    log_mass: Array
    base: Array
    tilt: Array
