r"""Weights of the members of an average, by their leave-one-out predictions: stacking, or jackknife model averaging.

.. math:: \hat\pi = \arg\min_{\pi_m \ge 0,\; \sum_m \pi_m = 1}
          \sum_i w_i \Big( y_i - \sum_m \pi_m\, \hat y^{(m)}_{-i} \Big)^2

is stacking [1]_ with weights that are non-negative [2]_ and sum to one [3]_. Weights fit the noise of the leave-one-out
errors too, so they go half way to equal weights: of two members each has between 0.25 and 0.75.

For class probabilities the criterion is the leave-one-out log likelihood of the mixture, whose weights the EM algorithm
finds [4]_; scores become probabilities by a multinomial logistic regression.

References
----------
.. [1] D. Wolpert, "Stacked generalization", Neural Networks 5 (1992), 241-259.
.. [2] L. Breiman, "Stacked regressions", Machine Learning 24 (1996), 49-64.
.. [3] B. Hansen and J. Racine, "Jackknife model averaging", Journal of Econometrics 167 (2012), 38-46.
.. [4] Y. Yao, A. Vehtari, D. Simpson and A. Gelman, "Using stacking to average Bayesian predictive distributions",
   Bayesian Analysis 13 (2018), 917-1007.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import nnls
from sklearn.linear_model import LogisticRegression

Array = NDArray[np.float64]

TOWARDS_EQUAL = 0.5
STEPS, CHANGE = 1000, 1e-10  # of the EM algorithm, at most, and when it ends
INVERSE_PENALTY = 10.0  # of the logistic regression


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
    return _towards_equal(found)


def mixture_weights(likelihood: Array, weight: Array) -> Array:
    """Return the weights of the members of a mixture of largest likelihood, half way to equal weights.

    Parameters
    ----------
    likelihood : ndarray of shape (n, members)
        Leave-one-out probability that each member gave to the class of each row.
    weight : ndarray of shape (n,)
        Frequencies.

    Returns
    -------
    ndarray of shape (members,)
        Positive; they sum to one.

    Examples
    --------
    >>> mixture_weights(np.array([[0.9, 0.5], [0.1, 0.5]]), np.ones(2)).round(3)
    array([0.25, 0.75])
    """
    members = likelihood.shape[1]
    likelihood = np.maximum(likelihood, np.finfo(np.float64).tiny)
    found = np.full(members, 1.0 / members)
    for _ in range(STEPS):
        joint = likelihood * found
        new = weight @ (joint / joint.sum(axis=1, keepdims=True)) / weight.sum()
        done = np.max(np.abs(new - found)) < CHANGE
        found = new
        if done:
            break
    return _towards_equal(found)


def _towards_equal(weights: Array) -> Array:
    return np.asarray((1.0 - TOWARDS_EQUAL) * weights + TOWARDS_EQUAL / len(weights))


def average(weights: Array, each: Sequence[Array]) -> Array:
    """Return the average of what each member says, which is of any shape, by the weights of the members."""
    return np.asarray(sum(part * one for part, one in zip(weights, each, strict=True)))


class ScoreCalibration:
    """Multinomial logistic regression of classes on scores: class probabilities from a regression of one-hot labels.

    Parameters
    ----------
    score : ndarray of shape (n, classes)
        Leave-one-out scores.
    label : ndarray of int, shape (n,)
        Number of the class of each row.
    weight : ndarray of shape (n,)
        Frequencies.
    """

    def __init__(self, score: Array, label: NDArray[np.intp], weight: Array) -> None:
        self.classes = score.shape[1]
        self.present = np.unique(label)
        self._fit = None
        if len(self.present) > 1:
            self._fit = LogisticRegression(C=INVERSE_PENALTY, max_iter=10_000).fit(score, label, sample_weight=weight)

    def probability(self, score: Array) -> Array:
        """Return the probabilities of the classes for scores of shape (m, classes)."""
        found = np.zeros((len(score), self.classes))
        found[:, self.present] = 1.0 if self._fit is None else self._fit.predict_proba(score)
        return found
