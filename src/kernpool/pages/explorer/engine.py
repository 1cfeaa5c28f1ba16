"""The engine behind a page: what the page asks about rows that it does not hold, or that are too many for it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from kernpool.core.keys import Prepared
from kernpool.estimators import LocalLinearRegressor, NadarayaWatsonRegressor
from kernpool.estimators.extrapolation import limits_of
from kernpool.estimators.fitted import fit_of, pairs_of, recipe_of
from kernpool.estimators.smoother import KernelSmoother
from kernpool.pages.explorer.payload import EXACT_ROWS
from kernpool.pages.explorer.subject import Subject
from kernpool.pooling.weights import weight_rows

Array = NDArray[np.float64]

LARGEST_REQUEST = 4096  # places of a curve, factors of a path
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
        As in the payload: kernel, bandwidth, composition, degree, smoothing; what is missing stays.

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
    if degree not in (0, 1) or (degree == 1 and not hasattr(model, "loo_error_") and hasattr(model, "classes_")):
        raise RequestError(f"degree must be 0 or 1, got {degree!r}")
    if degree == model._degree or hasattr(model, "classes_"):
        new = clone(model)
    else:
        kind = LocalLinearRegressor if degree else NadarayaWatsonRegressor
        shared = {name: value for name, value in model.get_params().items() if name in kind().get_params()}
        new = kind(**shared)
    bandwidth = _numbers("bandwidth", settings.get("bandwidth", model.bandwidth_), len(model.bandwidth_), least=0.0)
    smoothing = _numbers("smoothing", settings.get("smoothing", model.smoothing_), len(model.smoothing_))
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
        kept["ridge_"] = float(settings.get("ridge") or 0.0)
    new._replace_fit(kept)
    new._prepared = vars(model).get("_prepared", Prepared())  # keys are read once for all settings
    try:
        recipe_of(new)
    except (TypeError, ValueError) as error:
        raise RequestError(str(error)) from None
    return new


def answer(subject: Subject, request: Any) -> dict[str, Any]:
    """Return what a page asks for.

    Parameters
    ----------
    subject : Subject
        What is explored.
    request : dict
        ``{"kind": "curve" | "query" | "path", "settings": ..., ...}``: the curve along a column at places, the weights
        of a query, leave-one-out errors at factors of the bandwidths.

    Returns
    -------
    dict
        JSON; None stands for NaN.

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
    if not isinstance(request, Mapping) or request.get("kind") not in ANSWERS:
        raise RequestError(f"a request is of kind {' or '.join(ANSWERS)}")
    settings = request.get("settings", {})
    if not isinstance(settings, Mapping):
        raise RequestError("settings must be a mapping")
    return ANSWERS[request["kind"]](subject, model_at(subject.model, settings), request)


def _curve(_: Subject, model: Any, request: Mapping[str, Any]) -> dict[str, Any]:
    places = _numbers("places", request.get("places"), None)
    column = request.get("column", 0)
    numeric, codes = _query(model, request)
    if not isinstance(column, int) or not 0 <= column < numeric.shape[1]:
        raise RequestError(f"column must be one of the {numeric.shape[1]} numeric ones, got {column!r}")
    queries = np.repeat(numeric, len(places), axis=0)
    queries[:, column] = places
    values = _pooled(model, queries, np.repeat(codes, len(places), axis=0))
    return {"value": [[_json(value) for value in output] for output in values.T]}


def _query(model: Any, request: Mapping[str, Any]) -> tuple[Array, NDArray[np.int64]]:
    query = request.get("query")
    if not isinstance(query, Mapping):
        raise RequestError(f"query must have numbers and codes, got {query!r:.80}")
    numeric, codes = _numbers("query", query.get("numeric"), model.key_.shape[1]), query.get("codes", [])
    counts = [len(levels) for levels in model.encoding_.levels] if model.encoding_ is not None else []
    is_known = isinstance(codes, list) and len(codes) == len(counts) and all(isinstance(code, int) for code in codes)
    if not is_known or any(not 0 <= code < count for code, count in zip(codes, counts, strict=True)):
        raise RequestError(f"codes must be one level number a categorical column, of {counts} levels")
    return numeric[None, :], np.array(codes, dtype=np.int64).reshape(1, -1)


def _pooled(model: Any, queries: Array, codes: NDArray[np.int64]) -> Array:
    """Return pooled values of shape (m, c); NaN where no key is in reach, whatever the model makes of such places."""
    recipe = recipe_of(model)
    pairs = pairs_of(model, codes if codes.shape[1] else None)
    fit = pairs.reduce(recipe, queries).fit(recipe.ridge_weight(queries.shape[1]))
    limits = limits_of(model)
    values = fit.intercept if limits is None else np.clip(fit.intercept, *limits)
    return np.where(fit.occupied[:, None], values, np.nan)


def _one(subject: Subject, model: Any, request: Mapping[str, Any]) -> dict[str, Any]:
    numeric, codes = _query(model, request)
    problem = pairs_of(model, codes if codes.shape[1] else None).problem(recipe_of(model), numeric)
    [(_, (weight,))] = weight_rows(problem)
    times = np.ones(subject.rows) if model.key_weight_ is None else model.key_weight_
    squares = np.sum(weight[times > 0] ** 2 / times[times > 0])
    heaviest = np.argsort(-weight, kind="stable")[:SHOWN_WEIGHTS]
    heaviest = heaviest[weight[heaviest] > 0]
    slopes = fit_of(model, problem).slope[0] / model.bandwidth_[:, None] if model._degree else []
    return {
        "value": [_json(value) for value in _pooled(model, numeric, codes)[0]],
        "slope": [[_json(slope) for slope in column] for column in slopes] if model._degree else None,
        "effectiveSize": float(1.0 / squares) if squares else 0.0,
        "reach": int(np.count_nonzero(weight)),
        "rows": heaviest.tolist(),
        "weight": weight[heaviest].tolist(),
        "key": model.key_[heaviest].tolist(),
        "target": np.asarray(model.value_, dtype=np.float64).reshape(subject.rows, -1)[heaviest].tolist(),
    }


def _path(_: Subject, model: Any, request: Mapping[str, Any]) -> dict[str, Any]:
    factors = _numbers("factors", request.get("factors"), None, least=0.0)
    scaled = (model_at(model, {"bandwidth": model.bandwidth_ * factor}) for factor in factors)
    found = [KernelSmoother.leave_one_out(one) for one in scaled]
    return {"error": [_json(one.error) for one in found], "empty": [one.empty_windows for one in found]}


ANSWERS = {"curve": _curve, "query": _one, "path": _path}


def _numbers(name: str, given: Any, count: int | None, least: float = -math.inf) -> Array:
    """Return finite numbers above `least`, as many as asked for."""
    try:
        numbers = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError):
        raise RequestError(f"{name} must be numbers, got {given!r:.80}") from None
    if numbers.ndim != 1 or (count is not None and len(numbers) != count) or len(numbers) > LARGEST_REQUEST:
        raise RequestError(f"{name} must be {count or f'up to {LARGEST_REQUEST}'} numbers, got {given!r:.80}")
    if not np.all(np.isfinite(numbers)) or np.any(numbers <= least):
        raise RequestError(f"{name} must be finite{' and positive' if least == 0.0 else ''}, got {given!r:.80}")
    return numbers


def _json(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None


def thinned(rows: int) -> NDArray[np.intp] | None:
    """Return the numbers of the rows that a page draws, evenly spaced; None where it sums all of them itself."""
    return None if rows <= EXACT_ROWS else np.linspace(0, rows - 1, DRAWN_ROWS).round().astype(np.intp)
