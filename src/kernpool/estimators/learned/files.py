"""Learned models on disk: a folder of one JSON file and one of safetensors, checked before anything is allocated.

``model.json`` names the estimator, its parameters and the SHA-256 of ``tensors.safetensors``; a checksum of its own
covers the rest of it. Which tensors there have to be, and of what shape, follows from the parameters. Nothing in it can
run code.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from kernpool.data.files import (
    LEARNED,
    ModelFileError,
    check_model_folder,
    read_model_header,
    sha256,
    whole_folder,
    write_model_header,
)
from kernpool.estimators.learned.parameters import check_parameters
from kernpool.execution.threads import resolve_n_jobs

Shapes = dict[str, tuple[int, ...]]

VERSION = 1
ENTRIES = {
    "format", "version", "estimator", "parameters", "features", "classes", "key_shape", "value_shape", "epochs",
    "best_epoch", "sha256",
}  # fmt: skip
ESTIMATORS = ("LearnedPoolingRegressor", "LearnedPoolingClassifier")
TENSORS = "tensors.safetensors"
REMEDY = "copy the whole folder again or fit the model again"


def write_learned(model: Any, folder: Path, force: bool) -> None:
    """Write a fitted estimator; see `LearnedPooling.save`."""
    save_file = _safetensors().numpy.save_file
    from kernpool.torch.learning.fitting import similarity_state

    check_model_folder(folder, force)
    state = similarity_state(model.similarity_)
    arrays = {f"map.{name}": array for name, array in state.items()}
    arrays |= {"key": model.key_, "value": model.value_, **model.history_}
    names = getattr(model, "feature_names_in_", None)
    header = {
        "format": LEARNED,
        "version": VERSION,
        "estimator": type(model).__name__,
        "parameters": {name: _plain(value) for name, value in model.get_params().items()},
        "features": None if names is None else [str(name) for name in names],
        "classes": _classes_to_json(getattr(model, "classes_", None)),
        "key_shape": list(model.key_.shape),
        "value_shape": list(model.value_.shape),
        "epochs": len(model.history_["training_loss"]) - 1,
        "best_epoch": model.best_epoch_,
    }
    with whole_folder(folder, force=force) as temporary:
        save_file(
            {name: np.array(array, dtype=np.float64, order="C") for name, array in arrays.items()}, temporary / TENSORS
        )
        write_model_header(temporary, header | {"sha256": sha256(temporary / TENSORS)})


def read_learned(kind: type[Any], folder: Path) -> Any:
    """Read a fitted estimator; see `LearnedPooling.load`."""
    header, source = read_model_header(folder, LEARNED, VERSION), folder / "model.json"
    if header.get("estimator") != kind.__name__:
        found = str(header.get("estimator"))
        use = f"use {found}.load" if found in ESTIMATORS else REMEDY
        raise ModelFileError(f"{folder} holds a {found:.40}; {use}")
    try:
        parameters = header["parameters"] | {"hidden_sizes": tuple(header["parameters"]["hidden_sizes"])}
        n, d = key_shape = _shape(header["key_shape"])
        value_shape = _shape(header["value_shape"])
        model = kind(**parameters)
        check_parameters(model.get_params(), d)
        resolve_n_jobs(model.n_jobs)
        check_random_state(model.random_state)
        classes = _classes_from_json(header["classes"])
        names, best, epochs = header["features"], header["best_epoch"], header["epochs"]
        digest, entries = header["sha256"], set(header)
        history = {"training_loss": _shape([epochs + 1]), "validation_loss": _shape([epochs + 1])}
        expected = {"key": key_shape, "value": value_shape, **history}
        fits = (
            entries == ENTRIES,
            set(parameters) == set(model.get_params()),
            model.device is None or isinstance(model.device, str),
            isinstance(model.warm_start_bandwidth, bool),
            n == value_shape[0] and len(value_shape) <= 2,
            (classes is not None) == hasattr(model, "predict_proba"),
            classes is None or value_shape == (n, len(classes)),
            names is None or (isinstance(names, list) and [type(name) for name in names] == [str] * d),
            type(best) is int and 0 <= best <= epochs,
        )
    except (KeyError, TypeError, ValueError, AttributeError, IndexError, OverflowError) as error:
        raise ModelFileError(f"{source} was edited: {error}; {REMEDY}") from None
    if not all(fits):
        raise ModelFileError(f"{folder}: keys, values, classes, names and epochs do not fit together; {REMEDY}")
    from kernpool.torch.learning.encoders import map_shapes
    from kernpool.torch.learning.fitting import load_similarity

    how = (model.similarity, d, model.output_size, model.hidden_sizes)
    shapes = {f"map.{name}": shape for name, shape in map_shapes(*how).items()}
    arrays = _read_tensors(folder / TENSORS, digest, expected | shapes)
    state = {name.removeprefix("map."): arrays[name] for name in shapes}
    model.similarity_ = load_similarity(state, *how)
    model.key_, model.value_ = arrays["key"], arrays["value"]
    model.history_ = {name: arrays[name] for name in history}
    model.best_epoch_, model.n_features_in_ = best, d
    if classes is not None:
        model.classes_ = classes
    if names is not None:
        model.feature_names_in_ = np.array(names, dtype=object)
    return model


def _read_tensors(path: Path, digest: str, expected: Shapes) -> dict[str, NDArray[np.float64]]:
    """Read float64 arrays, after all names, types and shapes were found as expected."""
    safe_open = _safetensors().safe_open
    if not path.is_file():
        raise ModelFileError(f"{path} is missing; {REMEDY}")
    if sha256(path) != digest:  # before anything in it is interpreted
        raise ModelFileError(f"{path} was edited, truncated or damaged: it is not what model.json recorded; {REMEDY}")
    try:
        with safe_open(path, framework="np") as file:
            names = set(file.keys())
            for name, shape in expected.items():
                if name not in names:
                    raise ModelFileError(f"{path} has no tensor {name!r}; {REMEDY}")
                part = file.get_slice(name)  # its description alone
                found, dtype = tuple(part.get_shape()), part.get_dtype()
                if (found, dtype) != (shape, "F64"):
                    raise ModelFileError(
                        f"{path}: tensor {name!r} is of type {dtype} and shape {found}, "
                        f"expected F64 and {shape}; {REMEDY}"
                    )
            return {name: file.get_tensor(name) for name in expected}
    except _safetensors().SafetensorError as error:
        raise ModelFileError(f"{path} is no file of safetensors: {error}; {REMEDY}") from None


def _safetensors() -> Any:
    try:
        import safetensors
        import safetensors.numpy
    except ImportError as error:
        raise ImportError(
            "saving and loading learned models needs safetensors, which is not installed; install it with: "
            "pip install 'kernpool[torch]'"
        ) from error
    return safetensors


def _plain(value: Any) -> Any:
    if hasattr(value, "tolist") and not hasattr(value, "random_sample"):
        return value.tolist()
    if isinstance(value, tuple | list):
        return [_plain(item) for item in value]
    if value is None or isinstance(value, str | int | float):
        return value
    # A generator of random numbers is of no use to a fitted model; a torch.device has a name.
    return None if hasattr(value, "random_sample") else str(value)


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
