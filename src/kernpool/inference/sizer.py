"""SiZer map: where a curve significantly rises or falls, by bandwidth (significant zero crossings of its slope).

Each bandwidth h has a curve of its own, the expectation of the local linear fit at h. It rises where the
simultaneous interval of its slope lies above zero, and falls where it lies below. Bias is not corrected: the map is
about the curve smoothed at this resolution, not about the true curve. A point has too few rows if::

    sum_j w_j K((q - x_j) / h) / K(0) < 5

References
----------
P. Chaudhuri and J. S. Marron, "SiZer for exploration of structures in curves", JASA 94 (1999), 807-823.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from numbers import Real

import numpy as np
from numpy.typing import NDArray

from kernpool.core import EmptyWindowWarning, RankDeficiencyWarning
from kernpool.execution.error_messages import abbreviate
from kernpool.inference.confidence.intervals import as_level, check_options, interval
from kernpool.inference.variance.residuals import fit_training
from kernpool.inference.variance.standard_errors import InferenceWarning
from kernpool.smoother.linear_smoother import EvaluationPoints, Smoother

Array = NDArray[np.float64]

FEWEST_ROWS = 5.0


@dataclass(frozen=True, eq=False)
class SlopeMap:
    """SiZer map: significant signs of slopes by evaluation point and bandwidth.

    Parameters
    ----------
    x : ndarray of shape (g,)
        Evaluation points.
    bandwidth : ndarray of shape (b,)
        Bandwidths.
    sign : ndarray of int8, shape (b, g)
        1 where the interval of the slope lies above zero, -1 where it lies below, 0 where it contains zero.
    rows : ndarray of shape (b, g)
        Number of rows in the windows, each counted by its weight relative to a row at the point itself.
    enough : ndarray of bool, shape (b, g)
        Where there are at least `fewest_rows` of these, and there is an interval.
    level : float
        Confidence level of the intervals, or of the band of each bandwidth if simultaneous.
    simultaneous : bool
        Whether intervals of a bandwidth form a simultaneous band.

    Examples
    --------
    >>> from kernpool import LocalLinearRegressor, slope_map
    >>> x = np.linspace(0.0, 1.0, 60)
    >>> y = (x - 0.5) ** 2 + 0.02 * np.cos(40.0 * np.arange(60))
    >>> model = LocalLinearRegressor(bandwidth=0.1).fit(x[:, None], y)
    >>> slope_map(model, [[0.1], [0.5], [0.9]], bandwidths=[0.1]).sign
    array([[-1,  0,  1]], dtype=int8)
    """

    x: Array
    bandwidth: Array
    sign: NDArray[np.int8]
    rows: Array
    enough: NDArray[np.bool_]
    level: float
    simultaneous: bool


def sizer_map(
    smoother: Smoother,
    places: EvaluationPoints,
    x: Array,
    bandwidths: Array,
    *,
    level: float = 0.95,
    method: str = "naive",
    variance: str = "local",
    simultaneous: bool = True,
    fewest_rows: float = FEWEST_ROWS,
) -> SlopeMap:
    """Compute a SiZer map: the signs of significant slopes, by bandwidth and evaluation point.

    Parameters
    ----------
    smoother : Smoother
        Smoother of one numeric column; local lines are fitted whatever its degree.
    places : EvaluationPoints
        Evaluation points, in the units in which the smoother compares them.
    x : ndarray of shape (g,)
        The same points, in the caller's units.
    bandwidths : ndarray of shape (b,)
        In the same units.
    level, method, variance
        As of `interval`.
    simultaneous : bool, default=True
        Whether the intervals of a bandwidth cover simultaneously.
    fewest_rows : float, default=5
        Least number of rows in a window.

    Returns
    -------
    SlopeMap
        Takes a leave-one-out pass over the rows and one band for each bandwidth.

    Raises
    ------
    ValueError
        If `level`, `method` or `fewest_rows` is invalid, or there are fewer than five rows.
    """
    level = as_level(level)
    check_options(method, variance, simultaneous)
    if isinstance(fewest_rows, bool) or not isinstance(fewest_rows, Real) or not fewest_rows >= 0:
        raise ValueError(
            f"fewest_rows must be a number of rows, not negative, such as 5, got {abbreviate(fewest_rows)}"
        )
    shape = len(bandwidths), len(x)
    sign, rows, enough = np.zeros(shape, dtype=np.int8), np.zeros(shape), np.zeros(shape, dtype=bool)
    smoother = smoother.of_fixed_width()  # at these bandwidths and no others
    own = float(smoother.recipe.bandwidth[0])
    for i, bandwidth in enumerate(bandwidths):
        at = smoother.of_degree(1).widened(float(bandwidth) / own, levels=False)
        fitted = at.fit(places)
        rows[i] = np.exp(fitted.log_mass - fitted.problem.similarity.log_peak)
        training = fit_training(at)
        if not training.rows - training.trace > 1.0:
            continue  # no residual is left to estimate the noise from
        with warnings.catch_warnings():
            # `enough` reports these points instead of warnings.
            warnings.simplefilter("ignore", EmptyWindowWarning)
            warnings.simplefilter("ignore", InferenceWarning)
            warnings.simplefilter("ignore", RankDeficiencyWarning)
            found = interval(
                at, training, places, [0], level=level, method=method, variance=variance, simultaneous=simultaneous
            )
        with np.errstate(invalid="ignore"):
            known = found.standard_error[:, 0, 0] > 0  # zero noise is not certainty
            enough[i] = (rows[i] >= fewest_rows) & known
            sign[i] = np.where(enough[i], (found.lower[:, 0, 0] > 0) * 1 - (found.upper[:, 0, 0] < 0) * 1, 0)
    return SlopeMap(x, bandwidths, sign, rows, enough, level, simultaneous)
