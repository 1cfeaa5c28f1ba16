"""Gaussian sums by a nonuniform fast Fourier transform, with an error certificate for every query.

**Grid.** A nonuniform transform to frequencies, a multiplication by the transform of the Gaussian, and one back are
three steps on one fine grid (Potts, Steidl and Nieslony, 2004): each key is spread onto the cells around it, the grid
is convolved, each query interpolates. The Gaussian is a product over columns, and so are the corrections for
spreading and interpolating, so the convolution runs along one axis after the other, without a multidimensional
transform.

finufft does the first and the last step (Barnett, Magland and af Klinteberg, arXiv:1808.06736; its option
``spreadinterponly``). Its whole transforms are not used, for three reasons. Its threads add to the grid in an order
that changes from run to run, even with the same number of threads, and so do the last bits. A call cannot be
interrupted. Short pieces would avoid both, but would repeat the Fourier transform for every piece.

**Certificate.** The transform has an *absolute* error, relative to the total weight, so in the tails of the data it
returns noise. No query is answered without a certificate: with ``|N^ - N| <= e_N`` and ``|D^ - D| <= e_D < D^``

    |N^/D^ - N/D|  <=  (e_N + |N^/D^| e_D) / (D^ - e_D),

and this has to be within what the package promises for that query. All other queries are computed exactly.

Sources of the bounds e: aliases (images) and lost frequencies have a proven bound. Rounding of coordinates is bounded
by the mean distance in the window, which the entropy of the weights bounds by ``sqrt(2 log(W / D))``. The tolerance
of finufft is no bound, so its error is taken to be `SAFETY` times the tolerance times the root of the sum of squares
over the cells of a grid (keys at one point add up, scattered ones do not); the largest error measured was a tenth of
that. Every call also checks itself: some queries are computed exactly as well, and if they differ by more than a
quarter of that bound, the bound is widened.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernpool._arrays import Array, Flags, Index
from kernpool.algorithms.algorithm import Algorithm, Reduce, transform_seconds
from kernpool.algorithms.brute import brute
from kernpool.algorithms.tree import tree
from kernpool.core import PoolState, Problem
from kernpool.execution import Progress, cut, run_blocks
from kernpool.kernels import Gaussian

Field = NDArray[np.complex128]

FEWEST = 36  # cells of an axis: finufft needs twice the width of its spreading kernel, which is at most 16
HALO = (
    9  # cells on either side that a point touches, at most: half of the widest spreading kernel, and one for rounding
)
MARGIN = (
    3.0  # bandwidths around the keys in which queries are served; farther out no sum is large enough to be certified
)
TOO_MANY = 1 << 16  # cells of an axis: rows are sorted as numbers of 16 bits, which NumPy does in linear time
KEY_BLOCKS = 16  # each holds a part of the grid while it spreads, so there are few
PIECES = {1: 1 << 16, 2: 1 << 15, 3: 1 << 13}  # points per call of finufft, by columns: 10 to 40 ms at 15 digits
LINES = 1 << 18  # cells per call of the Fourier transform: 10 ms


@dataclass(frozen=True)
class Grid:
    """Periodic grid around the keys, on which weights and weighted values are convolved with the Gaussian."""

    low: Array  # cell x of column a lies at ``low[a] + x * step[a]``
    step: Array
    bandwidth: Array
    cells: tuple[int, ...]  # cells per column
    # bandwidths to the nearest periodic image, and frequency, in inverse bandwidths, at which the Gaussian is cut
    reach: float
    precision: float  # precision requested of finufft

    @classmethod
    def around(cls, low: Array, high: Array, bandwidth: Array, precision: float) -> Grid:
        """Build a grid around the bounding box of the keys that is fine and wide enough for the precision."""
        # Errors by periodic images and by lost frequencies are below the precision.
        from scipy.fft import next_fast_len

        # Far below the precision, because these errors may add up over all keys and those of finufft are scattered.
        reach = math.sqrt(2.0 * math.log(1e5 / precision))
        step = bandwidth * math.pi / (2.0 * reach)  # twice as fine as the frequencies up to `reach` need
        with np.errstate(all="ignore"):  # absurd bandwidths: too many cells, which the caller refuses
            wanted = np.fmin(((high - low) + (MARGIN + reach) * bandwidth) / step + 2 * HALO, TOO_MANY)
        cells = tuple(int(next_fast_len(math.ceil(c))) for c in wanted)
        return cls(low - MARGIN * bandwidth - HALO * step, step, bandwidth, cells, reach, precision)

    @property
    def size(self) -> int:
        """Total number of cells of the grid; 2**62 if an axis has too many."""
        return math.prod(self.cells) if max(self.cells) < TOO_MANY else 1 << 62

    @property
    def lost(self) -> float:
        """Proven bound on the error that periodic images and truncated frequencies cause in the weight of one pair."""
        # The last frequency kept may be one step short of `reach`; the sum over the rest is below the integral from
        # half a step earlier, because the Gaussian is convex there.
        half_step = math.pi / (MARGIN + self.reach)
        images = 4.0 * math.exp(-0.5 * self.reach**2)
        return len(self.cells) * (math.erfc((self.reach - half_step) / math.sqrt(2.0)) + images)

    @property
    def jitter(self) -> float:
        """Upper bound, in bandwidths, on the shift of a query relative to the keys by rounding of coordinates."""
        # Four roundings of coordinates up to the length of the grid, each of half a unit at most.
        widest = float(np.max(self.cells * self.step / self.bandwidth))
        return 2.0 * float(np.finfo(float).eps) * widest * math.sqrt(len(self.cells))

    def in_cells(self, points: Array) -> Array:
        """Return the grid coordinates of points, in units of cells, as an array of shape (d, n)."""
        return np.ascontiguousarray(((points - self.low) / self.step).T)

    def norm(self, points: Array, strength: Array) -> float:
        """Return the Euclidean norm, over the grid's cells, of the total `strength` of the points in each cell."""
        cells = np.zeros(len(points), dtype=np.intp)
        for a, count in enumerate(self.cells):
            cells *= count
            cells += ((points[:, a] - self.low[a]) / self.step[a]).astype(np.intp)
        return math.sqrt(float(np.sum(np.bincount(cells, weights=strength) ** 2)))

    def order(self, points: Array) -> Index:
        """Return the indices that sort points by grid row, so that consecutive points touch few rows."""
        return np.argsort(((points[:, 0] - self.low[0]) / self.step[0]).astype(np.uint16), kind="stable")


