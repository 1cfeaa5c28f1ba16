"""Residuals of the training rows (HC0 to HC3, nearest neighbours) and the local noise variance.

A row pulls the fit towards itself, so its residual is too small. The leave-one-out residual is right on average, up
to the variance of the fit itself, and is the default, as ``HC3`` is for least squares.

======== =============================================== ==========================================
name     squared residual                                source
======== =============================================== ==========================================
hc0      e_j^2                                           White, Econometrica 48 (1980), 817-838
hc1      e_j^2 W / (W - tr H)                            MacKinnon and White, J. Econometrics 29
hc2      e_j^2 / (1 - H_jj)                              (1985), 305-325
hc3      e_j^2 / (1 - H_jj)^2, leave-one-out
nn       of the mean of the three nearest other rows     Calonico, Cattaneo, Titiunik, Econometrica
                                                         82 (2014), 2295-2326
======== =============================================== ==========================================

``nn`` does not use the fit. The local noise variance, and the effective number nu of residuals it averages, with
leave-one-out residuals r::

    sigma^2(q) = sum_j w_j K((q - x_j) / 2h) r_j^2 / sum_j w_j K((q - x_j) / 2h)
    nu(q) = (sum_j w_j K)^2 / sum_j w_j K^2

A window twice that of the fit is a compromise: over the settings of the coverage table, h gives 94.4, 94.6, 94.0
and 94.7 percent where 2h gives 95.7, 95.2, 94.4 and 95.0. The noise variance has to vary smoothly at that scale.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from kernpool._arrays import Array, Index, Integers
from kernpool.smoother import EvaluationPoints, Fitted, Smoother, Training, squared_norm
from kernpool.smoother.quadratic_forms import Summed

NEIGHBOURS = 3
MORE = 8  # more than needed, to find ties with the farthest
ROUNDING = 1e-12  # of distances, and of sums of fractional weights


def nearest_residuals(smoother: Smoother) -> Array:
    r"""Return squared differences of outputs from the means of their J nearest neighbours, times J / (J + 1)."""
    # all ties with the farthest neighbour are included, as in R's nprobust; O(n log n) time
    weight, value = smoother.weight, np.asarray(smoother.keys.value)
    places, code = smoother.keys.rows.array, smoother.key_code
    (kept,) = np.nonzero(weight > 0)
    bandwidth = np.broadcast_to(smoother.recipe.bandwidth, (places.shape[1],))
    points = np.ascontiguousarray(places[kept] / bandwidth if places.shape[1] > 1 else places[kept])
    if code is not None and smoother.categories.kernels:
        points = np.hstack([points, _category_coordinates(code[kept], points)])
    place, group = np.unique(points, axis=0, return_inverse=True)
    group = group.ravel()
    mass = np.bincount(group, weight[kept]).astype(np.float64)
    total = np.stack([np.bincount(group, weight[kept] * v) for v in value[kept].T], axis=1).astype(np.float64)
    own = np.minimum(weight[kept], 1.0)
    wanted = np.minimum(NEIGHBOURS, weight[kept].sum() - own) * (1.0 - ROUNDING)
    find = _on_a_line if place.shape[1] == 1 else _in_space
    count, sums = find(place, mass, total, group, own, wanted)
    count, sums = count - own, sums - own[:, None] * value[kept]
    mean = np.divide(sums, count[:, None], where=count[:, None] > 0, out=np.zeros_like(sums))
    found = np.zeros_like(value)
    found[kept] = (count / (count + 1.0))[:, None] * (value[kept] - mean) ** 2
    return found


def _category_coordinates(code: Integers, points: Array) -> Array:
    """Encode categories as coordinates, so that rows of equal categories are nearer than rows of different ones."""
    extent = float(np.linalg.norm(np.ptp(points, axis=0))) if points.size else 0.0
    step = 2.0 * extent + 1.0
    columns = [np.eye(int(column.max()) + 1)[column] * step for column in code.T]
    return np.hstack(columns)


def _on_a_line(place: Array, mass: Array, total: Array, group: Index, own: Array, wanted: Array) -> tuple[Array, Array]:
    """Return total weight and weighted sum of outputs of each row's nearest neighbours, for a single coordinate."""
    x, last = place[:, 0], len(place) - 1
    low, high = group.copy(), group.copy()
    count, sums = mass[group], total[group]
    active = np.flatnonzero(count - own < wanted)
    while active.size:
        x_own, left, right = x[group[active]], low[active] - 1, high[active] + 1
        to_left = np.where(left >= 0, x_own - x[np.maximum(left, 0)], np.inf)
        to_right = np.where(right <= last, x[np.minimum(right, last)] - x_own, np.inf)
        for nearer, end, step in ((to_left <= to_right, low, -1), (to_right <= to_left, high, 1)):
            rows = active[nearer]
            end[rows] += step
            count[rows] += mass[end[rows]]
            sums[rows] += total[end[rows]]
        active = active[count[active] - own[active] < wanted[active]]
    return count, sums


