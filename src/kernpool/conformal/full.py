r"""Full conformal intervals of a deleted fit, in closed form.

Add the test row (q, y) to the training rows, and let the score of each row be its distance from the fit to all others:
:math:`|y - \hat m(q)|` of the test row, and of row i, whose fit without itself is :math:`\hat m_{-i}(x_i)`,

.. math:: s_i(y) = \big| y_i - \hat m^y_{-i}(x_i) \big|, \qquad
          \hat m^y_{-i}(x_i) = \hat m_{-i}(x_i) + b_i\,(y - p_i(q))

where :math:`b_i` is the share of the test row in that fit, and :math:`p_i(q)` the plane around row i at q: of local
constant fits :math:`b_i = K / (D_{-i} + K)` and :math:`p_i = \hat m_{-i}(x_i)`. With
:math:`\rho_i = y_i - \hat m_{-i}(x_i) + b_i\,(p_i(q) - \hat m(q))`,

.. math:: s_i(y) \ge |y - \hat m(q)| \iff l_i \le y \le u_i, \qquad
          u_i - \hat m = \max\Big(\frac{\rho_i}{1 + b_i}, \frac{-\rho_i}{1 - b_i}\Big), \quad
          l_i - \hat m = \min\Big(\frac{\rho_i}{1 + b_i}, \frac{-\rho_i}{1 - b_i}\Big)

because :math:`s_i` is the size of a line in y whose slope is less than one, so that the difference of both sizes
changes sign once on either side of :math:`\hat m(q)`. Each of these intervals holds :math:`\hat m(q)`. So the values of
y that at least :math:`k_{\mathrm{low}}` of them hold, those with a conformal p-value above alpha, are the interval
:math:`[l_{(k_{\mathrm{low}})}, u_{(k_{\mathrm{up}})}]`. It covers with at least the level, and with at most
:math:`1/(n + 1)` more where no scores are tied [1]_. Under a shift the order statistics are those of weighted
rows (`kernpool.conformal.shift`), for the same reasons.

Where the slope is one or more, as a row that stands alone has it, the interval is the half line or the line. The line
where :math:`\rho_i = 0` too: the scores are tied whatever y is, as those of two places are that have only each other in
their windows. A tie counts as at least, and is one up to rounding.

References
----------
.. [1] V. Vovk, A. Gammerman and G. Shafer, "Algorithmic Learning in a Random World", Springer (2005), chapter 2.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from kernpool.conformal.designs import PAIRS_AT_ONCE, Designs, check_pairs, pair_logits
from kernpool.conformal.predicting import filled
from kernpool.conformal.setting import Bounds, Setting
from kernpool.conformal.shift import upper_at_places
from kernpool.core.problem import Problem
from kernpool.execution.threads import cut, resolve_n_jobs, run_blocks

Array = NDArray[np.float64]
Rows = NDArray[np.intp]

TIES = 64.0 * float(np.finfo(np.float64).eps)  # slopes of one, and scores tied at them, but for their rounding
TOO_MANY = "use method='enclosure', which contains this interval and goes through rows and places one after the other"


def full(setting: Setting) -> Bounds:
    """Find full conformal intervals; parameters as of every method."""
    smoother, calibration = setting.smoother, setting.calibration
    which = calibration.which
    assert which is not None
    check_pairs("full", len(setting.places.query), len(which), TOO_MANY)
    at_rows = Designs.of(smoother, smoother.problem(smoother.training, exclude_self=True)).some(which)
    at_places = smoother.fit(setting.places)
    center, occupied = at_places.fit.intercept, at_places.fit.occupied
    lower, upper = np.full(center.shape, -np.inf), np.full(center.shape, np.inf)

    def work(rows: slice) -> Iterator[None]:
        found = (np.flatnonzero(occupied[rows]) + rows.start).astype(np.intp)
        if found.size:
            pairs = _Added(at_rows, setting, found, at_places.problem)
            for output in range(center.shape[1]):
                middle = center[found, output]
                below, above = pairs.intervals(output, middle)
                lower[found, output] = middle - upper_at_places(setting, -below, found)
                upper[found, output] = middle + upper_at_places(setting, above, found)
        yield

    blocks = cut(len(center), max(1, PAIRS_AT_ONCE // len(which)))
    run_blocks(work, blocks, resolve_n_jobs(smoother.recipe.n_jobs), None)
    return Bounds(lower, upper, filled(smoother, at_places.problem, center.copy(), occupied))


class _Added:
    """What test rows at some places do to the fits around the calibration rows.

    Parameters
    ----------
    at_rows : Designs
        Around each calibration row, without one unit of it.
    setting : Setting
        Of training rows.
    places : ndarray of int
        Where the test rows are.
    problem : Problem
        Of all places.
    """

    def __init__(self, at_rows: Designs, setting: Setting, places: Rows, problem: Problem) -> None:
        self._at_rows, self._value = at_rows, setting.calibration.value
        which = setting.calibration.which
        assert which is not None
        logits, offsets = pair_logits(problem, places, which)
        # Around the row, a place lies where the row lies around the place, seen from behind.
        self._offsets = [-t.T for t in offsets]
        self._logits = logits.T
        leverage, share = at_rows.tilted(self._offsets)
        with np.errstate(over="ignore", invalid="ignore"):
            inverse = np.exp(at_rows.log_mass[:, None] - self._logits)  # infinite outside the window, zero if alone
            share = share / (inverse + leverage)
        alone = ~at_rows.fit.occupied
        self._share = np.asarray(share)
        if alone.any():
            self._share[alone] = self._logits[alone] > -np.inf
        self._alone = alone
        # A new row may give planes a direction that the others do not determine: these are solved once more.
        row = place = np.zeros(0, dtype=np.intp)
        deficient = at_rows.fit.occupied & (at_rows.fit.rank < len(offsets))
        if deficient.any():
            row, place = np.nonzero(deficient[:, None] & (self._logits > -np.inf))
        self._again = (row, place)
        if row.size:
            t = np.stack([offset[row, place] for offset in self._offsets], axis=1)
            self._fit_again, self._share[row, place] = at_rows.with_row(row, self._logits[row, place], t)

    def intervals(self, output: int, middle: Array) -> tuple[Array, Array]:
        """Return the ends of all intervals of one output, less the prediction, of shape (places, rows)."""
        at_rows, b = self._at_rows, self._share
        value = self._value[:, output, None]
        with np.errstate(invalid="ignore"):
            rho = value - at_rows.fit.intercept[:, output, None]
            rho = rho + b * (at_rows.plane(self._offsets, output) - middle)
        rho[self._alone] = value[self._alone] - middle  # whatever is added is the fit
        row, place = self._again
        if row.size:
            center = at_rows.problem.value_center[output]
            rho[row, place] = (
                self._value[row, output] - self._fit_again[:, output] - b[row, place] * (middle[place] - center)
            )
        with np.errstate(divide="ignore", invalid="ignore"):
            one, other = rho / (1.0 + b), -rho / (1.0 - b)
        below, above = np.fmin(one, other), np.fmax(one, other)
        zero = np.abs(rho) <= TIES * np.abs(self._value[:, output]).max()
        free = (np.abs(b) > 1.0) | ((np.abs(b) >= 1.0 - TIES) & zero)
        free[self._alone] |= self._logits[self._alone] == -np.inf  # no prediction at all, and an infinite score
        below[free], above[free] = -np.inf, np.inf
        return below.T, above.T
