"""Categorical columns as indicator columns, in which a Gaussian kernel is a kernel of categories.

An unordered column becomes one indicator per category, an ordered one an indicator per step: whether a row's category
is beyond it. Squared distances between indicators count differing categories, or the steps between them, so that with
a scale r of each indicator

    exp(-|u(a) - u(b)|^2 / 2) = lambda^[a != b]  at r^2 = -log lambda,   lambda^|a - b|  at r^2 = -2 log lambda,

the kernel of Aitchison and Aitken, up to a common factor, and that of Li and Racine for ordered columns. A fit thus
starts at the smoothings that a search has found. A learned linear map gives each indicator a vector, which is an
embedding of the categories.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from kernpool.core import NO_CATEGORIES, Categories
from kernpool.data.encoding import Encoding
from kernpool.kernels import get_categorical_kernel

Array = NDArray[np.float64]
Codes = NDArray[np.int64]

KERNELS = {"unordered": "aitchison_aitken", "ordered": "li_racine_ordered"}
UNSEEN = 0.5  # of an indicator: as far from either value, and so from every category
LEAST_FACTOR = np.finfo(np.float64).eps  # of different categories; less has no effect, and no finite scale at zero


def categories_of(encoding: Encoding | None) -> Categories:
    """Return kernel and categories of each categorical column of an encoding; none without an encoding.

    Examples
    --------
    >>> len(categories_of(Encoding.fit([["b", 1.5], ["a", 2.5]], unordered=[0])))
    1
    """
    if encoding is None:
        return NO_CATEGORIES
    kinds = [encoding.kinds[i] for i in encoding.categorical]
    kernels = tuple(get_categorical_kernel(KERNELS[kind]) for kind in kinds)
    return Categories(kernels, encoding.table_levels)


def with_indicators(key: NDArray[np.floating], code: Codes | None, categories: Categories) -> Array:
    """Return numeric columns followed by the indicators of categorical columns, of shape (m, columns).

    Parameters
    ----------
    key : ndarray of shape (m, d)
        Numeric columns.
    code : ndarray of int64, shape (m, k), or None
        Category codes, -1 for a category that the training rows did not have: halfway, as far from each category.
    categories : Categories
        Categories of the codes.

    Examples
    --------
    >>> both = Categories(tuple(map(get_categorical_kernel, KERNELS.values())), (2, np.arange(3.0)))
    >>> with_indicators(np.array([[7.0], [8.0]]), np.array([[1, 2], [-1, 1]]), both)
    array([[7. , 0. , 1. , 1. , 1. ],
           [8. , 0.5, 0.5, 1. , 0. ]])
    """
    parts = [key.astype(np.float64)]
    for levels, column in zip(categories.levels, () if code is None else code.T, strict=True):
        each = column[:, None]
        found = each == np.arange(levels) if isinstance(levels, int) else each >= np.arange(1, len(levels))
        parts.append(np.where(each < 0, UNSEEN, found))
    return np.hstack(parts)


def indicator_scales(categories: Categories, smoothing: Array) -> Array:
    """Return the scale of each indicator, in bandwidths, with which a Gaussian kernel has the given smoothings.

    Examples
    --------
    >>> one = Categories((get_categorical_kernel("aitchison_aitken"),), (2,))
    >>> np.exp(-(indicator_scales(one, np.array([0.2])) ** 2))
    array([0.25, 0.25])
    """
    parts = [np.zeros(0)]
    for kernel, levels, lam in zip(categories.kernels, categories.levels, smoothing.tolist(), strict=True):
        table = kernel.table(levels, lam)
        factor = np.clip(np.diagonal(table, 1) / table[0, 0], LEAST_FACTOR, 1.0)  # of neighbouring categories
        if isinstance(levels, int):
            parts.append(np.full(levels, np.sqrt(-np.log(factor[0])) if levels > 1 else 0.0))
        else:
            parts.append(np.sqrt(-2.0 * np.log(factor)))
    return np.concatenate(parts)


def check_codes(code: NDArray[np.integer], categories: Categories) -> None:
    """Raise ValueError if codes of training rows, of shape (n, k), are not those of their categories."""
    counts = [levels if isinstance(levels, int) else len(levels) for levels in categories.levels]
    if not np.all((code >= 0) & (code < counts)):
        raise ValueError("key_code_ holds category codes out of range")
