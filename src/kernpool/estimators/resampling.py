"""Fitted models resampled: their rows, their recipe, and the fits without some of the columns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from kernpool.bandwidth import CRITERIA
from kernpool.bandwidth.categories import NO_CATEGORIES
from kernpool.core.problem import Problem
from kernpool.core.reading import as_tol
from kernpool.estimators.bandwidth_choice import choose_bandwidth
from kernpool.estimators.fitted import check_unchanged, numeric_query, problem_of, recipe_of, scaled_keys
from kernpool.estimators.parameters import search_parameters
from kernpool.estimators.smoothing_rows import need_rows
from kernpool.execution.messages import check_choice
from kernpool.execution.progress import current_progress
from kernpool.inference import draws
from kernpool.inference.bootstrap import Resampling, bootstrap
from kernpool.inference.bootstrap_chunks import bootstrap_chunks
from kernpool.inference.columns import Draws, columns_by_residuals, columns_by_slopes
from kernpool.inference.linear_map import LinearMap
from kernpool.inference.null_distribution import check_kind
from kernpool.inference.results import TestResult
from kernpool.inference.sample import Sample
from kernpool.pooling.chunked import Asked
from kernpool.pooling.recipe import Recipe

Array = NDArray[np.float64]


def bootstrap_of(
    model: Any,
    X: ArrayLike | None,
    how: Resampling,
    statistic: Callable[[Array], Any] | None,
    groups: ArrayLike | None,
) -> Array:
    """Resample a fitted model; parameters as of `KernelRegressor.bootstrap`."""
    check_is_fitted(model)
    if "chunks_" in vars(model):
        if X is None or groups is not None:
            raise ValueError(
                "this model was fitted to chunks and does not hold its rows: give X, and no groups; or fit a sample"
            )
        check_unchanged(model)
        asked = Asked.of(recipe_of(model), numeric_query(model, X, warn=False))
        found = bootstrap_chunks(model.chunks_, asked, how=how, statistic=statistic, progress=current_progress())
        numeric_query(model, X)  # warns, which may take a pass over the rows: after what refuses too many resamples
        return found
    recipe = recipe_of(model)
    value = np.asarray(model.value_, dtype=np.float64).reshape(len(model.value_), -1)
    return bootstrap(
        LinearMap(_exact(problem_of(model, None)), recipe),
        value,
        None if X is None else _exact(problem_of(model, X)),
        how=how,
        statistic=statistic,
        groups=vars(model).get("key_group_") if groups is None else groups,
        flat=model.value_.ndim == 1,
        progress=current_progress(),
    )


def _exact(problem: Problem) -> Problem:
    """Return a problem in double precision: differences between resamples are small."""
    return replace(problem, tol=as_tol(None), dtype=np.dtype(np.float64))


def significance(
    model: Any,
    columns: int | str | Sequence[int | str],
    method: str,
    kind: str,
    n_resamples: int,
    random_state: Any,
) -> TestResult:
    """Test columns of a fitted model; parameters as of `KernelRegressor.significance_test`."""
    check_is_fitted(model)
    check_choice("method", method, ("residual", "gradient"))
    check_kind(kind)
    need_rows(model, "significance_test needs")
    if vars(model).get("key_group_") is not None:
        raise ValueError(
            "significance_test draws for each row by itself, and this model was fitted with groups=, whose rows go "
            "together: it would reject far too often; compare model.confidence_interval with and without the column, "
            "or fit without groups if rows are independent"
        )
    how = Draws(draws.as_count("n_resamples", n_resamples), kind, draws.as_seed(random_state))
    sample = sample_of(model)
    names, numeric, categorical = _names(model), *_places(model)
    tested = _tested(columns, names, len(numeric) + len(categorical))
    labels = [str(i) if names is None else repr(names[i]) for i in tested]
    _refuse_constant(sample, tested, labels, numeric, categorical)
    which = f"column{'s' if len(labels) > 1 else ''} {', '.join(labels)}"
    others = ", given the others" if len(tested) < len(numeric) + len(categorical) else ""
    null = f"y does not depend on {which}{others}"
    of_numbers = [numeric.index(i) for i in tested if i in numeric]
    of_levels = [categorical.index(i) for i in tested if i in categorical]
    if method == "gradient":
        if of_levels:
            raise ValueError(
                f"method='gradient' is of slopes, and categorical columns have none: use method='residual' for {which}"
            )
        recipe = replace(recipe_of(model), tol=None)
        return columns_by_slopes(sample, recipe, sample.factors(model.smoothing_), of_numbers, null, how)
    levels = [a for a in range(len(categorical)) if a not in of_levels]
    rest = sample.take([a for a in range(len(numeric)) if a not in of_numbers], levels)
    return columns_by_residuals(sample, _fit_of_fewer(model, rest), model.smoothing_, of_levels, null, how)


def sample_of(model: Any) -> Sample:
    """Return the training rows of a model, in the units in which it compares them."""
    value = np.asarray(model.value_, dtype=np.float64)
    if value.ndim == 2 and value.shape[1] > 1:
        raise ValueError(
            f"significance_test is of one output, and the model has {value.shape[1]}; fit one output after the other"
        )
    categories = NO_CATEGORIES if model.encoding_ is None else model._categories_of(model.encoding_)
    numeric, _ = _places(model)
    X = scaled_keys(model)[:, : len(numeric)]  # levels alone have one column of zeros
    what = "significance_test"
    return Sample.of(X, value.ravel(), model.key_weight_, model.key_code_, categories, what=what)


def _names(model: Any) -> list[str] | None:
    names = vars(model).get("feature_names_in_") if model.encoding_ is None else model.encoding_.names
    return None if names is None else [str(name) for name in names]


def _places(model: Any) -> tuple[list[int], list[int]]:
    """Return which columns of the table are numbers, and which are levels, in the order in which they are kept."""
    if model.encoding_ is None:
        return list(range(model.key_.shape[1])), []
    return list(model.encoding_.numeric), list(model.encoding_.categorical)


def _tested(columns: Any, names: list[str] | None, count: int) -> list[int]:
    """Return positions of columns that are given by position or name."""
    asked = [columns] if isinstance(columns, str) or not np.iterable(columns) else list(columns)
    if not asked:
        raise ValueError("columns is empty; name at least one column that is tested")
    places = []
    for column in asked:
        if isinstance(column, str) and names is not None and column in names:
            places.append(names.index(column))
        elif isinstance(column, int | np.integer) and not isinstance(column, bool) and -count <= column < count:
            places.append(int(column) % count)
        else:
            known = f"positions 0 to {count - 1}" if names is None else f"positions 0 to {count - 1}, or {names}"
            raise ValueError(f"columns holds {column!r}, and the model has no such column; it has {known}")
    return sorted(set(places))


def _refuse_constant(
    sample: Sample, tested: list[int], labels: list[str], numeric: list[int], categorical: list[int]
) -> None:
    for place, label in zip(tested, labels, strict=True):
        values = sample.X[:, numeric.index(place)] if place in numeric else sample.code[:, categorical.index(place)]
        if np.ptp(values) == 0:
            raise ValueError(
                f"column {label} does not vary over the training rows, so that there is nothing to test; leave it out"
            )


def _fit_of_fewer(model: Any, rest: Sample) -> LinearMap:
    """Return the fit at the rows of the columns that are left, with bandwidths of their own."""
    if not rest.X.shape[1] and not len(rest.categories):
        return LinearMap.at_rows(Recipe.of("constant", n_jobs=model.n_jobs), rest.numeric)  # the mean
    # With a compact kernel the best bandwidth of columns that do not matter may be so small that all windows are empty:
    # rows are predicted by the mean of the others, and the fit itself passes through every row.
    options = search_parameters(model) | {"kernel": "gaussian", "algorithm": "auto"}
    if not (isinstance(model.bandwidth, str) and model.bandwidth in CRITERIA):
        # A rule may smooth so much that what is left of the other columns looks like an effect of the tested ones: that
        # of Scott rejected a true null hypothesis in a third of the samples.
        options |= {"bandwidth": "loo", "bandwidth_convention": "support"}
    found = choose_bandwidth(
        rest.numeric,
        rest.y,
        code=rest.code,
        categories=rest.categories,
        degree=model._degree,
        **options,
    )
    recipe = Recipe.of(
        "gaussian", found["bandwidth_"], degree=model._degree, ridge=found.get("ridge_", 0.0), n_jobs=model.n_jobs
    )
    return LinearMap.at_rows(recipe, rest.numeric, rest.factors(found["smoothing_"]))
