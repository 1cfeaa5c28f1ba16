"""Labels as numbers that can be pooled."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.multiclass import check_classification_targets


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
    check_classification_targets(y)
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
