"""State of a running bandwidth search: its time limit and progress, starts, samples, and the fast objective at hand.

A search may be stopped at any time, so `SearchState` is kept up to date. The limit on seconds is checked where progress
is reported, after every piece of a pass over the rows. A pass that is stopped is lost; earlier evaluations are kept.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernpool.bandwidth.search.fast_objectives import FastObjective, choose_way
from kernpool.bandwidth.search.objective import Objective, Penalty
from kernpool.bandwidth.search.setup import SearchOptions, SearchStart, TrainingRows

Array = NDArray[np.float64]

EXPECTED_PASSES = 120  # for the progress report only


class OutOfTimeError(Exception):
    """Error raised inside a bandwidth search at its time limit, which the search itself catches."""


@dataclass
class SearchState:
    """State of a running bandwidth search.

    Parameters
    ----------
    start : SearchStart
        All rows of the search.
    options : SearchOptions
        Its `progress` is replaced by `report`, if somebody listens or there is a time limit.
    generator : numpy.random.RandomState
        For random rows and starting points.
    penalty : Penalty, optional
        A penalty on bandwidths.
    starts : int, default=0
        Number of starts, or of points of the grid.
    way : str, default=""
        How the criterion was evaluated on the first rows.
    fewer : list of Objective
        Criteria of samples, the smallest sample first.
    quick : FastObjective, optional
        Fast objective of the rows at hand, until its result is handed over.
    """

    start: SearchStart
    options: SearchOptions
    generator: Any
    penalty: Penalty | None = None
    starts: int = 0
    way: str = ""
    fewer: list[Any] = field(default_factory=list)
    quick: FastObjective | None = None

    def __post_init__(self) -> None:
        seconds, self._listener, self._done = self.options.seconds, self.options.progress, 0
        self._end = np.inf if seconds is None else perf_counter() + seconds
        if self._listener is not None or seconds is not None:
            self.options = replace(self.options, progress=self.report)

    def objective(self, rows: TrainingRows) -> Objective:
        """Return the criterion of some rows of the search as a function of bandwidths."""
        return Objective(rows, self.options, self.start.categories, self.penalty)

    def report(self, done: int, total: int) -> None:
        """Report progress of a pass over the rows as progress of the search; raise OutOfTimeError after the limit."""
        if self._listener is not None:
            expected = max(EXPECTED_PASSES * len(self.start.rows.X), self._done + total)
            self._listener(self._done + done, expected)
            self._done += total if done == total else 0
        if np.isfinite(self._end) and perf_counter() >= self._end:
            raise OutOfTimeError

    def lift_limit(self) -> None:
        """Remove the time limit."""
        self._end = np.inf

    def quickest(self, objective: Objective) -> Objective | FastObjective:
        """Return the objective, or its fast version if there is one; the first call decides what `way` says."""
        make, reason = choose_way(objective)
        self.way = self.way or reason
        if make is None:
            return objective
        self.quick = make(objective)
        return self.quick

    def hand_over(self, theta: Array) -> None:
        """Drop the fast objective, if any: pass its evaluations to the full one, and evaluate the latter at `theta`."""
        if self.quick is not None:
            quick, self.quick = self.quick, None
            quick.engine.tried_quickly += quick.tried
            quick.engine.evaluate(theta)

    def count(self, starts: Iterable[Any]) -> Iterator[Any]:
        """Yield the starting points of a search unchanged, and count them in `starts`."""
        for start in starts:
            self.starts += 1
            yield start
