r"""Local fits at some places, and what one row more or one row less does to them, without fitting again.

With the weight :math:`\alpha = K / D` of a row, its offset t in bandwidths, and :math:`\bar t`, C of the design,

.. math:: g = \alpha\, \big(1 + (t - \bar t)' C^{-1} (t - \bar t)\big), \qquad
          l = \alpha\, \big(b + \tau \cdot t\big)

are its leverage in the local fit, and its share in the value. Without the row the fit is
:math:`m - \frac{l}{1 - g} (y - p(t))`, with the plane p of the fit; with a new row of value y it is
:math:`m + \frac{l}{1 + g} (y - p(t))`. Of local constant fits :math:`g = l = \alpha` and p is m.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kernpool.core.local_fit import LocalFit
from kernpool.core.problem import Problem
from kernpool.core.state import PoolState, merge
from kernpool.inference.slopes import inverse_designs
from kernpool.inference.smoother import Smoother, log_mass

Array = NDArray[np.float64]
Rows = NDArray[np.intp]

# Arrays of 192 KB, of which a tile has some ten: of more than 256 KB they come from the system in fresh pages, which
# takes half of the time (70 ms for 2000 rows and 1000 places, and 147 with arrays of 320 KB).
PAIRS_AT_ONCE = 3 << 13
MOST_PAIRS = 1 << 30  # about a minute
TOO_MANY = "use method='enclosure' or 'adaptive', whose time is that of some predictions"


@dataclass(frozen=True, eq=False)
class Designs:
    """Local fits at the m queries of a problem.

    Parameters
    ----------
    smoother : Smoother
        What was fitted.
    problem : Problem
        Of the queries.
    state : PoolState
        Its sums.
    fit : LocalFit
        What they give.
    log_mass : ndarray of shape (m,)
        Logarithm of the sum of the weights; minus infinity where the window is empty.
    mean : ndarray of shape (m, d)
        Weighted mean of the offsets, in bandwidths; without columns for local constant fits.
    inverse : ndarray of shape (m, d, d)
        Inverse of their covariance, ridge included.
    """

    smoother: Smoother
    problem: Problem
    state: PoolState
    fit: LocalFit
    log_mass: Array
    mean: Array
    inverse: Array

    @classmethod
    def of(cls, smoother: Smoother, problem: Problem) -> Designs:
        """Fit at the queries of a problem."""
        state, layout = smoother.sums(problem), problem.layout
        fit, m = smoother.settled(problem, state), len(problem.query)
        if not layout.degree:
            return cls(smoother, problem, state, fit, log_mass(state), np.empty((m, 0)), np.empty((m, 0, 0)))
        inverse = inverse_designs(state, layout, smoother.recipe.ridge_weight(smoother.columns))
        mean = np.divide(
            state.numerator[:, layout.first],
            state.denominator[:, None],
            out=np.zeros((m, layout.columns)),
            where=state.denominator[:, None] > 0,
        )
        return cls(smoother, problem, state, fit, log_mass(state), mean, inverse)

    def some(self, which: slice | Rows) -> Designs:
        """Return those of some of the queries."""
        return Designs(
            self.smoother, self.problem.block(which), self.state.rows(which), self.fit.rows(which),
            self.log_mass[which], self.mean[which], self.inverse[which],
        )  # fmt: skip

    def tilted(self, offsets: list[Array]) -> tuple[Array, Array]:
        """Return leverage and share of rows at some offsets, both over their weight alpha.

        Parameters
        ----------
        offsets : list of d ndarrays of shape (m, k)
            From each query, in bandwidths; d is 0 for local constant fits.

        Returns
        -------
        leverage, share : ndarray of shape (m, k), or ()
            One each for local constant fits.
        """
        if not offsets:
            return np.ones(()), np.ones(())
        share = self.fit.base[:, None] + sum(
            tilt[:, None] * t for tilt, t in zip(self.fit.tilt.T, offsets, strict=True)
        )
        centered = [t - mean[:, None] for mean, t in zip(self.mean.T, offsets, strict=True)]
        leverage = 1.0 + sum(
            self.inverse[:, a, b, None] * centered[a] * centered[b]
            for a in range(len(offsets))
            for b in range(len(offsets))
        )
        return np.asarray(leverage), np.asarray(share)

    def plane(self, offsets: list[Array], output: int) -> Array:
        """Return the planes of one output at some offsets, of shape (m, k), or (m, 1) of constants."""
        start = self.fit.intercept[:, output, None]
        slopes = self.fit.slope[:, :, output].T
        return np.asarray(sum((slope[:, None] * t for slope, t in zip(slopes, offsets, strict=True)), start=start))

    def with_row(self, which: Rows, log_weight: Array, offsets: Array) -> tuple[Array, Array]:
        """Fit again with one more row each, where the rows so far determine no plane.

        Parameters
        ----------
        which : ndarray of int, shape (k,)
            Queries, as often as rows are added.
        log_weight : ndarray of shape (k,)
            Logarithm of the kernel of the new row.
        offsets : ndarray of shape (k, d)
            Its offsets.

        Returns
        -------
        fit : ndarray of shape (k, c)
            With the center of the outputs as the new value.
        share : ndarray of shape (k,)
            What the fit changes by if the new value does by one.
        """
        layout, k = self.problem.layout, len(which)
        numerator = np.zeros((k, layout.width))
        numerator[:, layout.first] = offsets
        upper, lower = np.triu_indices(layout.columns)
        numerator[:, layout.second] = offsets[:, upper] * offsets[:, lower]
        together = merge(self.state.rows(which), PoolState(log_weight, np.ones(k), numerator))
        fit = self.smoother.settled(self.problem, together)
        alpha = np.exp(log_weight - together.log_denominator)
        return fit.intercept, alpha * (fit.base + np.sum(fit.tilt * offsets, axis=1))


def pair_logits(problem: Problem, rows: slice | Rows, keys: slice | Rows) -> tuple[Array, list[Array]]:
    """Return logarithms of the kernel of queries and keys, and their offsets if these matter.

    Parameters
    ----------
    problem : Problem
        Of all queries and keys.
    rows, keys : slice or ndarray of int
        Some of them.

    Returns
    -------
    logits : ndarray of shape (rows, keys)
        Without frequencies; minus infinity outside the support.
    offsets : list of ndarray of shape (rows, keys)
        ``(key - query) / bandwidth`` of each column for planes; empty for constants.
    """
    part = problem.block(rows, keys)
    logits = part.similarity.logits(part.query, part.key)
    if part.factors is not None:
        logits = np.asarray(sum(part.factors.logarithms(), start=logits))
    columns = range(part.key.shape[1]) if problem.degree else range(0)
    return logits, [part.similarity.offset(part.query, part.key, a) for a in columns]


def check_pairs(method: str, places: int, rows: int, remedy: str) -> None:
    """Refuse more pairs than are gone through one by one."""
    if places * rows > MOST_PAIRS:
        raise ValueError(
            f"method={method!r} goes through all pairs of places and rows, at most {MOST_PAIRS:,}, got {places:,} "
            f"times {rows:,}; {remedy}, or ask for fewer places at once"
        )
