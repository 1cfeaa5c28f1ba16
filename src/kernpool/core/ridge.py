r"""Ridge: slopes of local planes that thin windows cannot determine are drawn towards zero.

A plane of d slopes from few keys has a variance without bound (Seifert and Gasser, 1996). A penalty on its slopes,

.. math:: \min_{\beta_0, \beta} \sum_j w_j K_j (v_j - \beta_0 - \beta \cdot t_j)^2 + \rho K(0) \sum_a \beta_a^2,
          \qquad t_j = (k_j - q) / h

bounds it. It is as if, for each column, :math:`\rho` more keys lay one bandwidth from the center of the window and said
that there is no slope. A window of many keys does not notice; a window of one or two becomes local constant. Nothing is
summed anew: the penalty is a number added to the second moments of a state.

References
----------
.. [1] B. Seifert and T. Gasser, "Finite-sample variance of local polynomials: analysis and solutions", JASA 91 (1996),
   267-275.
.. [2] B. Seifert and T. Gasser, "Data adaptive ridging in local polynomial regression", JCGS 9 (2000), 338-360, eq. 4.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kernpool.core.local_fit import LocalFit
from kernpool.core.moments import Layout
from kernpool.core.state import PoolState
from kernpool.execution.messages import abbreviate

Array = NDArray[np.float64]

LARGEST_EXPONENT = 300.0  # of a ridge beside a window: slopes are zero to the last digit long before


def with_ridge(state: PoolState, layout: Layout, ridge: Array) -> PoolState:
    """Add a ridge to the second moments of a state.

    Parameters
    ----------
    state : PoolState
        Of m queries.
    layout : Layout
        What its numerator holds; without moments nothing changes.
    ridge : ndarray of shape (d,)
        Penalty on the squared slope of each column, per bandwidth, in units of key weight times kernel.

    Returns
    -------
    PoolState
        Whose local fit is the penalised one. It does not merge with others any more: the ridge would count twice.

    Examples
    --------
    >>> import kernpool
    >>> from kernpool.core.local_fit import solve
    >>> layout = Layout(values=1, columns=1, degree=1)
    >>> state = kernpool.pool_state([2.0], [2.0, 3.0, 5.0], [1.0, 3.0, 7.0], bandwidth=2.0, degree=1)
    >>> solve(with_ridge(state, layout, np.array([1e9])), layout).intercept.round(6)  # as local constant
    array([[2.682219]])
    """
    if not layout.degree or not np.any(ridge):
        return state
    numerator = state.numerator.copy()
    numerator[:, diagonal(layout)] += ridge * _unit(state)[:, None]
    return PoolState(state.shift, state.denominator, numerator)


def change_by_ridge(state: PoolState, fit: LocalFit, ridge: Array, slope: Array) -> Array:
    r"""Return how the fit at each query grows with the logarithm of the ridge of each column.

    With the share :math:`\tau_a` of the slope a in the fit,
    :math:`\partial \beta_0 / \partial \log \rho_a = -\rho_a \tau_a \beta_a / D`. Twice as much is how it grows with
    the logarithm of the bandwidth by way of the ridge, whose unit is a squared bandwidth.

    Parameters
    ----------
    state : PoolState
        Of m queries, with or without the ridge.
    fit : LocalFit
        Of the state with the ridge.
    ridge : ndarray of shape (d,)
        As in `with_ridge`.
    slope : ndarray of shape (m, d, c)
        Of the fit, or of other values with the same weights.

    Returns
    -------
    ndarray of shape (m, c, d)
        Per output and column.
    """
    share = np.divide(_unit(state), state.denominator, where=fit.occupied, out=np.zeros_like(state.denominator))
    return np.asarray(-(share[:, None] * ridge * fit.tilt)[:, None, :] * np.moveaxis(slope, 1, 2))


def diagonal(layout: Layout) -> NDArray[np.intp]:
    """Return the places of the squared offsets in a numerator.

    Examples
    --------
    >>> diagonal(Layout(values=1, columns=2, degree=1))
    array([3, 5])
    """
    upper, lower = np.triu_indices(layout.columns)
    return np.asarray(layout.second.start + np.flatnonzero(upper == lower))


def as_ridge(ridge: ArrayLike, columns: int | None = None) -> Array:
    """Read a ridge: one number, or one per column.

    Raises
    ------
    ValueError
        If it is negative or not finite, or there is not one per column.
    """
    if type(ridge) is float and 0.0 <= ridge < np.inf:  # as nearly always
        return np.array([ridge])
    try:
        read = np.atleast_1d(np.asarray(ridge, dtype=np.float64))
    except (TypeError, ValueError):
        raise ValueError(f"ridge must be a number from 0 on, or one per column, got {abbreviate(ridge)}") from None
    if read.ndim != 1 or not np.all(np.isfinite(read)) or np.any(read < 0):
        raise ValueError(f"ridge must be a number from 0 on, or one per column, got {abbreviate(ridge)}")
    if columns is not None and read.size not in (1, columns):
        raise ValueError(f"ridge has {read.size} numbers for {columns} columns; give one, or one per column")
    return read


def ridge_weight(ridge: ArrayLike, columns: int, log_peak: float) -> Array:
    """Return the ridge of each column in units of key weight times kernel, of shape (d,), as `with_ridge` takes it.

    Parameters
    ----------
    ridge : array_like
        In keys at the query; see `as_ridge`.
    columns : int
        Their number d.
    log_peak : float
        Logarithm of the kernel of a key at the query.

    Examples
    --------
    >>> ridge_weight(2.0, 3, np.log(0.5))
    array([1., 1., 1.])
    """
    return np.asarray(np.broadcast_to(as_ridge(ridge, columns), (columns,)) * np.exp(log_peak))


def _unit(state: PoolState) -> Array:
    """Return one unit of weight in the scale of each state; that of empty windows is not looked at."""
    return np.exp(np.minimum(-np.where(np.isfinite(state.shift), state.shift, 0.0), LARGEST_EXPONENT))
