"""How a bandwidth that is best for some rows becomes one for more rows."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def rate_factor(few: float, many: float, columns: int) -> float:
    r"""Return by how much the best bandwidth shrinks from few rows to many.

    .. math:: (n_{\text{few}} / n_{\text{many}})^{1 / (4 + d)}

    Parameters
    ----------
    few, many : float
        Numbers of rows.
    columns : int
        How many columns matter; the best bandwidth of one that does not is infinite with any number of rows.

    Returns
    -------
    float
        At most one if there are more rows.

    Notes
    -----
    The squared bias of a local constant or a local linear fit is of order :math:`h^4`, its variance of order
    :math:`1/(n h^d)`; the sum is least where both shrink alike.

    Examples
    --------
    >>> round(rate_factor(1_000, 32_000, 1), 12)
    0.5
    """
    return float((few / many) ** (1.0 / (4.0 + columns)))


def bring_to_rows(
    bandwidth: Array, smoothing: Array, matters: NDArray[np.bool_], few: float, many: float
) -> tuple[Array, Array, float]:
    r"""Return the bandwidths and smoothings of many rows, given those of a sample.

    Parameters
    ----------
    bandwidth : ndarray of shape (d,)
        Found on the sample.
    smoothing : ndarray of shape (k,)
        Likewise, of the categorical columns. They shrink as fast as squared bandwidths [1]_.
    matters : ndarray of bool, shape (d + k,)
        Which columns are not smoothed away. The bandwidth of one that is stays as it is.
    few, many : float
        Rows of the sample, and in all.

    Returns
    -------
    bandwidth : ndarray of shape (d,)
        Times `factor` where the column matters.
    smoothing : ndarray of shape (k,)
        Times its square there.
    factor : float
        `rate_factor` for the numeric columns that matter.

    References
    ----------
    .. [1] P. Hall, Q. Li and J. S. Racine, "Nonparametric estimation of regression functions in the presence of
       irrelevant regressors", Review of Economics and Statistics 89 (2007), 784-789, theorem 2.1.

    Examples
    --------
    >>> bring_to_rows(np.array([0.2, 50.0]), np.zeros(0), np.array([True, False]), 1_000, 32_000)[0].round(12)
    array([ 0.1, 50. ])
    """
    d = len(bandwidth)
    factor = rate_factor(few, many, int(np.count_nonzero(matters[:d])))
    shrunk = np.where(matters, np.concatenate([bandwidth * factor, smoothing * factor**2]), [*bandwidth, *smoothing])
    return shrunk[:d], shrunk[d:], factor
