"""What `kernpool info` says of a model, as JSON can hold it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from kernpool.estimators.learned.base import LearnedPooling
from kernpool.estimators.smoother import KernelSmoother
from kernpool.pooling.running import RunningPool

PARAMETERS = ("rows", "kernel", "composition", "degree", "tol", "algorithm", "empty")


def describe_model(model: Any, header: dict[str, Any]) -> dict[str, Any]:
    """Describe a model.

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
    chunks, features = vars(model).get("chunks_"), header["features"]
    description = {
        "estimator": header["estimator"],
        "target": header["target"],
        "features": features,
        "rows": chunks.rows if chunks is not None else len(model.key_),
        "parameters": header["parameters"],
        **names_of(model, features),
    }
    if vars(model).get("classes_") is not None:
        description["classes"] = model.classes_.tolist()
    if model.encoding_ is not None and model.encoding_.dates:
        description["dates"] = [features[i] for i in model.encoding_.dates]
    if vars(model).get("key_group_") is not None:
        description["clusters"] = len(np.unique(model.key_group_))
    for name, result in header["results"].items():
        description[name.rstrip("_")] = result
    return description if chunks is None else description | {"data": header["chunks"]["path"]}


def names_of(model: KernelSmoother, features: Sequence[str]) -> dict[str, Any]:
    """Return bandwidths, and smoothing and levels if there are some, by the names of columns."""
    encoding = model.encoding_
    numeric, categorical = (range(len(features)), ()) if encoding is None else (encoding.numeric, encoding.categorical)
    # levels alone have one column of zeros, which has no name
    named: dict[str, Any] = {
        "bandwidth": {features[i]: h for i, h in zip(numeric, model.bandwidth_.tolist(), strict=False)}
    }
    if encoding is not None and categorical:
        named["smoothing"] = {features[i]: x for i, x in zip(categorical, model.smoothing_.tolist(), strict=True)}
        named["levels"] = {features[i]: list(levels) for i, levels in zip(categorical, encoding.levels, strict=True)}
    return named


def _learned(model: LearnedPooling, header: dict[str, Any]) -> dict[str, Any]:
    described = {name: header[name] for name in ("estimator", "features", "parameters", "epochs", "best_epoch")}
    losses = {name: float(loss[model.best_epoch_]) for name, loss in model.history_.items()}
    classes = {} if header["classes"] is None else {"classes": header["classes"]["labels"]}
    return described | {"rows": len(model.key_), **losses, **classes}


def _running(model: RunningPool, header: dict[str, Any]) -> dict[str, Any]:
    described = {name: header[name] for name in PARAMETERS}
    (queries, columns), bandwidth = model.query.shape, model.to_record().arrays["bandwidth"].tolist()
    outputs = None if model.center is None else len(model.center)
    shape = {"estimator": "RunningPool", "queries": queries, "columns": columns, "outputs": outputs}
    return shape | described | {"bandwidth": bandwidth}
