r"""What a search believes before it sees the rows: columns matter little, and about alike.

Leave-one-out errors are noisy functions of one bandwidth per column, and their minimum is where noise helped most. So
many columns with small bandwidths are found that a fresh sample would not confirm. A penalty on the logarithm of the
mean of squares stands against it:

.. math:: \log S(h) + \frac{c}{N} \Big[ \sum_a \log\big(1 + (s_a / h_a)^2\big) + v \sum_a (z_a - \bar z)^2
          + \sum_b \log\Big(1 + \frac{r_b}{1 - r_b + \epsilon}\Big) \Big], \qquad
          z_a = \min(\log(h_a / s_a), z_{max})

with the spread :math:`s_a` of a column and the relevance :math:`r_b` of a categorical one. In units of a log
likelihood, :math:`(N / 2) \log S`, it is the prior density of a maximum a posteriori estimate:
Cauchy-like in the relevance :math:`s_a / h_a` of each column, and log-normal around a common factor. Its weight falls
with the number of rows, so that bandwidths of many rows are those of leave-one-out. A single bandwidth, or one common
factor, hardly overfits and is not penalised.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

# Chosen on one half of the tables of benchmarks/tables.py: held-out R^2 is flat in both, from 2 to 8 and .1 to .5.
WEIGHT, LIKENESS = 4.0, 0.25
FARTHEST = 3.0  # log spreads: a bandwidth of 20 spreads is as good as infinite
EDGE = 0.01


@dataclass(frozen=True)
class Regularity:
    """A penalty on bandwidths and smoothings.

    Parameters
    ----------
    log_spread : ndarray of shape (d,)
        Logarithms of the spreads of the numeric columns.
    varies : ndarray of bool, shape (d,)
        Which of them are no constants.
    largest : ndarray of shape (k,)
        Upper ends of the boxes of the smoothings.
    """

    log_spread: Array
    varies: NDArray[np.bool_]
    largest: Array

    def __call__(self, theta: Array, total: float) -> tuple[float, Array]:
        """Return the penalty on the logarithm of the mean of squares, and its derivatives.

        Parameters
        ----------
        theta : ndarray of shape (d + k,)
            Log bandwidths and smoothings.
        total : float
            Number of rows.

        Examples
        --------
        >>> regularity = Regularity(np.zeros(2), np.ones(2, dtype=bool), np.zeros(0))
        >>> penalty, slope = regularity(np.log([0.5, 100.0]), 100.0)
        >>> round(penalty, 4), slope.round(4)
        (0.1327, array([-0.1009,  0.    ]))
        """
        d, slope = len(self.log_spread), np.zeros(len(theta))
        log_ratio = np.where(self.varies, theta[:d] - self.log_spread, FARTHEST)
        near = np.minimum(log_ratio, FARTHEST)
        relevance = np.exp(-2.0 * near)
        count = max(1, int(self.varies.sum()))
        off = np.where(self.varies, near - near[self.varies].sum() / count, 0.0)
        penalty = float(np.log1p(relevance)[self.varies].sum() + LIKENESS * off @ off)
        moving = self.varies & (log_ratio < FARTHEST)
        slope[:d] = np.where(moving, -2.0 * relevance / (1.0 + relevance) + 2.0 * LIKENESS * off, 0.0)
        some = self.largest > 0
        share = np.where(some, theta[d:] / np.where(some, self.largest, 1.0), 1.0)
        penalty += float(np.log1p((1.0 - share) / (share + EDGE)).sum())
        unit = np.where(some, 1.0 / np.where(some, self.largest, 1.0), 0.0)
        slope[d:] = -unit / (share + EDGE)
        return WEIGHT / total * penalty, WEIGHT / total * slope

    def put_on(self, penalised: float, residual: Array, theta: Array, total: float) -> tuple[float, Array]:
        """Put the penalty on a mean of squares, and its root on the residuals.

        Parameters
        ----------
        penalised : float
            Sum of squares of the residuals.
        residual : ndarray of shape (n, c)
            Times the roots of the shares of their weights.
        theta, total
            As of a call.

        Returns
        -------
        penalised : float
            With the penalty.
        residual : ndarray of shape (n, c)
            Whose squares add up to that.
        """
        factor = np.exp(self(theta, total)[0])
        return penalised * factor, residual * np.sqrt(factor)

    def moved(self, residual: Array, theta: Array, total: float) -> Array:
        """Return what the penalty adds to the derivatives of residuals it was put on, of shape (n, c, p)."""
        return np.asarray(residual[:, :, None] * (0.5 * self(theta, total)[1]))
