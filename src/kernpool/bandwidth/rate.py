"""How a bandwidth that is best for some rows becomes one for more rows."""

from __future__ import annotations


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
