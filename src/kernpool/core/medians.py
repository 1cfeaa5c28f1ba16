"""Medians of values whose weights count rows."""

import numpy as np

from kernpool._arrays import Array


def weighted_median(value: Array, weight: Array) -> float:
    """Return the median of values, in which a weight of 3 is three equal rows."""
    order = np.argsort(value)
    counted = np.cumsum(weight[order])
    half = 0.5 * counted[-1]
    places = np.searchsorted(counted, [half, half * (1.0 + 1e-12)], side="left")  # two rows if half lies between them
    return float(np.sum(0.5 * value[order][np.minimum(places, len(value) - 1)]))
