"""Progress and time limit of a bandwidth search, and the choice between the full and the fast objective.

A search may be stopped at any time, so `SearchState` is kept up to date. A limit on seconds is checked where progress
is reported: after every piece of a pass over the rows, and before every evaluation that reports none. A pass that is
stopped is lost; earlier evaluations are kept. `choose_way` decides by the rows alone how the criterion is evaluated,
not by whether the compiled loops happen to be loaded, so that results are reproducible to the last digit.
"""

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kernpool.bandwidth.search.fast_objectives import AllPairsObjective, FastObjective, PairwiseObjective
from kernpool.bandwidth.search.gauss_newton import SumOfSquares
from kernpool.bandwidth.search.objective import Objective, Trial
from kernpool.execution.progress import Progress
from kernpool.kernels import get_kernel
from kernpool.pooling.plan_choice import choose

MOST_ROWS_WITHOUT_COMPILER = 400  # a hundred dense passes over so many take as long as loading Numba
# Pairs times columns, a product of two columns being one more for local lines: 250 rows of a number and a level take
# the engine about 4 ms with their slopes, and a search as long as loading compiled loops, one second.
FEWEST_NUMBERS = 200_000
# With fewer columns half of the pairs, those within reach, are quicker (1024 rows of three: 0.7 ms and not 2), and the
# engine is as quick for local lines; with 30 columns slopes of all pairs take a third of the time.
MANY_COLUMNS = 8
MOST_ROWS = 4096  # beyond, the engine gains from going through the rows in order of distance
# Unless most rows are within reach of most. With 20 000 rows of six numbers and three factors, of which three numbers
# matter, half of the pairs are, and slopes of all pairs take a third of the time of the engine's.
MOST_ROWS_IN_REACH, SHARE_IN_REACH = 1 << 15, 0.25
SAMPLED, REACH = 64, 40.0  # rows that reach is measured for; logarithm of the smallest weight relative to the largest


class EvaluationMethod(NamedTuple):
    """Method by which a criterion is evaluated, and the reason for choosing it.

    Parameters
    ----------
    make : type or None
        Class of the fast objective, built from the engine's; None if there is none.
    reason : str
        The reason in words.
    """

    make: type[FastObjective] | None
    reason: str

    @property
    def quick(self) -> bool:
        """Whether the criterion is evaluated by a fast method for small data sets."""
        return self.make is not None


def choose_way(objective: Objective, *, one_factor: bool, near: NDArray[np.float64] | None = None) -> EvaluationMethod:
    """Choose between the general and the fast methods of evaluating a criterion on given rows.

    Parameters
    ----------
    objective : Objective
        Criterion of these rows.
    one_factor : bool
        Whether one factor on the spreads is searched for, instead of one bandwidth per column.
    near : ndarray of shape (p,), optional
        Log bandwidths and smoothings that the search continues from. By default they are unknown, and more than some
        thousand rows are left to the engine.

    Returns
    -------
    EvaluationMethod
        The method and the reason. It depends on the rows alone, so that results are the same to the last digit
        whether or not the compiled loops are already loaded.
    """
    (n, d), k = objective.rows.X.shape, objective.rows.code.shape[1]
    problem = objective.problem
    gaussian = problem.similarity.kernel is get_kernel("gaussian")
    if objective.algorithm != "auto":
        return EvaluationMethod(None, f"by the engine: algorithm={objective.algorithm!r} was asked for")
    if objective.rows.group is not None:
        return EvaluationMethod(None, "by the engine: rows of a group are left out together")
    if one_factor and d > 1:
        return EvaluationMethod(None, "by the engine: there is no faster method for a common factor of several columns")
    means = gaussian and not k and not problem.degree and (one_factor or d < MANY_COLUMNS)
    if n > MOST_ROWS and (means or near is None or not _are_in_reach(objective, near)):
        return EvaluationMethod(None, f"by the engine: {n} rows are too many for a faster method")
    if means:
        if n <= MOST_ROWS_WITHOUT_COMPILER:
            return EvaluationMethod(None, f"by the engine: {n} rows take less time than loading compiled loops")
        return EvaluationMethod(
            PairwiseObjective, f"every pair of {n} rows once, by compiled loops; the best by the engine"
        )
    if not k and (not gaussian or one_factor or d < MANY_COLUMNS):
        return EvaluationMethod(
            None, "by the engine: for few numeric columns there is a faster method only for plain Gaussian means"
        )
    if n * n * (d + k + problem.degree * d * d) < FEWEST_NUMBERS:
        return EvaluationMethod(None, f"by the engine: {n} rows take less time than loading compiled loops")
    if not gaussian and not _is_dense(objective):
        return EvaluationMethod(
            None, f"by the engine: cells of levels, whose kernel is {problem.similarity.kernel.name}"
        )
    return EvaluationMethod(AllPairsObjective, f"{_all_pairs(n)}; the best by the engine")


def choose_way_of_log_loss(objective: Objective) -> EvaluationMethod:
    """Choose how to evaluate the log loss: by blocks of all pairs if squared error would have a fast method.

    Slopes of the log loss need a pullback, which `PairwiseObjective` does not have, and nothing is evaluated again.
    """
    way = choose_way(objective, one_factor=False)
    return EvaluationMethod(AllPairsObjective, _all_pairs(len(objective.rows.X))) if way.quick else way


