"""Pooling parameters, the choice of a plan for kernel sums, and the step from the sums to pooled values.

A `Recipe` holds kernel, bandwidth, degree and the other parameters, whatever is pooled. It is checked when it is
made, and never changed. `choose` decides how a problem is summed, and the plan gives its reasons; `sum_problem` sums.

`Sums` are the sums over pairs, wherever the pairs come from. In `finalize` they are solved for the local fit, the
center of the values is added back, rank-deficient fits are reported, and empty windows are filled: by the nearest key
or the overall mean, which are the same sum in the limit of a small or of a large bandwidth.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kernpool._arrays import Array, Flags, Index
from kernpool.algorithms import ALGORITHMS
from kernpool.core import CARTESIAN, FLOAT64, Geometry, Keys, Layout, Problem, Rows, as_tol, check_degree
from kernpool.core.local_fit import LocalFit, check_ridge, solve, warn_of_curvature, warn_of_rank, with_ridge
from kernpool.core.state import EMPTIES, EMPTY_VALUES, Empty, Fill, PoolState, fill_empty, report_empty
from kernpool.data.array_validation import as_bandwidth
from kernpool.execution.error_messages import check_choice
from kernpool.execution.progress import Progress
from kernpool.kernels import Kernel, get_kernel
from kernpool.pooling.category_cells import choose_for_levels
from kernpool.pooling.excluded_plan import plan_of_excluded
from kernpool.pooling.plan import (
    FEW,
    PartsPlan,
    PoolingPlan,
    check_algorithm,
    choose_algorithm,
    name_of_each,
    parts_by_width,
)
from kernpool.pooling.widths import Nearest, Window, check_window, count_neighbors, nearest_widths, with_widths

NEAREST = 1e-8  # times the bandwidth: a window in which only the nearest keys have weight


@dataclass(frozen=True, eq=False)  # arrays have no single truth
class Recipe:
    """Parameters of pooling, such as kernel, bandwidth, degree and algorithm, whatever the source of the pairs.

    It serves arrays, categories, chunks, partitions of Dask and running sums alike.

    Parameters
    ----------
    kernel, bandwidth, degree, tol, algorithm, empty, n_jobs
        As in `pool`. A bandwidth of one number is for any number of columns.
    ridge : float or ndarray of shape (d,), default=0.0
        Penalty on the slopes of a local linear fit, in keys at the query; see `kernpool.core.local_fit`.
    warns_of_nearest : bool, default=False
        Whether ``empty="nearest"`` warns where windows are empty, as it does for estimators, whose default it is.
    widening : ndarray of shape (m,), optional
        Factor of the bandwidths at each of the queries to come, as of `KernelLogits`.
    window : "fixed" or Nearest, default="fixed"
        How far windows reach (`kernpool.pooling.widths`).
    geometry : Geometry, optional
        Of the columns, as of `KernelLogits`.

    Notes
    -----
    `Recipe.of` reads names of kernels and single numbers.

    Examples
    --------
    >>> Recipe.of(kernel="epanechnikov", bandwidth=0.5, degree=1).bandwidth
    array([0.5])
    >>> Recipe.of(bandwidth=-1.0)
    Traceback (most recent call last):
    ValueError: bandwidth must be positive, and at least 1e-150, got -1.0; it is a length in the units of the keys, so
    rescale the columns if that is too large
    """

    kernel: Kernel
    bandwidth: Array
    degree: int = 0
    tol: float | None = None
    algorithm: str = "auto"
    empty: Empty = "nan"
    n_jobs: int | None = None
    ridge: Array | float = 0.0
    warns_of_nearest: bool = False
    widening: Array | None = None
    window: Window = "fixed"
    geometry: Geometry = CARTESIAN

    def __post_init__(self) -> None:
        check_choice("empty", self.empty, EMPTIES)
        check_degree(self.degree)
        if self.algorithm != "auto":
            check_algorithm(self.algorithm)
        as_tol(self.tol)
        if type(self.ridge) is float and not self.ridge:
            return
        check_ridge(self.ridge)
        if self.degree == 2 and np.any(self.ridge):
            raise ValueError("ridge is on the slopes of local planes; use degree=1, or ridge=0")

    @classmethod
    def of(
        cls, kernel: str | Kernel = "gaussian", bandwidth: ArrayLike = 1.0, window: Window = "fixed", **options: Any
    ) -> Recipe:
        """Build a `Recipe` from a kernel or its name, a scalar or vector bandwidth, and further parameters of pooling.

        Parameters
        ----------
        kernel, bandwidth, **options
            As in `pool`.

        Returns
        -------
        Recipe
            Checked.
        """
        if not (isinstance(window, str) and window == "fixed"):
            check_window(window)
        return cls(get_kernel(kernel), as_bandwidth(bandwidth, None), window=window, **options)

    def problem(
        self, query: ArrayLike | Rows, key: ArrayLike | Keys, value: ArrayLike | Rows | None = None, **pairs: Any
    ) -> Problem:
        """Build the pooling `Problem` of queries, keys and values with the parameters of this recipe."""
        problem = Problem.from_arrays(
            query,
            key,
            value,
            kernel=self.kernel,
            bandwidth=self.bandwidth,
            tol=self.tol,
            degree=self.degree,
            geometry=self.geometry,
            **pairs,
        )
        if self.widening is not None:
            problem = replace(problem, similarity=replace(problem.similarity, widening=self.widening))
        if not isinstance(self.window, Nearest):
            return problem
        return with_widths(problem, nearest_widths(problem, count_neighbors(self.window, problem), self.n_jobs))

    def at(self, queries: slice | Index) -> Recipe:
        """Return the recipe for the queries with these indices."""
        return self if self.widening is None else replace(self, widening=self.widening[queries])

    def refuse_nearest(self, pairs: str) -> None:
        """Raise ValueError if windows follow the keys, which `pairs` (in words) cannot do: all keys are counted."""
        if self.window != "fixed":
            raise ValueError(
                f"window=Nearest(k) counts the keys that are near, which {pairs} do not hold at once; pass arrays, or "
                "window='fixed' with a bandwidth"
            )

    def fill_empty(self, values: Array, occupied: Flags, fill: Fill | None = None) -> Array:
        """Replace the values of queries without any key of positive weight, as `Recipe.empty` says."""
        return fill_empty(values, occupied, self.empty, fill, warn=self.warns_of_nearest)

    @property
    def empty_value(self) -> float | None:
        """Value of queries without any key of positive weight; None where it is a fit, of the nearest or all keys."""
        return EMPTY_VALUES.get(self.empty)

    @property
    def warns_of_empty(self) -> bool:
        """Whether there is a warning of queries without any key of positive weight."""
        return self.empty == "nan" or (self.empty == "nearest" and self.warns_of_nearest)

    def report_empty(self, occupied: Flags) -> None:
        """Warn of queries without any key of positive weight, or raise ValueError, if the policy is to do so."""
        report_empty(occupied, self.empty, warn=self.warns_of_nearest)

    @property
    def limit(self) -> Recipe:
        """Recipe of the fit that queries without any key of positive weight get: the nearest key, or the mean of all.

        Of policies that give a constant it is that of the mean.
        """
        kernel, factor = _limit(self.empty)
        return replace(self, kernel=kernel, bandwidth=factor * self.bandwidth)

    def ridge_weight(self, columns: int) -> Array | None:
        """Return the ridge penalty of each column as a sum of kernel weights; None without a ridge."""
        if not self.degree or not np.any(self.ridge):
            return None
        return np.full(columns, self.ridge * np.exp(self.kernel.log_peak(columns)))


def choose(problem: Problem, algorithm: str = "auto", *, reuse: bool = False, auxiliary: bool = False) -> PoolingPlan:
    """Choose the algorithm for a pooling problem and state the reason, without pooling anything.

    Parameters
    ----------
    problem : Problem
        From `Problem.from_arrays`.
    algorithm : str, default="auto"
        A name from ``kernpool.algorithms.ALGORITHMS``, or ``"auto"``: the one with the smallest estimate of time among
        those that can do the problem (`Algorithm.seconds`). For large problems of several columns the estimate looks at
        64 queries and 2048 keys, which takes some milliseconds.
    reuse : bool, default=False
        Whether such problems will be summed many times, as by a fitted model or a search for bandwidths. Then compiled
        loops, which take half a second to load, are wanted for small problems too; `pool` asks with False.
    auxiliary : bool, default=False
        Whether the sum is not the one that the caller requested, such as that of a squared kernel: then ``"auto"``
        replaces an algorithm that does not support it.

    Returns
    -------
    Plan
        With ``algorithm`` and ``reason``.

    Raises
    ------
    ValueError
        If the algorithm is unknown or cannot do this problem; the message names one that can.

    Notes
    -----
    If the named algorithm does not support the problem, ValueError is raised, with the same message by `fit` and every
    method of an estimator. Auxiliary sums, such as those of squared kernels, of a fit of another degree or under a
    mask, use ``"auto"`` if the named algorithm does not support them: the only case in which it is not used.

    All algorithms are within the same promise of accuracy, but not equal to the last bit. The plan depends on the
    problem and the kind of processor, and not on what the process did before. For a single call of up to about a
    hundred thousand pairs it is a dense NumPy expression, which takes half a millisecond and loads no compiler. Beyond,
    it is compiled loops, though the first call of a process waits half a second to a second for them to load, and
    several where they have never been compiled: 1000 x 1000 pairs then take 1 ms in place of 5. With `reuse` the
    limit is some ten thousand pairs: a search for a bandwidth makes hundreds of passes and has won the time back when
    it ends (300 rows of two columns: 0.3 s in place of 1.6).

    Examples
    --------
    >>> import kernpool
    >>> problem = kernpool.Problem.from_arrays([0.5], [0.0, 1.0], [3.0, 4.0])
    >>> kernpool.choose(problem).algorithm
    'reference'
    >>> kernpool.choose(problem, "brute").reason
    'every pair, in compiled tiles: as asked'
    """
    similarity = problem.similarity
    if not similarity.is_uniform and similarity.n_widths <= FEW:
        part = partial(choose, algorithm=algorithm, reuse=reuse, auxiliary=auxiliary)
        why = f"{similarity.n_widths} width(s) of windows: each by {name_of_each(algorithm)}"
        return PartsPlan("widened", why, part, parts_by_width)
    if auxiliary and algorithm in ALGORITHMS and ALGORITHMS[algorithm].refusal(problem) is not None:
        algorithm = "auto"
    if problem.excluded is not None:
        if algorithm != "auto":
            choose_algorithm(problem, algorithm)  # raises where it does not support the problem
        part = partial(choose, algorithm=algorithm, reuse=reuse, auxiliary=True)  # parts of few pairs have a mask
        return plan_of_excluded(problem, part, name_of_each(algorithm))
    if problem.factors is not None:
        return choose_for_levels(problem, algorithm)
    return choose_algorithm(problem, algorithm, reuse=reuse)


def sum_problem(
    problem: Problem, recipe: Recipe, progress: Progress | None = None, *, reuse: bool = True, auxiliary: bool = False
) -> PoolState:
    """Sum weights and weighted values over all keys by the algorithm of a recipe; every sum of pooling is this."""
    plan = choose(problem, recipe.algorithm, reuse=reuse, auxiliary=auxiliary)
    return plan.reduce(problem, n_jobs=recipe.n_jobs, progress=progress)


def limit_problem(problem: Problem, empty: str) -> Problem:
    """Build the problem, of vanishing or infinite bandwidth, that gives values to queries where no key has weight.

    A Gaussian of vanishing bandwidth puts its weight on the nearest key (keys, if tied), and the constant kernel gives
    the weighted mean; masks, weights and the query's own key are respected by construction. Categorical columns, which
    may be the reason for an empty window, are ignored.
    """
    # A tree for the limit would replace the cached one that the next queries need.
    bare = replace(problem, factors=None, degree=0, prepared=None)
    return bare.with_kernel(*_limit(empty))


def _limit(empty: str) -> tuple[Kernel, float]:
    """Return the kernel of the fit in empty windows, and the factor of the bandwidths: vanishing, or all keys alike."""
    return (get_kernel("gaussian"), NEAREST) if empty == "nearest" else (get_kernel("constant"), 1.0)


def limit_values(problem: Problem, rows: Index, empty: str, n_jobs: int | None = None) -> Array:
    """Return values for queries where no key has weight: the nearest key's, or the weighted mean, as `empty` says."""
    limit = limit_problem(problem.block(rows), empty)
    return quotient(choose(limit).reduce(limit, n_jobs=n_jobs))


