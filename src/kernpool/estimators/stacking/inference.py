r"""Inference for a stack of linear smoothers: confidence and prediction intervals, summary, expected error.

A smoother that predicts best has a bias as large as its standard error, so intervals are centred at a corrected fit and
have its standard error [2]_. With the linear weights l(x) of the stack, and its hat matrix H, the correction fits the
residuals and adds what it finds (twicing [1]_):

.. math:: l_c = l\, (I + (I - H)), \qquad
          \widehat{\mathrm{se}}^2(x) = \sum_j l_{c,j}(x)^2\, \hat\sigma_j^2 / w_j + \hat b^2

so that coverage holds on average over the curve [3]_. The bias that remains is taken to be smaller than the correction:
half of its mean square at the training rows is a part of :math:`\hat b^2`. The other part is what leave-one-out
residuals r have beyond noise and variance: bias of many columns, and what choosing the kernels costs,

.. math:: \max\Big(0,\; \overline{r^2} - \hat\sigma^2 \big(1 + \overline{\lVert l_{-i} \rVert^2}\big)\Big),
          \qquad \hat\sigma^2 = \frac{\lVert y - H y \rVert^2}{\mathrm{tr}\, (I - H)'(I - H)}

The noise :math:`\hat\sigma_j^2` is a local mean of squared leave-one-out residuals. For larger units g the sum is
:math:`\sum_g (\sum_{j \in g} l_{c,j} r_j)^2`, with residuals that leave units out, without the second part. Weights of
members, kernels and ridges are taken as given.

References
----------
.. [1] J. W. Tukey, "Exploratory Data Analysis", Addison-Wesley (1977), section 16A.
.. [2] S. Calonico, M. D. Cattaneo and M. H. Farrell, "On the effect of bias estimation on coverage accuracy in
   nonparametric inference", JASA 113 (2018), 767-779.
.. [3] D. Nychka, "Bayesian confidence intervals for smoothing splines", JASA 83 (1988), 1134-1143.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import stdtrit
from sklearn.base import clone

from kernpool import conformal
from kernpool._arrays import Array
from kernpool.bandwidth import TrainingRows
from kernpool.bandwidth.search import distinct_rows
from kernpool.core import CARTESIAN
from kernpool.estimators.expected_error import nested_error
from kernpool.estimators.fitted_model import places_of
from kernpool.estimators.kernel_smoother import KernelSmoother
from kernpool.estimators.limits import refuse, smoother_of
from kernpool.estimators.methods.inference import Prediction
from kernpool.estimators.methods.prediction_intervals import METHODS_OF_SAMPLES, check_rows, read_outputs
from kernpool.estimators.stacking.kernel_ridge import KernelRidge
from kernpool.estimators.stacking.stack import FittedStack, values_of
from kernpool.estimators.stacking.standard_columns import mean_of
from kernpool.execution import ROWS, check_choice
from kernpool.inference import Interval, Summary, local_noise
from kernpool.inference.model_summary import MemberSummary, errors_of_fit, explained, summary_of_regression
from kernpool.smoother import EvaluationPoints, absolute_residuals

REMAINING = 0.5  # squared bias after the correction, in mean squares of the correction
MOST_BYTES = 1 << 30  # of the linear weights of queries


@dataclass(frozen=True, eq=False)
class HatSummary:
    """What the hat matrix of a stack says of its training rows.

    Parameters
    ----------
    fitted : ndarray of shape (n, c)
        Fitted values.
    leverage : ndarray of shape (n,)
        Linear weight of one unit of each row in its own fit.
    norm : ndarray of shape (n,)
        Squared norm of the linear weights of each fit; one over the effective number of rows of it.
    rows, trace, trace_squared : float
        Number of rows, tr H and tr H'H.
    """

    fitted: Array
    leverage: Array
    norm: Array
    rows: float
    trace: float
    trace_squared: float

    @classmethod
    def of(cls, stack: FittedStack) -> HatSummary:
        """Sum the hat matrix in blocks of rows."""
        weight = stack.weight
        fitted, own, norm = np.empty_like(stack.value), np.empty(len(weight)), np.empty(len(weight))
        for rows, hat in stack.hat_rows():
            fitted[rows], norm[rows] = hat @ stack.value, hat**2 @ (1.0 / weight)
            own[rows] = hat[:, rows].diagonal()
        return cls(
            fitted, own / np.maximum(weight, 1.0), norm, float(weight.sum()), float(own.sum()), float(weight @ norm)
        )

    @property
    def freedom(self) -> float:
        """Degrees of freedom of the residuals, rows - 2 tr H + tr H'H."""
        return self.rows - 2.0 * self.trace + self.trace_squared

    def unexplained(self, stack: FittedStack) -> Array:
        """Return mean squares of leave-one-out residuals beyond noise and variance, of shape (c,)."""
        norm = mean_of((self.norm - self.leverage**2) / (1.0 - self.leverage) ** 2, stack.weight)  # of left-out fits
        rest, left_out = (mean_of(r**2, stack.weight) for r in (stack.value - self.fitted, stack.residual))
        return np.maximum(left_out - rest * self.rows / self.freedom * (1.0 + norm), 0.0)


