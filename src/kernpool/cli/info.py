"""`kernpool info`: a saved model as JSON, or the summary of its fit."""

import argparse
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from kernpool.cli.terminal import need_output, print_json
from kernpool.estimators.model import holder_of
from kernpool.estimators.persistence import load_model, read_header
from kernpool.inference import Summary

RESULTS = ("loo_error", "loo_empty_windows", "bandwidth_note", "ridge", "prior_share")


def run_info(options: argparse.Namespace) -> None:
    """Run `kernpool info`: print a saved model as JSON, or the summary of its fit."""
    need_output("open it")
    model, header = load_named(options.model)
    if not options.summary:
        print_json(describe_model(model, header))
        return
    need_method(model, "summary", "--summary", options.model)
    summary: Summary = model.summary()
    print_json({"title": summary.title, **summary.values}) if options.json else print(summary)


def need_method(model: Any, method: str, what: str, folder: str) -> None:
    """Raise TypeError, naming an option or a command, if the model in a folder has no such method."""
    if not hasattr(model, method):
        kinds = "classifiers" if method in ("predict_proba", "predict_set") else "regressors"
        if hasattr(holder_of(model), method):
            kinds = "fits without --stack"
        raise TypeError(f"{what} is for {kinds}, and {folder} holds a {type(model).__name__}")


def load_named(path: str | Path, *, memory: int | None = None) -> tuple[Any, dict[str, Any]]:
    """Load a saved model, whose columns have the names of its header, and the header."""
    model, header = load_model(path, memory=memory), read_header(path)
    local = holder_of(model)
    if local.encoding_.labels is None:
        local.encoding_ = replace(local.encoding_, labels=tuple(header["features"]))
        local.target_name_ = header["target"]
    return model, header


def describe_model(model: Any, header: dict[str, Any]) -> dict[str, Any]:
    """Return the settings of a saved model as a JSON-compatible dictionary."""
    local = holder_of(model)
    found = describe_fit(model, header["features"]) | {"target": header["target"], "features": header["features"]}
    found["parameters"] = local.get_params()
    if local.source_ is not None:
        found["data"] = local.reference_["path"]
    results = {name: getattr(model, f"{name}_", None) for name in RESULTS}
    return found | {name: result for name, result in results.items() if result is not None}


def describe_fit(whole: Any, features: Sequence[str]) -> dict[str, Any]:
    """Return what a model was fitted to and what it found, as a JSON-compatible dictionary; bandwidths of its lines."""
    model = holder_of(whole)
    if hasattr(model, "linear_"):
        names = [name for i, name in enumerate(features) if i not in model.linear_]
        # Of coefficients that vary the medians.
        coefficients = dict(zip(model.coef_names_, np.median(np.atleast_2d(model.coef_), axis=0).tolist(), strict=True))
        found = describe_fit(getattr(model, "places_", None) or model.curve_, names)
        return found | {"estimator": type(whole).__name__, "coefficients": coefficients}
    source, encoding = model.source_, model.encoding_
    numeric, categorical = encoding.numeric, encoding.categorical
    found = {
        "estimator": type(whole).__name__,
        "rows": len(model.key_) if source is None else source.rows,
        # a model of categorical columns alone has one key column of zeros, without a name
        "bandwidth": {features[i]: h for i, h in zip(numeric, model.bandwidth_.tolist(), strict=False)},
    }
    if categorical:
        found["smoothing"] = {features[i]: x for i, x in zip(categorical, model.smoothing_.tolist(), strict=True)}
        found["levels"] = {features[i]: list(levels) for i, levels in zip(categorical, encoding.levels, strict=True)}
    if encoding.dates:
        found["dates"] = [features[i] for i in encoding.dates]
    window = model.smoother_.window
    if not isinstance(window, str):
        found["windows"] = window.words
    if whole is not model:
        found["members"] = whole.member_weights_
    if hasattr(model, "classes_"):
        found["classes"] = model.classes_.tolist()
    code = model.smoother_.units.code
    if code is not None:
        sizes = np.bincount(code)
        found["clusters"] = {
            "count": len(sizes),
            "smallest": int(sizes.min()),
            "median": float(np.median(sizes)),
            "largest": int(sizes.max()),
        }
    return found
