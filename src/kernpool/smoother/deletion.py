r"""Local fits without one of their rows, in closed form: least squares without an observation.

With the pooling weight alpha of a row, its offset t in bandwidths, the mean tbar and the covariance C of offsets, ridge
included, and the base b and the tilt tau of the linear weights,

.. math:: g = \alpha\, \big(1 + (t - \bar t)' C^{-1} (t - \bar t)\big), \qquad l = \alpha\, (b + \tau \cdot t)

are the leverage of the row in a local fit m and its linear weight in the value. Without the row, whose output is y, the
value is :math:`m - l\, (y - p(t)) / (1 - g)` with the plane p of the fit (Cook and Weisberg, "Residuals and influence
in regression", 1982, section 2.2). For local constant fits g = l = alpha, and p is m. No two large numbers are
subtracted: where a row has more than half of the weight of a fit, and where windows follow the rows, so that
each row moves their edges, the others are summed again.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from kernpool._arrays import Array, Index
from kernpool.core import Exclusion
from kernpool.smoother.bias_correction import inverse_designs
from kernpool.smoother.linear_smoother import Fitted

Rows = Index

LARGE_LEVERAGE = 0.5  # 1 - g keeps its digits up to here


@dataclass(frozen=True, eq=False)
class Designs:
    """Local fits at m queries of degree 0 or 1, with mean and inverse covariance of the offsets of their rows.

    Parameters
    ----------
    fitted : Fitted
        The fits.
    mean : ndarray of shape (m, d)
        Weighted mean of the offsets, in bandwidths; of shape (m, 0) for local constants.
    inverse : ndarray of shape (m, d, d)
        Inverse of their covariance, ridge included.
    """

    fitted: Fitted
    mean: Array
    inverse: Array

    @classmethod
    def of(cls, fitted: Fitted) -> Designs:
        """Build the designs of local fits."""
        layout, m = fitted.problem.layout, len(fitted.problem.query)
        if not layout.degree:
            return cls(fitted, np.empty((m, 0)), np.empty((m, 0, 0)))
        smoother = fitted.smoother
        inverse = inverse_designs(fitted.problem, fitted.state, smoother.recipe.ridge_weight(smoother.columns))
        return cls(fitted, fitted.state.finalize(empty="zero")[:, layout.first], inverse)

    def rows(self, which: slice | Rows) -> Designs:
        """Return the designs of the queries with these indices."""
        return Designs(self.fitted.rows(which), self.mean[which], self.inverse[which])

    def linear_weights(self, offsets: list[Array]) -> Array:
        """Return linear weights of rows at given offsets, of shape (m, k), over their pooling weights."""
        fit = self.fitted.fit
        if not offsets:
            return np.ones(())
        tilts = zip(fit.tilt.T, offsets, strict=True)
        return np.asarray(fit.base[:, None] + sum(tilt[:, None] * t for tilt, t in tilts))

    def changes(
        self, pooling: Array, offsets: list[Array], rows: Rows, value: Array, *, whole: bool = True
    ) -> Iterator[Array]:
        """Yield, for each output, by how much each fit changes without each of some rows, of shape (m, k).

        Parameters
        ----------
        pooling : ndarray of shape (m, k)
            Pooling weights of the rows, of the frequency that is left out.
        offsets : list of d ndarray of shape (m, k)
            Their offsets in bandwidths; empty for local constants.
        rows : ndarray of int, shape (k,) or (m, k)
            Their indices.
        value : ndarray of shape (k, c) or (m, k, c)
            Their outputs.
        whole : bool, default=True
            Whether rows are left out with all of their frequency, and not one unit of it.
        """
        fit = self.fitted.fit
        left = 1.0 - pooling * self._leverages(offsets)
        hard = left < 1.0 - LARGE_LEVERAGE
        if self.fitted.smoother.window != "fixed":
            hard[:] = True  # each row that a window loses moves its edge
        query, place = np.nonzero(hard)
        left[hard] = 1.0
        share = pooling * self.linear_weights(offsets) / left
        again = np.empty((0, value.shape[-1]))
        if query.size:
            again = self._refitted(query, np.broadcast_to(rows, hard.shape)[query, place], whole=whole)
        for output in range(value.shape[-1]):
            slopes = zip(fit.slope[:, :, output].T, offsets, strict=True)
            plane = sum((slope[:, None] * t for slope, t in slopes), start=fit.intercept[:, output, None])
            change = share * (plane - value[..., output])
            change[query, place] = again[:, output] - fit.intercept[query, output]
            yield change

    def _leverages(self, offsets: list[Array]) -> Array:
        """Return leverages of rows at given offsets over their pooling weights."""
        total = np.ones(())
        away = [t - mean[:, None] for mean, t in zip(self.mean.T, offsets, strict=True)]
        for a, one in enumerate(away):
            for b, other in enumerate(away):
                total = total + self.inverse[:, a, b, None] * one * other
        return total

    def _refitted(self, query: Rows, row: Rows, *, whole: bool) -> Array:
        """Return fits at some queries, each without one row; NaN where no other row is in the window."""
        smoother, problem = self.fitted.smoother, self.fitted.problem
        part, row = problem.block(query), row.astype(np.int64)
        part = part.excluding(row, Exclusion(np.arange(len(problem.key)))) if whole else replace(part, self_index=row)
        fit = smoother.fit(smoother.in_own_windows(part)).fit
        return np.where(fit.occupied[:, None], fit.intercept, np.nan)