def quotient(state: PoolState) -> Array:
    """Divide weighted sums by sums of weights; the mean is NaN where no key has positive weight."""
    with np.errstate(invalid="ignore"):
        return state.numerator / state.denominator[:, None]


class ReportRank(Protocol):
    """Interface of a callback that reports rank-deficient local fits."""

    def __call__(self, rank: Index, occupied: Flags, columns: int) -> None:
        """Report local fits whose rank is below `columns`, the number of regressors."""


@dataclass(frozen=True)
class Sums:
    """Kernel sums at each query, with a callback that gives a value where no key has weight.

    Parameters
    ----------
    state : PoolState
        The sums.
    layout : Layout
        Layout of its numerator.
    center : ndarray of shape (c,) or (m, c), or None
        Center that was subtracted from the values, because slopes of large values with small differences would lose
        their digits. None for uncentered values.
    fill : callable, optional
        The values of rows whose window is empty, under the policies "nearest" and "mean".
    shape : tuple of int, optional
        Of the pooled values; by default (m, c).
    dtype : numpy.dtype, default=float64
        Of the pooled values.
    """

    state: PoolState
    layout: Layout
    center: Array | None = None
    fill: Fill | None = None
    shape: tuple[int, ...] | None = None
    dtype: np.dtype[Any] = FLOAT64

    def fit(self, ridge: Array | None = None) -> LocalFit:
        """Solve the local polynomial fit at each query from its kernel sums; it is zero where no key has weight.

        Parameters
        ----------
        ridge : ndarray of shape (d,), optional
            As in `with_ridge`.
        """
        fit = solve(self.state if ridge is None else with_ridge(self.state, self.layout, ridge), self.layout)
        center = 0.0 if self.center is None else self.center
        return replace(fit, intercept=np.where(fit.occupied[:, None], fit.intercept + center, 0.0))


