r"""Rows that fit themselves: what counts instead of residuals that are zero whatever the output is.

A row of leverage :math:`H_{ii}` has the deleted residual :math:`e_i / (1 - H_{ii})`, from the fit without it (Allen,
"The relationship between variable selection and data augmentation and a method for prediction", Technometrics 16
(1974), 125-127). Criteria that penalise the trace of the hat matrix take the mean leverage for each. Local planes at
the edge of several columns have leverage one, which a mean of .3 does not tell: residuals of zero, and slopes that mean
nothing. Huber, "Robust Statistics" (1981), section 7.2, takes leverages up to .2 for safe, and from .5 on for ones to
avoid. So from one half on :math:`r_i = e_i (1 - H_{ii})^{-s}`, where s goes smoothly from zero to one as the leverage
does; below, criteria keep their values to the last bit. Within 1e-4 of one, where digits are lost, what leave-one-out
predicts for an empty window takes over: the mean of the others.

Without its rows at the edge a plane may be far off, and a few of them would outvote all others: with levels beside
numbers R^2 by ``"aicc"`` fell from .91 to .78. So r is bounded by b, two standard deviations of the outputs, as
:math:`(1 - s) r + s r / \sqrt{1 + (r / b)^2}`.

Of 10 simulated tables of 100 rows in 4 or 5 columns the worst held-out R^2 of local planes by ``"aicc"`` was -4.5, and
is .24. To refuse such places instead leaves no place at all where a column is an indicator of a single row.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

SAFE = 0.5
LARGEST = 2.0  # standard deviations
# One less the leverage: above the first number a deleted residual is right to eight digits, below the second to none.
EXACT, ALONE = 1e-4, 1e-8


class Counted(NamedTuple):
    """What counts as residuals.

    Parameters
    ----------
    residual : ndarray of shape (n, c)
        Instead of those of the fit.
    by_fit : ndarray of shape (n, c) or float
        Their derivatives by the residuals of the fit.
    by_hat : ndarray of shape (n, c) or float
        Their derivatives by the diagonal of the hat matrix.
    """

    residual: Array
    by_fit: Array | float
    by_hat: Array | float


def count_deleted(residual: Array, alone: Array, hat: Array, bound: Array) -> Counted:
    """Count rows of large leverage with their deleted residuals.

    Parameters
    ----------
    residual : ndarray of shape (n, c)
        Of the fit.
    alone : ndarray of shape (n, c)
        What is left of the outputs after the mean of the others.
    hat : ndarray of shape (n,)
        Diagonal of the hat matrix.
    bound : ndarray of shape (n, c)
        Of what counts for rows of leverage one, positive.

    Returns
    -------
    Counted
        The residuals as they are, if no leverage is above one half.

    Examples
    --------
    >>> residual, alone = np.array([[0.1], [0.1], [0.0]]), np.array([[2.0], [2.0], [2.0]])
    >>> count_deleted(residual, alone, np.array([0.3, 0.99, 1.0]), np.full((3, 1), 1e3)).residual.ravel().round(2)
    array([0.1 , 9.95, 2.  ])
    """
    if not np.any(hat > SAFE):
        return Counted(residual, 1.0, 0.0)
    free = np.maximum(1.0 - hat, 1e-3 * ALONE)
    log_free, span = np.log(free), float(np.log(EXACT / ALONE))
    deleted, by_leverage = _step((hat - SAFE) / (1.0 - SAFE))
    factor = np.exp(-deleted * log_free)
    slope = factor * (deleted / free - by_leverage / (1.0 - SAFE) * log_free)
    mean, by_log = _step((np.log(EXACT) - log_free) / span)
    towards_mean = by_log / (span * free)
    by_fit = ((1.0 - mean) * factor)[:, None]
    by_hat = ((1.0 - mean) * slope - towards_mean * factor)[:, None] * residual + towards_mean[:, None] * alone
    found = by_fit * residual + mean[:, None] * alone
    share, square = deleted[:, None], 1.0 + (found / bound) ** 2
    bounded = found / np.sqrt(square)
    inner = 1.0 - share + share * square**-1.5
    by_hat = inner * by_hat + (by_leverage / (1.0 - SAFE))[:, None] * (bounded - found)
    return Counted(found + share * (bounded - found), inner * by_fit, by_hat)


def _step(u: Array) -> tuple[Array, Array]:
    """Return a step from zero to one with two ends without slope, and its derivative."""
    u = np.clip(u, 0.0, 1.0)
    return u * u * (3.0 - 2.0 * u), 6.0 * u * (1.0 - u)
