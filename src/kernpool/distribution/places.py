r"""Which key is a quantile: the one at which the weights of a query, in some order of the keys, reach a share.

.. math:: j(\tau) = \min \Big\{ j : \sum_{l \le j} \alpha_l(q) \ge \tau \Big\}

With the keys in the order of their values that is the generalised inverse of the conditional distribution function; in
any order, with uniform shares, it is a draw.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property, partial

import numpy as np
from numpy.typing import NDArray

from kernpool.core.problem import Problem
from kernpool.core.state import PoolState, empty_state
from kernpool.distribution.dense import dense_places
from kernpool.distribution.descent import LN_2, Descent
from kernpool.distribution.line import Line, is_quicker
from kernpool.distribution.selection import can_select
from kernpool.execution.threads import cut
from kernpool.pooling.choice import choose
from kernpool.pooling.recipe import Recipe

Array = NDArray[np.float64]
Index = NDArray[np.signedinteger]

FEW_PAIRS = 100_000  # that tables do sooner than a compiler loads
# Of the sum of all weights, times the square root of the number of keys: a level that is met within it is met, such as
# .1 by three of 30 equal weights, in whatever order they are added.
SLACK = 2.0**-50
# Of that sum, what is needed at least: a level of zero is met by the first share that is no underflow.
LEAST = 2.0**-960
# Of logarithms of sums: beyond, a power of two beside them is rounded to more than 1e-11. Such queries are ten thousand
# bandwidths away from all keys, or nearly, and have tables in their own unit.
FAR = 2.0**16
LEAST_REQUESTS = 1 << 18  # that go down the tree together, where keys are few: it takes about 200 bytes for each


@dataclass(frozen=True)
class Sums:
    """The weights of all keys, which all orders of the keys have in common.

    Parameters
    ----------
    problem : Problem
        Of degree 0, with a single column of zeros for values.
    recipe : Recipe
        By which algorithm sums are made, and on how many threads.
    """

    problem: Problem
    recipe: Recipe

    @classmethod
    def of(cls, problem: Problem, recipe: Recipe) -> Sums:
        """Take a problem, whose values do not matter."""
        nothing = np.zeros((len(problem.key), 1))
        return cls(replace(problem, value=nothing, value_center=np.zeros(1), degree=0), recipe)

    @cached_property
    def state(self) -> PoolState:
        """Sums of all weights, made when they are asked for."""
        return self._sum(self.problem)

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
        found = np.full(level.shape, -1)
        for rows, place in self.each(order, level, report):
            found[rows] = place
        return found

    def each(self, order: Index, level: Array, report: Callable[[int], object] = int) -> Iterator[tuple[Index, Index]]:
        """Find the same some queries at a time, so that no table of all has to be held; parameters as of `places`.

        Yields
        ------
        rows : ndarray of int
            Some of the queries, all but those of empty windows.
        place : ndarray of int, shape (rows, l)
            Numbers of keys.
        """
        weight, m, done = self.problem.key_weight, len(level), 0
        order = order if weight is None else order[weight[order] > 0]
        if not len(order):
            return
        slack = SLACK * max(4.0, np.sqrt(len(order)))
        others = None
        if m * len(order) > FEW_PAIRS and self._may_be_on_a_line(level.shape[1]):
            line = Line.of(self.problem, order)
            if line is not None:
                left = []
                for rows, place in line.places(level, slack, self.recipe.n_jobs):
                    known = (place >= 0).all(axis=1)
                    yield rows[known], place[known]
                    left.append(rows[~known])
                    done += int(known.sum())
                    report(done * level.shape[1])
                others = np.sort(np.concatenate(left)).astype(np.intp)
        others = np.arange(m) if others is None else others
        ordered = self.problem.block(slice(None), order) if len(others) else self.problem
        for part in cut(len(others), max(LEAST_REQUESTS, len(order) // 2) // level.shape[1] + 1):
            rows, before = others[part], done * level.shape[1]
            share = np.maximum(level[rows] - slack, LEAST)
            for some, place in self._by_sums(ordered, order, rows, share, partial(_report, report, before)):
                yield some, place
                done += len(some)
                report(done * level.shape[1])

    def _may_be_on_a_line(self, levels: int) -> bool:
        one = self.problem.key.shape[1] == 1 and self.recipe.algorithm in ("auto", "sweep")
        return one and can_select(self.problem) and is_quicker(self.problem, levels)

    def _sum(self, problem: Problem) -> PoolState:
        if problem.key_weight is not None and not problem.key_weight.any():
            return empty_state(len(problem.query), 1)
        return choose(problem, self.recipe.algorithm).reduce(problem, n_jobs=self.recipe.n_jobs)

    def _state_of(self, rows: Index) -> PoolState:
        if "state" in vars(self) or 4 * len(rows) > len(self.problem.query):
            return self.state.rows(rows)
        return self._sum(self.problem.block(rows))

    def _by_sums(
        self, ordered: Problem, order: Index, rows: Index, share: Array, report: Callable[[int], object]
    ) -> Iterator[tuple[Index, Index]]:
        """Find shares of some queries by the tree, or by tables where there are no loops."""
        state = self._state_of(rows)
        some = state.denominator > 0
        state, rows, share = state.rows(np.flatnonzero(some)), rows[some], share[some]
        loops = can_select(ordered) and ordered.shape[0] * ordered.shape[1] > FEW_PAIRS
        near = loops & (np.abs(state.log_denominator) < FAR)
        for which, place in dense_places(ordered, rows[~near], share[~near]):
            yield rows[~near][which], order[place]
        if near.any():
            rows, share = rows[near], share[near]
            found = self._descend(ordered, rows, state.rows(np.flatnonzero(near)), share, report)
            # A sum that is nothing but rounding has led to keys that do not count.
            lost = np.flatnonzero((found < 0).any(axis=1))
            for which, place in dense_places(ordered, rows[lost], share[lost]):
                found[lost[which]] = place
            yield rows, order[found]

    def _descend(
        self, ordered: Problem, near: Index, state: PoolState, share: Array, report: Callable[[int], object]
    ) -> Index:
        unit = np.zeros(len(self.problem.query))
        if not self.problem.similarity.kernel.is_compact:  # whose loops count in ones
            unit[near] = np.rint((state.log_denominator - np.log(self.problem.weight_unit)) / LN_2)
        descent = Descent(ordered, np.repeat(near, share.shape[1]), unit, self.recipe, report)
        whole = descent.masses(state, near)
        return descent.run((share * whole[:, None]).ravel()).reshape(share.shape)


def _report(report: Callable[[int], object], before: int, more: int) -> None:
    report(before + more)
