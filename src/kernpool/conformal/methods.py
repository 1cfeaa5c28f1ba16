"""Table of prediction interval methods, and the steps that all of them share.

`METHODS` maps each name to its function, the calibration rows that it accepts, and the reason of a weaker guarantee.
`prediction_interval` runs a method, checks that the rows fit it, widens intervals by rounding so that they contain
their own ends, and warns of infinite intervals and of intervals without a width. `coverage_statement` is the sentence
that comes with an interval.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from kernpool.conformal import jackknife_plus, split_conformal
from kernpool.conformal.calibration import COPIED, Bounds, ConformalProblem
from kernpool.conformal.order_statistics import warn_of_few
from kernpool.execution.error_messages import check_choice
from kernpool.execution.interval import Interval
from kernpool.execution.warnings import warn_caller
from kernpool.inference import InferenceWarning
from kernpool.smoother import nothing_left

Array = NDArray[np.float64]


@dataclass(frozen=True)
class MethodRecord:
    """Record of a prediction interval method: function, requirements, and what its coverage statement says.

    Parameters
    ----------
    find : callable
        Takes a `ConformalProblem`, returns lower and upper limits.
    rows : {"any", "own", "other"}
        Allowed calibration rows: training rows (``"own"``), other rows, or both (``"any"``).
    clusters : bool
        Whether clustered rows are allowed.
    counted : callable, optional
        Takes a `ConformalProblem`, returns the number of calibration rows in units; by default all of them.
    unbounded : str
        Reason of infinite intervals, and the remedy, where there are enough rows for the level.
    approximate : str
        Reason why there is no finite-sample guarantee if training rows calibrate; empty if there is one.
    lost : callable, optional
        For methods that guarantee less than the level, 1 - 2 alpha less a number: takes a `ConformalProblem`, returns
        the number.
    """

    find: Callable[[ConformalProblem], Bounds]
    rows: Literal["any", "own", "other"] = "any"
    clusters: bool = False
    counted: Callable[[ConformalProblem], float] | None = None
    unbounded: str = (
        "too many rows have no other row in their window, or depend so much on a new one that their scores are "
        "unbounded; use a larger bandwidth, or a kernel of infinite support"
    )
    approximate: str = ""
    lost: Callable[[ConformalProblem], float] | None = None


METHODS: Mapping[str, MethodRecord] = {
    "adaptive": MethodRecord(
        split_conformal.adaptive,
        clusters=True,
        unbounded=split_conformal.NO_SCALE,
        approximate="the scale of the scores was estimated on the same training rows; with X_calibration there is one",
    ),
    "jackknife+": MethodRecord(jackknife_plus.jackknife_plus, rows="own", clusters=True, lost=lambda _: 0.0),
    "cv+": MethodRecord(
        jackknife_plus.cv_plus, rows="own", counted=jackknife_plus.rows_in_folds, lost=jackknife_plus.lost_by_folds
    ),
    "split": MethodRecord(split_conformal.constant_width, rows="other", clusters=True),
    "cqr": MethodRecord(
        split_conformal.conformal_quantiles,
        clusters=True,
        approximate="quantiles without each training row are not exchangeable with a new one; give X_calibration",
    ),
}

ROUNDING = 64 * np.finfo(float).eps  # of the largest output: predictions are accurate to a few of these


def prediction_interval(setting: ConformalProblem, method: str) -> Interval:
    """Compute prediction intervals, with their coverage statement, by the conformal method of a given name.

    Parameters
    ----------
    setting : ConformalProblem
        Fit, evaluation points, level and calibration rows.
    method : str
        A name of `METHODS`.

    Returns
    -------
    Interval
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
    rows = calibration.rows if record.counted is None else record.counted(setting)
    count = float(calibration.clusters) if clustered else rows
    warn_of_few(setting.level, count, "clusters" if clustered else "rows")
    (lower, upper), center, value = record.find(setting), setting.prediction, calibration.value
    # Wider by rounding errors. Where outputs take few values, as ratings do, an end is often one of them but for the
    # last digit: 0.7 = 0.1 + (0.7 - 0.1). Split conformal at 90 percent covered 83 percent of such values without, and
    # 100 with it.
    slack = ROUNDING * np.maximum(value.max(axis=0, initial=0.0), -value.min(axis=0, initial=0.0))
    bounds = lower, upper = lower - slack, upper + slack
    known = np.asarray(~np.isnan(center).any(axis=1))
    _warn_of_unbounded(setting, bounds, known, count, record.unbounded)
    _warn_of_no_width(setting, bounds)
    return Interval(
        center, lower, upper, float(setting.level), method,
        guarantee=coverage_statement(setting, record), n_calibration=count, units="clusters" if clustered else "rows",
    )  # fmt: skip


