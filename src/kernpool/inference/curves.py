"""Whether the curves of groups are equal, or parallel."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kernpool.data.groups import labels_and_codes, named
from kernpool.execution.messages import check_choice, explain_calls
from kernpool.execution.warnings import underflow_is_zero
from kernpool.inference import draws
from kernpool.inference.linear_map import LinearMap
from kernpool.inference.null_distribution import KINDS, resample
from kernpool.inference.offsets import Offsets
from kernpool.inference.overlap import groups_apart, refuse_out_of_reach
from kernpool.inference.results import TestResult
from kernpool.inference.sample import Sample, bandwidth_for, read_inputs, read_sample
from kernpool.pooling.recipe import Recipe

Array = NDArray[np.float64]

NULLS = {"equal": "the curves of all groups are equal", "parallel": "the curves of all groups are parallel"}
REPEATED = (
    "give bandwidth=, or each row once without sample_weight, since rows that are equal, as those of a weight above 1 "
    "are, predict each other, and leave-one-out finds next to no bandwidth"
)
LEAST_ROWS_OF_GROUP = 3  # of which a difference tells the noise


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
    r"""Test whether groups of rows have the same regression curve, or parallel ones.

    .. math:: T = \frac{1}{\hat\sigma^2} \sum_i w_i \big(\hat m_{g(i)}(x_i) - \hat m_0(x_i)\big)^2

    with a local linear curve for each group, one that the null hypothesis allows, and one bandwidth for all of them.

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
        By default that of a local linear fit of all rows, less the means of their groups, by leave-one-out.
    kernel : str, default="gaussian"
        See `kernpool.kernel_names`.
    null_distribution : {"wild", "mammen", "gaussian", "normal"}, default="wild"
        How T is distributed under the null hypothesis. The first three add the leave-one-out residuals of the common
        curve to it, times random signs, the two points of Mammen, or normal numbers; noise may differ from row to row
        then. ``"normal"`` puts normal noise of one variance through both fits, as R's ``sm.ancova`` does in theory.
    n_resamples : int, default=999
        How many; a p-value near .05 then has a standard deviation of .007.
    random_state : int, RandomState, Generator or None, default=0
        Seed of the draws.
    n_jobs : int, optional
        Threads, as in `kernpool.pool`.

    Returns
    -------
    TestResult
        With `bandwidth` of the curves.

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

    Curves differ from the common one only where rows of two groups are within reach. Where others have less than a
    thousandth of the weight at each row of a group, and it has less than that at theirs, nothing would be compared, p
    would be 1 by rounding, and the group is refused: groups on [0, 1] and [2, 3], for one, up to a Gaussian bandwidth
    of .3. With a larger bandwidth lines are extended over the gap, and p is about these. Offsets of parallel curves
    need rows of two groups within reach at their own small bandwidth, too.

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
    check_choice("null_distribution", null_distribution, kinds)
    draws.as_count("n_resamples", n_resamples)
    seed = draws.as_seed(random_state)
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
    statistic = curves.statistic(value)[0]
    middle, spread, kind = common[:, 0], residual[:, 0], null_distribution
    if kind == "normal":
        middle, spread, kind = np.zeros(len(sample)), np.ones(len(sample)), "gaussian"
    resampled = resample(curves.statistic, middle, spread, kind=kind, n_resamples=n_resamples, seed=seed)
    return TestResult.of(statistic, resampled, null=NULLS[null], bandwidth=h)


def read_groups(
    X: ArrayLike, y: ArrayLike, groups: ArrayLike, sample_weight: ArrayLike | None
) -> tuple[Sample, NDArray[np.int64], NDArray[Any]]:
    """Read rows, number their groups, and return the labels of these; groups without weight are none."""
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
    """Curves of groups and the common one, as maps of columns of values at the rows."""

    common: LinearMap
    grouped: LinearMap
    offsets: Offsets | None  # of parallel curves
    neighbours: tuple[Array, NDArray[np.intp], float] | None

    @classmethod
    def of(cls, X: Array, code: NDArray[np.int64], recipe: Recipe, *, parallel: bool) -> _Curves:
        return cls(
            LinearMap.at_rows(recipe, X),
            LinearMap.at_rows(recipe, X, groups_apart(code)),
            Offsets.of(X, code, recipe) if parallel else None,
            _neighbours(X[:, 0], code) if X.shape[1] == 1 else None,
        )

    def offset(self, value: Array) -> Array:
        """Return the offset of each row's group, of shape (n, columns), or zeros of shape (n, 1)."""
        return np.zeros((len(value), 1)) if self.offsets is None else self.offsets(value)

    def under_null(self, value: Array) -> tuple[Array, Array]:
        """Return the fit that the null hypothesis allows, and leave-one-out residuals from it."""
        offset = self.offset(value)
        rest = value - offset
        return offset + self.common.fit(rest), rest - self.common.predicted_from_others(rest)

    def statistic(self, value: Array) -> Array:
        """Return T of each column."""
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


def _neighbours(x: Array, code: NDArray[np.int64]) -> tuple[Array, NDArray[np.intp], float]:
    """Return the pseudo-residuals of Gasser, Sroka and Jennen-Steinmetz: weights and rows of three neighbours each.

    A row in the middle is compared with the line through its neighbours in the same group; where all three lie at one
    place, with their mean.
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
