"""Shared parts of hypothesis tests: validation of data, resampling under the null hypothesis, and the result.

A row of frequency 3 is read as three rows, because each of them gets a random draw of its own. Outputs under the
null hypothesis are its fit plus residuals times random multipliers (wild bootstrap).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from kernpool._arrays import AnyArray, Array, Integers
from kernpool.bandwidth import canonical_ratio
from kernpool.core import CARTESIAN, NO_CATEGORIES, Categories, Geometry, Keys
from kernpool.data import as_key_weight, as_real_array, with_days
from kernpool.execution import PrintedResult, as_count, check_choice, current_progress, lines_of, printed_table
from kernpool.inference.resampling.random_draws import LEAST_ROWS, multiplied, unit_counts
from kernpool.kernels import Kernel
from kernpool.pooling import Recipe
from kernpool.smoother import Smoother, nothing_left

SMALLEST, LARGEST = 1e-150, 1e150  # least spread and largest size of outputs whose squares are in range
INTERPOLATES = 1e-6  # own residuals below this fraction of leave-one-out residuals: the fit passes through every row
KINDS = ("wild", "mammen", "gaussian")


@dataclass(frozen=True, eq=False)
class TestSample:
    """Input columns and one output of a hypothesis test, with rows repeated by their frequency weights.

    `kind`, `n_resamples` and `seed` are the multipliers, number and seed of resamples.
    """

    X: Array  # shape (n, d); d may be 0
    y: Array
    code: Integers  # shape (n, k)
    categories: Categories = NO_CATEGORIES
    geometry: Geometry = CARTESIAN
    kind: str = "wild"
    n_resamples: int = 399
    seed: int = 0

    def __post_init__(self) -> None:
        check_choice("kind", self.kind, KINDS)
        as_count("n_resamples", self.n_resamples, hint=" such as 399")

    @classmethod
    def of(
        cls,
        X: AnyArray,
        y: AnyArray,
        weight: Array | None = None,
        code: Integers | None = None,
        categories: Categories = NO_CATEGORIES,
        *,
        what: str = "the test",
    ) -> TestSample:
        """Build a `TestSample`, repeating each row by its whole-number frequency weight."""
        code = np.zeros((len(X), 0), dtype=np.int64) if code is None else code
        units = unit_counts(weight, what)
        rows = slice(None) if units is None else np.repeat(np.arange(len(X)), units)
        sample = cls(X[rows].astype(np.float64), y[rows].astype(np.float64), code[rows], categories)
        low, high = sample.y.min(initial=np.inf), sample.y.max(initial=-np.inf)
        for refused, reason in (
            (not np.max(np.abs(y), initial=0.0) <= LARGEST,
             "y holds numbers beyond 1e+150 in magnitude, whose squares overflow; rescale it first"),
            (len(sample.y) < LEAST_ROWS,
             f"{what} needs at least {LEAST_ROWS} rows of positive weight, got {len(sample.y)}"),
            (low == high, f"y is {low:g} in every row, so that there is nothing to test; give one that varies"),
            (high - low < SMALLEST, f"y varies by {high - low:g}, whose square underflows; rescale it first"),
        ):  # fmt: skip
            if refused:
                raise ValueError(reason)
        return sample

    def __len__(self) -> int:
        return len(self.y)

    def take(self, numeric: list[int], categorical: list[int]) -> TestSample:
        """Return the sample with only the numeric and categorical columns that have the given indices."""
        categories = self.categories.take(categorical)
        return replace(self, X=self.X[:, numeric], code=self.code[:, categorical], categories=categories)

    @property
    def numeric(self) -> Array:
        """Numeric input columns; a column of zeros if there are none, so that only categories matter."""
        return self.X if self.X.shape[1] else np.zeros((len(self), 1))

    def smoother(self, recipe: Recipe, smoothing: Array) -> Smoother:
        """Return the smoother of the rows and their output."""
        code = self.code if self.categories.kernels else None
        return Smoother(Keys.read(self.numeric, self.y), recipe, code, self.categories, smoothing)

    def test_bandwidth(self, kernel: Kernel) -> Array:
        r"""Return the default bandwidths of Zheng's statistic: :math:`\hat\sigma_a n^{-1/(4 + d)}` if Gaussian."""
        # not those of the fit: where one is infinite the test would have no power
        X = self.numeric
        spread = self.geometry.evened(np.where(np.ptp(X, axis=0) > 0, X.std(axis=0, ddof=1), 0.0))
        rate = len(self) ** (-1.0 / (4.0 + self.X.shape[1]))
        return np.asarray(np.where(spread > 0, spread, 1.0) * (rate * canonical_ratio(kernel)))

    def test(self, statistic: Callable[[Array], Array], middle: Array, residual: Array, **how: Any) -> TestResult:
        """Compare a statistic of the output with those of outputs drawn under the null hypothesis (fit: `middle`).

        Further arguments are those of `TestResult`.
        """
        progress, parts = current_progress(), []
        observed = statistic(self.y[:, None])[0]
        for block, moved in multiplied(residual[:, None], self.kind, self.seed, self.n_resamples):
            parts.append(statistic(middle[:, None] + moved[:, :, 0]))
            if progress is not None:
                progress(block.stop, self.n_resamples)
        return TestResult(float(observed), np.concatenate(parts), **how)

    def refuse_exact(self, residual: Array, fit: str, own: Array | None = None, remedy: str = "smooth more") -> None:
        """Raise ValueError if residuals are only rounding error, or if the fit interpolates the rows."""
        if np.max(np.abs(residual)) <= nothing_left(self.y[:, None])[0]:
            raise ValueError(
                f"{fit} leaves no residuals beyond rounding, so that there is nothing to test: y is a function that it "
                f"fits exactly; or, if it interpolates, {remedy}"
            )
        if own is not None and np.max(np.abs(own)) <= INTERPOLATES * np.max(np.abs(residual)):
            raise ValueError(
                f"{fit} passes through every row, which leaves no residuals: its bandwidth is too small; {remedy}"
            )


