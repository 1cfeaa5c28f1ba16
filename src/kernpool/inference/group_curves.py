r"""The curves of groups, and the bands in which they lie where they do not differ.

With the curves of k groups at the same bandwidth, whose bias is the same where the truth is, and their standard errors,
the reference band of group g is

.. math:: \bar m \pm t_\nu \Big( \mathrm{se}_g^2 \big(1 - \tfrac2k\big)
          + \tfrac1{k^2} \sum_j \mathrm{se}_j^2 \Big)^{1/2}, \qquad \bar m = \tfrac1k \sum_j \hat m_j

around the mean of the curves, with the standard error of its distance from that mean. Of two groups this is one band,
:math:`\tfrac12 (\mathrm{se}_1^2 + \mathrm{se}_2^2)^{1/2}` times the quantile on either side [1]_: both curves leave it
where they differ by more than the quantile times the standard error of their difference. Of more, k distances are
judged at once, and each at the level :math:`1 - \alpha / k` (Bonferroni). The degrees of freedom are those of Welch and
Satterthwaite. Parallel curves are moved together by their offsets, and their bands are moved back; errors of offsets,
which all rows of a group make together, are not counted.

References
----------
.. [1] A. W. Bowman and A. Azzalini, "Applied Smoothing Techniques for Data Analysis", Oxford University Press (1997),
   section 6.4; R's ``sm.ancova`` draws two standard errors in place of the quantile, and for two groups alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kernpool.core.keys import Keys
from kernpool.data.groups import named
from kernpool.inference.corrected import estimate
from kernpool.inference.curves import read_groups
from kernpool.inference.intervals import check_level
from kernpool.inference.offsets import Offsets
from kernpool.inference.residuals import FEWEST_ROWS, fit_training
from kernpool.inference.smoother import Places, Smoother
from kernpool.inference.standard_errors import errors_of
from kernpool.pooling.recipe import Recipe

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class GroupCurves:
    """Curves of k groups at g places.

    Parameters
    ----------
    x : ndarray of shape (g,)
        Places, from the least input to the largest.
    labels : ndarray of shape (k,)
        Of the groups.
    curve, standard_error, df : ndarray of shape (k, g)
        Local linear fits, their standard errors and degrees of freedom; NaN beyond the inputs of the group.
    offset : ndarray of shape (k,)
        By which the curves of groups differ from that of the first one if they are parallel; zeros if they are equal.
    parallel : bool
        Which of the two reference bands are about.
    """

    x: Array
    labels: NDArray[Any]
    curve: Array
    standard_error: Array
    df: Array
    offset: Array
    parallel: bool = False

    def reference_band(self, level: float = 0.95) -> tuple[Array, Array]:
        """Return the bands in which curves lie where they do not differ, or are parallel.

        Parameters
        ----------
        level : float, default=0.95
            Probability that all curves lie in theirs at a place where the truth is the same.

        Returns
        -------
        lower, upper : ndarray of shape (k, g)
            Of each group, for two groups of equal curves the same; NaN where it or all others are not known.

        Raises
        ------
        ValueError
            If the level is none.
        """
        check_level(level)
        from scipy.special import stdtrit

        known = np.isfinite(self.standard_error)
        groups = known.sum(axis=0)
        there = known & (groups > 1)
        with np.errstate(divide="ignore", invalid="ignore"):
            variance = np.where(known, self.standard_error**2, 0.0)
            center = np.sum(np.where(known, self.curve - self.offset[:, None], 0.0), axis=0) / groups
            # Of the distance of one curve from the mean: the part of its own variance, and of the others'.
            others = variance / groups**2
            own = variance * (1.0 - 1.0 / groups) ** 2
            total = own + others.sum(axis=0) - others
            scaled = np.where(known, others**2 / self.df, 0.0)
            df = total**2 / (np.where(known, own**2 / self.df, 0.0) + scaled.sum(axis=0) - scaled)
            tail = 0.5 * (1.0 - level) / np.where(groups > 2, groups, 1)
            half = np.where(there, -stdtrit(df, tail) * np.sqrt(total), np.nan)
        middle = center + self.offset[:, None]
        return middle - half, middle + half


def group_curves(
    X: ArrayLike,
    y: ArrayLike,
    groups: ArrayLike,
    bandwidth: float,
    *,
    kernel: str = "gaussian",
    sample_weight: ArrayLike | None = None,
    parallel: bool = False,
    places: int = 201,
) -> GroupCurves:
    """Fit a local linear curve to each group.

    Parameters
    ----------
    X, y, groups, kernel, sample_weight
        As of `compare_curves`, with one column.
    bandwidth : float
        Of all curves.
    parallel : bool, default=False
        Whether offsets are found, as `compare_curves` finds them for parallel curves.
    places : int, default=201
        How many.

    Returns
    -------
    GroupCurves
        One leave-one-out pass over the rows of each group, and four over rows and places.

    Raises
    ------
    ValueError
        If there are several columns, or a group has fewer than five rows.
    """
    sample, code, labels = read_groups(X, y, groups, sample_weight)
    if sample.X.shape[1] != 1:
        raise ValueError(f"a curve is over one column, and X has {sample.X.shape[1]}; compare them one at a time")
    x = np.linspace(sample.X.min(), sample.X.max(), places)
    curve, error, df = (np.full((len(labels), places), np.nan) for _ in range(3))
    recipe = Recipe.of(kernel, np.atleast_1d(bandwidth), degree=1)
    for k, label in enumerate(labels):
        rows = np.flatnonzero(code == k)
        if len(rows) < FEWEST_ROWS:
            raise ValueError(
                f"group {named(label)} has {len(rows)} rows, and a curve with standard errors needs at least "
                f"{FEWEST_ROWS}; merge small groups or leave them out"
            )
        own = sample.X[rows]
        (inside,) = np.nonzero((x >= own.min()) & (x <= own.max()))
        smoother, at = Smoother(Keys.read(own, sample.y[rows]), recipe), Places(x[inside, None])
        found = estimate(smoother, at, "naive")
        errors = errors_of(smoother, fit_training(smoother), at, found)
        curve[k, inside], error[k, inside] = found.center[:, 0], errors.standard_error[:, 0]
        df[k, inside] = np.maximum(errors.df, 1.0)
    offset = np.zeros(len(labels))
    if parallel:
        offset = Offsets.of(sample.X, code, recipe).of_groups(sample.y[:, None])[:, 0]
    return GroupCurves(x, labels, curve, error, df, offset, parallel)
