"""`kernpool info`: a saved model as JSON, or the summary of its fit."""

import argparse
from collections.abc import Sequence
from typing import Any

import numpy as np

from kernpool.cli.prediction_columns import named_summary, need_rows
from kernpool.cli.tables import print_json
from kernpool.cli.terminal import need_output
from kernpool.data.model_format import read_header
from kernpool.estimators import NadarayaWatsonClassifier
from kernpool.estimators.kernel_smoother import KernelSmoother
from kernpool.estimators.learned.models import LearnedPooling
from kernpool.estimators.model import source_of
from kernpool.estimators.persistence import load_model
from kernpool.pooling import RunningPool

PARAMETERS = ("rows", "kernel", "composition", "degree", "tol", "algorithm", "empty")


def run_info(options: argparse.Namespace) -> None:
    """Run `kernpool info`: print a saved model as JSON, or the summary of its fit."""
    need_output("open it")
    model, header = load_model(options.model), read_header(options.model)
    if options.summary:
        if not isinstance(model, NadarayaWatsonClassifier):
            need_rows(model, options.model, "--summary")
        summary = named_summary(model, header["features"])
        print_json(summary) if options.json else print(summary)
        return
    print_json(describe_model(model, header))


def describe_model(model: Any, header: dict[str, Any]) -> dict[str, Any]:
    """Return the settings of a saved model as a JSON-compatible dictionary.

    Parameters
    ----------
    model : estimator or RunningPool
        From `load_model`.
    header : dict
        From its ``model.json``.

    Returns
    -------
    dict
        Numbers, names and parameters.
    """
    if isinstance(model, KernelSmoother):
        return _smoother(model, header)
    if isinstance(model, LearnedPooling):
        return _learned(model, header)
    return _running(model, header)


def _smoother(model: KernelSmoother, header: dict[str, Any]) -> dict[str, Any]:
    source, features = source_of(model), header["features"]
    description = {
        "estimator": header["estimator"],
        "target": header["target"],
        "features": features,
        "rows": source.rows if source is not None else len(model.key_),
        "parameters": header["parameters"],
        **describe_columns(model, features),
    }
    if vars(model).get("classes_") is not None:
        description["classes"] = model.classes_.tolist()
    if model.encoding_ is not None and model.encoding_.dates:
        description["dates"] = [features[i] for i in model.encoding_.dates]
    if vars(model).get("key_group_") is not None:
        description["clusters"] = len(np.unique(model.key_group_))
    for name, result in header["results"].items():
        description[name.rstrip("_")] = result
    return description if source is None else description | {"data": header["chunks"]["path"]}


def describe_columns(model: KernelSmoother, features: Sequence[str]) -> dict[str, Any]:
    """Return the bandwidths, smoothing parameters and categories of a fitted model, each keyed by column name."""
    encoding = model.encoding_
    numeric, categorical = (range(len(features)), ()) if encoding is None else (encoding.numeric, encoding.categorical)
    # a model of categorical columns alone has one key column of zeros, without a name
    named: dict[str, Any] = {
        "bandwidth": {features[i]: h for i, h in zip(numeric, model.bandwidth_.tolist(), strict=False)}
    }
    if encoding is not None and categorical:
        named["smoothing"] = {features[i]: x for i, x in zip(categorical, model.smoothing_.tolist(), strict=True)}
        named["levels"] = {features[i]: list(levels) for i, levels in zip(categorical, encoding.levels, strict=True)}
    return named


def _learned(model: LearnedPooling, header: dict[str, Any]) -> dict[str, Any]:
    described = {name: header[name] for name in ("estimator", "features", "parameters", "best_epoch")}
    losses = {name: float(loss[model.best_epoch_]) for name, loss in model.history_.items()}
    classes = {"classes": model.classes_.tolist()} if hasattr(model, "classes_") else {}
    epochs = len(model.history_["training_loss"]) - 1
    return described | {"epochs": epochs, "rows": len(model.key_), **losses, **classes}


def _running(model: RunningPool, header: dict[str, Any]) -> dict[str, Any]:
    described = {name: header[name] for name in PARAMETERS}
    (queries, columns), bandwidth = model.query.shape, model._to_record().arrays["bandwidth"].tolist()
    outputs = None if model.center is None else len(model.center)
    shape = {"estimator": "RunningPool", "queries": queries, "columns": columns, "outputs": outputs}
    return shape | described | {"bandwidth": bandwidth}
