"""Which answers a kind of model does not have, and which fits there are not: tables of remedies."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from operator import attrgetter
from typing import Any, TypeVar, cast

import numpy as np
from sklearn.utils.validation import check_is_fitted

from kernpool.data import COLUMN_OPTIONS
from kernpool.estimators.model import FittedModel
from kernpool.execution import abbreviate
from kernpool.kernels import get_kernel
from kernpool.pooling import Nearest
from kernpool.smoother import Smoother

IN_MEMORY = "fit it to arrays, such as a sample of the rows, with bandwidth=model.bandwidth_"
LINEAR = "fit it with robust=False"
WITHOUT_OPTIONS = "fit it without, or use get_prediction(X).slope"

# Kinds of models: who belongs to one, the error, and why an answer is refused to it.
KINDS: dict[str, tuple[Callable[[FittedModel], object], type[Exception], str]] = {
    "stored": (
        lambda model: model.source_ is not None,
        TypeError,
        "this {kind} was fitted to rows that are not in memory, and {answer} needs the rows themselves",
    ),
    "robust": (
        lambda model: model.reweighting_ is not None,
        TypeError,
        "{answer} is for linear fits, and this {kind} is robust: its weights of rows depend on y",
    ),
    "quadratic": (
        lambda model: model._degree == 2,
        ValueError,
        "degree=2 does not go with {answer}",
    ),
    "groups": (
        lambda model: model.exclusion_ is not None and model.exclusion_.units.code is not None,
        ValueError,
        "{answer} takes rows one by one, and this model was fitted with groups=, whose rows go together",
    ),
    "gap": (
        lambda model: model.gap,
        ValueError,
        "{answer} takes rows one by one, and the fit has gap={model.gap}, for rows that share noise with those next to "
        "them",
    ),
    "options": (
        lambda model: model.encoding_.options,
        ValueError,
        "{answer} is for columns that are pooled as they are, and this model has {model.encoding_.options_in_words}",
    ),
    "product": (
        lambda model: get_kernel(model.kernel).composition == "product",
        ValueError,
        "kernel must be radial for {answer}: a product over coordinates of a circle would depend on where it begins",
    ),
    "windows": (
        lambda model: model.window_ != "fixed",
        ValueError,
        "{answer} takes rows out of fits in closed form, and window={model.window_} finds other windows without a row",
    ),
    "nearest": (
        lambda model: isinstance(model.window_, Nearest),
        ValueError,
        "{answer} takes bandwidths as lengths, and of window={model.window_} they are ratios of columns",
    ),
    "nearest means": (
        lambda model: isinstance(model.window_, Nearest) and model._degree == 0,
        ValueError,
        "{answer} is for windows of a fixed width, and of window={model.window_} the width depends on the place",
    ),
    "mean": (
        lambda model: model._degree == 0,
        TypeError,
        "{answer} is made of slopes, and a {kind} predicts weighted means, which have none",
    ),
    "plane": (
        lambda model: model._degree > 0,
        ValueError,
        "{answer} is for local constants, and this model has the distribution of residuals around a local fit",
    ),
    "levels alone": (
        lambda model: not model.encoding_.numeric,
        ValueError,
        "{answer} draws a curve along a numeric column, and this model has categorical columns alone",
    ),
    "coefficients": (
        lambda model: hasattr(model, "linear_"),
        TypeError,
        "{answer} is of weighted means and planes, and a {kind} has coefficients",
    ),
    "outputs": (
        lambda model: np.size(model.value_) > len(model.value_) and not hasattr(model, "classes_"),
        TypeError,
        "{answer} shows one output, and this model has several",
    ),
    "not drawn": (
        lambda model: model.encoding_.undrawn,
        ValueError,
        "{answer} draws columns as they are or on circles, and this model has {model.encoding_.undrawn}",
    ),
}

BY_ROWS = {"stored": IN_MEMORY, "robust": LINEAR}
LIMITS: dict[str, dict[str, str]] = {  # answer: kinds of models that do not have it, with the remedy
    "this answer": {
        "stored": IN_MEMORY,
        "robust": "use predict, get_prediction, confidence_interval, prediction_interval, summary or "
        "attention_weights; for anything else, such as quantiles, residuals or tests, fit it with robust=False",
    },
    "attention_weights": {"stored": IN_MEMORY},
    "a simultaneous band": {"stored": IN_MEMORY},
    "another variance than 'local'": {"stored": IN_MEMORY},
    "groups=": {"stored": IN_MEMORY},
    "summary": {"stored": IN_MEMORY},
    "row_diagnostics": BY_ROWS | {"coefficients": "use residuals(), or model.curve_ next to a curve"},
    "expected_error": BY_ROWS,
    "explain": BY_ROWS | {"quadratic": "use weights(), or degree=1"},
    "additive_terms": {
        "mean": "use LocalLinearRegressor, or attention_weights(X) for the rows behind a prediction",
        "quadratic": "use slope, or degree=1",
        "options": WITHOUT_OPTIONS,
    },
    "the standard error of slopes": {
        "options": WITHOUT_OPTIONS,
        "nearest means": "use LocalLinearRegressor, whose slopes are those of planes",
    },
    'method="quadratic"': {"options": 'use method="robust", which removes the same bias'},
    "a corrected confidence interval": {"quadratic": 'use method="naive", or degree=1'},
    "a conditional distribution of residuals": {"stored": IN_MEMORY},
    "a leave-one-out distribution": {"stored": IN_MEMORY},
    "a bandwidth in y": {"stored": IN_MEMORY},
    "distribution_bandwidth": BY_ROWS | {"plane": "fit NadarayaWatsonRegressor, or keep the bandwidth of the fit"},
    'method="jackknife+"': dict.fromkeys(("quadratic", "windows"), 'use method="cv+" or "adaptive"'),
    "a method other than 'adaptive'": {
        "gap": "use method='adaptive', whose residuals are of fits without the rows within the gap, or give "
        "X_calibration and y_calibration"
    },
    "another method of prediction intervals": {
        "robust": "use method='auto' (with X_calibration and y_calibration it is 'split', with groups 'jackknife+', "
        "else 'cv+', which fits again without each tenth of the rows), or fit it with robust=False"
    },
    "a stack": {
        "robust": LINEAR,
        "gap": "fit the local member alone, or with gap=0 and groups= of rows next to each other, such as "
        "np.arange(n) // 20",
    },
    "calibration by X_calibration": {
        "groups": "leave it out, and clusters of training rows calibrate, or, only if rows are independent of each "
        "other, fit without groups"
    },
    "predict_set": BY_ROWS,
    "the variance of probabilities": {
        "groups": "fit NadarayaWatsonRegressor(bandwidth=model.bandwidth_) to 1.0 * (y == label) with the same groups, "
        "whose get_prediction and confidence_interval count clusters"
    },
    "bootstrap": BY_ROWS,
    "bootstrap without groups=": {
        "gap": "give groups=, such as np.arange(n) // 20 for blocks of twenty rows in their order"
    },
    "significance_test": BY_ROWS
    | dict.fromkeys(
        ("groups", "gap"),
        "compare model.confidence_interval with and without the column, or fit without groups and gap if rows are "
        "independent",
    )
    | {
        "options": "compare expected_error() of models with and without the column",
        "quadratic": "use degree=1",
        "nearest": "fit with window='fixed'",
    },
    "explore": {
        "stored": "explore a model of some of them: NadarayaWatsonRegressor(bandwidth=model.bandwidth_).fit(X_some, "
        "y_some)",
        "robust": LINEAR,
        "quadratic": "use LocalLinearRegressor, or draw KernelCurveDisplay.from_estimator(model)",
        "gap": "fit with gap=0 and bandwidth=model.bandwidth_ to explore it",
        "levels alone": "fit it with a numeric one",
        "outputs": "fit one of them",
        "not drawn": "fit without it to explore it, or draw PartialDisplay.from_estimator(model, X, features)",
    },
    "the path of bandwidths": {"levels alone": "print(model.bandwidth_search_) has their smoothings"},
    # what a fit cannot have
    "a categorical column": {"quadratic": "code it as numbers, or use degree=1"},
    "a periodic or geographic column": {
        "quadratic": "use degree=1",
        "product": "use a kernel of the norm, such as 'epanechnikov'",
    },
    "rows that are not in memory": {"quadratic": "use degree=1, or a sample of the rows as arrays"},
    "robust=": {"quadratic": "use robust=False, or degree=1", "gap": "use gap=0, or robust=False"},
    "window=Nearest()": {"gap": "use window='fixed', or gap=0"},
}

Model = TypeVar("Model", bound=FittedModel)


def refuse(model: FittedModel, answer: str, named: str = "") -> None:
    """Raise TypeError or ValueError, with the remedy, if an answer of `LIMITS` is not for models of this kind.

    Messages name it `named`, if that is given.
    """
    for kind, remedy in LIMITS[answer].items():
        belongs, error, reason = KINDS[kind]
        if belongs(model):
            words = reason.format(answer=named or answer, kind=type(model).__name__, model=model)
            raise error(f"{words}; {remedy}")


# Parts of a model that has read its columns, which not every fit can have: their names in `LIMITS`.
PARTS: dict[str, Callable[[FittedModel], object]] = {
    "a categorical column": attrgetter("encoding_.categorical"),
    "a periodic or geographic column": attrgetter("encoding_.options"),
    "robust=": attrgetter("robust"),
    "window=Nearest()": lambda model: isinstance(model.window, Nearest),
}


def smoother_of(model: FittedModel, answer: str = "this answer") -> Smoother:
    """Return the smoother of a fitted model for an answer that takes its rows, or refuse."""
    if "_given" not in model.__dict__:  # as `as_fitted` asks
        check_is_fitted(model)
    refuse(model, answer)
    return cast(Smoother, model.smoother_)


# Values that parameters and arguments of ``fit`` may have for rows that are not in memory, and why no others.
SAMPLE = "fit a sample of them in memory"
OF_SERIES = (
    "in the sample by which a bandwidth is found no rows are next to each other; fit a part of the series in memory, "
    "with its bandwidth as a number"
)
OF_COLUMNS = ((None,), f"their columns are read as numbers, and pooled as they are; {SAMPLE}")
IN_MEMORY_ONLY: dict[str, tuple[tuple[Any, ...], str]] = dict.fromkeys(COLUMN_OPTIONS, OF_COLUMNS) | {
    "window": (("auto", "fixed"), f"other windows take more passes through the files; {SAMPLE}"),
    "robust": ((False,), f"each re-weighting takes residuals of all rows; {SAMPLE}"),
    "groups": (
        (None,),
        "the sample by which a bandwidth is found would break clusters up; fit some of the clusters in memory, and "
        "give the bandwidth as a number",
    ),
    "gap": ((0,), OF_SERIES),
    "time": ((None,), OF_SERIES),
}


def refuse_stored(given: Mapping[str, Any]) -> None:
    """Raise ValueError if a parameter or argument of ``fit`` has a value that is for rows in memory alone.

    Examples
    --------
    >>> refuse_stored({"robust": True})
    Traceback (most recent call last):
    ...
    ValueError: robust must be False for rows that are not in memory, got True: each re-weighting takes residuals of all
    rows; fit a sample of them in memory
    """
    for name, (values, reason) in IN_MEMORY_ONLY.items():
        found = given.get(name, values[0])
        if np.ndim(found) or found not in values:
            raise ValueError(
                f"{name} must be {' or '.join(map(repr, values))} for rows that are not in memory, got "
                f"{abbreviate(found)}: {reason}"
            )
