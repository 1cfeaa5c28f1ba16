"""Plot of a fitted curve over one column, with training samples, confidence bands and prediction intervals.

Prediction intervals are drawn between dashed ends, so that they differ from intervals of the curve.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from kernpool._arrays import Array
from kernpool.data import refuse_other_labels
from kernpool.displays import drawing
from kernpool.displays.inputs import Section, target_name
from kernpool.execution import check_choice
from kernpool.inference import InferenceWarning

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from kernpool.inference import Interval


BANDS = ("confidence", "simultaneous")
OTHERS = ", or NadarayaWatsonRegressor or LocalLinearRegressor"  # which have intervals
PALE, DARK = 0.16, 0.3  # opacity of the simultaneous band and of pointwise intervals
PREDICTION_PALE = 0.13  # and of prediction intervals
SEEN = 0.02  # in half widths: smaller distances between curve and center are invisible
REACH = 1.0  # in spans of rows and curve: the most that a band adds to the y axis on either side


def bands_along(section: Section, band: str | None, **options: Any) -> list[Interval]:
    """Compute an estimator's confidence intervals along one column: none, pointwise, or simultaneous and pointwise."""
    check_choice("band", band, (*BANDS, None))
    if band is None:
        return []
    remedy = f", so that band={band!r} cannot be drawn; use band=None{OTHERS}"
    found = [section.ask("confidence_interval", remedy, simultaneous=band == "simultaneous", **options)]
    if band == "simultaneous":
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # said once already
            found.append(section.ask("confidence_interval", remedy, **options))
    slopes = found[0].center.ndim > 1
    return [part_of(one, slice(None), section.column) for one in found] if slopes else found


def prediction_interval_along(section: Section, level: float | None, method: str) -> Interval | None:
    """Compute an estimator's prediction intervals along one column; None if no level is given."""
    if level is None:
        return None
    remedy = f", so that prediction={level!r} cannot be drawn; use prediction=None{OTHERS}"
    with warnings.catch_warnings():  # that there are too few rows for the level is said
        warnings.filterwarnings("ignore", r"\d+ of \d+ prediction intervals", InferenceWarning)
        found: Interval = section.ask("prediction_interval", remedy, level=level, method=method)
    return found


def part_of(interval: Interval, *which: Any) -> Interval:
    """Return an interval at some points and of one column, or in another order."""
    if len(interval.center) < np.size(which[0]):
        return interval  # which the constructor of the display refuses
    arrays = {}
    for name in ("center", "lower", "upper", "standard_error", "df"):
        array = getattr(interval, name)
        if array is not None:
            arrays[name] = array[which[: array.ndim]]
    return replace(interval, **arrays)


def label_of(interval: Interval) -> str:
    """Return the legend label of a confidence interval, such as '95 % pointwise interval'."""
    percent = f"{100 * interval.level:.6g} %"
    if interval.critical is None:
        return f"{percent} pointwise interval"
    return f"{percent} simultaneous band"


def differs_visibly(curve: Array, interval: Interval) -> bool:
    """Return whether the center of a confidence interval differs visibly from the fitted curve at any point."""
    with np.errstate(invalid="ignore"):
        apart = np.abs(interval.center - curve) > SEEN * 0.5 * interval.width
    return bool(np.any(apart))


CENTER = "bias-corrected curve"


