"""SiZer map: significant increases and decreases of a curve, by point and bandwidth."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kernpool.displays import drawing
from kernpool.displays.inputs import TrainingInputs
from kernpool.execution.error_messages import explain_calls

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from kernpool.inference.sizer import SlopeMap

Array = NDArray[np.float64]

FALLING, NEITHER, RISING, FEW = range(4)
COLORS = (drawing.RED, "#ece7f2", drawing.BLUE, "#8d9096")  # falling, neither, rising, too few rows
LABELS = ("falls", "no significant slope", "rises", "too few rows")


@explain_calls
@dataclass(eq=False, repr=False, kw_only=True)
class SiZerDisplay(drawing.Display):
    """SiZer map: where and at which bandwidths a curve increases or decreases significantly.

    Each row of the map is a curve at its bandwidth, with the simultaneous interval of its slope. What is blue at many
    bandwidths is a rise that the data show; what is colored in a few narrow rows alone is a wiggle of the noise or a
    detail that only they can show. Where colors change, the curve has a peak (blue, then red) or a valley.

    Parameters
    ----------
    slopes : SlopeMap
        Of `slope_map`.
    bandwidth : float, optional
        Of the model, marked by a line.
    x_label, y_label, x_kind : str
        Axis labels, and what x holds: ``"numeric"``, or dates or durations in days.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
        Where it was drawn.
    mesh_ : matplotlib QuadMesh
        The map: 0 falling, 1 neither for certain, 2 rising, 3 too few rows; narrow bandwidths first.
    line_ : matplotlib Line2D or None
        The bandwidth of the model.

    References
    ----------
    .. [1] P. Chaudhuri and J. S. Marron, "SiZer for exploration of structures in curves", JASA 94 (1999), 807-823.

    Examples
    --------
    >>> from kernpool import LocalLinearRegressor, SiZerDisplay
    >>> from kernpool.datasets import make_sine_power
    >>> sample = make_sine_power(200, random_state=0)
    >>> model = LocalLinearRegressor().fit(sample.x_train[:, None], sample.y_train)
    >>> display = SiZerDisplay.from_estimator(model)  # doctest: +SKIP
    """

    slopes: SlopeMap = field(kw_only=False)
    bandwidth: float | None = None
    y_label: str = "bandwidth h"

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: ArrayLike | None = None,
        *,
        bandwidths: ArrayLike | None = None,
        level: float = 0.95,
        method: str = "naive",
        variance: str = "local",
        simultaneous: bool = True,
        fewest_rows: float = 5.0,
        ax: Axes | None = None,
        **style: Any,
    ) -> SiZerDisplay:
        """Compute at which points and bandwidths the slope of a regressor is significant, and draw the SiZer map.

        Parameters
        ----------
        estimator : NadarayaWatsonRegressor or LocalLinearRegressor
            Fitted to one column. The slopes are those of local lines for both.
        X : array_like of shape (g, 1), optional
            Evaluation points; by default 201 over the training inputs.
        bandwidths : array_like of shape (b,), optional
            By default 40.
        level, method, variance, simultaneous, fewest_rows
            As in `kernpool.slope_map`.
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.
        **style
            `colors`, `labels` and `line_kwargs` of `plot`.

        Returns
        -------
        SiZerDisplay
            The display, drawn.

        Raises
        ------
        ValueError
            If there are several columns, levels or outputs, or an argument is out of its range.
        TypeError
            If the estimator is no such regressor, or was fitted to chunks.
        """
        from kernpool.estimators import slope_map

        slopes = slope_map(
            estimator, X, bandwidths=bandwidths, level=level, method=method, variance=variance,
            simultaneous=simultaneous, fewest_rows=fewest_rows,
        )  # fmt: skip
        inputs = TrainingInputs.of(estimator)
        kind = inputs.kinds[0]
        unit = "" if kind == "numeric" else " (days)"
        return cls(
            slopes,
            bandwidth=float(estimator.bandwidth_[0]),
            x_label=inputs.labels[0],
            y_label=f"bandwidth h{unit}",
            x_kind=kind,
        ).plot(ax=ax, **style)

    def plot(
        self,
        *,
        ax: Axes | None = None,
        colors: tuple[str, str, str, str] = COLORS,
        labels: tuple[str, str, str, str] = LABELS,
        line_kwargs: dict[str, Any] | None = None,
    ) -> SiZerDisplay:
        """Draw the SiZer map over evaluation points and bandwidths, and a line at the bandwidth of the model.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where; a new figure by default.
        colors, labels : tuple of four str
            Of falling, neither, rising, and too few rows.
        line_kwargs : dict, optional
            Passed to matplotlib for the line at the bandwidth of the model.

        Returns
        -------
        SiZerDisplay
            Itself, with `ax_`, `figure_`, `mesh_` and `line_`.
        """
        from matplotlib.colors import ListedColormap
        from matplotlib.patches import Patch
        from matplotlib.ticker import FormatStrFormatter, LogLocator, NullFormatter

        ax, slopes = self._start(ax), self.slopes
        across, down = np.argsort(slopes.x), np.argsort(slopes.bandwidth)
        cells = np.where(slopes.enough, slopes.sign + 1, FEW)[np.ix_(down, across)]
        x, height = slopes.x[across], slopes.bandwidth[down]
        edges = _edges(x), np.exp(_edges(np.log(height)))
        self.mesh_ = ax.pcolormesh(*edges, cells, cmap=ListedColormap(colors), vmin=-0.5, vmax=3.5, rasterized=True)
        ax.set(yscale="log")
        ax.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        ax.yaxis.set_major_formatter(FormatStrFormatter("%g"))
        ax.yaxis.set_minor_formatter(NullFormatter())
        if len(x) > 1:
            ax.set_xlim(x[0], x[-1])
        ax.set_ylim(edges[1][0], edges[1][-1])
        handles: list[Any] = [
            Patch(facecolor=colors[kind], edgecolor=drawing.BLACK, linewidth=0.4, label=labels[kind])
            for kind in (RISING, FALLING, NEITHER, FEW)
            if np.any(cells == kind)
        ]
        self.line_: Any = None
        if self.bandwidth is not None and edges[1][0] <= self.bandwidth <= edges[1][-1]:
            style: dict[str, Any] = {
                "color": drawing.BLACK,
                "linestyle": "--",
                "linewidth": 1.2,
                "label": "bandwidth of the model",
            }
            self.line_ = ax.axhline(self.bandwidth, **(style | (line_kwargs or {})))
            handles.append(self.line_)
        percent = f"{100 * slopes.level:.6g} %"
        kind = "simultaneous along each bandwidth" if slopes.simultaneous else "pointwise"
        title = f"the curve, by {percent} intervals of its slope, {kind}"
        self._finish(handles=handles, title=title, ncols=3, **drawing.ABOVE)
        return self


def _edges(centers: Array) -> Array:
    """Return the n + 1 edges of the cells of a map around n increasing centers."""
    if len(centers) == 1:
        return np.asarray(centers[0] + np.array([-0.5, 0.5]))
    middle = 0.5 * (centers[1:] + centers[:-1])
    return np.concatenate([[2 * centers[0] - middle[0]], middle, [2 * centers[-1] - middle[-1]]])
