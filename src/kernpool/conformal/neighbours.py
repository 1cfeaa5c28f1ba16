"""Rows that calibrate, weighed by how near they are to places; a random place near each; quantiles of scores there."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import cast

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from kernpool.conformal.kernel_draws import kernel_draws, level_draws
from kernpool.core.factors import Factors
from kernpool.core.keys import Keys
from kernpool.core.problem import FLOAT64, FLOAT64_EPSILON, Problem
from kernpool.core.similarity import Composition, KernelSimilarity
from kernpool.distribution import Sums
from kernpool.inference import Places, Smoother

Array = NDArray[np.float64]
Codes = NDArray[np.int64]

WINDOW = 3.0  # bandwidths of the fit: a quantile takes more rows than a mean
SLACK = 2.0**-50  # a level within this of the whole, times the square root of the number of rows, is the whole


@dataclass(frozen=True, eq=False)
class Neighbours:
    """Rows that calibrate, and how near they are to places.

    Parameters
    ----------
    smoother : Smoother
        Of degree 0, with the kernel and the bandwidths to weigh by; its rows do not matter.
    rows : Places
        Where the rows that calibrate are.
    weight : ndarray of shape (n,)
        Their frequencies.
    tables : tuple of k ndarrays of shape (levels, levels)
        Factors of pairs of levels; with a last level for all that the model has not seen if there are such.
    """

    smoother: Smoother
    rows: Places
    weight: Array
    tables: tuple[Array, ...]

    @classmethod
    def of(cls, smoother: Smoother, rows: Places, weight: Array, places: Places) -> Neighbours:
        """Weigh by the kernel of a fit, at three times its bandwidths and the same smoothings of levels.

        Parameters
        ----------
        smoother : Smoother
            The fit.
        rows : Places
            Where the rows that calibrate are.
        weight : ndarray of shape (n,)
            Their frequencies.
        places : Places
            All that will be asked for, with levels that the model may not have seen.

        Returns
        -------
        Neighbours
            For `quantile`.
        """
        wide = smoother.of_degree(0).widened(WINDOW, levels=False)
        tables: tuple[Array, ...] = ()
        if len(wide.categories) and rows.code is not None and places.code is not None:
            tables = wide.categories.factors(rows.code[:0], rows.code[:0], wide.smoothing).tables
            if min(rows.code.min(), places.code.min(initial=0)) < 0:
                tables = tuple(_with_unseen(table) for table in tables)
        return cls(wide, rows, weight, tables)

    def around(self, places: Places) -> Problem:
        """Return the problem of places and rows, in which each row counts by its density at the place.

        That is the kernel, but for levels whose factors have other sums than those of other levels, which they are
        divided by.
        """
        factors, weight = None, self.weight
        if self.tables:
            query, key = self._codes(places), self._codes(self.rows)
            factors = Factors(query, key, self.tables, self.tables)
            weight = weight * np.exp(-self._log_sums(key))
        keys = Keys.read(self.rows.query, np.zeros((len(weight), 1)), weight)
        problem = self.smoother.recipe.problem(places.query, keys, factors=factors)
        return replace(problem, tol=FLOAT64_EPSILON, dtype=FLOAT64)

    def draw(self, places: Places, random: Generator) -> Places:
        """Draw a place around each place, from the kernel as the density of their difference."""
        similarity = self._similarity
        shape = (len(places.query), places.query.shape[1])
        offset = kernel_draws(similarity.kernel, similarity.composition, shape, random)
        code = places.code
        if self.tables:
            columns = zip(self.tables, self._codes(places).T, strict=True)
            code = np.stack([level_draws(table, column, random) for table, column in columns], axis=1)
        return Places(places.query + offset * similarity.bandwidth, code)

    def log_density(self, places: Places, drawn: Places) -> Array:
        """Return the logarithm of the density of a row at each place at the place drawn from it, of shape (m,)."""
        similarity = self._similarity
        u = np.abs(places.query - drawn.query) / similarity.bandwidth
        if similarity.composition == "radial":
            total = similarity.kernel.log_profile(np.sqrt(np.sum(u * u, axis=1)))
        else:
            total = np.sum(similarity.kernel.log_profile(u), axis=1)
        if self.tables:
            here, there = self._codes(places), self._codes(drawn)
            with np.errstate(divide="ignore"):
                for table, a, b in zip(self.tables, here.T, there.T, strict=True):
                    total = total + np.log(table[a, b])
            total = total - self._log_sums(here)
        return np.asarray(total)

    def _codes(self, places: Places) -> Codes:
        """Return level numbers, with that of the last level for those that the model has not seen."""
        assert places.code is not None
        unseen = np.array([len(table) - 1 for table in self.tables])
        return np.where(places.code < 0, unseen, places.code)

    def _log_sums(self, code: Codes) -> Array:
        sums = [np.log(table.sum(axis=1))[column] for table, column in zip(self.tables, code.T, strict=True)]
        return np.asarray(sum(sums))

    @property
    def _similarity(self) -> KernelSimilarity:
        recipe = self.smoother.recipe
        bandwidth = np.broadcast_to(recipe.bandwidth, (self.rows.query.shape[1],))
        return KernelSimilarity(recipe.kernel, bandwidth, cast(Composition, recipe.composition))


def upper_quantiles(problem: Problem, smoother: Smoother, score: Array, level: float, log_extra: Array) -> Array:
    r"""Return the quantile of scores around each place, with a weight at infinity.

    .. math:: \hat Q(q) = \min\Big\{ s : \sum_{i:\, s_i \le s} w_i K(q, x_i) \ge \tau \Big( \sum_i w_i K(q, x_i) +
              v(q) \Big) \Big\}

    where v is that weight, of the place itself, whose score nobody knows. By the tree of `kernpool.distribution`, with
    scores in place of outputs.

    Parameters
    ----------
    problem : Problem
        Of `Neighbours.around`.
    smoother : Smoother
        By which algorithm, and on how many threads.
    score : ndarray of shape (n, c)
        Of the rows that calibrate; may be infinite.
    level : float
        Between 0 and 1.
    log_extra : ndarray of shape (m,)
        Logarithm of the weight at infinity, as a sum of weights.

    Returns
    -------
    ndarray of shape (m, c)
        Infinite where the rows do not reach the level.
    """
    sums = Sums.of(problem, smoother.recipe)
    mass = np.where(sums.occupied, sums.state.log_denominator, -np.inf)
    with np.errstate(over="ignore"):
        share = level * (1.0 + np.exp(log_extra - mass))
    reached = sums.occupied & (share <= 1.0 + SLACK * max(4.0, np.sqrt(len(score))))
    found = np.full((len(share), score.shape[1]), np.inf)
    asked = np.where(reached, np.minimum(share, 1.0), 1.0)[:, None]
    for number, column in enumerate(score.T if reached.any() else ()):
        place = sums.places(np.argsort(column, kind="stable"), asked)[:, 0]
        found[:, number] = np.where(reached, column[place], np.inf)
    return found


def _with_unseen(table: Array) -> Array:
    """Add a level that is as unlike all others as the first and the last one are, and like itself."""
    padded = np.pad(table, ((0, 1), (0, 1)), constant_values=table[0, -1])
    padded[-1, -1] = table[0, 0]
    return padded
