r"""CV+: the jackknife+ with folds, whose fits leave out a tenth of the rows each.

.. math:: \big[\, (\hat m_{-k(i)}(q) - R_i)_{(k_{\mathrm{low}})},\;
          (\hat m_{-k(i)}(q) + R_i)_{(k_{\mathrm{up}})} \,\big], \qquad R_i = |y_i - \hat m_{-k(i)}(x_i)|

It covers with at least
:math:`1 - 2 \alpha - \min\big\{ \frac{2 (1 - 1/K)}{n/K + 1}, \frac{1 - K/n}{K + 1} \big\}` [1]_, for K folds of equal
size. Unit rows beyond that stay in all fits and do not calibrate: the number of folds is one that leaves few. Clusters
as folds, whose rows share the weight of one, make a jackknife+ for a new cluster [2]_.

References
----------
.. [1] R. F. Barber, E. J. Candes, A. Ramdas and R. J. Tibshirani, "Predictive inference with the jackknife+", Annals of
   Statistics 49 (2021), 486-507, theorem 4.
.. [2] Y. Lee, R. F. Barber and R. Willett, "Distribution-free inference with hierarchical data", arXiv:2306.06342,
   section 4.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from kernpool.conformal.clusters import cluster_weight
from kernpool.conformal.designs import PAIRS_AT_ONCE, TOO_MANY, check_pairs
from kernpool.conformal.predicting import predict, thinned
from kernpool.conformal.ranks import upper_rank, upper_statistic
from kernpool.conformal.setting import Bounds, Setting
from kernpool.execution.threads import cut

Array = NDArray[np.float64]
Integers = NDArray[np.int64]

FOLDS = 10  # or up to 19, with which nearly all rows calibrate
UNUSED = 100  # one in so many rows may stay in all fits


def cv_plus(setting: Setting) -> Bounds:
    """Find intervals of CV+ with ten folds or some more, or as many as there are rows."""
    weight = setting.calibration.weight
    units = np.floor(weight).astype(np.int64)
    folds, size = fold_sizes(float(units.sum()))
    if size == 0:
        return _plus(setting, [], np.zeros((0, 2), dtype=np.int64), np.zeros(0), np.inf)
    row = np.repeat(np.arange(len(units)), units)
    drawn = setting.random.permutation(len(row))[: folds * size]
    held = np.zeros((folds, len(units)))
    np.add.at(held, (np.arange(len(drawn)) % folds, row[drawn]), 1.0)
    pairs = np.argwhere(held > 0)
    count = held[held > 0]
    return _plus(setting, list(held), pairs, count, upper_rank(setting.level, float(folds * size)))


def cluster_plus(setting: Setting) -> Bounds:
    """Find intervals of the jackknife+ for clusters: each is left out as a whole, and counts as one row."""
    calibration = setting.calibration
    assert calibration.group is not None
    _, place = np.unique(calibration.group, return_inverse=True)
    held = [np.where(place == k, calibration.weight, 0.0) for k in range(calibration.clusters)]
    pairs = np.column_stack([place, np.arange(len(place))])
    share = cluster_weight(calibration.group, calibration.weight)
    return _plus(setting, held, pairs, share, float(setting.level * (calibration.clusters + 1)))


def fold_sizes(rows: float) -> tuple[int, int]:
    """Return the number of folds, and that of unit rows in each.

    Examples
    --------
    >>> fold_sizes(20.0), fold_sizes(25.0), fold_sizes(19.0), fold_sizes(4.0)
    ((10, 2), (12, 2), (19, 1), (4, 1))
    """
    units = int(rows)
    if units < FOLDS:
        return units, int(units > 0)
    choices = range(FOLDS, min(2 * FOLDS, units + 1))
    few = (folds for folds in choices if UNUSED * (units % folds) <= units)
    folds = next(few, min(choices, key=lambda folds: units % folds))
    return folds, units // folds


def rows_in_folds(setting: Setting) -> float:
    """Return how many unit rows are in folds, which calibrate."""
    folds, size = fold_sizes(float(np.floor(setting.calibration.weight).sum()))
    return float(folds * size)


def _plus(setting: Setting, held: list[Array], pairs: Integers, weight: Array, rank: float) -> Bounds:
    """Find both ends from fits without what each fold holds out.

    Parameters
    ----------
    setting : Setting
        Of training rows.
    held : list of ndarray of shape (n,)
        How much of the weight of each calibration row each fold holds out.
    pairs : ndarray of int, shape (k, 2)
        Fold and row of what is held out.
    weight : ndarray of shape (k,)
        How much each of them counts.
    rank : float
        Up to which they are counted.
    """
    smoother, calibration = setting.smoother, setting.calibration
    which = calibration.which
    assert which is not None
    (m, c), k = (len(setting.places.query), smoother.value.shape[1]), len(pairs)
    check_pairs("cv+" if calibration.group is None else "jackknife+", m, k, TOO_MANY)
    there, residual = np.empty((len(held), m, c)), np.empty((k, c))
    for fold, out in enumerate(held):
        left = smoother.weight.copy()
        left[which] -= out
        mine, rows = pairs[:, 0] == fold, pairs[pairs[:, 0] == fold, 1]
        if not left.any():  # a single cluster, or a single row
            there[fold], residual[mine] = np.nan, np.inf
            continue
        fit = thinned(smoother, left)
        there[fold] = predict(fit, setting.places)
        found = predict(fit, calibration.places.rows(rows))
        residual[mine] = np.where(np.isnan(found), np.inf, np.abs(calibration.value[rows] - found))
    lower, upper = np.full((m, c), -np.inf), np.full((m, c), np.inf)
    for places in cut(m, max(1, PAIRS_AT_ONCE // max(k, 1))):
        for output in range(c):
            without = there[:, places, output].T[:, pairs[:, 0]]
            unknown, reach = np.isnan(without), residual[:, output]
            above, below = (np.where(unknown, np.inf, sign * without + reach) for sign in (1.0, -1.0))
            lower[places, output] = -upper_statistic(below, weight, rank)
            upper[places, output] = upper_statistic(above, weight, rank)
    return Bounds(lower, upper, predict(smoother, setting.places))
