"""Fitted models at new rows: pooling settings, reading of queries, prediction, and the model as a linear smoother.

`recipe_of` turns parameters into a recipe, `read_query` X into queries, `pairs_of` the training rows into pairs,
and `pool_at` predicts. `smoother_of` gives inference the same rows as a linear smoother; results come back in the
shapes that the model predicts in.
"""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from kernpool.bandwidth import LeaveOneOut, TrainingRows, leave_one_out
from kernpool.core import Categories, Keys, PoolState, Problem
from kernpool.core.dependent_columns import dependent_columns
from kernpool.core.local_fit import RankDeficiencyWarning
from kernpool.core.robust_weights import RESERVE, Robustness
from kernpool.data.chunks.base import Chunks
from kernpool.data.chunks.sampling import range_of
from kernpool.data.chunks.sources import open_chunks
from kernpool.data.circular import Closed, Coordinates, Cuts, Globe, closed_columns
from kernpool.data.encoding import Encoding
from kernpool.estimators.bandwidth import search_options, seed_of
from kernpool.estimators.extrapolation import (
    Ranges,
    Reach,
    may_extrapolate,
    reach_of_range,
    reach_of_rows,
    warn_of_extrapolation,
    window_of,
)
from kernpool.estimators.model import (
    FittedModel,
    follows_rows,
    names_of,
    order_of,
    pooled_weight,
    refuse_robust,
    robust_weight_of,
    source_of,
)
from kernpool.estimators.training_rows import as_table, read_inputs
from kernpool.execution.progress import current_progress
from kernpool.execution.warnings import warn_caller
from kernpool.inference import Clusters, Training, fit_clusters, fit_training, number_clusters
from kernpool.inference.model_summary import ColumnSummary
from kernpool.kernels import get_kernel
from kernpool.pooling import KeyPairs, Recipe, ReportRank, StoredPairs, Sums, finalize
from kernpool.smoother import EvaluationPoints, Smoother, StoredSmoother

Array = NDArray[np.float64]
Codes = NDArray[np.int64]


def recipe_of(model: FittedModel) -> Recipe:
    """Return the pooling settings of a fitted model; raise if its `algorithm` does not support them."""
    coordinates = coordinates_of(model)
    return _recipe(model, coordinates.pooled(model.bandwidth_), coordinates.tied)


def _recipe(model: FittedModel, bandwidth: Array, tied: NDArray[np.intp] | None) -> Recipe:
    recipe = Recipe.of(
        model.kernel,
        bandwidth,
        composition=model.composition,
        degree=model._degree,
        algorithm=model.algorithm,
        empty=model.empty,
        n_jobs=model.n_jobs,
        ridge=vars(model).get("ridge_", 0.0),
        warns_of_nearest=True,
        tied=tied,
    )
    replace(recipe, n_neighbors=neighbors_of(model)).refuse_unable(len(bandwidth))
    return recipe


def recipe_at(model: FittedModel, query: Array, code: Codes | None) -> Recipe:
    """Return the pooling settings at queries, as `read_query` returns them, in windows of enough effective rows."""
    recipe = recipe_of(model)
    if not widens(model):
        return recipe
    return replace(recipe, widening=points_of(model, coordinates_of(model).apply(query), code).widening)


def least_rows_of(model: FittedModel) -> float | None:
    """Return the effective rows that windows of a fitted model have at least; None for no floor."""
    least: float | None = vars(model).get("min_effective_rows_")
    return least


def neighbors_of(model: FittedModel) -> int | None:
    """Return the number of neighbors in the windows of a fitted model; None for windows of fixed width."""
    neighbors: int | None = vars(model).get("n_neighbors_")
    return neighbors


def widens(model: FittedModel) -> bool:
    """Return whether the windows of a fitted model differ between queries."""
    return least_rows_of(model) is not None or neighbors_of(model) is not None


def refuse_nearest(model: FittedModel, what: str, remedy: str) -> None:
    """Raise ValueError if windows follow the rows: then `what` (in words) is not possible, and `remedy` is."""
    _refuse(neighbors_of(model) is not None, f"window={model.window}", what, remedy)


def _refuse(refused: bool, option: str, what: str, remedy: str) -> None:
    if refused:
        raise ValueError(f"{option} does not go with {what}; {remedy}")


