r"""The curves of groups, and the band in which they lie where they do not differ.

With the curves of two groups at the same bandwidth, whose bias is the same where the truth is, and their standard
errors, the reference band is

.. math:: \tfrac12 (\hat m_1 + \hat m_2) \pm \tfrac12 t_\nu \sqrt{\mathrm{se}_1^2 + \mathrm{se}_2^2}.

The curves leave it, on either side, where they differ by more than the t-quantile times the standard error of their
difference. The degrees of freedom are those of Welch.

References
----------
A. W. Bowman and A. Azzalini, "Applied Smoothing Techniques for Data Analysis", Oxford University Press (1997), section
6.4; R's ``sm.ancova`` draws two standard errors in place of the quantile.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kernpool.core.keys import Keys
from kernpool.inference.corrected import estimate
from kernpool.inference.curves import read_groups
from kernpool.inference.intervals import check_level
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
    """

    x: Array
    labels: NDArray[Any]
    curve: Array
    standard_error: Array
    df: Array

    def reference_band(self, level: float = 0.95) -> tuple[Array, Array]:
        """Return the band of two groups in which both curves lie where they do not differ.

        Parameters
        ----------
        level : float, default=0.95
            Probability that they lie in it at a place where the truth is the same.

        Returns
        -------
        lower, upper : ndarray of shape (g,)
            NaN where not both curves are known.

        Raises
        ------
        ValueError
            If there are more groups, or the level is none.
        """
        check_level(level)
        if len(self.labels) != 2:
            raise ValueError(f"a reference band is for two groups, and there are {len(self.labels)}")
        from scipy.special import stdtrit

        variance = self.standard_error**2
        together = variance.sum(axis=0)
        with np.errstate(divide="ignore", invalid="ignore"):
            df = together**2 / np.sum(variance**2 / self.df, axis=0)
            half = -0.5 * stdtrit(df, 0.5 * (1.0 - level)) * np.sqrt(together)
        center = self.curve.mean(axis=0)
        return center - half, center + half


def group_curves(
    X: ArrayLike,
    y: ArrayLike,
    groups: ArrayLike,
    bandwidth: float,
    *,
    kernel: str = "gaussian",
    sample_weight: ArrayLike | None = None,
    places: int = 201,
) -> GroupCurves:
    """Fit a local linear curve to each group.

    Parameters
    ----------
    X, y, groups, kernel, sample_weight
        As of `compare_curves`, with one column.
    bandwidth : float
        Of all curves.
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
    sample, code, present = read_groups(X, y, groups, sample_weight)
    if sample.X.shape[1] != 1:
        raise ValueError(f"a curve is over one column, and X has {sample.X.shape[1]}; compare them one at a time")
    label = np.asarray(groups)
    labels = np.unique(label if sample_weight is None else label[np.asarray(sample_weight) > 0])
    x = np.linspace(sample.X.min(), sample.X.max(), places)
    curve, error, df = (np.full((len(labels), places), np.nan) for _ in range(3))
    recipe = Recipe.of(kernel, np.atleast_1d(bandwidth), degree=1)
    for k, name in enumerate(present):
        rows = np.flatnonzero(code == k)
        if len(rows) < FEWEST_ROWS:
            raise ValueError(
                f"group {name!r} has {len(rows)} rows, and a curve with standard errors needs at least {FEWEST_ROWS}; "
                "merge small groups or leave them out"
            )
        own = sample.X[rows]
        (inside,) = np.nonzero((x >= own.min()) & (x <= own.max()))
        smoother, at = Smoother(Keys.read(own, sample.y[rows]), recipe), Places(x[inside, None])
        found = estimate(smoother, at, "naive")
        errors = errors_of(smoother, fit_training(smoother), at, found)
        curve[k, inside], error[k, inside] = found.center[:, 0], errors.standard_error[:, 0]
        df[k, inside] = np.maximum(errors.df, 1.0)
    return GroupCurves(x, labels, curve, error, df)
