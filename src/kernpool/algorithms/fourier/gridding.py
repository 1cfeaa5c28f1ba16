r"""Gaussian sums by way of a regular grid: spread, convolve, interpolate.

A nonuniform fast Fourier transform to frequencies, a multiplication by the transform of the Gaussian, and one back are
three steps on one fine grid (Potts, Steidl and Nieslony, 2004): each key is spread onto the cells around it, the grid
is convolved, each query interpolates. The Gaussian is a product over columns, and so are the corrections for spreading
and interpolating, so the convolution runs along one axis after the other and no multidimensional transform is needed.

finufft does the first and the last step (Barnett, Magland and af Klinteberg, arXiv:1808.06736; its option
``spreadinterponly``). Its whole transforms are not used for three reasons. Its threads add to the grid in an order that
changes from run to run, even with the same number of threads, and so do the last bits. A call of it cannot be
interrupted. And cut into short pieces, which mends both, it would repeat the Fourier transform for every piece.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernpool.execution.progress import Progress
from kernpool.execution.threads import cut, run_blocks

Array = NDArray[np.float64]
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
    """A periodic grid around the keys, and how fine it is.

    Parameters
    ----------
    low, step, bandwidth : ndarray of shape (d,)
        Cell x of column a lies at ``low[a] + x * step[a]``.
    cells : tuple of int
        Cells per column.
    reach : float
        Bandwidths to the nearest periodic image, and frequency, in inverse bandwidths, at which the Gaussian is cut.
    precision : float
        What is asked of finufft.
    """

    low: Array
    step: Array
    bandwidth: Array
    cells: tuple[int, ...]
    reach: float
    precision: float

    @classmethod
    def around(cls, low: Array, high: Array, bandwidth: Array, precision: float) -> Grid:
        """Lay a grid around the box of the keys, so that images and lost frequencies are below the precision."""
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
        """Number of cells, for all columns together."""
        return math.prod(self.cells) if max(self.cells) < TOO_MANY else 1 << 62

    @property
    def lost(self) -> float:
        """Bound on what images and lost frequencies do to the weight of one pair; a theorem, not a measurement."""
        # The last frequency kept may be one step short of `reach`; the sum over the rest is below the integral from
        # half a step earlier, because the Gaussian is convex there.
        half_step = math.pi / (MARGIN + self.reach)
        images = 4.0 * math.exp(-0.5 * self.reach**2)
        return len(self.cells) * (math.erfc((self.reach - half_step) / math.sqrt(2.0)) + images)

    @property
    def jitter(self) -> float:
        """Bandwidths by which rounding of coordinates may move a query against the keys.

        Four roundings of coordinates up to the length of the grid, each of half a unit at most.
        """
        widest = float(np.max(self.cells * self.step / self.bandwidth))
        return 2.0 * float(np.finfo(float).eps) * widest * math.sqrt(len(self.cells))

    def in_cells(self, points: Array) -> Array:
        """Coordinates of points in cells, of shape (d, n)."""
        return np.ascontiguousarray(((points - self.low) / self.step).T)

    def norm(self, points: Array, strength: Array) -> float:
        """Root of the sum of squares, over cells, of the strengths in a cell."""
        cells = np.zeros(len(points), dtype=np.intp)
        for a, count in enumerate(self.cells):
            cells *= count
            cells += ((points[:, a] - self.low[a]) / self.step[a]).astype(np.intp)
        return math.sqrt(float(np.sum(np.bincount(cells, weights=strength) ** 2)))

    def order(self, points: Array) -> NDArray[np.intp]:
        """Order of points by the row of the grid they lie in, so that a piece of them touches few rows."""
        return np.argsort(((points[:, 0] - self.low[0]) / self.step[0]).astype(np.uint16), kind="stable")


class Slab:
    """The rows of the grid that some points touch, and the plan of finufft for them."""

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
    """Make finufft spread (1) or interpolate (2) on one thread, in double precision."""
    from finufft import Plan

    return Plan(kind, shape, eps=precision, isign=-1, nthreads=1, spreadinterponly=1, upsampfac=2.0)


def rows_of(x: Array, within: slice) -> slice:
    """Rows that points at x of the first axis touch; at least as many as finufft needs, and within those there are."""
    first = int(x.min()) - HALO
    count = max(int(x.max()) + HALO + 1 - first, FEWEST)
    first = max(min(first, within.stop - count), within.start)
    return slice(first, first + count)


def spread(grid: Grid, key: Array, strength: Field, n_jobs: int = 1, progress: Progress | None = None) -> Field:
    """Spread keys of strengths (pairs of sums, n) onto the grid; the result has shape (pairs of sums, *cells)."""
    order, parts = grid.order(key), len(strength)
    blocks = cut(len(key), max(-(-len(key) // KEY_BLOCKS), PIECES[len(grid.cells)]))
    field = np.zeros((parts, *grid.cells), dtype=np.complex128)
    # Blocks share rows, and the order of a sum decides its last bits: whoever finds the next block complete, adds it.
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
    """Convolve a grid with the Gaussian in place, and undo what spreading and interpolating do to frequencies."""
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
    """Transform of the Gaussian over the squared one of the spreading kernel, at all frequencies of an axis."""
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
    """Read a grid at queries: the sums at one piece of them, of shape (pairs of sums, m)."""
    slab = Slab(grid, query, 2, slice(0, grid.cells[0]))
    return np.stack([slab.plan.execute(part[slab.rows]) for part in field])