class Slab:
    """Rows of the grid around some points, with a finufft plan to spread from or interpolate to the points."""

    def __init__(self, grid: Grid, points: Array, kind: int, within: slice) -> None:
        cells = grid.in_cells(points)
        self.rows = rows_of(cells[0], within)
        shape = (self.rows.stop - self.rows.start, *grid.cells[1:])
        # finufft: angles, zero in the middle
        cells[0] -= self.rows.start
        angles = [(x - 0.5 * size) * (2.0 * math.pi / size) for x, size in zip(cells, shape, strict=True)]
        self.plan = plan(kind, shape, grid.precision)
        self.plan.setpts(*angles)


def plan(kind: int, shape: tuple[int, ...], precision: float) -> Any:
    """Build a single-threaded finufft plan in double precision that spreads (kind 1) or interpolates (kind 2)."""
    from finufft import Plan

    return Plan(kind, shape, eps=precision, isign=-1, nthreads=1, spreadinterponly=1, upsampfac=2.0)


def rows_of(x: Array, within: slice) -> slice:
    """Return the slice of grid rows around points whose first coordinates, in units of cells, are `x`."""
    # It lies `within` the grid, and has at least as many rows as finufft needs.
    first = int(x.min()) - HALO
    count = max(int(x.max()) + HALO + 1 - first, FEWEST)
    first = max(min(first, within.stop - count), within.start)
    return slice(first, first + count)


