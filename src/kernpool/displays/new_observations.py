"""Plots of the distribution of new observations: fans of quantiles, and the coverage of intervals.

Coverage is the fraction of responses inside their intervals, in bins of a column, with Clopper and Pearson limits. It
is compared with the nominal one. Intervals come from an estimator, or as arrays from the caller.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import betaincinv

from kernpool._arrays import AnyArray, Array, Flags, Integers
from kernpool.data import as_real_array, refuse_foreign, refuse_other_labels, with_days
from kernpool.displays import drawing
from kernpool.displays.inputs import Section, target_name
from kernpool.distribution import as_levels
from kernpool.execution import abbreviate, as_count, as_level

if TYPE_CHECKING:
    from matplotlib.axes import Axes


LEVELS = (0.05, 0.25, 0.5, 0.75, 0.95)
CONFIDENCE = 0.95  # of the bars of coverage
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
        Quantiles on the grid; NaN leaves a hole.
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
            `color` of `plot`.

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
        (section,) = Section.over(estimator, X, y, feature, grid_resolution)
        x_train, y_train = section.samples.drawn(section.column, subsample, section.rows)
        remedy = "; use NadarayaWatsonRegressor or LocalLinearRegressor, fitted in memory"
        remedy = "; use model.curve_, the curve next to the coefficients" if hasattr(estimator, "curve_") else remedy
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
            note=section.note or None,
            x_kind=section.kind,
        ).plot(ax=ax, **style)

    def plot(self, *, ax: Axes | None = None, color: Any = drawing.BLUE) -> QuantileFanDisplay:
        """Draw the bands between quantiles, the median line and the training samples.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where; a new figure by default.
        color : color, default=blue
            Color of the bands, mixed with white, the outermost most.

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
            first, last = self.levels[low], self.levels[high]
            label = f"{100 * (last - first):.6g} % of values: quantiles {first:g} to {last:g}"
            shade = drawing.mixed_with_white(color, ink)
            style: dict[str, Any] = {"color": shade, "linewidth": 0, "zorder": 0.5 + low / 100, "label": label}
            ends = self.quantile[:, low], self.quantile[:, high]
            self.bands_.append(drawing.draw_band(ax, self.x, *ends, **style))
        self.scatter_ = drawing.draw_samples(ax, self.x_train, self.y_train)
        self.line_: Any = None
        if len(self.levels) % 2:
            middle = len(self.levels) // 2
            level = self.levels[middle]
            label = "median" if level == 0.5 else f"quantile {level:g}"
            curve = self.quantile[:, middle]
            (self.line_,) = ax.plot(self.x, curve, color=drawing.BLACK, linewidth=1.6, zorder=3, label=label)
        self._finish(title=self.note, ncols=2)
        return self


def _ends(interval: Any, level: float | None, x: Any, y: Any) -> tuple[Array, Array, float]:
    """Return lower limits, upper limits and nominal coverage of given intervals, which are of the rows of x and y."""
    lower, upper = getattr(interval, "lower", None), getattr(interval, "upper", None)
    if lower is None or upper is None:
        if not isinstance(interval, tuple | list) or len(interval) != 2:
            raise TypeError(
                "interval must be what prediction_interval or confidence_interval returns, or a pair (lower, upper), "
                f"got {abbreviate(interval)}"
            )
        lower, upper = interval
    refuse_other_labels(interval=interval, x=x, lower=lower, upper=upper, y=y)
    level = getattr(interval, "level", None) if level is None else level
    return drawing.as_numbers("lower", lower), drawing.as_numbers("upper", upper), float(as_level(level))


def is_training(estimator: Any, X: Any) -> bool:
    """Return whether X equals the numeric training inputs that a fitted estimator stores."""
    refuse_foreign("X", X)
    key = getattr(estimator, "key_", None)
    return key is not None and estimator.encoding_.is_plain and np.array_equal(np.asarray(X), key)


