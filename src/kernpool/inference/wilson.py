r"""Intervals for probabilities of classes: Wilson's, with the number of rows that a probability is a mean of.

.. math:: \frac{\hat p + z^2 / 2n}{1 + z^2 / n} \pm \frac{z}{1 + z^2 / n}
          \sqrt{\frac{\hat p (1 - \hat p)}{n} + \frac{z^2}{4 n^2}}

A probability plus and minus standard errors leaves [0, 1], and is sure of itself where no row is of a class: after 0 of
12 it is 0 plus or minus 0, where these intervals reach up to .24.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernpool.inference.printing import ROWS, columns_of_text

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class ProbabilityInterval:
    """Intervals for the probabilities of classes at m places.

    Parameters
    ----------
    center : ndarray of shape (m, k)
        Pooled labels: relative frequencies of the classes, without the share of the priors.
    lower, upper : ndarray of shape (m, k)
        Ends, within [0, 1]; NaN where the window is empty.
    effective_rows : ndarray of shape (m,)
        How many rows the frequencies are of.
    classes : ndarray of shape (k,)
        Labels of the columns.
    level : float
        Probability that an interval covers.

    Examples
    --------
    >>> import numpy as np
    >>> center, rows = np.array([[0.0, 1.0]]), np.array([12.0])
    >>> lower, upper = wilson_interval(center, rows[:, None], 0.95)
    >>> print(ProbabilityInterval(center, lower, upper, rows, np.array(["no", "yes"]), 0.95))
    places    1
    level     0.95, each place and class by itself
    method    wilson
    <BLANKLINE>
      place  class  pooled  lower   upper   rows
      0      no     0       0       0.2425  12
      0      yes    1       0.7575  1       12
    """

    center: Array
    lower: Array
    upper: Array
    effective_rows: Array
    classes: NDArray[Any]
    level: float

    def __str__(self) -> str:
        shown = [(i, c) for i in range(min(len(self.center), ROWS)) for c in range(len(self.classes))][:ROWS]
        cut = self.center.size > len(shown)
        rows = [
            [
                str(i),
                str(self.classes[c]),
                *(f"{of[i, c]:.4g}" for of in (self.center, self.lower, self.upper)),
                f"{self.effective_rows[i]:.3g}",
            ]
            for i, c in shown
        ]
        lines = [
            f"places    {len(self.center)}" + ", the first below" * cut,
            f"level     {self.level:g}, each place and class by itself",
            "method    wilson",
        ]
        names = ["place", "class", "pooled", "lower", "upper", "rows"]
        return "\n".join([*lines, "", *columns_of_text(names, rows), *["  ..."] * cut])


def wilson_interval(share: Array, rows: Array, level: float) -> tuple[Array, Array]:
    """Return the ends of Wilson's interval, of the shape of the shares.

    Parameters
    ----------
    share : ndarray
        Relative frequencies.
    rows : ndarray
        Of how many rows, which need not be whole.
    level : float
        Between 0 and 1.

    Returns
    -------
    ndarray, ndarray
        Within [0, 1], and exactly 0 and 1 where the share is.

    References
    ----------
    .. [1] E. B. Wilson, "Probable inference, the law of succession, and statistical inference", JASA 22 (1927),
       209-212.

    Examples
    --------
    >>> [end.round(3).tolist() for end in wilson_interval(np.array([0.0, 0.5]), np.array([12.0, 12.0]), 0.95)]
    [[0.0, 0.254], [0.243, 0.746]]
    """
    from scipy.special import ndtri

    a = ndtri((1.0 + level) / 2.0) ** 2 / rows
    root = np.sqrt(a * (a + 4.0 * share * (1.0 - share)))
    # The upper end is near zero or near one; either way it has all digits of what it differs by.
    upper = np.where(share > 0.5, 1.0 - _lower(1.0 - share, a, root), (2.0 * share + a + root) / (2.0 + 2.0 * a))
    return _lower(share, a, root), upper


def _lower(share: Array, a: Array, root: Array) -> Array:
    """Return the smaller root of a quadratic, by way of the larger one: without a difference, and exactly 0 at 0."""
    return np.asarray(2.0 * share**2 / (2.0 * share + a + root))
