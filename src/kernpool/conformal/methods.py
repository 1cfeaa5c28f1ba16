"""Table of prediction interval methods, and the steps that all of them share.

`METHODS` maps each name to its function, the calibration rows that it accepts, and the reason of a weaker guarantee.
`prediction_interval` runs a method, checks that the rows fit it, widens intervals by rounding so that they contain
their own ends, and warns of infinite intervals and of intervals without a width. `coverage_statement` is the sentence
that comes with an interval.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

import numpy as np

from kernpool.conformal import jackknife_plus, split_conformal
from kernpool.conformal.calibration import COPIED, SLACK, Bounds, ConformalProblem, least_rows, upper_rank
from kernpool.core import SINGLE_ROWS, Units
from kernpool.execution import check_choice, warn_caller, warn_of_queries
from kernpool.execution.interval import Interval
from kernpool.inference import InferenceWarning


@dataclass(frozen=True)
class MethodRecord:
    """Record of a prediction interval method: function, requirements, and what its coverage statement says.

    Parameters
    ----------
    find : callable
        Takes a `ConformalProblem`, returns centers, lower and upper limits.
    rows : {"any", "own", "other"}
        Allowed calibration rows: training rows (``"own"``), other rows, or both (``"any"``).
    whole : bool
        Whether units of several rows are allowed.
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
    whole: bool = False
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
        whole=True,
        unbounded=split_conformal.NO_SCALE,
        approximate="the scale of the scores was estimated on the same training rows; with X_calibration there is one",
    ),
    "jackknife+": MethodRecord(jackknife_plus.jackknife_plus, rows="own", whole=True, lost=lambda _: 0.0),
    "cv+": MethodRecord(
        jackknife_plus.cv_plus, rows="own", counted=jackknife_plus.rows_in_folds, lost=jackknife_plus.lost_by_folds
    ),
    "split": MethodRecord(split_conformal.constant_width, rows="other", whole=True),
    "cqr": MethodRecord(
        split_conformal.conformal_quantiles,
        whole=True,
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
    calibration = setting.calibration
    record = check_method(method, calibration.which is not None, calibration.units)
    count = calibration.count if record.counted is None else record.counted(setting)
    center, lower, upper = record.find(setting)
    # Wider by rounding errors. Where outputs take few values, as ratings do, an end is often one of them but for the
    # last digit: 0.7 = 0.1 + (0.7 - 0.1). Split conformal at 90 percent covered 83 percent of such values without, and
    # 100 with it.
    size = np.abs(calibration.value).max(axis=0, initial=0.0)
    lower, upper = lower - ROUNDING * size, upper + ROUNDING * size
    infinite = np.any(np.isinf(lower) | np.isinf(upper), axis=1) & ~np.isnan(center).any(axis=1)
    with np.errstate(invalid="ignore"):
        narrow = np.any(upper - lower <= setting.smoother.rounding + 4.0 * ROUNDING * size.max(), axis=1)
    if not warn_of_few(setting.level, count, calibration.units.plural):
        warn_of_queries(infinite, f"prediction intervals are infinite: {record.unbounded}", InferenceWarning)
    warn_of_queries(
        narrow,
        "prediction intervals have no width: the residuals that calibrate them are zero but for rounding, which is no "
        "certainty; if rows are copies of others, drop duplicates or give groups=",
        InferenceWarning,
    )
    return Interval(
        center, lower, upper, float(setting.level), method,
        guarantee=coverage_statement(setting, record), n_calibration=count, units=calibration.units.plural,
    )  # fmt: skip


def check_method(method: Any, own: bool, units: Units = SINGLE_ROWS) -> MethodRecord:
    """Return the record of a conformal method; raise ValueError if it is unknown or not for such calibration rows."""
    check_choice("method", method, METHODS)
    record = METHODS[method]
    for_whole = ", ".join(repr(name) for name, one in METHODS.items() if one.whole)
    for refused, reason in (
        (record.rows == "other" and own,
         f"method={method!r} needs calibration rows that the model was not fitted to: give X_calibration and "
         "y_calibration, or use a method that takes the training rows, such as 'adaptive'"),
        (record.rows == "own" and not own,
         f"method={method!r} is calibrated by leave-one-out on the training rows and has no use for X_calibration; "
         "omit it, or use method='adaptive' or 'split'"),
        (units.code is not None and not record.whole,
         f"rows that come in {units.plural} are for method={for_whole}, got {method!r}; use one of these, or, only if "
         "rows are independent of each other, fit and call without groups"),
    ):  # fmt: skip
        if refused:
            raise ValueError(reason)
    return record


def warn_of_few(level: Fraction, n: float, what: str = "rows") -> bool:
    """Warn, and return whether, calibration rows are too few for the coverage level, so that intervals are infinite."""
    few = upper_rank(level, n) > n * (1.0 + SLACK)
    if few:
        warn_caller(
            f"an interval of level {float(level):g} needs at least {least_rows(level)} {what} to calibrate it, got "
            f"{n:g}, so that it is infinite: the largest of so few scores is exceeded too often; give more {what}, or "
            "ask for a lower level",
            InferenceWarning,
        )
    return few


def coverage_statement(setting: ConformalProblem, record: MethodRecord) -> str:
    """Return one sentence on the coverage of prediction intervals, which claims no more than the method guarantees."""
    calibration, level, why = setting.calibration, float(setting.level), setting.doubt
    rows, promised = calibration.units.plural, f"{level:g}"
    if calibration.which is not None and record.approximate:
        why = COPIED if why == COPIED else record.approximate  # copies do more harm than the loss of a guarantee
    elif record.lost is not None:
        less = record.lost(setting)
        least, formula = float(2 * setting.level - 1) - less, "1 - 2 alpha" + (f" - {less:.3g}" if less else "")
        promised = f"{least:.4g} ({formula}), and typically about {level:g}"
        if least <= 0.0:
            why = why or f"the least that holds, {formula}, is none at this level"
    what = "a new value" if rows == "rows" else f"a value of a new {calibration.units.name}"
    if why:
        return (
            f"Covers {what} with a probability of about {level:g} for new {rows} like these, without a finite-sample "
            f"guarantee: {why}."
        )
    # coverage of a new row on average over calibration rows too: neither conditional on a point nor on these rows
    if calibration.which is None:
        over = f"calibration {rows}, if new {rows} are exchangeable with these and the fit has seen none of them"
    elif setting.bandwidth == "unsearched":
        over = (
            f"training rows, if new rows are exchangeable with the {calibration.count:g} training rows that the search "
            "for the bandwidth has not seen"
        )
    else:
        over = f"training {rows}, if new {rows} are exchangeable with these and the bandwidth was not chosen by them"
    return (
        f"Covers {what} with a probability of at least {promised} for new {rows} like these, on average over new "
        f"points and {over}."
    )
