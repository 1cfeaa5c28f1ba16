"""A section: the places along one column, the others at their medians."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kernpool.data.checks import refuse_foreign
from kernpool.data.columns import series_as_frame
from kernpool.data.dates import TIME_KINDS, Times
from kernpool.data.mixed import Mixed

Array = NDArray[np.float64]

PER_BANDWIDTH, FEWEST, MOST = 8, 200, 4000  # points of the grid


@dataclass(frozen=True, eq=False)
class Section:
    """Where a curve is drawn.

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
    ) -> Section:
        """Lay a grid over one column of the training inputs.

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
        Section
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
    """Return training inputs and outputs, those that the estimator holds where the caller passes none.

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
        raise ValueError(f"X and y go together, got only {given}; leave both out to draw the rows of fit")
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
    """Return training inputs as numbers, the names of their columns, if any, and what makes a frame.

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
            "X has categorical columns, and a picture over columns needs numbers; find what to draw for one level at a "
            f"time, and give it to {instead}"
        )
    inputs = np.asarray(X, dtype=np.float64)
    if inputs.ndim not in (1, 2):
        raise ValueError(f"X must have shape (n,) or (n, columns), got {inputs.shape}")
    inputs = inputs[:, None] if inputs.ndim == 1 else inputs
    return inputs, names, type(X)


def known_names(estimator: Any, names: list[str]) -> list[str]:
    """Return the names of columns as pictures show them: none where the estimator was fitted to arrays of dates."""
    encoding = getattr(estimator, "encoding_", None)
    return names if encoding is None or encoding.names is not None else []


def kind_of(estimator: Any, column: int) -> str:
    """Return what a numeric column of a fitted estimator holds: numbers, or dates or durations in days."""
    encoding = getattr(estimator, "encoding_", None)
    return "numeric" if encoding is None else str(encoding.kinds[encoding.numeric[column]])


def _with_times(kinds: Sequence[Any], columns: Mapping[str, Array]) -> Mixed:
    """Return columns in days as the dates and durations that the estimator takes."""
    pairs = zip(columns.items(), kinds, strict=True)
    return Mixed({name: Times(kind, cells) if kind in TIME_KINDS else cells for (name, cells), kind in pairs})


def as_query(query: Array, names: list[str], make_frame: Any) -> Any:
    """Return places as a frame if there are names: the estimator saw them in fit and compares them in predict."""
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
    """Return the number of a column that is given by number or name.

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