def check_method(method: Any, own: bool, clustered: bool = False) -> MethodRecord:
    """Return the record of a conformal method; raise ValueError if it is unknown or not for such rows.

    The rows are training or other rows (`own`), and clustered or not.
    """
    check_choice("method", method, METHODS)
    record = METHODS[method]
    with_groups = ", ".join(repr(name) for name, one in METHODS.items() if one.clusters)
    for refused, reason in (
        (record.rows == "other" and own,
         f"method={method!r} needs calibration rows that the model was not fitted to: give X_calibration and "
         "y_calibration, or use a method that takes the training rows, such as 'cv+'"),
        (record.rows == "own" and not own,
         f"method={method!r} is calibrated by leave-one-out on the training rows and has no use for X_calibration; "
         "omit it, or use method='adaptive' or 'split'"),
        (clustered and not record.clusters,
         f"groups are for method={with_groups}, got {method!r}; use one of these, or, only if rows are independent of "
         "each other, fit and call without groups"),
    ):  # fmt: skip
        if refused:
            raise ValueError(reason)
    return record


def _warn_of_unbounded(
    setting: ConformalProblem, bounds: Bounds, known: NDArray[np.bool_], count: float, reason: str
) -> None:
    """Warn of infinite intervals, unless rows are too few or none is in the kernel's support."""
    if float(setting.level) * (count + 1) > count:
        return
    (places,) = np.nonzero(known & np.any(np.isinf(bounds[0]) | np.isinf(bounds[1]), axis=1))
    if places.size:
        warn_caller(
            f"{places.size} of {len(known)} prediction intervals (the first is of query {places[0]}) are infinite: "
            f"{reason}",
            InferenceWarning,
        )


def _warn_of_no_width(setting: ConformalProblem, bounds: Bounds) -> None:
    """Warn of prediction intervals of zero width: their ends differ by no more than rounding errors."""
    smoother, (lower, upper) = setting.smoother, bounds
    rounding = (
        nothing_left(smoother.value[smoother.weight > 0]) + 4.0 * ROUNDING * np.abs(setting.calibration.value).max()
    )
    with np.errstate(invalid="ignore"):
        (points,) = np.nonzero(np.any(upper - lower <= rounding, axis=1))
    if points.size:
        warn_caller(
            f"{points.size} of {len(lower)} prediction intervals (the first is of query {points[0]}) have no "
            "width: the residuals that calibrate them are zero but for rounding, which is no certainty; if rows are "
            "copies of others, drop duplicates or give groups=",
            InferenceWarning,
        )


def coverage_statement(setting: ConformalProblem, record: MethodRecord) -> str:
    """Return one sentence on the coverage of prediction intervals, which claims no more than the method guarantees."""
    if record.approximate and setting.calibration.own:
        return _approximately(setting, record.approximate)
    if record.lost is None:
        return _at_least(setting)
    less = record.lost(setting)
    number, formula = float(2 * setting.level - 1) - less, "1 - 2 alpha" + (f" - {less:.3g}" if less else "")
    if setting.doubt or number <= 0.0:
        return _approximately(setting, setting.doubt or f"the least that holds, {formula}, is none at this level")
    return _at_least(setting, f"{number:.4g} ({formula}), and typically about {float(setting.level):g}")


def _at_least(setting: ConformalProblem, promised: str | None = None) -> str:
    """Return the coverage statement of a method that guarantees the level, or the given lower coverage `promised`."""
    # coverage of a new row on average over calibration rows too: neither conditional on a point nor on these rows
    if setting.doubt:
        return _approximately(setting, setting.doubt)
    number = f"{float(setting.level):g}" if promised is None else promised
    what = "a new value" if not setting.calibration.clusters else "a value of a new cluster"
    new = f"new {'clusters' if setting.calibration.clusters else 'rows'} like these"
    return (
        f"Covers {what} with a probability of at least {number} for {new}, on average over {_averaged_over(setting)}."
    )


def _averaged_over(setting: ConformalProblem) -> str:
    """Return the end of a coverage statement: what its probability is averaged over, and what it assumes."""
    calibration = setting.calibration
    rows = "clusters" if calibration.clusters else "rows"
    if not calibration.own:
        return (
            f"new points and calibration {rows}, if new {rows} are exchangeable with these and the fit has "
            "seen none of them"
        )
    if setting.bandwidth == "unsearched":
        return (
            f"new points and training rows, if new rows are exchangeable with the {calibration.rows:g} training rows "
            "that the search for the bandwidth has not seen"
        )
    return (
        f"new points and training {rows}, if new {rows} are exchangeable with these and the bandwidth was not chosen "
        "by them"
    )


def _approximately(setting: ConformalProblem, why: str) -> str:
    """Return the coverage statement of a method without a finite-sample guarantee, with the reason."""
    # copies of rows are the reason if there are any: they do more harm than the loss of a guarantee
    why = COPIED if setting.doubt == COPIED else why
    what = "a new value" if not setting.calibration.clusters else "a value of a new cluster"
    new = f"new {'clusters' if setting.calibration.clusters else 'rows'} like these"
    number = f"{float(setting.level):g}"
    return f"Covers {what} with a probability of about {number} for {new}, without a finite-sample guarantee: {why}."
