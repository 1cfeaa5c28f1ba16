"""Robustness weights of rows: bisquare and Huber weights of residuals, and their scale, the median magnitude.

A robust fit repeats a linear one with weights that fall with the residuals of the fit before (Cleveland 1979; Huber
1981). The scale is a multiple of the median absolute residual, MAD. Where that is zero, more than half of the rows are
fitted exactly and residuals have no scale.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

NORMAL = 1.4826  # standard deviation of normal noise in median magnitudes
HUBER = 1.345  # standard deviations from which on Huber weights fall: 95 percent efficient
REWEIGHTINGS = {"tukey": 3, "huber": 10}
RESERVE = 1e-30  # of the weight of the pass before, in place of zero
LEAST_SLOPE = 0.05  # mean derivative of psi, below which pseudovalues would be made of few rows
BISQUARE_SCALE = 6.0  # MADs beyond which a row has no weight, as in lowess and loess
EXACT = 1e-12  # of the largest value: residuals that are no larger are rounding errors
VISIBLE = 1e2  # residuals larger than so many rounding errors are differences of the data
NEGLIGIBLE = 1e-7  # of the mean magnitude, as in R's lowess: rows of smaller residuals are fitted exactly


def bisquare(residual: Array, scale: float) -> Array:
    """Return ``(1 - (e / scale)**2)**2``, or zero from the scale on."""
    ratio: Array = 1.0 - (np.minimum(np.abs(residual), scale) / scale) ** 2
    return ratio * ratio


def median_magnitude(residual: Array, weight: Array | None = None) -> float:
    """Return the median of absolute residuals; weights count rows, a weight of 3 is three equal rows."""
    size = np.abs(residual)
    return float(np.median(size)) if weight is None else weighted_median(size, weight)


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


def weighted_median(value: Array, weight: Array) -> float:
    """Return the median of values, in which a weight of 3 is three equal rows."""
    order = np.argsort(value)
    counted = np.cumsum(weight[order])
    half = 0.5 * counted[-1]
    places = np.searchsorted(counted, [half, half * (1.0 + 1e-12)], side="left")  # two rows if half lies between them
    return float(np.mean(value[order][np.minimum(places, len(value) - 1)]))


@dataclass(frozen=True)
class Robustness:
    """What a robust fit does with residuals: kind of weights, and how often it re-weights."""

    kind: str
    reweightings: int

    @classmethod
    def of(cls, robust: bool | int | str) -> Robustness:
        """Read the parameter `robust` of an estimator, other than False."""
        if isinstance(robust, str | bool):
            kind = robust if isinstance(robust, str) else "tukey"
            return cls(kind, REWEIGHTINGS[kind])
        return cls("tukey", int(robust))

    def scale(self, residual: Array, weight: Array) -> float:
        """Return the residual at which bisquare weights end, or from which on Huber weights fall."""
        median = median_magnitude(residual[weight > 0], weight[weight > 0])
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
        return np.asarray(fitted + scale * psi / max(float(weight @ slope / weight.sum()), LEAST_SLOPE))
