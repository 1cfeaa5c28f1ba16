"""Columns of numbers and of levels side by side: what a table in a file becomes, as frames are no dependency."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class Mixed:
    """A table for estimators, which read it as they read a frame.

    Parameters
    ----------
    columns : mapping of str to sequence
        Arrays of numbers, lists of levels, and dates or durations (`kernpool.data.dates.Times`).
    ordered : mapping of str to sequence, default={}
        The declared order of levels of some columns.

    Examples
    --------
    >>> table = Mixed({"x": np.array([1.0, 2.0]), "side": ["left", "right"]})
    >>> table.shape, table.take([1]).columns["side"]
    ((2, 2), ['right'])
    """

    columns: Mapping[str, Any]
    ordered: Mapping[str, Sequence[Any]] = field(default_factory=dict)

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return len(self), len(self.columns)

    def __len__(self) -> int:
        return len(next(iter(self.columns.values()))) if self.columns else 0

    def take(self, rows: Sequence[int] | NDArray[np.intp]) -> Mixed:
        """Return some rows."""
        some = {
            name: cells.take(rows) if hasattr(cells, "take") else [cells[row] for row in rows]
            for name, cells in self.columns.items()
        }
        return Mixed(some, self.ordered)
