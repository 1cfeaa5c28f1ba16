r"""Simultaneous bands: intervals that cover a whole curve, by the length of the path that its shares run along.

The error of a linear estimate, in standard errors, is :math:`\langle l(q) / \lVert l(q) \rVert, z \rangle` with a
standard normal z. As q moves, the unit vector runs along a path on the sphere, and the largest error anywhere exceeds c
with probability (Sun and Loader [1]_)

.. math:: \frac{\kappa}{\pi} e^{-c^2/2} + 2 P (1 - \Phi(c)), \qquad
          \kappa = \int \Big\lVert \frac{d}{dq} \frac{l(q)}{\lVert l(q) \rVert} \Big\rVert dq

with the length of the path and its number of pieces P, one unless there are empty windows on the way. On a grid the
length is a sum of angles between neighbours, whose inner products are pooling states too: for the Gaussian

.. math:: K\Big(\frac{q - x}{h}\Big) K\Big(\frac{r - x}{h'}\Big)
          = \exp\Big(\!-\frac{(q - r)^2}{2 (h^2 + h'^2)}\Big)\, K\Big(\frac{c - x}{g}\Big), \qquad
          g^{-2} = h^{-2} + h'^{-2},\quad c = g^2 (q h^{-2} + r h'^{-2}).

For other kernels neighbours are compared key by key. The standard errors are estimated, so that at each place
Student's quantile takes the place of c, at the same tail.

References
----------
.. [1] J. Sun and C. R. Loader, "Simultaneous confidence bands for linear regression and smoothing", Annals of
   Statistics 22 (1994), 1328-1345.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from kernpool.core.similarity import KernelSimilarity
from kernpool.inference.corrected import Estimate, estimate
from kernpool.inference.intervals import Interval, around, check_level, check_method
from kernpool.inference.quadratic_forms import Shares, Summed, moment_form, product_problem, squared_norm
from kernpool.inference.residuals import Training
from kernpool.inference.smoother import Places, Smoother
from kernpool.inference.standard_errors import check_variance, errors_of
from kernpool.kernels import Kernel, Term
from kernpool.kernels.forms import Gaussian

Array = NDArray[np.float64]

PER_BANDWIDTH, FEWEST, MOST = 8, 401, 200_001  # places of the grid
PAIRS = 1 << 21  # in one table


def band(
    smoother: Smoother,
    training: Training,
    places: Places,
    *,
    level: float = 0.95,
    method: str = "robust",
    variance: str = "local",
    column: int | None = None,
) -> Interval:
    """Find a band that covers a curve, or its slope, between the first and the last of some places.

    Parameters
    ----------
    smoother, training, places, method, variance, column
        As of `interval`, with a single numeric column.
    level : float, default=0.95
        Probability that the whole curve lies in the band.

    Returns
    -------
    Interval
        With `critical`.

    Raises
    ------
    ValueError
        If there are several numeric columns, places of several levels or too many bandwidths apart, or the kernel has
        an edge.
    """
    check_level(level)
    check_method(method)
    check_variance(variance)
    _check_curve(smoother, places)
    found = estimate(smoother, places, method, column)
    errors = errors_of(smoother, training, places, found, variance)
    kappa, pieces = path_length(smoother, _grid(smoother, places), method, column)
    return around(smoother, found, errors, level, method, critical_value(kappa, level, pieces))


def critical_value(kappa: float, level: float, pieces: int = 1) -> float:
    """Return how many standard errors a band is wide, on either side.

    Parameters
    ----------
    kappa : float
        Length of the path.
    level : float
        Of the band.
    pieces : int, default=1
        Of the path.

    Returns
    -------
    float
        At least the quantile of a single interval.

    Examples
    --------
    >>> round(critical_value(0.0, 0.95), 6), round(critical_value(15.355769972827396, 0.95), 6)
    (1.959964, 3.043171)
    """
    from scipy.optimize import brentq
    from scipy.special import ndtr

    def excess(c: float) -> float:
        return kappa / math.pi * math.exp(-0.5 * c * c) + 2.0 * pieces * float(ndtr(-c)) - (1.0 - level)

    return float(brentq(excess, 0.0, 40.0, xtol=1e-14, rtol=1e-15))


def path_length(
    smoother: Smoother, grid: Places, method: str = "robust", column: int | None = None
) -> tuple[float, int]:
    """Return the length of the path of normalised shares along a grid, and of how many pieces it is.

    Parameters
    ----------
    smoother : Smoother
        The fit.
    grid : Places
        In order; eight to a bandwidth give three digits.
    method, column
        As of `estimate`.

    Returns
    -------
    kappa : float
        Zero for a single place.
    pieces : int
        Runs of places without an empty window.
    """
    found = estimate(smoother, grid, method, column)
    squared = squared_norm(found.terms, smoother.sums)
    known = squared > 0
    pieces = int(known[0]) + int(np.count_nonzero(known[1:] & ~known[:-1]))
    if len(squared) < 2:
        return 0.0, max(pieces, 1)
    gaussian = isinstance(smoother.recipe.kernel.form, Gaussian)
    near = _by_centers(found, smoother.sums) if gaussian else _by_tables(found)
    with np.errstate(divide="ignore", invalid="ignore"):  # a norm may underflow in a wide gap between rows
        cosine = near / np.sqrt(squared[:-1] * squared[1:])
    angle = np.arccos(np.clip(cosine[known[:-1] & known[1:]], -1.0, 1.0))
    return float(np.sum(angle)), max(pieces, 1)


def _by_centers(found: Estimate, sums: Summed) -> Array:
    """Return inner products of the shares of neighbouring places, of a Gaussian, from states between them."""
    total = np.zeros(len(found.center) - 1)
    for a, one in found.terms:
        for b, other in found.terms:
            total += a * b * _neighbours(one, other, sums)
    return total


def _neighbours(one: Shares, other: Shares, sums: Summed) -> Array:
    """Return those of one fit at each place and another at the next."""
    q, r = one.problem.query[:-1], other.problem.query[1:]
    h, g = one.problem.similarity.bandwidth, other.problem.similarity.bandwidth
    ratio = other.factor / one.factor
    width, other_width = 1.0 / math.sqrt(1.0 + ratio**-2), 1.0 / math.sqrt(1.0 + ratio**2)
    center = q * width**2 + r * other_width**2
    first = Shares(
        one.problem.block(slice(0, -1)),
        one.factor,
        one.log_mass[:-1],
        one.base[:-1] + np.sum(one.tilt[:-1] * ((center - q) / h)[:, : one.tilt.shape[1]], axis=1),
        one.tilt[:-1],
    )
    second = Shares(
        other.problem.block(slice(1, None)),
        other.factor,
        other.log_mass[1:],
        other.base[1:] + np.sum(other.tilt[1:] * ((center - r) / g)[:, : other.tilt.shape[1]], axis=1),
        other.tilt[1:],
    )
    between = product_problem(first, second, Term(1.0, one.problem.similarity.kernel, width), None)
    between = replace(
        between, query=center, similarity=KernelSimilarity(between.similarity.kernel, h * width, "radial")
    )
    state = sums(between)
    log_factor = -0.5 * np.sum(((q - r) / np.hypot(h, g)) ** 2, axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        unit = np.exp(state.log_denominator + log_factor - first.log_mass - second.log_mass)
        return np.asarray(unit * moment_form(state, between.layout, (first, width), (second, other_width)))


def _by_tables(found: Estimate) -> Array:
    """Return the same for any kernel, key by key, a few places at a time."""
    problem = found.terms[0][1].problem
    weight = np.ones(len(problem.key)) if problem.key_weight is None else problem.key_weight * problem.weight_unit
    (kept,) = np.nonzero(weight > 0)
    step, last = max(1, PAIRS // len(kept)), len(found.center) - 1
    parts = []
    for start in range(0, last, step):
        rows = slice(start, min(start + step, last) + 1)
        share = np.sum([factor * _table(shares, rows, kept, weight[kept]) for factor, shares in found.terms], axis=0)
        parts.append(np.sum(share[:-1] * share[1:] / weight[kept], axis=1))
    return np.concatenate(parts)


def _table(shares: Shares, rows: slice, kept: NDArray[np.intp], weight: Array) -> Array:
    part = shares.problem.block(rows, kept)
    logits = part.similarity.logits(part.query, part.key)
    if part.factors is not None:
        logits = np.asarray(sum(part.factors.logarithms(), start=logits))
    with np.errstate(invalid="ignore", over="ignore"):
        alpha = weight * np.exp(logits - shares.log_mass[rows, None])
    tilted = np.repeat(shares.base[rows, None], len(kept), axis=1)
    for a in range(shares.tilt.shape[1]):
        tilted += shares.tilt[rows, a, None] * part.similarity.offset(part.query, part.key, a)
    return np.asarray(alpha * tilted)


def _grid(smoother: Smoother, places: Places) -> Places:
    """Return a grid between the first and the last place, of the same levels."""
    low, high = float(places.query.min()), float(places.query.max())
    bandwidth = float(np.ravel(smoother.recipe.bandwidth)[0])
    number = max(math.ceil(PER_BANDWIDTH * (high - low) / bandwidth) + 1, FEWEST) if high > low else 1
    code = None if places.code is None else np.repeat(places.code[:1], number, axis=0)
    return Places(np.linspace(low, high, number)[:, None], code)


def _check_curve(smoother: Smoother, places: Places) -> None:
    """Refuse what is no curve, or has shares that jump."""
    if smoother.columns != 1:
        raise ValueError(
            f"simultaneous bands are for curves, of one numeric column, and there are {smoother.columns}; use "
            "simultaneous=False, or a model of one column"
        )
    if places.code is not None and len(places.code) and np.any(places.code != places.code[0]):
        raise ValueError(
            "a simultaneous band is for one curve, and the places have several combinations of levels; ask for one "
            "combination at a time, at level=1 - (1 - level) / combinations to cover all of them"
        )
    kernel = smoother.recipe.kernel
    if _has_edge(kernel):
        raise ValueError(
            f"the fit jumps wherever a row enters a window of the kernel {kernel.name!r}, and no band of this kind "
            "holds; use a kernel without an edge, such as 'epanechnikov', or simultaneous=False"
        )
    extent = float(np.ptp(places.query)) / float(np.ravel(smoother.recipe.bandwidth)[0])
    if not PER_BANDWIDTH * extent <= MOST:
        raise ValueError(
            f"places are up to {extent:.6g} bandwidths apart, which is no single curve to draw: leave out those far "
            "from the training rows, or use simultaneous=False"
        )


def _has_edge(kernel: Kernel) -> bool:
    """Whether a kernel ends above zero."""
    return kernel.is_compact and bool(
        kernel.profile(np.array([np.nextafter(kernel.support, 0.0)]))[0] > 1e-6 * kernel.profile(np.zeros(1))[0]
    )
