"""How sums of a kernel are interpolated between queries: how many nodes, how far apart, and which keys stay outside.

Over a block of queries the sum of the weights of some keys is a smooth function of the query. Of ``P`` Chebyshev nodes
on a block of half width ``r`` bandwidths the interpolant is within ``2 (r / 2)**P max|K^(P)| / P!`` of each kernel:

=================== ===================================================== =================================
kernels             smooth                                                nodes, widest block, bound
=================== ===================================================== =================================
gaussian            everywhere; ``|K^(P)| < 1.1 sqrt(P!)`` (Cramer)       20, h: 2e-21 of the height
logistic            everywhere; poles at a distance of pi                 16, h: 7e-17 of the kernel
compact polynomials where the window does not end; beside a kink          degree + 1, h / 4: exact
cosine              where the window does not end                         10, h / 4: 5e-17 of the height
laplace, constant   not here: a kink that far keys share, a single sum
=================== ===================================================== =================================

The logistic kernel is ``-4`` times the sum of ``(u - z)**-2`` over its poles ``z``; of one of them the interpolant is
within ``(1 / |u - z| + |T'(z) / T(z)|) / (|u - z| |T(z)|)``, with T the Chebyshev polynomial of degree P on the block:
6.4e-17 for the two nearest poles, where the block is at the key, and less elsewhere. Beyond 8 bandwidths from the key
the kernel is a series of exponentials, of which the derivatives say 1e-20 of the kernel. So all bounds are proven, in
exact arithmetic; `tests/distribution/test_smoothness.py` has them with 40 digits. What rounding adds is measured.

Sums are used where they are so large that these bounds are below their rounding: a Gaussian one from `least_of_window`
on, all others from 1/32 of the largest at a node on; other queries go down the tree. The weights of the bucket in which
a quantile is found, key by key, have to be what is interpolated, or the query goes down the tree as well.

Keys near the end of a window, or near a kink, are few where blocks are narrow, and each query visits them itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, log2, sqrt

import numpy as np

from kernpool.algorithms.radius import radius
from kernpool.kernels import Kernel
from kernpool.kernels.forms import Gaussian, NearlyExponential, Polynomial

NODES_OF_GAUSSIAN, NODES_OF_LOGISTIC = 20, 16
NODES_OF_COSINE = 10
COMPACT_WIDTH = 0.25  # bandwidths, of the widest block; where keys are many they are narrower
SPARE_BITS = 10.0  # sums are used down to 2**-10 of the mean weight of a key, some four bandwidths away from all
LOST_BITS = 55.0  # what keys out of reach weigh together is below 2**-55 of any sum that is used


@dataclass(frozen=True)
class Smoothness:
    """How a kernel is interpolated.

    Parameters
    ----------
    nodes : int
        Per block.
    width : float
        Of the widest block, in bandwidths.
    edge, kink : bool
        Whether the kernel is not smooth at the end of its window, and at zero.
    least_of_window : float
        A sum below this share of the weight of the keys in reach is not used: the interpolant is within 2e-21 of each.
    """

    nodes: int
    width: float
    edge: bool = False
    kink: bool = False
    least_of_window: float = 0.0

    def width_of(self, density: float, h: float) -> float:
        """Return the width of blocks in bandwidths, where queries have this density per unit of length.

        Sums at nodes cost ``2 h nodes`` keys' worth per block, keys that each query visits itself ``(2 + kink) width``.
        """
        if not self.edge:
            return self.width
        balance = sqrt(2.0 * self.nodes / ((2.0 + self.kink) * max(density * h, 1e-300)))
        return min(self.width, balance)


def smoothness_of(kernel: Kernel) -> Smoothness | None:
    """Return how a built-in kernel is interpolated, None if it is not."""
    form = kernel.form
    if isinstance(form, Gaussian):
        return Smoothness(NODES_OF_GAUSSIAN, 1.0, least_of_window=2.0**-17)
    if isinstance(form, NearlyExponential):
        return Smoothness(NODES_OF_LOGISTIC, 1.0)
    if isinstance(form, Polynomial):
        return Smoothness(1 + form.inner * form.outer, COMPACT_WIDTH, edge=True, kink=form.inner % 2 == 1)
    if kernel.name == "cosine":
        return Smoothness(NODES_OF_COSINE, COMPACT_WIDTH, edge=True)
    return None


def least_sum(kernel: Kernel, keys: int, total: float) -> float:
    """Return the least sum that is used, beside `total` of all keys; any sum, for compact kernels."""
    return 0.0 if kernel.is_compact else 2.0 ** -(log2(keys) + SPARE_BITS) * total


def reach_of(kernel: Kernel, keys: int) -> float:
    """Return how far keys count, in bandwidths, where sums are as large as `least_sum`."""
    if kernel.is_compact:
        return 1.0
    share = 2.0 ** -(log2(keys) + SPARE_BITS + LOST_BITS)
    found = float(radius(kernel, np.zeros(()), np.array(share)))
    return found if found > 0 else inf
