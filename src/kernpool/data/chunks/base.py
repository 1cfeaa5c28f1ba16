"""Chunked data: interface for pairs of keys and values that are read piece by piece from arrays, files or streams.

`open_chunks` makes `Chunks` of any source of pairs. Iterating over them yields keys, values and weights as float64, a
bounded number of rows at a time, validated: errors about numbers that are not finite name file, row group or row, and
column. `Sampling` draws rows of them at random.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from kernpool._arrays import AnyArray, Array, Flags, Index
from kernpool.data.array_validation import COUNTED, TableError, as_array, as_real_array, find_inexact, would_round
from kernpool.data.columns import Kind, labels_of, order_of_columns, refuse_other_labels

BYTES_PER_CHUNK = 1 << 26  # of float64, such as four million pairs; pooling takes about eight times as much in addition
FEWEST_ROWS = 1 << 10


class Chunk(NamedTuple):
    """Some consecutive rows of the data: arrays of keys and values, and of weights if there are any.

    Parameters
    ----------
    key : ndarray of shape (rows, d)
        Keys, which queries are compared with.
    value : ndarray of shape (rows, c)
        Values to pool.
    weight : ndarray of shape (rows,) or None
        Frequencies; None is one each.
    start : int
        Index of the first row among all, as a `kernpool.pooling.Source` counts them.
    """

    key: Array
    value: Array
    weight: Array | None = None
    start: int = 0

    def take(self, which: Flags | Index | slice) -> Chunk:
        """Return some of the rows, given by a mask, indices or a slice."""
        weight = None if self.weight is None else self.weight[which]
        return Chunk(self.key[which], self.value[which], weight)

    @property
    def counted(self) -> Chunk:
        """The rows of positive weight."""
        return self if self.weight is None or (self.weight > 0).all() else self.take(self.weight > 0)


class Chunks(ABC):
    """Abstract base class of key-value data that are read one chunk of rows at a time."""

    flat: bool = True
    rows: int | None = None
    outputs: int | None = None
    again: bool = True
    names: tuple[str, ...] | None = None
    kinds: tuple[Kind, ...] | None = None
    left_out: tuple[str, ...] = ()
    _was_read = False

    @abstractmethod
    def __iter__(self) -> Iterator[Chunk]:
        """Iterate over the chunks of key-value pairs, in order."""

    def _start_reading(self) -> None:
        """Raise ValueError if the pairs can be read only once, and have been."""
        if self._was_read and not self.again:
            raise ValueError(
                "quantiles, empty windows and queries far away need the pairs once more, which an iterator does not "
                "allow; give a list, an array or a file"
            )
        self._was_read = True

    @property
    def labels(self) -> Sequence[Any] | None:
        """Names of the key columns, to match query columns by; None if there are no names, or only column numbers."""
        named = self.names is not None and not all(name.isdecimal() for name in self.names)
        return self.names if named else None

    def reference(self) -> dict[str, Any] | None:
        """Return a dictionary by which a saved model finds its data files again; None for data not in files."""
        return None

    def split_by_box(self, low: Array, high: Array) -> tuple[Chunks, Chunks, float] | None:  # noqa: ARG002  # few can
        """Split the data into pairs whose keys may lie in a box and pairs whose keys do not, without reading them.

        The number is an upper bound of the weights of the latter, times the ratio by which their values exceed those
        of the former.
        """
        return None

    def parts(self) -> list[Chunks]:
        """Split the data into `Chunks` that other processes can read; together they hold the same pairs in order."""
        raise TypeError(
            f"{type(self).__name__} cannot be cut into parts for other processes; write the pairs to a Parquet or .npy "
            "file and open that with open_chunks, or give arrays"
        )


class ArrayChunks(Chunks):
    """Chunks that are slices of arrays or memory maps, each converted to float64 when it is read.

    Parameters
    ----------
    key, value, weight : array_like
        As in `pool`.
    rows : int, optional
        Per chunk.
    source : str
        For messages.
    """

    def __init__(
        self, key: Any, value: Any, weight: Any = None, *, rows: int | None = None, source: str = "chunks"
    ) -> None:
        parts = {"key": key, "value": value} | ({} if weight is None else {"weight": weight})
        refuse_other_labels(**parts)
        self.columns = {"key": labels_of(key), "value": labels_of(value)}  # labels, if these are frames
        # Memory maps stay as they are; lists and frames become arrays.
        self._parts = {
            name: part if isinstance(part, np.memmap) else as_array(f"{source}: {name}", part)
            for name, part in parts.items()
        }
        for name, part in self._parts.items():
            if part.ndim not in (1, 2) or (name == "weight" and part.ndim != 1):
                raise TableError(
                    f"{source}: key and value must have shape (rows,) or (rows, columns), and weight (rows,), got "
                    f"{name} of shape {part.shape}"
                )
            if part.dtype.kind == "O":
                self._parts[name] = part = as_real_array(f"{source}: {name}", part, np.inf)
            as_real_array(f"{source}: {name}", part[:0])  # refuses dates, text and complex numbers
            found = find_inexact(parts[name], part) if part.dtype.kind == "f" else None  # of lists and frames
            if found is not None:
                raise TableError(f"{source}: {name} holds {would_round(found[1], f'at index {found[0]}')}")
        lengths = {name: len(part) for name, part in self._parts.items()}
        if len(set(lengths.values())) > 1:
            raise TableError(f"{source}: key, value and weight must have the same number of rows, got {lengths}")
        self.rows, self.flat = lengths["key"], self._parts["value"].ndim == 1
        self.outputs = 1 if self.flat else self._parts["value"].shape[1]
        width = sum(1 if part.ndim == 1 else part.shape[1] for part in self._parts.values())
        self._step, self._source = rows or rows_per_chunk(width), source
        self._first = 0  # row, where this is a part

    def __iter__(self) -> Iterator[Chunk]:
        """Iterate over the chunks, which are slices of the arrays."""
        for start in range(0, self.rows or 0, self._step):
            parts = {}
            for name, array in self._parts.items():
                given, place = array[start : start + self._step], partial(self._place, name, self._first + start)
                check_exact(given, self._source, place)
                numbers = np.asarray(given, dtype=np.float64)
                check_finite(numbers, self._source, place)
                parts[name] = numbers if name == "weight" else numbers.reshape(len(numbers), -1)
            yield Chunk(parts["key"], parts["value"], parts.get("weight"))

    def parts(self) -> list[Chunks]:
        """Return the slices of the arrays as a list of one `ArrayChunks` per chunk, for other processes.

        Slices of a memory map are pickled with their numbers, unlike files that are opened by name.
        """
        parts: list[Chunks] = []
        for start in range(0, self.rows or 0, self._step):
            slices = {name: array[start : start + self._step] for name, array in self._parts.items()}
            part = ArrayChunks(**slices, rows=self._step, source=self._source)
            part._first = self._first + start
            parts.append(part)
        return parts

    @property
    def shape(self) -> tuple[int, int | None]:
        """Number of key columns and number of value columns; the latter is None for one-dimensional values."""
        key, value = self._parts["key"], self._parts["value"]
        return key.shape[1] if key.ndim > 1 else 1, value.shape[1] if value.ndim > 1 else None

    @property
    def labels(self) -> Sequence[Any] | None:
        """Labels of the key columns, if keys are a frame."""
        return self.columns["key"]

    def order_columns(self, first: Mapping[str, Sequence[Any] | None]) -> None:
        """Bring the columns into the order of those of the first chunk, by label."""
        for name, labels in self.columns.items():
            order = order_of_columns(labels, first[name], (f"{self._source}: {name}", f"{name} of chunk 0"))
            if order is not None:
                self._parts[name] = self._parts[name][:, order]

    def _place(self, name: str, start: int, row: int, column: int) -> str:
        return f"row {start + row} of {name}" + (f", column {column}" if self._parts[name].ndim > 1 else "")


class IteratedChunks(Chunks):
    """Chunks from an iterable of arrays ``(key, value)`` or ``(key, value, weight)``."""

    def __init__(self, pairs: Iterable[Any], *, rows: int | None = None) -> None:
        self._pairs, self._rows, self.again = pairs, rows, iter(pairs) is not pairs

    @property
    def labels(self) -> Sequence[Any] | None:
        """Labels of the key columns, if keys of the first pair are a frame."""
        pairs = iter(self._pairs)
        first = next(pairs, None)
        if not self.again and first is not None:
            self._pairs = chain((first,), pairs)
        return labels_of(first[0]) if isinstance(first, tuple | list) and first else None

    def __iter__(self) -> Iterator[Chunk]:
        """Iterate over the chunks, in the order of the iterable; large arrays are cut into several."""
        self._start_reading()
        for part in self._arrays():
            yield from part

    def parts(self) -> list[Chunks]:
        """Return one `ArrayChunks` per chunk; raise TypeError if the iterable can be read only once."""
        if not self.again:
            raise TypeError(
                "an iterator can be read only once, and cannot be cut into parts for other processes; give a list of "
                "(key, value), or write the pairs to a Parquet or .npy file and open that with open_chunks"
            )
        return [part for arrays in self._arrays() for part in arrays.parts()]

    def _arrays(self) -> Iterator[ArrayChunks]:
        shape, columns = None, {}
        for number, pair in enumerate(self._pairs):
            if not isinstance(pair, tuple | list) or len(pair) not in (2, 3):
                raise TypeError(
                    f"chunk {number} must be a tuple (key, value) or (key, value, weight), got {type(pair).__name__}; "
                    "keys that are no chunks need value="
                )
            part = ArrayChunks(*pair, rows=self._rows, source=f"chunk {number}")
            if shape is None:
                shape, columns = part.shape, part.columns
            if part.shape != shape:
                raise TableError(
                    f"chunk {number} has keys and values of {part.shape} columns (None for no axis of columns), and "
                    f"chunk 0 of {shape}; all chunks must agree"
                )
            part.order_columns(columns)
            self.flat = part.flat
            yield part


def rows_per_chunk(columns: int, memory: int | None = None) -> int:
    """Return the number of rows per chunk that a memory limit allows, but at least 1024."""
    size = BYTES_PER_CHUNK if memory is None else memory // 16
    return max(FEWEST_ROWS, size // (8 * columns))


def check_exact(numbers: AnyArray, source: str, place: Callable[[int, int], str]) -> None:
    """Raise TableError, naming the position, if an array holds an integer that float64 would round."""
    found = find_inexact(numbers, numbers)
    if found is not None:
        row, column = (*found[0], 0)[:2]
        raise TableError(f"{source}: {place(row, column)} holds {would_round(found[1])} ({COUNTED})")


def check_finite(numbers: Array, source: str, place: Callable[[int, int], str]) -> None:
    """Raise TableError, naming the position, if an array holds NaN or infinity."""
    # If the sum is finite, so are its terms; testing every term takes four times as long.
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(np.add.reduce(numbers, axis=None)):
            return
    table = numbers.reshape(len(numbers), -1)
    bad = np.argwhere(~np.isfinite(table))
    if len(bad):
        row, column = bad[0].tolist()
        raise TableError(
            f"{source}: {place(row, column)} is {table[row, column]} ({COUNTED}); keys, values and weights must be "
            "finite numbers, so leave such rows out, or fill them in, first"
        )


class RowSample(NamedTuple):
    """Uniform random sample of rows that are not in memory; samples of disjoint sets of rows can be merged."""

    key: Array  # the rows, in their order
    value: Array
    weight: Array
    rows: int  # how many rows of positive weight there are in all
    lot: Array  # the numbers of the rows, by which samples join
    key_range: Array  # minimum and maximum of each key column over all rows of positive weight
    place: Index  # index of each row among all


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
    """Map-reduce query for a uniform random sample of at most `size` rows of positive weight.

    Every row has a pseudo-random number, uniform between 0 and 1, that follows from a seed and the row's index. The
    sample is the rows with the smallest numbers, so it does not depend on how the rows are cut into chunks.
    """

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


def _smallest(lots: Array, size: int) -> Index:
    """Return the indices of the `size` smallest entries of `lots` (all if there are fewer), in order of the index."""
    return np.arange(len(lots)) if len(lots) <= size else np.sort(np.argpartition(lots, size)[:size])


def range_of(key: Array) -> Array:
    """Return the minimum and maximum of each column, of shape (2, d); (inf, -inf) if there are no rows."""
    return np.stack([key.min(axis=0, initial=np.inf), key.max(axis=0, initial=-np.inf)])


def joined_ranges(ranges: Iterable[Array]) -> Array:
    """Merge the column ranges of several sets of rows into the range of all rows."""
    every = np.stack(list(ranges))
    return np.stack([every[:, 0].min(axis=0), every[:, 1].max(axis=0)])
