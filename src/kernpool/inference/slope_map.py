r"""Where a curve rises and falls, at many bandwidths: the map that is called SiZer, for significant zero crossings.

Each bandwidth h has a curve of its own, the mean of the local linear fit at h. Where the simultaneous interval of its
slope lies above zero, it rises; where it lies below, it falls. No bias is taken off: what is asked is what can be seen
of the truth at this resolution, and not the truth itself. A place has too few rows if

.. math:: \sum_j w_j K((q - x_j)/h) / K(0) < 5.

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

from kernpool.core.empty import EmptyWindowWarning
from kernpool.core.local_fit import RankDeficiencyWarning
from kernpool.execution.messages import abbreviate
from kernpool.inference.intervals import check_level, check_method, interval
from kernpool.inference.residuals import fit_training
from kernpool.inference.smoother import Places, Smoother
from kernpool.inference.warnings import InferenceWarning

Array = NDArray[np.float64]

FEWEST_ROWS = 5.0


@dataclass(frozen=True, eq=False)
class SlopeMap:
    """Signs of slopes by place and bandwidth.

    Parameters
    ----------
    x : ndarray of shape (g,)
        Places.
    bandwidth : ndarray of shape (b,)
        Bandwidths.
    sign : ndarray of int8, shape (b, g)
        1 where the interval of the slope lies above zero, -1 where it lies below, 0 where it holds zero.
    rows : ndarray of shape (b, g)
        How many rows the windows hold, each counted by its weight relative to one at the place itself.
    enough : ndarray of bool, shape (b, g)
        Where these are as many as asked for, and there is an interval.
    level : float
        Of the intervals; of all in a row together if simultaneous.
    simultaneous : bool
        Which of the two.

    Examples
    --------
    >>> from kernpool import LocalLinearRegressor
    >>> x = np.linspace(0.0, 1.0, 60)
    >>> y = (x - 0.5) ** 2 + 0.02 * np.cos(40.0 * np.arange(60))
    >>> model = LocalLinearRegressor(bandwidth=0.1).fit(x[:, None], y)
    >>> model.slope_map([[0.1], [0.5], [0.9]], bandwidths=[0.1]).sign
    array([[-1,  0,  1]], dtype=int8)
    """

    x: Array
    bandwidth: Array
    sign: NDArray[np.int8]
    rows: Array
    enough: NDArray[np.bool_]
    level: float
    simultaneous: bool


def slope_map(
    smoother: Smoother,
    places: Places,
    x: Array,
    bandwidths: Array,
    *,
    level: float = 0.95,
    method: str = "naive",
    variance: str = "local",
    simultaneous: bool = True,
    fewest_rows: float = FEWEST_ROWS,
) -> SlopeMap:
    """Find the signs of slopes at many bandwidths.

    Parameters
    ----------
    smoother : Smoother
        Of one numeric column; planes are fitted whatever its degree.
    places : Places
        Where, in the units in which the smoother compares them.
    x : ndarray of shape (g,)
        What to call them.
    bandwidths : ndarray of shape (b,)
        In the same units.
    level, method, variance
        As of `interval`.
    simultaneous : bool, default=True
        Whether the intervals of a bandwidth hold all at once.
    fewest_rows : float, default=5
        Below which windows have too few rows.

    Returns
    -------
    SlopeMap
        A leave-one-out pass over the rows and one band for each bandwidth.

    Raises
    ------
    ValueError
        If the level or method is none, `fewest_rows` is no number, or there are fewer than five rows.
    """
    check_level(level)
    check_method(method)
    if isinstance(fewest_rows, bool) or not isinstance(fewest_rows, Real) or not fewest_rows >= 0:
        raise ValueError(
            f"fewest_rows must be a number of rows, not negative, such as 5, got {abbreviate(fewest_rows)}"
        )
    shape = len(bandwidths), len(x)
    sign, rows, enough = np.zeros(shape, dtype=np.int8), np.zeros(shape), np.zeros(shape, dtype=bool)
    own = float(smoother.recipe.bandwidth[0])
    for i, bandwidth in enumerate(bandwidths):
        at = smoother.of_degree(1).widened(float(bandwidth) / own, levels=False)
        fitted = at.fit(places)
        rows[i] = np.exp(fitted.log_mass - fitted.problem.similarity.log_peak)
        training = fit_training(at)
        if not training.rows - training.trace > 1.0:
            continue  # no residual is left that would tell the noise
        with warnings.catch_warnings():
            # What these would say of places is what `enough` says.
            warnings.simplefilter("ignore", EmptyWindowWarning)
            warnings.simplefilter("ignore", InferenceWarning)
            warnings.simplefilter("ignore", RankDeficiencyWarning)
            found = interval(
                at, training, places, level=level, method=method, variance=variance, column=0, simultaneous=simultaneous
            )
        with np.errstate(invalid="ignore"):
            known = found.standard_error[:, 0] > 0  # no noise is no certainty
            enough[i] = (rows[i] >= fewest_rows) & known
            sign[i] = np.where(enough[i], (found.lower[:, 0] > 0) * 1 - (found.upper[:, 0] < 0) * 1, 0)
    return SlopeMap(x, bandwidths, sign, rows, enough, float(level), simultaneous)
