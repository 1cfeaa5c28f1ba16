"""Tables of shares, a few places at a time: for what no moment of a state tells, and for kernels without loops."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kernpool.inference.shares import Shares

Array = NDArray[np.float64]
Terms = Sequence[tuple[float, Shares]]

PAIRS = 1 << 21  # in one table


@dataclass(frozen=True, eq=False)
class ShareTables:
    """Shares of all keys of positive weight in a linear combination of local fits.

    Parameters
    ----------
    terms : sequence of (float, Shares)
        Coefficients and shares.
    kept : ndarray of int, shape (k,)
        Keys, in the order of the columns.
    weight : ndarray of shape (k,)
        Their frequencies.
    """

    terms: Terms
    kept: NDArray[np.intp]
    weight: Array

    @classmethod
    def of(cls, terms: Terms) -> ShareTables:
        """Take the keys of positive weight, in their order."""
        problem = terms[0][1].problem
        weight = np.ones(len(problem.key)) if problem.key_weight is None else problem.key_weight * problem.weight_unit
        (kept,) = np.nonzero(weight > 0)
        return cls(terms, kept, weight[kept])

    @property
    def places(self) -> int:
        """How many rows of a table hold no more than some million numbers."""
        return max(1, PAIRS // len(self.kept))

    def summed(self, product: Array, psi: Array | None = None) -> Array:
        """Return sums of products of two shares, of shape (places, k), in unit rows; weighted by one number per key."""
        return np.asarray(np.sum(product * (1.0 if psi is None else psi[self.kept]) / self.weight, axis=1))

    def rows(self, which: slice | NDArray[np.intp]) -> Array:
        """Return the shares at some places, of shape (places, k)."""
        return np.asarray(sum(factor * self._one(shares, which) for factor, shares in self.terms))

    def _one(self, shares: Shares, which: slice | NDArray[np.intp]) -> Array:
        part = shares.problem.block(which, self.kept)
        logits = part.similarity.logits(part.query, part.key)
        if part.factors is not None:
            logits = np.asarray(sum(part.factors.logarithms(), start=logits))
        with np.errstate(invalid="ignore", over="ignore"):
            alpha = self.weight * np.exp(logits - shares.log_mass[which][:, None])
        tilted, tilt = np.repeat(shares.base[which][:, None], len(self.kept), axis=1), shares.tilt[which]
        if tilt.shape[1]:
            d = part.key.shape[1]
            offsets = [part.similarity.offset(part.query, part.key, a) for a in range(d)]
            products = [offsets[a] * offsets[b] for a, b in zip(*np.triu_indices(d), strict=True)]
            for regressor, column in zip([*offsets, *products], tilt.T, strict=False):
                tilted += column[:, None] * regressor
        return np.asarray(alpha * tilted)
