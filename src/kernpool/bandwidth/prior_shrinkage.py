"""Shrinkage of class probabilities towards class priors; the mixing weight minimises leave-one-out log loss."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kernpool.core.exclusion import Exclusion, sums_of_others

Array = NDArray[np.float64]

TOLERANCE = 1e-10  # of the mixing weight; the log loss is flat at its minimum


class PriorShare(NamedTuple):
    """Mixing weight of the class priors, and the resulting probabilities and log loss.

    Parameters
    ----------
    share : float
        Mixing weight of the priors.
    mixed : ndarray of shape (n,)
        Probability of the class of each row after mixing, positive.
    log_loss : float
        Weighted mean of ``-log(mixed)``.
    """

    share: float
    mixed: Array
    log_loss: float


def prior_share(probability: Array, prior: Array, weight: Array | None = None) -> PriorShare:
    r"""Find the mixing weight of the class priors that minimises the leave-one-out log loss.

    .. math:: \min_s -\sum_i w_i \log\big((1 - s)\, p_i + s\, \pi_i\big) \Big/ \sum_i w_i,
              \qquad \frac{1}{n + 1} \le s \le \frac{n}{n + 1}

    Parameters
    ----------
    probability : ndarray of shape (n,)
        :math:`p_i`, the leave-one-out probability of the class that row i has.
    prior : ndarray of shape (n,)
        :math:`\pi_i`, the prior of that class; positive.
    weight : ndarray of shape (n,), optional
        Frequencies, of which at least one is positive; `n` is their sum.

    Returns
    -------
    PriorShare
        The mixing weight, the mixed probabilities, and their log loss.

    Notes
    -----
    The mixture is deleted interpolation [1]_, and the mixing weight is the m/(n + m) of Cestnik's m-estimate [2]_. The
    log loss is convex in the mixing weight, so its slope has one zero, which is bracketed. The lower bound is
    Laplace's rule of succession [3]_: a method that did not fail in n trials fails in the next with a probability of
    about :math:`1/(n + 1)`, so leave-one-out cannot justify a smaller weight. The upper bound is its mirror image;
    below one, the order of the pooled probabilities remains. O(n) time for each of some ten steps.

    References
    ----------
    .. [1] F. Jelinek and R. L. Mercer, "Interpolated estimation of Markov source parameters from sparse data", Pattern
       Recognition in Practice (1980), 381-397.
    .. [2] B. Cestnik, "Estimating probabilities: a crucial task in machine learning", ECAI 1990, 147-149.
    .. [3] E. T. Jaynes, Probability Theory: The Logic of Science (2003), section 18.10, on Laplace (1774).

    Examples
    --------
    Nine rows of ten are right with certainty, and one is wrong with certainty:

    >>> found = prior_share(np.array([1.0] * 9 + [0.0]), np.full(10, 0.5))
    >>> round(found.share, 3), round(found.log_loss, 3)
    (0.2, 0.325)
    >>> round(prior_share(np.ones(10), np.full(10, 0.5)).share, 3)
    0.091
    """
    from scipy.optimize import brentq

    weight = np.ones(len(probability)) if weight is None else weight
    kept = weight > 0
    probability, towards, times = np.clip(probability[kept], 0.0, 1.0), prior[kept], weight[kept]
    towards, n = towards - probability, float(times.sum())
    rows = max(n, float(len(times)))  # weights that were normalised do not make rows fewer
    low = 1.0 / (rows + 1.0)
    high = max(low, rows / (rows + 1.0))

    def slope(share: float) -> float:
        return -float(times @ (towards / (probability + share * towards))) / n

    if slope(low) >= 0.0:
        share = low
    elif slope(high) <= 0.0:
        share = high
    else:
        share = float(brentq(slope, low, high, xtol=TOLERANCE))
    mixed = np.ones(len(kept))
    mixed[kept] = probability + share * towards
    return PriorShare(share, mixed, -float(times @ np.log(mixed[kept])) / n)


def prior_of_others(label: Array, weight: Array | None = None, exclusion: Exclusion | None = None) -> Array:
    r"""Return the prior probability of each row's own class, estimated from the other rows.

    Of the row's own frequency at most one is held out; with an exclusion, all rows that are left out with it.

    Parameters
    ----------
    label : ndarray of shape (n, k)
        One-hot labels.
    weight : ndarray of shape (n,), optional
        Frequencies.
    exclusion : Exclusion, optional
        Which rows are held out together.

    Returns
    -------
    ndarray of shape (n,)
        Positive: where no other row has the class, the row itself is included. Otherwise its probability would be zero
        with any mixing weight, and its log loss infinite.

    Examples
    --------
    >>> prior_of_others(np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]]))
    array([0.5       , 0.5       , 0.33333333])
    """
    weight = np.ones(len(label)) if weight is None else weight
    total, of_class = float(weight.sum()), label @ (weight @ label)
    others, like = sums_of_others(weight, label, exclusion)
    of_others = np.sum(label * like, axis=1)
    known = of_others > 0.0
    found = np.where(known, of_others, of_class) / np.where(known, others, total)
    return np.where(found > 0.0, found, 1.0)  # a row of weight zero with its whole class: it is ignored


def priors_of_others(label: Array, weight: Array | None = None, exclusion: Exclusion | None = None) -> Array:
    r"""Return, for each row, the prior probabilities of all classes, estimated from the other rows.

    Of the row's own frequency at most one is held out; with an exclusion, all rows that are left out with it.

    Parameters
    ----------
    label, weight, exclusion
        As of `prior_of_others`.

    Returns
    -------
    ndarray of shape (n, k)
        Rows add up to one. A class that no other row has is zero there; without other rows, the priors of all rows.

    Examples
    --------
    >>> priors_of_others(np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]]))
    array([[0.5, 0.5],
           [0.5, 0.5],
           [1. , 0. ]])
    """
    weight = np.ones(len(label)) if weight is None else weight
    others, like = sums_of_others(weight, label, exclusion)
    share = np.divide(like, others[:, None], where=others[:, None] > 0.0, out=np.zeros_like(like))
    return np.where(others[:, None] > 0.0, share, weight @ label / float(weight.sum()))
