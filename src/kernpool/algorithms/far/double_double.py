"""Sums and products of twice the digits of float64, as unevaluated sums of two numbers (Dekker 1971, Knuth 1969).

A number is a pair ``(high, low)`` with ``high = fl(high + low)``. Nothing here may overflow: keep magnitudes near one.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Pair = tuple[Array, Array]

EPSILON = 2.0**-100  # what some tens of operations round by, beside the largest number in them
_HALVES = 2.0**27 + 1.0  # splits 53 binary digits in two halves, whose products are exact


def exact_sum(a: Array, b: Array) -> Pair:
    """Return ``a + b`` without an error.

    Examples
    --------
    >>> exact_sum(np.array([1.0]), np.array([2.0**-80]))[1] == 2.0**-80
    array([ True])
    """
    high = a + b
    shadow = high - a
    return high, (a - (high - shadow)) + (b - shadow)


def exact_product(a: Array, b: Array) -> Pair:
    """Return ``a * b`` without an error.

    Examples
    --------
    >>> x = np.array([1.0 + 2.0**-30])
    >>> exact_product(x, x)[1] == 2.0**-60
    array([ True])
    """
    high = a * b
    (a_high, a_low), (b_high, b_low) = _halves(a), _halves(b)
    return high, ((a_high * b_high - high) + a_high * b_low + a_low * b_high) + a_low * b_low


def add(a: Pair, b: Pair) -> Pair:
    """Return the sum of two pairs."""
    high, low = exact_sum(a[0], b[0])
    return _joined(high, low + (a[1] + b[1]))


def multiply(a: Pair, b: Pair) -> Pair:
    """Return the product of two pairs."""
    high, low = exact_product(a[0], b[0])
    return _joined(high, low + (a[0] * b[1] + a[1] * b[0]))


def ratio(a: Array, b: Array) -> Pair:
    """Return ``a / b`` of plain numbers."""
    high = a / b
    product, error = exact_product(high, b)
    return high, ((a - product) - error) / b


def sum_of_exact(a: Pair, b: Pair) -> Pair:
    """Return the sum of two pairs without an error that shows, even where their high parts cancel."""
    high, low = exact_sum(a[0], b[0]), exact_sum(a[1], b[1])
    first, rest = exact_sum(high[0], low[0])
    return _joined(first, rest + (high[1] + low[1]))


def _joined(high: Array, low: Array) -> Pair:
    total = high + low
    return total, low - (total - high)


def _halves(a: Array) -> Pair:
    scaled = a * _HALVES
    high = scaled - (scaled - a)
    return high, a - high
