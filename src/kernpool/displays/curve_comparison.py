"""Curves of several groups in one plot, with the p-value of the test that they are equal or parallel."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kernpool.data.columns import with_days
from kernpool.displays import drawing
from kernpool.execution.error_messages import abbreviate, explain_calls
from kernpool.inference.hypothesis_tests.curve_equality import NULLS, GroupCurves, group_curves

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from kernpool.inference import TestResult

Array = NDArray[np.float64]

LINES = ("-", "--", "-.", ":")


@explain_calls
@dataclass(eq=False, repr=False, kw_only=True)
class CurveComparisonDisplay(drawing.Display):
    """Curves of several groups, with the p-value of the test that they are equal or parallel.

    Reference bands show where the curves would be if they were equal, or parallel: curves differ where they leave their
    band. Two groups whose equality was tested have a common band; otherwise each has its own, in its color, since more
    precise curves stay closer to the mean. See `GroupCurves.reference_band`.

    Parameters
    ----------
    curves : GroupCurves
        Of the groups.
    result : TestResult, optional
        Of `compare_curves`.
    x_train, y_train, group : ndarray of shape (n,), optional
        Rows, and the number of each one's group.
    level : float, default=0.95
        Pointwise coverage of the reference bands, for all groups together.
    x_label, y_label, x_kind : str
        Axis labels, and what x holds: ``"numeric"``, or dates or durations in days.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
        Where it was drawn.
    lines_ : list of matplotlib Line2D
        One curve per group.
    bands_ : list of matplotlib PolyCollection
        The reference bands: one for two groups whose equality was tested, otherwise one per group.
    scatter_ : list of matplotlib PathCollection
        Rows, group by group.

    Examples
    --------
    >>> import numpy as np
    >>> from kernpool import CurveComparisonDisplay, compare_curves
    >>> random = np.random.default_rng(0)
    >>> x, groups = random.uniform(size=120), np.repeat(["a", "b"], 60)
    >>> y = np.sin(6 * x) + x * (groups == "b") + 0.3 * random.normal(size=120)
    >>> result = compare_curves(x, y, groups)
    >>> display = CurveComparisonDisplay.from_result(result, x, y, groups)  # doctest: +SKIP
    """

    curves: GroupCurves = field(kw_only=False)
    result: TestResult | None = None
    x_train: Array | None = None
    y_train: Array | None = None
    group: NDArray[np.intp] | None = None
    level: float = 0.95

    @classmethod
    def from_result(
        cls,
        result: TestResult,
        X: ArrayLike,
        y: ArrayLike,
        groups: ArrayLike,
        *,
        sample_weight: ArrayLike | None = None,
        kernel: str = "gaussian",
        level: float = 0.95,
        grid_resolution: int = 201,
        feature: str = "x",
        target: str = "y",
        ax: Axes | None = None,
        **style: Any,
    ) -> CurveComparisonDisplay:
        """Draw the group curves that `compare_curves` has compared, at the bandwidth of the test.

        Parameters
        ----------
        result : TestResult
            Of `compare_curves`.
        X, y, groups, sample_weight, kernel
            As they were given to `compare_curves`; one column.
        level : float, default=0.95
            Pointwise coverage of the reference bands, for all groups together.
        grid_resolution : int, default=201
            Points of the curves.
        feature, target : str
            Axis labels.
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.
        **style
            `names`, `subsample`, `curve_kwargs`, `scatter_kwargs` and `band_kwargs` of `plot`.

        Returns
        -------
        CurveComparisonDisplay
            The display, drawn.

        Raises
        ------
        ValueError
            If there are several columns, a group has fewer than five rows, or the level is invalid.
        TypeError
            If `result` is no `TestResult` of `compare_curves`.
        """
        if getattr(result, "null", None) not in NULLS.values():
            raise TypeError(f"result must be what compare_curves returns, got {abbreviate(result)}")
        if len(result.bandwidth) != 1:
            raise ValueError(
                f"result must be of a test over one column, and the test compared surfaces over "
                f"{len(result.bandwidth)} columns; give compare_curves one column at a time"
            )
        curves = group_curves(
            X,
            y,
            groups,
            float(result.bandwidth[0]),
            kernel=kernel,
            sample_weight=sample_weight,
            parallel=result.null == NULLS["parallel"],
            places=grid_resolution,
        )
        days, kinds = with_days("X", X)
        label = np.asarray(groups)
        present = np.isin(label, curves.labels)
        return cls(
            curves,
            result=result,
            x_train=np.asarray(days, dtype=np.float64).ravel()[present],
            y_train=np.asarray(y, dtype=np.float64).ravel()[present],
            group=np.searchsorted(curves.labels, label[present]),
            level=level,
            x_label=feature,
            y_label=target,
            x_kind="numeric" if kinds is None else kinds[0],
        ).plot(ax=ax, **style)

    def plot(
        self,
        *,
        ax: Axes | None = None,
        names: list[str] | None = None,
        subsample: int | None = 1000,
        curve_kwargs: dict[str, Any] | None = None,
        scatter_kwargs: dict[str, Any] | None = None,
        band_kwargs: dict[str, Any] | None = None,
    ) -> CurveComparisonDisplay:
        """Draw the curve and the rows of each group and the reference bands, with the p-value as title.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where; a new figure by default.
        names : list of str, optional
            Of the groups in the legend; by default their labels.
        subsample : int or None, default=1000
            Draw at most so many evenly chosen rows; None draws all.
        curve_kwargs, scatter_kwargs, band_kwargs : dict, optional
            Passed to matplotlib for all curves, all rows, and all reference bands.

        Returns
        -------
        CurveComparisonDisplay
            Itself, with `ax_`, `figure_`, `lines_`, `bands_` and `scatter_`.

        Raises
        ------
        ValueError
            If `names` are not as many as groups.
        """
        labels = [str(label) for label in self.curves.labels] if names is None else names
        if len(labels) != len(self.curves.labels):
            raise ValueError(f"names must be one per group, got {len(labels)} for {len(self.curves.labels)}")
        ax = self._start(ax)
        self.bands_ = self._draw_bands(ax, band_kwargs or {})
        x = self.curves.x
        self.lines_: list[Any] = []
        self.scatter_: list[Any] = []
        shown = np.arange(0) if self.x_train is None else drawing.evenly(len(self.x_train), subsample)
        crowd = min(1.0, 100 / max(len(shown), 1))
        for k, (label, curve) in enumerate(zip(labels, self.curves.curve, strict=True)):
            color = drawing.GROUPS[k % len(drawing.GROUPS)]
            if self.x_train is not None and self.y_train is not None and self.group is not None:
                rows = shown[self.group[shown] == k]
                style: dict[str, Any] = {
                    "s": 12 + 16 * crowd,
                    "color": color,
                    "alpha": 0.2 + 0.25 * crowd,
                    "linewidths": 0,
                }
                style |= {"zorder": 1.5, "marker": drawing.MARKERS[k % len(drawing.MARKERS)]} | (scatter_kwargs or {})
                self.scatter_.append(ax.scatter(self.x_train[rows], self.y_train[rows], **style))
            style = {"color": color, "linewidth": 2.0, "linestyle": LINES[k % len(LINES)], "label": label, "zorder": 3}
            self.lines_ += ax.plot(x, curve, **(style | (curve_kwargs or {})))
        if self.result is not None:
            ax.set_title(f"{self.result.null}: p = {self.result.p_value:.2g}", fontsize="medium")
        from matplotlib.legend_handler import HandlerTuple

        handles, said = ax.get_legend_handles_labels()
        swatches: list[Any] = [tuple(self.bands_) if handle is self.bands_[0] else handle for handle in handles]
        beside = {tuple: HandlerTuple(ndivide=None, pad=0.0)}
        self._finish(swatches, said, handler_map=beside, frameon=True, framealpha=0.75, edgecolor="none")
        return self

    def _draw_bands(self, ax: Axes, style: dict[str, Any]) -> list[Any]:
        parallel = self.curves.parallel
        lower, upper = self.curves.reference_band(self.level)
        one = len(lower) == 2 and not parallel
        said = f"where {'parallel' if parallel else 'equal'} curves would be, {100 * self.level:.6g} % pointwise"
        bands = []
        for k in range(1 if one else len(lower)):
            color, alpha = (drawing.GRAY, 0.3) if one else (drawing.GROUPS[k % len(drawing.GROUPS)], 0.15)
            usual: dict[str, Any] = {
                "color": color,
                "alpha": alpha,
                "linewidth": 0,
                "zorder": 1,
                "label": "" if k else said,
            }
            where = np.isfinite(lower[k])
            bands.append(ax.fill_between(self.curves.x, lower[k], upper[k], where=where, **(usual | style)))
        return bands
