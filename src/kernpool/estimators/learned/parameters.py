"""Parameters of learned estimators: their valid ranges, checked before the long work and when a file is loaded."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from kernpool.estimators.parameter_validation import FLAG, Accepted, check_columns
from kernpool.execution.error_messages import abbreviate, check_choice
from kernpool.inference.resampling.random_draws import as_random

SIMILARITIES = ("per_feature", "width", "linear", "encoder")
FEWEST_ROWS = 3


def _count(least: int, *names: None) -> Accepted:
    return Accepted(f"a whole number from {least} on", names, lambda n: n >= least, whole=True)


ACCEPTED = {
    "output_size": _count(1, None),
    "max_epochs": _count(0),
    "batch_size": _count(1),
    "patience": _count(1),
    "max_keys": _count(2, None),
    "learning_rate": Accepted("a positive finite number", numbers=lambda x: 0 < x < np.inf),
    "penalty": Accepted("a finite number from 0 on", numbers=lambda x: 0 <= x < np.inf),
    "validation_fraction": Accepted("between 0 and 1, both left out", numbers=lambda x: 0 < x < 1),
    "warm_start_bandwidth": FLAG,
}


def check_parameters(parameters: Mapping[str, Any], columns: int) -> None:
    """Raise if a parameter of a learned model is out of its range.

    Parameters
    ----------
    parameters : mapping
        Those of `LearnedPoolingRegressor`.
    columns : int
        Columns that are mapped: those of X, but for a categorical one its indicators.

    Raises
    ------
    ValueError
        If a parameter is invalid; the message names it, its value and the valid range.

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
    for name, accepted in ACCEPTED.items():
        accepted.check(name, parameters[name])
    if size is not None:
        if similarity in ("per_feature", "width"):
            raise ValueError(
                f"output_size is for similarity='linear' and 'encoder', got {size} with {similarity!r}, which keeps "
                "the columns; leave it None"
            )
        if similarity == "linear" and size > columns:
            raise ValueError(
                f"output_size must be at most the number of columns, {columns} with one for each level of a category, "
                f"with similarity='linear', got {size}; a linear map to more columns adds nothing"
            )
    hidden = parameters["hidden_sizes"]
    if isinstance(hidden, str) or not hasattr(hidden, "__iter__") or not hasattr(hidden, "__len__"):
        raise ValueError(f"hidden_sizes must be a sequence of whole numbers such as (64,), got {abbreviate(hidden)}")
    for width in hidden:
        _count(1).check("hidden_sizes", width)
    check_choice("dtype", parameters["dtype"], (None, "float64", "float32"))
    for name in ("unordered", "ordered"):
        check_columns(name, parameters[name])
    check_choice("unseen", parameters["unseen"], ("raise", "unlike"))
    as_random(parameters["random_state"], generators=False)