@dataclass(eq=False, repr=False, kw_only=True)
class KernelCurveDisplay(drawing.Display):
    """Fitted curve over one column, with training samples, intervals and, if known, the true function.

    Parameters
    ----------
    x : ndarray of shape (g,)
        Grid of inputs, increasing.
    prediction : ndarray of shape (g,)
        Fitted values on the grid.
    x_train, y_train : ndarray of shape (n,), optional
        Training samples.
    truth : ndarray of shape (g,), optional
        The true function on the grid.
    bands : sequence of Interval, default=()
        Of `confidence_interval` on the grid, at most one pointwise and one simultaneous; of one output and one column.
    prediction_interval : Interval, optional
        Of `prediction_interval` on the grid, of one output.
    name : str, default="prediction"
        Legend entry of the fitted curve.
    x_label, y_label, x_kind : str
        Axis labels, and what x holds: ``"numeric"``, or dates or durations in days.
    zero_line : bool, default=False
        Whether to draw the line y = 0, as for slopes.
    note : str, default=""
        How the other columns are held, for the title of the legend.
    is_level : bool, default=False
        Whether this is the curve of one level, of which samples and prediction interval have its color.
    others : sequence of KernelCurveDisplay, default=()
        Curves of the other levels, which are drawn on the same axes.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
        Where it was drawn.
    lines_ : list of matplotlib Line2D
        Truth, if any, and prediction.
    bands_ : list of matplotlib PolyCollection
        Band of each of `bands`, the widest first.
    expected_ : matplotlib PolyCollection or None
        Band of `prediction_interval`, between dashed ends.
    center_line_ : matplotlib Line2D or None
        Bias-corrected center of the bands, dotted below the curve; None where it coincides with the curve.
    scatter_ : matplotlib PathCollection or None
        Training samples.

    Examples
    --------
    >>> from kernpool import KernelCurveDisplay, NadarayaWatsonRegressor
    >>> from kernpool.datasets import make_sine_power
    >>> sample = make_sine_power(random_state=0)
    >>> X = sample.x_train[:, None]
    >>> model = NadarayaWatsonRegressor(bandwidth=0.3).fit(X, sample.y_train)
    >>> display = KernelCurveDisplay.from_estimator(model, X, sample.y_train, band="simultaneous")  # doctest: +SKIP
    """

    x: Array
    prediction: Array
    x_train: Array | None = None
    y_train: Array | None = None
    truth: Array | None = None
    bands: Sequence[Interval] = ()
    prediction_interval: Interval | None = None
    name: str = "prediction"
    zero_line: bool = False
    note: str = ""
    is_level: bool = False
    others: Sequence[KernelCurveDisplay] = ()

    def __post_init__(self) -> None:
        for name, intervals in (("bands", self.bands), ("prediction_interval", [self.prediction_interval])):
            for interval in filter(None, intervals):
                if np.shape(interval.lower) != self.x.shape:
                    raise ValueError(
                        f"{name} must hold intervals for the {self.x.size} points of the curve, of one output and one "
                        f"column, got shape {np.shape(interval.lower)}"
                    )
        self.bands = sorted(self.bands, key=lambda interval: interval.critical is None)  # the pointwise one above

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: ArrayLike | None = None,
        y: ArrayLike | None = None,
        *,
        feature: int | str | None = None,
        by: int | str | None = None,
        quantity: str = "fit",
        band: str | None = None,
        level: float = 0.95,
        method: str = "auto",
        variance: str = "local",
        prediction: float | None = None,
        prediction_method: str = "auto",
        truth: Callable[[Array], Array] | None = None,
        grid_resolution: int | None = None,
        subsample: int | None = 1000,
        name: str | None = None,
        target: str | None = None,
        ax: Axes | None = None,
        **style: Any,
    ) -> KernelCurveDisplay:
        """Predict on a grid over one column, the others at medians or most frequent categories, and draw the curve.

        With `by` there is a curve for each level of another column. Samples are drawn whose categories are those of the
        curve, which is drawn over their range.

        Parameters
        ----------
        estimator : fitted regressor
            With a `predict` of one output.
        X : array_like or data frame of shape (n, d), optional
            Training inputs; by default those that the estimator holds.
        y : array_like of shape (n,), optional
            Training outputs, likewise.
        feature : int or str, optional
            Which column; by default the only one of numbers, other than that of `by`.
        by : int or str, optional
            Column of at most ten different values, such as a category: one curve for each, with its band and samples.
        quantity : {"fit", "derivative"}, default="fit"
            The curve of `predict`, or its slope by that column, of `Prediction.slope`; slopes have no samples.
        band : {None, "confidence", "simultaneous"}, default=None
            Uncertainty of the curve. ``"confidence"`` draws pointwise confidence intervals;
            ``"simultaneous"`` these and, paler and wider, a simultaneous band for the whole curve.
            Their center is the bias-corrected curve, drawn as a dotted line where it differs visibly.
        level : float, default=0.95
            Confidence level of the bands.
        method, variance : str
            As in `confidence_interval`.
        prediction : float, optional
            Coverage of a prediction interval for a new observation, such as 0.9, drawn in addition to the curve's: it
            is as wide as values scatter, whereas intervals of the curve shrink with more rows.
        prediction_method : str, default="auto"
            Method of `prediction_interval`.
        truth : callable, optional
            The true function of that column, or its slope, vectorized.
        grid_resolution : int, optional
            Points of the curve; by default eight per bandwidth, at least 200 and at most 4000.
        subsample : int or None, default=1000
            Draw at most so many evenly chosen samples; None draws all.
        name : str, optional
            Legend entry of the curve; by default "prediction", or "slope". With `by` levels are the names.
        target : str, optional
            Name of the output, for the label of the y axis; by default that of the Series y of the fit, or "y".
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.
        **style
            Keywords of `plot`, such as `curve_kwargs` and `band_kwargs`.

        Returns
        -------
        KernelCurveDisplay
            The display, drawn.

        Raises
        ------
        ValueError
            If one of X and y is given without the other; neither is, and the estimator does not hold its rows; X has
            several columns and `feature` is not given or not one of them, or holds categories; `by` has more than ten
            different values; or `quantity`, `band`, a level or a method are invalid; or a slope is to have a prediction
            band.
        TypeError
            If a band is asked for, and the estimator has no intervals or was fitted to chunks.
        """
        check_choice("quantity", quantity, ("fit", "derivative"))
        is_slope = quantity == "derivative"
        if is_slope and prediction is not None:
            raise ValueError(
                f"prediction={prediction!r} is for quantity='fit': prediction intervals are for observed values, and "
                "no slope is observed; leave prediction out"
            )
        target = target_name(estimator, y, target)
        displays = []
        for section in Section.over(estimator, X, y, feature, grid_resolution, by):
            curve = np.asarray(
                section.ask("get_prediction").slope[:, section.column] if is_slope else section.ask("predict")
            )
            drawing.need_one_output(curve)
            x_train, y_train = section.samples.drawn(section.column, subsample, section.rows)
            per = "day" if section.kind != "numeric" else f"unit of {section.label}"
            displays.append(
                cls(
                    x=section.x,
                    prediction=curve,
                    x_train=None if is_slope else x_train,
                    y_train=None if is_slope else y_train,
                    truth=None if truth is None else np.broadcast_to(truth(section.x), section.x.shape),
                    bands=bands_along(section, band, level=level, quantity=quantity, method=method, variance=variance),
                    prediction_interval=prediction_interval_along(section, prediction, prediction_method),
                    name=section.value or name or ("slope" if is_slope else "prediction"),
                    x_label=section.label,
                    y_label=f"slope of {target} per {per}" if is_slope else target,
                    zero_line=is_slope,
                    x_kind=section.kind,
                    note=section.note,
                    is_level=by is not None,
                )
            )
        return replace(displays[0], others=displays[1:]).plot(ax=ax, **style)

    @classmethod
    def from_predictions(
        cls,
        x: ArrayLike,
        prediction: ArrayLike,
        *,
        x_train: ArrayLike | None = None,
        y_train: ArrayLike | None = None,
        truth: ArrayLike | None = None,
        bands: Sequence[Interval] = (),
        prediction_interval: Interval | None = None,
        name: str = "prediction",
        x_label: str | None = None,
        y_label: str | None = None,
        ax: Axes | None = None,
        **style: Any,
    ) -> KernelCurveDisplay:
        """Draw given predictions as a curve over their inputs.

        Parameters
        ----------
        x, prediction : array_like of shape (g,)
            Inputs, in any order, and predictions.
        x_train, y_train : array_like of shape (n,), optional
            Training samples.
        truth : array_like of shape (g,), optional
            The true function at `x`.
        bands : sequence of Interval, default=()
            Of `confidence_interval` at `x`, pointwise, simultaneous or both.
        prediction_interval : Interval, optional
            Of `prediction_interval` at `x`.
        name : str, default="prediction"
            Legend entry of the curve.
        x_label, y_label : str, optional
            Axis labels; by default the names of the Series x, and y_train or prediction, or "x" and "y".
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.
        **style
            Keywords of `plot`, such as `curve_kwargs` and `band_kwargs`.

        Returns
        -------
        KernelCurveDisplay
            The display, drawn.
        """
        x_label = drawing.first_name(x_label, x, "x")
        y_label = drawing.first_name(y_label, y_train, prediction, "y")
        of_intervals = {f"bands[{i}]": band for i, band in enumerate(bands)} | {
            "prediction_interval": prediction_interval
        }
        refuse_other_labels(**of_intervals, x=x, prediction=prediction, truth=truth)
        x = drawing.as_numbers("x", x).ravel()
        order = np.argsort(x, kind="stable")
        n, unit = len(x), "entry of x"
        x_train, y_train = drawing.flat_samples(x_train, y_train)
        return cls(
            x=x[order],
            prediction=drawing.flat("prediction", prediction, n, unit)[order],
            x_train=x_train,
            y_train=y_train,
            truth=None if truth is None else drawing.flat("truth", truth, n, unit)[order],
            bands=[part_of(interval, order) for interval in bands],
            prediction_interval=None if prediction_interval is None else part_of(prediction_interval, order),
            name=name,
            x_label=x_label,
            y_label=y_label,
        ).plot(ax=ax, **style)

    def plot(
        self,
        *,
        ax: Axes | None = None,
        curve_kwargs: drawing.Style = None,
        scatter_kwargs: drawing.Style = None,
        band_kwargs: drawing.Style = None,
    ) -> KernelCurveDisplay:
        """Draw the fitted curve with its bands, the training samples and the true function, where given.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where; a new figure by default.
        curve_kwargs, scatter_kwargs, band_kwargs : dict, optional
            Passed to matplotlib for the curve, the samples and the bands of the curve, which have its color.

        Returns
        -------
        KernelCurveDisplay
            Itself, with `ax_`, `figure_`, `lines_`, `bands_`, `expected_`, `center_line_` and `scatter_`.
        """
        ax, x = self._start(ax), self.x  # which says what to install where there is no matplotlib
        from matplotlib.colors import to_rgba

        names = [line.get_label() for line in ax.lines if line.get_linestyle() == "-"]
        color = (curve_kwargs or {}).get("color") or drawing.next_color(ax)
        own, tint = (color, color) if self.is_level else (drawing.GRAY, drawing.BLUE)
        style: dict[str, Any] = {"color": own} | (scatter_kwargs or {})
        self.scatter_ = drawing.draw_samples(ax, self.x_train, self.y_train, **style)
        if self.zero_line:
            ax.axhline(0.0, color=drawing.GRAY, linewidth=0.8, zorder=1)
        self.expected_: Any = None
        if self.prediction_interval is not None:
            expected = self.prediction_interval
            self.expected_ = drawing.draw_band(
                ax,
                x,
                expected.lower,
                expected.upper,
                facecolor=to_rgba(tint, PREDICTION_PALE),
                edgecolor=tint,
                linestyle="--",
                linewidth=1.0,
                label=f"{100 * expected.level:.6g} % prediction interval",
                zorder=1.2,
            )
        self.bands_: list[Any] = []
        for depth, band in enumerate(self.bands):  # the widest comes first, and is the palest
            style = {"color": color, "alpha": PALE if len(self.bands) > 1 and depth == 0 else DARK, "zorder": 1.5}
            style |= {"linewidth": 0, "label": label_of(band)} | (band_kwargs or {})
            self.bands_.append(drawing.draw_band(ax, x, band.lower, band.upper, **style))
        self.lines_: list[Any] = []
        if self.truth is not None:
            self.lines_ += ax.plot(x, self.truth, "--", color=drawing.BLACK, linewidth=1.5, zorder=2, label="truth")
        label = f"{self.name} {len(names) + 1}" if self.name in names else self.name
        style = {"color": color, "linewidth": 2.0 if len(x) < 1000 else 1.2, "zorder": 3, "label": label}
        self.lines_ += ax.plot(x, self.prediction, **(style | (curve_kwargs or {})))
        self.center_line_: Any = None
        if self.bands and differs_visibly(self.prediction, self.bands[-1]):
            center = self.bands[-1].center
            (self.center_line_,) = ax.plot(x, center, ":", color=color, linewidth=1.5, zorder=2.5, label=CENTER)
        for one in self.others:
            one.plot(ax=ax, curve_kwargs=curve_kwargs, scatter_kwargs=scatter_kwargs, band_kwargs=band_kwargs)
        has_bands = bool(self.bands or self.expected_)
        if has_bands:
            drawn = [part for one in (self, *self.others) for part in one._typical_heights()]
            drawing.limit_height([ax], drawn, REACH)
        if self.note or names:
            self._finish(title=self.note or None)
        else:  # the legend lies on the bands
            self._finish(loc="best", frameon=has_bands, framealpha=0.75, edgecolor="none")
        return self

    def _typical_heights(self) -> list[Array]:
        """Return the y of all that is drawn but the bands, and the medians of their ends."""
        medians = [np.sort([band.lower, band.upper], axis=1)[:, len(self.x) // 2] for band in self.bands]
        return [part for part in (self.prediction, self.truth, self.y_train, *medians) if part is not None]
