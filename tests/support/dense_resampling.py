"""Slow references of resampled fits and tests: matrices of shares, query by query and resample by resample."""

import numpy as np

from kernpool import get_kernel


def kernel_matrix(query, key, bandwidth, kernel="gaussian", tables=(), code=None):
    """Weights of pairs: kernel of the norm, times the factors of levels."""
    distance = np.sqrt((((query[:, None, :] - key[None, :, :]) / bandwidth) ** 2).sum(axis=2))
    weight = get_kernel(kernel).profile(distance)
    for a, table in enumerate(tables):
        weight = weight * table[code[:, a][:, None], code[:, a][None, :]]
    return weight


def shares(weight, query, key, degree, ridge=0.0):
    """Shares of keys in fits and in slopes (per unit), of shape (m, 1 + d, n) for degree 1, by normal equations."""
    m, n = weight.shape
    found = np.empty((m, 1 + degree * key.shape[1], n))
    for i in range(m):
        design = np.hstack([np.ones((n, 1)), key - query[i]])[:, : found.shape[1]]
        normal = (design * weight[i][:, None]).T @ design
        normal += np.diag(np.concatenate([[0.0], ridge * np.ones(found.shape[1] - 1)]))
        found[i] = np.linalg.solve(normal, (design * weight[i][:, None]).T)
    return found


def smoother(X, bandwidth, degree, query=None, **kernel):
    """Matrix of a fit."""
    query = X if query is None else query
    return shares(kernel_matrix(query, X, bandwidth, **kernel), query, X, degree)[:, 0]


def leave_one_out(S, y):
    """Residuals from the others, by the diagonal of the matrix."""
    return (y - S @ y) / (1.0 - np.diag(S))


def pair_statistic(u, K):
    """T of one vector of residuals, off the diagonal."""
    K = K - np.diag(np.diag(K))
    return u @ K @ u / np.sqrt(2.0 * (u**2) @ (K**2) @ (u**2))


def p_value(statistic, resampled):
    """Of one-sided tests."""
    return (1 + sum(t >= statistic for t in resampled)) / (1 + len(resampled))
