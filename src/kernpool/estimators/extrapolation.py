"""Extrapolation: detection of queries far beyond the training rows, and a warning.

A local plane at the edge of the training rows has the slope of a few rows, extended as far as the query is away.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import cast

import numpy as np

from kernpool._arrays import AnyArray, Array
from kernpool.core import weighted_median
from kernpool.data import Chunk, Encoding
from kernpool.data.chunks.base import joined_ranges, range_of
from kernpool.data.dates import in_words
from kernpool.data.encoding import Cuts
from kernpool.execution import warn_of_queries
from kernpool.inference import ExtrapolationWarning
from kernpool.kernels import Kernel, get_kernel
from kernpool.pooling import Source
from kernpool.smoother import Smoother

BANDWIDTHS, STEPS = 2.0, 3.0
ROUNDING = 1e-9  # of the largest number of a column: a constant of .1 + .2 is .3
OF_RANGE = 0.5  # margin of local planes, at most, however large the bandwidth
FALSE_ALARMS = 0.003  # of new rows like the training rows, in theory
FEWEST_TAIL, MOST_TAIL, TAIL = 3, 12, 8  # rows of a tail: an eighth, from 3 to 12
HEAVIEST, LONGEST = 0.5, 6.0  # tail index, and how many times the distance from the median
USUAL_ROWS = 1000  # at most, whose windows say how wide these are


def reach_of_range(
    low: Array, high: Array, bandwidth: Array, planes: bool = False, step: Array | float = 0.0
) -> tuple[Array, Array]:
    r"""Compute extrapolation limits of each column: its range, extended by (usually) two bandwidths on both sides.

    Parameters
    ----------
    low, high : ndarray of shape (d,)
        Range of the training rows.
    bandwidth : ndarray of shape (d,)
        Of the fit, infinite where all rows weigh alike.
    planes : bool, default=False
        Whether local planes are fitted, which go on beyond the rows: then half of the range is the most.
    step : ndarray of shape (d,), default=0.0
        From a value to the next one: three of them are no extrapolation either, so that series may be continued.

    Examples
    --------
    >>> reach_of_range(np.array([0.0]), np.array([5.0]), np.array([0.25]))
    (array([-0.5]), array([5.5]))
    >>> reach_of_range(np.array([0.0]), np.array([5.0]), np.array([np.inf]), planes=True)
    (array([-2.5]), array([7.5]))
    """
    with np.errstate(over="ignore"):
        margin = np.maximum(BANDWIDTHS * np.asarray(bandwidth, dtype=np.float64), STEPS * step)
        if planes:
            margin = np.minimum(margin, OF_RANGE * high - OF_RANGE * low)
        margin = margin + ROUNDING * np.maximum(np.abs(low), np.abs(high))
        return low - margin, high + margin


def reach_of_rows(key: AnyArray, weight: Array, bandwidth: Array, planes: bool = False) -> tuple[Array, Array]:
    r"""Compute extrapolation limits of each column from rows in memory: wider than `reach_of_range` for long tails.

    .. math:: m + (x_{(n-1)} - m) \, \min\{6, (4 d / (.003\, n))^\gamma\},
        \qquad \gamma = \min\{\tfrac12, \tfrac1k \sum_{i=1}^k \log \frac{x_{(n-i)} - m}{x_{(n-1-k)} - m}\}

    is the upper limit of a column then, if it is above that of `reach_of_range`, with the median m and k = n / 8, from
    3 to 12; the lower limit likewise. It is Weissman's estimate of a quantile by Hill's index of the tail. The largest
    value itself is not used, so that a single outlier does not move the limit. For planes it is at most half of the
    range, without the two ends, beyond the second largest value. The step of a column is the median of the differences
    of its neighbouring distinct values.

    Parameters
    ----------
    key, weight : ndarray of shape (n, d) and (n,)
        Training rows, and their frequencies, which are positive.
    bandwidth, planes
        As of `reach_of_range`.

    Notes
    -----
    O(n d log n) time, once per fit. New rows that are drawn as the training rows were are beyond their range in 2 of
    n + 1 cases for each column, so that two bandwidths alone would warn of 2 to 7 percent of them for 50 rows.

    Examples
    --------
    >>> reach_of_rows(np.linspace(0.0, 5.0, 101)[:, None], np.ones(101), np.array([0.1]))[1].round(2)
    array([6.19])
    """
    times = np.ceil(np.minimum(weight, MOST_TAIL + 2)).astype(np.intp)  # no more at either end have a say
    rows = np.sort(np.repeat(np.asarray(key, dtype=np.float64), times, axis=0), axis=0)
    steps = np.diff(rows, axis=0).T
    step = np.array([np.median(one[one > 0]) if np.any(one > 0) else 0.0 for one in steps])
    near = reach_of_range(rows[0], rows[-1], bandwidth, planes, step)
    n, d = max(round(weight.sum()), len(key)), key.shape[1]
    if n < FEWEST_TAIL:
        return near
    k = min(MOST_TAIL, max(FEWEST_TAIL, n // TAIL), max(n // 2 - 2, 1))
    middle, power = [weighted_median(x, weight) for x in key.T], max(np.log(4.0 * d / (FALSE_ALARMS * n)), 0.0)
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        below, above = middle - rows[1 : k + 2], rows[-2 : -k - 3 : -1] - middle
        low, high = middle - _tail(below, power), middle + _tail(above, power)
        if planes:
            most = OF_RANGE * rows[-2] - OF_RANGE * rows[1]
            low, high = np.maximum(low, rows[1] - most), np.minimum(high, rows[-2] + most)
        return np.minimum(near[0], low), np.maximum(near[1], high)


def _tail(distance: Array, power: float) -> Array:
    """Estimate how far the tail of each column reaches from its median, by Hill's estimate of the tail index.

    `distance`, of shape (k + 1, d), has the distances of the outer values from the median, in descending order.
    """
    index = np.log(distance[:-1] / distance[-1]).mean(axis=0)
    index = np.where(index < HEAVIEST, index, HEAVIEST)  # also of ties with the median, where it is infinite or NaN
    return np.asarray(distance[0] * np.minimum(np.exp(power * index), LONGEST))


class Ranges:
    """Question to stored pairs: the range of each key column over rows of positive weight."""

    def of(self, chunk: Chunk) -> Array:
        """Return the minimum and maximum of each column of a chunk of rows, of shape (2, columns)."""
        return range_of(chunk.counted.key)

    def joined(self, one: Array, other: Array) -> Array:
        """Merge the ranges of two disjoint sets of rows."""
        return joined_ranges([one, other])


@dataclass(frozen=True, eq=False)
class Extent:
    """Where the training rows of a fit are: the limits beyond which queries are extrapolation, found once.

    Parameters
    ----------
    encoding : Encoding
        Columns of the fit.
    kernel : str or Kernel
        Kernel of the fit.
    bandwidth : ndarray of shape (d,)
        Bandwidths of the fit.
    planes : bool
        Whether planes are fitted.
    priors : bool
        Whether empty windows answer the priors of classes.
    key, weight : ndarray or None
        Training rows before any transformation, and their frequencies.
    source : Source or None
        Rows that are not in memory.
    key_range : ndarray of shape (2, d) or None
        Range of the latter, if the fit has found it.
    ratios : Smoother or None
        The fit, where bandwidths are ratios of columns, and windows as wide as the rows are apart.
    """

    encoding: Encoding
    kernel: str | Kernel
    bandwidth: Array
    planes: bool
    priors: bool
    key: AnyArray | None = None
    weight: Array | None = None
    source: Source | None = None
    key_range: Array | None = None
    ratios: Smoother | None = None

    @cached_property
    def warns(self) -> bool:
        """Whether there is extrapolation at all.

        Windows of compact kernels are empty far away, which has a warning of its own, but for classifiers that answer
        their priors, and those to the nearest rows; and a constant kernel has no windows, so that a mean is the same
        everywhere, and a plane is not.
        """
        kernel = get_kernel(self.kernel)
        if kernel.name == "constant":
            return self.planes
        if not kernel.is_compact or self.priors or self.ratios is not None:
            return True
        return self.planes and bool(np.isinf(self.bandwidth).any())

    @cached_property
    def reach(self) -> tuple[tuple[Array, Array], Array, Array, Cuts]:
        """Limits of unrolled columns, the lower and upper end of their range, and where circles are cut open."""
        is_constant = get_kernel(self.kernel).name == "constant"
        bandwidth = np.full_like(self.bandwidth, np.inf) if is_constant else self.bandwidth
        if self.key is None:
            known = self.key_range
            low, high = cast(Source, self.source).ask(Ranges()) if known is None else known
            return reach_of_range(low, high, bandwidth, self.planes), low, high, ()
        encoding = self.encoding
        weight = np.ones(len(self.key)) if self.weight is None else self.weight
        counted, weight = self.key[weight > 0], weight[weight > 0]
        cuts = encoding.cuts(counted)
        unrolled = encoding.unrolled(counted, cuts)
        if self.ratios is not None:
            some = np.flatnonzero(self.ratios.weight > 0)
            some = some[:: -(-len(some) // USUAL_ROWS)]
            usual = self.ratios.points(self.ratios.keys.rows.array[some]).widening
            assert usual is not None
            bandwidth = bandwidth * weighted_median(usual, self.ratios.weight[some])
        reach = reach_of_rows(unrolled, weight, encoding.in_units(bandwidth, counted), self.planes)
        return reach, *range_of(unrolled), cuts

    def warn(self, query: AnyArray) -> None:
        """Issue one warning if queries, before any transformation, are far beyond the training rows."""
        if not self.warns:
            return
        (lower, upper), low, high, cuts = self.reach
        rows = self.encoding.unrolled(query, cuts)
        if np.all(rows.min(axis=0) >= lower) and np.all(rows.max(axis=0) <= upper):
            return  # as nearly always
        beyond = (rows < lower) | (rows > upper)
        far = np.any(beyond, axis=1)
        first = int(np.argmax(far))
        column = int(np.argmax(beyond[first]))
        names, kind = self.encoding.numeric_labels(), self.encoding.numeric_kinds()[column]
        for digits in range(6, 18):  # enough to tell the query from the ends
            value, least, most = (in_words(x[column], kind, digits) for x in (query[first], low, high))
            if value not in (least, most):
                break
        warn_of_queries(
            far,
            f"are far beyond the range of the training rows: column "
            f"{column if names is None else repr(names[column])} is {value}, the training rows have {least} to {most}. "
            "The answer is extrapolation, and intervals promise nothing there; leave such queries out, or fit rows "
            "that reach as far",
            ExtrapolationWarning,
            before="",
        )
