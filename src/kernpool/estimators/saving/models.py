"""Models on disk: a folder of one JSON file and some `.npy` arrays, checked before anything is believed. No pickle.

A model on chunks has a reference to its data files in place of the rows: path, columns, and fingerprints of the files.

``model.json`` names the estimator, its parameters, and for every array its dtype, shape and SHA-256; a checksum of its
own covers the rest of it. A truncated or edited file is told from a whole one, and nothing in it can run code.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from kernpool.data.files import ModelFileError, check_model_folder, read_model_header, whole_folder, write_model_header
from kernpool.data.folders import read_array, write_array
from kernpool.data.frames import Encoding
from kernpool.estimators import LocalLinearRegressor, NadarayaWatsonClassifier, NadarayaWatsonRegressor
from kernpool.estimators.parameters import check_restored
from kernpool.estimators.saving.checks import ARRAYS, RESULTS, WRONG, check_entries, check_fit, edited
from kernpool.estimators.saving.references import check_saved, open_reference
from kernpool.kernels import get_kernel, registered_name

Model = NadarayaWatsonRegressor | LocalLinearRegressor | NadarayaWatsonClassifier

FORMAT, VERSION, VERSION_ON_CHUNKS = "kernpool model", 2, 3  # older readers know version 2, and can read it
ESTIMATORS: dict[str, type[Model]] = {
    "NadarayaWatsonRegressor": NadarayaWatsonRegressor,
    "LocalLinearRegressor": LocalLinearRegressor,
    "NadarayaWatsonClassifier": NadarayaWatsonClassifier,
}


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
        Fitted; files that it was fitted to in chunks are referred to, and have to stay. A kernel of one's own is saved
        by name and has to be registered before loading; a generator of random numbers as `random_state` is not saved,
        since a fitted model has no use for it.
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
    TypeError
        If it was fitted to chunks that lie in no file.
    ValueError
        If a parameter, changed after the fit, is out of its range.

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
    check_restored(model)
    reference = check_saved(vars(model)["reference_"]) if "chunks_" in vars(model) else None
    if reference is not None:
        features = reference["features"] if features is None else features
        target = reference["target"] if target is None and isinstance(reference["target"], str) else target
    parameters = model.get_params()
    parameters["kernel"] = registered_name(get_kernel(parameters["kernel"]))
    if hasattr(parameters["random_state"], "random_sample"):
        parameters["random_state"] = None
    with whole_folder(folder, force=force) as temporary:
        header: dict[str, Any] = {
            "format": FORMAT,
            "version": VERSION if reference is None else VERSION_ON_CHUNKS,
            "estimator": type(model).__name__,
            "parameters": {name: _plain(value) for name, value in parameters.items()},
            "encoding": None if model.encoding_ is None else model.encoding_.to_json(),
            "features": _feature_names(model, features),
            "target": target,
            "results": {name: getattr(model, name) for name in RESULTS if hasattr(model, name)},
            "arrays": {},
        }
        if reference is not None:
            header["chunks"] = reference
        for name in ARRAYS:
            array = getattr(model, name, None)
            if array is not None and array.size:
                header["arrays"][name] = write_array(temporary / f"{name}.npy", array)
        write_model_header(temporary, header)


def load_model(folder: str | Path, *, memory: int | None = None) -> Model:
    """Read a fitted estimator from a folder, after checking every file in it.

    Parameters
    ----------
    folder : str or Path
        What `save_model` wrote.
    memory : int, optional
        Bytes that pooling may take, if the model refers to its rows; see `open_chunks`.

    Returns
    -------
    NadarayaWatsonRegressor, LocalLinearRegressor or NadarayaWatsonClassifier
        Fitted as it was saved, but for `bandwidth_search_`, the record of the search.

    Raises
    ------
    ModelFileError
        If the folder is no model, or a file is missing, truncated, edited or of another version; or its kernel is not
        registered.
    TableError
        If the data files that it refers to are missing, or are not the ones that it was fitted to.
    """
    folder = Path(folder)
    header, source = read_header(folder), folder / "model.json"
    on_chunks = header["version"] == VERSION_ON_CHUNKS
    for name in ARRAYS:
        if name not in header["arrays"] and (folder / f"{name}.npy").exists():
            raise edited(source, f"it does not list {name}.npy, which is there")
    fitted: dict[str, Any] = {"smoothing_": np.zeros(0)} | ({} if on_chunks else {"key_weight_": None})
    fitted |= {name: read_array(folder / f"{name}.npy", record) for name, record in header["arrays"].items()}
    if on_chunks:
        fitted["reference_"] = header["chunks"]
        fitted["chunks_"] = open_reference(header["chunks"], source, memory)
    try:
        get_kernel(header["parameters"]["kernel"])
    except (TypeError, ValueError) as error:
        raise ModelFileError(f"{source}: {error}; a kernel of one's own has to be registered before loading") from None
    try:
        encoding = fitted["encoding_"] = None if header["encoding"] is None else Encoding.from_json(header["encoding"])
        model = ESTIMATORS[header["estimator"]](**header["parameters"])
        model._replace_fit(fitted | header["results"])
        check_restored(model)
    except WRONG as error:
        raise edited(source, str(error)) from None
    try:
        if "feature_names_in_" in fitted:
            model.feature_names_in_ = fitted["feature_names_in_"].astype(object)
        if encoding is None and not on_chunks:
            model.key_code_ = np.zeros((len(model.key_), 0), dtype=np.int64)
        check_fit(model, header["features"])
    except WRONG as error:
        raise ModelFileError(
            f"{folder}: parts of the model do not fit together: {error}; fit the model again"
        ) from None
    model.n_features_in_ = len(header["features"])
    return model


def _feature_names(model: Model, features: Sequence[str] | None) -> list[str]:
    unnamed = [str(i) for i in range(model.n_features_in_)]
    names = [str(name) for name in (getattr(model, "feature_names_in_", unnamed) if features is None else features)]
    if len(names) != model.n_features_in_:
        raise ValueError(f"features must name {model.n_features_in_} columns, got {names}")
    return names


def read_header(folder: Path) -> dict[str, Any]:
    """Read and check ``model.json``; parameters as in `load_model`."""
    header = read_model_header(folder, FORMAT, VERSION, VERSION_ON_CHUNKS)
    path, name = folder / "model.json", header.get("estimator")
    if not isinstance(name, str) or name not in ESTIMATORS:
        raise ModelFileError(f"{path} is of no estimator of this kernpool; fit the model again")
    check_entries(header, path, set(ESTIMATORS[name]().get_params()), header["version"] == VERSION_ON_CHUNKS)
    return header


def _plain(value: Any) -> Any:
    return value.tolist() if hasattr(value, "tolist") else value
