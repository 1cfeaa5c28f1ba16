"""Confidence intervals and simultaneous bands drawn around a curve."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from kernpool.core.state import EmptyWindowWarning
from kernpool.execution.messages import check_choice

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from kernpool.displays.style import InputGrid
    from kernpool.inference import Interval

Array = NDArray[np.float64]

BANDS = ("confidence", "simultaneous")
PALE, DARK = 0.16, 0.3  # opacity of the simultaneous band and of pointwise intervals
SEEN = 0.02  # in half widths: smaller distances between curve and center are invisible
REACH = 1.0  # in spans of rows and curve: the most that a band adds to the y axis on either side


def bands_of(estimator: Any, section: InputGrid, band: str | None, **options: Any) -> tuple[Interval, ...]:
    """Compute the confidence intervals of an estimator along a section.

    Parameters
    ----------
    estimator : fitted regressor
        With `confidence_interval`.
    section : InputGrid
        Where.
    band : {"confidence", "simultaneous"} or None
        The second is both.
    **options
        `level`, `quantity`, `method`, `variance` of `confidence_interval`.

    Returns
    -------
    tuple of Interval
        The widest first, of one output and one column.

    Raises
    ------
    ValueError
        If there is no such band.
    TypeError
        If the estimator has no intervals.
    """
    if band is None:
        return ()
    check_choice("band", band, (*BANDS, None))
    ask = getattr(estimator, "confidence_interval", None)
    if ask is None:
        raise TypeError(
            f"{type(estimator).__name__} has no confidence_interval, so that band={band!r} cannot be drawn; use "
            "band=None, or NadarayaWatsonRegressor or LocalLinearRegressor"
        )
    with warnings.catch_warnings():
        # The caller did not choose the points of the grid; where windows are empty, the band has gaps.
        warnings.simplefilter("ignore", EmptyWindowWarning)
        found = [ask(section.query, simultaneous=band == "simultaneous", **options)]
        if band == "simultaneous":
            warnings.simplefilter("ignore")  # said once already
            found.append(ask(section.query, **options))
    slopes = found[0].center.ndim > 1
    return tuple(_part(one, (slice(None), section.column)) if slopes else one for one in found)


def curve_along(estimator: Any, section: InputGrid, quantity: str) -> Array:
    """Return the predictions of an estimator along a section, or their slopes for ``quantity="derivative"``."""
    with warnings.catch_warnings():
        # The caller did not choose the points of the grid; where windows are empty, the curve has gaps.
        warnings.simplefilter("ignore", EmptyWindowWarning)
        if quantity == "derivative":
            curve = np.asarray(estimator.derivative(section.query))[:, section.column]
        else:
            curve = np.asarray(estimator.predict(section.query))
    if curve.ndim != 1:
        raise ValueError(f"one output can be drawn at a time, the estimator predicts {curve.shape[1]}")
    return curve


def need_intervals(bands: Sequence[Interval], x: Array) -> None:
    """Raise ValueError unless the intervals have the evaluation points of the curve."""
    if any(np.shape(interval.center) != x.shape for interval in bands):
        raise ValueError(
            f"bands must hold intervals for the {x.size} points of the curve, of one output and one column, got "
            f"shapes {[np.shape(interval.center) for interval in bands]}"
        )


def in_order(interval: Interval, order: NDArray[np.intp]) -> Interval:
    """Reorder the points of an interval; return it unchanged if the sizes differ, for the display to refuse."""
    if np.shape(interval.center) != order.shape:
        return interval
    return replace(_part(interval, order), df=interval.df[order])


def _part(interval: Interval, which: Any) -> Interval:
    names = ("center", "lower", "upper", "standard_error")
    return replace(interval, **{name: getattr(interval, name)[which] for name in names})


def label_of(interval: Interval) -> str:
    """Return the legend label of an interval: pointwise or simultaneous.

    Examples
    --------
    >>> import numpy as np
    >>> from kernpool import Interval
    >>> one = np.zeros(1)
    >>> label_of(Interval(one, one, one, one, one, 0.95, "robust"))
    '95 % pointwise interval'
    """
    percent = f"{100 * interval.level:.6g} %"
    if interval.critical is None:
        return f"{percent} pointwise interval"
    return f"{percent} simultaneous band"


def draw_bands(ax: Axes, x: Array, bands: Sequence[Interval], style: dict[str, Any]) -> list[Any]:
    """Draw intervals as bands, the widest palest and lowest; gaps where the limits are not finite."""
    shades = []
    for depth, interval in enumerate(bands):
        alpha = PALE if len(bands) > 1 and depth == 0 else DARK
        default: dict[str, Any] = {"alpha": alpha, "linewidth": 0, "label": label_of(interval)}
        where = np.isfinite(interval.lower) & np.isfinite(interval.upper)
        shades.append(ax.fill_between(x, interval.lower, interval.upper, where=where, **(default | style)))
    return shades


def leaves(curve: Array, interval: Interval) -> bool:
    """Return whether the center of an interval differs visibly from a curve."""
    with np.errstate(invalid="ignore"):
        apart = np.abs(interval.center - curve) > SEEN * 0.5 * interval.width
    return bool(np.any(apart))


def limit_height(ax: Axes, drawn: Sequence[Array | None], bands: Sequence[Any]) -> None:
    """Limit the y axis where bands are very wide, so that they do not flatten the curve."""
    values = np.concatenate([np.ravel(one) for one in drawn if one is not None])
    values = values[np.isfinite(values)]
    ends = np.concatenate([np.r_[one.lower, one.upper] for one in bands])
    ends = ends[np.isfinite(ends)]
    if not values.size or not ends.size:
        return
    low, high = values.min(), values.max()
    reach = REACH * (high - low)
    bottom, top = ax.get_ylim()
    if ends.min() < low - reach:
        bottom = max(bottom, low - reach)
    if ends.max() > high + reach:
        top = min(top, high + reach)
    ax.set_ylim(bottom, top)
