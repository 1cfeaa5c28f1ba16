"""What is said of places where a standard error or an interval is not what it seems to be."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from kernpool.core.empty import EmptyWindowWarning
from kernpool.core.local_fit import warn_of_curvature
from kernpool.core.problem import Problem
from kernpool.execution.warnings import warn_caller
from kernpool.inference.corrected import Estimate
from kernpool.inference.standard_errors import Errors
from kernpool.pooling.settle import ReportRank

Array = NDArray[np.float64]

# Standard errors between the corrected fit and the fit itself. At bandwidths found by leave-one-out, where intervals of
# one column cover 94 to 98 percent, none of 285 samples had a place beyond 1.5 (n = 50 and 200, both degrees); of two
# columns 5 of 16 had one beyond 2, at the top of a hill that is covered in 89 percent. At given bandwidths of .06 to .3
# places beyond 2 were covered in 14 to 49 percent (one column, 1967 places) and in 1 to 68 (two columns, 624 places).
MUCH_BIAS = 2.0
FEW_DF = 1.0 - 1e-9
# Norms of shares are quotients of sums of weights, which are known as logarithms: a logarithm of -1e13 is rounded to
# 2e-3, and so is the norm. With a Gaussian that is a place three million bandwidths away.
ROUNDED = 8.0 * np.finfo(np.float64).eps
LOST = 0.01
TOO_FAR = "are so far from all rows that rounding of their weights leaves no digit"


class InferenceWarning(RuntimeWarning):
    """A standard error or an interval does not say what it seems to: no noise, too few rows, or much bias."""


class ExtrapolationWarning(UserWarning):
    """Some queries are so far from the training rows that the answer is extrapolation.

    Given once per call by every method of the estimators that answers at new rows. The rule looks at X alone: a query
    is extrapolation if one of its numeric columns is beyond the range of the training rows

    - by more than two bandwidths, and than three times the median step from a value to the next one, so that a series
      may be continued; for local planes, which go on beyond the rows, by more than half of the range even where the
      bandwidth is larger or infinite; and
    - by more than the tail of the training rows lets expect of new rows like these: beyond the quantile that one of 700
      such rows exceeds, in any column, by Weissman's estimate from the outermost eighth of the rows (3 to 12) without
      the last one, and never more than six times as far from the median as these reach. A single outlier does not
      change it. For local planes it reaches half of the range beyond the second largest value at most.

    Of rows in chunks and on a cluster the range is known and no tail, so that the first part is the rule. Columns
    compared by rank are meant in ranks, learned similarities in the space that rows are mapped to.

    Of new rows that are drawn as the training rows were less than 1 percent are extrapolation, with 60, 200 and 1000
    rows of 1, 2, 3 and 5 columns, whatever the bandwidth. On average: uniform 0.04 percent,
    normal 0.2, exponential 0.1, lognormal 0.2, Student's t with 3 degrees of freedom 0.5; the most is 0.9 for 60 rows
    of 5 such columns. With local planes 60 rows of long tails have more of them: 1 percent in one column and 3 to 6 in
    five, where the slope of a few rows is followed by more than half of the range.

    A query within the range of each column is not extrapolation by this rule, even in a corner or a hole of the cloud
    of rows: `effective_sample_size` shows those. Kernels of compact support have empty windows beyond the rows, which
    `EmptyWindowWarning` reports instead, but for classifiers that answer their priors. Means with a constant kernel, or
    an infinite bandwidth, are the same everywhere. Predictions for Dask queries warn when they are computed.

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


def warn_of_empty(found: Estimate) -> None:
    """Warn of places without training rows."""
    (empty,) = np.nonzero(~np.isfinite(found.log_mass))
    if empty.size:
        warn_caller(
            f"{empty.size} of {len(found.center)} queries have no key with positive weight (the first is query "
            f"{empty[0]}), so that there is no standard error and it becomes NaN, whatever empty= says; use a larger "
            "bandwidth, or a kernel of infinite support",
            EmptyWindowWarning,
        )


