"""Plots of a bandwidth search (criterion against bandwidth) and of training (loss against epoch, animation)."""

from __future__ import annotations

import base64
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kernpool.data.atomic_files import whole_file
from kernpool.displays import drawing
from kernpool.execution.error_messages import abbreviate, explain_calls

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.lines import Line2D

Array = NDArray[np.float64]

FLATTEST = 30.0  # spreads: what is smoother is drawn there, since it makes no difference
TITLES = {
    "loo": "leave-one-out error",
    "regularised": "leave-one-out error, penalised",
    "aicc": "AICc",
    "gcv": "generalised cross-validation",
    "log_loss": "leave-one-out log loss, penalised",
}


@explain_calls
@dataclass(eq=False, repr=False, kw_only=True)
class BandwidthPathDisplay:
    """Criterion of a bandwidth search at every bandwidth that it tried, with the minimum marked.

    One bandwidth, or one factor common to all columns, makes a curve; one bandwidth per column makes a cloud of points
    for each, whose lower edge is the criterion with the other columns at about their best.

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
    x_label, y_label : str
        What the axes show.

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
    def from_estimator(cls, estimator: Any, *, ax: Axes | None = None, **style: Any) -> BandwidthPathDisplay:
        """Draw the criterion of a fitted estimator's bandwidth search against the bandwidths tried.

        Parameters
        ----------
        estimator : NadarayaWatsonRegressor, LocalLinearRegressor or NadarayaWatsonClassifier
            Fitted with a bandwidth to be searched for.
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.
        **style
            `curve_kwargs` and `labels` of `plot`.

        Returns
        -------
        BandwidthPathDisplay
            The display, drawn.

        Raises
        ------
        ValueError
            If the estimator did not search.
        """
        search = getattr(estimator, "bandwidth_search_", None)
        if search is None:
            raise ValueError(
                "the estimator has no bandwidth_search_; fit it with bandwidth='loo', 'aicc' or 'gcv' (a model "
                "loaded from a file does not have it either)"
            )
        spread, title = search.spread, TITLES[search.criterion]
        if len(spread) == 1 and not len(search.smoothing):
            display = cls(bandwidths=search.tried, values=search.values, best=search.bandwidth, y_label=title)
            return display.plot(ax=ax, **style)
        tried = search.tried[:, : len(spread)]
        factors, best, label = tried / spread, search.bandwidth / spread, "bandwidth h in spreads of the columns"
        encoding, names = getattr(estimator, "encoding_", None), getattr(estimator, "feature_names_in_", None)
        if names is not None:
            names = [str(names[i]) for i in (range(len(names)) if encoding is None else encoding.numeric)]
        if search.common_factor:
            factors, best, names = factors[:, :1], best[:1], None
        display = cls(bandwidths=factors, values=search.values, best=best, names=names, x_label=label, y_label=title)
        return display.plot(ax=ax, **style)

    def plot(
        self,
        *,
        ax: Axes | None = None,
        curve_kwargs: dict[str, Any] | None = None,
        labels: tuple[str, str] = ("smallest at h = {:.3g}", "{}: {:.3g}"),
    ) -> BandwidthPathDisplay:
        """Draw the criterion against the bandwidth: a curve, or with several columns one cloud of points per column.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where; a new figure by default.
        curve_kwargs : dict, optional
            Passed to matplotlib for the curve or the points.
        labels : tuple of str
            The legend entry of the mark on a curve, and that of a column.

        Returns
        -------
        BandwidthPathDisplay
            Itself, with `ax_`, `figure_` and `lines_`.
        """
        ax = drawing.new_axes() if ax is None else ax
        self.ax_, self.figure_ = ax, ax.figure
        finite = np.isfinite(self.values)
        if not finite.any():
            raise ValueError("the criterion is infinite at every bandwidth that was tried: the fits are perfect")
        bandwidths, values = self.bandwidths[finite], self.values[finite]
        draw = self._curve if bandwidths.shape[1] == 1 else self._points
        self.lines_: list[Line2D] = draw(ax, bandwidths, values, curve_kwargs or {}, labels)
        ax.set(xscale="log", xlabel=self.x_label, ylabel=self.y_label)
        drawing.tidy(ax)
        ax.legend(frameon=False)
        drawing.cover_glyphs(self.figure_)
        return self

    def _curve(self, ax: Axes, bandwidths: Array, values: Array, style: dict[str, Any], labels: Any) -> list[Line2D]:
        order = np.argsort(bandwidths[:, 0])
        default: dict[str, Any] = {"color": drawing.BLUE, "linewidth": 1.8, "marker": ".", "markersize": 5}
        (line,) = ax.plot(bandwidths[order, 0], values[order], **(default | style))
        best = float(self.best[0])
        ax.axvline(best, color=drawing.BLACK, linewidth=0.8, linestyle=":")
        ax.plot([best], [values.min()], "o", color=drawing.RED, markersize=8, label=labels[0].format(best), zorder=3)
        return [line]

    def _points(self, ax: Axes, bandwidths: Array, values: Array, style: dict[str, Any], labels: Any) -> list[Line2D]:
        lines = []
        default: dict[str, Any] = {"linestyle": "none", "marker": ".", "markersize": 6, "alpha": 0.35}
        for a, name in enumerate(self.names or [f"column {a}" for a in range(len(self.best))]):
            at, best = np.minimum(bandwidths[:, a], FLATTEST), float(self.best[a])
            (line,) = ax.plot(at, values, **(default | {"color": f"C{a}"} | style))
            label = labels[1].format(name, best) if best < FLATTEST else f"{name}: no bandwidth"
            ax.plot(
                [min(best, FLATTEST)], [values.min()], "o", color=line.get_color(), markersize=9, label=label,
                markeredgecolor=drawing.BLACK, clip_on=False, zorder=3,
            )  # fmt: skip
            lines.append(line)
        # Starts may be far above the rest, where nothing is to be seen.
        low, typical = values.min(), np.quantile(values, 0.7)
        ax.set_ylim(low - 0.08 * (typical - low), typical)
        return lines


@explain_calls
class TrainingDisplay:
    """Training loss per epoch, optionally with the fitted curve and the pooling weights at each epoch.

    Parameters
    ----------
    losses : array_like of shape (epochs,)
        Loss before the step of each epoch.
    epochs : sequence of int, optional
        Numbers of the epochs, if not 0, 1, 2, ...: show some of many.
    x, fits : array_like of shape (g,) and (epochs, g), optional
        Inputs, and the fitted curve at each epoch; needed by `animate`.
    weights : array_like of shape (epochs, queries, keys), optional
        Pooling weights at each epoch; needed by `animate`.
    x_train, y_train : array_like of shape (n,), optional
        Training samples, drawn under the fit.
    truth : array_like of shape (g,), optional
        The true function at `x`.
    validation : array_like of shape (epochs,), optional
        Loss on held-out rows; the epoch where it is least is marked.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
        Where the loss was drawn.
    line_ : matplotlib Line2D
        The loss.

    Raises
    ------
    ValueError
        If there is no loss, or fits or weights are not as many as losses, or NaN.

    Examples
    --------
    >>> from kernpool import TrainingDisplay
    >>> display = TrainingDisplay([0.9, 0.5, 0.4])
    >>> display.plot().ax_.get_xlabel()  # doctest: +SKIP
    'epoch'
    """

    def __init__(
        self,
        losses: ArrayLike,
        *,
        epochs: Sequence[int] | None = None,
        x: ArrayLike | None = None,
        fits: ArrayLike | None = None,
        weights: ArrayLike | None = None,
        x_train: ArrayLike | None = None,
        y_train: ArrayLike | None = None,
        truth: ArrayLike | None = None,
        validation: ArrayLike | None = None,
    ) -> None:
        if isinstance(losses, Mapping) or hasattr(losses, "history_"):
            raise TypeError(
                f"losses must be one number per epoch, got {type(losses).__name__}; of a learned estimator use "
                "TrainingDisplay.from_estimator(model)"
            )
        self.losses = drawing.as_array(losses)
        if self.losses.ndim != 1 or not self.losses.size or not np.all(np.isfinite(self.losses)):
            raise ValueError(
                f"losses must be one finite number per epoch, got shape {self.losses.shape} "
                f"with {np.count_nonzero(~np.isfinite(self.losses))} NaN or infinite"
            )
        self.epochs = list(range(len(self.losses))) if epochs is None else list(epochs)
        if len(self.epochs) != len(self.losses):
            raise ValueError(
                f"epochs must have one number per loss, got {len(self.epochs)} for {len(self.losses)} losses"
            )
        self.x, self.fits, self.weights, self.x_train, self.y_train, self.truth, self.validation = (
            None if array is None else drawing.as_array(array)
            for array in (x, fits, weights, x_train, y_train, truth, validation)
        )
        shaped = ("fits", self.fits, 2), ("weights", self.weights, 3), ("validation", self.validation, 1)
        for name, array, axes in shaped:
            if array is None:
                continue
            if array.ndim != axes or len(array) != len(self.losses) or not np.all(np.isfinite(array)):
                raise ValueError(
                    f"{name} must be finite, one per epoch, with {axes} dimensions: "
                    f"got shape {array.shape} for {len(self.losses)} losses"
                )

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Axes | None = None, **style: Any) -> TrainingDisplay:
        """Draw the losses of a fitted learned estimator, on the rows that it learned from and on those held out.

        Parameters
        ----------
        estimator : LearnedPoolingRegressor or LearnedPoolingClassifier
            Fitted.
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.
        **style
            `curve_kwargs` and `labels` of `plot`.

        Returns
        -------
        TrainingDisplay
            The display, drawn.

        Raises
        ------
        TypeError
            If the estimator has no `history_`.
        """
        remedy = "; fit a LearnedPoolingRegressor or LearnedPoolingClassifier"
        history = drawing.method_of(estimator, "history_", remedy)
        return cls(history["training_loss"], validation=history["validation_loss"]).plot(ax=ax, **style)

    def plot(
        self,
        *,
        ax: Axes | None = None,
        curve_kwargs: dict[str, Any] | None = None,
        labels: Sequence[str] = ("epoch", "loss", "training rows", "held-out rows", "best epoch: {}"),
    ) -> TrainingDisplay:
        """Draw the training loss against the epoch, and that on held-out rows, with its least, if it is given.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where; a new figure by default.
        curve_kwargs : dict, optional
            Passed to matplotlib for the curve.
        labels : sequence of str
            The x and y labels; with held-out rows those of the legend, too.

        Returns
        -------
        TrainingDisplay
            Itself, with `ax_`, `figure_` and `line_`.
        """
        ax = drawing.new_axes() if ax is None else ax
        from matplotlib.ticker import MaxNLocator

        self.ax_, self.figure_ = ax, ax.figure
        style: dict[str, Any] = {"color": drawing.BLUE, "linewidth": 2.0, "marker": "o", "markersize": 5}
        if self.validation is not None:
            style |= {"marker": "", "label": labels[2]}
            ax.plot(self.epochs, self.validation, color=drawing.RED, linewidth=2.0, linestyle="--", label=labels[3])
            best = int(self.validation.argmin())
            label = labels[4].format(self.epochs[best])
            ax.plot(self.epochs[best], self.validation[best], "o", color=drawing.RED, markersize=9, label=label)
        (self.line_,) = ax.plot(self.epochs, self.losses, **(style | (curve_kwargs or {})))
        if self.validation is not None:
            ax.legend(**drawing.ABOVE, ncols=3)
        ax.set(xlabel=labels[0], ylabel=labels[1])
        ax.xaxis.set_major_locator(MaxNLocator(integer=True))
        drawing.tidy(ax)
        drawing.cover_glyphs(self.figure_)
        return self

    def animate(
        self,
        path: str | Path,
        *,
        frames_per_second: float = 4.0,
        dpi: int = 90,
        force: bool = False,
        labels: Sequence[str] = ("epoch {}: loss {:.4f}", "x", "y", "keys", "queries"),
    ) -> Path:
        """Write an animation of fitted curve and weights by epoch to `path`, as a GIF or an HTML page with a slider.

        Parameters
        ----------
        path : str or Path
            Ends in ``.gif`` or ``.html``. The page holds its pictures in itself and needs no network.
        frames_per_second : float, default=4.0
            Speed.
        dpi : int, default=90
            Resolution.
        force : bool, default=False
            Overwrite.
        labels : sequence of str
            Title of a frame, and the labels of the axes.

        Returns
        -------
        Path
            Where it was written.

        Raises
        ------
        ValueError
            If there are neither fits nor weights, or the suffix is another one.
        FileExistsError
            If the file exists and `force` is false.
        """
        path = Path(path)
        if path.suffix not in (".gif", ".html"):
            raise ValueError(f"path must end in .gif or .html, got {abbreviate(path.name)}")
        if not frames_per_second > 0:
            raise ValueError(f"frames_per_second must be positive, got {frames_per_second}")
        frames = self._frames(dpi, labels)
        with whole_file(path, force=force) as temporary:
            if path.suffix == ".gif":
                _write_gif(temporary, frames, frames_per_second)
            else:
                temporary.write_text(_page(frames, self.epochs, frames_per_second), encoding="utf-8")
        return path

    def _frames(self, dpi: int, labels: Sequence[str]) -> list[bytes]:
        """Return one PNG image per epoch, with the fitted curve, the heat map of weights, or both."""
        panels = (self.fits is not None) + (self.weights is not None)
        if panels == 0:
            raise ValueError("an animation needs fits (with x) or weights, one per epoch; give them to TrainingDisplay")
        plt = drawing.import_pyplot()
        frames = []
        for index, (epoch, loss) in enumerate(zip(self.epochs, self.losses, strict=True)):
            figure, axes = plt.subplots(1, panels, figsize=(5.2 * panels, 3.9), squeeze=False, layout="constrained")
            figure.suptitle(labels[0].format(epoch, loss))
            if self.fits is not None:
                self._draw_fit(axes[0, 0], index, labels)
            if self.weights is not None:
                panel = axes[0, -1]
                image = panel.imshow(
                    self.weights[index], cmap=drawing.WEIGHT_COLORS, vmin=0, vmax=self.weights.max(), aspect="auto"
                )
                panel.set(xlabel=labels[3], ylabel=labels[4])
                figure.colorbar(image, ax=panel)
            drawing.cover_glyphs(figure)
            buffer = io.BytesIO()
            figure.savefig(buffer, format="png", dpi=dpi)
            plt.close(figure)
            frames.append(buffer.getvalue())
        return frames

    def _draw_fit(self, ax: Axes, index: int, labels: Sequence[str]) -> None:
        assert self.fits is not None
        if self.x is None or self.x.shape != self.fits.shape[1:]:
            raise ValueError(
                f"x must hold one input per fitted value, in shape {self.fits.shape[1:]}, got "
                f"{None if self.x is None else self.x.shape}"
            )
        if self.x_train is not None and self.y_train is not None:
            ax.scatter(self.x_train, self.y_train, color=drawing.GRAY, alpha=0.4, s=30, linewidths=0)
        if self.truth is not None:
            ax.plot(self.x, self.truth, color=drawing.BLACK, linestyle="--", linewidth=1.2)
        ax.plot(self.x, self.fits[index], color=drawing.RED, linewidth=2)
        everything = [array for array in (self.fits, self.y_train, self.truth) if array is not None]
        low, high = min(a.min() for a in everything), max(a.max() for a in everything)
        margin = 0.05 * (high - low) or 1.0
        ax.set(xlabel=labels[1], ylabel=labels[2], ylim=(low - margin, high + margin))
        drawing.tidy(ax)


def _write_gif(path: Path, frames: list[bytes], frames_per_second: float) -> None:
    from PIL import Image  # comes with matplotlib

    images = [Image.open(io.BytesIO(frame)).convert("RGB").quantize(128) for frame in frames]
    duration = round(1000 / frames_per_second)
    durations = [duration] * (len(images) - 1) + [6 * duration]  # dwell on the result
    images[0].save(path, save_all=True, append_images=images[1:], duration=durations, loop=0, optimize=True)


def _page(frames: list[bytes], epochs: list[int], frames_per_second: float) -> str:
    # matplotlib's own to_jshtml fetches its icons from a server, so its pages lack them without a network.
    sources = ",".join(f'"data:image/png;base64,{base64.b64encode(frame).decode()}"' for frame in frames)
    values = {"LAST": len(frames) - 1, "MS": round(1000 / frames_per_second), "EPOCHS": ",".join(map(str, epochs))}
    page = files("kernpool.displays").joinpath("training.html").read_text(encoding="utf-8")
    for name, value in (values | {"FRAMES": sources}).items():
        page = page.replace(f"@{name}@", str(value))
    return page
