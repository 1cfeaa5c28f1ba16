"""Ranges of the parameters of estimators that learn, checked before the long work."""

from __future__ import annotations

import math
from collections.abc import Mapping
from numbers import Integral, Real
from typing import Any

import numpy as np

from kernpool.execution.messages import abbreviate, check_choice
from kernpool.inference.draws import as_random

SIMILARITIES = ("per_feature", "width", "linear", "encoder")
FEWEST_ROWS = 3


def check_parameters(parameters: Mapping[str, Any], columns: int) -> None:
    """Raise if a parameter is out of its range.

    Parameters
    ----------
    parameters : mapping
        Those of `LearnedPoolingRegressor`.
    columns : int
        Columns of X.

    Raises
    ------
    ValueError
        If one is; the message names it, what came, and what would do.

    Examples
    --------
    >>> from kernpool import LearnedPoolingRegressor
    >>> check_parameters(LearnedPoolingRegressor(learning_rate=-1).get_params(), 3)
    Traceback (most recent call last):
    ...
    ValueError: learning_rate must be a positive finite number, got -1
    """
    similarity, size = parameters["similarity"], parameters["output_size"]
    check_choice("similarity", similarity, SIMILARITIES)
    if size is not None:
        _check_count("output_size", size, 1)
        if similarity in ("per_feature", "width"):
            raise ValueError(
                f"output_size is for similarity='linear' and 'encoder', got {size} with {similarity!r}, which keeps "
                "the columns; leave it None"
            )
        if similarity == "linear" and size > columns:
            raise ValueError(
                f"output_size must be at most the number of columns, {columns}, with similarity='linear', got {size}: "
                "a map to more can do no more"
            )
    hidden = parameters["hidden_sizes"]
    if isinstance(hidden, str) or not hasattr(hidden, "__iter__") or not hasattr(hidden, "__len__"):
        raise ValueError(f"hidden_sizes must be a sequence of whole numbers such as (64,), got {abbreviate(hidden)}")
    for width in hidden:
        _check_count("hidden_sizes", width, 1)
    _check_count("max_epochs", parameters["max_epochs"], 0)
    _check_count("batch_size", parameters["batch_size"], 1)
    _check_count("patience", parameters["patience"], 1)
    if parameters["max_keys"] is not None:
        _check_count("max_keys", parameters["max_keys"], 2)
    _check_number("learning_rate", parameters["learning_rate"], "a positive finite number", lambda x: x > 0)
    _check_number("penalty", parameters["penalty"], "a finite number from 0 on", lambda x: x >= 0)
    _check_number(
        "validation_fraction", parameters["validation_fraction"], "between 0 and 1, both left out", lambda x: 0 < x < 1
    )
    check_choice("dtype", parameters["dtype"], (None, "float64", "float32"))
    warm = parameters["warm_start_bandwidth"]
    if not isinstance(warm, bool | np.bool_):
        raise ValueError(f"warm_start_bandwidth must be True or False, got {abbreviate(warm)}")
    as_random(parameters["random_state"], generators=False)


def _check_count(name: str, value: Any, least: int) -> None:
    if isinstance(value, bool) or not isinstance(value, Integral) or value < least:
        raise ValueError(f"{name} must be a whole number from {least} on, got {abbreviate(value)}")


def _check_number(name: str, value: Any, wanted: str, holds: Any) -> None:
    if isinstance(value, bool) or not isinstance(value, Real) or not math.isfinite(value) or not holds(value):
        raise ValueError(f"{name} must be {wanted}, got {abbreviate(value)}")
