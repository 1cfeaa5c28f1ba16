"""A plane: the places over two columns, the others at their medians."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kernpool.displays.section import as_query, column_index, kind_of, known_names, read_inputs
from kernpool.execution.messages import abbreviate

Array = NDArray[np.float64]

BEYOND = 0.04  # share of the range of the rows that is shown beyond them, on either side


@dataclass(frozen=True, eq=False)
class Plane:
    """Where regions are drawn.

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
        estimator: Any,
        X: ArrayLike,
        features: Sequence[int | str] | None = None,
        grid_resolution: int = 150,
        *,
        instead: str,
    ) -> Plane:
        """Lay a grid over two columns of the training inputs.

        Parameters
        ----------
        estimator : fitted
            Whose rows they are.
        X : array_like or data frame of shape (n, d)
            Training inputs.
        features : pair of int or str, optional
            Which columns; needed unless there are two.
        grid_resolution : int, default=150
            Places along each of them.
        instead : str
            What to use where columns are categorical, for the message.

        Raises
        ------
        ValueError
            If X has categorical columns or another shape, or these are no two of its columns.
        """
        inputs, names, make_frame = read_inputs(estimator, X, instead)
        d = inputs.shape[1]
        if features is None:
            if d != 2:
                raise ValueError(f"X has {d} columns, so features= must say which two to draw over")
            features = (0, 1)
        if isinstance(features, str) or len(features) != 2:
            raise ValueError(f"features must be two columns, got {abbreviate(features)}")
        first, second = (column_index(feature, names, d, name="features") for feature in features)
        if first == second:
            raise ValueError(f"features must be two different columns, got {abbreviate(features)}")
        if grid_resolution < 2:
            raise ValueError(f"grid_resolution must be at least 2, got {grid_resolution}")
        x, y = (_axis(inputs[:, column], grid_resolution) for column in (first, second))
        query = np.tile(np.median(inputs, axis=0), (len(x) * len(y), 1))
        query[:, first], query[:, second] = np.tile(x, len(y)), np.repeat(y, len(x))
        known = known_names(estimator, names)
        labels = [known[column] if known else f"column {column}" for column in (first, second)]
        kinds = kind_of(estimator, first), kind_of(estimator, second)
        return cls(x, y, as_query(query, names, make_frame), (first, second), (labels[0], labels[1]), inputs, kinds)


def _axis(values: Array, resolution: int) -> Array:
    low, high = values.min(), values.max()
    margin = BEYOND * (high - low) or 1.0
    return np.linspace(low - margin, high + margin, resolution)
