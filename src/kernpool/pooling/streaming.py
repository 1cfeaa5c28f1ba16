"""Streaming pooling: fixed queries, pairs that arrive over time, and memory of a few sums per query.

`RunningPool` is updated, merged with others and saved; the pairs themselves are not kept.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kernpool.core import PoolState, merge
from kernpool.core.state import Empty
from kernpool.data import ArrayChunks, as_bandwidth, labels_of, order_of_columns
from kernpool.execution.error_messages import explain_calls
from kernpool.execution.threads import OwnLock
from kernpool.execution.warnings import underflow_is_zero
from kernpool.kernels import Kernel
from kernpool.pooling.out_of_core import reason_of_chunks
from kernpool.pooling.recipe import Recipe, finalize
from kernpool.pooling.stored_pairs import ChunkReason, QueryBatch, center_of

Array = NDArray[np.float64]

_ARRAYS = ("query", "bandwidth", "center", "shift", "denominator", "numerator")


class _Seen(NamedTuple):
    """Sums over the pairs that a `RunningPool` has seen so far.

    They are replaced as a whole, so that no reader sees half an update.
    """

    rows: int = 0
    flat: bool = True
    state: PoolState | None = None
    center: Array | None = None


@explain_calls
class RunningPool:
    r"""Running sums for pooled values at fixed queries, over pairs that arrive in batches.

    .. math:: \hat y_i = \frac{\sum_t \sum_{j \in t} a_{ij} v_j}{\sum_t \sum_{j \in t} a_{ij}}

    over all updates t: the sums are kept, the pairs are not. Pools of the same queries merge, in any order, so that
    many machines can each see a part of the pairs.

    Parameters
    ----------
    query : array_like of shape (m,) or (m, d)
        Evaluation points.
    kernel, bandwidth, composition, degree, tol, algorithm, n_jobs
        As in `kernpool.pool`. The bandwidth cannot change later, since the pairs are gone.
    empty : {"nan", "zero", "raise"}, default="nan"
        Value of a query without any key of positive weight; the other policies would need the pairs.

    Attributes
    ----------
    rows : int
        How many pairs have been seen.
    state : PoolState or None
        Their sums, with ``degree=1`` and 2 of values less `center`; None before the first update.
    center : ndarray of shape (c,) or None
        A median of the values of the first update.

    Raises
    ------
    TypeError, ValueError
        If a parameter is out of its range, or pairs do not match the queries; a failed update changes nothing.

    Notes
    -----
    An update costs what `kernpool.pool` of its pairs does. Memory is O(m), and that of the columns of
    `kernpool.core.Layout` for each query with ``degree=1`` and ``degree=2``. Where
    updates have few pairs each, collect some hundred before updating: every update visits all queries.

    Threads may update, merge and read one pool concurrently: updates wait for each other, none is lost, and values are
    those of whole updates.

    Examples
    --------
    >>> from kernpool import RunningPool
    >>> running = RunningPool([0.0, 1.0], bandwidth=0.5)
    >>> running.update([0.0, 1.0], [1.0, 3.0]).update([2.0], [5.0]).values().round(3)
    array([1.239, 3.   ])
    """

    def __init__(
        self,
        query: ArrayLike,
        *,
        kernel: str | Kernel = "gaussian",
        bandwidth: ArrayLike = 1.0,
        composition: str = "radial",
        degree: int = 0,
        tol: float | None = None,
        algorithm: str = "auto",
        empty: Empty = "nan",
        n_jobs: int | None = None,
    ) -> None:
        recipe = Recipe.of(
            kernel,
            bandwidth,
            composition=composition,
            degree=degree,
            tol=tol,
            algorithm=algorithm,
            empty=empty,
            n_jobs=n_jobs,
        )
        if recipe.empty_value is None:
            raise ValueError(f"empty={empty!r} needs the pairs, which are not kept; use 'nan', 'zero' or 'raise'")
        asked = QueryBatch.of(recipe, query)
        rows = asked.query.array
        if rows.ndim != 2 or not rows.size:
            raise ValueError(f"query must have shape (queries,) or (queries, columns), got {rows.shape}")
        recipe = replace(recipe, bandwidth=as_bandwidth(recipe.bandwidth, rows.shape[1]))
        self._asked = QueryBatch(recipe, asked.query._replace(array=rows.copy()))  # which the caller cannot change
        self.empty, self._seen, self._adding = empty, _Seen(), OwnLock()

    @property
    def query(self) -> Array:
        """Evaluation points, of shape (m, d)."""
        return self._asked.query.array

    @property
    def rows(self) -> int:
        """Number of pairs seen so far."""
        return self._seen.rows

    @property
    def state(self) -> PoolState | None:
        """Kernel sums (`PoolState`) over all pairs seen so far; None before the first update."""
        return self._seen.state

    @property
    def center(self) -> Array | None:
        """Median of the values of the first update, of shape (c,); None before it."""
        return self._seen.center

    @underflow_is_zero
    def update(self, key: ArrayLike, value: ArrayLike, weight: ArrayLike | None = None) -> Self:
        """Add a batch of key-value pairs to the running sums.

        Parameters
        ----------
        key : array_like of shape (n,) or (n, d)
            Keys, which queries are compared with; zero rows are allowed.
        value : array_like of shape (n,) or (n, c)
            Values to pool.
        weight : array_like of shape (n,), optional
            Frequencies.

        Returns
        -------
        RunningPool
            Itself.
        """
        chunks = ArrayChunks(key, value, weight, source="update")
        order = order_of_columns(labels_of(key), self._asked.query.labels)
        with self._adding:
            self._seen = self._with(chunks, order, self._seen)
        return self

    def _with(self, chunks: ArrayChunks, order: Any, seen: _Seen) -> _Seen:
        """Return the running sums after chunks of pairs are added, with key columns in the order of the query columns.

        An error changes nothing.
        """
        rows, flat, state, center = seen
        for chunk in chunks:
            if order is not None:
                chunk = chunk._replace(key=np.ascontiguousarray(chunk.key[:, order]))
            if chunk.key.shape[1] != self.query.shape[1]:
                raise ValueError(f"key must have {self.query.shape[1]} column(s) as query, got {chunk.key.shape[1]}")
            center = center_of(chunk) if center is None else center
            if center is None:  # nothing of any weight yet
                continue
            if len(center) != chunk.value.shape[1] or (seen.state is not None and chunks.flat != flat):
                raise ValueError(
                    f"value must have shape {'(rows,)' if flat else f'(rows, {len(center)})'} as before, "
                    f"got {chunk.value.shape[1]} column(s)"
                )
            part = self._asked.state(chunk, center)
            state = part if state is None else merge(state, part)
        return seen if state is None else _Seen(rows + (chunks.rows or 0), chunks.flat, state, center)

    @underflow_is_zero
    def merge(self, other: RunningPool) -> Self:
        """Add the sums over the pairs that another pool, of the same queries, has seen.

        Parameters
        ----------
        other : RunningPool
            With equal queries, kernel, bandwidth, composition and degree.

        Returns
        -------
        RunningPool
            Itself; the other stays as it is.

        Raises
        ------
        ValueError
            If the two do not pool in the same way.
        """
        mine, theirs = self._asked, other._asked
        if not (mine.recipe.pools_like(theirs.recipe) and np.array_equal(self.query, other.query)):
            raise ValueError("other must have the same queries, kernel, bandwidth, composition and degree to be merged")
        more = other._seen
        with self._adding:
            self._seen = self._merged(self._seen, more)
        return self

    def _merged(self, seen: _Seen, more: _Seen) -> _Seen:
        if more.state is None or more.center is None:
            return seen
        if seen.state is None or seen.center is None:
            return more._replace(rows=seen.rows + more.rows)
        if len(seen.center) != len(more.center):
            raise ValueError(
                f"other has {len(more.center)} value column(s), and {len(seen.center)} are pooled here; "
                "both must have the same number"
            )
        state, layout = more.state, self._asked.layout(len(seen.center))
        if layout.degree:
            numerator = layout.with_center(state.denominator, state.numerator, more.center - seen.center)
            state = replace(state, numerator=numerator)
        return seen._replace(rows=seen.rows + more.rows, state=merge(seen.state, state))

    def plan(self) -> ChunkReason:
        """Return the algorithm by which updates are summed, and the reason for it.

        Returns
        -------
        ChunkReason
            With ``algorithm`` and ``reason``.

        Examples
        --------
        >>> from kernpool import RunningPool
        >>> RunningPool([0.0]).plan().reason
        'chunk by chunk, each by the algorithm that suits it; their states are merged'
        """
        return reason_of_chunks(self._asked.recipe)

    @underflow_is_zero
    def values(self) -> NDArray[np.floating[Any]]:
        """Return the pooled values over all pairs seen so far.

        Returns
        -------
        ndarray of shape (m,) or (m, c)
            As `kernpool.pool` of all pairs at once.

        Raises
        ------
        ValueError
            If nothing has been seen; or a window is empty, and `empty` is "raise".
        """
        _, flat, state, center = self._seen
        if state is None or center is None:
            raise ValueError("nothing has been pooled yet; call update(key, value) first")
        return finalize(self._asked.sums(state, center, flat), replace(self._asked.recipe, empty=self.empty))
