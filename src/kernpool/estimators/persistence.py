"""Saving and loading of fitted models of all kinds; `kernpool.data.model_format` has the file format."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from kernpool.data.model_format import read_record, write_record
from kernpool.estimators.classifier import NadarayaWatsonClassifier
from kernpool.estimators.regressors import LocalLinearRegressor, NadarayaWatsonRegressor
from kernpool.estimators.stacking.estimators import KernelStackingClassifier, KernelStackingRegressor
from kernpool.execution.error_messages import explain_calls
from kernpool.pooling.streaming import RunningPool

MODELS = (
    NadarayaWatsonRegressor,
    LocalLinearRegressor,
    NadarayaWatsonClassifier,
    KernelStackingRegressor,
    KernelStackingClassifier,
    RunningPool,
)


@explain_calls
def save_model(
    model: Any,
    folder: str | Path,
    *,
    features: Sequence[str] | None = None,
    target: str | None = None,
    force: bool = False,
) -> None:
    """Save a model to a folder, atomically, as JSON and arrays without pickle.

    Parameters
    ----------
    model : estimator or RunningPool
        Fitted; files that it was fitted to in chunks are referred to, and have to stay. A user-defined kernel is saved
        by name and has to be registered before loading; a generator of random numbers as `random_state` is not saved,
        since a fitted model has no use for it.
    folder : str or Path
        Where; must not exist unless `force`.
    features : sequence of str, optional
        Names of the input columns, for `kernpool predict`; by default those that the model was fitted with, if any.
    target : str, optional
        Name of the output column, likewise.
    force : bool, default=False
        Replace the model in an existing model folder. Only the files that its header lists are replaced, and pass their
        permissions on; all other files in the folder stay as they are.

    Raises
    ------
    FileExistsError
        If the folder exists and `force` is false; if it holds something else than a model; or if a file that would be
        replaced holds rows that `model` refers to, or is no part of the old model.
    sklearn.exceptions.NotFittedError
        If the model is not fitted.
    TypeError
        If it was fitted to chunks that lie in no file; if it cannot be saved; or if columns are named for a model that
        `kernpool predict` does not take.
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
    if type(model) not in MODELS:
        names = ", ".join(kind.__name__ for kind in MODELS)
        remedy = "; save what its to_local() returns" if hasattr(model, "to_local") else ""
        raise TypeError(f"model must be one of {names}, got {type(model).__name__}{remedy}")
    columns = {name: given for name, given in (("features", features), ("target", target)) if given is not None}
    if columns and type(model) not in MODELS[:3]:
        raise TypeError(
            f"{' and '.join(columns)} must be None for a {type(model).__name__}, which `kernpool predict` cannot use"
        )
    write_record(folder, model, model._to_record(**columns), force=force)


@explain_calls
def load_model(folder: str | Path, *, memory: int | None = None) -> Any:
    """Load a model from a folder, after validating every file in it.

    Parameters
    ----------
    folder : str or Path
        What `save_model` wrote.
    memory : int, optional
        Bytes that pooling may take, if the model refers to its rows; see `open_chunks`.

    Returns
    -------
    estimator or RunningPool
        Fitted as it was saved, but for `bandwidth_search_`, the record of the search.

    Raises
    ------
    ModelFileError
        If the folder is no model, or a file is missing, truncated, edited or of another version; or its kernel is not
        registered.
    TableError
        If the data files that it refers to are missing, or are not the ones that it was fitted to.
    ImportError
        If it is a learned model, and the extra ``torch`` is not installed.
    """
    return read_record(folder, MODELS, memory=memory)
