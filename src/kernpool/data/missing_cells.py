"""Missing cells of tables: rows that have some are left out, or the cells become a level of their own.

A missing category is the level "missing". A missing number, date or duration becomes the median of its column, and a
categorical column beside it says of each row whether the cell was missing. The smoothing of that column, searched with
the bandwidths, is the kernel factor of two rows of which only one has the cell.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernpool.data.array_validation import is_missing
from kernpool.data.columns import Column, Columns, Kind, Level, MixedTable, is_arrow_table
from kernpool.data.dates import Times

POLICIES = ("raise", "drop", "category")
LEVEL = "missing"  # of a categorical column
IS_MISSING = ("no", "yes")  # levels of the column beside a numeric one

Fill = tuple[int, float | None]  # position of a column, and what its missing cells become; None for a level


def missing_in(column: Column) -> NDArray[np.bool_]:
    """Return which cells of a column are missing."""
    if column.times is not None:
        return np.asarray(np.isnan(column.times.days()))
    cells = np.asarray(column.read_numbers()) if column.kind == "numeric" else None
    if cells is not None and cells.dtype.kind in "fiub":
        return np.asarray(np.isnan(cells), dtype=bool)
    return np.array([is_missing(item) for item in column.read_items()], dtype=bool)


def rows_with_missing(X: Any) -> NDArray[np.bool_]:
    """Return which rows of a frame or two-dimensional array have a missing cell.

    Examples
    --------
    >>> rows_with_missing([[1.0, "a"], [None, "b"], [2.0, None]])
    array([False,  True,  True])
    """
    if isinstance(X, np.ndarray) and X.dtype.kind == "f":
        return np.asarray(np.isnan(X).any(axis=1))
    return np.asarray(np.any([missing_in(column) for column in Columns.of(X).columns], axis=0))


def outputs_missing(y: Any) -> NDArray[np.bool_]:
    """Return which rows of outputs or labels, of shape (n,) or (n, c), have a missing one.

    Examples
    --------
    >>> outputs_missing(["a", None]), outputs_missing([[1.0, np.nan], [2.0, 3.0]])
    (array([False,  True]), array([ True, False]))
    """
    cells = np.asarray(y, dtype=object if isinstance(y, list | tuple) else None)
    if cells.dtype.kind in "fmM":
        missing = np.isnan(cells) if cells.dtype.kind == "f" else np.isnat(cells)
    elif cells.dtype.kind == "O":
        missing = np.reshape([is_missing(item) for item in cells.ravel().tolist()], cells.shape).astype(bool)
    else:
        missing = np.zeros(cells.shape, dtype=bool)
    return np.asarray(missing.any(axis=1) if missing.ndim > 1 else missing)


def take_rows(table: Any, rows: NDArray[np.intp]) -> Any:
    """Return rows of a table, a column or a list, as what it was; None stays None."""
    if table is None:
        return None
    if isinstance(table, MixedTable) or is_arrow_table(table) or hasattr(table, "to_pylist"):
        return table.take(rows)
    from sklearn.utils import _safe_indexing

    return _safe_indexing(table, rows)


def fills_of(table: Columns, kinds: Sequence[Kind]) -> tuple[Fill, ...]:
    """Return the columns of training rows with missing cells, and what these become.

    Raises
    ------
    ValueError
        If a column has no other cells, or is ordered.
    """
    fills: list[Fill] = []
    for position, (column, kind) in enumerate(zip(table.columns, kinds, strict=True)):
        missing = missing_in(column)
        if not missing.any():
            continue
        if missing.all():
            raise ValueError(f"{column.label} is missing in every row, and says nothing; leave it out")
        if kind == "ordered":
            raise ValueError(
                f"{column.label} has missing cells, which have no place in the order of its levels; name it in "
                "unordered=, or use missing='drop'"
            )
        fills.append((position, None if kind == "unordered" else _median(column, missing)))
    return tuple(fills)


def _median(column: Column, missing: NDArray[np.bool_]) -> float:
    if column.times is not None:
        return float(np.median(column.times.days()[~missing]))
    known = replace(column, read_numbers=lambda: _cells(column)[~missing])
    return float(np.median(known.numbers()))


def _cells(column: Column) -> NDArray[Any]:
    return np.asarray(column.read_numbers())


def filled(table: Columns, fills: Sequence[Fill]) -> Columns:
    """Return the columns with their missing cells filled, and those that say where there were missing numbers.

    Parameters
    ----------
    table : Columns
        Of training rows, or of queries.
    fills : sequence of (int, float or None)
        From `fills_of`.

    Examples
    --------
    >>> table = Columns.of(np.array([[1.0, 7.0], [np.nan, 8.0], [2.0, 9.0]]))
    >>> table = filled(table, fills_of(table, ("numeric", "numeric")))
    >>> [column.items() for column in table.columns]
    [[1.0, 1.5, 2.0], [7.0, 8.0, 9.0], ['no', 'yes', 'no']]
    """
    columns, beside, names = list(table.columns), [], list(table.names or ())
    for position, number in fills:
        column = columns[position]
        missing = missing_in(column)
        columns[position] = _with_level(column) if number is None else _with_number(column, number, missing)
        if number is not None:
            label = f"the column of missing cells of {column.label}"
            beside.append(_of_levels(label, [IS_MISSING[one] for one in missing.tolist()], IS_MISSING))
            if names:
                names.append(name_beside(names[position]))
    if len(set(names)) < len(names):
        raise ValueError(
            f"missing='category' needs the name {names[-1]!r} for where cells are missing, and a column has it; rename "
            "that column"
        )
    return Columns(tuple(names) or None, (*columns, *beside), table.rows)


def name_beside(name: Any) -> str:
    """Return the name of the column that says where cells of a column are missing."""
    return f"{name} missing"


def _with_number(column: Column, number: float, missing: NDArray[np.bool_]) -> Column:
    if column.times is not None:
        days = np.where(missing, number, column.times.days())
        return replace(column, times=Times(column.times.kind, days))
    cells = _cells(column)
    cells = np.where(missing, number, cells) if cells.dtype.kind != "O" else cells.copy()
    cells[missing] = number
    return replace(column, read_numbers=lambda: cells, read_items=cells.tolist)


def _with_level(column: Column) -> Column:
    items = [LEVEL if is_missing(item) else item for item in column.read_items()]
    levels = column.levels if column.levels is None or LEVEL in column.levels else (*column.levels, LEVEL)
    return replace(column, levels=levels, read_items=lambda: items)


def _of_levels(label: str, items: list[str], levels: tuple[Level, ...]) -> Column:
    return Column(label, "unordered", levels, lambda: np.array(items, dtype=object), lambda: items)
