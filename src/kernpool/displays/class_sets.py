"""Map of the prediction sets of a classifier over two columns, the others held at typical values.

A region is all points with the same set of classes, or with sets of the same size if too many different sets occur.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kernpool.data.array_validation import refuse_foreign
from kernpool.displays import drawing
from kernpool.displays.inputs import TrainingInputs
from kernpool.execution.error_messages import abbreviate, explain_calls

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Array = NDArray[np.float64]
Color = tuple[float, float, float]

NAMED = 6  # up to so many sets of several classes have a color each; more are grouped by size
EMPTY = "no class probable enough"
HATCHES = ("////", "\\\\\\\\", "xxx", "---", "|||", "+++")
ONE, SEVERAL = 0.42, 0.2  # ink of the regions


@dataclass(frozen=True)
class Region:
    """Name, color and hatching of the grid points with one prediction set, or with sets of one size.

    Parameters
    ----------
    name : str
        For the legend.
    fill : tuple of three float
        Color.
    hatch : str or None
        Hatching, for prints without colors: lines for several classes, dots for an empty set.
    only : int or None
        Number of the class, of a set of one.
    """

    name: str
    fill: Color
    hatch: str | None
    only: int | None


def regions_of(
    member: NDArray[np.bool_], classes: Sequence[Any], colors: Sequence[Any]
) -> tuple[NDArray[np.intp], list[Region]]:
    """Return each grid point's index into the regions, and the regions, ordered by the size of their prediction sets.

    Regions of sets of one size are in the order of their classes.

    Parameters
    ----------
    member : ndarray of bool, shape (..., c)
        Which classes are in the set of each grid point.
    classes : sequence of length c
        Their labels.
    colors : sequence
        At least one per class.
    """
    number, kinds = sets_of(member)
    several = [kind for kind in kinds if len(kind) > 1]
    if len(several) <= NAMED:
        return number, [_region(kind, several, classes, colors) for kind in kinds]
    sizes = sorted({len(kind) for kind in several})
    few = [kind for kind in kinds if len(kind) < 2]
    place = [i if len(kind) < 2 else len(few) + sizes.index(len(kind)) for i, kind in enumerate(kinds)]
    regions = [_region(kind, several, classes, colors) for kind in few]
    for i, size in enumerate(sizes):  # the larger a set, the darker
        fill = drawing.mixed_with_white(drawing.GRAY, 0.15 + 0.45 * i / max(len(sizes) - 1, 1))
        regions.append(Region(f"{size} classes", fill, HATCHES[i % len(HATCHES)], None))
    return np.asarray(place)[number], regions


def sets_of(member: NDArray[np.bool_]) -> tuple[NDArray[np.intp], list[tuple[int, ...]]]:
    """Return each grid point's index into the distinct prediction sets, and these sets, the smallest first.

    Sets of one size are in the order of their classes.

    Examples
    --------
    >>> sets_of(np.array([[[True, False], [True, True]], [[False, False], [True, True]]]))
    (array([[1, 2],
           [0, 2]]), [(), (0,), (0, 1)])
    """
    found, at = np.unique(member.reshape(-1, member.shape[-1]), axis=0, return_inverse=True)
    kinds = [tuple(int(c) for c in np.flatnonzero(row)) for row in found]
    order = sorted(range(len(kinds)), key=lambda i: (len(kinds[i]), kinds[i]))
    return np.argsort(order)[at.ravel()].reshape(member.shape[:-1]), [kinds[i] for i in order]


def name_of(kind: Sequence[int], classes: Sequence[Any]) -> str:
    """Return the legend label of a prediction set: the names of its classes, such as 'oak, ash or fir'.

    Examples
    --------
    >>> name_of((0, 2, 3), ["oak", "elm", "ash", "fir"]), name_of((), ["oak"])
    ('oak, ash or fir', 'no class probable enough')
    """
    names = [str(classes[c]) for c in kind]
    return EMPTY if not names else names[0] if len(names) == 1 else f"{', '.join(names[:-1])} or {names[-1]}"


def _region(
    kind: tuple[int, ...], several: list[tuple[int, ...]], classes: Sequence[Any], colors: Sequence[Any]
) -> Region:
    from matplotlib.colors import to_rgb

    name = name_of(kind, classes)
    if not kind:
        return Region(name, (1.0, 1.0, 1.0), "..", None)
    paint = np.mean([to_rgb(colors[c]) for c in kind], axis=0)
    if len(kind) == 1:
        return Region(name, drawing.mixed_with_white(tuple(paint), ONE), None, kind[0])
    return Region(
        name, drawing.mixed_with_white(tuple(paint), SEVERAL), HATCHES[several.index(kind) % len(HATCHES)], None
    )


BEYOND = 0.04  # fraction of the range of the rows shown beyond them, on either side


@dataclass(frozen=True, eq=False)
class Plane:
    """Grid over two input columns, the others at typical values, on which prediction sets are computed.

    Parameters
    ----------
    x, y : ndarray of shape (g,)
        Values of the two columns, increasing.
    query : array or data frame of shape (g * g, d)
        All columns, as the estimator takes them: row by row of the picture, from the bottom.
    columns : tuple of two int
        Which ones vary.
    labels : tuple of two str
        What to call them.
    inputs : ndarray of shape (n, d)
        Training inputs, as numbers; dates and durations in days.
    kinds : tuple of two str
        What the two columns hold, as in `kernpool.data.columns.Column`.
    """

    x: Array
    y: Array
    query: Any
    columns: tuple[int, int]
    labels: tuple[str, str]
    inputs: Array
    kinds: tuple[str, str] = ("numeric", "numeric")

    @classmethod
    def of(
        cls,
        inputs: TrainingInputs,
        features: Sequence[int | str] | None = None,
        grid_resolution: int = 150,
    ) -> Plane:
        """Create a `Plane`: a grid over two numeric columns, the others at medians or most frequent categories.

        Parameters
        ----------
        inputs : TrainingInputs
            Of the fit.
        features : pair of int or str, optional
            Which columns; needed unless there are two.
        grid_resolution : int, default=150
            Grid points along each of them.

        Raises
        ------
        ValueError
            If these are no two of the columns, or one holds categories.
        """
        d = inputs.values.shape[1]
        if features is None:
            if d != 2:
                raise ValueError(f"X has {d} columns, so features= must say which two to draw over")
            features = (0, 1)
        if isinstance(features, str) or len(features) != 2:
            raise ValueError(f"features must be two columns, got {abbreviate(features)}")
        first, second = (inputs.numeric_index(feature, "features") for feature in features)
        if first == second:
            raise ValueError(f"features must be two different columns, got {abbreviate(features)}")
        if grid_resolution < 2:
            raise ValueError(f"grid_resolution must be at least 2, got {grid_resolution}")
        x, y = (_axis(inputs.values[:, column], grid_resolution) for column in (first, second))
        query = inputs.at_typical((first, second), (np.tile(x, len(y)), np.repeat(y, len(x))))
        labels = inputs.labels[first], inputs.labels[second]
        return cls(x, y, query, (first, second), labels, inputs.values, (inputs.kinds[first], inputs.kinds[second]))


def _axis(values: Array, resolution: int) -> Array:
    low, high = values.min(), values.max()
    margin = BEYOND * (high - low) or 1.0
    return np.linspace(low - margin, high + margin, resolution)


RANDOMISED = ("aps", "raps")  # their sets are random, independently at each grid point


@explain_calls
@dataclass(eq=False, repr=False, kw_only=True)
class ClassSetDisplay(drawing.Display):
    """Map of the prediction sets of a classifier over two columns.

    Plain regions have one class; hatched ones several, which the training rows do not separate at this level. Dotted
    ones are empty sets (``allow_empty=True``): no class is probable enough there, typically between
    classes when the classifier is accurate.

    Parameters
    ----------
    x : ndarray of shape (g,)
        Grid points along the first column, increasing.
    y : ndarray of shape (k,)
        Grid points along the second column, increasing.
    member : ndarray of bool, shape (k, g, c)
        Which classes are in the set of each grid point.
    classes : sequence of length c
        Their labels.
    X_train : ndarray of shape (n, 2), optional
        Training rows.
    y_train : ndarray of shape (n,), optional
        Their labels.
    x_label, y_label, x_kind, y_kind : str
        Axis labels, and what x and y hold: ``"numeric"``, or dates or durations in days.
    note : str, optional
        Title of the legend.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
        Where it was drawn.
    mesh_ : matplotlib QuadMesh
        The regions, by their numbers in `regions_`.
    regions_ : list of str
        Legend entries: empty sets, classes by themselves, several of them; beyond six sets of several, how many.
    scatter_ : list of matplotlib PathCollection
        Training rows, class by class.

    Raises
    ------
    ValueError
        If shapes do not match, or there are more classes than colors.

    Examples
    --------
    >>> from kernpool import ClassSetDisplay, NadarayaWatsonClassifier
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> model = NadarayaWatsonClassifier().fit(X[:, :2], y)
    >>> display = ClassSetDisplay.from_estimator(model, X[:, :2], y)  # doctest: +SKIP
    """

    x: Array
    y: Array
    member: NDArray[np.bool_]
    classes: Sequence[Any]
    X_train: Array | None = None
    y_train: NDArray[Any] | None = None
    x_label: str = "column 0"
    y_label: str = "column 1"
    y_kind: str = "numeric"
    note: str | None = None

    def __post_init__(self) -> None:
        self.member, self.classes = np.asarray(self.member), np.asarray(self.classes).tolist()
        shape = (len(self.y), len(self.x), len(self.classes))
        if self.member.dtype != np.bool_ or self.member.shape != shape:
            raise ValueError(
                f"member must say True or False for {shape[0]} x {shape[1]} grid points and {shape[2]} classes, got "
                f"dtype {self.member.dtype} and shape {self.member.shape}"
            )
        drawing.check_samples(self.X_train, self.y_train, "X_train and y_train")

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: ArrayLike,
        y: ArrayLike,
        *,
        features: Sequence[int | str] | None = None,
        level: float = 0.9,
        method: str = "lac",
        set_kwargs: dict[str, Any] | None = None,
        grid_resolution: int = 150,
        subsample: int | None = 1000,
        ax: Axes | None = None,
        **style: Any,
    ) -> ClassSetDisplay:
        """Compute prediction sets on a grid over two columns, the others at typical values, and draw them.

        Parameters
        ----------
        estimator : NadarayaWatsonClassifier
            Fitted.
        X : array_like or data frame of shape (n, d)
            Training inputs.
        y : array_like of shape (n,)
            Training labels.
        features : pair of int or str, optional
            Which columns; needed unless there are two.
        level : float, default=0.9
            Probability that a set holds the class of a new row.
        method : {"lac", "full"}, default="lac"
            As in `predict_set`. Sets of ``"aps"`` and ``"raps"`` are drawn at random, point by point, and have no
            regions.
        set_kwargs : dict, optional
            Further arguments of `predict_set`, such as `by_class`, `allow_empty` or `X_calibration`.
        grid_resolution : int, default=150
            Grid points along each column.
        subsample : int or None, default=1000
            Draw at most so many evenly chosen rows; None draws all.
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.
        **style
            `colors`, `scatter_kwargs` and `mesh_kwargs` of `plot`.

        Returns
        -------
        ClassSetDisplay
            The display, drawn.

        Raises
        ------
        ValueError
            If `features` are no two columns, or one holds categories, X and y differ in length, there are more
            classes than colors, a level or method is invalid, or the method draws at random.
        TypeError
            If the estimator has no sets of classes.
        """
        ask = drawing.method_of(estimator, "predict_set", "; use NadarayaWatsonClassifier")
        if method in RANDOMISED:
            raise ValueError(
                f"method={method!r} draws at random at each point, so that regions would be speckled; use method='lac' "
                "or 'full', or draw sets that you have with ClassSetDisplay.from_sets"
            )
        plane = Plane.of(TrainingInputs.of(estimator, X), features, grid_resolution)
        refuse_foreign("y", y)
        label = np.ravel(np.asarray(y))
        if len(label) != len(plane.inputs):
            raise ValueError(f"X has {len(plane.inputs)} rows and y has {len(label)}; one label per row is needed")
        found = ask(plane.query, level=level, method=method, **(set_kwargs or {}))
        kept = drawing.evenly(len(label), subsample)
        more = ", other columns at their medians" * (plane.inputs.shape[1] > 2)
        return cls(
            x=plane.x,
            y=plane.y,
            member=np.asarray(found.member).reshape(len(plane.y), len(plane.x), -1),
            classes=estimator.classes_,
            X_train=plane.inputs[kept][:, list(plane.columns)],
            y_train=label[kept],
            x_label=plane.labels[0],
            y_label=plane.labels[1],
            note=f"{100 * level:.6g} % sets of classes{more}",
            x_kind=plane.kinds[0],
            y_kind=plane.kinds[1],
        ).plot(ax=ax, **style)

    @classmethod
    def from_sets(
        cls,
        x: ArrayLike,
        y: ArrayLike,
        member: ArrayLike,
        classes: Sequence[Any],
        *,
        X_train: ArrayLike | None = None,
        y_train: ArrayLike | None = None,
        x_label: str = "column 0",
        y_label: str = "column 1",
        note: str | None = None,
        ax: Axes | None = None,
        **style: Any,
    ) -> ClassSetDisplay:
        """Draw given prediction sets on a grid over two columns.

        Parameters
        ----------
        x : array_like of shape (g,)
            Grid points along the first column, increasing.
        y : array_like of shape (k,)
            Grid points along the second column, increasing.
        member : array_like of bool, shape (k, g, c)
            Which classes are in the set of each grid point.
        classes : sequence of length c
            Their labels.
        X_train, y_train : array_like of shape (n, 2) and (n,), optional
            Training rows and labels.
        x_label, y_label, note : str
            Axis labels, and the title of the legend.
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.
        **style
            `colors`, `scatter_kwargs` and `mesh_kwargs` of `plot`.

        Returns
        -------
        ClassSetDisplay
            The display, drawn.

        Raises
        ------
        ValueError
            As for the class, and if x or y do not increase.
        """
        refuse_foreign("X_train", X_train)
        refuse_foreign("y_train", y_train)
        axes = [drawing.as_numbers(name, axis).ravel() for name, axis in (("x", x), ("y", y))]
        for name, axis in zip("xy", axes, strict=True):
            if len(axis) < 2 or not np.all(np.diff(axis) > 0):
                raise ValueError(f"{name} must have two or more grid points, increasing, got {axis[:3].tolist()} ...")
        return cls(
            x=axes[0],
            y=axes[1],
            member=np.asarray(member),
            classes=classes,
            X_train=None if X_train is None else np.asarray(X_train, dtype=np.float64),
            y_train=None if y_train is None else np.ravel(np.asarray(y_train)),
            x_label=x_label,
            y_label=y_label,
            note=note,
        ).plot(ax=ax, **style)

    def plot(
        self,
        *,
        ax: Axes | None = None,
        colors: Sequence[Any] = drawing.CLASSES,
        scatter_kwargs: dict[str, Any] | None = None,
        mesh_kwargs: dict[str, Any] | None = None,
    ) -> ClassSetDisplay:
        """Draw the regions of equal prediction sets, the training rows and the legend.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where; a new figure by default.
        colors : sequence of colors
            One per class; regions have them mixed with white, those of several classes the mean of theirs.
        scatter_kwargs, mesh_kwargs : dict, optional
            Passed to matplotlib for the rows and the regions.

        Returns
        -------
        ClassSetDisplay
            Itself, with `ax_`, `figure_`, `mesh_`, `regions_` and `scatter_`.

        Raises
        ------
        ValueError
            If there are fewer colors than classes.
        """
        from matplotlib.colors import ListedColormap
        from matplotlib.lines import Line2D
        from matplotlib.patches import Patch

        if len(colors) < len(self.classes):
            short = f"{len(self.classes)} classes need as many colors, got {len(colors)}"
            raise ValueError(f"{short}; give colors=, or draw fewer classes")
        ax = self._start(ax, 6.4, 5.0)
        number, regions = regions_of(self.member, self.classes, colors)
        self.regions_ = [region.name for region in regions]
        style: dict[str, Any] = {"cmap": ListedColormap([region.fill for region in regions]), "zorder": 0}
        style |= {"vmin": -0.5, "vmax": len(regions) - 0.5, "rasterized": True, "shading": "nearest"}
        self.mesh_ = ax.pcolormesh(self.x, self.y, number, **(style | (mesh_kwargs or {})))
        handles: list[Any] = []
        for i, region in enumerate(regions):
            if region.hatch is not None:
                lines: dict[str, Any] = {"colors": "none", "hatches": [region.hatch], "zorder": 0.5}
                drawn = ax.contourf(self.x, self.y, (number == i) * 1.0, levels=[0.5, 1.5], **lines)
                drawn.set(edgecolor=drawing.GRAY, linewidth=0.0)
            patch = Patch(facecolor=region.fill, hatch=region.hatch, edgecolor=drawing.GRAY, linewidth=0.4)
            if region.only is None:
                handles.append(patch)
            else:  # with the mark of its rows
                color, marker = colors[region.only], drawing.MARKERS[region.only % len(drawing.MARKERS)]
                mark = Line2D([], [], color=color, marker=marker, linestyle="none", markersize=6)
                mark.set(markeredgecolor=drawing.BLACK, markeredgewidth=0.4)
                handles.append((patch, mark))
        self.scatter_ = self._rows(ax, colors, scatter_kwargs or {})
        ax.set(xlim=(self.x[0], self.x[-1]), ylim=(self.y[0], self.y[-1]))
        size = {"handlelength": 2.4, "handleheight": 1.4}
        self._finish(handles, self.regions_, title=self.note, ncols=3, **drawing.ABOVE, **size)
        drawing.label_axis(ax.yaxis, self.y_label, self.y_kind)
        return self

    def _rows(self, ax: Axes, colors: Sequence[Any], style: dict[str, Any]) -> list[Any]:
        """Draw the training rows as points, each class in its own color and marker."""
        if self.X_train is None or self.y_train is None:
            return []
        crowd, drawn = min(1.0, 100 / max(len(self.y_train), 1)), []
        for c, label in enumerate(self.classes):
            own = self.y_train == label
            default: dict[str, Any] = {
                "s": 14 + 18 * crowd,
                "color": colors[c],
                "marker": drawing.MARKERS[c % len(drawing.MARKERS)],
            }
            default |= {"edgecolors": drawing.BLACK, "linewidths": 0.4, "zorder": 2, "label": f"rows of {label}"}
            drawn.append(ax.scatter(self.X_train[own, 0], self.X_train[own, 1], **(default | style)))
        return drawn
