r"""Standard errors of estimates that are linear in the outputs: noise times the norm of the shares, or a sandwich.

The default is :math:`\hat\sigma(q)\,\lVert l(q) \rVert`. A sandwich, :math:`(\sum_j l_j^2 r_j^2)^{1/2}`, estimates the
variance from the few rows that also make the fit: its errors go along with those of the fit, and small windows look
quiet. At 95 percent and the same average width it covers 90.9, 92.1, 93.1 and 93.9 percent for 50, 200, 500 and 1000
rows, where the default covers 95.7, 95.2, 94.4 and 95.0. It needs no smoothness of the noise,
though: use it where noise jumps.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from kernpool.core.local_fit import RankDeficiencyWarning
from kernpool.execution.messages import check_choice
from kernpool.execution.warnings import warn_caller
from kernpool.inference.clusters import Clusters, cluster_errors, of_whole_fit
from kernpool.inference.corrected import Estimate
from kernpool.inference.noise import Noise, local_noise
from kernpool.inference.quadratic_forms import squared_norm
from kernpool.inference.remembered import RememberedSums
from kernpool.inference.residuals import Training, nothing_left, squared_residuals
from kernpool.inference.smoother import Places, Smoother

Array = NDArray[np.float64]

# What each kind of variance takes for squared residuals; "local" averages them first.
VARIANCES = {"local": "hc3", "sandwich": "hc3", "nn": "nn", "hc0": "hc0", "hc1": "hc1", "hc2": "hc2", "hc3": "hc3"}
LEFT_OUT = ("local", "sandwich", "hc3")  # which with clusters all are of fits without the whole cluster
OF_CLUSTERS = (*LEFT_OUT, "hc0", "hc1")
NO_SLOPE = 1e-12  # shares per bandwidth, in units of those of a mean of all rows


@dataclass(frozen=True, eq=False)
class Errors:
    """How sure estimates at m places are.

    Parameters
    ----------
    standard_error : ndarray of shape (m, c)
        NaN where a window is empty, or its rows tell no slope; zero where residuals are nothing but rounding.
    df : ndarray of shape (m,)
        Degrees of freedom.
    noise : Noise or None
        Of an observation around each place; None with clusters, which do not ask for it.
    residual : ndarray of shape (n, c) or (n, 1)
        What errors are made of: the error at a place is the sum of shares times these times independent numbers of mean
        0 and variance 1, one for each unit row. Ones where the noise is local: it cancels.
    spread : ndarray of shape (m, c) or (m, 1)
        Standard deviation of that sum.
    cluster : ndarray of int, shape (n,), or None
        Of each row; rows of one have one of these numbers together.
    """

    standard_error: Array
    df: Array
    noise: Noise | None
    residual: Array
    spread: Array
    cluster: NDArray[np.int64] | None = None


def check_variance(variance: str, *, clustered: bool = False) -> None:
    """Refuse an unknown kind of variance, and with clusters those of residuals that leave single rows out, or none."""
    check_choice("variance", variance, VARIANCES)
    if clustered and variance not in OF_CLUSTERS:
        raise ValueError(
            f"variance={variance!r} is of independent rows, and groups make clusters, whose residuals are of fits "
            "without all of their rows, or of the fit itself with 'hc0' and 'hc1'; leave variance out, or groups"
        )


def errors_of(
    smoother: Smoother,
    training: Training,
    places: Places,
    found: Estimate,
    variance: str = "local",
    clusters: Clusters | None = None,
) -> Errors:
    """Estimate the standard errors of one estimate: the first of `errors_of_each`."""
    return errors_of_each(smoother, training, places, [found], variance, clusters)[0]


def errors_of_each(
    smoother: Smoother,
    training: Training,
    places: Places,
    found: Sequence[Estimate],
    variance: str = "local",
    clusters: Clusters | None = None,
) -> list[Errors]:
    """Estimate standard errors.

    Parameters
    ----------
    smoother : Smoother
        The fit that residuals are of.
    training : Training
        Its rows, of `fit_training`.
    places : Places
        Where the estimates are.
    found : sequence of Estimate
        Estimates, such as of the slope by each column.
    variance : {"local", "sandwich", "nn", "hc0", "hc1", "hc2", "hc3"}, default="local"
        Local noise times the norm of the shares; or a sandwich of leave-one-out residuals, which is ``"hc3"``, of those
        from nearest neighbours, or of those that least squares has.
    clusters : Clusters, optional
        Of `fit_clusters`. Then sums over the rows of a cluster take the place of rows, and residuals are of fits
        without it; of the fit itself with ``"hc0"`` and ``"hc1"``.

    Returns
    -------
    list of Errors
        Two passes for the noise; for the norm one, or three of corrected estimates, some of which may be known already.
        A sandwich takes the latter for each output; clusters take all pairs.

    Warns
    -----
    RankDeficiencyWarning
        If the rows around a place tell no slope.
    """
    check_variance(variance, clustered=clusters is not None)
    if clusters is not None:
        if variance not in LEFT_OUT:
            clusters = of_whole_fit(clusters, training, corrected=variance == "hc1")
        return [_of_clusters(smoother, training, one, clusters) for one in found]
    squared = squared_residuals(smoother, training, VARIANCES[variance])
    sums, errors = RememberedSums(smoother.sums, [pair for one in found for pair in one.known]), []
    noise = local_noise(smoother, places, squared, sums)
    quiet = noise.variance <= rounding_of(training) ** 2
    noise = replace(noise, variance=np.where(quiet, 0.0, noise.variance))
    for one in found:
        size = None
        if variance == "local" or one.column is not None:
            size = np.sqrt(squared_norm(one.terms, sums))
        if variance == "local" and size is not None:
            residual, spread = np.ones((len(squared), 1)), size[:, None]
            error = np.sqrt(noise.variance) * spread
        else:
            residual = np.sqrt(squared)
            forms = [squared_norm(one.terms, sums, psi) for psi in squared.T]
            spread = np.sqrt(np.stack(forms, axis=1))
            error = np.where(quiet, 0.0, spread)
        if one.column is not None and size is not None:
            error = _where_there_is_a_slope(one, error, size * math.sqrt(training.rows))
        errors.append(Errors(_where_occupied(one, error), noise.df, noise, residual, spread))
    return errors


def _of_clusters(smoother: Smoother, training: Training, found: Estimate, clusters: Clusters) -> Errors:
    """Return errors of rows in clusters; zero where residuals are nothing but rounding, NaN where there is no slope."""
    spread, df, size = cluster_errors(smoother, found, clusters)
    quiet = np.max(np.abs(clusters.residual), axis=0) <= rounding_of(training)
    error = np.where(quiet & np.isfinite(spread), 0.0, spread)
    if found.column is not None:
        error = _where_there_is_a_slope(found, error, size * math.sqrt(training.rows))
    return Errors(_where_occupied(found, error), df, None, clusters.residual, spread, clusters.code)


def rounding_of(training: Training) -> Array:
    """Return up to which size residuals of each output are nothing but rounding."""
    return nothing_left(training.value[training.weight > 0])


def _where_occupied(found: Estimate, error: Array) -> Array:
    """Return errors, NaN where a window is empty: a sum over no rows is zero, and zero would look certain."""
    return np.where(np.isfinite(found.log_mass)[:, None], error, np.nan)


def _where_there_is_a_slope(found: Estimate, error: Array, size: Array) -> Array:
    """Return errors of slopes, NaN where the rows of a window tell none.

    Shares are nothing but rounding there, or those of a plane that is on its way to a constant: a slope near zero, with
    an error as small, would look sure.
    """
    bandwidth = found.terms[0][1].problem.similarity.bandwidth[found.column]
    (flat,) = np.nonzero((size * bandwidth < NO_SLOPE) | ((found.rank == 0) & np.isfinite(size)))
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