def _all_pairs(n: int) -> str:
    return f"all pairs of {n} rows in blocks, by compiled loops"


def _is_dense(objective: Objective) -> bool:
    """Return whether the general method would use the dense algorithm, a matrix of all pairs."""
    middle = np.concatenate([np.zeros(objective.columns), 0.5 * objective.categories.largest])
    return choose(objective.at(middle), "auto").algorithm == "reference"


def _are_in_reach(objective: Objective, theta: NDArray[np.float64]) -> bool:
    """Return whether at least a quarter of pairs, in a sample of queries, have a non-negligible weight.

    The answer is False for more than 32 768 rows.
    """
    problem, n = objective.at(theta), len(objective.rows.X)
    if n > MOST_ROWS_IN_REACH:
        return False
    some = np.linspace(0, n - 1, min(SAMPLED, n)).astype(np.intp)
    part = problem.block(some)
    logit = part.similarity.logits(part.query, part.key)
    if part.factors is not None:
        for logarithm in part.factors.logarithms():
            logit += logarithm
    logit[np.arange(len(some)), some] = -np.inf
    largest = logit.max(axis=1, keepdims=True)
    share = np.mean(logit >= np.where(np.isfinite(largest), largest, 0.0) - REACH)
    return bool(share >= SHARE_IN_REACH)


Array = NDArray[np.float64]


class OutOfTimeError(Exception):
    """Error raised inside a bandwidth search at its time limit, which the search itself catches."""


class TimeLimit:
    """Time limit of a search in seconds, counted from its creation; may be unlimited.

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
        """Raise OutOfTimeError if the time limit has passed."""
        if np.isfinite(self._end) and self._clock() >= self._end:
            raise OutOfTimeError

    def lift(self) -> None:
        """Remove the time limit."""
        self._end = np.inf

    def watch(self, progress: Progress | None) -> Progress | None:
        """Return a progress callback that also raises OutOfTimeError once the time limit has passed.

        So a pass over the rows stops where it next reports progress. Without a limit the callback is returned as it is.
        """
        if self.seconds is None:
            return progress

        def report(done: int, total: int) -> None:
            if progress is not None:
                progress(done, total)
            self.check()

        return report


class TimedObjective:
    """Objective of a least-squares search that checks a time limit before every evaluation.

    Parameters
    ----------
    objective : SumOfSquares
        Objective of few rows.
    limit : TimeLimit
        Checked before every evaluation.
    """

    def __init__(self, objective: SumOfSquares, limit: TimeLimit) -> None:
        self._objective, self._limit = objective, limit

    @property
    def box(self) -> tuple[Array, Array, Array]:
        """Lower and upper bounds of the parameters, and thresholds beyond which the objective is nearly flat."""
        return self._objective.box

    def evaluate(self, theta: Array) -> Any:
        """Check the time limit, and evaluate the objective at a parameter vector."""
        self._limit.check()
        return self._objective.evaluate(theta)

    def jacobian(self, at: Any) -> Array:
        """Check the time limit, and return the derivatives of the residuals at an evaluated point."""
        self._limit.check()
        return self._objective.jacobian(at)


@dataclass
class SearchState:
    """Record of a running bandwidth search: time limit, number of starts, samples, and fast objective.

    Parameters
    ----------
    limit : TimeLimit
        Time limit of the search.
    starts : int, default=0
        Number of starts, or of points of the grid.
    way : str, default=""
        How the criterion was evaluated on the first rows.
    fewer : list of Objective
        Criteria of samples, the smallest sample first.
    quick : FastObjective, optional
        Fast objective of the rows at hand, until its result is handed over.
    """

    limit: TimeLimit
    starts: int = 0
    way: str = ""
    fewer: list[Objective] = field(default_factory=list)
    quick: FastObjective | None = None

    @property
    def evaluations_on_fewer(self) -> int:
        """Number of evaluations of the criterion on samples of the rows."""
        return sum(len(objective.all_tried) for objective in self.fewer)

    def count(self, starts: Iterable[Any]) -> Iterator[Any]:
        """Yield the starting points of a search unchanged, and count them in `starts`."""
        for start in starts:
            self.starts += 1
            yield start

    def hand_over(self, theta: Array) -> None:
        """Drop the fast objective, if any: pass its evaluations to the full one, and evaluate the latter at `theta`."""
        if self.quick is not None:
            quick, self.quick = self.quick, None
            quick.hand_over(theta)

    def finish_early(self, objective: Objective, moved: Callable[[Objective, Trial], Array], rule: Array) -> str:
        """Conclude a stopped search at the best bandwidths known, on all rows, and return a description of the result.

        Parameters
        ----------
        objective : Objective
            Criterion of all rows.
        moved : callable
            Takes an objective of fewer rows and its best point; returns the expected best point of all rows.
        rule : ndarray of shape (p,)
            Point to use if no sample was evaluated.

        Returns
        -------
        str
            Description of the result.
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
            reason += f"the best so far on {len(known[-1].rows.X)} rows, rescaled to all rows by the optimal rate"
        else:
            objective.evaluate(rule)
            reason += "the rule of Scott"
        if not np.isfinite(objective.best.penalised):
            objective.evaluate(objective.box[1])
            reason += ", where the criterion is not defined, so that bandwidths are practically infinite"
        return reason
