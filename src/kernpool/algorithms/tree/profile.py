"""The similarity of a problem, as the loops of the tree want it."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kernpool.algorithms.loops.tiles import BOXCAR, CODES, LOG2_E
from kernpool.algorithms.tree.loops.boxes import EUCLIDEAN, MAXIMUM, TAXICAB
from kernpool.core.problem import Problem
from kernpool.kernels.forms import Exponential, Flat, Gaussian, power_of_square

Array = NDArray[np.float64]

MOST_COLUMNS = 3  # of fused loops
FUSED_POWERS = (1, 2, 3)  # of 1 - u**2


class Profile(NamedTuple):
    """The similarity, for compiled code.

    Parameters
    ----------
    bandwidth, scale : ndarray of shape (d,)
        Bandwidths and their reciprocals.
    factor : ndarray of shape (d,)
        What turns a difference into that of the fused loops: a weight is 2**-s (Gaussian), 2**-sqrt(s) (Laplace) or a
        power of 1 - s, with s the sum of its squares.
    code : int
        Kernel, as in `tiles.CODES`.
    infinite, product : bool
        Infinite support; product of profiles.
    norm : int
        Which norm of the difference the kernel decreases with.
    collapses, fused : bool
        Whether the moments of a node can stand for its keys; whether there are fused loops.
    """

    bandwidth: Array
    scale: Array
    factor: Array
    code: int
    infinite: bool
    product: bool
    norm: int
    collapses: bool
    fused: bool


def profile_of(problem: Problem) -> Profile:
    """Translate the similarity of a problem."""
    similarity = problem.similarity
    kernel, form = similarity.kernel, similarity.kernel.form
    bandwidth = np.ascontiguousarray(similarity.bandwidth)
    code, infinite = CODES[kernel.name], not kernel.is_compact
    # For one column and for the Gaussian the compositions agree, and the radial one is the shorter way.
    product = similarity.composition == "product" and bandwidth.size > 1 and not isinstance(form, Gaussian)
    if isinstance(form, Flat):  # a boxcar that is wide enough
        code, infinite, product, bandwidth = BOXCAR, False, False, np.full_like(bandwidth, math.inf)
    norm = EUCLIDEAN if not product else TAXICAB if infinite else MAXIMUM
    power = power_of_square(form)
    collapses = code == BOXCAR or (power == 1 and not product)
    has_loop = isinstance(form, Gaussian | Exponential) or power in FUSED_POWERS
    fused = has_loop and not product and 1 < bandwidth.size <= MOST_COLUMNS
    unit = math.sqrt(0.5 * LOG2_E) if isinstance(form, Gaussian) else LOG2_E if isinstance(form, Exponential) else 1.0
    factor = unit / bandwidth
    return Profile(bandwidth, 1.0 / bandwidth, factor, code, infinite, product, norm, collapses, fused)
