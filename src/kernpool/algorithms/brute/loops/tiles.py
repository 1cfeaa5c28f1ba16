"""Compiled sums and gradients of a block for every built-in kernel, in stages per tile of keys (staged tiles).

Each query goes through the keys in tiles of 512, whose weights `kernpool.algorithms.loops.kernel_weights` computes
stage by stage. Measured: 1.2e9 Gaussian pairs per second and core in float64. Arrays of keys and values are transposed,
(columns, n), so that inner loops run along memory. An empty array stands for None.

`reduce_stack` sums many small problems of one shape in one call. The moments of a local quadratic fit are added to
those of a local linear one by `add_products`, which is compiled only for problems of degree 2.
"""

import numpy as np

from kernpool.algorithms.loops.kernel_weights import GAUSSIAN, LN_2, slopes, tile_distances, tile_weights
from kernpool.execution.compilation import always_inline, bare_part, loop


@bare_part
def add_products(total, weight, offset, product, q, key, value, first, bandwidth):
    """Add the moments that only local quadratic fits need, over a tile of keys, to `total`."""
    # They are the weighted sums of products of three and four offsets, and of two offsets and a value, and come after
    # those of `add_moments`. `offset` and `product` are buffers, of shapes (columns, at least the tile) and of the
    # tile.
    values, d, size = value.shape[0], q.size, weight.size
    third = values + d + d * (d + 1) // 2 + d * values
    fourth = third + d * (d + 1) * (d + 2) // 6
    cross = fourth + d * (d + 1) * (d + 2) * (d + 3) // 24
    for a in range(d):
        column, place, inverse = key[a, first : first + size], q[a], 1.0 / bandwidth[a]
        for j in range(size):
            offset[a, j] = (column[j] - place) * inverse
    for a in range(d):
        for b in range(a, d):
            for j in range(size):
                product[j] = weight[j] * offset[a, j] * offset[b, j]
            for c in range(b, d):
                tile_sum = 0.0
                for j in range(size):
                    tile_sum += product[j] * offset[c, j]
                total[third] += tile_sum
                third += 1
                for e in range(c, d):
                    tile_sum = 0.0
                    for j in range(size):
                        tile_sum += product[j] * offset[c, j] * offset[e, j]
                    total[fourth] += tile_sum
                    fourth += 1
            for c in range(values):
                column = value[c, first : first + size]
                tile_sum = 0.0
                for j in range(size):
                    tile_sum += product[j] * column[j]
                total[cross] += tile_sum
                cross += 1


TILE = 512
# A raw sum of weights below this may have lost digits to underflow, and the query is done again with a shift.
UNDERFLOW = 1e-280
# Larger with moments: a slope may be determined by keys of any weight, and weights down to 1e-200 must be in range.
UNDERFLOW_OF_MOMENTS = 1e-100


@bare_part
def multiply(weight, first, key_weight, mask, own, own_weight):
    """Multiply kernel weights of a tile of keys by key weights and mask, in place."""
    # The tile starts at key `first`. The query's own key gets `own_weight` instead of its key weight. Empty arrays mean
    # no factor.
    inside = first <= own < first + weight.size
    own_kernel = weight[own - first] if inside else 0.0
    if key_weight.size:
        for j in range(weight.size):
            weight[j] *= key_weight[first + j]
    if inside:
        weight[own - first] = own_kernel * own_weight
    if mask.size:
        for j in range(weight.size):
            weight[j] *= mask[first + j]


