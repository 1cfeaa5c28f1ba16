"""Saving and loading of fitted models of all kinds in one file, by skops: JSON and arrays in a zip archive, no pickle.

The member ``kernpool.json`` has the version of the format, the names of the columns, and the paths of the data files
that a model refers to instead of holding its rows.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Sequence
from dataclasses import replace
from importlib import import_module
from importlib.util import find_spec
from io import BytesIO
from os import PathLike
from pathlib import Path
from typing import Any
from zipfile import BadZipFile, ZipFile

import numpy as np
from sklearn.utils.validation import check_is_fitted

from kernpool.bandwidth import BandwidthSearch
from kernpool.core import Exclusion, Reweighting
from kernpool.data import Encoding, TableError, plain_label, refuse_existing, whole_file
from kernpool.data.chunks.sources import reopen
from kernpool.data.column_options import OPTIONS, PooledColumn
from kernpool.data.columns import all_text
from kernpool.estimators.classifier import NadarayaWatsonClassifier
from kernpool.estimators.kernel_smoother import KernelSmoother
from kernpool.estimators.model import BUILT, FittedModel, as_fitted, check_parameters, holder_of
from kernpool.estimators.regressors import LocalLinearRegressor, LocalPolynomialRegressor, NadarayaWatsonRegressor
from kernpool.estimators.semiparametric.local_likelihood import LocalLikelihoodRegressor
from kernpool.estimators.semiparametric.local_logistic import LocalLogisticClassifier
from kernpool.estimators.semiparametric.partially_linear import PartiallyLinearRegressor
from kernpool.estimators.semiparametric.varying_coefficients import VaryingCoefficientRegressor
from kernpool.estimators.stacking.estimators import KernelStackingClassifier, KernelStackingRegressor
from kernpool.estimators.stacking.kernel_ridge import KernelRidge, Spectrum
from kernpool.estimators.stacking.ridge_kernels import AnovaKernel, ColumnKernel, LaplaceKernel
from kernpool.estimators.stacking.stack import FittedStack, ScoreCalibration
from kernpool.estimators.stacking.standard_columns import StandardColumns
from kernpool.execution import abbreviate
from kernpool.pooling import ChunkPairs, Floor, Nearest

HEADER, VERSION = "kernpool.json", 2  # of a robust fit version 1 has weights under another name
SMOOTHERS = (NadarayaWatsonRegressor, LocalLinearRegressor, LocalPolynomialRegressor, NadarayaWatsonClassifier)
OF_SMOOTHERS = (
    PartiallyLinearRegressor, VaryingCoefficientRegressor, LocalLikelihoodRegressor, LocalLogisticClassifier,
)  # fmt: skip
MODELS = (*SMOOTHERS, *OF_SMOOTHERS, KernelStackingRegressor, KernelStackingClassifier)
Model = (
    KernelSmoother
    | PartiallyLinearRegressor
    | VaryingCoefficientRegressor
    | LocalLikelihoodRegressor
    | LocalLogisticClassifier
    | KernelStackingRegressor
    | KernelStackingClassifier
)
PARTS = (
    BandwidthSearch, Encoding, PooledColumn, *OPTIONS, ScoreCalibration,
    KernelRidge, LaplaceKernel, AnovaKernel, ColumnKernel, Spectrum, StandardColumns, FittedStack, Floor, Nearest,
    Exclusion, Reweighting,
)  # fmt: skip
TRUSTED = [f"{kind.__module__}.{kind.__qualname__}" for kind in (*MODELS, *PARTS)]
REMEDY = "copy the file again, or fit the model again and save it"


class ModelFileError(ValueError):
    """Error for a saved model that is truncated, damaged, of another version, or holds objects that are not trusted."""


def save_model(
    model: Model,
    path: str | Path,
    *,
    features: Sequence[str] | None = None,
    target: str | None = None,
    force: bool = False,
) -> None:
    """Save a model to a file, atomically, by skops: JSON and arrays without pickle.

    Parameters
    ----------
    model : estimator
        Fitted; files that it was fitted to in chunks are referred to, and have to stay. A user-defined kernel is saved
        by name and has to be registered before loading.
    path : str or Path
        The file, such as ``model.skops``; must not exist unless `force`.
    features : sequence of str, optional
        Names of the input columns, for `kernpool predict`; by default those that the model was fitted with, if any.
    target : str, optional
        Name of the output column, likewise.
    force : bool, default=False
        Replace the model in an existing model file, which passes its permissions on.

    Raises
    ------
    FileExistsError
        If the file exists and `force` is false, or it is no model.
    sklearn.exceptions.NotFittedError
        If the model is not fitted.
    TypeError
        If it was fitted to chunks that lie in no file, or cannot be saved.
    ValueError
        If a parameter, changed after the fit, is out of its range, or the kernel is not registered.

    Examples
    --------
    >>> import tempfile
    >>> from kernpool import NadarayaWatsonRegressor, load_model, save_model
    >>> model = NadarayaWatsonRegressor(bandwidth=1.0).fit([[0.0], [1.0]], [1.0, 2.0])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_model(model, f"{folder}/model.skops")
    ...     load_model(f"{folder}/model.skops").predict([[0.5]])
    array([1.5])
    """
    if type(model) not in MODELS:
        names = ", ".join(kind.__name__ for kind in MODELS)
        raise TypeError(f"model must be one of {names}, got {type(model).__name__}")
    check_is_fitted(model)
    header = {"version": VERSION} | _columns_of(holder_of(model), features, target)
    content = _content_of(model)
    check_model_file(Path(path), force)
    with whole_file(Path(path), force=force) as temporary:
        with ZipFile(content, "a") as archive:
            archive.writestr(HEADER, json.dumps(header))
        temporary.write_bytes(content.getbuffer())


def _content_of(model: Model) -> BytesIO:
    """Return a fitted model as skops writes it, without rows that lie in files; raise if it could not be loaded."""
    from skops.io import dumps  # which imports pandas and torch where they are installed

    content = dumps(_without_built(model))
    unknown = _untrusted(content)
    if unknown is not None:
        raise TypeError(
            f"this model holds a {unknown}, which is not saved; pass numbers, text and columns of them as "
            "parameters, and kernels by their names after register_kernel"
        )
    return BytesIO(content)


def _untrusted(content: bytes) -> str | None:
    """Return a type that a file of skops holds and that is no part of a model of kernpool."""
    from skops.io import get_untrusted_types  # as above

    return min(set(get_untrusted_types(data=content)) - set(TRUSTED), default=None)


def _without_built(model: Model) -> Any:
    """Return a copy of a model without what is made again when it is loaded, and without rows that lie in files."""
    if isinstance(model, KernelStackingRegressor | KernelStackingClassifier):
        stack = copy.copy(model)
        stack._stack = replace(model._stack, local=_without_built(model._stack.local))
        stack.members_ = stack._stack.members
        return stack
    saved = as_fitted(model)
    for part in ("curve_", "places_"):  # a model inside of the model
        if part in vars(saved):
            setattr(saved, part, _without_built(getattr(saved, part)))
    if isinstance(saved, LocalLogisticClassifier):
        saved.fits_ = list(map(_without_built, saved.fits_))
    for name in ("source_", "_rank_notes", "_given", *BUILT):
        saved.__dict__.pop(name, None)
    saved.index_ = _plain_index(saved.index_)
    if saved.output_labels_ is not None:
        saved.output_labels_ = list(map(plain_label, saved.output_labels_))
    if saved.encoding_.labels is not None:
        saved.encoding_ = replace(saved.encoding_, labels=tuple(map(plain_label, saved.encoding_.labels)))
    return saved


def _plain_index(index: Any) -> Any:
    """Return the labels of rows as files hold them: an array, or a list if they are of several types."""
    if index is None or isinstance(index, type):
        return index and "polars"
    cells = np.asarray(index)
    if cells.dtype.kind != "O":
        return cells
    labels = list(map(plain_label, cells))
    return np.array(labels) if all_text(labels) else labels


def _read_index(labels: Any) -> Any:
    """Return the labels of rows that `_plain_index` has made plain; None if their library is not installed."""
    library, kind = ("polars", "DataFrame") if isinstance(labels, str) else ("pandas", "Index")
    if labels is None or find_spec(library) is None:
        return None
    found = getattr(import_module(library), kind)
    return found if isinstance(labels, str) else found(labels)


def _columns_of(model: FittedModel, features: Sequence[str] | None, target: str | None) -> dict[str, Any]:
    """Return what the header says of columns and data files."""
    check_parameters(model)
    reference = getattr(model, "reference_", None)
    if model.source_ is not None:
        if reference is None:
            raise TypeError(
                "the rows of this model lie in no file, so that there is nothing to refer to; fit it to a Parquet or "
                ".npy file, or to arrays, which are saved with it"
            )
        features = reference["features"] if features is None else features
        target = reference["target"] if target is None and isinstance(reference["target"], str) else target
    unnamed = [str(i) for i in range(model.n_features_in_)]
    names = [str(name) for name in (getattr(model, "feature_names_in_", unnamed) if features is None else features)]
    if len(names) != model.n_features_in_:
        raise ValueError(f"features must name {model.n_features_in_} columns, got {names}")
    target = getattr(model, "target_name_", None) if target is None else target
    path = None if reference is None else Path(reference["path"])
    files = [] if path is None or reference is None else [path / name for name in reference["files"]]
    data = files if path is not None and path.is_dir() else [] if path is None else [path]
    return {"features": names, "target": target, "data": list(map(str, data))}


def load_model(path: str | Path, *, memory: int | None = None) -> Any:
    """Load a model from a file; no code that the file names is run, and objects other than kernpool's are refused.

    Parameters
    ----------
    path : str or Path
        What `save_model` wrote.
    memory : int, optional
        Bytes that pooling may take, if the model refers to its rows; see `open_chunks`.

    Returns
    -------
    estimator
        Fitted as it was saved.

    Raises
    ------
    ModelFileError
        If the file is no model, truncated, damaged, or of another version, or holds an object that is not trusted; or
        its kernel is not registered.
    TableError
        If the data files that it refers to are missing, or are not the ones that it was fitted to.
    """
    from skops.io import loads  # as above

    read_header(path)
    try:
        content = Path(path).read_bytes()
        unknown = _untrusted(content)
        if unknown is not None:
            raise ModelFileError(f"{path} holds a {unknown:.80}, which is no part of a model; {REMEDY}")
        model = loads(content, trusted=TRUSTED)
        if type(model) not in MODELS:
            raise ModelFileError(f"{path} holds a {type(model).__name__}, and no model; {REMEDY}")
        _complete(model, memory)
    except (ModelFileError, TableError):
        raise
    # What reading entries of a wrong kind may raise.
    except (BadZipFile, LookupError, TypeError, ValueError, AttributeError, OverflowError, RecursionError) as error:
        remedy = "" if "unknown kernel" in str(error) else f"; {REMEDY}"
        raise ModelFileError(f"{path} cannot be read: {error}{remedy}") from None
    return model


def _complete(model: Model, memory: int | None) -> None:
    """Check the parameters of a loaded model, and open the data files that it refers to."""
    local = holder_of(model)
    for part in (getattr(local, "curve_", None), getattr(local, "places_", None), *getattr(local, "fits_", ())):
        if part is not None:
            _complete(part, memory)
    local.index_ = _read_index(local.index_)
    check_parameters(local)
    reference = getattr(local, "reference_", None)
    if reference is not None:
        local.__dict__ |= {"source_": ChunkPairs(reopen(reference, memory=memory), reference)}
    local._freeze()


def read_header(path: str | Path) -> dict[str, Any]:
    """Return version, columns and data files of a saved model; raise ModelFileError for a file that is no model."""
    if not isinstance(path, str | PathLike):
        raise TypeError(f"path must be the path of a saved model, got {abbreviate(path)}")
    if not Path(path).is_file():
        raise ModelFileError(f"{path} is no file; kernpool.save_model writes one")
    try:
        with ZipFile(path) as archive:
            header: dict[str, Any] = json.loads(archive.read(HEADER))
            version = header["version"]
    except (BadZipFile, LookupError, TypeError, ValueError, RecursionError):
        raise ModelFileError(f"{path} is no kernpool model, or truncated or damaged; {REMEDY}") from None
    if type(version) is not int or version != VERSION:
        raise ModelFileError(
            f"{path} is of format version {version!r:.40}, this kernpool reads version {VERSION}; "
            "use the kernpool that wrote it, or fit the model again and save it with this one"
        )
    return header


def referred_files(path: Path) -> list[Path]:
    """Return the data files that a saved model refers to; none for other files."""
    try:
        return [Path(name) for name in read_header(path).get("data", [])]
    except ModelFileError:
        return []


def check_model_file(path: Path, force: bool) -> None:
    """Raise FileExistsError unless a model may be written here: nothing, or with `force` a model, is there."""
    refuse_existing(path, force)
    if path.exists():
        try:
            read_header(path)
        except ModelFileError as error:
            raise FileExistsError(f"{error}; it is not replaced by a model, choose another name") from None