NOT_OF_QUADRATICS = {  # what there is not for degree=2, and the remedy
    "categorical columns": "code them as numbers, or use degree=1",
    "periodic or geographic columns": "use degree=1",
    "rows that are not in memory": "use degree=1, or a sample of the rows as arrays",
    "robust=": "use robust=False, or degree=1",
    "explain": "use weights(), or degree=1",
    "additive_terms": "use slope, or degree=1",
    "an interval that adds or leaves out single rows": 'use method="cv+" or "adaptive"',
    "a corrected confidence interval": 'use method="naive", or degree=1',
    "significance_test": "use degree=1",
}


def refuse_quadratic(model: FittedModel, what: str, asked: object = True) -> None:
    """Raise ValueError if `what` is asked of a model of degree 2, and there is none; a key of `NOT_OF_QUADRATICS`."""
    _refuse(bool(asked) and model._degree == 2, "degree=2", what, NOT_OF_QUADRATICS[what])


def points_of(model: FittedModel, query: Array, code: Codes | None) -> EvaluationPoints:
    """Return queries, as pooled columns, as evaluation points of the model's smoother."""
    query = np.asarray(query, dtype=np.float64)
    return smoother_of(model).points(query, code) if widens(model) else EvaluationPoints(query, code)


def floor_in_words(model: FittedModel) -> str:
    """Describe the windows, for summaries: their number of neighbors, or the floor of rows if it widened any."""
    least, neighbors = least_rows_of(model), neighbors_of(model)
    if neighbors is not None:
        return f", windows of the {neighbors} nearest rows"
    if least is None or smoother_of(model).training_points(model.key_group_).widening is None:
        return ""
    return f", windows of at least {least:.3g} effective rows"


def refuse_unable(model: FittedModel, columns: int) -> None:
    """Raise if the model's `algorithm` cannot pool `columns` numeric columns with the model's other parameters."""
    if model.algorithm == "auto":
        return
    options: dict[str, Any] = {"composition": model.composition, "degree": model._degree, "algorithm": model.algorithm}
    if follows_rows(model):
        options["n_neighbors"] = 1
    Recipe.of(model.kernel, np.ones(columns), **options).refuse_unable(columns)


def numeric_query(model: FittedModel, X: ArrayLike, *, warn: bool = True) -> Array:
    """Convert queries of a model without categorical columns to an array; warn of extrapolation if `warn`."""
    return read_query(model, X, warn=warn)[0]


def _refuse_parts(X: Any) -> None:
    if isinstance(X, Chunks | str | Path):
        raise TypeError(
            f"X must be rows in memory, got {type(X).__name__}; pass one part of the rows after the other, such "
            "as each batch of pyarrow.parquet.ParquetFile.iter_batches"
        )


