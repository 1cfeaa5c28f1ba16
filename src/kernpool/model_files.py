"""Models on disk: a folder of one JSON file and some `.npy` arrays, checked before anything is believed. No pickle.

``model.json`` names the estimator, its parameters, and for every array its dtype, shape and SHA-256; a checksum of its
own covers the rest of it. A truncated or edited file is told from a whole one, and nothing in it can run code.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernpool.estimators import LocalLinearRegressor, NadarayaWatsonClassifier, NadarayaWatsonRegressor
from kernpool.files import (
    ModelFileError,
    check_model_folder,
    read_model_header,
    sha256,
    whole_folder,
    write_model_header,
)
from kernpool.frames import Encoding
from kernpool.kernels import get_kernel, registered_name

Model = NadarayaWatsonRegressor | LocalLinearRegressor | NadarayaWatsonClassifier

FORMAT, VERSION = "kernpool model", 2
ESTIMATORS: dict[str, type[Model]] = {
    "NadarayaWatsonRegressor": NadarayaWatsonRegressor,
    "LocalLinearRegressor": LocalLinearRegressor,
    "NadarayaWatsonClassifier": NadarayaWatsonClassifier,
}
_ARRAYS = (
    "key_", "value_", "key_weight_", "key_code_", "bandwidth_", "smoothing_", "relevance_", "classes_",
    "feature_names_in_",
)  # fmt: skip


def save_model(
    model: Model,
    folder: str | Path,
    *,
    features: Sequence[str] | None = None,
    target: str | None = None,
    force: bool = False,
) -> None:
    """Write a fitted estimator to a folder, whole or not at all.

    Parameters
    ----------
    model : NadarayaWatsonRegressor, LocalLinearRegressor or NadarayaWatsonClassifier
        Fitted. A kernel of one's own is saved by name and has to be registered before loading; a generator of random
        numbers as `random_state` is not saved, since a fitted model has no use for it.
    folder : str or Path
        Where; must not exist unless `force`.
    features : sequence of str, optional
        Names of the input columns, for `kernpool predict`; by default those that the model was fitted with, if any.
    target : str, optional
        Name of the output column, likewise.
    force : bool, default=False
        Replace an existing model folder (and nothing but a model folder).

    Raises
    ------
    FileExistsError
        If the folder exists and `force` is false, or it is not a model.
    sklearn.exceptions.NotFittedError
        If the model is not fitted.

    Examples
    --------
    >>> import tempfile
    >>> from kernpool import NadarayaWatsonRegressor, load_model, save_model
    >>> model = NadarayaWatsonRegressor(bandwidth=1.0).fit([[0.0], [1.0]], [1.0, 2.0])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_model(model, f"{folder}/model")
    ...     load_model(f"{folder}/model").predict([[0.5]])
    array([1.5])
    """
    from sklearn.utils.validation import check_is_fitted

    check_is_fitted(model)
    if type(model).__name__ not in ESTIMATORS:
        raise TypeError(f"model must be one of {', '.join(ESTIMATORS)}, got {type(model).__name__}")
    folder = Path(folder)
    check_model_folder(folder, force)
    parameters = model.get_params()
    parameters["kernel"] = registered_name(get_kernel(parameters["kernel"]))
    if hasattr(parameters["random_state"], "random_sample"):
        parameters["random_state"] = None
    with whole_folder(folder, force=force) as temporary:
        header: dict[str, Any] = {
            "format": FORMAT,
            "version": VERSION,
            "estimator": type(model).__name__,
            "parameters": {name: _plain(value) for name, value in parameters.items()},
            "encoding": None if model.encoding_ is None else model.encoding_.to_json(),
            "features": _feature_names(model, features),
            "target": target,
            "results": {
                name: getattr(model, name) for name in ("loo_error_", "loo_empty_windows_") if hasattr(model, name)
            },
            "arrays": {},
        }
        for name in _ARRAYS:
            array = getattr(model, name, None)
            if array is not None and array.size:
                header["arrays"][name] = _write_array(temporary / f"{name}.npy", array)
        write_model_header(temporary, header)


def load_model(folder: str | Path) -> Model:
    """Read a fitted estimator from a folder, after checking every file in it.

    Parameters
    ----------
    folder : str or Path
        What `save_model` wrote.

    Returns
    -------
    NadarayaWatsonRegressor, LocalLinearRegressor or NadarayaWatsonClassifier
        Fitted as it was saved, but for `bandwidth_search_`, the record of the search.

    Raises
    ------
    ModelFileError
        If the folder is no model, or a file is missing, truncated, edited or of another version.
    ValueError
        If its kernel is not registered.
    """
    folder = Path(folder)
    header = read_header(folder)
    arrays = {name: _read_array(folder / f"{name}.npy", record) for name, record in header["arrays"].items()}
    get_kernel(header["parameters"]["kernel"])
    model = ESTIMATORS[header["estimator"]](**header["parameters"])
    model.key_weight_ = None
    model.smoothing_ = np.zeros(0)
    encoding = header["encoding"]
    model.encoding_ = None if encoding is None else Encoding.from_json(encoding)
    for name, array in (arrays | header["results"]).items():
        setattr(model, name, array.astype(object) if name == "feature_names_in_" else array)
    d = model.key_.shape[1]
    if model.encoding_ is None:
        model.key_code_ = np.zeros((len(model.key_), 0), dtype=np.int64)
    model.n_features_in_ = d if model.encoding_ is None else len(model.encoding_.kinds)
    if len(model.key_) != len(model.value_) or model.bandwidth_.shape != (d,):
        raise ModelFileError(f"{folder}: arrays of the model do not fit together")
    return model


def _feature_names(model: Model, features: Sequence[str] | None) -> list[str]:
    unnamed = [str(i) for i in range(model.n_features_in_)]
    names = [str(name) for name in (getattr(model, "feature_names_in_", unnamed) if features is None else features)]
    if len(names) != model.n_features_in_:
        raise ValueError(f"features must name {model.n_features_in_} columns, got {names}")
    return names


def read_header(folder: Path) -> dict[str, Any]:
    """Read and check ``model.json``; parameters as in `load_model`."""
    header = read_model_header(folder, FORMAT, VERSION)
    if header.get("estimator") not in ESTIMATORS:
        raise ModelFileError(f"{folder / 'model.json'} is of no estimator of this kernpool; fit the model again")
    return header


def _plain(value: Any) -> Any:
    return value.tolist() if hasattr(value, "tolist") else value


def _write_array(path: Path, array: NDArray[Any]) -> dict[str, Any]:
    if array.dtype.kind == "O":
        array = array.astype(str)
    with path.open("wb") as file:
        np.save(file, np.ascontiguousarray(array), allow_pickle=False)
    return {"dtype": array.dtype.str, "shape": list(array.shape), "sha256": sha256(path)}


def _read_array(path: Path, record: dict[str, Any]) -> NDArray[Any]:
    remedy = "copy the whole folder again or fit the model again"
    if not path.is_file():
        raise ModelFileError(f"{path} is missing; {remedy}")
    if sha256(path) != record["sha256"]:  # before anything in it is interpreted
        raise ModelFileError(f"{path} was edited, truncated or damaged: it is not what model.json recorded; {remedy}")
    mapped = np.load(path, mmap_mode="r", allow_pickle=False)  # reads the header alone, allocates nothing
    if [mapped.dtype.str, list(mapped.shape)] != [record["dtype"], record["shape"]]:
        raise ModelFileError(f"{path} does not have the type and shape that model.json recorded; {remedy}")
    return np.array(mapped)
