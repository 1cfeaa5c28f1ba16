"""Direct plug-in bandwidth of Ruppert, Sheather and Wand for local linear regression on one column.

The asymptotically optimal bandwidth depends on the noise variance and the mean squared curvature of the regression
function. Both are estimated here: first by quartic polynomials on blocks, then by local cubic fits (curvature) and
local linear fits (noise). All of them use the rows by distinct x alone (`Points`), so that the bandwidth depends
neither on the order of the rows nor on whether rows are repeated or weighted.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.polynomial import Polynomial
from numpy.typing import ArrayLike, NDArray

from kernpool.bandwidth.rules_of_thumb import canonical_ratio
from kernpool.core import Layout, solve
from kernpool.data.array_validation import as_real_array
from kernpool.kernels import Kernel
from kernpool.pooling.pool import pool_state

Array = NDArray[np.float64]

DEGREE, COEFFICIENTS = 4, 5
MOST_BLOCKS, ROWS_PER_BLOCK = 5, 20
NO_NOISE = 1e-20  # fraction of the squares of y: residuals this small are rounding
NO_FREEDOM = 1e-8  # fraction of the number of rows: it is a difference of sums of that size
EDGE = 0.05  # fraction of the range at either end, where second derivatives are mostly noise
EXACT_POINTS, BINS = 2000, 401
PAIRS_AT_ONCE = 1 << 18
DEFICIENT = 1e-10  # fraction of the largest eigenvalue


@dataclass(frozen=True)
class Points:
    """Rows of one column grouped by distinct x, in increasing order.

    Parameters
    ----------
    place : ndarray of shape (n,)
        Distinct x, strictly increasing.
    rows : ndarray of shape (n,)
        Number of rows at each x; fractions are allowed.
    mean : ndarray of shape (n,)
        Their mean of y.
    squares : ndarray of shape (n,)
        Their sum of squares about that mean.
    """

    place: Array
    rows: Array
    mean: Array
    squares: Array

    @property
    def total(self) -> float:
        """Number of rows, as the sum of their frequency weights."""
        return float(self.rows.sum())

    @property
    def width(self) -> float:
        """Range of x: distance between its smallest and largest value."""
        return float(self.place[-1] - self.place[0])

    def between(self, first: float, last: float) -> Points:
        """Return the points whose cumulative row count lies between `first` and `last`; boundary points are split."""
        edges = np.clip(np.concatenate([[0.0], np.cumsum(self.rows)]), first, last)
        share = np.diff(edges) / self.rows
        kept = share > 1e-9  # what rounding leaves of a point is dropped
        return Points(self.place[kept], (share * self.rows)[kept], self.mean[kept], (share * self.squares)[kept])


def gather(x: Array, y: Array, rows: Array) -> Points:
    """Group rows by distinct x, with the row count, mean and sum of squares of y at each.

    Parameters
    ----------
    x, y, rows : ndarray of shape (n,)
        Inputs, outputs, and frequency of each row (positive).

    Returns
    -------
    Points
        One per distinct x.
    """
    place, point = np.unique(x, return_inverse=True)
    count = sum_by_point(point, rows, len(place))
    mean = sum_by_point(point, rows * y, len(place)) / count
    squares = sum_by_point(point, rows * (y - mean[point]) ** 2, len(place))
    return Points(place, count, mean, squares)


def sum_by_point(place: NDArray[np.intp], amount: Array, places: int) -> Array:
    """Return the sum of the amounts at each point, given the index of the point that each amount belongs to.

    Parameters
    ----------
    place : ndarray of int, shape (n,)
        Index of the point of each amount.
    amount : ndarray of shape (n,)
        The amounts.
    places : int
        Number of points.

    Returns
    -------
    ndarray of shape (places,)
        Sums.
    """
    return np.bincount(place, amount, places).astype(np.float64, copy=False)


def quartic_pilot(points: Points) -> tuple[float, float]:
    r"""Estimate the noise variance and the mean of ``m'' m''''``, for a regression curve m, by quartic fits on blocks.

    Mallows' criterion selects the number of blocks, at most five and at most ``n / 20``; every block has to have more
    distinct x than a quartic has coefficients.

    Parameters
    ----------
    points : Points
        At least 20 rows.

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
    """Fit a quartic polynomial to each of `number` blocks; return an empty list if a block has too few distinct x.

    With five or fewer, a fit is rank-deficient or leaves no residual.
    """
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
    r"""Estimate the curve's mean squared second derivative from local cubic fits, away from the ends of the range of x.

    Parameters
    ----------
    points : Points
        The rows.
    bandwidth : float
        Bandwidth of the Gaussian weights of the fits.

    Returns
    -------
    float
        :math:`\theta_{22} = n^{-1} \sum_i m''(x_i)^2` over the rows in the middle nine tenths of the range.

    Notes
    -----
    Exact up to 2000 distinct x, over all pairs. With more, rows are first binned linearly into 401 bins (each row is
    split between the two nearest centers), as in KernSmooth; bandwidths from `quartic_pilot` are far wider than a bin.
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
        of_left = sum_by_point(left, amount * (1 - right_share), BINS)
        return of_left + sum_by_point(left + 1, amount * right_share, BINS)

    rows = shared(points.rows)
    kept = rows > 0
    place = points.place[0] + points.width * np.linspace(0.0, 1.0, BINS)
    mean = shared(points.rows * points.mean)[kept] / rows[kept]
    return Points(place[kept], rows[kept], mean, np.zeros(kept.sum()))


def _second_derivative(points: Points, query: Array, bandwidth: float) -> Array:
    """Return the curve's second derivatives at the queries, from local cubic fits by minimum-norm least squares."""
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
    r"""Estimate the noise variance from residuals of local linear fits and their degrees of freedom.

    .. math:: \hat\sigma^2 = \sum_i (y_i - \hat m(x_i))^2 \Big/ \big(n - 2 \sum_i S_{ii} + \sum_{ij} S_{ij}^2\big)

    where `S` is the smoother matrix: ``S[i, j]`` is the weight of row j in the fit at row i.

    Parameters
    ----------
    points : Points
        The rows.
    bandwidth : float
        Bandwidth of the Gaussian weights of the fits.

    Returns
    -------
    float
        The variance; NaN if no degree of freedom is left.

    Notes
    -----
    Exact, in two passes of `pool_state`: the square of a Gaussian is one of ``bandwidth / sqrt(2)``, so that sums of
    squared weights are moments too.
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


TRIM = 0.01  # fraction of the rows, at either end
FEWEST = 20  # rows, and distinct x

# Constants of the Gaussian: bandwidths for theta_22 where theta_24 is negative or positive, and for the noise.
_NEGATIVE, _POSITIVE = 3 / (8 * math.sqrt(math.pi)), 15 / (16 * math.sqrt(math.pi))
_NOISE = (4 * (0.5 + 2 * math.sqrt(2) - 4 / 3 * math.sqrt(3)) / math.sqrt(2 * math.pi)) ** (1 / 9)


def plugin_bandwidth(
    x: ArrayLike, y: ArrayLike, weight: ArrayLike | None = None, *, kernel: str | Kernel = "gaussian"
) -> float:
    r"""Estimate the bandwidth with the least asymptotic mean squared error for local linear regression.

    .. math:: h = \delta_0(K) \left( \frac{\sigma^2 (b - a)}{n\, \theta_{22}} \right)^{1/5}, \qquad
              \theta_{22} = \frac1n \sum_i m''(x_i)^2

    for noise of variance :math:`\sigma^2` about the function `m` on ``[a, b]``, with the canonical factor
    :math:`\delta_0(K)`, which is :math:`(4 \pi)^{-1/10}` for the Gaussian.

    Parameters
    ----------
    x : array_like of shape (n,) or (n, 1)
        Inputs.
    y : array_like of shape (n,) or (n, 1)
        Outputs; for several of them ask for one bandwidth each.
    weight : array_like of shape (n,), optional
        Frequencies of rows: a weight of 3 is three equal rows.
    kernel : str or Kernel, default="gaussian"
        All estimates are made with the Gaussian; the ratio of canonical factors makes other kernels smooth as much.

    Returns
    -------
    float
        The bandwidth, in the units of x.

    Raises
    ------
    TypeError
        If an argument does not hold real numbers.
    ValueError
        If there are several columns or outputs, fewer than 20 rows or different x, no noise, no rows in the middle of
        the range, or gaps in x so large that local fits interpolate every row.

    See Also
    --------
    search_bandwidth : Leave-one-out, which has no such limits.
    rule_of_thumb : Without looking at y.

    Notes
    -----
    One percent of the rows is trimmed at either end. Then quartic polynomials on up to five blocks of rows, their
    number chosen by Mallows' criterion, give pilot estimates and with them the bandwidth of local cubic fits. Their
    second derivatives estimate :math:`\theta_{22}`, which gives the bandwidth of local linear fits, whose residuals
    estimate :math:`\sigma^2`. This is the algorithm of ``dpill`` in R's KernSmooth, which puts all rows into 401 bins;
    here local linear fits are always exact, and local cubic ones up to 2000 different x. Rows with the same x are
    treated alike; ``dpill`` trims and cuts blocks among them in the order of the data.

    The bandwidth is optimal, as n grows, for a local linear fit inside of the range. That of a local constant fit
    differs at the ends, and by a term with the slope of the density of x. One bandwidth is for one curvature: where a
    function is flat here and wiggly there, it is a compromise.

    Deterministic. O(n log n) time and O(n) memory.

    References
    ----------
    .. [1] D. Ruppert, S. J. Sheather and M. P. Wand, "An effective bandwidth selector for local least squares
       regression", Journal of the American Statistical Association 90 (1995), 1257-1270, section 4.
    .. [2] M. P. Wand and M. C. Jones, Kernel Smoothing (1995), section 5.8.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.linspace(0.0, 1.0, 400)
    >>> y = np.sin(2 * np.pi * x) + 0.3 * np.random.default_rng(0).normal(size=400)
    >>> bool(0.03 < plugin_bandwidth(x, y) < 0.06)
    True
    """
    points = _trimmed(x, y, weight)
    total, width = points.total, points.width
    noise, product = quartic_pilot(points)
    constant = _NEGATIVE if product < 0 else _POSITIVE
    pilot = (constant * noise * width / (abs(product) * total)) ** (1 / 7) if product else math.inf
    curvature = mean_squared_curvature(points, pilot)
    if not curvature > 0:
        raise ValueError(
            "the estimated curvature is zero in the middle nine tenths of the range of x, so that no plug-in bandwidth "
            "is defined; use bandwidth='loo'"
        )
    noise = residual_variance(points, _NOISE * (noise**2 * width / (curvature * total) ** 2) ** (1 / 9))
    if not noise > 0:
        raise ValueError("the gaps in x are so large that local fits interpolate every row; use bandwidth='loo'")
    gaussian = (noise * width / (2 * math.sqrt(math.pi) * curvature * total)) ** (1 / 5)
    return float(gaussian * canonical_ratio(kernel))


def _trimmed(x: ArrayLike, y: ArrayLike, weight: ArrayLike | None) -> Points:
    """Validate x, y and weights, group rows by distinct x, and trim one percent of the rows at each end."""
    place, output = _single("x", "column", x), _single("y", "output", y)
    if len(place) != len(output):
        raise ValueError(
            f"x and y must have the same number of rows, got {len(place)} and {len(output)}; give one y per row of x"
        )
    rows = np.ones(len(place)) if weight is None else as_real_array("weight", weight).astype(np.float64)
    if rows.shape != place.shape or np.any(rows < 0):
        raise ValueError(
            f"weight must hold one frequency per row, zero or positive, got shape {rows.shape} and smallest value "
            f"{rows.min(initial=np.inf):g} for {len(place)} rows"
        )
    kept = rows > 0
    place, output, rows = place[kept], output[kept], rows[kept]
    total = float(rows.sum())
    if total >= FEWEST:
        # centered, so that an offset of y costs the fits no digits
        points = gather(place, output - np.average(output, weights=rows), rows)
        cut = math.floor(TRIM * total)
        points = points.between(cut, total - cut)
        if len(points.place) >= FEWEST:
            return points
        different = f"{len(points.place)} different x"
    else:
        different = f"{total:g} rows (the sum of the weights)"
    raise ValueError(
        f"a plug-in bandwidth needs {FEWEST} rows with different x, not counting the one percent that is trimmed at "
        f"either end, got {different}; use bandwidth='loo'"
    )


def _single(name: str, what: str, array: ArrayLike) -> Array:
    read = as_real_array(name, array).astype(np.float64)
    if read.ndim == 2 and read.shape[1] == 1:
        read = read[:, 0]
    if read.ndim != 1:
        raise ValueError(
            f"a plug-in bandwidth is for one {what}, got {name} of shape {read.shape}; use bandwidth='loo' for several"
        )
    return read
