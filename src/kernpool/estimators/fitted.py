"""A fitted model at new rows: its parameters as a recipe, its rows as pairs, X as queries."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from kernpool.core.keys import Keys, Prepared
from kernpool.core.local_fit import LocalFit
from kernpool.core.problem import Problem
from kernpool.data.chunks.base import Chunks
from kernpool.data.chunks.opening import open_chunks
from kernpool.data.frames import Encoding
from kernpool.data.tables import TableError
from kernpool.estimators.extrapolation import (
    Reach,
    joined_ranges,
    limits_of,
    may_extrapolate,
    range_of,
    reach_of_range,
    reach_of_rows,
    warn_of_extrapolation,
    window_of,
)
from kernpool.estimators.rows import as_table, read_inputs
from kernpool.estimators.scale import Scale, ranked_columns
from kernpool.execution.progress import current_progress
from kernpool.pooling.arrays import KeyPairs, local_fit
from kernpool.pooling.chunked import ChunkPairs
from kernpool.pooling.recipe import Recipe
from kernpool.pooling.settle import ReportRank, settle

Array = NDArray[np.float64]
Codes = NDArray[np.int64]


def recipe_of(model: Any) -> Recipe:
    """Return how a fitted model pools; refuse a named algorithm that cannot, whatever is asked of the model."""
    recipe = Recipe.of(
        model.kernel,
        model.bandwidth_,
        composition=model.composition,
        degree=model._degree,
        tol=model.tol,
        algorithm=model.algorithm,
        empty=model.empty,
        n_jobs=model.n_jobs,
        ridge=vars(model).get("ridge_", 0.0),
        warns_of_nearest=True,
    )
    recipe.refuse_unable(len(model.bandwidth_))
    return recipe


def refuse_unable(model: Any, columns: int) -> None:
    """Refuse to fit so many numeric columns with a named algorithm that cannot pool them."""
    if model.algorithm == "auto":
        return
    options = {"composition": model.composition, "degree": model._degree, "algorithm": model.algorithm}
    Recipe.of(model.kernel, np.ones(columns), **options).refuse_unable(columns)


def numeric_query(model: Any, X: ArrayLike, *, warn: bool = True) -> Array:
    """Read queries of a fitted model without categorical columns; `warn` as of `read_query`."""
    return read_query(model, X, warn=warn)[0]


def _refuse_parts(X: Any) -> None:
    if isinstance(X, Chunks | str | Path):
        raise TypeError(
            f"X must be rows in memory, got {type(X).__name__}; ask about one part of the rows after the other, such "
            "as each batch of pyarrow.parquet.ParquetFile.iter_batches"
        )


def read_query(model: Any, X: ArrayLike, *, warn: bool = True) -> tuple[Array, Codes | None]:
    """Read queries of a fitted model, numbers in the units of X and level numbers.

    Parameters
    ----------
    model : estimator
        Fitted.
    X : array_like of shape (m, d)
        Queries.
    warn : bool, default=True
        Whether to warn of extrapolation. False where a call reads the same queries again, where they are calibration
        rows, and where the answer is about how far away they are.
    """
    _refuse_parts(X)
    table, encoding = as_table(X, vars(model).get("n_features_in_")), vars(model).get("encoding_")
    numeric, code = read_inputs(model, table, encoding, reset=False, unseen=vars(model).get("unseen", "raise"))
    if warn:
        _warn_of_extrapolation(model, numeric)
    return numeric, None if encoding is None else code


def _warn_of_extrapolation(model: Any, query: Array) -> None:
    """Warn of queries, in the units of X, that are beyond the training rows; see `ExtrapolationWarning`."""
    if not may_extrapolate(model):
        return
    h, names, prepared = model.bandwidth_, vars(model).get("feature_names_in_"), _prepared(model)
    encoding = model.encoding_
    kinds = None if encoding is None else [encoding.kinds[place] for place in encoding.numeric] or ["numeric"]
    if "chunks_" in vars(model):
        check_unchanged(model)
        low, high = _range_of_chunks(model)
        reach = reach_of_range(low, high, *window_of(model))
        warn_of_extrapolation(reach, query, low, high, names, kinds=kinds)
        return
    key, weight = scaled_keys(model), model.key_weight_
    reach, low, high = prepared.get("reach", (key, weight, h), lambda: _reach_of_rows(model, key, weight))
    if encoding is not None and encoding.names is not None:
        names = [encoding.names[place] for place in encoding.numeric] or [""]
    warn_of_extrapolation(reach, scale_of(model).apply(query), low, high, names, query, kinds)


def _reach_of_rows(model: Any, key: Array, weight: Array | None) -> tuple[Reach, Array, Array]:
    """Return how far queries may be, and the range of the training rows in the units of X."""
    counted = model.key_ if weight is None else model.key_[weight > 0]
    return reach_of_rows(key, weight, *window_of(model)), *range_of(counted)


def _range_of_chunks(model: Any) -> Array:
    """Return the range of each column of rows in chunks: known from the fit, or found by a pass over the rows."""
    known: Array | None = vars(model).get("key_range_")
    if known is not None:
        return known
    chunks = model.chunks_
    return _prepared(model).get("range", (chunks,), lambda: joined_ranges([range_of(rows.key) for rows in chunks]))


def _prepared(model: Any) -> Prepared:
    prepared: Prepared = vars(model).setdefault("_prepared", Prepared())
    return prepared


def new_scale(model: Any, key: NDArray[Any], weight: Array | None, encoding: Encoding | None) -> Scale:
    """Return the units that a model compares such numeric columns in."""
    if encoding is None:
        ranked = ranked_columns(model.scale, key.shape[1], vars(model).get("feature_names_in_"))
    else:  # levels alone have one column of zeros
        ranked = ranked_columns(model.scale, len(encoding.kinds), encoding.names, encoding.numeric) or [False]
    return Scale.fit(key, weight, ranked)


def scale_of(model: Any) -> Scale:
    """Return the units that a model compares numeric columns in."""
    return _scale_and_keys(model)[0]


def scaled_keys(model: Any) -> NDArray[Any]:
    """Return the numeric columns of the training rows in the units in which they are compared."""
    return _scale_and_keys(model)[1]


def _scale_and_keys(model: Any) -> tuple[Scale, NDArray[Any]]:
    def make() -> tuple[Scale, NDArray[Any]]:
        scale = new_scale(model, model.key_, model.key_weight_, model.encoding_)
        return scale, scale.apply(model.key_)

    return _prepared(model).get("scale", (model.key_, model.key_weight_, repr(model.scale)), make)


def pairs_of(model: Any, code: Codes | None = None, *, exclude_self: bool = False) -> KeyPairs:
    """Return the training rows as pairs, for queries with these level numbers; rows are read once per fit."""
    rows = scaled_keys(model), model.value_, model.key_weight_
    keys = model._prepared.get("keys", rows, lambda: Keys.read(*rows))
    factors = None
    if model.encoding_ is not None and code is not None:
        factors = model._categories().factors(code, model.key_code_, model.smoothing_)
    return KeyPairs(keys, factors, exclude_self)


def problem_of(model: Any, X: ArrayLike | None, *, exclude_self: bool = False, warn: bool = True) -> Problem:
    """Return the problem of queries (for None the training rows themselves) and training rows."""
    check_is_fitted(model)
    if X is None:
        query, code = scaled_keys(model), model.key_code_
    else:
        given, code = read_query(model, X, warn=warn)
        query = scale_of(model).apply(given)
    return pairs_of(model, code, exclude_self=exclude_self).problem(recipe_of(model), query)


def left_out_problem(model: Any) -> Problem:
    """Return the problem of the training rows, each without itself, or without its group if the fit had groups."""
    group = vars(model).get("key_group_")
    problem = problem_of(model, None, exclude_self=group is None)
    return problem if group is None else problem.with_groups(group, group)


def per_unit(model: Any, X: ArrayLike, slopes: Array) -> Array:
    """Return slopes of shape (m, d, c) per unit of the columns of X, from those in the units of comparison."""
    scale = scale_of(model)
    return slopes * scale.slope(read_query(model, X, warn=False)[0])[:, :, None] if any(scale.ranked) else slopes


def fit_of(model: Any, problem: Problem) -> LocalFit:
    """Fit around each query, with planes as the search for the bandwidth has them: constant where sums lose them."""
    return local_fit(
        problem,
        model.algorithm,
        model.n_jobs,
        current_progress(),
        complete=False,
        ridge=recipe_of(model).ridge_weight(problem.key.shape[1]),
    )


def pool_at(
    model: Any, X: ArrayLike, report_rank: ReportRank, pairs_of_chunks: Callable[[Chunks], Any] | None = None
) -> NDArray[Any]:
    """Pool the outputs of the training rows at new ones.

    Parameters
    ----------
    model : KernelSmoother
        Fitted to arrays or to chunks.
    X : array_like of shape (m, d)
        Queries.
    report_rank : callable
        Hears of planes that are not determined.
    pairs_of_chunks : callable, optional
        Sums training rows, all of them as chunks, somewhere else, such as on a cluster; of models without categorical
        columns. By default they are summed in this process.

    Returns
    -------
    ndarray of shape (m,) or (m, c)
        As the outputs were given.
    """
    check_is_fitted(model)
    recipe, progress = recipe_of(model), current_progress()
    if "chunks_" in vars(model):
        query = numeric_query(model, X)
        check_unchanged(model)
        sums = (pairs_of_chunks or ChunkPairs)(model.chunks_).reduce(recipe, query, progress)
        return settle(recipe, sums, report_rank, limits_of(model))
    query, code = read_query(model, X)
    if pairs_of_chunks is None:
        pairs: Any = pairs_of(model, code)
    else:
        pairs = pairs_of_chunks(open_chunks(scaled_keys(model), model.value_, model.key_weight_))
    sums = pairs.reduce(recipe, scale_of(model).apply(query), progress)
    pooled = settle(recipe, sums, report_rank, limits_of(model))
    dtype = np.result_type(query, model.key_, model.value_)
    return pooled.reshape(len(pooled), *model.value_.shape[1:]).astype(dtype, copy=False)


def check_unchanged(model: Any) -> None:
    """Refuse a model whose rows lie in files that have changed since the fit."""
    if model.reference_ is not None and model.chunks_.reference() != model.reference_:
        raise TableError(
            f"{model.reference_['path']} has changed since the model was fitted to it; put the data back, or fit again"
        )
