"""Residual plot: leave-one-out residuals, the standard deviation of the local noise, and rows of high leverage."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from kernpool.bandwidth.rules_of_thumb import rule_of_thumb
from kernpool.displays import drawing
from kernpool.displays.inputs import TrainingSamples, target_name
from kernpool.execution.error_messages import as_count
from kernpool.pooling.pool import pool

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Array = NDArray[np.float64]

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
    row : ndarray of int, shape (n,), optional
        Numbers of the rows, if not 0, 1, 2, ...
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
    row: NDArray[np.intp] | None = None
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
        """Draw the leave-one-out (or leave-cluster-out) residuals of a fitted regressor.

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
            `marked`, `subsample`, `scatter_kwargs` and `noise_kwargs` of `plot`.

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
        exact = against is not None and samples.values.shape[1] == 1
        shade = _along if exact else _averaged
        noise_at, along = shade(at[kept], noise[kept], found.weight[kept])
        return cls(
            at=at[kept],
            residual=residual[kept],
            leverage=found.leverage[kept],
            noise_at=noise_at,
            noise=along,
            row=kept,
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
        scatter_kwargs: drawing.Style = None,
        noise_kwargs: drawing.Style = None,
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
        scatter_kwargs, noise_kwargs : dict, optional
            Passed to matplotlib for the residuals and the band.

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
        style = drawing.styled(noise_kwargs, color=drawing.BLUE, alpha=0.18, linewidth=0, zorder=1, label=label)
        self.noise_ = ax.fill_between(self.noise_at, -WIDTH * self.noise, WIDTH * self.noise, **style)
        ax.axhline(0.0, color=drawing.BLACK, linewidth=0.8, zorder=1.5)
        shown = drawing.evenly(len(self.at), subsample)
        crowd = min(1.0, 100 / max(len(shown), 1))
        style = drawing.styled(
            scatter_kwargs,
            s=14 + 16 * crowd,
            color=drawing.GRAY,
            alpha=0.35 + 0.25 * crowd,
            linewidths=0,
            zorder=2,
            label="rows, each predicted from the others",
        )
        self.scatter_ = ax.scatter(self.at[shown], self.residual[shown], **style)
        self.marked_: Any = None
        first = np.argsort(-self.leverage, kind="stable")[:marked]
        if len(first):
            low, high = self.leverage[first[-1]], self.leverage[first[0]]
            label = f"rows of largest leverage $H_{{ii}}$, {low:.2g} to {high:.2g}"
            (self.marked_,) = ax.plot(
                self.at[first], self.residual[first], "o", markerfacecolor="none", markeredgecolor=drawing.RED,
                markersize=9, markeredgewidth=1.4, label=label, zorder=3,
            )  # fmt: skip
            for turn, i in enumerate(first[np.lexsort((self.residual[first], self.at[first]))]):
                right, up = turn % 2, turn // 2 % 2  # neighbours to different sides
                number = i if self.row is None else self.row[i]
                ax.annotate(
                    f"{number}", (self.at[i], self.residual[i]), xytext=(6 if right else -6, 4 if up else -4),
                    textcoords="offset points", ha="left" if right else "right", va="bottom" if up else "top",
                    color=drawing.RED, fontsize="small", zorder=3,
                )  # fmt: skip
        self._finish(ncols=2, **drawing.ABOVE)
        return self


def _along(at: Array, noise: Array, _: Array) -> tuple[Array, Array]:
    """Return the distinct values of a column in increasing order, and the noise standard deviation at each."""
    # the noise is a function of this column alone
    places, first = np.unique(at, return_index=True)
    return places, noise[first]


def _averaged(at: Array, noise: Array, weight: Array) -> tuple[Array, Array]:
    """Return a grid along the x axis, and the noise standard deviation at its points, smoothed by a kernel."""
    # for an axis that does not determine the noise: rows with one value of x may differ in it
    if not np.ptp(at) > 0:
        return at[:1], np.sqrt(np.average(noise**2, weights=weight))[None]
    grid = np.linspace(at.min(), at.max(), PLACES)
    bandwidth = rule_of_thumb(at[:, None], weight)
    return grid, np.sqrt(pool(grid, at, noise**2, key_weight=weight, bandwidth=float(bandwidth[0])))
