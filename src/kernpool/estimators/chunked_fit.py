"""Estimators on chunks: the model keeps where its rows are, not the rows, and finds its bandwidth on some of them.

A number as bandwidth needs no pass over the rows at all; a name needs one, which draws a sample. The sample depends on
the rows, their order and `random_state`, not on how the rows are cut into chunks.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from kernpool.bandwidth.categories import NO_CATEGORIES
from kernpool.bandwidth.rate import rate_factor
from kernpool.chunk_sources import open_chunks
from kernpool.chunked import pool_chunks
from kernpool.chunks import Chunks
from kernpool.progress import Progress, current_progress
from kernpool.tables import TableError

Array = NDArray[np.float64]

DEFAULT_SEARCH_ROWS = 10_000


class Sample(NamedTuple):
    """Rows drawn from chunks.

    Parameters
    ----------
    key, value, weight : ndarray
        The rows, in their order.
    rows : int
        How many rows of positive weight there are in all.
    """

    key: Array
    value: Array
    weight: Array
    rows: int


def as_chunks(X: Any, y: Any, sample_weight: Any) -> Chunks | None:
    """Return the chunks that arguments of ``fit`` stand for, None if they are rows in memory.

    Parameters
    ----------
    X : object
        Chunks, or the path of a file or a folder, or a stream of Arrow.
    y : str, sequence of str or None
        Names of the target; None for chunks, which bring their values.
    sample_weight : str or None
        Name of the column of weights.

    Returns
    -------
    Chunks or None
        To be gone through more than once.

    Raises
    ------
    TypeError
        If the target is not named, or weights are not a column.
    ValueError
        If the chunks can be gone through only once.
    """
    named = isinstance(y, str)
    if not (named or isinstance(X, Chunks | str | Path)):
        return None
    if isinstance(X, Chunks):
        if y is not None or sample_weight is not None:
            raise TypeError("chunks bring their values and weights: leave y and sample_weight out")
        chunks = X
    else:
        if not named and not (isinstance(y, list | tuple) and all(isinstance(name, str) for name in y)):
            raise TypeError(f"y must name the column of {X} that is the target, got {type(y).__name__}")
        if sample_weight is not None and not isinstance(sample_weight, str):
            raise TypeError(f"sample_weight must name a column of weights, got {type(sample_weight).__name__}")
        if not isinstance(X, str | Path) and not hasattr(X, "__arrow_c_stream__"):
            raise TypeError(
                f"y={y!r} names a column, so X must be a file, a folder or a stream of Arrow, got {type(X).__name__}"
            )
        chunks = open_chunks(X, target=y, weight=sample_weight)
    if not chunks.again:
        raise ValueError(
            "the rows are read again by predict, which an iterator does not allow; give a list, a file or arrays"
        )
    return chunks


def fit_chunks(model: Any, chunks: Chunks) -> None:
    """Fit an estimator to chunks: `chunks_`, `reference_`, `bandwidth_` and `bandwidth_note_`.

    Parameters
    ----------
    model : KernelRegressor
        With valid or invalid parameters.
    chunks : Chunks
        The rows.
    """
    kernel = model._check_parameters()
    for name in ("unordered", "ordered"):
        if getattr(model, name) is not None:
            raise TypeError(f"{name} must be None for rows in chunks: they have numeric columns only")
    reference = chunks.reference()  # before the pass: a file that changes meanwhile is not the one that is read
    if isinstance(model.bandwidth, str):
        size = model.max_search_rows or DEFAULT_SEARCH_ROWS
        sample = draw_sample(chunks, size, model.random_state, current_progress())
        value = sample.value[:, 0] if chunks.flat else sample.value
        weight = None if np.all(sample.weight == 1.0) else sample.weight
        found = model._find_bandwidth(kernel, sample.key, _no_codes(sample.key), NO_CATEGORIES, value, weight)
        found |= _for_all_rows(found, sample, model.bandwidth, model.random_state)
        columns = sample.key.shape[1]
    else:
        first = next(iter(chunks), None)
        if first is None:
            raise ValueError("there are no rows: the source is empty")
        found = model._find_bandwidth(kernel, first.key, _no_codes(first.key), NO_CATEGORIES, first.value, None)
        found["bandwidth_note_"] = "as given"
        columns = first.key.shape[1]
    model._replace_fit(found | {"chunks_": chunks, "reference_": reference, "encoding_": None})
    model.n_features_in_ = columns
    vars(model).pop("feature_names_in_", None)
    if chunks.labels is not None:
        model.feature_names_in_ = np.array(chunks.labels, dtype=object)


def predict_chunks(model: Any, query: Array) -> Array:
    """Pool all chunks at some queries, if they are still those of the fit; parameters as in `pool_chunks`."""
    if model.reference_ is not None and model.chunks_.reference() != model.reference_:
        raise TableError(
            f"{model.reference_['path']} has changed since the model was fitted to it; put the data back, or fit again"
        )
    return pool_chunks(
        query,
        model.chunks_,
        kernel=model.kernel,
        bandwidth=model.bandwidth_,
        composition=model.composition,
        degree=model._degree,
        tol=model.tol,
        algorithm=model.algorithm,
        empty=model.empty,
        n_jobs=model.n_jobs,
        progress=current_progress(),
    )


def draw_sample(chunks: Chunks, size: int, random_state: Any = 0, progress: Progress | None = None) -> Sample:
    """Draw rows in one pass, each set of so many rows as probable as any other.

    Parameters
    ----------
    chunks : Chunks
        What to draw from; rows of weight zero are none.
    size : int
        How many; all if there are no more.
    random_state : int, RandomState or None, default=0
        Seed.
    progress : callable, optional
        Called as ``progress(rows_done, rows_total)``, if the total is known.

    Returns
    -------
    Sample
        The same for any cutting of the rows into chunks.

    Raises
    ------
    ValueError
        If there are no rows.

    Notes
    -----
    Every row gets a uniform number, and the rows of the smallest numbers stay: O(n) time, O(size) memory beside the
    chunk, and nothing has to be known beforehand.

    Examples
    --------
    >>> from kernpool import open_chunks
    >>> sample = draw_sample(open_chunks([([0.0, 1.0], [5.0, 6.0]), ([2.0], [7.0])]), 2)
    >>> len(sample.key), sample.rows
    (2, 3)
    """
    generator = np.random.default_rng(check_random_state(random_state).randint(np.iinfo(np.int32).max))
    lot, rows, seen = np.empty(0), 0, 0
    kept: list[Array] | None = None  # keys, values, weights
    for chunk in chunks:
        lots = generator.random(len(chunk.key))
        weight = np.ones(len(lots)) if chunk.weight is None else chunk.weight
        if (weight < 0).any():
            raise TableError(f"weights must not be negative, got {weight.min()}; they are read as frequencies")
        rows += int(np.count_nonzero(weight > 0))
        limit = lot.max() if len(lot) == size else 1.0
        taken = np.flatnonzero((lots < limit) & (weight > 0))
        taken = taken[_smallest(lots[taken], size)]
        part = [column[taken] for column in (chunk.key, chunk.value, weight)]
        if kept is not None:
            part = [np.concatenate(both) for both in zip(kept, part, strict=True)]
        lot = np.concatenate([lot, lots[taken]])
        stay = _smallest(lot, size)
        lot, kept = lot[stay], [column[stay] for column in part]
        seen += len(chunk.key)
        if progress is not None and chunks.rows is not None:
            progress(seen, chunks.rows)
    if kept is None or not rows:
        raise ValueError("there are no rows of positive weight: the source is empty")
    key, value, weight = kept
    return Sample(key, value, weight, rows)


def _smallest(lots: Array, size: int) -> NDArray[np.intp]:
    """Return where the smallest numbers are, in the order of their places."""
    return np.arange(len(lots)) if len(lots) <= size else np.sort(np.argpartition(lots, size)[:size])


def _for_all_rows(found: dict[str, Any], sample: Sample, name: str, random_state: Any) -> dict[str, Any]:
    """Return the bandwidth of all rows from that of the sample, and what to say of it."""
    few, many, bandwidth = len(sample.key), sample.rows, found["bandwidth_"]
    if few == many:
        return {"bandwidth_note_": f"{name!r} on all {many} rows"}
    relevance = found.get("relevance_")
    matters = np.ones(len(bandwidth), dtype=bool) if relevance is None else relevance > 0
    d = int(np.count_nonzero(matters))
    factor = rate_factor(few, many, d)
    seed = f"random_state={random_state}" if isinstance(random_state, int | np.integer) else "drawn at random"
    note = (
        f"{name!r} on a sample of {few} of {many} rows ({seed}), then times {factor:.6g}: "
        f"with d = {d} the best bandwidth shrinks as rows^(-1/(4 + d))"
    )
    return {"bandwidth_": np.where(matters, bandwidth * factor, bandwidth), "bandwidth_note_": note}


def _no_codes(key: Array) -> NDArray[np.int64]:
    return np.zeros((len(key), 0), dtype=np.int64)
