"""Dense reference of local likelihood: Newton's steps at each query with a table of kernel weights, and refits."""

import numpy as np
from scipy.special import expit, logit, xlogy


def mean_of(family, theta):
    return expit(theta) if family == "binomial" else np.exp(theta)


def link_of(family, mean):
    return logit(mean) if family == "binomial" else np.log(mean)


def score(family, y, m):
    """First and minus the second derivative of the log likelihood by the link, for a gamma of shape one."""
    if family == "binomial":
        return y - m, m * (1 - m)
    return (y - m, m) if family == "poisson" else (y / m - 1, y / m)


def deviance(family, y, m):
    """Twice the distance of the log likelihood to the best one, for each unit of weight."""
    if family == "binomial":
        return 2 * (xlogy(y, y / m) + xlogy(1 - y, (1 - y) / (1 - m)))
    return 2 * (xlogy(y, y / m) - (y - m)) if family == "poisson" else 2 * ((y - m) / m - np.log(y / m))


def fit(kernel, offset, y, weight, family, degree=1, ridge=0.0):
    """Return the link at one query and its model-based standard error (of a gamma: of shape one).

    A ridge, per squared unit of each column, penalises half of the squares of slopes.
    """
    kernel, offset, y, weight = (a[kernel * weight > 0] for a in (kernel, offset, y, weight))
    z = np.column_stack([np.ones(len(y)), offset / (unit := np.abs(offset).max(axis=0))])[:, : None if degree else 1]
    penalty = np.append(0.0, ridge / unit**2)[: z.shape[1]]
    w = kernel * weight
    beta = np.zeros(z.shape[1])
    beta[0] = link_of(family, w @ y / w.sum())

    def loss(beta):
        return w @ deviance(family, y, mean_of(family, z @ beta)) + penalty @ beta**2

    for _ in range(100):
        first, second = score(family, y, mean_of(family, z @ beta))
        matrix = (z * (w * second)[:, None]).T @ z + np.diag(penalty)
        step = np.linalg.solve(matrix, z.T @ (w * first) - penalty * beta)
        while loss(beta + step) > loss(beta) * (1 + 1e-14):
            step /= 2
        beta = beta + step
        if np.abs(step).max() < 1e-13 * (1 + np.abs(beta).max()):
            break
    second = score(family, y, mean_of(family, z @ beta))[1]
    inverse = np.linalg.inv((z * (w * second)[:, None]).T @ z + np.diag(penalty))
    return beta[0], np.sqrt((inverse @ (z * (w * kernel * second)[:, None]).T @ z @ inverse)[0, 0])


def fits(kernel, query, key, y, family, degree=1, weight=None, ridge=0.0):
    """Return links and standard errors of all queries, of kernel weights of shape (m, n)."""
    weight = np.ones(len(y)) if weight is None else weight
    each = [fit(row, key - q, y, weight, family, degree, ridge) for row, q in zip(kernel, query, strict=True)]
    return np.transpose(each)


def left_out(kernel, key, y, family, degree=1, weight=None, unit=None):
    """Return the link of each row by a fit without one unit of it, or without all rows of its unit."""
    weight = np.ones(len(y)) if weight is None else weight
    found = np.empty(len(y))
    for i, row in enumerate(kernel):
        kept = weight - np.eye(len(y))[i] if unit is None else weight * (unit != unit[i])
        found[i] = fit(row, key - key[i], y, kept, family, degree)[0]
    return found
