"""Families of outputs: counts, positive amounts, and shares of trials, each with its link, deviance and distribution.

======== ======= ============ ================ =================================================
family   link    l'           -l''             deviance
======== ======= ============ ================ =================================================
poisson  log     y - m        m                2 [y log(y/m) - (y - m)]
gamma    log     y/m - 1      y/m              2 [-log(y/m) + (y - m)/m]
binomial logit   y - m        m (1 - m)        2 [y log(y/m) + (1 - y) log((1 - y)/(1 - m))]
======== ======= ============ ================ =================================================

are of one unit: y is a count per unit of exposure, an amount, or a share of the trials, m its mean, and derivatives are
by the linear predictor theta. A unit of exposure or of trials weighs as its size.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import betainc, expit, gammainc, gammaincc, logit, xlogy

from kernpool._arrays import Array

LEAST_DISPERSION = 1e-14  # of amounts without noise


@dataclass(frozen=True)
class Family:
    """Distribution of outputs given their mean.

    Parameters
    ----------
    name : {"poisson", "gamma", "binomial"}
        Its name.
    number : int
        Its number in compiled loops.
    size_name : str
        Argument of ``fit`` with the size of a row.
    """

    name: str
    number: int
    size_name: str

    @property
    def has_logit(self) -> bool:
        """Whether the link is the logit, and not the logarithm."""
        return self.name == "binomial"

    def link(self, mean: Array) -> Array:
        """Return the linear predictor of a mean."""
        with np.errstate(divide="ignore"):
            return np.asarray(logit(mean) if self.has_logit else np.log(mean))

    def mean(self, theta: Array) -> Array:
        """Return the mean of a linear predictor."""
        with np.errstate(over="ignore"):
            return np.asarray(expit(theta) if self.has_logit else np.exp(theta))

    def derivatives(self, y: Array, theta: Array) -> tuple[Array, Array]:
        """Return the derivative of the log likelihood of one unit by the linear predictor, and minus its second one."""
        mean = self.mean(theta)
        if self.name == "gamma":
            with np.errstate(divide="ignore", invalid="ignore"):
                ratio = y / mean
            return ratio - 1.0, ratio
        return y - mean, mean * expit(-theta) if self.has_logit else mean

    def deviance(self, y: Array, theta: Array) -> Array:
        """Return the deviance of one unit, not negative."""
        mean = self.mean(theta)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            if self.has_logit:  # log m and log (1 - m) of the link, which rounds neither to zero nor to one
                found = xlogy(y, y) + xlogy(1.0 - y, 1.0 - y) + y * np.logaddexp(0.0, -theta)
                found = found + (1.0 - y) * np.logaddexp(0.0, theta)
            elif self.name == "gamma":
                found = theta - np.log(y) + y / mean - 1.0
            else:
                found = np.where(y > 0, y * (np.log(np.where(y > 0, y, 1.0)) - theta), 0.0) - (y - mean)
        return np.asarray(2.0 * np.maximum(found, 0.0))

    def error_of_mean(self, mean: Array, error: Array) -> Array:
        """Return the standard error of a mean, to first order, from that of its linear predictor."""
        with np.errstate(over="ignore", invalid="ignore"):
            return np.asarray((mean * (1.0 - mean) if self.has_logit else mean) * error)

    def variance(self, mean: Array) -> Array:
        """Return the variance of one unit at dispersion one."""
        return np.asarray(mean**2 if self.name == "gamma" else mean * (1.0 - mean) if self.has_logit else mean)

    def cdf(self, value: Array, mean: Array, size: Array, dispersion: float) -> Array:
        """Return distribution functions of new outputs of rows of some size: counts, amounts or successes.

        Counts that vary more than Poisson's are negative binomial, of variance dispersion times mean.
        """
        if self.name == "gamma":
            shape = 1.0 / max(dispersion, LEAST_DISPERSION)
            return np.asarray(gammainc(shape, shape * (value / mean)))
        if self.has_logit:
            return np.where(value >= size, 1.0, betainc(np.maximum(size - value, 1.0), value + 1.0, 1.0 - mean))
        more, total = dispersion - 1.0, size * mean
        if more <= 0.0:
            return np.asarray(gammaincc(value + 1.0, total))
        return np.asarray(betainc(total / more, value + 1.0, 1.0 / dispersion))


FAMILIES = {
    family.name: family
    for family in (
        Family("poisson", 0, "exposure"),
        Family("gamma", 1, ""),
        Family("binomial", 2, "trials"),
    )
}
