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
