"""Plots of kernel profiles, and heat maps of attention weights."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from kernpool._arrays import Array
from kernpool.displays import drawing
from kernpool.execution import abbreviate
from kernpool.kernels import Kernel, get_kernel


@dataclass(eq=False, repr=False, kw_only=True)
class KernelDisplay:
    """Kernel profiles over ``u = (q - k) / h``, one panel each, with a common y axis.

    Parameters
    ----------
    u : ndarray of shape (g,)
        Where the profiles are drawn.
    profiles : dict of str to ndarray of shape (g,)
        ``K(u)`` by name.

    Attributes
    ----------
    axes_ : ndarray of matplotlib Axes
        One per kernel.
    figure_ : matplotlib Figure
        The figure.
    lines_ : list of matplotlib Line2D
        One per kernel.

    Examples
    --------
    >>> from kernpool import KernelDisplay
    >>> display = KernelDisplay.from_kernels(["epanechnikov", "triangular"])  # doctest: +SKIP
    """

    u: Array
    profiles: dict[str, Array]

    @classmethod
    def from_kernels(
        cls,
        kernels: Sequence[str | Kernel] = ("gaussian", "boxcar", "constant", "epanechnikov"),
        *,
        axes: Any = None,
        **style: Any,
    ) -> KernelDisplay:
        """Evaluate kernels on a grid from -2.5 to 2.5 in steps of 0.02, and draw one panel for each.

        Parameters
        ----------
        kernels : sequence of str or Kernel, default=("gaussian", "boxcar", "constant", "epanechnikov")
            Which; by default the four that the subject is taught with.
        axes : sequence of matplotlib Axes, optional
            One per kernel; a new figure by default.
        **style
            `names` of `plot`.

        Returns
        -------
        KernelDisplay
            The display, drawn.

        Raises
        ------
        ValueError
            If a kernel is unknown.
        """
        found = [get_kernel(kernel) for kernel in ([kernels] if isinstance(kernels, str | Kernel) else kernels)]
        if not found or len({kernel.name for kernel in found}) < len(found):
            raise ValueError(f"kernels must name at least one kernel, each once; got {abbreviate(kernels)}")
        grid = np.arange(-125, 126) / 50
        edges = [kernel.support * sign for kernel in found if kernel.is_compact for sign in (-1, 1)]
        # a point on either side of each edge, or a jump looks like a slope
        grid = np.unique(np.r_[grid, edges, np.nextafter(edges, np.inf), np.nextafter(edges, -np.inf)])
        profiles = {kernel.name: kernel.profile(np.abs(grid)) for kernel in found}
        return cls(u=grid, profiles=profiles).plot(axes=axes, **style)

    def plot(self, *, axes: Any = None, names: Sequence[str] | None = None) -> KernelDisplay:
        """Draw the profile of each kernel in a panel of its own.

        Parameters
        ----------
        axes : sequence of matplotlib Axes, optional
            One per kernel; a new figure by default.
        names : sequence of str, optional
            Titles; by default the kernels' names.

        Returns
        -------
        KernelDisplay
            Itself, with `axes_`, `figure_` and `lines_`.

        Raises
        ------
        ValueError
            If there are not as many axes as kernels.
        """
        count = len(self.profiles)
        if axes is None:
            axes = drawing.new_axes(1, count, (2.6 * count + 0.6, 2.8), sharex=True, sharey=True)
        self.axes_ = drawing.flat_axes(axes, count, "kernel")
        names = list(self.profiles) if names is None else names
        drawing.check_length("names", names, count, "kernel")
        self.figure_ = self.axes_[0].figure
        self.lines_: list[Any] = []
        highest = max(float(profile.max()) for profile in self.profiles.values())  # of all panels: they share the axis
        for ax, profile, name in zip(self.axes_, self.profiles.values(), names, strict=True):
            ax.fill_between(self.u, profile, color=drawing.BLUE, alpha=0.15, linewidth=0)
            self.lines_ += ax.plot(self.u, profile, color=drawing.BLUE, linewidth=2.0)
            ax.set(title=name, xlabel="u = (q − k) / h", ylim=(0, 1.05 * highest))
            drawing.tidy(ax)
        self.axes_[0].set_ylabel("K(u)")
        drawing.cover_glyphs(self.figure_)
        return self


@dataclass(eq=False, repr=False, kw_only=True)
class AttentionDisplay:
    """Heat map of pooling weights, queries down and keys across; several heads have one color scale.

    Parameters
    ----------
    weights : ndarray of shape (rows, columns, queries, keys)
        Weights of a grid of heads.
    title : str or sequence of str, optional
        One title for all columns of heads, one per column, or one per head.
    x_label, y_label : str
        Axis labels.

    Attributes
    ----------
    axes_ : ndarray of matplotlib Axes, shape (rows, columns)
        One per head.
    figure_ : matplotlib Figure
        The figure.
    images_ : list of matplotlib AxesImage
        One per head.
    colorbar_ : matplotlib Colorbar
        The shared scale.

    Notes
    -----
    Where there are more keys or queries than pixels, a pixel shows the mean weight of those that it covers.

    Examples
    --------
    >>> import numpy as np
    >>> from kernpool import AttentionDisplay, pooling_weights
    >>> x = np.linspace(0, 5, 40)
    >>> display = AttentionDisplay.from_weights(pooling_weights(x, x, bandwidth=0.3))  # doctest: +SKIP
    """

    weights: Array
    title: str | Sequence[Any] | None = None
    x_label: str = "keys"
    y_label: str = "queries"

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: ArrayLike, *, sort: bool = True, ax: Any = None, **style: Any
    ) -> AttentionDisplay:
        """Draw the weights of the training rows in the predictions of a fitted estimator at given queries.

        Parameters
        ----------
        estimator : NadarayaWatsonRegressor, LocalLinearRegressor or NadarayaWatsonClassifier
            Fitted. The weights of local linear fits may be negative; they are drawn blue on a scale of their own.
        X : array_like of shape (m, d)
            Queries.
        sort : bool, default=True
            Order queries and training rows by their first numeric column; then high weights lie near the diagonal.
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.
        **style
            As in `from_weights`.

        Returns
        -------
        AttentionDisplay
            The display, drawn.
        """
        weights = drawing.method_of(estimator, "attention_weights", "; draw it of model.curve_, if there is one")(X)
        labels = {"x_label": "training rows", "y_label": "queries"}
        if sort:
            encoding = getattr(estimator, "encoding_", None)
            first = encoding.numeric[0] if encoding is not None and encoding.numeric else 0
            by = getattr(X, "columns", [f"column {i}" for i in range(first + 1)])[first]
            weights = weights[np.argsort(np.asarray(X)[:, first], kind="stable")]
            weights = weights[:, np.argsort(np.asarray(estimator.key_)[:, 0], kind="stable")]
            labels = {"x_label": f"training rows, sorted by {by}", "y_label": f"queries, sorted by {by}"}
        return cls.from_weights(weights, ax=ax, **(labels | style))

    @classmethod
    def from_weights(
        cls,
        weights: ArrayLike,
        *,
        title: str | Sequence[Any] | None = None,
        x_label: str = "keys",
        y_label: str = "queries",
        ax: Any = None,
    ) -> AttentionDisplay:
        """Draw given pooling weights, of one head or of a grid of heads, as heat maps.

        Parameters
        ----------
        weights : array_like of shape (queries, keys) or (rows, columns, queries, keys)
            Weights of one head, or of a grid of heads.
        title : str or list of str, optional
            Title, or one per column of heads, or rows of one per head.
        x_label, y_label : str
            Axis labels.
        ax : matplotlib Axes, optional
            Where to draw a single head; a new figure by default.

        Returns
        -------
        AttentionDisplay
            The display, drawn.

        Raises
        ------
        ValueError
            If the weights have another number of dimensions, or hold NaN or infinity.
        """
        grid = _as_grid(weights)
        display = cls(weights=grid, title=title, x_label=x_label, y_label=y_label)
        return display.plot(ax=ax)

    def plot(self, *, ax: Any = None) -> AttentionDisplay:
        """Draw a heat map for each head, with one color scale for all: darker with the weight, blue below zero.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw a single head; a new figure by default.

        Returns
        -------
        AttentionDisplay
            Itself, with `axes_`, `figure_`, `images_` and `colorbar_`.

        Raises
        ------
        ValueError
            If `ax` is given for several heads.
        """
        colors = drawing.import_pyplot().matplotlib.colors
        rows, columns = self.weights.shape[:2]
        if ax is None:
            size = (1.4 + max(2.2, 4.2 / columns**0.5) * columns, 0.6 + max(1.8, 3.6 / rows**0.5) * rows)
            axes = drawing.new_axes(rows, columns, size, sharex=True, sharey=True)
        else:
            drawing.check_length("ax", [ax], rows * columns, "head")
            axes = np.array([[ax]], dtype=object)
        titles = [self.title] * columns if isinstance(self.title, str) else np.ravel(self.title or [""] * columns)
        if len(titles) != rows * columns:
            drawing.check_length("title", titles, columns, "column of heads")
        for panel, title in zip(axes.flat, titles, strict=False):  # of the first row, or of all
            panel.set_title(title)
        self.axes_, self.figure_, self.images_ = axes, axes[0, 0].figure, []
        # One scale for all heads. Negative weights are far smaller than positive ones, and have a half of their own.
        lowest, largest = float(self.weights.min()), max(float(self.weights.max()), 1e-300)
        signed = lowest < 0
        for (i, j), panel in np.ndenumerate(axes):
            image = panel.imshow(
                self.weights[i, j],
                cmap=drawing.SIGNED_COLORS if signed else drawing.WEIGHT_COLORS,
                norm=colors.TwoSlopeNorm(0.0, lowest, largest) if signed else colors.Normalize(0.0, largest),
                aspect="auto",
            )
            self.images_.append(image)
            panel.locator_params(integer=True)
            if i == rows - 1:
                panel.set_xlabel(self.x_label)
            if j == 0:
                panel.set_ylabel(self.y_label)
        self.colorbar_ = self.figure_.colorbar(self.images_[0], ax=axes, shrink=0.9, pad=0.02)
        if signed:
            ticks = [lowest, lowest / 2, 0.0, largest / 2, largest]
            self.colorbar_.set_ticks(ticks, labels=[f"{tick:.2g}".replace("-", "−") for tick in ticks])
        self.colorbar_.set_label("weight")
        drawing.cover_glyphs(self.figure_)
        return self


def _as_grid(weights: ArrayLike) -> Array:
    grid = drawing.as_array("weights", weights)
    if grid.ndim not in (2, 4) or grid.size == 0:
        raise ValueError(
            f"weights must have shape (queries, keys) or (rows, columns, queries, keys), got {grid.shape}; "
            "for a batch of heads use weights[None] or reshape it to a grid"
        )
    if not np.all(np.isfinite(grid)):
        place = tuple(np.argwhere(~np.isfinite(grid))[0].tolist())
        raise ValueError(
            f"weights hold {grid[place]} at index {place}; "
            "empty windows give NaN: use empty='zero', or another kernel or bandwidth"
        )
    return grid if grid.ndim == 4 else grid[None, None]
