"""Parameter ranges of learned models, and their conversion to and from records for files.

Parameters are checked before the long work. A record has parameters as JSON, and the learned map, rows and losses as
float64 arrays. Which arrays are required, and of what shape, follows from the parameters.
"""

import json
import math
from collections.abc import Mapping
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from kernpool.data.columns import is_plain_label, plain_label
from kernpool.data.files import ModelFileError, Record, plain
from kernpool.estimators.rows import keep_labels
from kernpool.execution.messages import abbreviate, check_choice
from kernpool.execution.threads import resolve_n_jobs
from kernpool.inference.resampling.draws import as_random

SIMILARITIES = ("per_feature", "width", "linear", "encoder")
FEWEST_ROWS = 3


def check_parameters(parameters: Mapping[str, Any], columns: int) -> None:
    """Raise if a parameter is out of its range.

    Parameters
    ----------
    parameters : mapping
        Those of `LearnedPoolingRegressor`.
    columns : int
        Columns of X.

    Raises
    ------
    ValueError
        If a parameter is invalid; the message names it, its value and the valid range.

    Examples
    --------
    >>> from kernpool import LearnedPoolingRegressor
    >>> check_parameters(LearnedPoolingRegressor(learning_rate=-1).get_params(), 3)
    Traceback (most recent call last):
    ...
    ValueError: learning_rate must be a positive finite number, got -1
    """
    similarity, size = parameters["similarity"], parameters["output_size"]
    check_choice("similarity", similarity, SIMILARITIES)
    if size is not None:
        _check_count("output_size", size, 1)
        if similarity in ("per_feature", "width"):
            raise ValueError(
                f"output_size is for similarity='linear' and 'encoder', got {size} with {similarity!r}, which keeps "
                "the columns; leave it None"
            )
        if similarity == "linear" and size > columns:
            raise ValueError(
                f"output_size must be at most the number of columns, {columns}, with similarity='linear', got {size}: "
                "a map to more can do no more"
            )
    hidden = parameters["hidden_sizes"]
    if isinstance(hidden, str) or not hasattr(hidden, "__iter__") or not hasattr(hidden, "__len__"):
        raise ValueError(f"hidden_sizes must be a sequence of whole numbers such as (64,), got {abbreviate(hidden)}")
    for width in hidden:
        _check_count("hidden_sizes", width, 1)
    _check_count("max_epochs", parameters["max_epochs"], 0)
    _check_count("batch_size", parameters["batch_size"], 1)
    _check_count("patience", parameters["patience"], 1)
    if parameters["max_keys"] is not None:
        _check_count("max_keys", parameters["max_keys"], 2)
    _check_number("learning_rate", parameters["learning_rate"], "a positive finite number", lambda x: x > 0)
    _check_number("penalty", parameters["penalty"], "a finite number from 0 on", lambda x: x >= 0)
    _check_number(
        "validation_fraction", parameters["validation_fraction"], "between 0 and 1, both left out", lambda x: 0 < x < 1
    )
    check_choice("dtype", parameters["dtype"], (None, "float64", "float32"))
    warm = parameters["warm_start_bandwidth"]
    if not isinstance(warm, bool | np.bool_):
        raise ValueError(f"warm_start_bandwidth must be True or False, got {abbreviate(warm)}")
    as_random(parameters["random_state"], generators=False)


def _check_count(name: str, value: Any, least: int) -> None:
    if isinstance(value, bool) or not isinstance(value, Integral) or value < least:
        raise ValueError(f"{name} must be a whole number from {least} on, got {abbreviate(value)}")


def _check_number(name: str, value: Any, wanted: str, holds: Any) -> None:
    if isinstance(value, bool) or not isinstance(value, Real) or not math.isfinite(value) or not holds(value):
        raise ValueError(f"{name} must be {wanted}, got {abbreviate(value)}")


VERSION = 1
ENTRIES = {
    "format", "version", "estimator", "parameters", "features", "classes", "key_shape", "value_shape", "epochs",
    "best_epoch", "prior_share", "labels", "sha256",
}  # fmt: skip


def record_of(model: Any) -> Record:
    """Return a fitted learned model as a record."""
    from kernpool.torch.learning.training import similarity_state

    check_is_fitted(model)
    arrays = {f"map.{name}": array for name, array in similarity_state(model.similarity_).items()}
    parameters = model.get_params()
    device, labels = parameters.pop("device"), vars(model).get("column_labels_")
    header = {
        "format": model.record_format,
        "version": VERSION,
        "estimator": type(model).__name__,
        "parameters": {name: plain(value) for name, value in parameters.items()}
        | {"device": None if device is None else str(device)},
        "features": vars(model).get("feature_names_in_", np.array(None)).tolist(),
        "classes": _classes_to_json(getattr(model, "classes_", None)),
        "key_shape": list(model.key_.shape),
        "value_shape": list(model.value_.shape),
        "epochs": len(model.history_["training_loss"]) - 1,
        "best_epoch": model.best_epoch_,
    }
    if labels is not None:
        header["labels"] = list(map(plain_label, labels))
    if hasattr(model, "prior_share_"):
        header["prior_share"] = model.prior_share_
    return Record(header, arrays | {"key": model.key_, "value": model.value_, **model.history_}, in_one_file=True)


