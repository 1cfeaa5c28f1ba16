"""Random samples of the rows of chunks, drawn in one pass.

Every row has a pseudo-random number, uniform between 0 and 1, that follows from a seed and the row's index. A sample is
the rows with the smallest numbers, so it does not depend on how the rows are cut into chunks.
"""

from collections.abc import Iterable
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


class Sampling(NamedTuple):
    """Map-reduce query for a uniform random sample of at most `size` rows of positive weight."""

    size: int
    seed: int

    def of(self, chunk: Chunk) -> RowSample:
        """Draw the sample of one chunk."""
        lot = generator_at(self.seed, chunk.start).random(len(chunk.key))
        weight = np.ones(len(lot)) if chunk.weight is None else chunk.weight
        if (weight < 0).any():
            raise TableError(f"weights must not be negative, got {weight.min()}; they are read as frequencies")
        (rows,) = np.nonzero(weight > 0)
        some = rows[_smallest(lot[rows], self.size)]
        return RowSample(
            chunk.key[some], chunk.value[some], weight[some], len(rows), lot[some], range_of(chunk.key[rows]),
            chunk.start + some,
        )  # fmt: skip

    def joined(self, one: RowSample, other: RowSample) -> RowSample:
        """Merge the samples of two disjoint sets of rows."""
        lot = np.concatenate([one.lot, other.lot])
        stay = _smallest(lot, self.size)
        key, value, weight, place = (
            np.concatenate([getattr(one, name), getattr(other, name)])[stay]
            for name in ("key", "value", "weight", "place")
        )
        key_range = joined_ranges([one.key_range, other.key_range])
        return RowSample(key, value, weight, one.rows + other.rows, lot[stay], key_range, place)


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
