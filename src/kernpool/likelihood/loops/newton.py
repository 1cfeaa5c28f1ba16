"""Compiled loops of local likelihood: Newton's method of a query's local plane, from the weights of its keys.

The log likelihood is concave along every direction, so its slope along a step says whether the step went too far, and
no likelihood is ever evaluated: a step is halved while that slope is more negative than half of what it was.
"""

import math

import numpy as np

from kernpool.algorithms.loops.kernel_weights import exp2
from kernpool.execution.compilation import bare_part, loop, ordered_loop

LOG2E = 1.4426950408889634
GAMMA, BINOMIAL = 1, 2  # numbers of `kernpool.likelihood.families`; the others are counts
COLLINEAR = 1e-10  # least share of a direction's square that those before it do not explain
MOST_STEPS, MOST_OF_SEARCH, MOST_OF_PRIOR, MOST_HALVINGS = 30, 15, 100, 60
FARTHEST = 30.0  # from the link of the mean of all rows: a probability of 1e-13 is no finding of fewer rows


@bare_part
def evaluate(family, weight, y, offset, beta, first, second):
    """Compute the scores of keys, times their weights, at a plane."""
    count, p = weight.size, offset.shape[0]
    for j in range(count):
        first[j] = beta[0]
    for a in range(p):
        column, slope = offset[a][:count], beta[1 + a]  # contiguous, which a part of both axes would not be
        for j in range(count):
            first[j] += slope * column[j]
    # A loop for each family: within one the choice would keep it from vectors.
    if family == BINOMIAL:
        for j in range(count):
            eta = first[j]
            e = exp2(-abs(eta) * LOG2E)
            share = 1.0 / (1.0 + e)
            probability = share if eta >= 0.0 else e * share
            first[j] = weight[j] * (y[j] - probability)
            second[j] = weight[j] * (e * share * share)
    elif family == GAMMA:
        for j in range(count):
            ratio = y[j] * exp2(-first[j] * LOG2E)
            first[j] = weight[j] * (ratio - 1.0)
            second[j] = weight[j] * ratio
    else:
        for j in range(count):
            mean = exp2(first[j] * LOG2E)
            first[j] = weight[j] * (y[j] - mean)
            second[j] = weight[j] * mean


@bare_part
def accumulate(offset, first, second, score, matrix, product):
    """Sum scores and second derivatives, times the regressors, over keys."""
    count, p = first.size, offset.shape[0]
    total, square = 0.0, 0.0
    for j in range(count):
        total += first[j]
        square += second[j]
    score[0], matrix[0, 0] = total, square
    for a in range(p):
        column = offset[a][:count]
        total, square = 0.0, 0.0
        for j in range(count):
            product[j] = second[j] * column[j]
            total += first[j] * column[j]
            square += product[j]
        score[1 + a], matrix[1 + a, 0] = total, square
        for c in range(a + 1):
            other, square = offset[c][:count], 0.0
            for j in range(count):
                square += product[j] * other[j]
            matrix[1 + a, 1 + c] = square


@ordered_loop
def factorise(matrix, factor, kept):
    """Compute the Cholesky factor of a symmetric matrix; return its rank. What others explain is dropped."""
    size, rank = matrix.shape[0], 0
    for a in range(size):
        for b in range(a):
            x = matrix[a, b]
            for c in range(b):
                x -= factor[a, c] * factor[b, c]
            factor[a, b] = x / factor[b, b] if kept[b] else 0.0
        left = matrix[a, a]
        for c in range(a):
            left -= factor[a, c] * factor[a, c]
        kept[a] = left > COLLINEAR * matrix[a, a] and left > 0.0
        factor[a, a] = math.sqrt(left) if kept[a] else 1.0
        if not kept[a]:
            for b in range(a):
                factor[a, b] = 0.0
        rank += kept[a]
    return rank


@ordered_loop
def solve(factor, kept, right, found):
    """Solve the equations of a Cholesky factor; what is dropped is zero."""
    size = right.size
    for a in range(size):
        x = right[a]
        for b in range(a):
            x -= factor[a, b] * found[b]
        found[a] = x / factor[a, a] if kept[a] else 0.0
    for a in range(size - 1, -1, -1):
        x = found[a]
        for b in range(a + 1, size):
            x -= factor[b, a] * found[b]
        found[a] = x / factor[a, a] if kept[a] else 0.0


@bare_part
def inner(x, y):
    """Return the inner product of two short vectors."""
    total = 0.0
    for a in range(x.size):
        total += x[a] * y[a]
    return total


@bare_part
def gather(row, size, y, offset, w, value, column):
    """Copy keys of positive weight, and return how many these are."""
    keys = 0
    for j in range(row.size):
        x = row[j] * size[j]
        if x > 0.0:
            w[keys], value[keys] = x, y[j]
            for a in range(offset.shape[0]):
                column[a, keys] = offset[a, j]
            keys += 1
    return keys


@bare_part
def add_prior(amount, mean, spread, w, value, column, count):
    """Append pseudo-keys: two on either side of the query along each column, or one at it; return how many keys are."""
    pseudo = max(2 * spread.size, 1)
    for k in range(pseudo):
        w[count], value[count] = amount / pseudo, mean
        for a in range(spread.size):
            column[a, count] = 0.0 if k // 2 != a else (1.0 - 2.0 * (k % 2)) * min(1.0, spread[a])
        count += 1
    return count


