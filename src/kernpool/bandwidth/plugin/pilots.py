"""Noise and curvature of a regression function of one column: the unknowns of a plug-in bandwidth, estimated."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.polynomial import Polynomial
from numpy.typing import NDArray

from kernpool.bandwidth.plugin.points import Points, sum_by_place
from kernpool.core.local_fit import solve
from kernpool.core.moments import Layout
from kernpool.pooling.pool import pool_state

Array = NDArray[np.float64]

DEGREE, COEFFICIENTS = 4, 5
MOST_BLOCKS, ROWS_PER_BLOCK = 5, 20
NO_NOISE = 1e-20  # of the squares of y: residuals this small are rounding
NO_FREEDOM = 1e-8  # of the number of rows: it is a difference of sums of that size
EDGE = 0.05  # of the range at either end, where second derivatives are mostly noise
EXACT_POINTS, BINS = 2000, 401
PAIRS_AT_ONCE = 1 << 18
DEFICIENT = 1e-10  # of the largest eigenvalue


def quartic_pilot(points: Points) -> tuple[float, float]:
    r"""Estimate noise and curvature crudely, by quartic polynomials on blocks of equally many rows.

    Of up to ``n / 20`` and up to five blocks there are as many as Mallows' criterion says; every block has to have more
    places than a quartic has coefficients.

    Parameters
    ----------
    points : Points
        Of 20 rows and more.

    Returns
    -------
    noise : float
        The variance of y about the quartics.
    product : float
        :math:`\theta_{24} = n^{-1} \sum_i m''(x_i) m''''(x_i)`.

    Raises
    ------
    ValueError
        If quartics go through all the rows.
    """
    total = points.total
    most = int(max(min(total // ROWS_PER_BLOCK, MOST_BLOCKS), 1))
    fits = [fit for number in range(1, most + 1) if (fit := _quartics(points, number))]
    residual = np.array([sum(_residual(block, quartic) for block, quartic in fit) for fit in fits])
    center = np.average(points.mean, weights=points.rows)
    squares = points.rows @ (points.mean - center) ** 2 + points.squares.sum()
    if residual[-1] <= NO_NOISE * squares:
        raise ValueError(
            "y has no noise about a smooth curve, and a plug-in bandwidth would be zero; use bandwidth='loo'"
        )
    used = COEFFICIENTS * np.array([len(fit) for fit in fits])
    mallows = residual / residual[-1] * (total - used[-1]) - (total - 2 * used)
    best = int(np.argmin(mallows))
    product = sum(
        float(block.rows @ (quartic.deriv(2)(block.place) * quartic.deriv(4)(block.place)))
        for block, quartic in fits[best]
    )
    return float(residual[best] / (total - used[best])), product / total


def _quartics(points: Points, number: int) -> list[tuple[Points, Polynomial]]:
    """Fit a quartic to each block; an empty list if some block does not determine one and leave anything over."""
    size = points.total // number
    ends = [size * i for i in range(number)] + [points.total]
    blocks = [points.between(first, last) for first, last in pairwise(ends)]
    if min(len(block.place) for block in blocks) <= COEFFICIENTS:
        return []
    # with full=True a nearly singular fit is no warning
    fits = [Polynomial.fit(b.place, b.mean, DEGREE, w=np.sqrt(b.rows), full=True)[0] for b in blocks]
    return list(zip(blocks, fits, strict=True))


def _residual(block: Points, curve: Polynomial) -> float:
    return float(block.rows @ (block.mean - curve(block.place)) ** 2 + block.squares.sum())


def mean_squared_curvature(points: Points, bandwidth: float) -> float:
    r"""Estimate the curvature of the regression function from local cubic fits, away from the ends.

    Parameters
    ----------
    points : Points
        The rows.
    bandwidth : float
        Of the Gaussian weights of the fits.

    Returns
    -------
    float
        :math:`\theta_{22} = n^{-1} \sum_i m''(x_i)^2` over the rows in the middle nine tenths of the range.

    Notes
    -----
    Exact up to 2000 places, with all pairs. More places are put into 401 bins first, each row shared between the two
    centers around it, as KernSmooth does; the bandwidths that come out of `quartic_pilot` are far wider than a bin.
    """
    binned = points if len(points.place) <= EXACT_POINTS else _binned(points)
    middle = (points.place[0] + points.place[-1]) / 2
    # bin centers lie on the edge, give or take a rounding
    inside = np.abs(binned.place - middle) <= (0.5 - EDGE) * points.width * (1 + 1e-9)
    second = _second_derivative(binned, binned.place[inside], bandwidth)
    return float(binned.rows[inside] @ second**2 / points.total)


def _binned(points: Points) -> Points:
    position = (points.place - points.place[0]) / points.width * (BINS - 1)
    left = np.minimum(position.astype(np.intp), BINS - 2)
    right_share = position - left

    def shared(amount: Array) -> Array:
        of_left = sum_by_place(left, amount * (1 - right_share), BINS)
        return of_left + sum_by_place(left + 1, amount * right_share, BINS)

    rows = shared(points.rows)
    kept = rows > 0
    place = points.place[0] + points.width * np.linspace(0.0, 1.0, BINS)
    mean = shared(points.rows * points.mean)[kept] / rows[kept]
    return Points(place[kept], rows[kept], mean, np.zeros(kept.sum()))


def _second_derivative(points: Points, query: Array, bandwidth: float) -> Array:
    """Return the second derivative of local cubic fits: zero in directions that the points do not determine."""
    unit = min(bandwidth, points.width)  # in units of a huge bandwidth, powers of offsets would underflow
    powers = np.add.outer(np.arange(4), np.arange(4))
    second = np.empty(len(query))
    at_once = max(PAIRS_AT_ONCE // len(points.place), 1)
    for start in range(0, len(query), at_once):
        offset = points.place - query[start : start + at_once, None]
        weight = points.rows * np.exp(-0.5 * (offset / bandwidth) ** 2)
        offset /= unit
        moments, with_mean = [], []
        for power in range(7):
            moments.append(weight.sum(axis=1))
            if power < 4:
                with_mean.append(weight @ points.mean)
            weight *= offset
        design = np.stack(moments, axis=1)[:, powers]
        scale = np.sqrt(np.diagonal(design, axis1=1, axis2=2))
        scale = np.where(scale > 0, scale, 1.0)
        inverse = np.linalg.pinv(design / scale[:, :, None] / scale[:, None, :], rcond=DEFICIENT, hermitian=True)
        right = np.stack(with_mean, axis=1) / scale
        coefficient = np.sum(inverse[:, 2] * right, axis=1) / scale[:, 2]
        second[start : start + at_once] = 2.0 * coefficient / unit**2
    return second


def residual_variance(points: Points, bandwidth: float) -> float:
    r"""Estimate the noise from the residuals of local linear fits, divided by their degrees of freedom.

    .. math:: \hat\sigma^2 = \sum_i (y_i - \hat m(x_i))^2 \Big/ \big(n - 2 \sum_i S_{ii} + \sum_{ij} S_{ij}^2\big)

    where `S` is the matrix of shares of row j in the fit at row i.

    Parameters
    ----------
    points : Points
        The rows.
    bandwidth : float
        Of the Gaussian weights of the fits.

    Returns
    -------
    float
        The variance; NaN if no degree of freedom is left.

    Notes
    -----
    Exact, in two passes of `pool_state`: the square of a Gaussian is one of ``bandwidth / sqrt(2)``, so that sums of
    squared shares are moments too.
    """
    layout = Layout(values=1, columns=1, degree=1)
    place, rows = points.place, points.rows
    state = pool_state(place, place, points.mean, bandwidth=bandwidth, key_weight=rows, degree=1)
    narrow = pool_state(place, place, np.zeros(len(place)), bandwidth=bandwidth / np.sqrt(2), key_weight=rows, degree=1)
    fit = solve(state, layout)
    base, tilt = fit.base, fit.tilt[:, 0]
    first = narrow.numerator[:, layout.first.start] / np.sqrt(2)  # offsets there are counted in narrower bandwidths
    second = narrow.numerator[:, layout.second.start] / 2
    diagonal = base * np.exp(-state.shift) / state.denominator
    squared = base**2 * narrow.denominator + 2 * base * tilt * first + tilt**2 * second
    squared *= np.exp(narrow.shift - 2 * state.shift) / state.denominator**2
    freedom = points.total - 2 * rows @ diagonal + rows @ squared
    residual = rows @ (points.mean - fit.intercept[:, 0]) ** 2 + points.squares.sum()
    return float(residual / freedom) if freedom > NO_FREEDOM * points.total else float("nan")
