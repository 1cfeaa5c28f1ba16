r"""The tube formula: how wide a band around a curve is, by the length of the path that its shares run along.

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
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kernpool.core.moments import Layout
from kernpool.core.state import PoolState
from kernpool.inference.corrected import Estimate, estimate
from kernpool.inference.quadratic_forms import moment_form, product_problem, squared_norm
from kernpool.inference.remembered import RememberedSums
from kernpool.inference.share_tables import ShareTables
from kernpool.inference.shares import Shares
from kernpool.inference.smoother import Places, Smoother
from kernpool.kernels import Kernel, products
from kernpool.kernels.forms import Gaussian

Array = NDArray[np.float64]

PER_BANDWIDTH, FEWEST, MOST = 8, 401, 200_001  # places of the grid


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
    sums = RememberedSums(smoother.sums, found.known)
    if len(found.center) < 2:
        near = np.empty(0)
    elif isinstance(smoother.recipe.kernel.form, Gaussian):
        near = _by_centers(found, sums)
    else:
        near = _by_tables(found)
    squared = squared_norm(found.terms, sums)
    known = squared > 0
    pieces = int(known[0]) + int(np.count_nonzero(known[1:] & ~known[:-1]))
    with np.errstate(divide="ignore", invalid="ignore"):
        cosine = near / np.sqrt(squared[:-1] * squared[1:])
    angle = np.arccos(np.clip(cosine[known[:-1] & known[1:]], -1.0, 1.0))
    return float(np.sum(angle)), max(pieces, 1)


def _by_centers(found: Estimate, sums: RememberedSums) -> Array:
    """Return inner products of the shares of neighbouring places, of a Gaussian, from states between them.

    Those of two fits have the kernel that the norms have, so that both are summed by one pass.
    """
    total, rows = np.zeros(len(found.center) - 1), np.arange(len(found.center))
    for i, (a, one) in enumerate(found.terms):
        for b, other in found.terms[: i + 1]:
            narrow, wide = (one, other) if one.factor <= other.factor else (other, one)
            (term,) = products(one.problem.similarity.kernel, wide.factor / narrow.factor)
            at_places = product_problem(narrow, wide, term, None)
            between = [_Between.of(narrow, wide)] + ([_Between.of(wide, narrow)] if one is not other else [])
            query, of = [each.query for each in between], [rows[:-1]] * len(between)
            if sums.known(at_places) is None:
                query, of = [*query, at_places.query], [*of, rows]
            state = sums.made(replace(at_places.block(np.concatenate(of)), query=np.concatenate(query)))
            for number, each in enumerate(between):
                total += a * b * each.products(state.rows(rows[:-1] + number * len(total)), at_places.layout)
            if len(of) > len(between):
                sums.add(at_places, state.rows(rows + len(between) * len(total)))
    return total


class _Between(NamedTuple):
    """The shares of one fit at each place and of another at the next, as polynomials of offsets from a common center.

    Beside them stand the bandwidth of their product in units of theirs, and the logarithm of what it is multiplied by.
    """

    query: Array
    first: Shares
    second: Shares
    width: float
    other_width: float
    log_factor: Array

    @classmethod
    def of(cls, one: Shares, other: Shares) -> _Between:
        q, r = one.problem.query[:-1], other.problem.query[1:]
        h, g = one.problem.similarity.bandwidth, other.problem.similarity.bandwidth
        ratio = other.factor / one.factor
        width, other_width = 1.0 / math.sqrt(1.0 + ratio**-2), 1.0 / math.sqrt(1.0 + ratio**2)
        center = q * width**2 + r * other_width**2
        first, second = _around(one, slice(0, -1), center - q), _around(other, slice(1, None), center - r)
        return cls(center, first, second, width, other_width, -0.5 * np.sum(((q - r) / np.hypot(h, g)) ** 2, axis=1))

    def products(self, state: PoolState, layout: Layout) -> Array:
        """Return the inner products of neighbours, by the state at the centers."""
        with np.errstate(divide="ignore", invalid="ignore"):
            unit = np.exp(state.log_denominator + self.log_factor - self.first.log_mass - self.second.log_mass)
            form = moment_form(state, layout, (self.first, self.width), (self.second, self.other_width))
            return np.asarray(unit * form)


def _around(shares: Shares, which: slice, moved: Array) -> Shares:
    """Return shares at some places in one column, as polynomials of offsets from other places."""
    delta = (moved / shares.problem.similarity.bandwidth)[:, 0]
    base, tilt = shares.base[which], shares.tilt[which].copy()
    if tilt.shape[1]:
        base = base + tilt[:, 0] * delta
    if tilt.shape[1] == 2:
        base = base + tilt[:, 1] * delta**2
        tilt[:, 0] += 2.0 * tilt[:, 1] * delta
    return Shares(shares.problem.block(which), shares.factor, shares.log_mass[which], base, tilt)


def _by_tables(found: Estimate) -> Array:
    """Return the same for any kernel, key by key, a few places at a time."""
    tables, last, parts = ShareTables.of(found.terms), len(found.center) - 1, []
    for start in range(0, last, tables.places):
        share = tables.rows(slice(start, min(start + tables.places, last) + 1))
        parts.append(np.sum(share[:-1] * share[1:] / tables.weight, axis=1))
    return np.concatenate(parts)


def curve_grid(smoother: Smoother, places: Places) -> Places:
    """Return a grid between the first and the last place, of the same levels."""
    low, high = float(places.query.min()), float(places.query.max())
    bandwidth = float(np.ravel(smoother.recipe.bandwidth)[0])
    number = max(math.ceil(PER_BANDWIDTH * (high - low) / bandwidth) + 1, FEWEST) if high > low else 1
    code = None if places.code is None else np.repeat(places.code[:1], number, axis=0)
    return Places(np.linspace(low, high, number)[:, None], code)


def why_no_tube(smoother: Smoother, places: Places) -> str | None:
    """Say why there is no curve between some places, or why the shares along it jump; None if all is well."""
    if smoother.columns != 1:
        return f"the tube formula is for curves, of one numeric column, and there are {smoother.columns}"
    if places.code is not None and len(places.code) and np.any(places.code != places.code[0]):
        return "the tube formula is for one curve, and the places have several combinations of levels"
    kernel = smoother.recipe.kernel
    if _has_edge(kernel):
        return (
            f"the fit jumps wherever a row enters a window of the kernel {kernel.name!r}, and the path of the tube "
            "formula has no length"
        )
    extent = float(np.ptp(places.query)) / float(np.ravel(smoother.recipe.bandwidth)[0])
    if not PER_BANDWIDTH * extent <= MOST:
        return f"places are up to {extent:.6g} bandwidths apart, which is no single curve to draw"
    return None


def _has_edge(kernel: Kernel) -> bool:
    """Whether a kernel ends above zero."""
    return kernel.is_compact and bool(
        kernel.profile(np.array([np.nextafter(kernel.support, 0.0)]))[0] > 1e-6 * kernel.profile(np.zeros(1))[0]
    )
