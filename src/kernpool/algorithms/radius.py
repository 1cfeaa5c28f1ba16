"""How far keys reach: beyond which distance they may be left out. Needs no compiler, so that the cost model can ask."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from kernpool.kernels import Kernel
from kernpool.kernels.forms import Exponential, Gaussian, NearlyExponential

Array = NDArray[np.float64]

ROUNDING = 1.0 + 1e-12


def radius(kernel: Kernel, nearest: Array, share: Array) -> Array:
    r"""How far the keys reach that have to be summed, in bandwidths.

    Parameters
    ----------
    kernel : Kernel
        A built-in one.
    nearest : ndarray
        Distance of the nearest key, in bandwidths.
    share : ndarray
        What a weight may be beside that of the nearest key and be left out: ``tol * w_nearest / W``.

    Returns
    -------
    ndarray
        `r` such that :math:`K(u) \le share \cdot K(nearest)` for all :math:`u > r`.
    """
    if kernel.is_compact:
        return np.full(nearest.shape, ROUNDING)
    with np.errstate(divide="ignore"):
        decades: Array = -np.log(share)
    if isinstance(kernel.form, Gaussian):
        return np.asarray(ROUNDING * np.sqrt(nearest**2 + 2.0 * decades))
    if isinstance(kernel.form, Exponential):
        return np.asarray(ROUNDING * (nearest + decades))
    if isinstance(kernel.form, NearlyExponential):
        return np.asarray(ROUNDING * (nearest + decades - np.log(kernel.form.least)))
    return np.full(nearest.shape, np.inf)
