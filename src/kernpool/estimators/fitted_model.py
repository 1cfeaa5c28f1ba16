"""Fitted models at new rows: reading of queries, predictions, and results in the shapes that a model predicts in.

The fitted model itself is `smoother_`, made once at the end of `fit` by `smoother_of_fit`. `read_query` turns X into
columns, `pooled_from` sums into predictions.
"""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from kernpool._arrays import AnyArray, Array, Codes
from kernpool.bandwidth import TrainingRows
from kernpool.bandwidth.search import Found
from kernpool.core import Categories, Exclusion, Geometry, Keys
from kernpool.data import Chunks, refuse_other_labels
from kernpool.estimators.model import FittedModel
from kernpool.inference.model_summary import ColumnSummary
from kernpool.pooling import Recipe, Sums, finalize
from kernpool.smoother import EvaluationPoints, Smoother, StoredModel


def smoother_of_fit(model: FittedModel) -> Smoother | StoredModel:
    """Build the smoother that a fit leaves, from the attributes that it has found."""
    encoding, source, ridge = model.encoding_, model.source_, getattr(model, "ridge_", 0.0)
    if source is not None:
        recipe = Recipe.of(
            model.kernel,
            model.bandwidth_,
            degree=model._degree,
            empty=model.empty,
            n_jobs=model.n_jobs,
            ridge=ridge,
            warns_of_nearest=True,
        )
        return StoredModel(source, recipe, (model.search or {}).get("random_state", 0))
    key, geometry = encoding.pooled(model.key_), Geometry(encoding.sizes)
    rows = TrainingRows.from_arrays(key, model.value_, model.key_weight_, model.key_code_, model.exclusion_, geometry)
    bandwidth, smoothing = encoding.distinct(model.bandwidth_), np.asarray(model.smoothing_, dtype=np.float64)
    found = Found(bandwidth, smoothing, ridge, window=model.window_, reweighting=model.reweighting_)
    return smoother_of_rows(model, found, rows, model._categories())


def smoother_of_rows(model: FittedModel, found: Found, rows: TrainingRows, categories: Categories) -> Smoother:
    """Build the smoother of some rows, with what `choose_bandwidth` found for them."""
    weight = None if np.all(rows.weight == 1.0) else rows.weight
    recipe = Recipe.of(
        model.kernel,
        rows.geometry.per_column(found.bandwidth),
        degree=model._degree,
        empty=model.empty,
        n_jobs=model.n_jobs,
        ridge=found.ridge or 0.0,
        warns_of_nearest=True,
        geometry=rows.geometry,
    )
    return Smoother(
        Keys.read(rows.X, rows.value, weight),
        recipe,
        rows.code if categories.kernels else None,
        categories,
        found.smoothing,
        window=found.window,
        exclusion=rows.exclusion,
        reweighting=found.reweighting,
    )


def windows_of(model: FittedModel, places: FittedModel, ridge: str = "") -> dict[str, Any]:
    """Return the entries of a summary about windows: kernel, how bandwidths were found, those of each column, rows.

    `places` is the part of the model that has the windows, or the model itself; `ridge` is a phrase about that.
    """
    smoother, name = places.smoother_, model.bandwidth
    assert isinstance(smoother, Smoother)
    chosen = (f"bandwidth by {name!r}" if isinstance(name, str) else "bandwidth as given") + ridge
    if not isinstance(smoother.window, str) and not smoother.left_out_points(smoother.exclusion).is_uniform:
        chosen += f", windows {smoother.window.words}"
    return {
        "rows": smoother.rows, "left_out": smoother.units.name, "kernel": smoother.recipe.kernel.name,
        "chosen": chosen, "columns": printed_columns(places),
    }  # fmt: skip


def read_query(model: FittedModel, X: ArrayLike, *, warn: bool = True) -> tuple[Array, Codes]:
    """Convert queries to numeric columns, before any transformation, and category codes, as the fit encoded X.

    There is no warning of extrapolation, with `warn` false, where the same queries are read again, or are calibration
    rows, and where the answer is about how far away they are.
    """
    if isinstance(X, Chunks | str | Path):
        raise TypeError(
            f"X must be rows in memory, got {type(X).__name__}; pass one part of the rows after the other, such "
            "as each batch of pyarrow.parquet.ParquetFile.iter_batches"
        )
    numeric, code = model.encoding_.encode(X, model.unseen)
    if warn:
        model._extent.warn(numeric)
    return numeric, code


def exclusion_of_groups(model: FittedModel, groups: Any) -> Exclusion:
    """Return which training rows are left out together, from the label of the cluster of each."""
    refuse_other_labels(model=model, groups=groups)
    return Exclusion.of_groups(groups, len(model.key_))


def output_shape(model: FittedModel) -> tuple[int, ...]:
    """Return the shape of the outputs of one row: (c,), or () if y had one dimension."""
    source = model.source_
    return model.value_.shape[1:] if source is None else () if source.flat else (source.outputs,)


def pooled_from(model: FittedModel, query: Array, sums: Sums) -> AnyArray:
    """Compute predictions from their sums, in the shape and type of the outputs."""
    smoother = model.smoother_
    pooled = finalize(sums, smoother.recipe, model._report_rank)
    if isinstance(smoother, StoredModel):
        return pooled
    if smoother.reweighting is not None and smoother.recipe.kernel.is_compact:
        smoother.reweighting.warn_of_outliers(sums.state)
    dtype = np.result_type(query, model.key_, model.value_)
    return pooled.reshape(len(pooled), *model.value_.shape[1:]).astype(dtype, copy=False)


def points_of(model: FittedModel, numeric: Array, code: Codes | None) -> EvaluationPoints:
    """Return queries, as `read_query` returns them, as evaluation points of the fitted model."""
    return model.smoother_.points(np.asarray(model.encoding_.pooled(numeric), dtype=np.float64), code)


def places_of(model: FittedModel, X: ArrayLike, *, warn: bool = True) -> EvaluationPoints:
    """Convert X to evaluation points, as pooled columns; warn of extrapolation if `warn`."""
    return points_of(model, *read_query(model, X, warn=warn))


def shaped(model: FittedModel, query: Array, values: Array) -> Array:
    """Return values of a fit (m, c), or slopes by pooled columns (m, pooled columns, c), in the shape of predictions.

    Slopes become those per unit of the columns of X at `query`, the numeric columns of the rows before any
    transformation. The axis of outputs is dropped if y had one dimension.
    """
    if values.ndim == 3:
        values = model.encoding_.to_table(query, values)
    return values if output_shape(model) else values[..., 0]


def printed_columns(model: FittedModel) -> tuple[ColumnSummary, ...]:
    """Return name, bandwidth (smoothing if categorical) and relevance of each column, in table order, for summaries."""
    encoding, relevance = model.encoding_, getattr(model, "relevance_", None)
    names = [str(i) for i in range(len(encoding.kinds))] if encoding.names is None else encoding.names
    widths = dict(zip(encoding.numeric, model.bandwidth_, strict=False))
    widths |= dict(zip(encoding.categorical, model.smoothing_, strict=False))
    units = dict.fromkeys(encoding.dates, "days")
    units |= {encoding.numeric[a]: "km" for one in encoding.options if one.unit for a in one.columns}
    return tuple(
        ColumnSummary(
            name,
            float(widths[i]),
            i in encoding.categorical,
            None if relevance is None else float(relevance[i]),
            units.get(i, ""),
        )
        for i, name in enumerate(names)
    )
