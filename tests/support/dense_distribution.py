"""The reference implementation of conditional distributions: all weights in a table, with digits to spare."""

import math

import numpy as np

erf = np.frompyfunc(math.erf, 1, 1)


def shares(weights):
    """Return weights whose rows sum to one, NaN where all are zero, in long double."""
    table = np.asarray(weights, dtype=np.longdouble)
    total = table.sum(axis=1, keepdims=True)
    return np.divide(table, total, where=total > 0, out=np.full(table.shape, np.longdouble(np.nan)))


def rows_of(y, m):
    """Return thresholds of shape (m, t)."""
    y = np.asarray(y, dtype=float)
    return np.broadcast_to(y, (m, y.shape[-1]))


def dense_cdf(weights, value, y, center=0.0):
    """Return the distribution function of shape (m, t); thresholds are common or one row for each query."""
    table, value = shares(weights), np.asarray(value) + np.broadcast_to(center, len(weights))[:, None]
    y = rows_of(y, len(table))
    columns = [np.sum(table * (value <= y[:, [b]]), axis=1) for b in range(y.shape[1])]
    return np.stack(columns, axis=1).astype(float)


def dense_smooth(weights, value, y, width, center=0.0, density=False):
    """Return the smoothed distribution function or its density of shape (m, t)."""
    table, value = shares(weights), np.asarray(value) + np.broadcast_to(center, len(weights))[:, None]
    y, columns = rows_of(y, len(table)), []
    for b in range(y.shape[1]):
        u = (y[:, [b]] - value) / width
        one = np.exp(-u * u / 2) / (width * math.sqrt(2 * math.pi))
        if not density:
            one = 0.5 * (1 + erf(u / math.sqrt(2)).astype(float))
        columns.append(np.sum(table * one, axis=1))
    return np.stack(columns, axis=1).astype(float)


def dense_crps(weights, value, y, center=0.0):
    """Return E|Y - y| - E|Y - Y'| / 2, of shape (m,), by sums over pairs and pairs of pairs."""
    table, value = shares(weights), np.asarray(value, dtype=np.longdouble)
    away = np.abs(value + np.broadcast_to(center, len(table))[:, None] - np.asarray(y)[:, None])
    apart = np.abs(value[:, None] - value)
    return (np.sum(table * away, axis=1) - np.einsum("ij,jk,ik->i", table, apart, table) / 2).astype(float)


def dense_pit(weights, value, y, uniform):
    """Return the probability integral transform of shape (m,)."""
    table, value, y = shares(weights), np.asarray(value), np.asarray(y)[:, None]
    below, tied = np.sum(table * (value < y), axis=1), np.sum(table * (value == y), axis=1)
    return (below + np.asarray(uniform) * tied).astype(float)
