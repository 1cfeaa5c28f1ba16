r"""Pooling over chunks: each makes a state, and the states are merged.

What is done with a chunk does not depend on where it lies: `Pooling` is the same on a disk and on a cluster. Local
linear fits are of values less a centre that all chunks share, since slopes of large values with small differences would
lose their digits; weighted means have none, and are right relative to themselves.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kernpool.core.local_fit import report_rank, solve
from kernpool.core.moments import Layout, check_degree
from kernpool.core.problem import Problem
from kernpool.core.state import Empty, PoolState, check_empty, empty_state, merge
from kernpool.data.checks import as_real_array
from kernpool.data.chunks.base import Chunk, Chunks
from kernpool.data.columns import labels_of, order_of_columns
from kernpool.execution.progress import Progress
from kernpool.kernels import Kernel
from kernpool.pooling.empty import limit_problem
from kernpool.pooling.line_chunks import are_on_a_line, sum_on_a_line
from kernpool.pooling.plan import choose

Array = NDArray[np.float64]

SAME_DISTANCE = 16 * float(np.finfo(np.float64).eps)


@dataclass(frozen=True)
class Pooling:
    """Queries, and how to pool at them: all that a chunk has to be told.

    Parameters
    ----------
    query : ndarray of shape (m, d)
        Where to pool.
    degree : {0, 1}
        Local constant or local linear.
    algorithm : str
        As in `pool`.
    n_jobs : int or None
        Threads.
    similarity : dict
        Kernel, bandwidth, composition and tol, as in `pool`.
    limit : {None, "nearest", "mean"}
        To pool in the limit of a vanishing or of an infinite bandwidth instead, for windows that are empty.
    """

    query: Array
    degree: int = 0
    algorithm: str = "auto"
    n_jobs: int | None = None
    similarity: dict[str, Any] = field(default_factory=dict)
    limit: str | None = None

    def state(self, chunk: Chunk, center: Array, progress: Progress | None = None) -> PoolState:
        """Sum a chunk.

        Parameters
        ----------
        chunk : Chunk
            Pairs; none at all, or none of any weight, make the state of no keys.
        center : ndarray of shape (c,)
            What is taken off the values of local linear fits.
        progress : callable or None
            As in `pool`.

        Returns
        -------
        PoolState
            Sums of weights and of weighted values.
        """
        layout = Layout(chunk.value.shape[1], chunk.key.shape[1], self.degree)
        if not len(chunk.key) or (chunk.weight is not None and not chunk.weight.any()):
            return empty_state(len(self.query), layout.width)
        problem = Problem.from_arrays(
            self.query, chunk.key, chunk.value, key_weight=chunk.weight, degree=self.degree, **self.similarity
        )
        if self.degree:
            problem = replace(problem, value_center=problem.value_center - center)
        if self.limit is not None:
            problem = limit_problem(problem, self.limit)
        return choose(problem, self.algorithm).reduce(problem, n_jobs=self.n_jobs, progress=progress)

    def finish(
        self,
        state: PoolState,
        center: Array,
        empty: Empty,
        fill: Callable[[NDArray[np.intp]], Array] | None = None,
    ) -> Array:
        """Turn the state of all chunks into pooled values; parameters as in `PoolState.finalize`."""
        if not self.degree:
            return state.finalize(empty, fill)
        fit = solve(state, Layout(len(center), self.query.shape[1], 1))
        report_rank(fit.rank, fit.occupied, fit.tilt.shape[1])
        values = np.where(fit.occupied[:, None], fit.intercept + center, 0.0)
        return PoolState(np.zeros(len(values)), fit.occupied.astype(float), values).finalize(empty, fill)

    def at(self, rows: NDArray[np.intp], limit: str) -> Pooling:
        """Return how to fill the empty windows of some queries: "nearest" or "mean"."""
        return replace(self, query=self.query[rows], degree=0, limit=limit)


def pool_chunks(
    query: ArrayLike,
    chunks: Chunks,
    *,
    kernel: str | Kernel = "gaussian",
    bandwidth: ArrayLike = 1.0,
    composition: str = "radial",
    degree: int = 0,
    tol: float | None = None,
    algorithm: str = "auto",
    empty: Empty = "nan",
    n_jobs: int | None = None,
    progress: Progress | None = None,
) -> Array:
    """Pool pairs that come in chunks, one after the other; `pool` does this when it is given chunks.

    Parameters
    ----------
    query : array_like of shape (m,) or (m, d)
        Where to pool; all queries are held in memory, with a few numbers each.
    chunks : Chunks
        From `open_chunks`.
    kernel, bandwidth, composition, degree, tol, algorithm, empty, n_jobs
        As in `pool`.
    progress : callable, optional
        Called as ``progress(pairs_done, pairs_total)`` after every chunk, if it is known how many there are.

    Returns
    -------
    ndarray of shape (m,) or (m, c)
        Pooled values.

    Raises
    ------
    ValueError
        If there are no pairs; or windows are empty, and `empty` needs the pairs again, which an iterator does not give.

    Notes
    -----
    Time is that of pooling every chunk. Memory is O(m) and that of a chunk, however many there are.

    Examples
    --------
    >>> from kernpool.data.chunks.base import IteratedChunks
    >>> pool_chunks([1.0], IteratedChunks([([0.0, 1.0], [1.0, 2.0]), ([2.0], [3.0])]))
    array([2.])
    """
    check_empty(empty)
    check_degree(degree)
    rows = np.asarray(as_real_array("query", query), dtype=np.float64)
    rows = rows[:, None] if rows.ndim == 1 else rows
    if rows.ndim != 2 or not rows.size:
        raise ValueError(f"query must have shape (queries,) or (queries, columns) here, got {np.shape(query)}")
    order = order_of_columns(labels_of(query), chunks.labels)
    rows = rows if order is None else np.ascontiguousarray(rows[:, order])
    similarity = {"kernel": kernel, "bandwidth": bandwidth, "composition": composition, "tol": tol}
    pooling = Pooling(rows, degree, algorithm, n_jobs, similarity)
    state, center = reduce_chunks(pooling, chunks, progress)

    def fill(rows: NDArray[np.intp]) -> Array:
        if not chunks.again:
            raise ValueError(
                f"empty={empty!r} goes through the pairs once more, which an iterator does not allow; give a list, an "
                "array or a file, or use empty='nan' or 'zero'"
            )
        filled, _ = reduce_chunks(pooling.at(rows, empty), chunks, center=center)
        with np.errstate(invalid="ignore"):  # 0 / 0 where no key takes part at all
            return filled.numerator / filled.denominator[:, None]

    pooled = pooling.finish(state, center, empty, fill)
    return pooled[:, 0] if chunks.flat else pooled


def reduce_chunks(
    pooling: Pooling, chunks: Chunks, progress: Progress | None = None, center: Array | None = None
) -> tuple[PoolState, Array]:
    """Merge the states of all chunks, in order, and return the centre that values were taken from as well."""
    if pooling.limit is None and are_on_a_line(pooling.query, pooling.degree, pooling.algorithm, chunks):
        found = sum_on_a_line(pooling.query, chunks, pooling.similarity, pooling.n_jobs, progress)
        if found is not None:
            state, center, undone = found
            if len(undone):
                rest, _ = _merge_all(replace(pooling, query=pooling.query[undone]), chunks, None, center)
                state.shift[undone], state.denominator[undone] = rest.shift, rest.denominator
                state.numerator[undone] = rest.numerator
            return state, center
    return _merge_all(pooling, chunks, progress, center)


def _merge_all(
    pooling: Pooling, chunks: Chunks, progress: Progress | None, center: Array | None
) -> tuple[PoolState, Array]:
    state, done = None, 0
    for chunk in chunks:
        center = center_of(chunk) if center is None else center
        if center is not None:
            part = pooling.state(chunk, center)
            state = part if state is None else merge_states(state, part, pooling.limit)
        done += len(chunk.key)
        if progress is not None and chunks.rows is not None:
            progress(done, chunks.rows)
    if state is None or center is None:
        raise ValueError("there are no pairs of positive weight: the source is empty, or its weights are all zero")
    return state, center


def merge_states(a: PoolState, b: PoolState, limit: str | None) -> PoolState:
    """Merge states of chunks.

    In the limit "nearest" shifts are squared distances in tiny bandwidths, which algorithms round differently. Then the
    last digit of 1e16 would decide between keys that are equally far; they weigh the same.

    Parameters
    ----------
    a, b : PoolState
        As for `merge`.
    limit : {None, "nearest", "mean"}
        As of `Pooling`.

    Returns
    -------
    PoolState
        The state of both.
    """
    if limit == "nearest":
        both = np.isfinite(a.shift) & np.isfinite(b.shift)
        apart = np.abs(np.subtract(a.shift, b.shift, where=both, out=np.full(a.shift.shape, np.inf)))
        tied = both & (apart <= SAME_DISTANCE * np.abs(a.shift))
        a = replace(a, shift=np.where(tied, b.shift, a.shift))
    return merge(a, b)


def center_of(chunk: Chunk) -> Array | None:
    """Return a median of the values of a chunk, of every k-th if there are many, to be the centre of all chunks.

    Parameters
    ----------
    chunk : Chunk
        The first, usually.

    Returns
    -------
    ndarray of shape (c,) or None
        None if there is no pair of positive weight, so that another chunk has to be asked.
    """
    value = chunk.value if chunk.weight is None else chunk.value[chunk.weight > 0]
    return np.median(value[:: 1 + (len(value) >> 14)], axis=0) if len(value) else None
