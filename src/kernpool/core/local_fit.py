r"""Local linear fits: from the moments of a pooling state to a value and a slope per query.

Around each query the values are fitted by a plane, with the pooling weights as weights of least squares:

.. math:: \min_{\beta_0, \beta} \sum_j w_j K_j (v_j - \beta_0 - \beta \cdot t_j)^2, \qquad t_j = (k_j - q) / h

The intercept :math:`\beta_0` is the fit at the query. It follows a boundary or a slope of the density that bias a local
constant fit. With weighted means :math:`\bar v, \bar t` and covariances :math:`C, s` of `t` with itself and with `v`,

.. math:: \beta = C^{-1} s, \qquad \beta_0 = \bar v - \bar t \cdot \beta

Of degree 2 products of two offsets are regressors as well (`quadratic_fit.py`).

This is as far as a state goes. Far from all keys, where their spread is less than about 1e-4 of their distance, half
of the digits of C are lost, and `solve` makes the fit constant in that direction. With estimators and their searches,
chunks, Dask and torch, whose gradients are those of this fit, it stays so. `pool` fits such queries to the keys
themselves (`kernpool.pooling.arrays`, by way of `kernpool.algorithms.far.keys`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from kernpool.core.designs import UNSURE, find_lost, invert, invert_numbers, solve_safely
from kernpool.core.moments import Layout
from kernpool.core.quadratic_fit import fit_quadratics
from kernpool.core.state import PoolState
from kernpool.execution.warnings import warn_caller

Array = NDArray[np.float64]

# At once, about 50 ms at most: eigenvalues of many small matrices are one call that nothing interrupts. Designs of half
# a megabyte stay in the cache.
ROWS, NUMBERS = 1 << 13, 1 << 16


class RankDeficiencyWarning(RuntimeWarning):
    """The keys of some windows do not determine a plane, or a quadratic, so that the fit is of a lower degree there."""


@dataclass(frozen=True)
class LocalFit:
    r"""Local linear fits of m queries.

    Parameters
    ----------
    intercept : ndarray of shape (m, c)
        The fit at the query.
    slope : ndarray of shape (m, d, c)
        Its slope, per bandwidth of each column.
    base : ndarray of shape (m,)
        With `tilt`, the share of a key in the fit: :math:`\partial \beta_0 / \partial v_j = \alpha_j (b + \tau \cdot
        t_j)`, where alpha are the pooling weights.
    tilt : ndarray of shape (m, regressors)
        See `base`. Of a quadratic fit t is followed by its products :math:`t_a t_b, a \\le b`.
    rank : ndarray of int, shape (m,)
        In how many directions the keys of the window determine a slope; d unless the window is degenerate. Of a
        quadratic fit with those of curvatures, d (d + 3) / 2 in all.
    occupied : ndarray of bool, shape (m,)
        Whether there is a key of positive weight at all.
    lost : ndarray of int8, shape (m,)
        What sums of offsets cannot tell because keys are close together beside their distance: nothing (0), whether
        they determine a slope in some direction (1), or digits of one that they do determine (2). `fit_lost`
        finds it out from the keys themselves; then `base` and `tilt` are NaN, since a share is no product of two
        numbers any more.
    """

    intercept: Array
    slope: Array
    base: Array
    tilt: Array
    rank: NDArray[np.intp]
    occupied: NDArray[np.bool_]
    lost: NDArray[np.int8]

    def rows(self, which: slice | NDArray[np.intp]) -> LocalFit:
        """Return the fits of some of the queries."""
        return LocalFit(*(getattr(self, field.name)[which] for field in fields(self)))

    @classmethod
    def joined(cls, fits: Sequence[LocalFit]) -> LocalFit:
        """Return the fits of several sets of queries as one."""
        if len(fits) == 1:
            return fits[0]
        return cls(*(np.concatenate([getattr(fit, field.name) for fit in fits]) for field in fields(cls)))


def solve(state: PoolState, layout: Layout) -> LocalFit:
    """Fit locally: a plane or a quadratic with moments, a constant without.

    Parameters
    ----------
    state : PoolState
        Of m queries. States of centered values give more digits of the slopes.
    layout : Layout
        What its numerator holds.

    Returns
    -------
    LocalFit
        Zeros for empty windows.

    Notes
    -----
    A covariance is a difference, ``mean(t t') - mean(t) mean(t)'``. With offsets from the query it loses as many digits
    as the spread of the keys is small beside their distance, squared; where half of the digits would be lost,
    `bounded_inverse` takes the keys for equal in that direction. A state does not know better. Where the keys are at
    hand `lost` says which queries to fit from them.

    Examples
    --------
    >>> import kernpool
    >>> state = kernpool.pool_state([2.0], [2.0, 3.0, 5.0], [1.0, 3.0, 7.0], bandwidth=2.0, degree=1)
    >>> fit = solve(state, Layout(values=1, columns=1, degree=1))
    >>> fit.intercept, fit.slope / 2.0, fit.rank
    (array([[1.]]), array([[[2.]]]), array([1]))
    """
    m, c, d = len(state.denominator), layout.values, layout.columns
    occupied, rank, lost = state.denominator > 0, np.zeros(m, dtype=np.intp), np.zeros(m, dtype=np.int8)
    share = np.divide(1.0, state.denominator, where=occupied, out=np.zeros(m))
    if not layout.degree:
        intercept = state.numerator * share[:, None]
        return LocalFit(intercept, np.empty((m, 0, c)), np.ones(m), np.empty((m, 0)), rank, occupied, lost)
    p = layout.regressors
    fit = LocalFit(np.empty((m, c)), np.empty((m, d, c)), np.empty(m), np.empty((m, p)), rank, occupied, lost)
    at_once = min(ROWS, max(1, NUMBERS // p**2)) if d else ROWS
    solve_rows = _solve_quadratics if layout.degree == 2 else _solve_lines if d == 1 else _solve_rows
    for start in range(0, m, at_once):
        rows = slice(start, start + at_once)
        solve_rows(state.numerator[rows] * share[rows, None], layout, fit, rows)
    return fit


def _solve_quadratics(mean: Array, layout: Layout, fit: LocalFit, rows: slice) -> None:
    found = fit_quadratics(mean, layout)
    for name, part in found._asdict().items():
        getattr(fit, name)[rows] = part


def _solve_lines(mean: Array, layout: Layout, fit: LocalFit, rows: slice) -> None:
    """Solve for lines in one column: the steps of `_solve_rows`, to the same bits, without matrices of one entry.

    Of a million rows these took 133 ms on one core, and without them it is 66.
    """
    value, first, square = mean[:, layout.value], mean[:, layout.first.start], mean[:, layout.second.start]
    unit = np.sqrt(np.where(square > 0, square, 1.0))
    offset = first / unit
    covariance = square / unit / unit - offset * offset
    inverse, fit.rank[rows] = invert_numbers(covariance)
    sure = (fit.rank[rows] == 1) & (inverse * inverse < (0.5 / UNSURE) ** 2)  # of rank 0 the inverse is zero
    if not sure.all():
        table, whole = inverse[:, None, None], fit.rank[rows]
        fit.lost[rows] = find_lost(covariance[:, None, None], table, offset[:, None], whole)
    slope = inverse[:, None] * (mean[:, layout.cross] / unit[:, None] - offset[:, None] * value)
    tilt = -(inverse * offset)
    fit.intercept[rows] = value - offset[:, None] * slope
    fit.slope[rows, 0] = slope / unit[:, None]
    fit.base[rows] = 1.0 - offset * tilt
    fit.tilt[rows, 0] = tilt / unit


def _solve_rows(mean: Array, layout: Layout, fit: LocalFit, rows: slice) -> None:
    m, c, d = len(mean), layout.values, layout.columns
    value, offset = mean[:, layout.value], mean[:, layout.first]
    upper, lower = np.triu_indices(d)
    place = np.empty((d, d), dtype=np.intp)
    place[upper, lower] = place[lower, upper] = np.arange(upper.size)
    second = np.take(mean[:, layout.second], place.ravel(), axis=1).reshape(m, d, d)
    # In units of its root mean square, a column with a bandwidth of 1e9 is worth as much as any other.
    # At a query where all keys lie, sums that were moved there may be rounded to less than nothing.
    square = np.diagonal(second, axis1=1, axis2=2)
    unit = np.sqrt(np.where(square > 0, square, 1.0))
    offset = offset / unit
    covariance = second / unit[:, :, None] / unit[:, None, :] - offset[:, :, None] * offset[:, None, :]
    with_value = mean[:, layout.cross].reshape(m, d, c) / unit[:, :, None] - offset[:, :, None] * value[:, None, :]
    solution = solve_safely(covariance, np.concatenate([with_value, -offset[:, :, None]], axis=2))
    if solution is None:
        inverse, fit.rank[rows] = invert(covariance)
        fit.lost[rows] = find_lost(covariance, inverse, offset, fit.rank[rows])
        slope, tilt = inverse @ with_value, -(inverse @ offset[:, :, None])[:, :, 0]
    else:
        fit.rank[rows], slope, tilt = d, solution[:, :, :c], solution[:, :, c]
    fit.intercept[rows] = value - np.sum(offset[:, :, None] * slope, axis=1)
    fit.slope[rows] = slope / unit[:, :, None]
    fit.base[rows] = 1.0 - np.sum(offset * tilt, axis=1)
    fit.tilt[rows] = tilt / unit


def warn_of_rank(rank: NDArray[np.intp], occupied: NDArray[np.bool_], columns: int) -> None:
    """Warn once of windows whose keys do not determine a plane; empty ones are another matter.

    Parameters
    ----------
    rank : ndarray of int, shape (m,)
        From `solve`.
    occupied : ndarray of bool, shape (m,)
        Where there is any key at all.
    columns : int
        Full rank.
    """
    deficient = np.flatnonzero(occupied & (rank < columns))
    if deficient.size:
        warn_caller(
            f"around {deficient.size} of {rank.size} queries (the first is query {deficient[0]}) the keys determine no "
            "slope in some direction, and the fit is constant in it; use a larger bandwidth, or a local constant fit",
            RankDeficiencyWarning,
        )


def warn_of_curvature(rank: NDArray[np.intp], occupied: NDArray[np.bool_], columns: int) -> None:
    """Warn once of windows whose keys do not determine a quadratic; parameters as of `warn_of_rank`."""
    deficient = np.flatnonzero(occupied & (rank < columns))
    if deficient.size:
        warn_caller(
            f"around {deficient.size} of {rank.size} queries (the first is query {deficient[0]}) the keys do not "
            "determine a quadratic, and the fit is linear or constant in some direction; use a larger bandwidth, or "
            "degree=1 (for intervals: method='robust')",
            RankDeficiencyWarning,
        )
