"""Training rows: how they are read, weighted, kept from changes by the caller, and how more are appended."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_X_y, validate_data

from kernpool.data.checks import as_key_weight, refuse_misread
from kernpool.data.columns import all_text, is_frame, labels_of, refuse_other_columns
from kernpool.data.frames import Encoding
from kernpool.data.mixed import Mixed
from kernpool.data.suspects import SuspectColumnWarning, suspect_columns
from kernpool.execution.warnings import warn_caller

Array = NDArray[np.float64]

UNUSUAL_MEAN_WEIGHT = 10.0
LEAST_CAPACITY = 64
NAMES, LABELS = "feature_names_in_", "column_labels_"  # of columns: strings, and labels of any other type


class Rows(NamedTuple):
    """Training rows: numeric columns (one of zeros if there are none), level numbers, outputs or labels, encoding."""

    key: NDArray[Any]
    code: NDArray[np.int64]
    output: NDArray[Any]
    encoding: Encoding | None


def read_rows(model: Any, X: Any, y: Any, *, numbers: bool, reset: bool = True) -> Rows:
    """Read training rows, and keep the names and the number of their columns in the model.

    Parameters
    ----------
    model : KernelSmoother
        Whose parameters say which columns are categorical.
    X, y : array_like or frame
        Inputs and outputs.
    numbers : bool
        Whether outputs are numbers, of one column or several, and not labels.
    reset : bool, default=True
        False compares the columns with those of an earlier fit.
    """
    options = {"multi_output": True, "y_numeric": True} if numbers else {}
    encoding = encoding_of(model, X)
    if encoding is None:
        key, output = validated(model, X, y, dtype=[np.float64, np.float32], reset=reset, **options)
        code = np.zeros((len(key), 0), dtype=np.int64)
        refuse_misread("X", X)
    else:
        validated(model, X, reset=reset, skip_check_array=True)  # keeps names and number of columns
        numeric, code = encoding.encode(X)
        key = at_least_one_column(numeric)
        _, output = check_X_y(code if code.shape[1] else key, y, estimator=model, **options)
    if numbers:
        refuse_misread("y", y)
        output = output if output.dtype.kind == "f" else output.astype(np.float64)
    if reset and is_frame(X) and not isinstance(X, Mixed):  # columns of files are looked at where they are read
        named = [name for some in (model.unordered, model.ordered) if some is not None for name in some]
        for sentence in suspect_columns(X, named):
            warn_caller(sentence, SuspectColumnWarning)
    return Rows(key, code, output, encoding)


def validated(model: Any, X: Any, *y: Any, reset: bool = True, **options: Any) -> Any:
    """Call scikit-learn's `validate_data`, and keep or compare labels of columns of any type, not only strings."""
    labels = labels_of(X)
    if not reset:
        refuse_other_columns(labels, fitted_labels(model), f"use X[model.{_label_attribute(model)}]")
    read = validate_data(model, X, *y, reset=reset, **options)
    if reset:
        keep_labels(model, labels)
    return read


def fitted_labels(model: Any) -> Sequence[Any] | None:
    """Return the labels of the columns that a model was fitted to, None if they had none."""
    labels: Sequence[Any] | None = vars(model).get(_label_attribute(model))
    return labels


def keep_labels(model: Any, labels: Sequence[Any] | None) -> None:
    """Keep the labels of columns in a model: strings in `feature_names_in_`, as in scikit-learn, others in another."""
    for name in (NAMES, LABELS):
        vars(model).pop(name, None)
    if labels is not None and all_text(labels):
        model.feature_names_in_ = np.array(labels, dtype=object)
    elif labels is not None:
        model.column_labels_ = list(labels)


def _label_attribute(model: Any) -> str:
    return LABELS if LABELS in vars(model) else NAMES


def encoding_of(model: Any, X: Any) -> Encoding | None:
    """Return how the categorical columns of X are read, None if there are none."""
    unordered = () if model.unordered is None else model.unordered
    ordered = () if model.ordered is None else model.ordered
    if not (is_frame(X) or len(unordered) or len(ordered)):
        return None
    encoding = Encoding.fit(
        X, unordered=unordered, ordered=ordered, ordered_by=model.ordered_by, binary=model._reads_pairs_as_numbers
    )
    return encoding if encoding.categorical or encoding.pairs else None


