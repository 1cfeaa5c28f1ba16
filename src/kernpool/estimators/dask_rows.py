"""Rows of partitions on a Dask cluster: how many there are, which of them are drawn, and how they are fetched."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from kernpool.dask.cluster import compute
from kernpool.dask.leave_one_out import draw_rows, joined
from kernpool.dask.partitions import Partitions, read_block
from kernpool.dask.pool import RETRIES
from kernpool.data.chunks.base import Chunk
from kernpool.data.columns import Kind
from kernpool.estimators.extrapolation import (
    joined_ranges,
    may_extrapolate,
    range_of,
    reach_of_range,
    warn_of_extrapolation,
    window_of,
)
from kernpool.estimators.rows import as_table, read_inputs
from kernpool.estimators.search_sample import Sample, draw, join

# after kernpool.dask.partitions, which says what to install
# isort: split
from dask.delayed import delayed

Places = list[NDArray[np.intp]]


def read_query(model: Any, X: Any, *, warn: bool = True) -> NDArray[np.float64]:
    """Read queries in memory, of as many columns as the model has; `warn` says whether to warn of extrapolation."""
    table = as_table(X, vars(model).get("n_features_in_"))
    query = np.asarray(read_inputs(model, table, model.encoding_, reset=False)[0], dtype=np.float64)
    if warn and may_extrapolate(model):
        if "key_range_" not in vars(model):  # the bandwidth was given, and no row has been looked at
            blocks = model.partitions_.blocks
            ranges = compute([delayed(_range_of)(block) for block in blocks], model.client_, RETRIES)
            model.key_range_ = _joined_ranges(ranges)
        low, high = model.key_range_
        names = vars(model).get("feature_names_in_")
        reach = reach_of_range(low, high, *window_of(model))
        warn_of_extrapolation(reach, query, low, high, names, kinds=kinds_of(model))
    return query


def watch_blocks(model: Any, X: Any) -> Any:
    """Return a Dask array of queries whose blocks warn of extrapolation when they are computed."""
    if not may_extrapolate(model):
        return X
    key_range = vars(model).get("key_range_")
    if key_range is None:  # the bandwidth was given, and no row has been looked at
        key_range = delayed(_joined_ranges)([delayed(_range_of)(block) for block in model.partitions_.blocks])
    names = vars(model).get("feature_names_in_")
    options = {"key_range": key_range, "window": window_of(model), "names": names, "kinds": kinds_of(model)}
    return X.map_blocks(_watched, **options, dtype=X.dtype, meta=X._meta)


def _joined_ranges(ranges: list[Any]) -> Any:
    return joined_ranges([part for part in ranges if part is not None])


def _watched(query: NDArray[Any], key_range: Any, window: Any, names: Any, kinds: Any) -> NDArray[Any]:
    low, high = key_range
    warn_of_extrapolation(reach_of_range(low, high, *window), np.asarray(query), low, high, names, kinds=kinds)
    return query


def kinds_of(model: Any) -> Sequence[Kind] | None:
    """Return the kinds of the columns that a model was fitted to; None if all are numbers."""
    return None if model.encoding_ is None else model.encoding_.kinds


def count_rows(partitions: Partitions, client: Any) -> tuple[Partitions, int]:
    """Return partitions that know how many rows they have, and the number of columns of keys."""
    rows = list(partitions.rows)
    unknown = [i for i, size in enumerate(rows) if size is None]
    if not unknown and partitions.names is None:
        unknown = [next((i for i, size in enumerate(rows) if size), 0)]
    described = compute([delayed(_describe)(partitions.blocks[i]) for i in unknown], client, RETRIES)
    for i, (size, _) in zip(unknown, described, strict=True):
        rows[i] = size
    if not sum(filter(None, rows)):
        raise ValueError("there are no rows: all partitions are empty")
    columns = max(count for _, count in described) if partitions.names is None else len(partitions.names)
    return replace(partitions, rows=tuple(rows)), columns


def draw_sample(partitions: Partitions, size: int, seed: int, client: Any) -> Sample | None:
    """Draw rows to search on, the same for any partitions of the same rows.

    Tasks draw some more rows than are needed in all; where weights of zero make them too few, they draw once more.
    """
    sizes = [rows or 0 for rows in partitions.rows]
    starts, limit = np.cumsum([0, *sizes]).tolist(), min(1.0, 4.0 * (size + 16) / sum(sizes))
    while True:
        tasks = [
            delayed(_draw_from)(block, size, seed, first, limit)
            for block, rows, first in zip(partitions.blocks, sizes, starts[:-1], strict=True)
            if rows
        ]
        sample = join(compute(tasks, client, RETRIES), size)
        if limit == 1.0 or sample is None or len(sample.key) == min(size, sample.rows):
            return sample
        limit = 1.0


def places_of(partitions: Partitions, most: int | None, random_state: Any) -> Places:
    """Return for each partition which of its rows are drawn; all, if there are no more or `most` is None."""
    sizes = [rows or 0 for rows in partitions.rows]
    ends, n = np.cumsum(sizes), sum(sizes)
    if most is None or n <= most:
        return [np.arange(rows) for rows in sizes]
    generator = np.random.default_rng(check_random_state(random_state).randint(1 << 31))
    drawn = np.sort(generator.choice(n, most, replace=False, shuffle=False))  # no permutation of n in memory
    return [drawn[(drawn >= end - rows) & (drawn < end)] - (end - rows) for rows, end in zip(sizes, ends, strict=True)]


def fetch_all(partitions: Partitions, client: Any) -> Chunk:
    """Bring all rows into memory."""
    places = places_of(partitions, None, None)
    tasks = [
        delayed(draw_rows)(block, rows) for block, rows in zip(partitions.blocks, places, strict=True) if len(rows)
    ]
    rows = joined(compute(tasks, client, RETRIES))
    if rows is None:
        raise ValueError("there are no rows: all partitions are empty")
    return rows


def _draw_from(block: Any, size: int, seed: int, first: int, limit: float) -> Sample | None:
    """Draw rows of a block, in a task."""
    return draw(read_block(block), size, seed, first=first, limit=limit)


def _range_of(block: Any) -> NDArray[np.float64] | None:
    """Return the range of the keys of a block, in a task; None of no rows."""
    ranges = [range_of(chunk.key) for chunk in read_block(block)]
    return joined_ranges(ranges) if ranges else None


def _describe(block: Any) -> tuple[int, int]:
    """Return the numbers of rows and of columns of keys of a block, in a task."""
    rows = columns = 0
    for chunk in read_block(block):
        rows, columns = rows + len(chunk.key), chunk.key.shape[1]
    return rows, columns
