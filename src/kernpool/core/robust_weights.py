"""Robustness weights of rows: bisquare and Huber weights of residuals, and their scale, the median magnitude.

A robust fit repeats a linear one with weights that fall with the residuals of the fit before (Cleveland 1979; Huber
1981). The scale is a multiple of the median absolute residual, MAD. Where that is zero, more than half of the rows are
fitted exactly, residuals have no scale, and the other rows have no weight: the limit of ever smaller noise.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from kernpool._arrays import Array
from kernpool.core.state import PoolState
from kernpool.execution import warn_of_queries

NORMAL = 1.4826  # standard deviation of normal noise in median magnitudes
HUBER = 1.345  # standard deviations from which on Huber weights fall: 95 percent efficient
REWEIGHTINGS = {"tukey": 3, "huber": 10}
RESERVE = 1e-30  # of the weight of the pass before, in place of zero
LEAST_SLOPE = 0.05  # mean derivative of psi, below which pseudovalues would be made of few rows
BISQUARE_SCALE = 6.0  # MADs beyond which a row has no weight, as in lowess and loess
EXACT = 1e-10  # of the largest value: residuals that are no larger are rounding errors
NEGLIGIBLE = 1e-7  # of the mean magnitude, as in R's lowess: rows of smaller residuals are fitted exactly


def weighted_median(value: Array, weight: Array) -> float:
    """Return the median of values, in which a weight of 3 is three equal rows."""
    order = np.argsort(value)
    counted = np.cumsum(weight[order])
    half = 0.5 * counted[-1]
    places = np.searchsorted(counted, [half, half * (1.0 + 1e-12)], side="left")  # two rows if half lies between them
    return float(np.sum(0.5 * value[order][np.minimum(places, len(value) - 1)]))


def bisquare(residual: Array, scale: float) -> Array:
    """Return ``(1 - (e / scale)**2)**2``, or zero from the scale on."""
    ratio: Array = 1.0 - (np.minimum(np.abs(residual), scale) / scale) ** 2
    return ratio * ratio


def least_scale(residual: Array, largest: float, weight: Array | None = None) -> float:
    """Return the scale from which on residuals are no rounding errors.

    Parameters
    ----------
    residual : ndarray of shape (n,)
        Residuals.
    largest : float
        The largest value, less the median: rounding errors are in proportion to it. Where half of the rows are fitted
        exactly and others are not, rounding errors are those of fits with weights of 1e-15, and larger.
    weight : ndarray of shape (n,), optional
        Frequencies.
    """
    return max(EXACT * largest, NEGLIGIBLE * float(np.average(np.abs(residual), weights=weight)))


@dataclass(frozen=True, eq=False)
class Reweighting:
    """Weights of rows by their residuals: their kind, how often they are computed, and what came out for each row."""

    kind: str
    passes: int
    weight: Array = field(default_factory=lambda: np.ones(0))

    @classmethod
    def of(cls, robust: bool | int | str) -> Reweighting:
        """Read the parameter `robust` of an estimator, other than False."""
        kind = robust if isinstance(robust, str) else "tukey"
        return cls(kind, REWEIGHTINGS[kind] if isinstance(robust, str | bool) else int(robust))

    def scale(self, residual: Array, weight: Array) -> float:
        """Return the residual at which bisquare weights end, or from which on Huber weights fall."""
        median = weighted_median(np.abs(residual[weight > 0]), weight[weight > 0])
        return (BISQUARE_SCALE if self.kind == "tukey" else HUBER * NORMAL) * median

    def weights(self, residual: Array, scale: float) -> Array:
        """Return robustness weights from 0 to 1."""
        if self.kind == "tukey":
            return bisquare(residual, scale)
        return scale / np.maximum(np.abs(residual), scale)

    def pseudovalues(self, fitted: Array, value: Array, weight: Array) -> Array:
        """Return values whose plain fit is, to first order, the robust fit, with its variance."""
        residual = value - fitted
        scale = self.scale(residual, weight)
        if not scale > 0:
            return fitted
        z: Array = residual / scale
        if self.kind == "tukey":
            inside = np.maximum(1.0 - z * z, 0.0)
            psi, slope = z * inside * inside, inside * (1.0 - 5.0 * z * z)
        else:
            psi, slope = np.clip(z, -1.0, 1.0), (np.abs(z) < 1.0).astype(np.float64)
        return fitted + scale * psi / max(float(weight @ slope / weight.sum()), LEAST_SLOPE)

    def weigh(self, value: Array, weight: Array, fit: Callable[[Array], Array], is_compact: bool) -> tuple[Array, bool]:
        """Return the weights of rows of one output after all passes, and whether rows lost theirs for lack of a scale.

        `fit` returns the fitted values of the rows, given factors of their weights. With a compact kernel no factor is
        zero, so that a window of outliers alone has the fit of the pass before.
        """
        factor, largest = np.ones(len(value)), float(np.abs(value - np.median(value)).max())
        has_scale = True
        for _ in range(self.passes):
            residual = np.nan_to_num(value - fit(factor))  # NaN at rows of weight zero that have no row in their window
            scale, least = self.scale(residual, weight), least_scale(residual, largest, weight)
            has_scale = scale > least
            factor = np.maximum(self.weights(residual, max(scale, least) or 1.0), RESERVE * is_compact * factor)
        return factor, not has_scale and bool(factor[weight > 0].min() < 0.5)

    def warn_of_outliers(self, state: PoolState) -> None:
        """Warn of windows of a compact kernel that only rows have a weight in whose weight here is `RESERVE`."""
        reserved = (state.denominator > 0) & (state.log_denominator < 0.5 * np.log(RESERVE))
        warn_of_queries(
            reserved,
            "all rows are outliers, and the fit there has the robustness weights of an earlier pass; use a larger "
            "bandwidth",
            before="in the windows of ",
        )
