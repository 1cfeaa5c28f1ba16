"""Model files of learned estimators: conversion to records, and validation of records on loading.

A file has parameters as JSON, and the learned map, rows, classes and losses as arrays. Which arrays are required, and
of what shape, follows from the parameters, the encoding and the rows. A fitted model is on the processor, wherever it
was trained, so a file can be loaded where its `device` does not exist.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from kernpool.data.array_validation import as_key_weight
from kernpool.data.columns import is_plain_label, plain_label
from kernpool.data.encoding import Encoding
from kernpool.data.model_format import Record, check_array, plain
from kernpool.estimators.learned.columns import categories_of, check_codes, with_indicators
from kernpool.estimators.learned.parameters import check_parameters
from kernpool.estimators.training_rows import keep_labels
from kernpool.execution.threads import resolve_n_jobs

ENTRIES = {"parameters", "encoding", "features", "best_epoch", "stop_reason", "prior_share", "labels"}
REASONS = ("patience", "max_epochs", "divergence")
LOSSES = ("training_loss", "validation_loss")


def record_of(model: Any) -> Record:
    """Convert a fitted learned model to a `Record` of JSON and arrays, for saving."""
    from kernpool.torch.learning.training import similarity_state

    check_is_fitted(model)
    arrays = {f"map.{name}": array for name, array in similarity_state(model.similarity_).items()}
    arrays |= {"key_": model.key_, "value_": model.value_, "validation_rows_": model.validation_rows_, **model.history_}
    arrays |= {"classes_": model.classes_} if hasattr(model, "classes_") else {}
    arrays |= {} if model.key_weight_ is None else {"key_weight_": model.key_weight_}
    arrays |= {"key_code_": model.key_code_} if model.key_code_.size else {}
    device, labels = model.device, vars(model).get("column_labels_")
    parameters = {name: plain(value) for name, value in model.get_params().items()}
    header = {
        "parameters": parameters | {"device": None if device is None else str(device)},
        "features": vars(model).get("feature_names_in_", np.array(None)).tolist(),
        "encoding": None if model.encoding_ is None else model.encoding_.to_json(),
        "best_epoch": model.best_epoch_,
        "stop_reason": model.stop_reason_,
        "prior_share": vars(model).get("prior_share_"),
        "labels": labels and list(map(plain_label, labels)),
    }
    return Record(header, arrays)


def restored(kind: type[Any], record: Record) -> Any:
    """Rebuild a learned model from an untrusted record; raise if entries or arrays are invalid."""
    from kernpool.torch.learning.encoders import map_shapes
    from kernpool.torch.learning.training import load_similarity

    header, arrays, classifies = record.header, record.arrays, hasattr(kind, "predict_proba")
    if set(header) != ENTRIES:
        raise ValueError("it does not have the entries of a learned model")
    parameters = header["parameters"] | {"hidden_sizes": tuple(header["parameters"]["hidden_sizes"])}
    (n, d), outputs, epochs = arrays["key_"].shape, arrays["value_"].shape[1:2], len(arrays[LOSSES[0]]) - 1
    model = kind(**parameters)
    encoding = None if header["encoding"] is None else Encoding.from_json(header["encoding"])
    categories, fitted = categories_of(encoding), d if encoding is None else len(encoding.kinds)
    code = arrays.get("key_code_", np.zeros((n, 0), dtype=np.int64))
    check_array("key_code_", code, "i", (n, len(categories)))
    check_codes(code, categories)
    columns = with_indicators(arrays["key_"][:1], code[:1], categories).shape[1]
    check_parameters(model.get_params(), columns)
    resolve_n_jobs(model.n_jobs)
    check_random_state(model.random_state)
    how = (model.similarity, columns, model.output_size, model.hidden_sizes)
    maps = {f"map.{name}": shape for name, shape in map_shapes(*how).items()}
    shapes = {"key_": (n, d), "value_": (n, *outputs), **dict.fromkeys(LOSSES, (epochs + 1,)), **maps}
    optional = {name: (n,) for name in ("key_weight_",) if name in arrays}
    names, labels, best, share = (header[name] for name in ("features", "labels", "best_epoch", "prior_share"))
    others = {"validation_rows_", *(("classes_",) if classifies else ()), *(("key_code_",) if len(categories) else ())}
    if set(arrays) != {*shapes, *optional, *others}:
        raise ValueError("arrays and parameters do not fit together")
    fits = (
        set(parameters) == set(model.get_params()),
        d == (fitted if encoding is None else max(1, len(encoding.numeric))),
        model.device is None or isinstance(model.device, str),
        isinstance(model.warm_start_bandwidth, bool),
        n > 0 and 0 not in outputs,
        all(arrays[name].dtype == np.float64 for name in (*shapes, *optional)),
        type(share) is float and 0.0 <= share < 1.0 if classifies else share is None,
        *(
            some is None or (isinstance(some, list) and len(some) == fitted and all(map(is_plain_label, some)))
            for some in (names, labels)
        ),
        encoding is None or (None if names is None else tuple(names)) == (encoding.names and encoding.names[:fitted]),
        type(best) is int and 0 <= best <= epochs,
        header["stop_reason"] in REASONS,
    )
    if not all(fits):
        raise ValueError("arrays, names, parameters and epochs do not fit together")
    for name, shape in (shapes | optional).items():
        if not np.isfinite(check_array(name, arrays[name], "f", shape)).all() and name not in LOSSES:
            raise ValueError(f"{name} holds NaN or infinity")
    held_out = check_array("validation_rows_", arrays["validation_rows_"], "i", arrays["validation_rows_"].shape[:1])
    if not (len(held_out) and held_out[0] >= 0 and held_out[-1] < n and np.all(np.diff(held_out) > 0)):
        raise ValueError("validation_rows_ does not hold numbers of rows in ascending order")
    weight = arrays.get("key_weight_")
    model.key_weight_ = None if weight is None else as_key_weight(weight, (n,))
    model.similarity_ = load_similarity({name.removeprefix("map."): arrays[name] for name in maps}, *how)
    model.key_, model.key_code_, model.value_, model.encoding_ = arrays["key_"], code, arrays["value_"], encoding
    model.history_, model.validation_rows_ = {name: arrays[name] for name in LOSSES}, held_out
    model.best_epoch_, model.stop_reason_, model.n_features_in_ = best, header["stop_reason"], fitted
    if classifies:
        model.classes_, model.prior_share_ = check_array("classes_", arrays["classes_"], "biufUS", outputs), share
    keep_labels(model, None if names is None else list(map(plain_label, names)))
    if labels is not None:
        model.column_labels_ = list(map(plain_label, labels))  # text, too, is no name then
    return model