def read_query(model: FittedModel, X: ArrayLike, *, warn: bool = True) -> tuple[Array, Codes | None]:
    """Convert queries to numeric columns, before any transformation, and category codes, as the fit encoded X.

    The codes are None if the model has no encoding, which is so if all columns are plain numbers.

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
    refuse_outside(model, coordinates_of(model).closed, numeric)
    if warn:
        _warn_of_extrapolation(model, numeric)
    return numeric, None if encoding is None else code


def _warn_of_extrapolation(model: FittedModel, query: Array) -> None:
    """Warn if queries, given before any transformation, are far beyond the training rows.

    `ExtrapolationWarning` has the rule.
    """
    if not may_extrapolate(model):
        return
    h, names = model.bandwidth_, vars(model).get("feature_names_in_")
    encoding = model.encoding_
    kinds = None if encoding is None else [encoding.kinds[place] for place in encoding.numeric] or ["numeric"]
    if source_of(model) is not None:
        low, high = range_of_source(model)
        reach = reach_of_range(low, high, *window_of(model))
        warn_of_extrapolation(reach, query, low, high, names, kinds=kinds)
        return
    key, weight, coordinates = model.key_, model.key_weight_, coordinates_of(model)
    reach, low, high, cuts = model._prepared.get("reach", (key, weight, h), lambda: _reach_of_rows(model))
    if encoding is not None and encoding.names is not None:
        names = [encoding.names[place] for place in encoding.numeric] or [""]
    warn_of_extrapolation(reach, coordinates.unrolled(query, cuts), low, high, names, query, kinds)


def _reach_of_rows(model: FittedModel) -> tuple[Reach, Array, Array, Cuts]:
    """Return extrapolation limits of unrolled columns, and their range."""
    key, weight, coordinates = model.key_, model.key_weight_, coordinates_of(model)
    counted = key if weight is None else key[weight > 0]
    cuts = coordinates.cuts(counted)
    bandwidth, planes = window_of(model)
    unrolled = coordinates.unrolled(counted, cuts)
    reach = reach_of_rows(unrolled, None, coordinates.in_units(bandwidth, counted), planes)
    return reach, *range_of(unrolled), cuts


def range_of_source(model: FittedModel) -> Array:
    """Return the range of each column of rows that are not in memory, from the fit or by one pass over the rows."""
    known: Array | None = vars(model).get("key_range_")
    if known is not None:
        return known
    source = model.source_
    return model._prepared.get("range", (source,), lambda: source.ask(Ranges("key")))


def new_coordinates(model: FittedModel, key: NDArray[Any], encoding: Encoding | None) -> Coordinates:
    """Return the `Coordinates` of a model: circles and globes, where asked for."""
    if encoding is None:
        columns: tuple[Any, ...] = (key.shape[1], vars(model).get("feature_names_in_"))
    else:
        columns = (len(encoding.kinds), encoding.names, encoding.numeric)
    closed = closed_columns(model.periodic, model.geographic, *columns)
    refuse_outside(model, closed, key)
    return Coordinates(key.shape[1], closed)


def refuse_outside(model: FittedModel, closed: Sequence[Closed], numeric: NDArray[Any]) -> None:
    """Raise ValueError if a model cannot have circles and globes, or a row is beyond a pole."""
    for one in closed:
        if isinstance(one, Globe):
            one.refuse_beyond_poles(numeric, model.geographic[0])
    if closed and model.composition == "product" and get_kernel(model.kernel).name != "gaussian":
        raise ValueError(
            "composition must be 'radial' with periodic= or geographic=, or the kernel 'gaussian', for which both are "
            f"the same: a product over coordinates of a circle would depend on where it begins, got {model.kernel!r}"
        )


def coordinates_of(model: FittedModel) -> Coordinates:
    """Return the `Coordinates` of a fitted model: the map from its numeric columns to those that are pooled."""
    if source_of(model) is not None or "periodic" not in vars(model):  # learned models have no bandwidths
        return Coordinates(len(vars(model).get("bandwidth_", ())))
    return _coordinates_and_keys(model)[0]


def pooled_keys(model: FittedModel) -> NDArray[Any]:
    """Return the numeric columns of the training rows as they are pooled."""
    return _coordinates_and_keys(model)[1]


def _coordinates_and_keys(model: FittedModel) -> tuple[Coordinates, NDArray[Any]]:
    def make() -> tuple[Coordinates, NDArray[Any]]:
        coordinates = new_coordinates(model, model.key_, model.encoding_)
        return coordinates, coordinates.apply(model.key_)

    said = repr((model.periodic, model.geographic))
    return model._prepared.get("coordinates", (model.key_, said), make)


def pairs_of(model: FittedModel, code: Codes | None = None) -> KeyPairs:
    """Return the training rows as key-value pairs; with `code`, each weight is multiplied by categorical kernels.

    `code` has the category codes of the queries. Rows are read once per fit.
    """
    keys = keys_of(model, robust_weight_of(model))
    factors = None
    if model.encoding_ is not None and code is not None:
        factors = model._categories().factors(code, model.key_code_, model.smoothing_)
    return KeyPairs(keys, factors)


def keys_of(model: FittedModel, robust: Array | None) -> Keys:
    """Return the training rows as keys, read once per fit; `robust` multiplies their frequencies."""
    of = pooled_keys(model), model.value_, model.key_weight_, robust
    make = partial(Keys.read, *of[:2], pooled_weight(model, robust))
    return model._prepared.get(("keys", robust is None), of, make)


def problem_of(model: FittedModel, X: ArrayLike | None, *, warn: bool = True) -> Problem:
    """Build the pooling problem with training rows as keys and X as queries; X=None means the training rows."""
    check_is_fitted(model)
    if X is None:
        given, query, code = model.key_, pooled_keys(model), model.key_code_
    else:
        given, code = read_query(model, X, warn=warn)
        query = coordinates_of(model).apply(given)
    return pairs_of(model, code).problem(recipe_at(model, given, code), query)


def left_out_fits(model: FittedModel, smoother: Smoother, group: Codes | None) -> LeaveOneOut:
    """Compute leave-one-out fits at the rows of a smoother, or leave-cluster-out ones, as the model pools."""
    ridge = smoother.recipe.ridge_weight(smoother.columns)
    return leave_one_out(
        smoother.left_out_problem(group),
        algorithm=model.algorithm,
        n_jobs=model.n_jobs,
        progress=current_progress(),
        ridge=ridge,
    )


def per_unit(model: FittedModel, query: Array, slopes: Array) -> Array:
    """Convert slopes by pooled columns, of shape (m, pooled columns, c), to slopes of shape (m, d, c) per unit of X.

    `query` has the numeric columns of the rows, before any transformation. The axis of outputs is dropped if y was
    one-dimensional.
    """
    slopes = coordinates_of(model).to_table(query, slopes)
    return slopes[:, :, 0] if has_one_output(model) else slopes


def has_one_output(model: FittedModel) -> bool:
    """Return whether y had one dimension, so that predictions have no axis of outputs."""
    source = source_of(model)
    return bool(model.value_.ndim == 1 if source is None else source.flat)


def output_shape(model: FittedModel) -> tuple[int, ...]:
    """Return the shape of the outputs of one row."""
    source = source_of(model)
    return model.value_.shape[1:] if source is None else () if source.flat else (source.outputs,)


def pool_at(
    model: FittedModel,
    X: ArrayLike,
    report_rank: ReportRank,
    pairs_of_chunks: Callable[[Chunks], StoredPairs] | None = None,
) -> NDArray[Any]:
    """Predict at new rows by pooling the outputs of the training rows.

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
    query, code = read_query(model, X)
    recipe = recipe_at(model, query, code)
    return pooled_from(model, recipe, query, sums_at(model, recipe, query, code, pairs_of_chunks), report_rank)


