r"""Random draws from a kernel: a place near another one, with the kernel as the density of their difference.

With d columns the radius of a draw from a radial kernel has a density in proportion to :math:`r^{d-1} K(r)`, and its
direction is uniform; of a product each column is drawn by itself, with d = 1. All draws are exact:

============================== ================================================================================
kernel                         radius
============================== ================================================================================
gaussian                       of a normal vector
``(1 - u**inner)**outer``      ``B**(1 / inner)``, B a beta variable of ``d / inner`` and ``outer + 1``
laplace                        a gamma variable of shape d
logistic                       a gamma variable, kept with the probability ``(1 + exp(-r))**-2``
others of compact support      from steps above the profile, kept with the probability that is left of the step
============================== ================================================================================

Steps, since a profile does not increase (Devroye, "Non-Uniform Random Variate Generation", Springer (1986), section
II.3): a draw from the step function is a draw from the kernel once it is kept with the ratio of the two.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from kernpool.kernels import Kernel
from kernpool.kernels.forms import Exponential, Flat, Gaussian, NearlyExponential, Polynomial

Array = NDArray[np.float64]
Codes = NDArray[np.int64]
Propose = Callable[[int], tuple[Array, Array]]

STEPS = 256  # of a smooth profile they keep 99 draws of 100


def kernel_draws(kernel: Kernel, composition: str, shape: tuple[int, int], random: Generator) -> Array:
    """Draw differences, in bandwidths, from the density that a kernel is proportional to.

    Parameters
    ----------
    kernel : Kernel
        Any of compact support, or built in.
    composition : {"radial", "product"}
        How columns combine.
    shape : tuple of int
        How many, and of how many columns.
    random : Generator
        What draws.

    Returns
    -------
    ndarray of this shape
        Zeros from the constant kernel, under which a place near another one is any place: it says nothing of it.

    Raises
    ------
    ValueError
        If the kernel is one of your own that never ends: where its tail lies is not known.

    Examples
    --------
    >>> import numpy as np
    >>> from kernpool import get_kernel
    >>> draws = kernel_draws(get_kernel("epanechnikov"), "radial", (20_000, 1), np.random.default_rng(0))
    >>> round(float(np.var(draws)), 2), bool(np.abs(draws).max() < 1)
    (0.2, True)
    """
    count, columns = shape
    if isinstance(kernel.form, Flat):
        return np.zeros(shape)
    if isinstance(kernel.form, Gaussian):
        return random.standard_normal(shape)
    if composition == "product" or columns == 1:
        radius = _radii(kernel, count * columns, 1, random).reshape(shape)
        return np.where(random.random(shape) < 0.5, -radius, radius)
    direction = random.standard_normal(shape)
    direction /= np.linalg.norm(direction, axis=1, keepdims=True)
    return _radii(kernel, count, columns, random)[:, None] * direction


def level_draws(table: Array, code: Codes, random: Generator) -> Codes:
    """Draw a level for each row, with the probabilities that its row of a table is proportional to.

    Parameters
    ----------
    table : ndarray of shape (levels, levels)
        Factors, as of `CategoricalKernel.table`; rows are of the levels that rows have.
    code : ndarray of int64, shape (m,)
        These.
    random : Generator
        What draws.

    Returns
    -------
    ndarray of int64, shape (m,)
        Level numbers.
    """
    uniform, drawn = random.random(len(code)), np.empty(len(code), dtype=np.int64)
    for level in np.unique(code):
        rows = code == level
        sums = np.cumsum(table[level])
        # To the right of equal sums, so that a level of probability zero is never drawn.
        drawn[rows] = np.searchsorted(sums / sums[-1], uniform[rows], side="right")
    return drawn


def _radii(kernel: Kernel, count: int, columns: int, random: Generator) -> Array:
    """Draw from the density ``r**(columns - 1) K(r)``."""
    match kernel.form:
        case Polynomial(inner, outer):
            return np.asarray(random.beta(columns / inner, outer + 1.0, count) ** (1.0 / inner))
        case Exponential():
            return random.gamma(columns, size=count)
        case NearlyExponential():

            def nearly(missing: int) -> tuple[Array, Array]:
                radius = random.gamma(columns, size=missing)
                return radius, np.exp(kernel.log_profile(radius) + radius)

            return _kept(nearly, count, random)
    if not kernel.is_compact:
        raise ValueError(
            f"kernel {kernel.name!r} never ends, and nothing says how to draw from its tail, which method='rlcp' "
            "needs; give make_kernel a support=, fit with a built-in kernel, or use method='split' or 'localized'"
        )
    return _kept(_below_steps(kernel, columns, random), count, random)


def _below_steps(kernel: Kernel, columns: int, random: Generator) -> Propose:
    """Return proposals from a step function above the profile, and what is left of the step at each."""
    edge = np.linspace(0.0, kernel.support, STEPS + 1)
    height, inner = np.asarray(kernel.profile(edge[:-1])), edge[:-1] ** columns
    volume = edge[1:] ** columns - inner
    sums = np.cumsum(height * volume)

    def propose(missing: int) -> tuple[Array, Array]:
        step = np.searchsorted(sums / sums[-1], random.random(missing), side="right")
        radius = (inner[step] + random.random(missing) * volume[step]) ** (1.0 / columns)
        return radius, kernel.profile(radius) / height[step]

    return propose


def _kept(propose: Propose, count: int, random: Generator) -> Array:
    """Propose until so many are kept, each with its own probability."""
    parts, missing = list[Array](), count
    while missing:
        radius, probability = propose(missing)
        parts.append(radius[random.random(missing) < probability])
        missing -= len(parts[-1])
    return np.concatenate(parts) if parts else np.empty(0)
