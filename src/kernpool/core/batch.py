"""Batches of pooling problems, given by arrays with leading batch dimensions that broadcast as in PyTorch.

`Batch` makes one problem per batch item. `Stack` holds many equally shaped problems as arrays with one more
dimension, so that they are read at once and not one by one.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from kernpool._arrays import AnyArray, Array, Integers
from kernpool.core.input_validation import checked_rows
from kernpool.core.problem import Problem
from kernpool.data import array_validation, labels_of, order_of_columns, refuse_other_labels


class Stack(NamedTuple):
    """Batch of b equally shaped pooling problems as stacked arrays: m queries, n keys, d columns, c value columns.

    Parameters
    ----------
    query : ndarray of shape (b, m, d)
        Evaluation points.
    key : ndarray of shape (b, d, n)
        Keys, column by column.
    value : ndarray of shape (b, c, n)
        Values to pool, minus `center`.
    center : ndarray of shape (b, c)
        A median of the values of each problem.
    low, high : ndarray of shape (b, c)
        The ends of the values, less their center.
    key_weight : ndarray of shape (b, n) or (b, 0)
        Frequencies in units of `unit`; empty for one each.
    unit : ndarray of shape (b,)
        Powers of two, so that the largest weight of each problem is between 1 and 2.
    own : ndarray of int, shape (b, m)
        Own keys, -1 for none.
    own_weight : ndarray of shape (b, m)
        Remaining weight of own keys after one unit is excluded.
    """

    query: Array
    key: Array
    value: Array
    center: Array
    low: Array
    high: Array
    key_weight: Array
    unit: Array
    own: Integers
    own_weight: Array

    @classmethod
    def of(
        cls,
        query: AnyArray,
        key: AnyArray,
        value: AnyArray,
        key_weight: AnyArray | None = None,
        own: Integers | None = None,
    ) -> Stack:
        """Build a `Stack` from finite arrays: queries (b, m, d), keys (b, n, d) and values (b, n, c)."""
        query, key, value = (np.asarray(array, dtype=np.float64) for array in (query, key, value))
        (b, m, _), taking_part = query.shape, value
        weight, unit = np.empty((b, 0)), np.ones(b)
        if key_weight is not None:
            unit = 2.0 ** np.floor(np.log2(key_weight.max(axis=1)))
            weight = key_weight / unit[:, None]
            taking_part = np.where(weight[:, :, None] > 0, value, np.nan)
        own = np.full((b, m), -1) if own is None else own
        own_weight = np.zeros((b, m))
        if key_weight is not None:
            left = np.take_along_axis(weight, np.maximum(own, 0), axis=1) - 1.0 / unit[:, None]
            own_weight = np.where(own >= 0, np.maximum(left, 0.0), 0.0)
        center = np.median(value, axis=1) if key_weight is None else np.nanmedian(taking_part, axis=1)
        low, high = np.fmin.reduce(taking_part, axis=1), np.fmax.reduce(taking_part, axis=1)
        centered = np.ascontiguousarray(np.swapaxes(value - center[:, None], 1, 2))
        columns = np.ascontiguousarray(np.swapaxes(key, 1, 2))
        return cls(
            np.ascontiguousarray(query), columns, centered, center, low - center, high - center,
            weight, unit, own, own_weight,
        )  # fmt: skip


class Batch:
    """Pooling problems given by arrays with leading batch dimensions, which broadcast: one `Problem` per batch item."""

    def __init__(
        self,
        query: Any,
        key: Any,
        value: Any,
        *,
        key_weight: Any = None,
        attn_mask: Any = None,
        self_index: Any = None,
        make: Callable[..., Problem],
    ) -> None:
        arrays = {
            "query": array_validation.as_real_array("query", query),
            "key": array_validation.as_real_array("key", key),
        }
        if not (isinstance(query, np.ndarray) or isinstance(key, np.ndarray)):  # which have no names of columns
            order = order_of_columns(labels_of(query), labels_of(key))
            if order is not None:
                arrays["query"] = arrays["query"][:, order]
        refuse_other_labels(query=query, self_index=self_index, attn_mask=attn_mask)
        refuse_other_labels(key=key, value=value, key_weight=key_weight)
        rows = arrays["key"].shape[:-1] if arrays["key"].ndim > 1 else arrays["key"].shape
        arrays["value"] = np.zeros((*rows, 1)) if value is None else array_validation.as_real_array("value", value)
        self.dtype = np.result_type(*arrays.values())
        items: dict[str, tuple[AnyArray, int]] = {}  # array, and how many of its dimensions are no batch
        for name, array in arrays.items():
            items[name] = (array[:, None] if array.ndim == 1 else array, 2)
        if key_weight is not None:
            items["key_weight"] = (array_validation.as_real_array("key_weight", key_weight), 1)
        for name, array, own in (("attn_mask", attn_mask, 2), ("self_index", self_index, 1)):
            if array is not None:
                array_validation.refuse_foreign(name, array)
                items[name] = (np.asarray(array), own)
        leading = {name: array.shape[: max(array.ndim - own, 0)] for name, (array, own) in items.items()}
        try:
            self.shape = np.broadcast_shapes(*leading.values())
        except ValueError:
            raise ValueError(
                f"batch dimensions do not broadcast: {leading}; each dimension must be 1 or the same in all of them"
            ) from None
        if 0 in self.shape:
            raise ValueError(f"the batch is empty: leading dimensions are {leading}; each must be at least 1")
        self._arrays: dict[str, Any] = {
            name: array
            if leading[name] == self.shape
            else np.broadcast_to(array, self.shape + array.shape[len(leading[name]) :])
            for name, (array, _) in items.items()
        }
        self._make, self.n_items = make, math.prod(self.shape)
        self._first: Problem | None = None
        self._first = self.problem(0)
        self.n_queries, self.n_keys = self._first.shape
        columns = () if arrays["value"].ndim == 1 else self._first.value.shape[1:]
        self.output_shape = (*self.shape, self.n_queries, *columns)

    def problem(self, i: int) -> Problem:
        """Build the pooling problem of batch item i, counted in C order over the batch dimensions."""
        # It is built on request, so that only one is in memory.
        if i == 0 and self._first is not None:
            return self._first
        index = np.unravel_index(i, self.shape) if self.shape else ()
        items = {name: array[index] for name, array in self._arrays.items()}
        return self._make(**items | {name: checked_rows(name, items[name]) for name in ("query", "key", "value")})

    def stack(self, items: slice) -> Stack | None:
        """Return a slice of the batch items as a `Stack`, or None if one of them may have invalid input."""
        # Then items are summed one by one, and the `Problem` of an invalid item raises the error.
        first = self.problem(0)
        index = np.unravel_index(np.arange(self.n_items)[items], self.shape)
        arrays = {name: array[index] for name, array in self._arrays.items()}
        query, key, own, weight = arrays["query"], arrays["key"], None, arrays.get("key_weight")
        high = np.maximum(query.max(axis=(0, 1)), key.max(axis=(0, 1)))
        low = np.minimum(query.min(axis=(0, 1)), key.min(axis=(0, 1)))
        with np.errstate(over="ignore"):
            if not ((high - low) / first.similarity.bandwidth).max() <= array_validation.LARGEST:
                return None
        if weight is not None and not (np.all(weight >= 0) and np.all(weight.max(axis=1) > 0)):
            return None
        if first.self_index is not None:
            own = arrays.get("self_index", np.broadcast_to(np.arange(self.n_keys), (len(query), self.n_keys)))
            if own.min() < -1 or own.max() >= self.n_keys:
                return None
            own = np.ascontiguousarray(own, dtype=np.int64)
        return Stack.of(query, key, arrays["value"], weight, own)

    def values(self, i: int) -> Array:
        """Return the original, uncentered values of batch item i, of shape (n, c)."""
        # Those of its `Problem` are centered.
        return np.asarray(self._arrays["value"][np.unravel_index(i, self.shape)], dtype=np.float64)
