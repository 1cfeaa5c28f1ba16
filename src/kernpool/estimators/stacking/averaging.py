r"""Weights of the members of an average, by their leave-one-out predictions: stacking, or jackknife model averaging.

.. math:: \hat\pi = \arg\min_{\pi_m \ge 0,\; \sum_m \pi_m = 1}
          \sum_i w_i \Big( y_i - \sum_m \pi_m\, \hat y^{(m)}_{-i} \Big)^2

is stacking [1]_ with weights that are non-negative [2]_ and sum to one [3]_. Weights fit the noise of the leave-one-out
errors too, so they go half way to equal weights.

References
----------
.. [1] D. Wolpert, "Stacked generalization", Neural Networks 5 (1992), 241-259.
.. [2] L. Breiman, "Stacked regressions", Machine Learning 24 (1996), 49-64.
.. [3] B. Hansen and J. Racine, "Jackknife model averaging", Journal of Econometrics 167 (2012), 38-46.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import nnls

Array = NDArray[np.float64]

TOWARDS_EQUAL = 0.5


def stacking_weights(residuals: list[Array], weight: Array) -> Array:
    """Return the weights of the members of an average from their leave-one-out residuals, half way to equal weights.

    Parameters
    ----------
    residuals : list of ndarray of shape (n, c)
        Leave-one-out residuals of each member, in units in which outputs may be added.
    weight : ndarray of shape (n,)
        Frequencies.

    Returns
    -------
    ndarray of shape (members,)
        Positive; they sum to one.

    Examples
    --------
    >>> noise = np.array([[1.0], [-1.0], [1.0], [-1.0]])
    >>> stacking_weights([noise, -noise, 3 * noise], np.ones(4)).round(3)
    array([0.417, 0.417, 0.167])
    """
    members, root = len(residuals), np.sqrt(weight)[:, None]
    errors = np.column_stack([np.ravel(root * residual) for residual in residuals])
    size = np.sqrt(np.sum(errors**2))
    found = np.full(members, 1.0 / members)
    if size > 0 and members > 1:
        # The minimum of |E u|^2 + (1'u - 1)^2 over u >= 0 is a multiple of that of |E u|^2 over the simplex.
        triangle = np.linalg.qr(errors / size, mode="r")
        solution, _ = nnls(np.vstack([triangle, np.ones(members)]), np.append(np.zeros(len(triangle)), 1.0))
        found = solution / solution.sum()
    return np.asarray((1.0 - TOWARDS_EQUAL) * found + TOWARDS_EQUAL / members)
