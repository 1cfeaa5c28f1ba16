"""Pairs: over what to pool.

Arrays, keys that have been read before, chunks, memory maps and partitions of a cluster answer the same two questions.
Running sums have no pairs any more; what they hold goes to `settle` as well.
"""

from __future__ import annotations

from typing import Any, Protocol

from kernpool.execution.progress import Progress
from kernpool.pooling.recipe import Recipe
from kernpool.pooling.settle import Sums


class Reason(Protocol):
    """What every plan can say of itself."""

    @property
    def algorithm(self) -> str:
        """Name of the algorithm."""

    @property
    def reason(self) -> str:
        """Why this one, in words."""


class Pairs(Protocol):
    """Keys and values, wherever they are."""

    def plan(self, recipe: Recipe, query: Any) -> Reason:
        """Say by which algorithm the pairs would be summed for these queries, and why."""

    def reduce(self, recipe: Recipe, query: Any, progress: Progress | None = None) -> Sums:
        """Sum over all pairs, for `settle`."""