@loop
def reduce_block(
    query,
    key,
    value,
    key_weight,
    mask,
    own,
    own_weight,
    bandwidth,
    code,
    infinite,
    product,
    moments,
    quadratic,
    shift,
    denominator,
    numerator,
):
    """Write the kernel sums of a block of queries over a block of keys to `shift`, `denominator`, `numerator`."""
    # `bandwidth` has one row, or one for each query. `moments` and `quadratic` are None for fits without them; their
    # code is not compiled then.
    n = key.shape[1]
    if quadratic is not None:
        offset_buffer, product_buffer = np.empty((key.shape[0], TILE)), np.empty(TILE)
    weight_buffer, s_buffer = np.empty(TILE), np.empty(TILE)
    exponent_buffer, column_buffer = np.empty(TILE), np.empty(TILE)
    total = np.empty(numerator.shape[1])
    for i in range(query.shape[0]):
        row_mask = mask[i] if mask.size else mask.ravel()
        h = bandwidth[min(i, bandwidth.shape[0] - 1)]
        # Sums without a shift; if they may underflow, the exponent of the nearest key, and then sums shifted by that.
        # One call of the stages for all three: each is compiled anew, a second long.
        unit, weights, nearest = 0.0, 0.0, -np.inf
        for turn in range(3):
            weights = 0.0
            total[:] = 0.0
            for first in range(0, n, TILE):
                size = min(TILE, n - first)
                weight, s, exponent = weight_buffer[:size], s_buffer[:size], exponent_buffer[:size]
                tile_weights(
                    weight, s, exponent, column_buffer[:size], query[i], key, first, h, code, infinite, product, unit
                )  # fmt: skip
                if turn == 1:
                    weight[:] = 1.0
                multiply(weight, first, key_weight, row_mask, own[i], own_weight[i])
                if turn == 1:
                    for j in range(size):
                        nearest = max(nearest, exponent[j] if weight[j] > 0.0 else -np.inf)
                    continue
                tile_sum = 0.0
                for j in range(size):
                    tile_sum += weight[j]
                weights += tile_sum
                for c in range(value.shape[0]):
                    column = value[c, first : first + size]
                    tile_sum = 0.0
                    for j in range(size):
                        tile_sum += weight[j] * column[j]
                    total[c] += tile_sum
                if moments is not None:
                    add_moments(total, weight, s, query[i], key, value, first, h)
                if quadratic is not None:
                    add_products(total, weight, offset_buffer, product_buffer, query[i], key, value, first, h)
            if turn == 0 and (not infinite or weights > (UNDERFLOW if moments is None else UNDERFLOW_OF_MOMENTS)):
                break
            if turn == 1:
                if nearest == -np.inf:  # no key takes part: the sums of this turn are zero
                    break
                unit = np.rint(nearest)  # a whole power of two, so that the pullback finds the very same unit again
        shift[i] = unit * LN_2
        denominator[i] = weights
        for c in range(total.size):  # not numerator[i] = total: its error message alone compiles for two seconds
            numerator[i, c] = total[c]


@bare_part
def add_moments(total, weight, tilted, q, key, value, first, bandwidth):
    """Add the moments that a local linear fit needs, over a tile of keys, to `total`, after the sums of values."""
    # Their order is that of `kernpool.core.moments`.
    always_inline()
    values, d, size = value.shape[0], q.size, weight.size
    second = values + d
    cross = second + d * (d + 1) // 2
    for a in range(d):
        column, place, inverse = key[a, first : first + size], q[a], 1.0 / bandwidth[a]
        tile_sum = 0.0
        for j in range(size):
            tilt = weight[j] * ((column[j] - place) * inverse)
            tilted[j] = tilt
            tile_sum += tilt
        total[values + a] += tile_sum
        for b in range(a, d):
            column, place = key[b, first : first + size], q[b]
            tile_sum = 0.0
            for j in range(size):
                tile_sum += tilted[j] * (column[j] - place)
            total[second] += tile_sum / bandwidth[b]
            second += 1
        for c in range(values):
            column = value[c, first : first + size]
            tile_sum = 0.0
            for j in range(size):
                tile_sum += tilted[j] * column[j]
            total[cross] += tile_sum
            cross += 1


@bare_part
def residuals(weight, residual, value, first, inverse, intercept, cotangent):
    """Divide a tile's weights by the denominator; write cotangent times (value minus intercept) to `residual`.

    The products are summed over the columns of values.
    """
    size = weight.size
    for j in range(size):
        weight[j] *= inverse
        residual[j] = 0.0
    for c in range(value.shape[0]):
        column, middle, times = value[c, first : first + size], intercept[c], cotangent[c]
        for j in range(size):
            residual[j] += times * (column[j] - middle)


@bare_part
def tilt_shares(share, residual, weight, q, key, first, bandwidth, base, tilt, along):
    """Write values' linear weights in a local linear fit to `share`; subtract slope times offset from `residual`."""
    size = weight.size
    for j in range(size):
        share[j] = base
    for a in range(along.size):
        column, place, inverse = key[a, first : first + size], q[a], 1.0 / bandwidth[a]
        by_share, by_residual = tilt[a], along[a]
        for j in range(size):
            t = (column[j] - place) * inverse
            share[j] += by_share * t
            residual[j] -= by_residual * t
    for j in range(size):
        share[j] *= weight[j]


