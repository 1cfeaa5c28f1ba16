"""Map of coefficients that vary with a place, or curves of those that vary with a number."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from kernpool.displays import drawing
from kernpool.displays.partial import new_panels
from kernpool.inference.local_coefficients import LocalCoefficients

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(eq=False, repr=False, kw_only=True)
class CoefficientDisplay:
    """Coefficients at places: a map of each, with crosses where it does not differ from zero, or a curve with its band.

    Parameters
    ----------
    found : LocalCoefficients
        What `VaryingCoefficientRegressor.coefficients` returns.
    features : sequence of int
        Which coefficients.

    Attributes
    ----------
    axes_ : ndarray of matplotlib Axes, shape (panels,)
        One per coefficient.
    figure_ : matplotlib Figure
        Where they are.
    points_ : list of matplotlib artists
        Of each panel the places, or the curve.
    crosses_, bands_ : list of matplotlib artists
        Of each map the places that are not significant, corrected for their number, and of each curve its band.

    Examples
    --------
    >>> from kernpool import CoefficientDisplay, VaryingCoefficientRegressor
    >>> rng = np.random.default_rng(0)
    >>> place, x = rng.uniform(size=(200, 2)), rng.normal(size=200)
    >>> y = place[:, 0] * x + 0.1 * rng.normal(size=200)
    >>> model = VaryingCoefficientRegressor(by=[0, 1]).fit(np.column_stack([place, x]), y)
    >>> display = CoefficientDisplay.from_estimator(model, features=["2"])  # doctest: +SKIP
    """

    found: LocalCoefficients
    features: Sequence[int]

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: ArrayLike | None = None,
        *,
        features: Sequence[int | str] | None = None,
        level: float = 0.95,
        columns: int | None = None,
        axes: Sequence[Axes] | None = None,
        **style: Any,
    ) -> CoefficientDisplay:
        """Draw coefficients of a fit at its training rows, or at other places.

        Parameters
        ----------
        estimator : VaryingCoefficientRegressor
            Fitted, by one or two columns of numbers.
        X : array_like or data frame, optional
            Places, as of `coefficients`; by default the training rows.
        features : sequence of int or str, optional
            Names of coefficients, as in `coef_names_`, or their positions; by default all.
        level : float, default=0.95
            Confidence level.
        columns, axes
            As of `PartialDisplay.from_estimator`.
        **style
            `point_kwargs` and `cross_kwargs` of `plot`.

        Returns
        -------
        CoefficientDisplay
            The display, drawn.

        Raises
        ------
        TypeError
            If the coefficients of the estimator do not vary.
        ValueError
            If they vary by other columns than one or two of numbers, or there is no such coefficient.
        """
        ask = drawing.method_of(estimator, "coefficients", "; use VaryingCoefficientRegressor")
        if not hasattr(estimator, "places_"):
            raise TypeError(f"coefficients of {type(estimator).__name__} do not vary; print(model.coefficients())")
        found = ask(X, level=level)
        if found.place.shape[1] not in (1, 2):
            raise ValueError(
                f"by must be one or two columns of numbers for pictures, got {list(found.place_names)}; draw the table "
                "model.coefficients().to_frame()"
            )
        names = found.names
        wanted = names if features is None else features
        which = [drawing.index_of(one, "features", len(names), "coefficient", names) for one in wanted]
        return cls(found=found, features=which).plot(axes=axes, columns=columns, **style)

    def plot(
        self,
        *,
        axes: Sequence[Axes] | None = None,
        columns: int | None = None,
        point_kwargs: drawing.Style = None,
        cross_kwargs: drawing.Style = None,
    ) -> CoefficientDisplay:
        """Draw a panel for each coefficient.

        Parameters
        ----------
        axes : sequence of matplotlib Axes, optional
            Where, one per coefficient; a new figure by default.
        columns : int, optional
            Panels per row of the figure.
        point_kwargs, cross_kwargs : dict, optional
            Style of places or curves, and of crosses.

        Returns
        -------
        CoefficientDisplay
            Itself, with `axes_`, `figure_`, `points_`, `crosses_` and `bands_`.
        """
        found, count = self.found, len(self.features)
        given = new_panels(count, columns, 0.0, shared=False) if axes is None else axes
        self.axes_ = drawing.flat_axes(given, count, "coefficient")
        self.figure_ = self.axes_[0].figure
        self.points_: list[Any] = []
        self.crosses_: list[Any] = []
        self.bands_: list[Any] = []
        for ax, a in zip(self.axes_, self.features, strict=True):
            center, sure = found.center[:, a], found.significant[:, a]
            title = found.names[a]
            if found.place.shape[1] == 1:
                order = np.argsort(found.place[:, 0])
                x, lower, upper = found.place[order, 0], found.lower[order, a], found.upper[order, a]
                self.points_ += ax.plot(x, center[order], **({"color": drawing.RED} | (point_kwargs or {})))
                self.bands_.append(drawing.draw_band(ax, x, lower, upper, color=drawing.RED, alpha=0.22, linewidth=0))
            else:
                title += " (crosses: not significant)" * bool(not sure.all())
                style: dict[str, Any] = {"s": 8, "c": center[sure], "cmap": drawing.SURFACE_COLORS, "linewidths": 0}
                self.points_.append(ax.scatter(*found.place[sure].T, **(style | (point_kwargs or {}))))
                style = {"s": 12, "color": drawing.GRAY, "marker": "x", "linewidths": 0.7}
                self.crosses_.append(ax.scatter(*found.place[~sure].T, **(style | (cross_kwargs or {}))))
                if sure.any():
                    self.figure_.colorbar(self.points_[-1], ax=ax)
                drawing.label_axis(ax.yaxis, found.place_names[1])
            ax.set_title(title, fontsize="medium")
            drawing.label_axis(ax.xaxis, found.place_names[0])
            drawing.tidy(ax)
        drawing.cover_glyphs(self.figure_)
        return self