def at_least_one_column(numeric: Array) -> Array:
    """Return the numeric columns, or one of zeros if there are none: then levels alone decide."""
    return numeric if numeric.shape[1] else np.zeros((len(numeric), 1))


def frequencies(sample_weight: ArrayLike, n: int) -> Array:
    """Return a copy of the weights of n rows; an unusual mean warns."""
    given = np.asarray(sample_weight)
    try:
        weight = as_key_weight(np.broadcast_to(given, (n,)) if given.ndim == 0 else given, (n,)).copy()
    except (TypeError, ValueError) as error:
        raise type(error)(str(error).replace("key_weight", "sample_weight")) from None
    mean = weight[weight > 0].mean()
    if not 1 / UNUSUAL_MEAN_WEIGHT <= mean <= UNUSUAL_MEAN_WEIGHT:
        warn_caller(
            f"sample_weight has mean {mean:.3g}: weights are read as frequencies, a weight of 3 as three equal rows, "
            "and their sum as the number of rows. For survey or precision weights divide by the largest first",
        )
    return weight


def unshared(array: NDArray[Any]) -> NDArray[Any]:
    """Return an array that the caller cannot change: a copy, unless its memory is read-only, as that of most maps.

    A view that is read-only is not enough: pandas hands them out of frames that can be changed.
    """
    owner: Any = array
    while isinstance(owner, np.ndarray) and not owner.flags.writeable:
        owner = owner.base
    return array.copy() if isinstance(owner, np.ndarray) else array


class GrowingArray:
    """An array with spare capacity at its end, so that appending takes amortised constant time per row.

    Whoever appends gets a view of all rows so far. A copy of a model shares the buffer with it; the first to append
    continues in it, the other one copies its rows, so that neither sees the rows of the other.

    Examples
    --------
    >>> growing = GrowingArray()
    >>> one = growing.append(np.array([1.0]), np.array([2.0]))
    >>> growing.append(one, np.array([3.0])), growing.append(one, np.array([4.0]))
    (array([1., 2., 3.]), array([1., 2., 4.]))
    """

    def __init__(self) -> None:
        self._buffer: NDArray[Any] = np.empty(0)
        self._used = 0

    def append(self, rows: NDArray[Any], more: NDArray[Any]) -> NDArray[Any]:
        """Return `rows` and then `more`.

        Parameters
        ----------
        rows : ndarray of shape (n, ...)
            What the last call returned, or something else, which is copied.
        more : ndarray of shape (k, ...)
            What is added.

        Returns
        -------
        ndarray of shape (n + k, ...)
            In the common type of both.
        """
        n, dtype = len(rows), np.result_type(rows, more)
        total = n + len(more)
        continues = rows.base is self._buffer and n == self._used and dtype == self._buffer.dtype
        if not continues or total > len(self._buffer):
            buffer = np.empty((max(LEAST_CAPACITY, 2 * total), *rows.shape[1:]), dtype=dtype)
            buffer[:n] = rows
            self._buffer = buffer
        self._buffer[n:total] = more
        self._used = total
        return self._buffer[:total]

    def __reduce__(self) -> tuple[type[GrowingArray], tuple[()]]:
        # The buffer is no part of a model: a pickle would hold every row twice.
        return GrowingArray, ()


def append_rows(model: Any, key: NDArray[Any], value: NDArray[Any], weight: Array | None) -> dict[str, Any]:
    """Return the attributes of a model, fitted to arrays without categorical columns, that change with more rows."""
    growing = vars(model).setdefault("_growing", {name: GrowingArray() for name in ("key_", "value_", "key_weight_")})
    grown = {"key_": growing["key_"].append(model.key_, key), "value_": growing["value_"].append(model.value_, value)}
    grown["key_weight_"] = before = model.key_weight_
    if weight is not None or before is not None:
        before = np.ones(len(model.key_)) if before is None else before
        grown["key_weight_"] = growing["key_weight_"].append(before, np.ones(len(key)) if weight is None else weight)
    return grown | {"key_code_": np.zeros((len(grown["key_"]), 0), dtype=np.int64)}
