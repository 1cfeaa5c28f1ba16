"""Linearly dependent columns of training rows, and warnings of local planes that they do not determine."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from kernpool._arrays import Array, Flags, Index
from kernpool.core.local_fit import RANK_TOLERANCE, RankDeficiencyWarning, warn_of_rank
from kernpool.execution import warn_caller, warn_of_queries

ColumnSets = list[tuple[list[int], int]]

ROWS = 1 << 16  # at once


class RankNotes:
    """Record for one fit: its linearly dependent columns, and the rank-deficiency warnings already issued."""

    # Columns that are dependent over all rows are so in every window. They are named. What is missing in some windows
    # beyond that, because few keys are in them, is another warning.

    _sets: ColumnSets | None = None  # not known before it matters
    _said: frozenset[str] = frozenset()

    def _dependent(self, key: NDArray[np.floating] | None, weight: Array | None) -> ColumnSets:
        """Return the dependent columns of the rows, found once; none where the rows are not at hand."""
        if self._sets is None:
            rows = None if key is None or weight is None else np.flatnonzero(weight > 0)
            self._sets = [] if key is None else dependent_columns(key if rows is None else key[rows])
        return self._sets

    def warn(
        self,
        rank: Index,
        occupied: Flags,
        key: NDArray[np.floating] | None,
        names: Sequence[str],
        weight: Array | None = None,
    ) -> None:
        """Warn of rank-deficient local fits, unless the same warning was issued since the last `fit`."""
        columns = len(names)
        if not np.any(occupied & (rank < columns)) or {"columns", "windows"} <= self._said:
            return
        sets = self._dependent(key, weight)
        if sets and "columns" not in self._said:
            self._said |= {"columns"}
            warn_caller(_story(sets, names), RankDeficiencyWarning)
        determined = columns - sum(missing for _, missing in sets)
        if np.any(occupied & (rank < determined)) and "windows" not in self._said:
            self._said |= {"windows"}
            warn_of_rank(rank, occupied, determined)

    def warn_of_slopes(
        self,
        rank: Index,
        occupied: Flags,
        columns: int,
        key: NDArray[np.floating] | None,
        weight: Array | None,
    ) -> None:
        """Warn, once, of planes that correct the bias of local constants and are not determined."""
        if "slopes" in self._said or not np.any(occupied & (rank < columns)):
            return
        # Constants and dependent columns take nothing from the correction in the other directions.
        columns -= sum(missing for _, missing in self._dependent(key, weight))
        few = occupied & (rank < columns)
        if few.any():
            self._said |= {"slopes"}
        warn_of_queries(
            few,
            "the rows determine no slope in some direction, and the planes that correct the bias are constant in it; "
            "use a larger bandwidth",
            RankDeficiencyWarning,
        )


def dependent_columns(X: NDArray[np.floating]) -> ColumnSets:
    """Find the sets of columns that are constant or linearly dependent over all rows."""
    # The measure is that of `kernpool.core.local_fit.bounded_inverse`: eigenvalues of the correlation of the columns.
    # The null space splits into sets of columns, and its projection into blocks. O(n d^2) time.
    from scipy.sparse.csgraph import connected_components  # which `pool` does not load

    n, d = X.shape
    if n <= d:
        return []
    first, total, second = X[0].astype(np.float64), np.zeros(d), np.zeros((d, d))
    blocks = [slice(start, start + ROWS) for start in range(0, n, ROWS)]
    for rows in blocks:  # from the first row, so that constants are zeros
        total += (X[rows] - first).sum(axis=0)
    for rows in blocks:
        centered = X[rows] - first - total / n
        second += centered.T @ centered
    spread = np.sqrt(np.diagonal(second))
    unit = np.where(spread > 0, spread, 1.0)
    eigenvalues, directions = np.linalg.eigh(second / unit / unit[:, None])
    null = directions[:, eigenvalues <= RANK_TOLERANCE]
    joined = np.abs(null @ null.T) > RANK_TOLERANCE
    _, label = connected_components(joined)
    sets = [np.flatnonzero(label == one).tolist() for one in np.unique(label[joined.diagonal()])]
    return [(columns, round(float(np.sum(null[columns] ** 2)))) for columns in sets]


def _story(sets: ColumnSets, names: Sequence[str]) -> str:
    parts = [
        f"column {names[columns[0]]} is constant"
        if len(columns) == 1
        else f"columns {', '.join(names[a] for a in columns)} are linearly dependent"
        for columns, _ in sets
    ]
    return (
        f"over the training rows {'; '.join(parts)}: no slope is determined in some direction, and the fits are "
        "constant in it; drop one column of each such set, and constants. This is said once per fit"
    )
