"""Rule-of-thumb bandwidths (Scott, Silverman), and rescaling of bandwidths to more rows.

The rules use the spread of the columns and the number of rows, and never y. `rate_factor` turns
bandwidths that are best for a sample into bandwidths for more rows.
"""

import math

import numpy as np

from kernpool._arrays import Array
from kernpool.core import CARTESIAN, Geometry
from kernpool.core.input_validation import column_spread
from kernpool.kernels import Kernel, get_kernel

RULES = ("scott", "silverman")


def rule_of_thumb(
    X: Array,
    weight: Array | None = None,
    *,
    rule: str = "scott",
    kernel: str | Kernel = "gaussian",
    geometry: Geometry = CARTESIAN,
) -> Array:
    r"""Return the bandwidth of each column by Scott's or Silverman's rule.

    .. math:: h_a = \text{spread}_a \cdot c \cdot n^{-1/(d+4)} \cdot \delta_0(K) / \delta_0(\text{Gaussian})

    with ``c = 1`` for Scott and ``c = (4 / (d + 2))^(1/(d+4))`` for Silverman.

    Parameters
    ----------
    X : ndarray of shape (n, d)
        Rows.
    weight : ndarray of shape (n,), optional
        Frequencies of rows; ``n`` is their sum.
    rule : {"scott", "silverman"}, default="scott"
        Name of the rule.
    kernel : str or Kernel, default="gaussian"
        The ratio of canonical factors makes kernels smooth equally.
    geometry : Geometry, optional
        Which columns share a bandwidth.

    Returns
    -------
    ndarray of shape (d,)
        Positive bandwidths; infinite, with a warning, where a column is constant; d is their number.

    Raises
    ------
    ValueError
        If the rule is unknown.

    Notes
    -----
    Both are optimal for the *density* of normal data and only a start for regression.

    References
    ----------
    .. [1] D. W. Scott, Multivariate Density Estimation (1992), equation 6.42.
    .. [2] B. W. Silverman, Density Estimation for Statistics and Data Analysis (1986), equation 4.14.

    Examples
    --------
    >>> import numpy as np
    >>> rule_of_thumb(np.arange(32.0)[:, None], rule="scott").round(3)
    array([4.69])
    """
    if rule not in RULES:
        raise ValueError(f"unknown bandwidth rule {rule!r}; use one of {', '.join(RULES)}")
    n = float(len(X) if weight is None else weight.sum())
    d = len(geometry) or X.shape[1]
    constant = 1.0 if rule == "scott" else (4 / (d + 2)) ** (1 / (d + 4))
    bandwidth = column_spread(X, weight, geometry) * float(constant * n ** (-1 / (d + 4)) * canonical_ratio(kernel))
    extent = geometry.lengths(np.ptp(X if weight is None else X[weight > 0], axis=0))
    return np.where(extent > 0, bandwidth, np.inf)


def canonical_ratio(kernel: str | Kernel) -> float:
    """Return the factor from a Gaussian kernel's bandwidth to that of another kernel that smooths equally.

    Parameters
    ----------
    kernel : str or Kernel
        The other kernel.

    Returns
    -------
    float
        The ratio of the canonical factors; 1 for the constant kernel, which smooths everything away at any bandwidth.

    Examples
    --------
    >>> round(canonical_ratio("epanechnikov"), 3)
    2.214
    """
    ratio = get_kernel(kernel).canonical_factor / get_kernel("gaussian").canonical_factor
    return 1.0 if math.isnan(ratio) else ratio


def rate_factor(few: float, many: float, columns: int, degree: int = 0) -> float:
    r"""Return the factor by which the optimal bandwidth shrinks as the number of rows grows.

    .. math:: (n_{\text{few}} / n_{\text{many}})^{1 / (s + d)}

    with s = 4, and s = 8 for local quadratics.

    Parameters
    ----------
    few, many : float
        Numbers of rows.
    columns : int
        Number of relevant columns; the best bandwidth of an irrelevant one is infinite with any number of rows.
    degree : {0, 1, 2}, default=0
        Of the local fit.

    Returns
    -------
    float
        At most one if there are more rows.

    Notes
    -----
    The squared bias of a local constant or a local linear fit is of order :math:`h^4`, that of a local quadratic of
    order :math:`h^8`, the variance of order :math:`1/(n h^d)`; the sum is least where both shrink alike.

    Examples
    --------
    >>> round(rate_factor(1_000, 32_000, 1), 12)
    0.5
    """
    return float((few / many) ** (1.0 / (rate_order(degree) + columns)))


def rate_order(degree: int) -> int:
    """Return the power of the bandwidth in the squared bias of a local fit."""
    return 8 if degree == 2 else 4
