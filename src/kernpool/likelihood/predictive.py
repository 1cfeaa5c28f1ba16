"""Distributions of new outputs: those of the family, over the normal distribution of the linear predictor."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kernpool._arrays import Array, Flags
from kernpool.likelihood.families import Family

NODES = 15  # of Gauss and Hermite
LARGEST = 650.0  # linear predictor: beyond, means have no squares
ROUNDING = 1e-12
SPREADS, MOST_HALVINGS = 1e4, 200  # standard deviations, within which are all but 1e-8, whatever the distribution


@dataclass(frozen=True, eq=False)
class Predictive:
    """Distributions of new outputs of m rows.

    Parameters
    ----------
    family : Family
        Of outputs given their mean.
    theta, error : ndarray of shape (m,)
        Linear predictors and their standard errors.
    size : ndarray of shape (m,)
        Exposure or trials.
    dispersion : float
        Variance in that of the family.
    """

    family: Family
    theta: Array
    error: Array
    size: Array
    dispersion: float

    def quantile(self, q: float) -> Array:
        """Return the quantiles of order q: of counts the least number whose probability reaches it."""
        family, sizes = self.family, self.size[:, None]
        node, weight = np.polynomial.hermite_e.hermegauss(NODES)
        weight = weight / weight.sum()
        known = np.isfinite(self.theta) & ~np.isnan(self.error)
        center, error = (np.where(known, each, 0.0)[:, None] for each in (self.theta, np.minimum(self.error, LARGEST)))
        mean = family.mean(np.clip(center + error * node, -LARGEST, LARGEST))

        def reached(value: Array) -> Flags:
            found = family.cdf(value[:, None], mean, sizes, self.dispersion)
            found = np.where(np.isnan(found), value[:, None] >= sizes * mean, found)  # beyond the range of its series
            return np.asarray(found @ weight >= q * (1.0 - ROUNDING))

        whole = family.name != "gamma"
        with np.errstate(over="ignore", under="ignore", invalid="ignore", divide="ignore"):
            spread = np.sqrt(self.dispersion * sizes * family.variance(mean))
            high = (sizes * mean + SPREADS * spread).max(axis=1)
            high = np.ceil(high) if whole else high
            low = np.full(len(high), -1.0 if whole else 0.0)
            for _ in range(MOST_HALVINGS):
                middle = low + 0.5 * (high - low)
                middle = np.floor(middle) if whole else middle
                inside = (middle > low) & (middle < high)
                if not inside.any():
                    break
                enough = reached(middle)
                low, high = np.where(inside & ~enough, middle, low), np.where(inside & enough, middle, high)
        return np.where(known, high, np.nan)
