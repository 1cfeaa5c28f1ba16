"""What a search has done so far, kept up to date, because a search may be stopped at any time; and when it is.

A limit on seconds is looked at where progress is reported, which is after every piece of a pass over the rows, and
before every evaluation that reports none. A pass that is stopped is lost; what was evaluated before is not.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernpool.bandwidth.search.evaluation import Tried
from kernpool.bandwidth.search.gauss_newton import SumOfSquares
from kernpool.bandwidth.search.objective import Objective
from kernpool.bandwidth.search.quick import QuickObjective
from kernpool.execution.progress import Progress

Array = NDArray[np.float64]


class OutOfTimeError(Exception):
    """Raised inside of a search whose seconds are used up; it does not leave the search."""


class TimeLimit:
    """A number of seconds from now on, or none.

    Parameters
    ----------
    seconds : float or None
        From now on.
    clock : callable
        Returns seconds.
    """

    def __init__(self, seconds: float | None, clock: Callable[[], float] = time.perf_counter) -> None:
        self.seconds, self._clock = seconds, clock
        self._end = np.inf if seconds is None else clock() + seconds

    def check(self) -> None:
        """Raise if the seconds are used up."""
        if np.isfinite(self._end) and self._clock() >= self._end:
            raise OutOfTimeError

    def lift(self) -> None:
        """Let everything that follows go to its end."""
        self._end = np.inf

    def watch(self, progress: Progress | None) -> Progress | None:
        """Return a listener that stops the pass that reports to it once the seconds are used up."""
        if self.seconds is None:
            return progress

        def report(done: int, total: int) -> None:
            if progress is not None:
                progress(done, total)
            self.check()

        return report


class Watched:
    """A sum of squares whose evaluations report no progress, within a limit.

    Parameters
    ----------
    objective : SumOfSquares
        Of few rows.
    limit : TimeLimit
        Looked at before every evaluation.
    """

    def __init__(self, objective: SumOfSquares, limit: TimeLimit) -> None:
        self._objective, self._limit = objective, limit

    @property
    def box(self) -> tuple[Array, Array, Array]:
        """As of the objective."""
        return self._objective.box

    def evaluate(self, theta: Array) -> Any:
        """Return the place."""
        self._limit.check()
        return self._objective.evaluate(theta)

    def jacobian(self, at: Any) -> Array:
        """Return the derivatives of the residuals at a place that was evaluated."""
        self._limit.check()
        return self._objective.jacobian(at)


@dataclass
class Course:
    """What a search has done so far.

    Parameters
    ----------
    limit : TimeLimit
        When it has to end.
    starts : int, default=0
        Number of starts, or of points of the grid.
    way : str, default=""
        How the criterion was evaluated on the first rows.
    fewer : list of Objective
        Of fewer rows than all, the fewest first.
    quick : QuickObjective, optional
        A quicker way of the first one, until what it found is handed over.
    """

    limit: TimeLimit
    starts: int = 0
    way: str = ""
    fewer: list[Objective] = field(default_factory=list)
    quick: QuickObjective | None = None

    @property
    def evaluations_on_fewer(self) -> int:
        """How often the criterion of fewer rows was evaluated."""
        return sum(len(objective.all_tried) for objective in self.fewer)

    def count(self, starts: Iterable[Any]) -> Iterator[Any]:
        """Yield starts, and count them."""
        for start in starts:
            self.starts += 1
            yield start

    def hand_over(self, theta: Array) -> None:
        """Have the engine evaluate the best of the quicker way."""
        if self.quick is not None:
            quick, self.quick = self.quick, None
            quick.hand_over(theta)

    def finish_early(self, objective: Objective, moved: Callable[[Objective, Tried], Array], rule: Array) -> str:
        """Make up for what a search that was stopped had no time for: something has to be known of all rows.

        Parameters
        ----------
        objective : Objective
            Of all rows.
        moved : callable
            Takes an objective of fewer rows and its best; returns where that of all rows is expected.
        rule : ndarray of shape (p,)
            Where it is expected if nothing is known.

        Returns
        -------
        str
            What the result is.
        """
        self.limit.lift()
        if self.quick is not None and self.quick.tried:
            self.quick.engine.ridge = self.quick.best.ridge
            self.hand_over(self.quick.best.theta)
        reason = f"stopped after max_search_seconds={self.limit.seconds:g}: "
        if any(np.isfinite(one.penalised) for one in objective.tried):
            return reason + "the best so far"
        known = [one for one in self.fewer if one.tried and np.isfinite(one.best.penalised)]
        if known:
            objective.ridge = known[-1].best.ridge
            objective.evaluate(moved(known[-1], known[-1].best))
            reason += f"the best so far of {len(known[-1].rows.X)} rows, brought to all by the rate"
        else:
            objective.evaluate(rule)
            reason += "the rule of Scott"
        if not np.isfinite(objective.best.penalised):
            objective.evaluate(objective.box[1])
            reason += ", which the criterion is not defined for: as good as infinite"
        return reason
