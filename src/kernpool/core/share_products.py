r"""Products of shares: what squared shares of keys in a local fit sum to, from the moments of one more state.

The share of a key in a local fit is :math:`\alpha_j (b + \tau \cdot z_j)`, where z are its regressors: nothing for a
constant, its offsets t for a plane, t and the products :math:`t_a t_e` for a quadratic (`LocalFit`). With the state of
the squared kernel the mean of :math:`(b + \tau \cdot z_j)(b' + \tau' \cdot z_j)` is that of products of up to four
offsets. About the mean of z it is

.. math:: (b + \tau \cdot \bar z)(b' + \tau' \cdot \bar z) + \tau^T C \tau',

of which no term of a square is negative; and C is found from moments about the mean of t, so that nothing large is
subtracted.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from kernpool.core.moments import Layout
from kernpool.core.quadratic_fit import central_means, table_of
from kernpool.core.state import PoolState

Array = NDArray[np.float64]
Pair = tuple[Array, Array]  # base of shape (m,), and tilt of shape (m, regressors)


def in_other_bandwidths(tilt: Array, layout: Layout, width: float) -> Array:
    """Return tilts for offsets that are counted in other bandwidths.

    Parameters
    ----------
    tilt : ndarray of shape (m, regressors)
        As of `LocalFit`.
    layout : Layout
        Of the fit.
    width : float
        The other bandwidths, in units of those of the fit.

    Returns
    -------
    ndarray of shape (m, regressors)
        Products of two offsets count by its square.

    Examples
    --------
    >>> in_other_bandwidths(np.array([[2.0, 3.0]]), Layout(values=1, columns=1, degree=2), 0.5)
    array([[1.  , 0.75]])
    """
    scale = np.ones(layout.regressors)
    scale[: layout.columns], scale[layout.columns :] = width, width * width
    return np.asarray(tilt * scale)


def mean_product(state: PoolState, layout: Layout, one: Pair, other: Pair) -> Array:
    r"""Return the weighted mean of :math:`(b + \tau \cdot z)(b' + \tau' \cdot z)` over the keys of a state.

    Parameters
    ----------
    state : PoolState
        Of m queries; its values are not looked at.
    layout : Layout
        What its numerator holds.
    one, other : (ndarray of shape (m,), ndarray of shape (m, regressors))
        Base and tilt of both, in bandwidths of the state (`in_other_bandwidths`).

    Returns
    -------
    ndarray of shape (m,)
        The means; what windows without keys get does not mean anything.

    Examples
    --------
    The norm of the shares in a local quadratic fit, of which the state of the squared kernel knows nothing but sums.

    >>> import kernpool
    >>> from kernpool.core.local_fit import solve
    >>> key, layout, h = np.linspace(-1.0, 1.0, 9), Layout(values=1, columns=1, degree=2), 0.8
    >>> state = kernpool.pool_state([0.3], key, key, bandwidth=h, degree=2)
    >>> squared = kernpool.pool_state([0.3], key, key, bandwidth=h / 2**0.5, degree=2)
    >>> fit = solve(state, layout)
    >>> pair = fit.base, in_other_bandwidths(fit.tilt, layout, 0.5**0.5)
    >>> unit = np.exp(squared.log_denominator - 2.0 * state.log_denominator)
    >>> found = unit * mean_product(squared, layout, pair, pair)
    >>> share = [kernpool.pool([0.3], key, one, bandwidth=h, degree=2)[0] for one in np.eye(9)]
    >>> bool(np.isclose(found[0], np.sum(np.square(share)), rtol=1e-13))
    True
    """
    (base, tilt), (other_base, other_tilt) = one, other
    if not layout.degree:
        return np.asarray(base * other_base)
    mean = state.finalize(empty="zero")
    design, offset = _covariance(mean, layout), mean[:, layout.first]
    (level, slope), (other_level, other_slope) = (
        _about_mean(mean, layout, offset, *pair) for pair in ((base, tilt), (other_base, other_tilt))
    )
    return np.asarray(level * other_level + np.einsum("mp,mpq,mq->m", slope, design, other_slope))


def size_of_shares(state: PoolState, layout: Layout, pair: Pair) -> Array:
    r"""Return :math:`\lvert b \rvert + \sum_p \lvert \tau_p \rvert (\overline{z_p^2})^{1/2}`, of shape (m,).

    The rounding of `mean_product` is that of the product of two such sizes.

    Parameters
    ----------
    state, layout, pair
        As of `mean_product`.

    Returns
    -------
    ndarray of shape (m,)
        Not less than the root mean square of b + tau z.
    """
    base, tilt = pair
    if not layout.degree:
        return np.abs(base)
    mean = state.finalize(empty="zero")
    squares = np.diagonal(table_of(mean, layout, (1, 1)), axis1=1, axis2=2)
    if layout.degree == 2:
        squares = np.concatenate([squares, np.diagonal(table_of(mean, layout, (2, 2)), axis1=1, axis2=2)], axis=1)
    with np.errstate(invalid="ignore", over="ignore"):
        return np.asarray(np.abs(base) + np.nansum(np.abs(tilt) * np.sqrt(np.maximum(squares, 0.0)), axis=1))


def _about_mean(mean: Array, layout: Layout, offset: Array, base: Array, tilt: Array) -> tuple[Array, Array]:
    """Return the value at the mean of the regressors, and the tilt for offsets from the mean of the keys."""
    d = layout.columns
    level = base + np.sum(tilt[:, :d] * offset, axis=1)
    if layout.degree == 1:
        return level, tilt
    of_pair = tilt[:, d:]
    with np.errstate(invalid="ignore"):  # second moments beyond all numbers have no tilt
        level = level + np.sum(np.where(of_pair != 0, of_pair * mean[:, layout.second], 0.0), axis=1)
    moved = tilt.copy()
    for i, (a, b) in enumerate(layout.places(2)):
        moved[:, a] += offset[:, b] * of_pair[:, i]
        moved[:, b] += offset[:, a] * of_pair[:, i]
    return level, moved


def _covariance(mean: Array, layout: Layout) -> Array:
    """Return the covariance of offsets from the mean and, for quadratics, of their products; of shape (m, p, p)."""
    if layout.degree == 1:
        offset = mean[:, layout.first]
        return np.asarray(table_of(mean, layout, (1, 1)) - offset[:, :, None] * offset[:, None, :])
    central, told = central_means(mean, layout)
    skew, middle = table_of(central, layout, (1, 2)), np.where(told[:, None], central[:, layout.second], 0.0)
    curved = table_of(central, layout, (2, 2)) - middle[:, :, None] * middle[:, None, :]
    upper = np.concatenate([table_of(central, layout, (1, 1)), skew], axis=2)
    lower = np.concatenate([skew.transpose(0, 2, 1), curved], axis=2)
    return np.concatenate([upper, lower], axis=1)