def column_of(X: Any, against: int | str) -> tuple[Any, str]:
    """Return the values of a column of X, which is given by number or name, and its axis label."""
    names, width = [str(name) for name in getattr(X, "columns", [])], np.shape(X)[1]
    index = drawing.index_of(against, "against", width, "column of X", names)
    if names:
        return X[X.columns[index]], names[index]
    return np.asarray(X)[:, index], "x" if width == 1 else f"column {index}"


@dataclass(frozen=True, eq=False)
class CoverageBins:
    """Bins of rows along a column: for each its ends, its number of rows, and its coverage with confidence limits."""

    left: Array  # least value of the column in each bin
    right: Array  # largest value
    center: Array  # median; of a column of text the number of the label
    rows: Integers
    inside: Integers  # rows inside their intervals
    lower: Array  # Clopper-Pearson limits of the probability to be inside
    upper: Array
    labels: AnyArray | None = None

    @property
    def coverage(self) -> Array:
        """Empirical coverage of each bin: the fraction of its rows that are inside their intervals, shape (s,)."""
        return self.inside / self.rows

    @classmethod
    def of(cls, x: AnyArray, inside: Flags, slices: int) -> CoverageBins:
        """Create a `CoverageBins`: bins of nearly equal numbers of rows, or one bin for each label."""
        # rows with equal values share a bin
        values, at, counts = np.unique(x, return_inverse=True, return_counts=True)
        labels, number, place = None, at, x
        if x.dtype.kind in "fiub":
            middle = np.cumsum(counts) - 0.5 * counts
            _, slice_of_value = np.unique((middle * slices / len(x)).astype(np.int64), return_inverse=True)
            number = slice_of_value[at]
        else:
            labels, place = values, at
        rows = np.bincount(number)
        found = np.bincount(number, weights=inside).astype(np.int64)
        parts = [place[number == one] for one in range(len(rows))]
        left, right, center = (np.array([of(part) for part in parts]) for of in (np.min, np.max, np.median))
        return cls(left, right, center, rows, found, *binomial_limits(found, rows), labels)


def binomial_limits(hits: Integers, trials: Integers) -> tuple[Array, Array]:
    """Return exact limits of a binomial probability, from hits and trials (Clopper and Pearson 1934)."""
    tail = 0.5 * (1.0 - CONFIDENCE)
    misses = trials - hits
    lower = np.where(hits > 0, betaincinv(np.maximum(hits, 1), misses + 1, tail), 0.0)
    upper = np.where(misses > 0, betaincinv(hits + 1, np.maximum(misses, 1), 1.0 - tail), 1.0)
    return lower, upper


