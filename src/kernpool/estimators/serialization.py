"""Contents of model files: conversion of fitted models to records, and validation of records on loading.

The checksum finds damage. A file that was edited and given a new checksum still has to pass these checks: every
entry has its type, and the entries and the arrays are consistent. A model on chunks stores, instead of its rows, a
reference to their files and a fingerprint by which a change is recognised.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from kernpool.core.local_fit import as_ridge
from kernpool.data import Encoding, as_bandwidth, as_key_weight, is_plain_label, plain_label
from kernpool.data.chunks.sources import reopen
from kernpool.data.circular import read_periodic, written_periodic
from kernpool.data.model_format import ModelFileError, Record, check_array, plain
from kernpool.estimators.fitted_model import coordinates_of
from kernpool.estimators.model import gap_of, source_of
from kernpool.estimators.parameter_validation import check_maps, check_restored
from kernpool.kernels import get_kernel, registered_name
from kernpool.pooling import ChunkPairs


def open_reference(reference: Any, memory: int | None = None) -> ChunkPairs:
    """Open the files of training rows named by an untrusted reference; raise if they are not those of the fit."""
    problem = _problem(reference)
    if problem:
        raise ValueError(f"the reference to its rows is invalid: {problem}")
    return ChunkPairs(reopen(reference, memory=memory), reference)


def _problem(reference: Any) -> str | None:
    """Return what is invalid in a reference to files of training rows; None if it is valid."""
    if not isinstance(reference, dict):
        return "there is no description"
    if reference.get("kind") not in ("npy", "parquet"):
        return f"kind {reference.get('kind')!r:.40} is not known"
    path = reference.get("path")
    if not isinstance(path, str) or "\0" in path or not Path(path).is_absolute():
        return "the path is not absolute"
    target, weight = reference.get("target"), reference.get("weight")
    if not (isinstance(target, str) or (target and _are_texts(target))):
        return "the target is no column"
    if not (weight is None or isinstance(weight, str)) or "weight" not in reference:
        return "the weight is no column"
    if not reference.get("features") or not _are_texts(reference["features"]):
        return "the features are no columns"
    files = reference.get("files")
    if not files or not isinstance(files, dict) or not all(map(_is_fingerprint, files.values())):
        return "there are no fingerprints"
    columns = [*reference["features"], *([target] if isinstance(target, str) else target)]
    if len(set(columns)) < len(columns) or weight in columns:
        return "a column has two roles"
    return None


def _is_fingerprint(record: Any) -> bool:
    wanted = {"bytes": int, "sha256 of pieces": str}
    return isinstance(record, dict) and {name: type(entry) for name, entry in record.items()} == wanted


def _are_texts(names: Any) -> bool:
    return isinstance(names, list) and all(isinstance(name, str) for name in names)


ENTRIES = {"parameters", "encoding", "features", "target", "results"}
ROWS = {"key_", "value_", "key_weight_", "key_code_", "key_group_", "key_place_", "search_rows_", "robust_weight_"}
NEEDED_RESULTS = {"ridge_", "prior_share_", "min_effective_rows_"}  # of the estimators that have them
WRITTEN: dict[str, Callable[[Any], Any]] = {"periodic": written_periodic}  # others by `plain`
READ: dict[str, Callable[[Any], Any]] = {"periodic": read_periodic}
NAMES = "feature_names_in_"
# Labels of columns that are not strings, for models that have them; beyond numbers and tuples, as text.
LABELS = "labels"


def record_of(model: Any, features: Sequence[str] | None, target: str | None) -> Record:
    """Convert a fitted kernel estimator to a `Record` of JSON and arrays; parameters as in `save_model`."""
    check_is_fitted(model)
    check_restored(model)
    reference = vars(model).get("reference_")
    if source_of(model) is not None:
        if reference is None:
            raise TypeError(
                "the rows of this model lie in no file, so that there is nothing to refer to; fit it to a Parquet or "
                ".npy file, or to arrays, which are saved with it"
            )
        features = reference["features"] if features is None else features
        target = reference["target"] if target is None and isinstance(reference["target"], str) else target
    parameters = {
        name: WRITTEN.get(name, plain)(value) for name, value in model.get_params().items() if name != "kernel"
    }
    results = {name: getattr(model, name) for name in model._results if getattr(model, name, None) is not None}
    results.setdefault("min_effective_rows_", 0.0)  # no floor
    labels = vars(model).get("column_labels_")
    header = {
        "parameters": parameters | {"kernel": registered_name(get_kernel(model.kernel))},
        "encoding": None if model.encoding_ is None else model.encoding_.to_json(),
        "features": _feature_names(model, features),
        "target": vars(model).get("target_name_") if target is None else target,
        "results": results,
    }
    header |= {LABELS: list(map(plain_label, labels))} if labels else {}
    held = {name: getattr(model, name, None) for name in (*model._arrays, NAMES)}
    arrays = {name: array for name, array in held.items() if array is not None and array.size}
    return Record(header if reference is None else header | {"chunks": reference}, arrays)


def restored(kind: type[Any], record: Record) -> Any:
    """Rebuild a kernel estimator from an untrusted record; raise if entries or arrays are invalid."""
    header, model = record.header, kind()
    on_chunks = "chunks" in header
    _check_entries(model, record, on_chunks)
    try:
        get_kernel(header["parameters"]["kernel"])
    except (TypeError, ValueError) as error:
        raise ModelFileError(
            f"{record.source}: {error}; a user-defined kernel has to be registered before loading"
        ) from None
    found = {name: record.arrays.get(name) for name in (*model._arrays, NAMES)}
    fitted: dict[str, Any] = {name: array for name, array in found.items() if array is not None}
    # An array of no entries is not stored.
    fitted = {"smoothing_": np.zeros(0), "key_group_": None} | fitted | header["results"]
    fitted["min_effective_rows_"] = fitted["min_effective_rows_"] or None
    if on_chunks:
        fitted |= {"reference_": header["chunks"], "source_": open_reference(header["chunks"], record.memory)}
    else:
        levels = header["encoding"] and header["encoding"].get("levels")
        no_codes = {} if levels else {"key_code_": np.zeros((len(fitted["key_"]), 0), dtype=np.int64)}
        fitted = {"key_weight_": None} | no_codes | fitted
    if NAMES in fitted:
        fitted[NAMES] = fitted[NAMES].astype(object)
    fitted["target_name_"] = header["target"] if isinstance(header["target"], str) else None
    fitted["encoding_"] = None if header["encoding"] is None else Encoding.from_json(header["encoding"])
    parameters = header["parameters"]
    written = {name: read(parameters[name]) for name, read in READ.items() if name in parameters}
    model.set_params(**parameters | written)
    model._replace_fit(fitted)
    check_restored(model)
    try:
        _check_fit(model, header["features"])
    except (TypeError, ValueError, IndexError, AttributeError) as error:
        raise ValueError(f"parts of the model do not fit together: {error}") from None
    model.n_features_in_ = len(header["features"])
    if LABELS in header:
        model.column_labels_ = list(map(plain_label, header[LABELS]))  # text, too, is no name then
    return model


def _feature_names(model: Any, features: Sequence[str] | None) -> list[str]:
    unnamed = [str(i) for i in range(model.n_features_in_)]
    names = [str(name) for name in (getattr(model, NAMES, unnamed) if features is None else features)]
    if len(names) != model.n_features_in_:
        raise ValueError(f"features must name {model.n_features_in_} columns, got {names}")
    return names


def _check_entries(model: Any, record: Record, on_chunks: bool) -> None:
    """Raise ValueError if the header of a model file has missing, unknown or wrongly typed entries."""
    header, arrays = record.header, set(record.arrays)
    needed = {"bandwidth_"} if on_chunks else {"bandwidth_", "key_", "value_"}
    known = {*model._arrays, NAMES} - (ROWS if on_chunks else set())
    if (
        not all(isinstance(header.get(name), dict) for name in ("parameters", "results"))
        or set(header) - {LABELS} != (ENTRIES | {"chunks"} if on_chunks else ENTRIES)
        or set(header["parameters"]) != set(model.get_params())
        or not needed <= arrays <= known
        or not set(model._results) & NEEDED_RESULTS <= set(header["results"]) <= set(model._results)
    ):
        raise ValueError("it does not have the entries of a model")
    unlisted = [name for name in known - arrays if record.source.with_name(f"{name}.npy").exists()]
    if unlisted:
        raise ValueError(f"it does not list {unlisted[0]}.npy, which is there")
    features, target = header["features"], header["target"]
    if not (features and isinstance(features, list) and all(isinstance(name, str) for name in features)):
        raise ValueError("features is no list of names")
    if not (target is None or isinstance(target, str)):
        raise ValueError(f"target {_short(target)} is no name")
    labels = header.get(LABELS, features)
    if not (isinstance(labels, list) and len(labels) == len(features) and all(map(is_plain_label, labels))):
        raise ValueError("labels does not have one label per feature")
    for name, value in header["results"].items():
        if type(value) is not model._results[name] or (type(value) is int and not 0 <= value < 2**63):
            raise ValueError(f"{name} cannot be {_short(value)}")


def _check_fit(model: Any, features: Sequence[str]) -> None:
    """Raise if the fitted attributes of a loaded model are inconsistent with each other."""
    parts, encoding = vars(model), model.encoding_
    columns = d = len(model.bandwidth_)
    if encoding is not None:
        columns, d = len(encoding.kinds), max(1, len(encoding.numeric))  # levels alone have one column of zeros
    as_bandwidth(check_array("bandwidth_", model.bandwidth_, "f", (d,)), d)
    if len(features) != columns:
        raise ValueError(f"features names {len(features)} columns of {columns}")
    as_ridge(parts.get("ridge_", 0.0))
    least = parts["min_effective_rows_"]
    if not (least is None or ("source_" not in parts and 1.0 <= least < np.inf)):
        raise ValueError(f"min_effective_rows_ cannot be {least}")
    neighbors, widths = parts.get("n_neighbors_"), parts.get("widths", "fixed")
    if not (neighbors is None if widths == "fixed" else neighbors is not None and neighbors >= 1):
        raise ValueError(f"n_neighbors_ cannot be {neighbors} with widths={widths!r}")
    if "relevance_" in parts:
        check_array("relevance_", model.relevance_, "f", (columns,))
    names = parts.get("feature_names_in_")
    if names is not None:
        check_array("feature_names_in_", names, "O", (columns,))
    named = None if encoding is None or encoding.names is None else encoding.names
    if encoding is not None and (None if names is None else tuple(names)) != named:
        raise ValueError("feature_names_in_ is not what the encoding names")
    _check_levels(model)
    if "key_range_" in parts and np.isnan(check_array("key_range_", model.key_range_, "f", (2, d))).any():
        raise ValueError("key_range_ is not a range")
    robust = parts.get("robust_weight_")
    if (robust is None) != (not parts.get("robust", False)):
        raise ValueError("robust and robust_weight_ do not go together")
    if gap_of(model) and parts.get("key_place_") is None:
        raise ValueError("there is a gap, and no order of the rows")
    if "source_" in parts:
        levels = encoding is not None and not encoding.numbers_alone
        if levels or "classes_" in parts or hasattr(model, "predict_proba"):
            raise ValueError("a model fitted to chunks has no categorical columns and no classes")
        if (model.source_.kinds or ("numeric",) * columns) != (encoding or Encoding.of_numbers(None, columns)).kinds:
            raise ValueError("the encoding does not say what the columns of the rows in chunks are")
        return
    key, value, weight = model.key_, model.value_, model.key_weight_
    n = len(check_array("key_", key, "f", (len(key), d)))
    check_array("value_", value, "f", (n, *value.shape[1:2]))
    if weight is not None:
        as_key_weight(check_array("key_weight_", weight, "f", (n,)), (n,))
    group = model.key_group_
    if group is not None and not 0 <= check_array("key_group_", group, "i", (n,)).min() < group.max():
        raise ValueError("key_group_ does not hold numbers of two groups or more")
    place = parts.get("key_place_")
    if place is not None and check_array("key_place_", place, "i", (n,)).min() < 0:
        raise ValueError("key_place_ does not hold places in an order")
    searched = parts.get("search_rows_")
    if searched is not None:
        check_array("search_rows_", searched, "i", (len(searched),))
        if not (searched[0] >= 0 and searched[-1] < n and np.all(np.diff(searched) > 0)):
            raise ValueError("search_rows_ does not hold numbers of rows in ascending order")
    if robust is not None and not 0.0 <= check_array("robust_weight_", robust, "f", (n,)).min() <= robust.max() <= 1.0:
        raise ValueError("robust_weight_ must lie in [0, 1]")
    if not (np.all(np.isfinite(key)) and np.all(np.isfinite(value))):
        raise ValueError("key_ and value_ are not finite")
    coordinates_of(model)
    if hasattr(model, "predict_proba"):
        check_array("classes_", parts.get("classes_", np.zeros(0)), "biufUS", value.shape[1:])
        if not 0.0 <= parts.get("prior_share_", -1.0) < 1.0:
            raise ValueError("prior_share_ is missing, or not in [0, 1)")
        if "recalibration_" in parts:
            check_maps(model.recalibration_, value.shape[1])
    elif "classes_" in parts:
        raise ValueError("there are classes_ of a regressor")


def _check_levels(model: Any) -> None:
    encoding, smoothing = model.encoding_, model.smoothing_
    k = 0 if encoding is None else len(encoding.levels)
    check_array("smoothing_", smoothing, "f", (k,))
    if not k:
        return
    largest = model._categories_of(encoding).largest
    if not np.all((smoothing >= 0.0) & (smoothing <= largest * (1 + 1e-12))):
        raise ValueError(f"smoothing_ must lie in [0, {largest.tolist()}]")
    code = check_array("key_code_", model.key_code_, "i", (len(model.key_), k))
    if not np.all((code >= 0) & (code < [len(levels) for levels in encoding.levels])):
        raise ValueError("key_code_ holds category codes out of range")


def _short(value: Any) -> str:
    text = repr(value) if not isinstance(value, int) or value.bit_length() < 100 else "a giant number"
    return text if len(text) <= 40 else f"{text[:40]}..."