@bare_part
def penalise(penalty, spread, along, score, matrix):
    """Add a penalty on half of the squares of slopes per standard deviation."""
    for a in range(spread.size):
        own = penalty * spread[a] * spread[a]
        score[1 + a] -= own * along[1 + a]
        matrix[1 + a, 1 + a] += own


@bare_part
def link_of_mean(family, own, here):
    """Return the linear predictor of the weighted mean of keys."""
    total, sums = 0.0, 0.0
    for j in range(own.size):
        total += own[j]
        sums += own[j] * here[j]
    return math.log(sums / (total - sums)) if family == BINOMIAL else math.log(sums / total)


@loop
def maximise(
    family,
    weight,
    size,
    y,
    offset,
    mean,
    spread,
    ridge,
    prior,
    whole,
    start,
    tolerance,
    exact,
    beta,
    readout,
    rank,
    by_prior,
):
    """Maximise the local log likelihood at each query of a block.

    Parameters
    ----------
    family : int
        Which likelihood.
    weight : ndarray of shape (m, n)
        Weights of keys for queries.
    size, y : ndarray of shape (n,)
        Exposure or trials of a key, and its output per unit of these.
    offset : ndarray of shape (m, p, n)
        Offsets of keys from queries.
    mean : float
        Of all rows.
    spread : ndarray of shape (m, p)
        Standard deviations of columns, in the units of offsets.
    ridge : ndarray of shape (m,)
        Penalty on half of the squares of slopes, of these units.
    prior, whole : ndarray of shape (m,)
        Weight of pseudo-keys with the mean, two on either side of the query along each column, or one at it; and that
        where steps do not end without more.
    start : ndarray of shape (m, 1 + p) or (0, 1 + p)
        Coefficients to begin with, which are forgotten if steps from there do not end; by default those of the mean.
    tolerance : float
        Of the last step, relative to the coefficients.
    exact : bool
        Whether second derivatives are those at the end, and not those before the last step.
    beta, readout : ndarray of shape (m, 1 + p)
        Coefficients, and the first column of the inverse of minus the second derivatives; these are outputs.
    rank, by_prior : ndarray of shape (m,)
        Number of directions that are determined, and whether there are pseudo-keys; these are outputs.
    """
    m, n = weight.shape
    p = offset.shape[1]
    most = n + max(2 * p, 1)
    w, value, column = np.empty(most), np.empty(most), np.empty((p, most))
    one, two, product = np.empty(most), np.empty(most), np.empty(most)
    score, step, first_unit = np.empty(1 + p), np.empty(1 + p), np.zeros(1 + p)
    matrix, factor, kept = np.empty((1 + p, 1 + p)), np.empty((1 + p, 1 + p)), np.empty(1 + p, dtype=np.bool_)
    first_unit[0] = 1.0
    center = math.log(mean / (1.0 - mean)) if family == BINOMIAL else math.log(mean)
    few = MOST_STEPS if exact or family == GAMMA else MOST_OF_SEARCH
    for i in range(m):
        keys = gather(weight[i], size, y, offset[i], w, value, column)
        if keys == 0:
            beta[i], readout[i], rank[i], by_prior[i] = np.nan, np.nan, 0, False
            continue
        amount, again, known, along = prior[i], True, len(start) > 0, beta[i]
        while again:
            count = keys
            if amount > 0.0:
                count = add_prior(amount, mean, spread[i], w, value, column, keys)
            own, here, first, second = w[:count], value[:count], one[:count], two[:count]
            along[:] = 0.0
            along[0] = link_of_mean(family, own, here)
            known = known and math.isfinite(start[i].sum())
            if known:
                along[:] = start[i]
            slope, halvings, steps, converged = np.inf, 0, 0, False
            while steps <= (MOST_OF_PRIOR if amount > 0.0 else few):
                evaluate(family, own, here, column, along, first, second)
                accumulate(column, first, second, score, matrix, product[:count])
                penalise(ridge[i], spread[i], along, score, matrix)
                if steps and not converged and halvings < MOST_HALVINGS and not inner(score, step) >= -0.5 * slope:
                    halvings += 1
                    slope *= 0.5
                    for a in range(1 + p):
                        step[a] *= 0.5
                        along[a] -= step[a]
                    continue
                rank[i] = factorise(matrix, factor, kept)
                if converged:
                    break
                solve(factor, kept, score, step)
                slope, length, scale = inner(score, step), 0.0, 1.0
                for a in range(1 + p):
                    if not abs(step[a]) <= length:  # nor if it is no number
                        length = abs(step[a])
                    scale = max(scale, abs(along[a]))
                    along[a] += step[a]
                steps, halvings = steps + 1, 0
                converged = length <= tolerance * scale
                if not math.isfinite(length) or (converged and not exact):
                    break
            solve(factor, kept, first_unit, readout[i])
            again = not converged or not (family == GAMMA or abs(along[0] - center) <= FARTHEST)
            if known:
                known = False
            elif amount < whole[i]:
                amount = whole[i] if again else amount
            else:
                again = False
        by_prior[i] = amount > 0.0
