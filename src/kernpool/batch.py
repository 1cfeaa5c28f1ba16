"""Leading batch dimensions: broadcast as in torch, then one problem per batch item."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernpool import checks
from kernpool.problem import Problem


class Batch:
    """The problems that arrays with leading dimensions stand for.

    Parameters
    ----------
    query, key, value : array_like
        As in `pool`; a value of None stands for one column of zeros, where only weights are asked for.
    key_weight, attn_mask, self_index : array_like or None
        As in `pool`; they may have leading dimensions too.
    **similarity
        Everything else that `Problem.from_arrays` takes.

    Attributes
    ----------
    shape : tuple of int
        The broadcast leading dimensions, empty if there are none.
    problems : list of Problem
        One per batch item, in C order.
    """

    def __init__(
        self,
        query: Any,
        key: Any,
        value: Any,
        *,
        key_weight: Any = None,
        attn_mask: Any = None,
        self_index: Any = None,
        **similarity: Any,
    ) -> None:
        arrays = {"query": checks.as_real_array("query", query), "key": checks.as_real_array("key", key)}
        rows = arrays["key"].shape[:-1] if arrays["key"].ndim > 1 else arrays["key"].shape
        arrays["value"] = np.zeros((*rows, 1)) if value is None else checks.as_real_array("value", value)
        self.dtype = np.result_type(*arrays.values())
        self._flat_values = arrays["value"].ndim == 1
        items: dict[str, tuple[NDArray[Any], int]] = {}  # array, and how many of its dimensions are no batch
        for name, array in arrays.items():
            items[name] = (array[:, None] if array.ndim == 1 else array, 2)
        for name, array, own in (
            ("key_weight", key_weight, 1),
            ("attn_mask", attn_mask, 2),
            ("self_index", self_index, 1),
        ):
            if array is not None:
                items[name] = (np.asarray(array), own)
        leading = {name: array.shape[: max(array.ndim - own, 0)] for name, (array, own) in items.items()}
        try:
            self.shape = np.broadcast_shapes(*leading.values())
        except ValueError:
            raise ValueError(f"batch dimensions do not broadcast: {leading}") from None
        spread = {
            name: np.broadcast_to(array, self.shape + array.shape[len(leading[name]) :])
            for name, (array, own) in items.items()
        }
        self.problems = [
            Problem.from_arrays(**{name: array[index] for name, array in spread.items()}, **similarity)  # type: ignore[arg-type]
            for index in np.ndindex(self.shape)
        ]
        if not self.problems:
            raise ValueError(f"the batch is empty: leading dimensions are {leading}")
        self.n_queries, self.n_keys = self.problems[0].shape

    @property
    def output_shape(self) -> tuple[int, ...]:
        """Shape of the pooled values."""
        shape = (*self.shape, self.n_queries)
        return shape if self._flat_values else (*shape, self.problems[0].value.shape[1])