@dataclass(eq=False, repr=False, kw_only=True)
class CoverageDisplay(drawing.Display):
    """Empirical coverage of intervals, by bins of a column or of the prediction, with binomial error bars.

    An interval that holds 90 percent of all values may hold 75 percent where they scatter most and all of them
    elsewhere: slices show it. A bar is a confidence interval for the coverage of its slice: at 95 percent confidence
    one of twenty slices with correct coverage misses the line, on average.

    Parameters
    ----------
    slices : CoverageBins
        Rows and hits, slice by slice.
    level : float
        Nominal coverage.
    infinite, unknown : int, default=0
        How many intervals had no end, and how many rows were left out because they had no interval.
    x_label, y_label, x_kind : str
        Axis labels, and what x holds: ``"numeric"``, or dates or durations in days.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
        Where it was drawn.
    bars_ : list of matplotlib ErrorbarContainer
        Slices whose bar holds the level, and those whose bar misses it; either may be missing.
    line_ : matplotlib Line2D
        The level.

    Examples
    --------
    >>> import numpy as np
    >>> from kernpool import CoverageDisplay
    >>> random = np.random.default_rng(0)
    >>> x, y = random.uniform(size=400), random.normal(size=400)
    >>> ends = np.full(400, -1.645), np.full(400, 1.645)
    >>> display = CoverageDisplay.from_intervals(x, y, ends, level=0.9)  # doctest: +SKIP
    """

    slices: CoverageBins = field(kw_only=False)
    level: float
    infinite: int = 0
    unknown: int = 0
    y_label: str = "fraction of values inside the interval"

    @property
    def coverage(self) -> float:
        """Empirical coverage over all rows: the fraction of values that are inside their intervals."""
        return float(self.slices.inside.sum() / self.slices.rows.sum())

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: ArrayLike,
        y: ArrayLike,
        *,
        against: int | str | None = None,
        level: float = 0.9,
        method: str = "auto",
        slices: int = 10,
        target: str | None = None,
        ax: Axes | None = None,
    ) -> CoverageDisplay:
        """Compute the prediction intervals of held-out rows by a fitted regressor, and draw their coverage.

        Parameters
        ----------
        estimator : NadarayaWatsonRegressor or LocalLinearRegressor
            Fitted to one output, in memory.
        X : array_like or data frame of shape (m, d)
            Inputs of other rows than those of the fit.
        y : array_like of shape (m,)
            Their outputs.
        against : int or str, optional
            Column by which to slice, numbers, dates, durations or labels; by default the prediction.
        level : float, default=0.9
            Probability that an interval holds the value.
        method : str, default="auto"
            As in `prediction_interval`.
        slices : int, default=10
            How many slices of about the same number of rows; of a column of labels each label is one.
        target : str, optional
            Name of the output; by default that of the Series y, or of the fit, or "y".
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.

        Returns
        -------
        CoverageDisplay
            The display, drawn.

        Raises
        ------
        ValueError
            If X are the rows of the fit, whose values the intervals have seen; there is no such column; or as in
            `from_intervals`.
        TypeError
            If the estimator has no prediction intervals, or was fitted to chunks.
        """
        ask = drawing.method_of(
            estimator,
            "prediction_interval",
            "; use NadarayaWatsonRegressor or LocalLinearRegressor, fitted in memory, or intervals that you have with "
            "CoverageDisplay.from_intervals",
        )
        if is_training(estimator, X):
            raise ValueError(
                "X are the rows that the model was fitted to, whose outputs its intervals have seen, so that their "
                "coverage says nothing of new rows; give rows that were held out, or intervals by cross-validation "
                "with CoverageDisplay.from_intervals"
            )
        refuse_other_labels(X=X, y=y)
        target = target_name(estimator, y, target)
        found = ask(X, level=level, method=method)
        if against is None:  # rows without a prediction are in no slice
            x, label = found.center, f"prediction of {target}"
            ends = tuple(np.where(np.isnan(x), np.nan, end) for end in (found.lower, found.upper))
        else:
            (x, label), ends = column_of(X, against), (found.lower, found.upper)
        return cls.from_intervals(x, y, ends, level=level, slices=slices, x_label=label, target=target, ax=ax)

    @classmethod
    def from_intervals(
        cls,
        x: ArrayLike,
        y: ArrayLike,
        interval: Any,
        *,
        level: float | None = None,
        slices: int = 10,
        x_label: str | None = None,
        target: str | None = None,
        ax: Axes | None = None,
    ) -> CoverageDisplay:
        """Draw the coverage of given intervals, in bins of a given column.

        Parameters
        ----------
        x : array_like of shape (m,)
            Column to slice by: numbers, dates, durations, or labels, each of which is a slice.
        y : array_like of shape (m,)
            Values that the intervals are to hold: observations, or the truth for intervals of a curve.
        interval : Interval or pair of array_like
            With `lower` and `upper` of shape (m,). Ends may be infinite; rows with NaN are left out, and counted.
        level : float, optional
            Nominal coverage; by default the level of `interval`.
        slices : int, default=10
            How many slices of about the same number of rows; rows of one x stay together.
        x_label : str, optional
            Axis label; by default the name of the Series x, or "x".
        target : str, optional
            What y is called; by default the name of the Series y, or "values".
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.

        Returns
        -------
        CoverageDisplay
            The display, drawn.

        Raises
        ------
        ValueError
            If lengths differ, y or numbers x are NaN, an upper end is below its lower one, no row has an interval, or a
            level or `slices` is invalid.
        """
        x_label, target = drawing.first_name(x_label, x, "x"), drawing.first_name(target, y, "values")
        slices = as_count("slices", slices)
        refuse_foreign("x", x)
        days, kinds = with_days("x", x)
        column, values = np.asarray(x) if kinds is None else days[:, 0], as_real_array("y", y)
        if column.dtype.kind == "O":
            column = column.astype(np.str_)
        lower, upper, level = _ends(interval, level, x, y)
        if column.ndim != 1 or not values.shape == lower.shape == upper.shape == column.shape:
            raise ValueError(
                "x, y and both ends of the intervals must be one number for each row, of one output: got shapes "
                f"{column.shape}, {values.shape}, {lower.shape} and {upper.shape}"
            )
        known = ~(np.isnan(lower) | np.isnan(upper))
        if column.dtype.kind == "f":
            as_real_array("x", column[known])
        falls = np.count_nonzero(lower > upper)
        if falls or not known.any():
            raise ValueError(
                "interval must hold a lower end and an upper one, which is not below it, in some of the rows; got "
                f"{falls} of {len(known)} rows with lower above upper, and {np.count_nonzero(~known)} with NaN; order "
                "the ends as (lower, upper), and give rows near those of the fit or use empty='nearest'"
            )
        inside = (lower <= values) & (values <= upper)
        return cls(
            CoverageBins.of(column[known], inside[known], slices),
            level=level,
            infinite=int(np.count_nonzero(known & (np.isinf(lower) | np.isinf(upper)))),
            unknown=int(np.count_nonzero(~known)),
            x_label=x_label,
            y_label=f"fraction of {target} inside the interval",
            x_kind="numeric" if kinds is None else kinds[0],
        ).plot(ax=ax)

    def plot(self, *, ax: Axes | None = None) -> CoverageDisplay:
        """Draw the coverage of each bin with its binomial error bar, and a line at the nominal coverage.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where; a new figure by default.

        Returns
        -------
        CoverageDisplay
            Itself, with `ax_`, `figure_`, `bars_` and `line_`.
        """
        ax, of = self._start(ax), self.slices  # which says what to install where there is no matplotlib
        from matplotlib.ticker import FuncFormatter, MaxNLocator

        label = f"promised: {100 * self.level:.6g} %"
        self.line_ = ax.axhline(self.level, color=drawing.BLACK, linestyle="--", linewidth=1.2, zorder=1, label=label)
        holds = (of.lower <= self.level) & (self.level <= of.upper)
        sizes = " to ".join(str(size) for size in np.unique([of.rows.min(), of.rows.max()]))
        label = f"slices of {sizes} rows, {100 * CONFIDENCE:.6g} % binomial bars"
        self.bars_: list[Any] = []
        for which, color, marker, entry in (
            (holds, drawing.BLUE, "o", label),
            (~holds, drawing.RED, "s", "slices whose bar misses it"),
        ):
            if which.any():
                bar = ax.errorbar(
                    of.center[which],
                    of.coverage[which],
                    xerr=np.abs([of.left, of.right] - of.center)[:, which] if of.labels is None else None,
                    yerr=np.abs([of.lower, of.upper] - of.coverage)[:, which],
                    color=color,
                    fmt=marker,
                    markersize=6,
                    elinewidth=1.4,
                    zorder=2,
                    label=entry,
                )
                self.bars_.append(bar)
        if of.labels is not None:
            ax.set_xticks(of.center, [str(label) for label in of.labels])
            ax.set_xlim(-0.5, len(of.labels) - 0.5)
        low = min(float(of.lower.min()), self.level)
        ax.set_ylim(max(-0.01, low - 0.08 * (1.0 - low)), 1.0 + 0.03 * (1.0 - low))
        ax.yaxis.set_major_locator(MaxNLocator(7, steps=[1, 2, 5, 10]))
        ax.yaxis.set_major_formatter(FuncFormatter(lambda share, _: f"{100 * share:.6g} %"))
        parts = [f"all {of.rows.sum()} rows: {100 * self.coverage:.1f} % inside"]
        parts += [f"{self.infinite} intervals infinite"] * (self.infinite > 0)
        parts += [f"{self.unknown} rows without interval left out"] * (self.unknown > 0)
        self._finish(title=", ".join(parts), ncols=2 if len(self.bars_) == 1 else 1)
        return self
