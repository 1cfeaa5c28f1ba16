"""The leave-one-out error over the bandwidth."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from kernpool.displays.style import BLACK, BLUE, RED, new_axes, tidy

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Array = NDArray[np.float64]


class BandwidthPathDisplay:
    """Leave-one-out error of every bandwidth that a search tried, with the best one marked.

    Parameters
    ----------
    bandwidths, errors : ndarray of shape (k,)
        What was tried, increasing, and its error.
    best : float
        The bandwidth that was chosen.
    x_label : str
        What the bandwidth is of.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
        Where it was drawn.
    line_ : matplotlib Line2D
        The path.

    Examples
    --------
    >>> from kernpool import BandwidthPathDisplay, NadarayaWatsonRegressor
    >>> model = NadarayaWatsonRegressor().fit([[0.0], [1.0], [2.0], [4.0]], [0.0, 1.0, 2.0, 4.0])
    >>> display = BandwidthPathDisplay.from_estimator(model)  # doctest: +SKIP
    """

    def __init__(self, *, bandwidths: Array, errors: Array, best: float, x_label: str = "bandwidth h") -> None:
        self.bandwidths = bandwidths
        self.errors = errors
        self.best = best
        self.x_label = x_label

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Axes | None = None, **style: Any) -> BandwidthPathDisplay:
        """Draw the search of a fitted estimator.

        Parameters
        ----------
        estimator : NadarayaWatsonRegressor or NadarayaWatsonClassifier
            Fitted with ``bandwidth="loo"``.
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
                "the estimator has no bandwidth_search_; fit it with bandwidth='loo' (a loaded model has lost its path)"
            )
        one = len(search.bandwidth) == 1
        unit = float(search.bandwidth[0] / search.factor) if one else 1.0
        label = "bandwidth h" if one else "bandwidth h in spreads of the columns"
        display = cls(bandwidths=unit * search.factors, errors=search.errors, best=unit * search.factor, x_label=label)
        return display.plot(ax=ax, **style)

    def plot(
        self,
        *,
        ax: Axes | None = None,
        curve_kwargs: dict[str, Any] | None = None,
        labels: tuple[str, str] = ("leave-one-out error", "smallest at h = {:.3g}"),
    ) -> BandwidthPathDisplay:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where; a new figure by default.
        curve_kwargs : dict, optional
            Passed to matplotlib for the path.
        labels : tuple of str
            The y label, and the legend entry of the mark.

        Returns
        -------
        BandwidthPathDisplay
            Itself, with `ax_`, `figure_` and `line_`.
        """
        ax = new_axes() if ax is None else ax
        self.ax_, self.figure_ = ax, ax.figure
        style: dict[str, Any] = {"color": BLUE, "linewidth": 1.8, "marker": ".", "markersize": 5}
        (self.line_,) = ax.plot(self.bandwidths, self.errors, **(style | (curve_kwargs or {})))
        smallest = float(self.errors.min())
        ax.axvline(self.best, color=BLACK, linewidth=0.8, linestyle=":")
        ax.plot([self.best], [smallest], "o", color=RED, markersize=8, label=labels[1].format(self.best), zorder=3)
        ax.set(xscale="log", xlabel=self.x_label, ylabel=labels[0])
        tidy(ax)
        ax.legend(frameon=False)
        return self
