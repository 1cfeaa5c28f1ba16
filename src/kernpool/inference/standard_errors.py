r"""Standard errors of estimates that are linear in the outputs: noise times the norm of the shares, or a sandwich.

The default is :math:`\hat\sigma(q)\,\lVert l(q) \rVert`. A sandwich, :math:`(\sum_j l_j^2 r_j^2)^{1/2}`, estimates the
variance from the few rows that also make the fit: its errors go along with those of the fit, and small windows look
quiet. At 95 percent and the same average width it covers 90.9, 92.1, 93.1 and 93.9 percent for 50, 200, 500 and 1000
rows, where the default covers 95.7, 95.2, 94.4 and 95.0. It needs no smoothness of the noise,
though: use it where noise jumps.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from kernpool.core.local_fit import RankDeficiencyWarning
from kernpool.execution.warnings import warn_caller
from kernpool.inference.corrected import Estimate
from kernpool.inference.noise import Noise, local_noise
from kernpool.inference.quadratic_forms import squared_norm
from kernpool.inference.residuals import Training, nothing_left, squared_residuals
from kernpool.inference.smoother import Places, Smoother

Array = NDArray[np.float64]

# What each kind of variance takes for squared residuals; "local" averages them first.
VARIANCES = {"local": "hc3", "sandwich": "hc3", "nn": "nn", "hc0": "hc0", "hc1": "hc1", "hc2": "hc2", "hc3": "hc3"}
NO_SLOPE = 1e-12  # shares per bandwidth, in units of those of a mean of all rows


@dataclass(frozen=True, eq=False)
class Errors:
    """How sure estimates at m places are.

    Parameters
    ----------
    standard_error : ndarray of shape (m, c)
        NaN where a window is empty, or its rows tell no slope; zero where residuals are nothing but rounding.
    noise : Noise
        Of an observation around each place.
    size : ndarray of shape (m,) or None
        Norm of the shares; None where the variance is a sandwich.
    """

    standard_error: Array
    noise: Noise
    size: Array | None


def check_variance(variance: str) -> None:
    """Refuse an unknown kind of variance."""
    if variance not in tuple(VARIANCES):
        raise ValueError(f"variance must be one of {', '.join(map(repr, VARIANCES))}, got {variance!r}")


def errors_of(
    smoother: Smoother, training: Training, places: Places, found: Estimate, variance: str = "local"
) -> Errors:
    """Estimate standard errors.

    Parameters
    ----------
    smoother : Smoother
        The fit that residuals are of.
    training : Training
        Its rows, of `fit_training`.
    places : Places
        Where the estimate is.
    found : Estimate
        The estimate.
    variance : {"local", "sandwich", "nn", "hc0", "hc1", "hc2", "hc3"}, default="local"
        Local noise times the norm of the shares; or a sandwich of leave-one-out residuals, which is ``"hc3"``, of those
        from nearest neighbours, or of those that least squares has.

    Returns
    -------
    Errors
        Two passes for the noise, and one, or three for corrected estimates, for the norm; a sandwich takes the latter
        for each output.

    Warns
    -----
    RankDeficiencyWarning
        If the rows around a place tell no slope.
    """
    check_variance(variance)
    squared = squared_residuals(smoother, training, VARIANCES[variance])
    noise = local_noise(smoother, places, squared)
    quiet = noise.variance <= nothing_left(training.value[training.weight > 0]) ** 2
    noise = replace(noise, variance=np.where(quiet, 0.0, noise.variance))
    size = None
    if variance == "local" or found.column is not None:
        size = np.sqrt(squared_norm(found.terms, smoother.sums))
    if variance == "local" and size is not None:
        error = np.sqrt(noise.variance) * size[:, None]
    else:
        error = np.sqrt(np.stack([squared_norm(found.terms, smoother.sums, psi) for psi in squared.T], axis=1))
        error = np.where(quiet, 0.0, error)
    if found.column is not None and size is not None:
        error = _where_there_is_a_slope(found, error, size * math.sqrt(training.rows))
    return Errors(error, noise, size if variance == "local" else None)


def _where_there_is_a_slope(found: Estimate, error: Array, size: Array) -> Array:
    """Return errors of slopes, NaN where the rows of a window tell none, so that shares are nothing but rounding."""
    bandwidth = found.terms[0][1].problem.similarity.bandwidth[found.column]
    (flat,) = np.nonzero(size * bandwidth < NO_SLOPE)
    if not flat.size:
        return error
    warn_caller(
        f"around {flat.size} of {len(error)} queries (the first is query {flat[0]}) the rows tell no slope by column "
        f"{found.column}, and its standard error becomes NaN; use a larger bandwidth",
        RankDeficiencyWarning,
    )
    error = error.copy()
    error[flat] = np.nan
    return error
