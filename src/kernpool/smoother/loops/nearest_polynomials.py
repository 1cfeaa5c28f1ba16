"""Compiled local polynomial fits of degree 0, 1 or 2 with tricube weights in nearest-neighbour windows.

Each query visits the keys ``begin`` to ``stop - 1`` once for the weights and the moments of the polynomial, and once
for the linear weights of the values, or starts from sums that have been computed for all queries together. Offsets are
in widths of the window, so moments lie between -1 and 1.
"""

import numpy as np

from kernpool.execution.compilation import bare_part, loop

# Of the correlation of the terms. Above it fits are right to 1e-11. Below it those of windows are left to a
# decomposition, and those of sums, whose rounding is a hundred times as large, to windows.
LEAST_PIVOT, LEAST_PIVOT_OF_SUMS = 1e-5, 1e-3
EDGE = 1e-15  # of 1 - |t|**3: at the edge of a window it is rounding


@bare_part
def weigh_keys(query, key, weight, first, length, s, term, pair):
    """Write offsets from the query in widths to `term` from row 1 on, and the kernel times the weight to `pair`.

    In a window of width zero only keys that equal the query have a weight.
    """
    inverse = 1.0 / s if s > 0.0 else 0.0
    for j in range(length):
        pair[j] = 0.0
    for a in range(key.shape[0]):
        offset, column, place = term[1 + a], key[a], query[a]
        if s > 0.0:
            for j in range(length):
                t = (column[first + j] - place) * inverse
                offset[j] = t
                pair[j] += t * t
        else:
            for j in range(length):
                offset[j] = 0.0
                pair[j] += 0.0 if column[first + j] == place else 1.0
    for j in range(length):
        square = pair[j]
        z = 1.0 - square * np.sqrt(square)
        pair[j] = z * z * z * weight[first + j] if z > EDGE else 0.0


@bare_part
def multiply_offsets(term, columns, length):
    """Write the products of offsets below them: squares and mixed products."""
    row = 1 + columns
    for a in range(columns):
        for b in range(a, columns):
            product, one, other = term[row], term[1 + a], term[1 + b]
            for j in range(length):
                product[j] = one[j] * other[j]
            row += 1


@bare_part
def sum_moments(term, pair, terms, length, scratch, moment):
    """Sum the products of terms, times the weights of keys."""
    for a in range(terms):
        one = term[a]
        for j in range(length):
            scratch[j] = pair[j] * one[j]
        for b in range(a + 1):
            other, total = term[b], 0.0
            for j in range(length):
                total += scratch[j] * other[j]
            moment[a, b] = total


@bare_part
def solve(moment, terms, bound, root, factor, solution):
    """Write the first column of the inverse of the moments to `solution`; return the smallest pivot.

    Pivots are those of the Cholesky factor of the correlation of the terms. Below the bound nothing is solved.
    """
    least = 1.0
    for a in range(terms):
        root[a] = np.sqrt(moment[a, a])
        if not root[a] > 0.0:
            return 0.0
    for a in range(terms):
        for b in range(a + 1):
            total = moment[a, b] / (root[a] * root[b])
            for c in range(b):
                total -= factor[a, c] * factor[b, c]
            if a == b:
                least = min(least, total)
                if not total > bound:
                    return total
                factor[a, a] = np.sqrt(total)
            else:
                factor[a, b] = total / factor[b, b]
    for a in range(terms):
        total = 1.0 / root[0] if a == 0 else 0.0
        for c in range(a):
            total -= factor[a, c] * solution[c]
        solution[a] = total / factor[a, a]
    for a in range(terms - 1, -1, -1):
        total = solution[a]
        for c in range(a + 1, terms):
            total -= factor[c, a] * solution[c]
        solution[a] = total / factor[a, a]
    for a in range(terms):
        solution[a] /= root[a]
    return least


@loop
def fit_windows(
    query, key, weight, variance, value, begin, stop, width, own, degree, fitted, norm, leverage, share, pivot
):
    """Write fit, squared norm of the linear weights, linear weight of the own key, and smallest pivot of each query.

    Keys are (columns, n). Norms are sums of squared linear weights times variances. `own` is -1 for queries that are no
    keys. `share` gets the linear weights, unless it has no columns. A pivot is zero where nothing has been solved, and
    -1 where no key has a weight.
    """
    columns, n = key.shape
    most = 1 + columns + columns * (columns + 1) // 2
    term, pair, scratch = np.ones((most, n)), np.empty(n), np.empty(n)
    moment, factor, root, solution = np.empty((most, most)), np.empty((most, most)), np.empty(most), np.empty(most)
    for i in range(query.shape[0]):
        first, length, s = begin[i], stop[i] - begin[i], width[i]
        weigh_keys(query[i], key, weight, first, length, s, term, pair)
        terms = 1
        if s > 0.0 and degree > 0:
            terms += columns
        if s > 0.0 and degree > 1:
            multiply_offsets(term, columns, length)
            terms = most
        sum_moments(term, pair, terms, length, scratch, moment)
        pivot[i] = -1.0
        if not moment[0, 0] > 0.0:
            continue
        least = solve(moment, terms, LEAST_PIVOT, root, factor, solution)
        pivot[i] = least if least > LEAST_PIVOT else 0.0
        if pivot[i] == 0.0:
            continue
        for j in range(length):
            scratch[j] = solution[0]
        for a in range(1, terms):
            one, slope = term[a], solution[a]
            for j in range(length):
                scratch[j] += slope * one[j]
        fit, squares = 0.0, 0.0
        for j in range(length):
            linear = scratch[j] * pair[j]
            scratch[j] = linear
            fit += linear * value[first + j]
            squares += linear * linear * variance[first + j]
        fitted[i], norm[i] = fit, squares
        leverage[i] = scratch[own[i] - first] if first <= own[i] < first + length else 0.0
        if share.shape[1] > 0:
            for j in range(length):
                share[i, first + j] = scratch[j]


@loop
def fit_sums(sums, squared, own_weight, fitted, norm, leverage, pivot):
    """Write the fits of one column, as `fit_windows`, from sums; leave what is lost in sums as it is.

    ``sums[i, 0, e]`` are kernel weights times offset**e, ``sums[i, 1, e]`` those times values, and ``squared[i, e]``
    squared kernel weights times variances. Sums may be NaN. `own_weight` is the kernel weight of a query's own key.
    """
    terms = (sums.shape[2] + 1) // 2
    (moment, factor), (root, solution) = np.empty((2, terms, terms)), np.empty((2, terms))
    for i in range(sums.shape[0]):
        for a in range(terms):
            for b in range(a + 1):
                moment[a, b] = sums[i, 0, a + b]
        least = solve(moment, terms, LEAST_PIVOT_OF_SUMS, root, factor, solution)
        if not least > LEAST_PIVOT_OF_SUMS or np.isnan(squared[i, 0]):
            continue
        fit, squares = 0.0, 0.0
        for a in range(terms):
            fit += solution[a] * sums[i, 1, a]
            for b in range(terms):
                squares += solution[a] * solution[b] * squared[i, a + b]
        fitted[i], norm[i], leverage[i], pivot[i] = fit, squares, solution[0] * own_weight[i], least