def spread(grid: Grid, key: Array, strength: Field, n_jobs: int = 1, progress: Progress | None = None) -> Field:
    """Spread keys onto the grid: add the complex numbers of each key (`strength`) to the cells around it."""
    # Strengths have the shape (pairs of sums, n), the result (pairs of sums, *cells).
    order, parts = grid.order(key), len(strength)
    blocks = cut(len(key), max(-(-len(key) // KEY_BLOCKS), PIECES[len(grid.cells)]))
    field = np.zeros((parts, *grid.cells), dtype=np.complex128)
    # Blocks share rows, and the order of a sum decides its last bits: a thread that finds the next block ready adds it.
    complete: dict[int, tuple[slice, Field]] = {}
    turn, adding = 0, Lock()

    def work(block: slice) -> Iterator[None]:
        nonlocal turn
        inside = order[block]
        ends = (key[inside[[0, -1]], 0] - grid.low[0]) / grid.step[0]
        rows = rows_of(np.floor(ends), slice(0, grid.cells[0]))
        total = np.zeros((parts, rows.stop - rows.start, *grid.cells[1:]), dtype=np.complex128)
        for piece in cut(len(inside), PIECES[len(grid.cells)]):
            index = inside[piece]
            slab = Slab(grid, key[index], 1, rows)
            place = slice(slab.rows.start - rows.start, slab.rows.stop - rows.start)
            for part in range(parts):
                total[part, place] += slab.plan.execute(np.ascontiguousarray(strength[part, index]))
                yield
        with adding:
            complete[block.start] = rows, total
            while turn in complete:
                rows, total = complete.pop(turn)
                field[:, rows] += total
                turn += blocks[0].stop

    run_blocks(work, blocks, n_jobs, progress)
    return field


def convolve(grid: Grid, field: Field, n_jobs: int = 1) -> None:
    """Convolve the sums on a grid with the Gaussian, in place, and correct for spreading and interpolation."""
    # The correction is a division by the squared transform of the spreading kernel.
    from scipy import fft

    for axis, size in enumerate(grid.cells):
        factor = transfer(grid, axis)[None, :, None]
        lines = field.reshape(math.prod(field.shape[: axis + 1]), size, -1)
        before, _, after = lines.shape
        along_first = before >= after

        def work(
            block: slice, lines: Field = lines, factor: Array = factor, along_first: bool = along_first
        ) -> Iterator[None]:
            part = lines[block] if along_first else lines[:, :, block]
            spectrum = fft.fft(part, axis=1)
            spectrum *= factor
            part[...] = fft.ifft(spectrum, axis=1, overwrite_x=True)
            yield

        per_line = size * (after if along_first else before)
        run_blocks(work, cut(max(before, after), max(1, LINES // per_line)), n_jobs, None)


def transfer(grid: Grid, axis: int) -> Array:
    """Return the Fourier multipliers along one axis that convolve with the Gaussian and correct for spreading."""
    # They are the transform of the Gaussian over the squared one of the spreading kernel.
    size, width = grid.cells[axis], grid.bandwidth[axis] / grid.step[axis]  # a bandwidth, in cells
    # The spreading kernel at every eighth of a cell; its own transform is a sum over them, exact to its precision. It
    # is asked for in as many dimensions as it is used in, because finufft widens it with the dimension.
    fine, d = 8, len(grid.cells)
    offset = np.arange(fine) / fine
    samples, one, middle = np.empty((fine, FEWEST)), plan(1, (FEWEST,) * d, grid.precision), (FEWEST // 2,) * (d - 1)
    for row, x in zip(samples, offset, strict=True):
        one.setpts(np.array([2.0 * math.pi * x / FEWEST]), *np.zeros((d - 1, 1)))
        row[:] = one.execute(np.ones(1, dtype=np.complex128)).real[(slice(None), *middle)]
    samples /= samples[0, FEWEST // 2] ** ((d - 1) / d)  # the other columns are at zero
    position = np.arange(FEWEST) - FEWEST // 2 - offset[:, None]
    omega = 2.0 * math.pi * np.abs(np.fft.fftfreq(size))
    kept = omega * width <= grid.reach
    spreading = np.cos(np.outer(omega[kept], position)) @ samples.ravel() / fine
    result = np.zeros(size)
    result[kept] = math.sqrt(2.0 * math.pi) * width * np.exp(-0.5 * (omega[kept] * width) ** 2) / spreading**2
    return result


def interpolate(grid: Grid, field: Field, query: Array) -> Field:
    """Interpolate sums from the grid at queries, as complex numbers that hold two real sums each."""
    # The shape is (pairs of sums, m).
    slab = Slab(grid, query, 2, slice(0, grid.cells[0]))
    return np.stack([slab.plan.execute(part[slab.rows]) for part in field])


SAMPLE = 64  # queries that are computed both ways
SAFETY = 3.0
ROUNDING = 1e-12  # of the range of the values: what the package allows for rounding
FINEST, COARSEST = 3e-15, 1e-3  # finufft has no kernel for less than the first
LARGEST_GRID = 1 << 26  # cells of 16 bytes
CELLS_PER_POINT = 128  # and no larger than this, which costs as much memory and time as a good tree would
WORTH_A_TREE = 512  # queries: a tree takes as long to plant as brute force for as many
OWN_SHARE = 0.1  # of the sum that the own key may have for it to be subtracted: more would cost a digit


@dataclass(frozen=True)
class TransformSums:
    """Key weights and weighted value columns to be summed, packed in pairs as complex numbers."""

    # Constant value columns are omitted; the others are scaled to equal size.

    strength: Field  # weight times 1 + i v_0, v_1 + i v_2,
    scale: Array  # divisor of each value column
    columns: Index  # the included value columns. The others are zero: values are centered.
    spread: Array  # largest minus smallest value

    @classmethod
    def of(cls, weight: Array, value: Array) -> TransformSums:
        """Build `TransformSums` from key weights and values, scaling and packing the value columns."""
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
        """Return sums of weights, and weighted sums of the non-constant value columns, from packed complex sums."""
        parts = np.ascontiguousarray(found.T).view(np.float64)
        return parts[:, 0], parts[:, 1 : len(self.columns) + 1] * self.scale


@dataclass(frozen=True)
class Transform:
    """Gaussian sums on a grid, to be interpolated at queries, and a bound on the error of the sums."""

    problem: Problem
    sums: TransformSums
    grid: Grid
    field: Field
    total: float
    error: float

    def at(self, rows: Index) -> tuple[Array, Array, Array]:
        """Return sums of weights and weighted values at queries `rows`, and the subtracted weights of own keys."""
        problem, sums = self.problem, self.sums
        denominator, numerator = sums.unpacked(interpolate(self.grid, self.field, problem.query[rows]))
        own = np.zeros(len(rows))
        if problem.self_index is not None:
            j = problem.self_index[rows]
            squared = np.sum(((problem.query[rows] - problem.key[j]) / problem.similarity.bandwidth) ** 2, axis=1)
            own = np.where(j >= 0, (problem.frequency[j] - problem.own_weight[rows]) * np.exp(-0.5 * squared), 0.0)
            denominator = denominator - own
            numerator = numerator - own[:, None] * problem.value[j][:, sums.columns]
        return denominator, numerator, own

    def certified(self, denominator: Array, numerator: Array, own: Array) -> Flags:
        """Return for each query whether error bounds of its sum of weights and pooled values meet the tolerance."""
        share = self.problem.tol + ROUNDING
        left = denominator - self.error
        safe = np.where((left > 0) & (own <= OWN_SHARE * denominator), left, np.nan)
        with np.errstate(divide="ignore", invalid="ignore"):
            jitter = self.grid.jitter * np.sqrt(2.0 * np.log(np.maximum(self.total / safe, 1.0)) + 1.0)
            fitted = np.abs(numerator) / denominator[:, None]
            bound = (self.error * self.sums.scale + fitted * self.error) / safe[:, None]
            bound += jitter[:, None] * self.sums.spread
            good: Flags = self.error / safe + jitter <= share
            return np.logical_and(good, np.all(bound <= share * self.sums.spread, axis=1), out=good)

    def checked(self, sample: Index, truth: PoolState) -> Transform:
        """Return the transform, with a larger error bound if its sums deviate too much from a sample of exact sums."""
        denominator, numerator, _ = self.at(sample)
        unit = np.exp(truth.shift)
        expected, weighted = unit * truth.denominator, unit[:, None] * truth.numerator[:, self.sums.columns]
        rounding = (self.grid.jitter + 4.0 * np.finfo(float).eps) * expected  # accounted for elsewhere
        off = [np.abs(denominator - expected) - rounding]
        for column, (size, spread) in enumerate(zip(self.sums.scale, self.sums.spread, strict=True)):
            off.append((np.abs(numerator[:, column] - weighted[:, column]) - rounding * spread) / size)
        return replace(self, error=max(self.error, 4.0 * float(np.max(off))))


def prepare(problem: Problem, exact: Reduce, n_jobs: int, progress: Progress | None) -> tuple[Transform, Index] | None:
    """Return the transform of a problem, and indices of the queries that its grid covers; None if not worthwhile."""
    kept = np.flatnonzero(problem.frequency)
    if not kept.size:
        return None
    key, weight, h = problem.key[kept], problem.frequency[kept], problem.similarity.bandwidth
    low, high, reach = key.min(axis=0), key.max(axis=0), MARGIN * h
    inside = np.flatnonzero(np.all((problem.query >= low - reach) & (problem.query <= high + reach), axis=1))
    coarse = Grid.around(low, high, h, COARSEST)
    largest = min(LARGEST_GRID, CELLS_PER_POINT * (len(key) + inside.size))
    if inside.size <= SAMPLE or coarse.size > largest:
        return None
    sums = TransformSums.of(weight, problem.value[kept])
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
    field = spread(grid, key, sums.strength, n_jobs, progress)
    convolve(grid, field, n_jobs)
    error = SAFETY * grid.precision * norm + grid.lost * float(np.abs(sums.strength).sum(axis=1).max())
    return Transform(problem, sums, grid, field, float(weight.sum()), error).checked(sample, truth), inside


def by_pairs(problem: Problem, n_jobs: int = 1, progress: Progress | None = None) -> PoolState:
    """Compute kernel sums exactly, by a tree or brute force, for queries without an error certificate."""
    # Such queries are isolated, and a tree is efficient for them.
    exact: Reduce = tree.reduce if len(problem.query) >= WORTH_A_TREE else brute.reduce
    return exact(problem, n_jobs, progress)


def reduce(problem: Problem, n_jobs: int = 1, progress: Progress | None = None, exact: Reduce = by_pairs) -> PoolState:
    """Compute Gaussian sums by Fourier transform, and by `exact` for queries without an error certificate.

    Those are queries off the grid or with too large an error bound; all of them if the transform is not worthwhile.
    """
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

    run_blocks(work, cut(len(order), PIECES[len(transform.grid.cells)]), n_jobs, report(n))
    left = np.flatnonzero(~done)
    if left.size:
        state = exact(problem.block(left), n_jobs, report(n + 2 * m - left.size))
        shift[left], denominator[left], numerator[left] = state.shift, state.denominator, state.numerator
    elif progress is not None:
        progress(m, m)
    return PoolState(shift, denominator, numerator)


NUFFT = Algorithm(
    name="nufft",
    summary="nonuniform Fourier transform, certified query by query",
    reduce=reduce,
    pullback=tree.pullback,
    seconds=transform_seconds,
    attn_mask=False,
    logit_bias=False,
    own_kernels=False,
    columns=(2, 3),
    form=Gaussian,
    needs=("finufft", "nufft"),
)
