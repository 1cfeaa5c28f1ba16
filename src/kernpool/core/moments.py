r"""Moments: the columns of a pooling state that a local linear fit needs, next to those of a local constant one.

With the offsets :math:`t_a = (k_a - q_a) / h_a` of a key from the query, in bandwidths, a state of ``degree=1`` sums

======== ================= ======================== =================================
columns  how many          weight times             order
======== ================= ======================== =================================
value    c                 ``v_b``                  ``b``
first    d                 ``t_a``                  ``a``
second   d (d + 1) / 2     ``t_a t_e``, ``a <= e``  upper triangle, row by row
cross    d c               ``t_a v_b``              ``a``, then ``b``
======== ================= ======================== =================================

Offsets are from the query and never from the origin, so that nothing large cancels, and so that states of disjoint sets
of keys merge by adding them up like all the rest.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

PIECE = 1 << 18  # rows


@dataclass(frozen=True)
class Layout:
    """Where the columns of a numerator are.

    Parameters
    ----------
    values : int
        Number c of value columns.
    columns : int
        Number d of columns of queries and keys.
    degree : {0, 1}
        0 for the values alone.

    Examples
    --------
    >>> layout = Layout(values=1, columns=2, degree=1)
    >>> layout.value, layout.first, layout.second, layout.cross, layout.width
    (slice(0, 1, None), slice(1, 3, None), slice(3, 6, None), slice(6, 8, None), 8)
    >>> Layout(values=1, columns=2, degree=0).width
    1
    """

    values: int
    columns: int
    degree: int

    @property
    def value(self) -> slice:
        """Sums of weight times value."""
        return slice(0, self.values)

    @property
    def first(self) -> slice:
        """Sums of weight times offset."""
        return slice(self.values, self.values + self.columns)

    @property
    def second(self) -> slice:
        """Sums of weight times products of two offsets."""
        start = self.first.stop
        return slice(start, start + self.columns * (self.columns + 1) // 2)

    @property
    def cross(self) -> slice:
        """Sums of weight times offset times value."""
        start = self.second.stop
        return slice(start, start + self.columns * self.values)

    @property
    def width(self) -> int:
        """Number of columns in all."""
        return self.cross.stop if self.degree else self.values

    def moved(self, denominator: Array, numerator: Array, shift: Array) -> Array:
        """Return the numerator of offsets that are larger by `shift`, such as those from another place.

        Parameters
        ----------
        denominator : ndarray of shape (m,)
            Sums of weights.
        numerator : ndarray of shape (m, width)
            Sums with offsets as they are.
        shift : ndarray of shape (m, columns)
            What is added to each offset, in bandwidths. Digits are lost as far as it is large beside the offsets.

        Returns
        -------
        ndarray of shape (m, width)
            The sums with ``t + shift`` in place of ``t``.

        Examples
        --------
        >>> Layout(1, 1, 1).moved(np.array([2.0]), np.array([[5.0, 3.0, 9.0, 7.0]]), np.array([[10.0]]))
        array([[  5.,  23., 269.,  57.]])
        """
        m, result = len(numerator), numerator.copy()
        first = numerator[:, self.first]
        upper, lower = np.triu_indices(self.columns)
        moved = first + denominator[:, None] * shift
        result[:, self.first] = moved
        result[:, self.second] += shift[:, upper] * first[:, lower] + shift[:, lower] * moved[:, upper]
        cross = shift[:, :, None] * numerator[:, None, self.value]
        result[:, self.cross] += cross.reshape(m, self.columns * self.values)
        return result

    def with_center(self, denominator: Array, numerator: Array, center: Array) -> Array:
        """Return the numerator of values that are larger by `center`.

        Parameters
        ----------
        denominator : ndarray of shape (m,)
            Sums of weights.
        numerator : ndarray of shape (m, width)
            Sums of the values as they are.
        center : ndarray of shape (values,)
            What is added to each value column.

        Returns
        -------
        ndarray of shape (m, width)
            ``sum w (v + center)``, and ``sum w t (v + center)`` where there are moments.

        Examples
        --------
        >>> Layout(1, 1, 1).with_center(np.array([2.0]), np.array([[5.0, 3.0, 9.0, 7.0]]), np.array([100.0]))
        array([[205.,   3.,   9., 307.]])
        """
        if not self.degree:
            moved = np.empty_like(numerator)
            for start in range(0, len(moved), PIECE):  # a single call over many rows is deaf to Ctrl-C
                rows = slice(start, start + PIECE)
                np.multiply(denominator[rows, None], center, out=moved[rows])
                moved[rows] += numerator[rows]
            return moved
        moved = numerator.copy()
        moved[:, self.value] += denominator[:, None] * center
        moved[:, self.cross] += np.repeat(numerator[:, self.first], self.values, axis=1) * np.tile(center, self.columns)
        return moved


def check_degree(degree: int) -> None:
    """Refuse a degree that is neither 0, local constant, nor 1, local linear.

    Parameters
    ----------
    degree : int
        What the caller passed.

    Raises
    ------
    ValueError
        If it is anything else.
    """
    if isinstance(degree, bool) or degree not in (0, 1):
        raise ValueError(f"degree must be 0 (local constant) or 1 (local linear), got {degree!r}")
