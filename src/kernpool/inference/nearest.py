"""Residuals from the nearest other rows: estimates of the noise that owe nothing to the fit."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from kernpool.inference.smoother import Smoother

Array = NDArray[np.float64]

NEIGHBOURS = 3
MORE = 8  # than are needed, to find those that are as far as the farthest
ROUNDING = 1e-12  # of distances, and of sums of fractional weights


def nearest_residuals(smoother: Smoother, neighbours: int = NEIGHBOURS) -> Array:
    r"""Return squared differences from the mean of the nearest other rows, times J / (J + 1).

    .. math:: \hat\sigma_j^2 = \frac{J_j}{J_j + 1} \Big( y_j - \frac{1}{J_j} \sum_{i \in N_j} y_i \Big)^2

    Parameters
    ----------
    smoother : Smoother
        Its rows are compared in its units, bandwidths where there are several columns.
    neighbours : int, default=3
        How many unit rows are wanted. All rows as far as the farthest of them count too, which makes J larger.

    Returns
    -------
    ndarray of shape (n, c)
        Rows of other levels are neighbours only where there are not enough of the same.

    Notes
    -----
    In one column this is the definition of R's nprobust, ties included. O(n log n) time.
    """
    weight, value = smoother.weight, np.asarray(smoother.keys.value)
    places, code = smoother.keys.rows.array, smoother.key_code
    (kept,) = np.nonzero(weight > 0)
    bandwidth = np.broadcast_to(smoother.recipe.bandwidth, (places.shape[1],))
    points = np.ascontiguousarray(places[kept] / bandwidth if places.shape[1] > 1 else places[kept])
    if code is not None and len(smoother.categories):
        points = np.hstack([points, _levels(code[kept], points)])
    place, group = np.unique(points, axis=0, return_inverse=True)
    group = group.ravel()
    mass = np.bincount(group, weight[kept]).astype(np.float64)
    total = np.stack([np.bincount(group, weight[kept] * v) for v in value[kept].T], axis=1).astype(np.float64)
    own = np.minimum(weight[kept], 1.0)
    wanted = np.minimum(float(neighbours), weight[kept].sum() - own) * (1.0 - ROUNDING)
    find = _on_a_line if place.shape[1] == 1 else _in_space
    count, sums = find(place, mass, total, group, own, wanted)
    count, sums = count - own, sums - own[:, None] * value[kept]
    mean = np.divide(sums, count[:, None], where=count[:, None] > 0, out=np.zeros_like(sums))
    found = np.zeros_like(value)
    found[kept] = (count / (count + 1.0))[:, None] * (value[kept] - mean) ** 2
    return found


def _levels(code: NDArray[np.int64], points: Array) -> Array:
    """Return coordinates by which rows of other levels are farther than all of the same."""
    extent = float(np.linalg.norm(np.ptp(points, axis=0))) if points.size else 0.0
    step = 2.0 * extent + 1.0
    columns = [np.eye(int(column.max()) + 1)[column] * step for column in code.T]
    return np.hstack(columns)


def _on_a_line(
    place: Array, mass: Array, total: Array, group: NDArray[np.intp], own: Array, wanted: Array
) -> tuple[Array, Array]:
    """Grow a run of places around each row, by the nearer end, or by both where they are equally far."""
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


def _in_space(
    place: Array, mass: Array, total: Array, group: NDArray[np.intp], own: Array, wanted: Array
) -> tuple[Array, Array]:
    """Look for the nearest places in a tree, and take all that are as far as the farthest that is needed."""
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