def _in_space(place: Array, mass: Array, total: Array, group: Index, own: Array, wanted: Array) -> tuple[Array, Array]:
    """Return total weight and weighted sum of outputs of each row's nearest neighbours, for several coordinates."""
    from scipy.spatial import KDTree

    tree = KDTree(place)
    needed = np.zeros(len(place))
    np.maximum.at(needed, group, wanted + own)
    count, sums = np.zeros(len(place)), np.zeros_like(total)
    rows, number = np.arange(len(place)), min(len(place), NEIGHBOURS + 1 + MORE)
    while rows.size:
        distance, found = tree.query(place[rows], k=np.arange(1, number + 1))
        cumulated = np.cumsum(mass[found], axis=1)
        enough = np.greater_equal(cumulated, needed[rows, None])
        farthest = distance[np.arange(len(rows)), np.argmax(enough, axis=1)] * (1.0 + ROUNDING)
        whole = (number == len(place)) | (enough.any(axis=1) & (distance[:, -1] > farthest))
        near = (distance <= farthest[:, None]) | ~enough.any(axis=1)[:, None]
        count[rows[whole]] = np.sum(np.where(near, mass[found], 0.0), axis=1)[whole]
        sums[rows[whole]] = np.sum(np.where(near[:, :, None], total[found], 0.0), axis=1)[whole]
        rows, number = rows[~whole], min(len(place), 2 * number)
    return count[group], sums[group]


def squared_residuals(smoother: Smoother, training: Training, kind: str = "hc3") -> Array:
    """Return squared residuals of one unit of each training row, by an HC0 to HC3 or a nearest-neighbour estimator."""
    freedom = training.freedom
    if kind == "nn":
        squared = nearest_residuals(smoother)
    elif kind == "hc3":
        squared = (training.value - training.deleted) ** 2
    elif kind == "hc2":
        squared = np.maximum((training.value - training.fitted) * (training.value - training.deleted), 0.0)
    else:
        squared = (training.value - training.fitted) ** 2
        if kind == "hc1":
            squared *= training.rows / freedom
    return np.where(training.weight[:, None] > 0, squared, 0.0)


WINDOW = 2.0  # bandwidths of the fit


def local_noise(
    smoother: Smoother, places: EvaluationPoints, squared: Array, sums: Summed | None = None
) -> tuple[Array, Array]:
    """Estimate the noise variance of an observation at points, (m, c), and its degrees of freedom, (m,).

    NaN where the window is empty. Bandwidths of the fit are doubled; smoothings of categories stay, as the noise of
    categories may differ. Degrees of freedom are Kish's effective number of residuals.
    """
    wide = smoother.of_degree(0).widened(WINDOW, levels=False)
    fitted = fit_squares(wide, places, squared)
    norm = squared_norm([(1.0, fitted.linear_weights)], wide.sums if sums is None else sums)
    variance = np.where(fitted.fit.occupied[:, None], np.maximum(fitted.fit.intercept, 0.0), np.nan)
    with np.errstate(divide="ignore"):
        return variance, 1.0 / norm


def fit_squares(smoother: Smoother, places: EvaluationPoints, squared: Array) -> Fitted:
    """Return kernel-weighted means of squares at evaluation points, keeping the digits of small squares."""
    problem = smoother.problem(places)
    # A sum of squares is not centred, which would cost digits where there is little noise. Algorithms need a constant
    # column to be zero.
    kept = problem.frequency > 0
    low, high = squared[kept].min(axis=0), squared[kept].max(axis=0)
    center = np.where(low == high, low, 0.0)
    problem = replace(problem, value=np.ascontiguousarray(squared - center), value_center=center, prepared=None)
    return smoother.fit(problem)
