"""Random draws for resampling: multipliers and resampled rows, reproducible for any blocking or partition.

Every draw is a function of the seed and of numbers, never of how the computation is cut into blocks or partitions.
Residuals are multiplied by one draw per row, per unit row (a row of frequency 3 is three) or per larger unit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.random import Generator, Philox
from numpy.typing import ArrayLike

from kernpool._arrays import AnyArray, Array, Integers
from kernpool.core import SINGLE_ROWS, Units
from kernpool.execution import abbreviate

# Size of a block of columns, to limit memory; each column of a block with few columns takes longer.
NUMBERS, LEAST_COLUMNS, MOST_COLUMNS = 1 << 23, 8, 64
MOST_UNITS = 1 << 28
LARGEST_SEED = (1 << 128) - 1  # a key of Philox

GOLDEN_SECTION = (np.sqrt(5.0) + 1.0) / 2.0


def as_seed(random_state: Any) -> int:
    """Convert a random state to an integer seed."""
    if isinstance(random_state, int | np.integer) and not isinstance(random_state, bool):
        if random_state < 0:
            raise ValueError(f"random_state must not be negative, got {random_state}; use its absolute value")
        if random_state > LARGEST_SEED:
            raise ValueError(f"random_state must be less than 2**128, got {random_state}; use a smaller one")
        return int(random_state)
    if isinstance(random_state, Generator):
        return int(random_state.integers(1 << 62))
    return int(as_random(random_state).randint(1 << 62, dtype=np.int64))


def as_random(random_state: Any, *, generators: bool = True) -> Any:
    """Convert `random_state` to a RandomState as scikit-learn does; return a NumPy Generator unchanged."""
    if generators and isinstance(random_state, Generator):
        return random_state
    from sklearn.utils import check_random_state

    try:
        return check_random_state(random_state)
    except (TypeError, ValueError):
        known = "a RandomState, a Generator or None" if generators else "a RandomState or None"
        raise ValueError(
            f"random_state must be an integer from 0 on, {known}, got {abbreviate(random_state)}"
        ) from None


def generator(seed: int, number: int) -> Generator:
    """Return the independent random generator of one resample."""
    # Philox counts up its first word as it draws: seeds that differ there would repeat each other's numbers.
    return Generator(Philox(key=seed, counter=[0, 0, 0, number]))


def blocks(n_resamples: int, numbers: int) -> list[slice]:
    """Split resamples into slices, such that arrays with `numbers` entries for each resample stay small."""
    columns = min(max(NUMBERS // max(numbers, 1), LEAST_COLUMNS), MOST_COLUMNS)
    return [slice(start, min(start + columns, n_resamples)) for start in range(0, n_resamples, columns)]


def signs(random: Generator, size: int) -> Array:
    """Draw random signs: +1 or -1, with probability one half each."""
    zero_or_one: Array = random.integers(0, 2, size, dtype=np.int8).astype(np.float64)
    return 2.0 * zero_or_one - 1.0


def mammen(random: Generator, size: int) -> Array:
    """Draw from Mammen's two-point distribution, with mean 0 and second and third moment 1."""
    low = random.random(size) < GOLDEN_SECTION / np.sqrt(5.0)
    return np.asarray(np.where(low, 1.0 - GOLDEN_SECTION, GOLDEN_SECTION))


def gaussian(random: Generator, size: int) -> Array:
    """Draw standard normal numbers, with third moment 0 and fourth moment 3."""
    return random.standard_normal(size)


MULTIPLIERS: dict[str, Callable[[Generator, int], Array]] = {
    "wild": signs,
    "mammen": mammen,
    "gaussian": gaussian,
}


def multipliers(kind: str, seed: int, which: slice, size: int) -> Array:
    """Draw the random multipliers of residuals for a wild or multiplier bootstrap, one column for each resample."""
    # independent, with mean 0 and variance 1
    draw = MULTIPLIERS[kind]
    drawn = np.empty((size, which.stop - which.start))
    for column, number in enumerate(range(which.start, which.stop)):
        drawn[:, column] = draw(generator(seed, number), size)
    return drawn


def drawn_rows(seed: int, number: int, size: int) -> Integers:
    """Draw `size` row indices, from 0 to `size - 1`, with replacement for one resample."""
    return generator(seed, number).integers(0, size, size)


def unit_counts(weight: ArrayLike | None, what: str) -> Integers | None:
    """Validate whole-number frequency weights, and return them as integers; None if none are given or all are one."""
    if weight is None:
        return None
    weight = np.asarray(weight, dtype=np.float64)
    whole = np.rint(weight)
    if not np.array_equal(whole, weight):
        raise ValueError(
            f"{what} draws for each of the equal rows that a weight stands for, so weights must be whole numbers, got "
            f"{weight[whole != weight][0]:g}; round them, or count in a smaller unit"
        )
    if whole.sum() > MOST_UNITS:
        raise ValueError(
            f"{what} draws for each of the equal rows that a weight stands for, {whole.sum():.3g} in all, and at most "
            f"{MOST_UNITS} are supported; draw a sample of them"
        )
    return None if np.all(whole == 1.0) else whole.astype(np.int64)


def sums_of_units(drawn: AnyArray, units: Integers) -> AnyArray:
    """Sum draws, one for each unit of a row's frequency weight, into one sum per row; zero for weight zero."""
    ends = np.cumsum(units)
    starts = ends - units
    kept = units > 0
    sums = np.zeros((len(units), *drawn.shape[1:]), dtype=drawn.dtype)
    sums[kept] = np.add.reduceat(drawn, starts[kept], axis=0)
    return sums


def multiplied(
    residual: Array,
    kind: str,
    seed: int,
    n_resamples: int,
    *,
    times: Integers | None = None,
    units: Units = SINGLE_ROWS,
    results: int = 0,
) -> Iterator[tuple[slice, Array]]:
    """Yield residuals times random multipliers, in blocks of resamples."""
    # each of a row's units has its own multiplier, and the row their mean; rows of a larger unit share one
    n, c = residual.shape
    size = n if times is None else int(times.sum())
    for block in blocks(n_resamples, max(size, results) * c):
        sign = multipliers(kind, seed, block, units.draws(size))
        sign = means_of_units(sign, times) if units.code is None else sign[units.code]
        yield block, sign[:, :, None] * residual[:, None, :]


def means_of_units(drawn: Array, units: Integers | None) -> Array:
    """Average draws, one for each unit of a row's frequency weight, into one mean per row; zero for weight zero."""
    return drawn if units is None else sums_of_units(drawn, units) / np.maximum(units, 1)[:, None]


LEAST_ROWS = 5
