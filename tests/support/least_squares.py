"""Weighted least squares in as many digits as weights that differ by any factor need."""

import numpy as np
from mpmath import exp, lu_solve, matrix, mp, mpf, sqrt

LOG = {
    "gaussian": lambda u: -u * u / 2,
    "laplace": lambda u: -u,
    "logistic": lambda u: -u - 2 * mp.log(1 + exp(-u)),
    "epanechnikov": lambda u: mp.log(1 - u * u) if u < 1 else mpf("-inf"),
}


def truth(query, key, value, bandwidth, kernel="gaussian", composition="radial", weight=None, factor=None):
    """Value and slopes of weighted least squares, in digits that are enough for the weights that there are."""
    key, query = np.atleast_2d(key.T).T, np.atleast_1d(query)
    n, d = key.shape
    h = np.broadcast_to(bandwidth, d)
    with mp.workdps(60):
        u = [[(mpf(x) - mpf(q)) / mpf(b) for x, q, b in zip(row, query, h, strict=True)] for row in key.tolist()]
        log = LOG[kernel]
        product = composition == "product"
        logit = [sum(log(abs(x)) for x in row) if product else log(sqrt(sum(x * x for x in row))) for row in u]
        for extra in (weight, factor):
            if extra is not None:
                logit = [x + mp.log(mpf(float(w))) if w > 0 else mpf("-inf") for x, w in zip(logit, extra, strict=True)]
        best = max(range(n), key=lambda j: logit[j])
        logit = [x - logit[best] for x in logit]
    with mp.workdps(600):
        weight = [exp(x) for x in logit]
        row = [
            [mpf(1)] + [mpf(x) - mpf(y) for x, y in zip(key[j].tolist(), key[best].tolist(), strict=True)]
            for j in range(n)
        ]
        value = [mpf(v) for v in value.tolist()]
        left, right = matrix(d + 1, d + 1), matrix(d + 1, 1)
        for w, t, v in zip(weight, row, value, strict=True):
            if w > mpf(10) ** -280:
                for a in range(d + 1):
                    right[a] += w * t[a] * (v - value[best])
                    for b in range(d + 1):
                        left[a, b] += w * t[a] * t[b]
        beta = lu_solve(left, right)
        at = [mpf(1)] + [mpf(q) - mpf(y) for q, y in zip(query.tolist(), key[best].tolist(), strict=True)]
        fit = value[best] + sum(b * x for b, x in zip(beta, at, strict=True))
        return float(fit), np.array([float(b) for b in beta[1:]])
