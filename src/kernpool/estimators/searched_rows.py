"""Which rows a search for bandwidths draws, so that the others can say what its result is worth."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kernpool.bandwidth.search.rows import TrainingRows, canonical_rows

Array = NDArray[np.float64]
Integers = NDArray[np.int64]


class Drawn(NamedTuple):
    """Rows drawn for a search.

    Parameters
    ----------
    rows : TrainingRows
        The rows, in canonical form.
    number : ndarray of int64
        The numbers of all rows that equal one of them, ascending.
    of : int
        How many different rows there are in all.
    """

    rows: TrainingRows
    number: Integers
    of: int


def drawn_rows(
    X: Array, value: Array, weight: Array, code: Integers, group: Integers | None, size: int, generator: Any
) -> Drawn | None:
    """Draw rows for a search.

    Parameters
    ----------
    X, value, weight, code, group
        As of `canonical_rows`.
    size : int
        How many.
    generator : numpy.random.RandomState
        Which the search goes on with.

    Returns
    -------
    Drawn or None
        None if there are no more different rows than that.
    """
    rows = canonical_rows(X, value, weight, code, group)
    if len(rows.X) <= size:
        return None
    drawn = rows.draw(size, generator)
    number = equal_rows(
        [*X.T, *code.T, *value.T, *([] if group is None else [group])],
        [*drawn.X.T, *drawn.code.T, *drawn.value.T, *([] if drawn.group is None else [drawn.group])],
    )
    return Drawn(drawn, number, len(rows.X))


def equal_rows(columns: list[NDArray[Any]], of: list[NDArray[Any]]) -> Integers:
    """Return the numbers of the rows of a table that equal a row of another one, column by column.

    Examples
    --------
    >>> equal_rows([np.array([1.0, 2.0, 1.0]), np.array([5, 5, 6])], [np.array([1.0]), np.array([5])])
    array([0])
    """
    (found,) = np.nonzero(np.isin(columns[0], of[0]))
    for column, other in zip(columns[1:], of[1:], strict=True):  # few are left where a column is continuous
        found = found[np.isin(column[found], other)]
    both = np.column_stack(
        [np.concatenate([column[found], other]) + 0.0 for column, other in zip(columns, of, strict=True)]
    )
    _, place = np.unique(both, axis=0, return_inverse=True)
    place = place.ravel()
    return found[np.isin(place[: len(found)], place[len(found) :])].astype(np.int64)
