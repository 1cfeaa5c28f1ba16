"""Compiled loops for near keys: those that a group of queries visits one by one.

They are copied next to each other, since the loops over them are short. A bin of many equal keys counts as one key.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kernpool.algorithms.compiling import part

TIED = 32  # equal keys of a bin, from which on they count as one


class Near(NamedTuple):
    """Keys that are visited one by one: where, how heavy, weight times values, and which keys of the line they are.

    `kept` is the weight, and weight times values, of the one that `leave_own_out` has changed.
    """

    x: NDArray[np.float64]
    weight: NDArray[np.float64]
    value: NDArray[np.float64]
    first: NDArray[np.int64]
    count: NDArray[np.int64]
    kept: NDArray[np.float64]


@part
def make_near(size, columns):
    """Room for near keys."""
    return Near(
        np.empty(size),
        np.empty(size),
        np.empty((columns, size)),
        np.empty(size, np.int64),
        np.empty(size, np.int64),
        np.empty(1 + columns),
    )


@part
def is_tied(keys, b):
    """Whether a bin holds many keys, all equal."""
    return keys.high[b] == keys.low[b] and keys.offset[b + 1] - keys.offset[b] >= TIED


@part
def collect(near, at, keys, first_bin, last_bin, total):
    """Copy a run of bins behind the `at` keys that are there, many equal ones as one; returns the new number.

    `total` has the sums of weight and of weight times value of every bin.
    """
    for b in range(first_bin, last_bin + 1):
        start, stop = keys.offset[b], keys.offset[b + 1]
        if is_tied(keys, b):
            near.x[at], near.first[at], near.count[at] = keys.x[start], start, stop - start
            near.weight[at] = total[b, 0]
            for c in range(near.value.shape[0]):
                near.value[c, at] = total[b, 1 + c]
            at += 1
            continue
        for j in range(start, stop):
            weight = keys.weight[j] if keys.weight.size else 1.0
            near.x[at], near.first[at], near.count[at], near.weight[at] = keys.x[j], j, 1, weight
            for c in range(near.value.shape[0]):
                near.value[c, at] = weight * keys.value[c, j]
            at += 1
    return at


@part
def leave_own_out(near, size, keys, own, own_weight):
    """Replace the own key by what is left of it; returns where it is, or -1, or -2 if that would cost digits."""
    for j in range(size):
        if near.first[j] <= own < near.first[j] + near.count[j]:
            near.kept[0] = near.weight[j]
            for c in range(near.value.shape[0]):
                near.kept[1 + c] = near.value[c, j]
            if near.count[j] == 1:
                near.weight[j] = own_weight
                for c in range(near.value.shape[0]):
                    near.value[c, j] = own_weight * keys.value[c, own]
                return j
            removed = (keys.weight[own] if keys.weight.size else 1.0) - own_weight
            if removed > 0.5 * near.weight[j]:
                return -2
            near.weight[j] -= removed
            for c in range(near.value.shape[0]):
                near.value[c, j] -= removed * keys.value[c, own]
            return j
    return -1


@part
def restore(near, j):
    """Undo `leave_own_out`, without adding all the equal keys up once more."""
    near.weight[j] = near.kept[0]
    for c in range(near.value.shape[0]):
        near.value[c, j] = near.kept[1 + c]