def restored(kind: type[Any], record: Record) -> Any:
    """Rebuild a learned model from an untrusted record; raise if entries or arrays are invalid."""
    classifies = hasattr(kind, "predict_proba")
    header = {"prior_share": None, "labels": None} | record.header  # of classifiers, and of columns without names
    parameters = header["parameters"] | {"hidden_sizes": tuple(header["parameters"]["hidden_sizes"])}
    n, d = key_shape = _shape(header["key_shape"])
    value_shape = _shape(header["value_shape"])
    model = kind(**parameters)
    check_parameters(model.get_params(), d)
    resolve_n_jobs(model.n_jobs)
    check_random_state(model.random_state)
    classes = _classes_from_json(header["classes"])
    names, best, epochs, share = header["features"], header["best_epoch"], header["epochs"], header["prior_share"]
    labels = header["labels"]
    history = {"training_loss": _shape([epochs + 1]), "validation_loss": _shape([epochs + 1])}
    fits = (
        set(header) | {"sha256"} == ENTRIES,
        set(parameters) == set(model.get_params()),
        model.device is None or isinstance(model.device, str),
        isinstance(model.warm_start_bandwidth, bool),
        n == value_shape[0] and len(value_shape) <= 2,
        (classes is not None) == classifies,
        share is None if not classifies else type(share) is float and 0.0 <= share < 1.0,
        classes is None or value_shape == (n, len(classes)),
        *(
            some is None or (isinstance(some, list) and len(some) == d and all(map(is_plain_label, some)))
            for some in (names, labels)
        ),
        type(best) is int and 0 <= best <= epochs,
    )
    if not all(fits):
        raise ValueError("keys, values, classes, names and epochs do not fit together")
    from kernpool.torch.learning.encoders import map_shapes
    from kernpool.torch.learning.training import load_similarity

    how = (model.similarity, d, model.output_size, model.hidden_sizes)
    shapes = {f"map.{name}": shape for name, shape in map_shapes(*how).items()}
    arrays = _checked(record, {"key": key_shape, "value": value_shape, **history, **shapes})
    model.similarity_ = load_similarity({name.removeprefix("map."): arrays[name] for name in shapes}, *how)
    model.key_, model.value_ = arrays["key"], arrays["value"]
    model.history_ = {name: arrays[name] for name in history}
    model.best_epoch_, model.n_features_in_ = best, d
    if classes is not None:
        model.classes_, model.prior_share_ = classes, share
    keep_labels(model, None if names is None else list(map(plain_label, names)))
    if labels is not None:
        model.column_labels_ = list(map(plain_label, labels))  # text, too, is no name then
    return model


def _checked(record: Record, expected: dict[str, tuple[int, ...]]) -> dict[str, NDArray[np.float64]]:
    """Return the arrays of a record after checking that they are float64 of the expected shapes."""
    for name, shape in expected.items():
        if name not in record.arrays:
            raise ModelFileError(f"{record.source}: there is no tensor {name!r}; fit the model again")
        found = record.arrays[name]
        if found.shape != shape or found.dtype != np.float64:
            raise ModelFileError(
                f"{record.source}: tensor {name!r} is {found.dtype} of shape {found.shape}, expected float64 of shape "
                f"{shape}; fit the model again"
            )
    return {name: record.arrays[name] for name in expected}


def _classes_to_json(classes: NDArray[Any] | None) -> dict[str, Any] | None:
    if classes is None:
        return None
    if classes.dtype.kind == "O" and not all(isinstance(label, str) for label in classes):
        raise TypeError(f"labels must be numbers or strings to be saved, got {classes.tolist()}")
    return {"dtype": classes.dtype.str, "labels": classes.tolist()}


def _classes_from_json(record: dict[str, Any] | None) -> NDArray[Any] | None:
    if record is None:
        return None
    dtype, labels = np.dtype(str(record["dtype"])), record["labels"]
    classes = np.array(labels, dtype=dtype)
    # A label that another type would change, or that has become another label, is none that was saved.
    if dtype.kind not in "biufUO" or json.dumps(_classes_to_json(classes)) != json.dumps(record):
        raise ValueError(f"these are no labels of type {dtype}")
    if classes.ndim != 1 or len(set(labels)) < len(labels):
        raise ValueError("labels are no list, or one occurs twice")
    return classes


def _shape(lengths: Any) -> tuple[int, ...]:
    shape = tuple(lengths)
    if not shape or not all(type(length) is int and 0 < length < 2**63 for length in shape):
        raise ValueError("a shape is no list of positive whole numbers")
    return shape
