"""Standard errors of linear estimates (local noise or sandwich), and warnings where they are unreliable.

The default is ``sigma(q) ||l(q)||``: the local noise times the norm of the linear weights. A sandwich estimate,
sqrt(sum_j l_j^2 r_j^2), uses the few rows that also make the fit: its errors are correlated with those of the fit,
and small windows look too quiet. At 95 percent and the same average width it covers 90.9, 92.1, 93.1 and 93.9
percent for 50, 200, 500 and 1000 rows, where the default covers 95.7, 95.2, 94.4 and 95.0. It does not need a
smooth noise variance, though: use it where the noise variance jumps.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from kernpool._arrays import Array, Flags
from kernpool.core import EmptyWindowWarning, Exclusion, Problem, RankDeficiencyWarning, Units, warn_of_curvature
from kernpool.execution import check_choice, warn_of_queries
from kernpool.inference.variance.dependent_rows import (
    FEW_CLUSTERS,
    LEFT_OUT,
    autocorrelation,
    errors_of_units,
    inflation,
    refuse_for_dependent,
    residuals_of_whole_fit,
    sandwich,
)
from kernpool.inference.variance.residuals import local_noise, squared_residuals
from kernpool.pooling import ReportRank
from kernpool.smoother import Estimate, EvaluationPoints, Smoother, squared_norm

# Squared residuals of each kind of variance; "local" averages them first.
VARIANCES = {"local": "hc3", "sandwich": "hc3", "nn": "nn", "hc0": "hc0", "hc1": "hc1", "hc2": "hc2", "hc3": "hc3"}
NO_SLOPE = 1e-12  # linear weights per bandwidth, in units of those of a mean of all rows


@dataclass(frozen=True, eq=False)
class Errors:
    """Standard errors and degrees of freedom of estimates at m points."""

    standard_error: Array  # shape (m, c); NaN where unidentified, zero where residuals are only rounding
    df: Array  # shape (m,)
    noise: Array | None  # shape (m, c): variance of an observation; None where whole units have errors
    residual: Array  # shape (n, c): r of the error sum_j l_j r_j xi_j; (n, 1) of ones if noise is local
    spread: Array  # shape (m, c) or (m, 1): standard deviation of that sum
    units: Units  # rows of a unit share one xi


def check_variance(variance: str, exclusion: Exclusion | None) -> None:
    """Raise ValueError if a variance estimator is unknown, or is for independent rows although rows are not."""
    check_choice("variance", variance, VARIANCES)
    if exclusion is not None:
        refuse_for_dependent(variance, exclusion)


def errors_of(
    smoother: Smoother,
    places: EvaluationPoints,
    found: Sequence[Estimate],
    variance: str = "local",
) -> list[Errors]:
    """Compute the standard errors of several estimates at the same points, from one call of `estimates`."""
    # local noise times the norm of the linear weights, or a sandwich of residuals; sums over the rows of whole units
    order = smoother.exclusion
    if smoother.units.code is not None:
        return _errors_by_unit(smoother, found, variance)
    training = smoother.training_fit
    squared = squared_residuals(smoother, training, VARIANCES[variance])
    sums, known = found[0].sums, smoother.of_residuals()
    noise, df = local_noise(known, places, squared, sums if known is smoother else None)
    quiet = noise <= smoother.rounding**2
    noise, correlations = np.where(quiet, 0.0, noise), np.empty(0)
    if order is not None:
        left = np.where(training.weight[:, None] > 0, training.value - training.deleted, 0.0)
        correlations = autocorrelation(left, training.weight, order)
        df = df / (1.0 + 2.0 * float(np.mean(np.sum(correlations[1:] ** 2, axis=0))))
    errors: list[Errors] = []
    for one in found:
        size = np.empty(0)
        if variance == "local" or one.column is not None:
            size = np.sqrt(squared_norm(one.terms, sums, None, smoother.norms_by_rows))
        if variance == "local":
            residual, spread = np.ones((len(squared), 1)), size[:, None]
            error = np.sqrt(noise) * spread
            error = error if order is None else error * np.sqrt(inflation(order, one, correlations))
        else:
            residual = np.sqrt(squared)
            spread = np.sqrt(np.stack([squared_norm(one.terms, sums, psi) for psi in squared.T], axis=1))
            error = np.where(quiet, 0.0, spread if order is None else sandwich(order, one, left))
        error = _where_known(one, error, size, smoother)
        errors.append(Errors(error, df, noise, residual, spread, smoother.units))
    return errors


def _errors_by_unit(smoother: Smoother, found: Sequence[Estimate], variance: str) -> list[Errors]:
    """Compute standard errors of several estimates that are robust to noise that the rows of a unit share."""
    units, residual = smoother.units, smoother.residual_of_units
    units.refuse_few(smoother.weight)
    code = units.code
    assert code is not None
    if variance not in LEFT_OUT:
        residual = residuals_of_whole_fit(code, smoother.training_fit, corrected=variance == "hc1")
    quiet = np.max(np.abs(residual), axis=0) <= smoother.rounding
    errors: list[Errors] = []
    for one in found:
        spread, df, size = errors_of_units(smoother, one, code, residual)
        error = np.where(quiet & np.isfinite(spread), 0.0, spread)
        error = _where_known(one, error, size, smoother)
        errors.append(Errors(error, df, None, residual, spread, units))
    return errors


def _where_known(found: Estimate, error: Array, size: Array, smoother: Smoother) -> Array:
    """Return standard errors, NaN in empty windows, and with a warning where rows do not identify a slope."""
    error = np.where(found.occupied[:, None], error, np.nan)
    if found.column is None:
        return error
    # a plane that degenerates to a constant has a slope near zero that would look precise
    size = size * math.sqrt(smoother.rows)
    bandwidth = found.terms[0][1].problem.similarity.widths()[..., found.column]
    flat = (size * bandwidth < NO_SLOPE) | ((found.rank == 0) & np.isfinite(size))
    warn_of_queries(
        flat,
        f"the rows determine no slope by column {found.column}, and its standard error becomes NaN; use a larger "
        "bandwidth",
        RankDeficiencyWarning,
    )
    error[flat] = np.nan
    return error


# Bias correction in standard errors. At bandwidths found by leave-one-out, where intervals of
# one column cover 94 to 98 percent, none of 285 samples had a point beyond 1.5 (n = 50 and 200, both degrees); of two
# columns 5 of 16 had one beyond 2, at the top of a hill that is covered in 89 percent. At given bandwidths of .06 to .3
# points beyond 2 were covered in 14 to 49 percent (one column, 1967 points) and in 1 to 68 (two columns, 624 points).
MUCH_BIAS = 2.0
FEW_DF = 1.0 - 1e-9
# Norms of linear weights are quotients of sums of weights, known as logarithms: a logarithm of -1e13 is rounded to
# 2e-3, and so is the norm. With a Gaussian that is a point three million bandwidths away.
ROUNDED = 8.0 * np.finfo(np.float64).eps
LOST = 0.01
TOO_FAR = "are so far from all rows that rounding of their weights leaves no digit"


class InferenceWarning(RuntimeWarning):
    """Warning that a standard error or interval is unreliable: no noise, too few rows, or large bias."""


class ExtrapolationWarning(UserWarning):
    """Warning that some queries are so far from the training rows that predictions are extrapolation.

    Issued once per call by every method of the estimators that predicts at new rows. The rule uses X alone: a query
    is extrapolation if one of its numeric columns is beyond the range of the training rows

    - by more than two bandwidths, and than three times the median step from a value to the next one, so that a series
      may be continued; for local planes, which extrapolate linearly, by more than half of the range even where the
      bandwidth is larger or infinite; where windows reach to the nearest rows, two of their median width; and
    - by more than the tail of the training rows predicts for new rows from the same distribution: beyond the quantile
      that one of 700 such rows exceeds, in any column, by Weissman's estimate from the outermost eighth of the rows (3
      to 12) without the last one, and never more than six times as far from the median as these reach. A single
      outlier does not change it. For local planes it reaches half of the range beyond the second largest value at most.

    For rows in chunks and in partitions only the range is known, not the tail, so that only the first part applies.
    Periodic columns and longitudes are cut open where they are farthest from all rows, wherever they begin. Latitude
    and longitude are two columns, with the bandwidth in degrees, of longitude where rows are farthest from the equator;
    so no query is far in longitude where rows reach to a pole.

    Among new rows from the distribution of the training rows less than 1 percent are extrapolation, with 60, 200 and
    1000 rows of 1, 2, 3 and 5 columns, whatever the bandwidth. On average: uniform 0.04 percent,
    normal 0.2, exponential 0.1, lognormal 0.2, Student's t with 3 degrees of freedom 0.5; the most is 0.9 for 60 rows
    of 5 such columns. With local planes and 60 rows with long tails there are more: 1 percent in one column and 3 to 6
    in five, where the slope of a few rows is extrapolated by more than half of the range.

    A query within the range of each column is not extrapolation by this rule, even in a corner or a hole of the cloud
    of rows: `Prediction.effective_sample_size` shows those. Kernels of compact support have empty windows beyond the
    rows, which `EmptyWindowWarning` reports instead, except for classifiers that return their priors. Means with a
    constant kernel, or an infinite bandwidth, are the same everywhere. Predictions for Dask queries warn when they are
    computed.

    Examples
    --------
    >>> import warnings
    >>> from kernpool import LocalLinearRegressor
    >>> model = LocalLinearRegressor(bandwidth=0.5).fit([[0.0], [0.5], [1.0], [1.5]], [0.0, 1.0, 0.0, 1.0])
    >>> with warnings.catch_warnings(record=True, action="always") as caught:
    ...     prediction = model.predict([[1.6], [2.0], [4.0]])
    >>> [one.category.__name__ for one in caught]
    ['ExtrapolationWarning']
    """


def warn_of_windows(found: Estimate, columns: int, report_rank: ReportRank | None) -> None:
    """Warn of empty windows, and of windows whose rows do not identify a plane or quadratic, unless there is none.

    Rank-deficient planes are reported to the callback.
    """
    if report_rank is not None:
        if np.any(found.occupied & (found.rank < columns)):
            report_rank(found.rank, found.occupied, columns)
        if found.curvature_rank is not None:
            full = found.terms[0][1].tilt.shape[1]
            warn_of_curvature(found.curvature_rank, found.occupied & (found.rank == columns), full)
    warn_of_queries(
        ~found.occupied,
        "have no key with positive weight, so that there is no standard error and it becomes NaN, whatever empty= "
        "says; use a larger bandwidth, or a kernel of infinite support",
        EmptyWindowWarning,
        before="",
    )


def within_range(problem: Problem) -> Flags:
    """Return which queries are within the range of the keys in every column."""
    query, key = problem.query, problem.key
    return np.asarray(np.all((query >= key.min(axis=0)) & (query <= key.max(axis=0)), axis=1))


def checked_errors(found: Estimate, errors: Errors, *, robust: bool = False) -> tuple[Array, Array]:
    """Return standard errors and degrees of freedom, NaN where unreliable; warn of unreliable and of zero errors.

    For the robust method also of a bias correction that is large compared with the standard error.
    """
    error, df = errors.standard_error.copy(), errors.df.copy()
    rounded = ROUNDED * np.abs(found.log_mass)
    lost = np.isfinite(rounded) & (rounded > LOST)
    slope = "" if found.column is None else f"for the slope by column {found.column} "
    if lost.any():
        error[lost], df[lost] = np.nan, np.nan
        warn_of_queries(
            lost & within_range(found.terms[0][1].problem),
            f"{slope}{TOO_FAR} of a standard error, and it becomes NaN; the data say nothing about the curve there: "
            "omit these queries, or use a larger bandwidth",
            ExtrapolationWarning,
            before="",
        )
    few = df < FEW_DF - rounded
    error[few], df[few] = np.nan, np.nan
    reason = (
        FEW_CLUSTERS
        if errors.units.code is not None
        else "the noise would be estimated from less than one row, and standard errors become NaN; "
        "get_prediction(X).effective_sample_size shows where rows are, and weights are frequencies of rows"
    )
    warn_of_queries(few, slope + reason, InferenceWarning)
    warn_of_queries(
        np.any(error == 0.0, axis=1),
        f"{slope}all residuals are zero, and so is the standard error: these rows do not show the size of the noise, "
        "which is no certainty",
        InferenceWarning,
    )
    if robust:
        with np.errstate(invalid="ignore"):
            much = np.abs(found.center - found.plain) > MUCH_BIAS * error
        warn_of_queries(
            np.any(much & (error > 0.0), axis=1),  # zero noise has a warning of its own
            f"{slope}the correction for bias is larger than two standard errors: the bias that remains may be as "
            "large, and coverage is below the nominal level; use a smaller bandwidth, such as half of bandwidth_",
            InferenceWarning,
        )
    return error, np.maximum(df, 1.0)
