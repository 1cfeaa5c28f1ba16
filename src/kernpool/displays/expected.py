"""Where the next value is expected along a curve: a shade between dashed ends, unlike those for the curve."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from kernpool.core.empty import EmptyWindowWarning
from kernpool.displays.style import BLUE
from kernpool.inference import InferenceWarning

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from kernpool.conformal import PredictionInterval
    from kernpool.displays.section import Section

Array = NDArray[np.float64]

PALE = 0.13


def expected_along(estimator: Any, section: Section, level: float | None, method: str) -> PredictionInterval | None:
    """Ask an estimator for its prediction intervals along a section; None if there is no level.

    Raises
    ------
    TypeError
        If the estimator has none.
    """
    if level is None:
        return None
    ask = getattr(estimator, "prediction_interval", None)
    if ask is None:
        raise TypeError(
            f"{type(estimator).__name__} has no prediction_interval, so that prediction={level!r} cannot be drawn; use "
            "prediction=None, or NadarayaWatsonRegressor or LocalLinearRegressor"
        )
    with warnings.catch_warnings():
        # The caller did not choose the points of the grid; where windows are empty, the shade has gaps. That there are
        # too few rows for the level is said.
        warnings.simplefilter("ignore", EmptyWindowWarning)
        warnings.filterwarnings("ignore", r"\d+ of \d+ prediction intervals", InferenceWarning)
        found: PredictionInterval = ask(section.query, level=level, method=method)
    return found


def need_places(interval: PredictionInterval | None, x: Array) -> None:
    """Refuse intervals at other places than those of a curve."""
    if interval is not None and np.shape(interval.lower) != x.shape:
        raise ValueError(
            f"prediction_interval must be for the {x.size} places of the curve, of one output, got shape "
            f"{np.shape(interval.lower)}"
        )


def expected_in_order(interval: PredictionInterval | None, order: NDArray[np.intp]) -> PredictionInterval | None:
    """Return an interval with its places in another order; if there are others, as it is, for the display to refuse."""
    if interval is None or np.shape(interval.lower) != order.shape:
        return interval
    center, lower, upper = interval.center[order], interval.lower[order], interval.upper[order]
    return replace(interval, center=center, lower=lower, upper=upper)


def draw_expected(ax: Axes, x: Array, interval: PredictionInterval | None, style: dict[str, Any]) -> Any:
    """Shade a prediction interval; gaps where it is infinite. Returns a PolyCollection, or None."""
    if interval is None:
        return None
    from matplotlib.colors import to_rgba

    where = np.isfinite(interval.lower) & np.isfinite(interval.upper)
    default: dict[str, Any] = {"facecolor": to_rgba(BLUE, PALE), "edgecolor": BLUE, "linestyle": "--", "linewidth": 1.0}
    default |= {"label": f"{100 * interval.level:.6g} % prediction: the next value", "zorder": 1.2}
    return ax.fill_between(x, interval.lower, interval.upper, where=where, **(default | style))
