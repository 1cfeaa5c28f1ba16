"""Standard errors and Wilson intervals for class probabilities.

Class probabilities are a linear smoother of 0/1 indicators. With the mixing weight s of the class priors, W rows
and the kernel weights alpha of a query, the probability of class c is sum_j l_j [y_j = c] with l_j = (1 - s)
alpha_j + s w_j / W. So its variance is a sum over squared linear weights of unit rows, as for any other fit
(`kernpool.smoother.quadratic_forms`)::

    sum_j l_j^2 psi_j / w_j = (1 - s)^2 sum_j alpha_j^2 psi_j / w_j
                              + (2 s (1 - s) sum_j alpha_j psi_j + s^2 sum_j w_j psi_j / W) / W

No term is negative: a quadratic form, a pooled mean and a mean.

Wilson's interval, with n the number of rows that the probability p is an average of::

    (p + z^2 / 2n) / (1 + z^2 / n)  +-  z / (1 + z^2 / n) sqrt(p (1 - p) / n + z^2 / 4n^2)

An interval of p plus and minus standard errors leaves [0, 1], and has width zero where no row is of a class: after
0 of 12 it is 0 plus or minus 0, where Wilson's reaches up to .24.

Its p is that of local lines in windows narrower by n^(-1/20), and n is one over the squared norm of their linear
weights. Pooled labels and their windows, which are as wide as the search of least loss finds them, cover too little:
of true probabilities in the square, logistic in two columns, at 95 percent and with the default windows:

==================================== ======== ======== ========= ============
rows, slopes of the log odds         pooled   lines    narrower  2 m - m_wide
==================================== ======== ======== ========= ============
80, 3 and -2                         .73      .92      .93       .92
80, 6 and -4                         .64      .85      .91       .84
200, 3 and -2                        .85      .94      .95       .94
200, 6 and -4                        .80      .88      .93       .93
==================================== ======== ======== ========= ============

The last is the bias correction of regressors, which is wider as well. Bends beyond the second order, of probabilities
near 0 and 1, are what it leaves.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from kernpool._arrays import Array, Flags
from kernpool.bandwidth import priors_of_others
from kernpool.core import EmptyWindowWarning
from kernpool.execution import warn_of_queries
from kernpool.inference.variance.residuals import fit_squares
from kernpool.inference.variance.standard_errors import LOST, ROUNDED, TOO_FAR, ExtrapolationWarning, within_range
from kernpool.smoother import EvaluationPoints, Fitted, Smoother, squared_norm
from kernpool.smoother.bias_correction import parts_of
from kernpool.smoother.linear_smoother import refuse_few_rows


@dataclass(frozen=True, eq=False)
class Probabilities:
    """Estimator of class probabilities: smoother of 0-1 labels of the training rows, and mixing weight of the priors.

    Parameters
    ----------
    smoother : Smoother
        Local constant, with outputs of 0 and 1.
    share : float
        Mixing weight of the class priors in all probabilities.
    """

    smoother: Smoother
    share: float

    @cached_property
    def label(self) -> Array:
        """Labels of the training rows, of shape (n, k): one in the column of the class of a row, else zero."""
        return np.rint(self.smoother.value)

    @property
    def weight(self) -> Array:
        """Frequency weights of the training rows, of shape (n,)."""
        return self.smoother.weight

    @cached_property
    def prior(self) -> Array:
        """Class priors: weighted fractions of the classes among the training rows, of shape (k,)."""
        return self.weight @ self.label / self.smoother.rows

    def at(self, places: EvaluationPoints) -> Array:
        """Return class probabilities at evaluation points, of shape (m, k); the priors where a window is empty."""
        fit = self.smoother.fit(self.smoother.problem(places)).fit
        if self.smoother.recipe.empty == "raise":
            self.smoother.recipe.report_empty(fit.occupied)
        return self._mixed(fit.intercept, fit.occupied, self.prior)

    @cached_property
    def left_out(self) -> Array:
        """Class probabilities of the training rows, (n, k), as the exclusion leaves rows out, in one pass."""
        return self.of_others(*self.smoother.left_out)

    def of_others(self, pooled: Array, occupied: Flags) -> Array:
        """Mix leave-one-out pooled labels of the training rows with class priors that leave out the same rows."""
        return self._mixed(pooled, occupied, priors_of_others(self.label, self.weight, self.smoother.exclusion))

    def _mixed(self, pooled: Array, occupied: Flags, prior: Array) -> Array:
        """Return pooled labels, which are the priors where a window is empty, mixed with priors."""
        pooled = np.where(occupied[:, None], np.clip(pooled, 0.0, 1.0), prior)
        return (1.0 - self.share) * pooled + self.share * prior


def standard_errors(of: Probabilities, places: EvaluationPoints, *, warn: bool = True) -> Array:
    """Estimate the standard errors of class probabilities at evaluation points."""
    refuse_few_rows(of.smoother.rows, "standard errors of probabilities need")
    fitted, sums = of.smoother.fit(of.smoother.problem(places)), of.smoother.sums
    share, s = fitted.linear_weights, of.share
    squared = np.where(of.weight[:, None] > 0, (of.label - of.left_out) ** 2, 0.0)
    different = squared if squared.shape[1] > 2 else squared[:, :1]  # with two classes both are the same
    own = np.stack([squared_norm([(1.0, share)], sums, psi) for psi in different.T], axis=1)
    both = fit_squares(of.smoother, places, different).fit.intercept
    mean = of.weight @ different / of.smoother.rows
    variance = (1.0 - s) ** 2 * own + (2.0 * s * (1.0 - s) * np.maximum(both, 0.0) + s**2 * mean) / of.smoother.rows
    error = np.sqrt(np.repeat(variance, squared.shape[1] // variance.shape[1], axis=1))
    return np.where(_has_information(fitted, warn=warn)[:, None], error, np.nan)


def effective_rows(of: Probabilities, places: EvaluationPoints) -> tuple[Array, Array]:
    r"""Return class frequencies by undersmoothed local lines, and sample sizes :math:`1 / \sum_j l_j^2 / w_j`."""
    ((_, lines),) = parts_of(of.smoother, "undersmoothed")
    fitted = lines.fit(lines.problem(places))
    known = _has_information(fitted)
    size = np.where(known, squared_norm([(1.0, fitted.linear_weights)], lines.sums, None, lines.norms_by_rows), np.nan)
    center = np.clip(fitted.fit.intercept, 0.0, 1.0)
    return np.where(known[:, None], center, np.nan), 1.0 / size


def _has_information(fitted: Fitted, *, warn: bool = True) -> Flags:
    """Return which queries have training rows near enough for standard errors, and warn of other queries."""
    # there is no warning of far queries beyond the range of the keys: estimators warn of those
    rounded = ROUNDED * np.abs(fitted.state.log_denominator)
    empty = ~np.isfinite(fitted.state.log_denominator)
    lost = ~empty & (rounded > LOST)
    for places, reason, category in (
        (empty & warn, "have no key with positive weight", EmptyWindowWarning),
        (lost & within_range(fitted.problem), TOO_FAR, ExtrapolationWarning),
    ):
        warn_of_queries(
            places,
            f"{reason}, so that standard errors and intervals of their probabilities are unknown, and become NaN "
            "whatever empty= says; use a larger bandwidth, or omit these queries",
            category,
            before="",
        )
    return ~(empty | lost)


def wilson_interval(share: Array, rows: Array, level: float) -> tuple[Array, Array]:
    """Return the limits of Wilson's (1927) confidence interval for relative frequencies, exactly 0 and 1 at these."""
    from scipy.special import ndtri

    a = ndtri((1.0 + level) / 2.0) ** 2 / rows
    root = np.sqrt(a * (a + 4.0 * share * (1.0 - share)))
    # The upper end is near zero or near one; in both cases its difference from them has all digits.
    upper = np.where(share > 0.5, 1.0 - _lower(1.0 - share, a, root), (2.0 * share + a + root) / (2.0 + 2.0 * a))
    return _lower(share, a, root), upper


def _lower(share: Array, a: Array, root: Array) -> Array:
    """Return the lower limit of Wilson's interval, by a formula that avoids cancellation."""
    # the smaller root of a quadratic, via the larger one
    return 2.0 * share**2 / (2.0 * share + a + root)
