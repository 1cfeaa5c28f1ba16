r"""Full conformal p-values of classes, in closed form: what a fit with the new row would say, without fitting it.

Give the place q class c, and add it as a row. The score of each row is what the others leave to certainty of its class.
With leave-one-out sums :math:`D_{-i}`, pooled labels :math:`m_{-i}`, the share s of the priors and W unit rows,

.. math:: b_i = \frac{K(x_i, q)}{D_{-i}(x_i) + K(x_i, q)}, \qquad
          s_i(c) = 1 - (1 - s) \big[(1 - b_i)\, m_{-i}(y_i) + b_i\, [c = y_i]\big]
                     - s\, \frac{(W - 1)\, \pi_{-i}(y_i) + [c = y_i]}{W},

because pooled labels and priors are means, and a mean takes one more value so. The new row itself has
:math:`s(c) = 1 - p_c(q)`, of all training rows. The p-value of class c is

.. math:: \frac{1 + \#\{i : s_i(c) \ge s(c)\}}{W + 1}.

If rows are exchangeable and s and the bandwidth are fixed, all W + 1 scores of the true class are exchangeable: its
p-value is at most alpha with a probability of at most alpha [1]_.

References
----------
.. [1] V. Vovk, A. Gammerman and G. Shafer, "Algorithmic Learning in a Random World" (2005), proposition 2.3.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from kernpool.execution.threads import cut
from kernpool.inference.probabilities import Probabilities
from kernpool.inference.smoother import Places

Array = NDArray[np.float64]

PAIRS = 1 << 19  # in one table


def full_p_values(
    of: Probabilities, places: Places, probability: Array, *, by_class: bool = False, ties: float = 0.0
) -> Array:
    """Find the p-value of each class at some places.

    Parameters
    ----------
    of : Probabilities
        The training rows.
    places : Places
        Where.
    probability : ndarray of shape (m, k)
        Of the classes there.
    by_class : bool, default=False
        Whether a row is compared with rows of its class alone; then p-values are valid for each class.
    ties : float, default=0.0
        Scores that are less by no more count as equal.

    Returns
    -------
    ndarray of shape (m, k)
        O(n m k) time, O(n) memory.
    """
    from scipy.special import expit

    number = np.argmax(of.label, axis=1)
    rows = np.argsort(number, kind="stable")  # class by class
    rows = rows[of.weight[rows] > 0]
    number, weight, left = number[rows], of.weight[rows], of.left_out
    ends = np.searchsorted(number, np.arange(of.label.shape[1] + 1))
    others = of.total - np.minimum(weight, 1.0)
    pooled, prior = left.pooled[rows, number], left.prior[rows, number]
    kept, with_new = others / (others + 1.0), 1.0 / (others + 1.0)
    log_mass = left.log_mass[rows]
    empty, s = np.isneginf(log_mass), of.share
    problem, found = of.smoother.problem(places), np.empty(probability.shape)
    for which in cut(len(found), max(1, PAIRS // len(rows))):
        part = problem.block(which, rows)
        logits = part.similarity.logits(part.query, part.key)
        if part.factors is not None:
            logits = np.asarray(sum(part.factors.logarithms(), start=logits))
        with np.errstate(invalid="ignore"):
            share = expit(logits - log_mass)
        # Without any row in the window, the new one included, it is the priors that are pooled.
        share = np.where(empty & np.isneginf(logits), with_new, share)
        other = 1.0 - (1.0 - s) * (1.0 - share) * pooled - s * kept * prior
        same = other - (1.0 - s) * share - s * with_new
        strange = 1.0 - probability[which] - ties
        for c, (start, stop) in enumerate(pairwise(ends.tolist())):
            of_class = slice(start, stop)
            as_strange = _count(same[:, of_class] >= strange[:, c, None], weight[of_class])
            total = weight[of_class].sum()
            if not by_class:
                for rest in (slice(0, start), slice(stop, len(rows))):
                    as_strange = as_strange + _count(other[:, rest] >= strange[:, c, None], weight[rest])
                total = weight.sum()
            found[which, c] = (1.0 + as_strange) / (1.0 + total)
    return found


def _count(table: NDArray[np.bool_], weight: Array) -> Array:
    """Return the weight of true entries in each row."""
    if np.all(weight == 1.0):
        return np.count_nonzero(table, axis=1).astype(np.float64)
    return np.asarray(table @ weight)
