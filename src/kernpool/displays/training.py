"""Training, epoch by epoch: the loss as a curve, the fit and the weights as an animation."""

from __future__ import annotations

import base64
import io
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kernpool.data.files import whole_file
from kernpool.displays.style import BLACK, BLUE, GRAY, RED, WEIGHT_COLORS, as_array, import_pyplot, new_axes, tidy
from kernpool.execution.messages import abbreviate, explain_calls

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Array = NDArray[np.float64]


@explain_calls
class TrainingDisplay:
    """Loss per epoch, and optionally the fit and the weights at each of them.

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
    ) -> None:
        self.losses = as_array(losses)
        if self.losses.ndim != 1 or not self.losses.size or not np.all(np.isfinite(self.losses)):
            raise ValueError(
                f"losses must be one finite number per epoch, got shape {self.losses.shape} "
                f"with {np.count_nonzero(~np.isfinite(self.losses))} NaN or infinite"
            )
        self.epochs = list(range(len(self.losses))) if epochs is None else list(epochs)
        if len(self.epochs) != len(self.losses):
            raise ValueError(f"epochs must number the losses: got {len(self.epochs)} for {len(self.losses)} losses")
        self.x, self.fits, self.weights, self.x_train, self.y_train, self.truth = (
            None if array is None else as_array(array) for array in (x, fits, weights, x_train, y_train, truth)
        )
        for name, array, axes in (("fits", self.fits, 2), ("weights", self.weights, 3)):
            if array is None:
                continue
            if array.ndim != axes or len(array) != len(self.losses) or not np.all(np.isfinite(array)):
                raise ValueError(
                    f"{name} must be finite, one per epoch, with {axes} dimensions: "
                    f"got shape {array.shape} for {len(self.losses)} losses"
                )

    def plot(
        self,
        *,
        ax: Axes | None = None,
        curve_kwargs: dict[str, Any] | None = None,
        labels: tuple[str, str] = ("epoch", "loss"),
    ) -> TrainingDisplay:
        """Draw the loss per epoch.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where; a new figure by default.
        curve_kwargs : dict, optional
            Passed to matplotlib for the curve.
        labels : tuple of str
            The x and y labels.

        Returns
        -------
        TrainingDisplay
            Itself, with `ax_`, `figure_` and `line_`.
        """
        ax = new_axes() if ax is None else ax
        from matplotlib.ticker import MaxNLocator

        self.ax_, self.figure_ = ax, ax.figure
        style: dict[str, Any] = {"color": BLUE, "linewidth": 2.0, "marker": "o", "markersize": 5}
        (self.line_,) = ax.plot(self.epochs, self.losses, **(style | (curve_kwargs or {})))
        ax.set(xlabel=labels[0], ylabel=labels[1])
        ax.xaxis.set_major_locator(MaxNLocator(integer=True))
        tidy(ax)
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
        """Write the fit and the weights, epoch by epoch, to a GIF or to an HTML page with a slider.

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
        """Draw one PNG per epoch."""
        panels = (self.fits is not None) + (self.weights is not None)
        if panels == 0:
            raise ValueError("an animation needs fits (with x) or weights, one per epoch; give them to TrainingDisplay")
        plt = import_pyplot()
        frames = []
        for index, (epoch, loss) in enumerate(zip(self.epochs, self.losses, strict=True)):
            figure, axes = plt.subplots(1, panels, figsize=(5.2 * panels, 3.9), squeeze=False, layout="constrained")
            figure.suptitle(labels[0].format(epoch, loss))
            if self.fits is not None:
                self._draw_fit(axes[0, 0], index, labels)
            if self.weights is not None:
                panel = axes[0, -1]
                image = panel.imshow(
                    self.weights[index], cmap=WEIGHT_COLORS, vmin=0, vmax=self.weights.max(), aspect="auto"
                )
                panel.set(xlabel=labels[3], ylabel=labels[4])
                figure.colorbar(image, ax=panel)
            buffer = io.BytesIO()
            figure.savefig(buffer, format="png", dpi=dpi)
            plt.close(figure)
            frames.append(buffer.getvalue())
        return frames

    def _draw_fit(self, ax: Axes, index: int, labels: Sequence[str]) -> None:
        assert self.fits is not None
        if self.x is None or self.x.shape != self.fits.shape[1:]:
            raise ValueError(f"x must hold one input per fitted value, {self.fits.shape[1]} of them")
        if self.x_train is not None and self.y_train is not None:
            ax.scatter(self.x_train, self.y_train, color=GRAY, alpha=0.4, s=30, linewidths=0)
        if self.truth is not None:
            ax.plot(self.x, self.truth, color=BLACK, linestyle="--", linewidth=1.2)
        ax.plot(self.x, self.fits[index], color=RED, linewidth=2)
        everything = [array for array in (self.fits, self.y_train, self.truth) if array is not None]
        low, high = min(a.min() for a in everything), max(a.max() for a in everything)
        margin = 0.05 * (high - low) or 1.0
        ax.set(xlabel=labels[1], ylabel=labels[2], ylim=(low - margin, high + margin))
        tidy(ax)


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