@loop
def pullback_block(
    query, key, value, key_weight, mask, own, own_weight, bandwidth, code, infinite, product,
    unit, inverse_denominator, intercept, base, slope, tilt, cotangent, by_query, by_bandwidth, by_key, by_value,
):  # fmt: skip
    """Add a block's contribution to the gradients of pooling, in the `by_*` arrays that are not empty."""
    # See `reference.pullback` for the formula. Without moments `slope` and `tilt` have no columns.
    n, d = key.shape[1], key.shape[0]
    weight_buffer, s_buffer = np.empty(TILE), np.empty(TILE)
    exponent_buffer, column_buffer = np.empty(TILE), np.empty(TILE)
    residual_buffer, share_buffer, ratio_buffer = np.empty(TILE), np.empty(TILE), np.empty(TILE)
    along = np.empty(tilt.shape[1])
    places = by_query.size > 0 or by_key.size > 0
    for i in range(query.shape[0]):
        if inverse_denominator[i] == 0.0:
            continue
        row_mask = mask[i] if mask.size else mask.ravel()
        q, h = query[i], bandwidth[min(i, bandwidth.shape[0] - 1)]
        for a in range(along.size):
            along[a] = 0.0
            for c in range(value.shape[0]):
                along[a] += cotangent[i, c] * slope[i, a, c]
        for first in range(0, n, TILE):
            size = min(TILE, n - first)
            last = first + size
            weight, s, exponent = weight_buffer[:size], s_buffer[:size], exponent_buffer[:size]
            residual, share, ratio = residual_buffer[:size], share_buffer[:size], ratio_buffer[:size]
            tile_weights(weight, s, exponent, column_buffer[:size], q, key, first, h, code, infinite, product, unit[i])
            multiply(weight, first, key_weight, row_mask, own[i], own_weight[i])
            residuals(weight, residual, value, first, inverse_denominator[i], intercept[i], cotangent[i])
            if along.size:
                tilt_shares(share, residual, weight, q, key, first, h, base[i], tilt[i], along)
            else:
                share = weight
            if by_value.size:
                for c in range(value.shape[0]):
                    out, times = by_value[c, first:last], cotangent[i, c]
                    for j in range(size):
                        out[j] += times * share[j]
            if not (places or by_bandwidth.size):
                continue
            share_sum, residual_sum = 0.0, 0.0
            if along.size and places:
                for j in range(size):
                    exponent[j] = weight[j] * residual[j]  # the logits are not needed any more
                    share_sum += share[j]
                    residual_sum += exponent[j]
            for a in range(d):
                if product:
                    tile_distances(s, q[a : a + 1], key[a : a + 1], first, h[a : a + 1], code, infinite)
                if code == GAUSSIAN:
                    if a == 0:
                        for j in range(size):
                            ratio[j] = -(share[j] * residual[j])
                elif product or a == 0:
                    slopes(ratio, s, code)
                    for j in range(size):
                        # at distance zero a symmetric kernel has slope zero, and at weight zero nothing moves
                        ratio[j] = share[j] * residual[j] * ratio[j] if weight[j] > 0.0 and s[j] > 0.0 else 0.0
                column, place, inverse = key[a, first:last], q[a], 1.0 / h[a]
                if by_bandwidth.size:
                    total = 0.0
                    for j in range(size):
                        u = (place - column[j]) * inverse
                        total += ratio[j] * (u * u)
                    by_bandwidth[i, a] -= total
                if by_query.size:
                    total = 0.0
                    for j in range(size):
                        total += ratio[j] * ((place - column[j]) * inverse)
                    if along.size:
                        total += along[a] * share_sum - tilt[i, a] * residual_sum
                    by_query[i, a] += total * inverse
                if by_key.size:
                    out = by_key[a, first:last]
                    for j in range(size):
                        out[j] -= ratio[j] * ((place - column[j]) * inverse) * inverse
                    if along.size:
                        by_share, by_residual = along[a] * inverse, tilt[i, a] * inverse
                        for j in range(size):
                            out[j] -= by_share * share[j] - by_residual * exponent[j]


@loop
def reduce_stack(
    query,
    key,
    value,
    key_weight,
    mask,
    own,
    own_weight,
    bandwidth,
    code,
    infinite,
    product,
    moments,
    quadratic,
    shift,
    denominator,
    numerator,
):
    """Write the kernel sums of several problems of equal shape to `shift`, `denominator` and `numerator`."""
    # Arrays are those of `reduce_block`, stacked along a first axis; all problems share bandwidth, kernel and degree.
    for i in range(query.shape[0]):
        reduce_block(
            query[i],
            key[i],
            value[i],
            key_weight[i],
            mask[i],
            own[i],
            own_weight[i],
            bandwidth,
            code,
            infinite,
            product,
            moments,
            quadratic,
            shift[i],
            denominator[i],
            numerator[i],
        )
