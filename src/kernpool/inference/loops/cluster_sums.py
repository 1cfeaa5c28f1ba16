"""Compiled loops of cluster-robust variances: linear weights times residuals, summed by cluster for each query.

Keys are sorted by cluster.
"""

import numpy as np

from kernpool.algorithms.loops.kernel_weights import LN_2, tile_weights
from kernpool.execution.compilation import bare_part, loop

TILE = 512


@bare_part
def tilt_shares(share, offset, weight, q, key, first, bandwidth, base, tilt, scale):
    """Add the contribution of one local fit to the linear weights of a query, for a block of keys.

    It is the kernel weight times a polynomial of offsets, times a scale.
    """
    d, size = q.size, share.size
    for j in range(size):
        offset[0, j] = base
    for a in range(tilt.size):
        # The offsets are followed by their products, (0, 0), (0, 1), ..., (1, 1), ...
        b, c = a, a
        if a >= d:
            place, b = a - d, 0
            while place >= d - b:
                place -= d - b
                b += 1
            c = b + place
        here, there = 1.0 / bandwidth[b], 1.0 / bandwidth[c]
        for j in range(size):
            t = (key[b, first + j] - q[b]) * here
            if a >= d:
                t *= (key[c, first + j] - q[c]) * there
            offset[0, j] += tilt[a] * t
    for j in range(size):
        share[j] += scale * weight[j] * offset[0, j]


@bare_part
def add_segments(share, residual, inverse_weight, first, ends, group, total, own, variance, sizes):
    """Add a block of keys to the sums of their clusters, and the sums of complete clusters to the query's totals.

    The number of the next cluster to add to is returned.

    `total` holds the sum of linear weights times residuals of the current cluster, by output, `own` that of squared
    linear weights.
    """
    start = 0
    while start < share.size:
        stop = min(ends[group] - first, share.size)
        for c in range(residual.shape[0]):
            column, part = residual[c], 0.0
            for j in range(start, stop):
                part += share[j] * column[first + j]
            total[c] += part
        part = 0.0
        for j in range(start, stop):
            part += share[j] * share[j] * inverse_weight[first + j]
        own[0] += part
        if ends[group] - first == stop:
            for c in range(total.size):
                variance[c] += total[c] * total[c]
                total[c] = 0.0
            sizes[0] += own[0]
            sizes[1] += own[0] * own[0]
            own[0] = 0.0
            group += 1
        start = stop
    return group


@loop
def sum_clusters(
    query,
    key,
    weight,
    inverse_weight,
    residual,
    ends,
    query_level,
    level,
    tables,
    bandwidth,
    code,
    infinite,
    product,
    log_mass,
    base,
    tilt,
    coefficient,
    variance,
    sizes,
):
    """Compute each query's cluster-robust variance, and the sums over clusters for its degrees of freedom.

    `variance` gets, by output, the sum over clusters of the squared sums of linear weights times residuals.
    `sizes` gets two sums over clusters, of s_g and of s_g**2, where s_g is the sum of squared linear weights in cluster
    g, each divided by the frequency weight of its row.

    Linear weights are those of a linear combination of local fits, which run along the first axis of `bandwidth`,
    `tables`, `log_mass`, `base` and `tilt`. Keys and their columns are (columns, n); `ends` has the index after the
    last key of each cluster. Queries with an empty window are left unchanged.
    """
    n, terms = key.shape[1], bandwidth.shape[0]
    weight_buffer, s_buffer, share_buffer = np.empty(TILE), np.empty(TILE), np.empty(TILE)
    exponent_buffer, column_buffer, offset_buffer = np.empty(TILE), np.empty(TILE), np.empty((1, TILE))
    total, own = np.zeros(residual.shape[0]), np.zeros(1)
    for i in range(query.shape[0]):
        empty = False
        for t in range(terms):
            empty = empty or log_mass[t, i] == -np.inf
        if empty:
            continue
        group = 0
        for first in range(0, n, TILE):
            size = min(TILE, n - first)
            share, pair = share_buffer[:size], weight_buffer[:size]
            for j in range(size):
                share[j] = 0.0
            for t in range(terms):
                unit = np.rint(log_mass[t, i] / LN_2) if infinite else 0.0
                tile_weights(
                    pair, s_buffer[:size], exponent_buffer[:size], column_buffer[:size], query[i], key, first,
                    bandwidth[t], code, infinite, product, unit,
                )  # fmt: skip
                for j in range(size):
                    pair[j] *= weight[first + j]
                for b in range(level.shape[0]):
                    table, levels = tables[t, b, query_level[i, b]], level[b]
                    for j in range(size):
                        pair[j] *= table[levels[first + j]]
                scale = coefficient[t] * np.exp(unit * LN_2 - log_mass[t, i])
                tilt_shares(
                    share, offset_buffer[:, :size], pair, query[i], key, first, bandwidth[t], base[t, i], tilt[t, i],
                    scale,
                )  # fmt: skip
            group = add_segments(share, residual, inverse_weight, first, ends, group, total, own, variance[i], sizes[i])
