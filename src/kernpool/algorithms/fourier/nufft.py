"""Gaussian sums over thousands of keys by a nonuniform Fourier transform, with a certificate for every query.

The transform has an *absolute* error, a share of all the weight there is, so that in the tails of the data it returns
noise that looks like an answer. Here no query is answered without a certificate: with ``|N^ - N| <= e_N`` and
``|D^ - D| <= e_D < D^``

    |N^/D^ - N/D|  <=  (e_N + |N^/D^| e_D) / (D^ - e_D),

and this has to be within what the package promises for that query. All others are computed exactly.

Where the bounds e come from: images and lost frequencies have a proven bound. Rounding of coordinates is bounded by
the mean distance in the window, which the entropy of the weights bounds by ``sqrt(2 log(W / D))``. The tolerance of
finufft is no bound, so its error is taken to be `SAFETY` times the tolerance times the root of the sum of squares over
the cells of a grid (keys on one spot add up, scattered ones do not); the largest seen in measurements was a tenth of
that. And every call checks itself: some queries are computed exactly as well, and if they
are farther off than a quarter of that bound, the bound is widened.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from kernpool.algorithms.algorithm import Algorithm, Reduce
from kernpool.algorithms.brute import brute
from kernpool.algorithms.estimate import Look
from kernpool.algorithms.fourier import gridding
from kernpool.algorithms.fourier.gridding import Array, Field, Grid
from kernpool.algorithms.tree import tree
from kernpool.core.problem import Problem
from kernpool.core.state import PoolState
from kernpool.execution.progress import Progress
from kernpool.execution.threads import cut, run_blocks
from kernpool.kernels.forms import Gaussian

SAMPLE = 64  # queries that are computed both ways
SAFETY = 3.0
ROUNDING = 1e-12  # of the range of the values: what the package allows for rounding
FINEST, COARSEST = 3e-15, 1e-3  # finufft has no kernel for less than the first
LARGEST_GRID = 1 << 26  # cells of 16 bytes
CELLS_PER_POINT = 128  # and no larger than this, which costs as much memory and time as a good tree would
WORTH_A_TREE = 512  # queries: a tree takes as long to plant as brute force for as many
OWN_SHARE = 0.1  # of the sum that the own key may have for it to be subtracted: more would cost a digit


@dataclass(frozen=True)
class Sums:
    """What is summed: 1 and each value column that is not constant, scaled to equal size, two in a complex number.

    Parameters
    ----------
    strength : ndarray of shape (ceil((columns + 1) / 2), n), complex
        Weight times 1 + i v_0, v_1 + i v_2, ...
    scale : ndarray of shape (columns,)
        What each value column was divided by.
    columns : ndarray of int
        Which value columns take part. The others are zero: values are centered.
    spread : ndarray of shape (columns,)
        Largest minus smallest value.
    """

    strength: Field
    scale: Array
    columns: NDArray[np.intp]
    spread: Array

    @classmethod
    def of(cls, weight: Array, value: Array) -> Sums:
        """Scale and pack."""
        spread = np.ptp(value, axis=0)
        columns = np.flatnonzero(spread > 0)
        largest = np.abs(value[:, columns]).max(axis=0)
        relative = value[:, columns] / largest
        size = np.sqrt(np.sum((weight[:, None] * relative) ** 2, axis=0) / np.sum(weight**2))
        size = np.maximum(size, 1e-6)  # all is in one outlier
        parts = np.zeros((len(weight), 2 * (len(columns) // 2 + 1)))
        parts[:, 0] = weight
        parts[:, 1 : len(columns) + 1] = weight[:, None] * (relative / size)
        strength = np.ascontiguousarray(parts.view(np.complex128).T)
        return cls(strength, largest * size, columns, spread[columns])

    def unpacked(self, found: Field) -> tuple[Array, Array]:
        """Return sums of weights and of weighted values, the columns that take part."""
        parts = np.ascontiguousarray(found.T).view(np.float64)
        return parts[:, 0], parts[:, 1 : len(self.columns) + 1] * self.scale


@dataclass(frozen=True)
class Transform:
    """The sums of all queries inside of the grid, and how far off they may be."""

    problem: Problem
    sums: Sums
    grid: Grid
    field: Field
    total: float
    error: float

    def at(self, rows: NDArray[np.intp]) -> tuple[Array, Array, Array]:
        """Return denominators, numerators and how much of the denominator was taken out, for some queries."""
        problem, sums = self.problem, self.sums
        denominator, numerator = sums.unpacked(gridding.interpolate(self.grid, self.field, problem.query[rows]))
        own = np.zeros(len(rows))
        if problem.self_index is not None:
            j = problem.self_index[rows]
            weight = np.ones(len(problem.key)) if problem.key_weight is None else problem.key_weight
            squared = np.sum(((problem.query[rows] - problem.key[j]) / problem.similarity.bandwidth) ** 2, axis=1)
            own = np.where(j >= 0, (weight[j] - problem.own_weight[rows]) * np.exp(-0.5 * squared), 0.0)
            denominator = denominator - own
            numerator = numerator - own[:, None] * problem.value[j][:, sums.columns]
        return denominator, numerator, own

    def certified(self, denominator: Array, numerator: Array, own: Array) -> NDArray[np.bool_]:
        """Whether denominators are right to the promised share, and pooled values to that share of their range."""
        share = self.problem.tol + ROUNDING
        left = denominator - self.error
        safe = np.where((left > 0) & (own <= OWN_SHARE * denominator), left, np.nan)
        with np.errstate(invalid="ignore"):
            jitter = self.grid.jitter * np.sqrt(2.0 * np.log(np.maximum(self.total / safe, 1.0)) + 1.0)
            fitted = np.abs(numerator) / denominator[:, None]
            bound = (self.error * self.sums.scale + fitted * self.error) / safe[:, None]
            bound += jitter[:, None] * self.sums.spread
            good: NDArray[np.bool_] = self.error / safe + jitter <= share
            return np.logical_and(good, np.all(bound <= share * self.sums.spread, axis=1), out=good)

    def checked(self, sample: NDArray[np.intp], truth: PoolState) -> Transform:
        """Widen the error if queries that were computed exactly as well are farther off than expected."""
        denominator, numerator, _ = self.at(sample)
        unit = np.exp(truth.shift)
        expected, weighted = unit * truth.denominator, unit[:, None] * truth.numerator[:, self.sums.columns]
        rounding = (self.grid.jitter + 4.0 * np.finfo(float).eps) * expected  # accounted for elsewhere
        off = [np.abs(denominator - expected) - rounding]
        for column, (size, spread) in enumerate(zip(self.sums.scale, self.sums.spread, strict=True)):
            off.append((np.abs(numerator[:, column] - weighted[:, column]) - rounding * spread) / size)
        return replace(self, error=max(self.error, 4.0 * float(np.max(off))))


def prepare(
    problem: Problem, exact: Reduce, n_jobs: int, progress: Progress | None
) -> tuple[Transform, NDArray[np.intp]] | None:
    """Transform a problem, and say which queries lie inside of the grid; None if few of them would be certified."""
    weight = np.ones(len(problem.key)) if problem.key_weight is None else problem.key_weight
    kept = np.flatnonzero(weight)
    if not kept.size:
        return None
    key, weight, h = problem.key[kept], weight[kept], problem.similarity.bandwidth
    low, high, reach = key.min(axis=0), key.max(axis=0), gridding.MARGIN * h
    inside = np.flatnonzero(np.all((problem.query >= low - reach) & (problem.query <= high + reach), axis=1))
    coarse = Grid.around(low, high, h, COARSEST)
    largest = min(LARGEST_GRID, CELLS_PER_POINT * (len(key) + inside.size))
    if inside.size <= SAMPLE or coarse.size > largest:
        return None
    sums = Sums.of(weight, problem.value[kept])
    if not np.all(np.isfinite(sums.spread)):
        return None
    # What precision do the sparsest queries need? A digit costs a tenth of the time, a query that fails costs n pairs.
    # If even the finest does not help half of them, the transform is not worth its time.
    sample = inside[np.linspace(0, inside.size - 1, SAMPLE).astype(np.intp)]
    truth = exact(problem.block(sample), n_jobs)
    norm = max(coarse.norm(key, np.abs(part)) for part in sums.strength)
    needed = (problem.tol + ROUNDING) * np.exp(truth.log_denominator) / (8.0 * SAFETY * norm)
    if np.median(needed) < FINEST:
        return None
    grid = Grid.around(low, high, h, float(np.clip(needed.min(), FINEST, COARSEST)))
    if grid.size * len(sums.strength) > largest:
        return None
    field = gridding.spread(grid, key, sums.strength, n_jobs, progress)
    gridding.convolve(grid, field, n_jobs)
    error = SAFETY * grid.precision * norm + grid.lost * float(np.abs(sums.strength).sum(axis=1).max())
    return Transform(problem, sums, grid, field, float(weight.sum()), error).checked(sample, truth), inside


def by_pairs(problem: Problem, n_jobs: int = 1, progress: Progress | None = None) -> PoolState:
    """Sum over all keys for queries without a certificate: those that lie apart, which a tree is made for."""
    exact: Reduce = tree.reduce if len(problem.query) >= WORTH_A_TREE else brute.reduce
    return exact(problem, n_jobs, progress)


def reduce(problem: Problem, n_jobs: int = 1, progress: Progress | None = None, exact: Reduce = by_pairs) -> PoolState:
    """Sum over all keys; `exact` does the queries without a certificate."""
    m, n = problem.shape

    def report(before: int) -> Progress | None:  # n keys, m queries, m answers, brought to the m that callers count in
        return None if progress is None else lambda done, _: progress((before + done) * m // (n + 2 * m), m)

    prepared = prepare(problem, exact, n_jobs, report(0))
    if prepared is None:
        return exact(problem, n_jobs, progress)
    transform, inside = prepared
    shift, denominator = np.zeros(m), np.zeros(m)
    numerator, done = np.zeros((m, problem.value.shape[1])), np.zeros(m, dtype=bool)
    order = inside[transform.grid.order(problem.query[inside])]

    def work(block: slice) -> Iterator[None]:
        rows = order[block]
        below, above, own = transform.at(rows)
        good = transform.certified(below, above, own)
        rows = rows[good]
        denominator[rows], done[rows] = below[good], True
        numerator[np.ix_(rows, transform.sums.columns)] = above[good]
        yield

    run_blocks(work, cut(len(order), gridding.PIECES[len(transform.grid.cells)]), n_jobs, report(n))
    left = np.flatnonzero(~done)
    if left.size:
        state = exact(problem.block(left), n_jobs, report(n + 2 * m - left.size))
        shift[left], denominator[left], numerator[left] = state.shift, state.denominator, state.numerator
    elif progress is not None:
        progress(m, m)
    return PoolState(shift, denominator, numerator)


PER_POINT = {2: 0.6e-6, 3: 2.5e-6}  # seconds per key and per query, by number of columns
DENSE_WINDOW = 100.0  # sum of weights from which on a transform can be certified


def seconds(problem: Problem, look: Look, known: Mapping[str, float]) -> float:
    """Estimate the time of a transform that can be certified; parameters as of `Algorithm.seconds`."""
    transform = 10e-3 + PER_POINT[problem.key.shape[1]] * sum(problem.shape)
    worthwhile = transform + look.seconds <= 0.8 * known["brute"] and look.weight >= DENSE_WINDOW
    return transform if worthwhile else float("inf")


NUFFT = Algorithm(
    name="nufft",
    summary="nonuniform Fourier transform, certified query by query",
    reduce=reduce,
    pullback=tree.pullback,
    seconds=seconds,
    attn_mask=False,
    logit_bias=False,
    own_kernels=False,
    columns=(2, 3),
    form=Gaussian,
    needs=("finufft", "nufft"),
)
