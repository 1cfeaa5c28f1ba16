"""Plots that show how well a fit was found, and what it leaves: course of a bandwidth search, and residuals.

Residuals are drawn with the standard deviation of the local noise, and rows of high leverage are marked.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from kernpool._arrays import AnyArray, Array
from kernpool.bandwidth import rule_of_thumb
from kernpool.displays import drawing
from kernpool.displays.inputs import TrainingSamples, target_name
from kernpool.estimators.limits import refuse
from kernpool.execution import as_count, names_of
from kernpool.pooling import pool

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.lines import Line2D


PLACES = 200
WIDTH = 2.0  # half width of the noise band, in standard deviations


@dataclass(eq=False, repr=False, kw_only=True)
class ResidualDisplay(drawing.Display):
    """Leave-one-out residuals against the fit or a column, with a band of local noise and rows of high leverage.

    A row pulls the fit towards itself. Its leverage H_ii says how far: near 1 the fit goes through it, wherever it is,
    so that its residual without itself is the one to look at.

    Parameters
    ----------
    at : ndarray of shape (n,)
        Fitted values, or a column.
    residual : ndarray of shape (n,)
        Outputs less what the other rows predict.
    leverage : ndarray of shape (n,)
        Diagonal of the hat matrix.
    noise_at, noise : ndarray of shape (g,)
        Standard deviation of an observation along `at`, increasing.
    row : ndarray of shape (n,), optional
        Labels of the rows, or their numbers, if not 0, 1, 2, ...
    x_label, y_label, x_kind : str
        Axis labels, and what x holds: ``"numeric"``, or dates or durations in days.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
        Where it was drawn.
    scatter_ : matplotlib PathCollection
        Residuals.
    noise_ : matplotlib PolyCollection
        Band of two standard deviations on either side.
    marked_ : matplotlib Line2D or None
        Rows of the largest leverage.

    Examples
    --------
    >>> from kernpool import LocalLinearRegressor, ResidualDisplay
    >>> from kernpool.datasets import make_sine_power
    >>> sample = make_sine_power(random_state=0)
    >>> model = LocalLinearRegressor().fit(sample.x_train[:, None], sample.y_train)
    >>> display = ResidualDisplay.from_estimator(model)  # doctest: +SKIP
    """

    at: Array
    residual: Array
    leverage: Array
    noise_at: Array
    noise: Array
    row: AnyArray | None = None
    x_label: str = "fit"
    y_label: str = "leave-one-out residual"

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        *,
        against: int | str | None = None,
        output: int | None = None,
        target: str | None = None,
        ax: Axes | None = None,
        **style: Any,
    ) -> ResidualDisplay:
        """Draw the residuals of a fitted regressor, each row left out as in the fit.

        Parameters
        ----------
        estimator : NadarayaWatsonRegressor or LocalLinearRegressor
            Fitted to arrays.
        against : int or str, optional
            Numeric column over which to draw; by default the fit.
        output : int, optional
            Which output; needed if there are several.
        target : str, optional
            What the output is called; by default the name of the Series y of the fit, or "y".
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.
        **style
            `marked` and `subsample` of `plot`.

        Returns
        -------
        ResidualDisplay
            The display, drawn.

        Raises
        ------
        ValueError
            If there are several outputs and none is chosen, there is no such column, there are fewer than five rows, or
            the fit takes all degrees of freedom.
        TypeError
            If the estimator has no residuals, or was fitted to chunks.

        Notes
        -----
        Over the column of a model of one column, the band is the local noise that its intervals are made of. Over the
        fit, or one of several columns, it is the root of a kernel mean of that variance, at Scott's bandwidth.
        """
        remedy = " to draw; use NadarayaWatsonRegressor or LocalLinearRegressor, fitted to rows in memory"
        found = drawing.method_of(estimator, "residuals", remedy)()
        fitted, residual, noise = found.fitted, found.residual, found.noise
        if fitted.ndim > 1:
            index = drawing.index_of(output, "output", fitted.shape[1], "output")
            fitted, residual, noise = (of[:, index] for of in (fitted, residual, noise))
        (kept,) = np.nonzero(found.weight > 0)
        target = target_name(estimator, None, target)
        at, label, kind = fitted, f"fit of {target}", "numeric"
        if against is not None:
            samples = TrainingSamples.of(estimator)
            column = samples.numeric_index(against, "against", pairs=True)
            at, label, kind = samples.values[:, column], samples.labels[column], samples.kinds[column]
        if against is not None and samples.values.shape[1] == 1:  # the noise is a function of this column alone
            noise_at, first = np.unique(at[kept], return_index=True)
            along = noise[kept][first]
        else:
            noise_at, along = _averaged(at[kept], noise[kept], found.weight[kept])
        return cls(
            at=at[kept],
            residual=residual[kept],
            leverage=found.leverage[kept],
            noise_at=noise_at,
            noise=along,
            row=names_of(found.names, len(at))[kept],
            x_label=label,
            y_label=f"leave-{'one' if found.cluster is None else 'cluster'}-out residual of {target}",
            x_kind=kind,
        ).plot(ax=ax, **style)

    def plot(
        self,
        *,
        ax: Axes | None = None,
        marked: int = 5,
        subsample: int | None = 2000,
    ) -> ResidualDisplay:
        """Draw the residuals, the band of local noise, and circles around the rows of largest leverage.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where; a new figure by default.
        marked : int, default=5
            How many rows of the largest leverage to mark, with their numbers.
        subsample : int or None, default=2000
            Draw at most so many evenly chosen residuals, and those marked; None draws all.

        Returns
        -------
        ResidualDisplay
            Itself, with `ax_`, `figure_`, `scatter_`, `noise_` and `marked_`.

        Raises
        ------
        ValueError
            If `marked` is negative.
        """
        as_count("marked", marked, 0)
        ax = self._start(ax)
        label = f"{WIDTH:g} standard deviations of local noise"
        ends, style = WIDTH * self.noise, {"color": drawing.BLUE, "alpha": 0.18, "linewidth": 0, "label": label}
        self.noise_ = drawing.draw_band(ax, self.noise_at, -ends, ends, zorder=1, **style)
        ax.axhline(0.0, color=drawing.BLACK, linewidth=0.8, zorder=1.5)
        shown = drawing.evenly(len(self.at), subsample)
        label = "rows, each predicted from the others"
        points = self.at[shown], self.residual[shown]
        self.scatter_ = drawing.draw_samples(ax, *points, ink=0.35, zorder=2, label=label)
        self.marked_: Any = None
        first = np.argsort(-self.leverage, kind="stable")[:marked]
        if len(first):
            low, high = self.leverage[first[-1]], self.leverage[first[0]]
            label = f"rows of largest leverage $H_{{ii}}$, {low:.2g} to {high:.2g}"
            (self.marked_,) = ax.plot(
                self.at[first], self.residual[first], "o", markerfacecolor="none", markeredgecolor=drawing.RED,
                markersize=9, markeredgewidth=1.4, label=label, zorder=3,
            )  # fmt: skip
            for turn, i in enumerate(first[np.argsort(self.at[first], kind="stable")]):
                side, number = ("left", "right")[turn % 2], i if self.row is None else self.row[i]
                ax.annotate(
                    f"  {number}  ",
                    (self.at[i], self.residual[i]),
                    ha=side,
                    color=drawing.RED,
                    fontsize="small",
                    zorder=3,
                )  # neighbours to different sides
        self._finish(ncols=2)
        return self


def _averaged(at: Array, noise: Array, weight: Array) -> tuple[Array, Array]:
    """Return a grid along the x axis, and the noise standard deviation at its points, smoothed by a kernel."""
    # for an axis that does not determine the noise: rows with one value of x may differ in it
    if not np.ptp(at) > 0:
        return at[:1], np.sqrt(np.average(noise**2, weights=weight))[None]
    grid = np.linspace(at.min(), at.max(), PLACES)
    bandwidth = rule_of_thumb(at[:, None], weight)
    return grid, np.sqrt(pool(grid, at, noise**2, key_weight=weight, bandwidth=float(bandwidth[0])))


FLATTEST = 30.0  # spreads: what is smoother is drawn there, since it makes no difference
TITLES = {
    "loo": "leave-one-out error",
    "regularised": "leave-one-out error, penalised",
    "aicc": "AICc",
    "gcv": "generalised cross-validation",
    "log_loss": "leave-one-out log loss, penalised",
    "bounded": "leave-one-out error, bounded",
}


@dataclass(eq=False, repr=False, kw_only=True)
class BandwidthPathDisplay(drawing.Display):
    """Criterion of a bandwidth search at every bandwidth that it tried, with the minimum marked.

    One bandwidth, or one factor common to all columns, makes a curve; with others, or smoothings, each has a cloud of
    points, whose lower edge is the criterion with the other columns at about their best.

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
    def from_estimator(cls, estimator: Any, *, ax: Axes | None = None) -> BandwidthPathDisplay:
        """Draw the criterion of a fitted estimator's bandwidth search against the bandwidths tried.

        Parameters
        ----------
        estimator : NadarayaWatsonRegressor, LocalLinearRegressor or NadarayaWatsonClassifier
            Fitted with a bandwidth to be searched for.
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.

        Returns
        -------
        BandwidthPathDisplay
            The display, drawn.

        Raises
        ------
        ValueError
            If the estimator did not search, or has categorical columns alone.
        """
        search = getattr(estimator, "bandwidth_search_", None)
        if search is None or not np.isfinite(search.values).any():  # it is infinite where all fits are perfect
            raise ValueError(
                "the estimator has no bandwidth_search_ with a finite criterion; fit it with bandwidth='loo', 'aicc' "
                "or 'gcv', or use model.curve_ of coefficients (a model loaded from a file does not have it either)"
            )
        refuse(estimator, "the path of bandwidths")
        tried, best, names, label = search.tried, search.bandwidth, None, "bandwidth h"
        columns = len(search.spread)
        if columns > 1 or len(search.smoothing):
            label = "bandwidth h in spreads of the columns"
            shown = 1 if search.common_factor else columns  # of a common factor all columns show the same
            tried, best = (tried[:, :columns] / search.spread)[:, :shown], (best / search.spread)[:shown]
            names = None if search.common_factor else estimator.encoding_.numeric_labels() or [""] * columns
        return cls(
            bandwidths=tried,
            values=search.values,
            best=best,
            names=names,
            x_label=label,
            y_label=TITLES[search.criterion],
        ).plot(ax=ax)

    def plot(self, *, ax: Axes | None = None) -> BandwidthPathDisplay:
        """Draw the criterion against the bandwidth: a curve, or with several columns one cloud of points per column.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where; a new figure by default.

        Returns
        -------
        BandwidthPathDisplay
            Itself, with `ax_`, `figure_` and `lines_`.
        """
        ax = self._start(ax)
        finite = np.isfinite(self.values)
        bandwidths, values = self.bandwidths[finite], self.values[finite]
        draw = self._points if self.names or bandwidths.shape[1] > 1 else self._curve
        self.lines_: list[Line2D] = draw(ax, bandwidths, values)
        ax.set_xscale("log")
        self._finish(loc="best", frameon=False)
        return self

    def _curve(self, ax: Axes, bandwidths: Array, values: Array) -> list[Line2D]:
        order = np.argsort(bandwidths[:, 0])
        lines = ax.plot(bandwidths[order, 0], values[order], ".-", color=drawing.BLUE, linewidth=1.8, markersize=5)
        best = float(self.best[0])
        ax.axvline(best, color=drawing.BLACK, linewidth=0.8, linestyle=":")
        ax.plot(
            [best], [values.min()], "o", color=drawing.RED, markersize=8, label=f"smallest at h = {best:.3g}", zorder=3
        )
        return lines

    def _points(self, ax: Axes, bandwidths: Array, values: Array) -> list[Line2D]:
        lines = []
        for a, name in enumerate(self.names or [""] * len(self.best)):
            at, best = np.minimum(bandwidths[:, a], FLATTEST), float(self.best[a])
            (line,) = ax.plot(at, values, ".", color=f"C{a}", markersize=6, alpha=0.35)
            label = f"{name or f'column {a}'}: " + (f"{best:.3g}" if best < FLATTEST else "no bandwidth")
            ax.plot(
                [min(best, FLATTEST)], [values.min()], "o", color=line.get_color(), markersize=9, label=label,
                markeredgecolor=drawing.BLACK, clip_on=False, zorder=3,
            )  # fmt: skip
            lines.append(line)
        # Starts may be far above the rest, where nothing is to be seen.
        low, typical = values.min(), np.quantile(values, 0.7)
        ax.set_ylim(low - 0.08 * (typical - low), typical)
        return lines
