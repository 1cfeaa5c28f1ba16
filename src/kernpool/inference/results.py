"""What a test returns: numbers that print well."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)  # arrays have no single truth
class TestResult:
    """The outcome of a test whose null distribution was resampled.

    Parameters
    ----------
    statistic : float
        Of the data. Large values speak against the null hypothesis.
    p_value : float
        ``(1 + #{resampled >= statistic}) / (1 + n_resamples)``: between ``1 / (1 + n_resamples)`` and 1, never 0.
    n_resamples : int
        How many samples were drawn under the null hypothesis.
    null : str
        The null hypothesis, in words.
    bandwidth : ndarray of shape (d,)
        With which the statistic weighs pairs of rows, or smooths, in the units in which columns are compared.
    resampled : ndarray of shape (n_resamples,)
        The statistic of each drawn sample.

    Notes
    -----
    With the data as one more draw, a p-value of at most alpha has under the null hypothesis at most probability alpha,
    whatever the number of draws, as far as the draws have the distribution of the data [1]_. More draws make it
    steadier: its standard deviation is about ``sqrt(p (1 - p) / n_resamples)``.

    References
    ----------
    .. [1] A. C. Davison and D. V. Hinkley, "Bootstrap Methods and their Application", Cambridge University Press
       (1997), section 4.2.

    Examples
    --------
    >>> result = TestResult.of(2.0, np.array([0.5, 2.5, 1.0]), null="the curves are equal", bandwidth=np.array([0.25]))
    >>> result.p_value
    0.5
    >>> print(result)
    null hypothesis  the curves are equal
    statistic        2
    p-value          0.5, from 3 resamples
    bandwidth        0.25
    """

    __test__: ClassVar[bool] = False  # pytest takes classes of this name for tests

    statistic: float
    p_value: float
    n_resamples: int
    null: str
    bandwidth: Array
    resampled: Array = field(repr=False)

    @classmethod
    def of(cls, statistic: Any, resampled: Array, *, null: str, bandwidth: Array) -> TestResult:
        """Compare a statistic with those of resamples; parameters as of the class."""
        draws = len(resampled)
        p_value = (1 + int(np.count_nonzero(resampled >= statistic))) / (1 + draws)
        return cls(float(statistic), p_value, draws, null, np.atleast_1d(bandwidth), resampled)

    def __str__(self) -> str:
        least = ", the least that so many can show" if self.p_value * (1 + self.n_resamples) < 1.5 else ""
        lines = [
            f"null hypothesis  {self.null}",
            f"statistic        {self.statistic:.4g}",
            f"p-value          {self.p_value:.3g}, from {self.n_resamples} resamples{least}",
            f"bandwidth        {', '.join(f'{h:.4g}' for h in self.bandwidth)}",
        ]
        return "\n".join(lines)
