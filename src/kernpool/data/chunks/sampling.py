"""Random samples of the rows of chunks, drawn in one pass.

Every row has a pseudo-random number, uniform between 0 and 1, that follows from a seed and the row's index. A sample is
the rows with the smallest numbers, so it does not depend on how the rows are cut into chunks.
"""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kernpool.data.array_validation import TableError
from kernpool.data.chunks.base import Chunk

Array = NDArray[np.float64]


class RowSample(NamedTuple):
    """Uniform random sample of rows that are not in memory; samples of disjoint sets of rows can be merged."""

    key: Array  # the rows, in their order
    value: Array
    weight: Array
    rows: int  # how many rows of positive weight there are in all
    lot: Array  # the numbers of the rows, by which samples join
    key_range: Array  # minimum and maximum of each key column over all rows of positive weight
    place: NDArray[np.intp]  # index of each row among all


def seed_of(random_state: Any) -> int:
    """Draw from `random_state` the integer seed by which rows are sampled."""
    from sklearn.utils import check_random_state  # which `pool` does not load

    return int(check_random_state(random_state).randint(np.iinfo(np.int32).max))


def generator_at(seed: int, first: int) -> np.random.Generator:
    """Return the generator of the uniform numbers of all rows from the row of index `first` on."""
    bits = np.random.PCG64(seed)
    bits.advance(first)
    return np.random.Generator(bits)


def draw_sample(
    chunks: Iterable[Chunk],
    size: int,
    seed: int,
    *,
    first: int = 0,
    limit: float = 1.0,
) -> RowSample | None:
    """Draw a uniform random sample of the rows of chunks in one pass."""
    # O(n) time, and O(size) memory in addition to the chunk; the number of rows need not be known.
    generator, sample = generator_at(seed, first), None
    for chunk in chunks:
        lots = generator.random(len(chunk.key))
        weight = np.ones(len(lots)) if chunk.weight is None else chunk.weight
        if (weight < 0).any():
            raise TableError(f"weights must not be negative, got {weight.min()}; they are read as frequencies")
        full = sample is not None and len(sample.lot) == size
        taken = np.flatnonzero((lots < (sample.lot.max() if full and sample is not None else limit)) & (weight > 0))
        taken = taken[_smallest(lots[taken], size)]
        part = RowSample(
            chunk.key[taken], chunk.value[taken], weight[taken], int(np.count_nonzero(weight > 0)), lots[taken],
            range_of(chunk.key[weight > 0]), first + taken,
        )  # fmt: skip
        sample = join_samples([sample, part], size)
        first += len(lots)
    return sample


def join_samples(samples: Sequence[RowSample | None], size: int) -> RowSample | None:
    """Merge row samples of consecutive chunks into one sample of at most `size` rows; None if all are None."""
    some = [sample for sample in samples if sample is not None]
    if not some:
        return None
    lot = np.concatenate([sample.lot for sample in some])
    stay = _smallest(lot, size)
    key, value, weight = (np.concatenate([sample[i] for sample in some])[stay] for i in range(3))
    place = np.concatenate([sample.place for sample in some])[stay]
    key_range = joined_ranges([sample.key_range for sample in some])
    return RowSample(key, value, weight, sum(sample.rows for sample in some), lot[stay], key_range, place)


def _smallest(lots: Array, size: int) -> NDArray[np.intp]:
    """Return the indices of the `size` smallest entries of `lots` (all if there are fewer), in order of the index."""
    return np.arange(len(lots)) if len(lots) <= size else np.sort(np.argpartition(lots, size)[:size])


def range_of(key: Array) -> Array:
    """Return the minimum and maximum of each column, of shape (2, d); (inf, -inf) if there are no rows."""
    return np.stack([key.min(axis=0, initial=np.inf), key.max(axis=0, initial=-np.inf)])


def joined_ranges(ranges: Iterable[Array]) -> Array:
    """Merge the column ranges of several sets of rows into the range of all rows."""
    every = np.stack(list(ranges))
    return np.stack([every[:, 0].min(axis=0), every[:, 1].max(axis=0)])
