"""What a model file may say: every entry is of its kind, and the entries and the arrays fit together.

The checksum tells damage. Whoever edits a file and makes a new checksum gets no further than this.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernpool.data.checks import as_bandwidth, as_key_weight
from kernpool.data.files import ModelFileError

ROWS = ("key_", "value_", "key_weight_", "key_code_")
ARRAYS = (*ROWS, "bandwidth_", "smoothing_", "relevance_", "classes_", "feature_names_in_")
RESULTS = {"loo_error_": float, "loo_empty_windows_": int, "bandwidth_note_": str}
ENTRIES = {"format", "version", "estimator", "parameters", "encoding", "features", "target", "results", "arrays"}
# What reading entries of a wrong kind may raise.
WRONG = (KeyError, IndexError, TypeError, ValueError, AttributeError, OverflowError, RecursionError)


def edited(source: Path, problem: str) -> ModelFileError:
    """Return the error of a file that does not say what it should."""
    return ModelFileError(f"{source} was edited: {problem}; fit the model again")


def check_entries(header: Mapping[str, Any], source: Path, parameters: set[str], on_chunks: bool) -> None:
    """Refuse a header whose entries are not those of a model, or not of their types.

    Parameters
    ----------
    header : mapping
        From ``model.json``; not believed.
    source : Path
        Of ``model.json``, for messages.
    parameters : set of str
        Names of those of the estimator.
    on_chunks : bool
        Whether the model refers to its rows.

    Raises
    ------
    ModelFileError
        If an entry is missing, new, or of another type.
    """
    parts = [header.get(name) for name in ("parameters", "arrays", "results")]
    needed = {"bandwidth_"} if on_chunks else {"bandwidth_", "key_", "value_"}
    known = set(ARRAYS) - (set(ROWS) if on_chunks else set())
    if (
        not all(isinstance(part, dict) for part in parts)
        or set(header) != (ENTRIES | {"chunks"} if on_chunks else ENTRIES)
        or set(header["parameters"]) != parameters
        or not needed <= set(header["arrays"]) <= known
        or not set(header["results"]) <= set(RESULTS)
    ):
        raise edited(source, "it does not have the entries of a model")
    features, target = header["features"], header["target"]
    if not (features and isinstance(features, list) and all(isinstance(name, str) for name in features)):
        raise edited(source, "features is no list of names")
    if not (target is None or isinstance(target, str)):
        raise edited(source, f"target {_short(target)} is no name")
    for name, value in header["results"].items():
        if type(value) is not RESULTS[name] or (type(value) is int and not 0 <= value < 2**63):
            raise edited(source, f"{name} cannot be {_short(value)}")


def check_fit(model: Any, features: Sequence[str]) -> None:
    """Raise if the parts of a fitted estimator do not fit together.

    Parameters
    ----------
    model : KernelSmoother
        As it was read.
    features : sequence of str
        Names of the columns.

    Raises
    ------
    ValueError
        If they do not.
    """
    parts, encoding = vars(model), model.encoding_
    columns = d = len(model.bandwidth_)
    if encoding is not None:
        columns, d = len(encoding.kinds), max(1, len(encoding.numeric))  # levels alone have one column of zeros
    as_bandwidth(_of_kind("bandwidth_", model.bandwidth_, "f", (d,)), d)
    if len(features) != columns:
        raise ValueError(f"features names {len(features)} columns of {columns}")
    if "relevance_" in parts:
        _of_kind("relevance_", model.relevance_, "f", (columns,))
    names = parts.get("feature_names_in_")
    if names is not None:
        _of_kind("feature_names_in_", names, "O", (columns,))
    if encoding is not None and (None if names is None else tuple(names)) != encoding.names:
        raise ValueError("feature_names_in_ is not what the encoding names")
    _check_levels(model)
    if "chunks_" in parts:
        if encoding is not None or "classes_" in parts or hasattr(model, "predict_proba"):
            raise ValueError("rows in chunks are numbers, and so are their values")
        return
    key, value, weight = model.key_, model.value_, model.key_weight_
    n = len(_of_kind("key_", key, "f", (len(key), d)))
    _of_kind("value_", value, "f", (n, *value.shape[1:2]))
    if weight is not None:
        as_key_weight(_of_kind("key_weight_", weight, "f", (n,)), (n,))
    if not (np.all(np.isfinite(key)) and np.all(np.isfinite(value))):
        raise ValueError("key_ and value_ are not finite")
    if hasattr(model, "predict_proba"):
        _of_kind("classes_", parts.get("classes_", np.zeros(0)), "biufUS", value.shape[1:])
    elif "classes_" in parts:
        raise ValueError("there are classes_ of a regressor")


def _check_levels(model: Any) -> None:
    encoding, smoothing = model.encoding_, model.smoothing_
    k = 0 if encoding is None else len(encoding.levels)
    _of_kind("smoothing_", smoothing, "f", (k,))
    if not k:
        return
    largest = model._categories_of(encoding).largest
    if not np.all((smoothing >= 0.0) & (smoothing <= largest * (1 + 1e-12))):
        raise ValueError(f"smoothing_ must lie in [0, {largest.tolist()}]")
    code = _of_kind("key_code_", model.key_code_, "i", (len(model.key_), k))
    if not np.all((code >= 0) & (code < [len(levels) for levels in encoding.levels])):
        raise ValueError("key_code_ holds numbers of levels that there are not")


def _of_kind(name: str, array: NDArray[Any], kinds: str, shape: tuple[int, ...]) -> NDArray[Any]:
    if array.dtype.kind not in kinds or array.shape != shape:
        raise ValueError(f"{name} holds {array.dtype} in shape {array.shape}, where {shape} is expected")
    return array


def _short(value: Any) -> str:
    text = repr(value) if not isinstance(value, int) or value.bit_length() < 100 else "a giant number"
    return text if len(text) <= 40 else f"{text[:40]}..."
