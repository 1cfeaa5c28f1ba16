"""Fused loops for weighted means: distance, kernel and sums in one pass over the keys, in registers.

A loop is compiled for each kernel, number of columns and float width (`specialise`). Only integers are closed over,
since they fold at compile time. Kernels are the Gaussian, Epanechnikov and Laplace, radial.

Several queries share each load of a key where there are enough registers. The first one to eight columns are added in
the same loop as the exponential. Further columns, eight at a time, are added before it through a buffer, so that few
numbers of columns need loops of their own.

Rare cases are left out. A query whose sum of weights is tiny, because all keys are far away or near the edge of a
compact kernel, goes to the staged tiles, which handle shifts and edges.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from kernpool.algorithms.loops.kernel_weights import EPANECHNIKOV, GAUSSIAN, LAPLACE, LN_2, exp2_minus
from kernpool.execution.compilation import bare_part, loop, ordered_loop, use_widest_vectors

AT_ONCE = 8  # columns


@bare_part
def with_column(s, q, k, scale, even):
    """Return the exponent (scaled squared distance) of a query-key pair with one coordinate's contribution added."""
    # If all bandwidths are the same (`even`), the sum is scaled at the end, by `weight_of`.
    u = q - k if even == 1 else (q - k) * scale
    return s + u * u


@bare_part
def with_columns(s, q, k, scale, columns, even):
    """Return a pair's exponent (scaled squared distance) with the contributions of one to eight coordinates added."""
    # Coordinates come as tuples of eight.
    s = with_column(s, q[0], k[0], scale[0], even)
    if columns > 1:
        s = with_column(s, q[1], k[1], scale[1], even)
    if columns > 2:
        s = with_column(s, q[2], k[2], scale[2], even)
    if columns > 3:
        s = with_column(s, q[3], k[3], scale[3], even)
    if columns > 4:
        s = with_column(s, q[4], k[4], scale[4], even)
    if columns > 5:
        s = with_column(s, q[5], k[5], scale[5], even)
    if columns > 6:
        s = with_column(s, q[6], k[6], scale[6], even)
    if columns > 7:
        s = with_column(s, q[7], k[7], scale[7], even)
    return s


@bare_part
def at(x, a, most):
    """Return the items ``x[a]``, ``x[a + 1]``, ... as a tuple of eight, repeating the last of `most` items."""
    # Repeated items are not used.
    e = most - 1
    return (
        x[a],
        x[a + min(1, e)],
        x[a + min(2, e)],
        x[a + min(3, e)],
        x[a + min(4, e)],
        x[a + min(5, e)],
        x[a + min(6, e)],
        x[a + min(7, e)],
    )


@bare_part
def keys_at(tiles, j):
    """Return the eight coordinates of key `j`, given the arrays of eight columns."""
    k0, k1, k2, k3, k4, k5, k6, k7 = tiles
    return k0[j], k1[j], k2[j], k3[j], k4[j], k5[j], k6[j], k7[j]


@bare_part
def add_later_columns(buffer, query, i, other, key, begin, first, last, scale, even):
    """Write what coordinates `begin` and later add to the exponents of two queries and a tile of keys to `buffer`."""
    # Eight coordinates are added at a time.
    # With two queries, each key is loaded once for both. With four, LLVM no longer vectorises the loop.
    use_widest_vectors()
    size, zero = last - first, key.dtype.type(0.0)
    s, t = buffer[0, :size], buffer[1, :size]
    for a in range(begin, key.shape[0], AT_ONCE):
        q, p, c = at(query[i], a, AT_ONCE), at(query[other], a, AT_ONCE), at(scale, a, AT_ONCE)
        k0, k1, k2, k3 = key[a, first:last], key[a + 1, first:last], key[a + 2, first:last], key[a + 3, first:last]
        k4, k5, k6, k7 = key[a + 4, first:last], key[a + 5, first:last], key[a + 6, first:last], key[a + 7, first:last]
        tiles = k0, k1, k2, k3, k4, k5, k6, k7
        # Two loops: where input and output may be the same array, LLVM checks whether they overlap, and they do.
        if a == begin:
            for j in range(size):
                k = keys_at(tiles, j)
                s[j] = with_columns(zero, q, k, c, AT_ONCE, even)
                t[j] = with_columns(zero, p, k, c, AT_ONCE, even)
        else:
            for j in range(size):
                k = keys_at(tiles, j)
                s[j] = with_columns(s[j], q, k, c, AT_ONCE, even)
                t[j] = with_columns(t[j], p, k, c, AT_ONCE, even)


KERNELS = frozenset({GAUSSIAN, EPANECHNIKOV, LAPLACE})
# Where sums are written after each tile, LLVM keeps no constants in 16 registers (one and two columns of float64 with
# AVX2: 2.0e9 and 1.9e9 pairs per second in place of 2.4e9 and 2.3e9). Kept in variables, they take registers from the
# columns where those are many, and from four queries.
MOST_HELD = 5  # columns
TILE = 512  # float32 sums of more keys than this lose a digit


