"""Prediction intervals of fits whose rows are not in memory: split conformal, by rows that are held back or given."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kernpool.bandwidth.rate import rate_factor
from kernpool.conformal import Calibration, PredictionInterval, Setting, as_level, check_method, prediction_interval
from kernpool.conformal.ranks import least_rows
from kernpool.conformal.ratio import DensityRatio
from kernpool.conformal.setting import Origin
from kernpool.conformal.shift import read_weights
from kernpool.core.keys import Keys
from kernpool.data.groups import group_codes
from kernpool.estimators.calibrating import check_rows, origin_of, read_outputs
from kernpool.estimators.held_back import MOST_HELD, HeldBack, Source, held_back, values_of
from kernpool.estimators.search_sample import SearchDraw, seed_of
from kernpool.inference import Places, Smoother
from kernpool.inference.draws import generator

Array = NDArray[np.float64]

METHODS_OF_SAMPLES = ("adaptive", "split")


def interval_of_source(
    model: Any,
    source: Source,
    X: ArrayLike,
    *,
    level: float,
    method: str,
    weights: Any,
    X_calibration: ArrayLike | None,
    y_calibration: ArrayLike | None,
    calibration: str | None,
    groups: ArrayLike | None,
) -> PredictionInterval:
    """Find prediction intervals of a model on chunks or on a cluster.

    Parameters
    ----------
    model : regressor
        Fitted.
    source : Source
        Where its rows are.
    X, level, method, weights, X_calibration, y_calibration, calibration, groups
        As of ``prediction_interval``.

    Returns
    -------
    PredictionInterval
        In the shape of ``predict``.

    Raises
    ------
    TypeError
        If the method needs all rows in memory, or `groups` or a pair of `weights` are of rows that nobody has numbered.
    ValueError
        As of ``prediction_interval``, or if there are too few rows to hold some back.

    Notes
    -----
    ``"adaptive"`` holds back as many rows for its scale, which has their bandwidth: that of the fit, made larger by the
    rate :math:`n^{-1/(4 + d)}`, and three times that.
    """
    fraction, others = as_level(level), check_rows(X_calibration, y_calibration, calibration)
    _check(model, method, weights, groups, others)
    place, scaled = source.read(X), method == "adaptive"
    there, held = np.empty((0, place.shape[1])), None
    if others:
        try:
            there = source.read(X_calibration, warn=False)  # type: ignore[arg-type]  # refused there, in words
        except (ValueError, TypeError) as error:
            raise type(error)(f"X_calibration: {error}") from None
    if scaled or not others:
        held = _held(
            model, source, MOST_HELD * (scaled + (not others)), least_rows(fraction) * (1 + scaled), calibration
        )
    rows, scale = (None, held) if others else _halves(held, scaled)
    shape = (len(there), *(() if source.flat else (source.outputs,)))
    value = read_outputs(y_calibration, shape) if rows is None else rows.value
    there = there if rows is None else rows.key
    query = np.vstack([place, there] + ([scale.key] if scaled and scale is not None else []))
    found = values_of(source.recipe, source.sums(query, None if held is None else held.numbers), len(place))
    center, predicted, around = np.split(found, [len(place), len(place) + len(there)])
    weight = np.ones(len(there)) if rows is None else rows.weight
    group = None if groups is None else group_codes(groups, len(there))
    calibrating = Calibration(
        Places(there), value, predicted, weight, own=False, group=group, held_back=rows is not None
    )
    if weights is not None:
        shift, place_shift = read_weights(
            weights, lambda: X_calibration if others else there, X, (len(there), len(place))
        )
        estimated = isinstance(weights, DensityRatio)
        calibrating = replace(calibrating, shift=shift, place_shift=place_shift, estimated=estimated)
    setting = Setting(
        _smoother(source, scale) if scaled and scale is not None else _unscaled(source, there, value),
        Places(place),
        fraction,
        calibrating,
        generator(0, 0),
        _origin(model, held),
        known=around,
        center=center,
    )
    result = prediction_interval(setting, method)
    ends = (result.center, result.lower, result.upper)
    center, lower, upper = (end[:, 0] if source.flat else end for end in ends)
    return replace(result, center=center, lower=lower, upper=upper)


def _check(model: Any, method: Any, weights: Any, groups: Any, others: bool) -> None:
    """Refuse what cannot be had without all rows in memory."""
    name = type(model).__name__
    remedy = "fit a sample of them in memory, with bandwidth=model.bandwidth_"
    if not isinstance(method, str) or method not in METHODS_OF_SAMPLES:
        check_method(method, own=method != "split")  # which says what names there are
        raise TypeError(
            f"method={method!r} needs the rows themselves, and this {name} knows where they are and does not hold "
            f"them; use method='adaptive' or 'split', which hold some rows back, or {remedy}"
        )
    if groups is not None and not others:
        raise TypeError(
            f"groups must be None for this {name}, which does not hold its rows; give X_calibration and y_calibration "
            f"of other clusters with their groups, or {remedy}"
        )
    if weights is not None and not callable(weights) and not others:
        raise TypeError(
            "weights must be a function of X for rows that are held back, which are drawn; such as "
            "density_ratio(X_sample, X_new)"
        )


def _held(model: Any, source: Source, size: int, level_rows: int, calibration: str | None) -> HeldBack:
    search: SearchDraw | None = vars(model).get("_search_draw")
    if calibration == "unsearched" and search is None:
        why = "nobody knows which these are" if isinstance(model.bandwidth, str) else "it was given, and not searched"
        raise ValueError(
            f"calibration='unsearched' needs rows that the search for the bandwidth has not seen, and {why}; leave "
            "calibration out"
        )
    return held_back(source, size, level_rows, search, seed_of(model.random_state), calibration)


def _halves(held: HeldBack | None, scaled: bool) -> tuple[HeldBack, HeldBack]:
    """Return the rows that calibrate, and those of the scale."""
    assert held is not None
    half = (len(held.key) + 1) // 2 if scaled else len(held.key)
    return held.part(0, half), held.part(half)


def _origin(model: Any, held: HeldBack | None) -> Origin:
    """Return how the bandwidth came, for rows that are held back."""
    if origin_of(model) == "given":
        return "given"
    known = vars(model).get("_search_draw") is not None
    return "unsearched" if held is not None and known and not held.searched else "found"


def _smoother(source: Source, rows: HeldBack) -> Smoother:
    """Return the rows of the scale, at the bandwidth that fits so few of all."""
    recipe = source.recipe
    factor = 1.0 / rate_factor(len(rows.key), rows.rows, rows.key.shape[1])
    wider = replace(recipe, bandwidth=np.asarray(recipe.bandwidth * factor))
    return Smoother(Keys.read(rows.key, rows.value, rows.weight), wider)


def _unscaled(source: Source, key: Array, value: Array) -> Smoother:
    """Return a smoother of which nothing but the policy of empty windows is asked."""
    return Smoother(Keys.read(key, value), source.recipe)
