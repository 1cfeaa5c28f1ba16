"""Conditional distribution functions of estimators on chunks, whose rows are read again."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernpool.data.chunks.base import Chunks
from kernpool.distribution import Function, as_thresholds, chunk_functions, without_axes
from kernpool.estimators.fitted import check_unchanged, numeric_query, recipe_of
from kernpool.estimators.weighed import number_of
from kernpool.execution.progress import current_progress

Array = NDArray[np.float64]


def functions_of_chunks(model: Any, X: Any, y: Any, y_bandwidth: Any = None, *, density: bool = False) -> Array:
    """Return distribution functions, or densities, of a regressor that was fitted to chunks, which are read again.

    Parameters
    ----------
    model : NadarayaWatsonRegressor
        Fitted to chunks.
    X : array_like of shape (m, d)
        Queries.
    y : float or array_like
        Thresholds, as of ``model.cdf``.
    y_bandwidth : float or array_like of shape (c,), optional
        Bandwidths in y.
    density : bool, default=False
        Whether densities are wanted.

    Returns
    -------
    ndarray of shape (m,), (m, t), (m, c) or (m, c, t)
        As of ``model.cdf``.
    """
    query, chunks = numeric_query(model, X), model.chunks_
    check_unchanged(model)
    outputs = outputs_of(chunks)
    threshold, with_axis = as_thresholds(y, len(query), outputs, several=not chunks.flat)
    widths = None if y_bandwidth is None else number_of(y_bandwidth, outputs)
    function = Function(threshold, widths, density)
    found = chunk_functions(recipe_of(model), query, chunks, function, current_progress())
    return without_axes(found, bool(chunks.flat), with_axis)


def outputs_of(chunks: Chunks) -> int:
    """Return how many value columns chunks have, of which the first may have to be read."""
    return int(chunks.outputs or next(iter(chunks)).value.shape[1])
