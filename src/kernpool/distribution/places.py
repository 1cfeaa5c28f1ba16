r"""Which key is a quantile: the one at which the weights of a query, in some order of the keys, reach a share.

.. math:: j(\tau) = \min \Big\{ j : \sum_{l \le j} \alpha_l(q) \ge \tau \Big\}

With the keys in the order of their values that is the generalised inverse of the conditional distribution function; in
any order, with uniform shares, it is a draw.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from kernpool.core.problem import Problem
from kernpool.core.state import PoolState, empty_state
from kernpool.distribution.dense import dense_places
from kernpool.distribution.descent import LN_2, Descent
from kernpool.distribution.selection import can_select
from kernpool.pooling.choice import choose
from kernpool.pooling.recipe import Recipe

Array = NDArray[np.float64]
Index = NDArray[np.intp]

FEW_PAIRS = 100_000  # that tables do sooner than a compiler loads
# Of the sum of all weights, times the square root of the number of keys: a level that is met within it is met, such as
# .1 by three of 30 equal weights, in whatever order they are added.
SLACK = 2.0**-50
# Of that sum, what is needed at least: a level of zero is met by the first share that is no underflow.
LEAST = 2.0**-960
# Of logarithms of sums: beyond, a power of two beside them is rounded to more than 1e-11. Such queries are ten thousand
# bandwidths away from all keys, or nearly, and have tables in their own unit.
FAR = 2.0**16


@dataclass(frozen=True)
class Sums:
    """The sums of all weights, which all orders of the keys have in common.

    Parameters
    ----------
    problem : Problem
        Of degree 0, with a single column of zeros for values.
    state : PoolState
        Its sums.
    recipe : Recipe
        By which algorithm, and on how many threads.
    """

    problem: Problem
    state: PoolState
    recipe: Recipe

    @classmethod
    def of(cls, problem: Problem, recipe: Recipe) -> Sums:
        """Sum a problem, whose values do not matter."""
        bare = replace(problem, value=np.zeros((len(problem.key), 1)), value_center=np.zeros(1), degree=0)
        if bare.key_weight is not None and not bare.key_weight.any():
            return cls(bare, empty_state(len(bare.query), 1), recipe)
        return cls(bare, choose(bare, recipe.algorithm).reduce(bare, n_jobs=recipe.n_jobs), recipe)

    @property
    def occupied(self) -> NDArray[np.bool_]:
        """Which queries have a key of positive weight."""
        return np.asarray(self.state.denominator > 0)

    def places(self, order: Index, level: Array, report: Callable[[int], object] = int) -> Index:
        """Return which key is the quantile of each query and level.

        Parameters
        ----------
        order : ndarray of int, shape (n,)
            Keys, for quantiles by rising value.
        level : ndarray of shape (m, l)
            Between 0 and 1.
        report : callable, default=int
            Called with numbers of queries times levels that are done; `int` does nothing with them.

        Returns
        -------
        ndarray of int, shape (m, l)
            Numbers of keys; -1 where the window is empty.
        """
        if not self.occupied.any():
            return np.full(level.shape, -1)
        weight = self.problem.key_weight
        order = order if weight is None else order[weight[order] > 0]
        ordered = self.problem.block(slice(None), order)
        slack = SLACK * max(4.0, np.sqrt(len(order)))
        share, places = np.maximum(level - slack, LEAST), np.full(level.shape, -1)
        loops = can_select(ordered) and ordered.shape[0] * ordered.shape[1] > FEW_PAIRS
        (occupied,) = np.nonzero(self.occupied)
        in_loops = loops & (np.abs(self.state.rows(occupied).log_denominator) < FAR)
        near, others = occupied[in_loops], occupied[~in_loops]
        for which, place in dense_places(ordered, others, share[others]):
            places[others[which]] = order[place]
            report(which.stop * level.shape[1])
        if near.size:
            done = others.size * level.shape[1]
            found = self._descend(ordered, near, share[near], lambda more: report(done + more))
            # A sum that is nothing but rounding has led to keys that do not count.
            lost = np.flatnonzero((found < 0).any(axis=1))
            for which, place in dense_places(ordered, near[lost], share[near[lost]]):
                found[lost[which]] = place
            places[near] = order[found]
        return places

    def _descend(self, ordered: Problem, near: Index, share: Array, report: Callable[[int], object]) -> Index:
        state, unit = self.state.rows(near), np.zeros(len(self.problem.query))
        if not self.problem.similarity.kernel.is_compact:  # whose loops count in ones
            unit[near] = np.rint((state.log_denominator - np.log(self.problem.weight_unit)) / LN_2)
        descent = Descent(ordered, np.repeat(near, share.shape[1]), unit, self.recipe, report)
        whole = descent.masses(state, near)
        return descent.run((share * whole[:, None]).ravel()).reshape(share.shape)
