"""Compiled sums of the local likelihood: scores and second derivatives of the keys of queries, at local planes."""

import numpy as np

from kernpool.algorithms.loops.kernel_weights import exp2
from kernpool.execution.compilation import bare_part, loop

LOG2E = 1.4426950408889634
GAMMA, BINOMIAL = 1, 2  # numbers of `kernpool.likelihood.families`; the others are counts


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
        score[1 + a], matrix[1 + a, 0], matrix[0, 1 + a] = total, square, square
        for c in range(a + 1):
            other, square = offset[c][:count], 0.0
            for j in range(count):
                square += product[j] * other[j]
            matrix[1 + a, 1 + c] = matrix[1 + c, 1 + a] = square


@loop
def gather(share, y, offset, count, weight, value, column):
    """Copy the keys of positive weight of each query, and count them.

    Parameters
    ----------
    share : ndarray of shape (m, n)
        Weights of keys for queries, times their sizes.
    y : ndarray of shape (n,)
        Output of a key per unit of its size.
    offset : ndarray of shape (m, p, n)
        Offsets of keys from queries.
    count : ndarray of int, shape (m,)
        Number of keys; an output, as are the next.
    weight, value : ndarray of shape (m, n)
        Their weights and outputs.
    column : ndarray of shape (m, p, n)
        Their offsets.
    """
    for i in range(count.size):
        keys = 0
        for j in range(y.size):
            if share[i, j] > 0.0:
                weight[i, keys], value[i, keys] = share[i, j], y[j]
                for a in range(offset.shape[1]):
                    column[i, a, keys] = offset[i, a, j]
                keys += 1
        count[i] = keys


@loop
def sum_scores(family, which, count, weight, value, column, beta, score, matrix):
    """Sum scores of the keys of some queries, and minus second derivatives, at planes.

    Parameters
    ----------
    family : int
        Which likelihood.
    which : ndarray of int, shape (k,)
        Which queries.
    count, weight, value, column
        Their keys, as of `gather`.
    beta : ndarray of shape (k, 1 + p)
        Planes.
    score, matrix : ndarray of shape (k, 1 + p) and (k, 1 + p, 1 + p)
        Sums; these are outputs.
    """
    first, second, product = np.empty(weight.shape[1]), np.empty(weight.shape[1]), np.empty(weight.shape[1])
    for k in range(which.size):
        i, keys = which[k], count[which[k]]
        evaluate(family, weight[i, :keys], value[i, :keys], column[i], beta[k], first[:keys], second[:keys])
        accumulate(column[i], first[:keys], second[:keys], score[k], matrix[k], product)
