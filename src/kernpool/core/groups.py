"""Groups: rows that belong together, such as the pupils of a school; a query does not meet the keys of its group."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Codes = NDArray[np.int64]
Some = slice | NDArray[np.intp]


@dataclass(frozen=True)
class Groups:
    """Which keys are left out for which queries: those of the same group, with all of their weight.

    Parameters
    ----------
    query_code : ndarray of int64, shape (m,)
        Number of the group of each query, -1 for one that meets all keys.
    key_code : ndarray of int64, shape (n,)
        Number of the group of each key, not negative.

    Notes
    -----
    Not checked: parts are made by the thousand. `read` checks, and `Problem.with_groups` asks it.

    Examples
    --------
    >>> code = np.array([0, 0, 1])
    >>> Groups.read(code, code).takes_part()
    array([[False, False,  True],
           [False, False,  True],
           [ True,  True, False]])
    """

    query_code: Codes
    key_code: Codes

    @classmethod
    def read(cls, query_code: Codes, key_code: Codes) -> Groups:
        """Return groups of numbers that are checked.

        Parameters
        ----------
        query_code, key_code : ndarray of int64
            See above.

        Returns
        -------
        Groups
            Of these numbers.

        Raises
        ------
        ValueError
            If the numbers are out of range or no integers.
        """
        for name, code, lowest in (("query_code", query_code, -1), ("key_code", key_code, 0)):
            if code.ndim != 1 or code.dtype.kind != "i":
                raise ValueError(f"{name} must be one integer per row, got shape {code.shape} of {code.dtype}")
            if len(code) and code.min() < lowest:
                raise ValueError(f"{name} must be at least {lowest}, got {code.min()}")
        return cls(query_code, key_code)

    def block(self, queries: Some, keys: Some = slice(None)) -> Groups:
        """Return those of some queries and some keys."""
        return Groups(self.query_code[queries], self.key_code[keys])

    def takes_part(self) -> NDArray[np.bool_]:
        """Return which keys take part for which query, of shape (m, n): those of other groups."""
        return np.asarray(self.query_code[:, None] != self.key_code)


def sums_of_groups(code: Codes, number: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return for each row the sum of numbers over all rows of its group.

    Parameters
    ----------
    code : ndarray of int64, shape (n,)
        Number of the group of each row.
    number : ndarray of shape (n,) or (n, c)
        What is summed.

    Returns
    -------
    ndarray of the same shape
        Equal within a group.

    Examples
    --------
    >>> sums_of_groups(np.array([7, 3, 7]), np.array([1.0, 2.0, 4.0]))
    array([5., 2., 5.])
    """
    _, place = np.unique(code, return_inverse=True)
    sums = np.zeros((int(place.max()) + 1, *number.shape[1:]))
    np.add.at(sums, place, number)
    return np.asarray(sums[place])


def weight_left_out(
    weight: NDArray[np.float64], number: NDArray[np.float64], code: Codes | None = None
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return what leaves the sums of all rows with each row: one unit of it, or all rows of its group.

    Parameters
    ----------
    weight : ndarray of shape (n,)
        Frequencies.
    number : ndarray of shape (n, c)
        What is summed with these weights.
    code : ndarray of int64, shape (n,), optional
        Number of the group of each row.

    Returns
    -------
    weight : ndarray of shape (n,)
        That is left out with each row; of a row by itself at most one.
    weighted : ndarray of shape (n, c)
        Sum of the numbers that are left out, times their weights.

    Examples
    --------
    >>> weight, number = np.array([1.0, 3.0, 1.0]), np.array([[1.0], [2.0], [4.0]])
    >>> [left.ravel() for left in weight_left_out(weight, number)]
    [array([1., 1., 1.]), array([1., 2., 4.])]
    >>> [left.ravel() for left in weight_left_out(weight, number, np.array([0, 1, 0]))]
    [array([2., 3., 2.]), array([5., 6., 5.])]
    """
    if code is None:
        unit = np.minimum(weight, 1.0)
        return unit, unit[:, None] * number
    return sums_of_groups(code, weight), sums_of_groups(code, weight[:, None] * number)
