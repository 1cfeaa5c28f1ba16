"""Estimates of a curve and its slopes with their linear weights, plain or with the second-order bias removed.

A local linear fit has the bias h^2 C m'', with another C at the boundary and the same C at any bandwidth. So the
combination::

    (c^2 m_h - m_ch) / (c^2 - 1) = 2 m_h - m_(sqrt(2) h)    with c^2 = 2

is free of it [1]_ [2]_. Its linear weights are ``2 l_h - l_(sqrt(2) h)``, and the width of an interval is that of
the corrected fit, correction included: this is what makes it robust [3]_. Smoothings of categorical columns, whose
bias is linear in them, are doubled along with the squared bandwidth. Models of degree 0 are corrected by the same
local linear fits: the bias of a local constant fit at the boundary is of first order, which no multiple of itself
removes.

The local quadratic fit at the same bandwidth is free of this bias, too. It is the bias-corrected estimate of R's
nprobust with ``rho = 1`` [3]_, for up to three columns: as good, and wider than the above.

A ridge is the same, in rows, at both bandwidths. Its bias is not corrected, except for the part in h squared.

References
----------
.. [1] W. R. Schucany and J. P. Sommers, "Improvement of kernel type density estimators", JASA 72 (1977), 420-423.
.. [2] M. D. Cattaneo, R. K. Crump and M. Jansson, "Generalized jackknife estimators of weighted average
   derivatives", JASA 108 (2013), 1243-1256.
.. [3] S. Calonico, M. D. Cattaneo and M. H. Farrell, "On the effect of bias estimation on coverage accuracy in
   nonparametric inference", JASA 113 (2018), 767-779.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from kernpool._arrays import Array, Flags, Index
from kernpool.core import MOST_COLUMNS, PoolState, Problem, solve, with_ridge
from kernpool.execution import abbreviate
from kernpool.kernels import Gaussian
from kernpool.smoother.linear_smoother import EvaluationPoints, Fitted, Smoother
from kernpool.smoother.quadratic_forms import LinearWeights, SharedSums


def plane_slopes(fitted: Fitted) -> tuple[Array, list[LinearWeights]]:
    r"""Return the slopes of local linear or quadratic fits at each query, and the outputs' linear weights in them.

    Slopes are per unit of each column.

    With the covariance C of the regressors z and the ridge R they are those rows of
    :math:`\alpha_j\, (C + R)^{-1} (z_j - \bar z)` that belong to offsets.

    Parameters
    ----------
    fitted : Fitted
        Local linear or quadratic.

    Returns
    -------
    slopes : ndarray of shape (m, d, c)
        Slopes of the planes.
    shares : list of d LinearWeights
        One per column.
    """
    problem, smoother, state = fitted.problem, fitted.smoother, fitted.state
    widths, layout, mean = problem.similarity.widths(), problem.layout, state.finalize(empty="zero")
    inverse = inverse_designs(problem, state, smoother.recipe.ridge_weight(smoother.columns))
    offset = mean[:, layout.first]
    if layout.degree == 2:
        offset = np.hstack([offset, mean[:, layout.second]])
    shares = [
        LinearWeights(
            problem,
            smoother.factor,
            fitted.state.log_denominator,
            -np.sum(inverse[:, a] * offset, axis=1) / widths[..., a],
            inverse[:, a] / widths[..., a, None],
        )
        for a in range(layout.columns)
    ]
    return fitted.fit.slope / widths[..., None], shares


def constant_slopes(fitted: Fitted) -> tuple[Array, list[LinearWeights]]:
    r"""Return the slopes of local constant fits with a Gaussian kernel, and the outputs' linear weights in them.

    The weights are :math:`\alpha_j (t_j - \bar t) / h`, because the logarithm of the kernel has the slope t/h.

    Parameters
    ----------
    fitted : Fitted
        Local linear, whose sums have the moments of these weights.

    Returns
    -------
    slopes, shares
        As of `plane_slopes`.

    Raises
    ------
    ValueError
        If the kernel is not Gaussian: the slopes of other kernels are not moments of a state.
    """
    kernel = fitted.smoother.recipe.kernel
    if not isinstance(kernel.form, Gaussian):
        raise ValueError(
            f"standard errors of derivatives of a local constant fit need the Gaussian kernel, "
            f"got {abbreviate(kernel.name)}; "
            "use LocalLinearRegressor, whose slopes have standard errors for every kernel"
        )
    widths, layout = fitted.problem.similarity.widths(), fitted.problem.layout
    mean = fitted.state.finalize(empty="zero")
    offset = mean[:, layout.first]
    m, d, c = len(mean), layout.columns, layout.values
    with_value = mean[:, layout.cross].reshape(m, d, c) - offset[:, :, None] * mean[:, None, layout.value]
    at = np.eye(d)
    shares = [
        LinearWeights(
            fitted.problem,
            fitted.smoother.factor,
            fitted.state.log_denominator,
            -offset[:, a] / widths[..., a],
            np.repeat(at[a : a + 1], m, axis=0) / widths[..., a, None],
        )
        for a in range(d)
    ]
    return with_value / widths[..., None], shares


def inverse_designs(problem: Problem, state: PoolState, ridge: Array | None) -> Array:
    """Return, for each query, the first d rows of the inverse covariance matrix of the local regressors.

    These are the rows of the d offsets. Of shape (m, d, regressors), in bandwidths. They are the slopes of
    values whose covariances with the regressors are those of the identity, projected as the geometry asks.
    """
    layout, d = problem.layout, problem.layout.columns
    state = state if ridge is None else with_ridge(state, layout, ridge)
    identity = np.eye(layout.regressors)
    probe = replace(layout, values=len(identity))
    numerator = np.zeros((len(state.denominator), probe.width))
    names = ("first", "second") if layout.degree == 1 else ("first", "second", "third", "fourth")
    for name in names:
        numerator[:, getattr(probe, name)] = state.numerator[:, getattr(layout, name)]
    numerator[:, probe.cross] = state.denominator[:, None] * identity[:d].ravel()
    if layout.degree == 2:
        numerator[:, probe.cross_second] = state.denominator[:, None] * identity[d:].ravel()
    slope = solve(PoolState(state.shift, state.denominator, numerator), probe).slope
    return problem.similarity.geometry.project(problem.query, slope) if layout.degree == 1 else slope


METHODS = ("robust", "quadratic", "naive", "undersmoothed")
WIDER = math.sqrt(2.0)
RATE = -1 / 20  # undersmoothed bandwidths are of the order n**(-1/4) where those found are of n**(-1/5)


@dataclass(frozen=True, eq=False)
class Estimate:
    """Estimate of the regression curve or one of its slopes at m points, with its linear weights.

    Parameters
    ----------
    center : ndarray of shape (m, c)
        Its values; NaN where a window is empty.
    terms : tuple of (float, LinearWeights)
        Its linear weights, as a linear combination of those of local fits.
    plain : ndarray of shape (m, c)
        The estimate without bias correction.
    rank : ndarray of int, shape (m,)
        Rank of the design of the plain fit.
    curvature_rank : ndarray of int, shape (m,), or None
        Rank of the design of a quadratic fit.
    column : int or None
        Column of the slope; None for the curve.
    log_mass : ndarray of shape (m,)
        Logarithm of each point's sum of kernel weights, the smallest among its local fits; -inf if it is zero.
    occupied : ndarray of bool, shape (m,)
        Which points have a row in the kernel's support, for each local fit.
    sums : SharedSums
        The sums that it was computed from, and its norms share.
    """

    center: Array
    terms: tuple[tuple[float, LinearWeights], ...]
    plain: Array
    rank: Index
    curvature_rank: Index | None
    column: int | None
    log_mass: Array
    occupied: Flags
    sums: SharedSums


def estimate(smoother: Smoother, places: EvaluationPoints, method: str, column: int | None = None) -> Estimate:
    """Estimate the regression curve, or one of its slopes, at given evaluation points.

    See `estimates`.
    """
    return estimates(smoother, places, method, [column])[0]


def estimates(
    smoother: Smoother, places: EvaluationPoints, method: str, columns: Sequence[int | None] = (None,)
) -> list[Estimate]:
    """Estimate the regression curve, or several of its slopes, at given evaluation points.

    Parameters
    ----------
    smoother : Smoother
        The fit.
    places : EvaluationPoints
        Evaluation points.
    method : {"robust", "quadratic", "naive", "undersmoothed"}
        Corrected; a local quadratic fit, without ridge; the fit as it is; or a local linear fit at the bandwidth times
        :math:`n^{-1/20}`.
    columns : sequence of int or None, default=(None,)
        Numeric columns whose slopes are estimated; None for the curve.

    Returns
    -------
    list of Estimate
        One per column. All together take one pass over the keys, or two for ``"robust"`` and ``"quadratic"``.

    Raises
    ------
    ValueError
        If the method is ``"quadratic"`` and there are more than three numeric columns.
    """
    parts = parts_of(smoother, method)
    fits = [_plain(each, places, columns) for _, each in parts]
    sums = SharedSums(smoother.sums, [(fitted.problem, fitted.state) for fitted, *_ in fits])
    log_mass = np.min([fitted.state.log_denominator for fitted, *_ in fits], axis=0)
    (_, rank, plain, _), curvature_rank = fits[0], None
    if method == "quadratic":
        curvature_rank, (_, rank, plain, _) = rank, _plain(smoother.of_degree(1), places, columns)
    occupied, found = np.isfinite(log_mass), []
    for i, column in enumerate(columns):
        center, terms = np.zeros_like(plain[i]), []
        for (factor, _), (_, _, values, shares) in zip(parts, fits, strict=True):
            center += factor * values[i]
            terms.append((factor, shares[i]))
        one = Estimate(center, tuple(terms), plain[i], rank, curvature_rank, column, log_mass, occupied, sums)
        found.append(one)
    return found


def parts_of(smoother: Smoother, method: str) -> list[tuple[float, Smoother]]:
    """Return the coefficients and smoothers whose linear combination is the estimate of a bias-correction method."""
    if method == "naive":
        return [(1.0, smoother)]
    planes = smoother.of_degree(1)
    if method == "undersmoothed":
        return [(1.0, planes.widened(smoother.rows**RATE))]
    if method == "quadratic":
        if smoother.columns > MOST_COLUMNS:
            raise ValueError(
                f"method='quadratic' is for one to {MOST_COLUMNS} numeric columns, got {smoother.columns}; use "
                "method='robust', which removes the same bias"
            )
        return [(1.0, smoother.of_degree(2))]
    return [(2.0, planes), (-1.0, planes.widened(WIDER))]


def centers(smoother: Smoother, places: EvaluationPoints, method: str, column: int | None) -> Array:
    """Return only the values of the estimated curve or slope, of shape (m, c), without their linear weights.

    This is for resampled outputs: nothing warns of rank-deficient fits.
    """
    parts = parts_of(smoother, method)
    return np.asarray(sum(factor * _plain(each, places, [column])[2][0] for factor, each in parts))


def _plain(
    smoother: Smoother, places: EvaluationPoints, columns: Sequence[int | None]
) -> tuple[Fitted, Index, list[Array], list[LinearWeights]]:
    """Fit the curve or its slopes, without bias correction, in one pass over the keys.

    Returns the fits, their ranks, and for each column values, NaN in empty windows, and linear weights.
    """
    constant = not smoother.recipe.degree
    if None in columns:
        fitted = smoother.fit(smoother.problem(places))
        values, shares = [fitted.fit.intercept], [fitted.linear_weights]
    else:
        planes = smoother.of_degree(1) if constant else smoother
        fitted = planes.fit(planes.problem(places))
        slopes, of_columns = constant_slopes(fitted) if constant else plane_slopes(fitted)
        values, shares = [slopes[:, a] for a in columns], [of_columns[a] for a in columns if a is not None]
    empty = ~np.isfinite(fitted.state.log_denominator)[:, None]
    values = [np.where(empty, np.nan, each) for each in values]
    known = constant and None not in columns  # slopes of means are moments, whatever rank the planes have
    rank = np.full(len(empty), smoother.columns) if known else fitted.fit.rank
    return fitted, rank, values, shares
