"""The direct plug-in bandwidth of Ruppert, Sheather and Wand: the optimal one, with its unknowns estimated."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kernpool.bandwidth.plugin.pilots import mean_squared_curvature, quartic_pilot, residual_variance
from kernpool.bandwidth.plugin.points import Points, gather
from kernpool.bandwidth.rules import canonical_ratio
from kernpool.data.checks import as_real_array
from kernpool.kernels import Kernel

Array = NDArray[np.float64]

TRIM = 0.01  # of the rows, at either end
FEWEST = 20  # rows, and places

# Constants of the Gaussian: bandwidths for theta_22 where theta_24 is negative or positive, and for the noise.
_NEGATIVE, _POSITIVE = 3 / (8 * math.sqrt(math.pi)), 15 / (16 * math.sqrt(math.pi))
_NOISE = (4 * (0.5 + 2 * math.sqrt(2) - 4 / 3 * math.sqrt(3)) / math.sqrt(2 * math.pi)) ** (1 / 9)


def plugin_bandwidth(
    x: ArrayLike, y: ArrayLike, weight: ArrayLike | None = None, *, kernel: str | Kernel = "gaussian"
) -> float:
    r"""Estimate the bandwidth of the least mean squared error of a local linear fit to one column.

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
        the range, or so much room between rows that fits go through all of them.

    See Also
    --------
    search_bandwidth : Leave-one-out, which has no such limits.
    rule_of_thumb : Without looking at y.

    Notes
    -----
    The steps, after a hundredth of the rows is trimmed at either end: quartic polynomials on up to five blocks of rows,
    their number chosen by Mallows' criterion, give first estimates; they give the bandwidth of local cubic fits, whose
    second derivatives make :math:`\theta_{22}`; that gives the bandwidth of local linear fits, whose residuals make
    :math:`\sigma^2`. This is what ``dpill`` of R's KernSmooth does, but exactly where that puts all rows into 401 bins:
    the local linear fits always, the local cubic ones up to 2000 different x. Rows with the same x are treated alike;
    ``dpill`` trims and cuts blocks among them in the order in which they come.

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
            "the middle nine tenths of the range of x hold no rows that bend, so that no plug-in bandwidth is best; "
            "use bandwidth='loo'"
        )
    noise = residual_variance(points, _NOISE * (noise**2 * width / (curvature * total) ** 2) ** (1 / 9))
    if not noise > 0:
        raise ValueError("x has so much room between rows that fits go through all of them; use bandwidth='loo'")
    gaussian = (noise * width / (2 * math.sqrt(math.pi) * curvature * total)) ** (1 / 5)
    return float(gaussian * canonical_ratio(kernel))


def _trimmed(x: ArrayLike, y: ArrayLike, weight: ArrayLike | None) -> Points:
    """Check the rows, gather them into points, and trim their ends."""
    place, output = _single("x", "column", x), _single("y", "output", y)
    if len(place) != len(output):
        raise ValueError(f"x and y must have as many rows, got {len(place)} and {len(output)}")
    rows = np.ones(len(place)) if weight is None else as_real_array("weight", weight).astype(np.float64)
    if rows.shape != place.shape or np.any(rows < 0):
        raise ValueError(
            f"weight must hold one frequency per row, zero or positive, got shape {rows.shape} for {len(place)} rows"
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
        f"a plug-in bandwidth needs {FEWEST} rows with different x, besides one in a hundred at either end, "
        f"got {different}; use bandwidth='loo'"
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
