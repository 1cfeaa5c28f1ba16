"""Rows with missing cells: left out of a fit, and answered by NaN, where a model has ``missing="drop"``."""

from __future__ import annotations

from dataclasses import fields, is_dataclass, replace
from functools import wraps
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernpool.data.columns import MixedTable
from kernpool.data.dates import TIME_KINDS, Times
from kernpool.data.missing_cells import outputs_missing, rows_with_missing, take_rows
from kernpool.estimators.training_rows import as_table, is_on_dask, refuse_other_labels


def complete_rows(model: Any, X: Any, y: Any, *others: Any) -> tuple[Any, ...]:
    """Return X, y and other columns without the rows that the model's parameter `missing` leaves out.

    Rows whose output is missing are left out by "drop" and "category", those with a missing cell by "drop".

    Returns
    -------
    X, y, *others : object
        As given, if nothing is left out.
    counted : dict
        Attribute of the fit, how many rows are left out; none with "raise".
    """
    if model.missing == "raise" or y is None:
        return X, y, *others, {}
    refuse_other_labels(X, y=y)
    table = as_table(X)
    inputs, outputs = rows_with_missing(table), outputs_missing(y)
    if len(inputs) != len(outputs):  # is refused where rows are read
        return X, y, *others, {}
    left_out = outputs | inputs if model.missing == "drop" else outputs
    if not left_out.any():
        return X, y, *others, {"n_missing_": 0}
    if left_out.all():
        where, remedy = "y is missing in every row", "give the outputs"
        if not outputs.all():
            where = "every row has a missing cell or output"
            remedy = "leave out columns with many missing cells, or use missing='category'"
        raise ValueError(f"{where}, and missing={model.missing!r} leaves such rows out; {remedy}")
    kept = np.flatnonzero(~left_out)
    given = (take_rows(one, kept) for one in (table, y, *others))
    return *given, {"n_missing_": int(np.count_nonzero(left_out))}


def nan_where_missing(method: Any) -> Any:
    """Make a method that returns arrays answer NaN where X has missing cells, if the model drops such rows.

    Labels that are no numbers are None there. Other methods refuse such rows.
    """

    @wraps(method)
    def answer(self: Any, X: Any, *arguments: Any, **options: Any) -> Any:
        model = vars(self).get("members_", {}).get("local", self)  # the local member of a stack reads its rows
        if getattr(model, "missing", "raise") != "drop" or "n_features_in_" not in vars(model) or X is None:
            return method(self, X, *arguments, **options)
        table = X if is_on_dask(X) else as_table(X, model.n_features_in_)
        missing = np.zeros(1, dtype=bool) if table is X and is_on_dask(X) else rows_with_missing(table)
        if not missing.any():
            return method(self, X, *arguments, **options)
        known = np.flatnonzero(~missing)
        # Where nothing is known, an answer at some row says what shape answers have.
        some = take_rows(table, known) if known.size else _first_row(model)
        return _at_all_rows(method(self, some, *arguments, **options), known, missing.size)

    return answer


def _first_row(model: Any) -> Any:
    """Return the first training row of a fitted model as a table."""
    encoding = model.encoding_
    if encoding is None:
        names = vars(model).get("feature_names_in_")
        return model.key_[:1] if names is None else MixedTable(dict(zip(names, model.key_[:1].T, strict=True)))
    columns: dict[str, Any] = {}
    pairs, levels, code = iter(encoding.pairs), iter(encoding.levels), iter(model.key_code_[0].tolist())
    numbers = iter(model.key_[0].tolist())
    for i, kind in enumerate(encoding.kinds):
        if kind == "binary":
            cells: Any = [next(pairs)[int(next(numbers))]]
        elif kind in TIME_KINDS:
            cells = Times(kind, np.array([next(numbers)]))
        else:
            cells = np.array([next(numbers)]) if kind == "numeric" else [next(levels)[next(code)]]
        columns[str(i) if encoding.names is None else encoding.names[i]] = cells
    return MixedTable(columns)


NOT_OF_ROWS = "classes", "critical"  # of answers, whose other arrays have an entry for each row


def _at_all_rows(found: Any, known: NDArray[np.intp], rows: int) -> Any:
    """Return answers at some rows as answers at all, NaN at the others."""
    if isinstance(found, tuple):
        each = [_at_all_rows(one, known, rows) for one in found]
        return type(found)(*each) if hasattr(found, "_fields") else tuple(each)
    if is_dataclass(found) and not isinstance(found, type):
        parts: dict[str, Any] = {}
        for name in (field.name for field in fields(found) if field.name not in NOT_OF_ROWS):
            value = getattr(found, name)
            if isinstance(value, np.ndarray) and value.ndim and len(value) == max(len(known), 1):
                parts[name] = _at_all_rows(value, known, rows)
            elif name in ("effective_rows", "first_predictions"):  # of the first few rows, which are others now
                parts[name] = None
        return replace(found, **parts)
    is_number = found.dtype.kind in "fiub"  # and no label of another kind
    dtype = np.result_type(found, np.float32) if is_number else object
    whole = np.full((rows, *found.shape[1:]), np.nan if is_number else None, dtype=dtype)
    whole[known] = found[: len(known)]
    return whole