def scales(code: int, bandwidth: np.ndarray) -> np.ndarray:
    """Return the factor of each column by which compiled loops scale differences of coordinates."""
    # With s the sum of squares of scaled differences, a weight is 2**-s (Gaussian), 2**-sqrt(s) (Laplace) or 1 - s
    # (Epanechnikov), without the height of the kernel. For all kernels but the first two, scaled distances are in
    # bandwidths.
    factor = {GAUSSIAN: math.sqrt(0.5 / LN_2), LAPLACE: 1.0 / LN_2}.get(code, 1.0)
    return factor / bandwidth


def height(code: int) -> float:
    """Return the kernel's value at distance zero, a constant factor that the fused loops omit."""
    return {EPANECHNIKOV: 0.75, LAPLACE: 0.5}.get(code, 1.0)


def is_bounded(code: int, square: float, dtype: np.dtype) -> bool:
    """Return whether the exponents of weights stay in range if squared scaled distances are at most `square`."""
    # False for the Epanechnikov kernel, which has no exponent.
    farthest = np.sqrt(square) if code == LAPLACE else square
    return code != EPANECHNIKOV and bool(farthest < (120.0 if dtype == np.float32 else 1000.0))


@ordered_loop
def weight_of(s, factor, one, code, even, bounded):
    """Return the kernel weight of a query-key pair from its exponent, a scaled squared distance."""
    if even == 1:
        s *= factor
    if code == EPANECHNIKOV:
        return one - s if s < one else one - one
    return exp2_minus(math.sqrt(s) if code == LAPLACE else s, bounded)


@ordered_loop
def pair_weight(s, q, k, scale, place, mine, one, kind):
    """Return the kernel weight of a query-key pair; zero if the key is the query's own (leave-one-out)."""
    # The exponent `s` has the contributions of later columns; those of the columns in registers are added.
    code, columns, later, even, own, bounded = kind
    if code == LAPLACE and columns == 1 and later == 0:  # without a root
        w = exp2_minus(abs((q[0] - k[0]) * scale[0]), bounded)
    else:
        w = weight_of(with_columns(s, q, k, scale, columns, even), scale[0], one, code, even, bounded)
    return w if own == 0 or place != mine else one - one


@ordered_loop
def add_own(query, key, value, weight, mine, mine_weight, scale, one, kind, denominator, numerator):
    """Add each query's own key to its sums, with the weight left after leave-one-out has removed one unit."""
    code, _, _, even, _, bounded = kind
    for i in range(query.shape[0]):
        j = mine[i]
        if 0 <= j < key.shape[1] and mine_weight[i] > 0.0:
            s = one - one
            for a in range(key.shape[0]):
                s = with_column(s, query[i, a], key[a, j], scale[a], even)
            left = mine_weight[i] * weight_of(s, scale[0], one, code, even, bounded)
            denominator[i] += left
            for v in range(value.shape[0]):
                numerator[i, v] += left * value[v, j] / weight[j]


@bare_part
def with_pair(weights, values, weight, times, column, j, weighted, one_value):
    """Return a query's sums of weights and of weighted values with one key added."""
    # Values are summed here only if they have one column.
    if one_value == 1:
        values += weight * column[j]
    return weights + (weight * times[j] if weighted == 1 else weight), values


@bare_part
def add_sums(denominator, numerator, rows, weights, values, one_value):
    """Add the sums of two or four queries to their rows of `denominator` and `numerator`."""
    # A repeated row comes with zeros. Values are added only if they have one column.
    for r in range(len(rows)):
        denominator[rows[r]] += weights[r]
        if one_value == 1:
            numerator[rows[r], 0] += values[r]


_SPECIALISED: dict[tuple[int, ...], Callable[..., Any]] = {}


def specialise(
    code: int, columns: int, later: int, width: int, even: int, weighted: int, own: int, one_value: int, bounded: int,
    rows: int,
) -> Callable[..., Any]:  # fmt: skip
    """Return the loop for weighted means, compiled for one kernel, numbers of columns, float width and set of flags."""
    key = (code, columns, later, width, even, weighted, own, one_value, bounded, rows)
    # Two threads may both make one; all of them use the first, and it is compiled once, under Numba's own lock.
    return _SPECIALISED.get(key) or _SPECIALISED.setdefault(key, _make(*key))


