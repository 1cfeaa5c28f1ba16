r"""Local quadratic fits: what `local_fit.py` does with planes, with products of two offsets as further regressors.

Around each query the values are fitted by :math:`\beta_0 + \beta \cdot t + \sum_{a \le b} \gamma_{ab} t_a t_b`. Written
about the weighted mean of the keys, with :math:`u = t - \bar t` and :math:`q = (u_a u_b)_{a \le b}`, it is a regression
on `u` and on what `u` leaves of `q`: with central moments :math:`C_{uu}, C_{uq}, C_{qq}` and covariances :math:`s_u,
s_q` with the values

.. math:: \gamma = S^{-1} (s_q - C_{qu} C_{uu}^{-1} s_u), \qquad S = C_{qq} - C_{qu} C_{uu}^{-1} C_{uq}, \qquad
          \beta_u = C_{uu}^{-1} (s_u - C_{uq} \gamma).

So the rank is decided twice, each time by `bounded_inverse`: what the keys of a window do not tell of a curvature makes
the fit linear in that direction, and what they do not tell of a slope makes it constant. Rejected: one decision about
all regressors together. Its shortest solution splits a slope between `t` and `t^2` wherever the keys are far away or
too few, which is neither linear nor constant.

The spread of `u` beside the distance of the keys counts to the fourth power in S. Half of the digits are gone, and the
fit turns linear, where the keys are within about a hundredth of their distance from the query: a Gaussian ten
bandwidths from the nearest key.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kernpool.core.designs import find_lost, invert
from kernpool.core.moments import Layout, monomials

Array = NDArray[np.float64]


class Quadratics(NamedTuple):
    """Fits of m queries; names and units as of `LocalFit`."""

    intercept: Array
    slope: Array
    base: Array
    tilt: Array
    rank: NDArray[np.intp]
    lost: NDArray[np.int8]


def fit_quadratics(mean: Array, layout: Layout) -> Quadratics:
    """Fit quadratics to the weighted means of values, products of offsets, and both.

    Parameters
    ----------
    mean : ndarray of shape (m, width)
        Numerators over denominators; zeros for empty windows.
    layout : Layout
        Of degree 2.

    Returns
    -------
    Quadratics
        What the moments tell.
    """
    m, c, d = len(mean), layout.values, layout.columns
    (upper, lower), value, offset = np.triu_indices(d), mean[:, layout.value], mean[:, layout.first]
    unit, unit_of_pair = _units(mean, layout)
    central, told = central_means(mean, layout)
    unit_of_pair[~told] = 1.0
    spread = central[:, layout.second]
    between = table_of(central, layout, (1, 1)) / unit[:, :, None] / unit[:, None, :]
    skew = table_of(central, layout, (1, 2)) / unit[:, :, None] / unit_of_pair[:, None, :]
    middle = np.where(told[:, None], spread / unit_of_pair, 0.0)
    curved = table_of(central, layout, (2, 2)) / unit_of_pair[:, :, None] / unit_of_pair[:, None, :]
    curved -= middle[:, :, None] * middle[:, None, :]
    by_slope, rank = invert(between)
    lost = find_lost(between, by_slope, offset / unit, rank)
    carried = by_slope @ skew
    by_curve, rank_of_curve = invert(curved - skew.transpose(0, 2, 1) @ carried)

    def solved(right: Array, right_of_pair: Array) -> tuple[Array, Array]:
        """Solve for slopes and curvatures of columns of right sides, in units of their regressors."""
        curve = by_curve @ (right_of_pair - carried.transpose(0, 2, 1) @ right)
        return by_slope @ right - carried @ curve, curve

    with_pair = central[:, layout.cross_second].reshape(m, len(upper), c) / unit_of_pair[:, :, None]
    slope, curve = solved(
        central[:, layout.cross].reshape(m, d, c) / unit[:, :, None],
        with_pair - middle[:, :, None] * value[:, None, :],
    )
    # The query, as seen from the mean of the keys.
    at = -offset / unit
    with np.errstate(over="ignore", invalid="ignore"):
        at_pair = np.where(told[:, None], offset[:, upper] * offset[:, lower] / unit_of_pair, 0.0) - middle
    intercept = value + np.einsum("md,mdc->mc", at, slope) + np.einsum("mp,mpc->mc", at_pair, curve)
    share, share_of_pair = (part[:, :, 0] for part in solved(at[:, :, None], at_pair[:, :, None]))
    base = 1.0 + np.sum(at * share, axis=1) + np.sum(at_pair * share_of_pair, axis=1)
    tilt, tilt_of_pair = share / unit, share_of_pair / unit_of_pair
    slope, curve = slope / unit[:, :, None], curve / unit_of_pair[:, :, None]
    # From offsets about the mean of the keys to offsets from the query.
    for i, (a, b) in enumerate(monomials(d, 2)):
        for one, other in ((a, b), (b, a)):
            tilt[:, one] -= offset[:, other] * tilt_of_pair[:, i]
            slope[:, one] -= offset[:, other, None] * curve[:, i]
    return Quadratics(intercept, slope, base, np.hstack([tilt, tilt_of_pair]), rank + rank_of_curve, lost)


def central_means(mean: Array, layout: Layout) -> tuple[Array, NDArray[np.bool_]]:
    """Return means of products of offsets from their mean, and of which queries these are numbers.

    Fourth powers beyond all numbers tell nothing: there, the products that only quadratics have are zero.
    """
    with np.errstate(all="ignore"):
        central = layout.moved(np.ones(len(mean)), mean, -mean[:, layout.first])
        told = np.all(np.isfinite(central) & np.isfinite(mean), axis=1)
    central[~told, layout.third.start :] = 0.0
    return central, told


def _units(mean: Array, layout: Layout) -> tuple[Array, Array]:
    """Return what offsets and products of two are counted in: as large as what their covariances are rounded beside."""
    (upper, lower), second, fourth = np.triu_indices(layout.columns), layout.places(2), layout.places(4)
    square = mean[:, np.array([second[a, a] for a in range(layout.columns)], dtype=np.intp)]
    squares_of_pair = [fourth[a, a, b, b] for a, b in monomials(layout.columns, 2)]
    with np.errstate(over="ignore", invalid="ignore"):
        by_pair = square[:, upper] * square[:, lower]
        by_pair = np.maximum(by_pair, mean[:, np.array(squares_of_pair, dtype=np.intp)])
    return np.sqrt(np.where(square > 0, square, 1.0)), np.sqrt(np.where(by_pair > 0, by_pair, 1.0))


def table_of(central: Array, layout: Layout, orders: tuple[int, int]) -> Array:
    """Return the mean products of all products of so many offsets with others, of shape (m, rows, columns)."""
    places = layout.places(sum(orders))
    rows, columns = (monomials(layout.columns, order) for order in orders)
    place = np.array([[places[tuple(sorted(a + b))] for b in columns] for a in rows], dtype=np.intp)
    return central[:, place.reshape(len(rows), len(columns))]
