"""Plot of a fit over each of its columns: the others at typical values, or averaged over rows.

A column of numbers is drawn as a curve, a column of categories as points, a pair of columns as a heat map. Of a
classifier the probability of each class is drawn.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial import KDTree

from kernpool._arrays import Array, Index
from kernpool.displays import drawing
from kernpool.displays.curve import CENTER, differs_visibly
from kernpool.displays.inputs import Section, TrainingSamples, target_name
from kernpool.execution import as_level, check_choice, warn_caller

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from kernpool.inference import Interval


KINDS = ("typical", "average")
MOST_SAMPLES = 1000  # drawn, evenly chosen
AVERAGED_GRID = 50  # points of a curve whose predictions are averaged: each costs a prediction per row
SURFACE, AVERAGED_SURFACE = 60, 25  # points of a surface along each of its columns
FAR = 0.1  # of the ranges of both columns: a surface ends there, as plot.gam of mgcv does
TICKS = 2000  # ticks that can be distinguished
CONTOURS = 6
MOST_CATEGORIES = 30  # the most frequent, in one panel
TURNED = 6  # more labels than this, or longer ones than fit, are turned
PALE, PALER = 0.22, 0.13  # opacity of bands of one curve, and of several
LETTER = 0.06  # inches of an upright label
REACH = 0.5  # in ranges of the training outputs: the most that panels extend beyond these


@dataclass(frozen=True, eq=False)
class Panel:
    """Content of the plot over one column: a curve over numbers or a point per category, for each output."""

    label: str
    kind: str
    x: Array  # shape (g,); of categories 0, 1, ...
    prediction: Array  # shape (g, c), one column per curve
    interval: Interval | None
    categories: tuple[str, ...] | None  # with their numbers of rows
    rows: Array  # values of the training rows, drawn as ticks


@dataclass(frozen=True, eq=False)
class Surface:
    """Content of the plot over two columns: predictions on a grid."""

    labels: Sequence[str]
    kinds: Sequence[str]
    x: Array
    y: Array
    prediction: Array  # one row per y; NaN far from all rows
    rows: Array  # shape (n, 2)


@dataclass(eq=False, repr=False, kw_only=True)
class PartialDisplay:
    """A fit over each of its columns: one panel per column, the other columns at typical values or averaged.

    Parameters
    ----------
    panels : sequence of Panel or Surface
        One per column, or pair of columns.
    y_label : str
        Name of the output.
    classes : sequence or None
        Labels of the classes, of a classifier.
    x_train, y_train : ndarray of shape (n,) or None
        Training samples, if there is one column of numbers.
    y_range : tuple of two float or None
        Least and largest training output; panels extend beyond them by half of this range, at most.
    note : str
        How the other columns are held, for the title.
    band_label : str, default="interval"
        What the bands and bars are, for the legend.

    Attributes
    ----------
    axes_ : ndarray of matplotlib Axes, shape (panels,)
        One per panel.
    figure_ : matplotlib Figure
        Where they are.
    lines_ : list of list of matplotlib artists
        Of each panel its curves, or the points of its categories; one per class.
    surfaces_ : list of matplotlib QuadMesh
        Heat maps of pairs of columns.
    bands_ : list of list of matplotlib artists
        Of each panel its bands, or bars.
    centers_ : list of matplotlib artists
        Bias-corrected curves, dotted, in panels where they differ visibly from the prediction.

    Examples
    --------
    >>> import pandas as pd
    >>> from kernpool import LocalLinearRegressor, PartialDisplay
    >>> X = pd.DataFrame({"age": [20.0, 30, 40, 50, 60, 70], "sex": ["f", "m"] * 3})
    >>> model = LocalLinearRegressor().fit(X, pd.Series([2.0, 3, 5, 4, 3, 3], name="wage"))
    >>> display = PartialDisplay.from_estimator(model)  # doctest: +SKIP
    """

    panels: Sequence[Panel | Surface]
    y_label: str = "y"
    classes: Sequence[Any] | None = None
    x_train: Array | None = None
    y_train: Array | None = None
    y_range: tuple[float, float] | None = None
    note: str = ""
    band_label: str = "interval"

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: ArrayLike | None = None,
        y: ArrayLike | None = None,
        *,
        features: Sequence[int | str | tuple[int | str, int | str]] | None = None,
        feature_names: Sequence[str] | None = None,
        kind: str = "typical",
        band: str | None = "auto",
        level: float = 0.95,
        grid_resolution: int | None = None,
        subsample: int = 200,
        random_state: int = 0,
        target: str | None = None,
        columns: int | None = None,
        axes: Sequence[Axes] | None = None,
        **style: Any,
    ) -> PartialDisplay:
        r"""Predict along each column, and draw one panel per column.

        With ``kind="average"`` the curve over column j is the partial dependence [1]_

        .. math:: \frac{1}{\sum_i w_i} \sum_i w_i\, m(x_{i1}, \ldots, x_j, \ldots, x_{id})

        with the frequencies w of rows.

        Parameters
        ----------
        estimator : fitted regressor or classifier
            With `predict` of one output, or `predict_proba`.
        X : array_like or data frame of shape (n, d), optional
            Training inputs; by default those that the estimator holds.
        y : array_like of shape (n,), optional
            Training outputs, likewise.
        features : sequence of int, str or tuple, optional
            Which columns; by default all. A pair of columns of numbers, ``("a", "b")``, is drawn as a surface: a heat
            map with contour lines, which ends a tenth of the ranges away from the rows.
        feature_names : sequence of str, optional
            Names of all columns; by default those of the fit.
        kind : {"typical", "average"}, default="typical"
            Predictions with the other columns at their medians and most frequent categories, or averaged over training
            rows. The average also goes through combinations of columns that no row has.
        band : {"auto", "confidence", None}, default="auto"
            Draw pointwise confidence intervals: of `confidence_interval` for regressors, of `probability_interval` for
            classifiers. By default where there are any: not with ``kind="average"``, nor where the
            estimator has no such method or it refuses, as for less than five rows.
        level : float, default=0.95
            Confidence level.
        grid_resolution : int, optional
            Points of a curve; by default eight per bandwidth, at least 200 and at most 4000, and 50 of an average. Of a
            surface along each of its columns; by default 60, and 25 of an average.
        subsample : int, default=200
            Average over at most so many training rows, chosen at random.
        random_state : int, default=0
            Seed of that choice.
        target : str, optional
            Name of the output; by default that of the Series y of the fit, or "y".
        columns : int, optional
            Panels per row of the figure; by default three, of four panels two.
        axes : sequence of matplotlib Axes, optional
            Where to draw, one per panel; a new figure by default.
        **style
            `curve_kwargs`, `band_kwargs` and `scatter_kwargs` of `plot`.

        Returns
        -------
        PartialDisplay
            The display, drawn.

        Raises
        ------
        ValueError
            If one of X and y is given without the other, or neither, and the estimator does not hold its rows; if a
            column is unknown, `feature_names` or `axes` are not one per column, there are several outputs, a pair is
            not of two columns of numbers, or `kind`, `band` or the level are invalid.
        TypeError
            If ``band="confidence"``, and the estimator has no intervals.

        Notes
        -----
        A panel with g points costs g predictions, and g times `subsample` if averaged.

        References
        ----------
        .. [1] J. H. Friedman, "Greedy function approximation: a gradient boosting machine", Annals of Statistics 29
           (2001), 1189-1232, section 8.2.
        """
        check_choice("kind", kind, KINDS)
        check_choice("band", band, ("auto", "confidence", None))
        as_level(level)
        samples = TrainingSamples.of(estimator, X, y)
        d = len(samples.labels)
        if feature_names is not None:
            drawing.check_length("feature_names", feature_names, d, "column of X")
            samples = replace(samples, names=tuple(feature_names))
        which = [[i] for i in range(d)] if features is None else [_columns(samples, one) for one in features]
        (rows,) = np.nonzero(samples.weight > 0)
        chosen = rows[np.sort(np.random.default_rng(random_state).permutation(len(rows))[:subsample])]
        average = kind == "average"
        if average:
            band = None
        panels: list[Panel | Surface] = []
        said: dict[type[Warning], tuple[str, list[str]]] = {}  # of each kind the first message, and the columns
        for drawn in which:
            with warnings.catch_warnings(record=True) as found:
                warnings.simplefilter("always")
                if len(drawn) == 1:
                    panels.append(_panel(samples, drawn[0], grid_resolution, chosen, average, band, level))
                else:
                    panels.append(_surface(samples, drawn, grid_resolution, chosen, average))
            for one in found:
                labels = said.setdefault(one.category, (str(one.message), []))[1]
                labels += [label for label in (samples.labels[i] for i in drawn) if label not in labels]
        for category, (message, labels) in said.items():
            warn_caller(f"over {', '.join(map(repr, labels))}: {message}", category)
        alone = which[0] if len(which) == 1 else []
        display = cls(
            panels=panels,
            y_label=target_name(estimator, y, target),
            note="other columns averaged over rows" if average and d > 1 else samples.note(*alone),
            band_label=f"{100 * level:.6g} % pointwise interval",
        )
        if hasattr(estimator, "classes_"):
            display.classes = list(estimator.classes_)
            display.y_label = "probability" if display.y_label == "y" else f"probability of {display.y_label}"
        else:
            output = drawing.as_numbers("y", samples.output)
            display.y_range = (float(output.min()), float(output.max()))
            if d == 1 and samples.levels[0] is None:
                display.x_train, display.y_train = samples.drawn(0, MOST_SAMPLES)
        return display.plot(axes=axes, columns=columns, **style)

    def plot(
        self,
        *,
        axes: Sequence[Axes] | None = None,
        columns: int | None = None,
        curve_kwargs: drawing.Style = None,
        band_kwargs: drawing.Style = None,
        scatter_kwargs: drawing.Style = None,
    ) -> PartialDisplay:
        """Draw one panel per column, with a common y axis.

        Parameters
        ----------
        axes : sequence of matplotlib Axes, optional
            Where, one per panel; a new figure by default.
        columns : int, optional
            Panels per row of a new figure; by default three, of four panels two.
        curve_kwargs, band_kwargs, scatter_kwargs : dict, optional
            Passed to matplotlib for curves and points, bands and bars, and training samples.

        Returns
        -------
        PartialDisplay
            Itself, with `axes_`, `figure_`, `lines_` and `bands_`.

        Raises
        ------
        ValueError
            If there is not one of `axes` per panel.
        """
        count, surfaces = len(self.panels), [isinstance(panel, Surface) for panel in self.panels]
        if axes is None:
            names = [panel.categories for panel in self.panels if isinstance(panel, Panel) and panel.categories]
            upright = max((len(name) for some in names if _are_turned(some) for name in some), default=0)
            axes = new_panels(count, columns, LETTER * upright, shared=not any(surfaces))
        self.axes_ = drawing.flat_axes(axes, count, "panel")
        self.figure_ = self.axes_[0].figure
        self.lines_: list[list[Any]] = []
        self.bands_: list[list[Any]] = []
        self.centers_: list[Any] = []
        self.surfaces_: list[Any] = []
        for ax, panel in zip(self.axes_, self.panels, strict=True):
            if isinstance(panel, Surface):
                self.surfaces_.append(self._draw_surface(ax, panel))
                continue
            drawing.draw_samples(ax, self.x_train, self.y_train, **(scatter_kwargs or {}))
            self.lines_.append([])
            self.bands_.append([])
            for i in range(panel.prediction.shape[1]):
                color, label = drawing.RED, "prediction"
                if self.classes is not None:
                    color, label = drawing.CLASSES[i % len(drawing.CLASSES)], str(self.classes[i])
                style = {"color": color, "label": label} | (curve_kwargs or {})
                line, band = _draw(panel, ax, i, style, {"label": self.band_label} | (band_kwargs or {}))
                self.lines_[-1].append(line)
                self.bands_[-1] += [] if band is None else [band]
            if self.classes is None:
                self._draw_center(ax, panel)
            if panel.categories is not None:
                _name_categories(ax, panel.categories)
            else:  # where the rows are
                ticks = {"color": drawing.GRAY, "alpha": 0.5, "markersize": 6, "zorder": 1}
                height = np.full(len(panel.rows), 0.012)
                ax.plot(panel.rows, height, "|", transform=ax.get_xaxis_transform(), **ticks)
            drawing.label_axis(ax.xaxis, panel.label, panel.kind)
            drawing.tidy(ax)
        curves = self.axes_[~np.array(surfaces)]
        if self.y_range is not None and len(curves):
            drawing.limit_height(curves, [np.array(self.y_range)], REACH)
        for ax in curves:
            if any(surfaces) or ax.get_subplotspec() is None or ax.get_subplotspec().is_first_col():
                ax.set_ylabel(self.y_label)
        artists = [*([line] for line in self.lines_[0]), self.bands_[0], self.centers_[:1]] if self.lines_ else []
        entries = {some[0].get_label(): tuple(some) for some in artists if some}
        place = {"loc": "outside upper center", "ncols": min(len(entries), 6), "frameon": False, "fontsize": "small"}
        if entries or self.note:
            drawing.draw_legend(self.figure_, entries, title=self.note or None, title_fontsize="small", **place)
        drawing.cover_glyphs(self.figure_)
        return self

    def _draw_surface(self, ax: Axes, surface: Surface) -> Any:
        """Draw predictions over two columns as a heat map with contour lines, and the rows."""
        ax.patch.set(facecolor="white", edgecolor="#dddddd", hatch="///")  # where there are no predictions
        prediction = np.ma.masked_invalid(surface.prediction)
        image = ax.pcolormesh(surface.x, surface.y, prediction, cmap=drawing.SURFACE_COLORS, shading="nearest")
        ax.scatter(surface.rows[:, 0], surface.rows[:, 1], s=4, color=drawing.BLACK, alpha=0.35, linewidths=0, zorder=2)
        if prediction.max() > prediction.min():
            lines = ax.contour(surface.x, surface.y, prediction, CONTOURS, colors="white", linewidths=1.0)
            ax.clabel(lines, fontsize="small")
        name = self.y_label if self.classes is None else f"probability of {self.classes[-1]}"
        self.figure_.colorbar(image, ax=ax, label=name)
        for axis, label, kind in zip((ax.xaxis, ax.yaxis), surface.labels, surface.kinds, strict=True):
            drawing.label_axis(axis, label, kind)
        return image

    def _draw_center(self, ax: Axes, panel: Panel) -> None:
        """Draw the bias-corrected center of intervals where it differs visibly from the prediction."""
        interval: Any = panel.interval
        if interval is None or not differs_visibly(panel.prediction[:, 0], interval):
            return
        style: dict[str, Any] = {"linestyle": ":"}
        if panel.categories is not None:
            style = {"linestyle": "", "marker": "_", "markersize": 9}
        self.centers_ += ax.plot(
            panel.x, interval.center, color=drawing.RED, linewidth=1.3, label=CENTER, zorder=2.5, **style
        )


def _columns(samples: TrainingSamples, feature: Any) -> list[int]:
    """Return the indices of a column, or of a pair of columns of numbers."""
    if not isinstance(feature, tuple | list):
        return [samples.index(feature, "features")]
    pair = [samples.numeric_index(one, "features") for one in feature]
    if len(set(pair)) != 2:
        raise ValueError(f"features must be columns and pairs of different columns, got {feature!r}")
    return pair


def new_panels(panels: int, columns: int | None, below: float, *, shared: bool) -> list[Axes]:
    """Return the axes of a new figure, row by row, with additional inches for labels below each."""
    across = min(panels, columns or (2 if panels == 4 else 3))
    down = -(-panels // across)
    size = (6.4, 4.4 + below) if panels == 1 else (3.4 * across + 0.6, (2.9 + below) * down + 0.5)
    axes = drawing.new_axes(down, across, size, sharey=shared).ravel()
    for ax in axes[panels:]:
        ax.remove()
    return list(axes[:panels])


def _intervals(section: Section, band: str | None, level: float) -> Interval | None:
    """Compute confidence intervals along one column, with ``band="auto"`` where the estimator has any."""
    if band is None:
        return None
    name = "probability_interval" if hasattr(section.samples.estimator, "classes_") else "confidence_interval"
    remedy = f", so that band={band!r} cannot be drawn; use band=None"
    with suppress(TypeError, ValueError) if band == "auto" else nullcontext():
        return cast("Interval", section.ask(name, remedy, level=level))
    return None


def _panel(
    samples: TrainingSamples,
    column: int,
    resolution: int | None,
    chosen: Index,
    average: bool,
    band: str | None,
    level: float,
) -> Panel:
    """Compute predictions along one column, the others at typical cells or averaged over the chosen rows."""
    levels, categories, rows = samples.levels[column], None, samples.weight > 0
    if levels is None:
        if not average:
            rows = samples.varied(rows & samples.alike(samples.typical), column)
        x = samples.grid(column, AVERAGED_GRID if average and resolution is None else resolution, rows)
    else:  # codes of the most frequent categories
        count = np.bincount(samples.values[:, column].astype(np.intp), samples.weight, minlength=len(levels))
        codes = np.sort(np.argsort(-count, kind="stable")[:MOST_CATEGORIES])
        x, categories = codes.astype(np.float64), tuple(f"{levels[code]}\n({count[code]:.6g})" for code in codes)
    section = Section.of(samples, [column], x, samples.values[chosen] if average else None)
    cells = samples.values[rows, column]
    # of those whose ticks would coincide one
    _, ticks = np.unique(np.round(cells / (np.ptp(cells) / TICKS or 1.0)), return_index=True)
    return Panel(
        label=section.label,
        kind=section.kind,
        x=x if categories is None else np.arange(len(x), dtype=np.float64),
        prediction=_predicted(section, samples.weight[chosen] if average else np.ones(1)),
        interval=_intervals(section, band, level),
        categories=categories,
        rows=cells[ticks],
    )


def _surface(
    samples: TrainingSamples, pair: Sequence[int], resolution: int | None, chosen: Index, average: bool
) -> Surface:
    """Compute predictions over two columns, the others at typical cells or averaged over the chosen rows."""
    points = resolution or (AVERAGED_SURFACE if average else SURFACE)
    x, y = (samples.grid(column, points) for column in pair)
    at = np.stack(np.meshgrid(x, y), axis=-1).reshape(-1, 2)
    section = Section.of(samples, pair, at, samples.values[chosen] if average else None)
    prediction = _predicted(section, samples.weight[chosen] if average else np.ones(1))
    rows = samples.values[samples.weight > 0][:, pair]
    extent = np.array([np.ptp(x) or 1.0, np.ptp(y) or 1.0])
    away, _ = KDTree(rows / extent).query(at / extent)
    # of classes the probability of the last
    known = np.where(away <= FAR, prediction[:, -1], np.nan).reshape(len(y), len(x))
    labels, kinds = ([of[column] for column in pair] for of in (samples.labels, samples.kinds))
    return Surface(labels, kinds, x, y, known, rows[drawing.evenly(len(rows), MOST_SAMPLES)])


def _predicted(section: Section, weight: Array) -> Array:
    """Return predictions, or probabilities, of each point, averaged over rows with weights: shape (g, c)."""
    if hasattr(section.samples.estimator, "classes_"):
        prediction = np.asarray(section.ask("predict_proba"))
    else:
        prediction = np.asarray(section.ask("predict"))
        drawing.need_one_output(prediction)
    found = np.average(prediction.reshape(len(section.x), len(weight), -1), axis=1, weights=weight)
    return np.asarray(found)


def _draw(panel: Panel, ax: Axes, i: int, style: dict[str, Any], band_style: dict[str, Any]) -> tuple[Any, Any]:
    """Draw a curve and its band, or a point and a bar per category; return both, None without intervals."""
    curves, x = panel.prediction.shape[1], panel.x
    band: Any = None
    points: dict[str, Any] = {"linewidth": 1.8}
    if panel.categories is not None:  # classes beside each other
        x = x + (i - 0.5 * (curves - 1)) * min(0.12, 0.6 / curves)
        points = {"marker": "o", "markersize": 5, "linestyle": ""}
    (line,) = ax.plot(x, panel.prediction[:, i], **({"zorder": 3} | points | style))
    if panel.interval is not None:
        lower, upper = (end.reshape(len(x), -1)[:, i] for end in (panel.interval.lower, panel.interval.upper))
        color, alpha = style["color"], PALE if curves == 1 else PALER
        if panel.categories is None:
            style = {"color": color, "alpha": alpha, "linewidth": 0, "zorder": 2}
            band = drawing.draw_band(ax, x, lower, upper, **(style | band_style))
        else:
            style = {"colors": color, "alpha": 0.35, "linewidth": 5, "zorder": 2}
            band = ax.vlines(x, lower, upper, **(style | band_style))
    return line, band


def _are_turned(names: Sequence[str]) -> bool:
    """Return whether labels of categories are upright, as there are many or long ones."""
    return len(names) > TURNED or sum(max(map(len, name.split("\n"))) for name in names) > 36


def _name_categories(ax: Axes, names: Sequence[str]) -> None:
    """Label the points of categories on the x axis."""
    turn = _are_turned(names)
    shown = [name.replace("\n", " ") if turn else name for name in names]
    ax.set_xticks(range(len(names)), shown, rotation=90 * turn, fontsize="small")
    ax.set_xlim(-0.6, len(names) - 0.4)
