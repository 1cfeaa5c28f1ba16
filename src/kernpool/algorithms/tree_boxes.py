"""Compiled geometry of boxes: how near, how far, and how much weight at most."""

from __future__ import annotations

import math

import numpy as np

from kernpool.algorithms.compiling import loop
from kernpool.algorithms.tiles import GAUSSIAN, LOG2_E

# The norm of u = (q - k) / h that the kernel decreases with: radial ones the Euclidean; a product of profiles ends
# where one of them does; a product of exponentials is one of the sum of distances.
EUCLIDEAN, MAXIMUM, TAXICAB = 0, 1, 2
# Boxes this near to the edge of the support count neither as inside nor as outside: rounding is far below it.
MARGIN = 1e-9


@loop
def squared_norm(total, x, norm):
    """Add one more component to a squared norm (to the plain sum for `TAXICAB`, see `squared`)."""
    if norm == EUCLIDEAN:
        return total + x * x
    return max(total, x * x) if norm == MAXIMUM else total + x


@loop
def smallest(low, high, node, tree, profile):
    """Least squared distance between points of a box and keys of a node."""
    total = 0.0
    for a in range(low.size):
        gap = max(tree.lower[node, a] - high[a], low[a] - tree.upper[node, a])
        total = squared_norm(total, max(gap, 0.0) * profile.scale[a], profile.norm)
    return total * total if profile.norm == TAXICAB else total


@loop
def largest(low, high, node, tree, profile):
    """Greatest squared distance between points of a box and keys of a node."""
    total = 0.0
    for a in range(low.size):
        reach = max(tree.upper[node, a] - low[a], high[a] - tree.lower[node, a])
        total = squared_norm(total, reach * profile.scale[a], profile.norm)
    return total * total if profile.norm == TAXICAB else total


@loop
def ceiling(s, profile):
    """Upper bound, as an exponent of two, of a kernel of infinite support at squared distance s."""
    if profile.code == GAUSSIAN:
        return -0.5 * LOG2_E * s
    return -LOG2_E * math.sqrt(s)  # laplace and logistic have a factor below one as well


@loop
def box_of(query, low, high):
    """Box around some queries."""
    for a in range(low.size):
        low[a], high[a] = np.inf, -np.inf
        for i in range(query.shape[0]):
            low[a] = min(low[a], query[i, a])
            high[a] = max(high[a], query[i, a])
