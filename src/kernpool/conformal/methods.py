"""Table of prediction interval methods, and the steps that all of them share.

`METHODS` maps each name to its function, its coverage statement and the calibration rows that it accepts.
`prediction_interval` runs a method, checks that the rows fit it, widens intervals by rounding so that they contain
their own ends, and warns of empty windows, of infinite intervals, and of intervals without a width.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernpool.conformal import covariate_shift, full_conformal, guarantees, jackknife_plus, localized, split_conformal
from kernpool.conformal.calibration import Bounds, ConformalProblem, MethodRecord, PredictionInterval
from kernpool.conformal.order_statistics import warn_of_few
from kernpool.execution.error_messages import check_choice
from kernpool.execution.warnings import warn_caller
from kernpool.inference import InferenceWarning, nothing_left

Array = NDArray[np.float64]

METHODS: Mapping[str, MethodRecord] = {
    "adaptive": MethodRecord(
        split_conformal.adaptive, guarantees.of_adaptive, clusters=True, shift=True, unbounded=split_conformal.NO_SCALE
    ),
    "full": MethodRecord(full_conformal.full, guarantees.at_least, rows="own", shift=True),
    "jackknife+": MethodRecord(jackknife_plus.jackknife_plus, guarantees.of_jackknife_plus, rows="own", clusters=True),
    "minmax": MethodRecord(jackknife_plus.minmax, guarantees.at_least, rows="own"),
    "enclosure": MethodRecord(full_conformal.enclosure, guarantees.at_least, rows="own", shift=True),
    "cv+": MethodRecord(
        jackknife_plus.cv_plus, guarantees.of_cv_plus, rows="own", counted=jackknife_plus.rows_in_folds
    ),
    "split": MethodRecord(split_conformal.constant_width, guarantees.at_least, rows="other", clusters=True, shift=True),
    "cqr": MethodRecord(
        split_conformal.conformal_quantiles, split_conformal.of_conformal_quantiles, clusters=True, shift=True
    ),
    "localized": MethodRecord(localized.localized, localized.of_localized, unbounded=localized.TOO_FEW),
    "rlcp": MethodRecord(localized.randomized, localized.of_randomized, unbounded=localized.TOO_FEW),
    "jackknife": MethodRecord(
        split_conformal.constant_width, guarantees.of_jackknife, rows="own", clusters=True, shift=True
    ),
}

ROUNDING = 64 * np.finfo(float).eps  # of the largest output: predictions are accurate to a few of these


def prediction_interval(setting: ConformalProblem, method: str) -> PredictionInterval:
    """Compute prediction intervals, with their coverage statement, by the conformal method of a given name.

    Parameters
    ----------
    setting : ConformalProblem
        Fit, evaluation points, level and calibration rows.
    method : str
        A name of `METHODS`.

    Returns
    -------
    PredictionInterval
        With arrays of shape (m, c).

    Raises
    ------
    ValueError
        If the method is unknown, or not for these rows.

    Warns
    -----
    InferenceWarning
        If there are too few rows for the level, intervals that the rows do not bound, or intervals without a width.
    """
    record = check_method(method, setting.calibration.own, bool(setting.calibration.clusters))
    calibration = setting.calibration
    clustered = calibration.group is not None
    if calibration.shift is not None and (clustered or not record.shift):
        what = "rows in clusters" if clustered else f"method={method!r}"
        raise ValueError(
            f"weights are for {_listed('shift')}, and rows without clusters, got {what}; use one of these methods, "
            "without groups, or omit weights"
        )
    rows = calibration.rows if record.counted is None else record.counted(setting)
    count = float(calibration.clusters) if clustered else rows
    if calibration.shift is None:
        warn_of_few(setting.level, count, "clusters" if clustered else "rows")
    bounds = _with_ends(record.find(setting), calibration.value)
    known = np.asarray(~np.isnan(bounds.center).any(axis=1))
    _warn_of_unbounded(
        setting, bounds, known, count, record.unbounded if calibration.shift is None else covariate_shift.BEYOND
    )
    _warn_of_no_width(setting, bounds)
    return PredictionInterval(
        bounds.center, bounds.lower, bounds.upper, float(setting.level), method, record.sentence(setting),
        count, "clusters" if clustered else "rows",
    )  # fmt: skip


def _with_ends(bounds: Bounds, value: Array) -> Bounds:
    """Widen intervals by the size of rounding errors, so that outputs equal to an end point are covered.

    Where outputs take few values, as ratings do, an end is often one of them up to rounding: 0.7 = 0.1 + (0.7 - 0.1)
    but for the last digit. Split conformal at 90 percent covered 83 percent of such values without this, and 100 with
    it.
    """
    slack = ROUNDING * np.maximum(value.max(axis=0, initial=0.0), -value.min(axis=0, initial=0.0))
    lower, upper = bounds.lower, bounds.upper
    lower -= slack
    upper += slack
    return bounds


def check_method(method: Any, own: bool, clustered: bool = False) -> MethodRecord:
    """Return the record of a conformal method; raise ValueError if it is unknown or not for such rows.

    The rows are training or other rows (`own`), and clustered or not.

    Examples
    --------
    >>> check_method("adaptive", own=False).clusters
    True
    """
    check_choice("method", method, METHODS)
    record = METHODS[method]
    if record.rows == "other" and own:
        raise ValueError(
            f"method={method!r} needs calibration rows that the model was not fitted to: give X_calibration and "
            "y_calibration, or use method='adaptive' or 'full', which take the training rows"
        )
    if record.rows == "own" and not own:
        raise ValueError(
            f"method={method!r} is calibrated by leave-one-out on the training rows and has no use for X_calibration; "
            "omit it, or use method='adaptive' or 'split'"
        )
    if clustered and not record.clusters:
        raise ValueError(
            f"groups are for {_listed('clusters')}, got method={method!r}; use one of these, or, only if rows are "
            "independent of each other, fit and call without groups"
        )
    return record


def _listed(field: str) -> str:
    names = [repr(name) for name, record in METHODS.items() if getattr(record, field)]
    return f"method={', '.join(names[:-1])} and {names[-1]}" if len(names) > 1 else f"method={', '.join(names)}"


def _warn_of_unbounded(
    setting: ConformalProblem, bounds: Bounds, known: NDArray[np.bool_], count: float, reason: str
) -> None:
    """Warn of infinite intervals, unless rows are too few or none is in the kernel's support."""
    if setting.calibration.shift is None and float(setting.level) * (count + 1) > count:
        return
    (places,) = np.nonzero(known & np.any(np.isinf(bounds.lower) | np.isinf(bounds.upper), axis=1))
    if places.size:
        warn_caller(
            f"{places.size} of {len(known)} prediction intervals (the first is of query {places[0]}) are infinite: "
            f"{reason}",
            InferenceWarning,
        )


def _warn_of_no_width(setting: ConformalProblem, bounds: Bounds) -> None:
    """Warn of prediction intervals of zero width: their ends differ by no more than rounding errors."""
    smoother = setting.smoother
    rounding = (
        nothing_left(smoother.value[smoother.weight > 0]) + 4.0 * ROUNDING * np.abs(setting.calibration.value).max()
    )
    with np.errstate(invalid="ignore"):
        (points,) = np.nonzero(np.any(bounds.upper - bounds.lower <= rounding, axis=1))
    if points.size:
        warn_caller(
            f"{points.size} of {len(bounds.center)} prediction intervals (the first is of query {points[0]}) have no "
            "width: the residuals that calibrate them are zero but for rounding, which is no certainty; if rows are "
            "copies of others, drop duplicates or give groups=",
            InferenceWarning,
        )
