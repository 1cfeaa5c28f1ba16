"""The names in the tables of `r-locfit-kernsmooth.md`."""

import numpy as np
import pandas as pd

from kernpool import (
    LocalLikelihoodRegressor,
    LocalLinearRegressor,
    LocalPolynomialRegressor,
    NadarayaWatsonRegressor,
    Nearest,
    ResidualDisplay,
    convert_bandwidth,
    lowess,
    pool,
)
from kernpool.datasets import make_sine_power

sample = make_sine_power(random_state=0)
x, y, query = sample.x_train, sample.y_train, np.linspace(0.5, 4.5, 9)
X, Q = x[:, None], query[:, None]
groups = np.arange(len(x)) % 2
count, hit = np.floor(y - y.min()), np.where(groups, y > 2, y > 4)
d, new = pd.DataFrame({"x": x, "y": y, "count": count, "hit": hit}), pd.DataFrame({"x": query})


def local(kernel, h, degree, coefficient=0):
    """Weighted least squares around each query, one after the other, with a bandwidth for all or one for each."""
    found = []
    for q, width in zip(query, np.broadcast_to(h, query.shape), strict=True):
        root = np.sqrt(kernel(np.abs(x - q) / width))
        design = np.vander(x - q, degree + 1, increasing=True)
        found.append(np.linalg.lstsq(root[:, None] * design, root * y, rcond=None)[0][coefficient])
    return np.array(found)


def likelihood(kernel, h):
    """Counts: steps of Newton to the line of the log of the mean with the largest weighted likelihood."""
    found = []
    for q in query:
        weight, design = kernel(np.abs(x - q) / h), np.vander(x - q, 2, increasing=True)
        line = np.array([np.log(weight @ count / weight.sum()), 0.0])
        for _ in range(30):
            mean = np.exp(design @ line)
            hessian = (design * (weight * mean)[:, None]).T @ design
            line = line + np.linalg.solve(hessian, design.T @ (weight * (count - mean)))
        found.append(np.exp(line[0]))
    return np.array(found)


def width_of(nn):
    """Distances of the rows that a share nn of all is as near as, the nearest ones of each query."""
    return np.sort(np.abs(query[:, None] - x), axis=1)[:, int(nn * len(x)) - 1]


def gaussian(u):
    return np.exp(-(u**2) / 2)


def gaussian_of_locfit(u):
    return np.exp(-((2.5 * u) ** 2) / 2)


def gaussian_of_ksmooth(u):
    return np.where(u <= 4, gaussian(u), 0.0)  # cut at four standard deviations


def tricube(u):
    return np.where(u < 1, (1 - np.minimum(u, 1) ** 3) ** 3, 0.0)


def locpoly(h, degree, coefficient=0, points=401):
    """Shares of each row go to the two points of a grid around it; fits at these points, and lines between them."""
    step = (x.max() - x.min()) / (points - 1)
    left = np.minimum(((x - x.min()) / step).astype(int), points - 2)
    share = (x - x.min()) / step - left
    weight, total = np.zeros(points), np.zeros(points)
    for i, part in ((left, 1 - share), (left + 1, share)):
        np.add.at(weight, i, part)
        np.add.at(total, i, part * y)
    grid, some = np.linspace(x.min(), x.max(), points), weight > 0
    at, mean, weight = grid[some], total[some] / weight[some], weight[some]
    found = []
    for g in grid:
        u = np.abs(at - g) / h
        root = np.sqrt(np.where(u <= 4, gaussian(u), 0.0) * weight)
        design = np.vander(at - g, degree + 1, increasing=True)
        found.append(np.linalg.lstsq(root[:, None] * design, root * mean, rcond=None)[0][coefficient])
    return np.interp(query, grid, found)
