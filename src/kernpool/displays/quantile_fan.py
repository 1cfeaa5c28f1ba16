"""Fan chart: conditional quantiles over one column, around the median."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kernpool.displays import drawing
from kernpool.displays.inputs import Section, target_name
from kernpool.distribution import as_levels

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Array = NDArray[np.float64]

LEVELS = (0.05, 0.25, 0.5, 0.75, 0.95)
PALEST, DARKEST = 0.25, 0.6  # fraction of color in the outermost band and in the innermost of several


@dataclass(eq=False, repr=False, kw_only=True)
class QuantileFanDisplay(drawing.Display):
    """Conditional quantiles over one column: bands between symmetric quantiles, and the median.

    Where the fan is wide, values scatter; where its halves differ, they are skewed. Bands describe values of y, not
    the uncertainty of a curve.

    Parameters
    ----------
    x : ndarray of shape (g,)
        Grid of inputs, increasing.
    quantile : ndarray of shape (g, l)
        Quantiles on the grid; NaN leaves a gap.
    levels : array_like of shape (l,)
        Their levels, in any order: the lowest is paired with the highest, and so on; a middle one is drawn as a line.
    x_train, y_train : ndarray of shape (n,), optional
        Training samples.
    x_label, y_label, x_kind : str
        Axis labels, and what x holds: ``"numeric"``, or dates or durations in days.
    note : str, optional
        Title of the legend.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
        Where it was drawn.
    bands_ : list of matplotlib PolyCollection
        Bands, the widest first.
    line_ : matplotlib Line2D or None
        The median, or the quantile of another level in the middle; None if the number of levels is even.
    scatter_ : matplotlib PathCollection or None
        Training samples.

    Raises
    ------
    ValueError
        If levels are not between 0 and 1, or occur twice, or shapes do not match, or a quantile falls while its level
        rises.

    Examples
    --------
    >>> from kernpool import NadarayaWatsonRegressor, QuantileFanDisplay
    >>> from kernpool.datasets import make_sine_power
    >>> sample = make_sine_power(200, random_state=0)
    >>> X = sample.x_train[:, None]
    >>> model = NadarayaWatsonRegressor().fit(X, sample.y_train)
    >>> display = QuantileFanDisplay.from_estimator(model, X, sample.y_train)  # doctest: +SKIP
    """

    x: Array
    quantile: Array
    levels: Array
    x_train: Array | None = None
    y_train: Array | None = None
    note: str | None = None

    def __post_init__(self) -> None:
        x, level = self.x, np.atleast_1d(as_levels(self.levels))
        if np.shape(self.quantile) != (len(x), len(level)):
            raise ValueError(
                f"quantiles must have one row per input and one column per level, ({len(x)}, {len(level)}), got shape "
                f"{np.shape(self.quantile)}"
            )
        order = np.argsort(level, kind="stable")
        self.levels, self.quantile = level[order], np.asarray(self.quantile, dtype=np.float64)[:, order]
        if np.any(np.diff(self.levels) == 0):
            raise ValueError(f"levels must differ from each other, got {level.tolist()}")
        with np.errstate(invalid="ignore"):
            falls = np.argwhere(np.diff(self.quantile, axis=1) < 0)
        if falls.size:
            row, column = falls[0]
            raise ValueError(
                f"quantiles must not fall while their level rises: at x = {x[row]:g} that of level "
                f"{self.levels[column + 1]:g} is below that of {self.levels[column]:g}; columns are in the order of "
                "levels"
            )

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: ArrayLike | None = None,
        y: ArrayLike | None = None,
        *,
        feature: int | str | None = None,
        levels: ArrayLike = LEVELS,
        grid_resolution: int | None = None,
        subsample: int | None = 1000,
        target: str | None = None,
        ax: Axes | None = None,
        **style: Any,
    ) -> QuantileFanDisplay:
        """Draw conditional quantiles on a grid over one column, the others at medians or most frequent categories.

        Parameters
        ----------
        estimator : NadarayaWatsonRegressor or LocalLinearRegressor
            Fitted to one output, in memory.
        X : array_like or data frame of shape (n, d), optional
            Training inputs; by default those that the estimator holds.
        y : array_like of shape (n,), optional
            Training outputs, likewise.
        feature : int or str, optional
            Which column; needed if there are several.
        levels : array_like of shape (l,), default=(0.05, 0.25, 0.5, 0.75, 0.95)
            Of the quantiles, between 0 and 1.
        grid_resolution : int, optional
            Points of the grid; by default eight per bandwidth, at least 200 and at most 4000.
        subsample : int or None, default=1000
            Draw at most so many evenly chosen samples; None draws all.
        target : str, optional
            Name of the output, for the label of the y axis; by default that of the Series y of the fit, or "y".
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.
        **style
            `color`, `band_kwargs`, `median_kwargs` and `scatter_kwargs` of `plot`.

        Returns
        -------
        QuantileFanDisplay
            The display, drawn.

        Raises
        ------
        ValueError
            If X has several columns and `feature` is not given or not one of them, or holds categories, there are
            several outputs, or levels are invalid.
        TypeError
            If the estimator has no quantiles, or was fitted to chunks.
        """
        level = np.atleast_1d(as_levels(levels))
        section = Section.over(estimator, X, y, feature, grid_resolution)
        x_train, y_train = section.samples.drawn(section.column, subsample)
        remedy = "; use NadarayaWatsonRegressor or LocalLinearRegressor, fitted in memory"
        found = np.asarray(section.ask("quantile", remedy, levels=level))
        drawing.need_one_output(found, axes=2)
        return cls(
            x=section.x,
            quantile=found,
            levels=level,
            x_train=x_train,
            y_train=y_train,
            x_label=section.label,
            y_label=target_name(estimator, y, target),
            note=section.samples.note(section.column) or None,
            x_kind=section.kind,
        ).plot(ax=ax, **style)

    @classmethod
    def from_quantiles(
        cls,
        x: ArrayLike,
        quantiles: ArrayLike,
        levels: ArrayLike,
        *,
        x_train: ArrayLike | None = None,
        y_train: ArrayLike | None = None,
        x_label: str = "x",
        y_label: str = "y",
        ax: Axes | None = None,
        **style: Any,
    ) -> QuantileFanDisplay:
        """Draw given conditional quantiles as a fan chart over their inputs.

        Parameters
        ----------
        x : array_like of shape (g,)
            Inputs, in any order.
        quantiles : array_like of shape (g, l)
            As `quantile` of an estimator returns them.
        levels : array_like of shape (l,)
            Their levels.
        x_train, y_train : array_like of shape (n,), optional
            Training samples.
        x_label, y_label : str
            Axis labels.
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.
        **style
            `color`, `band_kwargs`, `median_kwargs` and `scatter_kwargs` of `plot`.

        Returns
        -------
        QuantileFanDisplay
            The display, drawn.

        Raises
        ------
        ValueError
            As for the class, and if `x_train` and `y_train` are not of one length.
        """
        x = drawing.as_numbers("x", x).ravel()
        found = drawing.as_numbers("quantiles", quantiles)
        drawing.check_length("quantiles", np.atleast_1d(found), len(x), "entry of x")
        order = np.argsort(x, kind="stable")
        x_train, y_train = drawing.flat_samples(x_train, y_train)
        return cls(
            x=x[order],
            quantile=found[order],
            levels=np.asarray(levels),
            x_train=x_train,
            y_train=y_train,
            x_label=x_label,
            y_label=y_label,
        ).plot(ax=ax, **style)

    def plot(
        self,
        *,
        ax: Axes | None = None,
        color: Any = drawing.BLUE,
        band_kwargs: drawing.Style = None,
        median_kwargs: drawing.Style = None,
        scatter_kwargs: drawing.Style = None,
    ) -> QuantileFanDisplay:
        """Draw the bands between quantiles, the median line and the training samples.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where; a new figure by default.
        color : color, default=blue
            Color of the bands, mixed with white, the outermost most.
        band_kwargs, median_kwargs, scatter_kwargs : dict, optional
            Passed to matplotlib for the bands, the median line and the samples.

        Returns
        -------
        QuantileFanDisplay
            Itself, with `ax_`, `figure_`, `bands_`, `line_` and `scatter_`.
        """
        ax = self._start(ax)
        self.bands_: list[Any] = []
        pairs = len(self.levels) // 2
        for low in range(pairs):  # the outermost band first
            high = len(self.levels) - 1 - low
            # Opaque, so that the legend shows the very colors of the picture; samples lie above.
            ink = PALEST + (DARKEST - PALEST) * low / max(pairs - 1, 1)
            shade, label = drawing.mixed_with_white(color, ink), label_of(self.levels[low], self.levels[high])
            style = drawing.styled(band_kwargs, color=shade, linewidth=0, zorder=0.5 + low / 100, label=label)
            self.bands_.append(drawing.draw_band(ax, self.x, self.quantile[:, low], self.quantile[:, high], style))
        self.scatter_ = drawing.draw_samples(ax, self.x_train, self.y_train, scatter_kwargs)
        self.line_: Any = None
        if len(self.levels) % 2:
            middle = len(self.levels) // 2
            level = self.levels[middle]
            label = "median" if level == 0.5 else f"quantile {level:g}"
            style = drawing.styled(median_kwargs, color=drawing.BLACK, linewidth=1.6, zorder=3, label=label)
            (self.line_,) = ax.plot(self.x, self.quantile[:, middle], **style)
        self._finish(title=self.note, ncols=2, **drawing.ABOVE)
        return self


def label_of(low: float, high: float) -> str:
    """Return the legend label of the band between the quantiles of two levels."""
    return f"{100 * (high - low):.6g} % of values: quantiles {low:g} to {high:g}"
