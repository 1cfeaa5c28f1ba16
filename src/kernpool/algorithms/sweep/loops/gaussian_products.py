r"""Compiled loops for the Gaussian with the moments of a local quadratic fit: two more derivatives of its series.

With a sum ``F = exp(-t**2 / 2) P(t)`` the keys at ``s``, about the middle of the group, weigh ``exp(-s**2 / 2 + s t)``
in P, so that its derivatives are the sums of powers of ``s`` and the moments about the query those of ``s - t``.

A file of its own, because what `gaussian_moments.py` compiles for degree 1 is not to wait for it.
"""

from __future__ import annotations

from kernpool.algorithms.loops.tiles import LOG2_E, exp2
from kernpool.algorithms.sweep.loops.near import UNDONE
from kernpool.execution.compiling import part

NEAR_FOURTH = 3e-4  # mean fourth power of distances, in that of widths of a cell or a group, that has twelve digits


@part
def add_products(local, terms, t, size, found, column):
    """Moments of a tile of queries behind those of `add_moments`, in the order of `kernpool.core.moments`."""
    columns = local.shape[0]
    third, fourth = 2 * columns + 1, 2 * columns + 2
    for c in range(columns):
        for j in range(size):
            sum_0, sum_1, sum_2, sum_3, sum_4 = local[c, terms - 1], 0.0, 0.0, 0.0, 0.0  # P, P', P'' / 2, P''' / 6, ...
            x = t[j]
            for p in range(terms - 2, -1, -1):
                sum_4 = sum_4 * x + sum_3
                sum_3 = sum_3 * x + sum_2
                sum_2 = sum_2 * x + sum_1
                sum_1 = sum_1 * x + sum_0
                sum_0 = sum_0 * x + local[c, p]
            weight = exp2(-0.5 * LOG2_E * x * x)
            if c == 0:
                cube = 6.0 * (sum_3 - x * sum_2) + x * x * (3.0 * sum_1 - x * sum_0)
                found[third, column + j] = weight * cube
                power = 24.0 * (sum_4 - x * sum_3) + x * x * (12.0 * sum_2 - x * (4.0 * sum_1 - x * sum_0))
                found[fourth, column + j] = weight * power
            else:
                found[fourth + c, column + j] = weight * (2.0 * (sum_2 - x * sum_1) + x * x * sum_0)


@part
def mark_near(columns, width, h, size, found, column):
    """Mark queries whose keys are so near that digits of fourth powers are lost."""
    ratio = width / h
    least = NEAR_FOURTH * ratio * ratio * ratio * ratio
    for j in range(column, column + size):
        if found[2 * columns + 2, j] <= least * found[0, j]:
            found[0, j] = UNDONE


@part
def take_own_out(columns, own_value, mine, removed, u, found, i):
    """Take the moments of a query's own key out; marks it where little of them is left."""
    second, third, fourth = columns + 1, 2 * columns + 1, 2 * columns + 2
    square = u * u
    # Those of second order have been taken out already.
    if removed * square > found[second, i] or removed * square * square > 0.5 * found[fourth, i]:
        found[0, i] = UNDONE
    found[third, i] += removed * square * u
    found[fourth, i] -= removed * square * square
    for c in range(1, columns):
        found[fourth + c, i] -= removed * square * own_value[c - 1, mine]
