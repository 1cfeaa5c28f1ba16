r"""Standard errors of estimates that are linear in the outputs: noise times the norm of the shares, or a sandwich.

The default is :math:`\hat\sigma(q)\,\lVert l(q) \rVert`. A sandwich, :math:`(\sum_j l_j^2 r_j^2)^{1/2}`, estimates the
variance from the few rows that also make the fit: its errors go along with those of the fit, and small windows look
quiet. At 95 percent and the same average width it covers 90.9, 92.1, 93.1 and 93.9 percent for 50, 200, 500 and 1000
rows, where the default covers 95.7, 95.2, 94.4 and 95.0. It needs no smoothness of the noise,
though: use it where noise jumps.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kernpool.inference.clusters import Clusters, cluster_errors
from kernpool.inference.corrected import Estimate
from kernpool.inference.noise import Noise, local_noise
from kernpool.inference.quadratic_forms import squared_norm
from kernpool.inference.residuals import Training, squared_residuals
from kernpool.inference.smoother import Places, Smoother

Array = NDArray[np.float64]

# What each kind of variance takes for squared residuals; "local" averages them first.
VARIANCES = {"local": "hc3", "sandwich": "hc3", "nn": "nn", "hc0": "hc0", "hc1": "hc1", "hc2": "hc2", "hc3": "hc3"}
OF_CLUSTERS = ("local", "sandwich", "hc3")  # which with clusters all are the sandwich of whole clusters


@dataclass(frozen=True, eq=False)
class Errors:
    """How sure estimates at m places are.

    Parameters
    ----------
    standard_error : ndarray of shape (m, c)
        NaN where a window is empty.
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
    if variance not in VARIANCES:
        raise ValueError(f"variance must be one of {', '.join(map(repr, VARIANCES))}, got {variance!r}")
    if clustered and variance not in OF_CLUSTERS:
        raise ValueError(
            f"variance={variance!r} is of independent rows, and groups make clusters, whose residuals are of fits "
            "without all of their rows; leave variance out, or groups"
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
        Of `fit_clusters`. Then sums over the rows of a cluster take the place of rows.

    Returns
    -------
    list of Errors
        Two passes for the noise; for each estimate one, or three of corrected ones, for the norm. A sandwich takes the
        latter for each output; clusters take all pairs.
    """
    check_variance(variance, clustered=clusters is not None)
    if clusters is not None:
        of_clusters = (cluster_errors(smoother, one, clusters) for one in found)
        return [Errors(error, df, None, clusters.residual, error, clusters.code) for error, df in of_clusters]
    squared = squared_residuals(smoother, training, VARIANCES[variance])
    noise, errors = local_noise(smoother, places, squared), []
    for one in found:
        if variance == "local":
            spread = np.sqrt(squared_norm(one.terms, smoother.sums))[:, None]
            residual, error = np.ones((len(squared), 1)), np.sqrt(noise.variance) * spread
        else:
            residual = np.sqrt(squared)
            forms = [squared_norm(one.terms, smoother.sums, psi) for psi in squared.T]
            spread = error = np.sqrt(np.stack(forms, axis=1))
        errors.append(Errors(error, noise.df, noise, residual, spread))
    return errors
