"""Functions and constants shared by all plots: colors, axes, training samples, and a grid along one column.

Colors survive gray printing and color blindness. A `InputGrid` varies one column and holds the others at their medians.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kernpool.data import TIME_KINDS, MixedTable, Times, refuse_foreign, series_as_frame

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
    """Return the module `matplotlib.pyplot`; raise an ImportError that names the extra if it is missing."""
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError(
            'pictures need matplotlib, which is not installed; install it with: pip install "kernpool[plot]"'
        ) from error
    return plt


def new_axes(width: float = 6.4, height: float = 4.4) -> Axes:
    """Create a figure of a given size in inches with one plot, and return the matplotlib `Axes` of that plot."""
    _, ax = import_pyplot().subplots(figsize=(width, height), layout="constrained")
    axes: Axes = ax
    return axes


# Legend in the room above a plot, small.
ABOVE: dict[str, Any] = {"frameon": False, "loc": "lower center", "bbox_to_anchor": (0.5, 1.0), "fontsize": "small"}
ABOVE |= {"title_fontsize": "small"}


@dataclass(eq=False, repr=False, kw_only=True)
class Display:
    """Labels and kind of the x axis of a display, and the axes that it is drawn on.

    Parameters
    ----------
    x_label, y_label : str
        Axis labels.
    x_kind : str, default="numeric"
        What x holds, as in `kernpool.data.columns.Column`: dates and durations are in days.
    """

    x_label: str = "x"
    y_label: str = "y"
    x_kind: str = "numeric"

    def _start(self, ax: Axes | None, width: float = 6.4, height: float = 4.4) -> Axes:
        """Set `ax_` and `figure_`, to new ones unless axes are given, and return the axes."""
        self.ax_ = new_axes(width, height) if ax is None else ax
        self.figure_ = self.ax_.figure
        return self.ax_

    def _finish(self, *handles: Any, **legend: Any) -> None:
        """Label the axes, hide the frame lines without ticks, and draw the legend."""
        label_axis(self.ax_.xaxis, self.x_label, self.x_kind)
        self.ax_.set_ylabel(self.y_label)
        tidy(self.ax_)
        self.ax_.legend(*handles, **legend)


def method_of(estimator: Any, name: str, remedy: str) -> Any:
    """Return a method of an estimator; raise a TypeError, with the remedy, if the estimator does not have it."""
    found = getattr(estimator, name, None)
    if found is None:
        raise TypeError(f"{type(estimator).__name__} has no {name}{remedy}")
    return found


def check_samples(inputs: Any, outputs: Any, names: str = "x_train and y_train") -> None:
    """Raise ValueError unless both training inputs and outputs are given, of one length, or neither."""
    sizes = [None if array is None else len(array) for array in (inputs, outputs)]
    if sizes[0] != sizes[1]:
        raise ValueError(f"{names} belong together: give both, of one length, or neither; got lengths {sizes}")


def flat_numbers(name: str, values: Any) -> NDArray[np.float64] | None:
    """Convert an optional argument to a float64 array of one dimension."""
    return None if values is None else as_numbers(name, values).ravel()


def outputs_of(y: Any, rows: int) -> NDArray[np.float64]:
    """Convert training outputs to a float64 array; raise ValueError unless there is one for each row."""
    output = as_numbers("y", y)
    if len(output) != rows:
        raise ValueError(f"X has {rows} rows and y has {len(output)}; one output per row is needed")
    return output


def as_array(values: Any) -> NDArray[np.float64]:
    """Convert an array, a torch tensor or a list of these to a float64 array.

    Tensors may have a gradient, be on another device, or be in half precision.
    """
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
    """Convert an argument to a float64 array, allowing NaN; raise TypeError for tensors and masked entries."""
    refuse_foreign(name, values)
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
    """Label an axis; use date ticks for dates (days since 1970-01-01), and add "days" for durations.

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
    """Return at most `at_most` evenly spaced indices from 0 to n - 1; all n of them if `at_most` is None."""
    return np.arange(n) if at_most is None or n <= at_most else np.linspace(0, n - 1, at_most).astype(np.intp)


Array = NDArray[np.float64]


