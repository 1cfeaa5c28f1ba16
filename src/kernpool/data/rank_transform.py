"""Rank transform of numeric columns: values stay as they are, or become ranks among the training rows.

One bandwidth is too wide where rows are dense and too narrow where they are sparse, as for incomes. Ranks are
equally dense everywhere, so that one bandwidth is one fraction of the rows. It is a nearest-neighbour bandwidth
that stays a sum over pairs (Stute, "Asymptotic normality of nearest neighbor regression function estimates", Annals
of Statistics 12 (1984), 917-926).

scikit-learn's ``QuantileTransformer`` has no weights, draws rows, and is constant beyond the ends: merged duplicates
would differ from repeated rows, and slopes would vanish there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernpool.execution.error_messages import abbreviate

Array = NDArray[np.float64]

SCALES = ("raw", "rank")


@dataclass(frozen=True)
class Scale:
    r"""Transformation of numeric columns: unchanged, or replaced by ranks among the training rows.

    .. math:: r(x) = \frac{1}{N} \Big( \sum_{x_i < x} w_i + \frac{1}{2} \sum_{x_i = x} w_i \Big)

    at the values of the training rows, linear between them. Beyond the ends it goes on with the mean slope of the
    column: slopes of the last two values are those of chance, and none would make all rows out there the same.

    Parameters
    ----------
    knots : tuple of (ndarray, ndarray) or None
        For each column its distinct values, increasing, and their ranks; None for a column that stays as it is.

    Examples
    --------
    >>> scale = Scale.fit(np.array([[1.0], [10.0], [10.0], [100.0]]), None, [True])
    >>> scale.apply(np.array([[1.0], [10.0], [55.0], [100.0], [199.0]])).ravel()
    array([0.125 , 0.5   , 0.6875, 0.875 , 1.625 ])
    """

    knots: tuple[tuple[Array, Array] | None, ...]

    @classmethod
    def raw(cls, columns: int) -> Scale:
        """Return the transformation that leaves so many columns as they are."""
        return cls((None,) * columns)

    @classmethod
    def fit(cls, X: NDArray[Any], weight: Array | None, ranked: Sequence[bool]) -> Scale:
        """Compute the ranks of selected columns of the training rows, and return the transformation.

        Parameters
        ----------
        X : ndarray of shape (n, d)
            Training rows.
        weight : ndarray of shape (n,) or None
            Frequencies; rows of weight zero do not count.
        ranked : sequence of d bool
            Which columns.

        Returns
        -------
        Scale
            O(n log n) time for each ranked column.
        """
        times = np.ones(len(X)) if weight is None else weight
        rows = np.flatnonzero(times > 0)
        return cls(tuple(_ranks(X[rows, a], times[rows]) if one else None for a, one in enumerate(ranked)))

    @property
    def ranked(self) -> tuple[bool, ...]:
        """Flag of each numeric column: whether it is replaced by ranks."""
        return tuple(knots is not None for knots in self.knots)

    def apply(self, X: NDArray[Any]) -> NDArray[Any]:
        """Replace columns of rows of shape (m, d) by ranks; return the same array if no column is ranked."""
        if not any(self.ranked):
            return X
        scaled = np.array(X, dtype=np.float64)
        for a, knots in enumerate(self.knots):
            if knots is not None:
                (x, rank), column = knots, scaled[:, a]
                inside = np.clip(column, x[0], x[-1])
                # A line from knot to knot may end above the next one by a rounding; ranks do not go down there.
                next_knot = np.minimum(np.searchsorted(x, inside), len(x) - 1)
                between = np.minimum(np.interp(inside, x, rank), rank[next_knot])
                scaled[:, a] = between + _mean_slope(x, rank) * (column - inside)
        return scaled

    def slope(self, X: NDArray[Any]) -> Array:
        """Return the derivative of each transformed column with respect to the raw column, of shape (m, d).

        At a value of a training row, where slopes differ on both sides, it is their mean.
        """
        slopes = np.ones(X.shape)
        for a, knots in enumerate(self.knots):
            if knots is not None:
                x, rank = knots
                between = np.full(len(x) + 1, _mean_slope(x, rank))
                between[1:-1] = np.diff(rank) / np.diff(x)
                column = X[:, a].astype(np.float64)
                left, right = np.searchsorted(x, column, side="left"), np.searchsorted(x, column, side="right")
                slopes[:, a] = 0.5 * (between[left] + between[right])
        return slopes


def check_scale(scale: Any) -> None:
    """Raise ValueError if the parameter `scale` is invalid for every table, whatever its columns.

    Examples
    --------
    >>> check_scale("log")
    Traceback (most recent call last):
    ValueError: scale must be 'raw', 'rank', one of them per column, or a dict from columns to them, got 'log'
    """
    named = isinstance(scale, Mapping)
    listed = not isinstance(scale, str) and isinstance(scale, Sequence | np.ndarray)
    entries = [*scale.values()] if named else [*scale] if listed else [scale]
    columns = [*scale] if named else []
    if not all(isinstance(one, str) and one in SCALES for one in entries) or not all(map(is_column, columns)):
        raise ValueError(
            f"scale must be 'raw', 'rank', one of them per column, or a dict from columns to them, "
            f"got {abbreviate(scale)}"
        )


def ranked_columns(
    scale: Any, columns: int, names: Sequence[Any] | None = None, numeric: Sequence[int] | None = None
) -> list[bool]:
    """Return a flag for each numeric column: whether the parameter `scale` replaces it by ranks.

    Parameters
    ----------
    scale : str, sequence of str, or mapping of str or int to str
        Parameter of an estimator: one for all numeric columns, one per column of the table, or of some by name or
        position, where the others stay raw.
    columns : int
        Number of columns of the table.
    names : sequence of str, optional
        Their names.
    numeric : sequence of int, optional
        Which of them are numeric; by default all.

    Returns
    -------
    list of bool
        One per numeric column.

    Raises
    ------
    ValueError
        If the scale is none of those, or a column is not there, named twice or categorical.

    Examples
    --------
    >>> ranked_columns({"income": "rank", 0: "raw"}, 2, ["age", "income"])
    [False, True]
    """
    check_scale(scale)
    numeric = range(columns) if numeric is None else numeric
    if isinstance(scale, str):
        return [scale == "rank"] * len(numeric)
    if isinstance(scale, Mapping):
        wanted = ["raw"] * columns
        places = [position_of("scale", column, columns, names) for column in scale]
        if len(set(places)) < len(places):
            raise ValueError(f"scale names a column twice, got {dict(scale)!r}; name each column once")
        for place, one in zip(places, scale.values(), strict=True):
            wanted[place] = one
    else:
        wanted = list(scale)
        if len(wanted) != columns:
            raise ValueError(f"scale must be one word, or one per column, {columns} in all, got {len(wanted)}")
    of_levels = [place for place in range(columns) if wanted[place] == "rank" and place not in numeric]
    if of_levels:
        names_of = [place if names is None else names[place] for place in of_levels]
        raise ValueError(f"scale must be 'raw' for categorical columns, which have no ranks, got 'rank' for {names_of}")
    return [wanted[place] == "rank" for place in numeric]


def written_scale(scale: Any) -> Any:
    """Convert the parameter `scale` to JSON; a dict becomes pairs of a column and its "raw" or "rank"."""
    if isinstance(scale, Mapping):
        return {"columns": [[column if isinstance(column, str) else int(column), scale[column]] for column in scale]}
    return scale if isinstance(scale, str) else [str(one) for one in scale]


def read_scale(written: Any) -> Any:
    """Convert the parameter `scale` back from JSON, as written by `written_scale`; sequences become lists.

    Examples
    --------
    >>> read_scale(written_scale({0: "rank"}))
    {0: 'rank'}
    """
    if not isinstance(written, dict):
        return written
    if set(written) != {"columns"} or not isinstance(written["columns"], list):
        raise ValueError("scale is no list of columns")
    return dict(written["columns"])


def _ranks(column: NDArray[Any], times: Array) -> tuple[Array, Array]:
    x, place = np.unique(column.astype(np.float64), return_inverse=True)
    mass = np.bincount(place.ravel(), times)
    return x, (np.cumsum(mass) - 0.5 * mass) / mass.sum()


def _mean_slope(x: Array, rank: Array) -> float:
    """Return the mean slope of the ranks over the range of a column; zero for a constant column.

    The ranks of a constant column are one half.
    """
    width = float(x[-1] - x[0])
    return float(rank[-1] - rank[0]) / width if width > 0 else 0.0


def is_column(column: Any) -> bool:
    """Return whether a value can name a column: a string or an integer position."""
    return isinstance(column, str | int | np.integer) and not isinstance(column, bool)


def position_of(argument: str, column: Any, columns: int, names: Sequence[Any] | None) -> int:
    """Return the position of a column that an argument of this name gives by name or position.

    Examples
    --------
    >>> position_of("scale", "age", 2, ["income", "age"]), position_of("scale", -1, 2, None)
    (1, 1)
    """
    if isinstance(column, str):
        if names is None or column not in list(names):
            known = "the columns have no names, so use positions" if names is None else f"columns: {list(names)}"
            raise ValueError(f"{argument} names column {column!r}, which is not there; {known}")
        return list(names).index(column)
    if not -columns <= column < columns:
        raise ValueError(f"{argument} names column {column}, and there are {columns}; positions begin at zero")
    return int(column) % columns
