"""The rows of a fitted model as a linear smoother, and what comes out in the shapes that it predicts in."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from kernpool.core.keys import Prepared
from kernpool.core.local_fit import RankDeficiencyWarning
from kernpool.estimators.fitted import pairs_of, read_query, recipe_of, scale_of, scaled_keys
from kernpool.estimators.rank_notes import dependent_columns
from kernpool.execution.messages import check_choice
from kernpool.execution.warnings import warn_caller
from kernpool.inference import Clusters, Places, Smoother, Training, fit_clusters, fit_training, number_clusters
from kernpool.inference.kept_sums import KeptSums
from kernpool.inference.summary import Column
from kernpool.pooling.settle import ReportRank

Array = NDArray[np.float64]

OF = ("fit", "derivative")


def need_rows(model: Any, what: str = "standard errors need") -> None:
    """Refuse a model that does not hold its rows."""
    check_is_fitted(model)
    if "chunks_" in vars(model):
        raise TypeError(
            f"this {type(model).__name__} was fitted to chunks, and {what} the rows themselves; fit it to arrays, such "
            "as a sample of the rows, with bandwidth=model.bandwidth_"
        )


def smoother_of(model: Any) -> Smoother:
    """Return the rows of a fitted model and how they are pooled."""
    need_rows(model)
    categories = model._categories()
    has_levels = len(categories) > 0
    keys, recipe = pairs_of(model).keys, recipe_of(model)
    kept = model._prepared.get("sums", (keys.value, recipe.algorithm), lambda: KeptSums(keys.value))
    return Smoother(
        keys,
        recipe,
        model.key_code_ if has_levels else None,
        categories,
        np.asarray(model.smoothing_, dtype=np.float64) if has_levels else np.zeros(0),
        kept=kept,
    )


def training_of(model: Any, smoother: Smoother) -> Training:
    """Return the training rows in their own fit, made once per fit."""
    prepared: Prepared = vars(model).setdefault("_prepared", Prepared())
    return prepared.get("training", fit_of_rows(model, smoother), lambda: fit_training(smoother))


def training_with_shares(model: Any, smoother: Smoother) -> Training:
    """Return the same with the shares of the fits, which are as large as the rows, and not kept."""
    made = fit_training(smoother, with_shares=True)
    prepared: Prepared = vars(model).setdefault("_prepared", Prepared())
    prepared.get("training", fit_of_rows(model, smoother), lambda: replace(made, shares=None))
    return made


def clusters_of(model: Any, smoother: Smoother, groups: ArrayLike | None) -> Clusters | None:
    """Return the training rows in fits without their clusters, made once per fit and groups; None if there are none.

    By default groups are those of the fit.
    """
    given = vars(model).get("key_group_") if groups is None else groups
    return None if given is None else _left_out(model, smoother, number_clusters(given, smoother.weight))


def clusters_of_fit(model: Any, smoother: Smoother) -> Clusters | None:
    """Return the same of the groups of the fit, however few: for residuals, which need no more than two."""
    code = vars(model).get("key_group_")
    return None if code is None else _left_out(model, smoother, code)


def _left_out(model: Any, smoother: Smoother, code: NDArray[np.int64]) -> Clusters:
    prepared: Prepared = vars(model).setdefault("_prepared", Prepared())
    # By the numbers themselves: an array of labels may be changed by the caller, and is the same array then.
    of = hashlib.sha256(code.tobytes()).digest(), *fit_of_rows(model, smoother)
    return prepared.get("clusters", of, lambda: fit_clusters(smoother, code))


def fit_of_rows(model: Any, smoother: Smoother) -> tuple[Any, ...]:
    """Return all that the fit of the training rows depends on."""
    recipe = smoother.recipe
    return (
        smoother.keys.rows.array, model.value_, model.key_weight_, model.key_code_, recipe.kernel, recipe.composition,
        recipe.bandwidth, np.atleast_1d(recipe.ridge), smoother.smoothing,
    )  # fmt: skip


def places_of(model: Any, X: ArrayLike, *, warn: bool = True) -> Places:
    """Read queries in the units in which a model compares them; `warn` as of `read_query`."""
    numeric, code = read_query(model, X, warn=warn)
    return Places(np.asarray(scale_of(model).apply(numeric), dtype=np.float64), code)


def read_places(model: Any, X: ArrayLike, of: str, *, warn: bool = True) -> tuple[Smoother, Places, Training]:
    """Read places of X, with the rows in their own fit; refuse a question that is none."""
    check_choice("of", of, OF)
    smoother = smoother_of(model)
    return smoother, places_of(model, X, warn=warn), training_of(model, smoother)


def columns_of(smoother: Smoother, of: str) -> list[int | None]:
    """Return the columns to go through: none for the value, all for slopes."""
    return [None] if of == "fit" else list(range(smoother.columns))


def rank_reporter(model: Any) -> ReportRank:
    """Return who hears of planes that are not determined: the model, once per fit, or a model of constants each time.

    Predictions of constants do not depend on planes, but their intervals are made of them.
    """
    if recipe_of(model).degree:
        return model._report_rank  # type: ignore[no-any-return]  # a model of any kind

    prepared: Prepared = vars(model).setdefault("_prepared", Prepared())
    said: list[bool] = prepared.get("said of slopes", (model.value_, model.bandwidth_), lambda: [])

    def report(rank: NDArray[np.intp], occupied: NDArray[np.bool_], columns: int) -> None:
        if said or not np.any(occupied & (rank < columns)):
            return
        # Constants and dependent columns take nothing from the correction in the other directions.
        weight, key = model.key_weight_, scaled_keys(model)
        columns -= sum(missing for _, missing in dependent_columns(key if weight is None else key[weight > 0]))
        (few,) = np.nonzero(occupied & (rank < columns))
        if few.size:
            said.append(True)
            warn_caller(
                f"around {few.size} of {rank.size} queries (the first is query {few[0]}) the rows determine no slope "
                "in some direction, and the planes that take the bias off are constant in it; use a larger bandwidth",
                RankDeficiencyWarning,
            )

    return report


def shaped(model: Any, X: ArrayLike, columns: list[Array], of: str) -> Array:
    """Return one array of (m, c) per column in the shape of `predict` or `derivative`."""
    one = model.value_.ndim == 1
    if of == "fit":
        return columns[0][:, 0] if one else columns[0]
    slopes = np.stack(columns, axis=1)
    scale = scale_of(model)
    if any(scale.ranked):
        slopes = slopes * scale.slope(read_query(model, X, warn=False)[0])[:, :, None]
    return slopes[:, :, 0] if one else slopes


def shaped_critical(critical: list[float | Array | None], shape: tuple[int, ...]) -> float | Array | None:
    """Return critical values of all columns: one number, or an array in the shape of one place of the center."""
    if critical[0] is None:
        return None
    if len(critical) == 1:
        return critical[0]
    one_each = np.stack([np.atleast_1d(np.asarray(one)) for one in critical])
    return one_each[:, 0] if len(shape) == 1 else np.array(np.broadcast_to(one_each, shape))


def printed_columns(model: Any) -> tuple[Column, ...]:
    """Return the columns of the table in their order, with what weighs their rows."""
    encoding = model.encoding_
    names = vars(model).get("feature_names_in_") if encoding is None else encoding.names
    count = len(model.bandwidth_) if encoding is None else len(encoding.kinds)
    names = [str(i) if names is None else str(names[i]) for i in range(count)]
    relevance = vars(model).get("relevance_")
    numeric = range(count) if encoding is None else encoding.numeric
    levels = () if encoding is None else encoding.categorical
    widths = dict(zip(numeric, model.bandwidth_, strict=False)) | dict(zip(levels, model.smoothing_, strict=False))
    is_raw = isinstance(model.scale, str) and model.scale == "raw"
    in_days = encoding.dates if encoding is not None and is_raw else ()
    return tuple(
        Column(
            names[i],
            float(widths[i]),
            i in levels,
            None if relevance is None else float(relevance[i]),
            "days" if i in in_days else "",
        )
        for i in range(count)
    )
