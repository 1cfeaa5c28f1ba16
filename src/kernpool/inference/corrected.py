r"""Centers of intervals: the fit itself, or one whose bias of second order has been taken off.

A local linear fit is off by :math:`h^2 C m''`, with another C at the ends and the same at any bandwidth. So

.. math:: \tilde m = \frac{c^2 \hat m_h - \hat m_{ch}}{c^2 - 1} = 2 \hat m_h - \hat m_{\sqrt 2 h}

has none of it [1]_ [2]_. Its shares are :math:`2 l_h - l_{\sqrt 2 h}`, and the width of an interval is that of the
corrected fit, correction included: this is what makes it robust [3]_. Smoothings of categorical columns, whose bias is
linear in them, are doubled along with the squared bandwidth. Models of degree 0 are corrected by the same local linear
fits: the bias of a local constant fit at the ends is of first order, which no multiple of itself takes away.

The local quadratic fit at the same bandwidth has none of it either. It is the bias-corrected estimate of R's nprobust
with ``rho = 1`` [3]_, in up to three columns: as good, and wider than the above.

A ridge stays as it is, in rows, at both bandwidths. What bias it has is not corrected, but for its part in h squared.

References
----------
.. [1] W. R. Schucany and J. P. Sommers, "Improvement of kernel type density estimators", JASA 72 (1977), 420-423.
.. [2] M. D. Cattaneo, R. K. Crump and M. Jansson, "Generalized jackknife estimators of weighted average derivatives",
   JASA 108 (2013), 1243-1256.
.. [3] S. Calonico, M. D. Cattaneo and M. H. Farrell, "On the effect of bias estimation on coverage accuracy in
   nonparametric inference", JASA 113 (2018), 767-779.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kernpool.core.local_fit import warn_of_curvature
from kernpool.core.moments import MOST_COLUMNS
from kernpool.inference.quadratic_forms import Shares
from kernpool.inference.slopes import constant_slopes, plane_slopes, value_shares
from kernpool.inference.smoother import Places, Smoother

Array = NDArray[np.float64]

METHODS = ("robust", "quadratic", "naive", "undersmoothed")
WIDER = math.sqrt(2.0)
RATE = -1 / 20  # undersmoothed bandwidths are of the order n**(-1/4) where those found are of n**(-1/5)


@dataclass(frozen=True, eq=False)
class Estimate:
    """An estimate at m places that is linear in the outputs.

    Parameters
    ----------
    center : ndarray of shape (m, c)
        Its values; NaN where a window is empty.
    terms : tuple of (float, Shares)
        Shares of the outputs in it: a linear combination of those of local fits.
    plain : ndarray of shape (m, c)
        What it would be without the correction.
    rank : ndarray of int, shape (m,)
        Of the design of the plain fit.
    column : int or None
        Whose slope it is, if any.
    """

    center: Array
    terms: tuple[tuple[float, Shares], ...]
    plain: Array
    rank: NDArray[np.intp]
    column: int | None = None


def estimate(smoother: Smoother, places: Places, method: str = "robust", column: int | None = None) -> Estimate:
    """Estimate the curve or its slope at some places.

    Parameters
    ----------
    smoother : Smoother
        The fit.
    places : Places
        Where.
    method : {"robust", "quadratic", "naive", "undersmoothed"}, default="robust"
        Corrected; a local quadratic fit, without ridge; the fit as it is; or a local linear fit at the bandwidth times
        :math:`n^{-1/20}`.
    column : int, optional
        Numeric column whose slope is estimated; by default the value is.

    Returns
    -------
    Estimate
        One pass over the keys, two for ``"robust"`` and ``"quadratic"``.

    Raises
    ------
    ValueError
        If the method is ``"quadratic"`` and there are more than three numeric columns.

    Warns
    -----
    RankDeficiencyWarning
        If rows around a place do not determine a quadratic, so that no bias is taken off there.
    """
    if method == "naive":
        return _plain(smoother, places, column)
    planes = smoother.of_degree(1)
    if method == "undersmoothed":
        return _plain(planes.widened(float(smoother.weight.sum()) ** RATE), places, column)
    if method == "quadratic":
        return _quadratic(smoother, planes, places, column)
    narrow, wide = _plain(planes, places, column), _plain(planes.widened(WIDER), places, column)
    terms = ((2.0, narrow.terms[0][1]), (-1.0, wide.terms[0][1]))
    return Estimate(2.0 * narrow.center - wide.center, terms, narrow.center, narrow.rank, column)


def _quadratic(smoother: Smoother, planes: Smoother, places: Places, column: int | None) -> Estimate:
    if smoother.columns > MOST_COLUMNS:
        raise ValueError(
            f"method='quadratic' is for one to {MOST_COLUMNS} numeric columns, got {smoother.columns}; use "
            "method='robust', which takes the same bias off"
        )
    plain, curved = _plain(planes, places, column), _plain(smoother.of_degree(2), places, column)
    share = curved.terms[0][1]
    if not column:  # once for all columns
        warn_of_curvature(curved.rank, np.isfinite(share.log_mass), share.tilt.shape[1])
    return Estimate(curved.center, curved.terms, plain.center, plain.rank, column)


def _plain(smoother: Smoother, places: Places, column: int | None) -> Estimate:
    if column is None or smoother.recipe.degree:
        fitted = smoother.fit(places)
        rank = fitted.fit.rank
        if column is None:
            center, share = fitted.fit.intercept, value_shares(fitted)
        else:
            slopes, of_columns = plane_slopes(fitted)
            center, share = slopes[:, column], of_columns[column]
    else:
        slopes, of_columns = constant_slopes(smoother, places)
        center, share = slopes[:, column], of_columns[column]
        rank = np.full(len(center), smoother.columns)
    center = np.where(np.isfinite(share.log_mass)[:, None], center, np.nan)
    return Estimate(center, ((1.0, share),), center, rank, column)