def sums_at(
    model: FittedModel,
    recipe: Recipe,
    query: Array,
    code: Codes | None,
    pairs_of_chunks: Callable[[Chunks], StoredPairs] | None = None,
) -> Sums:
    """Sum kernel weights and weighted outputs of the training rows at queries, as `read_query` returns them."""
    source, progress = source_of(model), current_progress()
    if source is not None:
        stored = source if pairs_of_chunks is None else pairs_of_chunks(source.chunks)  # type: ignore[attr-defined]  # of chunks only
        return stored.reduce(recipe, query, progress)
    if pairs_of_chunks is None:
        held: KeyPairs | StoredPairs = pairs_of(model, code)
    else:
        held = pairs_of_chunks(
            open_chunks(pooled_keys(model), model.value_, pooled_weight(model, robust_weight_of(model)))
        )
    return held.reduce(recipe, coordinates_of(model).apply(query), progress)


def pooled_from(model: FittedModel, recipe: Recipe, query: Array, sums: Sums, report_rank: ReportRank) -> NDArray[Any]:
    """Compute predictions from their sums, in the shape and type of the outputs."""
    if robust_weight_of(model) is not None and recipe.kernel.is_compact:
        _warn_of_outliers(sums.state)
    pooled = finalize(sums, recipe, report_rank)
    if source_of(model) is not None:
        return pooled
    dtype = np.result_type(query, model.key_, model.value_)
    return pooled.reshape(len(pooled), *model.value_.shape[1:]).astype(dtype, copy=False)


def _warn_of_outliers(state: PoolState) -> None:
    """Warn of windows that only rows have a weight in whose robustness weight is zero."""
    reserved = (state.denominator > 0) & (state.log_denominator < 0.5 * np.log(RESERVE))
    if reserved.any():
        warn_caller(
            f"in the windows of {np.count_nonzero(reserved)} of {len(reserved)} queries (the first is query "
            f"{np.argmax(reserved)}) all rows are outliers, and the fit there has the robustness weights of an earlier "
            "pass; use a larger bandwidth"
        )


def need_rows(model: FittedModel, what: str = "this answer needs") -> None:
    """Raise TypeError if a model was fitted to rows that are not in memory."""
    check_is_fitted(model)
    if source_of(model) is not None:
        raise TypeError(
            f"this {type(model).__name__} was fitted to rows that are not in memory, and {what} the rows themselves; "
            "fit it to arrays, such as a sample of the rows, with bandwidth=model.bandwidth_"
        )


