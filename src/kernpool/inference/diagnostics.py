"""What the training rows say of their fit, row by row: residuals, influence, noise."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kernpool.inference.clusters import Clusters
from kernpool.inference.noise import local_noise
from kernpool.inference.residuals import Training, squared_residuals
from kernpool.inference.smoother import Smoother

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Residuals:
    """Residuals of n training rows.

    Parameters
    ----------
    fitted : ndarray of shape (n,) or (n, c)
        The fit at their places.
    residual : ndarray, as fitted
        Output less the fit without one unit of the row; with clusters, without all rows of its cluster.
    leverage : ndarray of shape (n,)
        Diagonal of the hat matrix, for one unit of each row: its share in its own fit. Near 1 the fit passes through
        the row, wherever it is.
    noise : ndarray, as fitted
        Standard deviation of an observation there: root of the mean of squared residuals in a window of twice the
        bandwidth.
    weight : ndarray of shape (n,)
        Frequencies.
    cluster : ndarray of int, shape (n,), or None
        Number of the cluster of each row, if the fit had groups.

    Examples
    --------
    >>> from kernpool import LocalLinearRegressor
    >>> x, y = [[0.0], [1.0], [2.0], [3.0], [9.0]], [0.0, 1.1, 1.9, 3.0, 9.1]
    >>> LocalLinearRegressor(kernel="constant", bandwidth=1.0).fit(x, y).residuals().leverage.round(3)
    array([0.38, 0.28, 0.22, 0.2 , 0.92])
    """

    fitted: Array
    residual: Array
    leverage: Array
    noise: Array
    weight: Array
    cluster: NDArray[np.int64] | None = None


def residuals(smoother: Smoother, training: Training, clusters: Clusters | None = None) -> Residuals:
    """Put together what is known of the training rows.

    Parameters
    ----------
    smoother : Smoother
        The fit.
    training : Training
        Its rows, of `fit_training`.
    clusters : Clusters, optional
        Of `fit_clusters`.

    Returns
    -------
    Residuals
        Arrays of shape (n, c); two passes over pairs of rows.

    Raises
    ------
    ValueError
        If the fit takes all degrees of freedom.
    """
    if clusters is None:
        residual, squared = training.value - training.deleted, squared_residuals(smoother, training)
    else:
        residual, squared = clusters.residual, clusters.residual**2
    noise = local_noise(smoother, smoother.training, squared)
    # Copies: the model keeps these arrays for its standard errors, and residuals are there to be worked with.
    return Residuals(
        training.fitted.copy(),
        np.array(residual),
        training.leverage.copy(),
        np.sqrt(noise.variance),
        training.weight.copy(),
        None if clusters is None else clusters.code.copy(),
    )
