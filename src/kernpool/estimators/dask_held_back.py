"""Rows of partitions that are held back from a fit on a cluster; see `held_back.py`."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kernpool.core.state import PoolState
from kernpool.dask.cluster import compute
from kernpool.dask.partitions import read_block
from kernpool.dask.pool import RETRIES, PartitionPairs
from kernpool.dask.tasks import block_state, center_task, merge_tree, sent_once
from kernpool.estimators.dask_rows import draw_sample, read_query
from kernpool.estimators.held_back import ChunksWithout, Numbers
from kernpool.estimators.search_sample import Sample
from kernpool.pooling.chunked import Asked
from kernpool.pooling.limits import quotient
from kernpool.pooling.settle import Sums

# after kernpool.dask.partitions, which says what to install
# isort: split
from dask.base import is_dask_collection
from dask.delayed import delayed

Array = NDArray[np.float64]


class PartitionSource:
    """The partitions that a regressor was fitted to.

    Parameters
    ----------
    model : DaskNadarayaWatsonRegressor
        Fitted.
    """

    def __init__(self, model: Any) -> None:
        self._model, self._partitions, self._client = model, model.partitions_, model.client_
        self.recipe = model._recipe(model.bandwidth_)
        self.outputs, self.flat = self._partitions.outputs, self._partitions.flat

    def read(self, X: ArrayLike, *, warn: bool = True) -> Array:
        """Read places in memory."""
        if is_dask_collection(X):
            raise TypeError("X must be in memory for prediction intervals; compute it, or some of it")
        return read_query(self._model, X, warn=warn)

    def draw(self, size: int, seed: int) -> Sample | None:
        """Draw rows in tasks."""
        return draw_sample(self._partitions, size, seed, self._client)

    def sums(self, query: Array, without: Numbers | None) -> Sums:
        """Sum over all rows but some, on the cluster."""
        if without is None:
            return PartitionPairs(self._partitions, self._client, RETRIES).reduce(self.recipe, query)
        asked, center = Asked.of(self.recipe, query), center_task(self._partitions)
        state, center = compute([self._tree(asked, center, without), center], self._client, RETRIES)

        def fill(rows: NDArray[np.intp]) -> Array:
            limit = self.recipe.empty
            return quotient(
                *compute([self._tree(asked.at(rows, limit), center, without, limit)], self._client, RETRIES)
            )

        return asked.sums(state, center, self.flat, fill=fill)

    def _tree(self, asked: Asked, center: Any, without: Numbers, limit: str | None = None) -> Any:
        """Return the task that makes the state of all rows but some."""
        sent = sent_once(asked)
        firsts = np.cumsum([0, *self._partitions.rows]).tolist()
        states = [
            delayed(_state_without)(sent, block, center, self.outputs, without, first)
            for block, first in zip(self._partitions.blocks, firsts[:-1], strict=True)
        ]
        return merge_tree(states, limit)


def _state_without(
    asked: Asked, block: Any, center: Array | None, outputs: int, numbers: Numbers, first: int
) -> PoolState:
    """Return the state of a block but for some rows, in a task."""
    return block_state(asked, ChunksWithout(read_block(block), numbers, first), center, outputs)
