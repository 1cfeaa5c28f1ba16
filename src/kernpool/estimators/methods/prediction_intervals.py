"""Prediction intervals of a fitted regressor, and the rows that calibrate them: new rows, or training rows left out.

The numbers are those of `kernpool.conformal`. Of rows that are not in memory a sample calibrates, each row predicted
from all the others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike

from kernpool._arrays import Array, Integers
from kernpool.conformal import (
    METHODS,
    Calibration,
    ConformalProblem,
    Origin,
    as_fraction,
    check_method,
    prediction_interval,
)
from kernpool.core import SINGLE_ROWS, Exclusion
from kernpool.data import labels_of_rows, refuse_other_labels
from kernpool.estimators.fitted_model import exclusion_of_groups, output_shape, places_of, shaped
from kernpool.estimators.limits import refuse
from kernpool.estimators.model import FittedModel, as_fitted
from kernpool.estimators.training_rows import as_outputs
from kernpool.execution import ROWS, abbreviate, check_choice
from kernpool.execution.interval import Interval
from kernpool.smoother import Smoother

MANY_ROWS = 100_000  # from which on those that were not searched are enough
CALIBRATIONS = (None, "all", "unsearched")
METHODS_OF_SAMPLES = ("auto", "adaptive", "split")  # of models that leave no rows out one by one


def check_rows(X_calibration: Any, y_calibration: Any, calibration: Any, groups: Any = None) -> bool:
    """Raise if the calibration arguments are inconsistent; return whether calibration rows are given."""
    if (X_calibration is None) != (y_calibration is None):
        missing = "X_calibration" if X_calibration is None else "y_calibration"
        raise ValueError(f"X_calibration and y_calibration go together, and {missing} is None; give both, or neither")
    check_choice("calibration", calibration, CALIBRATIONS)
    if X_calibration is not None and calibration is not None:
        raise ValueError(
            f"calibration={calibration!r} is about the training rows, and X_calibration gives others; leave one out"
        )
    if X_calibration is not None:
        refuse_other_labels(X_calibration=X_calibration, y_calibration=y_calibration, groups=groups)
    return X_calibration is not None


def chosen_method(model: FittedModel, method: Any, others: bool, grouped: bool) -> str:
    """Return the method of prediction intervals that "auto" stands for; refuse those that do not go with re-weighting.

    Weights by residuals depend on y, so a row that is left out must have no say in them: methods that subtract it
    from the sums, or add a new one, do not hold. One is left for each kind of calibration rows.

    Parameters
    ----------
    model : regressor
        Fitted.
    method : str
        As of ``prediction_interval``.
    others, grouped : bool
        Whether calibration rows, and clusters of rows, are given.
    """
    check_choice("method", method, ("auto", *METHODS))
    if model.reweighting_ is None:
        return "adaptive" if method == "auto" else str(method)
    only = "split" if others else "jackknife+" if grouped else "cv+"
    if method not in ("auto", only):
        refuse(model, "another method of prediction intervals", f"method={method!r}")
    return only


def _check_out_of_core(model: FittedModel, method: str, given: Mapping[str, Any], others: bool) -> None:
    """Raise TypeError for options of prediction intervals that need all training rows in memory."""
    name = type(model).__name__
    remedy = "fit a sample of them in memory, with bandwidth=model.bandwidth_"
    if method not in METHODS_OF_SAMPLES:
        raise TypeError(
            f"method={method!r} needs the rows themselves, and this {name} knows where they are and does not hold "
            f"them; use method='adaptive', or 'split' with X_calibration, or {remedy}"
        )
    for argument, value in given.items():
        if value is not None and not others:
            raise TypeError(
                f"{argument} must be None for this {name}, which does not hold its rows, got {abbreviate(value)}; give "
                f"X_calibration and y_calibration, or {remedy}"
            )


def other_rows(model: FittedModel, smoother: Smoother, X: Any, y: Any, groups: Any) -> Calibration:
    """Return new rows, to which the model was not fitted, as calibration rows with predictions of the model."""
    try:
        places = places_of(model, X, warn=False)
    except (ValueError, TypeError) as error:
        raise type(error)(f"X_calibration: {error}") from None
    value = read_outputs(y, (len(places.query), *output_shape(model)), model.output_labels_)
    units = SINGLE_ROWS if groups is None else Exclusion.of_groups(groups, len(value)).units
    if groups is None and smoother.units.code is not None:
        raise ValueError(
            "groups must say which cluster each row of X_calibration is of, since the fit has groups, got None; give "
            "one label for each row, or, only if rows are independent of each other, fit without groups"
        )
    predicted = smoother.predict(smoother.problem(places))
    return Calibration(places, value, np.ones(len(value)), predicted, units=units)


def read_outputs(y: Any, expected: tuple[int, ...], labels: Sequence[Any] | None) -> Array:
    """Check that outputs of calibration rows have the expected shape, and convert them to shape (n, c).

    `labels` are the names of the outputs of the fit, if it has several.
    """
    try:
        value = np.asarray(as_outputs(y, labels=labels), dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise type(error)(f"y_calibration must be outputs as in the fit, finite numbers: {error}") from None
    if value.shape not in (expected, (*expected, 1)):
        raise ValueError(
            f"y_calibration must have shape {expected}, one output for each row of X_calibration as in the fit, got "
            f"{value.shape}"
        )
    return value.reshape(len(value), -1)


def training_rows(model: FittedModel, smoother: Smoother, calibration: str | None) -> tuple[Calibration, Origin]:
    """Return training rows, of positive weight, as calibration rows, and the origin of the bandwidth.

    `calibration` is None, "all" or "unsearched": those that the search for the bandwidth has not seen.
    """
    weight, units = smoother.weight, smoother.units
    units.refuse_few(weight)
    kept = weight > 0
    origin: Origin = "found" if model._bandwidth_was_found else "given"
    searched: Integers | None = getattr(model, "search_rows_", None)
    if calibration is None and searched is not None and units.code is None and len(weight) >= MANY_ROWS:
        calibration = "unsearched"
    if calibration == "unsearched":
        searched = _searched_rows(model, searched, clustered=units.code is not None)
        kept[searched] = False
        origin = "repeated" if _has_copies(model, weight, searched) else "unsearched"
    (which,) = np.nonzero(kept)
    rows = smoother.left_out_points(None).rows(which)
    return Calibration(rows, smoother.value[which], weight[which], which=which, units=units.take(which)), origin


def _searched_rows(model: FittedModel, searched: Integers | None, *, clustered: bool) -> Integers:
    """Return the rows that the bandwidth search has seen; raise ValueError if there are no others to calibrate by."""
    if clustered:
        raise ValueError(
            "calibration='unsearched' is for single rows: the search has seen some rows of most clusters; give "
            "X_calibration of other clusters, or calibration='all'"
        )
    if searched is None:
        how = "was searched on all rows" if isinstance(model.bandwidth, str) else "was given, and not searched"
        raise ValueError(
            f"calibration='unsearched' needs rows that the search for the bandwidth has not seen, and it {how}; fit "
            "with search={'rows': ...} less than the number of rows, or leave calibration out"
        )
    return searched


def _has_copies(model: FittedModel, weight: Array, searched: Integers) -> bool:
    """Return whether rows that the bandwidth search used are repeated: have a weight above one, or equal each other.

    If so, a new row may equal a searched row, whereas unsearched rows never do.
    """
    if np.any(weight[searched] > 1.0):
        return True
    values = model.value_[searched].reshape(len(searched), -1)
    table = np.column_stack([model.key_[searched], model.key_code_[searched], values])
    return len(np.unique(table, axis=0)) < len(searched)


class PredictionIntervals(FittedModel):
    """Mixin of regressors: prediction intervals of new observations."""

    def prediction_interval(
        self,
        X: ArrayLike,
        *,
        level: float = 0.9,
        method: str = "auto",
        X_calibration: ArrayLike | None = None,
        y_calibration: ArrayLike | None = None,
        calibration: str | None = None,
        groups: ArrayLike | None = None,
        random_state: Any = 0,
    ) -> Interval:
        r"""Compute prediction intervals: they contain a new observation of y with a given probability.

        .. math:: \hat m(x) \pm \hat s(x)\, Q, \qquad Q = \Big( \frac{|y_i - \hat m_{-i}(x_i)|}{\hat s_{-i}(x_i)}
                  \Big)_{(\lceil (1 - \alpha)(n + 1) \rceil)}

        for the default method: residuals of rows that the fit has not seen, in units of the noise around them.

        Parameters
        ----------
        X : array_like of shape (m, d)
            Evaluation points.
        level : float, default=0.9
            Coverage of the intervals; for each output separately.
        method : str, default="auto"
            ``"adaptive"``, the default: as wide as the noise is around x. ``"jackknife+"`` and ``"cv+"``: guarantee
            twice the error rate, by fits without each row or each tenth. ``"split"``: one width from calibration rows.
            ``"cqr"``: two conditional quantiles, moved until they cover; for skew noise. Robust fits have ``"cv+"``, or
            ``"split"`` with calibration rows, or ``"jackknife+"`` with `groups`.
        X_calibration, y_calibration : array_like of shape (k, d) and (k,) or (k, c), optional
            Rows that the model was not fitted to: ``"split"``, ``"adaptive"`` and ``"cqr"`` guarantee `level` with
            them.
        calibration : {None, "all", "unsearched"}, default=None
            Which training rows calibrate. ``"unsearched"``: those that a search on drawn rows has not seen, so that
            guarantees hold. None takes them from 100 000 rows on.
        groups : array_like, optional
            Cluster of each training row, or of each calibration row; the interval is then for a row of a new cluster.
            By default as in `fit`.
        random_state : int, RandomState, Generator or None, default=0
            Seed of the folds of ``"cv+"``.

        Returns
        -------
        Interval
            With `center`, `lower` and `upper` in the shape of `predict`, and `guarantee`, which says what holds. Ends
            are infinite where too few rows bound them; `center` is NaN in an empty window with ``empty="nan"``.

        Raises
        ------
        ValueError, TypeError
            If an argument is out of its range, the method is not for this fit or its rows, there are too many pairs of
            rows and points for it, or a window is empty and ``empty="raise"``.

        Warns
        -----
        InferenceWarning
            If there are too few rows for the level, or intervals are infinite or have no width; else as `predict`.

        See Also
        --------
        confidence_interval : Where the curve is; it shrinks as rows come.
        quantile : Values that y stays below with given probabilities, without a guarantee.

        Notes
        -----
        Probabilities are averages over new points and over the rows at hand. Guarantees need exchangeable rows, and a
        bandwidth that was not chosen by the rows that calibrate; elsewhere statements are approximate, and `guarantee`
        says so. The guide on methods has references. ``"jackknife+"`` and ``"cv+"`` go through all pairs of rows and
        points, at most 2^30. Of a model on chunks 4 000 rows drawn at random calibrate.

        Examples
        --------
        >>> import numpy as np
        >>> from kernpool import LocalLinearRegressor
        >>> x, noise = np.linspace(0.0, 1.0, 50), 0.1 * np.cos(40.0 * np.arange(50))
        >>> found = LocalLinearRegressor(bandwidth=0.2).fit(x, x + noise).prediction_interval([0.5])
        >>> bool(found.lower[0] < 0.5 < found.upper[0])
        True
        """
        model = as_fitted(self)
        others = check_rows(X_calibration, y_calibration, calibration, groups)
        stored = model.source_ is not None
        method = chosen_method(model, method, others, groups is not None)
        if stored:
            _check_out_of_core(model, method, {"calibration": calibration, "groups": groups}, others)
        check_method(method, not others)
        if not others and method != "adaptive":
            refuse(model, "a method other than 'adaptive'")
        fit = model.smoother_ if isinstance(model.smoother_, Smoother) else model.smoother_.linear
        again = fit.reweighting
        smoother = fit if again is None else replace(fit, reweighting=None)
        places = places_of(model, X, warn=not stored)
        if groups is not None and not others:
            smoother = replace(smoother, exclusion=exclusion_of_groups(model, groups))
        if others:
            rows = other_rows(model, fit, X_calibration, y_calibration, groups)
            origin: Origin = "found" if model._bandwidth_was_found else "given"
        else:
            rows, origin = training_rows(model, smoother, calibration)
        if method == "jackknife+" and rows.units.code is None:
            refuse(model, 'method="jackknife+"')
        setting = ConformalProblem(smoother, places, as_fraction(level), rows, random_state, origin)
        if stored:
            center = np.asarray(cast(Any, model).predict(X)).reshape(len(places.query), -1)
            setting = replace(setting, center=center)
        if again is not None:  # weights of rows follow from y
            center = fit.predict(fit.problem(places), report=True)
            setting = replace(
                setting, center=center, refit=lambda rest: rest.with_weight(rest.weight * rest.row_weights(again)[0])
            )
        found = prediction_interval(setting, method)
        guarantee, effective = found.guarantee, None
        if not stored:
            effective = smoother.effective_rows(smoother.problem(places.rows(slice(0, ROWS))))
        elif not others:
            guarantee += f" Residuals are those of {len(smoother.value)} rows, drawn from all."
        center, lower, upper = (shaped(model, places.query, end) for end in (found.center, found.lower, found.upper))
        return replace(
            found, center=center, lower=lower, upper=upper, guarantee=guarantee, effective_rows=effective,
            index=labels_of_rows(X),
        )  # fmt: skip