def smoother_of(model: FittedModel) -> Smoother:
    """Return a fitted model as a linear smoother: its training rows and pooling settings; refuse a robust fit.

    Robust fits have `predicting_smoother`, with their weights as they are, and `inference_smoother`.
    """
    need_rows(model)
    refuse_robust(model)
    return plain_smoother_of(model)


def plain_smoother_of(model: FittedModel) -> Smoother:
    """Return the linear smoother of a model without robustness weights."""
    categories = model._categories()
    has_levels = len(categories) > 0
    return Smoother(
        keys_of(model, None),
        recipe_of(model),
        model.key_code_ if has_levels else None,
        categories,
        np.asarray(model.smoothing_, dtype=np.float64) if has_levels else np.zeros(0),
        least_rows=least_rows_of(model),
        order=order_of(model),
        n_neighbors=neighbors_of(model),
    )


def predicting_smoother(model: FittedModel, plain: Smoother) -> Smoother:
    """Return the linear smoother that predicts as a model does: a plain one, with robustness weights if there are."""
    return plain if robust_weight_of(model) is None else replace(plain, keys=pairs_of(model).keys)


def smoother_of_rows(model: FittedModel, found: dict[str, Any], rows: TrainingRows, categories: Categories) -> Smoother:
    """Return a model of some rows, with what `choose_bandwidth` found for them, as a linear smoother."""
    one = clone(model)
    vars(one).update(found)
    has_levels, weight = len(categories) > 0, None if np.all(rows.weight == 1.0) else rows.weight
    return Smoother(
        Keys.read(rows.X, rows.value, weight),
        _recipe(one, rows.per_column(found["bandwidth_"]), rows.tied),
        rows.code if has_levels else None,
        categories,
        found["smoothing_"] if has_levels else np.zeros(0),
        least_rows=found.get("min_effective_rows_"),
        order=rows.order,
        n_neighbors=found.get("n_neighbors_"),
    )


NOISE_ROWS = 4000  # whose residuals say how large the noise is, where rows are not in memory


def inference_smoother(model: FittedModel) -> Smoother:
    """Return a fitted model as the linear smoother of its standard errors, whether its rows are in memory or not.

    Of rows that are not in memory a sample is drawn, once per fit, at which the noise is estimated; its seed is the
    `random_state` of `search` at the first call.
    """
    source = source_of(model)
    if source is None:
        return smoother_of(model) if robust_weight_of(model) is None else _smoother_of_pseudovalues(model)
    recipe = recipe_of(model)

    def make() -> StoredSmoother:
        sample = source.draw_sample(NOISE_ROWS, seed_of(search_options(model).random_state), current_progress())
        return StoredSmoother.of(source, sample, recipe)

    return replace(model._prepared.get("stored smoother", (source,), make), recipe=recipe)


def _smoother_of_pseudovalues(model: FittedModel) -> Smoother:
    """Return the linear smoother whose values have the mean and the variance of a robust fit; made once per fit."""

    def make() -> Smoother:
        plain, robustness = plain_smoother_of(model), Robustness.of(vars(model)["robust"])
        weighted = predicting_smoother(model, plain)
        fitted = weighted.predict(weighted.problem(plain.training))[:, 0]
        return plain.with_values(robustness.pseudovalues(fitted, plain.value[:, 0], plain.weight)[:, None])

    of = pooled_keys(model), model.value_, model.key_weight_, robust_weight_of(model), model.bandwidth_
    return replace(model._prepared.get("pseudovalues", of, make), recipe=recipe_of(model))


def training_of(model: FittedModel, smoother: Smoother) -> Training:
    """Return the fitted and leave-one-out values of the training rows, computed once per fit."""
    return model._prepared.get("training", training_fit_key(smoother), lambda: fit_training(smoother))


def training_with_shares(model: FittedModel, smoother: Smoother) -> Training:
    """Compute fitted and leave-one-out values of the training rows, and the linear weights of the fitted values.

    The weights are as large as the rows and are not cached.
    """
    made = fit_training(smoother, with_shares=True)
    model._prepared.get("training", training_fit_key(smoother), lambda: replace(made, shares=None))
    return made