def read_inputs(X: ArrayLike) -> AnyArray:
    """Validate the inputs of a test as numeric columns, of shape (n, d); dates and durations become days."""
    inputs = as_real_array("X", with_days("X", X)[0])
    if inputs.ndim not in (1, 2) or not inputs.size:
        raise ValueError(f"X must have shape (rows,) or (rows, columns), and not be empty; got {inputs.shape}")
    return inputs[:, None] if inputs.ndim == 1 else inputs


def read_output(y: ArrayLike, rows: int, what: str) -> Array:
    """Validate the output of a test: one number for each row, of shape (n,)."""
    output = as_real_array("y", y)
    if output.ndim == 2 and output.shape[1] > 1:
        raise ValueError(f"{what} is of one output, and y has {output.shape[1]}; test one column after the other")
    if output.ndim not in (1, 2) or len(output) != rows:
        raise ValueError(f"y must have shape ({rows},), one number for each row of X, got {output.shape}")
    return np.asarray(output.reshape(rows), dtype=np.float64)


def read_weight(sample_weight: ArrayLike | None, rows: int) -> Array | None:
    """Validate the frequency weights of the rows of a test; return None if none are given."""
    return None if sample_weight is None else as_key_weight(sample_weight, (rows,), "sample_weight", "row")


@dataclass(frozen=True, eq=False)  # arrays have no single truth
class TestResult(PrintedResult):
    """Result of a hypothesis test: statistic, p-value, and the resampled null distribution.

    Parameters
    ----------
    statistic : float
        Statistic of the data. Large values speak against the null hypothesis.
    resampled : ndarray of shape (n_resamples,)
        The statistic of each sample drawn under the null hypothesis.
    null : str
        The null hypothesis, in words.
    bandwidth : ndarray of shape (d,)
        Bandwidths of the statistic, in the units in which columns are compared.
    smoothing : tuple of float, default=()
        Smoothings of categorical columns in the statistic.

    Notes
    -----
    The data count as one more draw. So under the null hypothesis a p-value of at most alpha has probability at most
    alpha, for any number of draws, provided that draws have the distribution of the data [1]_. More draws reduce the
    Monte Carlo error: its standard deviation is about ``sqrt(p (1 - p) / n_resamples)``.

    References
    ----------
    .. [1] A. C. Davison and D. V. Hinkley, "Bootstrap Methods and their Application", Cambridge University Press
       (1997), section 4.2.

    Examples
    --------
    >>> result = TestResult(2.0, np.array([0.5, 2.5, 1.0]), null="the curves are equal", bandwidth=np.array([0.25]))
    >>> result.p_value
    0.5
    >>> print(result)
    null hypothesis  the curves are equal
    statistic        2
    p-value          0.5, from 3 resamples
    test bandwidth   0.25
    """

    __test__: ClassVar[bool] = False  # pytest takes classes of this name for tests

    statistic: float
    resampled: Array = field(repr=False)
    null: str
    bandwidth: Array
    smoothing: tuple[float, ...] = ()

    @property
    def n_resamples(self) -> int:
        """Number of samples drawn under the null hypothesis."""
        return len(self.resampled)

    @property
    def p_value(self) -> float:
        """Fraction ``(1 + #{resampled >= statistic}) / (1 + n_resamples)``, which is never 0."""
        return (1 + int(np.count_nonzero(self.resampled >= self.statistic))) / (1 + self.n_resamples)

    def __str__(self) -> str:
        least = ", the least that so many can show" if self.p_value * (1 + self.n_resamples) < 1.5 else ""
        facts = {
            "null hypothesis": self.null,
            "statistic": f"{self.statistic:.4g}",
            "p-value": f"{self.p_value:.3g}, from {self.n_resamples} resamples{least}",
            "test bandwidth": ", ".join(f"{h:.4g}" for h in self.bandwidth),
            "test smoothing": ", ".join(f"{s:.4g}" for s in self.smoothing),
        }
        return "\n".join(lines_of({name: fact for name, fact in facts.items() if fact}))


@dataclass(frozen=True, eq=False)
class SignificanceTable(PrintedResult):
    """Significance tests of all columns of a fit, each given the others.

    Parameters
    ----------
    target : str
        Name of the output.
    results : dict of TestResult
        By name of the column, or by its position.
    """

    target: str
    results: dict[str | int, TestResult]

    def __str__(self) -> str:
        rows = [[str(name), f"{test.statistic:.4g}", f"{test.p_value:.3g}"] for name, test in self.results.items()]
        draws = min(test.n_resamples for test in self.results.values())
        facts = {
            "null hypothesis": f"{self.target} does not depend on the column, given the others",
            "p-values": f"of each column alone, from {draws} resamples: at least {1 / (1 + draws):.3g}",
        }
        return printed_table(facts, ["column", "statistic", "p-value"], rows)
