"""Local constant, linear and quadratic fits from kernel-weighted moment sums, with an optional ridge on slopes.

**Planes.** Around each query the values are fitted by a plane, with the pooling weights as weights of least squares.
With the offsets ``t_j = (k_j - q) / h``, the weighted means ``vm, tm``, and the covariances ``C, s`` of `t` with
itself and with `v`::

    minimise  sum_j w_j K_j (v_j - b0 - b . t_j)^2
    b = C^-1 s,   b0 = vm - tm . b

The intercept ``b0`` is the fit at the query. It follows a boundary or a slope of the density that bias a local
constant fit.

**Quadratics.** The products of two offsets are further regressors. Written about the weighted mean of the keys, with
``u = t - tm`` and ``p = (u_a u_b), a <= b``, the fit is a regression on `u` and on the part of `p` that `u` does not
explain. With central moments ``C_uu, C_up, C_pp`` and covariances ``s_u, s_p`` with the values::

    S = C_pp - C_pu C_uu^-1 C_up
    g = S^-1 (s_p - C_pu C_uu^-1 s_u),   b_u = C_uu^-1 (s_u - C_up g)

So the rank is decided twice, each time by `bounded_inverse`: a direction in which the keys do not identify a
curvature becomes linear, and one in which they do not identify a slope becomes constant. Rejected: one decision about
all regressors together. Its shortest solution splits a slope between `t` and `t^2` wherever the keys are far away or
too few, which is neither linear nor constant.

**Rank.** A design is the weighted covariance of the offsets, each column in units of its root mean square. Its
eigenvalues compare the spread of the keys with their distance from the query, and so say how many digits are left.
Where the spread is less than about 1e-4 of the distance, half of the digits of C are lost, and `solve` makes the fit
constant in that direction. In S the ratio counts to the fourth power: a quadratic turns linear where the spread is
below about a hundredth of the distance, as for a Gaussian ten bandwidths from the nearest key. So far from all keys
every fit ends as the weighted mean, of a Gaussian the value of the nearest key, for `pool`, estimators, chunks, Dask
and torch alike. Rejected: a plane through the nearest few keys, which extrapolates without bound and is not the fit
that a search has seen.

**Ridge.** A plane of d slopes from few keys has an unbounded variance (Seifert and Gasser, 1996). A penalty on its
slopes bounds it::

    minimise  sum_j w_j K_j (v_j - b0 - b . t_j)^2 + rho K(0) sum_a b_a^2

This acts as if, for each column, `rho` more keys lay one bandwidth from the center of the window and reported a slope
of zero. A window of many keys hardly changes; a window of one or two becomes local constant. No new sums are needed:
the penalty is a number added to the second moments of a state.

**Linear weights.** The weight of a key in the fit (equivalent kernel) is ``alpha_j (base + tilt . z_j)``, where alpha
are the pooling weights and z the regressors: none for a constant, the offsets t for a plane, t and the products
``t_a t_e`` for a quadratic (`LocalFit`). With the state of the squared kernel, sums of products of two such weights
follow from moments up to the fourth order. About the mean zm of z, whose covariance is C, the mean of
``(base + tilt . z)(base' + tilt' . z)`` is::

    (base + tilt . zm)(base' + tilt' . zm) + tilt^T C tilt'

In a square no term is negative, and C is computed from moments about the mean of t, so that no large numbers cancel.

References
----------
.. [1] B. Seifert and T. Gasser, "Finite-sample variance of local polynomials: analysis and solutions", JASA 91
   (1996), 267-275.
.. [2] B. Seifert and T. Gasser, "Data adaptive ridging in local polynomial regression", JCGS 9 (2000), 338-360,
   eq. 4.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from kernpool._arrays import Array, Flags, Index
from kernpool.core.moments import Layout, monomials
from kernpool.core.state import PoolState
from kernpool.execution import abbreviate, blas_threads, warn_of_queries

RANK_TOLERANCE = float(np.finfo(np.float64).eps ** 0.5)
COLUMNS_FOR_CHOLESKY = 10  # fewer are eliminated in step, for all rows at once


def invert(design: Array) -> tuple[Array, Index]:
    """Return the inverses of m local design matrices, bounded where these are nearly singular, and their ranks."""
    # Inverses are bounded as in `bounded_inverse`. Elimination is five times as fast as eigenvalues, and accurate
    # enough where it shows that no eigenvalue is small.
    m, d, _ = design.shape
    rank = np.full(m, d)
    is_small = d < COLUMNS_FOR_CHOLESKY
    inverse = design.copy() if is_small else _invert_positive(design)
    with np.errstate(all="ignore"):
        for k in range(d if is_small else 0):
            pivot = inverse[:, k, k].copy()
            row, column = inverse[:, k, :] / pivot[:, None], inverse[:, :, k].copy()
            inverse -= column[:, :, None] * row[:, None, :]
            inverse[:, k, :], inverse[:, :, k] = row, -column / pivot[:, None]
            inverse[:, k, k] = 1.0 / pivot
        # The norm is at least 1 / lambda of the smallest eigenvalue; NaN, of a zero pivot, is not sure.
        sure = np.einsum("mde,mde->m", inverse, inverse) < (0.5 / RANK_TOLERANCE) ** 2
    if not sure.all():
        eigenvalues, directions = np.linalg.eigh(design[~sure])
        bounded, rank[~sure] = bounded_inverse(eigenvalues)
        inverse[~sure] = (directions * bounded[:, None, :]) @ directions.transpose(0, 2, 1)
    return inverse, rank


def _invert_positive(design: Array) -> Array:
    """Return the inverses of symmetric matrices, NaN where one is not positive definite."""
    # In half of the time of a general inverse in 200 columns.
    from scipy.linalg.lapack import dpotrf, dpotri

    inverse = np.empty_like(design)
    with blas_threads():  # two threads wait for each other at every matrix: on a busy machine 11 s for 3 ms
        for one, half in zip(design, inverse, strict=True):
            factor, failed = dpotrf(one)  # zero below the diagonal, and so is the inverse
            half[:] = np.nan if failed else dpotri(factor, overwrite_c=1)[0]
    inverse += inverse.transpose(0, 2, 1)
    np.einsum("mdd->md", inverse)[:] *= 0.5
    return inverse


def invert_scalars(design: Array) -> tuple[Array, Index]:
    """Return the inverses and ranks of m local designs of a single column, given as numbers, bit by bit as `invert`."""
    with np.errstate(all="ignore"):
        inverse = 1.0 / design
        sure = inverse * inverse < (0.5 / RANK_TOLERANCE) ** 2
    rank = np.ones(len(design), dtype=np.intp)
    if not sure.all():
        inverse[~sure], rank[~sure] = bounded_inverse(design[~sure, None])[0][:, 0], design[~sure] > RANK_TOLERANCE
    return inverse, rank


def bounded_inverse(eigenvalues: Any, tolerance: float = RANK_TOLERANCE) -> tuple[Any, Any]:
    """Return reciprocals of eigenvalues, shrunk near zero, and the rank: the number above `tolerance`."""
    # For NumPy arrays and torch tensors.
    # The design is the weighted covariance of the offsets, each column in units of its root mean square. So an
    # eigenvalue is, about, the squared spread of the keys in some direction divided by their squared distance from the
    # query. An eigenvalue below the `tolerance` is treated as zero: the fit becomes local constant in that direction,
    # continuously:
    # \lambda^{-1} \text{ for } \lambda > \tau, \qquad \lambda / \tau^2 \text{ for } 0 \le \lambda \le \tau
    # which is a ridge of \tau^2 / \lambda - \lambda in the deficient directions and no ridge in the others.
    # A constant ridge would shrink all slopes of such a window, and its noise would be divided by the ridge. Dropping
    # the directions instead would let the fit jump, as a function of the query and of the bandwidth.
    shrunk = eigenvalues.clip(0.0, tolerance) / tolerance  # exactly one where there is no ridge
    return shrunk / eigenvalues.clip(tolerance), (eigenvalues > tolerance).sum(-1)


def central_means(mean: Array, layout: Layout) -> tuple[Array, Flags]:
    """Return weighted means of offset products about the mean offset, and flags of queries where all are finite."""
    # Where fourth powers overflow, the products that only quadratic fits use are set to zero.
    with np.errstate(all="ignore"):
        central = layout.moved(np.ones(len(mean)), mean, -mean[:, layout.first])
        finite = np.all(np.isfinite(central) & np.isfinite(mean), axis=1)
    central[~finite, layout.third.start :] = 0.0
    return central, finite


def _units(mean: Array, layout: Layout) -> tuple[Array, Array]:
    """Return scales of the offsets, and of products of two offsets: root mean squares, or upper bounds of them."""
    # Rounding errors are relative to these scales.
    (upper, lower), second, fourth = np.triu_indices(layout.columns), layout.places(2), layout.places(4)
    square = mean[:, np.array([second[a, a] for a in range(layout.columns)], dtype=np.intp)]
    squares_of_pair = [fourth[a, a, b, b] for a, b in monomials(layout.columns, 2)]
    with np.errstate(over="ignore", invalid="ignore"):
        by_pair = square[:, upper] * square[:, lower]
        by_pair = np.maximum(by_pair, mean[:, np.array(squares_of_pair, dtype=np.intp)])
    return np.sqrt(np.where(square > 0, square, 1.0)), np.sqrt(np.where(by_pair > 0, by_pair, 1.0))


def moment_matrix(central: Array, layout: Layout, orders: tuple[int, int]) -> Array:
    """Arrange mean products of offsets as a matrix per query: monomials of one order by monomials of another."""
    return central[:, _places_of_products(layout, orders)]


@cache
def _places_of_products(layout: Layout, orders: tuple[int, int]) -> Index:
    places = layout.places(sum(orders))
    rows, columns = (monomials(layout.columns, order) for order in orders)
    place = np.array([[places[tuple(sorted(a + b))] for b in columns] for a in rows], dtype=np.intp)
    return place.reshape(len(rows), len(columns))


# At once, about 50 ms at most: eigenvalues of many small matrices are one call that nothing interrupts. Designs of half
# a megabyte stay in the cache.
ROWS, NUMBERS = 1 << 13, 1 << 16


class RankDeficiencyWarning(RuntimeWarning):
    """Warning that the keys around some queries determine no plane or quadratic, so that the fit has a lower degree."""


@dataclass(frozen=True)
class LocalFit:
    r"""Local polynomial fits at m queries: intercepts, slopes, equivalent-kernel coefficients and design ranks.

    Parameters
    ----------
    intercept : ndarray of shape (m, c)
        The fit at the query.
    slope : ndarray of shape (m, d, c)
        Its slope, per bandwidth of each column.
    base : ndarray of shape (m,)
        With `tilt`, the linear weight of a key in the fit:
        :math:`\partial \beta_0 / \partial v_j = \alpha_j (b + \tau \cdot t_j)`, where alpha are the pooling weights.
    tilt : ndarray of shape (m, regressors)
        See `base`. Of a quadratic fit t is followed by its products :math:`t_a t_b, a \\le b`.
    rank : ndarray of int, shape (m,)
        Number of directions in which the keys of the window determine a slope; d unless the window is degenerate. For
        a quadratic fit those of curvatures are added, d (d + 3) / 2 in all.
    occupied : ndarray of bool, shape (m,)
        Whether there is a key of positive weight at all.
    """

    intercept: Array
    slope: Array
    base: Array
    tilt: Array
    rank: Index
    occupied: Flags

    def rows(self, which: slice | Index) -> LocalFit:
        """Return the local fits of the queries with these indices."""
        return LocalFit(*(getattr(self, field.name)[which] for field in fields(self)))


def solve(state: PoolState, layout: Layout) -> LocalFit:
    """Solve the local constant, linear or quadratic fit at each query from its kernel-weighted moment sums.

    Notes
    -----
    A covariance is a difference, ``mean(t t') - mean(t) mean(t)'``. With offsets from the query, its relative rounding
    error grows with the squared ratio of the keys' distance to their spread; where half of the digits would be lost,
    `bounded_inverse` treats the keys as equal in that direction. The sums hold no more information.

    Examples
    --------
    >>> import kernpool
    >>> state = kernpool.pool_state([2.0], [2.0, 3.0, 5.0], [1.0, 3.0, 7.0], bandwidth=2.0, degree=1)
    >>> fit = solve(state, Layout(values=1, columns=1, degree=1))
    >>> fit.intercept, fit.slope / 2.0, fit.rank
    (array([[1.]]), array([[[2.]]]), array([1]))
    """
    m, c, d = len(state.denominator), layout.values, layout.columns
    occupied, rank = state.denominator > 0, np.zeros(m, dtype=np.intp)
    share = np.divide(1.0, state.denominator, where=occupied, out=np.zeros(m))
    if not layout.degree:
        intercept = state.numerator * share[:, None]
        return LocalFit(intercept, np.empty((m, 0, c)), np.ones(m), np.empty((m, 0)), rank, occupied)
    p = layout.regressors
    fit = LocalFit(np.empty((m, c)), np.empty((m, d, c)), np.empty(m), np.empty((m, p)), rank, occupied)
    at_once = min(ROWS, max(1, NUMBERS // p**2)) if d else ROWS
    solve_rows = _solve_quadratics if layout.degree == 2 else _solve_lines if d == 1 else _solve_rows
    for start in range(0, m, at_once):
        rows = slice(start, start + at_once)
        solve_rows(state.numerator[rows] * share[rows, None], layout, fit, rows)
    return fit


def _solve_quadratics(mean: Array, layout: Layout, fit: LocalFit, rows: slice) -> None:
    m, c, d = len(mean), layout.values, layout.columns
    (upper, lower), value, offset = np.triu_indices(d), mean[:, layout.value], mean[:, layout.first]
    unit, unit_of_pair = _units(mean, layout)
    central, finite = central_means(mean, layout)
    unit_of_pair[~finite] = 1.0
    spread = central[:, layout.second]
    between = moment_matrix(central, layout, (1, 1)) / unit[:, :, None] / unit[:, None, :]
    skew = moment_matrix(central, layout, (1, 2)) / unit[:, :, None] / unit_of_pair[:, None, :]
    middle = np.where(finite[:, None], spread / unit_of_pair, 0.0)
    curved = moment_matrix(central, layout, (2, 2)) / unit_of_pair[:, :, None] / unit_of_pair[:, None, :]
    curved -= middle[:, :, None] * middle[:, None, :]
    by_slope, rank = invert(between)
    carried = by_slope @ skew
    by_curve, rank_of_curve = invert(curved - skew.transpose(0, 2, 1) @ carried)

    def solved(right: Array, right_of_pair: Array) -> tuple[Array, Array]:
        """Solve for slopes and curvatures, per scaled regressor, with several right-hand sides at once."""
        curve = by_curve @ (right_of_pair - carried.transpose(0, 2, 1) @ right)
        return by_slope @ right - carried @ curve, curve

    with_pair = central[:, layout.cross_second].reshape(m, len(upper), c) / unit_of_pair[:, :, None]
    slope, curve = solved(
        central[:, layout.cross].reshape(m, d, c) / unit[:, :, None],
        with_pair - middle[:, :, None] * value[:, None, :],
    )
    # The query, as seen from the mean of the keys.
    at = -offset / unit
    with np.errstate(over="ignore", invalid="ignore"):
        at_pair = np.where(finite[:, None], offset[:, upper] * offset[:, lower] / unit_of_pair, 0.0) - middle
    intercept = value + np.einsum("md,mdc->mc", at, slope) + np.einsum("mp,mpc->mc", at_pair, curve)
    share, share_of_pair = (part[:, :, 0] for part in solved(at[:, :, None], at_pair[:, :, None]))
    base = 1.0 + np.sum(at * share, axis=1) + np.sum(at_pair * share_of_pair, axis=1)
    tilt, tilt_of_pair = share / unit, share_of_pair / unit_of_pair
    slope, curve = slope / unit[:, :, None], curve / unit_of_pair[:, :, None]
    # From offsets about the mean of the keys to offsets from the query.
    for i, (a, b) in enumerate(monomials(d, 2)):
        for one, other in ((a, b), (b, a)):
            tilt[:, one] -= offset[:, other] * tilt_of_pair[:, i]
            slope[:, one] -= offset[:, other, None] * curve[:, i]
    fit.intercept[rows], fit.slope[rows], fit.base[rows] = intercept, slope, base
    fit.tilt[rows], fit.rank[rows] = np.hstack([tilt, tilt_of_pair]), rank + rank_of_curve


def _solve_lines(mean: Array, layout: Layout, fit: LocalFit, rows: slice) -> None:
    """Solve local linear fits for keys of one column, without 1 x 1 matrices, and write them into `fit`."""
    # The bits are those of `_solve_rows`.
    # For a million rows on one core the matrices took 133 ms; this takes 66 ms.
    value, first, square = mean[:, layout.value], mean[:, layout.first.start], mean[:, layout.second.start]
    unit = np.sqrt(np.where(square > 0, square, 1.0))
    offset = first / unit
    covariance = square / unit / unit - offset * offset
    inverse, fit.rank[rows] = invert_scalars(covariance)
    slope = inverse[:, None] * (mean[:, layout.cross] / unit[:, None] - offset[:, None] * value)
    tilt = -(inverse * offset)
    fit.intercept[rows] = value - offset[:, None] * slope
    fit.slope[rows, 0] = slope / unit[:, None]
    fit.base[rows] = 1.0 - offset * tilt
    fit.tilt[rows, 0] = tilt / unit


def _solve_rows(mean: Array, layout: Layout, fit: LocalFit, rows: slice) -> None:
    m, c, d = len(mean), layout.values, layout.columns
    value, offset = mean[:, layout.value], mean[:, layout.first]
    covariance = moment_matrix(mean, layout, (1, 1))
    # In units of its root mean square, a column with a bandwidth of 1e9 is worth as much as any other.
    # At a query where all keys lie, sums that were moved there may be rounded to less than nothing.
    square = np.diagonal(covariance, axis1=1, axis2=2)
    if layout.sizes:  # units, and with them the rank, do not depend on the axes of a circle or a globe
        sums = np.add.reduceat(square, np.cumsum((0, *layout.sizes[:-1])), axis=1)
        square = np.repeat(sums / layout.sizes, layout.sizes, axis=1)
    unit = np.sqrt(np.where(square > 0, square, 1.0))
    offset = offset / unit
    covariance /= unit[:, :, None]
    covariance /= unit[:, None, :]
    covariance -= offset[:, :, None] * offset[:, None, :]
    with_value = mean[:, layout.cross].reshape(m, d, c) / unit[:, :, None] - offset[:, :, None] * value[:, None, :]
    inverse, fit.rank[rows] = invert(covariance)
    slope, tilt = inverse @ with_value, -(inverse @ offset[:, :, None])[:, :, 0]
    fit.intercept[rows] = value - np.sum(offset[:, :, None] * slope, axis=1)
    fit.slope[rows] = slope / unit[:, :, None]
    fit.base[rows] = 1.0 - np.sum(offset * tilt, axis=1)
    fit.tilt[rows] = tilt / unit


def warn_of_rank(rank: Index, occupied: Flags, columns: int) -> None:
    """Warn once if at some queries the keys of positive weight do not determine all slopes of a local plane."""
    warn_of_queries(
        occupied & (rank < columns),
        "the keys determine no slope in some direction, and the fit is constant in it; use a larger bandwidth, or a "
        "local constant fit",
        RankDeficiencyWarning,
    )


def warn_of_curvature(rank: Index, occupied: Flags, columns: int) -> None:
    """Warn once if at some queries the keys of positive weight do not determine a local quadratic."""
    warn_of_queries(
        occupied & (rank < columns),
        "the keys do not determine a quadratic, and the fit is linear or constant in some direction; use a larger "
        "bandwidth, or degree=1 (for intervals: method='robust')",
        RankDeficiencyWarning,
    )


LARGEST_EXPONENT = 300.0  # of a ridge relative to a window; slopes are zero to the last digit long before


def with_ridge(state: PoolState, layout: Layout, ridge: Array) -> PoolState:
    """Return a `PoolState` with a ridge penalty on the slopes added to the sums of squared offsets.

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
    upper, lower = np.triu_indices(layout.columns)
    numerator[:, layout.second.start + np.flatnonzero(upper == lower)] += ridge * _unit(state)[:, None]
    return PoolState(state.shift, state.denominator, numerator)


def change_by_ridge(state: PoolState, fit: LocalFit, ridge: Array, slope: Array) -> Array:
    """Differentiate each fitted value with respect to the logarithm of the ridge penalty of each column."""
    # With the component \tau_a of the tilt in the fit, \partial \beta_0 / \partial \log \rho_a = -\rho_a \tau_a \beta_a
    # / D. Twice as much is how it grows with the logarithm of the bandwidth by way of the ridge, whose unit is a
    # squared bandwidth.
    share = np.divide(_unit(state), state.denominator, where=fit.occupied, out=np.zeros_like(state.denominator))
    return -(share[:, None] * ridge * fit.tilt)[:, None, :] * np.moveaxis(slope, 1, 2)


def check_ridge(ridge: ArrayLike) -> None:
    """Raise ValueError unless a ridge penalty is one number from zero on, or one per column."""
    if type(ridge) is float and 0.0 <= ridge < np.inf:  # as nearly always
        return
    try:
        read = np.atleast_1d(np.asarray(ridge, dtype=np.float64))
    except (TypeError, ValueError):
        read = np.array([np.nan])
    if read.ndim != 1 or not np.all(np.isfinite(read)) or np.any(read < 0):
        raise ValueError(f"ridge must be a number from 0 on, or one per column, got {abbreviate(ridge)}")


def _unit(state: PoolState) -> Array:
    """Return what one unit of key weight amounts to on the scale of each query's sums: ``exp(-shift)``, up to a cap."""
    # It is arbitrary for empty windows.
    return np.exp(np.minimum(-np.where(np.isfinite(state.shift), state.shift, 0.0), LARGEST_EXPONENT))


Pair = tuple[Array, Array]  # base of shape (m,), and tilt of shape (m, regressors)


def in_other_bandwidths(tilt: Array, layout: Layout, width: float) -> Array:
    """Rescale `tilt`, coefficients of the equivalent kernel, to offsets measured in other bandwidths."""
    scale = np.full(layout.regressors, width)
    scale[layout.columns :] = width * width
    return np.asarray(tilt * scale)


def mean_product(state: PoolState, layout: Layout, one: Pair, other: Pair) -> tuple[Array, Array]:
    """Return the weighted mean of a product of two linear functions of the local regressors, and a bound on its size.

    The mean is over the keys of each query. Its rounding error is relative to the bound.
    """
    # With the regressors z they are the mean of (b + \tau \cdot z)(b' + \tau' \cdot z), and the product of two bounds
    # on root mean squares, \lvert b \rvert + \sum_p \lvert \tau_p \rvert (\overline{z_p^2})^{1/2}.
    (base, tilt), (other_base, other_tilt) = one, other
    if not layout.degree:
        product = base * other_base
        return product, np.abs(product)
    occupied = state.denominator[:, None] != 0
    mean = np.divide(state.numerator, state.denominator[:, None], where=occupied, out=np.zeros_like(state.numerator))
    offset, second = mean[:, layout.first], moment_matrix(mean, layout, (1, 1))
    squares = np.diagonal(second, axis1=1, axis2=2)
    if layout.degree == 1:
        design = second - offset[:, :, None] * offset[:, None, :]
    else:
        design = _covariance(mean, layout)
        of_pairs = np.diagonal(moment_matrix(mean, layout, (2, 2)), axis1=1, axis2=2)
        squares = np.concatenate([squares, of_pairs], axis=1)
    level, slope = _about_mean(mean, layout, offset, base, tilt)
    other_level, other_slope = _about_mean(mean, layout, offset, other_base, other_tilt)
    product = level * other_level + np.einsum("mp,mpq,mq->m", slope, design, other_slope)
    with np.errstate(invalid="ignore", over="ignore"):
        root = np.sqrt(np.maximum(squares, 0.0))
        size = np.abs(base) + np.nansum(np.abs(tilt) * root, axis=1)
        size *= np.abs(other_base) + np.nansum(np.abs(other_tilt) * root, axis=1)
    return product, size


def _about_mean(mean: Array, layout: Layout, offset: Array, base: Array, tilt: Array) -> tuple[Array, Array]:
    """Convert the coefficients base and tilt from offsets from the query to offsets from the mean of the keys."""
    # Products of two offsets are taken less their mean, so that the first result is the mean of ``base + tilt . z``.
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
    """Return at each query the weighted covariance matrix of the regressors of its quadratic, of shape (m, p, p)."""
    # They are the offsets and the products of two offsets from the mean.
    central, finite = central_means(mean, layout)
    skew, middle = moment_matrix(central, layout, (1, 2)), np.where(finite[:, None], central[:, layout.second], 0.0)
    curved = moment_matrix(central, layout, (2, 2)) - middle[:, :, None] * middle[:, None, :]
    upper = np.concatenate([moment_matrix(central, layout, (1, 1)), skew], axis=2)
    lower = np.concatenate([skew.transpose(0, 2, 1), curved], axis=2)
    return np.concatenate([upper, lower], axis=1)
