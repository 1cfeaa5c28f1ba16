"""How the best bandwidth shrinks as rows are added."""

from __future__ import annotations


def rate_factor(few: float, many: float, columns: int) -> float:
    r"""Return what turns the best bandwidth of few rows into that expected of many.

    .. math:: (n_{\text{few}} / n_{\text{many}})^{1/(4 + d)}

    Parameters
    ----------
    few, many : float
        Numbers of rows.
    columns : int
        How many columns matter; those that do not keep their bandwidths.

    Returns
    -------
    float
        The factor of the bandwidths.

    References
    ----------
    .. [1] P. Hall, Q. Li and J. S. Racine, "Nonparametric estimation of regression functions in the presence of
       irrelevant regressors", Review of Economics and Statistics 89 (2007), 784-789.

    Examples
    --------
    >>> rate_factor(1000, 32_000, columns=1)
    0.5
    """
    return float((few / many) ** (1.0 / (4.0 + columns)))