def warn_of_ranks(found: Estimate, columns: int, report_rank: ReportRank) -> None:
    """Report places whose rows determine no plane; warn of those that determine a plane and no quadratic.

    Parameters
    ----------
    found : Estimate
        What is made of planes or quadratics.
    columns : int
        Numeric ones.
    report_rank : callable
        Who hears of planes.
    """
    occupied = np.isfinite(found.log_mass)
    report_rank(found.rank, occupied, columns)
    if found.curvature_rank is not None:
        full = found.terms[0][1].tilt.shape[1]
        warn_of_curvature(found.curvature_rank, occupied & (found.rank == columns), full)


def within_range(problem: Problem) -> NDArray[np.bool_]:
    """Return which queries are within the range of the keys: estimators have warned of the others."""
    query, key = problem.query, problem.key
    return np.asarray(np.all((query >= key.min(axis=0)) & (query <= key.max(axis=0)), axis=1))


def checked_errors(found: Estimate, errors: Errors) -> tuple[Array, Array]:
    """Return standard errors and degrees of freedom, NaN where they rest on too little; warn of these and zeros.

    Parameters
    ----------
    found : Estimate
        The estimate.
    errors : Errors
        Its errors, of clusters of which two have to count, or of residuals, of one row at least.

    Returns
    -------
    ndarray of shape (m, c), ndarray of shape (m,)
        The same, with NaN.
    """
    error, df = errors.standard_error.copy(), errors.df.copy()
    rounded = ROUNDED * np.abs(found.log_mass)
    lost = np.isfinite(rounded) & (rounded > LOST)
    if lost.any():
        error[lost], df[lost] = np.nan, np.nan
        (between,) = np.nonzero(lost & within_range(found.terms[0][1].problem))
        if between.size:
            warn_caller(
                f"{_which('', between, found)} {TOO_FAR} of a standard error, and it becomes NaN; nothing is known of "
                "the curve there: leave these places out, or use a larger bandwidth",
                ExtrapolationWarning,
            )
    (few,) = np.nonzero(df < FEW_DF - rounded)
    if few.size:
        error[few], df[few] = np.nan, np.nan
        reason = (
            "fewer than two clusters count, so that nothing tells how much clusters differ, and standard errors become "
            "NaN; use a larger bandwidth, or finer groups"
            if errors.cluster is not None
            else "residuals of less than one row tell how large the noise is, and standard errors become NaN; "
            "effective_sample_size shows where rows are, and weights are frequencies of rows"
        )
        warn_caller(f"{_which('around ', few, found)} {reason}", InferenceWarning)
    (zero,) = np.nonzero(np.any(error == 0.0, axis=1))
    if zero.size:
        warn_caller(
            f"{_which('around ', zero, found)} all residuals are zero, and so is the standard error: these rows have "
            "no noise to judge by, which is no certainty",
            InferenceWarning,
        )
    return error, np.maximum(df, 1.0)


def warn_of_bias(found: Estimate, error: Array) -> None:
    """Warn of places where the correction is large beside the standard error."""
    with np.errstate(invalid="ignore"):
        much = np.abs(found.center - found.plain) > MUCH_BIAS * error
    (far,) = np.nonzero(np.any(much & (error > 0.0), axis=1))  # of no noise there is another warning
    if far.size:
        warn_caller(
            f"{_which('around ', far, found)} the correction for bias is larger than two standard errors: the bias "
            "that is left may be of that size too, and the interval covers less than it says; use a smaller bandwidth",
            InferenceWarning,
        )


def _which(preposition: str, places: NDArray[np.intp], found: Estimate) -> str:
    slope = "" if found.column is None else f" for the slope by column {found.column}"
    return f"{preposition}{places.size} of {len(found.center)} queries (the first is query {places[0]}){slope}"
