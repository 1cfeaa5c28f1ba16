"""The engine behind a page: what the page asks about rows that it does not hold, or that are too many for it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from kernpool.core.empty import fill_empty
from kernpool.core.keys import Prepared
from kernpool.data.checks import INFINITE, LARGEST
from kernpool.estimators import LocalLinearRegressor, NadarayaWatsonRegressor
from kernpool.estimators.extrapolation import limits_of
from kernpool.estimators.fitted import fit_of, pairs_of, recipe_of
from kernpool.estimators.labels import mixed
from kernpool.execution.messages import abbreviate
from kernpool.pages.explorer.payload import EXACT_ROWS
from kernpool.pages.explorer.subject import Subject
from kernpool.pooling.weights import weight_rows

Array = NDArray[np.float64]
Codes = NDArray[np.int64]

LARGEST_REQUEST = 4096  # places of a curve
SHOWN_WEIGHTS = 200  # the heaviest rows of a query
DRAWN_ROWS = 2000  # of a page whose sums an engine has: as many as are drawn as paths


class RequestError(ValueError):
    """A request that no page makes."""


def model_at(model: Any, settings: Mapping[str, Any]) -> Any:
    """Return a model of the same rows at other settings, without fitting or copying.

    Parameters
    ----------
    model : fitted estimator
        Whose rows are shared.
    settings : mapping
        As in the payload: kernel, bandwidth, composition, degree, smoothing, ridge; what is missing stays.

    Returns
    -------
    estimator
        Fitted: `bandwidth_` and `smoothing_` are those of the settings. A change of degree is a change of its class.

    Raises
    ------
    RequestError
        If a setting is none.
    """
    degree = settings.get("degree", model._degree)
    if degree not in (0, 1):
        raise RequestError(f"degree must be 0 or 1, got {abbreviate(degree)}")
    if degree and hasattr(model, "classes_"):
        raise RequestError("degree must be 0: probabilities of classes are local constant")
    if degree == model._degree:
        new = clone(model)
    else:
        kind = LocalLinearRegressor if degree else NadarayaWatsonRegressor
        shared = {name: value for name, value in model.get_params().items() if name in kind().get_params()}
        new = kind(**shared)
    as_sent = np.minimum(model.bandwidth_, INFINITE)  # JSON has no infinity
    bandwidth = _numbers("bandwidth", settings.get("bandwidth", as_sent), len(model.bandwidth_), least=0.0)
    smoothing = _numbers("smoothing", settings.get("smoothing", model.smoothing_), len(model.smoothing_))
    largest = np.asarray(model._categories().largest)
    if np.any((smoothing < 0.0) | (smoothing > largest)):
        raise RequestError(f"smoothing must be from 0 to {largest.tolist()}, got {smoothing.tolist()}")
    new.set_params(
        kernel=settings.get("kernel", model.kernel),
        composition=settings.get("composition", model.composition),
        bandwidth=bandwidth.tolist(),
        bandwidth_convention="support",
        smoothing=smoothing.tolist() or None,
    )
    kept = {name: vars(model)[name] for name in (*model._arrays, "encoding_") if name in vars(model)}
    kept |= {name: value for name, value in vars(model).items() if name in ("n_features_in_", "feature_names_in_")}
    kept |= {"bandwidth_": bandwidth, "smoothing_": smoothing}
    kept |= {name: vars(model)[name] for name in ("prior_share_",) if name in vars(model)}
    if degree:
        kept["ridge_"] = _ridge(settings.get("ridge", vars(model).get("ridge_")))
    new._replace_fit(kept)
    new._prepared = vars(model).get("_prepared", Prepared())  # keys are read once for all settings
    try:
        recipe_of(new)
    except (TypeError, ValueError) as error:
        raise RequestError(str(error)) from None
    return new


def _ridge(given: Any) -> float:
    ridge = 0.0 if given is None else float(_numbers("ridge", [given], 1)[0])
    if ridge < 0.0:
        raise RequestError(f"ridge must not be negative, got {abbreviate(given)}")
    return ridge


def answer(subject: Subject, request: Any) -> dict[str, Any]:
    """Return what a page asks for.

    Parameters
    ----------
    subject : Subject
        What is explored.
    request : dict
        ``{"kind": "curve" | "query", "settings": ..., ...}``: the curve along a column at places, or the weights of a
        query.

    Returns
    -------
    dict
        JSON; None stands for NaN. Values are what ``predict`` and ``predict_proba`` say, but None where the model
        raises.

    Raises
    ------
    RequestError
        If it is none of these.

    Examples
    --------
    >>> from kernpool.pages.explorer.subject import subject_of_generator
    >>> subject = subject_of_generator("make_sine_power", 0, None)
    >>> place = {"numeric": [2.5], "codes": []}
    >>> found = answer(subject, {"kind": "query", "query": place, "settings": {"bandwidth": [0.1]}})
    >>> found["reach"], round(found["effectiveSize"], 1)
    (50, 2.5)
    """
    kind = request.get("kind") if isinstance(request, Mapping) else None
    if not isinstance(kind, str) or kind not in ANSWERS:
        raise RequestError(f"a request must be of kind {' or '.join(ANSWERS)}, got {abbreviate(kind)}")
    settings = request.get("settings", {})
    if not isinstance(settings, Mapping):
        raise RequestError("settings must be a mapping")
    return ANSWERS[kind](subject, model_at(subject.model, settings), request)


def _curve(_: Subject, model: Any, request: Mapping[str, Any]) -> dict[str, Any]:
    places = _numbers("places", request.get("places"), None)
    column = request.get("column", 0)
    numeric, codes = _query(model, request)
    if not isinstance(column, int) or not 0 <= column < numeric.shape[1]:
        raise RequestError(f"column must be one of the {numeric.shape[1]} numeric ones, got {abbreviate(column)}")
    queries = np.repeat(numeric, len(places), axis=0)
    queries[:, column] = places
    values = _pooled(model, queries, np.repeat(codes, len(places), axis=0))
    return {"value": [[_json(value) for value in output] for output in values.T]}


def _query(model: Any, request: Mapping[str, Any]) -> tuple[Array, Codes]:
    query = request.get("query")
    if not isinstance(query, Mapping):
        raise RequestError(f"query must have numbers and codes, got {abbreviate(query)}")
    return query_of(model, query.get("numeric"), query.get("codes", []))


def query_of(model: Any, numeric: Any, codes: Any) -> tuple[Array, Codes]:
    """Read a query of a page.

    Parameters
    ----------
    model : fitted estimator
        Whose query.
    numeric : list of float
        One number per numeric column.
    codes : list of int
        One level number per categorical column; -1 for an unseen level, if the model takes those.

    Returns
    -------
    numeric, codes : ndarray
        Of one row each.

    Raises
    ------
    RequestError
        If they are none.
    """
    numbers = _numbers("query", numeric, model.key_.shape[1])
    counts = [len(levels) for levels in model.encoding_.levels] if model.encoding_ is not None else []
    first = -1 if model.unseen == "unlike" else 0
    is_known = isinstance(codes, list) and len(codes) == len(counts) and all(isinstance(code, int) for code in codes)
    if not is_known or any(not first <= code < count for code, count in zip(codes, counts, strict=True)):
        raise RequestError(
            f"codes must be one level number a categorical column, of {counts} levels, got {abbreviate(codes)}"
        )
    return numbers[None, :], np.array(codes, dtype=np.int64).reshape(1, -1)


def _pooled(model: Any, queries: Array, codes: Codes) -> Array:
    """Return what the model predicts, of shape (m, c): probabilities of classes; NaN where it has nothing to say."""
    recipe = recipe_of(model)
    sums = pairs_of(model, codes if codes.shape[1] else None).reduce(recipe, queries)
    fit = sums.fit(recipe.ridge_weight(queries.shape[1]))
    limits = limits_of(model)
    values = fit.intercept if limits is None else np.clip(fit.intercept, *limits)
    if recipe.empty in ("nan", "raise"):  # without a warning: the page shows where
        values = np.where(fit.occupied[:, None], values, np.nan)
    else:
        values = fill_empty(values, fit.occupied, recipe.empty, sums.fill)
    if not hasattr(model, "classes_"):
        return values
    return mixed(np.clip(values, 0.0, 1.0), model.class_prior_, model.prior_share_)


def _one(subject: Subject, model: Any, request: Mapping[str, Any]) -> dict[str, Any]:
    numeric, codes = _query(model, request)
    problem = pairs_of(model, codes if codes.shape[1] else None).problem(recipe_of(model), numeric)
    [(_, (weight,))] = weight_rows(problem)
    times = np.ones(subject.rows) if model.key_weight_ is None else model.key_weight_
    squares = np.sum(weight[times > 0] ** 2 / times[times > 0])
    heaviest = np.argsort(-weight, kind="stable")[:SHOWN_WEIGHTS]
    heaviest = heaviest[weight[heaviest] > 0]
    nearest = _nearest(model, numeric, times)
    slopes = fit_of(model, problem).slope[0] / model.bandwidth_[:, None] if model._degree else []
    return {
        "value": [_json(value) for value in _pooled(model, numeric, codes)[0]],
        "slope": [[_json(slope) for slope in column] for column in slopes] if model._degree else None,
        "effectiveSize": float(1.0 / squares) if squares else 0.0,
        "reach": int(np.count_nonzero(weight)),
        "nearest": {"row": nearest, "key": model.key_[nearest].tolist()},
        "rows": heaviest.tolist(),
        "weight": weight[heaviest].tolist(),
        "key": model.key_[heaviest].tolist(),
        "target": np.asarray(model.value_, dtype=np.float64).reshape(subject.rows, -1)[heaviest].tolist(),
    }


def _nearest(model: Any, query: Array, times: Array) -> int:
    """Return the row at the least distance in bandwidths, of those that count."""
    square = np.zeros(len(model.key_))
    for a, h in enumerate(model.bandwidth_):
        square += ((model.key_[:, a] - query[0, a]) / h) ** 2
    return int(np.argmin(np.where(times > 0, square, np.inf)))


ANSWERS = {"curve": _curve, "query": _one}


def _numbers(name: str, given: Any, count: int | None, least: float = -math.inf) -> Array:
    """Return finite numbers above `least`, as many as asked for; at least one if that is any number."""
    try:
        numbers = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise RequestError(f"{name} must be numbers, got {abbreviate(given)}") from None
    fits = numbers.ndim == 1 and (1 <= len(numbers) <= LARGEST_REQUEST if count is None else len(numbers) == count)
    if not fits:
        raise RequestError(
            f"{name} must be {f'1 to {LARGEST_REQUEST}' if count is None else count} numbers, got {abbreviate(given)}"
        )
    if not np.all(np.isfinite(numbers)) or np.any(numbers <= least):
        raise RequestError(f"{name} must be finite{' and positive' if least == 0.0 else ''}, got {abbreviate(given)}")
    if np.any(np.abs(numbers) > LARGEST):
        raise RequestError(f"{name} must be at most {LARGEST:g} in magnitude, got {abbreviate(given)}")
    return numbers


def _json(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None


def thinned(rows: int) -> NDArray[np.intp] | None:
    """Return the numbers of the rows that a page draws, evenly spaced; None where it sums all of them itself."""
    return None if rows <= EXACT_ROWS else np.linspace(0, rows - 1, DRAWN_ROWS).round().astype(np.intp)
