r"""Probabilities of classes as a linear smoother: labels are outputs of 0 and 1, and so are the class priors.

With the share s of the priors, W rows and the weights alpha of a query, a probability is
:math:`\hat p_c(q) = \sum_j l_j(q)\, [y_j = c]` with :math:`l_j = (1 - s)\, \alpha_j + s\, w_j / W`. So its variance is
a sum over squared shares of unit rows as that of any other fit (`quadratic_forms.py`):

.. math:: \sum_j \frac{l_j^2}{w_j} \psi_j = (1 - s)^2 \sum_j \frac{\alpha_j^2}{w_j} \psi_j
          + \frac{1}{W} \Big( 2 s (1 - s) \sum_j \alpha_j \psi_j + s^2 \sum_j \frac{w_j}{W} \psi_j \Big),

of which no term is negative: a quadratic form, a pooled mean and a mean.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from kernpool.bandwidth.prior_share import priors_of_others
from kernpool.core.empty import EmptyWindowWarning, fill_empty
from kernpool.execution.warnings import warn_caller
from kernpool.inference.noise import fit_squares
from kernpool.inference.quadratic_forms import inner, squared_norm
from kernpool.inference.residuals import FEWEST_ROWS
from kernpool.inference.slopes import value_shares
from kernpool.inference.smoother import Fitted, Places, Smoother, log_mass
from kernpool.inference.warnings import LOST, ROUNDED, TOO_FAR, ExtrapolationWarning, within_range

Array = NDArray[np.float64]
Codes = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class LeftOut:
    """The training rows as the other rows tell them.

    Parameters
    ----------
    pooled : ndarray of shape (n, k)
        Pooled labels of the others; their priors where none is in the window.
    prior : ndarray of shape (n, k)
        Priors of the others.
    probability : ndarray of shape (n, k)
        Both mixed.
    log_mass : ndarray of shape (n,)
        Logarithm of the sum of weights of the others; minus infinity where none is in the window.
    """

    pooled: Array
    prior: Array
    probability: Array
    log_mass: Array


@dataclass(frozen=True, eq=False)
class Probabilities:
    """Training rows with classes, and how their probabilities are pooled.

    Parameters
    ----------
    smoother : Smoother
        Local constant, with outputs of 0 and 1.
    label : ndarray of shape (n, k)
        These outputs: one in the column of the class of a row.
    share : float
        Of the class priors in all probabilities.
    group : ndarray of int64, shape (n,), or None
        Number of the cluster of each row; then leave-one-out leaves clusters out.
    """

    smoother: Smoother
    label: Array
    share: float
    group: Codes | None = None

    @property
    def weight(self) -> Array:
        """Frequencies of the rows, of shape (n,)."""
        return self.smoother.weight

    @cached_property
    def total(self) -> float:
        """Number of unit rows."""
        return float(self.weight.sum())

    @cached_property
    def prior(self) -> Array:
        """Weighted shares of the classes, of shape (k,)."""
        return np.asarray(self.weight @ self.label / self.total)

    def at(self, places: Places) -> tuple[Array, Fitted]:
        """Return probabilities of shape (m, k) and the pooled labels; the priors where a window is empty.

        If the recipe says so, an empty window is an error.
        """
        fitted = self.smoother.fit(places)
        if self.smoother.recipe.empty == "raise":
            fill_empty(fitted.fit.intercept, fitted.fit.occupied, "raise")
        pooled = np.where(fitted.fit.occupied[:, None], np.clip(fitted.fit.intercept, 0.0, 1.0), self.prior)
        return (1.0 - self.share) * pooled + self.share * self.prior, fitted

    @cached_property
    def left_out(self) -> LeftOut:
        """Probabilities of each training row by the other rows, or by those of the other clusters; one pass."""
        smoother, training = self.smoother, self.smoother.training
        problem = smoother.problem(training, exclude_self=self.group is None)
        problem = problem if self.group is None else problem.with_groups(self.group, self.group)
        state = smoother.sums(problem)
        fit = smoother.settled(problem, state)
        prior = priors_of_others(self.label, self.weight, self.group)
        pooled = np.where(fit.occupied[:, None], np.clip(fit.intercept, 0.0, 1.0), prior)
        return LeftOut(pooled, prior, (1.0 - self.share) * pooled + self.share * prior, log_mass(state))


def standard_errors(of: Probabilities, places: Places, *, warn: bool = True) -> Array:
    """Estimate the standard deviations of probabilities.

    Parameters
    ----------
    of : Probabilities
        Whose.
    places : Places
        Where.
    warn : bool, default=True
        False if a caller has warned of empty windows.

    Returns
    -------
    ndarray of shape (m, k)
        NaN where a window is empty.

    Raises
    ------
    ValueError
        If there are fewer than five rows.
    """
    _need_rows(of)
    fitted, sums = of.smoother.fit(places), of.smoother.sums
    share, s = value_shares(fitted), of.share
    squared = np.where(of.weight[:, None] > 0, (of.label - of.left_out.probability) ** 2, 0.0)
    different = squared if squared.shape[1] > 2 else squared[:, :1]  # of two classes both are the same
    own = np.stack([squared_norm([(1.0, share)], sums, psi) for psi in different.T], axis=1)
    both = fit_squares(of.smoother, places, different).fit.intercept
    mean = of.weight @ different / of.total
    variance = (1.0 - s) ** 2 * own + (2.0 * s * (1.0 - s) * np.maximum(both, 0.0) + s**2 * mean) / of.total
    error = np.sqrt(np.repeat(variance, squared.shape[1] // variance.shape[1], axis=1))
    return np.where(_told(fitted, warn=warn)[:, None], error, np.nan)


def effective_rows(of: Probabilities, places: Places) -> tuple[Array, Array]:
    r"""Return the pooled labels and how many rows they are a mean of, :math:`1 / \sum_j \alpha_j^2 / w_j`.

    Parameters
    ----------
    of : Probabilities
        Whose.
    places : Places
        Where.

    Returns
    -------
    ndarray of shape (m, k), ndarray of shape (m,)
        Without the share of the priors; NaN where a window is empty.
    """
    fitted = of.smoother.fit(places)
    share, told = value_shares(fitted), _told(fitted)
    size = np.where(told, inner(share, share, of.smoother.sums), np.nan)
    pooled = np.clip(fitted.fit.intercept, 0.0, 1.0)
    return np.where(told[:, None], pooled, np.nan), 1.0 / size


def _need_rows(of: Probabilities) -> None:
    if not of.total >= FEWEST_ROWS:
        raise ValueError(
            f"standard errors of probabilities need at least {FEWEST_ROWS} rows, got {of.total:g}; weights are "
            "frequencies, and a weight of 3 is three equal rows"
        )


def _told(fitted: Fitted, *, warn: bool = True) -> NDArray[np.bool_]:
    """Return where rows tell something, and warn of the other places."""
    rounded = ROUNDED * np.abs(fitted.log_mass)
    empty = ~np.isfinite(fitted.log_mass)
    lost = ~empty & (rounded > LOST)
    for places, reason, category in (
        (empty & warn, "have no key with positive weight", EmptyWindowWarning),
        (lost & within_range(fitted.problem), TOO_FAR, ExtrapolationWarning),
    ):
        (which,) = np.nonzero(places)
        if which.size:
            warn_caller(
                f"{which.size} of {len(places)} queries (the first is query {which[0]}) {reason}, so that nothing "
                "tells how sure their probabilities are, which becomes NaN whatever empty= says; use a larger "
                "bandwidth, or leave these places out",
                category,
            )
    return ~(empty | lost)
