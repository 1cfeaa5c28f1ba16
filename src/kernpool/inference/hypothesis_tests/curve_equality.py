"""Tests of equal or parallel regression curves between groups (nonparametric ANCOVA), and reference bands.

`compare_curves` is the test, `group_curves` the curves with the bands in which they lie where they do not differ.
With the curves of k groups at the same bandwidth, whose bias is equal where the true curves are, and their standard
errors, the reference band of group g around the mean curve is::

    mbar +- t_nu sqrt( se_g^2 (1 - 2/k) + sum_j se_j^2 / k^2 ),    mbar = sum_j m_j / k

with the standard error of the distance of curve g from the mean. With two groups this is one band, sqrt(se_1^2 +
se_2^2) / 2 times the quantile on either side [1]_: both curves leave it where they differ by more than the quantile
times the standard error of their difference. With more, k distances are judged at once, each at the level 1 -
alpha/k (Bonferroni). The degrees of freedom are those of Welch and Satterthwaite. Parallel curves are moved
together by their offsets, and their bands moved back; errors of the offsets, which all rows of a group share, are
ignored.

`ParallelOffsets` is Speckman's partially linear estimator of the group offsets. `out_of_reach` finds groups without
common support: only where rows of several groups are near each other is the difference of their curves identified.

References
----------
.. [1] A. W. Bowman and A. Azzalini, "Applied Smoothing Techniques for Data Analysis", Oxford University Press
   (1997), section 6.4; R's ``sm.ancova`` draws two standard errors in place of the quantile, and for two groups
   alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kernpool.core import Factors, Keys
from kernpool.data.encoding import labels_and_codes, named
from kernpool.execution.error_messages import check_choice, explain_calls
from kernpool.execution.warnings import underflow_is_zero
from kernpool.inference.confidence.intervals import as_level
from kernpool.inference.hypothesis_tests.base import (
    KINDS,
    TestResult,
    TestSample,
    WildBootstrap,
    bandwidth_for,
    read_inputs,
    read_sample,
)
from kernpool.inference.resampling.bootstrap import SmootherMatrix
from kernpool.inference.variance.residuals import FEWEST_ROWS, fit_training
from kernpool.inference.variance.standard_errors import errors_of
from kernpool.pooling.recipe import Recipe
from kernpool.smoother import EvaluationPoints, Smoother, estimate

Array = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class ParallelOffsets:
    """Offsets between parallel curves of groups, by Speckman's partially linear estimator, as in R's package sm.

    Offsets are least-squares estimates on the residuals of a rough curve. Its bandwidth is small, 2 ranges over the
    d-th root of the number of rows, so that the bias of the curve hardly matters.

    Parameters
    ----------
    code : ndarray of int, shape (n,)
        Group of each row, from 0 on.
    rough : SmootherMatrix
        The curve of all rows at that bandwidth.
    """

    code: Integers
    rough: SmootherMatrix

    @classmethod
    def of(cls, X: Array, code: Integers, recipe: Recipe) -> ParallelOffsets:
        """Build a `ParallelOffsets` from the inputs and groups of rows, with a small bandwidth for the common curve.

        The kernel is that of the recipe, and so is the bandwidth of constant columns.
        """
        span = np.ptp(X, axis=0)
        narrow = np.where(span > 0, 2.0 * span * len(X) ** (-1.0 / X.shape[1]), recipe.bandwidth)
        return cls(code, SmootherMatrix.at_rows(Recipe.of(recipe.kernel, narrow, degree=1, n_jobs=recipe.n_jobs), X))

    def of_groups(self, value: Array) -> Array:
        """Return each group's offset from the first group's curve, by column of outputs: shape (groups, columns)."""
        member = (self.code[:, None] == np.arange(1, self.code.max() + 1)).astype(np.float64)
        both = np.hstack([member, value])
        rest = both - self.rough.fit(both)
        k = member.shape[1]
        found = np.linalg.lstsq(rest[:, :k], rest[:, k:], rcond=None)[0]
        return np.concatenate([np.zeros((1, value.shape[1])), found])

    def __call__(self, value: Array) -> Array:
        """Return, for each row, the offset of its group's curve from the first group's: shape (n, columns)."""
        return self.of_groups(value)[self.code]


# Weight fraction around a row. With 40 rows on [0, 1], 40 on [2, 3] and the Gaussian it is at most .28, .01, 4e-5
# and 2e-25 at bandwidths of 1, .4, .25 and .1. At the last T is rounding and p is 1.
LEAST_SHARE = 1e-3
NAMED = 4  # groups in a message


def groups_apart(code: Integers) -> Factors:
    """Return factors of the kernel weights between rows: 1 within a group, and 0 between groups."""
    apart = np.eye(int(code.max()) + 1)
    return Factors(code[:, None], code[:, None], (apart,), (np.zeros_like(apart),))


def out_of_reach(X: Array, code: Integers, recipe: Recipe) -> Integers:
    """Return the numbers of the groups whose inputs have no common support with those of other groups.

    Parameters
    ----------
    X : ndarray of shape (n, d)
        Inputs.
    code : ndarray of int, shape (n,)
        Groups, from 0 on.
    recipe : Recipe
        Kernel and bandwidth.

    Returns
    -------
    ndarray of int
        Numbers of groups, in order. Other groups have less than a thousandth of the weight around each of their rows,
        and they have less than that around each row of other groups. Two passes over pairs of rows, three if there are
        such groups.

    Examples
    --------
    >>> X, code = np.array([[0.0], [0.1], [0.2], [5.0], [5.1]]), np.array([0, 1, 0, 2, 2])
    >>> out_of_reach(X, code, Recipe.of("gaussian", np.array([0.2])))
    array([2])
    """
    level, one, groups = replace(recipe, degree=0), np.ones((len(X), 1)), int(code.max()) + 1
    everything = SmootherMatrix.at_rows(level, X)
    own = SmootherMatrix.at_rows(level, X, groups_apart(code)).sums(one) / everything.sums(one)
    share = np.zeros(groups)
    np.maximum.at(share, code, 1.0 - own[:, 0])
    alone = np.flatnonzero(share < LEAST_SHARE)
    if not alone.size:
        return alone
    # A small group within a large one has very little weight at its rows, but not vice versa.
    member = (code[:, None] == alone).astype(np.float64)
    among_others = np.where(member > 0, 0.0, everything.fit(member))
    return np.asarray(alone[among_others.max(axis=0) < LEAST_SHARE])


def refuse_out_of_reach(
    X: Array, code: Integers, labels: NDArray[Any], recipe: Recipe, *, offsets: bool = False
) -> None:
    """Raise ValueError if the inputs of a group have no common support with those of other groups.

    Parameters
    ----------
    X, code, recipe
        As of `out_of_reach`.
    labels : ndarray of shape (groups,)
        Labels of the groups.
    offsets : bool, default=False
        Whether the bandwidth is that of the offsets of parallel curves, which is not an argument of the test.
    """
    alone = out_of_reach(X, code, recipe)
    if not alone.size:
        return
    # With two groups both are out of reach; with more, name another one to compare with.
    shown = np.unique(np.append(alone, np.setdiff1d(np.arange(len(labels)), alone)[:1]))[:NAMED]
    ranges = ", ".join(f"{_range(X[code == g])} in {named(labels[g])}" for g in shown)
    whose = " of the offsets of parallel curves" if offsets else ""
    wider = "" if offsets else ", or give bandwidth= a larger one, which extrapolates"
    raise ValueError(
        f"no rows of other groups are within reach of {' and '.join(named(labels[g]) for g in alone[:NAMED])} at the "
        f"bandwidth {recipe.bandwidth.tolist()}{whose}, so that there is nothing to compare; X goes {ranges}. Compare "
        f"groups over a common range, or leave {'it' if alone.size == 1 else 'these'} out{wider}"
    )


def _range(X: Array) -> str:
    low, high = X.min(axis=0), X.max(axis=0)
    return " and ".join(f"from {a:.6g} to {b:.6g}" for a, b in zip(low, high, strict=True))


NULLS = {"equal": "the curves of all groups are equal", "parallel": "the curves of all groups are parallel"}
REPEATED = (
    "give bandwidth=, or each row once without sample_weight, since rows that are equal, as those of a weight above 1 "
    "are, predict each other, and leave-one-out finds next to no bandwidth"
)
LEAST_ROWS_OF_GROUP = 3  # whose difference estimates the noise


@underflow_is_zero
@explain_calls
def compare_curves(
    X: ArrayLike,
    y: ArrayLike,
    groups: ArrayLike,
    *,
    null: str = "equal",
    sample_weight: ArrayLike | None = None,
    bandwidth: ArrayLike | None = None,
    kernel: str = "gaussian",
    null_distribution: str = "wild",
    n_resamples: int = 999,
    random_state: Any = 0,
    n_jobs: int | None = None,
) -> TestResult:
    r"""Test whether the regression curves of groups are equal, or parallel.

    .. math:: T = \frac{1}{\hat\sigma^2} \sum_i w_i \big(\hat m_{g(i)}(x_i) - \hat m_0(x_i)\big)^2

    with a local linear curve for each group, the curve under the null hypothesis, and one bandwidth for all of them.

    Parameters
    ----------
    X : array_like of shape (n,) or (n, d)
        Inputs: numbers, dates or durations, which become days since 1970-01-01 UTC and days.
    y : array_like of shape (n,)
        Output.
    groups : array_like of shape (n,)
        Labels of two groups or more, each with at least three rows.
    null : {"equal", "parallel"}, default="equal"
        The null hypothesis: one curve for all groups, or one curve and a constant for each.
    sample_weight : array_like of shape (n,), optional
        Frequencies: whole numbers.
    bandwidth : float or array_like of shape (d,), optional
        By default the leave-one-out bandwidth of a local linear fit to all rows, minus the means of their groups.
    kernel : str, default="gaussian"
        See `kernpool.kernel_names`.
    null_distribution : {"wild", "mammen", "gaussian", "normal"}, default="wild"
        Distribution of T under the null hypothesis. The first three add the leave-one-out residuals of the common
        curve to it, times random signs, Mammen's two points, or normal numbers; this allows heteroscedastic noise.
        ``"normal"`` puts normal noise of one variance through both fits, as R's ``sm.ancova`` does in theory.
    n_resamples : int, default=999
        Number of resamples; with 999 a p-value near .05 has a standard deviation of .007.
    random_state : int, RandomState, Generator or None, default=0
        Seed of the draws.
    n_jobs : int, optional
        Threads, as in `kernpool.pool`.

    Returns
    -------
    TestResult
        Its `bandwidth` is that of the curves.

    Raises
    ------
    ValueError
        If there is one group, a group has fewer than three rows or no rows of another within reach, y is constant or
        fitted without residuals, there are fewer than five rows, or an argument is out of its range.

    See Also
    --------
    specification_test : Whether a parametric model is enough.

    Notes
    -----
    The statistic is that of Young and Bowman [1]_ and of ``sm.ancova`` of R's sm [2]_. In one column the variance of
    the noise comes from differences between neighbours in each group [3]_; in several, from the residuals of the curves
    of groups. The offsets of parallel curves are found at a small bandwidth, 2 ranges over :math:`n^{1/d}`, where the
    bias of the curve hardly enters (Speckman's estimate, as in sm). Smoothing bias cancels in the differences if groups
    have similar inputs; with different ones use a smaller bandwidth.

    Curves can be compared only on common support, where rows of two groups are within reach. If other groups have less
    than a thousandth of the weight at each row of a group, and it has less than that at theirs, nothing would be
    compared and p would be 1 by rounding, so an error is raised: for example, for groups on [0, 1] and [2, 3] up to a
    Gaussian bandwidth of .3. With a larger bandwidth the test compares lines that are extrapolated over the gap.
    Offsets of parallel curves need rows of two groups within reach at their own small bandwidth, too.

    Time is 2 passes over pairs of rows for all resamples together, one column of values each.

    References
    ----------
    .. [1] S. G. Young and A. W. Bowman, "Non-parametric analysis of covariance", Biometrics 51 (1995), 920-931.
    .. [2] A. W. Bowman and A. Azzalini, "Applied Smoothing Techniques for Data Analysis", Oxford University Press
       (1997), chapter 6.
    .. [3] T. Gasser, L. Sroka and C. Jennen-Steinmetz, "Residual variance and residual pattern in nonlinear
       regression", Biometrika 73 (1986), 625-633.

    Examples
    --------
    >>> import numpy as np
    >>> from kernpool import compare_curves
    >>> random = np.random.default_rng(0)
    >>> x, groups = random.uniform(size=120), np.repeat(["a", "b"], 60)
    >>> y = np.sin(6 * x) + 0.3 * random.normal(size=120)
    >>> compare_curves(x, y, groups).p_value > 0.05, compare_curves(x, y + (groups == "b"), groups).p_value
    (True, 0.001)
    >>> compare_curves(x, y + (groups == "b"), groups, null="parallel").p_value > 0.05
    True
    """
    check_choice("null", null, tuple(NULLS))
    kinds = (*KINDS, "normal")
    how = WildBootstrap.of(null_distribution, n_resamples, random_state, name="null_distribution", kinds=kinds)
    sample, code, labels = read_groups(X, y, groups, sample_weight)
    means = np.bincount(code, sample.y) / np.bincount(code)
    h = bandwidth_for(sample, kernel, bandwidth, sample.y - means[code])
    curves = _Curves.of(sample.X, code, Recipe.of(kernel, h, degree=1, n_jobs=n_jobs), parallel=null == "parallel")
    if curves.offsets is not None:
        refuse_out_of_reach(sample.X, code, labels, curves.offsets.rough.recipe, offsets=True)
    value = sample.y[:, None]
    common, residual = curves.under_null(value)
    own = value - curves.grouped.fit(value)
    remedy = "give bandwidth= a larger one"
    if bandwidth is None and sample.repeats:
        remedy = REPEATED
    sample.refuse_exact(residual, "the curve of a group", own, remedy)
    refuse_out_of_reach(sample.X, code, labels, curves.common.recipe)
    middle, spread = common[:, 0], residual[:, 0]
    if how.kind == "normal":
        middle, spread, how = np.zeros(len(sample)), np.ones(len(sample)), replace(how, kind="gaussian")
    return how.test(curves.statistic, sample.y, middle, spread, null=NULLS[null], bandwidth=h)


def read_groups(
    X: ArrayLike, y: ArrayLike, groups: ArrayLike, sample_weight: ArrayLike | None
) -> tuple[TestSample, NDArray[np.int64], NDArray[Any]]:
    """Validate inputs, output and group labels of rows, and number the groups that have positive weight."""
    found, number = labels_and_codes(groups, len(read_inputs(X)))
    sample = read_sample(X, y, sample_weight, "compare_curves", code=number[:, None])
    code = sample.code[:, 0]
    counts = np.bincount(code, minlength=len(found))
    present = counts > 0
    if np.count_nonzero(present) < 2:
        raise ValueError(f"groups has the single label {named(found[present][0])}; give two groups or more to compare")
    few = present & (counts < LEAST_ROWS_OF_GROUP)
    if few.any():
        raise ValueError(
            f"group {named(found[few][0])} has {counts[few][0]} row(s), and each needs at least "
            f"{LEAST_ROWS_OF_GROUP} for a curve with noise; merge small groups or leave them out"
        )
    return sample, (np.cumsum(present) - 1)[code], found[present]


@dataclass(frozen=True, eq=False)
class _Curves:
    """Local linear fits at the rows, of each group and of all rows together, as linear maps of the outputs."""

    common: SmootherMatrix
    grouped: SmootherMatrix
    offsets: ParallelOffsets | None  # of parallel curves
    neighbours: tuple[Array, NDArray[np.intp], float] | None

    @classmethod
    def of(cls, X: Array, code: NDArray[np.int64], recipe: Recipe, *, parallel: bool) -> _Curves:
        return cls(
            SmootherMatrix.at_rows(recipe, X),
            SmootherMatrix.at_rows(recipe, X, groups_apart(code)),
            ParallelOffsets.of(X, code, recipe) if parallel else None,
            _pseudo_residuals(X[:, 0], code) if X.shape[1] == 1 else None,
        )

    def offset(self, value: Array) -> Array:
        """Return the offset of each row's group, of shape (n, columns); zeros in a test of equal curves.

        Zeros have shape (n, 1).
        """
        return np.zeros((len(value), 1)) if self.offsets is None else self.offsets(value)

    def under_null(self, value: Array) -> tuple[Array, Array]:
        """Return the fit at the rows under the null hypothesis, and its leave-one-out residuals."""
        offset = self.offset(value)
        rest = value - offset
        return offset + self.common.fit(rest), rest - self.common.predicted_from_others(rest)

    def statistic(self, value: Array) -> Array:
        """Return the test statistic T of `compare_curves` for each column of outputs."""
        offset = self.offset(value)
        own = self.grouped.fit(value)
        apart = np.sum((own - offset - self.common.fit(value - offset)) ** 2, axis=0)
        if self.neighbours is None:
            variance = np.mean((value - own) ** 2, axis=0)
        else:
            weight, row, freedom = self.neighbours
            pseudo = np.sum(weight[:, :, None] * value[row], axis=1)
            variance = np.sum(pseudo**2, axis=0) / freedom
        return np.asarray(np.divide(apart, variance, where=variance > 0, out=np.zeros_like(apart)))


def _pseudo_residuals(x: Array, code: NDArray[np.int64]) -> tuple[Array, NDArray[np.intp], float]:
    """Return pseudo-residuals of Gasser, Sroka and Jennen-Steinmetz, as weights of three neighbouring outputs.

    The three results are these weights, the indices of the rows, and the number of pseudo-residuals.

    The middle row is compared with the line through its neighbours in the same group; if all three have the same x,
    with their mean.
    """
    weights, rows = [], []
    for members in _members(code):
        order = members[np.argsort(x[members], kind="stable")]
        left, middle, right = order[:-2], order[1:-1], order[2:]
        width = x[right] - x[left]
        a = np.divide(x[right] - x[middle], width, where=width > 0, out=np.full(len(width), 0.5))
        unit = np.sqrt(a**2 + (1.0 - a) ** 2 + 1.0)
        weights.append(np.stack([a, np.full(len(a), -1.0), 1.0 - a], axis=1) / unit[:, None])
        rows.append(np.stack([left, middle, right], axis=1))
    weight = np.concatenate(weights)
    return weight, np.concatenate(rows), float(len(weight))


def _members(code: NDArray[np.int64]) -> Iterator[NDArray[np.intp]]:
    for group in range(int(code.max()) + 1):
        yield np.flatnonzero(code == group)


@dataclass(frozen=True, eq=False)
class GroupCurves:
    """Fitted curves of k groups at g points, with standard errors and offsets.

    Parameters
    ----------
    x : ndarray of shape (g,)
        Evaluation points, from the least input to the largest.
    labels : ndarray of shape (k,)
        Labels of the groups.
    curve, standard_error, df : ndarray of shape (k, g)
        Local linear fits, their standard errors and degrees of freedom; NaN beyond the inputs of the group.
    offset : ndarray of shape (k,)
        Estimated offset of each group's curve from the first one if `parallel`; otherwise zeros.
    parallel : bool
        Whether reference bands are about parallel curves, rather than equal ones.
    """

    x: Array
    labels: NDArray[Any]
    curve: Array
    standard_error: Array
    df: Array
    offset: Array
    parallel: bool = False

    def reference_band(self, level: float = 0.95) -> tuple[Array, Array]:
        """Return a reference band for each group, which is likely to contain its curve under the null hypothesis.

        Parameters
        ----------
        level : float, default=0.95
            Probability, at a point where the true curves are equal, that all curves lie within their bands.

        Returns
        -------
        lower, upper : ndarray of shape (k, g)
            One band for each group, identical for two groups under equality; NaN where the group's curve or all others
            are NaN.

        Raises
        ------
        ValueError
            If `level` is invalid.
        """
        level = as_level(level)
        from scipy.special import stdtrit

        known = np.isfinite(self.standard_error)
        groups = known.sum(axis=0)
        there = known & (groups > 1)
        with np.errstate(divide="ignore", invalid="ignore"):
            variance = np.where(known, self.standard_error**2, 0.0)
            center = np.sum(np.where(known, self.curve - self.offset[:, None], 0.0), axis=0) / groups
            # Variance of a curve minus the mean curve: the contribution of its own variance, and of the others'.
            others = variance / groups**2
            own = variance * (1.0 - 1.0 / groups) ** 2
            total = own + others.sum(axis=0) - others
            scaled = np.where(known, others**2 / self.df, 0.0)
            df = total**2 / (np.where(known, own**2 / self.df, 0.0) + scaled.sum(axis=0) - scaled)
            tail = 0.5 * (1.0 - level) / np.where(groups > 2, groups, 1)
            half = np.where(there, -stdtrit(df, tail) * np.sqrt(total), np.nan)
        middle = center + self.offset[:, None]
        return middle - half, middle + half


def group_curves(
    X: ArrayLike,
    y: ArrayLike,
    groups: ArrayLike,
    bandwidth: float,
    *,
    kernel: str = "gaussian",
    sample_weight: ArrayLike | None = None,
    parallel: bool = False,
    places: int = 201,
) -> GroupCurves:
    """Fit a local linear curve with standard errors to each group of rows.

    Parameters
    ----------
    X, y, groups, kernel, sample_weight
        As of `compare_curves`, with one column.
    bandwidth : float
        Bandwidth of all curves.
    parallel : bool, default=False
        Whether to estimate offsets, as `compare_curves` does for parallel curves.
    places : int, default=201
        Number of evaluation points.

    Returns
    -------
    GroupCurves
        Takes one leave-one-out pass over the rows of each group, and four over rows and points.

    Raises
    ------
    ValueError
        If there are several columns, or a group has fewer than five rows.
    """
    sample, code, labels = read_groups(X, y, groups, sample_weight)
    if sample.X.shape[1] != 1:
        raise ValueError(f"a curve is over one column, and X has {sample.X.shape[1]}; compare them one at a time")
    x = np.linspace(sample.X.min(), sample.X.max(), places)
    curve, error, df = (np.full((len(labels), places), np.nan) for _ in range(3))
    recipe = Recipe.of(kernel, np.atleast_1d(bandwidth), degree=1)
    for k, label in enumerate(labels):
        rows = np.flatnonzero(code == k)
        if len(rows) < FEWEST_ROWS:
            raise ValueError(
                f"group {named(label)} has {len(rows)} rows, and a curve with standard errors needs at least "
                f"{FEWEST_ROWS}; merge small groups or leave them out"
            )
        own = sample.X[rows]
        (inside,) = np.nonzero((x >= own.min()) & (x <= own.max()))
        smoother, at = Smoother(Keys.read(own, sample.y[rows]), recipe), EvaluationPoints(x[inside, None])
        found = estimate(smoother, at, "naive")
        (errors,) = errors_of(smoother, fit_training(smoother), at, [found])
        curve[k, inside], error[k, inside] = found.center[:, 0], errors.standard_error[:, 0]
        df[k, inside] = np.maximum(errors.df, 1.0)
    offset = np.zeros(len(labels))
    if parallel:
        offset = ParallelOffsets.of(sample.X, code, recipe).of_groups(sample.y[:, None])[:, 0]
    return GroupCurves(x, labels, curve, error, df, offset, parallel)