def finalize(
    sums: Sums,
    recipe: Recipe,
    report_rank: ReportRank | None = None,
) -> NDArray[np.floating[Any]]:
    """Compute pooled values from kernel sums: solve local fits, and give a value to queries where no key has weight.

    In between the center of the values is added back, and rank-deficient fits are reported.

    Parameters
    ----------
    sums : Sums
        Over whatever pairs.
    recipe : Recipe
        The parameters of pooling, with the policy for empty windows.
    report_rank : callable, optional
        Called once if planes are not determined; by default `warn_of_rank`, or `warn_of_curvature`.

    Returns
    -------
    ndarray of shape (m, c), or as the sums say
        Pooled values.

    Raises
    ------
    ValueError
        If a window is empty, and the policy is "raise" or needs pairs that cannot be read again.

    Examples
    --------
    >>> state = PoolState(np.zeros(2), np.array([2.0, 0.0]), np.array([[6.0], [0.0]]))
    >>> finalize(Sums(state, Layout(values=1, columns=1, degree=0)), Recipe.of(empty="zero"))
    array([[3.],
           [0.]])
    """
    if sums.center is None and not recipe.degree:
        values, occupied = quotient(sums.state), sums.state.denominator != 0
    else:
        fit = sums.fit(recipe.ridge_weight(sums.layout.columns))
        if recipe.degree:
            report = report_rank or (warn_of_rank if recipe.degree == 1 else warn_of_curvature)
            if np.any(fit.rank[fit.occupied] < sums.layout.regressors):
                report(fit.rank, fit.occupied, sums.layout.regressors)
        values, occupied = fit.intercept, fit.occupied
    values = fill_empty(values, occupied, recipe.empty, sums.fill, warn=recipe.warns_of_nearest)
    values = values if sums.shape is None else values.reshape(sums.shape)
    return values.astype(sums.dtype, copy=False)
