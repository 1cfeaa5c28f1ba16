"""Order statistics of scores that bound conformal intervals, of exact ranks: of rows and clusters.

    k = ceil((1 - alpha) (n + 1))

for n rows, where a row of weight 3 counts three times. The confidence level is read as the decimal number that was
written, since ``0.9 * 100`` in floats is not 90. Where a rank exceeds n the interval is infinite.

Rows in clusters, such as the visits of a patient: each cluster counts as one row, and its weight is divided equally
among its rows. With G clusters of N_g rows the scores have the distribution

    sum_g sum_{i in g} delta(S_gi) / ((G + 1) N_g) + delta(infinity) / (G + 1),

whose quantile covers a row of a new cluster with at least the confidence level, if clusters are exchangeable, and
rows within each [1]_. One row drawn from each cluster has the same guarantee and a coverage that varies more [2]_.

References
----------
.. [1] Y. Lee, R. F. Barber and R. Willett, "Distribution-free inference with hierarchical data", arXiv:2306.06342,
   sections 3 and 4.
.. [2] R. Dunn, L. Wasserman and A. Ramdas, "Distribution-free prediction sets for two-layer hierarchical models",
   JASA 118 (2023), 2491-2502.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernpool.conformal.calibration import ConformalProblem
from kernpool.execution.warnings import warn_caller
from kernpool.inference import InferenceWarning, as_level

Array = NDArray[np.float64]

SLACK = 1e-12  # of a sum of fractions of rows, which equals a rank up to rounding


def as_fraction(level: Any) -> Fraction:
    """Convert a coverage level to the exact fraction of its decimal digits, such as 0.9 to 9/10."""
    return Fraction(str(as_level(level)))


def upper_rank(level: Fraction, n: float) -> float:
    """Return the rank of the order statistic that bounds an interval above: ``ceil(level * (n + 1))``."""
    rank = level * (Fraction(float(n)) + 1)
    return float(math.ceil(rank) if float(n).is_integer() else rank)


def least_rows(level: Fraction) -> int:
    """Return the least number of calibration rows for which intervals of a coverage level are finite."""
    return math.ceil(level / (1 - level))


def upper_statistic(values: Array, weight: Array | None, rank: float) -> Array:
    """Return the order statistic of a given rank, counted from the smallest value, along the last axis."""
    # plus infinity beyond the last row
    n = values.shape[-1]
    total = float(n) if weight is None else float(weight.sum())
    if rank > total * (1.0 + SLACK) or not n:
        return np.full(values.shape[:-1], np.inf)
    if weight is None or np.all(weight == 1.0):
        place = max(math.ceil(rank) - 1, 0)
        return np.asarray(np.partition(values, place, axis=-1)[..., place])
    order = np.argsort(values, axis=-1)
    reached = np.cumsum(weight[order], axis=-1) >= rank * (1.0 - SLACK)
    reached[..., -1] = True
    first = np.argmax(reached, axis=-1)
    at = np.take_along_axis(order, first[..., None], axis=-1)
    return np.asarray(np.take_along_axis(values, at, axis=-1)[..., 0])


def warn_of_few(level: Fraction, n: float, what: str = "rows") -> None:
    """Warn if calibration rows, or clusters, are too few for the coverage level, so that intervals are infinite."""
    if upper_rank(level, n) > n * (1.0 + SLACK):
        warn_caller(
            f"an interval of level {float(level):g} needs at least {least_rows(level)} {what} to calibrate it, got "
            f"{n:g}, so that it is infinite: the largest of so few scores is exceeded too often; give more {what}, or "
            "ask for a lower level",
            InferenceWarning,
        )


Integers = NDArray[np.int64]


def cluster_weight(code: Integers, weight: Array) -> Array:
    """Return the weight of each row as a fraction of its cluster's total weight."""
    return np.asarray(weight / np.bincount(code, weight)[code])


def score_bound(setting: ConformalProblem, score: Array) -> Array:
    """Return the quantile of the calibration scores that bounds intervals of the coverage level."""
    # each cluster counts as one row; infinite if there are too few rows
    calibration, level = setting.calibration, setting.level
    if calibration.group is None:
        return upper_statistic(score, calibration.unit_weight, upper_rank(level, calibration.rows))
    weight = cluster_weight(calibration.group, calibration.weight)
    return upper_statistic(score, weight, float(level * (calibration.clusters + 1)))
