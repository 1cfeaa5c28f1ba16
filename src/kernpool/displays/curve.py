"""The fitted curve."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kernpool.core.empty import EmptyWindowWarning
from kernpool.displays.style import BLACK, GRAY, RED, evenly, new_axes, tidy

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Array = NDArray[np.float64]


class KernelCurveDisplay:
    """A fitted curve over one input column, with the training samples and, if known, the truth.

    Parameters
    ----------
    x : ndarray of shape (g,)
        Grid of inputs, increasing.
    prediction : ndarray of shape (g,)
        Fitted values on the grid.
    x_train, y_train : ndarray of shape (n,), optional
        Training samples.
    truth : ndarray of shape (g,), optional
        The true function on the grid.
    name : str, default="prediction"
        Legend entry of the fitted curve.
    x_label, y_label : str
        Axis labels.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
        Where it was drawn.
    lines_ : list of matplotlib Line2D
        Truth, if any, and prediction.
    scatter_ : matplotlib PathCollection or None
        Training samples.

    Examples
    --------
    >>> from kernpool import KernelCurveDisplay, NadarayaWatsonRegressor
    >>> from kernpool.datasets import make_sine_power
    >>> sample = make_sine_power(random_state=0)
    >>> X = sample.x_train[:, None]
    >>> model = NadarayaWatsonRegressor(bandwidth=0.3).fit(X, sample.y_train)
    >>> display = KernelCurveDisplay.from_estimator(model, X, sample.y_train)  # doctest: +SKIP
    """

    def __init__(
        self,
        *,
        x: Array,
        prediction: Array,
        x_train: Array | None = None,
        y_train: Array | None = None,
        truth: Array | None = None,
        name: str = "prediction",
        x_label: str = "x",
        y_label: str = "y",
    ) -> None:
        self.x = x
        self.prediction = prediction
        self.x_train = x_train
        self.y_train = y_train
        self.truth = truth
        self.name = name
        self.x_label = x_label
        self.y_label = y_label

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: ArrayLike,
        y: ArrayLike,
        *,
        feature: int | str | None = None,
        truth: Callable[[Array], Array] | None = None,
        grid_resolution: int | None = None,
        subsample: int | None = 1000,
        name: str = "prediction",
        target: str = "y",
        ax: Axes | None = None,
        **style: Any,
    ) -> KernelCurveDisplay:
        """Predict on a grid over one column, the others at their medians, and draw.

        Parameters
        ----------
        estimator : fitted regressor
            With a `predict` of one output.
        X : array_like or data frame of shape (n, d)
            Training inputs.
        y : array_like of shape (n,)
            Training outputs.
        feature : int or str, optional
            Which column; needed if there are several.
        truth : callable, optional
            The true function of that column, vectorized.
        grid_resolution : int, optional
            Points of the curve; by default eight per bandwidth, at least 200 and at most 4000.
        subsample : int or None, default=1000
            Draw at most so many evenly chosen samples; None draws all.
        name, target : str
            Legend entry of the curve, and label of the y axis.
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.
        **style
            `curve_kwargs`, `scatter_kwargs`, `truth_kwargs` of `plot`.

        Returns
        -------
        KernelCurveDisplay
            The display, drawn.

        Raises
        ------
        ValueError
            If X has several columns and `feature` is not given or not one of them.
        """
        names = list(getattr(X, "columns", []))
        if not all(isinstance(name, str) for name in names):  # scikit-learn ignores other names too
            names, X = [], np.asarray(X)
        if getattr(estimator, "encoding_", None) is not None:
            raise ValueError(
                "X has categorical columns, and a curve needs numbers; draw predictions for one level at a time with "
                "KernelCurveDisplay.from_predictions"
            )
        inputs = np.asarray(X, dtype=np.float64)
        if inputs.ndim != 2:
            raise ValueError(f"X must have shape (n, columns), got {inputs.shape}; a single column is x[:, None]")
        if len(np.asarray(y)) != len(inputs):
            raise ValueError(f"X has {len(inputs)} rows and y has {len(np.asarray(y))}; one output per row is needed")
        column = _column_index(feature, names, inputs.shape[1])
        low, high = inputs[:, column].min(), inputs[:, column].max()
        asked, scale = grid_resolution, getattr(estimator, "scale", "raw")
        by_rank = not (isinstance(scale, str) and scale == "raw")
        if grid_resolution is None:
            bandwidth = getattr(estimator, "bandwidth_", np.full(inputs.shape[1], high - low))[column]
            width = 1.0 if by_rank else high - low
            grid_resolution = int(np.clip(8 * width / bandwidth, 200, 4000))
        if grid_resolution < 2:
            raise ValueError(f"grid_resolution must be at least 2, got {grid_resolution}")
        grid = np.linspace(low, high, grid_resolution)
        if by_rank and asked is None:  # where rows are dense, bandwidths are short
            grid = np.union1d(grid, np.quantile(inputs[:, column], np.linspace(0.0, 1.0, grid_resolution)))
        query: Any = np.tile(np.median(inputs, axis=0), (len(grid), 1))
        query[:, column] = grid
        if names:  # the estimator saw names in fit and compares them in predict
            make_frame: Any = type(X)
            query = make_frame(dict(zip(names, query.T, strict=True)))
        with warnings.catch_warnings():
            # The caller did not choose the points of the grid; where windows are empty, the curve has gaps.
            warnings.simplefilter("ignore", EmptyWindowWarning)
            prediction = np.asarray(estimator.predict(query))
        if prediction.ndim != 1:
            raise ValueError(f"one output can be drawn at a time, the estimator predicts {prediction.shape[1]}")
        kept = evenly(len(inputs), subsample)
        return cls(
            x=grid,
            prediction=prediction,
            x_train=inputs[kept, column],
            y_train=np.asarray(y, dtype=np.float64).ravel()[kept],
            truth=None if truth is None else np.broadcast_to(truth(grid), grid.shape),
            name=name,
            x_label=names[column] if names else ("x" if inputs.shape[1] == 1 else f"column {column}"),
            y_label=target,
        ).plot(ax=ax, **style)

    @classmethod
    def from_predictions(
        cls,
        x: ArrayLike,
        prediction: ArrayLike,
        *,
        x_train: ArrayLike | None = None,
        y_train: ArrayLike | None = None,
        truth: ArrayLike | None = None,
        name: str = "prediction",
        x_label: str = "x",
        y_label: str = "y",
        ax: Axes | None = None,
        **style: Any,
    ) -> KernelCurveDisplay:
        """Draw given predictions.

        Parameters
        ----------
        x, prediction : array_like of shape (g,)
            Inputs, in any order, and predictions.
        x_train, y_train : array_like of shape (n,), optional
            Training samples.
        truth : array_like of shape (g,), optional
            The true function at `x`.
        name : str, default="prediction"
            Legend entry of the curve.
        x_label, y_label : str
            Axis labels.
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.
        **style
            `curve_kwargs`, `scatter_kwargs`, `truth_kwargs` of `plot`.

        Returns
        -------
        KernelCurveDisplay
            The display, drawn.
        """
        x = np.ravel(np.asarray(x, dtype=np.float64))
        order = np.argsort(x, kind="stable")
        prediction = np.ravel(np.asarray(prediction, dtype=np.float64))
        for what, given in (("prediction", prediction), ("truth", truth)):
            if given is not None and np.size(given) != len(x):
                raise ValueError(f"x has {len(x)} entries and {what} {np.size(given)}; one {what} per input is needed")
        sizes = [None if array is None else np.size(array) for array in (x_train, y_train)]
        if sizes[0] != sizes[1]:
            raise ValueError("x_train and y_train belong together: give both, of one length, or neither")
        return cls(
            x=x[order],
            prediction=prediction[order],
            x_train=None if x_train is None else np.ravel(np.asarray(x_train)),
            y_train=None if y_train is None else np.ravel(np.asarray(y_train)),
            truth=None if truth is None else np.ravel(np.asarray(truth))[order],
            name=name,
            x_label=x_label,
            y_label=y_label,
        ).plot(ax=ax, **style)

    def plot(
        self,
        *,
        ax: Axes | None = None,
        curve_kwargs: dict[str, Any] | None = None,
        scatter_kwargs: dict[str, Any] | None = None,
        truth_kwargs: dict[str, Any] | None = None,
    ) -> KernelCurveDisplay:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where; a new figure by default.
        curve_kwargs, scatter_kwargs, truth_kwargs : dict, optional
            Passed to matplotlib for the curve, the samples and the truth.

        Returns
        -------
        KernelCurveDisplay
            Itself, with `ax_`, `figure_`, `lines_` and `scatter_`.
        """
        ax = new_axes() if ax is None else ax
        self.ax_, self.figure_ = ax, ax.figure
        self.lines_: list[Any] = []
        self.scatter_: Any = None
        style: dict[str, Any]
        if self.x_train is not None and self.y_train is not None:
            # Many overlapping circles must not become a blot: the more there are, the smaller and more transparent.
            crowd = min(1.0, 100 / len(self.x_train))
            style = {"s": 14 + 22 * crowd, "color": GRAY, "alpha": 0.2 + 0.25 * crowd, "linewidths": 0}
            style |= {"label": "training samples", "zorder": 1}
            self.scatter_ = ax.scatter(self.x_train, self.y_train, **(style | (scatter_kwargs or {})))
        if self.truth is not None:
            style = {"color": BLACK, "linestyle": "--", "linewidth": 1.5, "label": "truth", "zorder": 2}
            self.lines_ += ax.plot(self.x, self.truth, **(style | (truth_kwargs or {})))
        style = {"color": RED, "linewidth": 2.0 if len(self.x) < 1000 else 1.2, "label": self.name, "zorder": 3}
        self.lines_ += ax.plot(self.x, self.prediction, **(style | (curve_kwargs or {})))
        ax.set(xlabel=self.x_label, ylabel=self.y_label)
        tidy(ax)
        ax.legend(frameon=False)
        return self


def _column_index(feature: int | str | None, names: list[str], d: int) -> int:
    if feature is None:
        if d == 1:
            return 0
        raise ValueError(f"X has {d} columns, so feature= must say which one to draw over")
    if isinstance(feature, str):
        if feature not in names:
            raise ValueError(f"feature {feature!r} is not a column of X; columns: {names or 'none have names'}")
        return names.index(feature)
    if not 0 <= feature < d:
        raise ValueError(f"feature must lie in [0, {d - 1}], got {feature}")
    return feature
