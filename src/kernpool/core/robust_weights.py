"""Robustness weights of rows: bisquare and Huber weights of residuals, and their scale, the median magnitude.

A robust fit repeats a linear one with weights that fall with the residuals of the fit before (Cleveland 1979; Huber
1981). The scale is a multiple of the median absolute residual, MAD. Where that is zero, more than half of the rows are
fitted exactly and residuals have no scale.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

BISQUARE_SCALE = 6.0  # MADs beyond which a row has no weight, as in lowess and loess
EXACT = 1e-13  # of the largest value: residuals that are no larger are rounding errors
VISIBLE = 1e3  # residuals larger than so many rounding errors are differences of the data


def bisquare(residual: Array, scale: float) -> Array:
    """Return ``(1 - (e / scale)**2)**2``, or zero from the scale on.

    Examples
    --------
    >>> bisquare(np.array([0.0, 1.0, 3.0]), 2.0)
    array([1.    , 0.5625, 0.    ])
    """
    ratio: Array = 1.0 - (np.minimum(np.abs(residual), scale) / scale) ** 2
    return ratio * ratio


def median_magnitude(residual: Array, weight: Array | None = None) -> float:
    """Return the median of absolute residuals; weights count rows, a weight of 3 is three equal rows.

    Examples
    --------
    >>> median_magnitude(np.array([1.0, -2.0, 4.0])), median_magnitude(np.array([1.0, -2.0]), np.array([3.0, 1.0]))
    (2.0, 1.0)
    """
    size = np.abs(residual)
    if weight is None:
        return float(np.median(size))
    order = np.argsort(size)
    counted = np.cumsum(weight[order])
    half = 0.5 * counted[-1]
    places = np.searchsorted(counted, [half, half * (1.0 + 1e-12)], side="left")  # two rows if half lies between them
    return float(np.mean(size[order][np.minimum(places, len(size) - 1)]))
