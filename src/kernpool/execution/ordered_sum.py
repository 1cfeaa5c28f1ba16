"""Sums whose bits do not depend on threads: terms are added in the order of their numbers, not of their arrival."""

from __future__ import annotations

import threading

import numpy as np
from numpy.typing import NDArray


def weighted_sum(weight: NDArray[np.float64], x: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return ``weight @ x`` with the same bits for any number of threads of BLAS, which other threads may change.

    Examples
    --------
    >>> weighted_sum(np.array([1.0, 2.0]), np.array([[1.0, 0.0], [3.0, 5.0]]))
    array([ 7., 10.])
    """
    return np.asarray(np.einsum("i,i...->...", weight, x))


class OrderedSum:
    """A sum of numbered terms with the same bits for any number of threads.

    Terms that arrive early wait for those before them. Blocks start in order and take about equal times, so few wait:
    about as many as there are threads.

    Parameters
    ----------
    total : ndarray
        What terms are added to.

    Examples
    --------
    >>> total = np.zeros(1)
    >>> ordered = OrderedSum(total)
    >>> ordered.add(1, np.array([2.0**-53])), total[0]
    (None, np.float64(0.0))
    >>> ordered.add(0, np.array([1.0])), total[0]
    (None, np.float64(1.0))
    """

    def __init__(self, total: NDArray[np.float64]) -> None:
        self._total, self._next = total, 0
        self._waiting: dict[int, NDArray[np.float64]] = {}
        self._lock = threading.Lock()

    def add(self, number: int, term: NDArray[np.float64]) -> None:
        """Add the term of this number, counted from zero, once all before it have been added."""
        with self._lock:
            self._waiting[number] = term
            while self._next in self._waiting:
                self._total += self._waiting.pop(self._next)
                self._next += 1
