r"""Confidence intervals: a center, a standard error, and Student's quantile for the number of residuals behind it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernpool.core.empty import EmptyWindowWarning
from kernpool.execution.warnings import warn_caller
from kernpool.inference.bands import band_width, check_band, choose_band
from kernpool.inference.clusters import Clusters
from kernpool.inference.corrected import METHODS, Estimate, estimates
from kernpool.inference.residuals import Training
from kernpool.inference.smoother import Places, Smoother
from kernpool.inference.standard_errors import Errors, check_variance, errors_of_each

Array = NDArray[np.float64]

MANY_COLUMNS = 3  # from which on the bias that is left may not be small beside the one that was taken off
FEW_DF = 1.0 - 1e-9


class InferenceWarning(RuntimeWarning):
    """A standard error or an interval does not say what it seems to: no noise, too few rows, or much bias."""


@dataclass(frozen=True, eq=False)
class Interval:
    """Intervals at m places.

    Parameters
    ----------
    center : ndarray of shape (m,) or (m, c)
        Middle of the interval. Of the robust method it is the corrected fit, and not what `predict` returns.
    lower, upper : ndarray, as center
        Ends; NaN where the window is empty.
    standard_error : ndarray, as center
        Of the center.
    df : ndarray of shape (m,) or (m, d)
        Degrees of freedom of the standard error, for Student's quantile; with clusters those of slopes may differ.
    level : float
        Probability that an interval covers the truth, or a band all of it.
    method : str
        How the center was found.
    critical : float, ndarray or None
        Of a band, what its half width would be in standard errors if these were known: one number, or one for each
        column of the center where they differ; None for single intervals.
    band : {"tube", "multiplier"} or None
        Of a band, how that was found; None for single intervals.

    Examples
    --------
    >>> from kernpool import NadarayaWatsonRegressor
    >>> from kernpool.datasets import make_sine_power
    >>> sample = make_sine_power(random_state=0)
    >>> model = NadarayaWatsonRegressor().fit(sample.x_train[:, None], sample.y_train)
    >>> found = model.confidence_interval([[1.0], [2.5]])
    >>> bool((found.lower < found.center).all() and (found.center < found.upper).all())
    True
    """

    center: Array
    lower: Array
    upper: Array
    standard_error: Array
    df: Array
    level: float
    method: str
    critical: float | Array | None = None
    band: str | None = None

    @property
    def width(self) -> Array:
        """Upper end less lower end."""
        return np.asarray(self.upper - self.lower)


def interval(
    smoother: Smoother,
    training: Training,
    places: Places,
    *,
    column: int | None = None,
    **options: Any,
) -> Interval:
    """Find intervals for the curve, or for one of its slopes: the first of `intervals`."""
    return intervals(smoother, training, places, [column], **options)[0]


def intervals(
    smoother: Smoother,
    training: Training,
    places: Places,
    columns: Sequence[int | None] = (None,),
    *,
    level: float = 0.95,
    method: str = "robust",
    variance: str = "local",
    clusters: Clusters | None = None,
    simultaneous: bool | str = False,
    n_resamples: int = 999,
    random_state: Any = 0,
) -> list[Interval]:
    """Find intervals for the curve, or for its slopes, at some places.

    Parameters
    ----------
    smoother : Smoother
        The fit.
    training : Training
        Its rows, of `fit_training`.
    places : Places
        Where.
    columns : sequence of int or None, default=(None,)
        Numeric columns whose slopes are meant; None is the value.
    level : float, default=0.95
        Between 0 and 1.
    method : {"robust", "quadratic", "naive", "undersmoothed"}, default="robust"
        As of `estimates`.
    variance : str, default="local"
        As of `errors_of_each`.
    clusters : Clusters, optional
        Of `fit_clusters`, where rows are not independent.
    simultaneous : bool or {"tube", "multiplier"}, default=False
        Whether all places are covered at once; as of `choose_band`.
    n_resamples, random_state
        Of the multiplier bootstrap.

    Returns
    -------
    list of Interval
        One per column, with arrays of shape (m, c).

    Raises
    ------
    ValueError
        If the level, method, variance or band is none, or there are too few rows.

    Warns
    -----
    EmptyWindowWarning
        If there is no training row in the window of a place.
    InferenceWarning
        If a standard error is zero or rests on less than one row; or, from three numeric columns on, the correction is
        larger than two standard errors somewhere.
    """
    check_level(level)
    check_method(method)
    check_variance(variance, clustered=clusters is not None)
    check_band(simultaneous)
    kind = choose_band(smoother, places, simultaneous, clusters is not None) if simultaneous else None
    found = estimates(smoother, places, method, columns)
    of_each = errors_of_each(smoother, training, places, found, variance, clusters)
    results = []
    for column, one, errors in zip(columns, found, of_each, strict=True):
        critical = None
        if kind is not None:
            critical = band_width(
                smoother, places, one, errors, kind=kind, level=level, method=method, column=column,
                n_resamples=n_resamples, random_state=random_state,
            )  # fmt: skip
        results.append(_around(smoother, one, errors, level, method, critical, kind))
    return results


def _around(
    smoother: Smoother,
    found: Estimate,
    errors: Errors,
    level: float,
    method: str,
    critical: Array | None,
    kind: str | None,
) -> Interval:
    """Return intervals around estimates, at the tails of normal critical values or, if there are none, of the level."""
    from scipy.special import ndtr, stdtrit

    warn_of_empty(found)
    error, df = checked_errors(errors.standard_error, errors.df, clustered=errors.cluster is not None)
    tail = 0.5 * (1.0 - level) if critical is None else ndtr(-critical)
    with np.errstate(invalid="ignore"):
        half = -stdtrit(df[:, None], tail) * error
    if method == "robust" and smoother.columns >= MANY_COLUMNS:
        _warn_of_bias(found, error)
    width = critical if critical is None or len(critical) > 1 else float(critical[0])
    return Interval(
        found.center, found.center - half, found.center + half, error, df, float(level), method, width, kind
    )


def check_level(level: Any) -> None:
    """Refuse a level that is no probability between 0 and 1.

    Examples
    --------
    >>> check_level(95)
    Traceback (most recent call last):
    ValueError: level must lie between 0 and 1, got 95; 95 percent is level=0.95
    """
    number = isinstance(level, int | float | np.number) and not isinstance(level, bool)
    if not number or not 0.0 < level < 1.0:
        percent = number and 1.0 < level < 100.0
        hint = f"; {level:g} percent is level={level / 100:g}" if percent else "; the usual one is level=0.95"
        raise ValueError(f"level must lie between 0 and 1, got {level!r}{hint}")


def check_method(method: Any) -> None:
    """Refuse an unknown method."""
    if method not in METHODS:
        raise ValueError(f"method must be one of {', '.join(map(repr, METHODS))}, got {method!r}")


def warn_of_empty(found: Estimate) -> None:
    """Warn of places without training rows."""
    (empty,) = np.nonzero(~np.all([np.isfinite(share.log_mass) for _, share in found.terms], axis=0))
    if empty.size:
        warn_caller(
            f"{empty.size} of {len(found.center)} queries have no key with positive weight (the first is query "
            f"{empty[0]}), so that there is no standard error and it becomes NaN, whatever empty= says; use a larger "
            "bandwidth, or a kernel of infinite support",
            EmptyWindowWarning,
        )


def checked_errors(error: Array, df: Array, *, clustered: bool = False) -> tuple[Array, Array]:
    """Return standard errors and degrees of freedom, NaN where they rest on too little; warn of these and zeros.

    Parameters
    ----------
    error : ndarray of shape (m, c)
        Standard errors.
    df : ndarray of shape (m,)
        Degrees of freedom.
    clustered : bool, default=False
        Whether they are of clusters, of which two have to count; else of residuals, of one row at least.

    Returns
    -------
    ndarray, ndarray
        The same, with NaN.
    """
    (few,) = np.nonzero(df < FEW_DF)
    if few.size:
        error, df = error.copy(), df.copy()
        error[few], df[few] = np.nan, np.nan
        reason = (
            "fewer than two clusters count, so that nothing tells how much clusters differ, and standard errors become "
            "NaN; use a larger bandwidth, or finer groups"
            if clustered
            else "residuals of less than one row tell how large the noise is, and standard errors become NaN; "
            "effective_sample_size shows where rows are, and weights are frequencies of rows"
        )
        warn_caller(
            f"around {few.size} of {len(df)} queries (the first is query {few[0]}) {reason}",
            InferenceWarning,
        )
    (zero,) = np.nonzero(np.any(error == 0.0, axis=1))
    if zero.size:
        warn_caller(
            f"around {zero.size} of {len(df)} queries (the first is query {zero[0]}) all residuals are zero, and so "
            "is the standard error: these rows have no noise to judge by, which is no certainty",
            InferenceWarning,
        )
    return error, np.maximum(df, 1.0)


def _warn_of_bias(found: Estimate, error: Array) -> None:
    with np.errstate(invalid="ignore"):
        (far,) = np.nonzero(np.any(np.abs(found.center - found.plain) > 2.0 * error, axis=1))
    if far.size:
        warn_caller(
            f"around {far.size} of {len(error)} queries (the first is query {far[0]}) the corrected fit is more than "
            "two standard errors from the fit itself: in three or more columns the bias that is left may be of that "
            "size too, and intervals cover less than they say; use a smaller bandwidth, or fewer columns",
            InferenceWarning,
        )
