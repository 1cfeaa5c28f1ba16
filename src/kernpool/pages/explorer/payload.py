"""What Python tells the page: rows, names and settings as JSON, floating-point numbers without a lost digit."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kernpool.estimators.extrapolation import limits_of
from kernpool.estimators.fitted import recipe_of
from kernpool.kernels import BUILT_IN, get_kernel
from kernpool.pages.explorer.subject import Sample, Subject

VERSION = 1
EXACT_ROWS = 5000  # up to so many the page visits every pair itself


def payload_of(
    subject: Subject, *, language: str | None = None, kept: NDArray[np.intp] | None = None
) -> dict[str, Any]:
    """Return what a page needs to know of a subject.

    Parameters
    ----------
    subject : Subject
        What is explored.
    language : {"en", "zh"} or None
        None follows the browser.
    kept : ndarray of int, optional
        The rows that the page draws, where an engine knows all of them; by default all.

    Returns
    -------
    dict
        JSON, with arrays as base64 of little-endian numbers: 10.7 bytes a number in place of up to 20 of text.

    Examples
    --------
    >>> from kernpool.pages.explorer.subject import subject_of_generator
    >>> payload = payload_of(subject_of_generator("make_sine_power", 0, None))
    >>> payload["task"], payload["settings"]["kernel"], sorted(payload["columns"][0])
    ('regression', 'gaussian', ['kind', 'name', 'values'])
    """
    model = subject.model
    rows = np.arange(subject.rows) if kept is None else kept
    fitted = settings_of(model)
    kernel = get_kernel(model.kernel).name
    return {
        "version": VERSION,
        "task": "classification" if subject.is_classifier else "regression",
        "language": language,
        "title": subject.title,
        "rows": subject.rows,
        "columns": _columns(subject, rows),
        "target": _target(subject, rows),
        "weight": None if model.key_weight_ is None else floats(model.key_weight_[rows]),
        "group": None if vars(model).get("key_group_") is None else integers(model.key_group_[rows]),
        "truth": None if subject.truth is None else {"x": floats(subject.truth[0]), "y": floats(subject.truth[1])},
        "settings": fitted,
        "fitted": fitted,
        "column": subject.column,
        "query": None if subject.query is None else {"numeric": [*subject.query[0]], "codes": [*subject.query[1]]},
        "kernels": list(dict.fromkeys([*BUILT_IN, kernel])),
        "samples": [_sample(sample) for sample in subject.samples] or None,
        "python": _python(subject),
        "limits": {"exact": EXACT_ROWS},
        "relevance": _relevance(model),
    }


def _python(subject: Subject) -> dict[str, Any]:
    """Return what "copy as Python" has to know beyond what the page shows."""
    model = subject.model
    return {
        "load": subject.load,
        "estimator": type(model).__name__,
        "weighted": model.key_weight_ is not None,
        "grouped": vars(model).get("key_group_") is not None,
        "unseen": model.unseen,
        "orderedBy": model.ordered_by,
        "extrapolate": getattr(model, "extrapolate", "plane"),
    }


def _relevance(model: Any) -> list[float] | None:
    """Return what the search found, of numeric columns and then of those of levels: as settings have them."""
    found = getattr(model, "relevance_", None)
    if found is None:
        return None
    encoding = model.encoding_
    order = range(len(found)) if encoding is None else (*encoding.numeric, *encoding.categorical)
    return [float(found[position]) for position in order]


def settings_of(model: Any) -> dict[str, Any]:
    """Return how a fitted model pools, as the page says it."""
    recipe = recipe_of(model)
    columns = model.key_.shape[1]
    ridge, limits = recipe.ridge_weight(columns), limits_of(model)
    return {
        "kernel": recipe.kernel.name,
        "bandwidth": np.broadcast_to(recipe.bandwidth, (columns,)).tolist(),
        "composition": recipe.composition,
        "degree": recipe.degree,
        "smoothing": np.asarray(model.smoothing_, dtype=np.float64).tolist(),
        "ridge": None if ridge is None else float(model.ridge_),
        "clip": None if limits is None else [float(limit[0]) for limit in limits],  # of planes, with no row left out
        "empty": model.empty,
        "priorShare": float(getattr(model, "prior_share_", 0.0)),
    }


def floats(array: ArrayLike) -> dict[str, str]:
    """Return numbers as base64 of little-endian float64."""
    return {"f64": b64encode(np.asarray(array, dtype="<f8").tobytes()).decode("ascii")}


def integers(array: ArrayLike) -> dict[str, str]:
    """Return integers as base64 of little-endian int32."""
    return {"i32": b64encode(np.asarray(array, dtype="<i4").tobytes()).decode("ascii")}


def _columns(subject: Subject, rows: NDArray[np.intp]) -> list[dict[str, Any]]:
    """Return the columns in their order: numbers, or levels with what their kernel wants to know.

    A column of two levels that is a number in a plane is numeric, 0 and 1, and has levels.
    """
    model, encoding = subject.model, subject.model.encoding_
    if encoding is None:
        return [
            {"name": name, "kind": "numeric", "values": floats(model.key_[rows, a])}
            for a, name in enumerate(subject.names)
        ]
    categories, numeric, categorical = model._categories(), list(encoding.numeric), list(encoding.categorical)
    pairs = iter(encoding.pairs)
    described: list[dict[str, Any]] = []
    for position, name in enumerate(subject.names):
        if position in numeric:
            column = model.key_[rows, numeric.index(position)]
            levels = _levels(next(pairs)) if encoding.kinds[position] == "binary" else {}
            time = {"time": encoding.kinds[position]} if position in encoding.dates else {}
            described.append({"name": name, "kind": "numeric", "values": floats(column), **levels, **time})
            continue
        k = categorical.index(position)
        places = encoding.places[k]
        described.append(
            {
                "name": name,
                "kind": encoding.kinds[position],
                **_levels(encoding.levels[k]),
                "codes": integers(model.key_code_[rows, k]),
                "kernel": categories.kernels[k].name,
                "largest": float(categories.largest[k]),
                "places": None if places is None else list(places),
            }
        )
    return described


def _levels(levels: Sequence[Any]) -> dict[str, list[str]]:
    """Return levels as they are shown, and as Python has them: a ZIP code is text, whatever it looks like."""
    plain = [level.item() if isinstance(level, np.generic) else level for level in levels]
    return {"levels": [str(level) for level in plain], "literals": [repr(level) for level in plain]}


def _target(subject: Subject, rows: NDArray[np.intp]) -> dict[str, Any]:
    model = subject.model
    if subject.is_classifier:
        number = np.argmax(model.value_[rows], axis=1)
        return {"name": subject.target, "classes": [str(name) for name in model.classes_], "codes": integers(number)}
    return {"name": subject.target, "values": floats(np.asarray(model.value_, dtype=np.float64).reshape(-1)[rows])}


def _sample(sample: Sample) -> dict[str, Any]:
    data = sample.data
    return {
        "generator": sample.generator,
        "seed": sample.seed,
        "x": floats(data.x_train),
        "y": floats(data.y_train),
        "truth": {"x": floats(data.x_test), "y": floats(data.y_truth)},
    }
