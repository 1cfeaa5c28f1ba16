"""Fits to rows in chunks, such as files: the model stores a reference to the rows, and no copy of them.

A number as bandwidth needs no pass over the rows at all; a name needs one, which draws a sample (`bandwidth.py`). The
sample depends on the rows, their order and `random_state`, not on how the rows are divided into chunks.
"""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernpool.bandwidth import TrainingRows
from kernpool.data import TableError, is_frame
from kernpool.data.chunks.base import Chunks
from kernpool.data.chunks.sources import open_chunks
from kernpool.data.encoding import Encoding
from kernpool.estimators.bandwidth import (
    DEFAULT_SEARCH_ROWS,
    SearchDraw,
    bandwidth_of_sample,
    choose_bandwidth,
    draw,
    search_options,
    seed_of,
)
from kernpool.estimators.fitted_model import refuse_unable
from kernpool.estimators.parameter_validation import check_parameters
from kernpool.estimators.training_rows import keep_labels, refuse_formula, selection
from kernpool.execution.error_messages import abbreviate
from kernpool.execution.progress import current_progress

Array = NDArray[np.float64]


def as_chunks(X: Any, y: Any, sample_weight: Any) -> Chunks | None:
    """Return the rows given to ``fit`` as `Chunks` if they are chunks, a file or an Arrow stream; None for other rows.

    Files may be a folder of files. A stream counts only if y is the name of its target column.

    Raises
    ------
    TypeError
        If the target is not named, or weights are not a column.
    ValueError
        If the chunks can be gone through only once.
    """
    named = isinstance(y, str)
    if not (named or isinstance(X, Chunks | str | Path)):
        return None
    refuse_formula(X, y)
    if isinstance(X, Chunks):
        if y is not None or sample_weight is not None:
            raise TypeError("chunks bring their values and weights: leave y and sample_weight out")
        chunks = X
    else:
        if not named and not (isinstance(y, list | tuple) and all(isinstance(name, str) for name in y)):
            raise TypeError(f"y must name the column of {X} that is the target, got {type(y).__name__}")
        if sample_weight is not None and not isinstance(sample_weight, str):
            raise TypeError(f"sample_weight must name a column of weights, got {type(sample_weight).__name__}")
        if not isinstance(X, str | Path) and not hasattr(X, "__arrow_c_stream__"):
            raise TypeError(
                f"y={y!r} names a column, so X must be a file, a folder or a stream of Arrow, got {type(X).__name__}"
            )
        try:
            chunks = open_chunks(X, target=y, weight=sample_weight)
        except TableError as error:
            advice = "name the others as features"
            if not is_frame(X) or advice not in str(error):
                raise
            remedy = f"use {selection(y)} for a frame in memory"
            raise TableError(str(error).replace(advice, remedy)) from None
    if not chunks.again:
        raise ValueError(
            "X must be rows that predict can read again, which an iterator does not allow; give a list, a file or "
            "arrays"
        )
    return chunks


def fit_chunks(model: Any, chunks: Chunks) -> None:
    """Fit a regressor to rows in chunks: store a reference to the rows, and choose the bandwidth.

    Sets `chunks_`, `reference_`, `bandwidth_` and `bandwidth_note_`.
    """
    check_parameters(model)
    for name in ("unordered", "ordered"):
        if getattr(model, name) is not None:
            raise TypeError(
                f"{name} must be None for rows in chunks, which have numeric columns only, got "
                f"{abbreviate(getattr(model, name))}; fit a sample of them in memory"
            )
    if not isinstance(model.scale, str) or model.scale != "raw":
        raise ValueError(
            f"scale must be 'raw' for rows in chunks, whose ranks are not known, "
            f"got {abbreviate(model.scale)}; fit a sample of "
            "them in memory, or write ranks of the column into the file"
        )
    options = search_options(model)
    reference = chunks.reference()  # before the pass: a file that changes meanwhile is not the one that is read
    if isinstance(model.bandwidth, str):
        size, seed = model.max_search_rows or DEFAULT_SEARCH_ROWS, seed_of(model.random_state)
        sample = draw(chunks, size, seed, progress=current_progress(), total=chunks.rows)
        found = bandwidth_of_sample(sample, chunks.labels, model.bandwidth, options, model.smoothing)
        found["_search_draw"] = SearchDraw(size, seed)
        columns = len(found["bandwidth_"])
    else:
        first = next(iter(chunks), None)
        if first is None:
            raise ValueError("there are no rows: the chunks given as X are empty; give at least one row")
        rows = TrainingRows.from_arrays(first.key, first.value)
        convention = model.bandwidth_convention
        found = choose_bandwidth(model.bandwidth, rows, options, smoothing=model.smoothing, convention=convention)
        found["bandwidth_note_"] = "as given"
        columns = first.key.shape[1]
    refuse_unable(model, columns)
    encoding = None
    if chunks.kinds is not None:
        encoding = replace(Encoding.of_numbers(chunks.labels, columns), kinds=chunks.kinds)
    model._replace_fit(found | {"chunks_": chunks, "reference_": reference, "encoding_": encoding})
    model.n_features_in_ = columns
    keep_labels(model, chunks.labels)
