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
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kernpool.core.moments import MOST_COLUMNS
from kernpool.core.problem import Problem
from kernpool.core.state import PoolState
from kernpool.inference.shares import Shares
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
    curvature_rank : ndarray of int, shape (m,), or None
        Of the design of a quadratic fit.
    column : int or None
        Whose slope it is, if any.
    known : tuple of (Problem, PoolState)
        The sums that it was made of.
    """

    center: Array
    terms: tuple[tuple[float, Shares], ...]
    plain: Array
    rank: NDArray[np.intp]
    curvature_rank: NDArray[np.intp] | None = None
    column: int | None = None
    known: tuple[tuple[Problem, PoolState], ...] = ()

    @property
    def log_mass(self) -> Array:
        """Logarithm of the least sum of weights of all fits, of shape (m,); -inf where a window is empty."""
        return np.asarray(np.min([share.log_mass for _, share in self.terms], axis=0))


def estimate(smoother: Smoother, places: Places, method: str = "robust", column: int | None = None) -> Estimate:
    """Estimate the curve, or one of its slopes: the first of `estimates`."""
    return estimates(smoother, places, method, [column])[0]


def estimates(
    smoother: Smoother, places: Places, method: str = "robust", columns: Sequence[int | None] = (None,)
) -> list[Estimate]:
    """Estimate the curve, or some of its slopes, at some places.

    Parameters
    ----------
    smoother : Smoother
        The fit.
    places : Places
        Where.
    method : {"robust", "quadratic", "naive", "undersmoothed"}, default="robust"
        Corrected; a local quadratic fit, without ridge; the fit as it is; or a local linear fit at the bandwidth times
        :math:`n^{-1/20}`.
    columns : sequence of int or None, default=(None,)
        Numeric columns whose slopes are estimated; None is the value.

    Returns
    -------
    list of Estimate
        One per column. For all together one pass over the keys, or two for ``"robust"`` and ``"quadratic"``.

    Raises
    ------
    ValueError
        If the method is ``"quadratic"`` and there are more than three numeric columns.
    """
    fits = [(factor, _plain(each, places, columns)) for factor, each in parts_of(smoother, method)]
    found = fits[0][1]
    quadratic = method == "quadratic"
    plain = _plain(smoother.of_degree(1), places, columns) if quadratic else found
    return [
        Estimate(
            np.asarray(sum(factor * each[i].center for factor, each in fits)),
            tuple((factor, each[i].terms[0][1]) for factor, each in fits),
            plain[i].center,
            plain[i].rank,
            found[i].rank if quadratic else None,
            column,
            tuple(pair for _, each in fits for pair in each[i].known),
        )
        for i, column in enumerate(columns)
    ]


def parts_of(smoother: Smoother, method: str) -> list[tuple[float, Smoother]]:
    """Return the fits whose linear combination an estimate is, and their coefficients."""
    if method == "naive":
        return [(1.0, smoother)]
    planes = smoother.of_degree(1)
    if method == "undersmoothed":
        return [(1.0, planes.widened(float(smoother.weight.sum()) ** RATE))]
    if method == "quadratic":
        if smoother.columns > MOST_COLUMNS:
            raise ValueError(
                f"method='quadratic' is for one to {MOST_COLUMNS} numeric columns, got {smoother.columns}; use "
                "method='robust', which takes the same bias off"
            )
        return [(1.0, smoother.of_degree(2))]
    return [(2.0, planes), (-1.0, planes.widened(WIDER))]


def centers(smoother: Smoother, places: Places, method: str, column: int | None) -> Array:
    """Return the centers of `estimate` alone, of shape (m, c), without a word about ranks: for resampled outputs."""
    fits = [(factor, _plain(each, places, [column])[0]) for factor, each in parts_of(smoother, method)]
    return np.asarray(sum(factor * each.center for factor, each in fits))


def _plain(smoother: Smoother, places: Places, columns: Sequence[int | None]) -> list[Estimate]:
    """Return the value or slopes of a fit, from one pass."""
    of_value = None in columns
    known: tuple[tuple[Problem, PoolState], ...] = ()
    if of_value or smoother.recipe.degree:
        fitted = smoother.fit(places)
        rank, known = fitted.fit.rank, ((fitted.problem, fitted.state),)
        slopes, of_columns = (np.empty(0), []) if of_value else plane_slopes(fitted)
    else:
        slopes, of_columns = constant_slopes(smoother, places)
        rank = np.full(len(slopes), smoother.columns)
    found = []
    for column in columns:
        if column is None:
            center, share = fitted.fit.intercept, value_shares(fitted)
        else:
            center, share = slopes[:, column], of_columns[column]
        center = np.where(np.isfinite(share.log_mass)[:, None], center, np.nan)
        found.append(Estimate(center, ((1.0, share),), center, rank, None, column, known))
    return found
