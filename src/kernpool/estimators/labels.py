"""Labels as numbers that can be pooled."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import column_or_1d
from sklearn.utils.multiclass import check_classification_targets

from kernpool.data.checks import is_missing, refuse_foreign
from kernpool.data.integers import find_inexact


def as_labels(y: Any, owner: str = "a classifier") -> NDArray[Any]:
    """Read labels of a classifier, of any type: none may be missing, and none become another.

    Parameters
    ----------
    y : array_like of shape (n,)
        Labels: text, booleans or numbers, also of pandas' nullable types, of Arrow and of polars.
    owner : str
        Class of the model, for messages.

    Returns
    -------
    ndarray of shape (n,)
        Integers stay integers of 64 bits, booleans booleans.

    Raises
    ------
    TypeError, ValueError
        If y is None, masked, sparse or a tensor, a label is missing or infinite, text and numbers are mixed, or an
        integer would be rounded.

    Examples
    --------
    >>> as_labels([2**60 + 1, 2**60 + 2])
    array([1152921504606846977, 1152921504606846978])
    >>> as_labels(["yes", None])
    Traceback (most recent call last):
    ...
    ValueError: y is None in row 1 (counted from 0), and 1 of 2 labels are missing or infinite; drop such rows from X
    and y, or give missing labels a class of their own, such as 'unknown'
    """
    if y is None:
        raise ValueError(f"{owner} requires y to be passed, but the target y is None")
    refuse_foreign("y", y)
    read = _as_array(y)
    if read.dtype.kind == "f":
        missing = ~np.isfinite(read)
    elif read.dtype.kind in "mM":
        missing = np.isnat(read)
    else:
        items = read.ravel().tolist() if read.dtype.kind == "O" else ()
        missing = np.array([is_missing(item) or item in (np.inf, -np.inf) for item in items], dtype=bool)
    if missing.any():
        index, count = int(missing.argmax()), np.count_nonzero(missing)
        raise ValueError(
            f"y is {read.ravel()[index]} in row {index // (missing.size // len(read))} (counted from 0), and "
            f"{count} of {missing.size} labels are missing or infinite; drop such rows from X and y, or give missing "
            "labels a class of their own, such as 'unknown'"
        )
    label: NDArray[Any] = column_or_1d(read, warn=True)
    return _of_one_type(label, as_text=isinstance(y, list | tuple)) if label.dtype.kind == "O" else label


def _as_array(y: Any) -> NDArray[Any]:
    """Return labels as an array, of objects where NumPy would make other numbers or text of them."""
    if hasattr(y, "iloc"):  # of pandas, whose nullable types become floats
        columns = [y.iloc[:, i] for i in range(y.shape[1])] if y.ndim == 2 else [y]
        if not all(isinstance(column.dtype, np.dtype) for column in columns):
            read = np.empty(y.shape, dtype=object)
            for i, column in enumerate(columns):
                read.reshape(len(y), -1)[:, i] = column.tolist()
            return read
    return np.asarray(y, dtype=object if isinstance(y, list | tuple) else None)  # NumPy makes text of None beside text


def _of_one_type(label: NDArray[Any], as_text: bool) -> NDArray[Any]:
    """Return objects as booleans, integers or floats if they are such; text stays as it is, or becomes NumPy's."""
    items = label.tolist()
    text = [item for item in items if isinstance(item, str)]
    others = [item for item in items if not isinstance(item, str)]
    if text and others:
        raise ValueError(
            f"y must hold labels of one type, got text such as {text[0]!r} and {type(others[0]).__name__} such as "
            f"{others[0]!r}; convert them, as in [str(label) for label in y]"
        )
    if text:
        return np.array(items) if as_text else label
    if not all(isinstance(item, bool | int | float | np.bool_ | np.number) for item in items):
        return label  # which scikit-learn refuses, or knows
    read = np.array(items)
    inexact = find_inexact(items, read)
    if read.dtype.kind == "O" or (read.dtype.kind == "f" and inexact is not None):
        integer = next(item for item in items if isinstance(item, int)) if inexact is None else inexact[1]
        raise ValueError(
            f"y holds the integer {integer} among floats, or integers of more than 64 bits, and would be rounded; "
            "convert the labels to text, as in [str(label) for label in y]"
        )
    return read


def one_hot(y: ArrayLike, dtype: Any) -> tuple[NDArray[Any], NDArray[np.intp], NDArray[Any]]:
    """Find the classes of labels.

    Parameters
    ----------
    y : array_like of shape (n,)
        Labels: numbers or strings.
    dtype : dtype
        Of the result.

    Returns
    -------
    classes : ndarray of shape (k,)
        In increasing order.
    number : ndarray of int, shape (n,)
        Which one each row has.
    shares : ndarray of shape (n, k)
        One in the column of the class of a row, else zero.

    Raises
    ------
    ValueError
        If y is continuous.

    Examples
    --------
    >>> one_hot(["b", "a"], np.float64)[2]
    array([[0., 1.],
           [1., 0.]])
    """
    try:
        check_classification_targets(y)
    except ValueError:
        raise ValueError(
            f"Unknown label type: continuous; y holds numbers such as {np.ravel(y)[0]!s:.20}, which are no "
            "classes; use NadarayaWatsonRegressor for numbers, or pass integers, booleans or text"
        ) from None
    classes, number = np.unique(y, return_inverse=True)
    return classes, number, (number[:, None] == np.arange(len(classes))).astype(dtype)


def class_prior(label: NDArray[Any], weight: NDArray[np.float64] | None = None) -> NDArray[np.float64]:
    """Return the weighted shares of the classes.

    Parameters
    ----------
    label : ndarray of shape (n, k)
        One-hot labels.
    weight : ndarray of shape (n,), optional
        Frequencies.

    Returns
    -------
    ndarray of shape (k,)
        Shares, which add up to one.

    Examples
    --------
    >>> class_prior(np.array([[1.0, 0.0], [0.0, 1.0]]), np.array([3.0, 1.0]))
    array([0.75, 0.25])
    """
    total = label.sum(axis=0, dtype=np.float64) if weight is None else weight @ label.astype(np.float64)
    return np.asarray(total / total.sum())


def mixed(pooled: NDArray[Any], prior: NDArray[np.float64], share: float) -> NDArray[Any]:
    """Mix the share of the class priors into pooled labels.

    Parameters
    ----------
    pooled : ndarray of shape (m, k)
        Probabilities. Rows of zeros or NaN, for empty windows, stay as they are.
    prior : ndarray of shape (k,)
        Priors.
    share : float
        Of the priors.

    Returns
    -------
    ndarray of shape (m, k)
        Of the type of `pooled`.

    Examples
    --------
    >>> mixed(np.array([[1.0, 0.0], [0.0, 0.0]]), np.array([0.5, 0.5]), 0.25)
    array([[0.875, 0.125],
           [0.   , 0.   ]])
    """
    if not share:
        return pooled
    found = (1.0 - share) * pooled + share * pooled.sum(axis=1, keepdims=True) * prior
    return np.asarray(found, dtype=pooled.dtype)