def _make(
    code: int, columns: int, later: int, width: int, even: int, weighted: int, own: int, one_value: int, bounded: int,
    rows: int,
) -> Callable[..., Any]:  # fmt: skip
    a1, a2, a3, a4, a5, a6, a7 = (min(a, columns - 1) for a in range(1, 8))  # those beyond `columns` are not looked at
    number = np.float32 if width == 32 else np.float64
    zero, one = number(0.0), number(1.0)
    by_tile = int(rows > 2 or one_value == 0 or columns > MOST_HELD or later == 1)

    @loop
    def block(query, key, value, weight, place, mine, mine_weight, scale, denominator, numerator):
        """Add each query's sums of weights and weighted values over a block of keys to `denominator` and `numerator`.

        If keys have weights, their values come multiplied by them.
        """
        use_widest_vectors()
        n = key.shape[1]
        front, back = np.zeros((2, TILE), key.dtype), np.zeros((2, TILE), key.dtype)
        weights = np.zeros((4, TILE), key.dtype)
        factors, kind = at(scale, 0, columns), (code, columns, later, even, own, bounded)
        for i in range(0, query.shape[0], rows):
            # Rows that there are not repeat one that there is, and nothing uses that.
            i1, i2, i3 = i + min(1, rows - 1), i + max(0, rows - 2), i + rows - 1
            q0, q1 = at(query[i], 0, columns), at(query[i1], 0, columns)
            q2, q3 = at(query[i2], 0, columns), at(query[i3], 0, columns)
            held = (0.0,) * 4
            for first in range(0, n, TILE):
                last = min(first + TILE, n)
                k0, k1, k2, k3 = key[0, first:last], key[a1, first:last], key[a2, first:last], key[a3, first:last]
                k4, k5, k6, k7 = key[a4, first:last], key[a5, first:last], key[a6, first:last], key[a7, first:last]
                tiles = k0, k1, k2, k3, k4, k5, k6, k7
                column = value[0, first:last]
                times = weight[first:last] if weighted == 1 else k0
                if later == 1:
                    add_later_columns(front, query, i, i1, key, columns, first, last, scale, even)
                    if rows > 2:
                        add_later_columns(back, query, i2, i3, key, columns, first, last, scale, even)
                s0, s1, s2, s3 = front[0], front[1], back[0], back[1]
                w0, w1, w2, w3 = weights[0], weights[1], weights[2], weights[3]
                m0, m1 = number(mine[i] - first), number(mine[i1] - first)
                m2, m3 = number(mine[i2] - first), number(mine[i3] - first)
                t0, t1, t2, t3, v0, v1, v2, v3 = zero, zero, zero, zero, zero, zero, zero, zero
                for j in range(k0.size):
                    k, here = keys_at(tiles, j), place[j]
                    u0 = pair_weight(s0[j] if later == 1 else zero, q0, k, factors, here, m0, one, kind)
                    t0, v0 = with_pair(t0, v0, u0, times, column, j, weighted, one_value)
                    if one_value == 0:
                        w0[j] = u0
                    if rows > 1:
                        u1 = pair_weight(s1[j] if later == 1 else zero, q1, k, factors, here, m1, one, kind)
                        t1, v1 = with_pair(t1, v1, u1, times, column, j, weighted, one_value)
                        if one_value == 0:
                            w1[j] = u1
                    if rows > 2:
                        u2 = pair_weight(s2[j] if later == 1 else zero, q2, k, factors, here, m2, one, kind)
                        u3 = pair_weight(s3[j] if later == 1 else zero, q3, k, factors, here, m3, one, kind)
                        t2, v2 = with_pair(t2, v2, u2, times, column, j, weighted, one_value)
                        t3, v3 = with_pair(t3, v3, u3, times, column, j, weighted, one_value)
                        if one_value == 0:
                            w2[j] = u2
                            w3[j] = u3
                if by_tile == 0:
                    held = held[0] + t0, held[1] + t1, held[2] + v0, held[3] + v1
                    continue
                add_sums(denominator, numerator, (i, i1, i2, i3), (t0, t1, t2, t3), (v0, v1, v2, v3), one_value)
                for r in range(0, rows if one_value == 0 else 0, 2):
                    add_values(weights, r, value, first, last, numerator, i)
            if by_tile == 0:
                add_sums(denominator, numerator, (i, i1), held[:2], held[2:], one_value)
        if own == 1 and weighted == 1:
            add_own(
                query, key, value, weight, mine, mine_weight, scale, one, kind, denominator, numerator
            )  # fmt: skip

    return block


@bare_part
def add_values(weights, row, value, first, last, numerator, i):
    """Add the weighted sums of values over a tile of keys to `numerator`, for two consecutive queries."""
    use_widest_vectors()
    w, u, zero = weights[row], weights[row + 1], weights.dtype.type(0.0)
    for v in range(value.shape[0]):
        column = value[v, first:last]
        s, t = zero, zero
        for j in range(column.size):
            s += w[j] * column[j]
            t += u[j] * column[j]
        numerator[i + row, v] += s
        numerator[i + row + 1, v] += t


def exponent_of(x: np.ndarray) -> np.ndarray:
    """Return the binary exponent of each number, ``floor(log2(x))``, and zero for x = 0."""
    return np.where(x > 0, np.frexp(x)[1] - 1, 0)
