"""Plot of a bandwidth search: the criterion against the bandwidth."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from kernpool.displays import drawing

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.lines import Line2D

Array = NDArray[np.float64]

FLATTEST = 30.0  # spreads: what is smoother is drawn there, since it makes no difference
TITLES = {
    "loo": "leave-one-out error",
    "regularised": "leave-one-out error, penalised",
    "aicc": "AICc",
    "gcv": "generalised cross-validation",
    "log_loss": "leave-one-out log loss, penalised",
}


@dataclass(eq=False, repr=False, kw_only=True)
class BandwidthPathDisplay(drawing.Display):
    """Criterion of a bandwidth search at every bandwidth that it tried, with the minimum marked.

    One bandwidth, or one factor common to all columns, makes a curve; one bandwidth per column makes a cloud of points
    for each, whose lower edge is the criterion with the other columns at about their best.

    Parameters
    ----------
    bandwidths : ndarray of shape (e, p)
        What was tried, in turn.
    values : ndarray of shape (e,)
        The criterion there.
    best : ndarray of shape (p,)
        What was chosen.
    names : list of str, optional
        Of the p bandwidths.
    x_label, y_label, x_kind : str
        Axis labels, and what x holds, as in the other displays.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
        Where it was drawn.
    lines_ : list of matplotlib Line2D
        The curve, or the points of each column.

    Examples
    --------
    >>> from kernpool import BandwidthPathDisplay, NadarayaWatsonRegressor
    >>> model = NadarayaWatsonRegressor().fit([[0.0], [1.0], [2.0], [4.0]], [0.0, 1.0, 2.0, 4.0])
    >>> display = BandwidthPathDisplay.from_estimator(model)  # doctest: +SKIP
    """

    bandwidths: Array
    values: Array
    best: Array
    names: list[str] | None = None
    x_label: str = "bandwidth h"
    y_label: str = "leave-one-out error"

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Axes | None = None, **style: Any) -> BandwidthPathDisplay:
        """Draw the criterion of a fitted estimator's bandwidth search against the bandwidths tried.

        Parameters
        ----------
        estimator : NadarayaWatsonRegressor, LocalLinearRegressor or NadarayaWatsonClassifier
            Fitted with a bandwidth to be searched for.
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.
        **style
            `curve_kwargs` and `labels` of `plot`.

        Returns
        -------
        BandwidthPathDisplay
            The display, drawn.

        Raises
        ------
        ValueError
            If the estimator did not search.
        """
        search = getattr(estimator, "bandwidth_search_", None)
        if search is None:
            raise ValueError(
                "the estimator has no bandwidth_search_; fit it with bandwidth='loo', 'aicc' or 'gcv' (a model "
                "loaded from a file does not have it either)"
            )
        tried, best, names, label = search.tried, search.bandwidth, None, "bandwidth h"
        columns = len(search.spread)
        if columns > 1 or len(search.smoothing):
            label = "bandwidth h in spreads of the columns"
            shown = 1 if search.common_factor else columns  # of a common factor all columns show the same
            tried, best = (tried[:, :columns] / search.spread)[:, :shown], (best / search.spread)[:shown]
            names = None if search.common_factor else estimator.encoding_.numeric_labels()
        return cls(
            bandwidths=tried,
            values=search.values,
            best=best,
            names=names,
            x_label=label,
            y_label=TITLES[search.criterion],
        ).plot(ax=ax, **style)

    def plot(
        self,
        *,
        ax: Axes | None = None,
        curve_kwargs: drawing.Style = None,
        labels: tuple[str, str] = ("smallest at h = {:.3g}", "{}: {:.3g}"),
    ) -> BandwidthPathDisplay:
        """Draw the criterion against the bandwidth: a curve, or with several columns one cloud of points per column.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where; a new figure by default.
        curve_kwargs : dict, optional
            Passed to matplotlib for the curve or the points.
        labels : tuple of str
            The legend entry of the mark on a curve, and that of a column.

        Returns
        -------
        BandwidthPathDisplay
            Itself, with `ax_`, `figure_` and `lines_`.
        """
        ax = self._start(ax)
        finite = np.isfinite(self.values)
        if not finite.any():
            raise ValueError("the criterion is infinite at every bandwidth that was tried: the fits are perfect")
        bandwidths, values = self.bandwidths[finite], self.values[finite]
        draw = self._curve if bandwidths.shape[1] == 1 else self._points
        self.lines_: list[Line2D] = draw(ax, bandwidths, values, curve_kwargs or {}, labels)
        ax.set_xscale("log")
        self._finish(frameon=False)
        return self

    def _curve(self, ax: Axes, bandwidths: Array, values: Array, style: dict[str, Any], labels: Any) -> list[Line2D]:
        order = np.argsort(bandwidths[:, 0])
        default: dict[str, Any] = {"color": drawing.BLUE, "linewidth": 1.8, "marker": ".", "markersize": 5}
        (line,) = ax.plot(bandwidths[order, 0], values[order], **(default | style))
        best = float(self.best[0])
        ax.axvline(best, color=drawing.BLACK, linewidth=0.8, linestyle=":")
        ax.plot([best], [values.min()], "o", color=drawing.RED, markersize=8, label=labels[0].format(best), zorder=3)
        return [line]

    def _points(self, ax: Axes, bandwidths: Array, values: Array, style: dict[str, Any], labels: Any) -> list[Line2D]:
        lines = []
        default: dict[str, Any] = {"linestyle": "none", "marker": ".", "markersize": 6, "alpha": 0.35}
        for a, name in enumerate(self.names or [f"column {a}" for a in range(len(self.best))]):
            at, best = np.minimum(bandwidths[:, a], FLATTEST), float(self.best[a])
            (line,) = ax.plot(at, values, **(default | {"color": f"C{a}"} | style))
            label = labels[1].format(name, best) if best < FLATTEST else f"{name}: no bandwidth"
            ax.plot(
                [min(best, FLATTEST)], [values.min()], "o", color=line.get_color(), markersize=9, label=label,
                markeredgecolor=drawing.BLACK, clip_on=False, zorder=3,
            )  # fmt: skip
            lines.append(line)
        # Starts may be far above the rest, where nothing is to be seen.
        low, typical = values.min(), np.quantile(values, 0.7)
        ax.set_ylim(low - 0.08 * (typical - low), typical)
        return lines