def clusters_of(model: FittedModel, smoother: Smoother, groups: ArrayLike | None) -> Clusters | None:
    """Return leave-cluster-out fits at the training rows, cached for the last groups used; None without groups.

    By default groups are those of the fit.
    """
    given = model.key_group_ if groups is None else groups
    return None if given is None else _left_out(model, smoother, number_clusters(given, smoother.weight))


def clusters_of_fit(model: FittedModel, smoother: Smoother) -> Clusters | None:
    """Return leave-cluster-out fits at the training rows, for the groups given to `fit`; None without groups.

    Two clusters are enough for residuals.
    """
    code = model.key_group_
    return None if code is None else _left_out(model, smoother, code)


def _left_out(model: FittedModel, smoother: Smoother, code: NDArray[np.int64]) -> Clusters:
    # By the numbers themselves: an array of labels may be changed by the caller, and is the same array then.
    of = hashlib.sha256(code.tobytes()).digest(), *training_fit_key(smoother)
    return model._prepared.get("clusters", of, lambda: fit_clusters(smoother, code))


def training_fit_key(smoother: Smoother) -> tuple[Any, ...]:
    """Return a cache key: everything that the local fits at the training rows depend on."""
    recipe = smoother.recipe
    return (
        smoother.keys.rows.array, smoother.keys.value, smoother.keys.weight, smoother.key_code, recipe.kernel,
        recipe.composition, recipe.bandwidth, np.atleast_1d(recipe.ridge), smoother.smoothing, smoother.least_rows,
        *(smoother.order or ()),
        smoother.n_neighbors,
    )  # fmt: skip


def places_of(model: FittedModel, X: ArrayLike, *, warn: bool = True) -> EvaluationPoints:
    """Convert X to evaluation points, as pooled columns; warn of extrapolation if `warn`."""
    numeric, code = read_query(model, X, warn=warn)
    return points_of(model, coordinates_of(model).apply(numeric), code)


def rank_reporter(model: FittedModel) -> ReportRank:
    """Return the callback that warns of rank-deficient local planes; each model warns once per fit.

    Predictions of constants do not depend on planes, but their intervals are made of them.
    """
    if recipe_of(model).degree:
        return model._report_rank

    said: list[bool] = model._prepared.get("said of slopes", (model.bandwidth_,), lambda: [])

    def report(rank: NDArray[np.intp], occupied: NDArray[np.bool_], columns: int) -> None:
        if said or not np.any(occupied & (rank < columns)):
            return
        # Constants and dependent columns take nothing from the correction in the other directions.
        if source_of(model) is None:
            weight, key = model.key_weight_, pooled_keys(model)
            columns -= sum(missing for _, missing in dependent_columns(key if weight is None else key[weight > 0]))
        (few,) = np.nonzero(occupied & (rank < columns))
        if few.size:
            said.append(True)
            warn_caller(
                f"around {few.size} of {rank.size} queries (the first is query {few[0]}) the rows determine no slope "
                "in some direction, and the planes that correct the bias are constant in it; use a larger bandwidth",
                RankDeficiencyWarning,
            )

    return report


def shaped(model: FittedModel, query: Array, values: Array) -> Array:
    """Return values of a fit (m, c) in the shape of predictions, or those of slopes (m, d, c) as by `per_unit`."""
    if values.ndim == 3:
        return per_unit(model, query, values)
    return values[:, 0] if has_one_output(model) else values


def printed_columns(model: FittedModel) -> tuple[ColumnSummary, ...]:
    """Return name, bandwidth (smoothing if categorical) and relevance of each column, in table order, for summaries."""
    encoding = model.encoding_
    names = names_of(model)
    count = len(model.bandwidth_) if encoding is None else len(encoding.kinds)
    names = [str(i) if names is None else str(names[i]) for i in range(count)]
    relevance = vars(model).get("relevance_")
    numeric = range(count) if encoding is None else encoding.numeric
    levels = () if encoding is None else encoding.categorical
    widths = dict(zip(numeric, model.bandwidth_, strict=False)) | dict(zip(levels, model.smoothing_, strict=False))
    in_days = encoding.dates if encoding is not None else ()
    return tuple(
        ColumnSummary(
            names[i],
            float(widths[i]),
            i in levels,
            None if relevance is None else float(relevance[i]),
            "days" if i in in_days else "",
        )
        for i in range(count)
    )
