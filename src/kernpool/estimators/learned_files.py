"""Learned models on disk: a folder of one JSON file and one of safetensors, checked before anything is allocated.

``model.json`` names the estimator, its parameters and the SHA-256 of ``tensors.safetensors``; a checksum of its own
covers the rest of it. Which tensors there have to be, and of what shape, follows from the parameters. Nothing in it can
run code.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernpool.estimators.learned_parameters import check_parameters
from kernpool.files import (
    LEARNED,
    ModelFileError,
    check_model_folder,
    read_model_header,
    sha256,
    whole_folder,
    write_model_header,
)

Shapes = dict[str, tuple[int, ...]]

VERSION = 1
TENSORS = "tensors.safetensors"
REMEDY = "copy the whole folder again or fit the model again"


def write_learned(model: Any, folder: Path, force: bool) -> None:
    """Write a fitted estimator; see `LearnedPooling.save`."""
    save_file = _safetensors().numpy.save_file
    from kernpool.torch.fitting import similarity_state

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
    header = read_model_header(folder, LEARNED, VERSION)
    if header.get("estimator") != kind.__name__:
        raise ModelFileError(f"{folder} holds a {header.get('estimator')}; use {header.get('estimator')}.load")
    try:
        parameters = header["parameters"] | {"hidden_sizes": tuple(header["parameters"]["hidden_sizes"])}
        (n, d), value_shape = header["key_shape"], tuple(header["value_shape"])
        model = kind(**parameters)
        check_parameters(parameters, d)
        classes = _classes_from_json(header["classes"])
        losses = (header["epochs"] + 1,)
        history = {"training_loss": losses, "validation_loss": losses}
        expected = {"key": (n, d), "value": value_shape, **history}
        fits = (
            n == value_shape[0],
            classes is None or value_shape == (n, len(classes)),
            header["features"] is None or len(header["features"]) == d,
            0 <= header["best_epoch"] <= header["epochs"],
        )
    except (KeyError, TypeError, ValueError, IndexError) as error:
        raise ModelFileError(f"{folder / 'model.json'} was edited: {error}; {REMEDY}") from None
    if not all(fits):
        raise ModelFileError(f"{folder}: keys, values, classes, names and epochs do not fit together; {REMEDY}")
    from kernpool.torch.encoders import map_shapes
    from kernpool.torch.fitting import load_similarity

    how = (model.similarity, d, model.output_size, model.hidden_sizes)
    shapes = {f"map.{name}": shape for name, shape in map_shapes(*how).items()}
    arrays = _read_tensors(folder / TENSORS, header["sha256"], expected | shapes)
    state = {name.removeprefix("map."): arrays[name] for name in shapes}
    model.similarity_ = load_similarity(state, *how)
    model.key_, model.value_ = arrays["key"], arrays["value"]
    model.history_ = {name: arrays[name] for name in history}
    model.best_epoch_, model.n_features_in_ = header["best_epoch"], d
    if classes is not None:
        model.classes_ = classes
    if header["features"] is not None:
        model.feature_names_in_ = np.array(header["features"], dtype=object)
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
    dtype = np.dtype(record["dtype"])
    if dtype.kind not in "biufUO":
        raise ValueError(f"labels of type {dtype}")
    return np.array(record["labels"], dtype=dtype)
