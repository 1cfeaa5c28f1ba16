"""What all pictures share: colors that survive gray printing and color blindness, and how axes are made."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from kernpool.data.checks import refuse_foreign

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# After Petroff (arXiv:2107.02270): color-blind readers can distinguish them, and their lightness differs in print.
BLUE, RED, GRAY, BLACK = "#3f90da", "#bd1f01", "#717581", "#000000"
# Of groups, in turn; with another line and marker each.
GROUPS = (BLUE, RED, "#e08a00", "#832db6", "#5f6f52", "#a96b59")
MARKERS = ("o", "^", "s", "D", "v", "P", "X", "<", ">", "h")
# Of classes, whose order means nothing and which may be ten: the longest of Petroff's sequences.
CLASSES = (
    BLUE, "#ffa90e", RED, "#94a4a2", "#832db6", "#a96b59", "#e76300", "#b9ac70", GRAY, "#92dadd",
)  # fmt: skip
# From white to dark red with falling lightness: more weight is more ink, in black and white too.
WEIGHT_COLORS = "Reds"
SIGNED_COLORS = "RdBu_r"  # of weights that may be negative, white at zero


def import_pyplot() -> Any:
    """Import matplotlib, or say which extra brings it."""
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError(
            'pictures need matplotlib, which is not installed; install it with: pip install "kernpool[plot]"'
        ) from error
    return plt


def new_axes(width: float = 6.4, height: float = 4.4) -> Axes:
    """Make a figure with one pair of axes."""
    _, ax = import_pyplot().subplots(figsize=(width, height), layout="constrained")
    axes: Axes = ax
    return axes


def as_array(values: Any) -> NDArray[np.float64]:
    """Read an array or a torch tensor, with a gradient or on a device or in half precision, as float64."""
    if hasattr(values, "detach"):
        values = values.detach().cpu().double().numpy()
    elif isinstance(values, list | tuple):
        values = [as_array(value) for value in values]
    refuse_foreign("an array of the picture", values)
    read = np.asarray(values)
    if read.dtype.kind not in "fiub":
        raise TypeError(f"real numbers are needed for a picture, got dtype {read.dtype}")
    return read.astype(np.float64)


def as_numbers(name: str, values: Any) -> NDArray[np.float64]:
    """Read numbers, among which NaN is allowed; masked arrays and the like are refused."""
    refuse_foreign(name, values)
    return np.asarray(values, dtype=np.float64)


def mixed_with_white(color: Any, ink: float) -> tuple[float, float, float]:
    """Return a color with so much white in it that a share `ink` of it is left."""
    from matplotlib.colors import to_rgb

    red, green, blue = (1.0 - ink * (1.0 - part) for part in to_rgb(color))
    return red, green, blue


def tidy(ax: Axes) -> None:
    """Remove the frame lines without ticks."""
    ax.spines[["top", "right"]].set_visible(False)


def label_axis(axis: Any, label: str, kind: str = "numeric") -> None:
    """Label an axis; one of dates, in days since 1970-01-01, has ticks of dates, and one of durations says days.

    Parameters
    ----------
    axis : matplotlib Axis
        The x axis or the y axis.
    label : str
        Name of the column.
    kind : str, default="numeric"
        What the column holds, as in `kernpool.data.columns.Column`.
    """
    if kind.startswith("date"):
        dates: Any = import_module("matplotlib.dates")
        locator = dates.AutoDateLocator()
        axis.set_major_locator(locator)
        axis.set_major_formatter(dates.ConciseDateFormatter(locator))
    units = {"date with a time zone": " (UTC)", "duration": " (days)"}
    axis.set_label_text(label + units.get(kind, ""))


def evenly(n: int, at_most: int | None) -> NDArray[np.intp]:
    """Return the indices of at most so many of n things, evenly chosen."""
    return np.arange(n) if at_most is None or n <= at_most else np.linspace(0, n - 1, at_most).astype(np.intp)
