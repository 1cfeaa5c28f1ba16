"""Kernels for categorical columns: the factor in the weight of two rows that depends on their categories.

Such a kernel multiplies a factor onto the weight of a pair. Its smoothing ``lambda`` lies in a box that begins at 0,
where rows of different categories have no influence on each other. At the other end most kernels make the column
irrelevant: all factors are equal. With c categories, and d the distance between two of them,

===================== ========= ================ =========================== ====================
name                  column    equal categories others                      box
===================== ========= ================ =========================== ====================
``aitchison_aitken``  unordered ``1 - lam``      ``lam / (c - 1)``           ``[0, (c - 1) / c]``
``li_racine``         unordered ``1``            ``lam``                     ``[0, 1]``
``wang_van_ryzin``    ordered   ``1 - lam``      ``(1 - lam) / 2 * lam**d``  ``[0, 1 - 2**-20]``
``li_racine_ordered`` ordered   ``1``            ``lam**d``                  ``[0, 1]``
===================== ========= ================ =========================== ====================

The factors of Wang and van Ryzin all vanish at ``lam = 1``, but their ratios do not, so their box ends just before 1.
Even there equal categories weigh twice as much as others: this kernel never makes a column irrelevant.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from kernpool._arrays import AnyArray, Array
from kernpool.execution import abbreviate, as_count, check_choice

Table = Callable[[Array, float], Array]

# Slopes of lam**d at 0 are infinite for d < 1: there they are those at this lam, which is large and has a direction.
LEAST_FOR_STEEP = 2.0**-52
SHORT_OF_ONE = 1.0 - 2.0**-20
ROUNDING = 8.0 * float(np.finfo(np.float64).eps)


@dataclass(frozen=True)
class CategoricalKernel:
    """Kernel of a categorical column: a weight factor per pair of categories, with a smoothing parameter lambda.

    Parameters
    ----------
    name : str
        The name it is found under.
    ordered : bool
        Whether the factors depend on how far two categories are apart, and not only on whether they differ.
    factors : callable
        Maps the distances between categories, of shape (c, c), and lambda to factors of that shape. Distances of an
        unordered column are 0 and 1.
    slopes : callable
        Likewise, the derivatives of the factors by lambda.
    largest : callable
        Maps the number of categories to the largest lambda allowed; the smallest is 0.

    Notes
    -----
    A common factor of a whole table cancels in pooling weights. Formulas are those of their authors [1]_ [2]_ [3]_, and
    those of Li and Racine leave such a factor out.

    References
    ----------
    .. [1] J. Aitchison and C. G. G. Aitken, "Multivariate binary discrimination by the kernel method", Biometrika 63
       (1976), 413-420.
    .. [2] M.-C. Wang and J. van Ryzin, "A class of smooth estimators for discrete distributions", Biometrika 68
       (1981), 301-309.
    .. [3] Q. Li and J. S. Racine, "Nonparametric Econometrics", Princeton University Press (2007), section 4.1.
    """

    name: str
    ordered: bool
    factors: Table
    slopes: Table
    largest: Callable[[int], float]

    def table(self, levels: int | AnyArray, lam: float) -> Array:
        """Return the kernel factor of every pair of categories, as a matrix of shape (c, c).

        Examples
        --------
        >>> get_categorical_kernel("aitchison_aitken").table(3, 0.5)
        array([[0.5 , 0.25, 0.25],
               [0.25, 0.5 , 0.25],
               [0.25, 0.25, 0.5 ]])
        >>> get_categorical_kernel("li_racine_ordered").table(np.array([2000.0, 2001.0, 2003.0]), 0.5)
        array([[1.   , 0.5  , 0.125],
               [0.5  , 1.   , 0.25 ],
               [0.125, 0.25 , 1.   ]])
        """
        return self._of_pairs(levels, lam, self.factors, 1.0)

    def table_slope(self, levels: int | AnyArray, lam: float) -> Array:
        """Return the derivatives of the kernel factors of all pairs of categories with respect to lambda (smoothing).

        Examples
        --------
        >>> get_categorical_kernel("li_racine_ordered").table_slope(np.array([0.0, 1.0, 3.0]), 0.0)
        array([[0., 1., 0.],
               [1., 0., 0.],
               [0., 0., 0.]])
        """
        return self._of_pairs(levels, lam, self.slopes, 0.0)

    def is_irrelevant(self, levels: int | AnyArray, lam: float) -> bool:
        """Return whether all kernel factors are equal, so that the categorical column has no effect.

        Examples
        --------
        >>> kernel = get_categorical_kernel("aitchison_aitken")
        >>> kernel.is_irrelevant(3, kernel.largest(3)), kernel.is_irrelevant(3, 0.6)
        (True, False)
        """
        table = self.table(levels, lam)
        # 1 - lam at the largest lam of Aitchison and Aitken, 1 - (c - 1) / c, has lost the digits of c.
        return bool(np.ptp(table) <= ROUNDING * len(table) * table.max())

    def _of_pairs(self, levels: Any, lam: float, of: Table, alone: float) -> Array:
        distance = self._distances(levels)
        return np.array([[alone]]) if len(distance) == 1 else of(distance, self._checked(lam, len(distance)))

    def _distances(self, levels: Any) -> Array:
        if self.ordered:
            place = np.asarray(levels)
            if place.ndim != 1 or place.dtype.kind not in "fiub":
                raise TypeError(
                    f"levels of the ordered kernel {self.name!r} must be an array with the position of each level, "
                    f"got {abbreviate(levels)}; np.arange(c) takes them by rank"
                )
            place = place.astype(np.float64)
            if not place.size or not np.all(np.isfinite(place)):
                raise ValueError(f"levels must be at least one finite number, got {abbreviate(levels)}")
            return np.asarray(np.abs(place[:, None] - place[None, :]))
        return 1.0 - np.eye(as_count("levels", levels, hint=f", their number, for the unordered kernel {self.name!r}"))

    def _checked(self, lam: float, count: int) -> float:
        if isinstance(lam, bool) or not isinstance(lam, int | float | np.number):
            raise TypeError(f"lam must be a number, got {abbreviate(lam)}")
        if not 0.0 <= lam <= self.largest(count):
            raise ValueError(
                f"lam must lie in [0, {self.largest(count)}] for the kernel {self.name!r} and {count} levels, got {lam}"
            )
        return float(lam)


def _where_equal(distance: Array, equal: float, others: Array | float) -> Array:
    return np.where(distance == 0.0, equal, others)


def _power_slope(distance: Array, lam: float) -> Array:
    base = np.where(distance < 1.0, max(lam, LEAST_FOR_STEEP), lam)
    return distance * base ** (distance - 1.0)


def _aitchison_aitken(distance: Array, lam: float) -> Array:
    return _where_equal(distance, 1.0 - lam, lam / (len(distance) - 1))


def _aitchison_aitken_slope(distance: Array, _lam: float) -> Array:
    return _where_equal(distance, -1.0, 1.0 / (len(distance) - 1))


def _li_racine(distance: Array, lam: float) -> Array:
    return _where_equal(distance, 1.0, lam)


def _li_racine_slope(distance: Array, _lam: float) -> Array:
    return _where_equal(distance, 0.0, 1.0)


def _wang_van_ryzin(distance: Array, lam: float) -> Array:
    return _where_equal(distance, 1.0 - lam, 0.5 * (1.0 - lam) * lam**distance)


def _wang_van_ryzin_slope(distance: Array, lam: float) -> Array:
    return _where_equal(distance, -1.0, 0.5 * ((1.0 - lam) * _power_slope(distance, lam) - lam**distance))


def _li_racine_ordered(distance: Array, lam: float) -> Array:
    return lam**distance


def _all_alike(count: int) -> float:
    return (count - 1) / count


def _one(_count: int) -> float:
    return 1.0


def _short_of_one(_count: int) -> float:
    return SHORT_OF_ONE


_KERNELS = {
    kernel.name: kernel
    for kernel in (
        CategoricalKernel("aitchison_aitken", False, _aitchison_aitken, _aitchison_aitken_slope, _all_alike),
        CategoricalKernel("li_racine", False, _li_racine, _li_racine_slope, _one),
        CategoricalKernel("wang_van_ryzin", True, _wang_van_ryzin, _wang_van_ryzin_slope, _short_of_one),
        CategoricalKernel("li_racine_ordered", True, _li_racine_ordered, _power_slope, _one),
    )
}


FAMILIES = {
    "aitchison_aitken": (_KERNELS["aitchison_aitken"], _KERNELS["wang_van_ryzin"]),
    "li_racine": (_KERNELS["li_racine"], _KERNELS["li_racine_ordered"]),
}


def categorical_kernel_names(ordered: bool | None = None) -> list[str]:
    """List the names of the kernels for categorical columns: all, or those of ordered or of unordered columns.

    Examples
    --------
    >>> categorical_kernel_names(ordered=False)
    ['aitchison_aitken', 'li_racine']
    """
    return [name for name, kernel in _KERNELS.items() if ordered is None or kernel.ordered == ordered]


def get_categorical_kernel(kernel: str) -> CategoricalKernel:
    """Return the kernel for categorical columns of this name.

    Examples
    --------
    >>> get_categorical_kernel("li_racine").ordered
    False
    """
    return _KERNELS[kernel]


def kernel_of_family(family: str, *, ordered: bool) -> CategoricalKernel:
    """Return the kernel that a family has for ordered or unordered columns; raise ValueError for other names.

    Examples
    --------
    >>> kernel_of_family("aitchison_aitken", ordered=True).name
    'wang_van_ryzin'
    """
    check_choice("categorical_kernel", family, FAMILIES)
    return FAMILIES[family][ordered]
