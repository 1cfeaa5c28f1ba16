r"""Fits of loess: passes with robustness weights, and statistics of the smoother matrix.

With the matrix L of the linear weights of the fits at the rows [1]_,

.. math:: \delta_1 = \operatorname{tr} (I - L)(I - L)', \quad \delta_2 = \operatorname{tr} ((I - L)(I - L)')^2, \quad
          s^2 = \sum_i w_i e_i^2 / \delta_1

A robust fit takes L from the first pass, and e from a plain fit to pseudovalues: its fitted values plus ``c B e``,
where B are the robustness weights and c makes their mean what it would be under normal noise.

:math:`\delta_1` is made of sums that every fit has. :math:`\delta_2` is the trace of the square of
``I - A``, where A = L + L' - LL' has a few large eigenvalues. It is exact up to `EXACT_ROWS` rows; beyond, A is
projected on its range, as random probes find it, and the rest is estimated from other probes [2]_.

References
----------
.. [1] W. S. Cleveland and S. J. Devlin, "Locally weighted regression: an approach to regression analysis by local
   fitting", JASA 83 (1988), 596-610.
.. [2] R. A. Meyer, C. Musco, C. Musco and D. P. Woodruff, "Hutch++: optimal stochastic trace estimation", SOSA 2021,
   142-155.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from kernpool.core.robust_weights import BISQUARE_SCALE, EXACT, VISIBLE, bisquare, median_magnitude
from kernpool.execution.threads import cut
from kernpool.execution.warnings import warn_caller
from kernpool.smoother.nearest_polynomials import NearestPolynomials, WindowFits, Windows

Array = NDArray[np.float64]

EXACT_ROWS = 2000  # whose matrix product takes about a second
PROBES = 32  # of the range of A, and as many of the rest
SHARES = 1 << 21  # linear weights at once
INSIDE, OUTSIDE = 0.001, 0.999  # of the scale: R weighs smaller residuals by one, and larger ones by zero


@dataclass(frozen=True, eq=False)
class LoessFit:
    """Robust or plain loess fit of n rows.

    Parameters
    ----------
    smoother : NearestPolynomials
        The windows.
    value, weight : ndarray of shape (n,)
        Outputs and prior weights.
    robust : tuple of ndarray
        Robustness weights of every pass; those of the first are ones.
    fitted : ndarray of shape (n,)
        Fit of the last pass at the rows.
    first : WindowFits
        Fits of the first pass, with the traces of the smoother matrix.
    residual_sd : float
        The residual standard error s; NaN if there are no degrees of freedom.
    """

    smoother: NearestPolynomials
    value: Array
    weight: Array
    robust: tuple[Array, ...]
    fitted: Array
    first: WindowFits
    residual_sd: float

    @classmethod
    def of(cls, smoother: NearestPolynomials, value: Array, weight: Array, iterations: int) -> LoessFit:
        """Fit the rows, `iterations` times in all, each time with weights by the residuals of the time before."""
        windows, robust = smoother.of_rows, [np.ones(len(value))]
        first = smoother.fit(windows, weight, value)
        fitted = first.fitted
        for _ in range(iterations - 1):
            found = _robust_weight(value, fitted)
            if found is None:
                break
            robust.append(found)
            fitted = _fit_with(smoother, windows, weight, robust, value)[0].fitted
        freedom = _freedom(first)
        residual = value - fitted
        if len(robust) > 1:
            pseudovalue = fitted + _pseudo_factor(residual, robust[-1], weight) * robust[-1] * residual
            residual = pseudovalue - smoother.fit(windows, weight, pseudovalue).fitted
        squares = float(np.nansum(weight * residual**2))
        deviation = float(np.sqrt(squares / freedom)) if freedom > 0 else np.nan
        return cls(smoother, value, weight, tuple(robust), fitted, first, deviation)

    def at(self, windows: Windows) -> tuple[WindowFits, int]:
        """Return fits at queries, and in how many windows the last robustness weights are all zero."""
        return _fit_with(self.smoother, windows, self.weight, list(self.robust), self.value)

    @property
    def trace(self) -> float:
        """The trace of the smoother matrix."""
        return float(np.nansum(self.first.leverage))

    @property
    def equivalent_parameters(self) -> float:
        """The equivalent number of parameters, tr LL'."""
        return float(np.nansum(self.first.norm))

    @property
    def delta1(self) -> float:
        """First moment of the residual matrix: the divisor of the residual variance."""
        return _freedom(self.first)

    @cached_property
    def delta2(self) -> float:
        """Second moment of the residual matrix."""
        n = len(self.value)
        if n <= EXACT_ROWS:
            residual = np.eye(n) - np.nan_to_num(self.smoother.shares(self._in_order, self.weight))
            return float(np.sum((residual @ residual.T) ** 2))
        random = np.random.default_rng(0)
        basis = np.linalg.qr(self._multiply(random.standard_normal((n, PROBES))))[0]
        probe = random.choice([-1.0, 1.0], size=(n, PROBES))
        probe -= basis @ (basis.T @ probe)
        squares = np.sum(self._multiply(np.hstack([basis, probe])) ** 2, axis=0)
        trace = 2.0 * self.trace - self.equivalent_parameters
        return n - 2.0 * trace + float(squares[:PROBES].sum() + squares[PROBES:].mean())

    @property
    def df(self) -> float:
        """Degrees of freedom of the residual variance."""
        return self.delta1**2 / self.delta2 if self.delta1 > 0 else np.nan

    @property
    def _in_order(self) -> Windows:
        """The windows of the rows in the order of linear weights, which changes no trace."""
        return self.smoother.of_rows.take(self.smoother.order)

    def _multiply(self, columns: Array) -> Array:
        """Return L + L' - LL' times columns of shape (n, c), summing L in blocks of rows."""
        n, windows = len(columns), self._in_order
        blocks = cut(n, max(SHARES // n, 1))
        found, back = np.empty_like(columns), np.zeros_like(columns)
        for rows in blocks:
            share = self.smoother.shares(windows.take(rows), self.weight)
            found[rows] = share @ columns
            back += share.T @ columns[rows]
        found += back
        for rows in blocks:
            found[rows] -= self.smoother.shares(windows.take(rows), self.weight) @ back
        return found


def _freedom(first: WindowFits) -> float:
    occupied = np.isfinite(first.fitted)
    return float(np.count_nonzero(occupied) - 2.0 * np.sum(first.leverage[occupied]) + np.sum(first.norm[occupied]))


def _robust_weight(value: Array, fitted: Array) -> Array | None:
    """Return bisquare weights of residuals; None, with a warning, if more than half of the rows are fitted exactly."""
    known = np.isfinite(fitted)
    residual = np.where(known, np.abs(value - fitted), np.inf)
    scale = BISQUARE_SCALE * median_magnitude(residual[known])
    rounding = EXACT * float(np.abs(value - np.median(value)).max())
    if scale <= BISQUARE_SCALE * rounding:
        if residual[known].max() > VISIBLE * rounding:
            warn_caller(
                "more than half of the rows are fitted exactly, so their residuals have no scale by which loess could "
                "give outliers less weight, and it stops re-weighting; use a larger span, or family='gaussian'"
            )
        return None
    near = np.where(residual <= INSIDE * scale, 1.0, bisquare(residual, scale))
    return np.where(residual > OUTSIDE * scale, 0.0, near)


def _fit_with(
    smoother: NearestPolynomials, windows: Windows, weight: Array, robust: list[Array], value: Array
) -> tuple[WindowFits, int]:
    """Fit with the last robustness weights, and windows without any with those of the pass before; count these."""
    variance = np.divide(1.0, weight, out=np.zeros(len(weight)), where=weight > 0)
    found = smoother.fit(windows, weight * robust[-1], value, variance)
    fallen = 0
    for earlier in robust[-2::-1]:
        empty = np.flatnonzero(np.isnan(found.fitted))
        if not empty.size:
            break
        again = smoother.fit(windows.take(empty), weight * earlier, value, variance)
        fallen += int(np.count_nonzero(np.isfinite(again.fitted)))
        for mine, other in ((found.fitted, again.fitted), (found.norm, again.norm), (found.leverage, again.leverage)):
            mine[empty] = other
    return found, fallen


def _pseudo_factor(residual: Array, robust: Array, weight: Array) -> float:
    """Return the factor of weighted residuals in pseudovalues: rows over the sum of the derivatives of psi."""
    known = np.isfinite(residual)
    size = (residual * np.sqrt(weight))[known]
    squared = (BISQUARE_SCALE * median_magnitude(size)) ** 2 / 5.0
    with np.errstate(divide="ignore", invalid="ignore"):
        total = float(np.sum(np.sqrt(robust[known]) * (1.0 - size**2 / squared)))
    return len(size) / total if total > 0 else 1.0
