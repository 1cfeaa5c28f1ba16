"""Leave-one-out: how well each row is predicted from all the others.

Always a sum over ``j != i``. The shortcut through the diagonal of the hat matrix divides by ``1 - K(0)/D_i``, which
cancels near isolated rows and has false minima at tiny bandwidths. Leave-cluster-out is the same over all rows of other
groups (`kernpool.pooling.groups`).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from kernpool.core.empty import fill_empty
from kernpool.core.problem import Problem
from kernpool.execution.progress import Progress
from kernpool.execution.threads import cut
from kernpool.pooling.choice import choose
from kernpool.pooling.limits import limit_values
from kernpool.pooling.settle import Sums

Array = NDArray[np.float64]

ROWS_AT_ONCE = 1 << 16  # whose fits are some megabytes, and of a million rows as much as the sums


@dataclass(frozen=True)
class LeaveOneOut:
    """Leave-one-out predictions of the training rows.

    Parameters
    ----------
    prediction : ndarray of shape (n, c)
        Row i predicted from the other rows, or from those of the other groups.
    error : float
        Weighted mean over rows of the squared error, summed over outputs.
    occupied : ndarray of bool, shape (n,)
        Which rows have another one inside the kernel's support; the rest is predicted by the weighted mean of the
        others.
    """

    prediction: Array
    error: float
    occupied: NDArray[np.bool_]

    @property
    def empty_windows(self) -> int:
        """How many rows have no other one inside the kernel's support."""
        return int(np.count_nonzero(~self.occupied))


def leave_one_out(
    problem: Problem,
    *,
    algorithm: str = "auto",
    n_jobs: int | None = None,
    progress: Progress | None = None,
    ridge: Array | None = None,
) -> LeaveOneOut:
    r"""Predict every row from the others, and measure the error.

    .. math:: CV(h) = \sum_i w_i \lVert y_i - \hat y_{-i}(x_i) \rVert^2 \Big/ \sum_i w_i

    Parameters
    ----------
    problem : Problem
        With the training rows as queries and as keys, and ``exclude_self=True``, or with groups, which leaves all rows
        of a cluster out (`Problem.with_groups`); local linear with ``degree=1``.
    algorithm, n_jobs, progress
        As in `pool`.
    ridge : ndarray of shape (d,), optional
        Of `Recipe.ridge_weight`.

    Returns
    -------
    LeaveOneOut
        Predictions, error and number of empty windows.

    Examples
    --------
    >>> import kernpool
    >>> x = [[0.0], [1.0], [2.0]]
    >>> problem = kernpool.Problem.from_arrays(x, x, [0.0, 3.0, 6.0], kernel="constant", exclude_self=True)
    >>> leave_one_out(problem).error
    13.5
    """
    plan, n = choose(problem, algorithm, often=True), len(problem.query)
    state = plan.reduce(problem.without_center(), n_jobs=n_jobs, progress=progress)
    prediction, squared, occupied = np.empty_like(problem.value), np.empty(n), np.empty(n, dtype=bool)
    for rows in cut(n, ROWS_AT_ONCE):
        fit = Sums(state.rows(rows), problem.layout, problem.value_center).fit(ridge)
        prediction[rows], occupied[rows] = fit.intercept, fit.occupied
    fill = partial(limit_values, problem, empty="mean", n_jobs=n_jobs)
    prediction = fill_empty(prediction, occupied, "mean", fill)
    for rows in cut(n, ROWS_AT_ONCE):
        squared[rows] = np.sum((problem.value[rows] + problem.value_center - prediction[rows]) ** 2, axis=1)
    weight = problem.key_weight
    error = squared.mean() if weight is None else weight @ squared / weight.sum()
    return LeaveOneOut(prediction, float(error), occupied)
