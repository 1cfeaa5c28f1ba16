"""Sequences of tensors as problems of the engine: one problem per sequence, or several where a mask would be large."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from kernpool.core.moments import Layout
from kernpool.core.problem import Problem
from kernpool.core.reading import column_range
from kernpool.data.checks import LARGEST

MASK_BYTES = 1 << 24  # of the mask of a block of queries, where queries see different numbers of keys


class Sequences(NamedTuple):
    """What the operator pools: B sequences of queries and keys, each by itself.

    Parameters
    ----------
    query, key, value : Tensor of shape (B, L, E), (B, S, E), (B, S, C)
        On the processor.
    inverse_bandwidth : Tensor of shape (E,)
        Factors of the columns; only their absolute values matter.
    counts : Tensor of int64, shape (B, L), optional
        How many of the first keys each query sees.
    mask : Tensor of bool, shape (T, L, S) or (T, 1, S), optional
        Tables of which pairs count.
    which : Tensor of int64, shape (B,), optional
        The number of each sequence's table.
    kernel : str
        Name of a kernel.
    exclude_self : bool
        Leave key i out for query i.
    degree : {0, 1}
        Local constant or local linear.
    """

    query: Tensor
    key: Tensor
    value: Tensor
    inverse_bandwidth: Tensor
    counts: Tensor | None
    mask: Tensor | None
    which: Tensor | None
    kernel: str
    exclude_self: bool
    degree: int

    @property
    def layout(self) -> Layout:
        """Columns of the sums of one query."""
        return Layout(values=self.value.shape[-1], columns=self.query.shape[-1], degree=self.degree)

    def parts(self) -> Iterator[Part]:
        """Yield sequences, or blocks of their queries, with the keys that they see; none where no key is seen."""
        rows, all_keys = self.query.shape[1], self.key.shape[1]
        query, key, value, inverse = map(as_array, self[:4])
        for b in range(len(query)):
            table = None if self.mask is None or self.which is None else self.mask[int(self.which[b])].numpy()
            seen = np.full(rows, all_keys) if self.counts is None else np.minimum(self.counts[b].numpy(), all_keys)
            size = rows if np.ptp(seen) == 0 else max(1, MASK_BYTES // all_keys)
            for start in range(0, rows, size):
                queries = slice(start, min(start + size, rows))
                keys, number, allowed = _seen(table, seen[queries], queries, all_keys)
                if not number.size:
                    continue
                self_index = _places(number, np.arange(queries.start, queries.stop)) if self.exclude_self else None
                arrays = query[b, queries], key[b, keys], value[b, keys], inverse
                yield Part(b, queries, keys, self._problem(*arrays, allowed, self_index))

    def _problem(
        self,
        query: NDArray[Any],
        key: NDArray[Any],
        value: NDArray[Any],
        inverse: NDArray[Any],
        mask: NDArray[np.bool_] | None,
        self_index: NDArray[np.intp] | None,
    ) -> Problem | None:
        if mask is not None:
            # What takes part for no query is padding and may hold anything.
            used = np.any(mask, axis=0, keepdims=True).T
            query = np.where(np.any(mask, axis=1, keepdims=True), query, 0)
            key, value = np.where(used, key, 0), np.where(used, value, 0)
        if not all(np.isfinite(array).all() for array in (query, key, value, inverse)):
            return None
        low, high = (np.array(ends) for ends in zip(column_range(query), column_range(key), strict=True))
        extent = high.max(axis=0).astype(np.float64) - low.min(axis=0)
        # Widths that training has driven away: to where nothing changes any more.
        narrowest = np.maximum(2.0 * extent / LARGEST, 1e-150)
        with np.errstate(divide="ignore"):
            bandwidth = np.clip(1.0 / np.abs(inverse.astype(np.float64)), narrowest, 1e150)
        return Problem.from_arrays(
            query,
            key,
            value,
            kernel=self.kernel,
            bandwidth=bandwidth,
            attn_mask=mask,
            exclude_self=self.exclude_self,
            self_index=self_index,
            degree=self.degree,
        )


class Part(NamedTuple):
    """Some queries of a sequence, and the keys that they see.

    Parameters
    ----------
    sequence : int
        Number of the sequence.
    queries : slice
        Which of its queries.
    keys : slice or ndarray of int
        Which of its keys.
    problem : Problem or None
        None if an entry is NaN.
    """

    sequence: int
    queries: slice
    keys: slice | NDArray[np.intp]
    problem: Problem | None


def as_array(tensor: Tensor) -> NDArray[Any]:
    """Return a tensor of the processor as an array; NumPy has one half precision and computes slowly in it."""
    if tensor.dtype in (torch.float16, torch.bfloat16):
        tensor = tensor.float()
    return tensor.detach().contiguous().numpy()


def _seen(
    table: NDArray[np.bool_] | None, seen: NDArray[np.int64], queries: slice, all_keys: int
) -> tuple[slice | NDArray[np.intp], NDArray[np.intp], NDArray[np.bool_] | None]:
    """Return the keys that some of these queries see, their numbers, and a mask unless all queries see all of them."""
    keys: slice | NDArray[np.intp] = slice(0, int(seen.max()))
    number, allowed = np.arange(all_keys)[keys], None
    if table is not None and len(table) == 1:  # one row for all queries is a choice of keys, and needs no table
        keys = number = np.flatnonzero(table[0, keys])
    elif table is not None:
        allowed = table[queries, keys]
    if np.ptp(seen):
        within = number < seen[:, None]
        allowed = within if allowed is None else allowed & within
    return keys, number, allowed


def _places(number: NDArray[np.intp], wanted: NDArray[np.intp]) -> NDArray[np.intp]:
    """Return where numbers are in an increasing list; -1 for those that are not."""
    place = np.minimum(np.searchsorted(number, wanted), len(number) - 1)
    return np.where(number[place] == wanted, place, -1)