def draw_samples(ax: Axes, x: Array | None, y: Array | None, style: dict[str, Any]) -> Any:
    """Draw training samples as circles, smaller and more transparent if there are many.

    Parameters
    ----------
    ax : matplotlib Axes
        Where.
    x, y : ndarray of shape (n,) or None
        Samples; nothing is drawn if there are none.
    style : dict
        Passed to matplotlib.

    Returns
    -------
    matplotlib PathCollection or None
        What was drawn.
    """
    if x is None or y is None:
        return None
    crowd = min(1.0, 100 / max(len(x), 1))
    default: dict[str, Any] = {"s": 14 + 22 * crowd, "color": GRAY, "alpha": 0.2 + 0.25 * crowd, "linewidths": 0}
    default |= {"label": "training samples", "zorder": 1}
    return ax.scatter(x, y, **(default | style))


PER_BANDWIDTH, FEWEST, MOST = 8, 200, 4000  # points of the grid


@dataclass(frozen=True, eq=False)
class InputGrid:
    """Grid over one input column, the others at their medians, along which a curve is drawn.

    Parameters
    ----------
    x : ndarray of shape (g,)
        Values of the column, increasing.
    query : array or data frame of shape (g, d)
        All columns, as the estimator takes them.
    column : int
        Which one varies.
    label : str
        What to call it.
    inputs : ndarray of shape (n, d)
        Training inputs, as numbers; dates and durations in days.
    kind : str, default="numeric"
        What the column holds, as in `kernpool.data.columns.Column`.
    """

    x: Array
    query: Any
    column: int
    label: str
    inputs: Array
    kind: str = "numeric"

    @classmethod
    def of(
        cls,
        estimator: Any,
        X: ArrayLike,
        feature: int | str | None = None,
        grid_resolution: int | None = None,
        *,
        instead: str = "KernelCurveDisplay.from_predictions",
    ) -> InputGrid:
        """Create an `InputGrid` over one column of the training inputs, from its least value to its largest.

        Parameters
        ----------
        estimator : fitted
            Whose bandwidth says how fine the grid is to be.
        X : array_like or data frame of shape (n, d)
            Training inputs.
        feature : int or str, optional
            Which column; needed if there are several.
        grid_resolution : int, optional
            Points; by default eight per bandwidth, at least 200 and at most 4000.
        instead : str
            What to use where columns are categorical, for the message.

        Returns
        -------
        InputGrid
            From the least value of the column to the largest.

        Raises
        ------
        ValueError
            If X has categorical columns or another shape, or there is no such column.
        """
        inputs, names, make_frame = read_inputs(estimator, X, instead)
        column = column_index(feature, names, inputs.shape[1])
        grid = _grid(estimator, inputs[:, column], column, grid_resolution)
        query = np.tile(np.median(inputs, axis=0), (len(grid), 1))
        query[:, column] = grid
        known = known_names(estimator, names)
        label = known[column] if known else ("x" if inputs.shape[1] == 1 else f"column {column}")
        kind = kind_of(estimator, column)
        return cls(grid, as_query(query, names, make_frame), column, label, inputs, kind)


def training_rows(estimator: Any, X: Any, y: Any) -> tuple[Any, Any]:
    """Return the given training inputs and outputs, or those stored in the estimator if both are None.

    Parameters
    ----------
    estimator : fitted
        Whose rows they are.
    X, y : array_like or None
        What the caller passed.
    """
    if X is not None and y is not None:
        return X, y
    name = type(estimator).__name__
    if X is not None or y is not None:
        given = "X" if y is None else "y"
        raise ValueError(
            f"X and y go together, got only {given}; give both, or leave both out to draw the rows that {name} holds"
        )
    if getattr(estimator, "encoding_", None) is not None or not hasattr(estimator, "key_"):
        raise ValueError(f"this {name} does not hold its rows as numbers; pass X and y, the training rows")
    names, key = getattr(estimator, "feature_names_in_", None), estimator.key_
    if names is not None:
        frames = next((sys.modules[library] for library in ("pandas", "polars") if library in sys.modules), None)
        if frames is None:
            raise ValueError(f"this {name} was fitted to a frame; pass X and y, the training rows, as a frame")
        key = frames.DataFrame(dict(zip(names.tolist(), key.T, strict=True)))
    return key, estimator.value_


