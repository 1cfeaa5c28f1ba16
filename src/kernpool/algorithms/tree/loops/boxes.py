"""Compiled geometry of boxes: how near, how far, and how much weight at most.

Arrays come one by one and not as the records that hold them: unpacking a record takes longer than the distance.
"""

from __future__ import annotations

import math

from kernpool.algorithms.loops.tiles import GAUSSIAN, LOG2_E
from kernpool.execution.compiling import part

# The norm of u = (q - k) / h that the kernel decreases with: radial ones the Euclidean; a product of profiles ends
# where one of them does; a product of exponentials is one of the sum of distances.
EUCLIDEAN, MAXIMUM, TAXICAB = 0, 1, 2
# Boxes this near to the edge of the support count neither as inside nor as outside: rounding is far below it.
MARGIN = 1e-9
# Relative rounding of exponents, in excess: 1e6 bandwidths away it is not small beside the logarithm of `tol`.
ROUNDING = 1e-13


@part
def add_component(total, x, norm):
    """Add one more component to a squared norm (to the plain norm for `TAXICAB`)."""
    if norm == EUCLIDEAN:
        return total + x * x
    return max(total, x * x) if norm == MAXIMUM else total + x


@part
def smallest(low, high, node, lower, upper, scale, norm):
    """Least squared distance between points of a box and keys of a node."""
    total = 0.0
    for a in range(low.size):
        gap = max(lower[node, a] - high[a], low[a] - upper[node, a])
        total = add_component(total, max(gap, 0.0) * scale[a], norm)
    return total * total if norm == TAXICAB else total


@part
def largest(low, high, node, lower, upper, scale, norm):
    """Greatest squared distance between points of a box and keys of a node."""
    total = 0.0
    for a in range(low.size):
        reach = max(upper[node, a] - low[a], high[a] - lower[node, a])
        total = add_component(total, reach * scale[a], norm)
    return total * total if norm == TAXICAB else total


@part
def node_name(first, last, leaves):
    """Row of the node of these leaves in all arrays of nodes, as in `kd_tree.node_names`."""
    return first if last - first == 1 else leaves + (first + last) // 2


@part
def ceiling(s, code):
    """Upper bound, as an exponent of two, of a kernel of infinite support at squared distance s."""
    if code == GAUSSIAN:
        return -0.5 * LOG2_E * s
    return -LOG2_E * math.sqrt(s)  # laplace and logistic have a factor below one as well
