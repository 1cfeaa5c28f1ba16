"""How the criterion of the first rows of a search is evaluated: by the engine, or by one of the quicker ways."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kernpool.bandwidth.search.all_pairs import AllPairsObjective
from kernpool.bandwidth.search.objective import Objective
from kernpool.bandwidth.search.pairwise import PairwiseObjective
from kernpool.bandwidth.search.quick import QuickObjective
from kernpool.kernels import get_kernel
from kernpool.pooling.choice import choose

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
SAMPLED, REACH = 64, 40.0  # rows that reach is measured for; logarithm of the smallest weight beside the largest


class Way(NamedTuple):
    """How a criterion is evaluated, and why.

    Parameters
    ----------
    make : type or None
        What makes the quick objective of the engine's; None if there is none.
    reason : str
        Why, in words.
    """

    make: type[QuickObjective] | None
    reason: str

    @property
    def quick(self) -> bool:
        """Whether there is a quicker way than the engine's."""
        return self.make is not None


def choose_way(objective: Objective, *, one_factor: bool, near: NDArray[np.float64] | None = None) -> Way:
    """Choose how the criterion of some rows is evaluated.

    Parameters
    ----------
    objective : Objective
        Of these rows.
    one_factor : bool
        Whether one factor on the spreads is searched for, instead of one bandwidth per column.
    near : ndarray of shape (p,), optional
        Log bandwidths and smoothings that the search goes on from. By default nothing is known of them, and more than
        some thousand rows are left to the engine.

    Returns
    -------
    Way
        Which way, and why. By the rows alone: whether something else has loaded the compiler must not show in the last
        digit.
    """
    (n, d), k = objective.rows.X.shape, objective.rows.code.shape[1]
    problem = objective.problem
    gaussian = problem.similarity.kernel is get_kernel("gaussian")
    if objective.algorithm != "auto":
        return Way(None, f"by the engine: algorithm={objective.algorithm!r} was asked for")
    if objective.rows.group is not None:
        return Way(None, "by the engine: rows of a group are left out together")
    if one_factor and d > 1:
        return Way(None, "by the engine: a common factor of several columns has no quicker way")
    means = gaussian and not k and not problem.degree and (one_factor or d < MANY_COLUMNS)
    if n > MOST_ROWS and (means or near is None or not _are_in_reach(objective, near)):
        return Way(None, f"by the engine: {n} rows are too many for a quicker way")
    if means:
        if n <= MOST_ROWS_WITHOUT_COMPILER:
            return Way(None, f"by the engine: {n} rows take less time than loading compiled loops")
        return Way(PairwiseObjective, f"every pair of {n} rows once, by compiled loops; the best by the engine")
    if not k and (not gaussian or one_factor or d < MANY_COLUMNS):
        return Way(None, "by the engine: few columns of numbers have a quicker way for plain Gaussian means alone")
    if n * n * (d + k + problem.degree * d * d) < FEWEST_NUMBERS:
        return Way(None, f"by the engine: {n} rows take less time than loading compiled loops")
    if not gaussian and not _is_dense(objective):
        return Way(None, f"by the engine: cells of levels, whose kernel is {problem.similarity.kernel.name}")
    return Way(AllPairsObjective, f"{_all_pairs(n)}; the best by the engine")


def choose_way_of_log_loss(objective: Objective) -> Way:
    """Choose how the log loss of some rows is evaluated: in blocks wherever sums of squares have a quicker way.

    It takes a pullback for its slopes, which the way of every pair once does not have, and nothing is evaluated again.
    """
    way = choose_way(objective, one_factor=False)
    return Way(AllPairsObjective, _all_pairs(len(objective.rows.X))) if way.quick else way


def _all_pairs(n: int) -> str:
    return f"all pairs of {n} rows in blocks, by compiled loops"


def _is_dense(objective: Objective) -> bool:
    """Whether the engine would go through a table of all pairs."""
    middle = np.concatenate([np.zeros(objective.columns), 0.5 * objective.categories.largest])
    return choose(objective.at(middle), "auto").algorithm == "reference"


def _are_in_reach(objective: Objective, theta: NDArray[np.float64]) -> bool:
    """Whether a good part of the rows are not next to nothing beside the nearest, on average over some rows."""
    problem, n = objective.at(theta), len(objective.rows.X)
    if n > MOST_ROWS_IN_REACH:
        return False
    some = np.linspace(0, n - 1, min(SAMPLED, n)).astype(np.intp)
    logit = problem.similarity.logits(problem.key[some], problem.key)
    if problem.factors is not None:
        code = objective.rows.code
        with np.errstate(divide="ignore"):
            for table, level in zip(problem.factors.tables, code.T, strict=True):
                logit += np.log(table)[level[some][:, None], level]
    logit[np.arange(len(some)), some] = -np.inf
    largest = logit.max(axis=1, keepdims=True)
    share = np.mean(logit >= np.where(np.isfinite(largest), largest, 0.0) - REACH)
    return bool(share >= SHARE_IN_REACH)
