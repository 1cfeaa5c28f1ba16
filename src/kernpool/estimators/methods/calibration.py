"""Calibration rows of conformal prediction: new rows, or training rows with leave-one-out predictions.

After a fit with groups predictions of training rows are leave-cluster-out. The functions also record whether the
bandwidth was chosen by the rows that calibrate.
"""

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernpool.conformal import Calibration
from kernpool.conformal.calibration import Origin
from kernpool.core import Exclusion
from kernpool.data.encoding import group_codes
from kernpool.estimators.bandwidth import given_bandwidth
from kernpool.estimators.fitted_model import output_shape, places_of
from kernpool.estimators.model import FittedModel
from kernpool.estimators.training_rows import as_outputs
from kernpool.execution.error_messages import check_choice
from kernpool.inference import number_clusters
from kernpool.pooling.widths import Nearest
from kernpool.smoother.linear_smoother import Smoother

Array = NDArray[np.float64]
Integers = NDArray[np.int64]

MANY_ROWS = 100_000  # from which on those that were not searched are enough
CALIBRATIONS = (None, "all", "unsearched")
METHODS_OF_SAMPLES = ("adaptive", "split")  # of models that leave no rows out one by one


def as_method(method: Any, known: Iterable[str] = METHODS_OF_SAMPLES) -> str:
    """Return the method of prediction intervals, where ``"auto"`` is ``"adaptive"``; raise if it is unknown."""
    check_choice("method", method, ("auto", *known))
    return "adaptive" if method == "auto" else str(method)


def check_rows(X_calibration: Any, y_calibration: Any, calibration: Any) -> bool:
    """Raise if the calibration arguments are inconsistent; return whether calibration rows are given."""
    if (X_calibration is None) != (y_calibration is None):
        missing = "X_calibration" if X_calibration is None else "y_calibration"
        raise ValueError(f"X_calibration and y_calibration go together, and {missing} is None; give both, or neither")
    check_choice("calibration", calibration, CALIBRATIONS)
    if X_calibration is not None and calibration is not None:
        raise ValueError(
            f"calibration={calibration!r} is about the training rows, and X_calibration gives others; leave one out"
        )
    return X_calibration is not None


def other_rows(model: FittedModel, smoother: Smoother, X: Any, y: Any, groups: Any) -> Calibration:
    """Return new rows, to which the model was not fitted, as calibration rows with predictions of the model."""
    try:
        places = places_of(model, X, warn=False)
    except (ValueError, TypeError) as error:
        raise type(error)(f"X_calibration: {error}") from None
    table = read_outputs(y, (len(places.query), *output_shape(model)))
    if groups is None and smoother.group is not None:
        raise ValueError(
            "groups must say which cluster each row of X_calibration is of, since the fit has groups, got None; give "
            "one label for each row, or, only if rows are independent of each other, fit without groups"
        )
    group = None if groups is None else group_codes(groups, len(table))
    return Calibration(places, table, smoother.predict(smoother.problem(places)), np.ones(len(table)), group=group)


def read_outputs(y: Any, expected: tuple[int, ...]) -> Array:
    """Check that outputs of calibration rows have the expected shape, and convert them to shape (n, c)."""
    try:
        value = np.asarray(as_outputs(y), dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise type(error)(f"y_calibration must be outputs as in the fit, finite numbers: {error}") from None
    if value.shape != expected:
        raise ValueError(
            f"y_calibration must have shape {expected}, one output for each row of X_calibration as in the fit, got "
            f"{value.shape}"
        )
    return np.asarray(value.reshape(len(value), -1))


def training_rows(
    model: FittedModel, smoother: Smoother, calibration: str | None, groups: Any
) -> tuple[Calibration, Array, Origin]:
    """Return the training rows as calibration rows, with leave-one-out or leave-cluster-out predictions.

    Parameters
    ----------
    model : KernelSmoother
        Fitted to arrays.
    smoother : Smoother
        Its rows.
    calibration : {None, "all", "unsearched"}
        Which of them.
    groups : array_like or None
        Clusters; by default those of the fit.

    Returns
    -------
    calibration : Calibration
        The rows of positive weight.
    left_out : ndarray of shape (n, c)
        Predictions of all rows.
    origin : str
        How the bandwidth came.
    """
    weight = smoother.weight
    given = smoother.group if groups is None else groups
    code = None if given is None else number_clusters(given, weight)
    kept, origin = weight > 0, origin_of(model)
    searched: Integers | None = getattr(model, "search_rows_", None)
    if calibration == "unsearched":
        _check_searched(model, searched, code)
    elif calibration is None and searched is not None and code is None and len(weight) >= MANY_ROWS:
        calibration = "unsearched"
    if calibration == "unsearched" and searched is not None:
        kept[searched] = False
        origin = "repeated" if _has_copies(model, weight, searched) else "unsearched"
    left_out = _left_out(model, smoother, code)
    (which,) = np.nonzero(kept)
    rows = Calibration(
        smoother.training.rows(which), smoother.value[which], left_out[which], weight[which], which=which,
        group=None if code is None else code[which],
    )  # fmt: skip
    return rows, left_out, origin


def origin_of(model: FittedModel) -> Origin:
    """Return "given" if the bandwidth was given as numbers, "found" if it was chosen from the training rows.

    A parameter that was set after the fit says nothing of it: it counts if it is what the model predicts with.
    """
    bandwidth, window = model.bandwidth, model.window
    asked = window.k if isinstance(window, Nearest) else None
    if isinstance(bandwidth, str) or hasattr(model, "relevance_") or model.smoother_.n_neighbors != asked:
        return "found"
    try:
        given = given_bandwidth(bandwidth, len(model.bandwidth_))
    except (TypeError, ValueError):  # no bandwidth of this fit
        return "found"
    return "given" if np.array_equal(given, model.bandwidth_) else "found"


def _left_out(model: FittedModel, smoother: Smoother, code: Integers | None) -> Array:
    """Return leave-one-out or leave-cluster-out predictions of the training rows; those of the fit once.

    A robust fit has none: rows that are left out have a say in the weights of the others, so methods for it fit the
    others again.
    """
    if model.robust_weight_ is not None:
        return np.full_like(smoother.value, np.nan)
    if code is None or (smoother.group is not None and np.array_equal(code, smoother.group)):
        return smoother.left_out[0]
    return smoother.fit_left_out(Exclusion(code)).values()[0]


def _check_searched(model: FittedModel, searched: Integers | None, code: Integers | None) -> None:
    if code is not None:
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


def _has_copies(model: FittedModel, weight: Array, searched: Integers) -> bool:
    """Return whether rows that the bandwidth search used are repeated: have a weight above one, or equal each other.

    If so, a new row may equal a searched row, whereas unsearched rows never do.
    """
    if np.any(weight[searched] > 1.0):
        return True
    values = model.value_[searched].reshape(len(searched), -1)
    table = np.column_stack([model.key_[searched], model.key_code_[searched], values])
    return len(np.unique(table, axis=0)) < len(searched)
