"""Functions and constants shared by all plots: colors, fonts, axes and training samples.

Colors survive gray printing and color blindness.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

from kernpool._arrays import AnyArray, Array, Index
from kernpool.data import refuse_foreign, refuse_other_labels
from kernpool.execution import abbreviate, warn_caller

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import FigureBase

# After Petroff (arXiv:2107.02270): color-blind readers can distinguish them, and their lightness differs in print.
BLUE, RED, GRAY, BLACK = "#3f90da", "#bd1f01", "#717581", "#000000"
# Of classes, whose order means nothing and which may be ten: the longest of Petroff's sequences.
CLASSES = (
    BLUE, "#ffa90e", RED, "#94a4a2", "#832db6", "#a96b59", "#e76300", "#b9ac70", GRAY, "#92dadd",
)  # fmt: skip
CURVES = (RED, *(color for color in CLASSES if color != RED))  # on one axes
# From white to dark red with falling lightness: more weight is more ink, in black and white too.
WEIGHT_COLORS = "Reds"
SURFACE_COLORS = "viridis"
SIGNED_COLORS = "RdBu_r"  # of weights that may be negative, white at zero
# Fonts with Simplified Chinese, as systems name them.
CHINESE_FONTS = (
    "Noto Sans CJK SC", "Noto Sans SC", "Source Han Sans SC", "Source Han Sans CN", "PingFang SC", "Microsoft YaHei",
    "Heiti SC", "Heiti TC", "STHeiti", "SimHei", "WenQuanYi Micro Hei", "WenQuanYi Zen Hei", "Noto Sans CJK JP",
    "Noto Serif CJK SC", "Arial Unicode MS",
)  # fmt: skip


def import_pyplot() -> Any:
    """Return the module `matplotlib.pyplot`; raise an ImportError that names the extra if it is missing."""
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError(
            'pictures need matplotlib, which is not installed; install it with: pip install "kernpool[plot]"'
        ) from error
    return plt


def cover_glyphs(figure: Any) -> None:
    """Let an installed font draw those characters of the labels, such as Chinese ones, that their own fonts lack.

    Without such a font, warn once in place of matplotlib's warning for each character.
    """
    from matplotlib import font_manager

    def lacking(text: Any) -> set[str]:
        """Return the characters of a label that none of its fonts has."""
        foreign = {letter for letter in text.get_text() if not (letter.isascii() or letter.isspace())}
        paths = [font_manager.findfont(font_manager.FontProperties(family=[one])) for one in text.get_fontfamily()]
        fonts = [font_manager.get_font(path) for path in paths] if foreign else []
        return {letter for letter in foreign if not any(font.get_char_index(ord(letter)) for font in fonts)}

    logger = logging.getLogger("matplotlib.font_manager")
    before = logger.level
    logger.setLevel(logging.ERROR)  # no messages about fonts, such as Chinese ones of a single weight
    try:
        texts = [text for text in figure.findobj(import_pyplot().Text) if lacking(text)]
        font = _chinese_font() if texts else None
        if font is not None:
            for text in texts:
                text.set_fontfamily([*text.get_fontfamily(), font])
            for ax in figure.axes:  # labels of ticks are made anew where their number changes
                ax.tick_params(labelfontfamily=[*ax.xaxis.label.get_fontfamily(), font])
        missing = "".join(sorted(set().union(*map(lacking, texts))))
    finally:
        logger.setLevel(before)
    if missing:
        warnings.filterwarnings("ignore", message=r"Glyph \d+ .* missing from")  # this warning speaks for all of them
        warn_caller(
            f"no font found has the characters {abbreviate(missing)} of the labels; install one that has, such as Noto "
            "Sans CJK for Chinese, or name it: matplotlib.rcParams['font.family'] = ['DejaVu Sans', name]"
        )


def _chinese_font() -> str | None:
    """Return the name of an installed font with Simplified Chinese; None if there is none.

    matplotlib keeps a list of fonts from the day of its first use; those that were installed since are read here.
    """
    from matplotlib import font_manager

    def known() -> str | None:
        names = set(font_manager.get_font_names())
        return next((name for name in CHINESE_FONTS if name in names), None)

    if (found := known()) is not None:
        return found
    listed = {entry.fname for entry in font_manager.fontManager.ttflist}
    for path in set(font_manager.findSystemFonts()) - listed:
        with suppress(Exception):  # whatever is wrong with a font of the system
            font_manager.fontManager.addfont(path)
    return known()


def new_axes(down: int = 1, across: int = 1, size: tuple[float, float] = (6.4, 4.4), **shared: bool) -> AnyArray:
    """Create a figure of a given size in inches, and return the axes of its plots, of shape (down, across)."""
    _, axes = import_pyplot().subplots(down, across, figsize=size, squeeze=False, layout="constrained", **shared)
    return np.asarray(axes)


def flat_axes(axes: Any, count: int, unit: str) -> AnyArray:
    """Return given axes as a flat array; raise ValueError unless there are as many as units of a display."""
    flat_array = np.ravel(np.asarray(axes, dtype=object))
    check_length("axes", flat_array, count, unit)
    return flat_array


Style = dict[str, Any] | None  # keywords for an artist of matplotlib; None for those of the display
# Legend in the room above a plot, small.
ABOVE: dict[str, Any] = {"frameon": False, "loc": "lower center", "bbox_to_anchor": (0.5, 1.0), "fontsize": "small"}
ABOVE |= {"title_fontsize": "small"}
ABOVE_WIDTH = 90  # characters of its entries side by side


@dataclass(eq=False, repr=False, kw_only=True)
class Display:
    """Labels and kind of the x axis of a display, and the axes that it is drawn on."""

    x_label: str = "x"
    y_label: str = "y"
    x_kind: str = "numeric"  # as in kernpool.data.columns.Column; dates and durations are in days

    def _start(self, ax: Axes | None) -> Axes:
        """Set `ax_` and `figure_`, to new ones unless axes are given, and return the axes."""
        self.ax_: Axes = new_axes()[0, 0] if ax is None else ax
        self.figure_ = self.ax_.figure
        return self.ax_

    def _finish(self, **legend: Any) -> None:
        """Label the axes, hide the frame lines without ticks, and draw the legend, above unless its place is given."""
        label_axis(self.ax_.xaxis, self.x_label, self.x_kind)
        self.ax_.set_ylabel(self.y_label)
        tidy(self.ax_)
        entries: dict[str, tuple[Any, ...]] = {}
        for handle, label in zip(*self.ax_.get_legend_handles_labels(), strict=True):
            entries[label] = (*entries.get(label, ()), handle)
        # of several curves first those that have a name, then what is drawn of each, in their colors
        labels = sorted(entries, key=lambda label: len(entries[label]))
        wide = max(map(len, labels), default=0) + 6  # characters of an entry with its handle
        if "loc" not in legend:
            legend = ABOVE | {"ncols": max(1, min(len(labels), ABOVE_WIDTH // wide))} | legend
        draw_legend(self.ax_, {label: entries[label] for label in labels}, **legend)
        cover_glyphs(self.figure_)


def draw_legend(of: Axes | FigureBase, entries: dict[str, Any], **style: Any) -> None:
    """Draw a legend whose entries show several artists side by side, such as the bands of several curves."""
    from matplotlib.legend_handler import HandlerTuple

    of.legend(list(entries.values()), list(entries), handler_map={tuple: HandlerTuple(ndivide=None)}, **style)


def next_color(ax: Axes) -> str:
    """Return the first color that no line on the axes has."""
    from matplotlib.colors import to_hex

    used = {to_hex(line.get_color()) for line in ax.lines}
    return next((color for color in CURVES if color not in used), CURVES[len(ax.lines) % len(CURVES)])


def first_name(*given: Any) -> str:
    """Return the first name among names and columns, such as Series, that may have one; the last is a name."""
    names = (one if isinstance(one, str) else getattr(one, "name", None) or None for one in given)
    return next(name for name in names if isinstance(name, str))


def method_of(estimator: Any, name: str, remedy: str) -> Any:
    """Return a method of an estimator; raise a TypeError, with the remedy, if the estimator does not have it."""
    found = getattr(estimator, name, None)
    if found is None:
        raise TypeError(f"{type(estimator).__name__} has no {name}{remedy}")
    return found


def check_length(name: str, values: Any, count: int, unit: str) -> None:
    """Raise ValueError unless an argument has one entry per unit of a display, such as a panel."""
    if len(values) != count:
        raise ValueError(f"{name} must have one entry per {unit}, {count}, got {len(values)}")


def index_of(chosen: int | str | None, name: str, count: int, what: str, names: Sequence[str] = ()) -> int:
    """Return the index of a column or an output, which the argument `name` gives by number or name."""
    if chosen is None and count == 1:
        return 0
    if isinstance(chosen, str) and chosen in names:
        return names.index(chosen)
    if chosen is None or isinstance(chosen, str) or not 0 <= chosen < count:
        known = f"one of {list(names)}, or " if names else ""
        raise ValueError(f"{name} must say which {what} to draw: {known}a number from 0 to {count - 1}; got {chosen!r}")
    return chosen


def flat_samples(x_train: Any, y_train: Any) -> tuple[Array | None, Array | None]:
    """Convert training samples to flat float64 arrays; both, of one length, or neither are needed."""
    if x_train is None and y_train is None:
        return None, None
    refuse_other_labels(x_train=x_train, y_train=y_train)
    x = as_numbers("x_train", () if x_train is None else x_train).ravel()
    return x, flat("y_train", () if y_train is None else y_train, len(x), "entry of x_train")


def flat(name: str, values: Any, count: int, unit: str) -> Array:
    """Convert an argument with one number per unit of a display to a flat float64 array."""
    array = as_numbers(name, values).ravel()
    check_length(name, array, count, unit)
    return array


def need_one_output(predicted: Array, axes: int = 1) -> None:
    """Raise ValueError unless predictions are of one output, and so have this number of axes."""
    if predicted.ndim > axes:
        raise ValueError(
            f"one output can be drawn at a time, the estimator has {predicted.shape[1]}; fit it to one of them"
        )


def as_array(name: str, values: Any) -> Array:
    """Convert an array, a torch tensor or a list of these to a float64 array, allowing NaN."""
    # tensors may have a gradient, be on another device, or be in half precision
    if hasattr(values, "detach"):
        values = values.detach().cpu().double().numpy()
    elif isinstance(values, list | tuple):
        values = [as_array(name, value) for value in values]
    return as_numbers(name, values)


def as_numbers(name: str, values: Any) -> Array:
    """Convert an argument to a float64 array, allowing NaN; raise TypeError for tensors and masked entries."""
    refuse_foreign(name, values)
    if np.iscomplexobj(values):
        raise TypeError(f"{name} must hold real numbers, got dtype {np.asarray(values).dtype}")
    return np.asarray(values, dtype=np.float64)


def mixed_with_white(color: Any, ink: float) -> tuple[float, float, float]:
    """Mix a color with white, keeping a fraction `ink` of the color."""
    from matplotlib.colors import to_rgb

    red, green, blue = (1.0 - ink * (1.0 - part) for part in to_rgb(color))
    return red, green, blue


def tidy(ax: Axes) -> None:
    """Hide the top and the right frame line of a plot, which have no ticks."""
    ax.spines[["top", "right"]].set_visible(False)


def label_axis(axis: Any, label: str, kind: str = "numeric") -> None:
    """Label an axis; use date ticks for dates (days since 1970-01-01), and add "days" for durations."""
    if kind.startswith("date"):
        dates: Any = import_module("matplotlib.dates")
        locator = dates.AutoDateLocator()
        axis.set_major_locator(locator)
        axis.set_major_formatter(dates.ConciseDateFormatter(locator))
    units = {"date with a time zone": " (UTC)", "duration": " (days)"}
    axis.set_label_text(label + units.get(kind, ""))


def evenly(n: int, at_most: int | None) -> Index:
    """Return at most `at_most` evenly spaced indices from 0 to n - 1; all n of them if `at_most` is None."""
    return np.arange(n) if at_most is None or n <= at_most else np.linspace(0, n - 1, at_most).astype(np.intp)


def draw_band(ax: Axes, x: Array, lower: Array, upper: Array, **style: Any) -> Any:
    """Fill the area between two limits, with gaps where one is not finite."""
    return ax.fill_between(x, lower, upper, where=np.isfinite(lower) & np.isfinite(upper), **style)


def draw_samples(ax: Axes, x: Array | None, y: Array | None, *, ink: float = 0.2, **style: Any) -> Any:
    """Draw samples as circles, smaller and more transparent if there are many: `ink` is the least opacity."""
    if x is None or y is None:
        return None
    crowd = min(1.0, 100 / max(len(x), 1))
    default: dict[str, Any] = {"color": GRAY, "label": "training samples", "zorder": 1, "linewidths": 0}
    return ax.scatter(x, y, **(default | {"s": 14 + 22 * crowd, "alpha": ink + 0.25 * crowd} | style))


def limit_height(axes: Iterable[Axes], drawn: Sequence[Array], reach: float) -> None:
    """Give axes one range of y, which extends at most `reach` times the range of some values beyond them.

    Otherwise a curve would look flat beside very wide bands.
    """
    values = np.concatenate([np.ravel(one) for one in drawn])
    low, high = np.nanmin(values), np.nanmax(values)
    room = reach * (high - low)
    for ax in axes:
        ax.autoscale_view()  # after limits of other curves on the axes
    bottom, top = np.transpose([ax.get_ylim() for ax in axes])
    for ax in axes if room > 0 else ():
        ax.set_ylim(max(bottom.min(), low - room), min(top.max(), high + room), auto=None)
