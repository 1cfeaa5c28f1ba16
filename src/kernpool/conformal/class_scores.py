r"""How strange a class would be at a place, by its probabilities: scores, of which a set takes the small ones.

======== ============================================================ =================================
name     score of class c                                             source
======== ============================================================ =================================
lac      :math:`1 - p_c`                                              Sadinle, Lei and Wasserman [1]_
aps      :math:`\sum_{b: p_b > p_c} p_b + U p_c`                      Romano, Sesia and Candes [2]_
raps     the same :math:`+ \lambda\, (\mathrm{rank}_c - k)_+`         Angelopoulos et al. [3]_
======== ============================================================ =================================

U is uniform, one number per row, and ranks count from one. Of classes that are equally probable the first comes first.

References
----------
.. [1] M. Sadinle, J. Lei and L. Wasserman, "Least ambiguous set-valued classifiers with bounded error levels", JASA 114
   (2019), 223-234.
.. [2] Y. Romano, M. Sesia and E. J. Candes, "Classification with valid and adaptive coverage", NeurIPS (2020), eq. 5.
.. [3] A. N. Angelopoulos, S. Bates, J. Malik and M. I. Jordan, "Uncertainty sets for image classifiers using conformal
   prediction", ICLR (2021), eq. 4 and appendix E.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kernpool.conformal.ranks import upper_rank, upper_statistic

Array = NDArray[np.float64]
Index = NDArray[np.intp]
Score = Callable[[Array, Array], Array]  # probabilities (m, k) and uniform numbers (m,) to scores (m, k)

PENALTIES = (0.001, 0.01, 0.1, 0.2, 0.5)  # of which the paper on RAPS chooses
MOST_UNITS = 1000  # of one row, that have draws of their own
MOST_ROWS = 1 << 20  # of units in all, unless there are more rows: tables of scores are as long


@dataclass(frozen=True, eq=False)
class ClassRows:
    """Rows with known classes.

    Parameters
    ----------
    probability : ndarray of shape (n, k)
        Of all classes, by other rows.
    number : ndarray of int, shape (n,)
        The class of each row.
    weight : ndarray of shape (n,)
        Frequencies, positive.
    """

    probability: Array
    number: Index
    weight: Array

    @property
    def total(self) -> float:
        """Number of unit rows."""
        return float(self.weight.sum())

    def units(self) -> ClassRows:
        """Return the same with a row for each unit, because units have draws of their own, as equal rows have."""
        if np.all(self.weight == 1.0):
            return self
        most = min(MOST_UNITS, max(1, MOST_ROWS // len(self.weight)))
        times = np.clip(np.ceil(self.weight), 1, most).astype(np.intp)
        of = np.repeat(np.arange(len(times)), times)
        return ClassRows(self.probability[of], self.number[of], (self.weight / times)[of])

    def own(self, table: Array) -> Array:
        """Return the entry of the class of each row."""
        return np.asarray(table[np.arange(len(table)), self.number])


def least_ambiguous(probability: Array, draw: Array) -> Array:  # noqa: ARG001  # one signature for all scores
    """Return what is missing to certainty."""
    return 1.0 - probability


def adaptive_mass(probability: Array, draw: Array) -> Array:
    """Return the mass of all classes that are more probable, and a random share of the class itself."""
    _, before = ranks_and_mass(probability)
    return before + draw[:, None] * probability


def regularised_mass(probability: Array, draw: Array, penalty: float, free: int) -> Array:
    """Return the same with a penalty for each rank beyond some that are free."""
    rank, before = ranks_and_mass(probability)
    return before + draw[:, None] * probability + penalty * np.maximum(rank - free, 0)


def ranks_and_mass(probability: Array) -> tuple[NDArray[np.int64], Array]:
    """Return the rank of each class, from one on, and the mass of those before it, both of shape (m, k).

    Examples
    --------
    >>> rank, before = ranks_and_mass(np.array([[0.2, 0.5, 0.3]]))
    >>> rank.tolist(), before.tolist()
    ([[3, 1, 2]], [[0.8, 0.0, 0.5]])
    """
    order = np.argsort(-probability, axis=1, kind="stable")
    ordered = np.take_along_axis(probability, order, axis=1)
    mass = np.zeros_like(ordered)
    np.cumsum(ordered[:, :-1], axis=1, out=mass[:, 1:])
    before, rank = np.empty_like(mass), np.empty(mass.shape, dtype=np.int64)
    np.put_along_axis(before, order, mass, axis=1)
    np.put_along_axis(rank, order, np.arange(1, mass.shape[1] + 1)[None], axis=1)
    return rank, before


class Regularisation(NamedTuple):
    """What RAPS penalises.

    Parameters
    ----------
    penalty : float
        Of each rank beyond the free ones.
    free : int
        How many ranks have none.
    """

    penalty: float
    free: int


def choose_regularisation(rows: ClassRows, draw: Array, level: Fraction) -> Regularisation:
    """Choose what RAPS penalises, as its paper does in appendix E: by rows that need not be those that calibrate.

    Parameters
    ----------
    rows : ClassRows
        Training rows without themselves, by units.
    draw : ndarray of shape (n,)
        Uniform numbers.
    level : Fraction
        Of the sets.

    Returns
    -------
    Regularisation
        Free ranks are those that hold the class as often as the level says; the penalty makes sets of these rows the
        smallest on average.
    """
    rank = upper_rank(level, rows.total)
    ranks, _ = ranks_and_mass(rows.probability)
    found = float(upper_statistic(rows.own(ranks.astype(np.float64)), rows.weight, rank))
    free = int(min(found, rows.probability.shape[1]))
    sizes = []
    for penalty in PENALTIES:
        score = regularised_mass(rows.probability, draw, penalty, free)
        threshold = upper_statistic(rows.own(score), rows.weight, rank)
        sizes.append(float(rows.weight @ np.sum(score <= threshold, axis=1)))
    return Regularisation(PENALTIES[int(np.argmin(sizes))], free)


def score_of(method: str, regularisation: Regularisation | None = None) -> Score:
    """Return the score of a method by name."""
    if regularisation is not None:
        return partial(regularised_mass, penalty=regularisation.penalty, free=regularisation.free)
    return {"lac": least_ambiguous, "aps": adaptive_mass}[method]