def read_inputs(estimator: Any, X: Any, instead: str) -> tuple[Array, list[str], Any]:
    """Return training inputs as numbers, column names if any, and a function that makes a table like X from columns.

    Parameters
    ----------
    estimator : fitted
        Whose rows they are.
    X : array_like or data frame of shape (n, d)
        Training inputs.
    instead : str
        What to use where columns are categorical, for the message.
    """
    refuse_foreign("X", X)
    X = series_as_frame(X)
    encoding = getattr(estimator, "encoding_", None)
    if encoding is not None and encoding.numbers_alone:  # dates among numbers
        inputs = np.asarray(encoding.encode(X)[0], dtype=np.float64)
        return inputs, list(encoding.names or map(str, range(inputs.shape[1]))), partial(_with_times, encoding.kinds)
    names = list(getattr(X, "columns", []))
    if not all(isinstance(name, str) for name in names):  # scikit-learn ignores other names too
        names, X = [], np.asarray(X)
    if encoding is not None:
        raise ValueError(
            "X has categorical columns, and only numeric ones can be drawn over; compute what to draw for one category "
            f"at a time, and give it to {instead}"
        )
    inputs = np.asarray(X, dtype=np.float64)
    if inputs.ndim not in (1, 2):
        raise ValueError(f"X must have shape (n,) or (n, columns), got {inputs.shape}")
    inputs = inputs[:, None] if inputs.ndim == 1 else inputs
    return inputs, names, type(X)


def known_names(estimator: Any, names: list[str]) -> list[str]:
    """Return the column names for axis labels; an empty list if the columns have no names."""
    encoding = getattr(estimator, "encoding_", None)
    return names if encoding is None or encoding.names is not None else []


def kind_of(estimator: Any, column: int) -> str:
    """Return the kind of a numeric column of a fitted estimator: plain numbers, dates or durations."""
    encoding = getattr(estimator, "encoding_", None)
    return "numeric" if encoding is None else str(encoding.kinds[encoding.numeric[column]])


def _with_times(kinds: Sequence[Any], columns: Mapping[str, Array]) -> MixedTable:
    """Return a table of the given columns, with days converted back to dates and durations."""
    pairs = zip(columns.items(), kinds, strict=True)
    return MixedTable({name: Times(kind, cells) if kind in TIME_KINDS else cells for (name, cells), kind in pairs})


def as_query(query: Array, names: list[str], make_frame: Any) -> Any:
    """Return evaluation points as a table with the given column names, or as the given array if there are no names.

    An estimator that was fitted to a table compares the column names.
    """
    return make_frame(dict(zip(names, query.T, strict=True))) if names else query


def _grid(estimator: Any, values: Array, column: int, grid_resolution: int | None) -> Array:
    low, high = values.min(), values.max()
    asked, scale = grid_resolution, getattr(estimator, "scale", "raw")
    by_rank = not (isinstance(scale, str) and scale == "raw")
    if grid_resolution is None:
        bandwidths = getattr(estimator, "bandwidth_", None)
        bandwidth = high - low if bandwidths is None else bandwidths[column]
        width = 1.0 if by_rank else high - low
        grid_resolution = int(np.clip(PER_BANDWIDTH * width / bandwidth, FEWEST, MOST))
    if grid_resolution < 2:
        raise ValueError(f"grid_resolution must be at least 2, got {grid_resolution}")
    grid = np.linspace(low, high, grid_resolution)
    if by_rank and asked is None:  # where rows are dense, bandwidths are short
        grid = np.union1d(grid, np.quantile(values, np.linspace(0.0, 1.0, grid_resolution)))
    return grid


def column_index(feature: int | str | None, names: list[str], d: int, *, name: str = "feature") -> int:
    """Return the index of an input column that is given by number or name.

    Parameters
    ----------
    feature : int, str or None
        Which one; None is the only one.
    names : list of str
        Names of the columns, empty if they have none.
    d : int
        How many there are.
    name : str, default="feature"
        Of the argument, for messages.
    """
    if feature is None:
        if d == 1:
            return 0
        raise ValueError(f"X has {d} columns, so {name}= must say which one to draw over")
    if isinstance(feature, str):
        if feature not in names:
            raise ValueError(f"{name} {feature!r} is not a column of X; columns: {names or 'none have names'}")
        return names.index(feature)
    if not 0 <= feature < d:
        raise ValueError(f"{name} must lie in [0, {d - 1}], got {feature}")
    return feature
