"""Settings of a bandwidth search, preparation of its rows and columns, and the search for the ridge.

`SearchConfig` holds the criterion and the pooling options, the same for all rows of a search. `begin` brings rows and
columns into their canonical form and decides between one common factor and one bandwidth per column. `find_ridge`
minimises over the ridge on the slopes of local linear fits, too: bandwidths are found at a moderate ridge first,
and from there bandwidths and ridge descend together, from three values of the ridge. A criterion has minima of wide
windows without a ridge, and of narrow windows with a large one.
"""

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kernpool.bandwidth.criteria import Criterion
from kernpool.bandwidth.rules_of_thumb import column_spread
from kernpool.bandwidth.search.gauss_newton import GaussNewton, SumOfSquares, descend
from kernpool.bandwidth.search.objective import (
    ColumnOrder,
    Evaluation,
    Objective,
    Penalty,
    TrainingRows,
    canonical_rows,
    column_order,
)
from kernpool.core.pair_factors import Categories
from kernpool.execution.progress import Progress
from kernpool.kernels import Kernel

Array = NDArray[np.float64]

FIRST_RIDGE = 0.3  # keys at the query
STARTS = (0.03, 0.3, 3.0)
SMALLEST, LARGEST = 1e-4, 1e3
FIRST_STEPS, MOST_STEPS = 12, 60
FIRST_TOLERANCE, TOLERANCE = 1e-4, 1e-9


@dataclass(frozen=True)
class Joint:
    """Evaluation of a criterion at bandwidths, smoothings and a ridge together."""

    theta: Array
    at: Evaluation

    @property
    def residual(self) -> Array:
        """Residuals whose squares are summed."""
        return self.at.residual

    @property
    def penalised(self) -> float:
        """Sum of the squared residuals."""
        return self.at.penalised


class WithRidge:
    """Criterion as a function of log bandwidths, smoothings and the logarithm of the ridge.

    Parameters
    ----------
    objective : SumOfSquares
        The criterion at the engine's ridge, evaluated by the engine or by a faster method.
    engine : Objective
        The engine's objective, whose ridge is changed.
    """

    def __init__(self, objective: SumOfSquares, engine: Objective) -> None:
        self.objective, self.engine = objective, engine
        low, high, flat = objective.box
        self.unit = engine.rows.unit
        self.box = (
            np.append(low, np.log(SMALLEST * self.unit)),
            np.append(high, np.log(LARGEST * self.unit)),
            np.append(flat, np.inf),
        )

    def evaluate(self, theta: Array) -> Joint:
        """Evaluate the criterion at log bandwidths, smoothings and, as last parameter, the log ridge."""
        self.engine.ridge = float(np.exp(theta[-1]))
        return Joint(theta, self.objective.evaluate(theta[:-1]))

    def jacobian(self, at: Joint) -> Array:
        """Return derivatives of the residuals with respect to all parameters, the log ridge last.

        Of shape (n c, p + 1).
        """
        return np.column_stack([self.objective.jacobian(at.at), self.engine.by_log_ridge(at.at)])


def find_ridge(objective: SumOfSquares, engine: Objective, theta: Array) -> tuple[Array, float]:
    """Minimise a criterion over bandwidths and ridge together, from bandwidths that were found at a fixed ridge.

    Parameters
    ----------
    objective : SumOfSquares
        Criterion of local linear fits, evaluated by the engine or by a faster method.
    engine : Objective
        Its ridge is set to the one found.
    theta : ndarray of shape (p,)
        Log bandwidths and smoothings.

    Returns
    -------
    theta : ndarray of shape (p,)
        Log bandwidths and smoothings.
    ridge : float
        In keys at the query.
    """
    joint = WithRidge(objective, engine)
    begun: list[GaussNewton] = []
    for ridge in STARTS:
        start = joint.evaluate(np.append(theta, np.log(ridge * joint.unit)))
        if np.isfinite(start.penalised):
            begun.append(descend(joint, start, max_steps=FIRST_STEPS, tolerance=FIRST_TOLERANCE))
    best = min(begun, key=lambda one: float(one.end.penalised))
    best = descend(joint, best.end, max_steps=MOST_STEPS, tolerance=TOLERANCE, curvature=best.curvature)
    ridge = float(np.exp(best.end.theta[-1]))
    engine.ridge = ridge
    return best.end.theta[:-1], ridge