def noise_of(stack: FittedStack) -> Array:
    """Return the local noise variance at the training rows, of residuals that leave each out with its unit."""
    smoother = smoother_of(stack.local)
    squared = np.zeros_like(smoother.value)
    squared[stack.kept] = stack.residual**2
    return local_noise(smoother, smoother.training, squared)[0][stack.kept]


def twiced(stack: FittedStack, weights: Array, residual: Array) -> tuple[Array, Array]:
    """Return linear weights (m, n) of the corrected fit, and its corrections (n, c) at the training rows."""
    found, corrections = 2.0 * weights, np.empty_like(residual)
    for rows, hat in stack.hat_rows():
        found -= weights[:, rows] @ hat
        corrections[rows] = hat @ residual
    return found, corrections


def confidence_interval(stack: FittedStack, queries: Prediction, level: float, robust: bool) -> Interval:
    """Compute pointwise confidence intervals for the curve.

    Parameters
    ----------
    stack : FittedStack
        The fit.
    queries : Prediction
        Evaluation points.
    level : float
        Confidence level.
    robust : bool
        Whether to correct the bias.

    Raises
    ------
    ValueError
        If there are fewer than five larger units, the fit takes all degrees of freedom, or the linear weights of the
        queries take more than a gibibyte.
    """
    most = max(MOST_BYTES // (8 * len(stack.local.key_)), 1)
    if len(queries) > most:
        raise ValueError(
            f"X must have at most {most} rows for confidence intervals of a fit to {len(stack.local.key_)} rows, got "
            f"{len(queries)}; pass parts of it one after the other"
        )
    hat = HatSummary.of(stack)
    if not hat.freedom > 1.0:
        raise ValueError(
            f"the fit leaves {hat.freedom:.3g} degrees of freedom of {hat.rows:g} rows to estimate the noise from; fit "
            "more rows"
        )
    weights = stack.weights(queries)
    units, plain, remaining = stack.units, weights[:ROWS], np.zeros(1)
    if robust:
        weights, corrections = twiced(stack, weights, stack.value - hat.fitted)
        remaining = REMAINING * mean_of(corrections**2, stack.weight)
        if units.code is None:
            remaining += hat.unexplained(stack)
    if units.code is None:
        variance, df = weights**2 @ (noise_of(stack) / stack.weight[:, None]), np.full(len(queries), hat.freedom)
    else:
        units.refuse_few(stack.weight)
        of_unit = (units.code[:, None] == np.unique(units.code)).astype(np.float64)
        variance = np.stack([np.sum(((weights * r) @ of_unit) ** 2, axis=1) for r in stack.residual.T], axis=1)
        size = (weights**2 / stack.weight) @ of_unit
        df = np.maximum(size.sum(axis=1) ** 2 / np.sum(size**2, axis=1) - 1.0, 1.0)
    center, error = weights @ stack.value, np.sqrt(variance + remaining)
    half = -stdtrit(df[:, None], 0.5 * (1.0 - level)) * error
    return Interval(
        center, center - half, center + half, level, "robust" if robust else "naive", error, df,
        effective_rows=1.0 / (plain**2 @ (1.0 / stack.weight)), first_predictions=plain @ stack.value,
        index=queries.index,
    )  # fmt: skip


def conformal_interval(
    stack: FittedStack,
    X: ArrayLike,
    level: float,
    method: str,
    X_calibration: ArrayLike | None,
    y_calibration: ArrayLike | None,
) -> Interval:
    """Compute prediction intervals from leave-one-out residuals of the stack, or from calibration rows.

    The scale of the noise is the kernel mean of absolute leave-one-out residuals in the windows of the local member.
    """
    check_choice("method", method, METHODS_OF_SAMPLES)
    local, queries = stack.local, stack.read(X)
    smoother, places = smoother_of(local), places_of(local, X, warn=False)
    check_rows(X_calibration, y_calibration, None)
    if X_calibration is None:
        calibration = conformal.Calibration(
            smoother.left_out_points(None).rows(stack.kept),
            stack.value,
            stack.weight,
            stack.left_out,
            stack.kept,
            stack.units,
        )
    else:
        refuse(local, "calibration by X_calibration")
        there: EvaluationPoints = places_of(local, X_calibration, warn=False)
        value = read_outputs(y_calibration, (len(there.query), *local.value_.shape[1:]), local.output_labels_)
        predicted = stack.predict(stack.read(X_calibration, warn=False))
        calibration = conformal.Calibration(there, value, np.ones(len(value)), predicted)
    setting = conformal.ConformalProblem(
        smoother, places, conformal.as_fraction(level), calibration, bandwidth="found", center=stack.predict(queries),
        scale=absolute_residuals(smoother, stack.of_all_rows(stack.residual)),
    )  # fmt: skip
    found = conformal.prediction_interval(setting, "adaptive" if method == "auto" else method)
    return replace(found, index=queries.index)


def summarise_stack(stack: FittedStack, title: str, columns: int) -> Summary:
    """Compute the `Summary` of a fitted stack."""
    hat, weight = HatSummary.of(stack), stack.weight
    members = []
    for (name, member), mixing, left_out in zip(
        stack.members.items(), stack.mixing.tolist(), stack.left_out_of_members, strict=True
    ):
        score = explained(stack.value, stack.value - left_out, weight)
        varies = ~np.isnan(score)
        mean = float(score[varies].mean()) if varies.any() else np.nan
        members.append(MemberSummary(name, description_of(member), mixing, mean))
    own, left_out = stack.value - hat.fitted, stack.value - stack.left_out
    values = errors_of_fit(stack.value, own, left_out, weight, hat.trace, hat.trace_squared)
    values |= {"members": tuple(members), "left_out": stack.units.name}
    return summary_of_regression(title, columns, values)


def description_of(member: object) -> str:
    """Return a few words about a member: its class, or kernel and ridge."""
    if isinstance(member, KernelRidge):
        return f"{member.kernel}, ridge {member.ridge:.3g}"
    return type(member).__name__


def expected_error(stack: FittedStack, random_state: Any) -> float:
    """Estimate the mean squared error of a stack on new rows, summed over outputs.

    Parameters
    ----------
    stack : FittedStack
        The fit.
    random_state : int, Generator or None
        As of `FittedStack.of`.

    Returns
    -------
    float
        The held-out error of fits without each fold, times what all rows gain (`kernpool.estimators.expected_error`).

    Raises
    ------
    ValueError
        If there are fewer than four units of rows.
    """
    local = stack.local
    pooled = smoother_of(local).rows_of(values_of(local))
    rows, which = distinct_rows(pooled)
    rows = replace(rows, X=local.key_[np.unique(which, return_index=True)[1][-len(rows.X) :]], geometry=CARTESIAN)

    def refit(fold: TrainingRows, there: TrainingRows) -> tuple[Array, float]:
        without = FittedStack.of(_refitted(local, fold), random_state)
        return without.predict(without.queries(there.X, there.code)), without.error

    return nested_error(rows, refit, lambda: stack.error)


def _refitted(local: KernelSmoother, rows: TrainingRows) -> KernelSmoother:
    """Return an estimator like a fitted one, fitted to some of its rows."""
    again: KernelSmoother = clone(local)
    again.encoding_ = local.encoding_
    again._fit_pairs(rows.X, rows.code, rows.value, rows.weight, rows.exclusion)
    return again
