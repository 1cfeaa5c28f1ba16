"""The bandwidth of rows that are not in memory: a search on a sample, scaled by a rate to the number of all rows.

Chunks and clusters share this file, so that the same rows in the same order have the same bandwidth. Every row has a
number that depends on `random_state` and on its place alone, and the rows of positive weight with the smallest numbers
are the sample: whoever reads some of the rows knows their numbers.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from kernpool.bandwidth.repeated import warn_of_copies
from kernpool.data.chunks.base import Chunk
from kernpool.data.suspects import SuspectColumnWarning, suspect_numbers
from kernpool.data.tables import TableError
from kernpool.estimators.bandwidth_choice import choose_bandwidth, of_all_rows
from kernpool.estimators.extrapolation import joined_ranges, range_of
from kernpool.execution.progress import Progress
from kernpool.execution.warnings import warn_caller

Array = NDArray[np.float64]

DEFAULT_SEARCH_ROWS = 10_000


class Sample(NamedTuple):
    """Rows drawn from some of all rows.

    Parameters
    ----------
    key, value, weight : ndarray
        The rows, in their order.
    rows : int
        How many rows of positive weight there are in all.
    lot : ndarray
        The numbers of the rows, by which samples join.
    key_range : ndarray of shape (2, d)
        The least and the largest number in each column of the keys of all rows.
    """

    key: Array
    value: Array
    weight: Array
    rows: int
    lot: Array
    key_range: Array


class SearchDraw(NamedTuple):
    """Which rows a search has seen: those of the smallest numbers.

    Parameters
    ----------
    size : int
        How many, or all rows if there are fewer.
    seed : int
        Of the numbers.
    """

    size: int
    seed: int


def seed_of(random_state: Any) -> int:
    """Return the seed of the numbers of rows."""
    return int(check_random_state(random_state).randint(np.iinfo(np.int32).max))


def draw(
    chunks: Iterable[Chunk],
    size: int,
    seed: int,
    *,
    first: int = 0,
    limit: float = 1.0,
    progress: Progress | None = None,
    total: int | None = None,
) -> Sample | None:
    """Draw rows in one pass.

    Parameters
    ----------
    chunks : iterable of Chunk
        Rows that follow each other; those of weight zero are none.
    size : int
        How many; all if there are no more.
    seed : int
        From `seed_of`.
    first : int, default=0
        The place of the first of these rows among all.
    limit : float, default=1.0
        Draw only rows whose numbers, which are uniform between 0 and 1, are less.
    progress : callable, optional
        Called as ``progress(rows_done, total)``, if the total is known.
    total : int, optional
        Number of these rows.

    Returns
    -------
    Sample or None
        The same for any cutting of the rows into chunks; None if there are no chunks.

    Raises
    ------
    TableError
        If a weight is negative.

    Notes
    -----
    O(n) time, O(size) memory beside the chunk, and nothing has to be known beforehand.

    Examples
    --------
    >>> chunks = [Chunk(np.eye(2), np.eye(2)), Chunk(np.eye(2), np.eye(2))]
    >>> whole, second = draw(chunks, 3, 0), draw(chunks[1:], 3, 0, first=2)
    >>> whole.rows, bool(set(whole.lot) > set(second.lot) - {second.lot.max()})
    (4, True)
    """
    bits = np.random.PCG64(seed)
    bits.advance(first)
    generator, sample, seen = np.random.Generator(bits), None, 0
    for chunk in chunks:
        lots = generator.random(len(chunk.key))
        weight = np.ones(len(lots)) if chunk.weight is None else chunk.weight
        if (weight < 0).any():
            raise TableError(f"weights must not be negative, got {weight.min()}; they are read as frequencies")
        full = sample is not None and len(sample.lot) == size
        taken = np.flatnonzero((lots < (sample.lot.max() if full and sample is not None else limit)) & (weight > 0))
        taken = taken[_smallest(lots[taken], size)]
        part = Sample(
            chunk.key[taken], chunk.value[taken], weight[taken], int(np.count_nonzero(weight > 0)), lots[taken],
            range_of(chunk.key),
        )  # fmt: skip
        sample = join([sample, part], size)
        seen += len(lots)
        if progress is not None and total is not None:
            progress(seen, total)
    return sample


def join(samples: Sequence[Sample | None], size: int) -> Sample | None:
    """Return one sample of the rows of several, which are in order; None if there are none."""
    some = [sample for sample in samples if sample is not None]
    if not some:
        return None
    lot = np.concatenate([sample.lot for sample in some])
    stay = _smallest(lot, size)
    key, value, weight = (np.concatenate([sample[i] for sample in some])[stay] for i in range(3))
    key_range = joined_ranges([sample.key_range for sample in some])
    return Sample(key, value, weight, sum(sample.rows for sample in some), lot[stay], key_range)


def bandwidth_of_sample(
    sample: Sample | None, flat: bool, labels: Any = None, *, bandwidth: str, random_state: Any, **options: Any
) -> dict[str, Any]:
    """Find the bandwidth of all rows from that of a sample.

    Parameters
    ----------
    sample : Sample or None
        From `draw`.
    flat : bool
        Whether the outputs are one column without an axis.
    labels : sequence, optional
        Names of the columns, which are looked at for row numbers.
    bandwidth, random_state, **options
        As in `choose_bandwidth`, which returns the same attributes but for `bandwidth_note_`.
    """
    if sample is None or not sample.rows:
        raise ValueError("there are no rows of positive weight: the source is empty")
    value = sample.value[:, 0] if flat else sample.value
    weight = None if np.all(sample.weight == 1.0) else sample.weight
    if labels is not None:
        for sentence in suspect_numbers(labels, sample.key, whole=len(sample.key) == sample.rows):
            warn_caller(sentence, SuspectColumnWarning)
    no_code = np.zeros((len(value), 0), dtype=np.int64)
    warn_of_copies(sample.key, no_code, value, weight, takes_groups=False, bandwidth=bandwidth)
    found = choose_bandwidth(sample.key, value, weight, bandwidth=bandwidth, random_state=random_state, **options)
    found["key_range_"] = sample.key_range
    few, many = len(sample.key), sample.rows
    if few == many:
        return found | {"bandwidth_note_": f"{bandwidth!r} on all {many} rows"}
    return found | of_all_rows(found, bandwidth, few, many, random_state)


def _smallest(lots: Array, size: int) -> NDArray[np.intp]:
    """Return where the smallest numbers are, in the order of their places."""
    return np.arange(len(lots)) if len(lots) <= size else np.sort(np.argpartition(lots, size)[:size])