@dataclass(frozen=True)
class SearchConfig:
    """Criterion and pooling options of a bandwidth search, the same for every sample of the rows.

    Parameters
    ----------
    criterion : Criterion
        Criterion to minimise.
    categories : Categories
        Categories of the codes.
    degree, kernel, composition, algorithm, n_jobs
        As in `pool`.
    progress : callable or None
        Called as ``progress(done, total)`` in queries of the evaluation at hand.
    regularity : Penalty or None
        A penalty on bandwidths.
    ridge : float or None
        Ridge on the slopes of planes; None to search for it.
    """

    criterion: Criterion
    categories: Categories
    degree: int
    kernel: Kernel
    composition: str
    algorithm: str
    n_jobs: int | None
    progress: Progress | None
    regularity: Penalty | None = None
    ridge: float | None = 0.0

    def objective(self, rows: TrainingRows) -> Objective:
        """Build the `Objective` of given training rows: the criterion as a function of bandwidths."""
        return Objective(
            rows,
            self.criterion,
            categories=self.categories,
            degree=self.degree,
            kernel=self.kernel,
            composition=self.composition,
            algorithm=self.algorithm,
            n_jobs=self.n_jobs,
            progress=self.progress,
            regularity=self.regularity,
            ridge=FIRST_RIDGE * rows.unit if self.ridge is None else self.ridge,
        )


def is_flat(kernel: Kernel) -> bool:
    """Return whether a kernel is constant on its support, or its derivative is not available (no `log_slope`).

    If it is constant, criteria are step functions.
    """
    slope = kernel.log_slope
    return slope is None or not np.any(slope(np.array([0.25, 0.5, 0.75])))


class SearchStart(NamedTuple):
    """Training rows and columns in canonical form, ready for a bandwidth search.

    Parameters
    ----------
    rows : TrainingRows
        All rows of the search, in canonical form: with the numeric columns that vary, in canonical order, or one of
        zeros if there are none.
    spread : ndarray of shape (d,)
        Spreads of their columns.
    one_factor : bool
        Whether one factor on the spreads is searched for, instead of one bandwidth per column.
    order : ColumnOrder
        Order of the columns of `rows` among the caller's.
    columns : int
        Number of the caller's numeric columns.
    """

    rows: TrainingRows
    spread: Array
    one_factor: bool
    order: ColumnOrder
    columns: int

    def restore(self, found: Array, of_constant: float) -> Array:
        """Map numbers per searched column, of shape (..., p), to the caller's columns, constant ones included.

        Parameters
        ----------
        found : ndarray of shape (..., p)
            Numbers of numeric columns, followed by those of categorical ones, if any.
        of_constant : float
            Number for numeric columns that do not vary.
        """
        numeric, categorical = self.order
        searched = self.rows.X.shape[1]
        restored = np.full((*found.shape[:-1], self.columns + found.shape[-1] - searched), of_constant)
        restored[..., numeric] = found[..., : len(numeric)]
        if restored.shape[-1] > self.columns:
            restored[..., self.columns + categorical] = found[..., searched:]
        return restored


def begin(
    X: Array,
    value: Array,
    weight: Array | None,
    code: NDArray[np.int64] | None,
    group: NDArray[np.int64] | None = None,
    *,
    categories: Categories,
    common_factor: bool,
    kernel: Kernel,
) -> SearchStart:
    """Prepare the rows and columns of a search, and decide between a common factor and one bandwidth per column.

    Parameters
    ----------
    X, value, weight, code, group, categories, common_factor, kernel
        As in `kernpool.bandwidth.search.search_bandwidth`.

    Returns
    -------
    SearchStart
        With unchanged values.

    Raises
    ------
    ValueError
        If there are categorical columns, and only a common factor can be searched for.
    """
    factor_alone = common_factor or is_flat(kernel)
    if len(categories) and factor_alone:
        raise ValueError(
            "categorical columns have smoothings of their own, which cannot be searched for with "
            f"common_factor={common_factor} and kernel={kernel.name!r}; use common_factor=False and a kernel that is "
            "not flat, such as 'gaussian' or 'epanechnikov'"
        )
    rows = canonical_rows(X, value, weight, code, group)
    # A table with only categorical columns has one column of zeros, which is no reason to warn.
    spread = np.ones(1) if len(categories) and not rows.X.any() else column_spread(rows.X, rows.weight)
    order = column_order(rows)
    numeric = order.numeric[np.ptp(rows.X, axis=0)[order.numeric] > 0]
    searched = rows.X[:, numeric] if len(numeric) else np.zeros((len(rows.X), 1))
    rows = replace(rows, X=np.ascontiguousarray(searched), code=np.ascontiguousarray(rows.code[:, order.categorical]))
    spread = spread[numeric] if len(numeric) else np.ones(1)
    one = factor_alone or (rows.X.shape[1] == 1 and not len(categories))
    return SearchStart(rows, spread, one, ColumnOrder(numeric, order.categorical), X.shape[1])
