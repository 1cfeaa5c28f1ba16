r"""An interval that contains the full conformal one, in time and memory of rows plus places.

The share of a test row in the fit around row i is bounded whatever the place, :math:`|b_i| \le \bar b_i`, and so are
the ends of the intervals that full conformal counts:

.. math:: |u_i - \hat m|,\, |l_i - \hat m| \le
          \frac{|r_i| + \bar s_i + \bar b_i\, |\hat m_{-i}(x_i) - \hat m(q)|}{1 - \bar b_i}

Of local constant fits :math:`\bar b_i = K(0) / (D_{-i} + K(0))` and :math:`\bar s_i = 0`. A share of local linear
fits is :math:`|b_i| \le K\,|b + \tau \cdot t| / D_{-i}`, and at most
:math:`\frac{1}{2}\sqrt{K(0)\, b / D_{-i}}` by Cauchy and Schwarz; with :math:`M_p = \sup |t|^p K(t)` and the slope of
its plane

.. math:: \bar b_i = (M_0 |b| + M_1 |\tau|) / D_{-i}, \qquad
          \bar s_i = (M_1 |b| + M_2 |\tau|)\, |\hat\beta_{-i}(x_i)| / D_{-i} .

The distance of both fits is counted from the middle of the outputs, to which :math:`\hat m(q)` is taken to be as far as
half of their range, or twice, four times as much where a plane leads beyond: one order statistic serves all places.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from kernpool.conformal.designs import Designs
from kernpool.conformal.predicting import filled
from kernpool.conformal.ranks import upper_rank, upper_statistic
from kernpool.conformal.setting import Bounds, Setting
from kernpool.conformal.shift import in_unit, weighted_upper
from kernpool.core.problem import Problem

Array = NDArray[np.float64]

# Beyond the last one K |t|^2 has to be small: a flat kernel has no bound.
RADII = np.concatenate([np.linspace(0.0, 10.0, 20_001), np.geomspace(10.0, 1e6, 2001)[1:]])
SMALL = 1e-3
ROUNDING = 4.0 * float(np.finfo(np.float64).eps)
MOST_DOUBLINGS = 2048  # beyond all numbers


def enclosure(setting: Setting) -> Bounds:
    """Find intervals that contain those of `kernpool.conformal.full`."""
    smoother, calibration = setting.smoother, setting.calibration
    which = calibration.which
    assert which is not None
    at_rows = Designs.of(smoother, smoother.problem(smoother.training, exclude_self=True)).some(which)
    share, move = share_bounds(at_rows)
    fitted = smoother.fit(setting.places)
    at_places = fitted.fit
    rank, weight = upper_rank(setting.level, calibration.rows), calibration.unit_weight
    center, width = at_places.intercept, np.full(at_places.intercept.shape, np.inf)
    for output in range(center.shape[1]):
        value, without = calibration.value[:, output], at_rows.fit.intercept[:, output]
        middle, half = 0.5 * value.max() + 0.5 * value.min(), 0.5 * value.max() - 0.5 * value.min()
        half = max(half, ROUNDING * abs(middle), np.finfo(np.float64).tiny)  # outputs that do not vary
        doubled = _doublings(np.abs(center[:, output] - middle), half)
        for times in np.unique(doubled[at_places.occupied]):
            reach = half * 2.0**times
            with np.errstate(divide="ignore", invalid="ignore"):
                bound = np.abs(value - without) + move[:, output] + share * (np.abs(without - middle) + reach)
                bound = np.where(share < 1.0, bound / (1.0 - share), np.inf)
            found = at_places.occupied & (doubled == times)
            bound = np.where(np.isnan(bound), np.inf, bound)
            if calibration.shift is None or calibration.place_shift is None:
                width[found, output] = upper_statistic(bound, weight, rank)
            else:
                units = in_unit(calibration.weight, calibration.shift, calibration.place_shift[found])
                width[found, output] = weighted_upper(bound, *units, setting.level)
    lower, upper = center - width, center + width
    return Bounds(lower, upper, filled(smoother, fitted.problem, center.copy(), at_places.occupied))


def share_bounds(at_rows: Designs) -> tuple[Array, Array]:
    """Bound the share of one more row in local fits, and what it moves them by along their own planes.

    Parameters
    ----------
    at_rows : Designs
        Of n rows, each without one unit of itself.

    Returns
    -------
    share : ndarray of shape (n,)
        One or more where nothing bounds it.
    move : ndarray of shape (n, c)
        Per unit of the outputs; infinite likewise.

    Raises
    ------
    ValueError
        If the profile of the kernel increases somewhere.
    """
    problem, fit = at_rows.problem, at_rows.fit
    m0, m1, m2 = moment_bounds(problem)
    with np.errstate(divide="ignore", over="ignore"):
        over_mass = np.exp(_log_levels(problem) - at_rows.log_mass)
    if not problem.degree:
        with np.errstate(invalid="ignore"):
            share = np.where(fit.occupied, m0 * over_mass / (1.0 + m0 * over_mass), 1.0)
        return np.where(np.isnan(share), 1.0, share), np.zeros(fit.intercept.shape)
    base, tilt = np.abs(fit.base), np.sqrt(np.sum(fit.tilt**2, axis=1))
    slope = np.sqrt(np.sum(fit.slope**2, axis=1))
    with np.errstate(invalid="ignore", over="ignore"):
        share = (m0 * base + m1 * tilt) * over_mass
        share = np.fmin(share, 0.5 * np.sqrt(m0 * base * over_mass))
        move = ((m1 * base + m2 * tilt) * over_mass)[:, None] * slope
    known = fit.occupied & (fit.rank == problem.key.shape[1]) & np.isfinite(share)
    move = np.where(np.isnan(move), np.where(slope > 0, np.inf, 0.0), move)
    return np.where(known, share, np.inf), np.where(known[:, None], move, np.inf)


def moment_bounds(problem: Problem) -> tuple[float, float, float]:
    """Return the largest weight of a pair, weight times distance, and weight times squared distance, in bandwidths.

    Profiles must not increase, so that one between two radii is at most that of the nearer, times the farther.
    """
    similarity = problem.similarity
    radii = RADII[RADII <= 1.0] if similarity.kernel.is_compact else RADII
    profile = np.asarray(similarity.kernel.profile(radii), dtype=np.float64)
    if np.any(np.diff(profile) > 1e-12 * profile[0]):
        raise ValueError(
            f"method='enclosure' needs a kernel whose profile does not increase, and {similarity.kernel.name!r} has "
            "another; use method='full' for some places at once"
        )
    first, second = (float(np.max(radii[1:] ** p * profile[:-1])) for p in (1, 2))
    if not similarity.kernel.is_compact and radii[-1] ** 2 * profile[-1] > SMALL * second:
        first = second = np.inf
    d = problem.key.shape[1] if similarity.composition == "product" else 1
    others = float(profile[0]) ** (d - 1)
    return float(profile[0]) * others, np.sqrt(d) * others * first, d * others * second


def _log_levels(problem: Problem) -> Array | float:
    """Return the logarithm of the largest factor that levels can give each query."""
    if problem.factors is None:
        return 0.0
    tables = zip(problem.factors.log_tables, problem.factors.query_code.T, strict=True)
    return np.asarray(sum(table.max(axis=0)[code] for table, code in tables))


def _doublings(distance: Array, half: float) -> NDArray[np.int64]:
    """Return how often half the range of the outputs has to be doubled to reach some distances."""
    with np.errstate(divide="ignore", over="ignore"):
        times = np.ceil(np.log2(distance / half))
    return np.asarray(np.clip(times, 0.0, MOST_DOUBLINGS)).astype(np.int64)
