"""Slopes of a local fit, and the shares of the outputs in them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from kernpool.core.local_fit import solve
from kernpool.core.moments import Layout
from kernpool.core.problem import Problem
from kernpool.core.ridge import with_ridge
from kernpool.core.state import PoolState
from kernpool.execution.messages import abbreviate
from kernpool.inference.shares import Shares
from kernpool.inference.smoother import Fitted, Places, Smoother, log_mass
from kernpool.kernels.forms import Gaussian

Array = NDArray[np.float64]


def value_shares(fitted: Fitted) -> Shares:
    """Return the shares in the value of a fit."""
    fit = fitted.fit
    return Shares(fitted.problem, fitted.smoother.factor, fitted.log_mass, fit.base, fit.tilt)


def plane_slopes(fitted: Fitted) -> tuple[Array, list[Shares]]:
    r"""Return slopes of planes, or of quadratics at the query, per unit of each column, and the shares in them.

    With the covariance C of the regressors z and the ridge R they are those rows of
    :math:`\alpha_j\, (C + R)^{-1} (z_j - \bar z)` that belong to offsets.

    Parameters
    ----------
    fitted : Fitted
        Local linear or quadratic.

    Returns
    -------
    slopes : ndarray of shape (m, d, c)
        Of the planes.
    shares : list of d Shares
        One per column.
    """
    problem, smoother = fitted.problem, fitted.smoother
    ridge = smoother.recipe.ridge_weight(smoother.columns)
    slopes = fitted.fit.slope / problem.similarity.bandwidth[:, None]
    return slopes, slope_shares(problem, fitted.state, ridge, smoother.factor)


def slope_shares(problem: Problem, state: PoolState, ridge: Array | None, factor: float = 1.0) -> list[Shares]:
    """Return the shares in the slopes of planes, or of quadratics at the query, by their sums.

    Parameters
    ----------
    problem : Problem
        Local linear or quadratic.
    state : PoolState
        Its sums, without the ridge.
    ridge : ndarray of shape (d,) or None
        Of `Recipe.ridge_weight`.
    factor : float, default=1.0
        As of `Shares`.

    Returns
    -------
    list of d Shares
        Per unit of each column.
    """
    bandwidth, layout, mean = problem.similarity.bandwidth, problem.layout, state.finalize(empty="zero")
    inverse, offset = inverse_designs(state, layout, ridge), mean[:, layout.first]
    if layout.degree == 2:
        offset = np.hstack([offset, mean[:, layout.second]])
    return [
        Shares(
            problem,
            factor,
            log_mass(state),
            -np.sum(inverse[:, a] * offset, axis=1) / bandwidth[a],
            inverse[:, a] / bandwidth[a],
        )
        for a in range(len(bandwidth))
    ]


def constant_slopes(smoother: Smoother, places: Places) -> tuple[Array, list[Shares]]:
    r"""Return the derivatives of a local constant fit with a Gaussian, and the shares in them.

    They are :math:`\alpha_j (t_j - \bar t) / h`, because the logarithm of the kernel has the slope t/h.

    Parameters
    ----------
    smoother : Smoother
        Local constant, with a Gaussian kernel.
    places : Places
        Where.

    Returns
    -------
    slopes, shares
        As of `plane_slopes`.

    Raises
    ------
    ValueError
        If the kernel is another: its slopes are no moments of a state.
    """
    kernel = smoother.recipe.kernel
    if not isinstance(kernel.form, Gaussian):
        raise ValueError(
            f"standard errors of derivatives of a local constant fit need the Gaussian kernel, "
            f"got {abbreviate(kernel.name)}; "
            "use LocalLinearRegressor, whose slopes have standard errors for every kernel"
        )
    fitted = smoother.of_degree(1).fit(places)
    bandwidth, layout = fitted.problem.similarity.bandwidth, fitted.problem.layout
    mean = fitted.state.finalize(empty="zero")
    offset = mean[:, layout.first]
    m, d, c = len(mean), layout.columns, layout.values
    with_value = mean[:, layout.cross].reshape(m, d, c) - offset[:, :, None] * mean[:, None, layout.value]
    at = np.eye(d)
    shares = [
        Shares(
            fitted.problem,
            smoother.factor,
            fitted.log_mass,
            -offset[:, a] / bandwidth[a],
            np.repeat(at[a : a + 1], m, axis=0) / bandwidth[a],
        )
        for a in range(d)
    ]
    return with_value / bandwidth[:, None], shares


def inverse_designs(state: PoolState, layout: Layout, ridge: Array | None) -> Array:
    """Return the rows for offsets of the inverse covariances of regressors, of shape (m, d, regressors), in bandwidths.

    They are the slopes of values whose covariances with the regressors are those of the identity.
    """
    d = layout.columns
    state = state if ridge is None else with_ridge(state, layout, ridge)
    identity = np.eye(layout.regressors)
    probe = Layout(len(identity), d, layout.degree)
    numerator = np.zeros((len(state.denominator), probe.width))
    names = ("first", "second") if layout.degree == 1 else ("first", "second", "third", "fourth")
    for name in names:
        numerator[:, getattr(probe, name)] = state.numerator[:, getattr(layout, name)]
    numerator[:, probe.cross] = state.denominator[:, None] * identity[:d].ravel()
    if layout.degree == 2:
        numerator[:, probe.cross_second] = state.denominator[:, None] * identity[d:].ravel()
    return solve(PoolState(state.shift, state.denominator, numerator), probe).slope
