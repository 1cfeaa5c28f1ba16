"""Confidence intervals for a curve or its slopes: bias-corrected center, standard error, Student's t quantile.

A simultaneous band has the same center and standard errors, with a larger critical value.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from kernpool._arrays import Array
from kernpool.core.local_fit import warn_of_rank
from kernpool.execution import ROWS
from kernpool.execution.interval import Interval
from kernpool.inference.confidence.simultaneous_bands import band_critical_values, choose_band
from kernpool.inference.variance.standard_errors import checked_errors, errors_of, warn_of_windows
from kernpool.pooling import ReportRank
from kernpool.smoother import EvaluationPoints, Smoother, estimates
from kernpool.smoother.quadratic_forms import effective_rows


def interval(
    smoother: Smoother,
    places: EvaluationPoints,
    columns: Sequence[int | None] | None = None,
    *,
    level: float = 0.95,
    method: str = "robust",
    variance: str = "local",
    simultaneous: bool | str = False,
    n_resamples: int = 999,
    random_state: Any = 0,
    report_rank: ReportRank = warn_of_rank,
) -> Interval:
    """Compute confidence intervals at evaluation points for the curve, or for its slopes in several columns.

    Parameters
    ----------
    smoother : Smoother
        The fit; its exclusion says which rows are not independent.
    places : EvaluationPoints
        Evaluation points.
    columns : sequence of int, optional
        Numeric columns of the slopes; by default the curve.
    level : float, default=0.95
        Confidence level, between 0 and 1.
    method : {"robust", "quadratic", "naive", "undersmoothed"}, default="robust"
        As of `estimates`.
    variance : str, default="local"
        As of `errors_of`.
    simultaneous : bool or {"tube", "multiplier"}, default=False
        Whether to cover all points simultaneously; as of `choose_band`.
    n_resamples, random_state
        Number of draws and seed of the multiplier bootstrap.
    report_rank : callable, default=warn_of_rank
        Callback for rank-deficient local fits at the bandwidth of the fit.

    Returns
    -------
    Interval
        With arrays of shape (m, c), or (m, d, c) for d slopes.

    Raises
    ------
    ValueError
        If there are too few rows, or `simultaneous` is invalid.

    Warns
    -----
    EmptyWindowWarning
        If there is no training row in the window of a point.
    RankDeficiencyWarning
        If the rows around a point do not identify the local plane, or quadratic, of the center.
    InferenceWarning
        If a standard error is zero, rests on less than one row, or is lost to rounding far from all rows; or the
        bias correction of the robust method exceeds two standard errors somewhere.
    """
    from scipy.special import ndtr, stdtrit

    kind = None if simultaneous is False else choose_band(smoother, places, simultaneous)
    found = estimates(smoother, places, method, (None,) if columns is None else columns)
    of_each = errors_of(smoother, places, found, variance)
    has_planes = smoother.recipe.degree or method != "naive"
    warn_of_windows(found[0], smoother.columns, report_rank if has_planes else None)
    results, bands = [], []
    for one, errors in zip(found, of_each, strict=True):
        error, df = checked_errors(one, errors, robust=method == "robust")
        tail: float | Array = 0.5 * (1.0 - level)
        if kind is not None:
            none = np.isnan(error).all(axis=1, keepdims=True)
            with_interval = replace(errors, spread=np.where(none, np.nan, errors.spread))
            critical = band_critical_values(
                smoother, places, one, with_interval, kind=kind, level=level, method=method,
                n_resamples=n_resamples, random_state=random_state,
            )  # fmt: skip
            bands.append(critical)
            tail = ndtr(-critical)  # Student's quantile of the same probability
        with np.errstate(invalid="ignore"):
            half = -stdtrit(df[:, None], tail) * error
        results.append((one.center, one.center - half, one.center + half, error, df))
    *tables, dfs = zip(*results, strict=True)
    center, lower, upper, error = (each[0] if columns is None else np.stack(each, axis=1) for each in tables)
    df = dfs[0] if all(np.array_equal(dfs[0], one, equal_nan=True) for one in dfs) else np.stack(dfs, axis=1)
    width: float | Array | None = None
    if len(bands) == 1:
        width = bands[0] if len(bands[0]) > 1 else float(bands[0][0])
    elif bands:
        width = np.stack([np.broadcast_to(one, center.shape[-1]) for one in bands])
    first = found[0].terms[0][1]
    effective = effective_rows(first.problem, first.log_mass, found[0].sums, smoother.norms_by_rows)
    corrected = columns is None and smoother.recipe.degree == 1 and method in ("robust", "quadratic")
    return Interval(
        center, lower, upper, level, method, error, df, width, kind, effective_rows=effective,
        first_predictions=found[0].plain[:ROWS] if corrected else None,
    )  # fmt: skip
