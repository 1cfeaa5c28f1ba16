"""Exponents of pairs, column by column: from differences, or from products about a center."""

from __future__ import annotations

from kernpool.execution.compiling import bare_loop, bare_part, use_widest_vectors

DIFFERENCES, EVEN, PRODUCTS = range(3)  # scaled one by one; of one bandwidth, scaled at the end; centered and scaled
AT_ONCE = 8  # columns


@bare_loop
def center_rows(rows, center, multiplier, factor, out, square):
    """Write centered and scaled rows times a factor, and their squared norms, of coordinates as they are rounded."""
    for i in range(rows.shape[0]):
        total = 0.0
        for a in range(rows.shape[1]):
            x = out.dtype.type((rows[i, a] - center[a]) * multiplier[a])
            out[i, a] = factor * x
            total += float(x) * float(x)
        square[i] = total


@bare_part
def with_column(s, q, k, scale, way):
    """Add one column to an exponent."""
    if way == PRODUCTS:
        return s + q * k
    u = q - k if way == EVEN else (q - k) * scale
    return s + u * u


@bare_part
def with_columns(s, q, k, scale, columns, way):
    """Add one to eight columns to an exponent; the arguments are tuples of eight."""
    s = with_column(s, q[0], k[0], scale[0], way)
    if columns > 1:
        s = with_column(s, q[1], k[1], scale[1], way)
    if columns > 2:
        s = with_column(s, q[2], k[2], scale[2], way)
    if columns > 3:
        s = with_column(s, q[3], k[3], scale[3], way)
    if columns > 4:
        s = with_column(s, q[4], k[4], scale[4], way)
    if columns > 5:
        s = with_column(s, q[5], k[5], scale[5], way)
    if columns > 6:
        s = with_column(s, q[6], k[6], scale[6], way)
    if columns > 7:
        s = with_column(s, q[7], k[7], scale[7], way)
    return s


@bare_part
def at(x, a, most):
    """Return eight neighbours as a tuple, of which those beyond `most` are not looked at."""
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
    """Return key j of each tile."""
    k0, k1, k2, k3, k4, k5, k6, k7 = tiles
    return k0[j], k1[j], k2[j], k3[j], k4[j], k5[j], k6[j], k7[j]


@bare_part
def add_later_columns(buffer, query, i, other, key, begin, first, last, scale, way):
    """Write what columns from `begin` on add to the exponents of two queries, eight columns at a time.

    Two queries, so that a key is loaded for both; four of them have so many arrays that LLVM gives their vectors up.
    """
    use_widest_vectors()
    size, zero = last - first, key.dtype.type(0.0)
    s, t = buffer[0, :size], buffer[1, :size]
    for a in range(begin, key.shape[0], AT_ONCE):
        q, p, c = at(query[i], a, AT_ONCE), at(query[other], a, AT_ONCE), at(scale, a, AT_ONCE)
        k0, k1, k2, k3 = key[a, first:last], key[a + 1, first:last], key[a + 2, first:last], key[a + 3, first:last]
        k4, k5, k6, k7 = key[a + 4, first:last], key[a + 5, first:last], key[a + 6, first:last], key[a + 7, first:last]
        tiles = k0, k1, k2, k3, k4, k5, k6, k7
        # Two loops: where what is read may be what is written, LLVM asks whether they overlap, and they do.
        if a == begin:
            for j in range(size):
                k = keys_at(tiles, j)
                s[j] = with_columns(zero, q, k, c, AT_ONCE, way)
                t[j] = with_columns(zero, p, k, c, AT_ONCE, way)
        else:
            for j in range(size):
                k = keys_at(tiles, j)
                s[j] = with_columns(s[j], q, k, c, AT_ONCE, way)
                t[j] = with_columns(t[j], p, k, c, AT_ONCE, way)
