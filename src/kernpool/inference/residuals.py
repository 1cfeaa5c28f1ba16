r"""Residuals of the training rows: what variances are estimated from.

A row pulls the fit towards itself, so its residual is too small. Without it, it is right on average, up to the variance
of the fit itself: that residual is the default, as ``HC3`` is for least squares.

======== =============================================== ==========================================
name     squared residual                                source
======== =============================================== ==========================================
hc0      :math:`e_j^2`                                   White, Econometrica 48 (1980), 817-838
hc1      :math:`e_j^2 W / (W - \operatorname{tr} H)`     MacKinnon and White, J. Econometrics 29
hc2      :math:`e_j^2 / (1 - H_{jj})`                    (1985), 305-325
hc3      :math:`e_j^2 / (1 - H_{jj})^2`, leave-one-out
nn       of the mean of the three nearest other rows     Calonico, Cattaneo, Titiunik, Econometrica
                                                         82 (2014), 2295-2326
======== =============================================== ==========================================
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from kernpool.core.empty import fill_empty
from kernpool.core.state import PoolState, merge
from kernpool.execution.messages import check_choice
from kernpool.execution.ordered_sum import weighted_sum
from kernpool.execution.threads import cut
from kernpool.inference.nearest import nearest_residuals
from kernpool.inference.smoother import Smoother, log_mass
from kernpool.pooling.limits import limit_values

Array = NDArray[np.float64]

RESIDUALS = ("hc0", "hc1", "hc2", "hc3", "nn")
FEWEST_ROWS = 5
ROWS_AT_ONCE = 1 << 16  # whose fits are some megabytes, of a million rows twelve times the rows themselves
ROUNDING = 1e-12  # of the range of y, which is what pooling promises


@dataclass(frozen=True, eq=False)
class Training:
    """The training rows in their own fit, and in the fit without them.

    Parameters
    ----------
    value, fitted, deleted : ndarray of shape (n, c)
        Outputs, the fit at their places, and the fit there without one unit of the row: the mean of the others where
        nothing else is in its window.
    leverage : ndarray of shape (n,)
        Share of one unit of each row in its own fit, the diagonal of the hat matrix.
    weight : ndarray of shape (n,)
        Frequencies.
    alone : int
        How many rows have nothing else in their window.
    shares : tuple of (ndarray of shape (n,), ndarray of shape (n,), ndarray of shape (n, regressors)), or None
        Of the fits: log mass, base and tilt, as of `Shares`, where somebody wants them.
    """

    value: Array
    fitted: Array
    deleted: Array
    leverage: Array
    weight: Array
    alone: int
    shares: tuple[Array, Array, Array] | None = None

    @property
    def rows(self) -> float:
        """Number of unit rows."""
        return float(self.weight.sum())

    @property
    def trace(self) -> float:
        """Trace of the hat matrix: effective parameters of the fit."""
        return float(weighted_sum(self.weight, self.leverage))


def fit_training(smoother: Smoother, *, with_shares: bool = False) -> Training:
    """Fit the training rows with and without themselves, by one pass.

    Sums without a row, plus the row itself, are those with it: nothing is subtracted, so that a row of leverage nearly
    one keeps its digits.

    Parameters
    ----------
    smoother : Smoother
        Of any degree.
    with_shares : bool, default=False
        Whether to return the shares of the fits as well, which are as large as the rows and more.

    Returns
    -------
    Training
        For `squared_residuals`.

    Raises
    ------
    ValueError
        If there are fewer than five rows.
    """
    weight = smoother.weight
    if not weight.sum() >= FEWEST_ROWS:
        raise ValueError(
            f"inference needs at least {FEWEST_ROWS} rows, got {weight.sum():g}; weights are frequencies, and a weight "
            "of 3 is three equal rows"
        )
    problem = smoother.problem(smoother.training, exclude_self=True)
    state, n = smoother.sums(problem), len(weight)
    log_own = np.full(n, problem.similarity.log_peak)
    if problem.factors is not None:
        tables = zip(problem.factors.log_tables, problem.factors.key_code.T, strict=True)
        log_own += sum(table[code, code] for table, code in tables)
    fitted, deleted, leverage = np.empty_like(smoother.keys.value), np.empty_like(smoother.keys.value), np.empty(n)
    others = np.empty(n, dtype=bool)
    shares: list[tuple[Array, Array, Array]] = []
    for rows in cut(n, ROWS_AT_ONCE):
        part, unit, value = state.rows(rows), np.minimum(weight[rows], 1.0), smoother.keys.value[rows]
        without = smoother.settled(problem, part)
        deleted[rows], others[rows] = without.intercept, without.occupied
        numerator = np.zeros_like(part.numerator)
        numerator[:, problem.layout.value] = unit[:, None] * value
        together = merge(part, PoolState(log_own[rows], unit, numerator))
        fit = smoother.settled(problem, together)
        with np.errstate(divide="ignore", over="ignore"):
            share = np.exp(log_own[rows] - together.log_denominator)
        if with_shares:
            shares.append((log_mass(together), fit.base, fit.tilt))
        fitted[rows] = fit.intercept
        leverage[rows] = np.where(fit.occupied & (weight[rows] > 0), share * fit.base, 0.0)
    fill = partial(limit_values, problem, empty="mean", n_jobs=smoother.recipe.n_jobs)
    deleted = fill_empty(deleted, others, "mean", fill)
    alone = int(np.count_nonzero(~others & (weight > 0)))
    training = Training(smoother.value, fitted, deleted, leverage, weight, alone)
    if not with_shares:
        return training
    mass, base, tilt = (np.concatenate(part) for part in zip(*shares, strict=True))
    return replace(training, shares=(mass, base, tilt))


def nothing_left(value: Array) -> Array:
    """Return up to which size residuals are nothing but rounding.

    Parameters
    ----------
    value : ndarray of shape (n, c)
        Outputs.

    Returns
    -------
    ndarray of shape (c,)
        For each output.
    """
    size = np.max(np.abs(value), axis=0)
    return np.asarray(ROUNDING * np.ptp(value, axis=0) + 4.0 * np.finfo(np.float64).eps * size)


def squared_residuals(smoother: Smoother, training: Training, kind: str = "hc3") -> Array:
    """Return the squared residuals of unit rows.

    Parameters
    ----------
    smoother : Smoother
        That was fitted.
    training : Training
        Its rows.
    kind : {"hc3", "hc2", "hc1", "hc0", "nn"}, default="hc3"
        See above.

    Returns
    -------
    ndarray of shape (n, c)
        Zero for rows of weight zero.

    Raises
    ------
    ValueError
        If there is no such kind, or the fit takes all degrees of freedom.
    """
    check_choice("residuals", kind, RESIDUALS)
    freedom = training.rows - training.trace
    if not freedom > 1.0:
        raise ValueError(
            f"the fit has {training.trace:.6g} effective parameters for {training.rows:g} rows, so that no residual is "
            "left to estimate the noise from; use a larger bandwidth"
        )
    if kind == "nn":
        squared = nearest_residuals(smoother)
    elif kind == "hc3":
        squared = (training.value - training.deleted) ** 2
    elif kind == "hc2":
        squared = np.maximum((training.value - training.fitted) * (training.value - training.deleted), 0.0)
    else:
        squared = (training.value - training.fitted) ** 2
        if kind == "hc1":
            squared *= training.rows / freedom
    return np.where(training.weight[:, None] > 0, squared, 0.0)
