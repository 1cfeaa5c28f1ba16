"""What there is for each training row: fitted, leave-one-out and leave-cluster-out values, and leverages."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from kernpool.execution.threads import weighted_sum

Array = NDArray[np.float64]
Integers = NDArray[np.int64]

FEWEST_ROWS = 5
ROUNDING = 1e-12  # of differences of outputs


@dataclass(frozen=True, eq=False)
class Training:
    """Fitted and leave-one-out values of the training rows, with leverages.

    Parameters
    ----------
    value, fitted, deleted : ndarray of shape (n, c)
        Outputs, fitted values, and leave-one-out values (without one unit of the row): the mean of the others where no
        other row is in its window.
    leverage : ndarray of shape (n,)
        Linear weight of one unit of each row in its own fit, the diagonal of the hat matrix.
    weight : ndarray of shape (n,)
        Frequencies.
    alone : int
        Number of rows with no other row in their window.
    shares : tuple of (ndarray of shape (n,), ndarray of shape (n,), ndarray of shape (n, regressors)), or None
        Linear weights of the fits: log mass, base and tilt, as of `LinearWeights`; None unless requested.
    """

    value: Array
    fitted: Array
    deleted: Array
    leverage: Array
    weight: Array
    alone: int
    shares: tuple[Array, Array, Array] | None = None

    @cached_property
    def rows(self) -> float:
        """Number of training rows, each counted by its frequency weight."""
        return float(self.weight.sum())

    @cached_property
    def trace(self) -> float:
        """Trace of the hat matrix: effective parameters of the fit."""
        return float(weighted_sum(self.weight, self.leverage))

    @cached_property
    def freedom(self) -> float:
        """Degrees of freedom of the residuals; ValueError unless there is more than one."""
        freedom = self.rows - self.trace
        if not freedom > 1.0:
            raise ValueError(
                f"the fit has {self.trace:.6g} effective parameters for {self.rows:g} rows, so that no residual is "
                "left to estimate the noise from; use a larger bandwidth, or, with groups, leave variance out"
            )
        return freedom


@dataclass(frozen=True, eq=False)
class Clusters:
    """Clusters of the training rows, with leave-cluster-out residuals.

    Parameters
    ----------
    code : ndarray of int64, shape (n,)
        Number of the cluster of each row.
    residual : ndarray of shape (n, c)
        Output minus the fit to the rows of all other clusters; minus their mean where none is in the window. Zero for
        rows of weight zero.
    """

    code: Integers
    residual: Array


def refuse_few_rows(total: float, what: str) -> None:
    """Raise ValueError unless the total of frequency weights is at least five; `what` begins the message."""
    if not total >= FEWEST_ROWS:
        raise ValueError(
            f"{what} at least {FEWEST_ROWS} rows, got {total:g}; weights are frequencies, and a weight of 3 is three "
            "equal rows"
        )


def nothing_left(value: Array) -> Array:
    """Return, for each output, the size below which residuals are only rounding error.

    Parameters
    ----------
    value : ndarray of shape (n, c)
        Outputs.

    Returns
    -------
    ndarray of shape (c,)
        For each output.
    """
    size = np.max(np.abs(value), axis=0)
    return np.asarray(ROUNDING * np.ptp(value, axis=0) + 4.0 * np.finfo(np.float64).eps * size)
